/* call_queue.h - queues calls that may not go to their providers yet, in order of arrival. A new
 * call never overtakes one that waits for the same provider. The timer keeps the loop alive only
 * while a call waits.
 *
 *   call_queue_init(&g, loop, registry, told)
 *   answer = call_queue_ask(&g, owner, call, provider, has_fallback, &why)
 *     ADMITTED: the call has a place until call_queue_leave. FALLBACK: it has none and waits for
 *         none.
 *     WAIT: it is queued; `told` comes from the loop, once with ADMITTED or FALLBACK, and before
 *     that with WAIT whenever the reason changes and its end is known
 *   call_queue_leave(&g, owner, provider, class, retry_after_ms)   an admitted call is over
 *   call_queue_drop(&g, owner, call)  forgets its queued call, or all of them (0)
 *   call_queue_seats(&g)  the store has news of places (WORKER_SEATS)
 *   call_queue_deinit(&g)  nothing is queued; then run the loop once more
 *
 * If a shared store limits a provider's calls (store/slots.h), a call also needs a place there,
 * which the loop asks for. call_queue_ask then says WAIT without a reason, and if there is a place,
 * `told` says ADMITTED with why.at_once: the call did not wait. */
#ifndef SEGUE_HOST_CALL_QUEUE_H
#define SEGUE_HOST_CALL_QUEUE_H

#include "base/list.h"
#include "host/admission.h"
#include "store/store.h"

#include <uv.h>

typedef void (*call_queue_told_fn)(void *owner, long call, enum admission_answer answer,
                                   const struct admission_why *why);

struct call_queue_entry;
struct call_queue {
  struct admission admission;
  const struct store *store; /* a store whose places all workers share; or NULL */
  struct list slots;         /* struct provider_slot: places held by calls */
  struct list asked;         /* struct call_queue_asked: requests to the store */
  struct call_queue_entry *first;
  uv_timer_t *timer; /* allocated by itself: it closes after the gate is gone */
  bool due;          /* a place may have come free since the queue was last asked */
  call_queue_told_fn told;
};

void call_queue_init(struct call_queue *g, uv_loop_t *loop,
                     const struct provider_registry *registry, const struct store *store,
                     call_queue_told_fn told);
void call_queue_deinit(struct call_queue *g);

enum admission_answer call_queue_ask(struct call_queue *g, void *owner, long call,
                                     struct str provider, bool has_fallback,
                                     struct admission_why *why);
void call_queue_seats(struct call_queue *g);
void call_queue_leave(struct call_queue *g, const void *owner, struct str provider,
                      enum error_class class, int64_t retry_after_ms);
/* Counts the calls that wait for this provider. */
size_t call_queue_waiting(const struct call_queue *g, struct str provider);
void call_queue_drop(struct call_queue *g, const void *owner, long call);

#endif
