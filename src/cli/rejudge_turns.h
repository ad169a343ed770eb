/* rejudge_turns.h - chooses the recorded turns to judge again: those in some logs that pass a
 * census's filters and needed a judge.
 *
 *   struct rejudge_turns t = {.census = census};
 *   rejudge_choose(&t, &args, &err) ... t.list[i]
 *   rejudge_turns_deinit(&t)
 *
 * All are from one store, sorted by session and turn, without duplicates. */
#ifndef SEGUE_CLI_REJUDGE_TURNS_H
#define SEGUE_CLI_REJUDGE_TURNS_H

#include "audit/census.h"
#include "cli/cli.h"

struct rejudge_turn {
  char session[STORE_ID_BYTES];
  long turn, rule;             /* as recorded; rule 0: none */
  uint32_t workflow, movement; /* names, as are the next ones */
  uint32_t worker, worker_model, judge, judge_model;
  int64_t calls, cost_nano; /* used by its judging, as recorded */
};

struct rejudge_turns {
  struct census *census; /* applies its filters and names; borrowed */
  struct store source;
  bool has_source;
  struct rejudge_turn *list;
  size_t count, room;
  uint64_t passed_over, unsound; /* judgments that needed no judge; unsound logs */
  int64_t calls, cost_nano;      /* used by all judgings together */
  struct rows rows;
};

bool rejudge_choose(struct rejudge_turns *t, const struct cli_args *args,
                    struct err *err) MUST_CHECK;
void rejudge_turns_deinit(struct rejudge_turns *t);

#endif
