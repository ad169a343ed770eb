/* tmpdir.h - a private directory for one call: made before it, removed with all its content after.
 *
 * Both functions block and touch only their arguments: they may run in a pool thread. */
#ifndef SEGUE_OS_TMPDIR_H
#define SEGUE_OS_TMPDIR_H

#include "base/err.h"

/* Makes $TMPDIR/segue-XXXXXX (or below /tmp), mode 0700. The path is the caller's: free() it.
 * NULL: err is set. */
char *tmpdir_make(struct err *err) MUST_CHECK;

/* The same with a name of the caller's ("segue-<session>-<call>"), so that what a crash left of the
 * same call is found and removed. Where that name is another user's, a random one is taken. */
char *tmpdir_make_named(const char *name, struct err *err) MUST_CHECK;

/* Removes `path` and everything in it, however deep: never follows a symbolic link, stays on one
 * file system. Goes on after an error and reports the first. A path that is not there is fine. */
bool tmpdir_remove(const char *path, struct err *err) MUST_CHECK;

#endif
