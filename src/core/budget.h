/* budget.h - what a session may use at most, as its workflow says it: no call starts, and no
 * movement is entered, once a sum has reached its limit.
 *
 * Pure: sums come from the fold (spend.h, the counts of turns, what calls that run have told so
 * far), limits from the workflow, and what a person has added to them from session_resume. A call
 * that runs is finished, or with on_exceed: stop ended once its usage events pass the limit; so a
 * sum passes its limit at most by what the calls use that run at that moment. A limit holds for all
 * of the session, for the turns of one movement (a group's with its children's), or for all
 * attempts of one call.
 *
 * Units: tokens (input and output), money (US dollars / 1e9), time (milliseconds that calls took,
 * all together: no waiting for limits or people is in it), calls (begun, each once however often it
 * is repeated), movements (turns that are no children). A command's calls count, too. */
#ifndef SEGUE_CORE_BUDGET_H
#define SEGUE_CORE_BUDGET_H

#include "base/buf.h"
#include "core/state.h"

struct budget_hit { /* a limit that was reached */
  enum budget_of { BUDGET_OF_SESSION, BUDGET_OF_MOVEMENT, BUDGET_OF_CALL, BUDGET_OF_DAY } of;
  struct str movement; /* of one, or of its call; borrowed */
  size_t index;        /* the same, in the workflow */
  struct str provider; /* of a day: whose budget it is; empty: of all; borrowed */
  enum budget_unit unit;
  int64_t used, limit;
  bool stops; /* a call that runs is ended */
};

/* Reads the key `budget` of a checked document; NULL: no limit. */
void budget_read(const json_t *object, struct budget *out);

/* May a call of this turn start? call: one that was begun, for its next attempt; NULL: a new one.
 * True: no, `hit` says why. */
bool budget_refuses_call(const struct core *core, const struct turn *turn, const struct call *call,
                         struct budget_hit *hit);
/* The same of the movement that would be entered. */
bool budget_refuses_turn(const struct core *core, size_t movement, struct budget_hit *hit);
/* Must this call, which runs, be ended? With what it and the others have told so far. */
bool budget_ends_call(const struct core *core, const struct turn *turn, const struct call *call,
                      struct budget_hit *hit);
/* The milliseconds that its next call may take, at most `most`. */
uint64_t budget_time_left(const struct core *core, const struct turn *turn, uint64_t most);

/* "the session's budget is used up: 1200 of 1000 tokens, 200 over (plan 800, work 400)". */
void budget_tell(const struct core *core, const struct budget_hit *hit, struct buf *out);
/* As session_stop has it. New. */
json_t *budget_json(const struct budget_hit *hit);
/* The end of a call brings this to those who watch: limits of which four fifths are used now, and
 * limits that do not see what it used. usage: as in its call_end; NULL: it told none. New; NULL:
 * nothing. */
json_t *budget_notes(const struct core *core, const struct turn *turn, const struct call *call,
                     const json_t *usage, int64_t duration_ms, bool answered);
/* The same of a turn or a call that begins now in this movement. */
json_t *budget_count_notes(const struct core *core, size_t movement, enum budget_unit unit);
/* Four fifths of a day's budget are used: a list for the call that begins now. New. */
json_t *budget_day_notes(const struct budget_hit *hit);
/* One of them, or of what a day may use, as a line for people: "budget: 820 of 1000 tokens are
 * used". */
void budget_note_tell(const json_t *note, struct buf *out);

/* A person adds this: {"tokens": 1000, "MOVEMENT.cost": 0.5, "time": "10m"}. */
bool budget_added_check(const struct workflow *wf, const json_t *added, struct err *err) MUST_CHECK;
/* For core_apply only. */
void budget_added_take(struct core *core, const json_t *added);
/* Would a session that stopped for its budget stop at once, with this added? Then err says what to
 * write. added may be NULL. */
bool budget_still_used_up(const struct core *core, const json_t *added, struct err *err);

#endif
