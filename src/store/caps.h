/* caps.h - what all workers of a shared store may use in a day: of the store, and of folders. Each
 * worker brings the limits (host/daily_usage.h); the sums are the store's.
 *
 *   caps_take(store, loop, &call, done, ctx)     before an attempt starts; done: from the loop
 *   caps_add(store, loop, &call, used)           it ended
 *
 * An attempt is taken in one transaction: of two workers that would reach a number of calls only
 * one begins. An attempt is booked under its session, call and number, so that a repeated request
 * changes nothing. A cap is named as the configuration names the folder; "" is the store. A day is
 * one of the server's clock, in UTC. With files these functions must not be called. On the loop's
 * thread; the store is asked in the pool. */
#ifndef SEGUE_STORE_CAPS_H
#define SEGUE_STORE_CAPS_H

#include "core/workflow.h"
#include "store/store.h"

#include <uv.h>

struct cap {
  char *name;
  int64_t limit[BUDGET_UNITS]; /* -1: none */
};

struct caps_call { /* copied */
  const char *session;
  long call;
  int attempt;
  const struct cap *caps;
  size_t count;
};

enum caps_answer {
  CAPS_TAKEN,
  CAPS_OVER,   /* the cap `at` has reached its limit of `unit` */
  CAPS_UNKNOWN /* the store does not answer, or the lease is over: ask again */
};
typedef void (*caps_fn)(void *ctx, enum caps_answer answer, size_t at, enum budget_unit unit,
                        int64_t used);
void caps_take(const struct store *store, uv_loop_t *loop, const struct caps_call *call,
               caps_fn done, void *ctx);
void caps_add(const struct store *store, uv_loop_t *loop, const struct caps_call *call,
              const int64_t used[BUDGET_UNITS]);

#endif
