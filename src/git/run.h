/* run.h - one run of git that is waited for, with its words as arguments.
 *
 *   git_run(folder, &answer, &err, "status", "--porcelain", NULL)
 *
 * Blocks: for the command line or a pool thread. */
#ifndef SEGUE_GIT_RUN_H
#define SEGUE_GIT_RUN_H

#include "git/git.h"

/* Runs git there and waits. False: it could not be run. The words end with NULL. */
bool git_run(const char *folder, struct git_answer *answer, struct err *err, ...) MUST_CHECK;
/* Does the same for an answer of one line, which is new; NULL: git refused, err has its words. */
char *git_line(const char *folder, struct err *err, ...) __attribute__((sentinel));
/* Runs git for what it does. False: err says why it did not. */
bool git_did(const char *folder, struct err *err, ...) __attribute__((sentinel));
/* Returns false, with git's own words behind `what`. */
bool git_complain(const char *what, const struct git_answer *answer, struct err *err);

#endif
