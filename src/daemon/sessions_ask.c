/* Cancels and resumes sessions for clients. */
#include "base/limits.h"
#include "base/log.h"
#include "daemon/sessions_internal.h"
#include "store/worker.h"

#include <assert.h>
#include <string.h>

bool entry_cancel_now(struct daemon_entry *e, const char *why, struct err *err) {
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
  if (why == NULL)
    why = e->left ? "its client has left" : "cancelled by request";
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

static const char CRASHED[] = "its program was killed: resume it first, as it is";

bool entry_settle(const struct daemon_entry *e, struct steer *st, struct err *err) {
  const struct core *core = session_core(e->session);
  const struct generation *now = e->launch.generation;
  bool has_scenario = json_object_get(st->changed, "scenario") != NULL ||
                      json_object_get(core->config, "scenario") != NULL;
  return steer_settle(st, core, &now->user, now->registry, has_scenario, err);
}

/* A restarted daemon would leave the session alone, because a user stopped it. So the log says that
 * it goes on before the answer leaves. */
static bool accept_resume(struct daemon_entry *e, struct steer *st, struct err *err) {
  if (!entry_reopen(e, err) || e->session == NULL)
    return false;
  const struct core *core = session_core(e->session);
  bool stopped = core->status == SESSION_STOPPED;
  bool ok = stopped;
  if (!stopped && steer_says(st))
    ok = err_set(err, ERR_INVALID, CRASHED);
  else if (!stopped) /* it was advanced just now */
    ok = err_set(err, ERR_LOCKED, "another program runs it");
  if (!ok || !entry_settle(e, st, err)) {
    entry_drop_session(e);
    return false;
  }
  entry_set_state(e, ENTRY_WRITING);
  host_accept(e->session, "user", &st->core);
  return true;
}

bool sessions_resume(struct sessions *ss, struct daemon_entry *e, struct steer *st,
                     struct err *err) {
  struct store_ref ref;
  struct brief now;
  sessions_free_dead(ss);
  assert(e->state == ENTRY_OVER || (e->state == ENTRY_QUEUED && e->session == NULL));
  if (ss->shared && !worker_answers(ss->env->store, err))
    return false;
  entry_ref(e, &ref);
  if (store_is_owned(&ref))
    return err_set(err, ERR_LOCKED, "another program runs it");
  if (!brief_read(&now, &ref, err)) /* another program may have advanced it */
    return false;
  brief_deinit(&e->brief);
  e->brief = now;
  bool kept = brief_goes_on(&now), says = steer_says(st);
  if (e->state == ENTRY_QUEUED && kept && says)
    return err_set(err, ERR_INVALID, CRASHED);
  if (e->state == ENTRY_QUEUED && kept) { /* it crashed in another program: its turn comes anyway */
    e->resumed = true;
    return true;
  }
  if (e->state == ENTRY_QUEUED) /* nothing is left to wait for */
    entry_set_state(e, ENTRY_OVER);
  if (brief_is_over(&now))
    return err_set(err, ERR_INVALID, "it has ended already: %s", now.status);
  if (!now.submitted)
    return err_set(err, ERR_INVALID, "it was begun by segue run: segue resume goes on with it");
  if (sessions_queued(ss) >= LIMIT_QUEUE_COUNT)
    return err_set(err, ERR_LIMIT, "%u sessions wait already", LIMIT_QUEUE_COUNT);
  bool accepts = !kept || says;
  if (accepts && !accept_resume(e, st, err))
    return false;
  e->resumed = true;
  e->cancelled = false;
  e->foreign = false;
  e->breaks = 0;
  e->not_before_ms = 0;
  entry_set_trouble(e, NULL);
  if (e->feed != NULL)
    feed_again(e->feed);
  if (!accepts)
    entry_set_state(e, ENTRY_QUEUED);
  sessions_soon(ss);
  return true;
}
