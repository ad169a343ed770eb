/* Keeps the connections of shared stores, one set per address.
 *
 * DESIGN. Requests block, so they run in the loop's pool, in the heartbeat's thread, or in a
 * command that has nothing else to do: several at a time. Each takes a connection for itself and
 * gives it back; libpq allows one thread at a time on a connection, and a transaction must not meet
 * another one. Threads meet only in the lists of struct pg_base, under its lock. The lock is never
 * held while the server is asked, or one slow answer would stop the loop, which takes the lock to
 * queue an append. */
#include "store/postgres/base.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/random.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t bases_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pg_base *bases;

struct worker_options *base_options(void) {
  static struct worker_options options = {.lease_ms = LIMIT_STORE_LEASE_MS};
  return &options;
}

void base_close_idle(struct pg_base *pg, size_t keep, uint64_t since_ms) {
  for (size_t i = keep; i < ARRAY_LEN(pg->idle); i++) {
    struct conn *conn = NULL;
    (void)pthread_mutex_lock(&pg->lock);
    if (pg->idle[i].since_ms <= since_ms) {
      conn = pg->idle[i].conn;
      pg->idle[i].conn = NULL;
    }
    (void)pthread_mutex_unlock(&pg->lock);
    conn_close(conn);
  }
}

static void write_uuid(const char hex[SHA256_HEX], char out[STORE_ID_BYTES]) {
  print_into(out, STORE_ID_BYTES, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
}

void base_rename(struct pg_base *pg) {
  unsigned char b[16];
  char hex[SHA256_HEX] = "", word[STORE_ID_BYTES];
  random_fill(b, sizeof b);
  for (size_t i = 0; i < sizeof b; i++)
    print_into(hex + 2 * i, 3, "%02x", b[i]);
  write_uuid(hex, word);
  sha256_hex(b, sizeof b, NULL, 0, hex);
  (void)pthread_mutex_lock(&pg->lock);
  memcpy(pg->heartbeat.word, word, sizeof word);
  write_uuid(hex, pg->heartbeat.worker);
  print_into(pg->who, sizeof pg->who, "segue %s", pg->heartbeat.worker);
  (void)pthread_mutex_unlock(&pg->lock);
  base_close_idle(pg, 0, UINT64_MAX);
}

/* --- one per address --- */

static struct pg_base *base_new(const char *url, struct err *err) {
  struct pg_base *pg = xcalloc(1, sizeof *pg);
  if (!url_read(url, &pg->options, pg->shown, err)) {
    url_deinit(&pg->options);
    free(pg);
    return NULL;
  }
  pg->url = xstrdup(url);
  (void)pthread_mutex_init(&pg->lock, NULL);
  pg->heartbeat.wake[0] = pg->heartbeat.wake[1] = -1;
  base_rename(pg);
  pg->next = bases;
  bases = pg;
  return pg;
}

struct pg_base *base_of(const char *url, struct err *err) {
  (void)pthread_mutex_lock(&bases_lock);
  struct pg_base *pg = bases;
  while (pg != NULL && strcmp(pg->url, url) != 0)
    pg = pg->next;
  pg = pg ? pg : base_new(url, err);
  (void)pthread_mutex_unlock(&bases_lock);
  return pg;
}

struct pg_base *base_of_store(const struct store *store) {
  struct err err;
  return store != NULL && url_is_shared(store->where) ? base_of(store->where, &err) : NULL;
}

struct pg_base *base_first(void) {
  return bases;
}

void base_ref(const struct store *store, const char *id, struct store_ref *ref) {
  ref->ops = store->ops;
  print_into(ref->name, sizeof ref->name, "%s#%s", store->where, id);
}

struct pg_base *base_of_ref(const struct store_ref *ref, char id[STORE_ID_BYTES], struct err *err) {
  struct store store;
  ref->ops->of(ref, &store);
  ref->ops->ref_id(ref, id);
  if (id[0] != '\0')
    return base_of(store.where, err);
  const char *hash = strchr(ref->name, '#');
  err_set(err, ERR_NOT_FOUND, "\"%.80s\" names no session: write an id after the #",
          hash ? hash : "");
  return NULL;
}

/* --- connections --- */

/* Refuses tables of another version, once for each program: its functions take other arguments. */
static bool check_tables(struct pg_base *pg, struct conn *conn, enum conn_failure *failure,
                         struct err *err) {
  if (atomic_load(&pg->version) > 0)
    return true;
  PGresult *answer = conn_ask(conn, "SELECT version FROM segue.meta", LIMIT_STORE_ASK_MS, NULL, 0,
                              false, failure, err);
  if (answer == NULL)
    return false;
  int version = conn_rows(answer) > 0 ? (int)conn_number(answer, 0, 0) : 0;
  conn_free(answer);
  if (version == BASE_VERSION) {
    atomic_store(&pg->version, version);
    return true;
  }
  *failure = CONN_REFUSED;
  if (version > BASE_VERSION)
    return err_set(err, ERR_INVALID,
                   "the tables of the store %s have version %d, this program knows %d: use the "
                   "newer segue that made them",
                   pg->shown, version, BASE_VERSION);
  return err_set(err, ERR_INVALID,
                 "the tables of the store %s have version %d, this program needs %d: segue store "
                 "init brings them up to date",
                 pg->shown, version, BASE_VERSION);
}

struct conn *base_connect(struct pg_base *pg, enum conn_failure *failure, struct err *err) {
  char who[BASE_WHO_BYTES];
  enum conn_failure ignored;
  failure = failure ? failure : &ignored;
  (void)pthread_mutex_lock(&pg->lock);
  memcpy(who, pg->who, sizeof who);
  (void)pthread_mutex_unlock(&pg->lock);
  struct conn *conn = conn_open(&pg->options, pg->shown, who, failure, err);
  if (conn == NULL || !check_tables(pg, conn, failure, err)) {
    conn_close(conn);
    return NULL;
  }
  atomic_store(&pg->narrow, conn_is_narrow(conn));
  (void)pthread_mutex_lock(&pg->lock);
  memset(pg->blobs, 0, sizeof pg->blobs); /* it may be another server, which lost some */
  (void)pthread_mutex_unlock(&pg->lock);
  return conn;
}

/* Ends the server's processes of lost connections, if they still carry our name: their numbers may
 * be reused by now. Such a process may sit in the middle of a pipeline: it holds the rows of its
 * sessions locked and waits for a sync that never comes, and the repeat of the same append, on the
 * new connection, would wait behind it until the server notices that the network is gone. */
static void end_lost(struct pg_base *pg, struct conn *conn) {
  int lost[LIMIT_STORE_IDLE_COUNT];
  char who[BASE_WHO_BYTES], number[ARG_NUMBER_BYTES];
  struct err err;
  (void)pthread_mutex_lock(&pg->lock);
  size_t n = pg->lost_count;
  memcpy(lost, pg->lost, sizeof lost);
  memcpy(who, pg->who, sizeof who);
  pg->lost_count = 0;
  (void)pthread_mutex_unlock(&pg->lock);
  for (size_t i = 0; i < n && conn_is_open(conn); i++) {
    const struct conn_arg args[] = {arg_number(number, (uint64_t)lost[i]), arg_text(who)};
    conn_free(conn_ask(conn,
                       "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a "
                       "WHERE a.pid = $1::int AND a.application_name = $2 AND "
                       "a.usename = current_user AND a.pid <> pg_backend_pid()",
                       LIMIT_STORE_ASK_MS, args, ARRAY_LEN(args), false, NULL, &err));
  }
}

static _Thread_local bool asks_nobody;

bool worker_asks_nobody(bool nobody) {
  bool before = asks_nobody;
  asks_nobody = nobody;
  return before;
}

/* Always the first: the last ones stay unused, and base_close_idle finds them. */
struct conn *base_take_idle(struct pg_base *pg) {
  struct conn *conn = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  for (size_t i = 0; conn == NULL && i < ARRAY_LEN(pg->idle); i++) {
    conn = pg->idle[i].conn;
    pg->idle[i].conn = NULL;
  }
  (void)pthread_mutex_unlock(&pg->lock);
  return conn;
}

struct conn *base_take(struct pg_base *pg, enum conn_failure *failure, struct err *err) {
#ifdef SEGUE_FAULTS /* only in a test build: others would rather wait than end */
  assert(!asks_nobody);
#endif
  struct conn *conn = base_take_idle(pg);
  (void)pthread_mutex_lock(&pg->lock);
  bool lost = pg->lost_count > 0;
  (void)pthread_mutex_unlock(&pg->lock);
  conn = conn ? conn : base_connect(pg, failure, err);
  if (conn != NULL && lost)
    end_lost(pg, conn);
  return conn;
}

/* A lost connection may have sent half a request. The server's process for it, which may hold locks
 * on rows and wait for the rest, is noted, to be ended when another connection is taken. */
void base_give(struct pg_base *pg, struct conn *conn) {
  if (conn == NULL)
    return;
  (void)pthread_mutex_lock(&pg->lock);
  if (conn_is_open(conn)) {
    for (size_t i = 0; conn != NULL && i < ARRAY_LEN(pg->idle); i++)
      if (pg->idle[i].conn == NULL) {
        pg->idle[i] = (struct base_idle){conn, clock_boot_ms()};
        conn = NULL;
      }
  } else if (pg->heartbeat.runs && conn_backend(conn) > 0 && /* only a writer holds rows */
             pg->lost_count < ARRAY_LEN(pg->lost)) {
    pg->lost[pg->lost_count++] = conn_backend(conn);
  }
  (void)pthread_mutex_unlock(&pg->lock);
  conn_close(conn);
}

/* --- asking --- */

/* Waits a random part of the pause: workers that lost the same server come back at different
 * moments, and do not overrun it together. */
bool base_again(struct base_tries *tries, const struct err *why) {
  unsigned char jitter = 0;
  uint64_t wait = LIMIT_STORE_BACKOFF_MS << (tries->count > 10 ? 10 : tries->count);
  uint64_t now = clock_mono_ms();
  (void)random_try(&jitter, sizeof jitter);
  if (wait > LIMIT_STORE_BACKOFF_MAX_MS)
    wait = LIMIT_STORE_BACKOFF_MAX_MS;
  wait = wait / 2 + wait * jitter / 512;
  if (now + wait > tries->until)
    return false;
  (void)usleep((useconds_t)wait * 1000);
  bool late = clock_mono_ms() + LIMIT_STORE_TRY_MS >= tries->until + LIMIT_STORE_TELL_MS;
  if (why != NULL && !tries->told && (tries->count >= 3 || late)) {
    log_warn("%s: trying again", why->text);
    tries->told = true;
  }
  tries->count++;
  return true;
}

uint64_t base_limit_ms(size_t bytes) {
  return LIMIT_STORE_ASK_MS + bytes / LIMIT_STORE_BYTES_MS;
}

/* Asks again only where there was no answer. A refusal is an answer, and would be the same. */
static PGresult *ask_until(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                           bool binary, struct err *err) {
  struct base_tries tries = {.until = clock_mono_ms() + LIMIT_STORE_TRY_MS};
  enum conn_failure failure;
  PGresult *answer = NULL;
  size_t bytes = 0;
  if (pg == NULL)
    return NULL;
  for (int i = 0; i < n; i++)
    bytes += args[i].bytes.n;
  do {
    failure = CONN_FINE;
    struct conn *conn = base_take(pg, &failure, err);
    if (conn != NULL)
      answer = conn_ask(conn, sql, base_limit_ms(bytes), args, n, binary, &failure, err);
    base_give(pg, conn);
  } while (answer == NULL && failure == CONN_LOST && base_again(&tries, err));
  return answer;
}

PGresult *base_ask(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                   struct err *err) {
  return ask_until(pg, sql, args, n, false, err);
}

PGresult *base_ask_bytes(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                         struct err *err) {
  return ask_until(pg, sql, args, n, true, err);
}

bool base_ask_word(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                   char word[BASE_WORD_BYTES], struct err *err) {
  PGresult *answer = base_ask(pg, sql, args, n, err);
  bool there = answer != NULL && conn_rows(answer) > 0;
  print_into(word, BASE_WORD_BYTES, "%s", there ? conn_text(answer, 0, 0) : "");
  conn_free(answer);
  return answer != NULL;
}

/* --- what the threads pass on --- */

void base_tell(struct pg_base *pg, enum worker_news news, const char *id, const char *what) {
  (void)pthread_mutex_lock(&pg->lock);
  if (pg->told != NULL) {
    struct news_item *item = xcalloc(1, sizeof *item);
    item->news = news;
    print_into(item->id, sizeof item->id, "%s", id);
    print_into(item->what, sizeof item->what, "%s", what);
    list_push_back(&pg->news, &item->in_base);
    (void)uv_async_send(&pg->async);
  }
  (void)pthread_mutex_unlock(&pg->lock);
}

/* Labels are a user's words: quotes and backslashes would end the item, or the array. */
void base_put_label(struct buf *out, const char *prefix, const char *label) {
  buf_puts(out, out->n > 1 ? ",\"" : "\"");
  buf_puts(out, prefix);
  for (const char *p = label; *p; p++) {
    if (*p == '"' || *p == '\\')
      buf_putc(out, '\\');
    buf_putc(out, *p);
  }
  buf_putc(out, '"');
}
