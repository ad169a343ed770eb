/* worktree.h - where a session works, and the commits it makes there.
 *
 * With `workspace: worktree` a session (and a child of a group that says so) has a git worktree on
 * a branch of its own. The core asks for it, for commits, and that the branch follows HEAD where an
 * agent moved that (core/head.h): first a record `workspace`, then EFFECT_WORKTREE; the result
 * comes as EVENT_WORKTREE and a second record. A session waits while something is asked for; after
 * a crash it is asked for again. These are all changes (core/apply.c has them as a table):
 *
 *     IDLE --make--> MAKING --made--> IDLE, made        once for each worktree
 *     IDLE --commit--> COMMITTING --committed--> IDLE   without a worktree, too
 *     IDLE, made --adopt--> ADOPTING --adopted--> IDLE  while `strays`
 *
 * Pure: running git is the host's task (host/worktree.h). */
#ifndef SEGUE_CORE_WORKTREE_H
#define SEGUE_CORE_WORKTREE_H

#include "base/buf.h"
#include "base/err.h"
#include "core/workflow.h"

#include <jansson.h>

struct core;
struct turn;
struct step;

enum worktree_asked { WORKTREE_IDLE, WORKTREE_MAKING, WORKTREE_COMMITTING, WORKTREE_ADOPTING };

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
  char *head, *on;     /* where HEAD was when it was last measured; on: NULL: detached */
  bool strays;         /* HEAD is not on the branch, but its work is to be adopted there */
};

/* Decided by the flags of a start, else the workflow, else the user's configuration. */
enum workspace_mode core_workspace_mode(const struct workflow *wf, const json_t *config);
enum commit_when core_commit_when(const struct workflow *wf, const json_t *config);
/* A worktree setting from the flags or the user's configuration; NULL: there is none. */
const json_t *core_worktree_setting(const json_t *config, const char *name);
/* Returns how worktrees are set up: {"run", "key"?, "keep"?, "timeout"?}, of the workflow's
 * document (or NULL), else of the user's configuration. New; NULL: nothing is to be done. */
json_t *core_worktree_setup(const json_t *doc, const json_t *config);
/* Puts the branch that every session of this workflow would have. False: its name has an id, and
 * what was put is the part before that. */
bool core_branch_fixed(const struct workflow *wf, const json_t *config, struct buf *out);

/* --- the decision: asks git for what is due; true: the session (or that turn) waits for it --- */

bool worktree_hold_next(struct step *s);
bool worktree_hold_child(struct step *s, struct turn *turn);
bool worktree_child_commits(struct step *s, struct turn *turn);
void worktree_event(struct step *s);
void worktree_resume(struct step *s);

#endif
