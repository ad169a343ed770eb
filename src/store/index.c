/* Keeps what was read from the logs of a folder, and says what of it still holds. */
#include "store/index.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "os/fs.h"
#include "store/backend.h"
#include "store/reader.h"
#include "store/summary.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* SQLite, loaded when an index of logs is first used instead of at every start, and what
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

#if __has_include(<sqlite3.h>)
#define SQLITE_COMPARE(name, result, arguments)                                                    \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&sqlite3_##name),                         \
                                              __typeof__(((struct sqlite_api *)NULL)->name)),      \
                 #name " is another function in <sqlite3.h>");
SQLITE_FUNCTIONS(SQLITE_COMPARE)
_Static_assert((int)SQLITE_CODE_BUSY == SQLITE_BUSY, "busy");
_Static_assert((int)SQLITE_CODE_CORRUPT == SQLITE_CORRUPT, "corrupt");
_Static_assert((int)SQLITE_CODE_NOT_A_FILE == SQLITE_NOTADB, "not a file");
_Static_assert((int)SQLITE_CODE_ROW == SQLITE_ROW, "row");
_Static_assert((int)SQLITE_CODE_DONE == SQLITE_DONE, "done");
#endif

enum { OPEN_WRITES = 0x2, OPEN_NO_MUTEX = 0x8000, OPEN_NO_FOLLOW = 0x1000000, RESET_FILE = 1009 };

static struct sqlite_api loaded;
static bool is_loaded;

static void sqlite_load_all(void) {
  void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL), *symbol;
  if (library == NULL)
    return;
/* POSIX lets dlsym return functions as data pointers; memcpy keeps ISO C content. */
#define SQLITE_LOAD(name, result, arguments)                                                       \
  symbol = dlsym(library, "sqlite3_" #name);                                                       \
  if (symbol == NULL)                                                                              \
    return;                                                                                        \
  memcpy(&loaded.name, &symbol, sizeof symbol);
  SQLITE_FUNCTIONS(SQLITE_LOAD)
#undef SQLITE_LOAD
  is_loaded = true;
}

const struct sqlite_api *sqlite_load(struct err *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, sqlite_load_all);
  if (is_loaded)
    return &loaded;
  err_set(err, ERR_NOT_FOUND,
          "SQLite (libsqlite3.so.0) cannot be loaded (Debian: libsqlite3-0), so nothing that was "
          "read from logs is kept");
  return NULL;
}

static bool sqlite_says(struct sqlite *s, int code) {
  bool ok = code == SQLITE_CODE_OK || code == SQLITE_CODE_ROW || code == SQLITE_CODE_DONE;
  if (!ok && s->error == SQLITE_CODE_OK)
    s->error = code & 0xff; /* what follows the lowest byte says more of the same */
  return ok;
}

struct sqlite *sqlite_open(const char *path) {
  struct err ignored;
  const struct sqlite_api *api = sqlite_load(&ignored);
  if (api == NULL)
    return NULL;
  struct sqlite *s = xcalloc(1, sizeof *s);
  s->api = api;
  int code = api->open_v2(path, &s->db, OPEN_WRITES | OPEN_NO_MUTEX | OPEN_NO_FOLLOW, NULL);
  if (sqlite_says(s, code))
    return s;
  sqlite_close(s);
  return NULL;
}

bool sqlite_run(struct sqlite *s, const char *statements) {
  return sqlite_says(s, s->api->exec(s->db, statements, NULL, NULL, NULL));
}

struct sqlite3_stmt *sqlite_ask(struct sqlite *s, const char *statement) {
  struct sqlite3_stmt *q = NULL;
  return sqlite_says(s, s->api->prepare_v2(s->db, statement, -1, &q, NULL)) ? q : NULL;
}

bool sqlite_next(struct sqlite *s, struct sqlite3_stmt *q) {
  int code = q != NULL ? s->api->step(q) : SQLITE_CODE_DONE;
  return sqlite_says(s, code) && code == SQLITE_CODE_ROW;
}

bool sqlite_put(struct sqlite *s, struct sqlite3_stmt *q) {
  if (q == NULL)
    return false;
  bool ok = sqlite_says(s, s->api->step(q));
  (void)s->api->reset(q); /* it says again what step said */
  return ok;
}

/* Empties the file whatever is in it, unless another process is using it. */
static bool sqlite_empty(struct sqlite *s) {
  s->error = SQLITE_CODE_OK;
  (void)s->api->db_config(s->db, RESET_FILE, 1, NULL);
  bool ok = sqlite_run(s, "VACUUM");
  (void)s->api->db_config(s->db, RESET_FILE, 0, NULL);
  return ok;
}

void sqlite_close(struct sqlite *s) {
  if (s == NULL)
    return;
  int code = s->api->close(s->db);
  assert(code == SQLITE_CODE_OK); /* else a statement was not finalized */
  free(s);
}

/* --- index --- */

#define INDEX_VERSION "10" /* of the tables in store/index.sql; another version is made anew */

/* --- the file --- */

static void index_say_once(const char *why) {
  static atomic_bool said;
  if (!atomic_exchange(&said, true))
    log_warn("the index of the logs is not used: %s", why);
}

/* Returns whether the file can be opened. It is made before SQLite sees it, so that only its owner
 * can read it. */
static bool index_file_is_there(const char *path, bool makes) {
  struct stat st;
  if (lstat(path, &st) == 0)
    return S_ISREG(st.st_mode) && st.st_uid == geteuid();
  int fd =
      makes && errno == ENOENT ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
  if (fd >= 0)
    close(fd);
  return fd >= 0;
}

static bool index_version_is_ours(struct sqlite *s) {
  struct sqlite3_stmt *q = sqlite_ask(s, "PRAGMA user_version");
  bool ours = sqlite_next(s, q) && s->api->column_int64(q, 0) == strtol(INDEX_VERSION, NULL, 10);
  s->api->finalize(q);
  return ours;
}

/* Makes the tables, unless another process just did. */
static bool index_make_tables(struct sqlite *s, const char *path) {
  if (s->error == SQLITE_CODE_BUSY)
    return false;
  (void)sqlite_empty(s); /* a locked file stays as it is, and the next statement fails */
  s->error = SQLITE_CODE_OK;
  const char *mode = "PRAGMA journal_mode=TRUNCATE";
  if (fs_is_of_this_machine(path)) /* the write-ahead log needs memory shared by all who read it */
    mode = "PRAGMA journal_mode=WAL";
  if (!sqlite_run(s, mode) || !sqlite_run(s, "BEGIN IMMEDIATE"))
    return false;
  bool ok = index_version_is_ours(s) || (sqlite_run(s, resource_find("store/index.sql")->p) &&
                                         sqlite_run(s, "PRAGMA user_version=" INDEX_VERSION));
  return sqlite_run(s, ok ? "COMMIT" : "ROLLBACK") && ok;
}

/* Who closes the file last has it for itself for a moment, to remove the write-ahead log. A reader
 * waits for that rather than read all logs. */
enum { READER_WAIT_MS = 50 };

struct sqlite *index_file_open(const struct store *store, bool makes) {
  char path[STORE_NAME_BYTES];
  struct err err;
  int n = snprintf(path, sizeof path, "%s/" INDEX_NAME, store->where);
  if (store->ops != &files_ops || n >= (int)sizeof path)
    return NULL;
  if (makes && sqlite_load(&err) == NULL) {
    index_say_once(err.text);
    return NULL;
  }
  if (!index_file_is_there(path, makes))
    return NULL;
  struct sqlite *s = sqlite_open(path);
  if (s == NULL)
    return NULL;
  s->writes = makes;
  if (!makes)
    (void)s->api->busy_timeout(s->db, READER_WAIT_MS);
  bool ok = sqlite_run(s, "PRAGMA synchronous=NORMAL; PRAGMA cache_size=-512") &&
            index_version_is_ours(s);
  ok = ok || (makes && index_make_tables(s, path));
  if (ok)
    return s;
  index_file_close(s);
  return NULL;
}

void index_file_close(struct sqlite *s) {
  if (s == NULL)
    return;
  bool damaged = s->error == SQLITE_CODE_CORRUPT || s->error == SQLITE_CODE_NOT_A_FILE;
  if (s->writes && s->error == SQLITE_CODE_OK) /* now, while readers go on; at the end they wait */
    (void)sqlite_run(s, "PRAGMA wal_checkpoint(PASSIVE)");
  if (s->writes && damaged)
    (void)sqlite_empty(s); /* its tables are made by the next writer */
  else if (s->writes && s->error != SQLITE_CODE_OK && s->error != SQLITE_CODE_BUSY)
    index_say_once(s->api->errstr(s->error));
  sqlite_close(s);
}

int index_folder(const struct store *store) {
  return store->ops == &files_ops ? open(store->where, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

bool index_stat(int dir, const char *id, uint64_t *bytes, int64_t *time_ns) {
  char name[STORE_ID_BYTES + 8];
  struct stat st;
  memcpy(name, id, STORE_ID_BYTES - 1);
  memcpy(name + STORE_ID_BYTES - 1, ".ndjson", sizeof ".ndjson");
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
    return false;
  *bytes = (uint64_t)st.st_size;
  *time_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
  return true;
}

/* --- rows --- */

struct index {
  int dir;                /* folder of the logs */
  struct index_row *rows; /* by id */
  size_t count, room;
  size_t near; /* the row that was looked for last: lists go in order */
};

static const char *const values[INDEX_VALUE_COUNT] = {
    [INDEX_NOTHING] = "0",
    [INDEX_STARTED] = "started_ms",
    [INDEX_TOOK] = "updated_ms - started_ms",
    [INDEX_TURNS] = "turns",
    [INDEX_TOKENS] = "tokens",
    [INDEX_COST] = "cost_usd",
};

/* Asks for all rows by id; the last column says which ones the selection does not want, but for
 * their status. */
static struct sqlite3_stmt *index_ask(struct sqlite *s, const struct filter *wanted,
                                      enum index_value value) {
  buf_auto_t text =
      buf_of("SELECT id, bytes, time_ns, status, goes_on, asks, sealed, %s, NOT (1", values[value]);
  if (wanted->since_ms != 0)
    buf_puts(&text, " AND started_ms >= ?1");
  if (wanted->workflow != NULL)
    buf_puts(&text, " AND workflow = ?2");
  if (wanted->method != NULL)
    buf_puts(&text, " AND instr(char(10) || methods, char(10) || ?3 || char(10))");
  if (wanted->provider != NULL)
    buf_puts(&text, " AND instr(char(10) || providers, char(10) || ?4 || char(10))");
  buf_puts(&text, ") FROM sessions ORDER BY id");
  struct sqlite3_stmt *q = sqlite_ask(s, buf_c(&text));
  if (q == NULL)
    return NULL;
  if (wanted->since_ms != 0)
    (void)s->api->bind_int64(q, 1, wanted->since_ms);
  if (wanted->workflow != NULL)
    (void)s->api->bind_text(q, 2, wanted->workflow, -1, NULL);
  if (wanted->method != NULL)
    (void)s->api->bind_text(q, 3, wanted->method, -1, NULL);
  if (wanted->provider != NULL)
    (void)s->api->bind_text(q, 4, wanted->provider, -1, NULL);
  return q;
}

static void index_take(struct index *x, const struct sqlite *s, struct sqlite3_stmt *q,
                       const struct filter *wanted) {
  const char *id = (const char *)s->api->column_text(q, 0);
  const char *status = (const char *)s->api->column_text(q, 3);
  if (id == NULL || status == NULL || strlen(id) != STORE_ID_BYTES - 1)
    return;
  if (x->count == x->room) {
    x->room = x->room > 0 ? 2 * x->room : 1024;
    x->rows = xrealloc(x->rows, x->room * sizeof *x->rows);
  }
  struct index_row *row = &x->rows[x->count++];
  *row = (struct index_row){.bytes = (uint64_t)s->api->column_int64(q, 1),
                            .time_ns = s->api->column_int64(q, 2),
                            .value = s->api->column_double(q, 7)};
  memcpy(row->id, id, STORE_ID_BYTES);
  print_into(row->status, sizeof row->status, "%s", status);
  if (strcmp(status, "running") != 0)
    row->flags |= INDEX_OVER;
  if (str_among(str_from(status), "complete abort cancelled"))
    row->flags |= INDEX_ENDED;
  if (s->api->column_int64(q, 4))
    row->flags |= INDEX_GOES_ON;
  long long asks = s->api->column_int64(q, 5);
  row->flags |= (asks == 1 ? INDEX_ASKS : 0u) | (asks != 0 ? INDEX_NEEDS : 0u);
  if (s->api->column_int64(q, 6))
    row->flags |= INDEX_SEALED;
  row->passed_over = s->api->column_int64(q, 8) ||
                     ((row->flags & INDEX_OVER) && !summary_wanted(wanted->statuses, status));
}

static void index_load(struct index *x, struct sqlite *s, const struct filter *wanted,
                       enum index_value value) {
  static const struct filter all;
  struct sqlite3_stmt *q = index_ask(s, wanted != NULL ? wanted : &all, value);
  while (sqlite_next(s, q))
    index_take(x, s, q, wanted != NULL ? wanted : &all);
  s->api->finalize(q);
  if (s->error != SQLITE_CODE_OK)
    x->count = 0;
}

struct index *index_open(const struct store *store, const struct filter *wanted,
                         enum index_value value) {
  struct index *x = xcalloc(1, sizeof *x);
  struct sqlite *s = index_file_open(store, false);
  x->dir = s != NULL ? index_folder(store) : -1;
  if (x->dir >= 0)
    index_load(x, s, wanted, value);
  index_file_close(s);
  return x;
}

void index_close(struct index *x) {
  if (x == NULL)
    return;
  if (x->dir >= 0)
    close(x->dir);
  free(x->rows);
  free(x);
}

static bool index_row_is(const struct index *x, size_t i, const char *id) {
  return i < x->count && strcmp(x->rows[i].id, id) == 0;
}

/* Returns the row of an id, whatever became of its log. */
static const struct index_row *index_find(struct index *x, const char *id) {
  size_t low = 0, high = x->count;
  if (index_row_is(x, x->near + 1, id))
    low = x->near + 1;
  else if (x->near > 0 && index_row_is(x, x->near - 1, id))
    low = x->near - 1;
  else
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      if (strcmp(x->rows[middle].id, id) < 0)
        low = middle + 1;
      else
        high = middle;
    }
  x->near = low;
  return index_row_is(x, low, id) ? &x->rows[low] : NULL;
}

const struct index_row *index_row(struct index *x, const char *id) {
  uint64_t bytes;
  int64_t time_ns;
  const struct index_row *row = index_find(x, id);
  bool same = row != NULL && index_stat(x->dir, id, &bytes, &time_ns) && row->bytes == bytes &&
              row->time_ns == time_ns;
  return same ? row : NULL;
}

const struct index_row *index_row_of_list(struct index *x, const char *id) {
  const struct index_row *row = index_find(x, id);
  return row != NULL && (row->flags & INDEX_ENDED) ? row : index_row(x, id);
}

/* --- all logs --- */

enum { HEAD_BYTES = 16 }; /* of a hash, in hexadecimal digits */

struct refresh {
  const struct store *store;
  struct sqlite *s;
  struct index *old;
  struct sqlite3_stmt *put, *drop, *seal;
};

static void refresh_text(const struct refresh *r, int at, struct str text) {
  (void)r->s->api->bind_text(r->put, at, text.n > 0 ? text.p : "", (int)text.n, NULL);
}

static void refresh_number(const struct refresh *r, int at, int64_t n) {
  (void)r->s->api->bind_int64(r->put, at, n);
}

/* Writes the row of a log. Its size and time were taken before it is read, so that a later append
 * makes the row outdated. */
static void refresh_put(struct refresh *r, const char *id, uint64_t bytes, int64_t time_ns) {
  buf_auto_t providers = {0}, methods = {0};
  int64_t started_ms, updated_ms;
  struct store_ref ref;
  struct summary b;
  struct err err;
  store_ref(r->store, id, &ref);
  if (!summary_read(&b, &ref, &err))
    return;
  if (strcmp(b.status, "running") == 0)
    summary_look(&b, &ref);
  if (record_time_parse(b.started, &started_ms) && record_time_parse(b.updated, &updated_ms) &&
      filter_read_names(&ref, &providers, &methods)) {
    refresh_text(r, 1, str_from(id));
    refresh_number(r, 2, (int64_t)bytes);
    refresh_number(r, 3, time_ns);
    refresh_number(r, 4, (int64_t)b.seq);
    refresh_text(r, 5, (struct str){b.hash, HEAD_BYTES});
    refresh_text(r, 6, str_from(b.status));
    refresh_number(r, 7, summary_goes_on(&b, false));
    refresh_number(r, 8, json_array_size(b.questions) > 0 ? 1 : 2 * summary_needs_person(&b));
    refresh_text(r, 9, str_from(b.workflow != NULL ? b.workflow : ""));
    refresh_number(r, 10, started_ms);
    refresh_number(r, 11, updated_ms);
    refresh_number(r, 12, b.turns > 0 ? b.turns : 0);
    refresh_number(r, 13,
                   json_integer_value(json_object_get(b.spent, "input")) +
                       json_integer_value(json_object_get(b.spent, "output")));
    (void)r->s->api->bind_double(r->put, 14,
                                 json_number_value(json_object_get(b.spent, "cost_usd")));
    refresh_text(r, 15, buf_view(&providers));
    refresh_text(r, 16, buf_view(&methods));
    (void)sqlite_put(r->s, r->put);
  }
  summary_deinit(&b);
}

static void refresh_drop(struct refresh *r, const char *id) {
  (void)r->s->api->bind_text(r->drop, 1, id, -1, NULL);
  (void)sqlite_put(r->s, r->drop);
}

/* Marks the session whose last record the ledger has. */
static void refresh_seal(void *ctx, const struct ledger_entry *entry) {
  struct refresh *r = ctx;
  const struct index_row *row = index_find(r->old, entry->session);
  if (row != NULL && (row->flags & INDEX_SEALED)) /* unless its log changed, which is rare */
    return;
  (void)r->s->api->bind_text(r->seal, 1, entry->session, -1, NULL);
  (void)r->s->api->bind_int64(r->seal, 2, (int64_t)entry->seq);
  (void)r->s->api->bind_text(r->seal, 3, entry->hash, HEAD_BYTES, NULL);
  (void)sqlite_put(r->s, r->seal);
}

/* Reads the ledger, which is slow, only for rows that it may seal. */
static void refresh_seal_all(struct refresh *r) {
  struct sqlite3_stmt *q =
      sqlite_ask(r->s, "SELECT 1 FROM sessions WHERE NOT sealed AND status <> 'running' LIMIT 1");
  bool any = sqlite_next(r->s, q);
  struct ledger_end end;
  struct err err;
  r->s->api->finalize(q);
  if (any && !ledger_read(r->store, refresh_seal, r, &end, &err))
    log_warn("%s", err.text); /* then the next start reads the ledger itself */
}

static void refresh_all(struct refresh *r, const struct store_id *ids, size_t count, size_t budget,
                        bool *more) {
  uint64_t bytes;
  int64_t time_ns;
  size_t at = 0;
  for (size_t i = count; i-- > 0 && r->s->error == SQLITE_CODE_OK;) { /* both by id */
    const struct index_row *row = NULL;
    for (; at < r->old->count && strcmp(r->old->rows[at].id, ids[i].id) < 0; at++)
      refresh_drop(r, r->old->rows[at].id);
    if (index_row_is(r->old, at, ids[i].id))
      row = &r->old->rows[at++];
    if (!index_stat(r->old->dir, ids[i].id, &bytes, &time_ns) || bytes == 0 ||
        (row != NULL && row->bytes == bytes && row->time_ns == time_ns))
      continue;
    if (budget == 0) {
      *more = true;
      continue;
    }
    budget--;
    refresh_put(r, ids[i].id, bytes, time_ns);
  }
  for (; at < r->old->count; at++)
    refresh_drop(r, r->old->rows[at].id);
}

bool index_refresh(const struct store *store, size_t budget, bool *more) {
  struct refresh r = {.store = store};
  struct store_id *ids = NULL;
  struct index old = {.dir = -1};
  size_t count = 0;
  struct err err;
  *more = false;
  bool wanted = store->ops == &files_ops && store_list(store, &ids, &count, &err) &&
                count >= LIMIT_INDEX_LEAST_COUNT;
  r.s = wanted ? index_file_open(store, true) : NULL;
  old.dir = r.s != NULL ? index_folder(store) : -1;
  if (old.dir >= 0 && sqlite_run(r.s, "BEGIN IMMEDIATE")) {
    index_load(&old, r.s, NULL, INDEX_NOTHING);
    r.old = &old;
    r.put = sqlite_ask(r.s, "INSERT OR REPLACE INTO sessions VALUES"
                            "(?1,?2,?3,?4,?5,?6,?7,?8,0,?9,?10,?11,?12,?13,?14,?15,?16)");
    r.drop = sqlite_ask(r.s, "DELETE FROM sessions WHERE id = ?1");
    r.seal = sqlite_ask(r.s, "UPDATE sessions SET sealed = 1 WHERE id = ?1 AND seq = ?2 AND"
                             " head = ?3 AND NOT sealed");
    refresh_all(&r, ids, count, budget, more);
    if (!*more)
      refresh_seal_all(&r);
    r.s->api->finalize(r.put);
    r.s->api->finalize(r.drop);
    r.s->api->finalize(r.seal);
    (void)sqlite_run(r.s, r.s->error == SQLITE_CODE_OK ? "COMMIT" : "ROLLBACK");
  }
  bool ok = r.s != NULL && r.s->error == SQLITE_CODE_OK;
  *more = *more && ok; /* else it would fail again: everything is read as before */
  index_file_close(r.s);
  if (old.dir >= 0)
    close(old.dir);
  free(old.rows);
  free(ids);
  return ok;
}
