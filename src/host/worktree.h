/* worktree.h - does git's work for a session: its worktree, and commits of the work there.
 *
 *   worktree_start(s, turn, over)      EFFECT_WORKTREE: what core_worktree(s, turn) asks for;
 *                                      `over` comes with EVENT_WORKTREE
 *   worktree_again(s, turn, over)      a call's worktree is gone: makes it again from its branch
 *   worktree_cancel(s)                 the session is over: ends what runs, and tells no event
 *   worktree_left_out(doc, config)     new: array of the names that are copied or linked into a
 *                                      worktree, or kept of its setup, as git writes them; no
 *                                      commit has them. doc: the workflow's
 *   worktree_check(config, wf, &err)   before a start: git is there, and a repository in
 *                                      which a branch of a fixed name is still free
 *
 * A worktree is in worktrees/ of the user's state folder, or where `workspace: {folder}` of the
 * configuration says, and is named after its session (and turn). If a crash left a worktree that
 * was never recorded as made, it is removed and made again; no call can have worked in it. The main
 * tree and other people's worktrees are never touched. Each step is a separate run of git.
 *
 * Then it is set up (core_worktree_setup): commands run in it as an agent's program would, or what
 * they made before is copied from setup/HASH of the state folder: HASH is of the repository, of the
 * commands and of the key files as git has them, and agents cannot write there. What is kept is
 * bounded (LIMIT_SETUP_KEPT_COUNT, LIMIT_SETUP_KEPT_KIB), the least used goes first. */
#ifndef SEGUE_HOST_WORKTREE_H
#define SEGUE_HOST_WORKTREE_H

#include "base/err.h"
#include "core/workflow.h"

#include <jansson.h>

struct event;
struct session;

/* ev: EVENT_WORKTREE, borrowed; NULL: it was cancelled. From the loop, or from within the start. */
typedef void (*worktree_over)(struct session *s, struct event *ev);
void worktree_start(struct session *s, long turn, worktree_over over);
/* Checks out the branch or, if that is gone, the commit that HEAD was on last. `over` is told the
 * turn (ev->call), and in ev->message what went wrong. */
void worktree_again(struct session *s, long turn, worktree_over over);
void worktree_cancel(struct session *s);

json_t *worktree_left_out(const json_t *doc, const json_t *config);
bool worktree_check(const json_t *config, const struct workflow *wf, struct err *err) MUST_CHECK;

#endif
