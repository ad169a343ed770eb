/* folder_queue.h - sessions queueing for the folder that they edit, one at a time (folder.h).
 *
 *   folder_queue_init(&q, loop)
 *   session_takes_folder(s, call)     true: the call may go on. Else its session was told whom it
 *                                     waits for, and the call is started again once it is free
 *   session_leave_folder(s, call)     that call (0: each) stops waiting
 *   session_give_folder(s)            at the session's end or stop; one that waits for a person
 *                                     keeps it, and says so
 *   folder_queue_deinit(&q)           nobody is waiting; then run the loop once more
 *
 * A session holds the folder from the first movement that may edit onwards, whatever it runs in
 * between. Rights of other processes are polled every LIMIT_FOLDER_POLL_MS. */
#ifndef SEGUE_HOST_FOLDER_QUEUE_H
#define SEGUE_HOST_FOLDER_QUEUE_H

#include "base/list.h"

#include <stdbool.h>
#include <uv.h>

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
