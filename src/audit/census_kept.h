/* census_kept.h - the census of a whole store, built on earlier counts. Judgments of logs that have
 * ended and are sound are counted once and kept beside the logs; only new logs and those still
 * growing are read.
 *
 *   if (census_kept_can(by)) c = census_kept_read(&store, by, &told, &err)
 *   census_sort(c) ...; census_free(c)       NULL: nothing can be kept; use census_read_store
 *
 * A log that has ended is not read again: whether it is still what was written is for `segue
 * verify`, or an audit without this, to say. It works by one key at most and without filters, since
 * one table a key is kept. Removing a log makes everything be counted anew. */
#ifndef SEGUE_AUDIT_CENSUS_KEPT_H
#define SEGUE_AUDIT_CENSUS_KEPT_H

#include "audit/census.h"

struct census_kept_told {
  uint64_t known, read; /* logs that were skipped, and logs that were read */
};

/* by: as for census_by, or NULL. */
bool census_kept_can(const char *by);
struct census *census_kept_read(const struct store *store, const char *by,
                                struct census_kept_told *told, struct err *err);

#endif
