/* sessions_internal.h - shared by the parts of sessions.h.
 *
 * sessions.c has the tables and the queue; sessions_shared.c takes sessions from a shared store;
 * sessions_mend.c deals with logs that failed; sessions_ask.c does what clients ask of a session:
 * cancel, resume; entry.c says what status one has. */
#ifndef SEGUE_DAEMON_SESSIONS_INTERNAL_H
#define SEGUE_DAEMON_SESSIONS_INTERNAL_H

#include "daemon/sessions.h"

/* Has the loop look at the queue and free what is over. */
void sessions_soon(struct sessions *ss);
void sessions_free_dead(struct sessions *ss);
/* Asks for what there are places for, if the queue of a shared store may have something. */
void sessions_claim(struct sessions *ss);
bool sessions_claims(const struct sessions *ss); /* is it being asked? */
/* It was claimed from the queue. taken: how it stood then, or all zero; emptied. */
void sessions_take(struct sessions *ss, const char *id, struct brief *taken);
/* Reads its log back in the pool; entry_opened comes then. */
void entry_open_later(struct daemon_entry *e);
void entry_opened(struct daemon_entry *e, struct err *err);
/* It was opened for what a client asked (e->ask). */
void entry_opened_for(struct daemon_entry *e, const struct err *err);
/* It is another worker's: that one is asked to end it. */
void entry_ask_cancel(struct daemon_entry *e);
/* Looks, in the pool, at other workers' sessions that are watched here or were asked to end. True:
 * there are any. */
bool sessions_look_at_others(struct sessions *ss);
void sessions_on_looks(uv_timer_t *timer); /* of `looks` */

struct daemon_entry *entry_new(struct sessions *ss, const char *id, enum entry_state state);
void entry_set_state(struct daemon_entry *e, enum entry_state state);
/* Reads its log again, for watchers too. False: it cannot be read. */
bool entry_look(struct daemon_entry *e);
void entry_set_trouble(struct daemon_entry *e, const char *text); /* NULL: there is none any more */
struct session;
extern const struct watcher sessions_watcher;
/* Reads its log back into e->session; NULL with err: the log cannot be used. False: no descriptor
 * is left, or it is in other hands; try again later. */
bool entry_reopen(struct daemon_entry *e, struct err *err);
/* Settles what was said for a reopened session, with the present configuration. */
bool entry_settle(const struct daemon_entry *e, struct steer *st, struct err *err) MUST_CHECK;
/* Notes that the session reported something just now. */
void entry_heard(struct daemon_entry *e);
/* True if another one with its key runs. */
bool entry_waits_for_same(const struct daemon_entry *e);
/* True if it has not begun and was to begin before now. */
bool entry_is_too_late(const struct daemon_entry *e);
void entry_drop_session(struct daemon_entry *e);
/* It is over here; the loop frees its session. */
void entry_retire(struct daemon_entry *e);

/* Its log failed with `why`: opens it again after a pause. False: that makes no sense, or no longer
 * does. */
bool entry_mend_later(struct daemon_entry *e, const struct err *why);
/* Opens a broken one again as soon as the loop gets to it; this try is not counted. */
void entry_mend_soon(struct daemon_entry *e);
/* Cuts the log back to what is surely on disk and lets go of it. False: not even that works. */
bool entry_mend_now(struct daemon_entry *e, struct err *err) MUST_CHECK;
/* Its log is not broken. why NULL: by request. */
bool entry_cancel_now(struct daemon_entry *e, const char *why, struct err *err) MUST_CHECK;
/* Continues a stopped session with the default answer to its question. */
void entry_continue_by_default(struct daemon_entry *e);
/* Does the same, once the shared store has told its status. */
void sessions_due_later(struct sessions *ss, const char *id);
void sessions_on_deadline(void *ctx, const char *id);

#endif
