/* ask_trace.h - gathers what the records of one question say, live or read back from its log, and
 * makes the result that `segue ask`, `segue resume` and the daemon return.
 *
 *   struct ask_trace told = {0};
 *   ask_trace_feed(&told, record)             each record, in order
 *   result = ask_trace_result(&told, broken)  any time; a new object
 *   ask_trace_deinit(&told) */
#ifndef SEGUE_AUDIT_ASK_TRACE_H
#define SEGUE_AUDIT_ASK_TRACE_H

#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

struct ask_trace {
  json_t *calls;  /* number -> {"text"?, "error"?} of calls that should give the value */
  json_t *checks; /* bodies of check records */
  /* records of these types (stop: session_stop or session_end). NULL: none came */
  json_t *structured, *stop;
  int64_t tokens, duration_ms;
};

void ask_trace_feed(struct ask_trace *t, const json_t *record);
void ask_trace_deinit(struct ask_trace *t);
/* Returns whether a call was made to get the value. */
bool ask_trace_generates(const struct ask_trace *t, long call);
/* Returns whether a session is a question of `segue ask`, by its first record. */
bool ask_trace_is_of(const json_t *session_start);

/* Returns {"value"|null, "raw", "attempts", "outcome", "first_pass", "failures", "errors",
 * "checks", ...}, a new object. broken: why its log could not be continued, or NULL. */
json_t *ask_trace_result(const struct ask_trace *t, const struct err *broken);
/* Returns whether there is a value, or the sentinel in its place. */
bool ask_trace_has_value(const json_t *result);

#endif
