/* reason.h - does what a judge says for its choice name another choice? */
#ifndef SEGUE_JUDGE_REASON_H
#define SEGUE_JUDGE_REASON_H

#include "extract/tag.h"

/* True if the reason is no more than another rule's tag, number or words, or begins with the choice
 * of another one ("I choose 2", "Rule 2 holds") or, beside a rule, with that none holds or none can
 * be told. What it says of other rules elsewhere is its argument. query->words: the rules offered.
 */
bool reason_contradicts(struct str reason, long number, const struct tag_query *query);

#endif
