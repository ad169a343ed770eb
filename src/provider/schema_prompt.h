/* schema_prompt.h - tells a JSON Schema at the end of a prompt, for backends that have no option
 * for it: in the words of describe_request, after a rule. A prompt that has them already, as the
 * core writes them for a movement, stays as it is; so does one that shows the JSON Schema itself,
 * as a template of a user's own may. */
#ifndef SEGUE_PROVIDER_SCHEMA_PROMPT_H
#define SEGUE_PROVIDER_SCHEMA_PROMPT_H

#include "base/buf.h"
#include "core/call.h"

/* The request's schema, which compiles, in its form and language. */
void schema_prompt_append(struct buf *prompt, const struct call_request *request);

#endif
