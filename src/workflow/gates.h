/* gates.h - `gates:` of a movement, made into command movements behind it.
 *
 * Before each place where its rules lead (except ABORT and itself) comes a chain of movements
 * NAME.GATE. Exit 0 leads on; any other status leads back to the movement, which gets the gate's
 * output as the previous response. After `gate_runs` runs no rule is left, and the session waits
 * for a person. The resolved document has no `gates` left: core and log see only movements. */
#ifndef SEGUE_WORKFLOW_GATES_H
#define SEGUE_WORKFLOW_GATES_H

#include <jansson.h>

/* The document may have errors; anything that is not a gate is left alone. */
void gates_expand(json_t *doc);

#endif
