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
 * `told` says ADMITTED with why.at_once: the call did not wait.
 *
 * --- admission ---
 *
 * Decides whether a call may go to its provider now, from what all sessions of a host
 * share: concurrency limits, cooldowns, circuit breakers.
 *
 *   admission_init(&a, registry)              limits come from the providers' settings
 *   answer = admission_ask(&a, provider, has_fallback, now_ms, &why)
 *     ADMITTED   the call holds a place until admission_done
 *     WAIT       ask again when admission_done frees a place, or at why.until_ms
 *     FALLBACK   only with has_fallback: its provider cannot serve it for a while
 *   admission_done(&a, provider, owner, class, retry_after_ms, now_ms)
 *   admission_cool(&a, provider, ms, now_ms)    another machine was told to back off
 *   admission_deinit(&a)
 *
 * Settings (`providers: {NAME: {concurrency: N}}`): N calls at once, 1 to LIMIT_CONCURRENCY; the
 * default is no limit. `pool: NAME` is the account, where workers share places (host/call_queue.h).
 * A cooldown lasts as long as the backend asked for (rate_limit, overloaded with retry-after), or
 * LIMIT_QUOTA_COOLDOWN_MS when the money has run out. The circuit opens after
 * LIMIT_CIRCUIT_FAILURES failures in a row, from more than one session, that suggest the backend is
 * down (network, overloaded, timeout, crashed, protocol); for a single session its own bounded
 * attempts are enough. After a while, doubled each time, one call may try; its success closes the
 * circuit (Nygard, Release It!, "Circuit Breaker"). Nothing here is durable: answers become records
 * of the sessions that asked. Times are milliseconds of the host's clock. Pure: no I/O. */
#ifndef SEGUE_HOST_CALL_QUEUE_H
#define SEGUE_HOST_CALL_QUEUE_H

#include "base/list.h"
#include "core/call.h"
#include "host/call_queue.h"
#include "provider/registry.h"
#include "store/store.h"

#include <stdint.h>
#include <uv.h>

/* --- admission --- */

struct admission_slot; /* the state of one provider */
struct admission {
  struct admission_slot *slots;
  size_t count;
};

struct admission_why {
  const char *reason; /* static text: "concurrency", "seats", "cooldown", "circuit_open" */
  uint64_t until_ms;  /* 0: not known */
  bool at_once;       /* for the gate: nobody was told that the call was waiting */
};

void admission_init(struct admission *a, const struct provider_registry *registry);
/* Applies the limits of a reloaded configuration from now on, and keeps what is known of
 * backends. */
void admission_use(struct admission *a, const struct provider_registry *registry);
void admission_deinit(struct admission *a);

enum admission_answer admission_ask(struct admission *a, struct str provider, bool has_fallback,
                                    uint64_t now_ms, struct admission_why *why);
/* Ends an admitted call of the session `owner`; CLASS_NONE: it was answered. */
void admission_done(struct admission *a, struct str provider, const void *owner,
                    enum error_class class, int64_t retry_after_ms, uint64_t now_ms);

/* Shows the state of one provider. All zero: nothing is known. */
struct admission_look {
  unsigned limit, open; /* calls at once: the limit (0: none), and now */
  unsigned failures;    /* failures in a row that suggest the backend is down */
  /* 0: no; the circuit stays open until a call succeeds */
  uint64_t cool_until_ms, open_until_ms;
};
void admission_look_at(const struct admission *a, struct str provider, struct admission_look *out);

/* Checks that the concurrency setting is a whole number within its limits, and pool a name; err
 * names the key. */
bool admission_check(const struct provider *provider, struct err *err) MUST_CHECK;

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
