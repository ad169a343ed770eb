/* moment.h - reads when to come back: the one parser of durations and moments that vendors, clients
 * and gateways name, in words, headers and fields.
 *
 * A duration is "1.2s", "6m0s", "2 days 3 hours", "an hour"; a moment a time of day, today or
 * tomorrow, a date, a weekday, in a zone that is named or else the local one, or seconds or
 * milliseconds since 1970. Everything is returned as milliseconds from now, at most a year, 0 where
 * there is nothing that it understands. now_ms: wall clock. */
#ifndef SEGUE_PROVIDER_MOMENT_H
#define SEGUE_PROVIDER_MOMENT_H

#include "base/str.h"

#include <stdint.h>

/* Finds it in a sentence, behind "resets", "try again", "retry after" and the like, or in seconds
 * since 1970 behind a bar. */
int64_t moment_in_text(struct str text, int64_t now_ms);
/* Reads a value that is nothing else; a number without a unit is seconds. */
int64_t moment_of_value(struct str value, int64_t now_ms);

#endif
