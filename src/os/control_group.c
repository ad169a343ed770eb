/* Makes, ends and finds control groups of calls. */
#include "os/control_group.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/process_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define GROUP_SELF "/segue-self" /* segue's own group, beside those of its calls */

enum { FILE_BYTES = 64 * 1024, NAME_BYTES = 128, LOOK_MS = 2, DEPTH = 16 };

struct group {
  char path[PATH_MAX];
  int fd;
};

/* --- finding our group --- */

static bool group_read(const char *path, struct buf *out) {
  struct err err;
  return file_read(path, FILE_BYTES, out, &err);
}

/* Finds the mount of the unified hierarchy: the fields of its line before " - cgroup2 ". */
static bool find_mount(char root[PATH_MAX], char mount[PATH_MAX]) {
  buf_auto_t text = {0};
  bool found = group_read("/proc/self/mountinfo", &text);
  struct str rest = found ? buf_view(&text) : STR("");
  found = false;
  while (!found && rest.n > 0) {
    struct str line = str_next_line(&rest);
    char copy[3 * PATH_MAX];
    if (line.n >= sizeof copy)
      continue;
    memcpy(copy, line.p, line.n);
    copy[line.n] = '\0';
    found = strstr(copy, " - cgroup2 ") != NULL &&
            sscanf(copy, "%*d %*d %*s %4095s %4095s", root, mount) == 2;
  }
  return found;
}

/* Removes the name of the group that group_can_limit moves us into: the one above is ours. */
static void above_self(char *path) {
  size_t n = strlen(path), own = sizeof GROUP_SELF - 1;
  if (n > own && strcmp(path + n - own, GROUP_SELF) == 0)
    path[n - own] = '\0';
}

/* Finds the folder of our own group. */
static bool find_own(char out[PATH_MAX], char mount[PATH_MAX]) {
  char root[PATH_MAX];
  buf_auto_t text = {0};
  bool found = false;
  struct str rest = {0};
  if (find_mount(root, mount) && group_read("/proc/self/cgroup", &text))
    rest = buf_view(&text);
  while (!found && rest.n > 0) {
    struct str line = str_next_line(&rest);
    if (!str_starts(line, "0::/"))
      continue;
    struct str path = {line.p + 3, line.n - 3};
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    found = path.n >= n && memcmp(path.p, root, n) == 0 &&
            snprintf(out, PATH_MAX, "%s" STR_FMT, mount, (int)(path.n - n), path.p + n) < PATH_MAX;
    if (found)
      above_self(out);
  }
  return found;
}

/* Decides whether a group is ours to use: root's if systemd says so or if there is no other (a
 * container), another user's if its folder belongs to that user. */
static bool is_handed_over(const char *own, const char *mount) {
  struct stat st;
  char value[8];
  if (stat(own, &st) != 0 || st.st_uid != geteuid() || access(own, W_OK | X_OK) != 0)
    return false;
  size_t n = strlen(mount);
  bool is_top = strncmp(own, mount, n) == 0 && strspn(own + n, "/") == strlen(own + n);
  return geteuid() != 0 || is_top || getxattr(own, "trusted.delegate", value, sizeof value) > 0 ||
         getxattr(own, "user.delegate", value, sizeof value) > 0;
}

/* --- one group --- */

static bool group_write(int dir, const char *name, const char *word) {
  int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && write(fd, word, strlen(word)) == (ssize_t)strlen(word);
  fs_close(fd);
  return ok;
}

/* Reads a file of a group as a text, which is empty if that is not possible. */
static void group_text(int dir, const char *name, char *text, size_t size) {
  int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
  text[n > 0 ? n : 0] = '\0';
  fs_close(fd);
}

static size_t group_count(int dir, const char *name) {
  char text[FILE_BYTES];
  size_t lines = 0;
  group_text(dir, name, text, sizeof text);
  for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
    lines++;
  return lines;
}

static bool is_populated(int dir) {
  char text[256];
  group_text(dir, "cgroup.events", text, sizeof text);
  return strstr(text, "populated 1") != NULL;
}

static void remove_groups(const char *path, int depth) {
  DIR *d = depth < DEPTH ? opendir(path) : NULL;
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    char below[PATH_MAX];
    if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
        snprintf(below, sizeof below, "%s/%s", path, e->d_name) < (int)sizeof below)
      remove_groups(below, depth + 1);
  }
  if (d != NULL)
    closedir(d);
  (void)rmdir(path);
}

/* Kills everything in the group and in groups made below it, and removes them. */
static size_t end_group(int dir, const char *path, uint64_t until_ms) {
  size_t n = 0;
  if (is_populated(dir)) {
    n = group_count(dir, "cgroup.procs");
    (void)group_write(dir, "cgroup.kill", "1");
    while (is_populated(dir) && clock_mono_ms() < until_ms)
      (void)poll(NULL, 0, LOOK_MS);
    n = n > 0 ? n : 1;
  }
  remove_groups(path, 0);
  return n;
}

/* --- limits --- */

bool group_limit_folder(int dir, const struct process_limits *limits) {
  enum { PERIOD_US = 100000 };
  char memory[32], cpus[48], pids[32];
  print_into(memory, sizeof memory, "%llu", (unsigned long long)limits->memory_bytes);
  print_into(pids, sizeof pids, "%u", limits->pids);
  print_into(cpus, sizeof cpus, "%llu %d",
             (unsigned long long)limits->milli_cpus * PERIOD_US / 1000, PERIOD_US);
  if (limits->memory_bytes > 0 && !group_write(dir, "memory.max", memory))
    return false;
  if (limits->memory_bytes > 0)
    (void)group_write(dir, "memory.swap.max", "0"); /* fails if there is no swap */
  return (limits->pids == 0 || group_write(dir, "pids.max", pids)) &&
         (limits->milli_cpus == 0 || group_write(dir, "cpu.max", cpus));
}

bool group_memory_reached(const struct group *g) {
  char text[512];
  group_text(g->fd, "memory.events", text, sizeof text);
  const char *kills = strstr(text, "oom_kill ");
  return kills != NULL && strtol(kills + sizeof "oom_kill", NULL, 10) > 0;
}

/* Returns true if a group's file that lists controllers names all that limits need. */
static bool has_controllers(int dir, const char *file) {
  static const char *const names[] = {"cpu", "memory", "pids"};
  char text[512];
  group_text(dir, file, text, sizeof text);
  text[strcspn(text, "\n")] = '\0';
  bool all = true;
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    all = all && str_among(str_from(names[i]), text);
  return all;
}

static bool hands_on(int own) {
  return has_controllers(own, "cgroup.subtree_control");
}

/* Returns true if the group could set limits. Only the root group, which has no type, may hold
 * processes and still delegate controllers. */
bool group_may_limit_folder(int dir) {
  if (hands_on(dir))
    return true;
  return has_controllers(dir, "cgroup.controllers") &&
         faccessat(dir, "cgroup.subtree_control", W_OK, AT_EACCESS) == 0 &&
         (faccessat(dir, "cgroup.type", F_OK, 0) != 0 || group_count(dir, "cgroup.procs") <= 1);
}

static bool make_limits(int own, const char *path) {
  static const char all[] = "+cpu +memory +pids";
  if (!hands_on(own) && !group_write(own, "cgroup.subtree_control", all)) {
    char self[PATH_MAX + sizeof GROUP_SELF], word[32];
    if (group_count(own, "cgroup.procs") ==
        1) { /* else others are in it, too: not ours to change */
      print_into(self, sizeof self, "%s" GROUP_SELF, path);
      (void)mkdir(self, 0755);
      int below = open(self, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      print_into(word, sizeof word, "%ld", (long)getpid());
      if (below >= 0) {
        (void)group_write(below, "cgroup.procs", word);
        close(below);
      }
    }
    (void)group_write(own, "cgroup.subtree_control", all);
  }
  return hands_on(own);
}

/* Opens the folder of our own group; -1 if it was not handed over. */
static int open_own(char own[PATH_MAX]) {
  char mount[PATH_MAX];
  if (!find_own(own, mount) || !is_handed_over(own, mount))
    return -1;
  return open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Caches the answer of the first attempt; threads of the pool ask too. */
static atomic_int limits_made;
enum { LIMITS_UNKNOWN, LIMITS_CAN, LIMITS_CANNOT };

bool group_may_limit(void) {
  char own[PATH_MAX];
  int made = atomic_load(&limits_made);
  if (made != LIMITS_UNKNOWN)
    return made == LIMITS_CAN;
  int dir = open_own(own);
  bool may = dir >= 0 && group_may_limit_folder(dir);
  fs_close(dir);
  return may;
}

bool group_can_limit(void) {
  char own[PATH_MAX];
  if (atomic_load(&limits_made) == LIMITS_UNKNOWN) {
    int dir = open_own(own);
    bool can = dir >= 0 && make_limits(dir, own);
    fs_close(dir);
    atomic_store(&limits_made, can ? LIMITS_CAN : LIMITS_CANNOT);
  }
  return atomic_load(&limits_made) == LIMITS_CAN;
}

struct group *group_new(const char *session) {
  static atomic_uint number; /* threads of the pool make groups, too */
  char own[PATH_MAX], mount[PATH_MAX];
  if (!find_own(own, mount) || !is_handed_over(own, mount))
    return NULL;
  struct group *g = xcalloc(1, sizeof *g);
  g->fd = -1;
  if (snprintf(g->path, sizeof g->path, "%s/segue-%s-%ld-%u", own, session, (long)getpid(),
               atomic_fetch_add(&number, 1) + 1) < (int)sizeof g->path &&
      mkdir(g->path, 0755) == 0)
    g->fd = fs_above_shim(open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (g->fd >= 0 && faccessat(g->fd, "cgroup.kill", W_OK, AT_EACCESS) == 0) /* from Linux 5.14 on */
    return g;
  fs_close(g->fd);
  (void)rmdir(g->path);
  free(g);
  return NULL;
}

int group_fd(const struct group *g) {
  return g->fd;
}

void group_free(struct group *g) {
  if (g == NULL)
    return;
  (void)end_group(g->fd, g->path, clock_mono_ms());
  close(g->fd);
  free(g);
}

void group_tidy(void) {
  char own[PATH_MAX], mount[PATH_MAX];
  DIR *d = find_own(own, mount) && is_handed_over(own, mount) ? opendir(own) : NULL;
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    long pid = 0;
    if (e->d_type == DT_DIR && sscanf(e->d_name, "segue-%*36[0-9a-f-]-%ld-", &pid) == 1 &&
        pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
      (void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR); /* refused while anything lives in it */
  }
  if (d != NULL)
    closedir(d);
}

/* --- all groups of a session --- */

struct group_search {
  char prefix[NAME_BYTES];
  char own[PATH_MAX];
  uint64_t until_ms;
  size_t ended, looked;
};

static void try_group(struct group_search *s, const char *path, const char *name) {
  struct stat st;
  if (strncmp(name, s->prefix, strlen(s->prefix)) != 0 || fs_below(s->own, path) != NULL)
    return;
  int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (dir < 0)
    return;
  if (fstat(dir, &st) == 0 && st.st_uid == geteuid())
    s->ended += end_group(dir, path, s->until_ms);
  close(dir);
}

static void search_groups(struct group_search *s, const char *path, int depth) {
  DIR *d = depth < DEPTH && s->looked < LIMIT_GROUP_LOOK_COUNT ? opendir(path) : NULL;
  s->looked++;
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    char below[PATH_MAX];
    if (e->d_type != DT_DIR || e->d_name[0] == '.' ||
        snprintf(below, sizeof below, "%s/%s", path, e->d_name) >= (int)sizeof below)
      continue;
    try_group(s, below, e->d_name);
    search_groups(s, below, depth + 1);
  }
  if (d != NULL)
    closedir(d);
}

size_t group_end_all(const char *session) {
  struct group_search s = {.until_ms = clock_mono_ms() + LIMIT_LEFTOVER_WAIT_MS};
  char mount[PATH_MAX];
  if (!find_own(s.own, mount) ||
      snprintf(s.prefix, sizeof s.prefix, "segue-%s-", session) >= (int)sizeof s.prefix)
    return 0;
  search_groups(&s, mount, 0);
  return s.ended;
}
