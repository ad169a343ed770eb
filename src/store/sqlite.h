/* sqlite.h - SQLite, loaded when an index of logs is first used instead of at every start, and what
 * of it the program needs. It is optional: without it nothing is kept.
 *
 *   s = sqlite_open(path, flags)       NULL: there is no library, or the file cannot be opened
 *   sqlite_run(s, "BEGIN")             statements without a result
 *   q = sqlite_ask(s, "SELECT ...")    NULL: it failed
 *   while (sqlite_next(s, q)) ...      s->api->column_int64(q, 0), ...
 *   s->api->finalize(q)                NULL is fine
 *   sqlite_close(s)                    NULL is fine
 *
 * Unless somebody sets a timeout, what another process has locked fails at once. The first failure
 * stays in s->error until somebody clears it. One thread at a time. The types and numbers are those
 * of <sqlite3.h>, whose binary interface never changes; where that file is installed, the compiler
 * compares them. */
#ifndef SEGUE_STORE_SQLITE_H
#define SEGUE_STORE_SQLITE_H

#include "base/err.h"

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

enum sqlite_code { /* results of the library that are told apart */
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
/* Empties the file whatever is in it, unless another process is using it. */
bool sqlite_empty(struct sqlite *s);
void sqlite_close(struct sqlite *s);

#endif
