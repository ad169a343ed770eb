/* pool.h - work for the loop's pool of threads, also where the system lets us make none.
 *
 * libuv makes its threads at the first work and aborts when one is refused: a limit on processes
 * (ulimit -u, pids.max of a container) that is used up, or no room for their stacks. So that is tried
 * before; where there is no room for one thread, the work is done on the loop's own.
 *
 *   pool_work(loop, &work, run, done)   run in a thread; then done(&work, 0) from the loop, always
 *
 * Everything that uses the pool goes through here. On the loop's thread only. */
#ifndef SEGUE_OS_POOL_H
#define SEGUE_OS_POOL_H

#include <uv.h>

void pool_work(uv_loop_t *loop, uv_work_t *work, uv_work_cb run, uv_after_work_cb done);

#endif
