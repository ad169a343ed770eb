/* gate.h - queues calls that may not go to their providers yet, in order of arrival. A new call
 * never overtakes one that waits for the same provider. The timer keeps the loop alive only while a
 * call waits.
 *
 *   gate_init(&g, loop, registry, told)
 *   answer = gate_ask(&g, owner, call, provider, has_fallback, &why)
 *     ADMITTED: the call has a place until gate_leave. FALLBACK: it has none and waits for none.
 *     WAIT: it is queued; `told` comes from the loop, once with ADMITTED or FALLBACK, and before
 *     that with WAIT whenever the reason changes and its end is known
 *   gate_leave(&g, owner, provider, class, retry_after_ms)   an admitted call is over
 *   gate_drop(&g, owner, call)                       forgets its queued call, or all of them (0)
 *   gate_seats(&g)                                   the store has news of places (WORKER_SEATS)
 *   gate_deinit(&g)                                  nothing is queued; then run the loop once more
 *
 * If a shared store limits a provider's calls (store/seats.h), a call also needs a place there,
 * which the loop asks for. gate_ask then says WAIT without a reason, and if there is a place,
 * `told` says ADMITTED with why.at_once: the call did not wait. */
#ifndef SEGUE_HOST_GATE_H
#define SEGUE_HOST_GATE_H

#include "base/list.h"
#include "host/admission.h"
#include "store/store.h"

#include <uv.h>

typedef void (*gate_told_fn)(void *owner, long call, enum admission_answer answer,
                             const struct admission_why *why);

struct gate_entry;
struct gate {
  struct admission admission;
  const struct store *store; /* a store whose places all workers share; or NULL */
  struct list seats;         /* struct seat: places held by calls */
  struct list asked;         /* struct gate_asked: requests to the store */
  struct gate_entry *first;
  uv_timer_t *timer; /* allocated by itself: it closes after the gate is gone */
  bool due;          /* a place may have come free since the queue was last asked */
  gate_told_fn told;
};

void gate_init(struct gate *g, uv_loop_t *loop, const struct provider_registry *registry,
               const struct store *store, gate_told_fn told);
void gate_deinit(struct gate *g);

enum admission_answer gate_ask(struct gate *g, void *owner, long call, struct str provider,
                               bool has_fallback, struct admission_why *why);
void gate_seats(struct gate *g);
void gate_leave(struct gate *g, const void *owner, struct str provider, enum error_class class,
                int64_t retry_after_ms);
/* Counts the calls that wait for this provider. */
size_t gate_waiting(const struct gate *g, struct str provider);
void gate_drop(struct gate *g, const void *owner, long call);

#endif
