/* evidence.h - finds the class of an error from vendors' statuses and words, the same way for every
 * backend.
 *
 * Pure. Exit statuses do not count: clients exit with 0 after errors, or with 1 after any error. */
#ifndef SEGUE_PROVIDER_AGENT_EVIDENCE_H
#define SEGUE_PROVIDER_AGENT_EVIDENCE_H

#include "base/str.h"
#include "core/call.h"

/* Classes an HTTP status; CLASS_NONE below 400. */
enum error_class evidence_of_status(int status);
/* Classes a message by words that vendors use; CLASS_NONE when none is known. */
enum error_class evidence_of_words(struct str text);
/* True if it says that the money has run out (and not when there will be more). */
bool evidence_of_quota(struct str text);
/* The HTTP status that a message names ("unexpected status 401", "API Error: 403", "401 Bad key"),
 * 0 when it names none. */
int evidence_status(struct str text);
/* "try again in 1.2s", "retry after 30 seconds": in milliseconds, 0 when it says none. */
int64_t evidence_retry_after_ms(struct str text);
/* Appends to out what the last line of a log (stderr) with `word` in it says: the value of the key
 * `error`, unquoted, if the line is logfmt (error=text, error="a text"), otherwise the line.
 * Appends nothing if no line has the word. */
void evidence_logged(struct str log, struct str word, struct buf *out);

#endif
