/* Makes the rulesets that hold a program, from lists of paths. */
#include "os/sandbox.h"

#include "base/log.h"
#include "os/landlock.h"
#include "os/process_internal.h"
#include "os/sandbox_mounts.h"
#include "shim/protocol.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

enum { LIST_DEPTH = 16 }; /* folders opened up one below the other: a hidden path is no deeper */

struct sandbox {
  int reads, writes; /* rulesets; -1: none */
  unsigned held;
};

struct rules {
  int fd;          /* of the ruleset */
  uint64_t folder; /* rights on a folder and all below */
  uint64_t file;   /* rights on a file */
};

int sandbox_version(void) {
  int version = ll_version();
  return version > 0 ? version : 0;
}

bool sandbox_filters(void) {
#if defined(__x86_64__) || defined(__aarch64__)
  return prctl(PR_GET_SECCOMP) >= 0;
#else
  return false;
#endif
}

/* Rights of a newer Landlock than the kernel's are left out. */
static uint64_t known_rights(int abi, uint64_t rights) {
  if (abi < 2)
    rights &= ~(uint64_t)LL_REFER;
  if (abi < 3)
    rights &= ~(uint64_t)LL_TRUNCATE;
  if (abi < 5)
    rights &= ~(uint64_t)LL_IOCTL_DEV;
  return rights;
}

/* A path that is gone, or that we may not see either, needs no rule. */
static bool sandbox_allow_fd(const struct rules *rules, int fd, const struct stat *st) {
  uint64_t rights = S_ISDIR(st->st_mode) ? rules->folder : rules->file;
  return rights == 0 || ll_allow(rules->fd, fd, rights) == 0;
}

static bool sandbox_allow(const struct rules *rules, const char *path) {
  struct stat st;
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0)
    return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
  bool ok = fstat(fd, &st) == 0 && sandbox_allow_fd(rules, fd, &st);
  int number = errno;
  (void)close(fd);
  errno = number;
  return ok;
}

/* True when `path` is `above` or below it. */
static bool is_beneath(const char *path, const char *above) {
  size_t n = strlen(above);
  while (n > 0 && above[n - 1] == '/') /* "/" itself is above all */
    n--;
  return strncmp(path, above, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* A copy of the plan whose hides have their other names with them. */
struct widened {
  struct sandbox_plan plan;
  char **names; /* owned */
  const char **hides;
  size_t name_count, hide_count;
};

static void widen(void *ctx, const char *path) {
  struct widened *w = ctx;
  w->names = xrealloc(w->names, (w->name_count + 1) * sizeof *w->names);
  w->names[w->name_count++] = xstrdup(path);
}

static void widened_init(struct widened *w, const struct sandbox_plan *plan) {
  *w = (struct widened){.plan = *plan};
  if (plan->hides == NULL)
    return;
  sandbox_other_names(plan->hides, widen, w);
  while (plan->hides[w->hide_count] != NULL)
    w->hide_count++;
  w->hides = xcalloc(w->hide_count + w->name_count + 1, sizeof *w->hides);
  memcpy(w->hides, plan->hides, w->hide_count * sizeof *w->hides);
  for (size_t i = 0; i < w->name_count; i++)
    w->hides[w->hide_count + i] = w->names[i];
  w->plan.hides = w->hides;
}

static void widened_deinit(struct widened *w) {
  for (size_t i = 0; i < w->name_count; i++)
    free(w->names[i]);
  free(w->names);
  free(w->hides);
}

enum part { PART_SEEN, PART_HIDDEN, PART_MIXED };

/* A path that is named may have hides above it: whoever names a path means it. */
static enum part sandbox_part_of(const struct sandbox_plan *plan, const char *path, bool named) {
  enum part part = PART_SEEN;
  for (size_t i = 0; plan->hides != NULL && plan->hides[i] != NULL; i++) {
    if (is_beneath(path, plan->hides[i]) && !named)
      return PART_HIDDEN;
    if (is_beneath(plan->hides[i], path) && strcmp(plan->hides[i], path) != 0)
      part = PART_MIXED;
  }
  return part;
}

static bool allow_seen(const struct sandbox_plan *plan, const struct rules *rules, char *path,
                       bool named, int depth);

/* Each child by itself, those excepted that are hidden. Symbolic links need none: what they lead to
 * is asked for. */
static bool allow_children(const struct sandbox_plan *plan, const struct rules *rules, char *path,
                           int depth) {
  size_t n = strlen(path), end = n > 0 && path[n - 1] == '/' ? n - 1 : n;
  bool ok = true;
  DIR *dir = opendir(path);
  if (dir == NULL)
    return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
  for (struct dirent *entry; ok && (entry = readdir(dir)) != NULL;) {
    size_t more = strlen(entry->d_name);
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
        entry->d_type == DT_LNK || end + 1 + more >= PATH_MAX)
      continue;
    path[end] = '/';
    memcpy(path + end + 1, entry->d_name, more + 1);
    ok = allow_seen(plan, rules, path, false, depth - 1);
  }
  int number = errno;
  (void)closedir(dir);
  path[n] = '\0';
  if (end < n)
    path[end] = '/';
  errno = number;
  return ok;
}

static bool allow_seen(const struct sandbox_plan *plan, const struct rules *rules, char *path,
                       bool named, int depth) {
  switch (sandbox_part_of(plan, path, named)) {
  case PART_HIDDEN:
    return true;
  case PART_SEEN:
    return sandbox_allow(rules, path);
  case PART_MIXED:
    return depth == 0 || allow_children(plan, rules, path, depth);
  }
  return false;
}

static bool allow_each(const struct rules *rules, const char *const *paths) {
  bool ok = true;
  for (size_t i = 0; ok && paths != NULL && paths[i] != NULL; i++)
    ok = sandbox_allow(rules, paths[i]);
  return ok;
}

static bool fill_reads(const struct sandbox_plan *plan, int abi, int fd) {
  const struct rules rules = {fd, known_rights(abi, LL_EXECUTE | LL_READ_FILE | LL_READ_DIR),
                              LL_EXECUTE | LL_READ_FILE};
  const struct rules top = {fd, known_rights(abi, LL_REFER) | (plan->lists ? LL_READ_DIR : 0), 0};
  char path[PATH_MAX];
  bool ok = sandbox_allow(&top, "/") && allow_each(&rules, plan->wholes) &&
            allow_each(&rules, plan->writes);
  for (size_t i = 0; ok && plan->reads != NULL && plan->reads[i] != NULL; i++) {
    (void)snprintf(path, sizeof path, "%s", plan->reads[i]);
    ok = allow_seen(plan, &rules, path, true, LIST_DEPTH);
  }
  return ok;
}

enum {
  LL_WRITES = LL_WRITE_FILE | LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_CHAR | LL_MAKE_DIR |
              LL_MAKE_REG | LL_MAKE_SOCK | LL_MAKE_FIFO | LL_MAKE_BLOCK | LL_MAKE_SYM | LL_REFER |
              LL_TRUNCATE | LL_IOCTL_DEV
};

static bool fill_writes(const struct sandbox_plan *plan, int abi, int fd) {
  const uint64_t devices = LL_MAKE_CHAR | LL_MAKE_BLOCK; /* nobody makes any */
  const struct rules rules = {fd, known_rights(abi, LL_WRITES & ~devices),
                              known_rights(abi, LL_WRITE_FILE | LL_TRUNCATE | LL_IOCTL_DEV)};
  return allow_each(&rules, plan->writes);
}

/* The number is above those that the shim's descriptors have. */
static int sandbox_ruleset(const struct ll_ruleset *handled) {
  int fd = ll_create(handled);
  if (fd < 0 || fd >= FD_ABOVE_SHIM)
    return fd;
  int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM);
  int number = errno;
  (void)close(fd);
  errno = number;
  return high;
}

static bool make_rules(struct sandbox *s, const struct sandbox_plan *plan, int abi) {
  const struct ll_ruleset reads = {
      .fs = known_rights(abi, LL_EXECUTE | LL_READ_FILE | LL_READ_DIR | LL_REFER)};
  struct ll_ruleset writes = {.fs = known_rights(abi, LL_WRITES)};
  if (abi >= 4 && plan->no_internet)
    writes.net = LL_NET_BIND_TCP | LL_NET_CONNECT_TCP;
  if (abi >= 6)
    writes.scoped = LL_SCOPE_ABSTRACT_UNIX_SOCKET | LL_SCOPE_SIGNAL;
  s->reads = sandbox_ruleset(&reads);
  s->writes = s->reads >= 0 ? sandbox_ruleset(&writes) : -1;
  return s->writes >= 0 && fill_reads(plan, abi, s->reads) && fill_writes(plan, abi, s->writes);
}

struct sandbox *sandbox_new(const struct sandbox_plan *plan, struct err *err) {
  int abi = sandbox_version();
  if (abi == 0 || !sandbox_filters()) {
    (void)err_set(err, ERR_INVALID, "this kernel has no Landlock, or no filter of system calls");
    return NULL;
  }
  struct sandbox *s = xcalloc(1, sizeof *s);
  s->reads = s->writes = -1;
  s->held = SHIM_RULES | SHIM_FILTER;
  struct widened widened;
  widened_init(&widened, plan);
  s->held |= plan->no_internet ? SHIM_NO_INTERNET : 0;
  s->held |= plan->no_sockets ? SHIM_NO_SOCKETS : 0;
  s->held |= plan->namespaces ? SHIM_NAMESPACES : 0;
  bool ok = make_rules(s, &widened.plan, abi);
  int number = errno;
  widened_deinit(&widened);
  if (ok)
    return s;
  (void)err_set_errno(err, number, "cannot make the rules of a sandbox");
  sandbox_free(s);
  return NULL;
}

void sandbox_free(struct sandbox *s) {
  if (s == NULL)
    return;
  if (s->reads >= 0)
    (void)close(s->reads);
  if (s->writes >= 0)
    (void)close(s->writes);
  free(s);
}

unsigned sandbox_held(const struct sandbox *s) {
  return s->held;
}

int sandbox_reads_fd(const struct sandbox *s) {
  return s->reads;
}

int sandbox_writes_fd(const struct sandbox *s) {
  return s->writes;
}
