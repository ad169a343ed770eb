/* reading.h - answers requests that need logs to be read, in the pool and never on the loop.
 *
 *   readings_init(&rs, loop)
 *   reading_take(&rs, request, work, drop, what)    the request is kept
 *     work(what, &answer)                     in a thread of the pool: fills the answer
 *     drop(what)                              from the loop, always, at the end
 *   reading_take_of(&rs, request, item, work, drop, what)    the same with a track of shelf.h;
 *                                                            those with the same track run one at a
 *                                                            time
 *   answer.hand_on = f                      set by the work: f(what, request) is called from the
 *                                           loop instead of the answer and of drop, and keeps or
 *                                           answers the request; see readings_begin_more
 *   readings_busy(&rs)                        how many are not over
 *
 * At most LIMIT_API_READING_COUNT run at a time, in order, leaving the pool's other threads to
 * appends; when too many wait, the answer is 503. For a client that has left, no reading begins. */
#ifndef SEGUE_DAEMON_READING_H
#define SEGUE_DAEMON_READING_H

#include "base/list.h"
#include "daemon/server.h"
#include "daemon/shelf.h"
#include "daemon/snapshot.h"

struct reading_answer {
  unsigned status;  /* 200 unless set; 400 and above with `err` become a problem */
  const char *type; /* of the body: a literal; application/json unless set */
  struct buf body;
  struct err err;
  void (*hand_on)(void *what, struct server_request *r);
};

typedef void (*reading_work)(void *what, struct reading_answer *answer);

struct readings {
  uv_loop_t *loop;
  struct list jobs; /* those that run, then those that wait */
  size_t running;
  size_t more; /* handed on and not yet over */
};

void readings_init(struct readings *rs, uv_loop_t *loop);
void reading_take(struct readings *rs, struct server_request *r, reading_work work,
                  void (*drop)(void *what), void *what);
/* item: from shelf_find; the request lets go of it. */
void reading_take_of(struct readings *rs, struct server_request *r, struct shelf_item *item,
                     reading_work work, void (*drop)(void *what), void *what);
/* With a shared store, finds the session that the request's path names (an id, a prefix of one, or
 * `last`) in the pool, and has the request handled once more, with the whole id in its path; or
 * answers that there is none. */
void reading_find(struct readings *rs, struct server_request *r, const struct store *store);
/* A request that was handed on counts until its end is reported. */
void readings_begin_more(struct readings *rs);
void readings_end_more(struct readings *rs);
size_t readings_busy(const struct readings *rs);

#endif
