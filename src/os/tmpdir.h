/* tmpdir.h - a private directory for one call: made before it, removed with all its content after.
 *
 * All of them are in one folder of the user's, $TMPDIR/segue-UID.tmp (or below /tmp), of mode 0700.
 * So a call adds nothing to the folder above, in which everybody writes, and sandbox rules that
 * were made from its listing can be used again (os/ruleset_cache.h). If another user has that name,
 * they are in the folder above itself.
 *
 * What killed programs have left there is removed by the next one that makes one, when no other
 * has one.
 *
 * These functions block; they may run in a pool thread. */
#ifndef SEGUE_OS_TMPDIR_H
#define SEGUE_OS_TMPDIR_H

#include "base/err.h"

/* Names of links in a call's folder; what they lead to is what its program tried
 * (host/resume_options.h). A link can be read without harm, whatever the program makes of it. */
#define TMPDIR_NOTE "%s/.segue-note-%u"

/* Makes segue-XXXXXX there, mode 0700. The path is the caller's: free() it.
 * NULL: err is set. */
char *tmpdir_make(struct err *err) MUST_CHECK;

/* Does the same with a given name ("segue-<session>-<call>"), so that what a crash left of the same
 * call is found and removed. If another user has that name, it takes a random one. */
char *tmpdir_make_named(const char *name, struct err *err) MUST_CHECK;

/* Checks whether one could be made, and makes none. False: err says what to do. */
bool tmpdir_check(struct err *err) MUST_CHECK;

/* Removes `path` and everything in it, however deep: never follows a symbolic link, stays on one
 * file system. Goes on after an error and reports the first. A path that is not there is fine. */
bool tmpdir_remove(const char *path, struct err *err) MUST_CHECK;

/* Before the program ends: removes the user's folder if nothing of anybody is left in it. */
void tmpdir_leave(void);

#endif
