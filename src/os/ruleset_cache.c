/* Keeps the rulesets of the last few kinds of calls. */
#include "os/ruleset_cache.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/process_internal.h"
#include "os/warm_shim.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  k->mounts = process_fd_above(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++)
    k->rules[i].reads = -1;
  (void)uv_timer_init(k->loop, &k->timer);
  uv_unref((uv_handle_t *)&k->timer);
  k->timer.data = k;
  return k;
}

static void on_kept_closed(uv_handle_t *handle) {
  free(handle->data);
}

void ruleset_cache_free(struct ruleset_cache *k) {
  if (k == NULL)
    return;
  ruleset_drop_all(k);
  if (k->mounts >= 0)
    (void)close(k->mounts);
  uv_close((uv_handle_t *)&k->timer, on_kept_closed);
}

/* Asks for changed mounts: the kernel reports each change once. */
static bool mounts_changed(struct ruleset_cache *k) {
  struct pollfd fd = {.fd = k->mounts, .events = POLLPRI};
  return k->mounts < 0 || (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLPRI | POLLERR)) != 0);
}

void ruleset_cache_begin(struct ruleset_cache *k) {
  if (mounts_changed(k))
    ruleset_drop_all(k);
}

/* Has a shim take on the rules, for the next call of the session. */
static void ruleset_make_standby(struct ruleset_cache *k, struct ruleset_rules *r) {
  static unsigned number; /* an older one of this session may still be ending */
  char name[96];
  print_into(name, sizeof name, "segue-%s-next-%ld-%u", r->session, (long)getpid(), ++number);
  int writes = sandbox_rules_spare(&r->plan, sandbox_version(), &r->stamps);
  if (writes < 0)
    return;
  r->stands_ms = uv_now(k->loop);
  r->warm_shim =
      warm_shim_new(k->table, r->session, sandbox_plan_held(&r->plan), r->reads, writes, name);
}

static void ruleset_end_standby(struct ruleset_rules *r) {
  warm_shim_free(r->warm_shim);
  r->warm_shim = NULL;
}

static void ruleset_renew_standby(struct ruleset_cache *k, struct ruleset_rules *r) {
  if (r->warm_shim != NULL && uv_now(k->loop) - r->stands_ms >= LIMIT_SANDBOX_KEPT_MS)
    ruleset_end_standby(r);
  if (r->wants_standby)
    ruleset_make_standby(k, r);
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
static struct warm_shim *ruleset_take_standby(struct ruleset_rules *r,
                                              const struct sandbox_wish *wish) {
  struct warm_shim *s = r->warm_shim;
  if (s == NULL || s->state == WARM_SHIM_MAKING || strcmp(r->session, wish->session) != 0)
    return NULL;
  r->warm_shim = NULL;
  bool ready = warm_shim_is_ready(s);
  if (ready && warm_shim_take(s, wish->own))
    return s;
  r->needs_no_standby = ready; /* calls of this kind have something in their folder before */
  warm_shim_free(s);
  return NULL;
}

/* Has one made for the next call of this session, unless another's next call has one. */
static void ruleset_want_standby(struct ruleset_rules *r, const char *session) {
  r->wants_standby = r->warm_shim == NULL && !r->needs_no_standby;
  if (!r->wants_standby || (r->session != NULL && strcmp(r->session, session) == 0))
    return;
  free(r->session);
  r->session = xstrdup(session);
}

int ruleset_cache_find(struct ruleset_cache *k, const struct sandbox_wish *wish,
                       struct sandbox_plan *plan, struct warm_shim **warm_shim) {
  ruleset_cache_begin(k);
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++) {
    struct ruleset_rules *r = &k->rules[i];
    if (r->reads < 0 || !str_eq(buf_view(&r->key), wish->key))
      continue;
    if (!sandbox_stamps_hold(&r->stamps)) {
      ruleset_drop(r);
      return -1;
    }
    *warm_shim = ruleset_take_standby(r, wish);
    ruleset_want_standby(r, wish->session);
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
  size_t n = 0, there = 0;
  while (paths != NULL && paths[n] != NULL)
    n++;
  char **copy = xcalloc(n + 1, sizeof *copy);
  for (size_t i = 0; i < n; i++)
    if (!sandbox_stamps_missed(stamps, paths[i]))
      copy[there++] = xstrdup(paths[i]);
  return copy;
}

void ruleset_cache_put(struct ruleset_cache *k, struct str key, const struct sandbox_plan *plan,
                       int reads, struct sandbox_stamps *taken) {
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
