/* guard.h - guards against waste: what goes round and round is noticed, and stopped or told.
 *
 *   same_tool      a tool with the same argument so many times in a row: its call ends (looping)
 *   same_failure   a command's movement that came back so many times with the same failing output
 *                  while no file was changed: the session stops (looping) before it goes on
 *   same_movement  a movement that was entered so many times in a row: the same
 *
 * Pure. What is counted is folded from the records; a resume after a stop for looping begins the
 * counts anew. Two outputs are the same when they differ in their digits only: times and addresses
 * say nothing. */
#ifndef SEGUE_CORE_GUARD_H
#define SEGUE_CORE_GUARD_H

#include "base/buf.h"
#include "core/state.h"

/* Puts the key `guards` of a checked document on top of what is there. */
void guards_read(const json_t *object, struct guards *out);

/* --- for core_apply only --- */

/* A call told of a tool; a turn of a movement begins; a turn of a command is over (before its gate
 * is put); a session is resumed. */
void guards_see_tool(struct call *call, const json_t *data);
void guards_see_turn(struct core *core, size_t movement);
void guards_see_end(struct core *core, const struct turn *turn);
void guards_forget(struct core *core);
void guards_deinit(struct core *core);

/* --- questions --- */

/* The call goes round: it is to be ended, or (once, when the count is reached) told. */
enum guard_action guard_of_call(const struct core *core, const struct turn *turn,
                                const struct call *call, struct buf *why);
/* The same of the movement that would be entered next. */
enum guard_action guard_of_next(const struct core *core, struct buf *why);

#endif
