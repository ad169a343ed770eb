/* usage.h - Adds up what calls used: {"input", "output", "cached"?, "cost_usd"?}, see call_end. */
#ifndef SEGUE_JUDGE_USAGE_H
#define SEGUE_JUDGE_USAGE_H

#include <jansson.h>

/* Adds `more` to *sum, a new object where that is NULL; nothing happens without `more`. Tokens that
 * cannot be counted count as the most that can. A cost is known only where each part knows its
 * own. */
void usage_add(json_t **sum, const json_t *more);

#endif
