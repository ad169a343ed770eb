/* worktree.h - git's work for a session: its worktree, and commits of what was done there.
 *
 *   session_start_worktree(s, turn)    EFFECT_WORKTREE: what core_worktree(s, turn) asks for;
 *                                      EVENT_WORKTREE comes from the loop
 *   session_cancel_worktrees(s)        the session is over: what runs is ended, nobody is told
 *   worktree_check(config, wf, &err)   before a start: git is there, and a repository in
 *                                      which a branch of a fixed name is still free
 *
 * A worktree lies in worktrees/ of the user's state folder, or where `workspace: {folder}` of his
 * configuration says, and is named by its session (and its turn): what a crash left of one that was
 * never said to be made is removed and made anew; no call can have worked in it. Never is the main
 * tree, or a worktree of somebody else, touched. Each step is a run of git of its own. */
#ifndef SEGUE_HOST_WORKTREE_H
#define SEGUE_HOST_WORKTREE_H

#include "base/err.h"
#include "core/workflow.h"

#include <jansson.h>

struct session;

void session_start_worktree(struct session *s, long turn);
void session_cancel_worktrees(struct session *s);

bool worktree_check(const json_t *config, const struct workflow *wf, struct err *err) MUST_CHECK;

#endif
