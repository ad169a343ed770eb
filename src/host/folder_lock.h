/* folder_lock.h - the right to edit a folder, which only one session has at a time, in any process,
 * and the sessions of this process that wait for one.
 *
 *   folder_queue_init(&q, loop)
 *   session_takes_folder(s, call)     true: the call may go on. Else its session was told whom it
 *                                     waits for, and the call is started again once it is free
 *   session_leave_folder(s, call)     that call (0: each) stops waiting
 *   session_give_folder(s)            at the session's end or stop; one that waits for a person
 *                                     keeps it, and says so
 *   folder_queue_deinit(&q)           nobody is waiting; then run the loop once more
 *
 * Two folders conflict when, by their real paths, they are the same or one lies in the other.
 * Sessions that only read need no right; any other holds it from the first movement that may edit
 * onwards, whatever it runs in between. A right is a file of the session in locks/ of the user's
 * state folder, with a lock that dies with its process; a kept right is that file without a lock,
 * and counts as long as the session's log says that it waits for a person. Rights of other
 * processes are polled every LIMIT_FOLDER_POLL_MS. Blocks only to read a few small files. */
#ifndef SEGUE_HOST_FOLDER_LOCK_H
#define SEGUE_HOST_FOLDER_LOCK_H

#include "base/err.h"
#include "base/list.h"
#include "store/store.h"

#include <stdbool.h>
#include <uv.h>

struct folder_right;

/* Gives up the right kept by a session that is not running. False: it kept none. */
bool folder_release(const char *session, struct err *err) MUST_CHECK;

/* --- the queue --- */

struct session;

struct folder_queue {
  struct list waiters;
  uv_timer_t *timer; /* allocated by itself: it closes after the queue is gone */
  unsigned round;
};

void folder_queue_init(struct folder_queue *q, uv_loop_t *loop);
void folder_queue_deinit(struct folder_queue *q);

bool session_takes_folder(struct session *s, long call);
void session_leave_folder(struct session *s, long call);
void session_give_folder(struct session *s);

#endif
