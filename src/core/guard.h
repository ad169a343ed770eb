/* guard.h - guards against waste: notices work that goes in circles, and stops or reports it.
 *
 *   same_tool      a tool used with the same argument too often in a row: its call ends (looping)
 *   same_failure   a command that failed with the same output too often while no file was changed:
 *                  the session stops (looping) before it continues
 *   same_movement  a movement entered too often in a row: likewise
 *
 * Pure. The counts are folded from the records; a resume after a stop for looping starts them
 * again. Outputs that differ only in digits are the same: times and addresses mean nothing. */
#ifndef SEGUE_CORE_GUARD_H
#define SEGUE_CORE_GUARD_H

#include "base/buf.h"
#include "core/state.h"

/* --- for core_apply only --- */

/* These count: a call reported a tool; a movement's turn begins; a command's turn is over (before
 * its gate is put); a session is resumed. */
void guards_see_tool(struct call *call, const json_t *data);
void guards_see_turn(struct core *core, size_t movement);
void guards_see_end(struct core *core, const struct turn *turn);
void guards_forget(struct core *core);

/* --- counting, also for those who read a log --- */

/* Returns how often in a row this tool was used with the same argument. sign: identifies the
 * previous use ("" at first), then this one. */
long guard_count_tool(char sign[GUARD_SIGN], long count, const json_t *data);
/* Sets the sign by which failing outputs are compared: equal ones have equal signs. */
void guard_sign_failure(int exit, struct str text, char sign[GUARD_SIGN]);

/* --- questions --- */

/* Says whether the call goes in circles: end it or, once, when the count is reached, report it. */
enum guard_action guard_of_call(const struct core *core, const struct turn *turn,
                                const struct call *call, struct buf *why);
/* Does the same for the movement that would be entered next. */
enum guard_action guard_of_next(const struct core *core, struct buf *why);

#endif
