/* outputs.h - makes what a complete session returns: the `outputs` of its workflow, filled in.
 *
 * Each output is a template with the variables of an instruction (prompt.h). A template that is
 * just {structured:MOVEMENT.FIELD} gives that value, whatever its type, or null if there is none. A
 * text over LIMIT_RETURN_BYTES is cut. A value over it, or one that no longer fits in
 * LIMIT_RETURNS_BYTES after those before it, is null: the log has it in full. Pure. */
#ifndef SEGUE_CORE_OUTPUTS_H
#define SEGUE_CORE_OUTPUTS_H

#include "core/prompt.h"

/* Returns a new reference; NULL if the workflow has no outputs. `view` may be any movement's. */
json_t *outputs_make(const struct prompt_view *view);

#endif
