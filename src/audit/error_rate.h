/* error_rate.h - estimates from people's labels how often verdicts are wrong, and how often each
 * rule was the right one, with intervals (exact.h).
 *
 *   e = error_rate_new(aggregate, NULL)   whose filters count; its AGGREGATE_BY keys make groups
 *   agree_beside and agree_read with error_rate_agree(e), for all logs
 *   list = error_rate_json(e, &err)       for each group an object for each person who labelled
 *   error_rate_free(e)
 *
 * A label says of a turn which rule was right, so the verdict is wrong where that is another one.
 * Its predictions are the verdict itself and what a second judge says of it (segue rejudge): turns
 * of one rule of which the second judge says the same are one cell. Among verdicts of one rule the
 * first judge says nothing any more, and without a second one labels stand alone. Judgments that
 * needed no judge are left out, and those of persons. */
#ifndef SEGUE_AUDIT_ERROR_RATE_H
#define SEGUE_AUDIT_ERROR_RATE_H

#include "audit/agree.h"

/* second: name of a rejudging; NULL: that with most verdicts. */
struct error_rate *error_rate_new(struct aggregate *aggregate, const char *second);
struct agree *error_rate_agree(struct error_rate *e);
/* A new array of {group, person, second, judgments, labels, wrong, rules, next}: `wrong` and in
 * `rules` `right` are [share, low, high], `named` is the share that the judge named. Person and
 * wrong are null where nobody labelled. NULL: there is no such second judge. */
json_t *error_rate_json(struct error_rate *e, struct err *err);
void error_rate_free(struct error_rate *e);

#endif
