/* admission.h - decides whether a call may go to its provider now, from what all sessions of a host
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
#ifndef SEGUE_HOST_ADMISSION_H
#define SEGUE_HOST_ADMISSION_H

#include "core/call.h"
#include "provider/registry.h"

#include <stdint.h>

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

void admission_cool(struct admission *a, struct str provider, uint64_t ms, uint64_t now_ms);
/* Returns the account that the provider's places belong to: the provider's name, unless the
 * settings name a pool. */
const char *admission_pool(const struct admission *a, struct str provider);
/* Returns the number of open calls at the providers of that pool. */
size_t admission_pool_open(const struct admission *a, const char *pool);

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

#endif
