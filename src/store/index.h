/* index.h - what lists need of logs, kept beside them so that not every log has to be opened.
 *
 *   x = index_open(&store)                 empty where there is none, or none that can be used
 *   row = index_row(x, id)                 NULL: read the log
 *   index_close(x)
 *   index_refresh(&store, budget, &more)   brings it up to what the logs say; a daemon does
 *
 * It is never the truth: a row counts while its log has the size and time it had when it was read,
 * and only says that a log need not be opened; what is shown comes from the log. It can be removed
 * at any time. An index that is damaged, foreign or of another version is ignored and rebuilt.
 *
 * DESIGN, the file `sessions.index`: a head, then sections: rows of one size by id, and the texts
 * that they name by offset, each once. Numbers are those of the machine. A further section takes
 * the next place in the head's table and a new version. The checksum in the head covers everything,
 * so that a torn write is found and nothing has to be synced. */
#ifndef SEGUE_STORE_INDEX_H
#define SEGUE_STORE_INDEX_H

#include "store/store.h"

enum index_flag {
  INDEX_OVER = 1,    /* stopped or ended: the row has its status */
  INDEX_GOES_ON = 2, /* a daemon continues it */
  INDEX_SEALED = 4,  /* the ledger has its head */
  INDEX_ASKS = 8,    /* it has open questions to a person */
  INDEX_ENDED = 16,  /* ended for good: nothing more is appended to its log */
};

struct index_row {
  uint64_t id[2]; /* the 128 bits of its id, in order */
  uint64_t bytes; /* size and time of the log when it was read */
  int64_t time_ns;
  int64_t started_ms, updated_ms;
  int64_t tokens;
  double cost_usd;                      /* 0: not known */
  uint64_t head;                        /* the first 64 bits of its last record's hash */
  uint64_t seq;                         /* seq of that record */
  uint32_t status, workflow, providers; /* each for index_text; providers: one name a line */
  uint32_t turns;
  uint16_t methods; /* how it was judged: a bit for each enum judge_stage */
  uint8_t flags, zero;
  uint32_t rest;
};

struct index;

struct index *index_open(const struct store *store);
void index_close(struct index *x); /* NULL is fine */
/* Returns the row of a session if its log is unchanged, else NULL. */
const struct index_row *index_row(const struct index *x, const char *id);
const char *index_text(const struct index *x, uint32_t at);

/* Reads up to `budget` logs that have no row, and writes the file. *more: others are left. Small
 * stores get no index. Blocking: call it from the pool. */
void index_refresh(const struct store *store, size_t budget, bool *more);

#endif
