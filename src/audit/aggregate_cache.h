/* aggregate_cache.h - an aggregate of a whole store from what was read of its logs before. The rows
 * of logs that are sound are kept in the index (store/index.h); only logs that are new or have
 * changed since are read.
 *
 *   c = aggregate_new(); its filters, its keys
 *   aggregate_cache_read(c, &store, &told, &err)     in place of aggregate_read_store
 *   aggregate_cache_refresh(&store, budget, &more)
 *       keeps what an aggregate would read; a daemon does
 *
 * A log that has ended is not looked at again, any other only for its size and time: only `segue
 * verify`, or an audit without this, can say whether it is still what was written. */
#ifndef SEGUE_AUDIT_AGGREGATE_CACHE_H
#define SEGUE_AUDIT_AGGREGATE_CACHE_H

#include "audit/aggregate.h"

struct aggregate_cache_told {
  uint64_t known, read; /* logs that were skipped, and logs that were read */
  uint64_t left;        /* sound logs that were read while the file could not be written */
  uint64_t odd;         /* sound logs that were read and are too large to be kept, or changed */
  int wait_ms;          /* how long to wait for others who write the file; set by the caller */
};

/* Counts what aggregate_read_store counts, in the same order. */
bool aggregate_cache_read(struct aggregate *c, const struct store *store,
                          struct aggregate_cache_told *told, struct err *err) MUST_CHECK;
/* Reads up to `budget` logs that the index has as stopped or ended, but not yet their rows. *more:
 * others are left. Blocking: call it from the pool. */
void aggregate_cache_refresh(const struct store *store, size_t budget, bool *more);

#endif
