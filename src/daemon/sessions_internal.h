/* sessions_internal.h - shared by the parts of sessions.h.
 *
 * sessions.c keeps them; sessions_shared.c recovers them from a store, and knows of the other
 * workers of a shared one. */
#ifndef SEGUE_DAEMON_SESSIONS_INTERNAL_H
#define SEGUE_DAEMON_SESSIONS_INTERNAL_H

#include "daemon/sessions.h"

/* Has the loop look at the queue and free what is over. */
void sessions_soon(struct sessions *ss);
/* Asks for what there are places for, if the queue of a shared store may have something. */
void sessions_claim(struct sessions *ss);
bool sessions_claims(const struct sessions *ss); /* is it being asked? */
/* It was claimed from the queue. taken: how it stood then, or all zero; emptied. */
void sessions_take(struct sessions *ss, const char *id, struct summary *taken);
/* Reads its log back in the pool; entry_opened comes then. */
void entry_open_later(struct daemon_entry *e);
void entry_opened(struct daemon_entry *e, struct err *err);
/* It is another worker's: that one is asked to end it. */
void entry_ask_cancel(struct daemon_entry *e);
/* Looks, in the pool, at other workers' sessions that are watched here or were asked to end. True:
 * there are any. */
bool sessions_look_at_others(struct sessions *ss);
void sessions_on_looks(uv_timer_t *timer); /* of `looks` */

struct daemon_entry *entry_new(struct sessions *ss, const char *id, enum entry_state state);
void entry_set_state(struct daemon_entry *e, enum entry_state state);
/* Is it to end, by whatever wish? */
bool entry_ends(const struct daemon_entry *e);
/* This one is fulfilled, or given up; any other stays. */
void entry_forget_wish(struct daemon_entry *e, enum entry_wish wish);
/* A claim stays until it is taken up. */
void entry_set_owner(struct daemon_entry *e, enum entry_owner owner);
void entry_set_trouble(struct daemon_entry *e, const char *text); /* NULL: there is none any more */
extern const struct watcher sessions_watcher;

/* Its log failed with `why`: opens it again after a pause. False: that makes no sense, or no longer
 * does. */
bool entry_mend_later(struct daemon_entry *e, const struct err *why);
/* Opens a broken one again as soon as the loop gets to it; this try is not counted. */
void entry_mend_soon(struct daemon_entry *e);
/* Continues a stopped session with the default answer to its question. */
void entry_continue_by_default(struct daemon_entry *e);
/* Does the same, once the shared store has told its status. */
void sessions_due_later(struct sessions *ss, const char *id);

#endif
