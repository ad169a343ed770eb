/* read_job.h - answers requests that need logs to be read, in the pool and never on the loop.
 *
 *   read_jobs_init(&rs, loop)
 *   read_job_take(&rs, request, work, drop, what)    the request is kept
 *     work(what, &answer)                     in a thread of the pool: fills the answer
 *     drop(what)                              from the loop, always, at the end
 *   read_job_take_of(&rs, request, item, work, drop, what)  the same with a track of the cache;
 *                                                            those with the same track run one at a
 *                                                            time
 *   answer.hand_on = f                      set by the work: f(what, request) is called from the
 *                                           loop instead of the answer and of drop, and keeps or
 *                                           answers the request; see read_jobs_begin_more
 *   read_jobs_busy(&rs)                        how many are not over
 *
 * At most LIMIT_API_READING_COUNT run at a time, in order, leaving the pool's other threads to
 * appends; when too many wait, the answer is 503. For a client that has left, no reading begins. */
#ifndef SEGUE_DAEMON_READ_JOB_H
#define SEGUE_DAEMON_READ_JOB_H

#include "base/list.h"
#include "daemon/server.h"
#include "view/record_index.h"

#include <uv.h>

struct view_cache {
  struct list items; /* most recently used first */
  uv_timer_t idle;
};

struct view_cache_item {
  struct list_node in_shelf;
  struct view_cache *view_cache;
  struct record_index *track;
  size_t bytes;  /* when it was last let go */
  unsigned held; /* requests */
  bool busy;
  uint64_t used_ms;
};

struct view_cache *view_cache_new(uv_loop_t *loop);
struct view_cache_item *view_cache_find(struct view_cache *s, const struct store_ref *ref);
void view_cache_free(struct view_cache *s); /* NULL is fine */

struct read_job_answer {
  unsigned status;  /* 200 unless set; 400 and above with `err` become a problem */
  const char *type; /* of the body: a literal; application/json unless set */
  struct buf body;
  struct err err;
  void (*hand_on)(void *what, struct server_request *r);
};

typedef void (*read_job_work)(void *what, struct read_job_answer *answer);

struct read_jobs {
  uv_loop_t *loop;
  struct list jobs; /* those that run, then those that wait */
  size_t running;
  size_t more; /* handed on and not yet over */
};

void read_jobs_init(struct read_jobs *rs, uv_loop_t *loop);
void read_job_take(struct read_jobs *rs, struct server_request *r, read_job_work work,
                   void (*drop)(void *what), void *what);
/* item: from view_cache_find; the request lets go of it. */
void read_job_take_of(struct read_jobs *rs, struct server_request *r, struct view_cache_item *item,
                      read_job_work work, void (*drop)(void *what), void *what);
/* The same, and never refused: for the answer to what the daemon has worked for. */
void read_job_add(struct read_jobs *rs, struct server_request *r, struct view_cache_item *item,
                  read_job_work work, void (*drop)(void *what), void *what);
/* With a shared store, finds the session that the request's path names (an id, a prefix of one, or
 * `last`) in the pool, and has the request handled once more, with the whole id in its path; or
 * answers that there is none. */
void read_job_find(struct read_jobs *rs, struct server_request *r, const struct store *store);
/* A request that was handed on counts until its end is reported. */
void read_jobs_begin_more(struct read_jobs *rs);
void read_jobs_end_more(struct read_jobs *rs);
size_t read_jobs_busy(const struct read_jobs *rs);

#endif
