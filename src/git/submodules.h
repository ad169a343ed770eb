/* submodules.h - keeps the commits that were made in the submodules of a session's worktree.
 *
 *   submodules_keep(&where, kept, &err)   before a merge, and before anything is removed
 *
 * git gives each worktree stores of its own for its submodules, and removes them with it: a commit
 * that was made there and not pushed is then nowhere, although the branch names it. So what these
 * stores have and those of the main repository lack is written there as one pack a store, without
 * any protocol, and each line of commits gets a ref refs/segue/ID/N in that store, which holds it
 * against git gc. What is there already is not written again.
 *
 *   a worktree's store                        goes to the main repository's
 *   .git/worktrees/W/modules/NAME             .git/modules/NAME
 *   .git/worktrees/W/modules/A/modules/B      .git/modules/A/modules/B
 *   PATH/.git, a repository that an agent     .git/modules/PATH
 *   made in place and the branch names
 *
 * If the main repository has no such store because the submodule was never checked out there, it
 * is made, if there is anything but what a remote has; git's own `submodule update` finds it.
 *
 * An agent can write all of this: links are not followed, and a store that borrows objects of
 * others (alternates) is not read. Blocks and runs git: for the command line or a pool thread. */
#ifndef SEGUE_GIT_SUBMODULES_H
#define SEGUE_GIT_SUBMODULES_H

#include "base/err.h"

#include <jansson.h>

struct submodules_where { /* all borrowed */
  const char *session;    /* its id */
  const char *repo;       /* a folder of the repository that the worktree was made from */
  const char *worktree;   /* its top, as it was when it was made; it may be gone */
  const char *base;       /* the commit at its start; or NULL */
};

/* kept: array of {submodule, ref, commit}, appended to; each is durable. False: err names the
 * submodule that could not be copied. */
bool submodules_keep(const struct submodules_where *where, json_t *kept,
                     struct err *err) MUST_CHECK;

#endif
