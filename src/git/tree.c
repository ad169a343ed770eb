/* Looks at a working tree, and compares what two looks saw. */
#include "git/tree.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/checks.h"
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

static struct tree_file *file_new(struct arena *arena, const char *path, const struct stat *st) {
  struct tree_file *file = arena_alloc(arena, sizeof *file);
  *file = (struct tree_file){.path = path};
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
  buf_auto_t git = {0};
  buf_printf(&git, "%s/.git", path);
  return S_ISDIR(st->st_mode) && faccessat(fd, buf_c(&git), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Stats one path below fd. Returns NULL if it is not a file for this look (a repository, ours), or
 * cannot be looked at. A missing file, or a folder in its place, counts as missing. */
static struct tree_file *examine(struct arena *arena, int fd, const struct tree_skip *skip,
                                 const char *path, const char **unread) {
  struct stat st;
  bool there = fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
  bool hidden = !there && errno != ENOENT && errno != ENOTDIR;
  if (hidden)
    *unread = arena_strdup(arena, path);
  if (hidden || (there && (snapshot_is_repository(fd, path, &st) || is_output(skip, &st))))
    return NULL;
  return file_new(arena, path, there && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) ? &st : NULL);
}

/* Examines a path and keeps what it is, once; NULL as above. */
static struct tree_file *snapshot_add(struct tree_snapshot *look, int fd,
                                      const struct tree_skip *skip, const char *path) {
  uint32_t at = (uint32_t)look->count;
  struct tree_file *file = examine(&look->arena, fd, skip, path, &look->unread);
  if (file == NULL)
    return NULL;
  struct str copy = arena_str(&look->arena, str_from(path));
  if (!map_add(&look->by_path, &look->arena, copy, &at))
    return look->files[at];
  file->path = copy.p;
  if (look->count % 256 == 0)
    look->files = xrealloc(look->files, (look->count + 256) * sizeof *look->files);
  return look->files[look->count++] = file;
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
  buf_auto_t below = {0};
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

/* Keeps the file's content if that is small and the file is still what stat said; `last` has it of
 * files that have not changed since. */
static void snapshot_keep(struct tree_snapshot *look, const struct tree_snapshot *last, int fd,
                          struct tree_file *file) {
  buf_auto_t bytes = {0};
  if (!file->is_there || file->size > LIMIT_TREE_FILE_BYTES ||
      look->kept_bytes + (size_t)file->size > LIMIT_TREE_KEPT_BYTES)
    return;
  const struct tree_file *was = last != NULL ? snapshot_find(last, file->path) : NULL;
  bool same = was != NULL && was->has_content && looks_same(last, was, file, true);
  file->has_content = same || snapshot_read(fd, file, &bytes);
  if (file->has_content)
    file->content = arena_str(&look->arena, same ? was->content : buf_view(&bytes));
  look->kept_bytes += file->content.n;
}

/* --- repositories below the working tree ---
 *
 * Submodules, and clones that git does not know: git lists none of their files for the tree around
 * them. So each is a tree of its own, looked at after the tree that holds it, one after the other,
 * in the same steps. */

void tree_picture_free(struct tree_picture *picture) {
  if (picture == NULL)
    return;
  for (size_t i = 0; i < picture->below_count; i++)
    tree_picture_free(picture->below[i]);
  free(picture->below);
  snapshot_deinit(&picture->files);
  free(picture);
}

/* Notes that files are missing from the picture, perhaps protected ones. */
static void picture_lacks(struct tree_picture *picture, const struct err *problem) {
  if (picture->problem.code == ERR_NONE || picture->guarded)
    picture->problem = *problem;
  picture->guarded = false;
}

void tree_lacks(struct tree *t, struct str why) {
  struct err problem;
  err_set(&problem, ERR_INVALID, "git " STR_FMT, STR_ARG(why));
  picture_lacks(t->picture, &problem);
}

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
  buf_auto_t git = {0};
  struct stat st;
  struct err err;
  buf_printf(dir, "%s/%s", t->top, path);
  buf_printf(&git, "%s/.git", buf_c(dir));
  errno = 0;
  char_auto_t *real = realpath(buf_c(dir), NULL);
  bool ok = real != NULL && strcmp(real, buf_c(dir)) == 0 && lstat(buf_c(&git), &st) == 0;
  bool many = t->depth >= LIMIT_TREE_NESTED_DEPTH || t->nested_count >= LIMIT_TREE_NESTED;
  if ((ok && many) || errno == EACCES) {
    err_set(&err, ERR_LIMIT, "the repository %s cannot be looked at%s", path,
            ok ? ": there are too many" : "");
    picture_lacks(t->picture, &err);
  }
  return ok && !many;
}

/* path: below t's uppermost folder. What is no repository, or leads elsewhere, is left out. */
static void nested_add(struct tree *t, const char *path) {
  char name[32];
  buf_auto_t dir = {0};
  if (!nested_is_known(t, path) && begins_there(t, path, &dir)) {
    print_into(name, sizeof name, "nested-%zu", t->nested_count);
    struct tree *child = tree_new(&(struct tree_spec){.dir = buf_c(&dir), .name = name});
    child->depth = t->depth + 1;
    child->inside = xstrdup(t->private_dir);
    child->place = xstrdup(path);
    for (size_t i = 1; i < ARRAY_LEN(child->skip.folders); i++)
      buf_str(&child->skip.folders[i], buf_view(&t->skip.folders[i]));
    t->nested = xrealloc(t->nested, (t->nested_count + 1) * sizeof *t->nested);
    t->nested[t->nested_count++] = child;
  }
}

/* Adds the repositories that .gitmodules names. The file is anybody's, an agent's too: what it
 * names is only looked for. */
static void nested_add_modules(struct tree *t) {
  buf_auto_t path = buf_of("%s/.gitmodules", t->top), text = {0};
  struct err err;
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
}

/* --- steps --- */

/* Returns the nested tree whose step it is; NULL: it is the tree's own. */
static struct tree *nested_current(const struct tree *t) {
  return t->nested_turn ? t->nested[t->nested_at] : NULL;
}

static bool is_looking(const struct tree *t) {
  return t->after == NULL;
}

static const struct tree_picture *picture_below(const struct tree_picture *picture, size_t at) {
  return picture != NULL && at < picture->below_count ? picture->below[at] : NULL;
}

/* Takes over what the step of the nested tree said. */
static bool nested_take(struct tree *t, struct tree *child, enum tree_step step) {
  struct stat st;
  if (step == TREE_FAILED && is_looking(t) && lstat(child->dir, &st) != 0)
    return true;
  if (step == TREE_FAILED) {
    t->problem = child->problem;
    return false;
  }
  if (is_looking(t)) {
    struct tree_picture *picture = tree_take(child);
    t->picture->below[t->nested_at] = picture;
    if (picture->problem.code != ERR_NONE)
      picture_lacks(t->picture, &picture->problem);
    return true;
  }
  JSON_EACH(child->changed, i, file) {
    buf_auto_t path = {0};
    buf_printf(&path, "%s/%s", child->place, json_string_value(json_object_get(file, "path")));
    json_auto_t *numbers = json_clone_top(file);
    json_object_del(numbers, "path");
    nested_note(t, buf_c(&path), numbers);
  }
  return true;
}

/* Begins with a nested tree what its tree does. One that came or went is one change without
 * numbers. */
static enum tree_step nested_begin(struct tree *t, struct tree *child) {
  struct stat st;
  const struct tree_picture *before = picture_below(t->before, t->nested_at);
  const struct tree_picture *after = picture_below(t->after, t->nested_at);
  child->gone = false;
  if (is_looking(t)) {
    buf_auto_t git = {0};
    buf_printf(&git, "%s/.git", child->dir);
    child->gone = lstat(buf_c(&git), &st) != 0 && errno != EACCES;
    if (!child->gone)
      return tree_look(child, picture_below(t->last, t->nested_at));
  } else if (before != NULL && after != NULL) {
    return tree_compare(child, before, after);
  } else if (before != NULL || after != NULL) {
    nested_note(t, child->place, NULL);
  }
  child->gone = true;
  return TREE_DONE;
}

/* Takes what the last step said and returns what to do next for all of them: TREE_DONE when none is
 * left. t->below then has what changed, with paths below t's uppermost folder. */
static enum tree_step nested_onward(struct tree *t, enum tree_step step) {
  while (step == TREE_DONE || step == TREE_FAILED) {
    if (!t->nested_turn && step == TREE_FAILED)
      return TREE_FAILED;
    if (!t->nested_turn) {
      t->nested_at = 0;
      if (is_looking(t) && t->nested_count > 0) {
        t->picture->below_count = t->nested_count;
        t->picture->below = xcalloc(t->nested_count, sizeof(struct tree_picture *));
      }
    } else {
      struct tree *child = t->nested[t->nested_at];
      if (!child->gone && !nested_take(t, child, step)) {
        t->nested_turn = false;
        return TREE_FAILED;
      }
      t->nested_at++;
    }
    t->nested_turn = t->nested_at < t->nested_count;
    if (!t->nested_turn)
      return TREE_DONE;
    step = nested_begin(t, t->nested[t->nested_at]);
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

static const char *const blob_argv[] = {"git", "cat-file", "--batch", NULL};

/* --- the tree --- */

static void skip_init(struct tree_skip *skip, const char *const *own) {
  size_t n = 1; /* the first place is for the private one */
  for (; own != NULL && *own != NULL && n < ARRAY_LEN(skip->folders); own++) {
    char_auto_t *real = realpath(*own, NULL);
    if (real != NULL)
      buf_puts(&skip->folders[n++], real);
  }
  for (int i = 0; i < 2; i++)
    if (fstat(STDOUT_FILENO + i, &skip->outputs[i]) != 0)
      skip->outputs[i] = (struct stat){0};
}

struct tree *tree_new(const struct tree_spec *spec) {
  assert(spec->dir != NULL);
  assert(spec->name != NULL);
  struct tree *t = xcalloc(1, sizeof *t);
  char *real = realpath(spec->dir, NULL);
  t->dir = real != NULL ? real : xstrdup(spec->dir);
  t->name = xstrdup(spec->name);
  t->fd = -1;
  t->has_index = true;
  t->protect = spec->protect;
  skip_init(&t->skip, spec->own_folders);
  t->is_repo = repo_find(t->dir, &t->repo);
  if (spec->older != NULL)
    buf_str(&t->rules, buf_view(&spec->older->rules));
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
  tree_picture_free(t->picture);
  repo_deinit(&t->repo);
  arena_deinit(&t->specs);
  arena_deinit(&t->paired);
  buf_deinit(&t->rules);
  buf_deinit(&t->ask);
  json_decref(t->changed);
  free(t->pairs);
  free(t->private_dir);
  free(t->inside);
  free(t->place);
  free(t->dir);
  free(t);
}

struct tree_picture *tree_take(struct tree *t) {
  struct tree_picture *picture = t->picture;
  t->picture = NULL;
  return picture;
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

static enum tree_step tree_onward(struct tree *t, enum tree_step step);

static enum tree_step seen(struct tree *t) {
  struct tree_snapshot *files = &t->picture->files;
  struct err err;
  const struct tree_snapshot *last = t->last != NULL ? &t->last->files : NULL;
  for (size_t i = 0; i < files->count && files->count <= LIMIT_TREE_KEPT_COUNT; i++)
    snapshot_keep(files, last, t->fd, files->files[i]);
  if (files->unread != NULL) {
    err_set(&err, ERR_INVALID, "%s cannot be looked at", files->unread[0] ? files->unread : t->dir);
    picture_lacks(t->picture, &err);
  }
  t->has_looked = true;
  return TREE_DONE;
}

/* --- git's listings --- */

/* All files; if too many differ, those that git knows, and what is protected. Then of what
 * is protected but ignored, with folders that are ignored as a whole as one entry; then of what is
 * in those, but was not ignored at first. */
enum tree_listing { LIST_ALL, LIST_TRACKED, LIST_PROTECTED, LIST_IGNORED, LIST_HIDDEN };

static const char *const list_words[][6] = {
    [LIST_ALL] = {"-m", "-d", "-o", "--exclude-standard"},
    [LIST_TRACKED] = {"-m", "-d"},
    [LIST_PROTECTED] = {"-o", "--exclude-standard"},
    [LIST_IGNORED] = {"-o", "-i", "--exclude-standard", "--directory"},
    [LIST_HIDDEN] = {"-o", "-X"},
};

static enum tree_step ask_listing(struct tree *t, enum tree_listing listing) {
  size_t n = 0;
  t->words[n++] = "git";
  t->words[n++] = "ls-files";
  t->words[n++] = "-z";
  t->words[n++] = "-t";
  for (size_t i = 0; list_words[listing][i] != NULL; i++)
    t->words[n++] = list_words[listing][i];
  if (listing == LIST_HIDDEN)
    t->words[n++] = arena_printf(&t->picture->files.arena, "%s/rules", t->private_dir);
  for (size_t i = 0; listing >= LIST_PROTECTED && i <= t->spec_count; i++)
    t->words[n++] = i == 0 ? "--" : t->specs_of[i - 1];
  t->words[n] = NULL;
  t->argv = t->words;
  t->listing = (int)listing;
  return TREE_LIST;
}

/* Returns the work tree's folder that `dir` is, with a slash behind it; "" for the uppermost. */
static struct str dir_below_top(const struct tree *t) {
  size_t n = t->repo.top.n;
  return t->dir[n] == '/' && t->dir[n + 1] != '\0' ? str_from(t->dir + n + 1) : STR("");
}

static bool is_guarded(const struct tree *t, const char *path) {
  struct str below = dir_below_top(t);
  if (below.n > 0 && (strncmp(path, below.p, below.n) != 0 || path[below.n] != '/'))
    return false;
  struct str rest = str_from(path + below.n + (below.n > 0));
  for (size_t i = 0; i < json_array_size(t->protect); i++)
    if (protect_matches(json_view(json_array_get(t->protect, i)), rest))
      return true;
  return false;
}

static void put_glob(struct buf *out, struct str text, const char *special) {
  for (size_t i = 0; i < text.n; i++) {
    if (strchr(special, text.p[i]) != NULL)
      buf_putc(out, '\\');
    buf_putc(out, text.p[i]);
  }
}

static void add_spec(struct tree *t, const struct buf *spec) {
  t->specs_of[t->spec_count++] = arena_strdup(&t->specs, buf_c(spec));
}

/* Has git look where a pattern's files can be: in the folder before its first star, or everywhere
 * for a file or a folder of that name. */
static void put_spec(struct tree *t, struct str pattern) {
  struct str below = dir_below_top(t);
  buf_auto_t spec = {0};
  while (str_starts(pattern, "./") || str_starts(pattern, "/"))
    pattern =
        (struct str){pattern.p + 1 + (pattern.p[0] == '.'), pattern.n - 1 - (pattern.p[0] == '.')};
  if (pattern.n > 0 && memchr(pattern.p, '/', pattern.n) == NULL) {
    for (int inside = 0; inside < 2; inside++) {
      buf_clear(&spec);
      buf_puts(&spec, ":(glob)");
      put_glob(&spec, below, "\\[]*?");
      buf_puts(&spec, below.n > 0 ? "/**/" : "**/");
      put_glob(&spec, pattern, "\\[]");
      buf_puts(&spec, inside ? "/**" : "");
      add_spec(t, &spec);
    }
  } else {
    size_t n = 0, end = 0;
    for (; n < pattern.n && pattern.p[n] != '*' && pattern.p[n] != '?'; n++)
      end = pattern.p[n] == '/' ? n : end;
    end = n == pattern.n && pattern.p[n - 1] != '/' ? n : end;
    buf_printf(&spec, ":(top,literal)" STR_FMT "%s%.*s", STR_ARG(below),
               below.n > 0 && end > 0 ? "/" : "", (int)end, pattern.p);
    add_spec(t, &spec);
  }
}

/* Reads what the uppermost .gitignore and info/exclude say. */
static void read_rules(const struct tree *t, struct buf *out) {
  buf_auto_t path = {0}, text = {0};
  struct err ignored;
  for (int i = 0; i < 2; i++) {
    buf_clear(&path);
    buf_printf(&path, "%s/%s", buf_c(i ? &t->repo.top : &t->repo.common),
               i ? ".gitignore" : "info/exclude");
    if (file_read(buf_c(&path), LIMIT_REPO_FILE_BYTES, &text, &ignored))
      buf_str(out, buf_view(&text));
    buf_putc(out, '\n');
    buf_clear(&text);
  }
}

/* Returns true if other files are ignored than were at first. */
static bool rules_changed(const struct tree *t) {
  buf_auto_t now = {0};
  const struct tree_snapshot *files = &t->picture->files;
  read_rules(t, &now);
  bool changed = !str_eq(buf_view(&now), buf_view(&t->rules));
  for (size_t i = 0; i < files->count && !changed; i++) {
    const char *slash = strrchr(files->files[i]->path, '/');
    changed = slash != NULL && strcmp(slash, "/.gitignore") == 0;
  }
  return changed;
}

static bool prepare_guard(struct tree *t, struct err *err) {
  buf_auto_t path = {0};
  size_t n = json_array_size(t->protect);
  if (n == 0)
    return true;
  for (size_t i = 0; i < n && i < LIMIT_PROTECT_COUNT; i++)
    put_spec(t, json_view(json_array_get(t->protect, i)));
  if (t->rules.n == 0)
    read_rules(t, &t->rules);
  buf_printf(&path, "%s/rules", t->private_dir);
  return file_write_new(buf_c(&path), buf_view(&t->rules), err);
}

static enum tree_step look_around(struct tree *t) {
  if (open_top(t) == TREE_FAILED)
    return TREE_FAILED;
  t->picture->guarded = true;
  t->picture->is_part = t->is_flooded;
  if (t->is_flooded)
    err_set(&t->picture->problem, ERR_LIMIT, "over %u files differ", LIMIT_TREE_FILES);
  snapshot_begin(&t->picture->files);
  if (t->is_repo)
    return ask_listing(t, t->is_flooded ? LIST_TRACKED : LIST_ALL);
  /* Lists every file below, except `.git`, unless there are too many or it takes too long. */
  const struct tree_walk walk = {.look = &t->picture->files,
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
  buf_auto_t path = {0};
  if (t->inside == NULL)
    return tmpdir_make_named(t->name, err);
  buf_printf(&path, "%s/%s", t->inside, t->name);
  if (mkdir(buf_c(&path), 0700) == 0)
    return buf_take(&path);
  err_set_errno(err, errno, "cannot make %s", buf_c(&path));
  return NULL;
}

/* Reads how many files the repository's index has now; 0 if it has none. */
static uint32_t index_count(const struct tree *t) {
  buf_auto_t path = {0};
  unsigned char head[12];
  uint32_t count = 0;
  buf_printf(&path, "%s/index", buf_c(&t->repo.git_dir));
  int fd = open(buf_c(&path), O_RDONLY | O_CLOEXEC);
  bool ok = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head;
  fs_close(fd);
  for (int i = 8; i < 12 && ok; i++)
    count = count << 8 | head[i];
  return count;
}

/* Without a stand-in files are looked at as where there is no repository. */
static void stand_in(struct tree *t) {
  struct err err;
  if (t->is_repo) {
    t->private_dir = make_private(t, &err);
    t->index_count = index_count(t);
  }
  t->is_repo = t->private_dir != NULL && repo_stand_in(&t->repo, t->private_dir, true, &err) &&
               prepare_guard(t, &err);
  if (t->is_repo) {
    buf_puts(&t->skip.folders[0], t->private_dir);
    int n = snprintf(t->env[0], sizeof t->env[0], "GIT_DIR=%s", t->private_dir);
    int m = snprintf(t->env[1], sizeof t->env[1], "GIT_WORK_TREE=%s", buf_c(&t->repo.top));
    t->is_repo = n < (int)sizeof t->env[0] && m < (int)sizeof t->env[1];
  }
}

bool tree_is_current(const struct tree *t, const struct tree_picture *last) {
  buf_auto_t path = {0};
  struct stat st;
  bool current = last == NULL || last->files.count <= LIMIT_TREE_KEPT_COUNT;
  if (t->is_repo) {
    current = current && index_count(t) == t->index_count;
  } else { /* a repository may have begun there */
    buf_printf(&path, "%s/.git", t->dir);
    current = lstat(buf_c(&path), &st) != 0;
  }
  for (size_t i = 0; i < t->nested_count && current; i++)
    current =
        picture_below(last, i) == NULL || tree_is_current(t->nested[i], picture_below(last, i));
  return current;
}

enum tree_step tree_look(struct tree *t, const struct tree_picture *last) {
  assert(t != NULL);
  t->before = t->after = NULL;
  t->last = last;
  t->problem = (struct err){0};
  t->has_hidden = false;
  tree_picture_free(t->picture);
  t->picture = xcalloc(1, sizeof *t->picture);
  if (!t->has_looked && t->private_dir == NULL)
    stand_in(t);
  return tree_onward(t, look_around(t));
}

/* Begins again without the index, or without git: git could not read the index, or did not run. */
static enum tree_step begin_without_git(struct tree *t) {
  buf_auto_t path = {0};
  if (t->has_looked || t->listing >= LIST_PROTECTED) {
    err_set(&t->problem, ERR_INVALID, "git could not list the files again");
    return TREE_FAILED;
  }
  buf_printf(&path, "%s/index", t->private_dir);
  t->is_repo = t->has_index && unlink(buf_c(&path)) == 0;
  t->has_index = false;
  snapshot_deinit(&t->picture->files);
  return look_around(t);
}

/* A path that ends with a slash is a repository that git does not know, or an ignored folder. */
static void take_path(struct tree *t, struct str path, bool is_tracked) {
  struct tree_file *file;
  bool is_folder = path.p[path.n - 1] == '/';
  if (is_folder && t->listing == LIST_IGNORED) {
    t->has_hidden = true;
  } else if (is_folder) {
    char_auto_t *folder = xstrndup(path.p, path.n - 1);
    nested_add(t, folder);
  } else if (t->listing >= LIST_PROTECTED && !is_guarded(t, path.p)) {
    return;
  } else if ((file = snapshot_add(&t->picture->files, t->fd, &t->skip, path.p)) != NULL) {
    file->is_tracked |= is_tracked;
  } else {
    nested_add(t, path.p);
  }
}

/* After a listing: looks at what is protected besides, and at repositories below. */
static enum tree_step list_more(struct tree *t) {
  if (t->listing <= LIST_TRACKED)
    nested_add_modules(t);
  if (t->spec_count == 0)
    return seen(t);
  if (t->listing == LIST_TRACKED)
    return ask_listing(t, LIST_PROTECTED);
  if (t->listing < LIST_IGNORED)
    return ask_listing(t, LIST_IGNORED);
  if (t->listing == LIST_IGNORED && t->has_hidden && rules_changed(t))
    return ask_listing(t, LIST_HIDDEN);
  return seen(t);
}

/* Where too many files differ, of those that git does not know only protected ones are looked at,
 * from now on. */
static enum tree_step begin_flooded(struct tree *t, size_t count) {
  if (t->listing != LIST_ALL) {
    err_set(&t->problem, ERR_LIMIT, "over %u files differ", LIMIT_TREE_FILES);
    return TREE_FAILED;
  }
  t->is_flooded = true;
  snapshot_deinit(&t->picture->files);
  t->picture->listed = count;
  return look_around(t);
}

/* Each entry of the listing is "C a.c\0", "R b.c\0" or "? new/c.c\0": changed, removed, unknown. */
static enum tree_step take_listing(struct tree *t, struct str listing, bool ok) {
  size_t listed = 0;
  if (!ok)
    return begin_without_git(t);
  for (struct str rest = listing; rest.n > 2; listed++) {
    size_t n = strnlen(rest.p, rest.n);
    const char *path = rest.p + 2;
    if (n == rest.n)
      break; /* cut off: each ends with NUL */
    if (n > 2 && !snapshot_skips(&t->skip, t->top, path))
      take_path(t, str_from(path), rest.p[0] != '?');
    rest = (struct str){rest.p + n + 1, rest.n - n - 1};
    if (t->picture->files.count > LIMIT_TREE_FILES)
      return begin_flooded(t, listed);
  }
  if (listing.n >= LIMIT_TREE_LIST_BYTES)
    return begin_flooded(t, listed);
  return list_more(t);
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

static void note_pair(struct tree *t, struct tree_pair pair) {
  if (t->pair_count % 64 == 0)
    t->pairs = xrealloc(t->pairs, (t->pair_count + 64) * sizeof *t->pairs);
  t->pairs[t->pair_count++] = pair;
}

/* Pairs a file that was examined before the call. */
static void pair_known(struct tree *t, const struct tree_file *before) {
  const struct tree_file *after = snapshot_find(&t->after->files, before->path);
  const struct tree_snapshot *look = &t->before->files;
  struct tree_pair pair = {.path = before->path, .before = before};
  buf_auto_t read = {0};
  const char *unread = NULL;
  if (after == NULL) /* git no longer lists it, or it is gone */
    after = examine(&t->paired, t->fd, &t->skip, before->path, &unread);
  pair.after = after;
  if (unread != NULL) {
    err_set(&t->problem, ERR_INVALID, "%s cannot be looked at", unread);
    t->guarded = false;
  }
  if (after == NULL || looks_same(look, before, after, true))
    return;
  bool was = before->has_content || !before->is_there;
  bool is = !after->is_there || after->has_content || (was && snapshot_read(t->fd, after, &read));
  struct str now = after->has_content ? after->content : buf_view(&read);
  if (was && is) {
    bool same = before->is_there == after->is_there && before->mode == after->mode &&
                str_eq(before->content, now);
    if (!same) {
      tree_count_lines(t, &pair, before->content, now);
      note_pair(t, pair);
    }
  } else if (!looks_same(look, before, after, false)) {
    note_pair(t, pair);
  }
}

/* Pairs a file that is listed now but was not before. */
static void pair_new(struct tree *t, const struct tree_file *after) {
  struct tree_pair pair = {.path = after->path, .after = after};
  buf_auto_t read = {0};
  if (snapshot_find(&t->before->files, after->path) != NULL)
    return;
  if (after->is_tracked) {
    pair.asks_blob = strchr(after->path, '\n') == NULL;
    if (pair.asks_blob)
      buf_printf(&t->ask, ":0:%s\n", after->path);
  } else if (!after->is_there || (t->before->is_part && !is_guarded(t, after->path))) {
    return;
  } else if (after->has_content || snapshot_read(t->fd, after, &read)) {
    tree_count_lines(t, &pair, STR(""), after->has_content ? after->content : buf_view(&read));
  }
  note_pair(t, pair);
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
  buf_auto_t path = {0};
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
  return TREE_DONE;
}

/* Returns how many files at least are listed now besides those that were, and those told. */
static size_t count_more(const struct tree *t) {
  size_t known = t->before->files.count + t->pair_count;
  if (!t->after->is_part || t->before->is_part || t->after->listed <= known)
    return 0;
  size_t more = t->after->listed - known;
  return more < LIMIT_TREE_FILES ? more : LIMIT_TREE_FILES - 1;
}

enum tree_step tree_compare(struct tree *t, const struct tree_picture *before,
                            const struct tree_picture *after) {
  assert(t != NULL && before != NULL && after != NULL);
  t->before = before;
  t->after = after;
  bool use_after = after->problem.code != ERR_NONE && (before->guarded || !after->guarded);
  t->problem = use_after ? after->problem : before->problem;
  t->guarded = before->guarded && after->guarded;
  t->pair_count = 0;
  buf_clear(&t->ask);
  arena_deinit(&t->paired);
  json_decref(t->below);
  json_decref(t->changed);
  t->below = t->changed = NULL;
  t->count_until_ms = clock_mono_ms() + LIMIT_TREE_COUNT_MS;
  for (size_t i = 0; i < after->files.count; i++)
    pair_new(t, after->files.files[i]);
  for (size_t i = 0; i < before->files.count; i++)
    pair_known(t, before->files.files[i]);
  t->more = count_more(t);
  if (t->ask.n == 0)
    return tree_onward(t, tree_tell(t));
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
    buf_auto_t now = {0};
    if (!pair->asks_blob || !next_blob(&rest, &blob))
      continue;
    const struct tree_file *after = pair->after;
    if (blob.n <= LIMIT_TREE_FILE_BYTES &&
        (!after->is_there || after->has_content || snapshot_read(t->fd, after, &now)))
      tree_count_lines(t, pair, blob, after->has_content ? after->content : buf_view(&now));
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
  size_t n = 0;
  json_t *all = json_array();
  JSON_EACH(t->below, i, file) {
    buf_auto_t path = {0};
    put_path(t, changed_path(file), &path);
    json_object_set_new(file, "path", json_text(buf_view(&path)));
  }
  json_array_extend(t->changed, t->below);
  json_t **files = xcalloc(json_array_size(t->changed) + 1, sizeof *files);
  JSON_EACH(t->changed, i, file)
    files[n++] = file;
  qsort(files, n, sizeof *files, by_json_path);
  for (size_t i = 0; i < n; i++)
    json_array_append(all, files[i]);
  free(files);
  json_decref(t->changed);
  t->changed = all;
}

static enum tree_step tree_onward(struct tree *t, enum tree_step step) {
  step = nested_onward(t, step);
  if (step == TREE_DONE && t->after != NULL && t->below != NULL)
    add_below(t);
  return step;
}
