/* Looks at files: what stat says about each, and what a small one holds. */
#include "tree/snapshot.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/fs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void snapshot_begin(struct tree_snapshot *look) {
  int64_t ms = clock_real_ms() - LIMIT_TREE_TICK_MS;
  *look = (struct tree_snapshot){
      .began = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000}};
}

void snapshot_deinit(struct tree_snapshot *look) {
  map_deinit(&look->by_path);
  arena_deinit(&look->arena);
  free(look->files);
  *look = (struct tree_snapshot){0};
}

struct tree_file *snapshot_find(const struct tree_snapshot *look, const char *path) {
  uint32_t at;
  return map_get(&look->by_path, str_from(path), &at) ? look->files[at] : NULL;
}

bool snapshot_skips(const struct tree_skip *skip, const char *folder, const char *path) {
  size_t folder_n = strlen(folder);
  for (size_t i = 0; i < ARRAY_LEN(skip->folders); i++) {
    struct str own = buf_view(&skip->folders[i]);
    if (own.n <= folder_n || memcmp(own.p, folder, folder_n) != 0 || own.p[folder_n] != '/')
      continue;
    struct str rest = {own.p + folder_n + 1, own.n - folder_n - 1};
    if (strncmp(path, rest.p, rest.n) == 0 && (path[rest.n] == '/' || path[rest.n] == '\0'))
      return true;
  }
  return false;
}

static bool is_output(const struct tree_skip *skip, const struct stat *st) {
  for (size_t i = 0; i < ARRAY_LEN(skip->outputs); i++)
    if (S_ISREG(skip->outputs[i].st_mode) && skip->outputs[i].st_ino == st->st_ino &&
        skip->outputs[i].st_dev == st->st_dev)
      return true;
  return false;
}

static struct tree_file *put(struct tree_snapshot *look, const char *path, const struct stat *st) {
  uint32_t at = (uint32_t)look->count;
  struct str copy = arena_str(&look->arena, str_from(path));
  if (!map_add(&look->by_path, &look->arena, copy, &at))
    return look->files[at];
  if (look->count % 256 == 0)
    look->files = xrealloc(look->files, (look->count + 256) * sizeof *look->files);
  struct tree_file *file = arena_alloc(&look->arena, sizeof *file);
  look->files[look->count++] = file;
  file->path = copy.p;
  if (st == NULL)
    return file;
  file->is_there = true;
  file->mode = (st->st_mode & S_IFMT) | (st->st_mode & S_IXUSR);
  file->inode = st->st_ino;
  file->size = st->st_size;
  file->mtime = st->st_mtim;
  file->ctime = st->st_ctim;
  return file;
}

static bool snapshot_is_repository(int fd, const char *path, const struct stat *st) {
  struct buf git = {0};
  buf_printf(&git, "%s/.git", path);
  bool is = S_ISDIR(st->st_mode) && faccessat(fd, buf_c(&git), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  buf_deinit(&git);
  return is;
}

struct tree_file *snapshot_add(struct tree_snapshot *look, int fd, const struct tree_skip *skip,
                               const char *path) {
  assert(look != NULL);
  struct stat st;
  bool there = fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
  bool hidden = !there && errno != ENOENT && errno != ENOTDIR;
  if (hidden)
    look->unread = arena_strdup(&look->arena, path);
  if (hidden || (there && (snapshot_is_repository(fd, path, &st) || is_output(skip, &st))))
    return NULL;
  return put(look, path, there && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) ? &st : NULL);
}

/* --- all files of a folder --- */

struct tree_walk {
  struct tree_snapshot *look;
  int fd;
  const char *folder;
  const struct tree_skip *skip;
  uint64_t until_ms;
  struct err *err;
};

static bool walk_is_over(const struct tree_walk *w) {
  if (w->look->count >= LIMIT_TREE_FILES)
    return err_set(w->err, ERR_LIMIT, "there are over %u files", LIMIT_TREE_FILES);
  if (clock_mono_ms() > w->until_ms)
    return err_set(w->err, ERR_LIMIT, "looking at them took over %u ms", LIMIT_TREE_WALK_MS);
  return true;
}

static bool walk_folder(const struct tree_walk *w, const char *path, unsigned depth);

static bool walk_entry(const struct tree_walk *w, const char *path, unsigned char type,
                       unsigned depth) {
  if (snapshot_skips(w->skip, w->folder, path))
    return true;
  if (type == DT_UNKNOWN) {
    struct stat st;
    if (fstatat(w->fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
      return true;
    type = (unsigned char)IFTODT(st.st_mode);
  }
  if (type == DT_DIR && depth >= LIMIT_TREE_DEPTH)
    return err_set(w->err, ERR_LIMIT, "folders are nested over %u deep", LIMIT_TREE_DEPTH);
  if (type == DT_DIR)
    return walk_folder(w, path, depth + 1);
  if (type == DT_REG || type == DT_LNK)
    (void)snapshot_add(w->look, w->fd, w->skip, path);
  return true;
}

/* Walks a folder; one that cannot be read is left out, and noted. */
static bool walk_folder(const struct tree_walk *w, const char *path, unsigned depth) {
  int fd = openat(w->fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
  struct dirent *entry;
  struct buf below = {0};
  bool ok = true;
  if (dir == NULL && errno != ENOENT)
    w->look->unread = arena_strdup(&w->look->arena, path);
  if (dir == NULL && fd >= 0)
    (void)close(fd);
  while (ok && dir != NULL && (entry = readdir(dir)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
        strcmp(entry->d_name, ".git") == 0)
      continue;
    buf_clear(&below);
    if (path[0])
      buf_printf(&below, "%s/", path);
    buf_puts(&below, entry->d_name);
    ok = walk_is_over(w) && walk_entry(w, buf_c(&below), entry->d_type, depth);
  }
  if (dir != NULL)
    (void)closedir(dir);
  buf_deinit(&below);
  return ok;
}

bool snapshot_walk(struct tree_snapshot *look, int fd, const char *folder,
                   const struct tree_skip *skip, struct err *err) {
  assert(look != NULL);
  const struct tree_walk walk = {.look = look,
                                 .fd = fd,
                                 .folder = folder,
                                 .skip = skip,
                                 .until_ms = clock_mono_ms() + LIMIT_TREE_WALK_MS,
                                 .err = err};
  return walk_folder(&walk, "", 0);
}

/* --- contents --- */

bool snapshot_read(int fd, const struct tree_file *file, struct buf *out) {
  char target[PATH_MAX];
  if (!file->is_there || file->size > LIMIT_TREE_FILE_BYTES)
    return false;
  out->max = LIMIT_TREE_FILE_BYTES + 1;
  if (S_ISLNK(file->mode)) {
    ssize_t n = readlinkat(fd, file->path, target, sizeof target);
    if (n > 0)
      buf_append(out, target, (size_t)n);
    return n > 0;
  }
  int from = fs_open_beneath(fd, file->path, O_RDONLY);
  struct stat st;
  bool ok = from >= 0 && fstat(from, &st) == 0 && S_ISREG(st.st_mode);
  ssize_t n = ok ? 1 : -1;
  if (ok)
    buf_reserve(out, (size_t)file->size + 1);
  while (n > 0 && !out->cut) {
    char piece[16384];
    n = read(from, piece, sizeof piece);
    if (n > 0)
      buf_append(out, piece, (size_t)n);
  }
  if (from >= 0)
    (void)close(from);
  return n == 0 && !out->cut;
}

void snapshot_keep(struct tree_snapshot *look, int fd, struct tree_file *file) {
  assert(look != NULL && file != NULL);
  struct buf bytes = {0};
  if (!file->is_there || file->has_content || file->size > LIMIT_TREE_FILE_BYTES ||
      look->kept_bytes + (size_t)file->size > LIMIT_TREE_KEPT_BYTES)
    return;
  file->has_content = snapshot_read(fd, file, &bytes);
  if (file->has_content)
    file->content = arena_str(&look->arena, buf_view(&bytes));
  look->kept_bytes += bytes.n;
  buf_deinit(&bytes);
}
