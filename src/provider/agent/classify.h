/* classify.h - finds the class of an error from vendors' statuses and words, the same way for every
 * backend.
 *
 * Pure. Exit statuses do not count: clients exit with 0 after errors, or with 1 after any error. */
#ifndef SEGUE_PROVIDER_AGENT_CLASSIFY_H
#define SEGUE_PROVIDER_AGENT_CLASSIFY_H

#include "base/str.h"
#include "core/call.h"

/* Classes an HTTP status; CLASS_NONE below 400. */
enum error_class classify_of_status(int status);
/* Classes a message by words that vendors use; CLASS_NONE when none is known. */
enum error_class classify_of_words(struct str text);
/* Returns true if it says that the money has run out (and not when there will be more). */
bool classify_of_quota(struct str text);
/* Returns the HTTP status that a message names ("unexpected status 401", "API Error: 403", "401 Bad
 * key"), or 0. */
int classify_status(struct str text);
/* Returns the milliseconds in "try again in 1.2s" or "retry after 30 seconds"; 0: there are
 * none. */
int64_t classify_retry_after_ms(struct str text);
/* Appends what the last line with `word` in a log (stderr) says: the unquoted value of the key
 * `error` if the line is logfmt (error=text, error="a text"), otherwise the line; nothing if no
 * line has the word. */
void classify_logged(struct str log, struct str word, struct buf *out);

/* Reads the duration that a text begins with, rounded up, since it is useless to come back too
 * early: "1.2s", "30 seconds", "6m0s", "2 hours", "800ms"; a number without a unit is seconds.
 * Returns 0 if it begins with none. */
int64_t classify_duration_ms(struct str text);
/* The milliseconds of one number of it with its unit, at *i, which moves past them. */
double classify_duration_part(struct str text, size_t *i);

#endif
