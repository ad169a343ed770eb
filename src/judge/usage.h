/* usage.h - adds up what calls used: {"input", "output", "cached"?, "cost_usd"?}, see call_end. */
#ifndef SEGUE_JUDGE_USAGE_H
#define SEGUE_JUDGE_USAGE_H

#include <jansson.h>

/* Adds `more` to *sum, which becomes a new object if it is NULL; does nothing without `more`. Token
 * counts saturate. A cost is known only if every part knows its own. */
void usage_add(json_t **sum, const json_t *more);

#endif
