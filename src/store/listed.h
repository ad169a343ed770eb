/* listed.h - the logs of a store, newest first, and what the index says of them, for lists that are
 * asked for again and again.
 *
 *   l = listed_new(&store, drop)
 *   listed_read(l, watches, &err)      then l->logs and l->count
 *   listed_index(l)                    if rows are wanted; then l->index, and
 *   row = listed_row(l, i)             that of l->logs[i] if the log is unchanged, else NULL;
 *                                      one that ended for good is not looked at
 *   listed_keep(l, i, what)            keeps what was read from it, as l->logs[i].kept, until the
 *                                      log changes; false: it cannot be kept
 *   listed_free(l)                     NULL is fine
 *
 * Each listed_read gives what there is now. If it watches, the kernel tells what changed since the
 * last one (os/stirs.h), and only that is looked at again: the folder is not listed, the index not
 * parsed, and a log that was looked at is as it was. Where the kernel does not tell, where too much
 * changed, in a large folder, and after LIMIT_LISTED_MS all is read anew. One thread at a time. */
#ifndef SEGUE_STORE_LISTED_H
#define SEGUE_STORE_LISTED_H

#include "os/stirs.h"
#include "store/index.h"

struct listed_log {
  char id[STORE_ID_BYTES];
  bool looked;    /* bytes and time_ns are up to date; only while watched */
  uint32_t row;   /* row of the index, counted from 1; 0: none */
  uint64_t bytes; /* 0: it is not a file */
  int64_t time_ns;
  bool asks_nobody; /* store/inbox.h read it, and it asks nothing; only while watched */
  void *kept;       /* or NULL */
};

struct listed {
  struct store store;
  struct listed_log *logs;
  size_t count, room;
  struct index *index; /* NULL: see listed_index */
  size_t kept;         /* number of logs with something kept */
  void (*drop)(void *kept);
  struct stirs stirs;
  uint64_t read_ms; /* when everything was last read */
};

/* Makes the list. drop frees what is kept; NULL: nothing is kept. */
struct listed *listed_new(const struct store *store, void (*drop)(void *kept));
bool listed_read(struct listed *l, bool watches, struct err *err) MUST_CHECK;
void listed_index(struct listed *l);
const struct index_row *listed_row(struct listed *l, size_t i);
/* Finds a log; false: the store has no such log. */
bool listed_find(const struct listed *l, const char *id, size_t *i);
bool listed_keep(struct listed *l, size_t i, void *what);
void listed_free(struct listed *l);

#endif
