/* deadlines.h - when stopped sessions go on without an answer: nothing of them is in memory but the
 * id and the time.
 *
 *   deadlines_init(&d, loop, due, ctx)
 *   deadlines_note(&d, id, &brief)     as its session stands now: one deadline, or none
 *   due(ctx, id)                       from the loop, once the time (wall clock) has come
 *   deadlines_deinit(&d)               then run the loop once more
 *
 * The clock is checked at least every LIMIT_DEADLINE_LOOK_MS, because machines sleep and clocks
 * jump. */
#ifndef SEGUE_DAEMON_DEADLINES_H
#define SEGUE_DAEMON_DEADLINES_H

#include "store/summary.h"

#include <uv.h>

struct deadline {
  char id[STORE_ID_BYTES];
  int64_t due_ms;
};

struct deadlines {
  uv_timer_t timer;
  struct deadline *items; /* in no order */
  size_t count, cap;
  void (*due)(void *ctx, const char *id);
  void *ctx;
};

void deadlines_init(struct deadlines *d, uv_loop_t *loop, void (*due)(void *ctx, const char *id),
                    void *ctx);
void deadlines_note(struct deadlines *d, const char *id, const struct summary *b);
void deadlines_deinit(struct deadlines *d);

#endif
