/* trees.h - asks git about the worktrees of a session (host/worktree/trees.h).
 *
 *   trees_git(folder, &answer, &err, "status", "--porcelain", NULL) */
#ifndef SEGUE_CLI_TREES_H
#define SEGUE_CLI_TREES_H

#include "host/git.h"
#include "host/worktree/trees.h"
#include "store/store.h"

/* Finds the newest session that worked on that branch. False: none did. */
bool trees_find_branch(const char *branch, const char *logs, struct store_ref *ref,
                       struct err *err) MUST_CHECK;

/* Runs git there and waits. False: it could not be run. The words end with NULL. */
bool trees_git(const char *folder, struct git_answer *answer, struct err *err, ...) MUST_CHECK;
/* Does the same for an answer of one line, which is new; NULL: git refused, err has its words. */
char *trees_line(const char *folder, struct err *err, ...);
/* Appends the lines that a session has changed so far; none if git does not know them. *cut: there
 * are more. */
void trees_diff(const struct store_ref *ref, struct buf *out, bool *cut);
/* Returns whether there are uncommitted changes. False also if the folder is gone. */
bool trees_is_dirty(const char *folder);
/* Has the commit made in segue's name if git has no name to commit with: it would refuse
 * otherwise. */
void trees_sign_as_nobody(struct git_ask *ask);
/* Merges a commit into what is checked out there, as a merge with `branch` in its message; the
 * answer belongs to the caller. -1: git could not be run. */
int trees_merge(const char *folder, const char *commit, const char *branch,
                struct git_answer *answer, struct err *err);
/* Commits what is staged there: git commit with these words, which end with NULL. */
bool trees_commit(const char *folder, struct err *err, ...) MUST_CHECK;
/* Removes the worktrees, uncommitted work included; branches only if wanted. */
bool trees_discard(const struct trees *t, bool branches, struct err *err) MUST_CHECK;
/* Removes a branch whose commits another branch has. False: it stays. */
bool trees_drop_branch(const struct trees *t, const struct tree_item *item);
/* Asks on the terminal; without one --yes must have been given. */
bool trees_sure(const char *question, bool yes, struct err *err);

#endif
