/* tree.h - a working tree at one moment and at another: which files changed, by how many lines.
 *
 *   t = tree_new(&spec)                        also finds the repository, if there is one
 *   step = tree_look(t)                        as often as wanted; then picture = tree_take(t)
 *   step = tree_compare(t, before, after)      two pictures of t; after: the last one taken
 *   tree_picture_free(picture), tree_free(t)
 *
 * Each step says what to do next, with a = tree_asks(t):
 *   TREE_LIST     run a->argv with a->env in a->top; step = tree_listed(t, its output, ok)
 *   TREE_BLOBS    run the same with a->ask as its input; step = tree_blobs(t, its output, ok)
 *   TREE_DONE     go on; after tree_compare, t->changed is the result
 *   TREE_FAILED   t->problem says why
 *
 * In a repository git says which files differ from its index as it was for tree_new, and which are
 * untracked (but not ignored): only those are examined and kept, so that a file that had already
 * changed is compared with what it was then. git runs on a stand-in of the repository
 * (git/repo.h), and on one of each repository below. Elsewhere every file below
 * `dir` is examined by size and time; a small tree is kept whole, otherwise the changed lines are
 * not known.
 *
 * What is protected (core/checks.h) is always examined in a repository: if too many files differ,
 * and if git ignores it. Only a folder that git ignores as a whole is not, unless a .gitignore that
 * came or changed since tree_new makes git do so.
 *
 * A file is {"path", "added", "removed"}: the path relative to dir, in the order of paths; without
 * numbers where the lines are not known (not text, too big, not kept). A file with the same content
 * as before has not changed, whatever its times say. Files that segue itself writes are left out:
 * own_folders, and the files that its standard output and error go to.
 *
 * All functions block and touch only `t` and the pictures given: for a pool thread, one at a time. */
#ifndef SEGUE_GIT_TREE_H
#define SEGUE_GIT_TREE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
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

/* What was seen in one look. */
struct tree_picture {
  struct tree_snapshot files;
  struct err problem;          /* set: some files were not seen */
  bool guarded;                /* all that is protected was seen */
  bool is_part;                /* too many files differ: of what git does not know, only that */
  struct tree_picture **below; /* of the repositories below, as in tree.nested; NULL: not there */
  size_t below_count;
  size_t listed; /* so many files differed when they were found to be too many */
};

struct tree_skip { /* segue's own files, not the workspace's */
  struct buf folders[4];
  struct stat outputs[2];
};

struct tree_spec {                /* borrowed for tree_new */
  const char *dir;                /* absolute */
  const char *name;               /* of a private folder for git, see tmpdir_make_named */
  const char *const *own_folders; /* NULL-ended, absolute; one that is not there is fine; or NULL */
  const json_t *protect;    /* patterns below dir, see core/checks.h, kept by the caller; or NULL */
  const struct tree *older; /* looked at before: its rules of what is ignored hold; or NULL */
};

struct tree {
  char *dir, *name;
  char *private_dir; /* folder of git's stand-in, made when needed; or NULL */
  struct repo repo;
  bool is_repo, has_index, has_looked, is_flooded;
  uint32_t index_count; /* files in the index when it was copied */
  int fd;               /* folder that paths are relative to while we look */
  struct tree_skip skip;
  const json_t *protect;
  struct buf rules;             /* what the uppermost .gitignore and info/exclude said at first */
  struct tree_picture *picture; /* of the look so far; or NULL */
  const struct tree_picture *last;           /* of the look before it; or NULL */
  const struct tree_picture *before, *after; /* being compared; NULL: it looks */
  struct arena paired;                       /* files that are only in `before` */
  struct err problem; /* set in TREE_FAILED; in TREE_DONE if some changes may be missing */
  json_t *changed;    /* set in TREE_DONE after tree_compare */
  bool guarded;       /* then: what is protected is not among those that may be missing */
  size_t more;        /* then: at least so many changed besides */

  /* Holds the repositories below this one, see tree.c. */
  struct tree **nested;
  size_t nested_count, nested_at;
  bool nested_turn; /* the step is that of nested[nested_at] */
  bool gone;        /* of a nested one: there is nothing to do for it */
  json_t *below;    /* what changed in them; or NULL */
  unsigned depth;
  char *inside, *place; /* for a nested one: where its private folder is made, its path; or NULL */

  /* The program to run in TREE_LIST and TREE_BLOBS: see tree_asks. */
  const char *const *argv;
  const char *top;   /* where: the work tree's uppermost folder */
  char env[2][1100]; /* GIT_DIR=, GIT_WORK_TREE=; tree_environment besides */
  struct buf ask;    /* the input, of TREE_BLOBS */
  int listing;       /* which one of its listings is asked for, see tree.c */
  const char *words[2 * LIMIT_PROTECT_COUNT + 16]; /* argv of those of what is protected */
  struct arena specs;                              /* holds the words; one for all looks */
  const char *specs_of[2 * LIMIT_PROTECT_COUNT];
  size_t spec_count;
  bool has_hidden;         /* there are ignored folders among what is protected */
  struct tree_pair *pairs; /* waiting for their blobs */
  size_t pair_count;
  uint64_t count_until_ms; /* lines are counted until then */
};

struct tree *tree_new(const struct tree_spec *spec);
void tree_free(struct tree *t); /* the private folder goes too; accepts NULL */
/* False: a tree made anew would see more, as git knows other files now or far more of them differ
 * than are kept. */
bool tree_is_current(const struct tree *t, const struct tree_picture *last);

/* Returns the tree whose program is to be run: t, or a repository below it. */
const struct tree *tree_asks(const struct tree *t);

/* last: a picture that is likely to be like the new one, or NULL; borrowed until the look is done. */
enum tree_step tree_look(struct tree *t, const struct tree_picture *last);
struct tree_picture *tree_take(struct tree *t);
/* Notes that git has said of its listing that something is missing. */
void tree_lacks(struct tree *t, struct str why);
void tree_picture_free(struct tree_picture *picture); /* accepts NULL */
enum tree_step tree_compare(struct tree *t, const struct tree_picture *before,
                            const struct tree_picture *after);
enum tree_step tree_listed(struct tree *t, struct str listing, bool ok);
enum tree_step tree_blobs(struct tree *t, struct str blobs, bool ok);

/* Lists "NAME=value", NULL-terminated: they keep everybody's configuration out of git. */
extern const char *const tree_environment[];

#endif
