/* canned_server.h - an HTTP server in a child process that gives each request the same bytes.
 *
 *   struct canned_server s; canned_start(&s, answers, count);  url: http://127.0.0.1:s.port/INDEX/...
 *   canned_stop(&s)
 *
 * The digit after the first slash chooses the answer. `hold`: the connection stays open behind it;
 * `cut_every`: each n-th request gets a part of the answer, then the connection is closed. One thread,
 * epoll, keep-alive. */
#ifndef SEGUE_TESTS_CANNED_SERVER_H
#define SEGUE_TESTS_CANNED_SERVER_H

#include "base/buf.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct canned_answer {
  struct str bytes; /* head and body */
  bool hold;
  unsigned cut_every;
};

struct canned_server {
  pid_t pid;
  int port;
};

struct canned_connection {
  int fd;
  struct buf in;
  const struct canned_answer *answer;
  size_t sent, until;
  bool close;
};

/* The request's length when it is whole, else 0. */
static inline size_t canned_request(const struct buf *in) {
  const char *end = in->n ? strstr(in->p, "\r\n\r\n") : NULL;
  const char *length = end ? strcasestr(in->p, "content-length:") : NULL;
  size_t body = length && length < end ? (size_t)atol(length + 15) : 0;
  size_t all = end ? (size_t)(end - in->p) + 4 + body : 0;
  return in->n >= all ? all : 0;
}

static inline void canned_close(struct canned_connection *c) {
  close(c->fd);
  buf_deinit(&c->in);
  free(c);
}

/* False: the connection is gone. */
static inline bool canned_write(int poll, struct canned_connection *c) {
  while (c->answer && c->sent < c->until) {
    ssize_t n = send(c->fd, c->answer->bytes.p + c->sent, c->until - c->sent, MSG_NOSIGNAL);
    if (n <= 0) {
      struct epoll_event event = {EPOLLIN | EPOLLOUT, {.ptr = c}};
      epoll_ctl(poll, EPOLL_CTL_MOD, c->fd, &event);
      return true;
    }
    c->sent += (size_t)n;
  }
  if (c->answer && c->close) {
    canned_close(c);
    return false;
  }
  if (c->answer && !c->answer->hold)
    c->answer = NULL;
  return true;
}

static inline void canned_read(int poll, struct canned_connection *c,
                               const struct canned_answer *answers, unsigned *seed) {
  char piece[65536];
  ssize_t n = recv(c->fd, piece, sizeof piece, 0);
  if (n <= 0) {
    canned_close(c);
    return;
  }
  buf_append(&c->in, piece, (size_t)n);
  size_t all = canned_request(&c->in);
  if (all == 0)
    return;
  const char *slash = strchr(c->in.p, '/');
  c->answer = &answers[slash[1] - '0'];
  c->sent = 0;
  c->until = c->answer->bytes.n;
  *seed = *seed * 1664525u + 1013904223u;
  c->close = c->answer->cut_every && (*seed >> 16) % c->answer->cut_every == 0;
  if (c->close)
    c->until = (*seed >> 8) % c->until;
  memmove(c->in.p, c->in.p + all, c->in.n - all + 1);
  c->in.n -= all;
  (void)canned_write(poll, c);
}

static inline void canned_serve(int listener, const struct canned_answer *answers) {
  int poll = epoll_create1(0), one = 1;
  unsigned seed = 1;
  struct epoll_event events[256], event = {EPOLLIN, {.ptr = NULL}};
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int n = epoll_wait(poll, events, 256, -1);
    for (int i = 0; i < n; i++) {
      struct canned_connection *c = events[i].data.ptr;
      if (c == NULL) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0)
          continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        c = xcalloc(1, sizeof *c);
        c->fd = fd;
        event = (struct epoll_event){EPOLLIN, {.ptr = c}};
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
      } else if ((events[i].events & EPOLLOUT) && !canned_write(poll, c)) {
        continue;
      } else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        canned_read(poll, c, answers, &seed);
      }
    }
  }
}

static inline void canned_start(struct canned_server *s, const struct canned_answer *answers) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bind(listener, (struct sockaddr *)&at, n) != 0 || listen(listener, 4096) != 0 ||
      getsockname(listener, (struct sockaddr *)&at, &n) != 0)
    die("no port to listen on");
  s->port = ntohs(at.sin_port);
  s->pid = fork();
  if (s->pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    canned_serve(listener, answers);
  }
  close(listener);
}

static inline void canned_stop(struct canned_server *s) {
  kill(s->pid, SIGKILL);
  waitpid(s->pid, NULL, 0);
}

#endif
