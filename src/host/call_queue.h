/* call_queue.h - queues calls that may not go to their providers yet, in order of arrival. A new
 * call never overtakes one that waits for the same provider. The timer keeps the loop alive only
 * while a call waits.
 *
 *   call_queue_init(&g, loop, registry, told)
 *   answer = call_queue_ask(&g, &call, &why)
 *     ADMITTED: the call has a place until call_queue_leave. FALLBACK: it has none and waits for
 *         none.
 *     WAIT: it is queued; `told` comes from the loop, once with ADMITTED or FALLBACK, and before
 *     that with WAIT whenever the reason changes and its end is known
 *   call_queue_await(&g, &call, &away)   a call that failed waits until its provider is back, or
 *                                        for its turn to try that; `told` says ADMITTED
 *   call_queue_gives_up(&g, owner, call, ms)   a queued call waits no longer than that for a shut
 *                                        gate: then `told` says ADMITTED with why.gave_up
 *   call_queue_leave(&g, owner, provider, &end)   an admitted call is over
 *   call_queue_reached(&g, provider)     a probe still runs, and a model has answered it
 *   call_queue_hurry(&g, provider)       a person resumed a session: a refused login is tried now
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
 * share: concurrency limits, cooldowns, the gate of each account.
 *
 *   admission_init(&a, registry)              limits come from the providers' settings
 *   answer = admission_ask(&a, &call, now_ms, &why)
 *     ADMITTED   the call holds a place until admission_done; why.probe: it tries for all
 *     WAIT       ask again when admission_done frees a place, or at why.until_ms
 *     FALLBACK   only with has_fallback: its provider cannot serve it for a while
 *   admission_done(&a, provider, owner, &end, now_ms)
 *   admission_cool(&a, provider, ms, now_ms)    another machine was told to back off
 *   admission_deinit(&a)
 *
 * Settings (`providers: {NAME: {concurrency: N}}`): N calls at once, 1 to LIMIT_CONCURRENCY; the
 * default is no limit. `pool: NAME` is the account, where workers share places (host/call_queue.h).
 * A cooldown lasts as long as the backend asked for (rate_limit, overloaded with retry-after), or
 * LIMIT_QUOTA_COOLDOWN_MS when the money has run out. Nothing here is durable: answers become
 * records of the sessions that asked. Times are milliseconds of the host's clock. Pure: no I/O.
 *
 * The gate shuts when a provider is away (network, overloaded, rate_limit without a time), when
 * several sessions have seen LIMIT_CIRCUIT_FAILURES failures in a row that suggest it is down
 * (timeout, crashed, protocol), and, where `holds_auth` is set, when it refuses the login. While it
 * is shut, one call at a time may try (the probe), after a pause that grows; the others wait. An
 * answer opens it, for the sessions in the order of their ids. A probe that was cancelled passes
 * its turn on. Calls that are not `patient` take no notice of it. */
#ifndef SEGUE_HOST_CALL_QUEUE_H
#define SEGUE_HOST_CALL_QUEUE_H

#include "base/list.h"
#include "core/call.h"
#include "provider/registry.h"
#include "store/store.h"

#include <stdint.h>
#include <uv.h>

/* --- admission --- */

struct admission_slot; /* the state of one provider */
struct admission {
  struct admission_slot *slots;
  size_t count;
  bool holds_auth; /* a refused login shuts the gate: others may log in while sessions wait */
};

struct admission_call { /* all borrowed; owner and call only with a queue */
  void *owner;
  long call;
  struct str provider;
  const char *session; /* its id, by which those that wait for a gate are ordered; or NULL */
  bool has_fallback, patient;
};

struct admission_end {
  enum error_class class; /* CLASS_NONE: it was answered */
  int64_t retry_after_ms;
  bool probe;      /* it was admitted as one */
  int64_t real_ms; /* real time, for what the gate says */
};

struct admission_away {   /* what a gate knows while it is shut */
  enum error_class class; /* CLASS_NONE: it is open */
  int64_t since_ms;       /* real time */
  int tries;              /* attempts that failed since, one of a time */
  uint64_t next_ms;       /* when the next probe may go */
  bool probing;
};

struct admission_why {
  /* static text: "concurrency", "seats", "cooldown", or the class for which the gate is shut */
  const char *reason;
  uint64_t until_ms;          /* 0: not known */
  struct admission_away away; /* with a shut gate */
  bool probe;
  /* for the queue: */
  bool at_once;             /* nobody was told that the call was waiting */
  bool awaited;             /* it came by call_queue_await */
  enum error_class gave_up; /* it has no place: it has waited long enough */
  int64_t waited_ms;
};

void admission_init(struct admission *a, const struct provider_registry *registry);
/* Applies the limits of a reloaded configuration from now on, and keeps what is known of
 * backends. */
void admission_use(struct admission *a, const struct provider_registry *registry);
void admission_deinit(struct admission *a);

enum admission_answer admission_ask(struct admission *a, const struct admission_call *call,
                                    uint64_t now_ms, struct admission_why *why);
/* Ends an admitted call of the session `owner`. */
void admission_done(struct admission *a, struct str provider, const void *owner,
                    const struct admission_end *end, uint64_t now_ms);
/* A session that was read back says what it knows of an outage, with next_ms as a duration from
 * now: that shuts a gate that knows nothing, as after a restart. */
void admission_doubt(struct admission *a, struct str provider, const struct admission_away *away,
                     uint64_t now_ms);
/* Returns what the provider's gate knows; NULL: there is none. */
const struct admission_away *admission_away_of(const struct admission *a, struct str provider);

/* Shows the state of one provider. All zero: nothing is known. */
struct admission_look {
  unsigned limit, open;   /* calls at once: the limit (0: none), and now */
  unsigned failures;      /* failures in a row that suggest the backend is down */
  uint64_t cool_until_ms; /* 0: no */
  struct admission_away away;
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

enum admission_answer call_queue_ask(struct call_queue *g, const struct admission_call *call,
                                     struct admission_why *why);
/* `away`: see admission_doubt. */
void call_queue_await(struct call_queue *g, const struct admission_call *call,
                      const struct admission_away *away);
/* Does the same for the provider alone: a session that asks next was waiting for it. */
void call_queue_doubt(struct call_queue *g, struct str provider, const struct admission_away *away);
void call_queue_gives_up(struct call_queue *g, const void *owner, long call, int64_t ms);
void call_queue_seats(struct call_queue *g);
void call_queue_leave(struct call_queue *g, const void *owner, struct str provider,
                      const struct admission_end *end);
void call_queue_reached(struct call_queue *g, struct str provider);
void call_queue_hurry(struct call_queue *g, struct str provider);
/* Counts the calls that wait for this provider. */
size_t call_queue_waiting(const struct call_queue *g, struct str provider);
void call_queue_drop(struct call_queue *g, const void *owner, long call);

#endif
