/* workflow_cache.h - keeps one workflow in memory for all sessions that run it.
 *
 * The key is the SHA-256 of the resolved document, as session_start records it; a hit is compared
 * with the document itself. Workflows that no session uses any more are dropped when another one is
 * put in. From any thread. */
#ifndef SEGUE_HOST_WORKFLOW_CACHE_H
#define SEGUE_HOST_WORKFLOW_CACHE_H

#include "core/workflow.h"

struct workflow_cache;

struct workflow_cache *workflow_cache_new(void);
void workflow_cache_free(struct workflow_cache *cache);

/* Finds the workflow of a session_start record: a reference, or NULL if it is not cached. */
struct workflow *workflow_cache_find(struct workflow_cache *cache, const json_t *start);
void workflow_cache_put(struct workflow_cache *cache, const json_t *start, struct workflow *wf);

/* Returns the cached workflow of the same document instead of `wf`, whose reference it takes. */
struct workflow *workflow_cache_share(struct workflow_cache *cache, struct workflow *wf);

#endif
