/* preflight_cache.h - remembers what was looked up a moment ago; internal to preflight. */
#ifndef SEGUE_HOST_PREFLIGHT_CACHE_H
#define SEGUE_HOST_PREFLIGHT_CACHE_H

#include "host/preflight.h"
#include "provider/ready.h"

/* Returns false if nothing fresh is known under that key. cache may be NULL. */
bool preflight_cache_get(const struct preflight_cache *cache, const char *key, enum ready *ready,
                         struct err *err);
void preflight_cache_put(struct preflight_cache *cache, const char *key, enum ready ready,
                         const struct err *err);

#endif
