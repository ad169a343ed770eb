/* Mends logs after a failed write or sync.
 *
 * DESIGN. After a failed write or sync nobody knows how much of the batch is durable. So a broken
 * session keeps its log, and the lock with it, for a pause. Then the log is cut back to the part
 * that is certain. Only when that has worked is it closed and taken over as after a crash: read
 * from the start, its chain checked, synced. The first thing it appends is its session_resume, so
 * no call is repeated while the disk still fails. Pauses grow, and a session that makes no progress
 * is left alone in the end. */
#include "base/limits.h"
#include "base/log.h"
#include "daemon/sessions_internal.h"

#include <stdio.h>

static void sessions_mend_on(uv_timer_t *timer);

/* Sets the timer for when the first of them is due. */
static void mend_arm(struct sessions *ss) {
  uint64_t first = UINT64_MAX, now = uv_now(ss->host->loop);
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[ENTRY_BROKEN])
    first = e->not_before_ms < first ? e->not_before_ms : first;
  if (first != UINT64_MAX)
    uv_timer_start(&ss->mends, sessions_mend_on, first > now ? first - now : 0, 0);
}

bool entry_mend_later(struct daemon_entry *e, const struct err *why) {
  struct sessions *ss = e->sessions;
  bool of_the_disk = why->code == ERR_IO || why->code == ERR_FULL;
  char text[sizeof why->text + 48];
  if (e->brief.turns > e->broken_turns)
    e->breaks = 0;
  if (!of_the_disk || ss->draining || e->brief.seq == 0 || e->breaks == LIMIT_MEND_COUNT)
    return false;
  uint64_t wait_ms = (uint64_t)LIMIT_MEND_MS << e->breaks;
  wait_ms = wait_ms < LIMIT_MEND_MAX_MS ? wait_ms : LIMIT_MEND_MAX_MS;
  e->breaks++;
  e->broken_turns = e->brief.turns;
  e->not_before_ms = uv_now(ss->host->loop) + wait_ms;
  (void)snprintf(text, sizeof text, "%s: the log is opened again in %u s", why->text,
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

bool entry_mend_now(struct daemon_entry *e, struct err *err) {
  if (e->session == NULL)
    return true;
  if (!session_settle(e->session, err))
    return false;
  entry_drop_session(e);
  return true;
}

static void sessions_mend_on(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  uint64_t now = uv_now(ss->host->loop);
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[ENTRY_BROKEN]) {
    struct err err;
    if (e->not_before_ms > now)
      continue;
    bool cancels = e->cancelled && !ss->shared; /* in a shared store it is cancelled once opened */
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
