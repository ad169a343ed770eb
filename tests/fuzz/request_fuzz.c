/* libFuzzer: bytes on the control socket, against the real routes over one finished session.
 *
 * The input is sent as it is, or it begins with: ? the query of a list, / the rest of a session's
 * path, { a body. Whatever comes: an answer is HTTP, with a problem where it is an error, and
 * nothing is left of the connection when the client has gone. */
#include "daemon/control.h"
#include "os/clock.h"
#include "os/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SPINS = 1000, QUIET_SPINS = 20, LEFT_MS = 10000, ANSWER_BYTES = 64 * 1024 };

static const char session[] = "01990000-0000-7000-8000-00000000aaaa";

static struct {
  char *folder;
  uv_loop_t loop;
  struct store store;
  struct host host;
  struct launch_env env;
  struct events events;
  struct sessions sessions;
  struct control api;
  struct control_socket socket;
} d;

static void put_log(void) {
  char path[STORE_PATH_BYTES + 64];
  print_into(path, sizeof path, "%s/%s.ndjson", d.store.where, session);
  FILE *f = fopen(path, "w");
  if (f == NULL)
    abort();
  fprintf(f,
          "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000Z\",\"type\":\"session_start\","
          "\"session\":\"%s\",\"workflow\":{\"name\":\"w\"},\"config\":{\"submitted\":true}}\n"
          "{\"v\":1,\"seq\":2,\"ts\":\"2026-01-01T00:00:01.000Z\",\"type\":\"session_end\","
          "\"outcome\":\"complete\"}\n",
          session);
  (void)fclose(f);
}

static void clean_up(void) {
  struct err err;
  server_free(d.api.http);
  control_close(&d.api); /* else what a list keeps for a minute keeps the loop */
  sessions_close(&d.sessions);
  events_close(&d.events);
  host_deinit(&d.host);
  (void)uv_run(&d.loop, UV_RUN_DEFAULT);
  control_deinit(&d.api);
  (void)uv_loop_close(&d.loop);
  socket_close(&d.socket);
  generation_unref(d.env.generation);
  if (!tmpdir_remove(d.folder, &err))
    fprintf(stderr, "%s\n", err.text);
  free(d.folder);
}

static bool begin(struct err *err) {
  char path[SOCKET_PATH_BYTES];
  d.folder = tmpdir_make(err);
  if (d.folder == NULL || setenv("XDG_CONFIG_HOME", d.folder, 1) != 0 ||
      uv_loop_init(&d.loop) != 0 || !store_open(&d.store, d.folder, err))
    return false;
  put_log();
  print_into(path, sizeof path, "%.90s/s", d.folder);
  d.env.generation = generation_new(err);
  return d.env.generation != NULL && socket_listen(&d.socket, path, err) &&
         host_init(&d.host, &d.loop, &d.store, d.env.generation->registry, err);
}

static void set_up(void) {
  struct err err = {0};
  (void)setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim",
               1); /* a host asks for it; nothing runs */
  if (!begin(&err)) {
    fprintf(stderr, "%s\n", err.text);
    abort();
  }
  (void)signal(SIGPIPE, SIG_IGN);
  d.env.store = &d.store;
  d.env.workflows = d.host.workflows;
  events_init(&d.events, &d.loop);
  sessions_init(&d.sessions, &d.host, &d.env, &d.events, 1, control_changed, &d.api);
  control_init(&d.api, &d.sessions);
  d.api.draining = true; /* nothing is submitted: launch_fuzz has the bodies */
  d.api.http = server_new(&d.loop, &d.socket, NULL, control_routes, &d.api, 4, &err);
  if (d.api.http == NULL)
    abort();
  (void)atexit(clean_up);
}

static void compose(struct str in, struct buf *out) {
  char first = in.n > 0 ? in.p[0] : '\0';
  if (first == '?')
    buf_printf(out, "GET /v1/sessions" STR_FMT " HTTP/1.1\r\n\r\n", STR_ARG(in));
  else if (first == '/')
    buf_printf(out, "GET /v1/sessions" STR_FMT " HTTP/1.1\r\nHost: x\r\n\r\n", STR_ARG(in));
  else if (first == '{')
    buf_printf(out,
               "POST /v1/sessions HTTP/1.1\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n" STR_FMT,
               in.n, STR_ARG(in));
  else
    buf_str(out, in);
}

static int connect_to_it(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  print_into(address.sun_path, sizeof address.sun_path, "%s", d.socket.path);
  if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
    abort();
  return fd;
}

/* Sends all of it, then its end, and takes what comes until the other end, or until it is quiet:
 * the library does not see each half-closed connection at once. */
static void exchange(int fd, struct str request, struct buf *answer) {
  char bytes[4096];
  bool ended = false;
  for (int quiet = 0; quiet < QUIET_SPINS; quiet++) {
    ssize_t n = request.n > 0 ? send(fd, request.p, request.n, MSG_NOSIGNAL) : 0;
    bool refused = n < 0 && errno != EAGAIN;
    if (n > 0) {
      request.p += n;
      request.n -= (size_t)n;
      quiet = 0;
    }
    if (!ended && (request.n == 0 || refused)) {
      ended = true;
      request.n = 0;
      (void)shutdown(fd, SHUT_WR);
    }
    (void)uv_run(&d.loop, UV_RUN_NOWAIT);
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) {
      quiet = 0;
      if (answer->n < ANSWER_BYTES)
        buf_append(answer, bytes, (size_t)n);
    }
    if (n == 0 || errno != EAGAIN)
      return;
  }
}

static void check_answer(const struct buf *answer) {
  const char *text = buf_c(answer);
  if (answer->n == 0 || strncmp(text, "HTTP/1.1 100", 12) == 0)
    return;
  int status = 0;
  const char *end = strstr(text, "\r\n\r\n");
  if (sscanf(text, "HTTP/1.%*1d %3d ", &status) != 1 || end == NULL)
    abort();
  /* A text that is no request gets a page of the library's own; to HEAD its head alone. */
  const char *kind = strstr(text, "application/problem+json"), *page = strstr(text, "<html>");
  bool head_alone = end[4] == '\0' || strncmp(end + 4, "HTTP/1.", 7) == 0;
  if (status >= 400 && (kind == NULL || kind > end) && page == NULL && !head_alone)
    abort();
}

/* Lets the server find that its client has left. It sees most ends at once, and that of a stream,
 * on which it waits for news, with its next tick. */
static bool is_left_alone(void) {
  for (int i = 0; i < SPINS && server_connections(d.api.http) > 0; i++)
    (void)uv_run(&d.loop, UV_RUN_NOWAIT);
  uint64_t end_ms = clock_mono_ms() + LEFT_MS;
  while (server_connections(d.api.http) > 0 && clock_mono_ms() < end_ms)
    (void)uv_run(&d.loop, UV_RUN_ONCE);
  return server_connections(d.api.http) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  buf_auto_t request = {0}, answer = {0};
  if (d.folder == NULL)
    set_up();
  compose((struct str){(const char *)data, size}, &request);
  int fd = connect_to_it();
  exchange(fd, buf_view(&request), &answer);
  check_answer(&answer);
  close(fd);
  if (!is_left_alone())
    abort(); /* a connection is left */
  return 0;
}
