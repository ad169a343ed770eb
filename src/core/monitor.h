/* monitor.h - internal to the core: watched loops, `loop_monitors` in a workflow.
 *
 * A monitor counts how often its cycle was completed without a break. When the count reaches
 * `threshold` and the next movement would enter the cycle again, the monitor's own movement is
 * entered instead: a judge, made when the workflow is built, whose rules say where to go. Its
 * answer does not become {previous_response}; the loop keeps the one it had. All counts restart
 * after its verdict, and when a movement that the monitor does not ignore leaves the cycle. */
#ifndef SEGUE_CORE_MONITOR_H
#define SEGUE_CORE_MONITOR_H

#include "core/state.h"

/* Returns the movement to enter: the waiting one, or the judge of the monitor that is due. */
size_t monitor_next(const struct core *core);

/* Counts a turn of `movement` that has ended in one monitor's loop. */
void monitor_step(const struct monitor *m, struct loop_count *loop, size_t movement);

/* Notes that a turn which is not a child's has ended; only for core_apply. */
void monitor_note(struct core *core, size_t movement);
/* Returns how often the cycle that this movement judges was completed; 0: it judges none. */
long monitor_count(const struct core *core, const struct movement *m);

/* Returns the counts for a fork: [[times, place in the cycle] of each monitor]; NULL: there are
 * none. They are read back as outside data; false: they do not fit this workflow. */
json_t *monitor_json(const struct core *core);
bool monitor_take(struct core *core, const json_t *counts) MUST_CHECK;

#endif
