/* worktree_changes.h - tells the worktrees of a session and what it changed, according to its log.
 *
 *   trees_read(&t, &ref, &err)       reads its log, so never on a loop; does not ask git
 *   trees_ask_diff(&t, &ask)         what to ask git for the lines that it changed, and
 *   trees_take_diff(&answer, &out)   what to show of the answer
 *   trees_deinit(&t)                 accepts a zeroed one
 *
 * Sessions that work in their folder have no item; their commits are listed all the same. The diff
 * is between the commit that is checked out (for a worktree: the one it began from) and the files
 * as they are now. It leaves out untracked files, and runs no program of the repository's. */
#ifndef SEGUE_HOST_TREES_H
#define SEGUE_HOST_TREES_H

#include "git/git.h"
#include "store/store.h"

enum {
  LIMIT_TREE_PATH_COUNT = 64,
  LIMIT_TREE_DIFF_BYTES = 64 * 1024,
  LIMIT_TREE_DIFF_ALL_BYTES = 1024 * 1024 /* limit for those who want all of it */
};

struct tree_item {
  long turn;      /* the child's; 0: the session's own */
  char *movement; /* the child's; or NULL */
  long item;      /* item of a for_each, from 1; 0: there is none */
  char *branch, *base, *path, *folder;
};

struct trees {
  char session[STORE_ID_BYTES];
  char *cwd;      /* where it was started: a folder in the repository */
  char *task;     /* its first line */
  json_t *config; /* of its start; or NULL */
  char *main;     /* the branch of the repository's own tree when its worktree was made, or NULL */
  bool has_main;  /* that is known; main NULL: none was checked out */
  json_t *source; /* where the task came from: config.source; or NULL */
  struct tree_item *items;
  size_t count;
  json_t *commits;  /* array of {turn, movement, commit, of?}; of: a child's turn */
  json_t *paths;    /* changed paths, each once: the first LIMIT_TREE_PATH_COUNT */
  bool more_paths;  /* there are more changed paths */
  json_t *left_out; /* array of names: see worktree_left_out */
  char status[24];
  bool owned; /* a process runs it */
};

bool trees_read(struct trees *t, const struct store_ref *ref, struct err *err) MUST_CHECK;
void trees_deinit(struct trees *t);
/* Returns the session's own worktree. NULL: err says that it has none. */
const struct tree_item *trees_own(const struct trees *t, struct err *err);
bool trees_is_there(const char *folder);

/* Returns false if no changes are known. The words are borrowed from t. */
bool trees_ask_diff(const struct trees *t, struct git_ask *ask);
/* Appends whole lines from this byte on, at most max bytes (a longer line is cut); none without a
 * repository or a commit. Returns true if there are more. */
bool trees_take_diff(const struct git_answer *answer, size_t from, size_t max, struct buf *out);

#endif
