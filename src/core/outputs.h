/* outputs.h - what a complete session returns: the `outputs` of its workflow, filled in.
 *
 * Each is a template with the variables of an instruction (prompt.h). One that is a single
 * {structured:MOVEMENT.FIELD} is that value, whatever its type; null when there is none. A text
 * over LIMIT_RETURN_BYTES is cut; a value over it, and what no longer fits in LIMIT_RETURNS_BYTES
 * together with those before it, is null: the log has it in full. Pure. */
#ifndef SEGUE_CORE_OUTPUTS_H
#define SEGUE_CORE_OUTPUTS_H

#include "core/prompt.h"

/* A new reference, NULL when the workflow has none. `view` has any movement. */
json_t *outputs_make(const struct prompt_view *view);

#endif
