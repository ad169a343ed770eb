/* Keeps the connections of shared stores, one set per address. */
#include "store/postgres/base.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "os/lease.h"
#include "os/random.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
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

static void uuid_new(char id[STORE_ID_BYTES]) {
  unsigned char b[16];
  random_fill(b, sizeof b);
  b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
  b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
  print_into(id, STORE_ID_BYTES,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

static void heartbeat_rename(struct pg_base *pg) {
  (void)pthread_mutex_lock(&pg->lock);
  uuid_new(pg->heartbeat.worker);
  print_into(pg->who, sizeof pg->who, "segue %s", pg->heartbeat.worker);
  (void)pthread_mutex_unlock(&pg->lock);
  drop_idle_since(pg, 0,
                  UINT64_MAX); /* new ones have the worker's name, by which they can be ended */
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

/* Opens a connection that the caller keeps. */
static struct conn *base_connect(struct pg_base *pg, enum conn_failure *failure, struct err *err) {
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

static struct conn *base_take_idle(struct pg_base *pg) {
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

/* Closes connections that nobody has needed for a while; one stays. */
static void base_trim(struct pg_base *pg) {
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

/* Reports once that it is trying again, if that takes longer than a moment. */
static void base_tell_trying(unsigned tries, uint64_t until, bool *told, const struct err *err) {
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

/* --- the heartbeat ---
 *
 * Keeps this program's lease as a worker of a shared store, in a thread of its own.
 *
 *   heartbeat_rename(pg)         a fresh id, by which its connections can be ended
 *   heartbeat_start(pg, &err)    begins the lease, then the thread; blocking
 *   heartbeat_join(pg)           from now on it takes sessions, so it hears what other workers do
 *   heartbeat_stop(pg)           ends the thread, and gives back all that is held
 *
 * base_enter and base_join (base.h) call the second and third. The struct is part of its owner;
 * other threads touch only its atomics and what does not change while the thread runs. */

/* Keeps a worker's lease, sweeps up after others, and brings news from the store.
 *
 * DESIGN. The heartbeat has a thread and a connection of its own, so that neither a slow append nor
 * a busy loop costs the lease, and a stopped process renews nothing. It shares only atomics with
 * the other threads, and the list of news, which the lock protects.
 *
 * The lease is trusted for less long than the store grants it (heartbeat_trust), so this program
 * gives its sessions up before another worker can take them, whatever the two clocks say of the
 * time of day. A renewal is due after a third of the lease: several tries fit in before the trust
 * ends. When it ends, everything is given up at once (heartbeat_lose) and the program goes on as a
 * new worker: what a session's row says of its owner then never means two different holders.
 *
 * Which death counts: a session whose worker died while it held it may be what killed the worker,
 * so the store counts such deaths and stops a session that had too many. A worker that only could
 * not reach the store lives, and tells it so under its next name (heartbeat.former); one that was
 * stopped for longer than an answer may take cannot tell itself from a dead one, and says nothing.
 */

enum { HOST_BYTES = 256, PIPE_BYTES = 64 };

/* Says whether notifications come through: transaction poolers take LISTEN and pass nothing on. */
enum hearing { HEARING_UNKNOWN, HEARING_ASKED, HEARING_FINE, HEARING_NOTHING };

/* Holds the state of a heartbeat's work, used only by its thread. Times are clock_boot_ms. */
struct keeping {
  struct pg_base *pg;
  struct conn *conn;
  uint64_t renew_at, sweep_at, poll_at, told_at;
  uint64_t due_at; /* its present action ends by then, unless the program is stopped */
  bool hung;       /* it was stopped for long since the last renewal */
  enum hearing hearing;
  uint64_t hears_until; /* for ASKED */
  unsigned failures;
  unsigned surplus; /* renewals in a row that reported more sessions than are known */
  bool listens, joined;
  bool freed; /* a place at a provider may be free */
};

/* --- news --- */

void base_tell(struct pg_base *pg, enum worker_news news, const char *id, const char *what) {
  (void)pthread_mutex_lock(&pg->lock);
  if (pg->told != NULL) {
    struct news_item *item = xcalloc(1, sizeof *item);
    item->news = news;
    print_into(item->id, sizeof item->id, "%s", id);
    print_into(item->what, sizeof item->what, "%s", what);
    *pg->news_end = item;
    pg->news_end = &item->next;
    (void)uv_async_send(&pg->async);
  }
  (void)pthread_mutex_unlock(&pg->lock);
}

/* --- the lease --- */

static void name_worker(char host[HOST_BYTES], char name[HOST_BYTES + 24], struct buf *labels) {
  if (gethostname(host, HOST_BYTES - 1) != 0)
    print_into(host, HOST_BYTES, "unknown");
  host[HOST_BYTES - 1] = '\0';
  print_into(name, HOST_BYTES + 24, "%s:%ld", host, (long)getpid());
  buf_putc(labels, '{');
  base_put_label(labels, "host=", host);
  for (const char *const *label = base_options()->labels; label && *label; label++)
    base_put_label(labels, "", *label);
  buf_putc(labels, '}');
}

/* Sets the default label: a session's folder is on the machine that made it, unless a person named
 * others. */
static void heartbeat_needs(struct pg_base *pg, const char *host) {
  struct buf needs = {0};
  buf_putc(&needs, '{');
  base_put_label(&needs, "host=", host);
  buf_putc(&needs, '}');
  pg->heartbeat.needs = buf_take(&needs);
}

/* Trusts the lease from when the request was sent, not from when the answer came: the store counts
 * from somewhere between. The sixth that is left is for what is under way when the trust ends.
 * Gives shims the same deadline: a stopped program cannot end anything itself. */
static void heartbeat_trust(struct pg_base *pg, uint64_t sent_ms, bool begins) {
  uint64_t ttl = pg->heartbeat.ttl_ms, until = sent_ms + ttl - ttl / 6;
  atomic_store(&pg->heartbeat.trust_until, until);
  if (begins)
    lease_begin(until);
  else
    lease_extend(until);
}

/* Registers the worker under a fresh id. An id is never registered twice: if the answer was lost, a
 * row may stand under the old one, and sessions may be counted as its own. */
static bool heartbeat_enter(struct pg_base *pg, struct conn *conn, enum conn_failure *failure,
                            struct err *err) {
  char host[HOST_BYTES] = "", name[HOST_BYTES + 24], ttl[ARG_NUMBER_BYTES];
  struct buf labels = {0};
  name_worker(host, name, &labels);
  print_into(pg->heartbeat.name, sizeof pg->heartbeat.name, "%s", name);
  if (pg->heartbeat.needs == NULL)
    heartbeat_needs(pg, host);
  const struct conn_arg args[] = {arg_text(pg->heartbeat.worker),
                                  arg_text(name),
                                  arg_text(buf_c(&labels)),
                                  arg_text(SEGUE_VERSION),
                                  arg_number(ttl, pg->heartbeat.ttl_ms),
                                  arg_text(pg->heartbeat.former[0] ? pg->heartbeat.former : NULL)};
  uint64_t sent = clock_boot_ms();
  PGresult *answer = conn_ask(conn, "SELECT segue.enter($1, $2, $3, $4, $5, $6)",
                              LIMIT_STORE_ASK_MS, args, ARRAY_LEN(args), false, failure, err);
  buf_deinit(&labels);
  if (answer != NULL && fault_fails("enter")) { /* as if the reply were lost */
    conn_free(answer);
    *failure = CONN_LOST;
    return err_set(err, ERR_IO, "the store %s does not answer", pg->shown);
  }
  if (answer == NULL)
    return false;
  conn_free(answer);
  pg->heartbeat.former[0] = '\0';
  heartbeat_trust(pg, sent, true);
  return true;
}

/* Renames the worker and closes its connection: the next one gets the new name. */
static void heartbeat_anew(struct keeping *k) {
  heartbeat_rename(k->pg);
  conn_close(k->conn);
  k->conn = NULL;
}

/* Notes whether the last action took longer than allowed: then a renewal that is late by half a
 * lease or more was not late for want of an answer. Sets how long the next action may take. */
static void heartbeat_may_take(struct keeping *k, uint64_t ms) {
  uint64_t now = clock_boot_ms();
  k->hung = k->hung || (k->due_at != 0 && now > k->due_at + k->pg->heartbeat.ttl_ms / 2);
  k->due_at = now + ms;
}

/* Gives up all sessions, which another worker may have by now, and starts a new worker in this
 * program. */
static void heartbeat_lose(struct keeping *k) {
  struct pg_base *pg = k->pg;
  if (atomic_load(&pg->heartbeat.trust_until) == 0)
    return;
  print_into(pg->heartbeat.former, sizeof pg->heartbeat.former, "%s",
             k->hung ? "" : pg->heartbeat.worker);
  atomic_store(&pg->heartbeat.trust_until, 0);
  lease_extend(0);
  atomic_fetch_add(&pg->heartbeat.term, 1);
  base_tell(pg, WORKER_LOST, "", "");
  heartbeat_anew(k);
  if (k->hearing == HEARING_ASKED) /* by the old name */
    k->hearing = HEARING_UNKNOWN;
}

/* Compares counts. They may differ for a moment while sessions are taken or released, but not twice
 * in a row. */
static void heartbeat_count(struct keeping *k, uint64_t held) {
  struct pg_base *pg = k->pg;
  (void)pthread_mutex_lock(&pg->lock);
  size_t known = pg->open.count + pg->claimed.count + pg->leaving.count;
  (void)pthread_mutex_unlock(&pg->lock);
  k->surplus = held > known ? k->surplus + 1 : 0;
  if (k->surplus < 2)
    return;
  atomic_store(&pg->unsure, true);
  base_tell(pg, WORKER_READY, "", "");
}

static bool heartbeat_renew(struct keeping *k, enum conn_failure *failure, struct err *err) {
  struct pg_base *pg = k->pg;
  char ttl[ARG_NUMBER_BYTES];
  uint64_t sent = clock_boot_ms(), trust = atomic_load(&pg->heartbeat.trust_until),
           limit = pg->heartbeat.ttl_ms / 3 + 100;
  if (trust == 0) {
    heartbeat_may_take(k, LIMIT_STORE_ASK_MS);
    bool ok = heartbeat_enter(k->pg, k->conn, failure, err);
    if (!ok)
      heartbeat_anew(k); /* a lost answer may have been a yes */
    return ok;
  }
  /* Past that moment no answer would count, and the sessions must be given up without waiting. */
  if (sent + limit > trust)
    limit = trust > sent ? trust - sent : 0;
  const struct conn_arg args[] = {arg_text(pg->heartbeat.worker),
                                  arg_number(ttl, pg->heartbeat.ttl_ms)};
  heartbeat_may_take(k, limit);
  PGresult *answer = conn_ask(k->conn, "SELECT * FROM segue.renew($1, $2)", limit, args,
                              ARRAY_LEN(args), false, failure, err);
  if (answer == NULL)
    return false;
  bool held = strcmp(conn_text(answer, 0, 0), "t") == 0;
  heartbeat_may_take(k, 0);
  if (held) {
    heartbeat_trust(pg, sent, false);
    k->hung = false;
  }
  struct str rest = str_from(conn_text(answer, 0, 1));
  while (rest.n > 0) {
    char id[STORE_ID_BYTES] = "", what[16] = "";
    struct str line = str_next_line(&rest);
    if (line.n < STORE_ID_BYTES || line.n >= STORE_ID_BYTES + sizeof what)
      continue;
    memcpy(id, line.p, STORE_ID_BYTES - 1);
    memcpy(what, line.p + STORE_ID_BYTES, line.n - STORE_ID_BYTES);
    base_tell(pg, WORKER_ASKED, id, what);
  }
  heartbeat_count(k, conn_number(answer, 0, 2));
  conn_free(answer);
  if (!held)
    heartbeat_lose(k);
  return held;
}

/* --- the rest of its work --- */

/* Spreads what all workers do in turns: they often started together, or lost the store together. */
static uint64_t heartbeat_jitter(uint64_t ms) {
  unsigned char r = 128;
  (void)random_try(&r, sizeof r);
  return ms - ms / 8 + ms * r / 1024;
}

/* Asks something that the lease must not wait for, so with little time: the next turn asks again.
 */
static bool heartbeat_plain(struct keeping *k, const char *sql) {
  struct err err;
  enum conn_failure failure;
  uint64_t limit = k->pg->heartbeat.ttl_ms / 6 + 200;
  heartbeat_may_take(k, limit);
  PGresult *answer = conn_ask(k->conn, sql, limit, NULL, 0, false, &failure, &err);
  bool ok = answer != NULL;
  conn_free(answer);
  return ok;
}

/* Reports once that another segue changed the version of the tables. */
static void heartbeat_version(struct pg_base *pg, struct conn *conn, const PGresult *polled) {
  enum conn_failure failure;
  struct err err;
  PGresult *answer = NULL;
  if (polled == NULL) /* newer tables may not have this function */
    answer = conn_ask(conn, "SELECT NULL, NULL, version FROM segue.meta", LIMIT_STORE_ASK_MS, NULL,
                      0, false, &failure, &err);
  const PGresult *told = polled ? polled : answer;
  if (told != NULL && conn_rows(told) == 1 && conn_number(told, 0, 2) != BASE_VERSION &&
      !atomic_exchange(&pg->outdated, true))
    base_tell(pg, WORKER_OUTDATED, "", conn_text(told, 0, 2));
  conn_free(answer);
}

/* Looks at the queue and the providers. Without an answer, whoever watches checks the queue. */
static void heartbeat_poll(struct pg_base *pg, struct conn *conn) {
  struct err err;
  enum conn_failure failure;
  const struct conn_arg args[] = {arg_text(pg->heartbeat.worker)};
  PGresult *answer = conn_ask(
      conn,
      "SELECT p.o_ready, p.o_providers, (SELECT version FROM segue.meta) FROM segue.poll($1) p",
      pg->heartbeat.ttl_ms / 6 + 200, args, ARRAY_LEN(args), false, &failure, &err);
  atomic_store(&pg->heartbeat.answers, answer != NULL);
  if (answer == NULL || conn_text(answer, 0, 0)[0] == 't' || atomic_load(&pg->unsure))
    base_tell(pg, WORKER_READY, "", "");
  if (answer != NULL && provider_slots_learn(pg, conn_text(answer, 0, 1)))
    base_tell(pg, WORKER_SEATS, "", "");
  if (answer != NULL || failure == CONN_REFUSED)
    heartbeat_version(pg, conn, answer);
  conn_free(answer);
}

static bool heartbeat_connect(struct keeping *k) {
  struct err err;
  enum conn_failure failure;
  if (conn_is_open(k->conn))
    return true;
  conn_close(k->conn);
  heartbeat_may_take(k, LIMIT_STORE_ASK_MS);
  k->conn = base_connect(k->pg, &failure, &err);
  k->listens = k->conn != NULL && k->hearing != HEARING_NOTHING && !fault_fails("listen") &&
               heartbeat_plain(k, "LISTEN segue");
  return k->conn != NULL;
}

/* --- hearing --- */

static const char TO_ITSELF[] = "self ";

/* Notifies the worker itself over another connection: on its own, a pooler would bring this
 * notification with the answer, and never another. Only over an open one, since the lease must not
 * wait for a new connection. */
static void heartbeat_ask_itself(struct keeping *k) {
  struct pg_base *pg = k->pg;
  char payload[64];
  struct err err;
  enum conn_failure failure;
  if (k->hearing != HEARING_UNKNOWN || !k->listens || !conn_is_open(k->conn))
    return;
  struct conn *conn = base_take_idle(pg);
  if (conn == NULL)
    return;
  print_into(payload, sizeof payload, "%s%s", TO_ITSELF, pg->heartbeat.worker);
  const struct conn_arg args[] = {arg_text(payload)};
  PGresult *answer = conn_ask(conn, "SELECT pg_notify('segue', $1)", pg->heartbeat.ttl_ms / 6 + 200,
                              args, 1, false, &failure, &err);
  if (answer != NULL) {
    k->hearing = HEARING_ASKED;
    k->hears_until = clock_boot_ms() + LIMIT_STORE_HEAR_MS;
  }
  conn_free(answer);
  base_give(pg, conn);
}

/* Concludes that nothing is delivered, unless the connection broke meanwhile: then it asks again.
 */
static void heartbeat_hears_nothing(struct keeping *k) {
  if (k->hearing != HEARING_ASKED || clock_boot_ms() < k->hears_until)
    return;
  k->hearing = conn_is_open(k->conn) ? HEARING_NOTHING : HEARING_UNKNOWN;
  if (k->hearing == HEARING_NOTHING)
    log_warn("the store %s does not deliver notifications (a transaction pooler does not): this "
             "worker looks for work every %u s",
             k->pg->shown, LIMIT_STORE_POLL_MS / 1000);
}

/* Does nothing itself: what is due next comes at once, since several notifications may arrive
 * together and one look answers them all. */
static void heartbeat_heard(struct keeping *k, const char *payload) {
  k->hearing = HEARING_FINE;
  if (strncmp(payload, TO_ITSELF, sizeof TO_ITSELF - 1) == 0) /* or to another one */
    return;
  if (strcmp(payload, "ask") == 0)
    k->renew_at = 0;
  else if (strcmp(payload, "ready") == 0)
    base_tell(k->pg, WORKER_READY, "", "");
  else
    k->poll_at = 0;
  k->freed = k->freed || strcmp(payload, "provider") == 0;
}

/* Does what is due, the lease first: the rest may take its time only while that is safe. */
static void heartbeat_work(struct keeping *k) {
  struct pg_base *pg = k->pg;
  uint64_t now = clock_boot_ms(), ttl = pg->heartbeat.ttl_ms;
  struct err err;
  enum conn_failure failure;
  uint64_t trust = atomic_load(&pg->heartbeat.trust_until);
  if (trust != 0 && now >= trust)
    heartbeat_lose(k);
  if (now >= k->renew_at) {
    bool ok = heartbeat_connect(k) && heartbeat_renew(k, &failure, &err);
    uint64_t again = LIMIT_STORE_BACKOFF_MS << (k->failures > 7 ? 7 : k->failures);
    k->failures = ok ? 0 : k->failures + 1;
    atomic_store(&pg->heartbeat.answers, ok);
    if (again > ttl / 6)
      again = ttl / 6;
    k->renew_at = clock_boot_ms() + (ok ? ttl / 3 : heartbeat_jitter(again));
  }
  if (now >= k->sweep_at && conn_is_open(k->conn)) {
    (void)heartbeat_plain(k, "SELECT segue.sweep()");
    k->sweep_at = clock_boot_ms() + heartbeat_jitter(ttl / 6);
  }
  if (now >= k->poll_at) {
    if (heartbeat_connect(k)) {
      heartbeat_may_take(k, ttl / 6 + 200);
      heartbeat_poll(pg, k->conn);
    } else {
      atomic_store(&pg->heartbeat.answers, false);
    }
    heartbeat_may_take(k, ttl / 6 + 200);
    if (conn_is_open(k->conn))
      provider_slots_settle(pg, k->conn);
    base_trim(pg);
    if (k->freed)
      base_tell(pg, WORKER_SEATS, "", "");
    k->freed = false;
    k->poll_at = clock_boot_ms() + heartbeat_jitter(LIMIT_STORE_POLL_MS);
  }
}

static uint64_t heartbeat_next(const struct keeping *k) {
  uint64_t now = clock_boot_ms(), next = k->renew_at,
           trust = atomic_load(&k->pg->heartbeat.trust_until);
  if (conn_is_open(k->conn)) /* a sweep needs the connection, which a renewal makes */
    next = k->sweep_at < next ? k->sweep_at : next;
  next = k->poll_at < next ? k->poll_at : next;
  if (k->hearing == HEARING_ASKED && k->hears_until < next)
    next = k->hears_until;
  next = trust != 0 && trust < next ? trust : next;
  return next > now ? next - now : 0;
}

static void *heartbeat_main(void *ctx) {
  struct pg_base *pg = ctx;
  uint64_t now = clock_boot_ms();
  struct keeping k = {.pg = pg,
                      .renew_at = now + pg->heartbeat.ttl_ms / 3,
                      .sweep_at = now + heartbeat_jitter(pg->heartbeat.ttl_ms / 6),
                      .poll_at = now + LIMIT_STORE_POLL_MS};
  while (!atomic_load(&pg->heartbeat.ends)) {
    if (!k.joined && atomic_load(&pg->heartbeat.joined)) {
      k.joined = true;
      /* to hear of others; else a connection is made when something is due */
      (void)heartbeat_connect(&k);
    }
    char payload[64];
    enum conn_failure failure;
    uint64_t wait = heartbeat_next(&k);
    heartbeat_may_take(&k, wait);
    if (conn_wait(k.conn, wait, pg->heartbeat.wake[0], payload, &failure))
      heartbeat_heard(&k, payload);
    heartbeat_may_take(&k, LIMIT_STORE_ASK_MS);
    char bytes[PIPE_BYTES];
    (void)!read(pg->heartbeat.wake[0], bytes, sizeof bytes);
    heartbeat_hears_nothing(&k);
    heartbeat_work(&k);
    if (k.joined)
      heartbeat_ask_itself(&k);
  }
  conn_close(k.conn);
  return NULL;
}

/* --- starting and ending --- */

static bool open_wake(struct pg_base *pg, struct err *err) {
  if (pg->heartbeat.wake[0] >= 0)
    return true;
  if (pipe(pg->heartbeat.wake) != 0)
    return err_set(err, ERR_IO, "no descriptor is left");
  for (int i = 0; i < 2; i++) {
    (void)fcntl(pg->heartbeat.wake[i], F_SETFD, FD_CLOEXEC);
    (void)fcntl(pg->heartbeat.wake[i], F_SETFL, O_NONBLOCK);
  }
  return true;
}

static bool heartbeat_start(struct pg_base *pg, struct err *err) {
  sigset_t all, before; /* signals are for the loop's thread */
  enum conn_failure failure = CONN_FINE;
  uint64_t until = clock_mono_ms() + LIMIT_STORE_TRY_MS;
  bool told = false;
  if (!open_wake(pg, err) || !lease_open(err))
    return false;
  pg->heartbeat.ttl_ms = base_options()->lease_ms;
  bool entered = false;
  for (unsigned tries = 0; !entered; tries++) {
    if (pg->heartbeat.named) /* a lost answer may have been a yes, too */
      heartbeat_rename(pg);
    pg->heartbeat.named = true;
    struct conn *conn = base_take(pg, &failure, err);
    entered = conn != NULL && heartbeat_enter(pg, conn, &failure, err);
    base_give(pg, conn);
    if (!entered && (failure != CONN_LOST || !base_pause(tries, until)))
      return false;
    if (!entered)
      base_tell_trying(tries, until, &told, err);
  }
  atomic_store(&pg->heartbeat.answers, true);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  pg->heartbeat.runs = pthread_create(&pg->heartbeat.thread, NULL, heartbeat_main, pg) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return pg->heartbeat.runs || err_set(err, ERR_IO, "no thread can be started for the lease");
}

static void heartbeat_join(struct pg_base *pg) {
  struct err err;
  enum conn_failure failure = CONN_FINE;
  if (atomic_exchange(&pg->heartbeat.joined, true))
    return;
  struct conn *conn = base_take(pg, &failure, &err);
  if (conn != NULL) { /* if nothing answers, the thread asks again when it is due */
    conn_free(
        conn_ask(conn, "SELECT segue.sweep()", LIMIT_STORE_ASK_MS, NULL, 0, false, &failure, &err));
    heartbeat_poll(pg, conn);
  }
  base_give(pg, conn);
  (void)!write(pg->heartbeat.wake[1], "", 1);
}

static void heartbeat_stop(struct pg_base *pg) {
  struct err err;
  enum conn_failure failure;
  if (!pg->heartbeat.runs)
    return;
  atomic_store(&pg->heartbeat.ends, true);
  (void)!write(pg->heartbeat.wake[1], "", 1);
  (void)pthread_join(pg->heartbeat.thread, NULL);
  pg->heartbeat.runs = false;
  atomic_store(&pg->heartbeat.ends, false);
  atomic_store(&pg->heartbeat.joined, false);
  struct conn *conn = base_take(pg, &failure, &err);
  const struct conn_arg args[] = {arg_text(pg->heartbeat.worker),
                                  arg_text(pg->heartbeat.former[0] ? pg->heartbeat.former : NULL)};
  if (conn != NULL)
    conn_free(conn_ask(conn, "SELECT segue.leave($1), segue.gave_up($2)", LIMIT_STORE_ASK_MS, args,
                       ARRAY_LEN(args), false, &failure, &err));
  base_give(pg, conn);
  atomic_store(&pg->heartbeat.trust_until, 0);
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
    drop_idle_since(pg, 0, UINT64_MAX);
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
