/* Takes up the sessions in the store. With a shared one, also claims sessions from its queue, and
 * acts on what the store reports about those claimed.
 *
 * DESIGN. With files, every unfinished session is this daemon's. A shared store keeps the queue
 * itself, and a session belongs to the worker that claimed it, until it is released or that
 * worker's lease is over. Memory holds only the waiting sessions just claimed or submitted here.
 *
 * The loop never waits for the store's server: what asks it runs in the pool and comes back with a
 * copy. Until then the loop goes on, so each of them looks anew at what memory has before it uses
 * the copy: a session that has come to life here meanwhile is newer than any of them.
 *
 * Whoever asks for the end of another worker's session writes that into the store. Its worker sees
 * it with its next renewal; if none has it any more, it is opened here and ended; and after
 * LIMIT_STORE_ANSWER_MS the client is told that nobody has answered. */
#include "base/limits.h"
#include "base/log.h"
#include "daemon/api_status.h"
#include "daemon/sessions_internal.h"
#include "os/loop.h"
#include "os/orphans.h"
#include "store/index.h"
#include "store/worker.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct sessions_claim {
  uv_work_t work;
  bool asks, answered;
  bool told; /* there may be something to claim; can be set during a claim, too */
  bool more; /* the last answer did not reach the end of the queue */
  size_t places, count;
  struct store_id ids[LIMIT_START_COUNT];
  struct summary summaries[LIMIT_START_COUNT]; /* of them; all zero: opening it will say why */
};

/* Takes over what was read in the pool, for those who watch it, too. */
static void entry_set_brief(struct daemon_entry *e, struct summary *taken) {
  summary_deinit(&e->summary);
  e->summary = *taken;
  *taken = (struct summary){0};
  e->sessions->asking |= e->summary.questions != NULL;
  if (e->feed != NULL)
    feed_grow(e->feed, e->summary.bytes);
}

static void lose_list(struct sessions *ss, enum entry_list list, const char *why) {
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[list])
    if (e->session != NULL)
      host_lost(e->session, why);
}

/* Others may go on with every session held here, so nothing more is done for them: their logs are
 * fenced, and what is still written to one fails. */
static void lose_all(struct sessions *ss) {
  static const char why[] = "this worker's lease expired: others continue its sessions";
  log_warn("%s", why);
  lose_list(ss, LIST_RUNNING, why);
  lose_list(ss, LIST_QUEUE, why);
  lose_list(ss, LIST_WRITING, why);
  lose_list(ss, LIST_BROKEN, why);
}

static void shared_on_asked(struct sessions *ss, const char *id, const char *what) {
  struct err err = {0};
  struct daemon_entry *e = sessions_find(ss, id);
  /* A held session that is to be resumed is already on its way back to the queue. */
  if (e == NULL || strcmp(what, "cancel") != 0 || entry_ends(e) || !entry_is_live(e) ||
      e->summary.seq == 0)
    return;
  if (!sessions_cancel(ss, e, &err))
    log_warn("session %s cannot be cancelled: %s", id, err.text);
}

static void sessions_on_news(void *ctx, enum worker_news news, const char *id, const char *what) {
  struct sessions *ss = ctx;
  switch (news) {
  case WORKER_READY:
    ss->claim->told = true;
    sessions_soon(ss);
    break;
  case WORKER_ASKED:
    shared_on_asked(ss, id, what);
    break;
  case WORKER_SEATS:
    call_queue_seats(&ss->host->gate);
    break;
  case WORKER_LOST:
    lose_all(ss);
    break;
  case WORKER_OUTDATED:
    log_warn("the tables of the store now have version %s, which this program does not know: it "
             "lets running sessions stop, then exits. Start the newer segue",
             what);
    (void)uv_kill(uv_os_getpid(), SIGTERM); /* as if a person had sent it */
    break;
  }
}

/* Starts watching a shared store. */
static bool sessions_share(struct sessions *ss, struct err *err) {
  ss->shared = true;
  ss->claim = xcalloc(1, sizeof *ss->claim);
  ss->claim->work.data = ss;
  ss->claim->told = true;
  bool ok = worker_watch(ss->env->store, ss->host->loop, sessions_on_news, ss, err);
  (void)worker_asks_nobody(ok);
  return ok;
}

void sessions_unshare(struct sessions *ss) {
  (void)worker_asks_nobody(false);
  if (ss->shared)
    worker_unwatch(ss->env->store);
  free(ss->claim); /* no claim is under way: sessions_busy said so */
  ss->claim = NULL;
}

/* --- the queue --- */

static void claim_work(uv_work_t *work) {
  const struct sessions *ss = work->data;
  struct sessions_claim *claim = ss->claim;
  struct err err = {0};
  claim->answered = worker_claim(ss->env->store, claim->places, claim->ids, &claim->count, &err);
  for (size_t i = 0; i < claim->count; i++) {
    struct store_ref ref;
    store_ref(ss->env->store, claim->ids[i].id, &ref);
    if (!summary_read(&claim->summaries[i], &ref, &err))
      claim->summaries[i] = (struct summary){0};
  }
}

static void claim_over(uv_work_t *work, int status) {
  struct sessions *ss = work->data;
  struct sessions_claim *claim = ss->claim;
  assert(status == 0);
  claim->asks = false;
  if (!claim->answered || claim->count < claim->places)
    claim->more = false; /* the queue's end; the store says when there is more */
  for (size_t i = 0; i < claim->count; i++) {
    if (!ss->draining) /* else they are released at the end */
      sessions_take(ss, claim->ids[i].id, &claim->summaries[i]);
    summary_deinit(&claim->summaries[i]);
  }
  if (claim->count > 0 || claim->told)
    sessions_soon(ss);
}

/* Asks only for what there may be: after an answer that reached the queue's end, nothing until the
 * store says that there is more (WORKER_READY); after one that did not, when a place is free. */
void sessions_claim(struct sessions *ss) {
  struct sessions_claim *claim = ss->claim;
  size_t busy = sessions_running(ss) + sessions_queued(ss);
  size_t places = busy < ss->max_running ? ss->max_running - busy : 0;
  claim->more = claim->more || claim->told;
  if (ss->draining || claim->asks || !(claim->told || (claim->more && places > 0)))
    return;
  claim->told = false; /* with no free place this only gives back what a lost answer held */
  claim->places = places < LIMIT_START_COUNT ? places : LIMIT_START_COUNT;
  claim->asks = true;
  loop_work(ss->host->loop, &claim->work, claim_work, claim_over);
}

bool sessions_claims(const struct sessions *ss) {
  return ss->claim != NULL && ss->claim->asks;
}

/* --- opening --- */

/* The log has more than is known here, because another worker has advanced the session. */
struct catching_up {
  uv_work_t work;
  struct daemon_entry *e;
  struct store_ref ref;
  struct summary summary;
  bool read;
};

static void catching_work(uv_work_t *work) {
  struct catching_up *c = work->data;
  struct err ignored;
  c->read = summary_read(&c->summary, &c->ref, &ignored);
}

static void catching_over(uv_work_t *work, int status) {
  struct catching_up *c = work->data;
  struct daemon_entry *e = c->e;
  struct err none = {0};
  assert(status == 0);
  if (c->read)
    entry_set_brief(e, &c->summary);
  free(c);
  entry_opened(e, &none);
}

/* The session is this worker's from here on, so what its log has more than memory knows is read
 * once and stays true. */
static void shared_on_opened(void *ctx, struct session *s, const struct err *err) {
  struct daemon_entry *e = ctx;
  struct err why = *err;
  e->session = s;
  if (s == NULL || session_core(s)->seq == e->summary.seq) {
    entry_opened(e, &why);
    return;
  }
  struct catching_up *c = xcalloc(1, sizeof *c);
  c->e = e;
  entry_ref(e, &c->ref);
  c->work.data = c;
  loop_work(e->sessions->host->loop, &c->work, catching_work, catching_over);
}

void entry_open_later(struct daemon_entry *e) {
  struct store_ref ref;
  struct host *host = e->sessions->host;
  assert(e->session == NULL);
  if (e->owner == OWNER_OTHER)
    e->owner = OWNER_ANY;
  launch_deinit(&e->launch);
  e->launch.generation = generation_ref(e->sessions->env->generation);
  host->registry = e->launch.generation->registry;
  entry_ref(e, &ref);
  entry_set_state(e, ENTRY_OPENING);
  host_open_later(host, &ref, &sessions_watcher, e, shared_on_opened);
}

/* --- sessions that others run --- */

struct other {
  char id[STORE_ID_BYTES];
  bool asks;  /* its worker has yet to be asked to end it */
  bool known; /* the brief was read */
  bool owned;
  struct summary summary;
};

struct looking_others {
  uv_work_t work;
  struct sessions *ss;
  size_t count;
  struct other *all;
};

static void look_at_other(const struct store *store, struct other *o) {
  struct store_ref ref;
  struct err err;
  char state[16];
  store_ref(store, o->id, &ref);
  if (o->asks && !worker_ask(&ref, "cancel", state, &err))
    log_warn("%s", err.text);
  o->owned = store_is_owned(&ref); /* before reading: the last records precede the release */
  o->known = summary_read(&o->summary, &ref, &err);
}

static void looking_work(uv_work_t *work) {
  struct looking_others *l = work->data;
  for (size_t i = 0; i < l->count; i++)
    look_at_other(l->ss->env->store, &l->all[i]);
}

static const char NOT_YET[] = "asked; its worker has not answered yet";

/* Checks on a session that was asked to end: it has ended, or nobody owns it, or time is up. */
static void asked_look(struct daemon_entry *e, bool owned) {
  struct sessions *ss = e->sessions;
  bool over = summary_is_over(&e->summary), late = uv_now(ss->host->loop) >= e->asked_until_ms;
  if (!over && owned && !late)
    return;
  e->asked_until_ms = 0;
  if (!over && !owned && !late) {
    entry_open_later(e);
    return;
  }
  entry_forget_wish(e, WISH_CANCEL);
  entry_set_trouble(e, over ? NULL : NOT_YET);
  ss->changed(ss->ctx, e);
}

/* Nothing more comes to those who watch it once nobody has it, or may take it. */
static void other_looked_at(struct sessions *ss, struct other *o) {
  struct daemon_entry *e = sessions_find(ss, o->id);
  bool ours = e == NULL || e->session != NULL || e->state == ENTRY_OPENING;
  if (ours || !o->known)
    return;
  entry_set_brief(e, &o->summary);
  bool waits = entry_waits(e) || summary_goes_on(&e->summary);
  entry_set_owner(e, waits ? OWNER_ANY : OWNER_NONE);
  if (o->owned)
    entry_set_owner(e, OWNER_OTHER);
  else if (e->feed != NULL && !waits)
    feed_over(e->feed);
  if (e->asked_until_ms != 0)
    asked_look(e, o->owned);
}

static void looking_over(uv_work_t *work, int status) {
  struct looking_others *l = work->data;
  struct sessions *ss = l->ss;
  assert(status == 0);
  ss->looking = NULL;
  for (size_t i = 0; i < l->count; i++) {
    other_looked_at(ss, &l->all[i]);
    if (l->all[i].known)
      summary_deinit(&l->all[i].summary);
  }
  free(l->all);
  free(l);
}

static bool looks_at(const struct daemon_entry *e) {
  bool watched = e->feed != NULL && e->owner != OWNER_NONE;
  return e->session == NULL && (watched || e->asked_until_ms != 0);
}

bool sessions_look_at_others(struct sessions *ss) {
  static const enum entry_list watched[] = {LIST_OVER, LIST_QUEUE};
  size_t count = 0;
  if (ss->looking != NULL)
    return true;
  for (size_t i = 0; i < ARRAY_LEN(watched); i++)
    LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[watched[i]])
      count += looks_at(e);
  if (count == 0)
    return false;
  struct looking_others *l = xcalloc(1, sizeof *l);
  l->ss = ss;
  l->all = xcalloc(count, sizeof *l->all);
  for (size_t i = 0; i < ARRAY_LEN(watched); i++)
    LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[watched[i]])
      if (looks_at(e)) {
        l->all[l->count].asks = e->asked_until_ms != 0;
        memcpy(l->all[l->count++].id, e->id, STORE_ID_BYTES);
      }
  ss->looking = l;
  l->work.data = l;
  loop_work(ss->host->loop, &l->work, looking_work, looking_over);
  return true;
}

void entry_ask_cancel(struct daemon_entry *e) {
  struct sessions *ss = e->sessions;
  e->asked_until_ms = uv_now(ss->host->loop) + LIMIT_STORE_ANSWER_MS;
  uv_timer_start(&ss->looks, sessions_on_looks, LIMIT_API_FOREIGN_MS, LIMIT_API_FOREIGN_MS);
  (void)sessions_look_at_others(ss);
}

/* --- deadlines --- */

struct due {
  uv_work_t work;
  struct sessions *ss;
  char id[STORE_ID_BYTES];
  struct status_snapshot now;
  bool read;
};

static void due_work(uv_work_t *work) {
  struct due *d = work->data;
  struct err err;
  d->read = status_snapshot_take(&d->now, d->ss->env->store, d->id, true, &err);
  if (!d->read)
    log_warn("session %s does not continue at its deadline: %s", d->id, err.text);
}

static void due_over(uv_work_t *work, int status) {
  struct due *d = work->data;
  struct sessions *ss = d->ss;
  assert(status == 0);
  ss->due_count--;
  if (d->read && !d->now.owned)
    entry_continue_by_default(sessions_update(ss, &d->now));
  status_snapshot_deinit(&d->now);
  free(d);
}

void sessions_due_later(struct sessions *ss, const char *id) {
  struct due *d = xcalloc(1, sizeof *d);
  d->ss = ss;
  memcpy(d->id, id, STORE_ID_BYTES);
  d->work.data = d;
  ss->due_count++;
  loop_work(ss->host->loop, &d->work, due_work, due_over);
}

/* --- taking up what is in the store, shared or not --- */

struct recovery {
  struct sessions *ss;
  struct heads heads;
  bool loaded; /* the ledger, which is slow: read only when the index does not know */
};

static const struct heads *recovery_heads(struct recovery *r) {
  struct err err;
  if (!r->loaded && !heads_load(&r->heads, r->ss->env->store, NULL, &err))
    log_warn("%s", err.text);
  r->loaded = true;
  return &r->heads;
}

static void recover_one(struct recovery *r, const char *id, const struct index_row *row) {
  struct store_ref ref;
  struct summary summary;
  struct err ignored;
  bool sealed = row != NULL && (row->flags & (INDEX_SEALED | INDEX_OVER)) != INDEX_OVER;
  bool asks = row != NULL && (row->flags & INDEX_ASKS);
  if (sealed && (row->flags & INDEX_OVER) && !(row->flags & INDEX_GOES_ON) && !asks)
    return;
  if (!sealed && heads_ended(recovery_heads(r), id))
    return;
  store_ref(r->ss->env->store, id, &ref);
  if (!summary_read(&summary, &ref, &ignored))
    return;
  if (!sealed)
    ledger_writer_add_late(&r->ss->host->sealer, recovery_heads(r), &summary, false);
  deadlines_note(&r->ss->deadlines, id, &summary);
  if (!summary_goes_on(&summary)) {
    summary_deinit(&summary);
    return;
  }
  if (strcmp(summary.status, "running") == 0 && summary.seq > 1 && !store_is_owned(&ref)) {
    /* The session may wait long for its turn; processes that outlived the last daemon and its
     * shims must not. */
    size_t n = orphan_end(id);
    if (n > 0)
      log_warn("session %s: %zu process%s of its last run %s ended", id, n, n == 1 ? "" : "es",
               n == 1 ? "was" : "were");
  }
  entry_new(r->ss, id, ENTRY_QUEUED)->summary = summary;
}

long sessions_recover(struct sessions *ss, struct err *err) {
  struct store_id *ids;
  size_t count;
  const struct store *store = ss->env->store;
  struct recovery r = {.ss = ss};
  if (store_is_address(store->where))
    return sessions_share(ss, err) ? 0 : -1;
  if (!store_list(store, &ids, &count, err))
    return -1;
  if (count > 0)
    session_ids_after(ss->host, ids[0].id);
  struct index *x = index_open(store, NULL, INDEX_NOTHING);
  for (size_t i = count; i-- > 0;) /* the oldest first */
    recover_one(&r, ids[i].id, index_row(x, ids[i].id));
  index_close(x);
  free(ids);
  heads_deinit(&r.heads);
  sessions_soon(ss);
  return (long)ss->lists[LIST_QUEUE].count;
}

/* The lease can be lost, and the same session claimed again under the next one, before the first
 * life of it here is through: that one is freed first. */
void sessions_take(struct sessions *ss, const char *id, struct summary *taken) {
  struct daemon_entry *e = sessions_find(ss, id);
  bool here = e != NULL && !entry_waits(e) && (e->state != ENTRY_OVER || e->session != NULL);
  if (here) {
    e->owner = OWNER_CLAIMED; /* what was lost with the lease is freed first: sessions_free_dead */
    return;
  }
  if (e == NULL)
    e = entry_new(ss, id, ENTRY_QUEUED);
  if (taken->seq > 0) /* else what is known is brought up to date when it is opened */
    entry_set_brief(e, taken);
  if (e->owner == OWNER_CLAIMED)
    e->owner = OWNER_ANY;
  e->not_before_ms = 0;
  if (entry_waits(e))
    return;
  entry_forget_wish(e, WISH_CANCEL);
  entry_set_trouble(e, NULL);
  if (e->feed != NULL)
    feed_again(e->feed);
  entry_set_state(e, ENTRY_QUEUED);
}

struct daemon_entry *sessions_adopt(struct sessions *ss, const char *id, struct err *err) {
  struct summary summary;
  struct store_ref ref;
  store_ref(ss->env->store, id, &ref);
  if (!summary_read(&summary, &ref, err))
    return NULL;
  struct daemon_entry *e = entry_new(ss, id, ENTRY_OVER);
  e->summary = summary;
  ss->asking = ss->asking || summary.questions != NULL;
  sessions_soon(ss); /* there may be too many now */
  return e;
}

struct daemon_entry *sessions_update(struct sessions *ss, struct status_snapshot *s) {
  struct daemon_entry *e = sessions_find(ss, s->id);
  bool here = e != NULL && (e->session != NULL || (e->state != ENTRY_OVER && !entry_waits(e)));
  if (here)
    return e;
  if (e == NULL)
    e = entry_new(ss, s->id, ENTRY_OVER);
  entry_set_brief(e, &s->summary);
  if (s->owned)
    entry_set_owner(e, OWNER_OTHER);
  else if (e->owner == OWNER_OTHER)
    e->owner = OWNER_ANY;
  sessions_soon(ss); /* there may be too many now */
  return e;
}
