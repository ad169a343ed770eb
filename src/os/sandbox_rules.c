/* Fills Landlock's rulesets from lists of paths. */
#include "os/sandbox_rules.h"

#include "base/log.h"
#include "os/fs.h"
#include "os/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- mounts --- */

struct mount {
  char *device, *root, *point; /* "8:1", the path within its file system, where that is seen */
};

struct mount_list {
  struct mount *items;
  size_t n, room;
};

/* Decodes \040 and the like: the kernel escapes space, tab, newline and backslash. */
static void unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from != '\0'; to++) {
    if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
      *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
      from += 4;
    } else {
      *to = *from++;
    }
  }
  *to = '\0';
}

/* Takes a line "36 35 98:0 /root /where ...". */
static void mount_list_add(struct mount_list *list, char *line) {
  enum { DEVICE = 2, ROOT, POINT, FIELDS };
  char *fields[FIELDS], *rest = NULL;
  fields[0] = strtok_r(line, " ", &rest);
  for (size_t i = 1; i < FIELDS; i++)
    fields[i] = fields[i - 1] ? strtok_r(NULL, " ", &rest) : NULL;
  if (fields[POINT] == NULL)
    return;
  unescape(fields[ROOT]);
  unescape(fields[POINT]);
  list->items = xgrow(list->items, &list->room, list->n + 1, sizeof *list->items);
  list->items[list->n++] =
      (struct mount){xstrdup(fields[DEVICE]), xstrdup(fields[ROOT]), xstrdup(fields[POINT])};
}

/* Writes the path without symbolic links, also of one whose end does not exist yet. */
static bool path_resolve(const char *path, char real[PATH_MAX]) {
  char start[PATH_MAX];
  if (snprintf(start, sizeof start, "%s", path) >= (int)sizeof start)
    return false;
  while (realpath(start, real) == NULL) {
    char *slash = strrchr(start, '/');
    if (slash == NULL || slash == start)
      return false;
    *slash = '\0';
  }
  size_t n = strcmp(real, "/") == 0 ? 0 : strlen(real);
  return snprintf(real + n, PATH_MAX - n, "%s", path + strlen(start)) < (int)(PATH_MAX - n);
}

/* Finds the mount that a path is seen through: the innermost one, and of those the last. */
static const struct mount *mount_of(const struct mount_list *list, const char *path) {
  const struct mount *found = NULL;
  for (size_t i = 0; i < list->n; i++) {
    const struct mount *m = &list->items[i];
    if (fs_below(path, m->point) != NULL &&
        (found == NULL || strlen(m->point) >= strlen(found->point)))
      found = m;
  }
  return found;
}

/* Returns true if one of `hides` is known by the name `path` or by a name below it, or hides it. */
static bool is_first_name(const char *const *hides, const char *path) {
  for (size_t i = 0; hides[i] != NULL; i++)
    if (fs_below(hides[i], path) != NULL || fs_below(path, hides[i]) != NULL)
      return true;
  return false;
}

/* Writes what the mounts of its file system call a hidden path. NULL: nothing is known of it. */
static const struct mount *hidden_within(const struct mount_list *list, const char *hidden,
                                         char within[PATH_MAX]) {
  char real[PATH_MAX];
  if (!path_resolve(hidden, real))
    return NULL;
  const struct mount *m = mount_of(list, real);
  if (m == NULL)
    return NULL;
  const char *root = strcmp(m->root, "/") == 0 ? "" : m->root;
  int n = snprintf(within, PATH_MAX, "%s%s", root, fs_below(real, m->point));
  return n < PATH_MAX ? m : NULL;
}

void sandbox_other_names(const char *const *hides, void (*each)(void *ctx, const char *path),
                         void *ctx) {
  struct mount_list list = {0};
  char *line = NULL;
  size_t room = 0;
  FILE *file = fopen("/proc/self/mountinfo", "re");
  while (file != NULL && getline(&line, &room, file) > 0)
    mount_list_add(&list, line);
  if (file != NULL)
    (void)fclose(file);
  free(line);
  bool *told = xcalloc(list.n + 1, sizeof *told);
  char within[PATH_MAX];
  for (size_t i = 0; hides[i] != NULL; i++) {
    const struct mount *own = hidden_within(&list, hides[i], within);
    for (size_t k = 0; own != NULL && k < list.n; k++) {
      const struct mount *m = &list.items[k];
      if (told[k] || strcmp(m->device, own->device) != 0 ||
          (fs_below(within, m->root) == NULL && fs_below(m->root, within) == NULL) ||
          is_first_name(hides, m->point))
        continue;
      told[k] = true;
      each(ctx, m->point);
    }
  }
  free(told);
  for (size_t i = 0; i < list.n; i++) {
    free(list.items[i].device);
    free(list.items[i].root);
    free(list.items[i].point);
  }
  free(list.items);
}

enum {
  LIST_DEPTH = 16,             /* nested folders that are opened up: no hidden path is deeper */
  UNSURE_NS = 50 * 1000 * 1000 /* file times may be only as fine as a tick of 10 ms */
};

struct rules {
  int fd;                        /* the ruleset */
  uint64_t folder;               /* rights on a folder and all below */
  uint64_t file;                 /* rights on a file */
  struct sandbox_stamps *stamps; /* or NULL */
};

/* Asks for Landlock's version once: it is the same for as long as the kernel runs. */
int sandbox_version(void) {
  static _Atomic int version = -1;
  if (version < 0) {
    int told = ll_version();
    version = told > 0 ? told : 0;
  }
  return version;
}

/* Leaves out rights of a Landlock newer than the kernel's. */
static uint64_t known_rights(uint64_t rights) {
  const int abi = sandbox_version();
  if (abi < 2)
    rights &= ~(uint64_t)LL_REFER;
  if (abi < 3)
    rights &= ~(uint64_t)LL_TRUNCATE;
  if (abi < 5)
    rights &= ~(uint64_t)LL_IOCTL_DEV;
  return rights;
}

/* --- stamps --- */

static bool is_younger(struct timespec time, const struct timespec *now) {
  int64_t age_ns = (int64_t)(now->tv_sec - time.tv_sec) * 1000000000 + now->tv_nsec - time.tv_nsec;
  return age_ns < UNSURE_NS;
}

static void stamp_put(struct sandbox_stamps *stamps, const char *path, bool listed,
                      const struct stat *st) {
  struct timespec now;
  if (stamps == NULL)
    return;
  stamps->items = xgrow(stamps->items, &stamps->room, stamps->n + 1, sizeof *stamps->items);
  struct sandbox_stamp *stamp = &stamps->items[stamps->n++];
  *stamp = (struct sandbox_stamp){.path = xstrdup(path), .listed = listed, .missing = st == NULL};
  if (st == NULL)
    return;
  stamp->device = st->st_dev;
  stamp->inode = st->st_ino;
  stamp->modified = st->st_mtim;
  stamp->changed = st->st_ctim;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  if (listed && (is_younger(st->st_mtim, &now) || is_younger(st->st_ctim, &now)))
    stamps->unsure = true;
}

static bool is_same_time(struct timespec a, struct timespec b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool stamp_holds(const struct sandbox_stamp *stamp) {
  struct stat st;
  if (stat(stamp->path, &st) != 0)
    return stamp->missing;
  return !stamp->missing && st.st_dev == stamp->device && st.st_ino == stamp->inode &&
         (!stamp->listed ||
          (is_same_time(st.st_mtim, stamp->modified) && is_same_time(st.st_ctim, stamp->changed)));
}

bool sandbox_stamps_hold(const struct sandbox_stamps *stamps) {
  for (size_t i = 0; i < stamps->n; i++)
    if (!stamp_holds(&stamps->items[i]))
      return false;
  return true;
}

bool sandbox_stamps_missed(const struct sandbox_stamps *stamps, const char *path) {
  for (size_t i = 0; i < stamps->n; i++)
    if (stamps->items[i].missing && strcmp(stamps->items[i].path, path) == 0)
      return true;
  return false;
}

static bool stamps_list(const struct sandbox_stamps *stamps, const char *path, size_t n) {
  for (size_t i = 0; i < stamps->n; i++)
    if (stamps->items[i].listed && !stamps->items[i].missing &&
        strlen(stamps->items[i].path) == n && memcmp(stamps->items[i].path, path, n) == 0)
      return true;
  return false;
}

/* Returns true if a stamp of this path has what is open at it now. */
static bool stamps_have(const struct sandbox_stamps *stamps, const char *path,
                        const struct stat *st) {
  for (size_t i = 0; i < stamps->n; i++)
    if (!stamps->items[i].missing && stamps->items[i].device == st->st_dev &&
        stamps->items[i].inode == st->st_ino && strcmp(stamps->items[i].path, path) == 0)
      return true;
  return false;
}

void sandbox_stamps_settle(struct sandbox_stamps *stamps) {
  size_t kept = 0;
  for (size_t i = 0; i < stamps->n; i++) {
    struct sandbox_stamp *stamp = &stamps->items[i];
    const char *slash = stamp->missing && !stamp->listed ? strrchr(stamp->path, '/') : NULL;
    if (slash != NULL && stamps_list(stamps, stamp->path, (size_t)(slash - stamp->path)))
      free(stamp->path);
    else
      stamps->items[kept++] = *stamp;
  }
  stamps->n = kept;
}

void sandbox_stamps_deinit(struct sandbox_stamps *stamps) {
  for (size_t i = 0; i < stamps->n; i++)
    free(stamps->items[i].path);
  free(stamps->items);
  *stamps = (struct sandbox_stamps){0};
}

/* --- one path --- */

static bool is_short_of(int number) {
  return number == EMFILE || number == ENFILE || number == ENOMEM;
}

static bool allow_fd(const struct rules *rules, int fd, bool is_folder) {
  uint64_t rights = is_folder ? rules->folder : rules->file;
  return rights == 0 || ll_allow(rules->fd, fd, rights) == 0;
}

/* Adds a rule. A path that is gone, or that we may not see either, needs none. */
static bool sandbox_allow(const struct rules *rules, const char *path) {
  struct stat st;
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) {
    stamp_put(rules->stamps, path, false, NULL);
    return !is_short_of(errno);
  }
  bool ok = fstat(fd, &st) == 0 && allow_fd(rules, fd, S_ISDIR(st.st_mode));
  int number = errno;
  if (ok)
    stamp_put(rules->stamps, path, false, &st);
  (void)close(fd);
  errno = number;
  return ok;
}

/* Adds a child of a listed folder: the folder's stamp covers it. */
static bool allow_child(const struct rules *rules, int folder, const struct dirent *entry) {
  struct stat st = {.st_mode = S_IFREG};
  int fd = openat(folder, entry->d_name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0)
    return !is_short_of(errno);
  if (entry->d_type == DT_UNKNOWN)
    (void)fstat(fd, &st);
  bool ok =
      S_ISLNK(st.st_mode) || allow_fd(rules, fd, entry->d_type == DT_DIR || S_ISDIR(st.st_mode));
  fs_close(fd);
  return ok;
}

/* Adds rules for paths that are still what the stamps say; false if one is not. */
static bool allow_as_stamped(const struct rules *rules, const char *const *paths) {
  bool ok = true;
  for (size_t i = 0; ok && paths != NULL && paths[i] != NULL; i++) {
    struct stat st;
    int fd = open(paths[i], O_PATH | O_CLOEXEC);
    ok = fd >= 0 && fstat(fd, &st) == 0 && stamps_have(rules->stamps, paths[i], &st) &&
         allow_fd(rules, fd, S_ISDIR(st.st_mode));
    fs_close(fd);
  }
  return ok;
}

static bool allow_each(const struct rules *rules, const char *const *paths) {
  bool ok = true;
  for (size_t i = 0; ok && paths != NULL && paths[i] != NULL; i++)
    ok = sandbox_allow(rules, paths[i]);
  return ok;
}

/* --- what is hidden --- */

/* Holds a copy of the plan whose hides include their other names. */
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
  w->hide_count = str_count(plan->hides);
  w->hides = xcalloc(w->hide_count + w->name_count + 1, sizeof *w->hides);
  memcpy(w->hides, plan->hides, w->hide_count * sizeof *w->hides);
  for (size_t i = 0; i < w->name_count; i++)
    w->hides[w->hide_count + i] = w->names[i];
  w->plan.hides = w->hides;
}

enum part { PART_SEEN, PART_HIDDEN, PART_MIXED };

/* Tells how much of a path is seen. Hides above it do not count if it is named itself: whoever
 * names a path means it. */
static enum part part_of_path(const struct sandbox_plan *plan, const char *path, bool named) {
  enum part part = PART_SEEN;
  for (size_t i = 0; plan->hides != NULL && plan->hides[i] != NULL; i++) {
    if (fs_below(path, plan->hides[i]) != NULL && !named)
      return PART_HIDDEN;
    if (fs_below(plan->hides[i], path) != NULL && strcmp(plan->hides[i], path) != 0)
      part = PART_MIXED;
  }
  return part;
}

/* Holds the rests of the hides below one folder: a child is compared only with these. */
struct rests {
  const char **items;
  size_t n;
};

static enum part part_of_child(const struct rests *rests, const char *name, size_t n) {
  enum part part = PART_SEEN;
  for (size_t i = 0; i < rests->n; i++) {
    if (strncmp(rests->items[i], name, n) != 0)
      continue;
    if (rests->items[i][n] == '\0')
      return PART_HIDDEN;
    if (rests->items[i][n] == '/')
      part = PART_MIXED;
  }
  return part;
}

/* --- folders that are opened up --- */

struct opened_up {
  const struct sandbox_plan *plan;
  const struct rules *rules;
  char *path; /* PATH_MAX bytes */
};

static bool allow_children(const struct opened_up *l, int depth);

/* Adds one entry. Symbolic links need no rule: their targets are checked instead. */
static bool allow_entry(const struct opened_up *l, const struct rests *rests, int folder,
                        const struct dirent *entry, int depth) {
  size_t n = strlen(l->path), end = n > 1 ? n : 0, more = strlen(entry->d_name);
  if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
      entry->d_type == DT_LNK || end + 1 + more >= PATH_MAX)
    return true;
  switch (part_of_child(rests, entry->d_name, more)) {
  case PART_HIDDEN:
    return true;
  case PART_SEEN:
    return allow_child(l->rules, folder, entry);
  case PART_MIXED:
    break;
  }
  l->path[end] = '/';
  memcpy(l->path + end + 1, entry->d_name, more + 1);
  bool ok = depth == 0 || allow_children(l, depth - 1);
  l->path[n] = '\0';
  return ok;
}

/* Adds each child by itself, except hidden ones. */
static bool allow_children(const struct opened_up *l, int depth) {
  struct stat st;
  bool ok = true;
  DIR *dir = opendir(l->path);
  if (dir == NULL) {
    ok = !is_short_of(errno);
    stamp_put(l->rules->stamps, l->path, true, stat(l->path, &st) == 0 ? &st : NULL);
    return ok;
  }
  if (fstat(dirfd(dir), &st) == 0) /* before reading it: later changes alter its times */
    stamp_put(l->rules->stamps, l->path, true, &st);
  struct rests rests = {0};
  size_t count = str_count(l->plan->hides), n = strlen(l->path);
  rests.items = xcalloc(count + 1, sizeof *rests.items);
  while (n > 0 && l->path[n - 1] == '/')
    n--;
  for (size_t i = 0; i < count; i++)
    if (strncmp(l->plan->hides[i], l->path, n) == 0 && l->plan->hides[i][n] == '/')
      rests.items[rests.n++] = l->plan->hides[i] + n + 1;
  for (struct dirent *entry; ok && (entry = readdir(dir)) != NULL;)
    ok = allow_entry(l, &rests, dirfd(dir), entry, depth);
  int number = errno;
  free(rests.items);
  (void)closedir(dir);
  errno = number;
  return ok;
}

static bool allow_read(const struct sandbox_plan *plan, const struct rules *rules,
                       const char *path) {
  char copy[PATH_MAX];
  const struct opened_up l = {plan, rules, copy};
  print_into(copy, sizeof copy, "%s", path);
  switch (part_of_path(plan, path, true)) {
  case PART_HIDDEN:
    return true;
  case PART_SEEN:
    return sandbox_allow(rules, path);
  case PART_MIXED:
    return allow_children(&l, LIST_DEPTH);
  }
  return false;
}

/* Returns false if a folder above can be entered but not listed: only the path's own rule shows
 * it. */
static bool is_listed_above(const char *path) {
  char above[PATH_MAX];
  print_into(above, sizeof above, "%s", path);
  for (char *slash; (slash = strrchr(above, '/')) != NULL && slash > above;) {
    *slash = '\0';
    if (eaccess(above, R_OK) != 0)
      return false;
  }
  return true;
}

/* Returns true if the rules of a folder above already show the path. One with a link in it does not
 * count: an opened-up folder shows the paths that links lead to. */
static bool is_read_above(const struct sandbox_plan *plan, const char *path) {
  char real[PATH_MAX];
  bool below = false;
  for (size_t i = 0; plan->reads[i] != NULL; i++)
    below =
        below || (fs_below(path, plan->reads[i]) != NULL && strlen(path) > strlen(plan->reads[i]));
  return below && part_of_path(plan, path, false) != PART_HIDDEN && realpath(path, real) != NULL &&
         strcmp(real, path) == 0 && is_listed_above(path);
}

/* Adds a cache. If it holds a secret now, it is opened up like any folder; otherwise it is added
 * whole, so that new files in it can be read again. */
static bool allow_cache(const struct sandbox_plan *plan, const struct rules *rules,
                        const char *path) {
  struct stat st;
  for (size_t i = 0; plan->hides != NULL && plan->hides[i] != NULL; i++) {
    if (fs_below(plan->hides[i], path) == NULL)
      continue;
    if (stat(plan->hides[i], &st) == 0)
      return allow_read(plan, rules, path);
    stamp_put(rules->stamps, plan->hides[i], false, NULL);
  }
  return sandbox_allow(rules, path);
}

/* --- rulesets --- */

static bool fill_reads(const struct sandbox_plan *plan, int fd, struct sandbox_stamps *stamps) {
  const struct rules rules = {fd, known_rights(LL_EXECUTE | LL_READ_FILE | LL_READ_DIR),
                              LL_EXECUTE | LL_READ_FILE, stamps};
  const struct rules top = {fd, known_rights(LL_REFER) | (plan->lists ? LL_READ_DIR : 0), 0, NULL};
  bool ok = sandbox_allow(&top, "/") && allow_each(&rules, plan->wholes) &&
            allow_each(&rules, plan->writes);
  for (size_t i = 0; ok && plan->caches != NULL && plan->caches[i] != NULL; i++)
    ok = allow_cache(plan, &rules, plan->caches[i]);
  for (size_t i = 0; ok && plan->reads != NULL && plan->reads[i] != NULL; i++)
    ok = is_read_above(plan, plan->reads[i]) || allow_read(plan, &rules, plan->reads[i]);
  return ok && (plan->own == NULL || stamps != NULL || sandbox_allow(&rules, plan->own));
}

enum {
  LL_WRITES = LL_WRITE_FILE | LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_CHAR | LL_MAKE_DIR |
              LL_MAKE_REG | LL_MAKE_SOCK | LL_MAKE_FIFO | LL_MAKE_BLOCK | LL_MAKE_SYM | LL_REFER |
              LL_TRUNCATE | LL_IOCTL_DEV
};

static struct rules rules_of_writes(int fd, struct sandbox_stamps *stamps) {
  const uint64_t devices = LL_MAKE_CHAR | LL_MAKE_BLOCK; /* nobody makes any */
  return (struct rules){fd, known_rights(LL_WRITES & ~devices),
                        known_rights(LL_WRITE_FILE | LL_TRUNCATE | LL_IOCTL_DEV), stamps};
}

/* Makes a ruleset whose number is above the shim's descriptors. */
static int sandbox_ruleset(const struct ll_ruleset *handled) {
  return fs_above_shim(ll_create(handled));
}

static int ruleset_filled(int fd, bool ok) {
  int number = errno;
  if (ok || fd < 0)
    return fd;
  (void)close(fd);
  errno = number;
  return -1;
}

/* Returns true if the rules show any call's own folder without naming it: new files in the folder
 * above may be read. */
static bool may_serve_again(const struct sandbox_plan *plan) {
  char above[PATH_MAX];
  if (plan->own == NULL || realpath(plan->own, above) == NULL)
    return false;
  char *slash = strrchr(above, '/');
  slash[slash == above] = '\0';
  bool below = false;
  for (size_t i = 0; plan->reads != NULL && plan->reads[i] != NULL; i++)
    below = below || fs_below(above, plan->reads[i]) != NULL;
  return below && part_of_path(plan, above, false) == PART_SEEN;
}

int sandbox_rules_reads(const struct sandbox_plan *plan, struct sandbox_stamps *stamps) {
  const struct ll_ruleset handled = {
      .fs = known_rights(LL_EXECUTE | LL_READ_FILE | LL_READ_DIR | LL_REFER)};
  struct widened widened;
  widened_init(&widened, plan);
  if (!may_serve_again(&widened.plan))
    stamps = NULL;
  int fd = sandbox_ruleset(&handled);
  fd = ruleset_filled(fd, fd >= 0 && fill_reads(&widened.plan, fd, stamps));
  int number = errno;
  for (size_t i = 0; i < widened.name_count; i++)
    free(widened.names[i]);
  free(widened.names);
  free(widened.hides);
  errno = number;
  return fd;
}

static int writes_ruleset(const struct sandbox_plan *plan) {
  struct ll_ruleset handled = {.fs = known_rights(LL_WRITES)};
  if (sandbox_version() >= 4 && plan->no_internet)
    handled.net = LL_NET_BIND_TCP | LL_NET_CONNECT_TCP;
  if (sandbox_version() >= 6)
    handled.scoped = LL_SCOPE_ABSTRACT_UNIX_SOCKET | LL_SCOPE_SIGNAL;
  return sandbox_ruleset(&handled);
}

int sandbox_rules_writes(const struct sandbox_plan *plan) {
  int fd = writes_ruleset(plan);
  const struct rules rules = rules_of_writes(fd, NULL);
  return ruleset_filled(fd, fd >= 0 && allow_each(&rules, plan->writes) &&
                                allow_each(&rules, plan->caches) &&
                                (plan->own == NULL || sandbox_allow(&rules, plan->own)));
}

int sandbox_rules_spare(const struct sandbox_plan *plan, struct sandbox_stamps *stamps) {
  int fd = writes_ruleset(plan);
  const struct rules rules = rules_of_writes(fd, stamps);
  return ruleset_filled(fd, fd >= 0 && allow_as_stamped(&rules, plan->writes) &&
                                allow_as_stamped(&rules, plan->caches));
}

int sandbox_rules_complete(int owned_spare, const char *own) {
  const struct rules rules = rules_of_writes(owned_spare, NULL);
  return ruleset_filled(owned_spare, own == NULL || sandbox_allow(&rules, own));
}
