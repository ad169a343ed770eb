/* budget.h - limits what a session may use, as its workflow says: once a sum has reached its limit,
 * no call starts and no movement is entered.
 *
 * Pure. The sums come from the fold (spend.h, the counts of turns, and what running calls have
 * reported so far), the limits from the workflow, and a person's additions from session_resume. A
 * running call is finished, or with on_exceed: stop ended once its usage events exceed the limit;
 * so a sum exceeds its limit by no more than the calls running at that moment use. A limit holds
 * for the whole session, for the turns of one movement (a group's with its children's), or for all
 * attempts of one call.
 *
 * Units: tokens (input and output), money (US dollars / 1e9), time (milliseconds of calls, added
 * up, without waiting for limits or people), calls (begun; a repeated one counts once), movements
 * (turns except children's). A command's calls count too. */
#ifndef SEGUE_CORE_BUDGET_H
#define SEGUE_CORE_BUDGET_H

#include "base/buf.h"
#include "core/movement_limits.h"
#include "core/state.h"

struct budget_hit { /* a limit that was reached */
  enum budget_of {
    BUDGET_OF_SESSION,
    BUDGET_OF_MOVEMENT,
    BUDGET_OF_CALL,
    BUDGET_OF_DAY, /* from here on of the user's configuration, for a day */
    BUDGET_OF_STORE,
    BUDGET_OF_FOLDER
  } of;
  struct str movement; /* the movement with the limit, or of the call; borrowed */
  size_t index;        /* the movement's index in the workflow */
  /* with a day's budget its provider, empty: all; the folder as it is written; borrowed */
  struct str provider;
  enum budget_unit unit;
  int64_t used, limit;
  bool stops; /* a running call is ended */
};

int64_t budget_use(const struct spend *s, enum budget_unit unit); /* any unit except movements */
/* Appends "$0.0123", "1.5s", "1200". */
void budget_put_amount(struct buf *out, enum budget_unit unit, int64_t amount);

/* Returns true if a call of this turn must not start; `hit` says why. call: one already begun, for
 * its next attempt; NULL: a new one. */
bool budget_refuses_call(const struct core *core, const struct turn *turn, const struct call *call,
                         struct budget_hit *hit);
/* Does the same for the movement that would be entered. */
bool budget_refuses_turn(const struct core *core, size_t movement, struct budget_hit *hit);
/* Returns true if this running call must be ended, by what it and the others have reported so
 * far. */
bool budget_must_end_call(const struct core *core, const struct turn *turn, const struct call *call,
                          struct budget_hit *hit);
/* Returns the milliseconds that the turn's next call may take, at most `most`. */
uint64_t budget_time_left(const struct core *core, const struct turn *turn, uint64_t most);

/* Appends "the session's budget is used up: 1200 of 1000 tokens, 200 over (plan 800, work 400)". */
void budget_tell(const struct core *core, const struct budget_hit *hit, struct buf *out);
/* Returns the hit as session_stop has it. New. */
json_t *budget_json(const struct budget_hit *hit);
/* Returns notes for watchers at the end of a call: limits now four fifths used, and limits that
 * cannot see its use. usage: as in its call_end; NULL: none was reported. New; NULL: nothing to
 * say. */
json_t *budget_notes(const struct core *core, const struct turn *turn, const struct call *call,
                     const json_t *usage, int64_t duration_ms, bool answered);
/* Does the same for a turn or call that begins now in this movement. */
json_t *budget_count_notes(const struct core *core, size_t movement, enum budget_unit unit);
/* Returns a list of notes for the call that begins now: four fifths of a day's budget are used.
 * New. */
json_t *budget_day_notes(const struct budget_hit *hit);
/* Writes one of these notes, or one of a day's budget, as a line for people: "budget: 820 of 1000
 * tokens are used". */
void budget_note_tell(const json_t *note, struct buf *out);

/* Checks what a person adds: {"tokens": 1000, "MOVEMENT.cost": 0.5, "time": "10m"}. */
bool budget_added_check(const struct workflow *wf, const json_t *added, struct err *err) MUST_CHECK;
/* Takes it; only for core_apply. */
void budget_added_take(struct core *core, const json_t *added);
/* Returns true if a session that stopped for its budget would stop again at once with this added;
 * err then says what to write. added may be NULL. */
bool budget_still_used_up(const struct core *core, const json_t *added, struct err *err);

#endif
