/* repo.h - the repository around a folder, and a private stand-in for it that git works with.
 *
 *   if (repo_find(dir, &repo) && repo_stand_in(&repo, private_dir, true, &err))
 *     git, with GIT_DIR=private_dir and GIT_WORK_TREE=repo.top
 *   repo_deinit(&repo)
 *
 * The stand-in has the repository's objects by reference, a copy of its present index, and no
 * configuration. So git runs no hook, filter or monitor that somebody (such as the agent) has set
 * up there, and never writes to the repository's own index. Linked work trees and submodules are
 * followed through their files `.git` and `commondir`.
 *
 * Blocking; a function touches only its arguments, so that it may run in a pool thread. */
#ifndef SEGUE_GIT_REPO_H
#define SEGUE_GIT_REPO_H

#include "base/buf.h"
#include "base/err.h"

struct repo {
  struct buf top;     /* the work tree's uppermost folder, absolute; empty: none was found */
  struct buf git_dir; /* where its index is */
  struct buf common;  /* where its objects are; mostly the same */
};

/* dir: absolute, without links. False: it is in no repository owned by this user, root or dir's
 * owner. */
bool repo_find(const char *dir, struct repo *repo);
void repo_deinit(struct repo *repo);

/* Does the same for any folder, and for a bare repository, whose `top` is empty; with `common`
 * empty there is none. False: its `.git` leads to where it must not, and err says so. A linked work
 * tree has to be known to its repository under that path, and a submodule's repository is in that
 * of the tree around it. */
bool repo_enter(const char *folder, struct repo *repo, struct err *err) MUST_CHECK;

/* Before and after git made a linked work tree through a stand-in (stand_in.h), without its files:
 * the folder for what the repository knows of them, and then the tree's own `.git`, which names the
 * stand-in until then, and the settings of which files it has (sparse). */
bool repo_make_worktrees(const struct repo *repo, struct err *err) MUST_CHECK;
bool repo_worktree_made(const struct repo *repo, const char *path, struct err *err) MUST_CHECK;
/* Sets NAME of worktrees/NAME, where the repository knows of a linked tree, which may be gone or
 * have the place of another that was moved. Nothing is set if it does not. */
void repo_worktree_name(const char *common, const char *path, struct buf *name);

/* Where HEAD of a working tree is. */
struct repo_head {
  char branch[256]; /* without refs/heads/; "": it is detached */
  char commit[72];  /* "": the branch has none yet, or it cannot be read */
};
void repo_read_head(const struct repo *repo, struct repo_head *head);
/* Names the repository's own working tree. False: this is it, or there is none (it is bare). */
bool repo_main(const struct repo *repo, struct repo *own);

/* Is there a branch of that name? Reads git's loose and packed files; a repository with other
 * references (reftable) seems to have none. */
bool repo_has_branch(const struct repo *repo, const char *name);

/* Fills an empty folder. with_index: false if git could not read the copy (a split index); then
 * every file counts as unknown to git. */
bool repo_stand_in(const struct repo *repo, const char *folder, bool with_index,
                   struct err *err) MUST_CHECK;
/* Returns a remote's address without a login in it; owned. */
char *repo_address(struct str url);

#endif
