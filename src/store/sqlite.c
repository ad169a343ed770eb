/* Loads SQLite, and speaks to it. */
#include "store/sqlite.h"

#include "base/log.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
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

bool sqlite_empty(struct sqlite *s) {
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
