#include "os/process.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "shim/protocol.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the loop watches for one process: our ends of four pipes and the shim's pidfd (the pipes
 * alone could be held open by somebody else). */
enum channel_id {
  CHANNEL_IN,
  CHANNEL_OUT,
  CHANNEL_ERR,
  CHANNEL_STATUS,
  CHANNEL_EXIT,
  CHANNEL_COUNT
};
enum { FD_ABOVE_SHIM = 10, DRAIN_PIECE_COUNT = 16 };

struct channel {
  struct process *process;
  int fd; /* -1 = closed, or never opened */
  uv_poll_t poll;
};

struct process {
  struct process_table *table;
  struct process *prev, *next;
  enum process_state state;
  bool decided;   /* result.why is final */
  bool shim_done; /* it said that the tree is dead */
  int open_handles;
  int control_fd; /* closing it ends the tree; -1 = done */
  pid_t shim;     /* 0 = reaped */
  struct channel channels[CHANNEL_COUNT];
  uv_timer_t timer;
  uint64_t start_ms, output_ms, grace_end_ms;
  uint64_t wall_ms, stall_ms, closed_ms;
  const char *stdin_bytes;
  size_t stdin_n;
  struct buf queue;  /* of process_write, behind stdin_bytes */
  size_t queue_from; /* bytes of it that are written */
  bool stdin_open;   /* more may come */
  process_output_cb on_output;
  process_end_cb on_end;
  void *ctx;
  struct process_result result;
};

struct process_table {
  uv_loop_t *loop;
  struct process *first;
  size_t count;
  uv_timer_t sweep; /* runs while a lost shim's orphans are being killed */
  pid_t *inherited; /* children that were there before us */
  size_t inherited_count;
  char shim_path[PATH_MAX];
  char piece[LIMIT_PIPE_PIECE_BYTES]; /* every read of output lands here first */
};

enum event {
  EVENT_STARTED,
  EVENT_EXEC_FAILED,
  EVENT_FORK_FAILED,
  EVENT_EXITED,
  EVENT_OUTPUT_END,
  EVENT_TIME,
  EVENT_CANCEL,
  EVENT_ENOUGH,
  EVENT_SHIM_GONE,
  EVENT_SWEPT,
};

static bool table_exists; /* children belong to the process, so there can be one table only */

static void process_event(struct process *p, enum event event);
static void read_status(struct channel *c);

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

enum process_state process_get_state(const struct process *p) {
  return p->state;
}

const char *process_state_name(enum process_state state) {
  assert((size_t)state < ARRAY_LEN(states));
  return states[state].name;
}

pid_t process_shim_pid(const struct process *p) {
  return p->shim;
}

static void process_set_state(struct process *p, enum process_state to) {
  if ((states[p->state].next & (1u << to)) == 0)
    BUG("process: %s may not become %s", states[p->state].name, states[to].name);
  p->state = to;
}

/* --- time --- */

static uint64_t now_ms(void) {
  return uv_hrtime() / 1000000;
}

static uint64_t later(uint64_t ms, uint64_t by_ms) {
  return by_ms < UINT64_MAX - ms ? ms + by_ms : UINT64_MAX;
}

/* When a program that closed its stdout, and lives on, has had its time; UINT64_MAX = never. */
static uint64_t closed_due_ms(const struct process *p) {
  bool closed = p->closed_ms != 0 && p->channels[CHANNEL_OUT].fd < 0;
  return closed ? later(p->output_ms, p->closed_ms) : UINT64_MAX;
}

/* When EVENT_TIME is due, UINT64_MAX = never. */
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

static void on_timer(uv_timer_t *timer) {
  process_event(timer->data, EVENT_TIME);
}

/* Output only moves output_ms; the timer finds out when it fires and is set anew. */
static void set_timer(struct process *p) {
  uint64_t due = due_ms(p), now = now_ms();
  if (due == UINT64_MAX) {
    (void)uv_timer_stop(&p->timer);
    return;
  }
  uv_update_time(p->table->loop);
  (void)uv_timer_start(&p->timer, on_timer, due > now ? due - now : 1, 0);
}

/* --- handles --- */

static void close_fd(int *fd) {
  if (*fd >= 0)
    (void)close(*fd);
  *fd = -1;
}

static void process_finish(struct process *p) {
  struct process_table *t = p->table;
  process_set_state(p, PROCESS_STATE_ENDED);
  if (p->next != NULL)
    p->next->prev = p->prev;
  *(p->prev != NULL ? &p->prev->next : &t->first) = p->next;
  t->count--;
  if (p->result.duration_ms == 0)
    p->result.duration_ms = now_ms() - p->start_ms;
  p->on_end(p->ctx, &p->result);
  buf_deinit(&p->result.out);
  buf_deinit(&p->result.err);
  buf_deinit(&p->queue);
  free(p);
}

static void handle_closed(struct process *p) {
  assert(p->open_handles > 0);
  if (--p->open_handles == 0)
    process_finish(p);
}

static void on_poll_closed(uv_handle_t *handle) {
  struct channel *c = handle->data;
  handle_closed(c->process);
}

static void on_timer_closed(uv_handle_t *handle) {
  handle_closed(handle->data);
}

static void channel_close(struct channel *c) {
  if (c->fd < 0)
    return;
  uv_close((uv_handle_t *)&c->poll, on_poll_closed); /* stops watching at once ... */
  close_fd(&c->fd);                                  /* ... so this is safe, and stdin needs it */
}

static void channel_open(struct process *p, enum channel_id id, int fd, int events,
                         uv_poll_cb callback) {
  struct channel *c = &p->channels[id];
  c->fd = fd;
  c->poll.data = c;
  int rc = uv_poll_init(p->table->loop, &c->poll, fd); /* makes fd non-blocking */
  if (rc == 0)
    rc = uv_poll_start(&c->poll, events, callback);
  if (rc != 0) /* no kernel memory: the same as no memory of our own */
    die("cannot watch a descriptor: %s", uv_strerror(rc));
  p->open_handles++;
}

/* --- output, input, status: callbacks that translate --- */

/* One piece; false: nothing there now, or the end (then the channel is closed). */
static bool read_output(struct channel *c) {
  struct process *p = c->process;
  char *piece = p->table->piece;
  bool is_out = c == &p->channels[CHANNEL_OUT];
  ssize_t n = read(c->fd, piece, LIMIT_PIPE_PIECE_BYTES);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n <= 0) {
    channel_close(c);
    return false;
  }
  p->output_ms = now_ms();
  p->result.started = true; /* should the shim die before it can say so */
  buf_append(is_out ? &p->result.out : &p->result.err, piece, (size_t)n);
  if (p->on_output != NULL)
    p->on_output(p->ctx, is_out ? 1 : 2, (struct str){piece, (size_t)n});
  return true;
}

static void on_output_ready(uv_poll_t *poll, int status, int events) {
  struct channel *c = poll->data;
  (void)events;
  if (!read_output(c) && status < 0)
    channel_close(c);
  if (c->fd < 0)
    process_event(c->process, EVENT_OUTPUT_END);
}

/* One piece at most, so that a quick reader cannot keep us; true when all is written. A reader that
 * left is not an error. */
static bool write_input(struct process *p, int fd, bool *gone) {
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
  bool written = !gone && write_input(p, c->fd, &gone);
  if (gone || (written && !p->stdin_open))
    channel_close(c);
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
    channel_close(c);
}

/* Until this waitid the shim's pid is ours and nobody else's. */
static void reap_shim(struct process *p, int options) {
  siginfo_t info = {0};
  if (p->shim == 0 ||
      (waitid(P_PID, (id_t)p->shim, &info, WEXITED | options) == 0 && info.si_pid == 0))
    return; /* not yet */
  channel_close(&p->channels[CHANNEL_EXIT]);
  p->shim = 0;
  if (p->channels[CHANNEL_STATUS].fd >= 0) /* its last words may still be in the pipe */
    read_status(&p->channels[CHANNEL_STATUS]);
  if (info.si_code != CLD_EXITED || info.si_status != 0)
    p->shim_done = false; /* whoever said so did not live to mean it */
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
    channel_close(c);
    if (p->channels[CHANNEL_EXIT].fd < 0) /* no pidfd: the pipe tells of the shim's death */
      reap_shim(p, 0);                    /* which is a matter of microseconds now */
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
    default: /* not from our shim */
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

/* --- orphans of a lost shim --- */

struct sweep_pass {
  const struct process_table *table;
  size_t found;
};

static bool is_known_child(const struct process_table *t, pid_t pid) {
  for (const struct process *p = t->first; p != NULL; p = p->next)
    if (p->shim == pid)
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
      ok = kill(thread, 0) != 0; /* a thread that ended meanwhile is no failure */
  }
  if (threads != NULL)
    (void)closedir(threads);
  return ok;
}

static bool each_child(shim_child_cb each, void *ctx) {
  return each_child_of_threads(each, ctx) || shim_children_by_scan(each, ctx);
}

/* Orphans of several lost shims cannot be told apart, so all wait for the first look that finds
 * nobody: a child hands us its own children before it can be reaped. */
static void on_sweep(uv_timer_t *timer) {
  struct process_table *t = timer->data;
  struct sweep_pass pass = {.table = t};
  if (!each_child(sweep_child, &pass) || pass.found > 0) {
    (void)uv_timer_start(&t->sweep, on_sweep, LIMIT_SWEEP_POLL_MS, 0);
    return;
  }
  for (struct process *p = t->first; p != NULL; p = p->next) /* nothing is freed in here */
    if (p->state == PROCESS_STATE_ORPHANED)
      process_event(p, EVENT_SWEPT);
}

/* --- decisions --- */

static void decide(struct process *p, enum process_end why) {
  if (!p->decided)
    p->result.why = why;
  p->decided = true;
}

static void end_tree(struct process *p, enum process_end why) {
  decide(p, why);
  process_set_state(p, PROCESS_STATE_ENDING);
  p->grace_end_ms = later(now_ms(), LIMIT_TERM_GRACE_MS + LIMIT_SWEEP_WAIT_MS);
  close_fd(&p->control_fd);
  set_timer(p);
}

/* Whoever could write is dead: what is left in the pipes is all there will be. */
static void close_all(struct process *p) {
  for (enum channel_id id = CHANNEL_OUT; id <= CHANNEL_ERR; id++)
    for (int i = 0; i < DRAIN_PIECE_COUNT && p->channels[id].fd >= 0; i++)
      if (!read_output(&p->channels[id]))
        break;
  process_set_state(p, PROCESS_STATE_CLOSING);
  p->result.stdin_unread = p->stdin_n > 0 || p->queue.n > 0;
  close_fd(&p->control_fd);
  for (enum channel_id id = 0; id < CHANNEL_COUNT; id++)
    channel_close(&p->channels[id]);
  uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

static void time_is_up(struct process *p) {
  uint64_t now = now_ms();
  if (now < due_ms(p)) {
    set_timer(p);
    return;
  }
  switch (p->state) {
  case PROCESS_STATE_STARTING:
  case PROCESS_STATE_RUNNING:
    if (p->wall_ms != 0 && now >= later(p->start_ms, p->wall_ms))
      end_tree(p, PROCESS_END_WALL_LIMIT);
    else if (now >= closed_due_ms(p))
      process_event(p, EVENT_ENOUGH);
    else
      end_tree(p, PROCESS_END_STALL_LIMIT);
    break;
  case PROCESS_STATE_EXITED:
    p->result.pipes_held = true;
    end_tree(p, PROCESS_END_EXITED);
    break;
  case PROCESS_STATE_ENDING: /* the shim cannot finish: take its place */
    if (p->result.survivors) {
      log_warn("process %d cannot be killed", (int)p->shim);
      close_all(p);
      break;
    }
    p->result.survivors = true; /* until a sweep says otherwise */
    (void)kill(p->shim, SIGKILL);
    p->grace_end_ms = later(now, LIMIT_SWEEP_WAIT_MS);
    set_timer(p);
    break;
  case PROCESS_STATE_ORPHANED:
    log_warn("a provider left processes that cannot be killed");
    p->result.survivors = true;
    close_all(p);
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

static void process_event(struct process *p, enum event event) {
  switch (event) {
  case EVENT_STARTED:
    if (p->state == PROCESS_STATE_STARTING)
      process_set_state(p, PROCESS_STATE_RUNNING);
    break;
  case EVENT_EXEC_FAILED:
    if (p->state == PROCESS_STATE_STARTING)
      end_tree(p, PROCESS_END_EXEC_FAILED);
    break;
  case EVENT_FORK_FAILED:
    if (p->state == PROCESS_STATE_STARTING)
      end_tree(p, PROCESS_END_SPAWN_FAILED);
    break;
  case EVENT_EXITED:
    p->result.duration_ms = now_ms() - p->start_ms;
    channel_close(&p->channels[CHANNEL_IN]);
    if (p->state != PROCESS_STATE_RUNNING)
      break; /* it obeyed our TERM */
    process_set_state(p, PROCESS_STATE_EXITED);
    p->grace_end_ms = later(now_ms(), LIMIT_EXIT_GRACE_MS);
    if (output_ended(p))
      end_tree(p, PROCESS_END_EXITED);
    else
      set_timer(p);
    break;
  case EVENT_OUTPUT_END:
    if (p->state == PROCESS_STATE_EXITED && output_ended(p)) {
      end_tree(p, PROCESS_END_EXITED);
    } else if (is_alive(p) && p->closed_ms != 0) {
      p->output_ms = now_ms();
      set_timer(p);
    }
    break;
  case EVENT_TIME:
    time_is_up(p);
    break;
  case EVENT_CANCEL:
    if (is_alive(p))
      end_tree(p, PROCESS_END_CANCELLED);
    break;
  case EVENT_ENOUGH:
    if (is_alive(p)) {
      p->result.ended_early = p->state != PROCESS_STATE_EXITED;
      end_tree(p, PROCESS_END_EXITED);
    }
    break;
  case EVENT_SHIM_GONE:
    if (p->shim_done) {
      p->result.survivors = false;
      close_all(p);
      break;
    }
    decide(p, PROCESS_END_SHIM_LOST);
    process_set_state(p, PROCESS_STATE_ORPHANED);
    p->grace_end_ms = later(now_ms(), LIMIT_SWEEP_WAIT_MS);
    set_timer(p);
    (void)uv_timer_start(&p->table->sweep, on_sweep, 0, 0);
    break;
  case EVENT_SWEPT:
    p->result.survivors = false;
    close_all(p);
    break;
  }
}

void process_cancel(struct process *p) {
  process_event(p, EVENT_CANCEL);
}

void process_note_progress(struct process *p) {
  p->output_ms = now_ms();
}

void process_finish_early(struct process *p) {
  process_event(p, EVENT_ENOUGH);
}

/* --- starting --- */

/* A pipe of which the child gets one end, with a number that no dup2 below can overwrite. */
static bool make_pipe(bool child_reads, int *ours, int *childs) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return false;
  *ours = ends[child_reads];
  *childs = ends[!child_reads];
  if (*childs >= FD_ABOVE_SHIM)
    return true;
  int high = fcntl(*childs, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM);
  int saved = errno;
  (void)close(*childs);
  *childs = high;
  errno = saved;
  return high >= 0;
}

enum { PIPE_COUNT = SHIM_FD_STATUS + 1 };
struct pipes {
  int ours[PIPE_COUNT], childs[PIPE_COUNT]; /* indexed by the shim's descriptor */
};

static bool make_pipes(struct pipes *pipes, bool with_stdin, struct err *err) {
  for (int fd = 0; fd < PIPE_COUNT; fd++)
    pipes->ours[fd] = pipes->childs[fd] = -1;
  for (int fd = with_stdin ? 0 : 1; fd < PIPE_COUNT; fd++)
    if (!make_pipe(fd == 0 || fd == SHIM_FD_CONTROL, &pipes->ours[fd], &pipes->childs[fd]))
      return err_set_errno(err, errno, "cannot make a pipe for a program");
  return true;
}

static int spawn_shim(const struct process_table *t, const struct process_spec *spec, int cwd,
                      const struct pipes *pipes, pid_t *pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t none, all;
  size_t argc = 0;
  while (spec->argv[argc] != NULL)
    argc++;
  const char **argv = xcalloc(argc + 2, sizeof *argv);
  argv[0] = SHIM_PROTOCOL;
  memcpy(argv + 1, spec->argv, argc * sizeof *argv);

  (void)sigemptyset(&none);
  (void)sigfillset(&all);
  int rc = posix_spawn_file_actions_init(&actions);
  if (rc == 0)
    rc = posix_spawnattr_init(&attr);
  if (rc == 0 && cwd >= 0) /* first: the numbers below may be its own */
    rc = posix_spawn_file_actions_addfchdir_np(&actions, cwd);
  for (int fd = 0; fd < PIPE_COUNT && rc == 0; fd++)
    rc = pipes->childs[fd] >= 0
             ? posix_spawn_file_actions_adddup2(&actions, pipes->childs[fd], fd)
             : posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDONLY, 0);
  if (rc == 0)
    rc = posix_spawn_file_actions_addclosefrom_np(&actions, PIPE_COUNT);
  if (rc != 0) /* ENOMEM only */
    die("out of memory");
  (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETSIGMASK);
  (void)posix_spawnattr_setsigdefault(&attr, &all);
  (void)posix_spawnattr_setsigmask(&attr, &none);
  FAULT_POINT("spawn_before");
  if (fault_fails("spawn"))
    rc = errno;
  else
    rc = posix_spawn(pid, t->shim_path, &actions, &attr, (char *const *)argv,
                     (char *const *)spec->envp);
  FAULT_POINT("spawn_after");
  (void)posix_spawnattr_destroy(&attr);
  (void)posix_spawn_file_actions_destroy(&actions);
  free(argv);
  return rc;
}

/* posix_spawn does not say which of its steps failed. */
static bool spawn_error(const struct process_table *t, const char *cwd, int cwd_fd, int number,
                        struct err *err) {
  if (cwd_fd >= 0 && faccessat(cwd_fd, ".", X_OK, AT_EACCESS) != 0)
    return err_set_errno(err, errno, "working directory '%s'", cwd);
  if (number == E2BIG)
    return err_set(err, ERR_LIMIT, "the program's arguments and environment are too long");
  return err_set_errno(err, number, "cannot start '%s'", t->shim_path);
}

static struct process *process_new(struct process_table *t, const struct process_spec *spec) {
  struct process *p = xcalloc(1, sizeof *p);
  p->table = t;
  p->control_fd = -1;
  p->start_ms = p->output_ms = now_ms();
  p->wall_ms = spec->wall_ms;
  p->stall_ms = spec->stall_ms;
  p->closed_ms = spec->closed_ms;
  p->stdin_bytes = spec->stdin_bytes;
  p->stdin_n = spec->stdin_n;
  p->stdin_open = spec->stdin_open;
  p->result.exit_code = -1;
  p->result.out.max = spec->stdout_max != 0 ? spec->stdout_max : LIMIT_OUTPUT_BYTES;
  p->result.err.max = spec->stderr_max != 0 ? spec->stderr_max : LIMIT_STDERR_BYTES;
  for (enum channel_id id = 0; id < CHANNEL_COUNT; id++)
    p->channels[id] = (struct channel){.process = p, .fd = -1};
  return p;
}

struct process *process_start(struct process_table *t, const struct process_spec *spec,
                              process_output_cb on_output, process_end_cb on_end, void *ctx,
                              struct err *err) {
  struct process *p = NULL;
  struct pipes pipes;
  bool gone = false;
  int pidfd = -1, cwd = -1;

  assert(spec->argv != NULL && spec->argv[0] != NULL);
  assert(spec->envp != NULL && on_end != NULL);
  assert(spec->stdin_n == 0 || spec->stdin_bytes != NULL);
  if (!make_pipes(&pipes, spec->stdin_n > 0 || spec->stdin_open, err))
    goto out;
  if (spec->cwd != NULL && (cwd = open(spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
    (void)err_set_errno(err, errno, "working directory '%s'", spec->cwd);
    goto out;
  }
  p = process_new(t, spec);
  p->on_output = on_output;
  p->on_end = on_end;
  p->ctx = ctx;
  if (pipes.ours[0] >= 0)
    (void)fcntl(pipes.ours[0], F_SETFL, O_NONBLOCK);
  if (spec->stdin_n > 0) { /* most prompts fit into the pipe and are done with here */
    if (write_input(p, pipes.ours[0], &gone) && !spec->stdin_open)
      close_fd(&pipes.ours[0]);
  }
  int rc = spawn_shim(t, spec, cwd, &pipes, &p->shim);
  for (int fd = 0; fd < PIPE_COUNT; fd++)
    close_fd(&pipes.childs[fd]);
  if (rc != 0) {
    (void)spawn_error(t, spec->cwd, cwd, rc, err);
    goto out;
  }
  close_fd(&cwd);
  pidfd = pidfd_open(p->shim, 0); /* at least four descriptors were just closed */
  if (pidfd < 0 && errno != ENOSYS && errno != EPERM) { /* some sandboxes and valgrind have none */
    (void)err_set_errno(err, errno, "cannot watch a program");
    (void)kill(p->shim, SIGKILL);
    (void)waitpid(p->shim, NULL, 0);
    (void)uv_timer_start(&t->sweep, on_sweep, 0, 0);
    goto out;
  }

  p->next = t->first;
  if (t->first != NULL)
    t->first->prev = p;
  t->first = p;
  t->count++;
  p->control_fd = pipes.ours[SHIM_FD_CONTROL];
  (void)uv_timer_init(t->loop, &p->timer);
  p->timer.data = p;
  p->open_handles++;
  if (pidfd >= 0)
    channel_open(p, CHANNEL_EXIT, pidfd, UV_READABLE, on_shim_exit);
  channel_open(p, CHANNEL_STATUS, pipes.ours[SHIM_FD_STATUS], UV_READABLE, on_status_ready);
  channel_open(p, CHANNEL_OUT, pipes.ours[1], UV_READABLE, on_output_ready);
  channel_open(p, CHANNEL_ERR, pipes.ours[2], UV_READABLE, on_output_ready);
  if (pipes.ours[0] >= 0)
    channel_open(p, CHANNEL_IN, pipes.ours[0], UV_WRITABLE, on_input_ready);
  set_timer(p);
  return p;

out:
  for (int fd = 0; fd < PIPE_COUNT; fd++) {
    close_fd(&pipes.ours[fd]);
    close_fd(&pipes.childs[fd]);
  }
  close_fd(&cwd);
  free(p);
  return NULL;
}

/* --- the table --- */

bool process_find_shim(char *path, size_t size, struct err *err) {
  static const char *const places[] = {"segue-shim", "../libexec/segue/segue-shim"};
  char exe[PATH_MAX];
  const char *given = getenv("SEGUE_SHIM");
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (n <= 0)
    return err_set_errno(err, errno, "cannot read /proc/self/exe (is /proc mounted?)");
  exe[n] = '\0';
  *strrchr(exe, '/') = '\0';
  for (size_t i = 0; i < ARRAY_LEN(places); i++) {
    if (snprintf(path, size, "%s/%s", exe, places[i]) < (int)size && access(path, X_OK) == 0)
      return true;
  }
  if (given != NULL && snprintf(path, size, "%s", given) < (int)size && access(path, X_OK) == 0)
    return true;
  return err_set(err, ERR_NOT_FOUND,
                 "the program segue-shim is missing: looked for it in '%s' and in its "
                 "../libexec/segue; install it there again",
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
  (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would let the kernel reap behind our back */
  (void)each_child(note_inherited, t);
  t->loop = loop;
  (void)uv_timer_init(loop, &t->sweep);
  t->sweep.data = t;
  table_exists = true;
  return t;
out:
  free(t);
  return NULL;
}

static void on_table_closed(uv_handle_t *handle) {
  struct process_table *t = handle->data;
  free(t->inherited);
  free(t);
}

void process_table_free(struct process_table *t) {
  if (t == NULL)
    return;
  assert(t->count == 0);
  table_exists = false;
  (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
  uv_close((uv_handle_t *)&t->sweep, on_table_closed);
}

size_t process_table_count(const struct process_table *t) {
  return t->count;
}
