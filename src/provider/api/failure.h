/* failure.h - finds the meaning of an error of a model API: its class and when to come back. Pure.
 *
 * A status says little by itself: 429 is "slow down" or "out of money", 400 may be a bad key. Words
 * that decide come first, then the status, then the general words of errors within a stream. */
#ifndef SEGUE_PROVIDER_API_FAILURE_H
#define SEGUE_PROVIDER_API_FAILURE_H

#include "provider/api/reply.h"

/* Takes a header that says when to come back: retry-after(-ms), x-should-retry,
 * *ratelimit*-reset. */
void failure_header(struct reply_wait *wait, int64_t wall_ms, struct str name, struct str value);
/* Classes a reply whose status is no success. owned_doc: its body, NULL if that is not JSON. */
void failure_status(struct reply *r, json_t *owned_doc);
/* Fills retry_after_ms of a failed reply from the headers and its message. */
void failure_wait(struct reply *r);

#endif
