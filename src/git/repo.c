/* Finds the repository around a folder and makes git's stand-in for it. */
#include "git/repo.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "git/repo_config.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void repo_deinit(struct repo *repo) {
  buf_deinit(&repo->top);
  buf_deinit(&repo->git_dir);
  buf_deinit(&repo->common);
}

/* Reads what a small file names, after `before`: a name may have newlines, but none at its end. */
static bool read_name(const char *path, const char *before, struct buf *out) {
  buf_auto_t text = {0};
  struct err err;
  bool ok = file_read(path, LIMIT_REPO_FILE_BYTES, &text, &err);
  struct str line = buf_view(&text);
  while (line.n > 0 && strchr("\r\n", line.p[line.n - 1]) != NULL)
    line.n--;
  ok = ok && line.n > strlen(before) && str_starts(line, before);
  if (ok)
    buf_str(out, (struct str){line.p + strlen(before), line.n - strlen(before)});
  return ok;
}

/* Resolves a path as a file in `folder` names it. */
static bool follow(const char *folder, const struct buf *named, struct buf *out) {
  buf_auto_t path = {0};
  if (buf_c(named)[0] != '/')
    buf_printf(&path, "%s/", folder);
  buf_str(&path, buf_view(named));
  char_auto_t *real = realpath(buf_c(&path), NULL);
  buf_clear(out);
  if (real != NULL)
    buf_puts(out, real);
  return out->n > 0;
}

/* Finds the folder by TOP/.git, which is the folder itself or a file that names it. */
static bool use_dot_git(struct repo *repo, const struct stat *st) {
  buf_auto_t path = buf_of("%s/.git", buf_c(&repo->top)), named = {0};
  bool ok = S_ISDIR(st->st_mode);
  if (ok)
    buf_str(&repo->git_dir, buf_view(&path));
  else
    ok = read_name(buf_c(&path), "gitdir: ", &named) &&
         follow(buf_c(&repo->top), &named, &repo->git_dir);
  buf_clear(&path);
  buf_clear(&named);
  buf_printf(&path, "%s/commondir", buf_c(&repo->git_dir));
  if (ok && (!read_name(buf_c(&path), "", &named) ||
             !follow(buf_c(&repo->git_dir), &named, &repo->common)))
    buf_str(&repo->common, buf_view(&repo->git_dir));
  buf_clear(&path);
  buf_printf(&path, "%s/objects", buf_c(&repo->common));
  return ok && access(buf_c(&path), R_OK | X_OK) == 0;
}

static bool repo_has_entry(const char *folder, const char *name, mode_t type) {
  buf_auto_t path = buf_of("%s/%s", folder, name);
  struct stat st;
  return stat(buf_c(&path), &st) == 0 && (st.st_mode & S_IFMT) == type;
}

/* Goes up from `dir`. bare: a folder that is a repository itself ends the way, too. */
static bool find_up(const char *dir, bool bare, struct repo *repo) {
  struct stat of_dir, st;
  buf_auto_t path = {0};
  bool found = false;
  *repo = (struct repo){0};
  if (stat(dir, &of_dir) != 0)
    return false;
  buf_puts(&repo->top, dir);
  while (!found) {
    buf_clear(&path);
    buf_printf(&path, "%s/.git", buf_c(&repo->top));
    /* It must belong to us, to root or to the owner of the folder: anybody else could
     * decide what we compare with. */
    found = lstat(buf_c(&path), &st) == 0 &&
            (st.st_uid == geteuid() || st.st_uid == 0 || st.st_uid == of_dir.st_uid);
    if (!found && bare && repo_has_entry(buf_c(&repo->top), "HEAD", S_IFREG) &&
        repo_has_entry(buf_c(&repo->top), "objects", S_IFDIR) &&
        repo_has_entry(buf_c(&repo->top), "refs", S_IFDIR) &&
        !repo_has_entry(buf_c(&repo->top), "commondir", S_IFREG)) {
      buf_str(&repo->common, buf_view(&repo->top));
      buf_str(&repo->git_dir, buf_view(&repo->top));
      buf_clear(&repo->top);
      return true;
    }
    char *slash = strrchr(repo->top.p, '/');
    if (found || slash == NULL || repo->top.n <= 1)
      break;
    *slash = '\0';
    repo->top.n = (size_t)(slash - repo->top.p);
  }
  if (found && repo->top.n > 0 && use_dot_git(repo, &st))
    return true;
  return false;
}

bool repo_find(const char *dir, struct repo *repo) {
  assert(dir != NULL && repo != NULL);
  bool found = find_up(dir, false, repo);
  if (!found)
    repo_deinit(repo);
  return found;
}

/* Returns true if `path` is `above` with one name behind it. */
static bool is_entry_of(const char *path, const char *above, const char *folder) {
  size_t n = strlen(above), m = strlen(folder);
  return strncmp(path, above, n) == 0 && strncmp(path + n, folder, m) == 0 && path[n + m] != '\0' &&
         strchr(path + n + m, '/') == NULL;
}

/* Checks a file `.git`. Whoever writes in the tree may have changed it, and would have us write in
 * another repository. */
static bool is_sound(const struct repo *repo) {
  buf_auto_t path = {0}, named = {0}, back = {0};
  const char *git_dir = buf_c(&repo->git_dir), *common = buf_c(&repo->common);
  bool ok;
  if (strcmp(git_dir, common) != 0) { /* a linked work tree */
    buf_printf(&path, "%s/gitdir", git_dir);
    ok = is_entry_of(git_dir, common, "/worktrees/") && read_name(buf_c(&path), "", &named) &&
         follow(git_dir, &named, &back);
    buf_clear(&path);
    buf_printf(&path, "%s/.git", buf_c(&repo->top));
    ok = ok && strcmp(buf_c(&path), buf_c(&back)) == 0;
  } else if (strstr(git_dir, "/modules/") != NULL) {
    struct repo around;
    char *slash = strrchr(repo->top.p, '/');
    buf_append(&path, repo->top.p, slash == repo->top.p ? 1 : (size_t)(slash - repo->top.p));
    ok = repo_find(buf_c(&path), &around);
    buf_printf(&named, "%s/modules/", buf_c(&around.git_dir));
    ok = ok && str_starts(buf_view(&repo->git_dir), buf_c(&named));
    repo_deinit(&around);
  } else { /* git init --separate-git-dir: not one that has a tree of its own */
    ok = !str_ends(buf_view(&repo->git_dir), "/.git");
  }
  return ok;
}

/* A folder `.git` with a file `commondir` leads elsewhere, too. */
static bool is_plain_repo(const struct repo *repo, const struct stat *dot_git) {
  return S_ISDIR(dot_git->st_mode) && strcmp(buf_c(&repo->git_dir), buf_c(&repo->common)) == 0;
}

bool repo_enter(const char *folder, struct repo *repo, struct err *err) {
  struct stat st;
  buf_auto_t path = {0};
  char *real = realpath(folder, NULL);
  bool found = find_up(real ? real : folder, true, repo);
  free(real);
  if (repo->top.n > 0) /* also where it leads nowhere */
    buf_printf(&path, "%s/.git", buf_c(&repo->top));
  bool there = path.n > 0 && lstat(buf_c(&path), &st) == 0;
  bool ok = !there || (found ? is_plain_repo(repo, &st) || is_sound(repo) : !S_ISLNK(st.st_mode));
  if (!ok && S_ISLNK(st.st_mode))
    err_set(err, ERR_INVALID, "%.300s is a link, which segue's git does not follow", buf_c(&path));
  else if (!ok)
    err_set(err, ERR_INVALID,
            "%.150s leads to the repository %.150s, which does not know that tree: "
            "git worktree repair, if it was moved",
            buf_c(&path), buf_c(&repo->git_dir));
  if (!ok || !found)
    repo_deinit(repo);
  return ok;
}

bool repo_make_worktrees(const struct repo *repo, struct err *err) {
  buf_auto_t path = buf_of("%s/worktrees", buf_c(&repo->common));
  return mkdir(buf_c(&path), 0777) == 0 || errno == EEXIST ||
         err_set_errno(err, errno, "cannot make %s", buf_c(&path));
}

void repo_worktree_name(const char *common, const char *path, struct buf *name) {
  buf_auto_t folder = buf_of("%s/worktrees", common), wanted = buf_of("%s/.git", path);
  DIR *dir = opendir(buf_c(&folder));
  for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
    buf_auto_t file = buf_of("%s/%s/gitdir", buf_c(&folder), entry->d_name), named = {0};
    if (read_name(buf_c(&file), "", &named) && str_eq(buf_view(&named), buf_view(&wanted))) {
      buf_clear(name);
      buf_puts(name, entry->d_name);
    }
  }
  if (dir != NULL)
    (void)closedir(dir);
}

/* Copies which files a sparse tree has; git itself copies their patterns. */
static bool copy_sparse(const struct repo *repo, const char *name, struct err *err) {
  buf_auto_t path = buf_of("%s/config.worktree", buf_c(&repo->git_dir)), settings = {0};
  bool extensions = false, by_worktree = false;
  bool ok = repo_config_copy(buf_c(&path), &extensions, &by_worktree, &settings, err);
  buf_clear(&path);
  buf_printf(&path, "%s/worktrees/%s/config.worktree", buf_c(&repo->common), name);
  return ok && (settings.n == 0 || file_write_new(buf_c(&path), buf_view(&settings), err));
}

bool repo_worktree_made(const struct repo *repo, const char *path, struct err *err) {
  buf_auto_t dot_git = buf_of("%s/.git", path), named = {0}, text = {0};
  bool ok = read_name(buf_c(&dot_git), "gitdir: ", &named);
  const char *name = ok ? strrchr(buf_c(&named), '/') : NULL;
  if (name == NULL)
    ok = err_set(err, ERR_INVALID, "%.300s is not as git writes it", buf_c(&dot_git));
  else
    buf_printf(&text, "gitdir: %s/worktrees%s\n", buf_c(&repo->common), name);
  FILE *file = ok ? fopen(buf_c(&dot_git), "we") : NULL;
  if (ok && (file == NULL || fputs(buf_c(&text), file) < 0))
    ok = err_set_errno(err, errno, "cannot write %s", buf_c(&dot_git));
  if (file != NULL && fclose(file) != 0 && ok)
    ok = err_set_errno(err, errno, "cannot write %s", buf_c(&dot_git));
  return ok && copy_sparse(repo, name + 1, err);
}

/* Whatever else the file holds is nobody's business: an agent may have linked it elsewhere. */
static void take_hash(struct str text, char hash[72]) {
  bool is = text.n == 40 || text.n == 64;
  for (size_t i = 0; is && i < text.n; i++)
    is = strchr("0123456789abcdef", text.p[i]) != NULL;
  print_into(hash, 72, "%.*s", is ? (int)text.n : 0, text.p);
}

/* Looks in packed-refs, whose lines are `HASH refs/heads/NAME`. hash: 72 bytes, or NULL. */
static bool is_packed(const struct repo *repo, struct str ref, char *hash) {
  buf_auto_t path = {0};
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  bool found = false;
  buf_printf(&path, "%s/packed-refs", buf_c(&repo->common));
  FILE *in = fopen(buf_c(&path), "re");
  while (in != NULL && !found && (n = getline(&line, &room, in)) > 0) {
    struct str text = str_trim((struct str){line, (size_t)n});
    found = text.n > ref.n + 1 && text.p[text.n - ref.n - 1] == ' ' &&
            memcmp(text.p + text.n - ref.n, ref.p, ref.n) == 0;
    if (found && hash != NULL)
      take_hash((struct str){text.p, text.n - ref.n - 1}, hash);
  }
  if (in != NULL)
    (void)fclose(in);
  free(line);
  return found;
}

bool repo_has_branch(const struct repo *repo, const char *name) {
  assert(repo != NULL && name != NULL);
  buf_auto_t path = {0}, ref = buf_of("refs/heads/%s", name);
  struct stat st;
  buf_printf(&path, "%s/%s", buf_c(&repo->common), buf_c(&ref));
  return (lstat(buf_c(&path), &st) == 0 && S_ISREG(st.st_mode)) ||
         is_packed(repo, buf_view(&ref), NULL);
}

void repo_read_head(const struct repo *repo, struct repo_head *head) {
  assert(repo != NULL && head != NULL);
  static const char heads[] = "refs/heads/";
  buf_auto_t path = {0}, line = {0}, commit = {0};
  *head = (struct repo_head){0};
  buf_printf(&path, "%s/HEAD", buf_c(&repo->git_dir));
  if (!read_name(buf_c(&path), "", &line))
    return;
  struct str ref = buf_view(&line);
  if (str_starts(ref, "ref: ")) {
    ref = str_trim((struct str){ref.p + 5, ref.n - 5});
    if (str_starts(ref, heads))
      print_into(head->branch, sizeof head->branch, "%.*s", (int)(ref.n - strlen(heads)),
                 ref.p + strlen(heads));
    buf_clear(&path);
    buf_printf(&path, "%s/" STR_FMT, buf_c(&repo->common), STR_ARG(ref));
    if (read_name(buf_c(&path), "", &commit))
      take_hash(buf_view(&commit), head->commit);
    else
      (void)is_packed(repo, ref, head->commit);
  } else {
    take_hash(buf_view(&line), head->commit);
  }
}

bool repo_main(const struct repo *repo, struct repo *own) {
  assert(repo != NULL && own != NULL);
  struct str common = buf_view(&repo->common);
  *own = (struct repo){0};
  if (str_eq(common, buf_view(&repo->git_dir)) || !str_ends(common, "/.git"))
    return false;
  buf_str(&own->top, (struct str){common.p, common.n - strlen("/.git")});
  buf_str(&own->git_dir, common);
  buf_str(&own->common, common);
  return true;
}

/* --- the stand-in --- */

static bool write_text(const char *folder, const char *name, struct str text, struct err *err) {
  buf_auto_t path = buf_of("%s/%s", folder, name);
  return file_write_new(buf_c(&path), text, err);
}

static bool make_folder(const char *folder, const char *name, struct err *err) {
  buf_auto_t path = buf_of("%s/%s", folder, name);
  bool ok = mkdir(buf_c(&path), 0700) == 0 || errno == EEXIST;
  if (!ok)
    err_set_errno(err, errno, "cannot make %s", buf_c(&path));
  return ok;
}

/* Returns true if the repository's configuration says that it names objects by SHA-256. */
static bool is_sha256(const struct repo *repo) {
  buf_auto_t path = buf_of("%s/config", buf_c(&repo->common)), text = {0};
  struct err err;
  return file_read(buf_c(&path), LIMIT_REPO_FILE_BYTES, &text, &err) &&
         strcasestr(buf_c(&text), "objectformat") != NULL &&
         strcasestr(buf_c(&text), "sha256") != NULL;
}

/* Copies the index with its own time: git mistrusts entries that are not older than it. */
static bool copy_index(const struct repo *repo, const char *folder, struct err *err) {
  buf_auto_t path = buf_of("%s/index", buf_c(&repo->git_dir)), bytes = {0};
  struct stat st;
  int from = open(buf_c(&path), O_RDONLY | O_CLOEXEC);
  if (from < 0)
    return errno == ENOENT || err_set_errno(err, errno, "cannot read the repository's index");
  bool ok = fstat(from, &st) == 0 &&
            file_read_fd(from, buf_c(&path), LIMIT_REPO_INDEX_BYTES, &bytes, err) &&
            write_text(folder, "index", buf_view(&bytes), err);
  (void)close(from);
  buf_clear(&path);
  buf_printf(&path, "%s/index", folder);
  const struct timespec times[2] = {st.st_mtim, st.st_mtim};
  if (ok && utimensat(AT_FDCWD, buf_c(&path), times, 0) != 0)
    ok = err_set_errno(err, errno, "cannot set the time of %s", buf_c(&path));
  return ok;
}

bool repo_stand_in(const struct repo *repo, const char *folder, bool with_index, struct err *err) {
  assert(repo != NULL && folder != NULL);
  static const char *const folders[] = {"refs", "objects", "objects/info", "info"};
  buf_auto_t text = {0}, path = {0};
  struct err ignored;
  struct str config = STR("[core]\nrepositoryformatversion = 0\n");
  bool ok = true;
  if (is_sha256(repo))
    config = STR("[core]\nrepositoryformatversion = 1\n[extensions]\nobjectformat = sha256\n");
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
    ok = ok && make_folder(folder, folders[i], err);
  buf_printf(&text, "%s/objects\n", buf_c(&repo->common));
  ok = ok && write_text(folder, "HEAD", STR("ref: refs/heads/none\n"), err) &&
       write_text(folder, "objects/info/alternates", buf_view(&text), err) &&
       write_text(folder, "config", config, err);
  buf_clear(&text);
  buf_printf(&path, "%s/info/exclude", buf_c(&repo->common));
  if (ok && file_read(buf_c(&path), LIMIT_REPO_FILE_BYTES, &text, &ignored))
    ok = write_text(folder, "info/exclude", buf_view(&text), err);
  return ok && (!with_index || copy_index(repo, folder, err));
}

char *repo_address(struct str url) {
  struct buf out = {0};
  const char *scheme = memmem(url.p, url.n, "://", strlen("://"));
  size_t from = scheme != NULL ? (size_t)(scheme - url.p) + strlen("://") : 0, end = from;
  while (scheme != NULL && end < url.n && url.p[end] != '/' && url.p[end] != '@')
    end++;
  buf_append(&out, url.p, from);
  from = end < url.n && url.p[end] == '@' ? end + 1 : from;
  buf_append(&out, url.p + from, url.n - from);
  return buf_take(&out);
}
