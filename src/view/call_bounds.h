/* call_bounds.h - what would end the calls of a session that are open: the time that each may take,
 * the budgets of a single call, a tool used again and again. Part of bounds.h, gathered likewise.
 *
 *   calls.arena = arena       zeroed otherwise; NULL: the workflow is not known, nothing is kept
 *   call_bounds_start(&calls, record, movement, &limits)   its call_start, with each attempt
 *   call_bounds_feed(&calls, record)                    other records of calls
 *   call_bounds_turn_over(&calls, turn), call_bounds_anew(&calls)
 *
 * Units are those of core/budget.h. */
#ifndef SEGUE_VIEW_CALL_BOUNDS_H
#define SEGUE_VIEW_CALL_BOUNDS_H

#include "base/arena.h"
#include "core/state.h"

enum { CALL_UNITS = BUDGET_TIME + 1 };

struct call_limits {
  int64_t budget[CALL_UNITS]; /* -1: none */
  long same_tool;             /* 0: any number of times */
};

struct call_bound {
  long turn, call;
  size_t movement;
  struct call_limits limits;
  bool runs, executes;
  int64_t used[CALL_UNITS]; /* by its attempts that are over */
  int64_t told[CALL_UNITS]; /* by the one that runs, so far */
  int64_t until_ms, timeout_ms;
  long tools; /* uses of one tool in a row */
  char sign[GUARD_SIGN];
};

struct call_bounds {
  struct arena *arena;
  struct call_bound *calls;
  size_t count, room;
};

void call_bounds_start(struct call_bounds *b, const json_t *record, size_t movement,
                       const struct call_limits *limits);
/* The call of this record, until the next record; NULL: it is none that is open. */
const struct call_bound *call_bounds_of(const struct call_bounds *b, const json_t *record);
/* admission, call_event or call_end; with another, nothing happens. */
void call_bounds_feed(struct call_bounds *b, const json_t *record);
void call_bounds_turn_over(struct call_bounds *b, long turn);
/* It was resumed after a stop for a budget: what each call used counts anew. */
void call_bounds_anew(struct call_bounds *b);

#endif
