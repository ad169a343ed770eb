/* schema_prompt.h - puts a JSON Schema at the end of a prompt, for backends without an option for
 * it: in the words of describe_request, after a rule. A prompt that already has these words, as the
 * core writes them for a movement, is left unchanged; so is a prompt that shows the JSON Schema
 * itself, as a user's own template may. */
#ifndef SEGUE_PROVIDER_SCHEMA_PROMPT_H
#define SEGUE_PROVIDER_SCHEMA_PROMPT_H

#include "base/buf.h"
#include "core/call.h"

/* The request's schema, which compiles, in its form and language. */
void schema_prompt_append(struct buf *prompt, const struct call_request *request);

#endif
