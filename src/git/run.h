/* run.h - one run of git that is waited for, with its words as arguments.
 *
 *   git_run(folder, &answer, &err, "status", "--porcelain", NULL)
 *
 * Blocks: for the command line or a pool thread. */
#ifndef SEGUE_GIT_RUN_H
#define SEGUE_GIT_RUN_H

#include "git/git.h"

#define GIT_PROGRAM "git" /* as its processes are named */

/* Runs git there and waits. False: it could not be run. The words end with NULL. */
bool git_run(const char *folder, struct git_answer *answer, struct err *err, ...) MUST_CHECK;
/* Does the same for an answer of one line, which is new; NULL: git refused, err has its words. */
char *git_line(const char *folder, struct err *err, ...) __attribute__((sentinel));
/* Do the same, and git has to succeed: else err has its words behind `what`, or behind "git". */
bool git_asked(const char *what, const struct git_ask *ask, struct git_answer *answer,
               struct err *err) MUST_CHECK;
bool git_told(const char *folder, struct git_answer *answer, struct err *err, ...) MUST_CHECK
    __attribute__((sentinel));
/* Is `from` the commit itself, or one before it? False: git could not say. */
bool git_descends(const char *folder, const char *commit, const char *from, bool *yes,
                  struct err *err) MUST_CHECK;
/* Runs git for what it does. False: err says why it did not. */
bool git_did(const char *folder, struct err *err, ...) __attribute__((sentinel));
/* Returns false, with git's own words behind `what`. */
bool git_complain(const char *what, const struct git_answer *answer, struct err *err);

#endif
