/* trees.h - the worktrees of a session, as its log tells them, and git asked about them.
 *
 *   trees_read(&t, &ref, &err)       from its log: nothing is asked of git
 *   trees_git(folder, &answer, &err, "status", "--porcelain", NULL)
 *   trees_deinit(&t)                 accepts a zeroed one
 *
 * Sessions that work in their folder have no item; their commits are there all the same. */
#ifndef SEGUE_CLI_TREES_H
#define SEGUE_CLI_TREES_H

#include "host/git.h"
#include "store/store.h"

struct tree_item {
  long turn;      /* of a child; 0: the session's own */
  char *movement; /* the child's; or NULL */
  long item;      /* of a for_each, from 1; 0: it is of none */
  char *branch, *base, *path, *folder;
};

struct trees {
  char session[STORE_ID_BYTES];
  char *cwd;      /* where it was started: a folder of the repository */
  char *task;     /* its first line */
  json_t *source; /* where it came from: config.source; or NULL */
  struct tree_item *items;
  size_t count;
  json_t *commits; /* array of {turn, movement, commit, of?}: of: a child's turn */
  char status[24];
  bool owned; /* a process runs it */
};

bool trees_read(struct trees *t, const struct store_ref *ref, struct err *err) MUST_CHECK;
void trees_deinit(struct trees *t);
/* The newest session that worked on that branch. False: none did. */
bool trees_find_branch(const char *branch, const char *logs, struct store_ref *ref,
                       struct err *err) MUST_CHECK;
/* The session's own. NULL: err says that it has none. */
const struct tree_item *trees_own(const struct trees *t, struct err *err);

/* Runs git there and waits. False: it could not be run. The words end with NULL. */
bool trees_git(const char *folder, struct git_answer *answer, struct err *err, ...) MUST_CHECK;
/* The same, whose answer is one line; NULL: git said no, err has its words. New. */
char *trees_line(const char *folder, struct err *err, ...);
/* Is something there that is not committed? False also where the folder is gone. */
bool trees_is_dirty(const char *folder);
bool trees_is_there(const char *folder);
/* Where git knows nobody's name, the commit is segue's: better than one that git refuses. */
void trees_sign_as_nobody(struct git_ask *ask);
/* Merges a commit into what is checked out there: as a merge, with `branch` in its message; answer
 * is the caller's. -1: git could not be run. */
int trees_merge(const char *folder, const char *commit, const char *branch,
                struct git_answer *answer, struct err *err);
/* Commits what is staged there: git commit with these words, which end with NULL. */
bool trees_commit(const char *folder, struct err *err, ...) MUST_CHECK;
/* Removes what there is, with work that is not committed; branches only if wanted. */
bool trees_discard(const struct trees *t, bool branches, struct err *err) MUST_CHECK;
/* Removes a branch whose commits another one has. False: it stays. */
bool trees_drop_branch(const struct trees *t, const struct tree_item *item);
/* Asks on the terminal; without one --yes must have been given. */
bool trees_sure(const char *question, bool yes, struct err *err);

#endif
