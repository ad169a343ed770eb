/* worktree_changes.h - tells the worktrees of a session and what it changed, according to its log.
 *
 *   trees_read(&t, &ref, &err)        reads its log, so never on a loop; does not ask git
 *   trees_where(&t, item, &where)     what git/work.h wants to know
 *   trees_deinit(&t)                  accepts a zeroed one
 *
 * Sessions that work in their folder have no item; their commits are listed all the same.
 *
 * The one way to its lines, for all who show them:
 *
 *   tree_diff_begin(&d, &t, &err)     where, from which commit on, which files; no loop
 *   while (tree_diff_next(&d, &ask))  what git is asked before; its answer:
 *     tree_diff_take(&d, &answer)
 *   tree_diff_ask(&d, options, &ask)  then the difference, as often as wanted
 *   tree_diff_deinit(&d)
 *   tree_diff_now(&d, options, &answer, &err)   all of these, without a loop
 *
 * It begins at the commit at the session's start and ends at the files as they are now, whatever
 * was committed since. New files count: a private copy of the index has them as if they were to be
 * added. No program of the repository's is run. */
#ifndef SEGUE_HOST_TREES_H
#define SEGUE_HOST_TREES_H

#include "git/git.h"
#include "git/work.h"
#include "store/store.h"

enum {
  LIMIT_TREE_PATH_COUNT = 64,
  LIMIT_TREE_DIFF_BYTES = 64 * 1024,
  LIMIT_TREE_INDEX_BYTES = 64 * 1024 * 1024, /* of an index that is copied */
  LIMIT_TREE_DIFF_ALL_BYTES = 1024 * 1024    /* limit for those who want all of it */
};

struct tree_item {
  long turn;      /* the child's; 0: the session's own */
  char *movement; /* the child's; or NULL */
  long item;      /* item of a for_each, from 1; 0: there is none */
  char *branch, *base, *path, *folder;
  json_t *astray; /* array of {branch, commit}: where calls left work of it; or NULL */
};

struct trees {
  struct store_ref ref;
  char session[STORE_ID_BYTES], parent[STORE_ID_BYTES]; /* parent: of a fork; or "" */
  long carried;    /* of a fork: the last turn that it has of its parent; 0: none */
  int forks;       /* how many parents were read to get here */
  char *cwd;       /* where it was started: a folder in the repository */
  char *task;      /* its first line */
  json_t *config;  /* of its start; or NULL */
  char *main;      /* the branch of the repository's own tree when its worktree was made, or NULL */
  bool has_main;   /* that is known; main NULL: none was checked out */
  char *base;      /* the commit at its start, if it worked in that folder; or NULL: not known */
  json_t *source;  /* where the task came from: config.source; or NULL */
  json_t *remotes; /* their addresses when its worktree was made; or NULL: not known */
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
/* Reads the trees of the session that a fork goes on from: of its children those that the fork has
 * in its past. False: there is none, or its log is gone. */
bool trees_read_parent(const struct trees *t, struct trees *parent) MUST_CHECK;
void trees_deinit(struct trees *t);
/* Returns the session's own worktree. NULL: err says that it has none. */
const struct tree_item *trees_own(const struct trees *t, struct err *err);

/* Borrows from both. */
void trees_where(const struct trees *t, const struct tree_item *item, struct work_where *where);

/* The words are borrowed from `d` and, for its begin, from t. */
struct tree_diff {
  const char *folder; /* where git runs */
  char from[80];
  char to[BRANCH_BYTES + 16]; /* "": the files as they are */
  const json_t *paths;        /* only these; NULL: all */
  bool relative;              /* their names are the folder's, and nothing outside is shown */
  const json_t *left_out;     /* names that are not its work */
  char *own, *index;          /* a private folder, GIT_INDEX_FILE=...; NULL: not made yet */
  struct buf fresh;           /* new files, NUL behind each */
  bool listed, added;
  bool more; /* there are more new files */
};

/* False: no changes are known, or err says why. */
bool tree_diff_begin(struct tree_diff *d, const struct trees *t, struct err *err) MUST_CHECK;
/* The same of one worktree, whose folder may be gone. */
void tree_diff_of(struct tree_diff *d, const struct trees *t, const struct tree_item *item);
bool tree_diff_next(struct tree_diff *d, struct git_ask *ask);
void tree_diff_take(struct tree_diff *d, const struct git_answer *answer);
/* options: NULL-ended, at most 5. */
void tree_diff_ask(const struct tree_diff *d, const char *const *options, struct git_ask *ask);
bool tree_diff_now(struct tree_diff *d, const char *const *options, struct git_answer *answer,
                   struct err *err) MUST_CHECK;
void tree_diff_deinit(struct tree_diff *d);
/* Appends whole lines from this byte on, at most max bytes (a longer line is cut); none without a
 * repository or a commit. Returns true if there are more. */
bool trees_take_diff(const struct git_answer *answer, size_t from, size_t max, struct buf *out);

#endif
