/* index.h - what was read from the logs of a folder before, kept beside them in one SQLite file
 * (INDEX_NAME), so that a start, a list or an audit need not open every log.
 *
 *   x = index_open(&store, &wanted, INDEX_STARTED)    its rows; empty where there is no file
 *   row = index_row(x, id)                 NULL: read the log
 *   index_close(x)
 *   index_refresh(&store, budget, &more)   brings the rows up to what the logs say; a daemon does
 *
 *   s = index_file_open(&store, makes)     the file itself, for further tables; NULL: there is none
 *   index_file_close(s)
 *
 * It is never the truth: a row belongs to the record `seq` with the hash `head` that ended the log
 * when it was read, counts only while the log has the size and time that it had then, and only says
 * that a log need not be opened; what is shown comes from the log. The file can be removed at any
 * time. One that is damaged or of another version is ignored, and the next writer empties it.
 *
 * DESIGN. Any process may read and write. Who finds the file locked goes on without it: a writer at
 * once, a reader after a twentieth of a second. Where only this machine can change the file system,
 * the file has a write-ahead log, so that readers meet a lock only when somebody closes the file
 * last; elsewhere it has a journal. A writer that is killed, a power cut or a full disk leave the
 * rows of the last transaction. Only files have an index. Without SQLite there is none. */
#ifndef SEGUE_STORE_INDEX_H
#define SEGUE_STORE_INDEX_H

#include "store/filter.h"
#include "store/sqlite.h"

#define INDEX_NAME "index.sqlite"

enum index_flag {
  INDEX_OVER = 1,    /* stopped or ended */
  INDEX_GOES_ON = 2, /* a daemon continues it */
  INDEX_SEALED = 4,  /* the ledger has its head */
  INDEX_ASKS = 8,    /* it has open questions to a person */
  INDEX_ENDED = 16,  /* ended for good: nothing more is appended to its log */
};

enum index_value { /* what `value` of a row is */
                   INDEX_NOTHING,
                   INDEX_STARTED, /* real time, ms */
                   INDEX_TOOK,    /* ms */
                   INDEX_TURNS,
                   INDEX_TOKENS,
                   INDEX_COST, /* US dollars */
                   INDEX_VALUE_COUNT
};

struct index_row {
  char id[STORE_ID_BYTES];
  uint8_t flags;    /* enum index_flag */
  bool passed_over; /* the selection does not want it */
  uint64_t bytes;   /* size and time of the log when it was read */
  int64_t time_ns;
  double value;
};

struct index;

/* wanted: NULL wants all. */
struct index *index_open(const struct store *store, const struct filter *wanted,
                         enum index_value value);
void index_close(struct index *x); /* NULL is fine */
/* Returns the row of a session if its log is unchanged, else NULL. */
const struct index_row *index_row(struct index *x, const char *id);
/* Does the same, but does not look at a log that ended for good. */
const struct index_row *index_row_of_list(struct index *x, const char *id);

/* Reads up to `budget` logs that have no row. *more: others are left. Returns false without an
 * index: small stores get none. Blocking: call it from the pool. */
bool index_refresh(const struct store *store, size_t budget, bool *more);

/* makes: to write, and the file is made where it is missing. */
struct sqlite *index_file_open(const struct store *store, bool makes);
/* Looks whether a transaction or query failed for a reason that a person should know, or because
 * the file is damaged: then it is emptied if it was opened to write. NULL is fine. */
void index_file_close(struct sqlite *s);

/* Opens the folder of the logs, for index_stat; -1: it has none. */
int index_folder(const struct store *store);
/* Gets the present size and time of a log. */
bool index_stat(int dir, const char *id, uint64_t *bytes, int64_t *time_ns);

#endif
