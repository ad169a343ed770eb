/* day_change.h - finds since which day a share is another one, in an audit by day (exact_change).
 *
 * The figures are the shares of judgments that are unsure, ambiguous and without a rule. With more
 * keys than the day each combination of the others is a series of its own. Series and figures are
 * counted, so that of all that are looked at together nothing is said of an unchanged one in at
 * least 95 of 100 audits. */
#ifndef SEGUE_AUDIT_DAY_CHANGE_H
#define SEGUE_AUDIT_DAY_CHANGE_H

#include "audit/aggregate.h"

/* Returns a new array of {group, figure, day, before, since, text}, `changes` of
 * schemas/audit.json: "unsure rose from 3 % (18 of 610) to 9 % (90 of 980) since 12 November 2026".
 * It is empty unless `day` is among the keys of AGGREGATE_BY. */
json_t *day_changes(const struct aggregate *c);

#endif
