/* steer.h - internal to the core: what people say to a session while it works.
 *
 * DESIGN. What somebody says is a record before anything is done with it. If the work's call runs
 * and its backend has a channel for it, the record names that call, the backend is told, and a
 * call_event says when its agent has read it. Whatever was not read by then stands in front of the
 * next prompt of work, whose call_start names the record: so nothing is lost in a turn's last
 * instant or by a kill, and what may be read twice says so. It is evidence for judges, never a
 * verdict or a permission. */
#ifndef SEGUE_CORE_STEER_H
#define SEGUE_CORE_STEER_H

#include "core/fold.h"
#include "core/prompt.h"

/* Returns true for a call in which an agent works: what is said is for these. */
bool steer_takes(const struct core *core, const struct turn *turn, enum call_purpose purpose);
/* Puts what a call of the turn has to read in front of its prompt. call: one that is made again,
 * and has a part of it there already; or NULL. Returns the records' numbers for its call_start, a
 * new array; NULL: there is nothing. */
json_t *steer_put(const struct core *core, const struct turn *turn, const struct call *call,
                  struct prompt *prompt);

/* These fold the record, the call_start that has it in its prompt, and the call_event which says
 * that the running call has read it. */
bool steer_apply(const struct fold *f);
/* Takes over what judges of a forked session are told of its parent's. */
void steer_carry(struct core *core, const json_t *texts);
bool steer_given(const struct fold *f, const struct turn *turn, const struct call *call);
void steer_read(const struct fold *f, const struct turn *turn, const struct call *call);

#endif
