/* guard.h - guards against waste: what goes round in circles is noticed, and stopped or reported.
 *
 *   same_tool      a tool used with the same argument too often in a row: its call ends (looping)
 *   same_failure   a command that failed with the same output too often
 *                  while no file was changed: the session stops (looping) before it goes on
 *   same_movement  a movement entered too often in a row: likewise
 *
 * Pure. The counts are folded from the records; a resume after a stop for looping starts them
 * again. Outputs that differ only in digits are the same: times and addresses mean nothing. */
#ifndef SEGUE_CORE_GUARD_H
#define SEGUE_CORE_GUARD_H

#include "base/buf.h"
#include "core/state.h"

/* Applies the key `guards` of a checked document on top of the present ones. */
void guards_read(const json_t *object, struct guards *out);

/* --- for core_apply only --- */

/* A call told of a tool; a turn of a movement begins; a turn of a command is over (before its gate
 * is put); a session is resumed. */
void guards_see_tool(struct call *call, const json_t *data);
void guards_see_turn(struct core *core, size_t movement);
void guards_see_end(struct core *core, const struct turn *turn);
void guards_forget(struct core *core);
void guards_deinit(struct core *core);

/* --- counting, also for those who read a log --- */

/* Returns how often in a row this tool was used with the same argument; sign: of the use before, ""
 * at first; is set. */
long guard_count_tool(char sign[GUARD_SIGN], long count, const json_t *data);
/* Sets what a failing output is compared by: equal ones have equal signs. */
void guard_sign_failure(int exit, struct str text, char sign[GUARD_SIGN]);

/* --- questions --- */

/* The call goes in circles: end it or, once, when the count is reached, report it. */
enum guard_action guard_of_call(const struct core *core, const struct turn *turn,
                                const struct call *call, struct buf *why);
/* The same for the movement that would be entered next. */
enum guard_action guard_of_next(const struct core *core, struct buf *why);

#endif
