/* Decides whether a call may go to its provider now. */
#include "host/admission.h"

#include "base/limits.h"
#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct admission_slot {
  struct str name;
  char *pool;
  unsigned limit; /* calls at once; 0: unlimited */
  unsigned open;
  unsigned failures;      /* in a row */
  bool several;           /* they come from more than one session */
  const void *last_owner; /* the owner of the last one; only compared */
  unsigned trips;         /* how often the circuit opened without a success since */
  uint64_t open_until_ms; /* the circuit; 0: closed */
  bool probing;           /* one call is trying whether the backend is back */
  uint64_t cool_until_ms;
};

static json_int_t concurrency(const struct provider *provider) {
  return json_integer_value(json_object_get(provider->settings, "concurrency"));
}

static bool pool_is_name(const json_t *value) {
  const char *text = json_string_value(value);
  if (value == NULL)
    return true;
  for (const char *p = text; p != NULL && *p; p++)
    if ((unsigned char)*p <= ' ' || *p == 127)
      return false;
  return text != NULL && text[0] != '\0' && strlen(text) <= LIMIT_POOL_BYTES;
}

bool admission_check(const struct provider *provider, struct err *err) {
  const json_t *value = json_object_get(provider->settings, "concurrency");
  if (!pool_is_name(json_object_get(provider->settings, "pool")))
    return err_set(err, ERR_INVALID,
                   "providers.%s.pool must be a name without spaces, of at most %u bytes",
                   provider->capability.name, LIMIT_POOL_BYTES);
  return value == NULL ||
         (json_is_integer(value) && concurrency(provider) >= 1 &&
          concurrency(provider) <= LIMIT_CONCURRENCY) ||
         err_set(err, ERR_INVALID,
                 "providers.%s.concurrency must be a whole number from 1 to %u: calls at once",
                 provider->capability.name, LIMIT_CONCURRENCY);
}

static struct admission_slot *admission_slot_of(const struct admission *a, struct str provider) {
  for (size_t i = 0; i < a->count; i++)
    if (str_eq(a->slots[i].name, provider))
      return &a->slots[i];
  return NULL;
}

void admission_init(struct admission *a, const struct provider_registry *registry) {
  *a = (struct admission){.slots = xcalloc(LIMIT_PROVIDER_COUNT, sizeof *a->slots)};
  admission_use(a, registry);
}

void admission_use(struct admission *a, const struct provider_registry *registry) {
  const struct provider *p;
  for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++) {
    struct admission_slot *slot = admission_slot_of(a, str_from(p->capability.name));
    if (slot == NULL && a->count == LIMIT_PROVIDER_COUNT)
      continue; /* names came and went: it gets no limit of its own */
    if (slot == NULL) {
      slot = &a->slots[a->count++];
      slot->name = str_from(xstrdup(p->capability.name));
    }
    slot->limit = (unsigned)concurrency(p);
    const char *pool = json_string_value(json_object_get(p->settings, "pool"));
    free(slot->pool);
    slot->pool = xstrdup(pool ? pool : p->capability.name);
  }
}

void admission_deinit(struct admission *a) {
  for (size_t i = 0; i < a->count; i++) {
    free((char *)(uintptr_t)a->slots[i].name.p);
    free(a->slots[i].pool);
  }
  free(a->slots);
  *a = (struct admission){0};
}

void admission_look_at(const struct admission *a, struct str provider, struct admission_look *out) {
  const struct admission_slot *s = admission_slot_of(a, provider);
  *out = (struct admission_look){0};
  if (s != NULL)
    *out = (struct admission_look){.limit = s->limit,
                                   .open = s->open,
                                   .failures = s->failures,
                                   .cool_until_ms = s->cool_until_ms,
                                   .open_until_ms = s->open_until_ms};
}

enum admission_answer admission_ask(struct admission *a, struct str provider, bool has_fallback,
                                    uint64_t now_ms, struct admission_why *why) {
  struct admission_slot *s = admission_slot_of(a, provider);
  *why = (struct admission_why){0};
  if (s == NULL) /* its start will report that there is none */
    return ADMISSION_ADMITTED;
  bool down = s->open_until_ms > now_ms || (s->open_until_ms > 0 && s->probing);
  if (down)
    *why = (struct admission_why){.reason = "circuit_open",
                                  .until_ms = s->open_until_ms > now_ms ? s->open_until_ms : 0};
  if (s->cool_until_ms > now_ms && s->cool_until_ms > why->until_ms)
    *why = (struct admission_why){.reason = "cooldown", .until_ms = s->cool_until_ms};
  if (why->reason != NULL)
    return has_fallback ? ADMISSION_FALLBACK : ADMISSION_WAIT;
  if (s->limit > 0 && s->open >= s->limit) {
    why->reason = "concurrency";
    return ADMISSION_WAIT; /* a place will be free soon: no reason to change the backend */
  }
  s->probing = s->open_until_ms > 0;
  s->open++;
  return ADMISSION_ADMITTED;
}

static void cool_down(struct admission_slot *s, int64_t ms, uint64_t now_ms) {
  uint64_t most = (uint64_t)LIMIT_RESET_WAIT_MS;
  uint64_t until = now_ms + ((uint64_t)ms < most ? (uint64_t)ms : most);
  if (until > s->cool_until_ms)
    s->cool_until_ms = until;
}

void admission_cool(struct admission *a, struct str provider, uint64_t ms, uint64_t now_ms) {
  struct admission_slot *s = admission_slot_of(a, provider);
  if (s != NULL && ms > 0)
    cool_down(s, (int64_t)ms, now_ms);
}

const char *admission_pool(const struct admission *a, struct str provider) {
  const struct admission_slot *s = admission_slot_of(a, provider);
  return s != NULL ? s->pool : "";
}

size_t admission_pool_open(const struct admission *a, const char *pool) {
  size_t open = 0;
  for (size_t i = 0; i < a->count; i++)
    if (strcmp(a->slots[i].pool, pool) == 0)
      open += a->slots[i].open;
  return open;
}

void admission_done(struct admission *a, struct str provider, const void *owner,
                    enum error_class class, int64_t retry_after_ms, uint64_t now_ms) {
  struct admission_slot *s = admission_slot_of(a, provider);
  if (s == NULL)
    return;
  assert(s->open > 0);
  s->open--;
  s->probing = false;
  if (retry_after_ms > 0 && (class == CLASS_RATE_LIMIT || class == CLASS_OVERLOADED))
    cool_down(s, retry_after_ms, now_ms);
  if (class == CLASS_QUOTA)
    cool_down(s, retry_after_ms > 0 ? retry_after_ms : LIMIT_QUOTA_COOLDOWN_MS, now_ms);
  if (class == CLASS_NONE) {
    s->failures = s->trips = 0;
    s->open_until_ms = 0;
  }
  bool down = class == CLASS_NETWORK || class == CLASS_OVERLOADED || class == CLASS_TIMEOUT ||
              class == CLASS_CRASHED || class == CLASS_PROTOCOL;
  if (!down)
    return;
  s->several = s->failures > 0 && (s->several || s->last_owner != owner);
  s->last_owner = owner;
  s->failures++;
  if (s->trips == 0 && (s->failures < LIMIT_CIRCUIT_FAILURES || !s->several))
    return;
  uint64_t wait = (uint64_t)LIMIT_CIRCUIT_OPEN_MS << (s->trips < 8 ? s->trips : 8);
  s->open_until_ms = now_ms + (wait < LIMIT_CIRCUIT_MAX_MS ? wait : LIMIT_CIRCUIT_MAX_MS);
  s->trips++;
}
