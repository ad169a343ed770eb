/* ask_sql.h - asks the index of a folder's logs (store/index.h) one question in SQL.
 *
 *   ask_sql_refresh(&store, &odd, &err)      reads what is new; then, any number of times
 *   ask_sql(&store, "SELECT ...", row, ctx, &err)
 *
 * The question can only read: SQLite itself refuses anything but SELECT, by its authorizer and by
 * query_only. Its time, memory, rows and bytes have bounds (base/limits.h). docs/sql.md describes
 * the tables. Blocking, and for one thread: the bound of memory counts for the whole process. */
#ifndef SEGUE_AUDIT_ASK_SQL_H
#define SEGUE_AUDIT_ASK_SQL_H

#include "audit/aggregate.h"

enum ask_sql_kind { ASK_SQL_INTEGER = 1, ASK_SQL_REAL, ASK_SQL_TEXT, ASK_SQL_BLOB, ASK_SQL_NULL };

struct ask_sql_cell {
  enum ask_sql_kind kind;
  int64_t integer;
  double real;
  struct str bytes; /* a text or blob, or a number as SQLite writes it; until the call returns */
};

/* Takes the names of the columns as texts, then each row. */
typedef void (*ask_sql_fn)(void *ctx, const struct ask_sql_cell *cells, size_t count);

/* Brings the index up to date, and waits for others who write it. The aggregate, which must be new,
 * is told of logs that are not sound: they are not in the index. *odd: sound logs that are not in
 * it either, see aggregate_cache.h. False: there is no index, or it cannot be written. */
bool ask_sql_refresh(struct aggregate *c, const struct store *store, uint64_t *odd,
                     struct err *err) MUST_CHECK;
/* ERR_USAGE: what is wrong with the question; ERR_LIMIT: it met a bound. */
bool ask_sql(const struct store *store, const char *question, ask_sql_fn row, void *ctx,
             struct err *err) MUST_CHECK;

#endif
