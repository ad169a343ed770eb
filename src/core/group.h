/* group.h - inside the core: a movement with children, `parallel` in a workflow.
 *
 * Each child is a turn of its own that names its group's turn. What it brings is kept with the
 * group until all have ended. Only then do values, the last exit and the answer become visible to
 * others, so that no verdict hangs on which sibling was quicker. A child that failed, or that got
 * no verdict, is data: its label is `error` or `none`. With for_each there is one child in the
 * workflow, and a turn of it for each item, up to `concurrency` at once.
 *
 *   turn_start (group), turn_start (child, parent_turn) ..., turn_end (child) ..., judgment (group)
 * The group's answer is its children's in the workflow's order, each under its name; the log holds
 * each once, where it came in. */
#ifndef SEGUE_CORE_GROUP_H
#define SEGUE_CORE_GROUP_H

#include "core/fold.h"
#include "core/step.h"

/* --- the fold --- */

/* turn_start: `turn` is a child's, or begins a group. */
bool group_enter(const struct fold *f, struct turn *turn);
/* turn_end of a child: its group keeps what it brought. The turn is gone then. */
bool group_take(const struct fold *f, struct turn *turn);
/* Shows what the children brought, in the workflow's order: the group's turn ends. */
void group_publish(struct core *core, const struct turn *turn);
/* Another chance for the children without a verdict, if any; their siblings' work is kept. */
void group_reopen(struct turn *turn);
void core_group_free(struct turn *turn);

/* --- the decision --- */

/* Opens the next child there is room for. False: it waits for those that run. */
bool group_advance(struct step *s, struct turn *turn);
/* The child's group has `stop_on: error`, and a sibling failed: it is wanted no more. */
bool group_stops(const struct core *core, const struct turn *child);
/* A session that goes on: children whose group stops are ended, whatever they were at. */
void group_settle(struct step *s);
/* A child's turn ends: with its rule, or `error` or `none` as its failure says. */
void group_end_child(struct step *s, struct turn *turn);
void group_fail_child(struct step *s, struct turn *turn, enum error_class class,
                      struct str message);
/* for_each has nothing to go through, and `why` says so: its turn has no verdict. */
bool group_lacks_items(const struct core *core, const struct turn *turn, struct buf *why);
/* The item that the child is for; NULL: its group has no for_each. */
const json_t *group_item(const struct core *core, const struct turn *child);
/* All children failed: there is nothing to judge but that. */
bool group_all_failed(const struct turn *turn);
/* Adds `parts` and `votes` to what the group's when() and aggregates see. */
void group_env(const struct core *core, const struct turn *turn, json_t *env);

#endif
