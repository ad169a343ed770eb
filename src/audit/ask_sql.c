/* Asks the index one question in SQL, which can do nothing but read it. */
#include "audit/ask_sql.h"

#include "audit/aggregate_cache.h"
#include "base/limits.h"
#include "base/memory.h"
#include "os/clock.h"
#include "store/index.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* of <sqlite3.h> */
enum {
  MAY = 0,
  DENY = 1,
  ACTION_READ = 20,
  ACTION_SELECT,
  ACTION_FUNCTION = 31,
  ACTION_RECURSIVE = 33
};
enum { CODE_NO_MEMORY = 7, CODE_INTERRUPT = 9, CODE_DENIED = 23 };
enum { BOUND_LENGTH = 0, BOUND_ATTACHED = 7 };
/* Instructions of SQLite's machine between two looks at the clock: below a millisecond. */
enum { STEPS = 10000, LOCK_WAIT_MS = 10000, REST_MS = 100 };
enum { OPEN_TRIES = 50, REFRESH_TRIES = 10 };

/* Makes the file, or waits until it can be opened to write. */
static bool ask_sql_file(const struct store *store, struct err *err) {
  struct sqlite *s = NULL;
  if (sqlite_load(err) == NULL)
    return false;
  for (int i = 0; s == NULL && i < OPEN_TRIES && access(store->where, W_OK) == 0; i++)
    if ((s = index_file_open(store, true)) == NULL)
      (void)poll(NULL, 0, REST_MS);
  index_file_close(s);
  return s != NULL || err_set(err, ERR_IO, "the index in %s cannot be written", store->where);
}

bool ask_sql_refresh(struct aggregate *c, const struct store *store, uint64_t *odd,
                     struct err *err) {
  struct aggregate_cache_told told = {.wait_ms = LOCK_WAIT_MS};
  if (!ask_sql_file(store, err))
    return false;
  for (int i = 0; i == 0 || (told.left > 0 && i < REFRESH_TRIES); i++) {
    memset(c->logs, 0, sizeof c->logs); /* logs that are not sound are read and told each time */
    c->apart_count = 0;
    if (i > 0)
      (void)poll(NULL, 0, REST_MS);
    if (!aggregate_cache_read(c, store, &told, err))
      return false;
  }
  *odd = told.odd;
  return told.left == 0 || err_set(err, ERR_LOCKED,
                                   "the index in %s is being written, and %llu logs "
                                   "are not in it: try again",
                                   store->where, (unsigned long long)told.left);
}

static int ask_sql_may(void *ctx, int action, const char *first, const char *second,
                       const char *database, const char *view) {
  (void)ctx, (void)first, (void)database, (void)view;
  if (action == ACTION_FUNCTION) /* these load code, or give an address away */
    return str_among(str_from(second), "load_extension fts3_tokenizer") ? DENY : MAY;
  bool reads = action == ACTION_READ || action == ACTION_SELECT || action == ACTION_RECURSIVE;
  return reads ? MAY : DENY;
}

static int ask_sql_is_late(void *until_ms) {
  return clock_mono_ms() >= *(const uint64_t *)until_ms;
}

/* Closes every way but reading, and bounds what one value and all of them may take. */
static bool ask_sql_close_ways(struct sqlite *s) {
  const struct sqlite_api *api = s->api;
  bool ok = sqlite_run(s, "PRAGMA query_only=1; PRAGMA temp_store=MEMORY");
  (void)api->busy_timeout(s->db, LOCK_WAIT_MS);
  (void)api->limit(s->db, BOUND_LENGTH, (int)LIMIT_SQL_VALUE_BYTES);
  (void)api->limit(s->db, BOUND_ATTACHED, 0);
  (void)api->hard_heap_limit64(LIMIT_SQL_HEAP_BYTES);
  return ok && api->set_authorizer(s->db, ask_sql_may, NULL) == SQLITE_CODE_OK;
}

static bool ask_sql_is_blank(const char *text) {
  return text[strspn(text, " \t\r\n;")] == '\0';
}

static bool ask_sql_failed(struct sqlite *s, int code, struct err *err) {
  if ((code & 0xff) == CODE_DENIED)
    return err_set(err, ERR_USAGE, "%s: a question only reads, as SELECT does",
                   s->api->errmsg(s->db));
  if ((code & 0xff) == CODE_INTERRUPT)
    return err_set(err, ERR_LIMIT, "the question takes longer than %u s", LIMIT_SQL_MS / 1000);
  if ((code & 0xff) == CODE_NO_MEMORY)
    return err_set(err, ERR_LIMIT, "the question needs more than %u MiB of memory",
                   LIMIT_SQL_HEAP_BYTES >> 20);
  if ((code & 0xff) == SQLITE_CODE_CORRUPT || (code & 0xff) == SQLITE_CODE_NOT_A_FILE)
    return err_set(err, ERR_IO,
                   "the index is damaged (%s): remove " INDEX_NAME ", which is made anew",
                   s->api->errmsg(s->db));
  return err_set(err, ERR_USAGE, "%s", s->api->errmsg(s->db));
}

static void ask_sql_row(const struct sqlite *s, struct sqlite3_stmt *q, struct ask_sql_cell *cells,
                        size_t count) {
  for (int i = 0; i < (int)count; i++) {
    struct ask_sql_cell *cell = &cells[i];
    *cell = (struct ask_sql_cell){.kind = (enum ask_sql_kind)s->api->column_type(q, i)};
    if (cell->kind == ASK_SQL_INTEGER)
      cell->integer = s->api->column_int64(q, i);
    if (cell->kind == ASK_SQL_REAL)
      cell->real = s->api->column_double(q, i);
    const void *p = s->api->column_text(q, i);
    if (cell->kind == ASK_SQL_BLOB)
      p = s->api->column_blob(q, i);
    cell->bytes = (struct str){p != NULL ? p : "", (size_t)s->api->column_bytes(q, i)};
  }
}

static bool ask_sql_rows(struct sqlite *s, struct sqlite3_stmt *q, ask_sql_fn row, void *ctx,
                         struct err *err) {
  size_t count = (size_t)s->api->column_count(q), rows = 0, bytes = 0;
  int code;
  struct ask_sql_cell *cells = xcalloc(count + 1, sizeof *cells);
  for (size_t i = 0; i < count; i++)
    cells[i] = (struct ask_sql_cell){.kind = ASK_SQL_TEXT,
                                     .bytes = str_from(s->api->column_name(q, (int)i))};
  row(ctx, cells, count);
  *err = (struct err){0};
  while (err->code == ERR_NONE && (code = s->api->step(q)) != SQLITE_CODE_DONE) {
    if (code != SQLITE_CODE_ROW) {
      (void)ask_sql_failed(s, code, err);
      break;
    }
    ask_sql_row(s, q, cells, count);
    for (size_t i = 0; i < count; i++)
      bytes += cells[i].bytes.n + sizeof cells[i];
    if (++rows > LIMIT_SQL_ROW_COUNT || bytes > LIMIT_SQL_ANSWER_BYTES)
      (void)err_set(err, ERR_LIMIT, "the answer has more than %u rows or %u MiB: add a LIMIT",
                    LIMIT_SQL_ROW_COUNT, LIMIT_SQL_ANSWER_BYTES >> 20);
    else
      row(ctx, cells, count);
  }
  free(cells);
  return err->code == ERR_NONE;
}

bool ask_sql(const struct store *store, const char *question, ask_sql_fn row, void *ctx,
             struct err *err) {
  struct sqlite *s = index_file_open(store, false);
  struct sqlite3_stmt *q = NULL;
  const char *rest = "";
  uint64_t until_ms = clock_mono_ms() + LIMIT_SQL_MS;
  if (s == NULL)
    return err_set(err, ERR_IO, "there is no index in %s, and none can be made", store->where);
  /* Within one function SQLite looks at no clock: a LIKE can take for ever. SIGALRM then ends the
   * process, which has nothing open to write. */
  (void)alarm(LIMIT_SQL_MS / 1000 + 5);
  bool ok = ask_sql_close_ways(s);
  s->api->progress_handler(s->db, STEPS, ask_sql_is_late, &until_ms);
  int code = ok ? s->api->prepare_v2(s->db, question, -1, &q, &rest) : s->error;
  if (!ok || code != SQLITE_CODE_OK)
    ok = ask_sql_failed(s, code, err);
  else if (q == NULL || !ask_sql_is_blank(rest))
    ok = err_set(err, ERR_USAGE, "write one statement, such as SELECT * FROM sessions");
  else
    ok = ask_sql_rows(s, q, row, ctx, err);
  (void)s->api->finalize(q);
  (void)alarm(0);
  index_file_close(s);
  return ok;
}
