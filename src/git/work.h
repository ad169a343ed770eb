/* work.h - where is a session's work? The one place that answers it: merge, integrate, pr, fork,
 * diff, discard, rm, the commit of a movement and the daemon's diffs ask here.
 *
 *   work_find(&where, &w, &err)          asks git and changes nothing
 *   work_adopt(&where, &w, &err)         then, if w.state says AHEAD or REWRITTEN: moves the session's
 *                                        branch to its HEAD
 *   work_keep(&where, &w, &kept, &err)   before anything is removed: gives a ref refs/segue/ID/N to
 *                                        each commit that nothing else would hold
 *   work_deinit(&w)
 *
 * The work is what is reachable from the worktree's HEAD, from the session's branch, or from any
 * branch that was made or moved since the start and descends from its base, and not from the base;
 * and what is not committed. HEAD, branches, the index and the folder itself are state that an
 * agent can change: they are measured here, each time, and never assumed.
 *
 *   state         HEAD of the worktree                     what the caller does
 *   ON_BRANCH     is the branch's tip                      goes on
 *   AHEAD         descends from the branch's tip, but is   adopts: the branch is moved forward
 *                 on another branch, renamed, or detached
 *   REWRITTEN     has each commit of the branch by its     adopts; the old tip gets a ref
 *                 patch, or the reflog of HEAD says that
 *                 it was rebased or amended
 *   LEFT_BEHIND   lacks commits that the branch has        needs a person: both commits are named
 *   GONE          neither HEAD nor the branch is there     nothing can be said
 *
 * Functions block and run git (git/git.h): for the command line or a pool thread. Texts that end up
 * in errors name commits by ten digits. Refs are never written through links. */
#ifndef SEGUE_GIT_WORK_H
#define SEGUE_GIT_WORK_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { COMMIT_BYTES = 72, BRANCH_BYTES = 256 };

enum work_state { WORK_ON_BRANCH, WORK_AHEAD, WORK_REWRITTEN, WORK_LEFT_BEHIND, WORK_GONE };

struct work_where {     /* all borrowed */
  const char *session;  /* its id */
  const char *repo;     /* a folder of the repository that the worktree was made from */
  const char *worktree; /* its top; it may be gone. NULL: the session works in `repo` */
  const char *branch;   /* the session's branch; NULL: whatever `repo` is on */
  const char *base;     /* the commit at its start */
  const char *known;    /* the commit where it stood when it was last measured; or NULL. HEAD that
                         * lacks commits between base and this leaves them behind, too */
};

struct work {
  enum work_state state;
  char head[COMMIT_BYTES]; /* "": there is none */
  char on[BRANCH_BYTES];   /* the branch that HEAD is on; "": detached */
  char tip[COMMIT_BYTES];  /* of the session's branch; "": it is gone (renamed, deleted) */
  json_t *others;          /* array of {branch, commit}: further branches that have work of it */
  bool dirty;              /* there is uncommitted work */
};

bool work_find(const struct work_where *where, struct work *w, struct err *err) MUST_CHECK;
bool work_adopt(const struct work_where *where, struct work *w, struct err *err) MUST_CHECK;
/* kept: array of {ref, commit}, appended to; each is durable when this returns. */
bool work_keep(const struct work_where *where, struct work *w, json_t *kept,
               struct err *err) MUST_CHECK;
void work_deinit(struct work *w);
const char *work_state_name(enum work_state state); /* on_branch, ahead, rewritten, left_behind */

#endif
