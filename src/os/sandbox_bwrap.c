/* Turns a plan into the command line of bubblewrap. */
#include "os/sandbox_bwrap.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/process.h"
#include "os/sandbox_internal.h"
#include "os/sandbox_rules.h"
#include "shim/protocol.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lists the sockets of the machine through which programs could be started outside. */
static const char *const calling[] = {"/run/dbus",
                                      "/run/docker.sock",
                                      "/run/podman",
                                      "/run/containerd",
                                      "/run/systemd/private",
                                      "/run/snapd.socket",
                                      "/var/run/docker.sock",
                                      NULL};

/* Orders what may be done with a path: for the same path the later one counts. */
enum mounted { MOUNT_HIDDEN, MOUNT_LINK, MOUNT_READ, MOUNT_WRITTEN, MOUNT_KEPT };

struct mounting {
  const char *path;
  enum mounted how;
};

struct mountings {
  struct arena *arena;
  struct mounting *items;
  size_t n, room;
  struct arena_list words;
};

static void word(struct mountings *m, const char *text) {
  arena_list_add(m->arena, &m->words, str_from(text)); /* the plan is freed before they are */
}

static void mount_words(struct mountings *m, const char *option, const char *path) {
  word(m, option);
  word(m, path);
  word(m, path);
}

/* Adds a path if it exists, by its real name: a link leads there inside, too, and is made where it
 * would be hidden. */
static void mount_put(struct mountings *m, const char *path, enum mounted how) {
  char real[PATH_MAX];
  if (realpath(path, real) == NULL || strncmp(real, LIT("/dev")) == 0 ||
      strncmp(real, LIT("/proc")) == 0 || strcmp(real, "/") == 0)
    return;
  m->items = xgrow(m->items, &m->room, m->n + 2, sizeof *m->items);
  m->items[m->n++] = (struct mounting){arena_strdup(m->arena, real), how};
  if (strcmp(real, path) != 0)
    m->items[m->n++] = (struct mounting){arena_strdup(m->arena, path), MOUNT_LINK};
}

static void mount_hidden(void *ctx, const char *path) {
  mount_put(ctx, path, MOUNT_HIDDEN);
}

static void mount_hides(struct mountings *m, const struct sandbox_plan *plan) {
  for (size_t i = 0; plan->hides != NULL && plan->hides[i] != NULL; i++)
    mount_put(m, plan->hides[i], MOUNT_HIDDEN);
  if (plan->hides != NULL)
    sandbox_other_names(plan->hides, mount_hidden, m);
}

static void mount_all(struct mountings *m, const char *const *paths, enum mounted how) {
  for (size_t i = 0; paths != NULL && paths[i] != NULL; i++)
    mount_put(m, paths[i], how);
}

/* Sorts folders before their contents, and for one path the strongest last. */
static int mountings_by_path(const void *a, const void *b) {
  const struct mounting *x = a, *y = b;
  int order = strcmp(x->path, y->path);
  return order != 0 ? order : (int)x->how - (int)y->how;
}

static void put_hidden(struct mountings *m, const char *path) {
  struct stat st;
  if (stat(path, &st) != 0)
    return;
  if (S_ISDIR(st.st_mode)) {
    word(m, "--tmpfs");
    word(m, path);
    return;
  }
  word(m, "--ro-bind");
  word(m, "/dev/null");
  word(m, path);
}

/* Returns the innermost mount above one of the sorted list; NULL: the system's, read-only. */
static const struct mounting *mount_above(const struct mountings *m, size_t at) {
  const struct mounting *above = NULL;
  for (size_t i = 0; i < at; i++)
    if (strcmp(m->items[i].path, m->items[at].path) != 0 &&
        fs_below(m->items[at].path, m->items[i].path) != NULL)
      above = &m->items[i];
  return above;
}

/* Makes a link in a folder that is hidden otherwise; elsewhere it is there, or somebody else's. */
static void put_link(struct mountings *m, const char *path) {
  char real[PATH_MAX];
  if (realpath(path, real) == NULL)
    return;
  word(m, "--symlink");
  word(m, real);
  word(m, path);
}

/* lists: the whole system is there already. home: NULL, or where nothing may be written. */
static void put_mounts(struct mountings *m, bool lists, const char *home) {
  bool hidden = false;
  if (m->n > 0)
    qsort(m->items, m->n, sizeof *m->items, mountings_by_path);
  for (size_t i = 0; i < m->n; i++) {
    if (!(i + 1 == m->n || strcmp(m->items[i].path, m->items[i + 1].path) != 0))
      continue;
    const struct mounting *above = mount_above(m, i);
    const enum mounted how = m->items[i].how, is = above ? above->how : MOUNT_READ;
    const bool is_home = home != NULL && strcmp(m->items[i].path, home) == 0;
    bool is_so = (above || lists) && how == is && how < MOUNT_WRITTEN && !is_home;
    if (how == MOUNT_LINK)
      is_so = is != MOUNT_HIDDEN;
    if (is_so)
      continue; /* each mount costs, but one that is written is not moved away */
    hidden = hidden || (is_home && how == MOUNT_HIDDEN);
    switch (how) {
    case MOUNT_HIDDEN:
      put_hidden(m, m->items[i].path);
      break;
    case MOUNT_LINK:
      put_link(m, m->items[i].path);
      break;
    case MOUNT_READ:
    case MOUNT_KEPT:
      mount_words(m, "--ro-bind-try", m->items[i].path);
      break;
    case MOUNT_WRITTEN:
      mount_words(m, "--bind-try", m->items[i].path);
      break;
    }
  }
  if (hidden) { /* what is written there would be lost in silence */
    word(m, "--remount-ro");
    word(m, home);
  }
}

/* Adds system folders; one that is a link (/bin) is a link inside, too. */
static void put_system(struct mountings *m, const char *const *folders) {
  for (size_t i = 0; folders != NULL && folders[i] != NULL; i++) {
    char target[PATH_MAX];
    struct stat st;
    if (lstat(folders[i], &st) != 0 || strncmp(folders[i], LIT("/proc")) == 0)
      continue;
    ssize_t n = S_ISLNK(st.st_mode) ? readlink(folders[i], target, sizeof target - 1) : -1;
    if (n > 0) {
      target[n] = '\0';
      word(m, "--symlink");
      word(m, target);
      word(m, folders[i]);
    } else {
      mount_words(m, "--ro-bind-try", folders[i]);
    }
  }
}

static void put_devices(struct mountings *m) {
  static const char *const standard[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                         "/dev/random", "/dev/urandom", "/dev/tty",
                                         "/dev/ptmx",   "/dev/pts",     "/dev/shm"};
  word(m, "--dev");
  word(m, "/dev");
  word(m, "--proc");
  word(m, "/proc");
  for (size_t i = 0; sandbox_devices[i] != NULL; i++) {
    bool own = false;
    for (size_t k = 0; k < ARRAY_LEN(standard); k++)
      own = own || strcmp(standard[k], sandbox_devices[i]) == 0;
    if (!own)
      mount_words(m, "--dev-bind-try", sandbox_devices[i]);
  }
}

static const char *const *sandbox_bwrap_words(struct arena *a, const char *bwrap,
                                              const struct sandbox_plan *plan, const char *cwd) {
  struct mountings m = {.arena = a};
  char shim[PATH_MAX];
  struct err err;
  if (plan->way_out != NULL && !process_find_shim(shim, sizeof shim, &err))
    die("%s", err.text); /* it started all this */
  word(&m, bwrap);
  static const char *const always[] = {"--unshare-user", "--unshare-pid", "--unshare-ipc",
                                       "--die-with-parent"};
  for (size_t i = 0; i < ARRAY_LEN(always); i++)
    word(&m, always[i]);
  if (plan->no_internet)
    word(&m, "--unshare-net");
  if (!plan->namespaces)
    word(&m, "--disable-userns");
  if (plan->lists) {
    mount_words(&m, "--ro-bind", "/");
    mount_hides(&m, plan);
    mount_all(&m, calling, MOUNT_HIDDEN);
    mount_all(&m, plan->reads, MOUNT_READ);
  } else {
    put_system(&m, plan->reads);
    mount_hides(&m, plan);
  }
  put_devices(&m);
  mount_all(&m, plan->wholes, MOUNT_READ);
  if (plan->way_out != NULL)
    mount_put(&m, shim, MOUNT_READ);
  mount_all(&m, plan->caches, MOUNT_WRITTEN);
  mount_all(&m, plan->writes, MOUNT_WRITTEN);
  mount_all(&m, plan->kept, MOUNT_KEPT);
  if (plan->own != NULL)
    mount_put(&m, plan->own, MOUNT_WRITTEN);
  put_mounts(&m, plan->lists, plan->lists ? plan->home : NULL);
  word(&m, "--chdir");
  word(&m, cwd);
  word(&m, "--");
  if (plan->way_out != NULL) {
    word(&m, shim);
    word(&m, SHIM_FORWARDS);
    word(&m, plan->way_out);
    word(&m, plan->bypass);
  }
  free(m.items);
  return m.words.items;
}

/* Makes a sandbox of bubblewrap. Its filter of system calls allows new namespaces: bubblewrap lets
 * nobody go further. */
struct sandbox *sandbox_bwrap_new(const char *bwrap, const struct sandbox_plan *plan,
                                  const char *cwd, struct err *err) {
  if (!sandbox_filters()) {
    err_set(err, ERR_INVALID, "this kernel has no filter of system calls");
    return NULL;
  }
  unsigned held = SHIM_FILTER | SHIM_NAMESPACES | (plan->no_internet ? SHIM_EMPTY_NETWORK : 0);
  struct sandbox *s = sandbox_without_rules(held);
  s->words = sandbox_bwrap_words(&s->arena, bwrap, plan, cwd);
  return s;
}

static bool says_zero(const char *path) {
  buf_auto_t text = {0};
  struct err err;
  return access(path, R_OK) == 0 && file_read(path, 64, &text, &err) &&
         strtol(buf_c(&text), NULL, 10) == 0;
}

bool sandbox_bwrap_alone(void) {
  static const char switched[] = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
  return access(switched, R_OK) == 0 && !says_zero(switched);
}

static const char *bwrap_look(char *path, size_t size) {
  static const char *const places[] = {"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"};
  size_t i = 0;
  while (i < ARRAY_LEN(places) && access(places[i], X_OK) != 0)
    i++;
  if (i == ARRAY_LEN(places))
    return "bubblewrap is not installed (Debian, Ubuntu, Fedora: install the package bubblewrap)";
  print_into(path, size, "%s", places[i]);
  if (says_zero("/proc/sys/user/max_user_namespaces") ||
      says_zero("/proc/sys/kernel/unprivileged_userns_clone"))
    return "this kernel lets nobody create user namespaces (sysctl user.max_user_namespaces, "
           "kernel.unprivileged_userns_clone)";
  if (i > 0 && sandbox_bwrap_alone())
    return "AppArmor lets only /usr/bin/bwrap create user namespaces, and bubblewrap is elsewhere: "
           "install the system's package bubblewrap";
  return NULL;
}

const char *sandbox_bwrap_why_not(char *path, size_t size) {
  static _Thread_local struct {
    uint64_t until_ms;
    const char *why;
    char path[32];
  } last; /* looked up for each session that is submitted */
  if (clock_mono_ms() >= last.until_ms) {
    last.why = bwrap_look(last.path, sizeof last.path);
    last.until_ms = clock_mono_ms() + LIMIT_LOOK_UP_MS;
  }
  print_into(path, size, "%s", last.path);
  return last.why;
}
