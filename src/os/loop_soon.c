/* Gathers short work of one turn of a loop into few portions for the pool.
 *
 * Waking a thread costs more than a write and a sync on a fast disk, and many sessions append in
 * the same turn. What is gathered goes to the pool before the loop waits, in as many portions as
 * its usual time deserves: one while all of it takes a moment, one for each work on a slow disk. */
#include "os/loop.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"

#include <assert.h>
#include <stdlib.h>

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

static void gathering_close(struct soon_gathering *g) {
  if (g->n > 0 || g->in_pool > 0)
    return;
  if (gathering == g)
    gathering = NULL;
  uv_close((uv_handle_t *)&g->prepare, gathering_on_closed);
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
  gathering_close(g);
}

static void portion_send(struct soon_gathering *g, const struct soon_work *items, size_t n) {
  struct portion *p = xmalloc(sizeof *p + n * sizeof *items);
  *p = (struct portion){.of = g, .n = n};
  for (size_t i = 0; i < n; i++)
    p->items[i] = items[i];
  p->work.data = p;
  g->in_pool++;
  loop_work(g->prepare.loop, &p->work, portion_run, portion_over);
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
    portion_send(g, g->items + from, to - from);
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
  if (g->n == g->room) {
    g->room = g->room ? g->room * 2 : 16;
    g->items = xrealloc(g->items, g->room * sizeof *g->items);
  }
  work->loop = loop;
  g->items[g->n++] = (struct soon_work){work, begin, run, done};
  (void)uv_prepare_start(&g->prepare, send_gathered);
}
