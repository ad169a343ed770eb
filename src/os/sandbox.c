/* Makes sandboxes: two rulesets, and what the shim needs to know about them. */
#include "os/sandbox.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/fs.h"
#include "os/landlock.h"
#include "os/loop.h"
#include "os/process_internal.h"
#include "os/sandbox_internal.h"
#include "os/sandbox_rules.h"
#include "shim/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* --- a Linux system's folders and devices, for any user --- */

const char *const sandbox_folders[] = {
    /* programs, libraries and their settings */
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store",
    "/gnu/store", "/run/current-system", "/var/lib/ca-certificates", "/var/cache/fontconfig",
    "/snap/core22",
    /* what the machine says of itself */
    "/proc", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm",
    /* how names are looked up */
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf", NULL};

const char *const sandbox_devices[] = {
    "/dev/null",       "/dev/zero", "/dev/full", "/dev/random",    "/dev/urandom",
    "/dev/tty",        "/dev/ptmx", "/dev/pts",  "/dev/shm",       "/dev/kvm",
    "/dev/fuse",       "/dev/dri",  "/dev/kfd",  "/dev/nvidiactl", "/dev/nvidia0",
    "/dev/nvidia-uvm", NULL};

/* --- what this kernel holds --- */

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

static unsigned sandbox_plan_held(const struct sandbox_plan *plan) {
  unsigned held = SHIM_RULES | SHIM_FILTER;
  held |= plan->no_internet ? SHIM_NO_INTERNET : 0;
  held |= plan->no_sockets ? SHIM_NO_SOCKETS : 0;
  held |= plan->namespaces ? SHIM_NAMESPACES : 0;
  return held;
}

/* --- rulesets that are kept for the next calls of a few kinds ---
 *
 * A ruleset allows what existed when it was made. So it is used again only while each listed folder
 * has the same times and each named path the same inode, and nothing was mounted since: then a new
 * one would be the same. If anything changed less than 50 ms before, the ruleset is not kept,
 * because file times are no finer than a clock tick.
 *
 * The ruleset of what may be written contains the call's own folder and cannot drop it, so it is
 * never used twice. Once a session has asked for the same again, a shim with rules of its own, made
 * from the files that the stamps name, stands by for its next call (process_internal.h). It is
 * right as long as the stamps are.
 *
 * A ruleset pins the files that it names, even removed ones, so kept rulesets are dropped
 * LIMIT_SANDBOX_KEPT_MS after their last use. */

struct ruleset_rules {
  struct buf key;
  struct sandbox_plan plan; /* only its lists of writes and caches */
  char **writes, **caches;  /* owned, NULL-ended */
  struct sandbox_stamps stamps;
  int reads;                   /* -1: this place is free */
  struct warm_shim *warm_shim; /* for the next call of session; or NULL */
  char *session;               /* that asked last; or NULL */
  bool wants_standby, needs_no_standby;
  uint64_t stands_ms; /* since when */
  uint64_t used_ms;
};

struct ruleset_cache {
  struct process_table *table;
  uv_loop_t *loop;
  uv_timer_t timer; /* runs while something is kept; keeps no loop going */
  int mounts;       /* the list of mounts: poll says when it changes; -1: nothing is kept */
  struct ruleset_rules rules[LIMIT_SANDBOX_KEPT];
};

static void ruleset_drop_paths(char **paths) {
  for (size_t i = 0; paths[i] != NULL; i++)
    free(paths[i]);
  free(paths);
}

static void ruleset_drop(struct ruleset_rules *r) {
  if (r->reads < 0)
    return;
  (void)close(r->reads);
  warm_shim_free(r->warm_shim);
  free(r->session);
  buf_deinit(&r->key);
  ruleset_drop_paths(r->writes);
  ruleset_drop_paths(r->caches);
  sandbox_stamps_deinit(&r->stamps);
  *r = (struct ruleset_rules){.reads = -1};
}

static void ruleset_drop_all(struct ruleset_cache *k) {
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++)
    ruleset_drop(&k->rules[i]);
}

struct ruleset_cache *ruleset_cache_new(struct process_table *table) {
  struct ruleset_cache *k = xcalloc(1, sizeof *k);
  k->table = table;
  k->loop = table->loop;
  k->mounts = fs_above_shim(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++)
    k->rules[i].reads = -1;
  (void)uv_timer_init(k->loop, &k->timer);
  uv_unref((uv_handle_t *)&k->timer);
  k->timer.data = k;
  return k;
}

void ruleset_cache_free(struct ruleset_cache *k) {
  if (k == NULL)
    return;
  ruleset_drop_all(k);
  fs_close(k->mounts);
  uv_close((uv_handle_t *)&k->timer, loop_free_data);
}

/* Asks for changed mounts: the kernel reports each change once. */
static bool mounts_changed(struct ruleset_cache *k) {
  struct pollfd fd = {.fd = k->mounts, .events = POLLPRI};
  return k->mounts < 0 || (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLPRI | POLLERR)) != 0);
}

/* Is called before rules are made, so that a mount meanwhile is seen. */
static void ruleset_cache_begin(struct ruleset_cache *k) {
  if (mounts_changed(k))
    ruleset_drop_all(k);
}

static void ruleset_end_standby(struct ruleset_rules *r) {
  warm_shim_free(r->warm_shim);
  r->warm_shim = NULL;
}

static void ruleset_renew_standby(struct ruleset_cache *k, struct ruleset_rules *r) {
  if (r->warm_shim != NULL && uv_now(k->loop) - r->stands_ms >= LIMIT_SANDBOX_KEPT_MS)
    ruleset_end_standby(r);
  if (r->wants_standby) {
    /* Has a shim take on the rules, for the next call of the session. */
    static unsigned number; /* an older one of this session may still be ending */
    char name[96];
    print_into(name, sizeof name, "segue-%s-next-%ld-%u", r->session, (long)getpid(), ++number);
    int writes = sandbox_rules_spare(&r->plan, &r->stamps);
    if (writes >= 0) {
      r->stands_ms = uv_now(k->loop);
      r->warm_shim =
          warm_shim_new(k->table, r->session, sandbox_plan_held(&r->plan), r->reads, writes, name);
    }
  }
  r->wants_standby = false;
}

/* Makes what the next calls need, and lets go of what is old. */
static void on_kept_timer(uv_timer_t *timer) {
  struct ruleset_cache *k = timer->data;
  uint64_t now_ms = uv_now(k->loop), left = 0;
  ruleset_cache_begin(k);
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++) {
    if (k->rules[i].reads >= 0 && now_ms - k->rules[i].used_ms >= LIMIT_SANDBOX_KEPT_MS)
      ruleset_drop(&k->rules[i]);
    left += k->rules[i].reads >= 0;
    if (k->rules[i].reads >= 0)
      ruleset_renew_standby(k, &k->rules[i]);
  }
  if (left > 0)
    (void)uv_timer_start(&k->timer, on_kept_timer, LIMIT_SANDBOX_KEPT_MS, 0);
}

/* Notes a use. What the next call needs is made at the loop's next turn: this call is started then,
 * and its program runs meanwhile. */
static void ruleset_used(struct ruleset_cache *k, struct ruleset_rules *r) {
  r->used_ms = uv_now(k->loop);
  if (r->wants_standby || !uv_is_active((uv_handle_t *)&k->timer))
    (void)uv_timer_start(&k->timer, on_kept_timer, 0, 0);
}

/* Returns the shim that stands by for this session, if it is still of use. */
static struct warm_shim *ruleset_take_standby(struct ruleset_rules *r, const char *own,
                                              const char *session) {
  struct warm_shim *s = r->warm_shim;
  if (s == NULL || s->state == WARM_SHIM_MAKING || strcmp(r->session, session) != 0)
    return NULL;
  r->warm_shim = NULL;
  bool ready = warm_shim_is_ready(s);
  if (ready && warm_shim_take(s, own))
    return s;
  r->needs_no_standby = ready; /* calls of this kind have something in their folder before */
  warm_shim_free(s);
  return NULL;
}

/* Returns the ruleset of reads, borrowed, and `plan` with what may be written, or -1; the shim is
 * the caller's, or NULL. */
static int ruleset_cache_find(struct ruleset_cache *k, struct str key, const char *own,
                              const char *session, struct sandbox_plan *plan,
                              struct warm_shim **warm_shim) {
  ruleset_cache_begin(k);
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++) {
    struct ruleset_rules *r = &k->rules[i];
    if (r->reads < 0 || !str_eq(buf_view(&r->key), key))
      continue;
    if (!sandbox_stamps_hold(&r->stamps)) {
      ruleset_drop(r);
      return -1;
    }
    *warm_shim = ruleset_take_standby(r, own, session);
    /* Has one made for the next call of this session, unless another's next call has one. */
    r->wants_standby = r->warm_shim == NULL && !r->needs_no_standby;
    if (r->wants_standby && !(r->session != NULL && strcmp(r->session, session) == 0)) {
      free(r->session);
      r->session = xstrdup(session);
    }
    ruleset_used(k, r);
    *plan = r->plan;
    return r->reads;
  }
  return -1;
}

void ruleset_cache_forget(struct ruleset_cache *k, const char *session) {
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++) {
    struct ruleset_rules *r = &k->rules[i];
    if (r->session == NULL || strcmp(r->session, session) != 0)
      continue;
    ruleset_end_standby(r);
    r->wants_standby = false;
  }
}

/* Copies the paths that existed: if another appears, the stamps no longer hold. */
static char **ruleset_copy(const char *const *paths, const struct sandbox_stamps *stamps) {
  size_t n = str_count(paths), there = 0;
  char **copy = xcalloc(n + 1, sizeof *copy);
  for (size_t i = 0; i < n; i++)
    if (!sandbox_stamps_missed(stamps, paths[i]))
      copy[there++] = xstrdup(paths[i]);
  return copy;
}

/* Keeps copies, and takes the stamps. */
static void ruleset_cache_put(struct ruleset_cache *k, struct str key,
                              const struct sandbox_plan *plan, int reads,
                              struct sandbox_stamps *taken) {
  int fd = taken->unsure || mounts_changed(k) ? -1 : fcntl(reads, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM);
  if (fd < 0)
    return;
  struct ruleset_rules *r = &k->rules[0]; /* a free place, or the least recently used one */
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT && r->reads >= 0; i++)
    if (k->rules[i].reads < 0 || k->rules[i].used_ms < r->used_ms)
      r = &k->rules[i];
  ruleset_drop(r);
  *r = (struct ruleset_rules){.reads = fd,
                              .plan = *plan,
                              .writes = ruleset_copy(plan->writes, taken),
                              .caches = ruleset_copy(plan->caches, taken)};
  sandbox_stamps_settle(taken);
  r->stamps = *taken;
  buf_append(&r->key, key.p, key.n);
  r->plan.reads = r->plan.hides = r->plan.wholes = r->plan.kept = NULL;
  r->plan.own = NULL;
  r->plan.caches = (const char *const *)r->caches;
  r->plan.writes = (const char *const *)r->writes;
  *taken = (struct sandbox_stamps){0};
  ruleset_used(k, r);
}

/* --- a sandbox --- */

struct sandbox *sandbox_without_rules(unsigned held) {
  struct sandbox *s = xcalloc(1, sizeof *s);
  s->reads = s->writes = -1;
  s->held = held;
  return s;
}

/* Makes a sandbox. Takes over the ruleset of reads, which is -1 with errno set if there is none. */
static struct sandbox *sandbox_of(int owned_reads, const struct sandbox_plan *plan,
                                  struct err *err) {
  struct sandbox *s = sandbox_without_rules(sandbox_plan_held(plan));
  s->reads = owned_reads;
  s->writes = s->reads >= 0 ? sandbox_rules_writes(plan) : -1;
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
  int reads = sandbox_rules_reads(plan, kept ? &stamps : NULL);
  struct sandbox *s = sandbox_of(reads, plan, err);
  if (s != NULL && kept != NULL && stamps.n > 0)
    ruleset_cache_put(kept, key, plan, s->reads, &stamps);
  sandbox_stamps_deinit(&stamps);
  return s;
}

struct sandbox *sandbox_again(struct ruleset_cache *kept, struct str key, const char *own,
                              const char *session) {
  struct sandbox_plan plan;
  struct warm_shim *warm_shim = NULL;
  struct err err;
  int reads = kept ? ruleset_cache_find(kept, key, own, session, &plan, &warm_shim) : -1;
  if (warm_shim != NULL) {
    struct sandbox *s = sandbox_without_rules(sandbox_plan_held(&plan));
    s->warm_shim = warm_shim;
    return s;
  }
  if (reads < 0)
    return NULL;
  plan.own = own;
  return sandbox_of(fcntl(reads, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM), &plan, &err);
}

void sandbox_free(struct sandbox *s) {
  if (s == NULL)
    return;
  fs_close(s->reads);
  fs_close(s->writes);
  warm_shim_free(s->warm_shim);
  arena_deinit(&s->arena);
  free(s);
}
