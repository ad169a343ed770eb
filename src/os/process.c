/* Decides what happens to a running program, and changes its state. */
#include "os/process.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/lease.h"
#include "os/loop.h"
#include "os/orphans.h"
#include "os/process_internal.h"
#include "os/sandbox_internal.h"
#include "os/sandbox_rules.h"
#include "os/tmpdir.h"
#include "os/tree_work.h"
#include "shim/protocol.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- limits --- */

unsigned long process_threads_of_user(void) {
  unsigned long count = 0;
  DIR *proc = opendir("/proc");
  for (struct dirent *e; proc != NULL && (e = readdir(proc)) != NULL;) {
    char path[300];
    struct stat st;
    print_into(path, sizeof path, "%s/task", e->d_name);
    if (e->d_name[0] >= '0' && e->d_name[0] <= '9' && fstatat(dirfd(proc), path, &st, 0) == 0 &&
        st.st_uid == getuid() && st.st_nlink > 2)
      count += (unsigned long)st.st_nlink - 2; /* a folder has two links more than subfolders */
  }
  if (proc != NULL)
    (void)closedir(proc);
  return count;
}

/* --- the environment of a program, from nothing --- */

struct env {
  struct arena *arena;
  const char **entries;
  size_t count;
};

void process_search_path(const char *given, struct buf *out) {
  struct str rest = str_from(given);
  buf_clear(out);
  while (rest.n > 0) {
    const char *colon = memchr(rest.p, ':', rest.n);
    struct str part = {rest.p, colon ? (size_t)(colon - rest.p) : rest.n};
    if (str_starts(part, "/"))
      buf_printf(out, "%s" STR_FMT, out->n > 0 ? ":" : "", STR_ARG(part));
    rest = colon ? (struct str){colon + 1, rest.n - part.n - 1} : (struct str){NULL, 0};
  }
  if (out->n == 0)
    buf_puts(out, "/usr/local/bin:/usr/bin:/bin");
}

static void env_put(struct env *env, const char *name, size_t name_n, const char *value) {
  buf_auto_t path = {0};
  if (str_eq_c((struct str){name, name_n}, "PATH")) {
    process_search_path(value, &path);
    value = buf_c(&path);
  }
  size_t value_n = strlen(value);
  char *entry = arena_alloc(env->arena, name_n + 1 + value_n + 1);
  memcpy(entry, name, name_n);
  entry[name_n] = '=';
  memcpy(entry + name_n + 1, value, value_n + 1);
  size_t i = 0;
  while (i < env->count && strncmp(env->entries[i], entry, name_n + 1) != 0)
    i++;
  env->entries[i] = entry;
  env->count = i < env->count ? env->count : env->count + 1;
}

static void env_copy(struct env *env, const char *name, const char *otherwise) {
  const char *value = getenv(name);
  if (value == NULL)
    value = otherwise;
  if (value != NULL)
    env_put(env, name, strlen(name), value);
}

/* Returns true for variables meant for us, not for a child: our settings, the service manager's
 * sockets. */
static bool env_is_ours(const char *name) {
  static const char *const ours[] = {
      "NOTIFY_SOCKET", "LISTEN_PID",   "LISTEN_FDS", "LISTEN_FDNAMES",
      "WATCHDOG_USEC", "WATCHDOG_PID", NULL};
  return str_is_one(str_from(name), ours) || strncmp(name, LIT("SEGUE_")) == 0;
}

const char *const *process_env_build(struct arena *a, const char *tmpdir,
                                     const char *const *extra_names, const char *const *assignments,
                                     struct err *err) {
  static const char *const base[] = {"HOME", "USER",   "LOGNAME",  "SHELL",
                                     "LANG", "LC_ALL", "LC_CTYPE", "TZ"};
  size_t extra_count = str_count(extra_names), assignment_count = str_count(assignments);
  struct env env = {.arena = a};
  env.entries =
      arena_array(a, ARRAY_LEN(base) + 3 + extra_count + assignment_count + 1, sizeof *env.entries);
  env_copy(&env, "PATH", "");
  for (size_t i = 0; i < ARRAY_LEN(base); i++)
    env_copy(&env, base[i], NULL);
  env_put(&env, "TERM", strlen("TERM"), "dumb");
  if (tmpdir != NULL)
    env_put(&env, "TMPDIR", strlen("TMPDIR"), tmpdir);
  for (size_t i = 0; i < extra_count; i++) {
    if (extra_names[i][0] == '\0' || strchr(extra_names[i], '=') != NULL) {
      err_set(err, ERR_INVALID, "'%s' is not the name of an environment variable", extra_names[i]);
      return NULL;
    }
    if (!env_is_ours(extra_names[i]))
      env_copy(&env, extra_names[i], NULL);
  }
  for (size_t i = 0; i < assignment_count; i++) {
    const char *equals = strchr(assignments[i], '=');
    if (equals == NULL || equals == assignments[i]) {
      err_set(err, ERR_INVALID, "'%s' is not an assignment: write NAME=value", assignments[i]);
      return NULL;
    }
    env_put(&env, assignments[i], (size_t)(equals - assignments[i]), equals + 1);
  }
  return env.entries;
}

/* --- all processes of the program ---
 *
 * Where their shim is, which children are not ours, and what a lost shim leaves behind. */

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
  LIST_EACH(struct warm_shim, s, in_table, &t->standbys)
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

static bool each_child(shim_child_cb each, void *ctx) {
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
  return ok || shim_children_by_scan(each, ctx);
}

/* Held from the spawn of a shim until it is known whose it is. */
static pthread_mutex_t spawning = PTHREAD_MUTEX_INITIALIZER;

static void process_event(struct process *p, enum event event);

/* Looks for orphans. Those of several lost shims cannot be told apart, so all wait for the first
 * look that finds nobody: a child hands us its own children before it can be reaped. */
static void on_sweep(uv_timer_t *timer) {
  struct process_table *t = timer->data;
  struct sweep_pass pass = {.table = t};
  (void)pthread_mutex_lock(&spawning);
  bool looked = each_child(sweep_child, &pass);
  (void)pthread_mutex_unlock(&spawning);
  if (!looked || pass.found > 0) {
    (void)uv_timer_start(&t->sweep, on_sweep, LIMIT_SWEEP_POLL_MS, 0);
    return;
  }
  LIST_EACH(struct process, p, in_table, &t->processes) /* nothing is freed in here */
    if (p->state == PROCESS_STATE_ORPHANED)
      process_event(p, EVENT_SWEPT);
}

/* Looks for orphans from the next iteration of the loop until there are none: EVENT_SWEPT for each
 * process in ORPHANED. */
static void process_sweep(struct process_table *t) {
  (void)uv_timer_start(&t->sweep, on_sweep, 0, 0);
}

/* --- shims that stand by: their end --- */

/* Frees all but what the process takes over: its shim, group and descriptors. */
static void warm_shim_hand_over(struct warm_shim *s) {
  if (s->table != NULL)
    list_remove(&s->table->standbys, &s->in_table);
  free(s->session);
  free(s->folder);
  free(s->shim_path);
  free(s);
}

/* Frees it if its shim has exited. What the shim left, if it was killed, is swept up. */
static void warm_shim_reap_one(struct warm_shim *s, int how) {
  int status = 0;
  if (s->shim > 0 && waitpid(s->shim, &status, how) == 0)
    return;
  if (status != 0 && s->table != NULL)
    process_sweep(s->table);
  if (s->shim > 0)
    (void)rmdir(s->folder); /* if the shim could not */
  process_close_fd(&s->pidfd);
  group_free(s->group);
  warm_shim_hand_over(s);
}

/* Waits for its shim, which needs a moment. */
static void warm_shim_end_now(struct warm_shim *s) {
  struct pollfd exited = {.fd = s->pidfd, .events = POLLIN};
  int rc = 0;
  do
    rc = poll(&exited, 1, s->pidfd >= 0 ? LIMIT_STANDBY_END_MS : 0);
  while (rc < 0 && errno == EINTR);
  if (s->shim > 0 && rc != 1)
    (void)kill(s->shim, SIGKILL);
  warm_shim_reap_one(s, 0);
}

void warm_shim_free(struct warm_shim *s) {
  if (s == NULL)
    return;
  if (s->state == WARM_SHIM_MAKING) {
    s->state = WARM_SHIM_UNWANTED;
    return;
  }
  s->state = WARM_SHIM_ENDING;
  process_close_fd(&s->control);
  process_close_fd(&s->status);
  if (s->shim > 0)
    (void)kill(s->shim, SIGCONT); /* a stopped one could not end */
  if (s->table == NULL)
    warm_shim_end_now(s);
  else
    warm_shim_reap_one(s, WNOHANG);
}

/* --- shims that stopped, or stood by in vain --- */

/* Continues a stopped shim: its program can stop it, and nothing would then end the call. The first
 * time may be a mistake; the second time the shim is killed, and its tree with it. */
static void on_child(uv_signal_t *handle, int number) {
  struct process_table *t = handle->data;
  (void)number;
  LIST_EACH(struct warm_shim, s, in_table, &t->standbys)
    if (s->state == WARM_SHIM_ENDING)
      warm_shim_reap_one(s, WNOHANG);
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
    err_set_errno(err, errno, "cannot become a subreaper");
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
  LIST_EACH(struct warm_shim, s, in_table, &t->standbys) {
    if (s->state == WARM_SHIM_ENDING) {
      warm_shim_end_now(s);
    } else { /* it ends once it is made */
      list_remove(&t->standbys, &s->in_table);
      s->table = NULL;
    }
  }
  (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
  uv_close((uv_handle_t *)&t->sweep, on_table_closed);
  uv_close((uv_handle_t *)&t->child, on_table_closed);
}

/* --- what comes through the pipes, as events --- */

/* A pipe holds at most so many pieces, whatever its owner set. */
enum { DRAIN_PIECE_COUNT = 16 };

static void read_status(struct channel *c);

static const struct {
  const char *name;
  unsigned next; /* set of states, a bit each */
} states[] = {
#define PS(name)           (1u << PROCESS_STATE_##name)
#define PS_ROW(name, next) {#name, next},
    PROCESS_STATES(PS_ROW)
#undef PS_ROW
#undef PS
};

static void process_set_state(struct process *p, enum process_state to) {
  if ((states[p->state].next & (1u << to)) == 0)
    BUG("process: %s may not become %s", states[p->state].name, states[to].name);
  p->state = to;
}

/* One of its handles is closed; after the last one, on_end is called and the process is freed. */
static void process_handle_closed(struct process *p) {
  assert(p->open_handles > 0);
  if (--p->open_handles == 0) {
    process_set_state(p, PROCESS_STATE_ENDED);
    list_remove(&p->table->processes, &p->in_table);
    if (p->result.duration_ms == 0)
      p->result.duration_ms = clock_mono_ms() - p->start_ms;
    p->result.out = head_tail_finish(&p->out);
    p->result.err = head_tail_finish(&p->err);
    p->result.memory_reached = p->group != NULL && group_memory_reached(p->group);
    p->on_end(p->ctx, &p->result);
    buf_deinit(&p->result.out);
    buf_deinit(&p->result.err);
    buf_deinit(&p->queue);
    group_free(p->group);
    free(p);
  }
}

static void on_poll_closed(uv_handle_t *handle) {
  struct channel *c = handle->data;
  process_handle_closed(c->process);
}

static void process_channel_close(struct channel *c) {
  if (c->fd < 0)
    return;
  uv_close((uv_handle_t *)&c->poll, on_poll_closed); /* stops watching at once ... */
  process_close_fd(&c->fd);                          /* ... so this is safe, and stdin needs it */
}

/* --- output --- */

/* Reads one piece. Returns false if nothing is there now, or it has ended (then the channel is
 * closed). */
static bool read_output(struct channel *c) {
  struct process *p = c->process;
  char *piece = p->table->piece;
  bool is_out = c == &p->channels[CHANNEL_OUT];
  ssize_t n = read(c->fd, piece, LIMIT_PIPE_PIECE_BYTES);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n <= 0) {
    process_channel_close(c);
    return false;
  }
  p->output_ms = clock_mono_ms();
  p->result.started = true; /* in case the shim dies before it can say so */
  if (!p->keep_nothing)
    head_tail_append(is_out ? &p->out : &p->err, (struct str){piece, (size_t)n});
  if (p->on_output != NULL)
    p->on_output(p->ctx, is_out ? 1 : 2, (struct str){piece, (size_t)n});
  return true;
}

static void on_output_ready(uv_poll_t *poll, int status, int events) {
  struct channel *c = poll->data;
  (void)events;
  if (!read_output(c) && status < 0)
    process_channel_close(c);
  if (c->fd < 0)
    process_event(c->process, EVENT_OUTPUT_END);
}

/* --- input --- */

/* Writes at most one piece of stdin, so that a fast reader cannot hold us up; true when all is
 * written. A reader that left is not an error. */
static bool process_write_input(struct process *p, int fd, bool *gone) {
  bool queued = p->stdin_n == 0;
  const char *from = queued ? p->queue.p + p->queue_from : p->stdin_bytes;
  size_t left = queued ? p->queue.n - p->queue_from : p->stdin_n;
  if (left == 0)
    return true;
  ssize_t n = write(fd, from, left < LIMIT_PIPE_PIECE_BYTES ? left : LIMIT_PIPE_PIECE_BYTES);
  if (n < 0) {
    *gone = errno != EAGAIN && errno != EINTR;
    return false;
  }
  if (queued) {
    p->queue_from += (size_t)n;
    if (p->queue_from == p->queue.n) {
      buf_clear(&p->queue);
      p->queue_from = 0;
    }
  } else {
    p->stdin_bytes += n;
    p->stdin_n -= (size_t)n;
  }
  return p->stdin_n == 0 && p->queue.n == 0;
}

static void on_input_ready(uv_poll_t *poll, int status, int events) {
  struct channel *c = poll->data;
  struct process *p = c->process;
  bool gone = status < 0;
  (void)events;
  bool written = !gone && process_write_input(p, c->fd, &gone);
  if (gone || (written && !p->stdin_open))
    process_channel_close(c);
  else if (written)
    (void)uv_poll_stop(poll); /* until process_write has more */
}

bool process_write(struct process *p, struct str bytes) {
  struct channel *c = &p->channels[CHANNEL_IN];
  if (c->fd < 0 || !p->stdin_open || p->queue.n - p->queue_from + bytes.n > LIMIT_STDIN_QUEUE_BYTES)
    return false;
  if (p->queue_from > 0) {
    memmove(p->queue.p, p->queue.p + p->queue_from, p->queue.n - p->queue_from);
    p->queue.n -= p->queue_from;
    p->queue_from = 0;
  }
  buf_str(&p->queue, bytes);
  return uv_poll_start(&c->poll, UV_WRITABLE, on_input_ready) == 0;
}

void process_close_stdin(struct process *p) {
  struct channel *c = &p->channels[CHANNEL_IN];
  p->stdin_open = false;
  if (c->fd >= 0 && p->stdin_n == 0 && p->queue.n == 0)
    process_channel_close(c);
}

/* --- the shim --- */

/* Reaps the shim. Until this waitid its pid is ours and nobody else's. */
static void reap_shim(struct process *p, int options) {
  siginfo_t info = {0};
  if (p->shim == 0 ||
      (waitid(P_PID, (id_t)p->shim, &info, WEXITED | options) == 0 && info.si_pid == 0))
    return; /* not yet */
  process_channel_close(&p->channels[CHANNEL_EXIT]);
  p->shim = 0;
  if (p->channels[CHANNEL_STATUS].fd >= 0) /* its last words may still be in the pipe */
    read_status(&p->channels[CHANNEL_STATUS]);
  if (info.si_code != CLD_EXITED || info.si_status != 0)
    p->shim_done = false; /* whoever wrote it did not live to finish */
  process_event(p, EVENT_SHIM_GONE);
}

static void read_status(struct channel *c) {
  struct process *p = c->process;
  struct process_result *r = &p->result;
  struct shim_message messages[8];
  ssize_t n = read(c->fd, messages, sizeof messages);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0) {
    process_channel_close(c);
    if (p->channels[CHANNEL_EXIT].fd < 0) /* without a pidfd the pipe reports the shim's death */
      reap_shim(p, 0);                    /* which takes only microseconds now */
    return;
  }
  for (size_t i = 0; i < (size_t)n / sizeof messages[0]; i++) {
    int value = messages[i].value;
    switch (messages[i].type) {
    case SHIM_STARTED:
      r->started = true;
      process_event(p, EVENT_STARTED);
      break;
    case SHIM_EXEC_FAILED:
      r->exec_errno = value;
      process_event(p, EVENT_EXEC_FAILED);
      break;
    case SHIM_UNHELD:
      r->exec_errno = value;
      r->unheld = true;
      process_event(p, EVENT_EXEC_FAILED);
      break;
    case SHIM_FORK_FAILED:
      r->exec_errno = value;
      process_event(p, EVENT_FORK_FAILED);
      break;
    case SHIM_EXITED:
      r->exit_code = WIFEXITED(value) ? WEXITSTATUS(value) : -1;
      r->signal = WIFSIGNALED(value) ? WTERMSIG(value) : 0;
      process_event(p, EVENT_EXITED);
      break;
    case SHIM_DONE:
      p->shim_done = true;
      break;
    default: /* not sent by our shim */
      break;
    }
  }
}

static void on_status_ready(uv_poll_t *poll, int status, int events) {
  (void)status;
  (void)events;
  read_status(poll->data);
}

static void on_shim_exit(uv_poll_t *poll, int status, int events) {
  struct channel *c = poll->data;
  (void)status;
  (void)events;
  reap_shim(c->process, WNOHANG);
}

/* --- handles --- */

/* Begins to watch our end of a pipe, or the shim's pidfd; takes fd. */
static void process_channel_open(struct process *p, enum channel_id id, int fd) {
  static const struct {
    int events;
    uv_poll_cb callback;
  } watched[] = {
      [CHANNEL_IN] = {UV_WRITABLE, on_input_ready},
      [CHANNEL_OUT] = {UV_READABLE, on_output_ready},
      [CHANNEL_ERR] = {UV_READABLE, on_output_ready},
      [CHANNEL_STATUS] = {UV_READABLE, on_status_ready},
      [CHANNEL_EXIT] = {UV_READABLE, on_shim_exit},
  };
  struct channel *c = &p->channels[id];
  c->fd = fd;
  c->poll.data = c;
  int rc = uv_poll_init(p->table->loop, &c->poll, fd); /* makes fd non-blocking */
  if (rc == 0)
    rc = uv_poll_start(&c->poll, watched[id].events, watched[id].callback);
  if (rc != 0) /* no kernel memory is like no memory of our own */
    die("cannot watch a descriptor: %s", uv_strerror(rc));
  p->open_handles++;
}

/* --- names and states --- */

static const char *const end_names[] = {
    [PROCESS_END_EXITED] = "exited",
    [PROCESS_END_EXEC_FAILED] = "exec_failed",
    [PROCESS_END_SPAWN_FAILED] = "spawn_failed",
    [PROCESS_END_WALL_LIMIT] = "wall_limit",
    [PROCESS_END_STALL_LIMIT] = "stall_limit",
    [PROCESS_END_CANCELLED] = "cancelled",
    [PROCESS_END_SHIM_LOST] = "shim_lost",
};

const char *process_end_name(enum process_end why) {
  assert((size_t)why < ARRAY_LEN(end_names));
  return end_names[why];
}

/* --- time --- */

static uint64_t later(uint64_t ms, uint64_t by_ms) {
  return by_ms < UINT64_MAX - ms ? ms + by_ms : UINT64_MAX;
}

/* Says when time is up for a program that closed its stdout but lives on; UINT64_MAX = never. */
static uint64_t closed_due_ms(const struct process *p) {
  bool closed = p->closed_ms != 0 && p->channels[CHANNEL_OUT].fd < 0;
  return closed ? later(p->output_ms, p->closed_ms) : UINT64_MAX;
}

/* Says when EVENT_TIME is due; UINT64_MAX = never. */
static uint64_t due_ms(const struct process *p) {
  uint64_t due = UINT64_MAX;
  switch (p->state) {
  case PROCESS_STATE_STARTING:
  case PROCESS_STATE_RUNNING:
    if (p->wall_ms != 0)
      due = later(p->start_ms, p->wall_ms);
    if (p->stall_ms != 0 && later(p->output_ms, p->stall_ms) < due)
      due = later(p->output_ms, p->stall_ms);
    if (closed_due_ms(p) < due)
      due = closed_due_ms(p);
    break;
  case PROCESS_STATE_EXITED:
  case PROCESS_STATE_ENDING:
  case PROCESS_STATE_ORPHANED:
    due = p->grace_end_ms;
    break;
  case PROCESS_STATE_CLOSING:
  case PROCESS_STATE_ENDED:
    break;
  }
  return due;
}

static void process_on_timer(uv_timer_t *timer) {
  process_event(timer->data, EVENT_TIME);
}

/* Sets the timer to when EVENT_TIME is due in this state. Sets the timer. Output only changes
 * output_ms: the timer notices when it fires, and is set anew. */
static void process_set_timer(struct process *p) {
  uint64_t due = due_ms(p), now = clock_mono_ms();
  if (due == UINT64_MAX) {
    (void)uv_timer_stop(&p->timer);
    return;
  }
  p->timer_ms = due;
  uv_update_time(p->table->loop);
  (void)uv_timer_start(&p->timer, process_on_timer, due > now ? due - now : 1, 0);
}

/* --- its end --- */

static void on_timer_closed(uv_handle_t *handle) {
  process_handle_closed(handle->data);
}

/* --- decisions --- */

static void process_decide(struct process *p, enum process_end why) {
  if (!p->decided)
    p->result.why = why;
  p->decided = true;
}

static void process_end_tree(struct process *p, enum process_end why) {
  process_decide(p, why);
  process_set_state(p, PROCESS_STATE_ENDING);
  p->grace_end_ms = later(clock_mono_ms(), LIMIT_TERM_GRACE_MS + LIMIT_SWEEP_WAIT_MS);
  process_close_fd(&p->control_fd);
  orphan_end_tracer(p->shim);
  process_set_timer(p);
}

/* Closes all pipes. Every writer is dead, so what is left in them is all there will be. */
static void process_close_all(struct process *p) {
  /* A program can fill a pipe only so far. */
  for (enum channel_id id = CHANNEL_OUT; id <= CHANNEL_ERR; id++)
    for (int i = 0; i < DRAIN_PIECE_COUNT && p->channels[id].fd >= 0; i++)
      if (!read_output(&p->channels[id]))
        break;
  process_set_state(p, PROCESS_STATE_CLOSING);
  p->result.stdin_unread = p->stdin_n > 0 || p->queue.n > 0;
  process_close_fd(&p->control_fd);
  for (enum channel_id id = 0; id < CHANNEL_COUNT; id++)
    process_channel_close(&p->channels[id]);
  uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

/* Returns true if it was kept from printing: its whole tree but the shim is stopped (SIGSTOP, a
 * paused container), or we did not run ourselves (the same, of all), so that nobody knows how long
 * it has been silent. A machine that sleeps has no clock meanwhile. */
static bool was_frozen(const struct process *p, uint64_t now) {
  struct tree_work work;
  tree_work_measure(p->shim, &work);
  return now > later(p->timer_ms, LIMIT_FROZEN_MS) ||
         (work.processes > 1 && work.stopped + 1 >= work.processes);
}

static void end_if_late(struct process *p) {
  uint64_t now = clock_mono_ms();
  if (now < due_ms(p)) {
    process_set_timer(p);
    return;
  }
  switch (p->state) {
  case PROCESS_STATE_STARTING:
  case PROCESS_STATE_RUNNING:
    if (p->wall_ms != 0 && now >= later(p->start_ms, p->wall_ms)) {
      process_end_tree(p, PROCESS_END_WALL_LIMIT);
    } else if (now >= closed_due_ms(p)) {
      process_event(p, EVENT_ENOUGH);
    } else if (was_frozen(p, now)) {
      p->output_ms = now;
      process_set_timer(p);
    } else {
      process_end_tree(p, PROCESS_END_STALL_LIMIT);
    }
    break;
  case PROCESS_STATE_EXITED:
    p->result.pipes_held = true;
    process_end_tree(p, PROCESS_END_EXITED);
    break;
  case PROCESS_STATE_ENDING: /* the shim cannot finish: take its place */
    if (p->result.survivors) {
      log_warn("process %d cannot be killed", (int)p->shim);
      process_close_all(p);
      break;
    }
    p->result.survivors = true; /* until a sweep says otherwise */
    orphan_end_tracer(p->shim); /* else it would be the one that reaps the shim */
    (void)kill(p->shim, SIGKILL);
    p->grace_end_ms = later(now, LIMIT_SWEEP_WAIT_MS);
    process_set_timer(p);
    break;
  case PROCESS_STATE_ORPHANED:
    log_warn("a provider left processes that cannot be killed");
    p->result.survivors = true;
    process_close_all(p);
    break;
  case PROCESS_STATE_CLOSING:
  case PROCESS_STATE_ENDED:
    break;
  }
}

static bool is_alive(const struct process *p) {
  return p->state == PROCESS_STATE_STARTING || p->state == PROCESS_STATE_RUNNING ||
         p->state == PROCESS_STATE_EXITED;
}

static bool output_ended(const struct process *p) {
  return p->channels[CHANNEL_OUT].fd < 0 && p->channels[CHANNEL_ERR].fd < 0;
}

static void program_exited(struct process *p) {
  p->result.duration_ms = clock_mono_ms() - p->start_ms;
  process_channel_close(&p->channels[CHANNEL_IN]);
  if (p->state != PROCESS_STATE_RUNNING)
    return; /* it obeyed our TERM */
  process_set_state(p, PROCESS_STATE_EXITED);
  p->grace_end_ms = later(clock_mono_ms(), LIMIT_EXIT_GRACE_MS);
  if (output_ended(p))
    process_end_tree(p, PROCESS_END_EXITED);
  else
    process_set_timer(p);
}

static void process_event(struct process *p, enum event event) {
  switch (event) {
  case EVENT_STARTED:
    if (p->state == PROCESS_STATE_STARTING)
      process_set_state(p, PROCESS_STATE_RUNNING);
    break;
  case EVENT_EXEC_FAILED:
    if (p->state == PROCESS_STATE_STARTING)
      process_end_tree(p, PROCESS_END_EXEC_FAILED);
    break;
  case EVENT_FORK_FAILED:
    if (p->state == PROCESS_STATE_STARTING)
      process_end_tree(p, PROCESS_END_SPAWN_FAILED);
    break;
  case EVENT_EXITED:
    program_exited(p);
    break;
  case EVENT_OUTPUT_END:
    if (p->state == PROCESS_STATE_EXITED && output_ended(p)) {
      process_end_tree(p, PROCESS_END_EXITED);
    } else if (is_alive(p) && p->closed_ms != 0) {
      p->output_ms = clock_mono_ms();
      process_set_timer(p);
    }
    break;
  case EVENT_TIME:
    end_if_late(p);
    break;
  case EVENT_CANCEL:
    if (is_alive(p))
      process_end_tree(p, PROCESS_END_CANCELLED);
    break;
  case EVENT_ENOUGH:
    if (is_alive(p)) {
      p->result.ended_early = p->state != PROCESS_STATE_EXITED;
      process_end_tree(p, PROCESS_END_EXITED);
    }
    break;
  case EVENT_SHIM_GONE:
    if (p->shim_done) {
      p->result.survivors = false;
      process_close_all(p);
      break;
    }
    process_decide(p, PROCESS_END_SHIM_LOST);
    process_set_state(p, PROCESS_STATE_ORPHANED);
    p->grace_end_ms = later(clock_mono_ms(), LIMIT_SWEEP_WAIT_MS);
    process_set_timer(p);
    process_sweep(p->table);
    break;
  case EVENT_SWEPT:
    p->result.survivors = false;
    process_close_all(p);
    break;
  }
}

void process_cancel(struct process *p) {
  process_event(p, EVENT_CANCEL);
}

void process_measure(const struct process *p, struct tree_work *out) {
  tree_work_measure(p->shim, out);
}

void process_note_progress(struct process *p) {
  p->output_ms = clock_mono_ms();
}

void process_finish_early(struct process *p) {
  process_event(p, EVENT_ENOUGH);
}

/* --- a shim and its pipes --- */

enum { PIPE_COUNT = SHIM_FD_STATUS + 1 };
struct pipes {
  int ours[PIPE_COUNT], childs[PIPE_COUNT]; /* indexed by the shim's descriptor */
};

/* Makes the pipes; the child's ends get numbers that no dup2 below can overwrite. A standby has its
 * shim's two already. */
static bool make_pipes(struct pipes *pipes, bool with_stdin, bool with_shims, struct err *err) {
  for (int fd = 0; fd < PIPE_COUNT; fd++)
    pipes->ours[fd] = pipes->childs[fd] = -1;
  for (int fd = with_stdin ? 0 : 1; fd < (with_shims ? PIPE_COUNT : SHIM_FD_CONTROL); fd++) {
    int ends[2] = {-1, -1};
    bool child_reads = fd == 0 || fd == SHIM_FD_CONTROL, made = pipe2(ends, O_CLOEXEC) == 0;
    pipes->ours[fd] = ends[child_reads];
    pipes->childs[fd] = fs_above_shim(ends[!child_reads]);
    if (!made || pipes->childs[fd] < 0)
      return err_set_errno(err, errno, "cannot make a pipe for a program");
  }
  if (with_stdin)
    (void)fcntl(pipes->ours[0], F_SETFL, O_NONBLOCK);
  return true;
}

/* Returns what holds the program, and puts the descriptors where the shim expects them. */
static unsigned give_holds(int fds[SHIM_FD_COUNT], const struct process_spec *spec,
                           const struct group *group) {
  unsigned held = spec->sandbox ? spec->sandbox->held : 0;
  if (group != NULL) {
    held |= SHIM_IN_GROUP | (spec->limits.by_group ? SHIM_LIMITED : 0);
    fds[SHIM_FD_GROUP] = group_fd(group);
  }
  if ((held & SHIM_RULES) != 0) {
    fds[SHIM_FD_READS] = spec->sandbox->reads;
    fds[SHIM_FD_WRITES] = spec->sandbox->writes;
  }
  fds[SHIM_FD_LEASE] = lease_fd();
  return held | (fds[SHIM_FD_LEASE] >= 0 ? SHIM_LEASED : 0);
}

/* Writes the limits that the program is born with. */
static void put_limits(const struct process_limits *limits, char out[SHIM_LIMITS_BYTES]) {
  out[0] = '\0';
  if (!limits->by_group)
    print_into(out, SHIM_LIMITS_BYTES, ":%llu:%lu:%u", (unsigned long long)limits->memory_bytes,
               limits->pids > 0 ? limits->pids + process_threads_of_user() : 0,
               (limits->milli_cpus + 999) / 1000);
}

/* Says how the shim's descriptors come about. Unused numbers are filled, so that no descriptor of
 * ours shows through a hole. */
static int put_fds(posix_spawn_file_actions_t *actions, const int fds[SHIM_FD_COUNT], int cwd) {
  int rc = 0, count = SHIM_FD_COUNT;
  if (cwd >= 0) /* first, because the numbers below may be its own */
    rc = posix_spawn_file_actions_addfchdir_np(actions, cwd);
  while (fds[count - 1] < 0)
    count--;
  for (int fd = 0; fd < count && rc == 0; fd++) {
    if (fds[fd] >= 0)
      rc = posix_spawn_file_actions_adddup2(actions, fds[fd], fd);
    else
      rc = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDONLY, 0);
  }
  return rc != 0 ? rc : posix_spawn_file_actions_addclosefrom_np(actions, count);
}

/* Spawns a shim with these descriptors, by its numbers (-1: /dev/null, or none at the end), which
 * are all above them. Returns an errno; cwd -1: ours. From any thread. */
static int process_spawn(const char *shim_path, const int fds[SHIM_FD_COUNT], int cwd,
                         const char *const *argv, const char *const *envp, pid_t *pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t none, all;
  (void)sigemptyset(&none);
  (void)sigfillset(&all);
  int rc = posix_spawn_file_actions_init(&actions);
  if (rc == 0)
    rc = posix_spawnattr_init(&attr);
  if (rc == 0)
    rc = put_fds(&actions, fds, cwd);
  if (rc != 0) /* ENOMEM only */
    die("out of memory");
  (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETSIGMASK);
  (void)posix_spawnattr_setsigdefault(&attr, &all);
  (void)posix_spawnattr_setsigmask(&attr, &none);
  rc = posix_spawn(pid, shim_path, &actions, &attr, (char *const *)argv, (char *const *)envp);
  (void)posix_spawnattr_destroy(&attr);
  (void)posix_spawn_file_actions_destroy(&actions);
  return rc;
}

static int spawn_shim(const struct process_table *t, const struct process_spec *spec, int cwd,
                      const struct pipes *pipes, const struct group *group, pid_t *pid) {
  const char *const *before = spec->sandbox ? spec->sandbox->words : NULL;
  const char *const *own = spec->sandbox ? spec->sandbox->envp : NULL;
  char words[16 + SHIM_LIMITS_BYTES], limits[SHIM_LIMITS_BYTES];
  int fds[SHIM_FD_COUNT], rc;
  size_t argc = str_count(spec->argv), first = str_count(before);
  for (int fd = 0; fd < SHIM_FD_COUNT; fd++)
    fds[fd] = fd < PIPE_COUNT ? pipes->childs[fd] : -1;
  put_limits(&spec->limits, limits);
  print_into(words, sizeof words, "%u%s", give_holds(fds, spec, group), limits);
  const char **argv = xcalloc(first + argc + 3, sizeof *argv);
  argv[0] = SHIM_PROTOCOL;
  argv[1] = words;
  if (first > 0)
    memcpy(argv + 2, before, first * sizeof *argv);
  memcpy(argv + 2 + first, spec->argv, argc * sizeof *argv);
  FAULT_POINT("spawn_before");
  if (fault_fails("spawn"))
    rc = errno;
  else
    rc = process_spawn(t->shim_path, fds, cwd, argv, own != NULL ? own : spec->envp, pid);
  FAULT_POINT("spawn_after");
  free(argv);
  return rc;
}

/* --- shims that stand by: their start, in a thread --- */

/* Makes what segue and the shim have an end of each: the control socket and the status pipe. */
static bool warm_shim_connect(struct warm_shim *s, int fds[SHIM_FD_COUNT]) {
  int control[2], status[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0)
    return false;
  s->control = control[0];
  fds[SHIM_FD_CONTROL] = fs_above_shim(control[1]);
  if (fds[SHIM_FD_CONTROL] < 0 || pipe2(status, O_CLOEXEC) != 0)
    return false;
  s->status = status[0];
  fds[SHIM_FD_STATUS] = fs_above_shim(status[1]);
  return fds[SHIM_FD_STATUS] >= 0;
}

static bool warm_shim_spawn(struct warm_shim *s, int fds[SHIM_FD_COUNT]) {
  char words[16];
  unsigned held = s->held | SHIM_WAITS;
  const char *const argv[] = {SHIM_PROTOCOL, words, s->folder, NULL};
  const char *const envp[] = {NULL};
  if (s->group != NULL) {
    held |= SHIM_IN_GROUP;
    fds[SHIM_FD_GROUP] = group_fd(s->group);
  }
  fds[SHIM_FD_READS] = s->reads;
  fds[SHIM_FD_WRITES] = s->writes;
  fds[SHIM_FD_LEASE] = lease_fd();
  held |= fds[SHIM_FD_LEASE] >= 0 ? SHIM_LEASED : 0;
  print_into(words, sizeof words, "%u", held);
  (void)pthread_mutex_lock(&spawning);
  if (process_spawn(s->shim_path, fds, -1, argv, envp, &s->shim) == 0)
    s->pidfd = pidfd_open(s->shim, 0);
  (void)pthread_mutex_unlock(&spawning);
  return s->pidfd >= 0;
}

static void warm_shim_work(void *ctx) {
  struct warm_shim *s = ctx;
  struct err ignored;
  int fds[SHIM_FD_COUNT];
  char *folder = tmpdir_make_named(s->folder, &ignored);
  free(s->folder);
  s->folder = folder;
  if (folder == NULL)
    return;
  for (int fd = 0; fd < SHIM_FD_COUNT; fd++)
    fds[fd] = -1;
  s->writes = sandbox_rules_complete(s->writes, folder);
  s->group = group_new(s->session);
  bool ok = s->writes >= 0 && s->reads >= 0 && warm_shim_connect(s, fds) && warm_shim_spawn(s, fds);
  process_close_fd(&fds[SHIM_FD_CONTROL]);
  process_close_fd(&fds[SHIM_FD_STATUS]);
  if (!ok && s->shim == 0)
    (void)rmdir(folder); /* otherwise the shim does so */
}

static void warm_shim_after(void *ctx) {
  struct warm_shim *s = ctx;
  bool wanted = s->state == WARM_SHIM_MAKING;
  process_close_fd(&s->reads);
  process_close_fd(&s->writes);
  s->state = WARM_SHIM_READY;
  if (!wanted)
    warm_shim_free(s);
}

struct warm_shim *warm_shim_new(struct process_table *t, const char *session, unsigned held,
                                int reads, int owned_writes, const char *name) {
  struct warm_shim *s = xcalloc(1, sizeof *s);
  s->table = t;
  s->held = held;
  s->reads = fcntl(reads, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM);
  s->writes = owned_writes;
  s->session = xstrdup(session);
  s->folder = xstrdup(name);
  s->shim_path = xstrdup(t->shim_path);
  s->control = s->status = s->pidfd = -1;
  list_push_front(&t->standbys, &s->in_table);
  loop_do(t->loop, warm_shim_work, warm_shim_after, s);
  return s;
}

/* --- shims that stand by: their use --- */

bool warm_shim_is_ready(const struct warm_shim *s) {
  struct pollfd exited = {.fd = s->pidfd, .events = POLLIN};
  return s->state == WARM_SHIM_READY && s->pidfd >= 0 && poll(&exited, 1, 0) == 0;
}

bool warm_shim_take(struct warm_shim *s, const char *own) {
  return rename(s->folder, own) == 0;
}

enum { WORD_BYTES = 128 * 1024 }; /* the kernel's limit for one (MAX_ARG_STRLEN, linux/binfmts.h) */

/* Appends the words. False: one is too long for any program. */
static bool warm_shim_put_words(struct buf *out, const char *const *words, uint32_t *count) {
  bool ok = true;
  for (*count = 0; words[*count] != NULL; ++*count) {
    size_t n = strlen(words[*count]) + 1;
    buf_append(out, words[*count], n);
    ok = ok && n <= WORD_BYTES;
  }
  return ok;
}

/* Writes the words of argv and of the environment into a file without a name; -1: errno. */
static int warm_shim_words(const struct process_spec *spec, struct shim_program *told) {
  buf_auto_t words = {0};
  bool fit = warm_shim_put_words(&words, spec->argv, &told->argc);
  fit = warm_shim_put_words(&words, spec->envp, &told->envc) && fit;
  size_t pointers = ((size_t)told->argc + told->envc) * sizeof(char *);
  fit = fit && words.n + pointers <= (size_t)sysconf(_SC_ARG_MAX);
  int fd = fit ? memfd_create("words", MFD_CLOEXEC) : -1;
  if (!fit)
    errno = E2BIG;
  if (fd >= 0 && write(fd, words.p, words.n) != (ssize_t)words.n)
    process_close_fd(&fd);
  return fd;
}

/* Sends the message. Returns an errno, but not if the shim has ended: its pidfd tells that. */
static int warm_shim_send(const struct warm_shim *s, struct shim_program *told,
                          const int fds[SHIM_PROGRAM_FDS]) {
  _Alignas(struct cmsghdr) char room[CMSG_SPACE(SHIM_PROGRAM_FDS * sizeof(int))] = {0};
  struct iovec bytes = {told, sizeof *told};
  struct msghdr message = {
      .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(SHIM_PROGRAM_FDS * sizeof(int));
  memcpy(CMSG_DATA(rights), fds, SHIM_PROGRAM_FDS * sizeof(int));
  if (sendmsg(s->control, &message, MSG_NOSIGNAL) >= 0 || errno == EPIPE || errno == ECONNRESET)
    return 0;
  return errno;
}

/* Tells the child its program, with descriptors for 0 to 2 (-1: /dev/null) and the folder to work
 * in (-1: ours). Returns an errno. */
static int warm_shim_tell(struct warm_shim *s, const struct process_spec *spec, int cwd,
                          const int fds[3], const char *limits) {
  struct shim_program told = {0};
  int given[SHIM_PROGRAM_FDS] = {fds[0], fds[1], fds[2], cwd, -1};
  int nothing = -1, here = -1, number = 0;
  if (fds[0] < 0)
    given[0] = nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (cwd < 0)
    given[SHIM_PROGRAM_CWD] = here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  bool enters = faccessat(given[SHIM_PROGRAM_CWD], ".", X_OK, AT_EACCESS) == 0;
  given[SHIM_PROGRAM_WORDS] = enters ? warm_shim_words(spec, &told) : -1;
  print_into(told.limits, sizeof told.limits, "%s", limits);
  told.term = lease_term();
  number = given[0] < 0 || given[SHIM_PROGRAM_WORDS] < 0 ? errno : warm_shim_send(s, &told, given);
  (void)kill(s->shim, SIGCONT); /* whoever stopped it did so before anybody watched */
  process_close_fd(&nothing);
  process_close_fd(&here);
  process_close_fd(&given[SHIM_PROGRAM_WORDS]);
  return number;
}

/* Starts the shim, or tells one that stands by its program; p then has the latter's parts. */
static int start_shim(struct process *p, const struct process_spec *spec, int cwd,
                      struct pipes *pipes, struct warm_shim **warm_shim, int *pidfd) {
  struct warm_shim *s = *warm_shim;
  char limits[SHIM_LIMITS_BYTES];
  if (s == NULL)
    return spawn_shim(p->table, spec, cwd, pipes, p->group, &p->shim);
  put_limits(&spec->limits, limits);
  int rc = warm_shim_tell(s, spec, cwd, pipes->childs, limits);
  if (rc != 0)
    return rc;
  p->shim = s->shim;
  p->group = s->group;
  *pidfd = s->pidfd;
  pipes->ours[SHIM_FD_CONTROL] = s->control;
  pipes->ours[SHIM_FD_STATUS] = s->status;
  warm_shim_hand_over(s);
  *warm_shim = NULL;
  return 0;
}

/* Works out why the program could not be started: posix_spawn does not say which of its steps
 * failed. */
static bool spawn_error(const struct process_table *t, const char *cwd, int cwd_fd, int number,
                        struct err *err) {
  if (cwd_fd >= 0 && faccessat(cwd_fd, ".", X_OK, AT_EACCESS) != 0)
    return err_set_errno(err, errno, "working directory '%s'", cwd);
  if (number == E2BIG)
    return err_set(err, ERR_LIMIT, "the program's arguments and environment are too long");
  return err_set_errno(err, number, "cannot start '%s'", t->shim_path);
}

bool process_why_not(const struct process_result *result, const char *program, const char *cwd,
                     char *out, size_t size) {
  struct stat st;
  bool has_slash = strchr(program, '/') != NULL;
  if (result->unheld) {
    print_into(out, size, "its sandbox could not be set: %s", strerror(result->exec_errno));
    return true;
  }
  int dir = cwd != NULL ? open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
  bool is_there = has_slash && fstatat(dir, program, &st, 0) == 0;
  const char *words = strerror(result->exec_errno);
  fs_close(dir);
  if (result->exec_errno == ENOENT && !has_slash)
    words = "there is no such program in PATH";
  else if (result->exec_errno == ENOENT && is_there)
    words = "it is there, but the interpreter that it names is not";
  else if (result->exec_errno == EACCES && is_there && S_ISDIR(st.st_mode))
    words = "it is a directory";
  else if (result->exec_errno == EACCES && is_there && (st.st_mode & 0111) == 0)
    words = "it is not executable (chmod +x)";
  print_into(out, size, "%s", words);
  return is_there;
}

/* Makes a group named after the session in the environment, so that it can be found again. */
static struct group *process_group_of(const struct process_spec *spec) {
  size_t n = sizeof ORPHAN_VARIABLE - 1;
  for (size_t i = 0; spec->envp[i] != NULL; i++)
    if (strncmp(spec->envp[i], ORPHAN_VARIABLE "=", n + 1) == 0)
      return group_new(spec->envp[i] + n + 1);
  return NULL;
}

static struct process *process_new(struct process_table *t, const struct process_spec *spec,
                                   process_output_cb on_output, process_end_cb on_end, void *ctx) {
  struct process *p = xcalloc(1, sizeof *p);
  p->table = t;
  p->on_output = on_output;
  p->on_end = on_end;
  p->ctx = ctx;
  p->control_fd = -1;
  p->start_ms = p->output_ms = clock_mono_ms();
  p->wall_ms = spec->wall_ms;
  p->stall_ms = spec->stall_ms;
  p->closed_ms = spec->closed_ms;
  p->stdin_bytes = spec->stdin_bytes;
  p->stdin_n = spec->stdin_n;
  p->stdin_open = spec->stdin_open;
  p->result.exit_code = -1;
  p->keep_nothing = spec->keep_nothing;
  head_tail_init(&p->out, spec->stdout_max != 0 ? spec->stdout_max : LIMIT_OUTPUT_BYTES);
  head_tail_init(&p->err, spec->stderr_max != 0 ? spec->stderr_max : LIMIT_STDERR_BYTES);
  for (enum channel_id id = 0; id < CHANNEL_COUNT; id++)
    p->channels[id] = (struct channel){.process = p, .fd = -1};
  return p;
}

/* Makes a control group for p, unless a standby has one, and sets the limits that it is to hold. */
static bool join_group(struct process *p, const struct process_spec *spec,
                       const struct warm_shim *warm_shim, struct err *err) {
  if (spec->limits.by_group)
    (void)group_can_limit(); /* for a resumed session another process prepared it */
  const struct group *group = warm_shim ? warm_shim->group : (p->group = process_group_of(spec));
  if (!spec->limits.by_group ||
      (group != NULL && group_limit_folder(group_fd(group), &spec->limits)))
    return true;
  return err_set_errno(err, group ? errno : ENOENT,
                       "its limits could not be set by a control group");
}

/* Hands our ends of the pipes to the loop. */
static void watch_pipes(struct process *p, const struct pipes *pipes, int pidfd) {
  p->control_fd = pipes->ours[SHIM_FD_CONTROL];
  (void)uv_timer_init(p->table->loop, &p->timer);
  p->timer.data = p;
  p->open_handles++;
  if (pidfd >= 0)
    process_channel_open(p, CHANNEL_EXIT, pidfd);
  process_channel_open(p, CHANNEL_STATUS, pipes->ours[SHIM_FD_STATUS]);
  process_channel_open(p, CHANNEL_OUT, pipes->ours[1]);
  process_channel_open(p, CHANNEL_ERR, pipes->ours[2]);
  if (pipes->ours[0] >= 0)
    process_channel_open(p, CHANNEL_IN, pipes->ours[0]);
  process_set_timer(p);
}

struct process *process_start(struct process_table *t, const struct process_spec *spec,
                              process_output_cb on_output, process_end_cb on_end, void *ctx,
                              struct err *err) {
  struct process *p = NULL;
  struct pipes pipes;
  struct warm_shim *warm_shim = NULL;
  bool gone = false;
  int pidfd = -1, cwd = -1;
  assert(spec->argv != NULL && spec->argv[0] != NULL);
  assert(spec->envp != NULL && on_end != NULL);
  assert(spec->stdin_n == 0 || spec->stdin_bytes != NULL);
  if (spec->sandbox != NULL) { /* it is this process's from now on */
    warm_shim = spec->sandbox->warm_shim;
    spec->sandbox->warm_shim = NULL;
  }
  if (!make_pipes(&pipes, spec->stdin_n > 0 || spec->stdin_open, warm_shim == NULL, err))
    goto out;
  if (spec->cwd != NULL && (cwd = open(spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
    err_set_errno(err, errno, "working directory '%s'", spec->cwd);
    goto out;
  }
  p = process_new(t, spec, on_output, on_end, ctx);
  if (!join_group(p, spec, warm_shim, err))
    goto out;
  /* most prompts fit into the pipe at once */
  if (spec->stdin_n > 0 && process_write_input(p, pipes.ours[0], &gone) && !spec->stdin_open)
    process_close_fd(&pipes.ours[0]);
  int rc = start_shim(p, spec, cwd, &pipes, &warm_shim, &pidfd);
  for (int fd = 0; fd < PIPE_COUNT; fd++)
    process_close_fd(&pipes.childs[fd]);
  if (rc != 0) {
    (void)spawn_error(t, spec->cwd, cwd, rc, err);
    goto out;
  }
  process_close_fd(&cwd);
  if (pidfd < 0)
    pidfd = pidfd_open(p->shim, 0); /* at least four descriptors were just closed */
  if (pidfd < 0 && errno != ENOSYS && errno != EPERM) { /* some sandboxes and valgrind have none */
    err_set_errno(err, errno, "cannot watch a program");
    (void)kill(p->shim, SIGKILL);
    (void)waitpid(p->shim, NULL, 0);
    process_sweep(t);
    goto out;
  }
  list_push_front(&t->processes, &p->in_table);
  watch_pipes(p, &pipes, pidfd);
  return p;

out:
  warm_shim_free(warm_shim);
  for (int fd = 0; fd < PIPE_COUNT; fd++) {
    process_close_fd(&pipes.ours[fd]);
    process_close_fd(&pipes.childs[fd]);
  }
  process_close_fd(&cwd);
  if (p != NULL)
    group_free(p->group);
  free(p);
  return NULL;
}
