/* Makes sandboxes: two rulesets, and what the shim needs to know about them. */
#include "os/sandbox.h"

#include "base/arena.h"
#include "base/log.h"
#include "os/landlock.h"
#include "os/process_internal.h"
#include "os/ruleset_cache.h"
#include "os/sandbox_bwrap.h"
#include "os/sandbox_internal.h"
#include "os/sandbox_rules.h"
#include "os/warm_shim.h"
#include "shim/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* --- a Linux system's folders and devices, for any user --- */

const char *const sandbox_folders[] = {"/usr",
                                       "/bin",
                                       "/sbin",
                                       "/lib",
                                       "/lib32",
                                       "/lib64",
                                       "/libx32",
                                       "/etc",
                                       "/opt",
                                       "/nix/store",
                                       "/gnu/store",
                                       "/proc",
                                       "/sys/devices/system",
                                       "/sys/fs/cgroup",
                                       "/sys/kernel/mm",
                                       "/run/systemd/resolve",
                                       "/run/resolvconf",
                                       "/run/NetworkManager/resolv.conf",
                                       "/run/current-system",
                                       "/var/lib/ca-certificates",
                                       "/var/cache/fontconfig",
                                       "/snap/core22",
                                       NULL};

const char *const sandbox_devices[] = {
    "/dev/null",       "/dev/zero", "/dev/full", "/dev/random",    "/dev/urandom",
    "/dev/tty",        "/dev/ptmx", "/dev/pts",  "/dev/shm",       "/dev/kvm",
    "/dev/fuse",       "/dev/dri",  "/dev/kfd",  "/dev/nvidiactl", "/dev/nvidia0",
    "/dev/nvidia-uvm", NULL};

/* --- sandboxes --- */

struct sandbox {
  int reads, writes;           /* rulesets; -1: none */
  struct warm_shim *warm_shim; /* a shim that has taken on both already; or NULL */
  unsigned held;
  struct arena arena;
  const char *const *words; /* put before the program's; NULL: none */
  const char *const *envp;  /* NULL: the program's own */
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

bool sandbox_filters(void) {
#if defined(__x86_64__) || defined(__aarch64__)
  static _Atomic int takes = -1; /* the same for as long as the kernel runs */
  if (takes < 0)
    takes = prctl(PR_GET_SECCOMP) >= 0;
  return takes == 1;
#else
  return false;
#endif
}

unsigned sandbox_plan_held(const struct sandbox_plan *plan) {
  unsigned held = SHIM_RULES | SHIM_FILTER;
  held |= plan->no_internet ? SHIM_NO_INTERNET : 0;
  held |= plan->no_sockets ? SHIM_NO_SOCKETS : 0;
  held |= plan->namespaces ? SHIM_NAMESPACES : 0;
  return held;
}

/* Makes a sandbox. Takes over the ruleset of reads, which is -1 with errno set if there is none. */
static struct sandbox *sandbox_of(int owned_reads, const struct sandbox_plan *plan,
                                  struct err *err) {
  struct sandbox *s = xcalloc(1, sizeof *s);
  s->held = sandbox_plan_held(plan);
  s->reads = owned_reads;
  s->writes = s->reads >= 0 ? sandbox_rules_writes(plan, sandbox_version()) : -1;
  if (s->writes >= 0)
    return s;
  err_set_errno(err, errno, "cannot make the rules of a sandbox");
  sandbox_free(s);
  return NULL;
}

struct sandbox *sandbox_new(struct ruleset_cache *kept, struct str key,
                            const struct sandbox_plan *plan, struct err *err) {
  struct sandbox_stamps stamps = {0};
  if (sandbox_version() == 0 || !sandbox_filters()) {
    err_set(err, ERR_INVALID, "this kernel has no Landlock, or no filter of system calls");
    return NULL;
  }
  if (kept != NULL)
    ruleset_cache_begin(kept);
  int reads = sandbox_rules_reads(plan, sandbox_version(), kept ? &stamps : NULL);
  struct sandbox *s = sandbox_of(reads, plan, err);
  if (s != NULL && kept != NULL && stamps.n > 0)
    ruleset_cache_put(kept, key, plan, s->reads, &stamps);
  sandbox_stamps_deinit(&stamps);
  return s;
}

struct sandbox *sandbox_again(struct ruleset_cache *kept, struct str key, const char *own,
                              const char *session) {
  const struct sandbox_wish wish = {key, own, session};
  struct sandbox_plan plan;
  struct warm_shim *warm_shim = NULL;
  struct err err;
  int reads = kept ? ruleset_cache_find(kept, &wish, &plan, &warm_shim) : -1;
  if (warm_shim != NULL) {
    struct sandbox *s = xcalloc(1, sizeof *s);
    s->reads = s->writes = -1;
    s->held = sandbox_plan_held(&plan);
    s->warm_shim = warm_shim;
    return s;
  }
  if (reads < 0)
    return NULL;
  plan.own = own;
  return sandbox_of(fcntl(reads, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM), &plan, &err);
}

struct warm_shim *sandbox_take_standby(struct sandbox *s) {
  struct warm_shim *warm_shim = s->warm_shim;
  s->warm_shim = NULL;
  return warm_shim;
}

void sandbox_free(struct sandbox *s) {
  if (s == NULL)
    return;
  if (s->reads >= 0)
    (void)close(s->reads);
  if (s->writes >= 0)
    (void)close(s->writes);
  warm_shim_free(s->warm_shim);
  arena_deinit(&s->arena);
  free(s);
}

/* Makes a sandbox of bubblewrap. Its filter of system calls allows new namespaces: bubblewrap lets
 * nobody go further. */
struct sandbox *sandbox_bwrap_new(const char *bwrap, const struct sandbox_plan *plan,
                                  const char *cwd, struct err *err) {
  if (!sandbox_filters()) {
    err_set(err, ERR_INVALID, "this kernel has no filter of system calls");
    return NULL;
  }
  struct arena *arena;
  unsigned held = SHIM_FILTER | SHIM_NAMESPACES | (plan->no_internet ? SHIM_EMPTY_NETWORK : 0);
  struct sandbox *s = sandbox_of_words(held, &arena);
  s->words = sandbox_bwrap_words(arena, bwrap, plan, cwd);
  return s;
}

struct sandbox *sandbox_of_words(unsigned held, struct arena **arena) {
  struct sandbox *s = xcalloc(1, sizeof *s);
  s->reads = s->writes = -1;
  s->held = held;
  *arena = &s->arena;
  return s;
}

void sandbox_set_words(struct sandbox *s, const char *const *words, const char *const *envp) {
  s->words = words;
  s->envp = envp;
}

const char *const *sandbox_envp(const struct sandbox *s) {
  return s->envp;
}

const char *const *sandbox_words(const struct sandbox *s) {
  return s->words;
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
