/* sessions_internal.h - what the parts of sessions.h share.
 *
 * sessions.c has the tables, the queue and its recovery; sessions_mend.c what becomes of logs that
 * failed; sessions_ask.c what clients ask of a session: cancel, resume; entry.c how one stands. */
#ifndef SEGUE_DAEMON_SESSIONS_INTERNAL_H
#define SEGUE_DAEMON_SESSIONS_INTERNAL_H

#include "daemon/sessions.h"

/* The queue is looked at, and what is over is freed, from the loop. */
void sessions_soon(struct sessions *ss);
void sessions_free_dead(struct sessions *ss);

void entry_set_state(struct entry *e, enum entry_state state);
/* What its log says now: for watchers too. False: it cannot be read. */
bool entry_look(struct entry *e);
void entry_set_trouble(struct entry *e, const char *text); /* NULL: there is none any more */
/* Reads its log back into e->session; NULL with err: the log cannot be used. False: no descriptor is
 * left, or it is in other hands; try again later. */
bool entry_reopen(struct entry *e, struct err *err);
void entry_drop_session(struct entry *e);
/* It is over here; its session goes from the loop. */
void entry_retire(struct entry *e);

/* Its log failed with `why`: opened again after a pause. False: that makes no sense (any more). */
bool entry_mend_later(struct entry *e, const struct err *why);
/* One that is broken is opened again as soon as the loop comes to it; that try is not counted. */
void entry_mend_soon(struct entry *e);
/* What is not sure is cut off and the log let go. False: not even that works. */
bool entry_mend_now(struct entry *e, struct err *err) MUST_CHECK;
/* Its log is not broken. */
bool entry_cancel_now(struct entry *e, struct err *err) MUST_CHECK;
void sessions_mend_on(uv_timer_t *timer); /* of `mends` */

#endif
