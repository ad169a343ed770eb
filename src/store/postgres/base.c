/* Keeps the connections of shared stores, one set for each address. */
#include "store/postgres/base.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/random.h"

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

static bool check_worker_label(const char *label, struct err *err) {
  size_t n = strlen(label);
  if (n == 0 || n > LIMIT_STORE_LABEL_BYTES)
    return err_set(err, ERR_USAGE, "a label has 1 to %u bytes", LIMIT_STORE_LABEL_BYTES);
  for (const char *p = label; *p; p++)
    if ((unsigned char)*p <= ' ' || *p == ',' || *p == 127)
      return err_set(err, ERR_USAGE, "a label has no spaces, commas or control characters");
  return true;
}

static bool check_worker_labels(const char *const *list, const char *who, struct err *err) {
  size_t n = 0;
  for (const char *const *label = list; label && *label; label++)
    if (!check_worker_label(*label, err))
      return false;
    else if (++n > LIMIT_STORE_LABEL_COUNT)
      return err_set(err, ERR_USAGE, "a %s has %u labels at most", who, LIMIT_STORE_LABEL_COUNT);
  return true;
}

bool worker_be(const struct worker_options *wanted, struct err *err) {
  if (wanted->lease_ms < LIMIT_STORE_LEASE_MIN_MS || wanted->lease_ms > LIMIT_STORE_LEASE_MAX_MS)
    return err_set(err, ERR_USAGE, "--lease is a time from 1s to 1h");
  if (!check_worker_labels(wanted->labels, "worker", err) ||
      !check_worker_labels(wanted->needs, "session", err))
    return false;
  options = *wanted;
  return true;
}

/* --- one for each address --- */

static struct pg_base *base_make(const char *url, struct err *err) {
  struct pg_base *pg = xcalloc(1, sizeof *pg);
  if (!url_read(url, &pg->options, pg->shown, err)) {
    url_deinit(&pg->options);
    free(pg);
    return NULL;
  }
  pg->url = xstrdup(url);
  (void)pthread_mutex_init(&pg->lock, NULL);
  (void)snprintf(pg->who, sizeof pg->who, "segue");
  pg->news_end = &pg->news;
  pg->keeper.wake[0] = pg->keeper.wake[1] = -1;
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
  return conn;
}

struct conn *base_take(struct pg_base *pg, enum conn_failure *failure, struct err *err) {
  struct conn *conn = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  for (size_t i = 0; conn == NULL && i < ARRAY_LEN(pg->idle); i++) {
    conn = pg->idle[i];
    pg->idle[i] = NULL;
  }
  (void)pthread_mutex_unlock(&pg->lock);
  return conn ? conn : base_connect(pg, failure, err);
}

void base_give(struct pg_base *pg, struct conn *conn) {
  (void)pthread_mutex_lock(&pg->lock);
  for (size_t i = 0; conn_is_open(conn) && i < ARRAY_LEN(pg->idle); i++)
    if (pg->idle[i] == NULL) {
      pg->idle[i] = conn;
      conn = NULL;
    }
  (void)pthread_mutex_unlock(&pg->lock);
  conn_close(conn);
}

static void base_drop_idle(struct pg_base *pg) {
  for (size_t i = 0; i < ARRAY_LEN(pg->idle); i++) {
    (void)pthread_mutex_lock(&pg->lock);
    struct conn *conn = pg->idle[i];
    pg->idle[i] = NULL;
    (void)pthread_mutex_unlock(&pg->lock);
    conn_close(conn);
  }
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

uint64_t base_limit_ms(size_t bytes) {
  return LIMIT_STORE_ASK_MS + bytes / LIMIT_STORE_BYTES_MS;
}

PGresult *base_ask(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                   bool binary, enum conn_failure *failure, struct err *err) {
  uint64_t until = clock_mono_ms() + LIMIT_STORE_TRY_MS;
  size_t bytes = 0;
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
    if (tries == 3)
      log_warn("%s: trying again", err->text);
  }
}

/* --- the worker --- */

unsigned base_term(const struct pg_base *pg) {
  return atomic_load(&pg->keeper.term);
}

bool base_trusts(const struct pg_base *pg, unsigned term, struct err *err) {
  if (term == base_term(pg) && clock_boot_ms() < atomic_load(&pg->keeper.trust_until))
    return true;
  return err_set(err, ERR_LOCKED,
                 "the lease of this worker at the store %s ran out: another one may go on with its "
                 "sessions",
                 pg->shown);
}

bool base_enter(struct pg_base *pg, struct err *err) {
  return pg->keeper.runs || keeper_start(pg, err);
}

void worker_leave_all(void) {
  for (struct pg_base *pg = bases; pg != NULL; pg = pg->next) {
    keeper_stop(pg);
    base_drop_idle(pg);
  }
}

/* --- what stays on this machine --- */

bool base_local(const struct pg_base *pg, struct store *local, struct err *err) {
  char where[STORE_PATH_BYTES], sha[SHA256_HEX];
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  if (options.local != NULL) {
    (void)snprintf(where, sizeof where, "%s", options.local);
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
