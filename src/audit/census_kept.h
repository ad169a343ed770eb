/* census_kept.h - a census of a whole store, built on earlier counts. Judgments of logs that have
 * ended and are sound are counted once and kept beside the logs; only new logs and those still
 * growing are read.
 *
 *   if (census_kept_can(by)) c = census_kept_read(&store, by, &told, &err)
 *   census_sort(c) ...; census_free(c)       NULL: nothing can be kept; use census_read_store
 *
 * A log that has ended is not read again: only `segue verify`, or an audit without this, can say
 * whether it is still what was written. Since one table is kept for each key, it works with at most
 * one key and without filters. Removing a log makes everything be counted anew. */
#ifndef SEGUE_AUDIT_CENSUS_KEPT_H
#define SEGUE_AUDIT_CENSUS_KEPT_H

#include "audit/census.h"

struct census_kept_told {
  uint64_t known, read; /* logs that were skipped, and logs that were read */
};

/* Returns whether such a census is kept. by: as for census_by, or NULL. */
bool census_kept_can(const char *by);
struct census *census_kept_read(const struct store *store, const char *by,
                                struct census_kept_told *told, struct err *err);

#endif
