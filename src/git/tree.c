/* Compares a working tree with what it was before a call. */
#include "git/tree.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/linediff.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/tmpdir.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- files at one moment, held by their path below one folder --- */

static void snapshot_begin(struct tree_snapshot *look) {
  int64_t ms = clock_real_ms() - LIMIT_TREE_TICK_MS;
  *look = (struct tree_snapshot){
      .began = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000}};
}

static void snapshot_deinit(struct tree_snapshot *look) {
  map_deinit(&look->by_path);
  arena_deinit(&look->arena);
  free(look->files);
  *look = (struct tree_snapshot){0};
}

static struct tree_file *snapshot_find(const struct tree_snapshot *look, const char *path) {
  uint32_t at;
  return map_get(&look->by_path, str_from(path), &at) ? look->files[at] : NULL;
}

/* Returns true if this path is in a folder of ours. */
static bool snapshot_skips(const struct tree_skip *skip, const char *folder, const char *path) {
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

/* Stats one path below fd. Returns NULL if it is not a file for this look (a repository, ours), or
 * cannot be looked at. A missing file, or a folder in its place, is kept as missing. */
static struct tree_file *snapshot_add(struct tree_snapshot *look, int fd,
                                      const struct tree_skip *skip, const char *path) {
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

/* --- contents --- */

/* Reads the file's content without keeping it. Returns false if it is too big or cannot be read. */
static bool snapshot_read(int fd, const struct tree_file *file, struct buf *out) {
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
  fs_close(from);
  return n == 0 && !out->cut;
}

/* Keeps the file's content if that is small and the file is still what stat said. */
static void snapshot_keep(struct tree_snapshot *look, int fd, struct tree_file *file) {
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

/* --- repositories below the working tree ---
 *
 * Submodules, and clones that git does not know: git lists none of their files for the tree around
 * them. So each is a tree of its own, looked at after the tree that holds it, one after the other,
 * in the same steps. */

static void nested_note(struct tree *t, const char *path, const json_t *numbers) {
  json_t *file = json_object();
  json_put(file, "path", json_text(str_from(path)));
  json_object_update((json_t *)file, (json_t *)numbers);
  if (t->below == NULL)
    t->below = json_array();
  json_array_append_new(t->below, file);
}

static bool nested_is_known(const struct tree *t, const char *path) {
  for (size_t i = 0; i < t->nested_count; i++)
    if (strcmp(t->nested[i]->place, path) == 0)
      return true;
  return false;
}

/* Names the folder; false unless a repository begins there. */
static bool begins_there(struct tree *t, const char *path, struct buf *dir) {
  struct buf git = {0};
  struct stat st;
  buf_printf(dir, "%s/%s", t->top, path);
  buf_printf(&git, "%s/.git", buf_c(dir));
  errno = 0;
  char *real = realpath(buf_c(dir), NULL);
  bool ok = real != NULL && strcmp(real, buf_c(dir)) == 0 && lstat(buf_c(&git), &st) == 0;
  bool many = t->depth >= LIMIT_TREE_NESTED_DEPTH || t->nested_count >= LIMIT_TREE_NESTED;
  if ((ok && many) || errno == EACCES)
    err_set(&t->problem, ERR_LIMIT, "the repository %s cannot be looked at%s", path,
            ok ? ": there are too many" : "");
  ok = ok && !many;
  free(real);
  buf_deinit(&git);
  return ok;
}

/* path: below t's uppermost folder. After the call: one that was not there before counts as one
 * change without numbers. What is no repository, or leads elsewhere, is left out. */
static void nested_add(struct tree *t, const char *path) {
  char name[32];
  struct buf dir = {0};
  if (nested_is_known(t, path) || !begins_there(t, path, &dir)) {
    buf_deinit(&dir);
    return;
  }
  if (t->is_after) {
    nested_note(t, path, NULL);
    buf_deinit(&dir);
    return;
  }
  print_into(name, sizeof name, "nested-%zu", t->nested_count);
  struct tree *child = tree_new(buf_c(&dir), name, NULL);
  buf_deinit(&dir);
  child->depth = t->depth + 1;
  child->inside = xstrdup(t->private_dir);
  child->place = xstrdup(path);
  for (size_t i = 1; i < ARRAY_LEN(child->skip.folders); i++)
    buf_str(&child->skip.folders[i], buf_view(&t->skip.folders[i]));
  t->nested = xrealloc(t->nested, (t->nested_count + 1) * sizeof *t->nested);
  t->nested[t->nested_count++] = child;
}

/* Adds the repositories that .gitmodules names. The file is anybody's, an agent's too: what it
 * names is only looked for. */
static void nested_add_modules(struct tree *t) {
  struct buf path = {0}, text = {0};
  struct err err;
  buf_printf(&path, "%s/.gitmodules", t->top);
  struct stat st;
  bool ok = lstat(buf_c(&path), &st) == 0 && S_ISREG(st.st_mode) &&
            file_read(buf_c(&path), LIMIT_REPO_FILE_BYTES, &text, &err);
  struct str rest = buf_view(&text);
  while (ok && rest.n > 0) {
    struct str line = str_trim(str_next_line(&rest));
    const char *is = line.n > 0 ? memchr(line.p, '=', line.n) : NULL;
    if (is == NULL || !str_eq_c(str_trim((struct str){line.p, (size_t)(is - line.p)}), "path"))
      continue;
    struct str value = str_trim((struct str){is + 1, line.n - (size_t)(is + 1 - line.p)});
    buf_set(&path, value);
    if (value.n > 0 && !snapshot_skips(&t->skip, t->top, buf_c(&path)))
      nested_add(t, buf_c(&path));
  }
  buf_deinit(&path);
  buf_deinit(&text);
}

/* --- steps --- */

/* Returns the nested tree whose step it is; NULL: it is the tree's own. */
static struct tree *nested_current(const struct tree *t) {
  return t->nested_turn ? t->nested[t->nested_at] : NULL;
}

/* Takes over what changed in one that is done. */
static bool nested_take(struct tree *t, const struct tree *child, enum tree_step step) {
  struct stat st;
  size_t i;
  const json_t *file;
  if (step == TREE_FAILED && t->is_after && lstat(child->dir, &st) != 0) {
    nested_note(t, child->place, NULL);
    return true;
  }
  if (step == TREE_FAILED) {
    t->problem = child->problem;
    return false;
  }
  if (child->problem.code != ERR_NONE)
    t->problem = child->problem;
  if (!t->is_after)
    return true;
  json_array_foreach(child->changed, i, file) {
    struct buf path = {0};
    buf_printf(&path, "%s/%s", child->place, json_string_value(json_object_get(file, "path")));
    json_auto_t *numbers = json_clone_top(file);
    json_object_del(numbers, "path");
    nested_note(t, buf_c(&path), numbers);
    buf_deinit(&path);
  }
  return true;
}

/* Takes what the last step said and returns what to do next for all of them: TREE_DONE when none is
 * left. t->below then has what changed, with paths below t's uppermost folder. */
static enum tree_step nested_onward(struct tree *t, enum tree_step step) {
  while (step == TREE_DONE || step == TREE_FAILED) {
    if (t->nested_turn) {
      bool taken = nested_take(t, t->nested[t->nested_at], step);
      t->nested_turn = taken && ++t->nested_at < t->nested_count;
      if (!taken)
        return TREE_FAILED;
    } else if (step == TREE_FAILED) {
      return TREE_FAILED;
    } else {
      t->nested_at = 0;
      t->nested_turn = t->nested_count > 0;
    }
    if (!t->nested_turn)
      return TREE_DONE;
    struct tree *child = t->nested[t->nested_at];
    step = t->is_after ? tree_again(child) : tree_begin(child);
  }
  return step;
}

/* --- the working tree --- */

struct tree_pair { /* a file that has changed or may have */
  const char *path;
  const struct tree_file *before, *after; /* before NULL: it was as git's index has it */
  bool asks_blob, counted;
  long added, removed;
};

/* HOME and the like are the user's: git finds there what they always ignore. */
const char *const tree_environment[] = {"GIT_CONFIG_NOSYSTEM=1",
                                        "GIT_CONFIG_GLOBAL=/dev/null",
                                        "GIT_ATTR_NOSYSTEM=1",
                                        "GIT_OPTIONAL_LOCKS=0",
                                        "GIT_TERMINAL_PROMPT=0",
                                        "LC_ALL=C",
                                        NULL};

static const char *const list_argv[] = {"git", "ls-files",           "-z", "-t", "-m", "-d",
                                        "-o",  "--exclude-standard", NULL};
static const char *const blob_argv[] = {"git", "cat-file", "--batch", NULL};

/* --- the tree --- */

static void skip_init(struct tree_skip *skip, const char *const *own) {
  size_t n = 1; /* the first place is for the private one */
  for (; own != NULL && *own != NULL && n < ARRAY_LEN(skip->folders); own++) {
    char *real = realpath(*own, NULL);
    if (real != NULL)
      buf_puts(&skip->folders[n++], real);
    free(real);
  }
  for (int i = 0; i < 2; i++)
    if (fstat(STDOUT_FILENO + i, &skip->outputs[i]) != 0)
      skip->outputs[i] = (struct stat){0};
}

struct tree *tree_new(const char *dir, const char *name, const char *const *own_folders) {
  assert(dir != NULL);
  assert(name != NULL);
  struct tree *t = xcalloc(1, sizeof *t);
  char *real = realpath(dir, NULL);
  t->dir = real != NULL ? real : xstrdup(dir);
  t->name = xstrdup(name);
  t->fd = -1;
  t->has_index = true;
  skip_init(&t->skip, own_folders);
  t->is_repo = repo_find(t->dir, &t->repo);
  return t;
}

void tree_free(struct tree *t) {
  if (t == NULL)
    return;
  struct err ignored;
  for (size_t i = 0; i < t->nested_count; i++)
    tree_free(t->nested[i]);
  free(t->nested);
  json_decref(t->below);
  fs_close(t->fd);
  if (t->private_dir != NULL)
    (void)!tmpdir_remove(t->private_dir, &ignored);
  free(t->name);
  for (size_t i = 0; i < ARRAY_LEN(t->skip.folders); i++)
    buf_deinit(&t->skip.folders[i]);
  snapshot_deinit(&t->before);
  snapshot_deinit(&t->after);
  repo_deinit(&t->repo);
  buf_deinit(&t->ask);
  json_decref(t->changed);
  free(t->pairs);
  free(t->private_dir);
  free(t->inside);
  free(t->place);
  free(t->dir);
  free(t);
}

static enum tree_step open_top(struct tree *t) {
  fs_close(t->fd);
  t->top = t->is_repo ? buf_c(&t->repo.top) : t->dir;
  t->fd = open(t->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (t->fd >= 0)
    return TREE_DONE;
  err_set_errno(&t->problem, errno, "cannot open %s", t->top);
  return TREE_FAILED;
}

static struct tree_snapshot *current(struct tree *t) {
  return t->is_after ? &t->after : &t->before;
}

static enum tree_step tree_compare(struct tree *t);
static enum tree_step tree_onward(struct tree *t, enum tree_step step);

static enum tree_step seen(struct tree *t) {
  if (t->is_after)
    return tree_compare(t);
  if (t->before.count <= LIMIT_TREE_KEPT_COUNT) {
    for (size_t i = 0; i < t->before.count; i++)
      snapshot_keep(&t->before, t->fd, t->before.files[i]);
  }
  return TREE_DONE;
}

static enum tree_step look_around(struct tree *t) {
  if (open_top(t) == TREE_FAILED)
    return TREE_FAILED;
  snapshot_begin(current(t));
  if (t->is_repo) {
    t->argv = list_argv;
    return TREE_LIST;
  }
  /* Lists every file below, except `.git`, unless there are too many or it takes too long. */
  const struct tree_walk walk = {.look = current(t),
                                 .fd = t->fd,
                                 .folder = t->top,
                                 .skip = &t->skip,
                                 .until_ms = clock_mono_ms() + LIMIT_TREE_WALK_MS,
                                 .err = &t->problem};
  if (!walk_folder(&walk, "", 0))
    return TREE_FAILED;
  return seen(t);
}

/* Makes the folder for git's stand-in. */
static char *make_private(const struct tree *t, struct err *err) {
  struct buf path = {0};
  if (t->inside == NULL)
    return tmpdir_make_named(t->name, err);
  buf_printf(&path, "%s/%s", t->inside, t->name);
  if (mkdir(buf_c(&path), 0700) == 0)
    return buf_take(&path);
  err_set_errno(err, errno, "cannot make %s", buf_c(&path));
  buf_deinit(&path);
  return NULL;
}

/* Without a stand-in files are looked at as where there is no repository. */
enum tree_step tree_begin(struct tree *t) {
  assert(t != NULL);
  struct err err;
  if (t->is_repo)
    t->private_dir = make_private(t, &err);
  t->is_repo = t->private_dir != NULL && repo_stand_in(&t->repo, t->private_dir, true, &err);
  if (t->is_repo) {
    buf_puts(&t->skip.folders[0], t->private_dir);
    int n = snprintf(t->env[0], sizeof t->env[0], "GIT_DIR=%s", t->private_dir);
    int m = snprintf(t->env[1], sizeof t->env[1], "GIT_WORK_TREE=%s", buf_c(&t->repo.top));
    t->is_repo = n < (int)sizeof t->env[0] && m < (int)sizeof t->env[1];
  }
  return tree_onward(t, look_around(t));
}

enum tree_step tree_again(struct tree *t) {
  assert(t != NULL);
  t->is_after = true;
  return tree_onward(t, look_around(t));
}

/* Begins again without the index, or without git: git could not read the index, or did not run. */
static enum tree_step begin_without_git(struct tree *t) {
  struct buf path = {0};
  if (t->is_after) {
    err_set(&t->problem, ERR_INVALID, "git could not list the files again");
    return TREE_FAILED;
  }
  buf_printf(&path, "%s/index", t->private_dir);
  t->is_repo = t->has_index && unlink(buf_c(&path)) == 0;
  t->has_index = false;
  buf_deinit(&path);
  snapshot_deinit(&t->before);
  return look_around(t);
}

/* A path that ends with a slash is a repository that git does not know. */
static void take_path(struct tree *t, struct str path, bool is_tracked) {
  struct tree_file *file;
  if (path.p[path.n - 1] == '/') {
    char *folder = xstrndup(path.p, path.n - 1);
    nested_add(t, folder);
    free(folder);
  } else if ((file = snapshot_add(current(t), t->fd, &t->skip, path.p)) != NULL) {
    file->is_tracked = is_tracked;
  } else {
    nested_add(t, path.p);
  }
}

/* Each entry of the listing is "C a.c\0", "R b.c\0" or "? new/c.c\0": changed, removed, unknown. */
static enum tree_step take_listing(struct tree *t, struct str listing, bool ok) {
  struct tree_snapshot *look = current(t);
  if (!ok)
    return begin_without_git(t);
  for (struct str rest = listing; rest.n > 2;) {
    size_t n = strnlen(rest.p, rest.n);
    const char *path = rest.p + 2;
    if (n == rest.n)
      break; /* cut off: each ends with NUL */
    if (n > 2 && !snapshot_skips(&t->skip, t->top, path))
      take_path(t, str_from(path), rest.p[0] != '?');
    rest = (struct str){rest.p + n + 1, rest.n - n - 1};
    if (look->count > LIMIT_TREE_FILES) {
      err_set(&t->problem, ERR_LIMIT, "over %u files differ", LIMIT_TREE_FILES);
      return TREE_FAILED;
    }
  }
  if (!t->is_after)
    nested_add_modules(t);
  return seen(t);
}

enum tree_step tree_listed(struct tree *t, struct str listing, bool ok) {
  assert(t != NULL);
  struct tree *nested = nested_current(t);
  if (nested != NULL)
    return tree_onward(t, tree_listed(nested, listing, ok));
  return tree_onward(t, take_listing(t, listing, ok));
}

const struct tree *tree_asks(const struct tree *t) {
  const struct tree *nested = nested_current(t);
  return nested != NULL ? tree_asks(nested) : t;
}

/* --- what changed --- */

static bool is_at(struct timespec a, struct timespec b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Compares by what stat says alone; strictly, so that nobody can have written the same size
 * meanwhile. */
static bool looks_same(const struct tree_snapshot *look, const struct tree_file *a,
                       const struct tree_file *b, bool strictly) {
  if (a->is_there != b->is_there || a->mode != b->mode || a->size != b->size)
    return false;
  if (!a->is_there)
    return true;
  if (!is_at(a->mtime, b->mtime))
    return false;
  return !strictly ||
         (is_at(a->ctime, b->ctime) && a->inode == b->inode &&
          (a->mtime.tv_sec < look->began.tv_sec ||
           (a->mtime.tv_sec == look->began.tv_sec && a->mtime.tv_nsec < look->began.tv_nsec)));
}

static bool is_text(struct str bytes) {
  return bytes.n == 0 || memchr(bytes.p, '\0', bytes.n < 8192 ? bytes.n : 8192) == NULL;
}

/* Counts the lines changed from what it was to what it is. */
static void tree_count_lines(const struct tree *t, struct tree_pair *pair, struct str before,
                             struct str after) {
  if (!is_text(before) || !is_text(after) || clock_mono_ms() > t->count_until_ms)
    return;
  linediff_count(before, after, &pair->added, &pair->removed);
  pair->counted = true;
}

static void add_pair(struct tree *t, struct tree_pair pair) {
  if (t->pair_count % 64 == 0)
    t->pairs = xrealloc(t->pairs, (t->pair_count + 64) * sizeof *t->pairs);
  t->pairs[t->pair_count++] = pair;
}

/* Pairs a file that was examined before the call. */
static void pair_known(struct tree *t, const struct tree_file *before) {
  const struct tree_file *after = snapshot_find(&t->after, before->path);
  struct tree_pair pair = {.path = before->path, .before = before, .after = after};
  struct buf now = {0};
  if (after == NULL) /* git no longer lists it, or it is gone */
    pair.after = after = snapshot_add(&t->after, t->fd, &t->skip, before->path);
  if (after == NULL || looks_same(&t->before, before, after, true))
    return;
  bool was = before->has_content || !before->is_there;
  bool is = !after->is_there || (was && snapshot_read(t->fd, after, &now));
  if (was && is) {
    bool same = before->is_there == after->is_there && before->mode == after->mode &&
                str_eq(before->content, buf_view(&now));
    if (!same) {
      tree_count_lines(t, &pair, before->content, buf_view(&now));
      add_pair(t, pair);
    }
  } else if (!looks_same(&t->before, before, after, false)) {
    add_pair(t, pair);
  }
  buf_deinit(&now);
}

/* Pairs a file that is listed now but was not before. */
static void pair_new(struct tree *t, const struct tree_file *after) {
  struct tree_pair pair = {.path = after->path, .after = after};
  struct buf now = {0};
  if (snapshot_find(&t->before, after->path) != NULL)
    return;
  if (after->is_tracked) {
    pair.asks_blob = strchr(after->path, '\n') == NULL;
    if (pair.asks_blob)
      buf_printf(&t->ask, ":0:%s\n", after->path);
  } else if (!after->is_there) {
    return;
  } else if (snapshot_read(t->fd, after, &now)) {
    tree_count_lines(t, &pair, STR(""), buf_view(&now));
  }
  add_pair(t, pair);
  buf_deinit(&now);
}

/* Puts the path as seen from `dir`, with "../" for each folder that `dir` is below the one they
 * share. */
static void put_path(const struct tree *t, const char *path, struct buf *out) {
  size_t top_n = strlen(t->top);
  const char *dir = t->dir[top_n] == '/' ? t->dir + top_n + 1 : "";
  size_t shared = 0;
  for (size_t i = 0; dir[0] != '\0' && path[i] != '\0'; i++) {
    bool ends = dir[i] == '\0' || dir[i] == '/';
    if (ends && path[i] == '/')
      shared = i + 1;
    if (dir[i] == '\0' || dir[i] != path[i])
      break;
  }
  const char *rest = strlen(dir) >= shared ? dir + shared : "";
  for (const char *at = rest; at[0] != '\0'; at = strchr(at, '/'), at = at ? at + 1 : "")
    buf_puts(out, "../");
  buf_puts(out, path + shared);
}

static int by_path(const void *a, const void *b) {
  return strcmp(((const struct tree_pair *)a)->path, ((const struct tree_pair *)b)->path);
}

static enum tree_step tree_tell(struct tree *t) {
  struct buf path = {0};
  const char *unread = t->before.unread ? t->before.unread : t->after.unread;
  if (unread != NULL && t->problem.code == ERR_NONE)
    err_set(&t->problem, ERR_INVALID, "%s cannot be looked at", unread[0] ? unread : t->dir);
  if (t->pair_count > 0)
    qsort(t->pairs, t->pair_count, sizeof *t->pairs, by_path);
  t->changed = json_array();
  for (size_t i = 0; i < t->pair_count; i++) {
    const struct tree_pair *pair = &t->pairs[i];
    json_t *file = json_object();
    buf_clear(&path);
    put_path(t, pair->path, &path);
    json_put(file, "path", json_text(buf_view(&path)));
    if (pair->counted) {
      json_put(file, "added", json_integer(pair->added));
      json_put(file, "removed", json_integer(pair->removed));
    }
    json_array_append_new(t->changed, file);
  }
  buf_deinit(&path);
  return TREE_DONE;
}

static enum tree_step tree_compare(struct tree *t) {
  size_t listed = t->after.count; /* examining what was there before adds to it */
  t->count_until_ms = clock_mono_ms() + LIMIT_TREE_COUNT_MS;
  for (size_t i = 0; i < listed; i++)
    pair_new(t, t->after.files[i]);
  for (size_t i = 0; i < t->before.count; i++)
    pair_known(t, t->before.files[i]);
  if (t->ask.n == 0)
    return tree_tell(t);
  t->argv = blob_argv;
  return TREE_BLOBS;
}

/* Reads one answer of `cat-file --batch`: "NAME blob SIZE\n", the bytes, "\n"; others have no
 * bytes. */
static bool next_blob(struct str *rest, struct str *blob) {
  struct str line = str_next_line(rest);
  long size = -1;
  const char *space = line.n > 0 ? memrchr(line.p, ' ', line.n) : NULL;
  if (space == NULL || rest->p == NULL)
    return false;
  struct str number = {space + 1, line.n - (size_t)(space + 1 - line.p)};
  if (!str_to_long(number, &size) || size < 0 || (size_t)size >= rest->n)
    return false;
  *blob = (struct str){rest->p, (size_t)size};
  *rest = (struct str){rest->p + size + 1, rest->n - (size_t)size - 1};
  return true;
}

static enum tree_step take_blobs(struct tree *t, struct str blobs, bool ok) {
  struct str rest = blobs;
  for (size_t i = 0; ok && i < t->pair_count && rest.n > 0; i++) {
    struct tree_pair *pair = &t->pairs[i];
    struct str blob;
    struct buf now = {0};
    if (!pair->asks_blob || !next_blob(&rest, &blob))
      continue;
    if (blob.n <= LIMIT_TREE_FILE_BYTES &&
        (!pair->after->is_there || snapshot_read(t->fd, pair->after, &now)))
      tree_count_lines(t, pair, blob, buf_view(&now));
    buf_deinit(&now);
  }
  return tree_tell(t);
}

enum tree_step tree_blobs(struct tree *t, struct str blobs, bool ok) {
  assert(t != NULL);
  struct tree *nested = nested_current(t);
  if (nested != NULL)
    return tree_onward(t, tree_blobs(nested, blobs, ok));
  return tree_onward(t, take_blobs(t, blobs, ok));
}

/* --- with the repositories below --- */

static const char *changed_path(const json_t *file) {
  return json_string_value(json_object_get(file, "path"));
}

static int by_json_path(const void *a, const void *b) {
  return strcmp(changed_path(*(json_t *const *)a), changed_path(*(json_t *const *)b));
}

/* Adds what changed in them, in the order of paths. */
static void add_below(struct tree *t) {
  size_t i, n = 0;
  json_t *file, *all = json_array();
  json_array_foreach(t->below, i, file) {
    struct buf path = {0};
    put_path(t, changed_path(file), &path);
    json_object_set_new(file, "path", json_text(buf_view(&path)));
    buf_deinit(&path);
  }
  json_array_extend(t->changed, t->below);
  json_t **files = xcalloc(json_array_size(t->changed) + 1, sizeof *files);
  json_array_foreach(t->changed, i, file) {
    files[n++] = file;
  }
  qsort(files, n, sizeof *files, by_json_path);
  for (i = 0; i < n; i++)
    json_array_append(all, files[i]);
  free(files);
  json_decref(t->changed);
  t->changed = all;
}

static enum tree_step tree_onward(struct tree *t, enum tree_step step) {
  step = nested_onward(t, step);
  if (step == TREE_DONE && t->is_after && t->below != NULL)
    add_below(t);
  return step;
}
