/* A proxy with clients and servers of sockets: what it carries, and what it refuses. */

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "http/proxy.h"
#include "os/loop.h"
#include "os/tmpdir.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BIG = 8 * 1024 * 1024 };

/* --- a server: what the first word of a connection says --- */

struct test_server {
  int fd;
  unsigned port;
  pthread_t thread;
};

static bool send_all(int fd, const char *bytes, size_t n) {
  while (n > 0) {
    ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes += sent;
    n -= (size_t)sent;
  }
  return true;
}

static void send_big(int fd) {
  char piece[4096];
  memset(piece, 'b', sizeof piece);
  for (size_t i = 0; i < BIG / sizeof piece; i++)
    send_all(fd, piece, sizeof piece);
}

static void serve_one(int fd) {
  char bytes[4096];
  ssize_t n = recv(fd, bytes, sizeof bytes, 0);
  if (n >= 5 && memcmp(bytes, "reset", 5) == 0) {
    const struct linger at_once = {.l_onoff = 1};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  } else if (n >= 3 && memcmp(bytes, "big", 3) == 0) {
    send_big(fd);
  } else if (n >= 5 && memcmp(bytes, "count", 5) == 0) {
    size_t all = (size_t)n;
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
      all += (size_t)n;
    send_all(fd, bytes, (size_t)snprintf(bytes, sizeof bytes, "%zu", all));
  } else {
    while (n > 0) {
      send_all(fd, bytes, (size_t)n);
      n = recv(fd, bytes, sizeof bytes, 0);
    }
  }
  close(fd);
}

static void *serve_all(void *ctx) {
  const struct test_server *s = ctx;
  int fd;
  while ((fd = accept(s->fd, NULL, NULL)) >= 0)
    serve_one(fd);
  return NULL;
}

static void server_begin(struct test_server *s) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(s->fd, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(s->fd, 8), 0);
  assert_int_equal(getsockname(s->fd, (struct sockaddr *)&address, &size), 0);
  s->port = ntohs(address.sin_port);
  assert_int_equal(pthread_create(&s->thread, NULL, serve_all, s), 0);
}

static void server_end(struct test_server *s) {
  (void)shutdown(s->fd, SHUT_RDWR);
  pthread_join(s->thread, NULL);
  close(s->fd);
}

/* --- a client, in a thread of its own --- */

struct test_client {
  const char *folder;
  const char *request, *then; /* sent once a byte of the answer is there; or NULL */
  size_t more;                /* so many bytes after that */
  bool leaves;                /* at once, without reading */
  bool goes_on, went_on;      /* sends a body after the whole answer; and it could */
  struct buf answer;
  uv_async_t over;
};

static int client_connect(const char *folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  print_into(address.sun_path, sizeof address.sun_path, "%.80s/" PROXY_SOCKET, folder);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
    abort(); /* perhaps in a thread */
  return fd;
}

static void *client_run(void *ctx) {
  struct test_client *c = ctx;
  char bytes[65536];
  ssize_t n;
  int fd = client_connect(c->folder);
  send_all(fd, c->request, strlen(c->request));
  bool first = true;
  while (!c->leaves && (n = recv(fd, bytes, sizeof bytes, 0)) > 0) {
    buf_append(&c->answer, bytes, (size_t)n);
    if (first && c->then != NULL) {
      send_all(fd, c->then, strlen(c->then));
      memset(bytes, 'm', sizeof bytes);
      for (size_t left = c->more; left > 0;) {
        size_t piece = left < sizeof bytes ? left : sizeof bytes;
        send_all(fd, bytes, piece);
        left -= piece;
      }
      (void)shutdown(fd, SHUT_WR);
    }
    first = false;
  }
  c->went_on = c->goes_on && send_all(fd, LIT("the body"));
  close(fd);
  uv_async_send(&c->over);
  return NULL;
}

/* --- the loop between them --- */

struct test_way {
  uv_loop_t loop;
  char *folder;
  struct proxy *proxy;
  char refused[512];
};

static void on_refused(void *ctx, const char *where) {
  struct test_way *w = ctx;
  size_t n = strlen(w->refused);
  print_into(w->refused + n, sizeof w->refused - n, "%s ", where);
}

static void way_begin(struct test_way *w, const char *const *hosts, const char *upstream) {
  struct err err = {0};
  *w = (struct test_way){0};
  assert_true(loop_init(&w->loop, &err));
  w->folder = tmpdir_make(&err);
  assert_non_null(w->folder);
  const struct proxy_spec spec = {.loop = &w->loop,
                                  .folder = w->folder,
                                  .hosts = hosts,
                                  .upstream = upstream,
                                  .refused = on_refused,
                                  .ctx = w};
  w->proxy = proxy_new(&spec, &err);
  if (w->proxy == NULL)
    fail_msg("%s", err.text);
}

static void way_end(struct test_way *w) {
  proxy_free(w->proxy);
  uv_run(&w->loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&w->loop), 0);
  struct err err = {0};
  assert_true(tmpdir_remove(w->folder, &err));
  free(w->folder);
}

static void client_on_closed(uv_handle_t *handle) {
  uv_stop(handle->loop);
}

static void client_on_over(uv_async_t *async) {
  uv_close((uv_handle_t *)async, client_on_closed);
}

/* Returns all that the client reads. */
static char *way_serve(struct test_way *w, struct test_client *c) {
  pthread_t thread;
  c->folder = w->folder;
  uv_async_init(&w->loop, &c->over, client_on_over);
  assert_int_equal(pthread_create(&thread, NULL, client_run, c), 0);
  uv_run(&w->loop, UV_RUN_DEFAULT);
  pthread_join(thread, NULL);
  char *answer = xstrndup(c->answer.p ? c->answer.p : "", c->answer.n);
  buf_deinit(&c->answer);
  return answer;
}

static char *way_ask(struct test_way *w, const char *request, const char *then, size_t more,
                     bool leaves) {
  struct test_client c = {.request = request, .then = then, .more = more, .leaves = leaves};
  return way_serve(w, &c);
}

static void assert_begins(char *answer, const char *wanted) {
  if (strncmp(answer, wanted, strlen(wanted)) != 0)
    fail_msg("\"%.200s\" does not begin with \"%s\"", answer, wanted);
  free(answer);
}

/* --- cases --- */

TEST(bytes_are_carried_both_ways) {
  static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
  char host[64], request[256];
  struct test_server server;
  struct test_way w;
  server_begin(&server);
  print_into(host, sizeof host, "localhost:%u", server.port);
  const char *const hosts[] = {host, NULL};
  way_begin(&w, hosts, NULL);
  print_into(request, sizeof request, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host);

  char *answer = way_ask(&w, request, "hello", 0, false);
  assert_string_equal(strstr(answer, "\r\n\r\n") + 4, "hello");
  assert_begins(answer, yes);

  answer = way_ask(&w, request, "big", 0, false); /* more than one that reads slowly is given */
  assert_int_equal(strlen(strstr(answer, "\r\n\r\n") + 4), BIG);
  free(answer);

  answer = way_ask(&w, request, "count", BIG, false);
  assert_string_equal(strstr(answer, "\r\n\r\n") + 4, "8388613");
  free(answer);

  assert_begins(way_ask(&w, request, "reset", 0, false), yes);
  free(way_ask(&w, request, NULL, 0, true)); /* it left while it was connected */
  way_end(&w);
  server_end(&server);
}

/* A server that echoes shows what a plain request becomes. It ends with its client. */
TEST(a_plain_request_is_made_one_of_its_host) {
  char host[64], request[256];
  struct test_server server;
  struct test_way w;
  server_begin(&server);
  print_into(host, sizeof host, "127.0.0.1:%u", server.port);
  const char *const hosts[] = {host, NULL};
  way_begin(&w, hosts, NULL);
  print_into(request, sizeof request,
             "GET http://%s/a?b HTTP/1.1\r\nProxy-Authorization: secret\r\n"
             "Connection: keep-alive\r\nX: y\r\n\r\n",
             host);
  char *answer = way_ask(&w, request, "", 0, false);
  assert_null(strstr(answer, "secret"));
  assert_null(strstr(answer, "keep-alive"));
  assert_non_null(strstr(answer, "\r\nX: y\r\n"));
  assert_begins(answer, "GET /a?b HTTP/1.1\r\n");
  way_end(&w);
  server_end(&server);
}

TEST(what_is_not_let_through_is_said) {
  char closed[64], request[256], *long_head = xcalloc(1, 3 * LIMIT_PROXY_HEAD_BYTES);
  struct test_server server;
  struct test_way w;
  server_begin(&server);
  print_into(closed, sizeof closed, "localhost:%u", server.port);
  server_end(&server); /* nobody listens there any more */
  const char *const hosts[] = {closed, "name.invalid", "169.254.1.1", NULL};
  way_begin(&w, hosts, NULL);
  assert_begins(way_ask(&w, "CONNECT evil.example:443 HTTP/1.1\r\n\r\n", NULL, 0, false),
                "HTTP/1.1 403 ");
  free(way_ask(&w, "CONNECT evil.example:443 HTTP/1.1\r\n\r\n", NULL, 0, false));
  assert_string_equal(w.refused, "evil.example:443 "); /* once */
  print_into(request, sizeof request, "CONNECT %s HTTP/1.1\r\n\r\n", closed);
  assert_begins(way_ask(&w, request, NULL, 0, false), "HTTP/1.1 502 ");
  assert_begins(way_ask(&w, "CONNECT name.invalid:443 HTTP/1.1\r\n\r\n", NULL, 0, false),
                "HTTP/1.1 502 ");
  assert_begins(way_ask(&w, "CONNECT 169.254.1.1:443 HTTP/1.1\r\n\r\n", NULL, 0, false),
                "HTTP/1.1 502 ");
  static const char *const wrong[] = {"CONNECT\r\n\r\n", "CONNECT a\r\n\r\n",
                                      "GET /a HTTP/1.1\r\n\r\n", "CONNECT a:0 HTTP/1.1\r\n\r\n",
                                      "GET ftp://a/ HTTP/1.1\r\n\r\n"};
  for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
    assert_begins(way_ask(&w, wrong[i], NULL, 0, false), "HTTP/1.1 400 ");
  memset(long_head, 'x', 3 * LIMIT_PROXY_HEAD_BYTES - 1);
  assert_begins(way_ask(&w, long_head, NULL, 0, false), "HTTP/1.1 431 ");
  free(long_head);
  way_end(&w);
}

/* A connection that is closed over bytes that nobody read takes the answer with it. */
TEST(a_refused_client_may_end_its_request) {
  static const char *const hosts[] = {NULL};
  struct test_way w;
  way_begin(&w, hosts, NULL);
  struct test_client c = {.request =
                              "POST http://evil.example/ HTTP/1.1\r\nContent-Length: 8\r\n\r\n",
                          .goes_on = true};
  assert_begins(way_serve(&w, &c), "HTTP/1.1 403 ");
  assert_true(c.went_on);
  way_end(&w);
}

TEST(too_many_at_once_are_closed) {
  static const char *const hosts[] = {NULL};
  int fds[LIMIT_PROXY_CONNECTIONS];
  struct test_way w;
  way_begin(&w, hosts, NULL);
  for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
    fds[i] = client_connect(w.folder);
    uv_run(&w.loop, UV_RUN_NOWAIT);
  }
  assert_begins(way_ask(&w, "CONNECT a:1 HTTP/1.1\r\n\r\n", NULL, 0, false), "");
  for (size_t i = 0; i < ARRAY_LEN(fds); i++)
    close(fds[i]);
  way_end(&w); /* with what is still open */
}

TEST(what_cannot_listen_says_so) {
  struct err err = {0};
  uv_loop_t loop;
  assert_true(loop_init(&loop, &err));
  const struct proxy_spec spec = {.loop = &loop, .folder = "/nonexistent/folder"};
  assert_null(proxy_new(&spec, &err));
  assert_non_null(strstr(err.text, "/nonexistent/folder"));
  proxy_free(NULL);
  assert_int_equal(uv_loop_close(&loop), 0);
}
