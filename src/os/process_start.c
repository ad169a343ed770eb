/* Starts a program under its shim: makes pipes, spawns it once, and starts watching it. */
#include "os/process_internal.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/lease.h"
#include "os/leftover.h"
#include "os/sandbox.h"
#include "os/standby.h"
#include "shim/protocol.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int process_fd_above(int fd) {
  if (fd < 0 || fd >= FD_ABOVE_SHIM)
    return fd;
  int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM);
  int saved = errno;
  (void)close(fd);
  errno = saved;
  return high;
}

/* Makes a pipe for the child, whose end gets a number that no dup2 below can overwrite. */
static bool make_pipe(bool child_reads, int *ours, int *childs) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return false;
  *ours = ends[child_reads];
  *childs = process_fd_above(ends[!child_reads]);
  return *childs >= 0;
}

enum { PIPE_COUNT = SHIM_FD_STATUS + 1 };
struct pipes {
  int ours[PIPE_COUNT], childs[PIPE_COUNT]; /* indexed by the shim's descriptor */
};

/* A standby has its shim's two already. */
static bool make_pipes(struct pipes *pipes, bool with_stdin, bool with_shims, struct err *err) {
  for (int fd = 0; fd < PIPE_COUNT; fd++)
    pipes->ours[fd] = pipes->childs[fd] = -1;
  for (int fd = with_stdin ? 0 : 1; fd < (with_shims ? PIPE_COUNT : SHIM_FD_CONTROL); fd++)
    if (!make_pipe(fd == 0 || fd == SHIM_FD_CONTROL, &pipes->ours[fd], &pipes->childs[fd]))
      return err_set_errno(err, errno, "cannot make a pipe for a program");
  return true;
}

/* Returns what holds the program, and puts the descriptors where the shim expects them. */
static unsigned give_holds(int fds[SHIM_FD_COUNT], const struct process_spec *spec,
                           const struct group *group) {
  unsigned held = spec->sandbox ? sandbox_held(spec->sandbox) : 0;
  if (group != NULL) {
    held |= SHIM_IN_GROUP | (spec->limits.by_group ? SHIM_LIMITED : 0);
    fds[SHIM_FD_GROUP] = group_fd(group);
  }
  if ((held & SHIM_RULES) != 0) {
    fds[SHIM_FD_READS] = sandbox_reads_fd(spec->sandbox);
    fds[SHIM_FD_WRITES] = sandbox_writes_fd(spec->sandbox);
  }
  fds[SHIM_FD_LEASE] = lease_fd();
  return held | (fds[SHIM_FD_LEASE] >= 0 ? SHIM_LEASED : 0);
}

/* Writes the limits that the program is born with. */
static void put_limits(const struct process_limits *limits, char out[SHIM_LIMITS_BYTES]) {
  out[0] = '\0';
  if (!limits->by_group)
    (void)snprintf(out, SHIM_LIMITS_BYTES, ":%llu:%lu:%u", (unsigned long long)limits->memory_bytes,
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

int process_spawn(const char *shim_path, const int fds[SHIM_FD_COUNT], int cwd,
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
  const char *const *before = spec->sandbox ? sandbox_words(spec->sandbox) : NULL;
  const char *const *own = spec->sandbox ? sandbox_envp(spec->sandbox) : NULL;
  char words[16 + SHIM_LIMITS_BYTES], limits[SHIM_LIMITS_BYTES];
  int fds[SHIM_FD_COUNT], rc;
  size_t argc = 0, first = 0;
  for (int fd = 0; fd < SHIM_FD_COUNT; fd++)
    fds[fd] = fd < PIPE_COUNT ? pipes->childs[fd] : -1;
  put_limits(&spec->limits, limits);
  (void)snprintf(words, sizeof words, "%u%s", give_holds(fds, spec, group), limits);
  while (spec->argv[argc] != NULL)
    argc++;
  while (before != NULL && before[first] != NULL)
    first++;
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

/* Starts the shim, or tells one that stands by its program; p then has the latter's parts. */
static int start_shim(struct process *p, const struct process_spec *spec, int cwd,
                      struct pipes *pipes, struct standby **standby, int *pidfd) {
  struct standby *s = *standby;
  char limits[SHIM_LIMITS_BYTES];
  if (s == NULL)
    return spawn_shim(p->table, spec, cwd, pipes, p->group, &p->shim);
  put_limits(&spec->limits, limits);
  int rc = standby_tell(s, spec, cwd, pipes->childs, limits);
  if (rc != 0)
    return rc;
  p->shim = s->shim;
  p->group = s->group;
  *pidfd = s->pidfd;
  pipes->ours[SHIM_FD_CONTROL] = s->control;
  pipes->ours[SHIM_FD_STATUS] = s->status;
  standby_hand_over(s);
  *standby = NULL;
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
    (void)snprintf(out, size, "its sandbox could not be set: %s", strerror(result->exec_errno));
    return true;
  }
  int dir = cwd != NULL ? open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
  bool is_there = has_slash && fstatat(dir, program, &st, 0) == 0;
  const char *words = strerror(result->exec_errno);
  if (dir >= 0)
    (void)close(dir);
  if (result->exec_errno == ENOENT && !has_slash)
    words = "there is no such program in PATH";
  else if (result->exec_errno == ENOENT && is_there)
    words = "it is there, but the interpreter that it names is not";
  else if (result->exec_errno == EACCES && is_there && S_ISDIR(st.st_mode))
    words = "it is a directory";
  else if (result->exec_errno == EACCES && is_there && (st.st_mode & 0111) == 0)
    words = "it is not executable (chmod +x)";
  (void)snprintf(out, size, "%s", words);
  return is_there;
}

/* Makes a group named after the session in the environment, so that it can be found again. */
static struct group *process_group_of(const struct process_spec *spec) {
  size_t n = sizeof LEFTOVER_VARIABLE - 1;
  for (size_t i = 0; spec->envp[i] != NULL; i++)
    if (strncmp(spec->envp[i], LEFTOVER_VARIABLE "=", n + 1) == 0)
      return group_new(spec->envp[i] + n + 1);
  return NULL;
}

static struct process *process_new(struct process_table *t, const struct process_spec *spec) {
  struct process *p = xcalloc(1, sizeof *p);
  p->table = t;
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
                       const struct standby *standby, struct err *err) {
  if (spec->limits.by_group)
    (void)group_can_limit(); /* for a resumed session another process prepared it */
  const struct group *group = standby ? standby->group : (p->group = process_group_of(spec));
  if (!spec->limits.by_group || (group != NULL && group_limit(group, &spec->limits)))
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
  struct standby *standby = spec->sandbox ? sandbox_take_standby(spec->sandbox) : NULL;
  bool gone = false;
  int pidfd = -1, cwd = -1;

  assert(spec->argv != NULL && spec->argv[0] != NULL);
  assert(spec->envp != NULL && on_end != NULL);
  assert(spec->stdin_n == 0 || spec->stdin_bytes != NULL);
  if (!make_pipes(&pipes, spec->stdin_n > 0 || spec->stdin_open, standby == NULL, err))
    goto out;
  if (spec->cwd != NULL && (cwd = open(spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
    (void)err_set_errno(err, errno, "working directory '%s'", spec->cwd);
    goto out;
  }
  p = process_new(t, spec);
  p->on_output = on_output;
  p->on_end = on_end;
  p->ctx = ctx;
  if (!join_group(p, spec, standby, err))
    goto out;
  if (pipes.ours[0] >= 0)
    (void)fcntl(pipes.ours[0], F_SETFL, O_NONBLOCK);
  /* most prompts fit into the pipe at once */
  if (spec->stdin_n > 0 && process_write_input(p, pipes.ours[0], &gone) && !spec->stdin_open)
    process_close_fd(&pipes.ours[0]);
  int rc = start_shim(p, spec, cwd, &pipes, &standby, &pidfd);
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
    (void)err_set_errno(err, errno, "cannot watch a program");
    (void)kill(p->shim, SIGKILL);
    (void)waitpid(p->shim, NULL, 0);
    process_sweep(t);
    goto out;
  }

  list_push_front(&t->processes, &p->in_table);
  watch_pipes(p, &pipes, pidfd);
  return p;

out:
  standby_free(standby);
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
