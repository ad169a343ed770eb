/* seats.h - shares places at providers among all workers of a shared store, and the pause after a
 * provider told one of them to wait.
 *
 *   seats_look_at(store, provider, &look)      what the store said last; no request
 *   seat_ask(store, loop, provider, done, ctx) asks the store for a place; done: from the loop
 *   seat_leave(seat, loop)                     its call is over
 *   seats_cool(store, loop, provider, ms)      nobody calls the provider for so long
 *
 * `provider` is the name of the account that places belong to: providers with the same `pool`
 * setting share them. The places of a worker whose lease is over no longer count, so none is lost
 * with its worker. News about places comes as WORKER_SEATS (store/worker.h). With files there is no
 * limit and no pause, and these functions do nothing. Call them on the loop's thread; the store is
 * asked in the pool. */
#ifndef SEGUE_STORE_SEATS_H
#define SEGUE_STORE_SEATS_H

#include "base/limits.h"
#include "base/list.h"
#include "store/store.h"

#include <uv.h>

struct seats_look {
  unsigned limit;   /* calls at once over all workers; 0: no limit */
  uint64_t cool_ms; /* time left in which nobody calls it */
};
/* Looks up what is known; all zero: nothing. store: NULL is fine. */
void seats_look_at(const struct store *store, const char *provider, struct seats_look *out);

/* The asker owns it, from `done` to seat_leave. */
struct seat {
  struct list_node in_pool; /* in a list of its owner's */
  char provider[LIMIT_POOL_BYTES + 1];
  struct pg_base *pg;
  uint64_t number;
  char worker[STORE_ID_BYTES];
};

enum seat_answer {
  SEAT_TAKEN,
  SEAT_FREE,   /* there is no limit any more, so no place is needed */
  SEAT_FULL,   /* all are taken: ask again with WORKER_SEATS, or after a while */
  SEAT_UNKNOWN /* the store does not answer, or the lease is over: ask again likewise */
};
/* seat is set only with SEAT_TAKEN. */
typedef void (*seat_fn)(void *ctx, enum seat_answer answer, struct seat *seat);
void seat_ask(const struct store *store, uv_loop_t *loop, const char *provider, seat_fn done,
              void *ctx);
void seat_leave(struct seat *owned, uv_loop_t *loop);
void seats_cool(const struct store *store, uv_loop_t *loop, const char *provider, uint64_t ms);

#endif
