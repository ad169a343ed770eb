/* Keeps all processes of the program: where their shim is, which children are not ours, and what a
 * lost shim leaves behind. */
#include "os/process_internal.h"

#include "base/log.h"
#include "os/fs.h"
#include "os/sandbox_kept.h"
#include "os/standby.h"
#include "shim/protocol.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool table_exists; /* children belong to the process, so there is only one table */

/* --- orphans of a lost shim --- */

struct sweep_pass {
  const struct process_table *table;
  size_t found;
};

static bool is_known_child(const struct process_table *t, pid_t pid) {
  LIST_EACH(struct process, p, in_table, &t->processes)
    if (p->shim == pid)
      return true;
  LIST_EACH(struct standby, s, in_table, &t->standbys)
    if (s->shim == pid)
      return true;
  for (size_t i = 0; i < t->inherited_count; i++)
    if (t->inherited[i] == pid)
      return true;
  return false;
}

static void sweep_child(void *ctx, pid_t pid) {
  struct sweep_pass *pass = ctx;
  if (pid <= 1 || is_known_child(pass->table, pid))
    return;
  pass->found++;
  (void)kill(pid, SIGKILL);
  (void)waitpid(pid, NULL, WNOHANG);
}

static bool each_child_of_threads(shim_child_cb each, void *ctx) {
  DIR *threads = opendir("/proc/self/task");
  bool ok = threads != NULL;
  struct dirent *entry;
  while (ok && (entry = readdir(threads)) != NULL) {
    pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
    if (thread > 0 && !shim_children_of_thread(thread, each, ctx))
      ok = kill(thread, 0) != 0; /* a thread that has ended meanwhile is not a failure */
  }
  if (threads != NULL)
    (void)closedir(threads);
  return ok;
}

static bool each_child(shim_child_cb each, void *ctx) {
  return each_child_of_threads(each, ctx) || shim_children_by_scan(each, ctx);
}

/* Looks for orphans. Those of several lost shims cannot be told apart, so all wait for the first
 * look that finds nobody: a child hands us its own children before it can be reaped. */
static void on_sweep(uv_timer_t *timer) {
  struct process_table *t = timer->data;
  struct sweep_pass pass = {.table = t};
  standby_hold_spawns();
  bool looked = each_child(sweep_child, &pass);
  standby_release_spawns();
  if (!looked || pass.found > 0) {
    (void)uv_timer_start(&t->sweep, on_sweep, LIMIT_SWEEP_POLL_MS, 0);
    return;
  }
  LIST_EACH(struct process, p, in_table, &t->processes) /* nothing is freed in here */
    if (p->state == PROCESS_STATE_ORPHANED)
      process_event(p, EVENT_SWEPT);
}

void process_sweep(struct process_table *t) {
  (void)uv_timer_start(&t->sweep, on_sweep, 0, 0);
}

/* --- shims that stopped, or stood by in vain --- */

/* Continues a stopped shim: its program can stop it, and nothing would then end the call. The first
 * time may be a mistake; the second time the shim is killed, and its tree with it. */
static void on_child(uv_signal_t *handle, int number) {
  struct process_table *t = handle->data;
  (void)number;
  standby_reap(t);
  LIST_EACH(struct process, p, in_table, &t->processes) {
    siginfo_t info = {0};
    if (p->shim == 0 || waitid(P_PID, (id_t)p->shim, &info, WSTOPPED | WNOHANG) != 0 ||
        info.si_pid != p->shim)
      continue;
    (void)kill(p->shim, p->continued ? SIGKILL : SIGCONT);
    p->continued = true;
  }
}

/* --- the table --- */

bool process_find_shim(char *path, size_t size, struct err *err) {
  static const char *const places[] = {"segue-shim", "../libexec/segue/segue-shim"};
  char exe[PATH_MAX];
  const char *given = getenv("SEGUE_SHIM");
  if (!fs_own_program(exe, sizeof exe))
    return err_set_errno(err, errno, "cannot read /proc/self/exe (is /proc mounted?)");
  *strrchr(exe, '/') = '\0';
  for (size_t i = 0; i < ARRAY_LEN(places); i++) {
    if (snprintf(path, size, "%s/%s", exe, places[i]) < (int)size && access(path, X_OK) == 0)
      return true;
  }
  if (given != NULL && snprintf(path, size, "%s", given) < (int)size && access(path, X_OK) == 0)
    return true;
  return err_set(err, ERR_NOT_FOUND,
                 "the program segue-shim is missing: it is neither in '%s' nor in its "
                 "../libexec/segue; install it again",
                 exe);
}

static void note_inherited(void *ctx, pid_t pid) {
  struct process_table *t = ctx;
  t->inherited = xrealloc(t->inherited, (t->inherited_count + 1) * sizeof *t->inherited);
  t->inherited[t->inherited_count++] = pid;
}

struct process_table *process_table_new(uv_loop_t *loop, struct err *err) {
  struct process_table *t = xcalloc(1, sizeof *t);
  assert(!table_exists);
  if (!process_find_shim(t->shim_path, sizeof t->shim_path, err))
    goto out;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    (void)err_set_errno(err, errno, "cannot become a subreaper");
    goto out;
  }
  (void)signal(SIGPIPE, SIG_IGN); /* a program that does not read its stdin must not end us */
  (void)signal(SIGCHLD, SIG_DFL); /* if ignored, the kernel would reap behind our back */
  (void)each_child(note_inherited, t);
  group_tidy();
  t->loop = loop;
  (void)uv_timer_init(loop, &t->sweep);
  (void)uv_signal_init(loop, &t->child);
  t->sweep.data = t->child.data = t;
  t->open_handles = 2;
  (void)uv_signal_start(&t->child, on_child, SIGCHLD);
  uv_unref((uv_handle_t *)&t->child); /* it must not keep the loop running */
  t->sandboxes = sandbox_kept_new(t);
  table_exists = true;
  return t;
out:
  free(t);
  return NULL;
}

static void on_table_closed(uv_handle_t *handle) {
  struct process_table *t = handle->data;
  if (--t->open_handles > 0)
    return;
  free(t->inherited);
  free(t);
}

void process_table_free(struct process_table *t) {
  if (t == NULL)
    return;
  assert(t->processes.count == 0);
  table_exists = false;
  sandbox_kept_free(t->sandboxes);
  standby_end_all(t);
  (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
  uv_close((uv_handle_t *)&t->sweep, on_table_closed);
  uv_close((uv_handle_t *)&t->child, on_table_closed);
}

struct sandbox_kept *process_table_sandboxes(const struct process_table *t) {
  return t ? t->sandboxes : NULL;
}

void process_table_forget(struct process_table *t, const char *session) {
  if (t != NULL && t->sandboxes != NULL)
    sandbox_kept_forget(t->sandboxes, session);
}
