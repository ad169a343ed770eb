/* monitor.h - inside the core: loops that are watched, `loop_monitors` in a workflow.
 *
 * A monitor counts how often its cycle was gone through without a break. When it was `threshold`
 * times and the next movement would enter the cycle once more, a movement of its own is entered
 * instead: a judge, made when the workflow is built, whose rules say where to go. Its answer is no
 * {previous_response}: the loop goes on with what it had. When it has spoken, all counts begin
 * anew; so they do when a movement that the monitor does not ignore leaves the cycle. */
#ifndef SEGUE_CORE_MONITOR_H
#define SEGUE_CORE_MONITOR_H

#include "core/state.h"

/* The movement to enter: the one that waits, or the judge of the monitor that is due. */
size_t monitor_next(const struct core *core);

/* For core_apply only: a turn of a movement that is no child has ended. */
void monitor_note(struct core *core, size_t movement);
/* How often the cycle of the judge of this movement was gone through; 0: it is none. */
long monitor_count(const struct core *core, const struct movement *m);

/* For a fork: [[times, place in the cycle] of each monitor]; NULL: there are none. Read back it is
 * outside data; false: it is not of this workflow. */
json_t *monitor_json(const struct core *core);
bool monitor_take(struct core *core, const json_t *counts) MUST_CHECK;

#endif
