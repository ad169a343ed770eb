/* Keeps the connections of shared stores, one set per address. */
#include "store/postgres/base.h"

#include "base/log.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "os/random.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t bases_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pg_base *bases;
static struct worker_options options = {.lease_ms = LIMIT_STORE_LEASE_MS};

const struct worker_options *base_options(void) {
  return &options;
}

bool base_label_check(const char *label, struct err *err) {
  size_t n = strlen(label);
  if (n == 0 || n > LIMIT_STORE_LABEL_BYTES)
    return err_set(err, ERR_USAGE, "a label has 1 to %u bytes", LIMIT_STORE_LABEL_BYTES);
  for (const char *p = label; *p; p++)
    if ((unsigned char)*p <= ' ' || *p == ',' || *p == 127)
      return err_set(err, ERR_USAGE, "a label has no spaces, commas or control characters");
  return utf8_valid(label, n) || err_set(err, ERR_USAGE, "a label is UTF-8 text");
}

static bool check_worker_labels(const char *const *list, struct err *err) {
  size_t n = 0;
  for (const char *const *label = list; label && *label; label++)
    if (!base_label_check(*label, err))
      return false;
    else if (++n > LIMIT_STORE_LABEL_COUNT)
      return err_set(err, ERR_USAGE, "a worker has at most %u labels", LIMIT_STORE_LABEL_COUNT);
  return true;
}

bool worker_be(const struct worker_options *wanted, struct err *err) {
  if (wanted->lease_ms < LIMIT_STORE_LEASE_MIN_MS || wanted->lease_ms > LIMIT_STORE_LEASE_MAX_MS)
    return err_set(err, ERR_USAGE, "--lease must be a time from 1s to 1h");
  if (!check_worker_labels(wanted->labels, err))
    return false;
  options = *wanted;
  return true;
}

/* --- one per address --- */

static struct pg_base *base_make(const char *url, struct err *err) {
  struct pg_base *pg = xcalloc(1, sizeof *pg);
  if (!url_read(url, &pg->options, pg->shown, err)) {
    url_deinit(&pg->options);
    free(pg);
    return NULL;
  }
  pg->url = xstrdup(url);
  (void)pthread_mutex_init(&pg->lock, NULL);
  pg->news_end = &pg->news;
  pg->heartbeat.wake[0] = pg->heartbeat.wake[1] = -1;
  heartbeat_rename(pg);
  return pg;
}

struct pg_base *base_of(const char *url, struct err *err) {
  (void)pthread_mutex_lock(&bases_lock);
  struct pg_base *pg = bases;
  while (pg != NULL && strcmp(pg->url, url) != 0)
    pg = pg->next;
  if (pg == NULL && (pg = base_make(url, err)) != NULL) {
    pg->next = bases;
    bases = pg;
  }
  (void)pthread_mutex_unlock(&bases_lock);
  return pg;
}

/* --- connections --- */

static bool check_tables(struct pg_base *pg, struct conn *conn, enum conn_failure *failure,
                         struct err *err) {
  if (pg->checked)
    return true;
  PGresult *answer = conn_ask(conn, "SELECT version FROM segue.meta", LIMIT_STORE_ASK_MS, NULL, 0,
                              false, failure, err);
  if (answer == NULL)
    return false;
  int version = conn_rows(answer) > 0 ? (int)conn_number(answer, 0, 0) : 0;
  conn_free(answer);
  if (version == BASE_VERSION) {
    pg->checked = true;
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
  (void)pthread_mutex_lock(&pg->lock);
  memcpy(who, pg->who, sizeof who);
  (void)pthread_mutex_unlock(&pg->lock);
  struct conn *conn = conn_open(&pg->options, pg->shown, who, failure, err);
  if (conn != NULL && !check_tables(pg, conn, failure, err)) {
    conn_close(conn);
    return NULL;
  }
  if (conn == NULL)
    return NULL;
  atomic_store(&pg->narrow, conn_is_narrow(conn));
  (void)pthread_mutex_lock(&pg->lock);
  memset(pg->blobs, 0, sizeof pg->blobs); /* it may be another server, which lost some */
  (void)pthread_mutex_unlock(&pg->lock);
  return conn;
}

/* Ends the server's processes of lost connections, if they still carry our name: their numbers may
 * be reused by now. */
static void end_lost(struct pg_base *pg, struct conn *conn) {
  int lost[LIMIT_STORE_IDLE_COUNT];
  char who[BASE_WHO_BYTES], number[ARG_NUMBER_BYTES];
  enum conn_failure failure;
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
                       LIMIT_STORE_ASK_MS, args, ARRAY_LEN(args), false, &failure, &err));
  }
}

static _Thread_local bool asks_nobody;

bool worker_asks_nobody(bool nobody) {
  bool before = asks_nobody;
  asks_nobody = nobody;
  return before;
}

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

void base_give(struct pg_base *pg, struct conn *conn) {
  if (conn != NULL && !conn_is_open(conn)) {
    base_drop(pg, conn);
    return;
  }
  (void)pthread_mutex_lock(&pg->lock);
  for (size_t i = 0; conn != NULL && i < ARRAY_LEN(pg->idle); i++)
    if (pg->idle[i].conn == NULL) {
      pg->idle[i] = (struct base_idle){conn, clock_boot_ms()};
      conn = NULL;
    }
  (void)pthread_mutex_unlock(&pg->lock);
  conn_close(conn);
}

void base_drop(struct pg_base *pg, struct conn *conn) {
  if (conn == NULL)
    return;
  (void)pthread_mutex_lock(&pg->lock);
  bool writes = pg->heartbeat.runs; /* only a writer holds rows */
  if (writes && conn_backend(conn) > 0 && pg->lost_count < ARRAY_LEN(pg->lost))
    pg->lost[pg->lost_count++] = conn_backend(conn);
  (void)pthread_mutex_unlock(&pg->lock);
  conn_close(conn);
}

static void drop_idle_since(struct pg_base *pg, size_t from, uint64_t since_ms) {
  for (size_t i = from; i < ARRAY_LEN(pg->idle); i++) {
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

void base_drop_idle(struct pg_base *pg) {
  drop_idle_since(pg, 0, UINT64_MAX);
}

void base_trim(struct pg_base *pg) {
  uint64_t now = clock_boot_ms();
  if (now > LIMIT_STORE_IDLE_MS)
    drop_idle_since(pg, 1, now - LIMIT_STORE_IDLE_MS);
}

bool base_pause(unsigned tries, uint64_t until) {
  unsigned char jitter = 0;
  uint64_t wait = LIMIT_STORE_BACKOFF_MS << (tries > 10 ? 10 : tries), now = clock_mono_ms();
  (void)random_try(&jitter, sizeof jitter);
  if (wait > LIMIT_STORE_BACKOFF_MAX_MS)
    wait = LIMIT_STORE_BACKOFF_MAX_MS;
  wait = wait / 2 + wait * jitter / 512;
  if (now + wait > until)
    return false;
  (void)usleep((useconds_t)wait * 1000);
  return true;
}

void base_tell_trying(unsigned tries, uint64_t until, bool *told, const struct err *err) {
  bool late = clock_mono_ms() + LIMIT_STORE_TRY_MS >= until + LIMIT_STORE_TELL_MS;
  if (!*told && (tries >= 3 || late))
    log_warn("%s: trying again", err->text);
  *told = *told || tries >= 3 || late;
}

uint64_t base_limit_ms(size_t bytes) {
  return LIMIT_STORE_ASK_MS + bytes / LIMIT_STORE_BYTES_MS;
}

PGresult *base_ask(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                   bool binary, enum conn_failure *failure, struct err *err) {
  uint64_t until = clock_mono_ms() + LIMIT_STORE_TRY_MS;
  size_t bytes = 0;
  bool told = false;
  for (int i = 0; i < n; i++)
    bytes += args[i].bytes.n;
  for (unsigned tries = 0;; tries++) {
    *failure = CONN_FINE;
    struct conn *conn = base_take(pg, failure, err);
    PGresult *answer = NULL;
    if (conn != NULL)
      answer = conn_ask(conn, sql, base_limit_ms(bytes), args, n, binary, failure, err);
    base_give(pg, conn);
    if (answer != NULL || *failure != CONN_LOST || !base_pause(tries, until))
      return answer;
    base_tell_trying(tries, until, &told, err);
  }
}

/* --- the worker --- */

unsigned base_term(const struct pg_base *pg) {
  return atomic_load(&pg->heartbeat.term);
}

bool base_trusts(const struct pg_base *pg, unsigned term, struct err *err) {
  if (term == base_term(pg) && clock_boot_ms() < atomic_load(&pg->heartbeat.trust_until))
    return true;
  return err_set(
      err, ERR_LOCKED,
      "this worker's lease at the store %s expired: another one may continue its sessions",
      pg->shown);
}

bool base_enter(struct pg_base *pg, struct err *err) {
  return pg->heartbeat.runs || heartbeat_start(pg, err);
}

bool base_join(struct pg_base *pg, struct err *err) {
  if (!base_enter(pg, err))
    return false;
  heartbeat_join(pg);
  return true;
}

void worker_leave_all(void) {
  for (struct pg_base *pg = bases; pg != NULL; pg = pg->next) {
    heartbeat_stop(pg);
    base_drop_idle(pg);
  }
}

/* --- what stays on this machine --- */

bool base_local(const struct store *store, struct store *local, struct err *err) {
  const struct pg_base *pg = base_of(store->where, err);
  char where[STORE_PATH_BYTES], sha[SHA256_HEX];
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  if (pg == NULL)
    return false;
  if (options.local != NULL) {
    print_into(where, sizeof where, "%s", options.local);
  } else {
    bool by_state = state != NULL && state[0] == '/';
    sha256_hex(pg->url, strlen(pg->url), NULL, 0, sha);
    if (!by_state && (home == NULL || home[0] != '/'))
      return err_set(err, ERR_NOT_FOUND, "neither XDG_STATE_HOME nor HOME is set: set HOME");
    int n = snprintf(where, sizeof where, "%s%s/segue/shared/%.16s", by_state ? state : home,
                     by_state ? "" : "/.local/state", sha);
    if (n >= (int)sizeof where - 128)
      return err_set(err, ERR_LIMIT, "the path of the state folder is too long");
  }
  return store_open(local, where, err);
}
