/* tree.h - a working tree before and after a call: which files changed, by how many lines.
 *
 *   t = tree_new(dir, name, own_folders)   also finds the repository, if there is one
 *   step = tree_begin(t)                   before the call
 *   step = tree_again(t)                   after it
 *   tree_free(t)
 *
 * Each step says what to do next, with a = tree_asks(t):
 *   TREE_LIST     run a->argv with a->env in a->top; step = tree_listed(t, its output, ok)
 *   TREE_BLOBS    run the same with a->ask as its input; step = tree_blobs(t, its output, ok)
 *   TREE_DONE     go on; after tree_again, t->changed is the result
 *   TREE_FAILED   t->problem says why
 *
 * In a repository git says which files differ from its index before the call, and which are
 * untracked (but not ignored): only those are examined and kept, so that a file that had already
 * changed is compared with what it was then. git runs on a stand-in of the repository
 * (git/repo.h), and on one of each repository below. Elsewhere every file below
 * `dir` is examined by size and time; a small tree is kept whole, otherwise the changed lines are
 * not known.
 *
 * A file is {"path", "added", "removed"}: the path relative to dir, in the order of paths; without
 * numbers where the lines are not known (not text, too big, not kept). A file with the same content
 * as before has not changed, whatever its times say. Files that segue itself writes are left out:
 * own_folders, and the files that its standard output and error go to.
 *
 * All functions block and touch only `t`: for a pool thread, one at a time. */
#ifndef SEGUE_GIT_TREE_H
#define SEGUE_GIT_TREE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "git/repo.h"

#include <jansson.h>
#include <sys/stat.h>

enum tree_step { TREE_LIST, TREE_BLOBS, TREE_DONE, TREE_FAILED };

/* Files as they are at one moment: what stat says, and the content of those worth keeping. */
struct tree_file {
  const char *path;
  bool is_tracked; /* git knows it */
  bool is_there;   /* a regular file or a link */
  mode_t mode;     /* its kind, and whether it can be executed */
  ino_t inode;
  off_t size;
  struct timespec mtime, ctime;
  bool has_content;
  struct str content; /* a link's target */
};

struct tree_snapshot {
  struct arena arena;
  struct map by_path;
  struct tree_file **files;
  size_t count, kept_bytes;
  const char *unread;    /* a path that could not be looked at; or NULL */
  struct timespec began; /* files that are not older may have changed again unseen */
};

struct tree_skip { /* segue's own files, not the workspace's */
  struct buf folders[4];
  struct stat outputs[2];
};

struct tree {
  char *dir, *name;
  char *private_dir; /* folder of git's stand-in, made when needed; or NULL */
  struct repo repo;
  bool is_repo, has_index, is_after;
  int fd; /* folder that paths are relative to while we look */
  struct tree_skip skip;
  struct tree_snapshot before, after;
  struct err problem; /* set in TREE_FAILED; in TREE_DONE if some changes may be missing */
  json_t *changed;    /* set in TREE_DONE after tree_again */

  /* Holds the repositories below this one, see tree.c. */
  struct tree **nested;
  size_t nested_count, nested_at;
  bool nested_turn; /* the step is that of nested[nested_at] */
  json_t *below;    /* what changed in them; or NULL */
  unsigned depth;
  char *inside, *place; /* for a nested one: where its private folder is made, its path; or NULL */

  /* The program to run in TREE_LIST and TREE_BLOBS: see tree_asks. */
  const char *const *argv;
  const char *top;         /* where: the work tree's uppermost folder */
  char env[2][1100];       /* GIT_DIR=, GIT_WORK_TREE=; tree_environment besides */
  struct buf ask;          /* the input, of TREE_BLOBS */
  struct tree_pair *pairs; /* waiting for their blobs */
  size_t pair_count;
  uint64_t count_until_ms; /* lines are counted until then */
};

/* dir: absolute. name: of a private folder for git, see tmpdir_make_named. own_folders: NULL-ended,
 * absolute, borrowed for the call; one that is not there is fine. */
struct tree *tree_new(const char *dir, const char *name, const char *const *own_folders);
void tree_free(struct tree *t); /* the private folder goes too; accepts NULL */

/* Returns the tree whose program is to be run: t, or a repository below it. */
const struct tree *tree_asks(const struct tree *t);

enum tree_step tree_begin(struct tree *t);
enum tree_step tree_again(struct tree *t);
/* ok: the program ended with 0. Not ok: the index is left out, then the repository. */
enum tree_step tree_listed(struct tree *t, struct str listing, bool ok);
enum tree_step tree_blobs(struct tree *t, struct str blobs, bool ok);

/* Lists "NAME=value", NULL-terminated: they keep everybody's configuration out of git. */
extern const char *const tree_environment[];

#endif
