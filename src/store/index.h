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
 * Its tables, which are private (PRAGMA user_version):
 *
 *   sessions          what lists and a start need of each log; index_refresh, so a daemon
 *   log_rows          what each log adds up to, as numbers; audit/aggregate_cache.c writes this and
 *                     the next three: an audit does, and a daemon
 *   session_kinds, row_kinds, stage_kinds      the words that these numbers stand for
 *   labels            what people say should have been chosen, as often as that file changes
 *   turns, calls, stages, judgments            views of log_rows in words, by session and turn
 *
 * DESIGN. Any process may read and write. Who finds the file locked goes on without it: a writer at
 * once, a reader after a twentieth of a second. Where only this machine can change the file system,
 * the file has a write-ahead log, so that readers meet a lock only when somebody closes the file
 * last; elsewhere it has a journal. A writer that is killed, a power cut or a full disk leave the
 * rows of the last transaction. Only files have an index. Without SQLite there is none. */
#ifndef SEGUE_STORE_INDEX_H
#define SEGUE_STORE_INDEX_H

#include "base/err.h"
#include "store/filter.h"

#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

#define SQLITE_FUNCTIONS(X)                                                                        \
  X(open_v2, int, (const char *, struct sqlite3 **, int, const char *))                            \
  X(close, int, (struct sqlite3 *))                                                                \
  X(busy_timeout, int, (struct sqlite3 *, int))                                                    \
  X(errstr, const char *, (int))                                                                   \
  X(db_config, int, (struct sqlite3 *, int, ...))                                                  \
  X(exec, int,                                                                                     \
    (struct sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **))     \
  X(prepare_v2, int, (struct sqlite3 *, const char *, int, struct sqlite3_stmt **, const char **)) \
  X(step, int, (struct sqlite3_stmt *))                                                            \
  X(reset, int, (struct sqlite3_stmt *))                                                           \
  X(finalize, int, (struct sqlite3_stmt *))                                                        \
  X(bind_int64, int, (struct sqlite3_stmt *, int, long long))                                      \
  X(bind_double, int, (struct sqlite3_stmt *, int, double))                                        \
  X(bind_text, int, (struct sqlite3_stmt *, int, const char *, int, void (*)(void *)))             \
  X(bind_blob, int, (struct sqlite3_stmt *, int, const void *, int, void (*)(void *)))             \
  X(column_int64, long long, (struct sqlite3_stmt *, int))                                         \
  X(column_double, double, (struct sqlite3_stmt *, int))                                           \
  X(column_text, const unsigned char *, (struct sqlite3_stmt *, int))                              \
  X(column_blob, const void *, (struct sqlite3_stmt *, int))                                       \
  X(column_bytes, int, (struct sqlite3_stmt *, int))

struct sqlite_api {
#define SQLITE_MEMBER(name, result, arguments) result(*name) arguments;
  SQLITE_FUNCTIONS(SQLITE_MEMBER)
#undef SQLITE_MEMBER
};

/* results of the library that are told apart */
enum sqlite_code {
  SQLITE_CODE_OK = 0,
  SQLITE_CODE_BUSY = 5,
  SQLITE_CODE_CORRUPT = 11,
  SQLITE_CODE_NOT_A_FILE = 26,
  SQLITE_CODE_ROW = 100,
  SQLITE_CODE_DONE = 101
};

struct sqlite {
  const struct sqlite_api *api;
  struct sqlite3 *db;
  bool writes; /* for those who share it */
  int error;   /* enum sqlite_code, or another code of the library */
};

/* Loads the library once. NULL: err says what is missing. From any thread. */
const struct sqlite_api *sqlite_load(struct err *err) MUST_CHECK;
/* Opens a file that exists. */
struct sqlite *sqlite_open(const char *path);
bool sqlite_run(struct sqlite *s, const char *statements);
struct sqlite3_stmt *sqlite_ask(struct sqlite *s, const char *statement) MUST_CHECK;
/* Returns true if there is another row. */
bool sqlite_next(struct sqlite *s, struct sqlite3_stmt *q);
/* Carries a statement without a result out, and makes it ready for the next values. */
bool sqlite_put(struct sqlite *s, struct sqlite3_stmt *q);
void sqlite_close(struct sqlite *s);

#define INDEX_NAME "index.sqlite"

enum index_flag {
  INDEX_OVER = 1,    /* stopped or ended */
  INDEX_GOES_ON = 2, /* a daemon continues it */
  INDEX_SEALED = 4,  /* the ledger has its head */
  INDEX_ASKS = 8,    /* it has open questions to a person */
  INDEX_NEEDS = 32,  /* a person goes on with it: it asks, or has stopped */
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
  char status[24];  /* as summary_status has it; "running": the log does not say how it stands */
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
