/* Finds the user's folders. */
#include "host/paths.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "os/fs.h"
#include "provider/child.h"
#include "store/store.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool xdg(const char *variable, const char *below_home, const char *name,
                char out[PATHS_BYTES], struct err *err) {
  const char *base = getenv(variable), *home = getenv("HOME");
  int n;
  if (base != NULL && base[0] == '/') /* the specification: relative paths are to be ignored */
    n = snprintf(out, PATHS_BYTES, "%s/segue%s", base, name);
  else if (home != NULL && home[0] == '/')
    n = snprintf(out, PATHS_BYTES, "%s/%s/segue%s", home, below_home, name);
  else
    return err_set(err, ERR_NOT_FOUND, "neither %s nor HOME is set: set HOME", variable);
  return n < PATHS_BYTES ? true : err_set(err, ERR_LIMIT, "the path in %s is too long", variable);
}

bool paths_logs(const char *option, char out[PATHS_BYTES], struct err *err) {
  const char *chosen = option ? option : getenv("SEGUE_LOGS");
  if (chosen != NULL && chosen[0] != '\0') {
    char cwd[PATHS_BYTES / 2];
    if (store_is_address(chosen)) {
      if (snprintf(out, PATHS_BYTES, "%s", chosen) >= PATHS_BYTES)
        return err_set(err, ERR_LIMIT, "the address of the store is too long");
      return true;
    }
    if (strlen(chosen) >= PATHS_BYTES / 2)
      return err_set(err, ERR_LIMIT, "the path of the log folder is too long");
    if (chosen[0] == '/')
      print_into(out, PATHS_BYTES, "%s", chosen);
    else if (getcwd(cwd, sizeof cwd) != NULL)
      print_into(out, PATHS_BYTES, "%s/%s", cwd, chosen);
    else
      return err_set(err, ERR_IO, "the current folder is gone");
    return true;
  }
  return xdg("XDG_STATE_HOME", ".local/state", "/logs", out, err);
}

bool paths_config(char out[PATHS_BYTES], struct err *err) {
  return xdg("XDG_CONFIG_HOME", ".config", "", out, err);
}

/* --- the project --- */

enum { PROJECT_BYTES = PATHS_BYTES - 32 };

static bool is_home(const struct stat *st) {
  struct stat home;
  const char *path = getenv("HOME");
  return path != NULL && path[0] == '/' && stat(path, &home) == 0 && home.st_dev == st->st_dev &&
         home.st_ino == st->st_ino;
}

static bool paths_is_repository(const char *dir) {
  char path[PATHS_BYTES];
  struct stat st;
  print_into(path, sizeof path, "%s/.git", dir);
  return lstat(path, &st) == 0;
}

/* Returns the length of the folder above, where `n` bytes name one that is not the root. */
static size_t parent_of(const char *path, size_t n) {
  assert(n > 1);
  do
    n--;
  while (n > 1 && path[n] != '/');
  return n;
}

/* Returns how many bytes of `dir`, an absolute path, name the highest folder to look in. */
static size_t project_ceiling(const char *dir) {
  char at[PROJECT_BYTES];
  struct stat first, st;
  size_t n = strlen(dir);
  print_into(at, sizeof at, "%s", dir);
  if (stat(at, &first) != 0)
    return n;
  for (;;) {
    if (stat(at, &st) != 0 || st.st_dev != first.st_dev)
      return strlen(dir);
    if (paths_is_repository(at) || is_home(&st))
      return n;
    if (n <= 1)
      return strlen(dir);
    n = parent_of(at, n);
    at[n] = '\0';
  }
}

void paths_project_facets(const char *dir, char out[PATHS_BYTES], char foreign[PATHS_BYTES]) {
  struct stat st, link;
  char_auto_t *at = realpath(dir, NULL);
  out[0] = foreign[0] = '\0';
  size_t n = at ? strlen(at) : 0,
         ceiling = n > 0 && n < PROJECT_BYTES ? project_ceiling(at) : n + 1;
  while (n >= ceiling) {
    print_into(out, PATHS_BYTES, "%.*s/.segue", n > 1 ? (int)n : 0, at);
    bool is_there = lstat(out, &link) == 0 && stat(out, &st) == 0 && S_ISDIR(st.st_mode);
    /* The folder and the link to it must belong to this user, and not be writable by everybody. */
    if (is_there && link.st_uid == geteuid() && st.st_uid == geteuid() &&
        (st.st_mode & S_IWOTH) == 0) {
      print_into(out + strlen(out), PATHS_BYTES - strlen(out), "/facets");
      return;
    }
    if (is_there && foreign[0] == '\0')
      print_into(foreign, PATHS_BYTES, "%s", out);
    if (n <= 1)
      break;
    n = parent_of(at, n);
  }
  out[0] = '\0';
}

/* Finds a shipped folder beside the program: where it was installed (bin/../share/segue), or is
 * built (the folder of its sources has workflows/). */
static bool paths_shipped(const char *place, char out[PATHS_BYTES]) {
  char program[PATHS_BYTES / 2];
  if (!fs_own_program(program, sizeof program))
    return false;
  *strrchr(program, '/') = '\0';
  if (snprintf(out, PATHS_BYTES, "%s/%s", program, place) >= PATHS_BYTES)
    return false;
  char *plain = realpath(out, NULL); /* people read it in messages: without bin/.. */
  if (plain != NULL && strlen(plain) < PATHS_BYTES)
    memcpy(out, plain, strlen(plain) + 1);
  free(plain);
  return true;
}

static bool paths_project_workflows(const char *cwd, char out[PATHS_BYTES]) {
  char foreign[PATHS_BYTES];
  paths_project_facets(cwd, out, foreign);
  char *facets = strrchr(out, '/');
  if (facets == NULL)
    return false;
  print_into(facets, PATHS_BYTES - (size_t)(facets - out), "/workflows");
  return true;
}

/* Writes the i-th of the folders of workflows, which may not exist, or "" if there can be none.
 * Returns false if there are no more. */
static bool paths_workflow_folder(size_t i, const char *cwd, char out[PATHS_BYTES]) {
  struct err err;
  char config[PATHS_BYTES];
  bool ok = false;
  if (i == 0)
    ok = paths_project_workflows(cwd, out);
  else if (i == 1)
    ok = paths_config(config, &err) &&
         snprintf(out, PATHS_BYTES, "%s/workflows", config) < PATHS_BYTES;
  else if (i <= 3)
    ok = paths_shipped(i == 2 ? "../share/segue/workflows" : "../../workflows", out);
  if (!ok)
    out[0] = '\0';
  return i <= 3;
}

void paths_workflows(const char *cwd, paths_tell *tell, void *ctx) {
  char folder[PATHS_BYTES], here[PATHS_BYTES];
  if (cwd == NULL && (cwd = getcwd(here, sizeof here)) == NULL)
    return;
  for (size_t i = 0; paths_workflow_folder(i, cwd, folder); i++) {
    DIR *dir = folder[0] ? opendir(folder) : NULL;
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
      char name[256];
      const char *end = strstr(entry->d_name, ".yaml");
      if (end == NULL || end == entry->d_name || end[5] != '\0')
        continue;
      print_into(name, sizeof name, "%.*s", (int)(end - entry->d_name), entry->d_name);
      tell(ctx, name, folder);
    }
    if (dir != NULL)
      closedir(dir);
  }
}

void paths_called(char user[PATHS_BYTES], char shipped[PATHS_BYTES]) {
  (void)paths_workflow_folder(1, "", user);
  (void)paths_workflow_folder(2, "", shipped);
  if (access(shipped, R_OK) != 0)
    (void)paths_workflow_folder(3, "", shipped);
}

void paths_shipped_facets(char out[PATHS_BYTES]) {
  char user[PATHS_BYTES], shipped[PATHS_BYTES];
  paths_called(user, shipped);
  if (snprintf(out, PATHS_BYTES, "%s/facets", shipped) >= PATHS_BYTES || shipped[0] == '\0')
    out[0] = '\0';
}

void paths_facets_of_takt(const char *cwd, char out[PATHS_BYTES]) {
  char program[PATHS_BYTES];
  char_auto_t *at = realpath(cwd, NULL);
  size_t n = at ? strlen(at) : 0,
         ceiling = n > 0 && n < PROJECT_BYTES ? project_ceiling(at) : n + 1;
  for (; n > 1 && n >= ceiling; n = parent_of(at, n)) {
    print_into(out, PATHS_BYTES, "%.*s/node_modules/takt/builtins", (int)n, at);
    if (file_is_folder(out))
      return;
  }
  char_auto_t *real =
      program_find("takt", program, sizeof program) ? realpath(program, NULL) : NULL;
  for (n = real ? strlen(real) : 0; n > 1; n = parent_of(real, n)) {
    size_t name = parent_of(real, n) + 1;
    bool is_package = n == name + 4 && strncmp(real + name, LIT("takt")) == 0;
    if (is_package && snprintf(out, PATHS_BYTES, "%.*s/builtins", (int)n, real) < PATHS_BYTES &&
        file_is_folder(out))
      return;
  }
  out[0] = '\0';
}

/* Holds names of workflows, one of which a misspelt name may mean. */
enum { NAMES_MAX = 128 };

struct paths_names {
  char name[NAMES_MAX][64];
  const char *list[NAMES_MAX + 1]; /* ended by a NULL */
  size_t count;
};

static void paths_keep_name(void *ctx, const char *name, const char *folder) {
  struct paths_names *names = ctx;
  (void)folder;
  if (names->count == NAMES_MAX || strlen(name) >= sizeof names->name[0])
    return;
  print_into(names->name[names->count], sizeof names->name[0], "%s", name);
  names->list[names->count] = names->name[names->count];
  names->count++;
}

const char *paths_workflow(const char *word, const char *cwd, char out[PATHS_BYTES],
                           struct err *err) {
  char folder[PATHS_BYTES], hidden[PATHS_BYTES], *at = out;
  size_t i;
  *err = (struct err){0};
  if (word[0] == '\0' || strpbrk(word, "/.") != NULL)
    return word;
  for (i = 0; paths_workflow_folder(i, cwd, folder); i++) {
    if (folder[0] == '\0' || snprintf(at, PATHS_BYTES, "%s/%s.yaml", folder, word) >= PATHS_BYTES ||
        access(at, R_OK) != 0)
      continue;
    if (at == hidden)
      break;
    at = hidden;
  }
  if (at == out) {
    struct paths_names names = {0};
    paths_workflows(cwd, paths_keep_name, &names);
    const char *near = str_nearest(str_from(word), names.list);
    err_set(err, ERR_NOT_FOUND, "there is no workflow named %.300s: %s%.300s%s", word,
            near ? "did you mean " : "segue help run says where they are; a file is ./",
            near ? near : word, near ? "?" : "");
    return NULL;
  }
  if (i <= 3)
    err_set(err, ERR_INVALID,
            "%.80s is %.300s here, which hides %s: for that one write its path, %.300s", word, out,
            i == 1 ? "yours" : "segue's own", hidden);
  return out;
}

void paths_home_facets(char out[PATHS_BYTES]) {
  const char *home = getenv("HOME");
  if (home == NULL || home[0] != '/' ||
      snprintf(out, PATHS_BYTES, "%s/.segue/facets", home) >= PATHS_BYTES)
    out[0] = '\0';
}

/* Swaps the files instead of renaming one over the other: ext4 writes a fresh file to the disk when
 * it replaces another. Nobody need wait for that: after a loss of power an empty file is as good as
 * none. */
static bool replace(const char *temp, const char *path) {
  if (!fs_swap(temp, path))
    return rename(temp, path) == 0;
  if (unlink(temp) == 0)
    return true;
  (void)fs_swap(temp, path); /* a folder: not ours */
  return false;
}

/* Makes the folder and those above it; whoever writes there finds out what could not be made. */
static void make_folders(char *path) {
  for (char *p = path + 1; *p; p++)
    if (*p == '/') {
      *p = '\0';
      (void)mkdir(path, 0700);
      *p = '/';
    }
  (void)mkdir(path, 0700);
}

bool paths_make_folders_of(char *path) {
  char *slash = strrchr(path, '/');
  *slash = '\0';
  make_folders(path);
  bool there = file_is_folder(path);
  *slash = '/';
  return there;
}

bool paths_state(const char *name, char out[PATHS_BYTES], struct err *err) {
  char below[64];
  print_into(below, sizeof below, "/%s", name);
  if (!xdg("XDG_STATE_HOME", ".local/state", below, out, err))
    return false;
  make_folders(out);
  return true;
}

/* Shortens a path by its last part. Returns false if there is none above it. */
static bool paths_up(char *path) {
  char *slash = strrchr(path, '/');
  if (slash == NULL || path[1] == '\0')
    return false;
  slash[slash == path] = '\0';
  return true;
}

/* Returns true if the repository's folder for a worktree names that worktree's .git: a file there
 * could name any repository. */
static bool paths_is_named(struct str gitdir, const char *dot_git) {
  char path[PATHS_BYTES + 16], there[PATH_MAX], here[PATH_MAX];
  struct err ignored;
  buf_auto_t text = {0};
  print_into(path, sizeof path, "%.*s/gitdir", (int)gitdir.n, gitdir.p);
  if (!file_read(path, PATHS_BYTES - 1, &text, &ignored))
    return false;
  print_into(path, sizeof path, "%.*s", (int)str_trim(buf_view(&text)).n,
             str_trim(buf_view(&text)).p);
  return realpath(path, there) != NULL && realpath(dot_git, here) != NULL &&
         strcmp(there, here) == 0;
}

/* Returns true if the folder is the top of a working tree; of a worktree it becomes that of its
 * repository, whose .git the file names: "gitdir: TOP/.git/worktrees/NAME", or BARE/worktrees/. */
static bool paths_is_top(char folder[PATHS_BYTES]) {
  static const char before[] = "gitdir: ", within[] = "/worktrees/";
  char path[PATHS_BYTES + 8];
  struct stat st;
  struct err ignored;
  buf_auto_t text = {0};
  print_into(path, sizeof path, "%s/.git", folder);
  if (stat(path, &st) != 0)
    return false;
  if (S_ISREG(st.st_mode) && file_read(path, PATHS_BYTES - 1, &text, &ignored) &&
      str_starts(buf_view(&text), before)) {
    const char *top = text.p + sizeof before - 1, *end = strstr(top, within);
    if (end != NULL && top[0] == '/' && paths_is_named(str_trim(str_from(top)), path)) {
      struct str git = {top, (size_t)(end - top)};
      git.n -= str_ends(git, "/.git") ? strlen("/.git") : 0;
      print_into(folder, PATHS_BYTES, STR_FMT, STR_ARG(git));
    }
  }
  return true;
}

size_t paths_project(const char *folder, char out[PATHS_BYTES]) {
  char real[PATH_MAX], at[PATHS_BYTES];
  print_into(out, PATHS_BYTES, "%s", realpath(folder, real) != NULL ? real : folder);
  print_into(at, sizeof at, "%s", out);
  do {
    size_t n = strlen(at);
    if (paths_is_top(at)) {
      print_into(out, PATHS_BYTES, "%s", at);
      return n;
    }
  } while (paths_up(at));
  return 0;
}

/* Gives the file that notes the last session of a project, or of all (NULL). */
static bool paths_last(const char *project, char out[PATHS_BYTES]) {
  char name[8 + SHA256_HEX] = "/last", hash[SHA256_HEX];
  struct err ignored;
  if (project != NULL) {
    sha256_hex(project, strlen(project), NULL, 0, hash);
    print_into(name, sizeof name, "/lasts/%.32s", hash);
  }
  return xdg("XDG_STATE_HOME", ".local/state", name, out, &ignored);
}

static void paths_write_last(const char *project, const char *log_name) {
  char path[PATHS_BYTES], temp[PATHS_BYTES + 16];
  if (!paths_last(project, path))
    return;
  char *slash = strrchr(path, '/');
  *slash = '\0';
  make_folders(path);
  *slash = '/';
  print_into(temp, sizeof temp, "%s.%ld", path, (long)getpid());
  int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0)
    return;
  bool ok = write(fd, log_name, strlen(log_name)) == (ssize_t)strlen(log_name);
  close(fd);
  if (!ok || !replace(temp, path))
    (void)unlink(temp);
}

void paths_note_last(const char *log_name, const char *folder) {
  const char *const folders[] = {".", folder};
  char project[PATHS_BYTES];
  paths_write_last(NULL, log_name);
  for (size_t i = 0; i < ARRAY_LEN(folders) && folders[i] != NULL; i++) {
    paths_project(folders[i], project);
    paths_write_last(project, log_name);
  }
}

bool paths_read_last(const char *project, char out[PATHS_BYTES]) {
  char path[PATHS_BYTES];
  buf_auto_t b = {0};
  struct err err;
  bool ok = paths_last(project, path) && file_read(path, PATHS_BYTES - 1, &b, &err) && b.n > 0;
  if (ok)
    print_into(out, PATHS_BYTES, "%s", b.p);
  return ok;
}

void paths_user(char out[PATHS_USER_BYTES]) {
  const struct passwd *user = getpwuid(geteuid());
  if (user != NULL && user->pw_name[0] && strlen(user->pw_name) < PATHS_USER_BYTES &&
      utf8_valid(user->pw_name, strlen(user->pw_name)))
    print_into(out, PATHS_USER_BYTES, "%s", user->pw_name);
  else
    print_into(out, PATHS_USER_BYTES, "uid %ld", (long)geteuid());
}
