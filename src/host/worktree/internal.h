/* internal.h - shared by the parts of host/worktree.h: a job is a list of steps, each one run of
 * git.
 *
 * job.c takes a job through its steps and tells the session; make.c has the steps that make a
 * worktree, commit.c those that commit what was done in one. */
#ifndef SEGUE_HOST_WORKTREE_INTERNAL_H
#define SEGUE_HOST_WORKTREE_INTERNAL_H

#include "host/git.h"
#include "host/session.h"
#include "host/worktree.h"
#include "tree/repo.h"

struct git_job {
  struct list_node in_session;
  struct session *session;
  long turn; /* the child's, or 0 */
  const struct git_step *steps;
  size_t at;
  unsigned tries;
  size_t item; /* index in a step that is repeated */
  struct git git;
  struct err err;
  char *source; /* where the session works without a worktree */
  char *branch, *base, *path, *prefix, *message, *session_id;
  struct repo repo; /* repository of `source` */
  bool listed, exists, has_branch, has_name, staged, found;
  char *commit, *head;
  long number; /* the turn whose work is committed */
  bool again;  /* may have been asked for before a crash */
  bool cancelled;
};

/* In a step `ask` fills in what to run; false: there is nothing to run. `take` reads the answer;
 * false: err is set. A list ends with a step whose `ask` is NULL. */
struct git_step {
  bool (*ask)(struct git_job *job, struct git_ask *ask);
  bool (*take)(struct git_job *job, const struct git_answer *answer);
};

extern const struct git_step git_make_steps[], git_commit_steps[];
enum { GIT_LIST_STEP = 3 }; /* index in git_make_steps of the step that lists worktrees */

/* Returns EVENT_WORKTREE's data after all steps. New. Calls work in the same folder below the top
 * as the session does, even if git has no file in it. */
json_t *git_job_made(struct git_job *job);
json_t *git_job_committed(const struct git_job *job);

/* Returns a setting of the session's worktrees; borrowed, or NULL. */
const json_t *git_job_setting(const struct git_job *job, const char *name);
/* Returns false, with git's own words. */
bool git_job_complain(struct git_job *job, const char *what, const struct git_answer *answer);
/* Returns the output without its one newline; owned. */
char *git_line_of(const struct git_answer *answer);
void git_ask_set(struct git_ask *ask, const char *folder, const char *const *words);
#define WORDS(ask, folder, ...) git_ask_set(ask, folder, (const char *const[]){__VA_ARGS__, NULL})

/* Removes a lock that a killed git left. In its own worktree, and on its own branch, only the
 * session is at work. */
void git_drop_lock(const struct buf *folder, const char *name);
void git_drop_branch_lock(const struct git_job *job, const struct repo *repo);

/* Both lists have these steps. */
bool git_step_ask_drivers(struct git_job *job, struct git_ask *ask);
bool git_step_take_drivers(struct git_job *job, const struct git_answer *answer);
bool git_step_take_nothing(struct git_job *job, const struct git_answer *answer);

#endif
