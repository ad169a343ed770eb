/* Makes loops, and hands work to threads where libuv would abort. */
#include "os/loop.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- is there room for a loop? --- */

bool loop_init(uv_loop_t *loop, struct err *err) {
  int fds[LIMIT_LOOP_FD_COUNT];
  size_t n = 0;
  while (n < ARRAY_LEN(fds) && !fault_fails("descriptor") &&
         (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
    n++;
  int number = n < ARRAY_LEN(fds) ? errno : 0;
  while (n > 0)
    (void)close(fds[--n]);
  if (number == 0)
    number = -uv_loop_init(loop); /* libuv's errors are the system's, negated */
  return number == 0 || err_set_errno(err, number, "no event loop could be made");
}

/* --- is there room for threads? --- */

static void wait_for_end(void *ctx) {
  uv_mutex_lock(ctx);
  uv_mutex_unlock(ctx);
}

/* Finds how many of `wanted` threads can live at once. */
static unsigned room_for(unsigned wanted) {
  uv_thread_t threads[LIMIT_POOL_THREADS_TRIED];
  uv_mutex_t end;
  unsigned n = 0;
  if (uv_mutex_init(&end) != 0)
    return 0;
  uv_mutex_lock(&end);
  while (n < wanted && !fault_fails("thread") &&
         uv_thread_create(&threads[n], wait_for_end, &end) == 0)
    n++;
  uv_mutex_unlock(&end);
  for (unsigned i = 0; i < n; i++)
    (void)uv_thread_join(&threads[i]);
  uv_mutex_destroy(&end);
  return n;
}

/* Sets as many threads as libuv would make, or fewer. */
static bool make_room(void) {
  char number[16];
  long wanted = LIMIT_POOL_THREADS_MIN;
  (void)str_to_long(str_from(getenv("UV_THREADPOOL_SIZE")), &wanted);
  if (wanted < 1)
    wanted = 1;
  if (wanted > (long)LIMIT_POOL_THREADS_TRIED)
    wanted = LIMIT_POOL_THREADS_TRIED;
  unsigned room = room_for((unsigned)wanted);
  if (room == 0)
    return false;
  if (room < (unsigned)wanted) /* leaves some for the programs of calls */
    room = (room + 1) / 2;
  (void)snprintf(number, sizeof number, "%u", room);
  return setenv("UV_THREADPOOL_SIZE", number, 1) == 0;
}

/* --- without threads --- */

struct told {
  uv_timer_t timer;
  uv_work_t *work;
  uv_after_work_cb done;
};

static void loop_on_closed(uv_handle_t *handle) {
  struct told *told = handle->data;
  uv_work_t *work = told->work;
  uv_after_work_cb done = told->done;
  free(told);
  done(work, 0);
}

static void loop_on_timer(uv_timer_t *timer) {
  uv_close((uv_handle_t *)timer, loop_on_closed);
}

static void work_here(uv_loop_t *loop, uv_work_t *work, uv_work_cb run, uv_after_work_cb done) {
  struct told *told = xcalloc(1, sizeof *told);
  *told = (struct told){.work = work, .done = done};
  run(work);
  (void)uv_timer_init(loop, &told->timer);
  told->timer.data = told;
  (void)uv_timer_start(&told->timer, loop_on_timer, 0, 0);
}

void loop_work(uv_loop_t *loop, uv_work_t *work, uv_work_cb run, uv_after_work_cb done) {
  static bool is_made;
  is_made = is_made || make_room();
  if (!is_made)
    work_here(loop, work, run, done);
  else if (uv_queue_work(loop, work, run, done) != 0)
    BUG("the pool takes no work");
}

const char *loop_library(void) {
  return uv_version_string();
}
