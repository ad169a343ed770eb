/* Keeps one workflow in memory for all sessions that run it. */
#include "host/workflow_cache.h"

#include "base/log.h"
#include "format/json_value.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct cached {
  struct cached *next;
  char sha256[SHA256_HEX];
  struct workflow *workflow;
};

struct workflow_cache {
  pthread_mutex_t lock;
  struct cached *entries;
};

struct workflow_cache *workflow_cache_new(void) {
  struct workflow_cache *cache = xcalloc(1, sizeof *cache);
  (void)pthread_mutex_init(&cache->lock, NULL);
  return cache;
}

/* Frees the workflows that only the cache holds; with `all`, every one. */
static void cache_sweep(struct workflow_cache *cache, bool all) {
  struct cached **at = &cache->entries;
  while (*at) {
    struct cached *e = *at;
    if (!all && e->workflow->references > 1) {
      at = &e->next;
      continue;
    }
    *at = e->next;
    workflow_unref(e->workflow);
    free(e);
  }
}

void workflow_cache_free(struct workflow_cache *cache) {
  if (cache == NULL)
    return;
  cache_sweep(cache, true);
  (void)pthread_mutex_destroy(&cache->lock);
  free(cache);
}

static struct workflow *cache_find(const struct workflow_cache *cache, const char *sha256,
                                   const json_t *doc) {
  for (const struct cached *e = cache->entries; e; e = e->next)
    if (strcmp(e->sha256, sha256) == 0 &&
        (e->workflow->doc == doc || json_same(e->workflow->doc, doc)))
      return e->workflow;
  return NULL;
}

static void cache_put(struct workflow_cache *cache, const char *sha256, struct workflow *wf) {
  cache_sweep(cache, false);
  struct cached *e = xcalloc(1, sizeof *e);
  memcpy(e->sha256, sha256, SHA256_HEX - 1);
  e->workflow = workflow_ref(wf);
  e->next = cache->entries;
  cache->entries = e;
}

/* Returns the hash that the record names, "" if it has none. */
static const char *cache_hash_of(const json_t *start) {
  const json_t *sha256 = json_object_get(start, "workflow_sha256");
  return json_string_length(sha256) == SHA256_HEX - 1 ? json_string_value(sha256) : "";
}

struct workflow *workflow_cache_find(struct workflow_cache *cache, const json_t *start) {
  const char *sha256 = cache_hash_of(start);
  struct workflow *found = NULL;
  (void)pthread_mutex_lock(&cache->lock);
  if (sha256[0])
    found = cache_find(cache, sha256, json_object_get(start, "workflow"));
  if (found != NULL)
    found = workflow_ref(found);
  (void)pthread_mutex_unlock(&cache->lock);
  return found;
}

void workflow_cache_put(struct workflow_cache *cache, const json_t *start, struct workflow *wf) {
  const char *sha256 = cache_hash_of(start);
  (void)pthread_mutex_lock(&cache->lock);
  if (sha256[0])
    cache_put(cache, sha256, wf);
  (void)pthread_mutex_unlock(&cache->lock);
}

struct workflow *workflow_cache_share(struct workflow_cache *cache, struct workflow *wf) {
  char sha256[SHA256_HEX];
  workflow_hash(wf, sha256);
  (void)pthread_mutex_lock(&cache->lock);
  struct workflow *known = cache_find(cache, sha256, wf->doc);
  if (known == NULL)
    cache_put(cache, sha256, wf);
  else
    known = workflow_ref(known);
  (void)pthread_mutex_unlock(&cache->lock);
  if (known == NULL)
    return wf;
  workflow_unref(wf);
  return known;
}
