/* Keeps the daemon's sessions: the queue, what clients ask of them, their turns, and logs that
 * failed; recovers them from a store, and knows of the other workers of a shared one.
 *
 * DESIGN, the queue. A place becomes free, a session is submitted, a pause is over: each only sets
 * a timer of no duration, so that one look at the queue serves all that happened in one turn of the
 * loop, and nothing is freed or started from within a call of the host.
 *
 * DESIGN, logs that failed. After a failed write or sync nobody knows how much of the batch is
 * durable. So a broken session keeps its log, and the lock with it, for a pause. Then the log is
 * cut back to the part that is certain. Only when that has worked is it closed and taken over as
 * after a crash: read from the start, its chain checked, synced. The first thing it appends is its
 * session_resume, so no call is repeated while the disk still fails. Pauses grow, and a session
 * that makes no progress is left alone in the end.
 *
 * DESIGN, shared stores. With files, every unfinished session is this daemon's. A shared store
 * keeps the queue itself, and a session belongs to the worker that claimed it, until it is released
 * or that worker's lease is over. Memory holds only the waiting sessions just claimed or submitted
 * here.
 *
 * The loop never waits for the store's server: what asks it runs in the pool and comes back with a
 * copy. Until then the loop goes on, so each of them looks anew at what memory has before it uses
 * the copy: a session that has come to life here meanwhile is newer than any of them.
 *
 * Whoever asks for the end of another worker's session writes that into the store. Its worker sees
 * it with its next renewal; if none has it any more, it is opened here and ended; and after
 * LIMIT_STORE_ANSWER_MS the client is told that nobody has answered. */
#include "daemon/sessions.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/answer.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/orphans.h"
#include "store/index.h"
#include "store/worker.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sessions_claim {
  bool asks, answered;
  bool told; /* there may be something to claim; can be set during a claim, too */
  bool more; /* the last answer did not reach the end of the queue */
  size_t places, count;
  enum predecessor stands[LIMIT_START_COUNT]; /* of those that are to begin after others */
  struct buf why[LIMIT_START_COUNT];
  struct store_id ids[LIMIT_START_COUNT];
  struct summary summaries[LIMIT_START_COUNT]; /* of them; all zero: opening it will say why */
};

static void sessions_on_soon(uv_timer_t *timer);
static void entry_open_later(struct daemon_entry *e);
static void entry_opened(struct daemon_entry *e, struct err *err);

void sessions_soon(struct sessions *ss) {
  if (!uv_is_closing((uv_handle_t *)&ss->soon))
    uv_timer_start(&ss->soon, sessions_on_soon, 0, 0);
}

/* --- watching --- */

static void on_emptied(void *ctx) {
  struct daemon_entry *e = ctx;
  feed_free(e->feed);
  e->feed = NULL;
}

/* Takes over what was read in the pool, for those who watch it, too. */
static void entry_set_brief(struct daemon_entry *e, struct summary *taken) {
  summary_deinit(&e->summary);
  e->summary = *taken;
  *taken = (struct summary){0};
  entry_set_key(e, e->summary.unique);
  e->sessions->asking |= e->summary.questions != NULL;
  if (e->feed != NULL)
    feed_grow(e->feed, e->summary.bytes);
}

/* Reads its log again, for watchers too. False: it cannot be read. */
static bool entry_look(struct daemon_entry *e, struct err *err) {
  struct store_ref ref;
  struct summary summary;
  entry_ref(e, &ref);
  if (!summary_read(&summary, &ref, err))
    return false;
  entry_set_brief(e, &summary);
  return true;
}

/* Another program may append to the log. Once its owner is gone or its session over, nothing more
 * will come, unless the session waits here. */
static void look_for_others(struct daemon_entry *e) {
  struct store_ref ref;
  struct err ignored;
  entry_ref(e, &ref);
  bool was = e->owner == OWNER_OTHER, over = e->state == ENTRY_OVER;
  bool is = store_is_owned(&ref); /* before reading: the last records precede the release */
  e->owner = is ? OWNER_OTHER : OWNER_NONE;
  if (is || was || over)
    (void)entry_look(e, &ignored);
  if (over && !is)
    feed_over(e->feed);
}

static bool entry_look_at_all(struct list *list) {
  bool any = false;
  LIST_EACH(struct daemon_entry, e, in_state, list) {
    bool waits = entry_waits(e);
    if (e->feed == NULL || (e->owner != OWNER_OTHER && !waits))
      continue;
    if (e->session == NULL)
      look_for_others(e);
    any = any || e->owner == OWNER_OTHER || waits;
  }
  return any;
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

static void looking_work(void *ctx) {
  struct looking_others *l = ctx;
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
  bool waits = entry_waits(e) || summary_goes_on(&e->summary, ss->shared);
  entry_set_owner(e, waits ? OWNER_ANY : OWNER_NONE);
  if (o->owned)
    entry_set_owner(e, OWNER_OTHER);
  else if (e->feed != NULL && !waits)
    feed_over(e->feed);
  if (e->asked_until_ms != 0)
    asked_look(e, o->owned);
}

static void looking_over(void *ctx) {
  struct looking_others *l = ctx;
  struct sessions *ss = l->ss;
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

/* Looks, in the pool, at other workers' sessions that are watched here or were asked to end. True:
 * there are any. */
static bool sessions_look_at_others(struct sessions *ss) {
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
  loop_do(ss->host->loop, looking_work, looking_over, l);
  return true;
}

static void sessions_on_looks(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  if (ss->shared) {
    if (!sessions_look_at_others(ss))
      uv_timer_stop(&ss->looks);
    return;
  }
  bool over = entry_look_at_all(&ss->lists[LIST_OVER]),
       waiting = entry_look_at_all(&ss->lists[LIST_QUEUE]);
  if (!over && !waiting)
    uv_timer_stop(&ss->looks);
}

void entry_watch(struct daemon_entry *e, struct server_request *r, uint64_t last_seq) {
  struct sessions *ss = e->sessions;
  if (e->feed == NULL) {
    struct store_ref ref;
    entry_ref(e, &ref);
    e->feed = feed_new(ss->events, &ref, on_emptied, e);
    feed_grow(e->feed, e->session ? session_log_bytes(e->session) : e->summary.bytes);
    bool over = e->state == ENTRY_OVER; /* its session may still be about to be freed */
    if (!ss->shared && (over || entry_is_elsewhere(e)))
      look_for_others(e);
    else if (ss->shared && e->session != NULL && !over)
      entry_set_owner(e, OWNER_NONE);
    else if (ss->shared && e->owner == OWNER_NONE)
      e->owner = OWNER_ANY; /* looked at in the pool */
    if (e->owner != OWNER_NONE || entry_waits(e))
      uv_timer_start(&ss->looks, sessions_on_looks, LIMIT_API_FOREIGN_MS, LIMIT_API_FOREIGN_MS);
  }
  feed_watch(e->feed, r, last_seq);
}

/* It is another worker's: that one is asked to end it. */
static void entry_ask_cancel(struct daemon_entry *e) {
  struct sessions *ss = e->sessions;
  e->asked_until_ms = uv_now(ss->host->loop) + LIMIT_STORE_ANSWER_MS;
  uv_timer_start(&ss->looks, sessions_on_looks, LIMIT_API_FOREIGN_MS, LIMIT_API_FOREIGN_MS);
  (void)sessions_look_at_others(ss);
}

static void sessions_on_looks_after(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  if (!sessions_look_after(ss))
    uv_timer_stop(timer);
  sessions_soon(ss);
}

/* Is it to begin after others? */
static bool entry_is_early(struct daemon_entry *e) {
  uv_timer_t *looks = &e->sessions->looks_after;
  enum predecessor stands = entry_look_after(e);
  if (stands == PREDECESSOR_PENDING && !uv_is_active((uv_handle_t *)looks))
    uv_timer_start(looks, sessions_on_looks_after, LIMIT_AFTER_LOOK_MS, LIMIT_AFTER_LOOK_MS);
  return stands != PREDECESSOR_DONE;
}

/* --- reports from the host --- */

/* Marks its session to be freed from the loop. */
static void let_go(struct daemon_entry *e) {
  e->next_dead = e->sessions->dead;
  e->sessions->dead = e;
}

/* The session was made here, but needs what only other workers have. */
static bool entry_is_for_others(const struct daemon_entry *e) {
  const json_t *on = json_object_get(session_core(e->session)->config, "on");
  bool waits = summary_waits(&e->summary); /* the store says when it may begin */
  return e->sessions->shared && (waits || (on != NULL && !worker_has(on)));
}

/* Its first record, its resume or its answer is on disk: what waited for it is answered. */
static void entry_written(struct daemon_entry *e, enum entry_state state) {
  entry_set_state(e, state);
  if (state != ENTRY_HELD)
    let_go(e);
  sessions_soon(e->sessions);
  e->sessions->changed(e->sessions->ctx, e);
}

static void sessions_on_record(void *ctx, const struct record *record, struct str line) {
  struct daemon_entry *e = ctx;
  struct sessions *ss = e->sessions;
  bool ran = strcmp(e->summary.status, "running") == 0;
  (void)line;
  summary_feed(&e->summary, record);
  e->heard_ms = uv_now(e->sessions->host->loop);
  if (ss->news != NULL)
    ss->news(ss->ctx, e, record);
  if (ss->recorded != NULL)
    ss->recorded(ss->observer, e, record);
  e->summary.bytes = session_log_bytes(e->session);
  if (e->feed != NULL)
    feed_grow(e->feed, e->summary.bytes);
  switch (e->state) {
  case ENTRY_STARTING:
    if (entry_is_for_others(e))
      entry_written(e, ENTRY_OVER);
    else
      entry_written(e, entry_is_early(e) ? ENTRY_AFTER : ENTRY_HELD);
    break;
  case ENTRY_RESUMING:
    entry_written(e, entry_is_for_others(e) ? ENTRY_OVER : ENTRY_QUEUED);
    break;
  case ENTRY_ANSWERING:
    if (record->type == RECORD_STEER) {
      entry_written(e, e->back);
      break;
    }
    entry_forget_wish(e, WISH_RESUME);
    entry_written(e, summary_goes_on(&e->summary, ss->shared) ? ENTRY_QUEUED : ENTRY_OVER);
    break;
  case ENTRY_HELD:
  case ENTRY_QUEUED:
  case ENTRY_OPENING:
  case ENTRY_RUNNING:
  case ENTRY_BROKEN:
  case ENTRY_OVER:
  case ENTRY_FAILED:
  case ENTRY_AFTER:
    if ((ran && strcmp(e->summary.status, "running") != 0) || record->type == RECORD_ANSWER ||
        record->type == RECORD_STEER)
      ss->changed(ss->ctx, e);
    break;
  }
}

static void sessions_on_trouble(void *ctx, const char *message) {
  struct daemon_entry *e = ctx;
  log_warn("session %s: %s", e->id, message);
  if (entry_ends(e) && e->summary.seq > 0 && e->session != NULL && session_paused(e->session))
    e->sessions->changed(e->sessions->ctx, e);
}

static void sessions_on_delta(void *ctx, long turn, long call, bool thinking, struct str text) {
  struct daemon_entry *e = ctx;
  e->heard_ms = uv_now(e->sessions->host->loop);
  if (e->feed != NULL)
    feed_delta(e->feed, turn, call, thinking, text);
  if (e->sessions->said != NULL)
    e->sessions->said(e->sessions->observer, e, turn, call, thinking, text);
}

/* It is over here; the loop frees its session. */
static void entry_retire(struct daemon_entry *e) {
  struct sessions *ss = e->sessions;
  ss->pace.freed += e->state == ENTRY_RUNNING;
  entry_set_state(e, e->state == ENTRY_STARTING ? ENTRY_FAILED : ENTRY_OVER);
  entry_forget_wish(e, WISH_DEADLINE);
  deadlines_note(&ss->deadlines, e->id, &e->summary);
  let_go(e);
  if (e->feed != NULL)
    feed_over(e->feed);
  ss->changed(ss->ctx, e);
  sessions_soon(ss);
}

/* A person answered while the session's stop was being written: it goes on. */
static bool entry_was_answered(struct daemon_entry *e) {
  struct sessions *ss = e->sessions;
  if (e->state != ENTRY_RUNNING || ss->draining || !e->summary.answered ||
      !summary_goes_on(&e->summary, ss->shared))
    return false;
  entry_set_state(e, ENTRY_QUEUED);
  let_go(e);
  ss->changed(ss->ctx, e);
  sessions_soon(ss);
  return true;
}

static void sessions_on_finished(void *ctx, struct session *s) {
  struct daemon_entry *e = ctx;
  const struct err *broken = session_broken(s);
  if (e->state == ENTRY_RESUMING || e->state == ENTRY_ANSWERING) /* it was not written */
    entry_forget_wish(e, WISH_RESUME);
  if (broken != NULL) {
    entry_set_trouble(e, broken->text);
    log_warn("session %s: %s", e->id, broken->text);
    if (entry_mend_later(e, broken))
      return;
  }
  if (broken != NULL || !entry_was_answered(e))
    entry_retire(e);
}

static const struct watcher sessions_watcher = {.record = sessions_on_record,
                                                .trouble = sessions_on_trouble,
                                                .delta = sessions_on_delta,
                                                .finished = sessions_on_finished};

/* --- its session, in memory or not --- */

static bool sessions_choose(void *ctx, const json_t *config, struct session_setup *setup,
                            struct err *err) {
  struct daemon_entry *e = ctx;
  (void)config;
  (void)err;
  *setup = e->launch.setup;
  return true;
}

/* Reads its log back into e->session; NULL with err: the log cannot be used. False: no descriptor
 * is left, or it is in other hands; try again later. */
static bool entry_reopen(struct daemon_entry *e, struct err *err) {
  struct store_ref ref;
  struct host *host = e->sessions->host;
  launch_deinit(&e->launch);
  e->launch.generation = generation_ref(e->sessions->env->generation);
  entry_ref(e, &ref);
  host->registry = e->launch.generation->registry;
  e->session = host_open(host, &ref, &sessions_watcher, e, err);
  if (e->session != NULL || err->code == ERR_LOCKED)
    return e->session != NULL;
  int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd >= 0)
    close(fd);
  return fd >= 0; /* else no descriptor was left */
}

/* Lets go of its session, and of its log with that. */
static void entry_drop_session(struct daemon_entry *e) {
  if (e->sessions->recorded != NULL)
    e->sessions->recorded(e->sessions->observer, e, NULL);
  session_free(e->session);
  e->session = NULL;
  launch_deinit(&e->launch);
}

/* It was claimed from the queue. taken: how it stood then, or all zero; emptied. The lease can be
 * lost, and the same session claimed again under the next one, before the first life of it here is
 * through: that one is freed first. */
static void sessions_take(struct sessions *ss, const char *id, struct summary *taken) {
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

static void sessions_free_dead(struct sessions *ss) {
  while (ss->dead) {
    struct daemon_entry *e = ss->dead;
    ss->dead = e->next_dead;
    e->next_dead = NULL;
    struct store_ref ref;
    entry_ref(e, &ref);
    entry_drop_session(e);
    if (e->state == ENTRY_FAILED)
      store_remove(&ref);
    if (e->summary.seq == 0 && e->feed == NULL)
      entry_free(e);
    else if (e->owner == OWNER_CLAIMED && e->state == ENTRY_OVER)
      sessions_take(ss, e->id, &(struct summary){0});
  }
}

/* Settles what was said for a reopened session, with the present configuration. */
static bool entry_settle(const struct daemon_entry *e, struct resume_options *st, struct err *err) {
  const struct core *core = session_core(e->session);
  const struct generation *now = e->launch.generation;
  bool has_scenario = json_object_get(st->changed, "scenario") != NULL ||
                      json_object_get(core->config, "scenario") != NULL;
  return resume_options_settle(st, core, &now->user, now->registry, has_scenario, err);
}

/* Its log is not broken. why NULL: by request. */
static bool entry_cancel_now(struct daemon_entry *e, const char *why, struct err *err) {
  char asked[80];
  if (e->session == NULL) {
    if (!entry_reopen(e, err) || e->session == NULL)
      return false;
    if (session_core(e->session)->status == SESSION_ENDED) {
      entry_drop_session(e);
      return err_set(err, ERR_INVALID, "it has ended");
    }
  }
  if (!entry_ends(e))
    e->wish = WISH_CANCEL;
  if (e->state != ENTRY_RUNNING)
    entry_set_state(e, ENTRY_RUNNING);
  if (e->cancelled_by > 0)
    print_into(asked, sizeof asked, "cancelled by request of browser %u of the window",
               e->cancelled_by);
  else
    print_into(asked, sizeof asked, "cancelled by request");
  if (why == NULL)
    why = e->wish == WISH_LEAVE ? "its client has left" : asked;
  host_cancel(e->session, why);
  return true;
}

/* --- logs that failed --- */

static void sessions_mend_on(uv_timer_t *timer);

/* Sets the timer for when the first of them is due. */
static void mend_arm(struct sessions *ss) {
  uint64_t first = UINT64_MAX, now = uv_now(ss->host->loop);
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[LIST_BROKEN])
    first = e->not_before_ms < first ? e->not_before_ms : first;
  if (first != UINT64_MAX)
    uv_timer_start(&ss->mends, sessions_mend_on, first > now ? first - now : 0, 0);
}

bool entry_mend_later(struct daemon_entry *e, const struct err *why) {
  struct sessions *ss = e->sessions;
  bool of_the_disk = why->code == ERR_IO || why->code == ERR_FULL;
  char text[sizeof why->text + 48];
  if (e->summary.turns > e->broken_turns)
    e->breaks = 0;
  if (!of_the_disk || ss->draining || e->summary.seq == 0 || e->breaks == LIMIT_MEND_COUNT)
    return false;
  uint64_t wait_ms = (uint64_t)LIMIT_MEND_MS << e->breaks++;
  wait_ms = wait_ms < LIMIT_MEND_MAX_MS ? wait_ms : LIMIT_MEND_MAX_MS;
  e->broken_turns = e->summary.turns;
  e->not_before_ms = uv_now(ss->host->loop) + wait_ms;
  print_into(text, sizeof text, "%s: the log is opened again in %u s", why->text,
             (unsigned)(wait_ms / 1000));
  entry_set_trouble(e, text);
  if (e->state != ENTRY_BROKEN)
    entry_set_state(e, ENTRY_BROKEN);
  mend_arm(ss);
  ss->changed(ss->ctx, e);
  sessions_soon(ss); /* its place is free */
  return true;
}

void entry_mend_soon(struct daemon_entry *e) {
  e->not_before_ms = 0;
  e->breaks -= e->breaks > 0;
  mend_arm(e->sessions);
}

/* Cuts the log back to what is surely on disk and lets go of it. False: not even that works. */
static bool entry_mend_now(struct daemon_entry *e, struct err *err) {
  bool settled = e->session == NULL || session_settle(e->session, err);
  if (settled && e->session != NULL)
    entry_drop_session(e);
  return settled;
}

static void sessions_mend_on(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  uint64_t now = uv_now(ss->host->loop);
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[LIST_BROKEN]) {
    struct err err;
    if (e->not_before_ms > now)
      continue;
    bool cancels = entry_ends(e) && !ss->shared; /* in a shared store it is cancelled once opened */
    if (entry_mend_now(e, &err) && (!cancels || entry_cancel_now(e, NULL, &err))) {
      if (!cancels)
        entry_set_state(e, ENTRY_QUEUED);
      sessions_soon(ss);
    } else if (!entry_mend_later(e, &err)) {
      entry_set_trouble(e, err.text);
      log_warn("session %s does not continue: %s", e->id, err.text);
      entry_retire(e);
    }
  }
  mend_arm(ss);
}

/* --- opening in the pool --- */

/* The log has more than is known here, because another worker has advanced the session. */
struct catching_up {
  struct daemon_entry *e;
  struct store_ref ref;
  struct summary summary;
  bool read;
};

static void catching_work(void *ctx) {
  struct catching_up *c = ctx;
  struct err ignored;
  c->read = summary_read(&c->summary, &c->ref, &ignored);
}

static void catching_over(void *ctx) {
  struct catching_up *c = ctx;
  struct daemon_entry *e = c->e;
  struct err none = {0};
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
  loop_do(e->sessions->host->loop, catching_work, catching_over, c);
}

static void entry_open_later(struct daemon_entry *e) {
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

/* --- what clients ask of it --- */

bool sessions_cancel(struct sessions *ss, struct daemon_entry *e, struct err *err) {
  sessions_free_dead(ss);
  assert(e->summary.seq > 0);
  if (ss->shared && e->session == NULL && e->state != ENTRY_BROKEN) {
    if (!entry_ends(e))
      e->wish = WISH_CANCEL; /* takes effect once it is opened here, or its worker has done it */
    if (e->state != ENTRY_OPENING && e->asked_until_ms == 0)
      entry_open_later(e);
    return true;
  }
  if (e->state != ENTRY_BROKEN)
    return entry_cancel_now(e, NULL, err);
  if (!entry_ends(e))
    e->wish = WISH_CANCEL;
  entry_mend_soon(e);
  return true;
}

void sessions_leave(struct sessions *ss, struct daemon_entry *e) {
  struct err err = {0};
  if (e->state == ENTRY_OVER || e->state == ENTRY_FAILED)
    return;
  e->wish = WISH_LEAVE;
  if (e->summary.seq == 0) /* it is cancelled when its turn comes */
    return;
  if (!sessions_cancel(ss, e, &err))
    log_warn("session %s, whose client has left, is not cancelled: %s", e->id, err.text);
}

/* --- what a client asks of one that does not run here --- */

static const char CRASHED[] = "its program was killed: resume it first, as it is";
static const char NO_CHANNEL[] = "another program runs it, and it cannot be told anything there: "
                                 "stop it, steer it, and resume it. "
                                 "A daemon's sessions (segue submit) can be told while they run";
static const char ELSEWHERE[] = "another program is running it";

/* It goes on, once that is durable if it has to be written. */
static void resume_accepted(struct daemon_entry *e) {
  e->wish = WISH_RESUME;
  entry_set_owner(e, OWNER_NONE);
  e->breaks = 0;
  e->not_before_ms = 0;
  entry_set_trouble(e, NULL);
  if (e->feed != NULL)
    feed_again(e->feed);
  if (e->state == ENTRY_OVER)
    entry_set_state(e, ENTRY_QUEUED);
  sessions_soon(e->sessions);
}

/* A restarted daemon would leave the session alone, because a user stopped it. So the log says that
 * it goes on before the answer leaves. */
static bool resume_opened(struct daemon_entry *e, struct resume_options *st, struct err *err) {
  const struct core *core = session_core(e->session);
  bool stopped = core->status == SESSION_STOPPED;
  if (!stopped && !core_waits(core) && resume_options_says(st))
    return err_set(err, ERR_INVALID, CRASHED);
  if (!stopped && !core_waits(core)) /* it was advanced just now */
    return err_set(err, ERR_LOCKED, ELSEWHERE);
  if (!entry_settle(e, st, err))
    return false;
  entry_set_state(e, ENTRY_RESUMING);
  host_accept(e->session, "user", &st->core);
  resume_accepted(e);
  return true;
}

static bool answer_opened(struct daemon_entry *e, struct entry_ask *ask, struct err *err) {
  e->back = ask->from;
  entry_set_state(e, ENTRY_ANSWERING);
  return host_reply(e->session, &ask->said.core, &ask->question, err);
}

/* Its log is read back. */
static bool ask_opened(struct daemon_entry *e, struct entry_ask *ask, struct err *err) {
  bool ok = ask->answers ? answer_opened(e, ask, err) : resume_opened(e, &ask->steer, err);
  if (ok)
    return true;
  if (e->state != ask->from)
    entry_set_state(e, ask->from);
  entry_drop_session(e);
  return false;
}

/* It was opened for what a client asked (e->ask). */
static void entry_opened_for(struct daemon_entry *e, const struct err *err) {
  struct sessions *ss = e->sessions;
  struct entry_ask *ask = e->ask;
  struct err why = *err;
  bool ok = false, ends = ss->draining || entry_ends(e);
  e->ask = NULL;
  if (e->session != NULL && ss->draining)
    err_set(&why, ERR_LIMIT, "the daemon is stopping: it takes no more sessions");
  else if (e->session != NULL && ends)
    err_set(&why, ERR_LOCKED, "it is being cancelled");
  else if (e->session != NULL)
    ok = ask_opened(e, ask, &why);
  else if (!ends)
    entry_set_state(e, ask->from);
  ask->done(ask, e, ok ? NULL : &why);
  if (ends)
    entry_opened(e, &why);
  else if (!ok)
    ss->changed(ss->ctx, e);
  sessions_soon(ss);
}

/* Opens the log for it: a shared one later. */
static void ask_open(struct daemon_entry *e, struct entry_ask *ask) {
  struct err err = {0};
  ask->from = e->state != ENTRY_AFTER ? e->state : ENTRY_QUEUED; /* looked at anew */
  if (e->sessions->shared) {
    e->ask = ask;
    entry_open_later(e);
    return;
  }
  bool ok = entry_reopen(e, &err) && e->session != NULL && ask_opened(e, ask, &err);
  ask->done(ask, e, ok ? NULL : &err);
}

/* Another program may have it, or have advanced it. */
static bool ask_look(struct daemon_entry *e, const char *owned, struct err *err) {
  struct store_ref ref;
  bool shared = e->sessions->shared;
  entry_ref(e, &ref);
  if (shared ? e->owner == OWNER_OTHER : store_is_owned(&ref))
    return err_set(err, ERR_LOCKED, "%s", owned);
  return shared || entry_look(e, err); /* with a shared store, sessions_update did it */
}

static bool resume_check(struct daemon_entry *e, bool says, struct err *err) {
  const struct sessions *ss = e->sessions;
  if (summary_waits(&e->summary))
    return says || err_set(err, ERR_INVALID,
                           "it is to begin after other sessions: segue resume "
                           "--now begins it without them");
  if (e->state == ENTRY_AFTER) /* it was advanced elsewhere */
    entry_set_state(e, ENTRY_QUEUED);
  bool kept = summary_goes_on(&e->summary, ss->shared);
  if (e->state == ENTRY_QUEUED && kept)
    return !says || err_set(err, ERR_INVALID, CRASHED);
  if (e->state == ENTRY_QUEUED) /* nothing is left to wait for */
    entry_set_state(e, ENTRY_OVER);
  if (summary_is_over(&e->summary))
    return err_set(err, ERR_INVALID, "it has ended already: %s", e->summary.status);
  if (!e->summary.submitted)
    return err_set(err, ERR_INVALID, "it was started by segue run: segue resume continues it");
  return sessions_queued(ss) < LIMIT_QUEUE_COUNT ||
         err_set(err, ERR_LIMIT, "%u sessions wait already", LIMIT_QUEUE_COUNT);
}

void sessions_resume(struct sessions *ss, struct daemon_entry *e, struct entry_ask *ask) {
  struct err err = {0};
  bool says = resume_options_says(&ask->steer);
  sessions_free_dead(ss);
  assert(e->state == ENTRY_OVER || e->session == NULL);
  assert(e->state == ENTRY_OVER || e->state == ENTRY_QUEUED || e->state == ENTRY_AFTER);
  bool ok = ask_look(e, ELSEWHERE, &err) && resume_check(e, says, &err);
  bool waits = summary_waits(&e->summary);
  if (ok && e->state == ENTRY_QUEUED &&
      !waits) { /* it crashed in another program: its turn comes anyway */
    e->wish = entry_ends(e) ? e->wish : WISH_RESUME;
  } else if (ok && (says || !summary_goes_on(&e->summary, ss->shared))) {
    ask_open(e, ask);
    return;
  } else if (ok) {
    resume_accepted(e);
  }
  ask->done(ask, e, ok ? NULL : &err);
}

void sessions_answer(struct sessions *ss, struct daemon_entry *e, struct entry_ask *ask) {
  struct err err = {0};
  bool ok = false, says_steer = ask->said.core.says == SAYS_STEER;
  sessions_free_dead(ss);
  ask->question = 0;
  if (e->state == ENTRY_ANSWERING) {
    err_set(&err, ERR_LOCKED, "another answer to it is being recorded right now: look again");
  } else if (e->state == ENTRY_STARTING || e->state == ENTRY_RESUMING || e->state == ENTRY_BROKEN ||
             e->state == ENTRY_OPENING) {
    err_set(&err, ERR_LOCKED, "it is being written right now: try again");
  } else if (ss->shared && e->session != NULL &&
             session_core(e->session)->status == SESSION_STOPPED) {
    err_set(&err, ERR_LOCKED, "it is stopping right now: try again");
  } else if (e->state == ENTRY_RUNNING || e->session != NULL) {
    ok = host_reply(e->session, &ask->said.core, &ask->question, &err);
  } else if (ask_look(e, says_steer ? NO_CHANNEL : "another program is running it: answer it there",
                      &err)) {
    ask_open(e, ask);
    return;
  }
  ask->done(ask, e, ok ? NULL : &err);
}

/* --- deadlines that came --- */

/* Continues a stopped session with the default answer to its question. */
static void entry_continue_by_default(struct daemon_entry *e) {
  if (e->state != ENTRY_OVER || e->session != NULL || !summary_is_stopped(&e->summary) ||
      e->sessions->draining)
    return;
  if (!entry_ends(e))
    e->wish = WISH_DEADLINE;
  entry_set_state(e, ENTRY_QUEUED);
  sessions_soon(e->sessions);
}

struct due {
  struct sessions *ss;
  char id[STORE_ID_BYTES];
  struct status_snapshot now;
  bool read;
};

static void due_work(void *ctx) {
  struct due *d = ctx;
  struct err err;
  d->read = status_snapshot_take(&d->now, d->ss->env->store, d->id, true, &err);
  if (!d->read)
    log_warn("session %s does not continue at its deadline: %s", d->id, err.text);
}

static void due_over(void *ctx) {
  struct due *d = ctx;
  struct sessions *ss = d->ss;
  ss->due_count--;
  if (d->read && !d->now.owned)
    entry_continue_by_default(sessions_update(ss, &d->now));
  status_snapshot_deinit(&d->now);
  free(d);
}

static void sessions_on_deadline(struct sessions *ss, const char *id) {
  struct err err;
  struct daemon_entry *e = sessions_find(ss, id);
  if (ss->shared) { /* the store says how it stands */
    struct due *d = xcalloc(1, sizeof *d);
    d->ss = ss;
    memcpy(d->id, id, STORE_ID_BYTES);
    ss->due_count++;
    loop_do(ss->host->loop, due_work, due_over, d);
    return;
  }
  if (e == NULL)
    e = sessions_adopt(ss, id, &err);
  if (e != NULL)
    entry_continue_by_default(e);
}

/* --- its turn --- */

/* The reason in its session_resume. */
static const char *go_on_reason(const struct daemon_entry *e) {
  if (session_core(e->session)->answered)
    return "answer";
  if (e->wish == WISH_DEADLINE)
    return "deadline";
  return e->wish == WISH_RESUME ? "user" : "restart";
}

/* A session that a person resumed, with no record of it yet, goes on with the configuration as it
 * is now. */
static bool go_on(struct daemon_entry *e, struct err *err) {
  const struct core *core = session_core(e->session);
  AUTO(resume_options_deinit) struct resume_options st = {0};
  bool by_user = e->wish == WISH_RESUME && core->status == SESSION_STOPPED;
  if (by_user && !entry_settle(e, &st, err)) {
    session_refuse(e->session);
    return false;
  }
  json_auto_t *config = json_incref(by_user ? st.config : core->config);
  launch_deinit(&e->launch);
  return launch_again(&e->launch, e->sessions->env, config, err) &&
         host_go(e->session, sessions_choose, e, go_on_reason(e), by_user ? &st.core : NULL, err);
}

/* Returns whether its session, which was read back, works from here on. If it cannot, its trouble
 * says why; otherwise it has ended, or waits for a person. */
static bool entry_goes_on(struct daemon_entry *e, struct err *err) {
  const struct core *core = session_core(e->session);
  bool wanted = e->wish == WISH_RESUME || e->wish == WISH_DEADLINE;
  if (core->status == SESSION_ENDED ||
      (!wanted && core->status == SESSION_STOPPED && !core->answered &&
       session_stop_is_for_person(buf_view(&core->stop_reason))))
    return false;
  if (e->wish != WISH_RESUME && host_stop_poison(e->session))
    return true; /* it only writes that it stops */
  bool early = core_waits(core) && e->stands != PREDECESSOR_DONE;
  if (early && e->stands == PREDECESSOR_NEVER) {
    host_stop(e->session, "after", e->never);
    return true; /* as above */
  }
  if (early)
    err_set(err, ERR_LIMIT, "it is to begin after other sessions");
  else if (go_on(e, err))
    return true;
  entry_set_trouble(e, err->text);
  worker_pause(e->sessions->env->store, e->id, err->text);
  return false;
}

/* It does not go on: it has ended, waits for a person, or has a trouble. */
static void entry_stay(struct daemon_entry *e) {
  if (e->trouble != NULL)
    log_warn("session %s does not continue: %s", e->id, e->trouble);
  entry_set_owner(e, OWNER_NONE);
  entry_forget_wish(e, WISH_RESUME);
  entry_retire(e);
}

/* Its turn has come: its log was read back, or cannot be (err says why). False: it was to be ended,
 * and err says why it could not. */
static bool start_opened(struct daemon_entry *e, struct err *err) {
  struct err ignored;
  entry_set_trouble(e, e->session == NULL ? err->text : NULL);
  if (e->session == NULL) {
    if (!entry_mend_later(e, err))
      entry_stay(e);
    return true;
  }
  const struct core *core = session_core(e->session);
  /* In a shared store, somebody may have asked for it elsewhere. */
  const char *asked = core->status != SESSION_ENDED ? session_asked(e->session) : "";
  if (core->status != SESSION_ENDED && (entry_ends(e) || strcmp(asked, "cancel") == 0))
    return entry_cancel_now(e, NULL, err);
  if (core->status == SESSION_STOPPED && strcmp(asked, "resume") == 0)
    e->wish = WISH_RESUME;
  if (core->seq != e->summary.seq && !e->sessions->shared)
    (void)entry_look(e, &ignored);   /* another program has advanced it */
  json_decref(e->summary.questions); /* they may be anywhere in its log */
  e->summary.questions = core_questions(core);
  if (!entry_goes_on(e, err)) {
    entry_stay(e);
    return true;
  }
  entry_set_owner(e, OWNER_NONE);
  entry_forget_wish(e, WISH_RESUME);
  entry_forget_wish(e, WISH_DEADLINE);
  entry_set_state(e, ENTRY_RUNNING);
  return true;
}

/* Its log was read back for its turn, its end or its ask, or cannot be (err says why). */
static void entry_opened(struct daemon_entry *e, struct err *err) {
  struct sessions *ss = e->sessions;
  if (e->ask != NULL) {
    entry_opened_for(e, err);
  } else if (ss->draining && !entry_ends(e)) { /* another worker goes on with it */
    entry_set_state(e, ENTRY_OVER);
    let_go(e);
    sessions_soon(ss);
  } else if (e->session == NULL && err->code == ERR_LOCKED) {
    entry_set_state(e, ENTRY_OVER); /* another worker has it; the queue will say when it is free */
    if (entry_ends(e))
      entry_ask_cancel(e);
    else
      ss->changed(ss->ctx, e);
    sessions_soon(ss);
  } else if (!start_opened(e, err)) {
    entry_set_trouble(e, err->text);
    entry_retire(e);
  }
}

/* Takes over a log and continues its session, unless somebody else did so meanwhile. */
static bool start_again(struct daemon_entry *e) {
  struct err err = {0};
  if (e->sessions->shared) {
    entry_open_later(e);
    return true;
  }
  if (entry_reopen(e, &err))
    return start_opened(e, &err);
  e->not_before_ms = uv_now(e->sessions->host->loop) + LIMIT_LOCK_RETRY_MS;
  return false;
}

/* Returns false if another program has it, or no descriptor is left. */
static bool end_late(struct daemon_entry *e) {
  struct err err;
  char why[80];
  print_into(why, sizeof why, "it did not begin before %s", e->summary.not_after);
  if (entry_cancel_now(e, why, &err))
    return true;
  e->not_before_ms = uv_now(e->sessions->host->loop) + LIMIT_LOCK_RETRY_MS;
  return false;
}

static bool sessions_start(struct daemon_entry *e) {
  struct err err;
  if (e->wish == WISH_LEAVE)
    return entry_cancel_now(e, NULL, &err);
  int64_t last_ms; /* it was to begin before that */
  if (e->summary.turns == 0 && record_time_parse(e->summary.not_after, &last_ms) &&
      clock_real_ms() > last_ms)
    return end_late(e);
  bool early = !e->sessions->shared && entry_is_early(e);
  if (early && (e->stands == PREDECESSOR_PENDING || e->in_never.list != NULL)) {
    entry_set_state(e, ENTRY_AFTER);
    e->sessions->changed(e->sessions->ctx, e);
    return true;
  }
  if (e->state != ENTRY_HELD)
    return start_again(e);
  entry_set_state(e, ENTRY_RUNNING);
  launch_started(&e->launch);
  host_begin(e->session);
  if (e->launch.asks == ASKS_JUDGMENT)
    host_answer(e->session, buf_view(&e->launch.given));
  return true;
}

/* --- the queue of a shared store --- */

static void claim_work(void *ctx) {
  const struct sessions *ss = ctx;
  struct sessions_claim *claim = ss->claim;
  struct err err = {0};
  claim->answered = worker_claim(ss->env->store, claim->places, claim->ids, &claim->count, &err);
  for (size_t i = 0; i < claim->count; i++) {
    struct store_ref ref;
    store_ref(ss->env->store, claim->ids[i].id, &ref);
    if (!summary_read(&claim->summaries[i], &ref, &err))
      claim->summaries[i] = (struct summary){0};
    claim->stands[i] = predecessors_read(ss->env->store, &claim->summaries[i], &claim->why[i]);
  }
}

static void claim_over(void *ctx) {
  struct sessions *ss = ctx;
  struct sessions_claim *claim = ss->claim;
  claim->asks = false;
  if (!claim->answered || claim->count < claim->places)
    claim->more = false; /* the queue's end; the store says when there is more */
  for (size_t i = 0; i < claim->count; i++) {
    if (!ss->draining) { /* else they are released at the end */
      sessions_take(ss, claim->ids[i].id, &claim->summaries[i]);
      struct daemon_entry *e = sessions_find(ss, claim->ids[i].id);
      e->stands = claim->stands[i];
      free(e->never);
      e->never = buf_take(&claim->why[i]);
    }
    buf_deinit(&claim->why[i]);
    summary_deinit(&claim->summaries[i]);
  }
  if (claim->count > 0 || claim->told)
    sessions_soon(ss);
}

/* Asks only for what there may be: after an answer that reached the queue's end, nothing until the
 * store says that there is more (WORKER_READY); after one that did not, when a place is free. */
static void sessions_claim(struct sessions *ss) {
  struct sessions_claim *claim = ss->claim;
  size_t busy = sessions_running(ss) + sessions_queued(ss);
  size_t places = busy < ss->max_running ? ss->max_running - busy : 0;
  claim->more = claim->more || claim->told;
  if (ss->draining || claim->asks || !(claim->told || (claim->more && places > 0)))
    return;
  claim->told = false; /* with no free place this only gives back what a lost answer held */
  claim->places = places < LIMIT_START_COUNT ? places : LIMIT_START_COUNT;
  claim->asks = true;
  loop_do(ss->host->loop, claim_work, claim_over, ss);
}

/* --- the queue --- */

/* Forgets the sessions that ended longest ago, and those that wait for a person, perhaps for days.
 * Their logs stay. */
static void forget(struct sessions *ss) {
  const struct list *over = &ss->lists[LIST_OVER];
  bool asking = ss->asking;
  ss->asking = false;
  LIST_EACH(struct daemon_entry, e, in_state, over) {
    bool asks = summary_is_stopped(&e->summary) && e->summary.questions != NULL;
    if (!asking && over->count <= LIMIT_OVER_COUNT)
      break;
    if ((over->count > LIMIT_OVER_COUNT || asks) && e->session == NULL && e->feed == NULL)
      entry_free(e);
    else
      ss->asking |= asks;
  }
}

static void on_later(uv_timer_t *timer) {
  sessions_soon(timer->data);
}

/* Counts, by spans of time, the places that became free. */
static void pace_count(struct sessions *ss) {
  uint64_t now = uv_now(ss->host->loop), passed = now - ss->pace.since_ms;
  if (passed < LIMIT_QUEUE_PACE_MS)
    return;
  ss->pace.before = passed < 2 * LIMIT_QUEUE_PACE_MS ? ss->pace.freed : 0;
  ss->pace.freed = 0;
  ss->pace.since_ms = now;
}

/* Returns how many at the front of the queue begin here so soon, as things go, that giving them to
 * other workers is not worth it. */
static size_t begin_soon(const struct sessions *ss) {
  size_t most = ss->pace.freed > ss->pace.before ? ss->pace.freed : ss->pace.before;
  if (!ss->shared || ss->draining)
    return 0;
  most *= LIMIT_QUEUE_HELD_MS / LIMIT_QUEUE_PACE_MS;
  return most < LIMIT_QUEUE_HELD_COUNT ? most : LIMIT_QUEUE_HELD_COUNT;
}

/* Keeps nothing in memory for sessions that have to wait for long, except a text to be judged. */
static void release_held(struct sessions *ss) {
  pace_count(ss);
  size_t soon = begin_soon(ss);
  for (size_t i = ss->held.count; i-- > 0;) {
    struct daemon_entry *e = id_list_at(&ss->held, i);
    if (entry_position(e) <= soon)
      break;
    if (e->launch.asks == ASKS_JUDGMENT) /* its text is not in its log yet */
      continue;
    entry_drop_session(e);
    entry_set_state(e, ENTRY_QUEUED);
  }
  if (soon > 0 && sessions_queued(ss) > 0)
    uv_timer_start(&ss->later, on_later, LIMIT_QUEUE_PACE_MS, 0);
}

static void sessions_on_soon(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  unsigned started = 0;
  sessions_free_dead(ss);
  forget(ss);
  uint64_t now = uv_now(ss->host->loop);
  LIST_EACH(struct daemon_entry, e, in_never, &ss->never) {
    if (ss->draining || started++ == LIMIT_START_COUNT)
      break;
    entry_set_state(e, ENTRY_QUEUED); /* it only writes that it stops: that needs no place */
    if (!start_again(e))
      uv_timer_start(&ss->later, on_later, LIMIT_LOCK_RETRY_MS, 0);
  }
  if (ss->never.count > 0 && !ss->draining)
    sessions_soon(ss);
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[LIST_QUEUE]) {
    if (ss->draining || sessions_running(ss) >= ss->max_running)
      break;
    bool now_due = e->not_before_ms <= now;
    if (entry_waits_for_same(e)) /* the other's end leads back here */
      continue;
    if (now_due && started++ == LIMIT_START_COUNT) {
      sessions_soon(ss);
      return;
    }
    if (!now_due || !sessions_start(e))
      uv_timer_start(&ss->later, on_later, LIMIT_LOCK_RETRY_MS, 0);
  }
  release_held(ss);
  if (ss->shared)
    sessions_claim(ss);
}

/* --- submitting --- */

struct daemon_entry *sessions_submit(struct sessions *ss, struct launch *launch, struct err *err) {
  struct host *host = ss->host;
  if (sessions_queued(ss) + ss->lists[LIST_AFTER].count >= LIMIT_QUEUE_COUNT) {
    launch_deinit(launch);
    err_set(err, ERR_LIMIT, "%u sessions wait already", LIMIT_QUEUE_COUNT);
    return NULL;
  }
  struct daemon_entry *e = entry_make(ss, ENTRY_STARTING);
  e->launch = *launch;
  *launch = (struct launch){0};
  struct launch_about *about = e->launch.about;
  const struct core_parent *parent = about ? fork_parent(&about->fork) : NULL;
  const struct session_params params = {.setup = e->launch.setup,
                                        .workflow = e->launch.workflow,
                                        .workflow_path = e->launch.workflow_path,
                                        .task = buf_view(&e->launch.task),
                                        .task_blob = e->launch.task_blob,
                                        .config = e->launch.config,
                                        .facets = e->launch.facets,
                                        .parent = parent,
                                        .hold = true};
  host->registry = e->launch.generation->registry;
  e->session = host_start(host, &params, &sessions_watcher, e, err);
  if (e->session == NULL) {
    entry_free(e);
    return NULL;
  }
  entry_add(e, session_core(e->session)->session);
  entry_set_key(e, json_string_value(json_object_get(e->launch.config, "unique")));
  return e;
}

/* --- what a shared store reports --- */

/* Others may go on with every session held here, so nothing more is done for them: their logs are
 * fenced, and what is still written to one fails. */
static void lose_all(struct sessions *ss) {
  static const char why[] = "this worker's lease expired: others continue its sessions";
  static const enum entry_list losing[] = {LIST_RUNNING, LIST_QUEUE, LIST_WRITING, LIST_BROKEN};
  log_warn("%s", why);
  for (size_t i = 0; i < ARRAY_LEN(losing); i++)
    LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[losing[i]])
      if (e->session != NULL)
        host_lost(e->session, why);
}

static void shared_on_asked(struct sessions *ss, const char *id, const char *what) {
  struct err err = {0};
  struct daemon_entry *e = sessions_find(ss, id);
  if (e != NULL && e->state == ENTRY_RUNNING && strcmp(what, "steer") == 0)
    host_hear(e->session);
  if (e != NULL && e->state == ENTRY_RUNNING && strcmp(what, "hurry") == 0 &&
      summary_waits_for_login(&e->summary))
    call_queue_hurry(&ss->host->gate, str_from(e->summary.wait->provider));
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
  if (!summary_goes_on(&summary, r->ss->shared)) {
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
  struct daemon_entry *e = entry_new(r->ss, id, ENTRY_QUEUED);
  entry_set_brief(e, &summary);
  if (entry_is_early(e))
    entry_set_state(e, ENTRY_AFTER);
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

struct daemon_entry *sessions_adopt(struct sessions *ss, const char *id, struct err *err) {
  struct summary summary;
  struct store_ref ref;
  store_ref(ss->env->store, id, &ref);
  if (!summary_read(&summary, &ref, err))
    return NULL;
  struct daemon_entry *e = entry_new(ss, id, ENTRY_OVER);
  entry_set_brief(e, &summary);
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

/* --- beginning and ending --- */

size_t sessions_busy(const struct sessions *ss) {
  return ss->host->session_count + (ss->claim != NULL && ss->claim->asks) + (ss->looking != NULL) +
         ss->due_count;
}

void sessions_drain(struct sessions *ss) {
  ss->draining = ss->host->draining = true;
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[LIST_RUNNING])
    host_drain(e->session);
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[LIST_BROKEN]) {
    struct err err;
    if (!entry_mend_now(e, &err)) /* the next start finds the log as it is */
      log_warn("session %s: %s", e->id, err.text);
    entry_retire(e);
  }
  sessions_soon(ss);
}

void sessions_stop(struct sessions *ss, const char *message) {
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[LIST_RUNNING])
    host_stop(e->session, "shutdown", message);
}

void sessions_init(struct sessions *ss, struct host *host, struct launch_env *env,
                   struct events *events, size_t max_running,
                   void (*changed)(void *ctx, struct daemon_entry *e), void *ctx) {
  *ss = (struct sessions){.host = host,
                          .env = env,
                          .events = events,
                          .max_running = max_running,
                          .changed = changed,
                          .ctx = ctx};
  uv_timer_init(host->loop, &ss->soon);
  uv_timer_init(host->loop, &ss->later);
  uv_timer_init(host->loop, &ss->looks);
  uv_timer_init(host->loop, &ss->mends);
  uv_timer_init(host->loop, &ss->looks_after);
  uv_timer_init(host->loop, &ss->deadlines.timer);
  ss->deadlines.due = sessions_on_deadline;
  ss->deadlines.timer.data = ss->looks_after.data = ss->soon.data = ss->later.data =
      ss->looks.data = ss->mends.data = ss;
}

void sessions_close(struct sessions *ss) {
  sessions_free_dead(ss);
  while (ss->all.count > 0)
    entry_free(id_list_at(&ss->all, ss->all.count - 1));
  id_list_deinit(&ss->all);
  id_list_deinit(&ss->queue);
  id_list_deinit(&ss->held);
  id_list_deinit(&ss->keys);
  id_list_deinit(&ss->predecessors);
  uv_close((uv_handle_t *)&ss->looks_after, NULL);
  uv_close((uv_handle_t *)&ss->soon, NULL);
  uv_close((uv_handle_t *)&ss->later, NULL);
  uv_close((uv_handle_t *)&ss->looks, NULL);
  uv_close((uv_handle_t *)&ss->mends, NULL);
  free(ss->deadlines.items);
  uv_close((uv_handle_t *)&ss->deadlines.timer, NULL);
}
