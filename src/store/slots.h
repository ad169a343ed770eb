/* slots.h - shares places at providers among all workers of a shared store, and the pause after a
 * provider told one of them to wait.
 *
 *   provider_slots_look_at(store, provider, &look)      what the store said last; no request
 *   provider_slot_ask(store, loop, provider, done, ctx) asks the store for a place; done: from
 *       the loop
 *   provider_slot_leave(slot, loop)                     its call is over
 *   provider_slots_cool(store, loop, provider, ms)      nobody calls the provider for so long
 *
 * `provider` is the name of the account that places belong to: providers with the same `pool`
 * setting share them. The places of a worker whose lease is over no longer count, so none is lost
 * with its worker. News about places comes as WORKER_SEATS (store/worker.h). With files there is no
 * limit and no pause, and these functions do nothing. Call them on the loop's thread; the store is
 * asked in the pool. */
#ifndef SEGUE_STORE_SLOTS_H
#define SEGUE_STORE_SLOTS_H

#include "base/limits.h"
#include "base/list.h"
#include "store/store.h"

#include <uv.h>

struct provider_slots_look {
  unsigned limit;   /* calls at once over all workers; 0: no limit */
  uint64_t cool_ms; /* time left in which nobody calls it */
};
/* Looks up what is known; all zero: nothing. store: NULL is fine. */
void provider_slots_look_at(const struct store *store, const char *provider,
                            struct provider_slots_look *out);

/* The asker owns it, from `done` to provider_slot_leave. */
struct provider_slot {
  struct list_node in_pool; /* in a list of its owner's */
  char provider[LIMIT_POOL_BYTES + 1];
  struct pg_base *pg;
  uint64_t number;
  char word[STORE_ID_BYTES]; /* of the worker that asked */
};

enum provider_slot_answer {
  PROVIDER_SLOT_TAKEN,
  PROVIDER_SLOT_FREE,   /* there is no limit any more, so no place is needed */
  PROVIDER_SLOT_FULL,   /* all are taken: ask again with WORKER_SEATS, or after a while */
  PROVIDER_SLOT_UNKNOWN /* the store does not answer, or the lease is over: ask again likewise */
};
/* slot is set only with PROVIDER_SLOT_TAKEN. */
typedef void (*provider_slot_fn)(void *ctx, enum provider_slot_answer answer,
                                 struct provider_slot *slot);
void provider_slot_ask(const struct store *store, uv_loop_t *loop, const char *provider,
                       provider_slot_fn done, void *ctx);
void provider_slot_leave(struct provider_slot *owned, uv_loop_t *loop);
void provider_slots_cool(const struct store *store, uv_loop_t *loop, const char *provider,
                         uint64_t ms);

#endif
