/* reason.h - finds out whether the reason that a judge gives contradicts its choice. */
#ifndef SEGUE_JUDGE_REASON_H
#define SEGUE_JUDGE_REASON_H

#include "extract/tag.h"

/* Returns true if the reason is nothing but another rule's tag, number or words, or if it begins by
 * choosing another rule ("I choose 2", "Rule 2 holds") or, where a rule was chosen, by saying that
 * none holds or that nobody can tell. Whatever it says of other rules further on is argument.
 * query->words: the rules offered. */
bool reason_contradicts(struct str reason, long number, const struct tag_query *query);

#endif
