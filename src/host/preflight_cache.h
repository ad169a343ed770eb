/* preflight_cache.h - internal to preflight: what was looked up a moment ago. */
#ifndef SEGUE_HOST_PREFLIGHT_CACHE_H
#define SEGUE_HOST_PREFLIGHT_CACHE_H

#include "host/preflight.h"
#include "provider/ready.h"

/* False: nothing fresh is known under that key. cache may be NULL. */
bool preflight_cache_get(const struct preflight_cache *cache, const char *key, enum ready *ready,
                         struct err *err);
void preflight_cache_put(struct preflight_cache *cache, const char *key, enum ready ready,
                         const struct err *err);

#endif
