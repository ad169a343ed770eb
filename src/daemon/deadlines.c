/* Waits for the deadlines of stopped sessions. */
#include "daemon/deadlines.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

static void deadlines_arm(struct deadlines *d);

static void deadlines_drop(struct deadlines *d, const char *id) {
  for (size_t i = 0; i < d->count; i++)
    if (strcmp(d->items[i].id, id) == 0) {
      d->items[i] = d->items[--d->count];
      return;
    }
}

static void deadlines_on_timer(uv_timer_t *timer) {
  struct deadlines *d = timer->data;
  int64_t now = clock_real_ms();
  for (size_t i = 0; i < d->count;) {
    if (d->items[i].due_ms > now) {
      i++;
      continue;
    }
    char id[STORE_ID_BYTES];
    memcpy(id, d->items[i].id, sizeof id);
    d->items[i] = d->items[--d->count];
    d->due(d->ctx, id); /* may add another item */
  }
  deadlines_arm(d);
}

static void deadlines_arm(struct deadlines *d) {
  int64_t first = INT64_MAX, now = clock_real_ms();
  for (size_t i = 0; i < d->count; i++)
    first = d->items[i].due_ms < first ? d->items[i].due_ms : first;
  if (first == INT64_MAX || uv_is_closing((uv_handle_t *)&d->timer)) {
    uv_timer_stop(&d->timer);
    return;
  }
  int64_t wait = first > now ? first - now : 0;
  if (wait > LIMIT_DEADLINE_LOOK_MS)
    wait = LIMIT_DEADLINE_LOOK_MS;
  uv_timer_start(&d->timer, deadlines_on_timer, (uint64_t)wait, 0);
}

void deadlines_note(struct deadlines *d, const char *id, const struct summary *b) {
  int64_t due = b->submitted && summary_is_stopped(b) && !b->answered ? summary_due_ms(b) : 0;
  deadlines_drop(d, id);
  if (due == 0)
    return;
  d->items = xgrow(d->items, &d->cap, d->count + 1, sizeof *d->items);
  print_into(d->items[d->count].id, STORE_ID_BYTES, "%s", id);
  d->items[d->count++].due_ms = due;
  deadlines_arm(d);
}

void deadlines_init(struct deadlines *d, uv_loop_t *loop, void (*due)(void *ctx, const char *id),
                    void *ctx) {
  *d = (struct deadlines){.due = due, .ctx = ctx};
  uv_timer_init(loop, &d->timer);
  d->timer.data = d;
}

void deadlines_deinit(struct deadlines *d) {
  free(d->items);
  d->items = NULL;
  d->count = d->cap = 0;
  uv_close((uv_handle_t *)&d->timer, NULL);
}
