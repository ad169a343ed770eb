/* gates.h - `gates:` of a movement, made into command movements behind it.
 *
 * For each place where its rules lead (but ABORT and itself) a chain of movements NAME.GATE is put
 * before that place: exit 0 leads on, anything else back to the movement, which gets the gate's
 * output as the previous response; after `gate_runs` runs no rule is left and the session waits for
 * a person. The resolved document has no `gates` left: core and log see only movements. */
#ifndef SEGUE_WORKFLOW_GATES_H
#define SEGUE_WORKFLOW_GATES_H

#include <jansson.h>

/* The document may have errors; what is not a gate is left alone. */
void gates_expand(json_t *doc);

#endif
