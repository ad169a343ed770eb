/* census_kept.h - the census of a whole store from what was counted before: the judgments of logs
 * that ended and were found sound are counted once and kept beside the logs; only what is new, or
 * goes on, is read.
 *
 *   if (census_kept_can(by)) c = census_kept_read(&store, by, &told, &err)
 *   census_sort(c) ...; census_free(c)       NULL: nothing can be kept of it: read it as a census
 *
 * A log that ended is not looked at again: that it is still what was written is what `segue verify`
 * says, or an audit without this. By one key at most, without filters: a census with all of it is
 * kept, one table a key. A log that was removed makes all of it be counted anew. */
#ifndef SEGUE_AUDIT_CENSUS_KEPT_H
#define SEGUE_AUDIT_CENSUS_KEPT_H

#include "audit/census.h"

struct census_kept_told {
  uint64_t known, read; /* logs that were not read, and that were */
};

/* by: as of census_by, or NULL. */
bool census_kept_can(const char *by);
struct census *census_kept_read(const struct store *store, const char *by,
                                struct census_kept_told *told, struct err *err);

#endif
