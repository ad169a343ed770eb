/* session_trees.h - what commands ask git about the worktrees of a session, and have it do to them
 * (host/worktree_changes.h, git/work.h). */
#ifndef SEGUE_CLI_TREES_H
#define SEGUE_CLI_TREES_H

#include "git/run.h"
#include "git/work.h"
#include "host/worktree_changes.h"
#include "store/store.h"

#include <stdio.h>

/* Appends the lines that a session has changed so far; none if git does not know them. *cut: there
 * are more. */
void trees_diff(const struct store_ref *ref, struct buf *out, bool *cut);
/* Returns the commit of a branch, new; NULL: there is none. */
char *trees_tip(const char *repo, const char *branch, struct err *err);

/* Checks that no file that git knows was changed there. */
bool trees_is_clean(const char *folder, struct err *err) MUST_CHECK;
/* Checks that a session is over and that all is committed, and has its branch follow its worktree
 * (cli/trees/merging.h). */
bool trees_is_settled(const struct trees *t, const char *target, FILE *out,
                      struct err *err) MUST_CHECK;
/* Checks that no worktree has uncommitted work. */
bool trees_may_go(const struct trees *t, struct err *err) MUST_CHECK;
/* Copies the commits of submodules into the main repository and says which (git/submodules.h). With
 * `force` it only says what cannot be copied. */
bool trees_keep_submodules(const struct trees *t, bool force, struct err *err) MUST_CHECK;
/* Gives refs to what would be lost with the worktree (and its branch), and tells what has its
 * commits afterwards. */
bool trees_keep_commits(const struct trees *t, const struct tree_item *item, bool branch_goes,
                        struct err *err) MUST_CHECK;
/* Has the commit made in segue's name if git has no name to commit with: it would refuse
 * otherwise. */
void trees_sign_as_nobody(struct git_ask *ask);
/* Removes the worktrees, uncommitted work included, and branches if wanted. Commits that nothing
 * else would hold get a ref before, which is told. */
bool trees_discard(const struct trees *t, bool branches, struct err *err) MUST_CHECK;

#endif
