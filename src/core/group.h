/* group.h - keeps a movement with children, `parallel` or `for_each` in a file; internal to the
 * core.
 *
 * Each child is a turn of its own that names its group's turn. Its results are kept with the group
 * until all children have ended. Only then do values, the last exit and the answer become visible
 * to others, so no verdict depends on which sibling was faster. A child that failed or got no
 * verdict is data: its label is `error` or `none`. With for_each there is one child in the
 * workflow, and a turn of it for each item, up to `concurrency` at once.
 *
 * A group whose plan exceeds `ask_above`, of the workflow or of the session's configuration, asks a
 * person before its first child begins, and never later. Its plan counts a call of work and one to
 * judge for each child, and what such calls have cost: in earlier sessions (`call_costs` of the
 * configuration, which the host fills in), else on average in this one.
 *
 *   turn_start (group), turn_start (child, parent_turn) ..., turn_end (child) ..., judgment (group)
 * The group's answer joins its children's in the workflow's order, each under its name; the log
 * holds each once, where it came in. */
#ifndef SEGUE_CORE_GROUP_H
#define SEGUE_CORE_GROUP_H

#include "core/fold.h"

/* --- the fold --- */

/* Enters a turn_start: `turn` is a child's, or begins a group. */
bool group_enter(const struct fold *f, struct turn *turn);
/* Takes a child's turn_end: its group keeps its results, and the turn is freed. */
bool group_take(const struct fold *f, struct turn *turn);
/* Publishes the children's results, in the workflow's order, as the group's turn ends. */
void group_publish(struct core *core, const struct turn *turn);
/* Gives children without a verdict another chance; their siblings' work is kept. */
void group_reopen(struct turn *turn);

/* Tells a plan: "80 items, 160 calls, $3.20 (p50) to $6.10 (p90)". */
void group_plan_tell(const struct movement *group, const json_t *plan, struct buf *out);

/* --- questions --- */

/* Returns the place in the workflow of the movement that does this part of the group. */
size_t group_part_movement(const struct movement *group, size_t part);
/* Returns true if the child is no longer wanted: its group has `stop_on: error`, and a sibling
 * failed. */
bool group_stops(const struct core *core, const struct turn *child);

#endif
