/* loop.h - makes a loop, and gives work to its thread pool, where libuv itself would abort.
 *
 * libuv aborts when a loop gets no descriptor for its signals (ulimit -n), and when the system
 * refuses one of the threads it makes for the first work: a process limit is used up (ulimit -u,
 * pids.max of a container), or there is no room for their stacks. So both are tried beforehand. If
 * not even one thread can be made, the work is done on the loop's thread.
 *
 *   loop_init(&loop, err)               as uv_loop_init
 *   loop_work(loop, &work, run, done)   run in a thread; then done(&work, 0) from the loop, always
 *   loop_do(loop, run, done, ctx)       the same for what has no uv_work_t: run(ctx), done(ctx)
 *   loop_work_soon(...)                 the same, for short work of which there is much
 *
 * Everything that makes a loop or uses the pool goes through here. On the loop's thread only. */
#ifndef SEGUE_OS_LOOP_H
#define SEGUE_OS_LOOP_H

#include "base/err.h"

#include <uv.h>

bool loop_init(uv_loop_t *loop, struct err *err) MUST_CHECK;

void loop_work(uv_loop_t *loop, uv_work_t *work, uv_work_cb run, uv_after_work_cb done);
void loop_do(uv_loop_t *loop, void (*run)(void *ctx), void (*done)(void *ctx), void *ctx);
/* Does the same for frequent short work, such as a write and a sync: the work of one turn of the
 * loop goes to the pool together, before the loop waits. A thread that gets several calls each
 * one's `begin` before the first `run`, so that what they begin proceeds meanwhile. */
void loop_work_soon(uv_loop_t *loop, uv_work_t *work, uv_work_cb begin, uv_work_cb run,
                    uv_after_work_cb done);
/* For uv_close: frees the handle, which was allocated by itself, or what its data points to. */
void loop_free(uv_handle_t *handle);
void loop_free_data(uv_handle_t *handle);
/* Returns the version of libuv. */
const char *loop_library(void);

#endif
