/* Remembers for a moment whether providers and programs are there. */
#include "host/preflight_cache.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

struct preflight_known {
  char *key;
  uint64_t at_ms;
  enum ready ready;
  struct err err;
};

struct preflight_cache {
  struct preflight_known known[LIMIT_PREFLIGHT_KNOWN_COUNT];
  size_t count;
};

struct preflight_cache *preflight_cache_new(void) {
  return xcalloc(1, sizeof(struct preflight_cache));
}

static void preflight_forget(struct preflight_cache *cache) {
  for (size_t i = 0; i < cache->count; i++)
    free(cache->known[i].key);
  cache->count = 0;
}

void preflight_cache_free(struct preflight_cache *cache) {
  if (cache == NULL)
    return;
  preflight_forget(cache);
  free(cache);
}

static const struct preflight_known *known_as(const struct preflight_cache *cache,
                                              const char *key) {
  for (size_t i = 0; i < cache->count; i++)
    if (strcmp(cache->known[i].key, key) == 0)
      return &cache->known[i];
  return NULL;
}

bool preflight_cache_get(const struct preflight_cache *cache, const char *key, enum ready *ready,
                         struct err *err) {
  const struct preflight_known *known = cache ? known_as(cache, key) : NULL;
  if (known == NULL || clock_mono_ms() - known->at_ms > LIMIT_PREFLIGHT_FRESH_MS)
    return false;
  *ready = known->ready;
  *err = known->err;
  return true;
}

void preflight_cache_put(struct preflight_cache *cache, const char *key, enum ready ready,
                         const struct err *err) {
  struct preflight_known *known = cache ? (struct preflight_known *)known_as(cache, key) : NULL;
  if (cache == NULL)
    return;
  if (known == NULL) {
    if (cache->count == LIMIT_PREFLIGHT_KNOWN_COUNT)
      preflight_forget(cache);
    known = &cache->known[cache->count++];
    known->key = xstrdup(key);
  }
  known->at_ms = clock_mono_ms();
  known->ready = ready;
  known->err = *err;
}
