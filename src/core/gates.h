/* gates.h - the checks of a session so far: the last exit and tests of each command movement.
 *
 * Part of the fold. A gate is {"turn", "exit", "passed"?, "failed"?, "skipped"?, "stale"}: stale
 * once a later turn changed a file, or may have. Its exit is the program's, except that a 0 which
 * is not a pass counts as 1: tests are counted, and none passed or one failed. */
#ifndef SEGUE_CORE_GATES_H
#define SEGUE_CORE_GATES_H

#include "base/buf.h"
#include "core/state.h"

/* The exit of a turn with a command, as rules see it. */
int gate_exit(const struct turn *turn);
/* True if its tests are counted (tests is not NULL) and it is not a pass. */
bool gate_is_no_pass(const json_t *tests);

/* For core_apply only: an attempt of this turn's call is over; the turn itself is over. */
void gates_changed(struct core *core, const struct turn *turn);
void gates_put(struct core *core, const struct turn *turn);

/* Takes a parent's gates into a fork: the tree may have changed since, so all are stale. If a turn
 * is judged again (config: rejudges), they stay as that turn had them. */
void gates_take(struct core *core, const json_t *gates);

/* All gates as rules see them, including this turn's own. New; NULL: there are none. */
json_t *gates_json(const struct core *core, const struct turn *turn);
/* The gates of other movements that a judge is shown besides the last exit: those with tests, stale
 * ones, or all if there are several. One a line. */
void gates_tell(const struct core *core, const struct turn *turn, struct buf *out);
/* "12 passed, 1 failed, 2 skipped"; nothing where tests are not counted. */
void gate_tests(const json_t *tests, struct buf *out);

#endif
