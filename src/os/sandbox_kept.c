/* Keeps the rulesets of the last few kinds of calls. */
#include "os/sandbox_kept.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/process_internal.h"
#include "os/standby.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kept_rules {
  struct buf key;
  struct sandbox_plan plan; /* only its lists of writes and caches */
  char **writes, **caches;  /* owned, NULL-ended */
  struct sandbox_stamps stamps;
  int reads;               /* -1: this place is free */
  struct standby *standby; /* for the next call of session; or NULL */
  char *session;           /* that asked last; or NULL */
  bool wants_standby, needs_no_standby;
  uint64_t stands_ms; /* since when */
  uint64_t used_ms;
};

struct sandbox_kept {
  struct process_table *table;
  uv_loop_t *loop;
  uv_timer_t timer; /* runs while something is kept; keeps no loop going */
  int mounts;       /* the list of mounts: poll says when it changes; -1: nothing is kept */
  struct kept_rules rules[LIMIT_SANDBOX_KEPT];
};

static void kept_drop_paths(char **paths) {
  for (size_t i = 0; paths[i] != NULL; i++)
    free(paths[i]);
  free(paths);
}

static void kept_drop(struct kept_rules *r) {
  if (r->reads < 0)
    return;
  (void)close(r->reads);
  standby_free(r->standby);
  free(r->session);
  buf_deinit(&r->key);
  kept_drop_paths(r->writes);
  kept_drop_paths(r->caches);
  sandbox_stamps_deinit(&r->stamps);
  *r = (struct kept_rules){.reads = -1};
}

static void kept_drop_all(struct sandbox_kept *k) {
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++)
    kept_drop(&k->rules[i]);
}

struct sandbox_kept *sandbox_kept_new(struct process_table *table) {
  struct sandbox_kept *k = xcalloc(1, sizeof *k);
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

void sandbox_kept_free(struct sandbox_kept *k) {
  if (k == NULL)
    return;
  kept_drop_all(k);
  if (k->mounts >= 0)
    (void)close(k->mounts);
  uv_close((uv_handle_t *)&k->timer, on_kept_closed);
}

/* Asks for changed mounts: the kernel reports each change once. */
static bool mounts_changed(struct sandbox_kept *k) {
  struct pollfd fd = {.fd = k->mounts, .events = POLLPRI};
  return k->mounts < 0 || (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLPRI | POLLERR)) != 0);
}

void sandbox_kept_begin(struct sandbox_kept *k) {
  if (mounts_changed(k))
    kept_drop_all(k);
}

/* Has a shim take on the rules, for the next call of the session. */
static void kept_make_standby(struct sandbox_kept *k, struct kept_rules *r) {
  static unsigned number; /* an older one of this session may still be ending */
  char name[96];
  (void)snprintf(name, sizeof name, "segue-%s-next-%ld-%u", r->session, (long)getpid(), ++number);
  int writes = sandbox_rules_spare(&r->plan, sandbox_version(), &r->stamps);
  if (writes < 0)
    return;
  r->stands_ms = uv_now(k->loop);
  r->standby =
      standby_new(k->table, r->session, sandbox_plan_held(&r->plan), r->reads, writes, name);
}

static void kept_end_standby(struct kept_rules *r) {
  standby_free(r->standby);
  r->standby = NULL;
}

static void kept_renew_standby(struct sandbox_kept *k, struct kept_rules *r) {
  if (r->standby != NULL && uv_now(k->loop) - r->stands_ms >= LIMIT_SANDBOX_KEPT_MS)
    kept_end_standby(r);
  if (r->wants_standby)
    kept_make_standby(k, r);
  r->wants_standby = false;
}

/* Makes what the next calls need, and lets go of what is old. */
static void on_kept_timer(uv_timer_t *timer) {
  struct sandbox_kept *k = timer->data;
  uint64_t now_ms = uv_now(k->loop), left = 0;
  sandbox_kept_begin(k);
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++) {
    if (k->rules[i].reads >= 0 && now_ms - k->rules[i].used_ms >= LIMIT_SANDBOX_KEPT_MS)
      kept_drop(&k->rules[i]);
    left += k->rules[i].reads >= 0;
    if (k->rules[i].reads >= 0)
      kept_renew_standby(k, &k->rules[i]);
  }
  if (left > 0)
    (void)uv_timer_start(&k->timer, on_kept_timer, LIMIT_SANDBOX_KEPT_MS, 0);
}

/* Notes a use. What the next call needs is made at the loop's next turn: this call is started then,
 * and its program runs meanwhile. */
static void kept_used(struct sandbox_kept *k, struct kept_rules *r) {
  r->used_ms = uv_now(k->loop);
  if (r->wants_standby || !uv_is_active((uv_handle_t *)&k->timer))
    (void)uv_timer_start(&k->timer, on_kept_timer, 0, 0);
}

/* Returns the shim that stands by for this session, if it is still of use. */
static struct standby *kept_take_standby(struct kept_rules *r, const struct sandbox_wish *wish) {
  struct standby *s = r->standby;
  if (s == NULL || s->state == STANDBY_MAKING || strcmp(r->session, wish->session) != 0)
    return NULL;
  r->standby = NULL;
  bool ready = standby_is_ready(s);
  if (ready && standby_take(s, wish->own))
    return s;
  r->needs_no_standby = ready; /* calls of this kind have something in their folder before */
  standby_free(s);
  return NULL;
}

/* Has one made for the next call of this session, unless another's next call has one. */
static void kept_want_standby(struct kept_rules *r, const char *session) {
  r->wants_standby = r->standby == NULL && !r->needs_no_standby;
  if (!r->wants_standby || (r->session != NULL && strcmp(r->session, session) == 0))
    return;
  free(r->session);
  r->session = xstrdup(session);
}

int sandbox_kept_find(struct sandbox_kept *k, const struct sandbox_wish *wish,
                      struct sandbox_plan *plan, struct standby **standby) {
  sandbox_kept_begin(k);
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++) {
    struct kept_rules *r = &k->rules[i];
    if (r->reads < 0 || !str_eq(buf_view(&r->key), wish->key))
      continue;
    if (!sandbox_stamps_hold(&r->stamps)) {
      kept_drop(r);
      return -1;
    }
    *standby = kept_take_standby(r, wish);
    kept_want_standby(r, wish->session);
    kept_used(k, r);
    *plan = r->plan;
    return r->reads;
  }
  return -1;
}

void sandbox_kept_forget(struct sandbox_kept *k, const char *session) {
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT; i++) {
    struct kept_rules *r = &k->rules[i];
    if (r->session == NULL || strcmp(r->session, session) != 0)
      continue;
    kept_end_standby(r);
    r->wants_standby = false;
  }
}

/* Finds a free place, or the least recently used one. */
static struct kept_rules *kept_place(struct sandbox_kept *k) {
  struct kept_rules *best = &k->rules[0];
  for (size_t i = 0; i < LIMIT_SANDBOX_KEPT && best->reads >= 0; i++)
    if (k->rules[i].reads < 0 || k->rules[i].used_ms < best->used_ms)
      best = &k->rules[i];
  return best;
}

/* Copies the paths that existed: if another appears, the stamps no longer hold. */
static char **kept_copy(const char *const *paths, const struct sandbox_stamps *stamps) {
  size_t n = 0, there = 0;
  while (paths != NULL && paths[n] != NULL)
    n++;
  char **copy = xcalloc(n + 1, sizeof *copy);
  for (size_t i = 0; i < n; i++)
    if (!sandbox_stamps_missed(stamps, paths[i]))
      copy[there++] = xstrdup(paths[i]);
  return copy;
}

void sandbox_kept_put(struct sandbox_kept *k, struct str key, const struct sandbox_plan *plan,
                      int reads, struct sandbox_stamps *taken) {
  int fd = taken->unsure || mounts_changed(k) ? -1 : fcntl(reads, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM);
  if (fd < 0)
    return;
  struct kept_rules *r = kept_place(k);
  kept_drop(r);
  *r = (struct kept_rules){.reads = fd,
                           .plan = *plan,
                           .writes = kept_copy(plan->writes, taken),
                           .caches = kept_copy(plan->caches, taken)};
  sandbox_stamps_settle(taken);
  r->stamps = *taken;
  buf_append(&r->key, key.p, key.n);
  r->plan.reads = r->plan.hides = r->plan.wholes = r->plan.kept = NULL;
  r->plan.own = NULL;
  r->plan.caches = (const char *const *)r->caches;
  r->plan.writes = (const char *const *)r->writes;
  *taken = (struct sandbox_stamps){0};
  kept_used(k, r);
}
