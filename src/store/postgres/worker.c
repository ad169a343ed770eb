/* Does a worker's part at a shared store: hears the news about the program's sessions on its loop,
 * takes sessions from the queue and keeps them until they are attached, gives them back, and knows
 * which ones its labels let it take.
 *
 * DESIGN, claims. A claim returns the row and, if it is small, the log, so that attaching needs no
 * further request. Both stay valid as long as the lease does, since nobody else can write the log.
 * If an answer is lost, this worker holds sessions that it does not know of, and asks the store for
 * them later: the heartbeat compares how many the store counts with how many are known here, in the
 * lists `open`, `claimed` and `leaving`. It believes a difference only the second time, because a
 * session that is just being taken or released stands in none of them for a moment.
 *
 * DESIGN, fences. Each change of owner raises the fence of the session's row, and each append and
 * release names the fence it was taken with, and the worker's word. A worker that was cut off, and
 * believes that it still holds a session, is thus refused by the server, however late its request
 * arrives. */
#include "store/postgres/session_log.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- news --- */

/* The lock is not held while news is told: whoever hears it may ask for something that takes it. */
static void watch_on_news(uv_async_t *async) {
  struct pg_base *pg = async->data;
  struct list all = {0};
  (void)pthread_mutex_lock(&pg->lock);
  list_move_all(&all, &pg->news);
  (void)pthread_mutex_unlock(&pg->lock);
  LIST_EACH(struct news_item, item, in_base, &all) {
    if (pg->told != NULL)
      pg->told(pg->told_ctx, item->news, item->id, item->what);
    free(item);
  }
}

/* The handle does not keep the loop alive: a program with nothing left to do ends, whatever another
 * thread may still have to tell. */
bool worker_watch(struct store *store, uv_loop_t *loop, worker_told_fn told, void *ctx,
                  struct err *err) {
  if (!url_is_shared(store->where))
    return true;
  struct pg_base *pg = base_of(store->where, err);
  if (pg == NULL || !heartbeat_join(pg, err))
    return false;
  if (uv_async_init(loop, &pg->async, watch_on_news) != 0)
    return err_set(err, ERR_IO, "no descriptor is left");
  uv_unref((uv_handle_t *)&pg->async);
  pg->async.data = pg;
  (void)pthread_mutex_lock(&pg->lock);
  pg->told = told;
  pg->told_ctx = ctx;
  pg->loop = loop;
  pg->loop_thread = pthread_self();
  (void)pthread_mutex_unlock(&pg->lock);
  base_tell(pg, WORKER_READY, "", ""); /* the queue may already hold sessions */
  return true;
}

void worker_unwatch(struct store *store) {
  struct pg_base *pg = base_of_store(store);
  if (pg == NULL || pg->told == NULL)
    return;
  (void)pthread_mutex_lock(&pg->lock);
  pg->told = NULL;
  pg->loop = NULL; /* work under way still ends on it */
  (void)pthread_mutex_unlock(&pg->lock);
  watch_on_news(&pg->async); /* frees what nobody is told any more */
  uv_close((uv_handle_t *)&pg->async, NULL);
}

/* --- sessions that others may go on with --- */

struct base_pause {
  struct list_node in_base;
  char id[STORE_ID_BYTES];
  uint64_t until_ms, wait_ms;
  char *why;
};

/* The list is bounded, so the oldest is forgotten: that session is tried once too often. */
static struct base_pause *pause_of(struct pg_base *pg, const char *id) {
  LIST_EACH(struct base_pause, pause, in_base, &pg->paused)
    if (strcmp(pause->id, id) == 0)
      return pause;
  if (pg->paused.count >= LIMIT_STORE_PAUSE_COUNT) {
    struct list_node *first = pg->paused.first;
    list_remove(&pg->paused, first);
    free(LIST_ITEM(first, struct base_pause, in_base)->why);
    free(first);
  }
  struct base_pause *pause = xcalloc(1, sizeof *pause);
  print_into(pause->id, sizeof pause->id, "%s", id);
  list_push_back(&pg->paused, &pause->in_base);
  return pause;
}

void worker_pause(struct store *store, const char *id, const char *why) {
  struct pg_base *pg = base_of_store(store);
  if (pg == NULL)
    return;
  (void)pthread_mutex_lock(&pg->lock);
  struct base_pause *pause = pause_of(pg, id);
  pause->wait_ms = pause->wait_ms == 0 ? LIMIT_STORE_PAUSE_MS : 2 * pause->wait_ms;
  if (pause->wait_ms > LIMIT_STORE_PAUSE_MAX_MS)
    pause->wait_ms = LIMIT_STORE_PAUSE_MAX_MS;
  pause->until_ms = clock_boot_ms() + pause->wait_ms;
  free(pause->why);
  struct buf text = {0};
  buf_printf(&text, "%s: %s", pg->heartbeat.name, why);
  /* The server would refuse other characters, and the session would stay held. A message may have
   * been cut within one. */
  if (atomic_load(&pg->narrow) || !utf8_valid(text.p, text.n))
    for (size_t i = 0; i < text.n; i++)
      if ((unsigned char)text.p[i] >= 0x80)
        text.p[i] = '?';
  pause->why = buf_take(&text);
  (void)pthread_mutex_unlock(&pg->lock);
}

char *shared_pause_why(struct pg_base *pg, const char *id) {
  char *why = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  LIST_EACH(struct base_pause, pause, in_base, &pg->paused)
    if (pause->until_ms > clock_boot_ms() && strcmp(pause->id, id) == 0)
      why = xstrdup(pause->why);
  (void)pthread_mutex_unlock(&pg->lock);
  return why;
}

/* Appends the sessions that are not claimed for now, as an SQL array. The server leaves them out,
 * so that this worker does not take, read and give back the first of the queue for ever while
 * others wait behind it. */
static void base_put_paused(struct pg_base *pg, struct buf *out) {
  uint64_t now = clock_boot_ms();
  buf_putc(out, '{');
  (void)pthread_mutex_lock(&pg->lock);
  LIST_EACH(struct base_pause, pause, in_base, &pg->paused)
    if (pause->until_ms > now)
      buf_printf(out, "%s%s", out->n > 1 ? "," : "", pause->id);
  (void)pthread_mutex_unlock(&pg->lock);
  buf_putc(out, '}');
}

/* --- what is asked of a worker, and who it is --- */

/* The server notifies the owner, and keeps the request in the row for whoever comes after it: the
 * request is not lost with a notification, or with the owner. */
bool worker_ask(const struct store_ref *ref, const char *what, char state[16], struct err *err) {
  char id[STORE_ID_BYTES], word[BASE_WORD_BYTES];
  struct pg_base *pg = base_of_ref(ref, id, err);
  const struct conn_arg args[] = {arg_text(id), arg_text(what), arg_text("")};
  if (!base_ask_word(pg, "SELECT segue.ask($1, $2, $3)", args, ARRAY_LEN(args), word, err))
    return false;
  if (fault_fails("ask")) /* as if no reply had come */
    return err_set(err, ERR_IO, "the store %s does not answer", pg->shown);
  print_into(state, 16, "%.15s", word);
  return true;
}

bool worker_hurry(const struct store_ref *ref, struct err *err) {
  char id[STORE_ID_BYTES], word[BASE_WORD_BYTES];
  struct pg_base *pg = base_of_ref(ref, id, err);
  const struct conn_arg args[] = {arg_text(id)};
  return base_ask_word(pg, "SELECT 'told' FROM pg_notify('segue', 'hurry ' || $1)", args, 1, word,
                       err);
}

/* Looks at what the heartbeat saw, without a request: the loop must not wait to find out that it
 * would have to wait. */
bool worker_answers(const struct store *store, struct err *err) {
  if (!url_is_shared(store->where))
    return true;
  const struct pg_base *pg = base_of(store->where, err);
  if (pg == NULL || !pg->heartbeat.runs || atomic_load(&pg->heartbeat.answers))
    return pg != NULL;
  return err_set(err, ERR_LIMIT, "the store %s does not answer: try again", pg->shown);
}

/* Returns NULL for a log that is a file, or none. */
static const struct shared_log *shared_log_of(const struct store_log *base) {
  bool shared = base != NULL && url_is_shared(base->store->where);
  return shared ? (const struct shared_log *)base : NULL;
}

bool worker_say(const struct store_ref *ref, const json_t *said, struct err *err) {
  char id[STORE_ID_BYTES], word[BASE_WORD_BYTES];
  struct store store;
  ref->ops->of(ref, &store);
  if (!url_is_shared(store.where))
    return err_set(err, ERR_LOCKED, "another program has it");
  char_auto_t *text = json_dump_text(said, JSON_COMPACT);
  struct pg_base *pg = base_of_ref(ref, id, err);
  const struct conn_arg args[] = {arg_text(id), arg_text(text)};
  bool ok = base_ask_word(pg, "SELECT segue.say($1, $2)", args, ARRAY_LEN(args), word, err);
  return ok && (strcmp(word, "ended") != 0 || err_set(err, ERR_INVALID, "it has ended"));
}

bool worker_said(struct store_log *base, const char *heard, struct buf *out, struct err *err) {
  char fence[ARG_NUMBER_BYTES];
  const struct shared_log *log = shared_log_of(base);
  if (log == NULL)
    return true;
  const struct conn_arg args[] = {arg_text(log->pg->heartbeat.word), arg_text(log->id),
                                  arg_number(fence, log->held.fence), arg_text(heard)};
  PGresult *answer =
      base_ask(log->pg, "SELECT segue.heard($1, $2, $3, $4)", args, ARRAY_LEN(args), err);
  if (answer != NULL)
    buf_puts(out, conn_text(answer, 0, 0));
  conn_free(answer);
  return answer != NULL;
}

const char *worker_asked(const struct store_log *base) {
  const struct shared_log *log = shared_log_of(base);
  return log != NULL ? log->held.asked : "";
}

unsigned worker_deaths(const struct store_log *base, const char **died) {
  const struct shared_log *log = shared_log_of(base);
  *died = log != NULL ? log->held.died : "";
  return log != NULL ? log->held.deaths : 0;
}

json_t *worker_json(const struct store_log *base) {
  const struct shared_log *log = shared_log_of(base);
  if (log == NULL)
    return NULL;
  json_t *told = json_pack("{ss}", "name", log->pg->heartbeat.name);
  if (log->held.deaths > 0)
    json_object_update_new(told, json_pack("{ss si ss}", "after", log->held.died, "deaths",
                                           (int)log->held.deaths, "why", "its lease ended"));
  return told;
}

void worker_refuse(struct store_log *base) {
  if (shared_log_of(base) != NULL)
    ((struct shared_log *)base)->refuses = true;
}

/* --- claims --- */

enum { CLAIM_KEPT_MS = 30000, HELD_LOOK_MS = 50, NOW_TRY_MS = 1000 };

struct base_claim *shared_claim_new(const char *id, uint64_t fence, unsigned term) {
  struct base_claim *claim = xcalloc(1, sizeof *claim);
  print_into(claim->id, sizeof claim->id, "%.36s", id);
  claim->held.fence = fence;
  claim->term = term;
  return claim;
}

void shared_claim_free(struct base_claim *claim) {
  free(claim->why);
  buf_deinit(&claim->log);
  free(claim);
}

static struct base_claim *claim_find(const struct list *list, const char *id) {
  LIST_EACH(struct base_claim, claim, in_base, list)
    if (strcmp(claim->id, id) == 0)
      return claim;
  return NULL;
}

unsigned shared_open_count(struct pg_base *pg, const char *id) {
  unsigned count = 0;
  (void)pthread_mutex_lock(&pg->lock);
  LIST_EACH(struct shared_log, log, in_open, &pg->open)
    count += strcmp(log->id, id) == 0;
  (void)pthread_mutex_unlock(&pg->lock);
  return count;
}

void shared_held_read(const PGresult *answer, int row, struct base_held *held) {
  *held = (struct base_held){.fence = conn_number(answer, row, 1),
                             .seq = conn_number(answer, row, 2),
                             .bytes = conn_number(answer, row, 3),
                             .deaths = (unsigned)conn_number(answer, row, 6)};
  print_into(held->hash, sizeof held->hash, "%s", conn_text(answer, row, 4));
  print_into(held->died, sizeof held->died, "%s", conn_text(answer, row, 7));
  print_into(held->asked, sizeof held->asked, "%s", conn_text(answer, row, 8));
}

/* --- claims: attached sessions --- */

/* A claim stays in the list while it is attached, so that claims_settle knows the session before
 * its log is open. One of an earlier term is worthless: the session may be another's by now. */
static struct base_claim *claim_take(struct pg_base *pg, const char *id) {
  (void)pthread_mutex_lock(&pg->lock);
  struct base_claim *claim = claim_find(&pg->claimed, id);
  bool over = claim != NULL && claim->term != heartbeat_term(pg);
  if (over)
    list_remove(&pg->claimed, &claim->in_base);
  else if (claim != NULL)
    claim->attached = true;
  (void)pthread_mutex_unlock(&pg->lock);
  if (!over)
    return claim;
  shared_claim_free(claim);
  return NULL;
}

void shared_end_claim(struct pg_base *pg, const char *id) {
  (void)pthread_mutex_lock(&pg->lock);
  struct base_claim *claim = claim_find(&pg->claimed, id);
  if (claim != NULL && claim->attached)
    list_remove(&pg->claimed, &claim->in_base);
  else
    claim = NULL; /* it came while the session was being attached without one */
  (void)pthread_mutex_unlock(&pg->lock);
  if (claim != NULL)
    shared_claim_free(claim);
}

bool shared_claimed_log(struct pg_base *pg, const char *id, struct buf *out) {
  struct err err;
  (void)pthread_mutex_lock(&pg->lock);
  const struct base_claim *claim = claim_find(&pg->claimed, id);
  bool there = claim != NULL && claim->log.n > 0 && heartbeat_trusts(pg, claim->term, &err);
  if (there)
    buf_str(out, buf_view(&claim->log));
  (void)pthread_mutex_unlock(&pg->lock);
  return there;
}

/* Explains why segue.hold did not give us the session. */
static bool say_held(const struct pg_base *pg, const char *id, const PGresult *answer,
                     struct err *err) {
  const char *result = conn_text(answer, 0, 0), *to = conn_text(answer, 0, 9);
  bool is_said = to[0] != '\0';
  if (strcmp(result, "held") == 0)
    return err_set(
        err, ERR_LOCKED,
        "worker %.80s of the store %s has session %s: wait for it, or stop it first; if it "
        "died, until its lease is over",
        conn_text(answer, 0, 5), pg->shown, id);
  if (strcmp(result, "moved") == 0)
    return err_set(
        err, ERR_INVALID,
        "session %s was moved from the store %s to %.300s; if it is not there, run segue "
        "store export --move again",
        id, pg->shown, is_said ? to : "another one");
  if (strcmp(result, "moving") == 0)
    return err_set(err, ERR_INVALID,
                   "session %s was being copied to the store %s: repeat that segue store import "
                   "with the same options",
                   id, pg->shown);
  if (strcmp(result, "gone") == 0)
    return err_set(err, ERR_NOT_FOUND, "there is no session %s at the store %s", id, pg->shown);
  return heartbeat_trusts(pg, heartbeat_term(pg) + 1, err);
}

/* Waits until the session is free or wait_ms is over. Returns the answer, or NULL. */
static PGresult *hold_within(struct pg_base *pg, const char *id, unsigned wait_ms,
                             struct err *err) {
  uint64_t until = clock_mono_ms() + wait_ms;
  const struct conn_arg args[] = {arg_text(pg->heartbeat.word), arg_text(id)};
  for (;;) {
    PGresult *answer = NULL;
    if (shared_open_count(pg, id) > 1) { /* the store would give it to us again */
      err_set(err, ERR_LOCKED, "this program already has session %s of the store %s", id,
              pg->shown);
    } else {
      answer = base_ask(pg, "SELECT * FROM segue.hold($1, $2)", args, ARRAY_LEN(args), err);
      if (answer == NULL || strcmp(conn_text(answer, 0, 0), "ok") == 0)
        return answer;
      (void)say_held(pg, id, answer, err);
      conn_free(answer);
    }
    if (err->code != ERR_LOCKED || clock_mono_ms() >= until)
      return NULL;
    (void)usleep(HELD_LOOK_MS * 1000);
  }
}

/* Reads the row of a claimed session whose log did not come with the claim. The fence tells whether
 * it is still ours. */
static PGresult *hold_claimed(struct pg_base *pg, const char *id, uint64_t fence, struct err *err) {
  const struct conn_arg args[] = {arg_text(id)};
  PGresult *answer = base_ask(pg,
                              "SELECT 'ok', fence, seq, bytes, encode(hash, 'hex'), NULL, "
                              "deaths, died, asked FROM "
                              "segue.session WHERE id = $1 AND state = 'held'",
                              args, 1, err);
  if (answer == NULL || (conn_rows(answer) > 0 && conn_number(answer, 0, 1) == fence))
    return answer;
  conn_free(answer);
  err_set(err, ERR_LOCKED, "another worker of the store %s has session %s", pg->shown, id);
  return NULL;
}

bool shared_take(struct pg_base *pg, const char *id, unsigned wait_ms, struct base_held *held,
                 struct err *err) {
  const struct base_claim *claim = claim_take(pg, id);
  if (claim != NULL && claim->log.n > 0) {
    *held = claim->held;
    return true;
  }
  PGresult *answer = NULL;
  if (claim != NULL)
    answer = hold_claimed(pg, id, claim->held.fence, err);
  /* A claim that only waits to be given back may have been given back, its answer lost. */
  if (claim == NULL || (answer == NULL && err->code == ERR_LOCKED))
    answer = hold_within(pg, id, wait_ms, err);
  if (answer == NULL)
    return false;
  shared_held_read(answer, 0, held);
  conn_free(answer);
  return true;
}

/* --- claims: sessions that nobody attached or knows of --- */

void leave_call_init(struct leave_call *call, const struct pg_base *pg,
                     const struct base_claim *claim) {
  call->args[0] = arg_text(pg->heartbeat.word);
  call->args[1] = arg_text(claim->id);
  call->args[2] = arg_number(call->fence, claim->held.fence);
  call->args[3] = arg_number(call->pause, claim->pause_ms);
  call->args[4] = arg_text(claim->why);
  call->args[5] = arg_text(claim->refuses ? "t" : "f");
}

/* Retries on another connection: after a lost request the session would stay held for as long as
 * this worker lives. If it was already released, the answer is "fenced", which does no harm. Not
 * for longer than somebody may wait for the session: after that it stands among the claims, as the
 * oldest, for the next look for work, which has time to wait for the server. Its log is forgotten
 * then: if only the answer was lost, another worker may have written more. */
void shared_release(struct pg_base *pg, struct base_claim *claim) {
  struct base_tries tries = {.until = clock_mono_ms() + NOW_TRY_MS};
  enum conn_failure failure;
  struct err err;
  struct leave_call call;
  PGresult *answer = NULL;
  leave_call_init(&call, pg, claim);
  do {
    failure = CONN_FINE;
    struct conn *conn = base_take(pg, &failure, &err);
    if (conn != NULL)
      answer = conn_ask(conn, SHARED_RELEASE_SQL, NOW_TRY_MS, call.args, LEAVE_ARGS, false,
                        &failure, &err);
    if (answer != NULL && fault_fails("release")) { /* as if the reply were lost */
      conn_free(answer);
      answer = NULL;
      failure = CONN_LOST;
    }
    base_give(pg, conn);
  } while (answer == NULL && failure == CONN_LOST && base_again(&tries, NULL));
  if (answer != NULL) {
    conn_free(answer);
    shared_claim_free(claim);
    return;
  }
  buf_deinit(&claim->log);
  claim->at_ms = 0;
  (void)pthread_mutex_lock(&pg->lock);
  list_push_front(&pg->claimed, &claim->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
}

/* Gives the oldest one back if nobody attached it in time: the program may have no place for it any
 * more, and nobody else can take it while it is held here. One at a time, since that asks the
 * store. */
static void claims_give_back(struct pg_base *pg) {
  uint64_t now = clock_boot_ms();
  struct base_claim *old = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  if (pg->claimed.first != NULL)
    old = LIST_ITEM(pg->claimed.first, struct base_claim, in_base);
  if (old != NULL && (old->attached || old->at_ms + CLAIM_KEPT_MS >= now))
    old = NULL;
  if (old != NULL)
    list_remove(&pg->claimed, &old->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
  if (old != NULL)
    shared_release(pg, old);
}

/* The time is for claims_give_back. The newest stands last. */
static void claim_keep(struct pg_base *pg, struct base_claim *claim, struct store_id *out) {
  claim->at_ms = clock_boot_ms();
  memcpy(out->id, claim->id, STORE_ID_BYTES);
  (void)pthread_mutex_lock(&pg->lock);
  list_push_back(&pg->claimed, &claim->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
}

/* Takes up sessions whose answer was lost, or gives them back if there is no room for them: while
 * this worker lives, nobody else can take them. */
static void claims_settle(struct pg_base *pg, size_t max, struct store_id *ids, size_t *count) {
  struct err err;
  const struct conn_arg args[] = {arg_text(pg->heartbeat.worker)};
  unsigned term = heartbeat_term(pg);
  if (!atomic_exchange(&pg->unsure, false))
    return;
  PGresult *answer = base_ask(pg,
                              "SELECT id, fence FROM segue.session WHERE state = 'held' AND "
                              "owner = $1 AND seq > 0 ORDER BY place",
                              args, 1, &err);
  if (answer == NULL)
    atomic_store(&pg->unsure, true);
  int n = answer ? conn_rows(answer) : 0;
  for (int i = 0; i < n; i++) {
    const char *id = conn_text(answer, i, 0);
    uint64_t fence = conn_number(answer, i, 1);
    /* This program may know that it holds the session: open, claimed, or being given back. */
    bool known = shared_open_count(pg, id) > 0;
    (void)pthread_mutex_lock(&pg->lock);
    known = known || claim_find(&pg->claimed, id) != NULL || claim_find(&pg->leaving, id) != NULL;
    (void)pthread_mutex_unlock(&pg->lock);
    if (known)
      continue;
    if (*count < max)
      claim_keep(pg, shared_claim_new(id, fence, term), &ids[(*count)++]);
    else
      shared_release(pg, shared_claim_new(id, fence, term));
  }
  conn_free(answer);
}

/* --- claims: from the queue --- */

/* All columns but the last are text: the answer is binary only because of the log. */
static const char claim_sql[] =
    "SELECT o_id::text, o_fence::text, o_seq::text, o_bytes::text, o_hash, NULL, o_deaths::text, "
    "o_died, o_asked, o_log FROM segue.claim($1, $2, $3, $4)";

static struct base_claim *claim_read(const PGresult *answer, int row, unsigned term) {
  struct base_claim *claim = shared_claim_new(conn_text(answer, row, 0), 0, term);
  struct str log = conn_bytes(answer, row, 9);
  shared_held_read(answer, row, &claim->held);
  if (log.n == claim->held.bytes) /* otherwise it is older than the row */
    buf_str(&claim->log, log);
  return claim;
}

/* Asks once only: the first request may have taken sessions although its answer was lost, and a
 * second one would take further ones. worker_claim notes the doubt, and claims_settle finds them.
 */
static PGresult *claim_ask(struct pg_base *pg, size_t max, struct err *err) {
  char most[ARG_NUMBER_BYTES], bytes[ARG_NUMBER_BYTES];
  struct buf paused = {0};
  base_put_paused(pg, &paused);
  const struct conn_arg args[] = {arg_text(pg->heartbeat.word), arg_number(most, max),
                                  arg_text(buf_c(&paused)),
                                  arg_number(bytes, LIMIT_STORE_CLAIM_BYTES)};
  struct conn *conn = base_take(pg, NULL, err);
  PGresult *answer = NULL;
  if (conn != NULL)
    answer = conn_ask(conn, claim_sql, LIMIT_STORE_ASK_MS, args, ARRAY_LEN(args), true, NULL, err);
  buf_deinit(&paused);
  if (answer != NULL && conn_rows(answer) > 0 && fault_fails("claim")) { /* a lost reply */
    conn_free(answer);
    conn_close(conn);
    answer = NULL;
    conn = NULL;
    err_set(err, ERR_IO, "the store %s does not answer", pg->shown);
  }
  base_give(pg, conn);
  return answer;
}

bool worker_claim(struct store *store, size_t max, struct store_id *ids, size_t *count,
                  struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
  *count = 0;
  if (pg == NULL)
    return false;
  claims_give_back(pg);
  claims_settle(pg, max, ids, count);
  if (*count == max)
    return true;
  /* The term of before the request: what a lease took that ended meanwhile is not trusted. */
  unsigned term = heartbeat_term(pg);
  PGresult *answer = claim_ask(pg, max - *count, err);
  if (answer == NULL)
    atomic_store(&pg->unsure, true);
  int n = answer ? conn_rows(answer) : 0;
  for (int i = 0; i < n && *count < max; i++)
    claim_keep(pg, claim_read(answer, i, term), &ids[(*count)++]);
  conn_free(answer);
  return answer != NULL || *count > 0;
}

/* --- labels --- */

static bool label_check(const char *label, struct err *err) {
  size_t n = strlen(label);
  if (n == 0 || n > LIMIT_STORE_LABEL_BYTES)
    return err_set(err, ERR_USAGE, "a label has 1 to %u bytes", LIMIT_STORE_LABEL_BYTES);
  for (const char *p = label; *p; p++)
    if ((unsigned char)*p <= ' ' || *p == ',' || *p == 127)
      return err_set(err, ERR_USAGE, "a label has no spaces, commas or control characters");
  return utf8_valid(label, n) || err_set(err, ERR_USAGE, "a label is UTF-8 text");
}

bool worker_be(const struct worker_options *wanted, struct err *err) {
  size_t n = 0;
  if (wanted->lease_ms < LIMIT_STORE_LEASE_MIN_MS || wanted->lease_ms > LIMIT_STORE_LEASE_MAX_MS)
    return err_set(err, ERR_USAGE, "--lease must be a time from 1s to 1h");
  for (const char *const *label = wanted->labels; label && *label; label++)
    if (!label_check(*label, err))
      return false;
    else if (++n > LIMIT_STORE_LABEL_COUNT)
      return err_set(err, ERR_USAGE, "a worker has at most %u labels", LIMIT_STORE_LABEL_COUNT);
  *base_options() = *wanted;
  return true;
}

bool worker_labels_check(const json_t *labels, struct err *err) {
  if (!json_is_array(labels) || json_array_size(labels) == 0)
    return err_set(err, ERR_USAGE, "labels must be texts, at least one");
  if (json_array_size(labels) > LIMIT_STORE_LABEL_COUNT)
    return err_set(err, ERR_USAGE, "a session asks for at most %u labels", LIMIT_STORE_LABEL_COUNT);
  JSON_EACH(labels, i, label) {
    const char *text = json_string_value(label);
    if (text == NULL || strlen(text) != json_string_length(label))
      return err_set(err, ERR_USAGE, "a label is a text without NUL");
    if (!label_check(text, err))
      return false;
  }
  return true;
}

void worker_place(struct store_log *base, const json_t *labels) {
  struct shared_log *log = (struct shared_log *)base;
  struct buf needs = {0};
  if (shared_log_of(base) == NULL || json_array_size(labels) == 0)
    return;
  buf_putc(&needs, '{');
  JSON_EACH((json_t *)labels, i, label) {
    if (json_is_string(label))
      base_put_label(&needs, "", json_string_value(label));
  }
  buf_putc(&needs, '}');
  free(log->needs);
  log->needs = buf_take(&needs);
}

json_t *worker_home(const struct store *store) {
  char host[HEARTBEAT_HOST_BYTES];
  if (!url_is_shared(store->where))
    return NULL;
  heartbeat_host(host);
  return json_pack("[s+]", "host=", host);
}

bool worker_has(const json_t *labels) {
  char host[HEARTBEAT_HOST_BYTES];
  heartbeat_host(host);
  JSON_EACH((json_t *)labels, i, label) {
    const char *text = json_string_value(label);
    bool has = text != NULL && strncmp(text, LIT("host=")) == 0 &&
               strcmp(text + strlen("host="), host) == 0;
    for (const char *const *own = base_options()->labels; text && own && *own; own++)
      has = has || strcmp(text, *own) == 0;
    if (!has)
      return false;
  }
  return true;
}

bool worker_fits(const struct store_ref *ref, struct err *err) {
  static const char sql[] = "SELECT string_agg(n, ', ') FROM segue.session s, unnest(s.needs) n"
                            " WHERE s.id = $1::uuid AND NOT n = ANY ($2::text[])";
  char id[STORE_ID_BYTES];
  buf_auto_t labels = {0};
  struct store store;
  ref->ops->of(ref, &store);
  if (!url_is_shared(store.where))
    return true;
  struct pg_base *pg = base_of_ref(ref, id, err);
  heartbeat_put_labels(&labels);
  const struct conn_arg args[] = {arg_text(id), arg_text(buf_c(&labels))};
  PGresult *answer = base_ask(pg, sql, args, ARRAY_LEN(args), err);
  bool ok = answer != NULL;
  if (ok && conn_text(answer, 0, 0)[0] != '\0')
    ok = err_set(err, ERR_USAGE,
                 "the session asks for a worker with %.300s, which this one is not: continue it "
                 "where its folder is, or give --label here too",
                 conn_text(answer, 0, 0));
  conn_free(answer);
  return ok;
}
