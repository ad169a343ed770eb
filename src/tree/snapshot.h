/* snapshot.h - files as they are at one moment: what stat says, and the content of those worth
 * keeping.
 *
 * A look holds files by their path below one folder. Blocking; touches only its arguments. */
#ifndef SEGUE_TREE_SNAPSHOT_H
#define SEGUE_TREE_SNAPSHOT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

#include <sys/stat.h>

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

/* Returns whether this path, absolute, is in a folder of ours. */
bool snapshot_skips(const struct tree_skip *skip, const char *folder, const char *path);

void snapshot_begin(struct tree_snapshot *look);
void snapshot_deinit(struct tree_snapshot *look);
struct tree_file *snapshot_find(const struct tree_snapshot *look, const char *path);
/* Stats one path below fd; NULL: it is not a file for this look (a repository, ours), or cannot
 * be looked at. A missing file, or a folder in its place, is kept as missing. */
struct tree_file *snapshot_add(struct tree_snapshot *look, int fd, const struct tree_skip *skip,
                               const char *path);
/* Lists every file below fd, except `.git`. False: there are too many, or it takes too long. */
bool snapshot_walk(struct tree_snapshot *look, int fd, const char *folder,
                   const struct tree_skip *skip, struct err *err) MUST_CHECK;
/* Keeps the file's content if that is small and the file is still what stat said. */
void snapshot_keep(struct tree_snapshot *look, int fd, struct tree_file *file);
/* Reads the file's content without keeping it. False: it is too big or cannot be read. */
bool snapshot_read(int fd, const struct tree_file *file, struct buf *out);

#endif
