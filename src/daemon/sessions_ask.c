/* Does what clients ask of a session: cancel, resume. */
#include "base/limits.h"
#include "daemon/sessions_internal.h"

#include <assert.h>
#include <string.h>

bool entry_cancel_now(struct daemon_entry *e, struct err *err) {
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
  host_cancel(e->session, "cancelled by request");
  return true;
}

bool sessions_cancel(struct sessions *ss, struct daemon_entry *e, struct err *err) {
  sessions_free_dead(ss);
  assert(e->brief.seq > 0);
  if (e->state != ENTRY_BROKEN)
    return entry_cancel_now(e, err);
  e->cancelled = true;
  entry_mend_soon(e);
  return true;
}

/* A daemon that is started anew would leave it alone, because a user has stopped it: before the
 * answer leaves, the log says that it goes on. */
static bool accept_resume(struct daemon_entry *e, struct err *err) {
  if (!entry_reopen(e, err) || e->session == NULL)
    return false;
  if (session_core(e->session)->status != SESSION_STOPPED) { /* taken further just now */
    entry_drop_session(e);
    return err_set(err, ERR_LOCKED, "another program runs it");
  }
  entry_set_state(e, ENTRY_WRITING);
  host_accept(e->session, "user");
  return true;
}

bool sessions_resume(struct sessions *ss, struct daemon_entry *e, struct err *err) {
  struct store_ref ref;
  struct brief now;
  sessions_free_dead(ss);
  assert(e->state == ENTRY_OVER || (e->state == ENTRY_QUEUED && e->session == NULL));
  entry_ref(e, &ref);
  if (store_is_owned(&ref))
    return err_set(err, ERR_LOCKED, "another program runs it");
  if (!brief_read(&now, &ref, err)) /* another program may have taken it further */
    return false;
  brief_deinit(&e->brief);
  e->brief = now;
  bool kept = brief_goes_on(&now);
  if (e->state == ENTRY_QUEUED && kept) { /* crashed in other hands: its turn comes anyway */
    e->resumed = true;
    return true;
  }
  if (e->state == ENTRY_QUEUED) /* nothing is left to wait for */
    entry_set_state(e, ENTRY_OVER);
  if (strcmp(now.status, "running") != 0 && strcmp(now.status, "stopped") != 0)
    return err_set(err, ERR_INVALID, "it has ended already: %s", now.status);
  if (!now.submitted)
    return err_set(err, ERR_INVALID, "it was begun by segue run: segue resume goes on with it");
  if (sessions_queued(ss) >= LIMIT_QUEUE_COUNT)
    return err_set(err, ERR_LIMIT, "%u sessions wait already", LIMIT_QUEUE_COUNT);
  if (!kept && !accept_resume(e, err))
    return false;
  e->resumed = true;
  e->cancelled = false;
  e->foreign = false;
  e->breaks = 0;
  e->not_before_ms = 0;
  entry_set_trouble(e, NULL);
  if (e->feed != NULL)
    feed_again(e->feed);
  if (kept)
    entry_set_state(e, ENTRY_QUEUED);
  sessions_soon(ss);
  return true;
}
