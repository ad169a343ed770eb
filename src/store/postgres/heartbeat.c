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
#include "store/postgres/heartbeat.h"

#include "store/postgres/base.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/lease.h"
#include "os/random.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { PIPE_BYTES = 64 };

/* Says whether notifications come through: transaction poolers take LISTEN and pass nothing on. */
enum hearing { HEARING_UNKNOWN, HEARING_ASKED, HEARING_FINE, HEARING_NOTHING };

/* Holds the state of a heartbeat's work, used only by its thread. Times are clock_boot_ms. */
struct keeping {
  struct pg_base *pg;
  struct conn *conn;
  uint64_t renew_at, sweep_at, poll_at;
  uint64_t due_at; /* its present action ends by then, unless the program is stopped */
  bool hung;       /* it was stopped for long since the last renewal */
  enum hearing hearing;
  uint64_t hears_until; /* for ASKED */
  unsigned failures;
  unsigned surplus; /* renewals in a row that reported more sessions than are known */
  bool listens, joined;
  bool freed; /* a place at a provider may be free */
};

/* --- the lease --- */

void heartbeat_host(char host[HEARTBEAT_HOST_BYTES]) {
  if (gethostname(host, HEARTBEAT_HOST_BYTES - 1) != 0)
    print_into(host, HEARTBEAT_HOST_BYTES, "unknown");
  host[HEARTBEAT_HOST_BYTES - 1] = '\0';
}

void heartbeat_put_labels(struct buf *out) {
  char host[HEARTBEAT_HOST_BYTES] = "";
  heartbeat_host(host);
  buf_putc(out, '{');
  base_put_label(out, "host=", host);
  for (const char *const *label = base_options()->labels; label && *label; label++)
    base_put_label(out, "", *label);
  buf_putc(out, '}');
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

/* Registers the worker under a fresh word. None is registered twice: if the answer was lost, a
 * row may stand under the old one, and sessions may be counted as its own. */
static bool heartbeat_register(struct pg_base *pg, struct conn *conn, enum conn_failure *failure,
                               struct err *err) {
  struct heartbeat *h = &pg->heartbeat;
  char host[HEARTBEAT_HOST_BYTES] = "", ttl[ARG_NUMBER_BYTES];
  struct buf labels = {0}, needs = {0};
  heartbeat_host(host);
  print_into(h->name, sizeof h->name, "%s:%ld", host, (long)getpid());
  if (h->needs == NULL) {
    /* A session's folder is on the machine that made it, unless a person names other labels. */
    buf_putc(&needs, '{');
    base_put_label(&needs, "host=", host);
    buf_putc(&needs, '}');
    h->needs = buf_take(&needs);
  }
  heartbeat_put_labels(&labels);
  const struct conn_arg args[] = {
      arg_text(h->word),          arg_text(h->name),
      arg_text(buf_c(&labels)),   arg_text(SEGUE_VERSION),
      arg_number(ttl, h->ttl_ms), arg_text(h->former[0] ? h->former : NULL)};
  uint64_t sent = clock_boot_ms();
  PGresult *answer = conn_ask(conn, "SELECT segue.enter($1, $2, $3, $4, $5, $6)",
                              LIMIT_STORE_ASK_MS, args, ARRAY_LEN(args), false, failure, err);
  buf_deinit(&labels);
  bool ok = answer != NULL;
  conn_free(answer);
  if (ok && fault_fails("enter")) { /* as if the reply were lost */
    *failure = CONN_LOST;
    return err_set(err, ERR_IO, "the store %s does not answer", pg->shown);
  }
  if (ok) {
    h->former[0] = '\0';
    heartbeat_trust(pg, sent, true);
  }
  return ok;
}

/* Renames the worker and closes its connection: the next one gets the new name. */
static void heartbeat_anew(struct keeping *k) {
  base_rename(k->pg);
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
             k->hung ? "" : pg->heartbeat.word);
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

static bool heartbeat_renew(struct keeping *k) {
  struct pg_base *pg = k->pg;
  enum conn_failure ignored;
  struct err err;
  char ttl[ARG_NUMBER_BYTES];
  uint64_t sent = clock_boot_ms(), trust = atomic_load(&pg->heartbeat.trust_until),
           limit = pg->heartbeat.ttl_ms / 3 + 100;
  if (trust == 0) {
    heartbeat_may_take(k, LIMIT_STORE_ASK_MS);
    bool ok = heartbeat_register(pg, k->conn, &ignored, &err);
    if (!ok)
      heartbeat_anew(k); /* a lost answer may have been a yes */
    return ok;
  }
  /* Past that moment no answer would count, and the sessions must be given up without waiting. */
  if (sent + limit > trust)
    limit = trust > sent ? trust - sent : 0;
  const struct conn_arg args[] = {arg_text(pg->heartbeat.word),
                                  arg_number(ttl, pg->heartbeat.ttl_ms)};
  heartbeat_may_take(k, limit);
  PGresult *answer = conn_ask(k->conn, "SELECT * FROM segue.renew($1, $2)", limit, args,
                              ARRAY_LEN(args), false, NULL, &err);
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
  uint64_t limit = k->pg->heartbeat.ttl_ms / 6 + 200;
  heartbeat_may_take(k, limit);
  PGresult *answer = conn_ask(k->conn, sql, limit, NULL, 0, false, NULL, &err);
  bool ok = answer != NULL;
  conn_free(answer);
  return ok;
}

/* Reports once that another segue changed the version of the tables. */
static void heartbeat_see_version(struct pg_base *pg, const PGresult *answer, int column) {
  if (answer != NULL && conn_rows(answer) == 1 &&
      conn_number(answer, 0, column) != (uint64_t)atomic_load(&pg->version) &&
      !atomic_exchange(&pg->outdated, true))
    base_tell(pg, WORKER_OUTDATED, "", conn_text(answer, 0, column));
}

/* Looks at the queue and the providers. Without an answer, whoever watches checks the queue. */
static void heartbeat_poll(struct pg_base *pg, struct conn *conn) {
  struct err err;
  enum conn_failure failure;
  const struct conn_arg args[] = {arg_text(pg->heartbeat.word)};
  PGresult *answer = conn_ask(
      conn,
      "SELECT p.o_ready, p.o_providers, (SELECT version FROM segue.meta) FROM segue.poll($1) p",
      pg->heartbeat.ttl_ms / 6 + 200, args, ARRAY_LEN(args), false, &failure, &err);
  atomic_store(&pg->heartbeat.answers, answer != NULL);
  if (answer == NULL || conn_text(answer, 0, 0)[0] == 't' || atomic_load(&pg->unsure))
    base_tell(pg, WORKER_READY, "", "");
  if (answer != NULL && provider_slots_learn(pg, conn_text(answer, 0, 1)))
    base_tell(pg, WORKER_SEATS, "", "");
  heartbeat_see_version(pg, answer, 2);
  if (answer == NULL && failure == CONN_REFUSED) { /* newer tables may not have this function */
    answer = conn_ask(conn, "SELECT version FROM segue.meta", LIMIT_STORE_ASK_MS, NULL, 0, false,
                      NULL, &err);
    heartbeat_see_version(pg, answer, 0);
  }
  conn_free(answer);
}

static bool heartbeat_connect(struct keeping *k) {
  struct err err;
  if (conn_is_open(k->conn))
    return true;
  conn_close(k->conn);
  heartbeat_may_take(k, LIMIT_STORE_ASK_MS);
  k->conn = base_connect(k->pg, NULL, &err);
  k->listens = k->conn != NULL && k->hearing != HEARING_NOTHING && !fault_fails("listen") &&
               heartbeat_plain(k, "LISTEN segue");
  return k->conn != NULL;
}

/* --- hearing --- */

static const char TO_ITSELF[] = "self ", HURRY[] = "hurry ";

/* Notifies the worker itself over another connection: on its own, a pooler would bring this
 * notification with the answer, and never another. Only over an open one, since the lease must not
 * wait for a new connection. */
static void heartbeat_ask_itself(struct keeping *k) {
  struct pg_base *pg = k->pg;
  char payload[64];
  struct err err;
  if (k->hearing != HEARING_UNKNOWN || !k->listens || !conn_is_open(k->conn))
    return;
  struct conn *conn = base_take_idle(pg);
  if (conn == NULL)
    return;
  print_into(payload, sizeof payload, "%s%s", TO_ITSELF, pg->heartbeat.worker);
  const struct conn_arg args[] = {arg_text(payload)};
  PGresult *answer = conn_ask(conn, "SELECT pg_notify('segue', $1)", pg->heartbeat.ttl_ms / 6 + 200,
                              args, 1, false, NULL, &err);
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
  else if (strncmp(payload, HURRY, sizeof HURRY - 1) == 0)
    base_tell(k->pg, WORKER_ASKED, payload + sizeof HURRY - 1, "hurry");
  else
    k->poll_at = 0;
  k->freed = k->freed || strcmp(payload, "provider") == 0;
}

/* Does what is due, the lease first: the rest may take its time only while that is safe. */
static void heartbeat_work(struct keeping *k) {
  struct pg_base *pg = k->pg;
  uint64_t now = clock_boot_ms(), ttl = pg->heartbeat.ttl_ms;
  uint64_t trust = atomic_load(&pg->heartbeat.trust_until);
  if (trust != 0 && now >= trust)
    heartbeat_lose(k);
  if (now >= k->renew_at) {
    bool ok = heartbeat_connect(k) && heartbeat_renew(k);
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
    now = clock_boot_ms();
    if (now > LIMIT_STORE_IDLE_MS) /* one stays */
      base_close_idle(pg, 1, now - LIMIT_STORE_IDLE_MS);
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
    uint64_t wait = heartbeat_next(&k);
    heartbeat_may_take(&k, wait);
    if (conn_wait(k.conn, wait, pg->heartbeat.wake[0], payload))
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

/* The first lease is taken here, on the caller's thread: a worker that cannot have one is told why,
 * and nothing is held before. */
bool heartbeat_begin(struct pg_base *pg, struct err *err) {
  struct heartbeat *h = &pg->heartbeat;
  sigset_t all, before; /* signals are for the loop's thread */
  struct base_tries tries = {.until = clock_mono_ms() + LIMIT_STORE_TRY_MS};
  if (h->runs)
    return true;
  if (!open_wake(pg, err) || !lease_open(err))
    return false;
  h->ttl_ms = base_options()->lease_ms;
  for (bool entered = false; !entered;) {
    enum conn_failure failure = CONN_FINE;
    if (h->named) /* a lost answer may have been a yes, too */
      base_rename(pg);
    h->named = true;
    struct conn *conn = base_take(pg, &failure, err);
    entered = conn != NULL && heartbeat_register(pg, conn, &failure, err);
    base_give(pg, conn);
    if (!entered && (failure != CONN_LOST || !base_again(&tries, err)))
      return false;
  }
  atomic_store(&h->answers, true);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  h->runs = pthread_create(&h->thread, NULL, heartbeat_main, pg) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return h->runs || err_set(err, ERR_IO, "no thread can be started for the lease");
}

bool heartbeat_join(struct pg_base *pg, struct err *err) {
  struct err ignored;
  if (!heartbeat_begin(pg, err))
    return false;
  if (atomic_exchange(&pg->heartbeat.joined, true))
    return true;
  struct conn *conn = base_take(pg, NULL, &ignored);
  if (conn != NULL) { /* if nothing answers, the thread asks again when it is due */
    conn_free(
        conn_ask(conn, "SELECT segue.sweep()", LIMIT_STORE_ASK_MS, NULL, 0, false, NULL, &ignored));
    heartbeat_poll(pg, conn);
  }
  base_give(pg, conn);
  (void)!write(pg->heartbeat.wake[1], "", 1);
  return true;
}

/* segue.leave releases what is still held, so that a session of a program that ends does not wait
 * until its lease is over. */
static void heartbeat_stop(struct pg_base *pg) {
  struct heartbeat *h = &pg->heartbeat;
  struct err err;
  if (!h->runs)
    return;
  atomic_store(&h->ends, true);
  (void)!write(h->wake[1], "", 1);
  (void)pthread_join(h->thread, NULL);
  h->runs = false;
  atomic_store(&h->ends, false);
  atomic_store(&h->joined, false);
  struct conn *conn = base_take(pg, NULL, &err);
  const struct conn_arg args[] = {arg_text(h->word), arg_text(h->former[0] ? h->former : NULL)};
  if (conn != NULL)
    conn_free(conn_ask(conn, "SELECT segue.leave($1, $2)", LIMIT_STORE_ASK_MS, args,
                       ARRAY_LEN(args), false, NULL, &err));
  base_give(pg, conn);
  atomic_store(&h->trust_until, 0);
}

unsigned heartbeat_term(const struct pg_base *pg) {
  return atomic_load(&pg->heartbeat.term);
}

/* The term tells an append that began before the lease was lost, and taken anew, from the sessions
 * of the new worker: its session may be another's, although there is a lease. */
bool heartbeat_trusts(const struct pg_base *pg, unsigned term, struct err *err) {
  if (term == heartbeat_term(pg) && clock_boot_ms() < atomic_load(&pg->heartbeat.trust_until))
    return true;
  return err_set(
      err, ERR_LOCKED,
      "this worker's lease at the store %s expired: another one may continue its sessions",
      pg->shown);
}

void worker_leave_all(void) {
  for (struct pg_base *pg = base_first(); pg != NULL; pg = pg->next) {
    heartbeat_stop(pg);
    base_close_idle(pg, 0, UINT64_MAX);
  }
}
