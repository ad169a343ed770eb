/* Does what is asked of sessions: by clients to cancel, to resume, to take an answer; by the
 * deadlines of their questions to go on. */
#include "base/limits.h"
#include "base/log.h"
#include "daemon/sessions_internal.h"
#include "store/worker.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool entry_cancel_now(struct daemon_entry *e, const char *why, struct err *err) {
  char asked[80];
  if (e->session == NULL) {
    if (!entry_reopen(e, err) || e->session == NULL)
      return false;
    if (session_core(e->session)->status == SESSION_ENDED) {
      entry_drop_session(e);
      return err_set(err, ERR_INVALID, "it has ended");
    }
  }
  e->held = false;
  e->cancelled = true;
  if (e->state != ENTRY_RUNNING)
    entry_set_state(e, ENTRY_RUNNING);
  if (e->cancelled_by > 0)
    (void)snprintf(asked, sizeof asked, "cancelled by request of browser %u of the window",
                   e->cancelled_by);
  else
    (void)snprintf(asked, sizeof asked, "cancelled by request");
  if (why == NULL)
    why = e->left ? "its client has left" : asked;
  host_cancel(e->session, why);
  return true;
}

bool sessions_cancel(struct sessions *ss, struct daemon_entry *e, struct err *err) {
  sessions_free_dead(ss);
  assert(e->brief.seq > 0);
  if (ss->shared && e->session == NULL && e->state != ENTRY_BROKEN) {
    e->cancelled = true; /* takes effect once it is opened here, or its worker has done it */
    if (e->state != ENTRY_OPENING && e->asked_until_ms == 0)
      entry_open_later(e);
    return true;
  }
  if (e->state != ENTRY_BROKEN)
    return entry_cancel_now(e, NULL, err);
  e->cancelled = true;
  entry_mend_soon(e);
  return true;
}

void sessions_leave(struct sessions *ss, struct daemon_entry *e) {
  struct err err = {0};
  e->left = true;
  if (e->state == ENTRY_OVER || e->brief.seq == 0) /* over; or cancelled when its turn comes */
    return;
  if (!sessions_cancel(ss, e, &err))
    log_warn("session %s, whose client has left, is not cancelled: %s", e->id, err.text);
}

/* --- what a client asks of one that does not run here --- */

void entry_ask_deinit(struct entry_ask *ask) {
  steer_deinit(&ask->steer);
  said_deinit(&ask->said);
}

static const char CRASHED[] = "its program was killed: resume it first, as it is";
static const char ELSEWHERE[] = "another program is running it";

bool entry_settle(const struct daemon_entry *e, struct steer *st, struct err *err) {
  const struct core *core = session_core(e->session);
  const struct generation *now = e->launch.generation;
  bool has_scenario = json_object_get(st->changed, "scenario") != NULL ||
                      json_object_get(core->config, "scenario") != NULL;
  return steer_settle(st, core, &now->user, now->registry, has_scenario, err);
}

/* It goes on, once that is durable if it has to be written. */
static void resume_accepted(struct daemon_entry *e) {
  e->resumed = true;
  e->cancelled = false;
  e->foreign = false;
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
static bool resume_opened(struct daemon_entry *e, struct steer *st, struct err *err) {
  const struct core *core = session_core(e->session);
  bool stopped = core->status == SESSION_STOPPED;
  if (!stopped && steer_says(st))
    return err_set(err, ERR_INVALID, CRASHED);
  if (!stopped) /* it was advanced just now */
    return err_set(err, ERR_LOCKED, ELSEWHERE);
  if (!entry_settle(e, st, err))
    return false;
  entry_set_state(e, ENTRY_WRITING);
  host_accept(e->session, "user", &st->core);
  resume_accepted(e);
  return true;
}

static bool answer_opened(struct daemon_entry *e, struct entry_ask *ask, struct err *err) {
  entry_set_state(e, ENTRY_WRITING);
  e->answering = true;
  bool ok = host_reply(e->session, &ask->said.core, &ask->question, err);
  e->answering = ok;
  return ok;
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

void entry_opened_for(struct daemon_entry *e, const struct err *err) {
  struct sessions *ss = e->sessions;
  struct entry_ask *ask = e->ask;
  struct err why = *err;
  bool ok = false, ends = ss->draining || e->cancelled;
  e->ask = NULL;
  if (e->session != NULL && ss->draining)
    (void)err_set(&why, ERR_LIMIT, "the daemon is stopping: it takes no more sessions");
  else if (e->session != NULL && e->cancelled)
    (void)err_set(&why, ERR_LOCKED, "it is being cancelled");
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
  ask->from = e->state;
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
  struct brief now;
  entry_ref(e, &ref);
  if (e->sessions->shared ? e->owned : store_is_owned(&ref))
    return err_set(err, ERR_LOCKED, "%s", owned);
  if (e->sessions->shared) /* sessions_update did it */
    return true;
  if (!brief_read(&now, &ref, err))
    return false;
  brief_deinit(&e->brief);
  e->brief = now;
  return true;
}

static bool resume_check(struct daemon_entry *e, bool says, struct err *err) {
  const struct sessions *ss = e->sessions;
  bool kept = brief_goes_on(&e->brief);
  if (e->state == ENTRY_QUEUED && kept)
    return !says || err_set(err, ERR_INVALID, CRASHED);
  if (e->state == ENTRY_QUEUED) /* nothing is left to wait for */
    entry_set_state(e, ENTRY_OVER);
  if (brief_is_over(&e->brief))
    return err_set(err, ERR_INVALID, "it has ended already: %s", e->brief.status);
  if (!e->brief.submitted)
    return err_set(err, ERR_INVALID, "it was started by segue run: segue resume continues it");
  return sessions_queued(ss) < LIMIT_QUEUE_COUNT ||
         err_set(err, ERR_LIMIT, "%u sessions wait already", LIMIT_QUEUE_COUNT);
}

void sessions_resume(struct sessions *ss, struct daemon_entry *e, struct entry_ask *ask) {
  struct err err = {0};
  bool says = steer_says(&ask->steer);
  sessions_free_dead(ss);
  assert(e->state == ENTRY_OVER || (e->state == ENTRY_QUEUED && e->session == NULL));
  bool ok = ask_look(e, ELSEWHERE, &err) && resume_check(e, says, &err);
  if (ok && e->state == ENTRY_QUEUED) { /* it crashed in another program: its turn comes anyway */
    e->resumed = true;
  } else if (ok && (says || !brief_goes_on(&e->brief))) {
    ask_open(e, ask);
    return;
  } else if (ok) {
    resume_accepted(e);
  }
  ask->done(ask, e, ok ? NULL : &err);
}

void sessions_answer(struct sessions *ss, struct daemon_entry *e, struct entry_ask *ask) {
  struct err err = {0};
  bool ok = false;
  sessions_free_dead(ss);
  ask->question = 0;
  if (e->state == ENTRY_WRITING && e->answering) {
    (void)err_set(&err, ERR_LOCKED, "another answer to it is being recorded right now: look again");
  } else if (e->state == ENTRY_WRITING || e->state == ENTRY_BROKEN || e->state == ENTRY_OPENING) {
    (void)err_set(&err, ERR_LOCKED, "it is being written right now: try again");
  } else if (ss->shared && e->session != NULL &&
             session_core(e->session)->status == SESSION_STOPPED) {
    (void)err_set(&err, ERR_LOCKED, "it is stopping right now: try again");
  } else if (e->state == ENTRY_RUNNING || e->session != NULL) {
    ok = host_reply(e->session, &ask->said.core, &ask->question, &err);
  } else if (ask_look(e, "another program is running it: answer it there", &err)) {
    ask_open(e, ask);
    return;
  }
  ask->done(ask, e, ok ? NULL : &err);
}

void entry_continue_by_default(struct daemon_entry *e) {
  if (e->state != ENTRY_OVER || e->session != NULL || !brief_is_stopped(&e->brief) ||
      e->sessions->draining)
    return;
  e->due = true;
  entry_set_state(e, ENTRY_QUEUED);
  sessions_soon(e->sessions);
}

void sessions_on_deadline(void *ctx, const char *id) {
  struct sessions *ss = ctx;
  struct err err;
  struct daemon_entry *e = sessions_find(ss, id);
  if (ss->shared) {
    sessions_due_later(ss, id);
    return;
  }
  if (e == NULL)
    e = sessions_adopt(ss, id, &err);
  if (e != NULL)
    entry_continue_by_default(e);
}
