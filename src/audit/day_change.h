/* day_change.h - finds since which day a share is another one, in an audit by day (exact_change).
 *
 *   list = day_changes(aggregate, &count)    malloc'd; none unless `day` is among its keys
 *   day_change_text(aggregate, &list[i], &out), or day_change_json
 *
 * The figures are the shares of judgments that are unsure, ambiguous and without a rule. With more
 * keys than the day each combination of the others is a series of its own. Series and figures are
 * counted, so that of all that are looked at together nothing is said of an unchanged one in at
 * least 95 of 100 audits. */
#ifndef SEGUE_AUDIT_DAY_CHANGE_H
#define SEGUE_AUDIT_DAY_CHANGE_H

#include "audit/aggregate.h"
#include "audit/exact.h"

struct day_change {
  const char *figure; /* as in --json */
  size_t group;       /* a group of the series */
  struct exact_change change;
};

struct day_change *day_changes(const struct aggregate *c, size_t *count);
/* Appends "unsure rose from 3 % (2 of 61) to 9 % (9 of 98) since 12 November 2026". */
void day_change_text(const struct aggregate *c, const struct day_change *change, struct buf *out);
json_t *day_change_json(const struct aggregate *c, const struct day_change *change);

#endif
