/* Keeps when stopped sessions go on without an answer: nothing of them is in memory but the id and
 * the time. The clock is checked at least every LIMIT_DEADLINE_LOOK_MS, because machines sleep and
 * clocks jump. */
#include "base/limits.h"
#include "base/memory.h"
#include "daemon/sessions.h"
#include "os/clock.h"

#include <string.h>

static void deadlines_on_timer(uv_timer_t *timer);

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

static void deadlines_on_timer(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  struct deadlines *d = &ss->deadlines;
  int64_t now = clock_real_ms();
  for (size_t i = 0; i < d->count;) {
    if (d->items[i].due_ms > now) {
      i++;
      continue;
    }
    const struct deadline due = d->items[i];
    d->items[i] = d->items[--d->count];
    sessions_on_deadline(ss, due.id); /* may add another item */
  }
  deadlines_arm(d);
}

void deadlines_note(struct deadlines *d, const char *id, const struct summary *b) {
  int64_t due = b->submitted && summary_is_stopped(b) && !b->answered ? summary_due_ms(b) : 0;
  for (size_t i = 0; i < d->count; i++)
    if (strcmp(d->items[i].id, id) == 0) {
      d->items[i] = d->items[--d->count];
      break;
    }
  if (due == 0)
    return;
  d->items = xgrow(d->items, &d->cap, d->count + 1, sizeof *d->items);
  print_into(d->items[d->count].id, STORE_ID_BYTES, "%s", id);
  d->items[d->count++].due_ms = due;
  deadlines_arm(d);
}
