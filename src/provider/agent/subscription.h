/* subscription.h - recognizes subscription limits by clients' own words: "You've hit your session
 * limit · resets 3pm (UTC)". Some clients give them as their answer. */
#ifndef SEGUE_PROVIDER_AGENT_SUBSCRIPTION_H
#define SEGUE_PROVIDER_AGENT_SUBSCRIPTION_H

#include "core/call.h"

/* Turns a result that consists of such words, as an error or as the answer, into an error of class
 * rate_limit, with the time until the limit resets if the words name it. now_ms: wall clock. */
void subscription_check(struct call_result *result, int64_t now_ms);

/* Returns the milliseconds until the time after "resets" or "try again at" in the text (a time of
 * day, today or tomorrow; a date; a weekday; in the zone in parentheses, or else the local one), or
 * after a bar in seconds since 1970. 0: there is no time that it understands. */
int64_t subscription_reset_ms(struct str text, int64_t now_ms);

#endif
