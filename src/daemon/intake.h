/* intake.h - requests with a body, from their bytes to a launch.
 *
 *   intake_take(&in, request, kind, about, done)   its body is read; the request is kept
 *   done(ctx, &result)             from the loop, unless its client has left meanwhile
 *
 * DESIGN. A body of 16 MiB, its workflow and its scenario take some 100 ms to read, check and write
 * to blobs: on the loop, every session would wait for that. So it is done in the loop's pool, in
 * order and by one thread: the pool's other threads are left to the appends of sessions. Small
 * bodies that wait are read together. The size of the result is estimated before a body is read, so
 * that it cannot take more memory than its texts. */
#ifndef SEGUE_DAEMON_INTAKE_H
#define SEGUE_DAEMON_INTAKE_H

#include "base/list.h"
#include "daemon/launch.h"
#include "daemon/server.h"

struct intake_result {
  struct server_request *request; /* to be answered, or kept again */
  bool ok;
  struct launch launch;   /* ok: taken over by `done` */
  unsigned status;        /* else: of HTTP */
  struct err err;         /* why */
  struct err_list errors; /* in the workflow's file, with places; freed after `done` */
};

typedef void (*intake_done)(void *ctx, struct intake_result *result);

enum { INTAKE_TOGETHER = 16 };

struct intake_job;
struct intake {
  uv_loop_t *loop; /* its owner sets the first three */
  struct launch_env *env;
  void *ctx;
  struct list jobs;                            /* those being read; after them those that wait */
  size_t bytes;                                /* of all their bodies */
  struct intake_job *reading[INTAKE_TOGETHER]; /* by the pool, in their order */
  size_t reading_count;
};

/* Answers 503 by itself when too much is waiting. about: the log of the session that it is about,
 * which launch.about then has; or NULL. */
void intake_take(struct intake *in, struct server_request *r, enum launch_kind kind,
                 const struct store_ref *about, intake_done done);

#endif
