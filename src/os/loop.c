/* Makes loops, and hands work to threads where libuv would abort. */
#include "os/loop.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"
#include "os/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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
  print_into(number, sizeof number, "%u", room);
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

void loop_work(uv_loop_t *loop, uv_work_t *work, uv_work_cb run, uv_after_work_cb done) {
  static bool is_made;
  is_made = is_made || make_room();
  if (!is_made) {
    struct told *told = xcalloc(1, sizeof *told);
    *told = (struct told){.work = work, .done = done};
    run(work);
    (void)uv_timer_init(loop, &told->timer);
    told->timer.data = told;
    (void)uv_timer_start(&told->timer, loop_on_timer, 0, 0);
  } else if (uv_queue_work(loop, work, run, done) != 0) {
    BUG("the pool takes no work");
  }
}

struct doing {
  uv_work_t work;
  void (*run)(void *ctx), (*done)(void *ctx);
  void *ctx;
};

static void doing_run(uv_work_t *work) {
  struct doing *d = work->data;
  d->run(d->ctx);
}

static void doing_over(uv_work_t *work, int status) {
  struct doing *d = work->data;
  void (*done)(void *ctx) = d->done;
  void *ctx = d->ctx;
  assert(status == 0); /* work is never cancelled */
  free(d);
  done(ctx);
}

void loop_do(uv_loop_t *loop, void (*run)(void *ctx), void (*done)(void *ctx), void *ctx) {
  struct doing *d = xmalloc(sizeof *d);
  *d = (struct doing){.run = run, .done = done, .ctx = ctx};
  d->work.data = d;
  loop_work(loop, &d->work, doing_run, doing_over);
}

void loop_free(uv_handle_t *handle) {
  free(handle);
}

void loop_free_data(uv_handle_t *handle) {
  free(handle->data);
}

const char *loop_library(void) {
  return uv_version_string();
}

/* --- work of one turn --- */

/* Gathers short work of one turn of a loop into few portions for the pool.
 *
 * Waking a thread costs more than a write and a sync on a fast disk, and many sessions append in
 * the same turn. What is gathered goes to the pool before the loop waits, in as many portions as
 * its usual time deserves: one while all of it takes a moment, one for each work on a slow disk. */

struct soon_work {
  uv_work_t *work;
  uv_work_cb begin, run;
  uv_after_work_cb done;
};

struct soon_gathering { /* one for a loop; lives while something is gathered or in the pool */
  uv_prepare_t prepare;
  struct soon_work *items;
  size_t n, room;
  size_t in_pool; /* portions */
};

struct portion {
  uv_work_t work;
  struct soon_gathering *of;
  uint64_t us; /* that it took */
  size_t n;
  struct soon_work items[];
};

static _Thread_local struct soon_gathering *gathering;
static _Thread_local uint64_t usual_us = LIMIT_PORTION_US; /* what one work takes, averaged */

static void gathering_on_closed(uv_handle_t *handle) {
  struct soon_gathering *g = handle->data;
  free(g->items);
  free(g);
}

static void portion_run(uv_work_t *work) {
  struct portion *p = work->data;
  uint64_t begin_us = clock_mono_us();
  for (size_t i = 0; i < p->n; i++)
    p->items[i].begin(p->items[i].work);
  for (size_t i = 0; i < p->n; i++)
    p->items[i].run(p->items[i].work);
  p->us = clock_mono_us() - begin_us;
}

static void portion_over(uv_work_t *work, int status) {
  struct portion *p = work->data;
  struct soon_gathering *g = p->of;
  assert(status == 0); /* work is never cancelled */
  usual_us = (usual_us * 7 + p->us / p->n) / 8;
  for (size_t i = 0; i < p->n; i++)
    p->items[i].done(p->items[i].work, 0);
  free(p);
  g->in_pool--;
  if (g->n > 0 || g->in_pool > 0)
    return;
  if (gathering == g)
    gathering = NULL;
  uv_close((uv_handle_t *)&g->prepare, gathering_on_closed);
}

/* Sends what was gathered: the loop is about to wait. */
static void send_gathered(uv_prepare_t *prepare) {
  struct soon_gathering *g = prepare->data;
  size_t n = g->n, portions = (size_t)(n * usual_us / LIMIT_PORTION_US) + 1;
  if (portions > n)
    portions = n;
  (void)uv_prepare_stop(prepare);
  g->n = 0;
  for (size_t i = 0, from = 0; i < portions; i++) {
    size_t to = n * (i + 1) / portions;
    struct portion *p = xmalloc(sizeof *p + (to - from) * sizeof *p->items);
    *p = (struct portion){.of = g, .n = to - from};
    memcpy(p->items, g->items + from, p->n * sizeof *p->items);
    p->work.data = p;
    g->in_pool++;
    loop_work(g->prepare.loop, &p->work, portion_run, portion_over);
    from = to;
  }
}

static struct soon_gathering *gathering_of(uv_loop_t *loop) {
  struct soon_gathering *g = gathering;
  if (g != NULL && g->prepare.loop == loop)
    return g;
  g = xcalloc(1, sizeof *g);
  (void)uv_prepare_init(loop, &g->prepare);
  g->prepare.data = g;
  if (gathering == NULL) /* else another loop of this thread gathers: this one is for one work */
    gathering = g;
  return g;
}

void loop_work_soon(uv_loop_t *loop, uv_work_t *work, uv_work_cb begin, uv_work_cb run,
                    uv_after_work_cb done) {
  struct soon_gathering *g = gathering_of(loop);
  g->items = xgrow(g->items, &g->room, g->n + 1, sizeof *g->items);
  work->loop = loop;
  g->items[g->n++] = (struct soon_work){work, begin, run, done};
  (void)uv_prepare_start(&g->prepare, send_gathered);
}
