/* aggregate_shared.h - an aggregate of a shared store from what audits read of its logs before.
 *
 *   c = aggregate_new(); its filters, its keys
 *   aggregate_shared_read(c, &store, &told, &err)    in place of aggregate_read_store
 *
 * What was read of a sound log is kept in the store, for everybody (store/shared.h). Whoever may
 * only read uses it, and keeps nothing. Tables of an older version keep nothing: this is said once,
 * and all logs are read. Only `segue verify`, or an audit without this, can say whether a log is
 * still what was written. */
#ifndef SEGUE_AUDIT_AGGREGATE_SHARED_H
#define SEGUE_AUDIT_AGGREGATE_SHARED_H

#include "audit/aggregate_cache.h"

bool aggregate_shared_read(struct aggregate *c, const struct store *store,
                           struct aggregate_cache_told *told, struct err *err) MUST_CHECK;

#endif
