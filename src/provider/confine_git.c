/* Finds the folders of a repository. */
#include "provider/confine_git.h"

#include "base/str.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool git_is_own(const char *path, mode_t type) {
  struct stat st;
  return lstat(path, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid();
}

/* Reads the first line of a small file behind `prefix` and resolves the path in it, from `folder`
 * if it is not absolute. */
static bool read_link(const char *file, const char *prefix, const char *folder,
                      char out[PATH_MAX]) {
  char line[PATH_MAX], path[2 * PATH_MAX];
  size_t skip = strlen(prefix);
  int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
  if (fd >= 0)
    (void)close(fd);
  if (n <= 0)
    return false;
  line[n] = '\0';
  line[strcspn(line, "\n")] = '\0';
  if (strncmp(line, prefix, skip) != 0 || line[skip] == '\0')
    return false;
  if (line[skip] == '/')
    (void)snprintf(path, sizeof path, "%s", line + skip);
  else
    (void)snprintf(path, sizeof path, "%s/%s", folder, line + skip);
  return realpath(path, out) != NULL;
}

/* Returns true if the worktree's folder in the repository says that it belongs to this .git file:
 * otherwise any project could name a folder to be opened for it. */
static bool points_back(const char *worktree, const char *dot_git) {
  char file[PATH_MAX + 16], back[PATH_MAX], real[PATH_MAX];
  (void)snprintf(file, sizeof file, "%s/gitdir", worktree);
  return realpath(dot_git, real) != NULL && read_link(file, "", worktree, back) &&
         strcmp(real, back) == 0;
}

static size_t of_worktree(const char *folder, const char *dot_git, struct arena *a,
                          const char *out[CONFINE_GIT_FOLDERS]) {
  char own[PATH_MAX], shared[PATH_MAX], file[PATH_MAX + 16];
  if (!read_link(dot_git, "gitdir: ", folder, own) || !git_is_own(own, S_IFDIR) ||
      !points_back(own, dot_git))
    return 0;
  out[0] = arena_strdup(a, own);
  (void)snprintf(file, sizeof file, "%s/commondir", own);
  if (!read_link(file, "", own, shared) || !git_is_own(shared, S_IFDIR))
    return 1;
  out[1] = arena_strdup(a, shared);
  return 2;
}

size_t confine_git(const char *cwd, struct arena *a, const char *out[CONFINE_GIT_FOLDERS]) {
  char folder[PATH_MAX], dot_git[PATH_MAX + 8];
  if (realpath(cwd, folder) == NULL)
    return 0;
  for (;;) {
    (void)snprintf(dot_git, sizeof dot_git, "%s/.git", folder);
    if (git_is_own(dot_git, S_IFDIR)) {
      out[0] = arena_strdup(a, dot_git);
      return 1;
    }
    if (git_is_own(dot_git, S_IFREG))
      return of_worktree(folder, dot_git, a, out);
    char *slash = strrchr(folder, '/');
    if (slash == NULL || slash == folder)
      return 0;
    *slash = '\0';
  }
}
