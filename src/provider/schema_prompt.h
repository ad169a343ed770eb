/* schema_prompt.h - a JSON Schema in words, for backends that have no option for it: the end of a
 * prompt, after a rule, says that one JSON value of this schema is wanted and nothing else. A prompt
 * that shows the schema already, as the core writes it for a movement, stays as it is. The words are
 * those of prompts/en/schema.md, which the core's own prompts are made from too. */
#ifndef SEGUE_PROVIDER_SCHEMA_PROMPT_H
#define SEGUE_PROVIDER_SCHEMA_PROMPT_H

#include "base/buf.h"

#include <jansson.h>

void schema_prompt_append(struct buf *prompt, const json_t *schema);

#endif
