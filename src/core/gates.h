/* gates.h - keeps the checks of a session so far: the last exit and tests of each command movement.
 *
 * Part of the fold. A gate is {"turn", "exit", "passed"?, "failed"?, "skipped"?, "stale"}: stale
 * once a later turn changed a file, or may have. Its exit is the program's, except that a 0 which
 * is not a pass counts as 1: tests are counted, and none passed or one failed. */
#ifndef SEGUE_CORE_GATES_H
#define SEGUE_CORE_GATES_H

#include "base/buf.h"
#include "core/state.h"

/* Returns the exit of a command's turn, as rules see it. */
int gate_exit(const struct turn *turn);
/* Returns true if tests are counted (`tests` is not NULL) and they are not a pass. */
bool gate_is_no_pass(const json_t *tests);

/* The first notes that an attempt of this turn's call is over, the second that the turn is; only
 * for core_apply. */
void gates_changed(struct core *core, const struct turn *turn);
void gates_put(struct core *core, const struct turn *turn);

/* Takes a parent's gates into a fork: the tree may have changed since, so all are stale. If a turn
 * is judged again (config: rejudges), they stay as that turn had them. */
void gates_take(struct core *core, const json_t *gates);

/* Returns all gates as rules see them, including this turn's own. New; NULL: there are none. */
json_t *gates_json(const struct core *core, const struct turn *turn);
/* Appends the gates of other movements that a judge is shown besides the last exit, one a line:
 * those with tests, stale ones, or all if there are several. */
void gates_tell(const struct core *core, const struct turn *turn, struct buf *out);
/* Appends "12 passed, 1 failed, 2 skipped"; nothing if tests are not counted. */
void gate_tests(const json_t *tests, struct buf *out);

#endif
