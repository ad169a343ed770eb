/* integrate.h - `integrate: GROUP` of a movement, made into a command movement.
 *
 * It runs `segue integrate`, whose standard input are the branches of the group's last run. The
 * resolved document has no `integrate` left: core and log see only a command. */
#ifndef SEGUE_WORKFLOW_INTEGRATE_H
#define SEGUE_WORKFLOW_INTEGRATE_H

#include <jansson.h>

/* The document may have errors. */
void integrate_expand(json_t *doc);

#endif
