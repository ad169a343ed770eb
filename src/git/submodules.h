/* submodules.h - the submodules of a session's worktree: how they get there, and how the commits
 * that are made in them are kept.
 *
 *   submodules_keep(&where, kept, &err)   before a merge, and before anything is removed
 *   submodules_stores(repo)               where the refs are that it made
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
 *   c = submodules_check_out(source, worktree, base)
 *   while submodules_next(c, &ask): run it, and submodules_take(c, &answer, &err)
 *   submodules_free(c)
 *
 * One level after the other. A submodule comes from a store of this machine, if there is one: of
 * the tree where the session works without the worktree, of the main repository, or of another
 * worktree. Its address stays that of the user's clone. Only a base that the user's own HEAD has
 * may bring addresses of its own, for git to go there; what an agent or a stranger has committed
 * may not: a submodule that is in no store then stays empty.
 *
 * An agent can write all of this: links are not followed, and a store that borrows objects of
 * others (alternates) is not read. submodules_keep blocks and runs git: for the command line or a
 * pool thread. */
#ifndef SEGUE_GIT_SUBMODULES_H
#define SEGUE_GIT_SUBMODULES_H

#include "base/err.h"
#include "git/git.h"

#include <jansson.h>

struct submodules_where { /* all borrowed */
  const char *session;    /* its id */
  const char *repo;       /* a folder of the repository that the worktree was made from */
  const char *worktree;   /* its top, as it was when it was made; it may be gone */
  const char *base;       /* the commit at its start; or NULL */
};

/* kept: array of {submodule, ref, commit}, with those of earlier; each is durable. False: err names
 * the submodule that could not be copied. */
bool submodules_keep(const struct submodules_where *where, json_t *kept,
                     struct err *err) MUST_CHECK;
/* Returns the stores of the main repository: a new array of [submodule, folder]. repo: a folder of
 * it, without links. */
json_t *submodules_stores(const char *repo);

struct submodules;
/* source: a folder of the repository; base: the commit that is checked out, or NULL if agents have
 * worked in the source. All are copied. */
struct submodules *submodules_check_out(const char *source, const char *worktree, const char *base);
/* False: all are there. The words are borrowed until submodules_take. */
bool submodules_next(struct submodules *s, struct git_ask *ask);
bool submodules_take(struct submodules *s, const struct git_answer *answer,
                     struct err *err) MUST_CHECK;
void submodules_free(struct submodules *s); /* NULL is fine */

#endif
