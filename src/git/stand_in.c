/* Makes the folder that git takes for a repository's common one. */
#include "git/stand_in.h"

#include "base/file.h"
#include "base/memory.h"
#include "git/repo.h"
#include "git/repo_config.h"
#include "os/tmpdir.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool put_config(const struct repo *repo, struct buf *out, struct err *err) {
  buf_auto_t copied = {0}, file = {0};
  bool extensions = false, by_worktree = false, none = false;
  buf_printf(&file, "%s/config", buf_c(&repo->common));
  bool ok = repo_config_copy(buf_c(&file), &extensions, &by_worktree, &copied, err);
  buf_clear(&file);
  buf_printf(&file, "%s/config.worktree", buf_c(&repo->git_dir));
  if (ok && by_worktree)
    ok = repo_config_copy(buf_c(&file), &none, &none, &copied, err);
  buf_printf(out, "[core]\n\trepositoryformatversion = %d\n\tbare = %s\n", extensions,
             repo->top.n > 0 ? "false" : "true");
  buf_str(out, buf_view(&copied));
  return ok;
}

/* --- links that git would write through --- */

/* Looks at a folder's entries and, so many levels deep, at those of its folders. `may`: names of
 * the first level that git only reads, or not at all. */
static bool has_no_links(const char *folder, const char *may, unsigned depth, struct err *err) {
  DIR *dir = opendir(folder);
  const struct dirent *entry;
  buf_auto_t path = {0};
  struct stat st;
  bool ok = true;
  if (dir == NULL)
    return errno == ENOENT || err_set_errno(err, errno, "cannot read %.300s", folder);
  while (ok && (entry = readdir(dir)) != NULL) {
    unsigned char type = entry->d_type;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    if (type == DT_REG || (type == DT_DIR && depth == 0))
      continue;
    buf_clear(&path);
    buf_printf(&path, "%s/%s", folder, entry->d_name);
    if (type == DT_UNKNOWN)
      type = lstat(buf_c(&path), &st) == 0 ? (unsigned char)IFTODT(st.st_mode) : DT_REG;
    if (type == DT_LNK && !str_among(str_from(entry->d_name), may))
      ok = err_set(err, ERR_INVALID,
                   "%.300s is a link, through which segue's git does not write: put what it leads "
                   "to in its place",
                   buf_c(&path));
    else if (type == DT_DIR && depth > 0)
      ok = has_no_links(buf_c(&path), "", depth - 1, err);
  }
  (void)closedir(dir);
  return ok;
}

static bool folder_has_no_links(const struct buf *git_dir, bool changes, struct err *err) {
  /* A deeper one git refuses itself: the names of branches are shorter. */
  static const struct {
    const char *name;
    unsigned depth;
  } written[] = {{"logs", 64}, {"refs", 64}, {"objects", 0}, {"worktrees", 1}};
  buf_auto_t path = {0};
  bool ok = has_no_links(buf_c(git_dir),
                         "hooks config config.worktree description info lfs branches remotes "
                         "rr-cache svn",
                         0, err);
  for (size_t i = 0; ok && changes && i < ARRAY_LEN(written); i++) {
    buf_clear(&path);
    buf_printf(&path, "%s/%s", buf_c(git_dir), written[i].name);
    ok = has_no_links(buf_c(&path), "", written[i].depth, err);
  }
  return ok;
}

/* --- the folder --- */

/* Links a file or folder of the repository, which may come later. */
static bool link_to(const struct repo *repo, const char *base, const char *name, struct err *err) {
  buf_auto_t from = buf_of("%s/%s", buf_c(&repo->common), name), to = buf_of("%s/%s", base, name);
  return symlink(buf_c(&from), buf_c(&to)) == 0 ||
         err_set_errno(err, errno, "cannot make %s", buf_c(&to));
}

static bool fill(const struct repo *repo, const char *base, struct err *err) {
  static const char *const names[] = {"HEAD",    "objects",      "refs",           "worktrees",
                                      "shallow", "info/exclude", "info/attributes"};
  buf_auto_t config = {0}, path = buf_of("%s/info", base);
  bool ok =
      mkdir(buf_c(&path), 0700) == 0 || err_set_errno(err, errno, "cannot make %s", buf_c(&path));
  for (size_t i = 0; ok && i < ARRAY_LEN(names); i++)
    ok = link_to(repo, base, names[i], err);
  buf_clear(&path);
  buf_printf(&path, "%s/config", base);
  return ok && put_config(repo, &config, err) &&
         file_write_new(buf_c(&path), buf_view(&config), err);
}

/* Removes what programs left that were killed. Their numbers are in the names. */
static void sweep_stand_ins(const char *beside) {
  buf_auto_t above = {0}, path = {0};
  const struct dirent *entry;
  struct err ignored;
  long pid;
  buf_append(&above, beside, (size_t)(strrchr(beside, '/') - beside));
  DIR *dir = opendir(buf_c(&above));
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    buf_clear(&path);
    buf_printf(&path, "%s/%s", buf_c(&above), entry->d_name);
    if (sscanf(entry->d_name, "segue-git-%ld-", &pid) == 1 && pid > 0 && kill((pid_t)pid, 0) != 0 &&
        errno == ESRCH)
      (void)!tmpdir_remove(buf_c(&path), &ignored);
  }
  if (dir != NULL)
    (void)closedir(dir);
}

static char *stand_in_make_folder(struct err *err) {
  static unsigned long made;
  char name[64];
  print_into(name, sizeof name, "segue-git-%ld-%lu", (long)getpid(), made);
  char *folder = tmpdir_make_named(name, err);
  if (folder != NULL && made++ == 0)
    sweep_stand_ins(folder);
  return folder;
}

/* --- those that are kept --- */

enum { KEPT = 8 };

static struct list kept; /* the one that was used last is the last */

static void stand_in_free(struct stand_in *s) {
  struct err ignored;
  if (s->folder != NULL)
    (void)!tmpdir_remove(s->folder, &ignored);
  free(s->folder);
  for (size_t i = 0; i < ARRAY_LEN(s->files); i++)
    buf_deinit(&s->files[i]);
  buf_deinit(&s->real);
  buf_deinit(&s->names);
  free(s);
}

static struct stat look_at(const struct buf *file) {
  struct stat st;
  return stat(buf_c(file), &st) == 0 ? st : (struct stat){0};
}

static bool is_as_seen(const struct stand_in *s) {
  bool same = true;
  for (size_t i = 0; same && i < ARRAY_LEN(s->files); i++) {
    struct stat now = look_at(&s->files[i]), was = s->seen[i];
    same = now.st_ino == was.st_ino && now.st_dev == was.st_dev && now.st_size == was.st_size &&
           now.st_mtim.tv_sec == was.st_mtim.tv_sec && now.st_mtim.tv_nsec == was.st_mtim.tv_nsec &&
           now.st_ctim.tv_sec == was.st_ctim.tv_sec && now.st_ctim.tv_nsec == was.st_ctim.tv_nsec;
  }
  return same;
}

static void stand_in_put_name(struct stand_in *s, const char *name, const char *value) {
  buf_printf(&s->names, "%s=%s%c", name, value, '\0');
}

/* The names are one buffer, which may have moved while it grew. */
static struct stand_in *point_to_names(struct stand_in *s) {
  size_t n = 0;
  for (size_t at = 0; at < s->names.n; at += strlen(s->names.p + at) + 1) {
    assert(n + 1 < ARRAY_LEN(s->env));
    s->env[n++] = s->names.p + at;
  }
  s->env[n] = NULL;
  s->users = 1;
  return s;
}

static struct stand_in *make_anew(const struct repo *repo, struct err *err) {
  struct stand_in *s = xcalloc(1, sizeof *s);
  buf_auto_t base = {0};
  struct str common = buf_view(&repo->common);
  buf_printf(&s->files[1], "%s/config", common.p);
  buf_printf(&s->files[2], "%s/config.worktree", buf_c(&repo->git_dir));
  for (size_t i = 1; i < ARRAY_LEN(s->files); i++)
    s->seen[i] = look_at(&s->files[i]);
  s->folder = stand_in_make_folder(err);
  bool ok = s->folder != NULL;
  buf_puts(&base, ok ? s->folder : "");
  /* git takes what is around a folder `.git` for the main working tree. */
  bool within = str_ends(common, "/.git");
  if (ok && within) {
    common.n -= strlen("/.git");
    buf_puts(&base, "/.git");
    ok =
        mkdir(buf_c(&base), 0700) == 0 || err_set_errno(err, errno, "cannot make %s", buf_c(&base));
  }
  ok = ok && fill(repo, buf_c(&base), err);
  buf_printf(&s->files[0], "%s/config", buf_c(&base));
  s->seen[0] = look_at(&s->files[0]);
  buf_str(&s->real, common);
  stand_in_put_name(s, "GIT_DIR", buf_c(&repo->git_dir));
  stand_in_put_name(s, "GIT_COMMON_DIR", buf_c(&base));
  /* A bare repository's folder would be taken for its working tree: with a common folder of its own
   * git does not look for core.bare. */
  if (repo->top.n > 0)
    stand_in_put_name(s, "GIT_WORK_TREE", buf_c(&repo->top));
  else
    stand_in_put_name(s, "GIT_IMPLICIT_WORK_TREE", "0");
  if (ok)
    return point_to_names(s);
  stand_in_free(s);
  return NULL;
}

static bool is_for(const struct stand_in *s, const struct repo *repo) {
  const char *tree = s->env[2];
  return strcmp(s->env[0] + strlen("GIT_DIR="), buf_c(&repo->git_dir)) == 0 &&
         strcmp(str_starts(str_from(tree), "GIT_WORK_TREE=") ? strchr(tree, '=') + 1 : "",
                buf_c(&repo->top)) == 0 &&
         strncmp(buf_c(&s->files[1]), buf_c(&repo->common), repo->common.n) == 0 &&
         strcmp(buf_c(&s->files[1]) + repo->common.n, "/config") == 0;
}

static struct stand_in *stand_in_take_kept(const struct repo *repo) {
  struct stand_in *found = NULL;
  LIST_EACH(struct stand_in, s, in_kept, &kept) {
    if (found == NULL && is_for(s, repo) && is_as_seen(s)) {
      found = s;
    } else if (is_for(s, repo) || kept.count > KEPT) { /* nobody will want it again */
      list_remove(&kept, &s->in_kept);
      if (s->users == 0)
        stand_in_free(s);
    }
  }
  if (found != NULL) {
    found->users++;
    list_remove(&kept, &found->in_kept);
    list_push_back(&kept, &found->in_kept);
  }
  return found;
}

struct stand_in *stand_in_take(const char *folder, bool changes, struct err *err) {
  struct repo repo;
  struct stand_in *s = NULL;
  if (!repo_enter(folder, &repo, err))
    return NULL;
  if (repo.common.n == 0) {
    s = xcalloc(1, sizeof *s);
    stand_in_put_name(s, "GIT_DIR", "/dev/null");
    buf_puts(&s->real, folder);
    return point_to_names(s);
  }
  bool ok = folder_has_no_links(&repo.common, changes, err) &&
            (strcmp(buf_c(&repo.git_dir), buf_c(&repo.common)) == 0 ||
             folder_has_no_links(&repo.git_dir, changes, err));
  if (ok && (s = stand_in_take_kept(&repo)) == NULL && (s = make_anew(&repo, err)) != NULL)
    list_push_back(&kept, &s->in_kept);
  repo_deinit(&repo);
  return s;
}

void stand_in_give(struct stand_in *s) {
  if (s != NULL && --s->users == 0 && !list_holds(&kept, &s->in_kept))
    stand_in_free(s);
}

void stand_in_drop(void) {
  LIST_EACH(struct stand_in, s, in_kept, &kept) {
    list_remove(&kept, &s->in_kept);
    if (s->users == 0)
      stand_in_free(s);
  }
}

void stand_in_unmask(const struct stand_in *s, struct buf *text) {
  struct buf out = {0};
  const char *mask = s != NULL && s->folder != NULL ? s->folder : "/dev/null", *found;
  size_t n = strlen(mask), at = 0;
  if (s == NULL)
    return;
  while (text->n > at && (found = memmem(text->p + at, text->n - at, mask, n)) != NULL) {
    buf_append(&out, text->p + at, (size_t)(found - text->p) - at);
    buf_str(&out, buf_view(&s->real));
    at = (size_t)(found - text->p) + n;
  }
  if (at == 0)
    return;
  buf_append(&out, text->p + at, text->n - at);
  out.cut = text->cut;
  buf_deinit(text);
  *text = out;
}
