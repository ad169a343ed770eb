/* port_forward.c - carries bytes between a port inside a namespace and a socket outside.
 *
 * DESIGN. It is the parent of the program, not its child: a program that waits for all its children
 * must not wait for us, and as the first process of a container we reap orphans. It knows no rules:
 * whoever connects gets a connection to the socket, and its other end, outside and out of the
 * program's reach, decides what is allowed. */
#include "shim/port_forward.h"

#include "base/limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUFFER_BYTES = 16 * 1024, STATUS_CANNOT = 127 };

/* One direction: bytes are read from one end and written to the other. */
struct half {
  char bytes[BUFFER_BYTES];
  size_t from, to; /* bytes not yet written */
  bool ended;      /* nothing more to read */
  bool told;       /* the other end has been told that it ended */
};

struct pair {
  int fd[2];           /* inside, outside; -1: free */
  struct half half[2]; /* half[i] is read from fd[i] */
  nfds_t polled;       /* index of its first descriptor among those polled */
};

static struct pair pairs[LIMIT_PROXY_CONNECTIONS];

static int listen_inside(uint16_t *port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 64) != 0 ||
      getsockname(fd, (struct sockaddr *)&address, &size) != 0)
    return -1;
  *port = ntohs(address.sin_port);
  return fd;
}

/* Connects through a handle on the folder: a path may be longer than a socket address. */
static int connect_outside(int folder, const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name) >=
      (int)sizeof address.sun_path)
    return -1;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
                  fcntl(fd, F_SETFL, O_NONBLOCK) != 0)) {
    (void)close(fd);
    fd = -1;
  }
  return fd;
}

static void take_connection(int listening, int folder, const char *name) {
  size_t at = 0;
  int inside = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (inside < 0)
    return;
  while (at < LIMIT_PROXY_CONNECTIONS && pairs[at].fd[0] >= 0)
    at++;
  int outside = at < LIMIT_PROXY_CONNECTIONS ? connect_outside(folder, name) : -1;
  if (outside < 0) {
    (void)close(inside);
    return;
  }
  pairs[at].fd[0] = inside;
  pairs[at].fd[1] = outside;
}

static bool is_later(ssize_t n) {
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Moves as much as it can. False: the connection is broken. */
static bool half_move(struct half *h, int from, int to) {
  if (h->from == h->to && !h->ended) {
    ssize_t n = read(from, h->bytes, sizeof h->bytes);
    if (n < 0 && !is_later(n))
      return false;
    h->ended = n == 0;
    h->from = 0;
    h->to = n > 0 ? (size_t)n : 0;
  }
  if (h->from < h->to) {
    ssize_t n = send(to, h->bytes + h->from, h->to - h->from, MSG_NOSIGNAL);
    if (n < 0 && !is_later(n))
      return false;
    h->from += n > 0 ? (size_t)n : 0;
  }
  if (h->ended && h->from == h->to && !h->told) {
    (void)shutdown(to, SHUT_WR);
    h->told = true;
  }
  return true;
}

static short half_events(const struct pair *p, int i) {
  const struct half *reads = &p->half[i], *writes = &p->half[1 - i];
  short events = 0;
  if (!reads->ended && reads->from == reads->to)
    events |= POLLIN;
  if (writes->from < writes->to)
    events |= POLLOUT;
  return events;
}

/* Reaps children, including orphans handed to us. Returns the program's exit status as a shell
 * reports it; -1: it is still running. */
static int reap(pid_t program) {
  int status, end = -1;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    if (pid == program)
      end = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

static void carry(struct pair *p) {
  bool whole =
      half_move(&p->half[0], p->fd[0], p->fd[1]) && half_move(&p->half[1], p->fd[1], p->fd[0]);
  if (!whole || (p->half[0].told && p->half[1].told)) {
    for (int i = 0; i < 2; i++) {
      if (p->fd[i] >= 0)
        (void)close(p->fd[i]);
      p->fd[i] = -1;
      p->half[i].from = p->half[i].to = 0;
      p->half[i].ended = p->half[i].told = false;
    }
  }
}

__attribute__((noreturn)) static void port_forward_serve(pid_t program, int signals, int listening,
                                                         int folder, const char *name) {
  static struct pollfd fds[2 + 2 * LIMIT_PROXY_CONNECTIONS];
  for (;;) {
    nfds_t n = 2;
    fds[0] = (struct pollfd){.fd = signals, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = listening, .events = POLLIN};
    for (size_t k = 0; k < LIMIT_PROXY_CONNECTIONS; k++) {
      pairs[k].polled = n;
      for (int i = 0; i < 2 && pairs[k].fd[0] >= 0; i++) {
        short events = half_events(&pairs[k], i);
        /* without events poll would report a hang-up again and again */
        fds[n++] = (struct pollfd){.fd = events ? pairs[k].fd[i] : -1, .events = events};
      }
    }
    if (poll(fds, n, -1) < 0)
      continue;
    struct signalfd_siginfo info;
    if (fds[0].revents != 0 && read(signals, &info, sizeof info) == (ssize_t)sizeof info &&
        info.ssi_signo != SIGCHLD)
      (void)kill(program, (int)info.ssi_signo);
    int end = reap(program);
    if (end >= 0)
      exit(end);
    for (size_t k = 0; k < LIMIT_PROXY_CONNECTIONS; k++)
      if (pairs[k].fd[0] >= 0 &&
          (fds[pairs[k].polled].revents != 0 || fds[pairs[k].polled + 1].revents != 0))
        carry(&pairs[k]);
    if (fds[1].revents != 0)
      take_connection(listening, folder, name);
  }
}

__attribute__((noreturn)) static void port_forward_fail(const char *what) {
  (void)dprintf(2, "segue-shim: %s: %s\n", what, strerror(errno));
  exit(STATUS_CANNOT);
}

void port_forward(char **words) {
  char folder_path[4096];
  uint16_t port = 0;
  sigset_t watched, none;
  const char *slash = words[0] ? strrchr(words[0], '/') : NULL;
  if (slash == NULL || words[1] == NULL || words[2] == NULL ||
      snprintf(folder_path, sizeof folder_path, "%.*s", (int)(slash - words[0]), words[0]) >=
          (int)sizeof folder_path)
    exit(2);
  for (size_t k = 0; k < LIMIT_PROXY_CONNECTIONS; k++)
    pairs[k].fd[0] = pairs[k].fd[1] = -1;
  int folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int listening = listen_inside(&port);
  if (folder < 0 || listening < 0)
    port_forward_fail("the way out of its network could not be made");
  (void)sigemptyset(&watched);
  (void)sigaddset(&watched, SIGCHLD);
  (void)sigaddset(&watched, SIGTERM);
  (void)sigaddset(&watched, SIGINT);
  (void)sigaddset(&watched, SIGHUP);
  (void)sigprocmask(SIG_BLOCK, &watched, NULL);
  int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  /* Sets each variable in both cases, as programs disagree on it. */
  static const char *const names[] = {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"};
  char url[64];
  (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", (unsigned)port);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    (void)setenv(names[i], url, 1);
  (void)unsetenv("ALL_PROXY");
  (void)unsetenv("all_proxy");
  (void)setenv("NO_PROXY", words[1], 1);
  (void)setenv("no_proxy", words[1], 1);
  (void)setenv("NODE_USE_ENV_PROXY", "1", 1); /* node's own fetch uses the proxy only then */
  pid_t self = getpid(), program = signals < 0 ? -1 : fork();
  if (program < 0)
    port_forward_fail("the program could not be started");
  if (program == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self)
      exit(STATUS_CANNOT);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execvp(words[2], words + 2);
    port_forward_fail(words[2]);
  }
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; fd++) /* ours would keep the pipes open */
    if (nothing < 0 || dup2(nothing, fd) < 0)
      (void)close(fd);
  port_forward_serve(program, signals, listening, folder, slash + 1);
}
