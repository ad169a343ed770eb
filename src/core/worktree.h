/* worktree.h - where a session works, and the commits it makes there.
 *
 * With `workspace: worktree` a session (and a child of a group that says so) has a git worktree on
 * a branch of its own. The core asks for it and for commits: first the record `workspace` with
 * `make` or `commit`, then EFFECT_WORKTREE; the result comes as EVENT_WORKTREE and the record with
 * `made` or `committed`. A session waits while something is asked for; after a crash it is asked
 * for again. Pure: running git is the host's task (host/worktree.h). */
#ifndef SEGUE_CORE_WORKTREE_H
#define SEGUE_CORE_WORKTREE_H

#include "base/buf.h"
#include "base/err.h"
#include "core/workflow.h"

#include <jansson.h>

struct core;
struct turn;
struct step;
struct fold;

enum worktree_asked { WORKTREE_IDLE, WORKTREE_MAKING, WORKTREE_COMMITTING };

struct worktree {        /* of a session, or of a child of one of its groups */
  struct worktree *next; /* of children */
  long turn;             /* the child's; 0: it is the session's */
  long group;            /* turn of the child's group */
  size_t movement;       /* the child */
  enum worktree_asked asked;
  bool made;
  char *branch, *base; /* base: what was asked for; once it is made, its commit */
  char *path, *folder; /* once it is made: its top, and where calls work */
  char *message;       /* of the requested commit */
  long committing;     /* the turn whose work it contains */
  long committed;      /* the last such turn, also if there was nothing to commit */
};

/* Decided by the flags of a start, else the workflow, else the user's configuration. */
enum workspace_mode core_workspace_mode(const struct workflow *wf, const json_t *config);
enum commit_when core_commit_when(const struct workflow *wf, const json_t *config);
/* A worktree setting from the flags or the user's configuration; NULL: there is none. */
const json_t *core_worktree_setting(const json_t *config, const char *name);
/* Puts the branch that every session of this workflow would have. False: its name has an id. */
bool core_branch_fixed(const struct workflow *wf, const json_t *config, struct buf *out);

/* Returns the worktree of a child's turn, or with 0 the session's. NULL: that turn has none. */
struct worktree *core_worktree(const struct core *core, long turn);
/* Returns where the calls of a turn work; NULL: in the session's own folder. */
const char *core_turn_folder(const struct core *core, const struct turn *turn);
/* Returns true while git is at work for the session. */
bool core_worktree_busy(const struct core *core);

/* The branches of the last run of that group's children whose work is committed, a line each, in
 * the order in which they began. `list`: newest first. */
void worktree_put_branches(const struct worktree *list, const struct workflow *wf, struct str group,
                           struct buf *out);

/* The same for all groups, for a fork of this session; NULL: there are none. The second function
 * takes it in as outside data; false: it does not fit this workflow. */
json_t *worktrees_carry(const struct core *core);
bool worktrees_take(struct core *core, const json_t *branches) MUST_CHECK;

/* A check for keys.h on `branch`: {id} and {workflow} are filled in. */
bool worktree_check_branch(struct str text, struct err *err);

/* --- the decision: asks git for what is due; true: the session (or that turn) waits for it --- */

bool worktree_hold_next(struct step *s);
bool worktree_hold_child(struct step *s, struct turn *turn);
bool worktree_child_commits(struct step *s, struct turn *turn);
void worktree_event(struct step *s);
void worktree_resume(struct step *s);

/* --- the fold --- */

bool apply_workspace(const struct fold *f);
void worktrees_deinit(struct core *core);

#endif
