/* call_bounds.h - tells what would end a session's open calls: the time that each may take, the
 * budgets of a single call, a tool used again and again. It is part of bounds.h, and gathered
 * likewise.
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
  long same_tool;             /* 0: no limit */
  int64_t stall_ms;           /* of its own work; 0: what its provider has, which no record tells */
};

struct call_bound {
  long turn, call;
  size_t movement;
  struct call_limits limits;
  bool runs, executes;
  int64_t used[CALL_UNITS]; /* by its finished attempts */
  int64_t told[CALL_UNITS]; /* by its running attempt so far */
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
/* Returns the call of this record, until the next record; NULL: it is no open call. */
const struct call_bound *call_bounds_of(const struct call_bounds *b, const json_t *record);
/* Takes an admission, call_event or call_end; ignores other records. */
void call_bounds_feed(struct call_bounds *b, const json_t *record);
void call_bounds_turn_over(struct call_bounds *b, long turn);
/* Notes a resume after a stop for a budget: the use of each call is counted anew. */
void call_bounds_anew(struct call_bounds *b);

#endif
