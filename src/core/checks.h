/* checks.h - keeps the checks of a session so far (the last exit and tests of each command
 * movement) and the files that it changed, and guards those that nobody may change.
 *
 * Part of the fold. A gate is {"turn", "exit", "passed"?, "failed"?, "skipped"?, "stale", "first"}.
 * Stale: a later turn changed a file, or may have. Its exit is the program's, except that a 0 which
 * is not a pass counts as 1: tests are counted, and none passed or one failed. First: the gate of
 * its first run, with "late" if that may not have been before the work.
 *
 * What was touched is {"files", "more"?, "unknown"?, "since"}: path -> file with its lines summed
 * up, without numbers where they are not known; at least how many more files; the first turn of
 * which not all changes are known; the first one that may have changed a file.
 *
 * Protected paths are those that no movement may change, and all below a .segue. A pattern is a
 * path below the session's folder: * and ? stay within one of its parts, ** crosses them. Without a
 * slash it is a name anywhere; with a slash at the end it is everything below. A turn's changes
 * come from its call_end. A turn that changed such a path, or may have because not even that is
 * known of it, halts before it is judged (reason protected), and a resume means that a person
 * accepts the change. */
#ifndef SEGUE_CORE_CHECKS_H
#define SEGUE_CORE_CHECKS_H

#include "base/buf.h"
#include "core/state.h"

/* Returns the exit of a command's turn, as rules see it. */
int checks_exit(const struct turn *turn);
/* Returns true if tests are counted (`tests` is not NULL) and they are not a pass. */
bool checks_is_no_pass(const json_t *tests);
/* With tests: auto: returns how these counts fell behind those of the same command before the work
 * ("gone", "fewer", "more_skipped"); NULL: they did not, or that is not known. */
const char *checks_fell(const struct core *core, const struct turn *turn, const json_t *tests);

/* The first notes that an attempt of this turn's call is over (between: what something else changed
 * before it), the second that the turn is; only
 * for core_apply. */
void checks_changed(struct core *core, const struct turn *turn, const json_t *between);
void checks_put(struct core *core, const struct turn *turn);

/* Adds files that a turn changed, as in call_end; notes that not all its changes are known. */
void touched_add(struct core *core, const struct turn *turn, const json_t *files, int64_t more);
void touched_unknown(struct core *core, const struct turn *turn);

/* Returns true if a word of the command is this path, or the command runs a program that reads such
 * a file unnamed (make a Makefile). Words mean files in its folder, or in one that it names. */
bool checks_names(const struct movement *m, struct str path);

/* Takes a parent's gates into a fork: the tree may have changed since, so all are stale. If a turn
 * is judged again (config: rejudges), they stay as that turn had them. */
void checks_take(struct core *core, const json_t *gates);

/* Returns all gates as rules see them, including this turn's own. New; NULL: there are none. */
json_t *checks_json(const struct core *core, const struct turn *turn);
/* Appends the gates of other movements that a judge is shown besides the last exit, one a line:
 * those with tests, stale ones, or all if there are several. */
void checks_tell(const struct core *core, const struct turn *turn, struct buf *out);
/* Appends "12 passed, 1 failed, 2 skipped"; nothing if tests are not counted. */
void checks_tests(const json_t *tests, struct buf *out);

bool protect_matches(struct str pattern, struct str path);
/* Returns true if the turn changed such a path, or may have, and nobody accepted it; says which. */
bool protect_refuses(const struct core *core, const struct turn *turn, struct buf *why);
/* Returns true for a file that no list may leave out: it is protected, or a command names it. */
bool protect_needs(const struct workflow *wf, struct str path);
/* Appends a changed file: "src/a.c +1 -1", or "logo.png" where the lines are not known. A name that
 * is not plain stands in quotes, so that it cannot pass for anything else; a long one is cut. */
void protect_put_file(const json_t *file, struct buf *out);

#endif
