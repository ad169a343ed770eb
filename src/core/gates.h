/* gates.h - the checks of a session so far: each command movement's last exit and its tests.
 *
 * Part of the fold. A gate is {"turn", "exit", "passed"?, "failed"?, "skipped"?, "stale"}: stale
 * once a later turn changed a file, or may have (what it changed is not known). Its exit is the
 * program's, but 1 for a 0 that is no pass: tests are counted and none passed, or one failed. */
#ifndef SEGUE_CORE_GATES_H
#define SEGUE_CORE_GATES_H

#include "base/buf.h"
#include "core/state.h"

/* The exit of a turn with a command, as rules see it. */
int gate_exit(const struct turn *turn);
/* Its tests are counted (tests is not NULL), and it is no pass. */
bool gate_is_no_pass(const json_t *tests);

/* For core_apply only: an attempt of this turn's call is over; the turn is. */
void gates_changed(struct core *core, const struct turn *turn);
void gates_put(struct core *core, const struct turn *turn);

/* Those that a fork takes over: the tree may have changed since, so all are stale. Where a turn is
 * judged again (config: rejudges) they stay as that turn had them. */
void gates_take(struct core *core, const json_t *gates);

/* All gates as rules see them, this turn's own among them. New; NULL: there is none. */
json_t *gates_json(const struct core *core, const struct turn *turn);
/* Those of other movements that a judge is told of beside the last one's exit: with tests, stale,
 * or of several. One a line. */
void gates_tell(const struct core *core, const struct turn *turn, struct buf *out);
/* "12 passed, 1 failed, 2 skipped"; nothing where tests are not counted. */
void gate_tests(const json_t *tests, struct buf *out);

#endif
