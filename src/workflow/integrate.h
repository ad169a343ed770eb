/* integrate.h - `integrate: GROUP` of a movement, made into a command movement.
 *
 * It runs `segue integrate`, which gets the branches of the group's last run on standard input. The
 * resolved document has no `integrate` left: core and log see only a command. */
#ifndef SEGUE_WORKFLOW_INTEGRATE_H
#define SEGUE_WORKFLOW_INTEGRATE_H

#include <jansson.h>

/* The document may have errors. */
void integrate_expand(json_t *doc);

#endif
