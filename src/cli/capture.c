/* Runs a program to its end and keeps what it said. */
#include "cli/capture.h"

#include "os/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Holds a pipe of the program; fd is -1 once it is closed. */
struct output {
  int fd;
  struct buf *into;
};

static bool program_start(struct program *p, int input, int out, int errors, pid_t *pid,
                          struct err *err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  int number = posix_spawnp(pid, p->argv[0], &actions, &attributes, p->argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return number == 0 || err_set_errno(err, number, "cannot run %s", p->argv[0]);
}

/* Reads and drops what is over the bound, so that the program does not stand still. */
static void program_take(struct program *p, struct output *from) {
  char piece[16384];
  ssize_t n = read(from->fd, piece, sizeof piece);
  if (n < 0 && errno == EINTR)
    return;
  if (n <= 0) {
    close(from->fd);
    from->fd = -1;
    return;
  }
  size_t room = PROGRAM_OUTPUT_BYTES - from->into->n;
  p->cut = p->cut || (size_t)n > room;
  buf_append(from->into, piece, (size_t)n < room ? (size_t)n : room);
}

static void listen_to(struct program *p, struct output outputs[2], pid_t pid) {
  uint64_t until = clock_mono_ms() + p->timeout_s * UINT64_C(1000);
  while (outputs[0].fd >= 0 || outputs[1].fd >= 0) {
    struct pollfd fds[2] = {{.fd = outputs[0].fd, .events = POLLIN},
                            {.fd = outputs[1].fd, .events = POLLIN}};
    uint64_t now = clock_mono_ms();
    int wait_ms = -1;
    if (p->timeout_s > 0 && !p->timed_out)
      wait_ms = now < until ? (int)(until - now) : 0;
    int ready = poll(fds, 2, wait_ms);
    if (ready == 0) {
      p->timed_out = true;
      kill(pid, SIGTERM);
    }
    for (size_t i = 0; i < 2 && ready > 0; i++)
      if (fds[i].revents != 0)
        program_take(p, &outputs[i]);
  }
}

static bool input_file(const struct program *p, FILE **file, struct err *err) {
  *file = tmpfile();
  if (*file == NULL || (p->input.n > 0 && fwrite(p->input.p, 1, p->input.n, *file) != p->input.n) ||
      fflush(*file) != 0) {
    if (*file != NULL)
      (void)fclose(*file);
    return err_set_errno(err, errno, "cannot store its input");
  }
  rewind(*file);
  return true;
}

/* Keeps other threads from starting a program between making a pipe and marking it
 * close-on-exec. */
static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;

static bool program_pipe(int ends[2], struct err *err) {
  if (pipe(ends) != 0)
    return err_set_errno(err, errno, "cannot make a pipe");
  return fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
}

bool program_run(struct program *p, struct err *err) {
  assert(p->argv[0] != NULL);
  int out[2] = {-1, -1}, errors[2] = {-1, -1}, status = 0;
  pid_t pid = 0;
  FILE *input;
  if (!input_file(p, &input, err))
    return false;
  (void)fcntl(fileno(input), F_SETFD, FD_CLOEXEC);
  (void)pthread_mutex_lock(&program_lock);
  bool ok = program_pipe(out, err) && program_pipe(errors, err) &&
            program_start(p, fileno(input), out[1], errors[1], &pid, err);
  (void)pthread_mutex_unlock(&program_lock);
  (void)fclose(input);
  for (size_t i = 0; i < 2; i++) {
    int end = i == 0 ? out[1] : errors[1], other = i == 0 ? out[0] : errors[0];
    if (end >= 0)
      close(end);
    if (!ok && other >= 0)
      close(other);
  }
  if (!ok)
    return false;
  struct output outputs[2] = {{out[0], &p->out}, {errors[0], &p->errors}};
  listen_to(p, outputs, pid);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  p->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}
