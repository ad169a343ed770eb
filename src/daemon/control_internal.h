/* control_internal.h - what the files of the control API share. */
#ifndef SEGUE_DAEMON_CONTROL_INTERNAL_H
#define SEGUE_DAEMON_CONTROL_INTERNAL_H

#include "daemon/control.h"

/* control.c */

void control_reply_session(const struct control *api, struct server_request *r, unsigned status,
                           const char *id);
/* Returns the entry of a session. NULL: there is none, and the request was answered. */
struct daemon_entry *control_entry(struct control *api, struct server_request *r, const char *id);

/* Refuses a request while the store of several machines does not answer. Returns false if it has
 * answered the request. */
bool control_store_answers(const struct control *api, struct server_request *r);

/* control_act.c: which session a request is about */

/* Holds a request about one session while the session is looked up. */
struct about {
  struct control *api;
  /* Acts on the entry, as memory or the last look at the store describes it; owns the about. */
  void (*act)(struct about *a, struct server_request *r, struct daemon_entry *e);
  bool settles;                   /* waits for a release that is under way */
  uint64_t seq;                   /* of the last record that a watcher has */
  struct entry_ask ask;           /* for sessions_resume and sessions_answer */
  struct server_request *request; /* of the ask; NULL: its client has left */
  char word[SERVER_PART_BYTES];
  struct snapshot snapshot;
};
typedef void (*about_act)(struct about *a, struct server_request *r, struct daemon_entry *e);

struct about *about_new(struct control *api, about_act act);
/* Finds the session that the request's path names; if there is none, answers. A shared store is
 * asked in the pool. Takes the about over. */
void about_take(struct about *owned, struct server_request *r);
void about_free(struct about *a);

/* control_wait.c */

/* A request waits for one of these of its session. */
enum awaited { FIRST_RECORD, SKIPPED, RESUME, ANSWER, CANCEL, JUDGMENT, VALUE };
/* question: the one that an ANSWER answers. */
void control_wait_for(struct control *api, struct server_request *r, const char *id,
                      enum awaited what, uint64_t question);
/* Says that what was asked for is not on disk. */
void control_reply_broken(struct server_request *r, const struct daemon_entry *e,
                          enum awaited what);

/* control_begin.c */

/* Refuses a request while the daemon is draining, when no session begins or continues any more.
 * Returns true if it has answered the request. */
bool control_refuse_draining(const struct control *api, struct server_request *r);
/* Answers a body that could not be taken. */
void control_refuse(const struct intake_result *result);
void control_submit(void *api, struct server_request *r);
void control_fork(void *api, struct server_request *r);
void control_judge(void *api, struct server_request *r);
void control_ask(void *api, struct server_request *r);
void control_lint(void *api, struct server_request *r);
void control_plan(void *api, struct server_request *r);

/* control_act.c */

void control_cancel(void *api, struct server_request *r);
void control_resume(void *api, struct server_request *r);
void control_take_answer(void *api, struct server_request *r);
void control_approve(void *api, struct server_request *r);
void control_reject(void *api, struct server_request *r);

#endif
