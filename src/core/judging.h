/* judging.h - shows a turn as the chain of stages sees it: its rules, the agent's text, the input
 * of expressions, and the finished judge calls. It serves a decision and its replay alike.
 *
 *   struct judging_turn j;
 *   if (judging_of(&j, core, turn, schemas)) chain_next(&j.spec, stages, j.replies, j.count, ...)
 *   judging_deinit(&j)
 *
 * All is borrowed from the core except `env`. */
#ifndef SEGUE_CORE_JUDGING_H
#define SEGUE_CORE_JUDGING_H

#include "core/state.h"
#include "judge/chain.h"

struct judging_turn {
  struct chain_spec spec;
  json_t *env; /* for when(...); NULL if no rule has one */
  struct chain_reply replies[TURN_JUDGE_CALLS];
  size_t count;
};

/* Returns false while a judge's call is not over; then there is nothing to free. */
bool judging_of(struct judging_turn *j, const struct core *core, const struct turn *turn,
                const struct chain_schemas *schemas);
void judging_deinit(struct judging_turn *j);

#endif
