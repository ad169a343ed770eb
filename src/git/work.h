/* work.h - where is a session's work? The one place that answers it: merge, integrate, pr, fork,
 * diff, discard, rm, the commit of a movement and the daemon's diffs ask here.
 *
 *   work_find(&where, &w, &err)          asks git and changes nothing
 *   work_adopt(&where, &w, &err)         then: moves the session's branch to its HEAD if w.state is
 *                                        AHEAD or REWRITTEN; true as well if it is ON_BRANCH
 *   work_keep(&where, &w, kept, &err)    before anything is removed: gives a ref refs/segue/ID/N to
 *                                        each commit that nothing else would hold
 *   work_tell(&where, &w, &text)         one line about w.state, for a person
 *   work_deinit(&w)                      accepts a zeroed one
 *
 * The work is what is reachable from the worktree's HEAD, from the session's branch, or from any
 * branch that was made or moved since the start and descends from its base, and not from the base;
 * and what is not committed. HEAD, branches, the index and the folder itself are state that an
 * agent can change: they are measured here, each time, and never assumed.
 *
 *   state         HEAD of the worktree                     what the caller does
 *   ON_BRANCH     is the branch's tip (or its folder is    goes on
 *                 gone, and only the branch is there)
 *   AHEAD         descends from the branch's tip, but is   adopts: the branch is moved forward
 *                 on another branch, renamed, or detached
 *   REWRITTEN     has each commit of the branch by its     adopts; the old tip gets a ref
 *                 patch or its tree, or the reflog of
 *                 HEAD says that it was rebased or amended
 *   LEFT_BEHIND   lacks a commit that the branch has, or   needs a person: both commits are named
 *                 that a reset threw away (`lacks`)        (head and lacks)
 *   GONE          neither HEAD nor the branch is there     nothing can be said
 *
 * A commit was made by the session if the worktree's own reflog says so. One that any ref holds
 * (refs/segue/ID/N, a branch) is not left behind: work_keep is how a person goes on after a reset.
 * A session that works in the user's own tree (worktree NULL) has no such reflog: there `others` is
 * empty, HEAD is compared with where it stood before (`known`), and nothing is adopted.
 *
 * Functions block and run git (git/git.h): for the command line or a pool thread. Texts that end up
 * in errors name commits by ten digits. Refs are never written through links. */
#ifndef SEGUE_GIT_WORK_H
#define SEGUE_GIT_WORK_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { COMMIT_BYTES = 72, BRANCH_BYTES = 256 };

enum work_state { WORK_ON_BRANCH, WORK_AHEAD, WORK_REWRITTEN, WORK_LEFT_BEHIND, WORK_GONE };

struct work_where {       /* all borrowed */
  const char *session;    /* its id */
  const char *repo;       /* a folder of the repository that the worktree was made from */
  const char *worktree;   /* its top; it may be gone. NULL: the session works in `repo` */
  const char *branch;     /* the session's branch; NULL: whatever `repo` is on */
  const char *base;       /* the commit at its start; NULL: it had none */
  const char *known;      /* without a worktree: the commit where it stood before; or NULL */
  const json_t *astray;   /* array of {branch, ...}: where its log saw work of it; or NULL */
  const json_t *left_out; /* names whose being there is no work: host/worktree.h; or NULL */
  bool commits_only;      /* `dirty` is not asked for: it takes a git status */
};

struct work {
  enum work_state state;
  char head[COMMIT_BYTES];  /* "": there is none */
  char on[BRANCH_BYTES];    /* the branch that HEAD is on; "": detached */
  char tip[COMMIT_BYTES];   /* of the session's branch; "": it is gone (renamed, deleted) */
  char lacks[COMMIT_BYTES]; /* LEFT_BEHIND: a commit of the session that HEAD does not have */
  json_t *others;           /* array of {branch, commit}: further branches that have work of it */
  json_t *old;              /* REWRITTEN: array of commits that HEAD has in another form */
  json_t *kept;             /* array of {ref, commit}: what work_adopt has made for `old` */
  bool dirty;               /* there is uncommitted work */
};

bool work_find(const struct work_where *where, struct work *w, struct err *err) MUST_CHECK;
/* Afterwards w->tip is w->head, and w->state what it was. False also if a person is needed: err has
 * the words of work_tell. A HEAD that is detached at the commit is put onto the branch again. */
bool work_adopt(const struct work_where *where, struct work *w, struct err *err) MUST_CHECK;
/* Counts the session's branch as going, too, unless where->branch is NULL. kept: array of {ref,
 * commit}, appended to; each is durable when this returns. */
bool work_keep(const struct work_where *where, const struct work *w, json_t *kept,
               struct err *err) MUST_CHECK;
/* Is there uncommitted work, or can git not tell? False if the folder is gone. */
bool work_is_dirty(const char *folder, const json_t *left_out);
void work_tell(const struct work_where *where, const struct work *w, struct buf *out);
void work_deinit(struct work *w);
const char *work_state_name(enum work_state state); /* on_branch, ahead, rewritten, left_behind */

#endif
