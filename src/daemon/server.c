#include "daemon/server.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PART_BYTES = 128, HEADER_BYTES = 64, BLOCK_BYTES = 1024, TICK_MS = 1000 };

struct connection { /* one that was accepted */
  struct connection *prev, *next;
  struct MHD_Connection *mhd;
  struct server_request *request; /* being answered; NULL: we wait for the client */
  uint64_t since;                 /* uv_now, of the last answer */
};

/* RECEIVING -> HANDLED -> (KEPT ->) ANSWERED -> (STREAMING ->) gone */
enum request_state { RECEIVING, HANDLED, KEPT, ANSWERED, STREAMING };

struct server_request {
  struct server *http;
  struct MHD_Connection *mhd;
  enum request_state state;
  bool suspended;
  const struct server_route *route;
  char part[PART_BYTES];
  struct buf body;
  size_t body_counted; /* of http.body_bytes */
  unsigned refusal;    /* status for a body that is not taken, 0 */
  struct MHD_Response *response;
  unsigned status;
  struct {
    const char *name;
    char value[HEADER_BYTES];
  } headers[2];
  void (*gone)(void *ctx);
  void *gone_ctx;
  struct streaming *streaming;
};

/* MHD may drop a response before or after its request, so a stream is neither's. */
struct streaming {
  struct server_request *request; /* NULL: it is over */
  const struct server_stream_ops *ops;
  void *stream;
};

struct server {
  uv_loop_t *loop;
  const struct control_socket *socket;
  const struct server_route *routes;
  void *ctx;
  struct MHD_Daemon *mhd;
  uv_poll_t listener, events;
  uv_timer_t timer;  /* what MHD waits for, and the next run after a wake */
  uv_timer_t ticker; /* requests that take too long */
  uv_timer_t accept_again;
  int open_handles;
  unsigned connection_count, max_connections;
  struct connection *connections;
  size_t body_bytes;
  bool running, wanted, closing, listening;
};

static void run(struct server *h);

/* --- accepting --- */

static void on_listener(uv_poll_t *poll, int status, int events);

static void listen_on(struct server *h) {
  if (h->listening || h->closing || h->connection_count >= h->max_connections)
    return;
  h->listening = true;
  uv_poll_start(&h->listener, UV_READABLE, on_listener);
}

static void listen_off(struct server *h) {
  h->listening = false;
  uv_poll_stop(&h->listener);
}

static void on_accept_again(uv_timer_t *timer) {
  listen_on(timer->data);
}

static void on_listener(uv_poll_t *poll, int status, int events) {
  struct server *h = poll->data;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  (void)status;
  (void)events;
  for (;;) {
    if (h->connection_count >= h->max_connections) { /* until one goes */
      listen_off(h);
      break;
    }
    int fd = socket_accept(h->socket);
    if (fd < 0 && errno == EPERM) {
      log_warn("another user called on the control socket and was refused");
      continue;
    }
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
      continue;
    if (fd < 0 && errno != EAGAIN) { /* no descriptor left: never spin on a readable listener */
      listen_off(h);
      uv_timer_start(&h->accept_again, on_accept_again, LIMIT_API_ACCEPT_RETRY_MS, 0);
    }
    if (fd < 0)
      break;
    /* It closes fd when it fails. */
    (void)MHD_add_connection(h->mhd, fd, (const struct sockaddr *)&address, sizeof address);
  }
  run(h);
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **slot,
                          enum MHD_ConnectionNotificationCode code) {
  struct server *h = ctx;
  struct connection *c = *slot;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    c = xcalloc(1, sizeof *c);
    c->mhd = mhd;
    c->since = uv_now(h->loop);
    c->next = h->connections;
    if (c->next)
      c->next->prev = c;
    h->connections = c;
    h->connection_count++;
    *slot = c;
    return;
  }
  if (c->prev)
    c->prev->next = c->next;
  else
    h->connections = c->next;
  if (c->next)
    c->next->prev = c->prev;
  free(c);
  *slot = NULL;
  h->connection_count--;
  listen_on(h);
}

static struct connection *connection_of(struct MHD_Connection *mhd) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info->socket_context;
}

/* --- running --- */

static void on_timer(uv_timer_t *timer) {
  run(timer->data);
}

static void on_events(uv_poll_t *poll, int status, int events) {
  (void)status;
  (void)events;
  run(poll->data);
}

/* Never from within itself: callbacks of MHD that want another run get one from the loop. */
static void want_run(struct server *h) {
  h->wanted = true;
  if (!h->running && !h->closing)
    uv_timer_start(&h->timer, on_timer, 0, 0);
}

static void run(struct server *h) {
  MHD_UNSIGNED_LONG_LONG wait_ms;
  if (h->running || h->closing)
    return;
  h->running = true;
  h->wanted = false;
  (void)MHD_run(h->mhd);
  h->running = false;
  if (h->wanted)
    uv_timer_start(&h->timer, on_timer, 0, 0);
  else if (MHD_get_timeout(h->mhd, &wait_ms) == MHD_YES)
    uv_timer_start(&h->timer, on_timer, wait_ms, 0);
  else
    uv_timer_stop(&h->timer);
}

/* A request that trickles in holds its connection for LIMIT_API_REQUEST_MS at most. */
static void on_tick(uv_timer_t *timer) {
  struct server *h = timer->data;
  uint64_t now = uv_now(h->loop);
  for (struct connection *c = h->connections; c; c = c->next) {
    bool waits = c->request == NULL || c->request->state == RECEIVING;
    if (!waits || now - c->since < LIMIT_API_REQUEST_MS)
      continue;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    (void)shutdown(info->connect_fd, SHUT_RDWR); /* MHD sees its end and closes it */
  }
}

/* --- requests --- */

/* The rest of `path` behind the literal part, up to its slash, where the route has {name}. */
static bool path_fits(const char *route, const char *path, char part[PART_BYTES]) {
  part[0] = '\0';
  while (*route && *route != '{' && *route == *path) {
    route++;
    path++;
  }
  if (*route != '{')
    return *route == '\0' && *path == '\0';
  size_t n = strcspn(path, "/");
  if (n == 0 || n >= PART_BYTES)
    return false;
  memcpy(part, path, n);
  part[n] = '\0';
  return strcmp(strchr(route, '}') + 1, path + n) == 0;
}

/* NULL: `allowed` has the methods that the path takes, as the header Allow lists them, "" for none. */
static const struct server_route *find_route(const struct server *h, const char *method,
                                             const char *path, char part[PART_BYTES],
                                             char allowed[HEADER_BYTES]) {
  size_t n = 0;
  allowed[0] = '\0';
  for (const struct server_route *route = h->routes; route->method; route++) {
    if (!path_fits(route->path, path, part))
      continue;
    bool is_get = strcmp(route->method, "GET") == 0;
    if (strcmp(route->method, method) == 0 || (is_get && strcmp(method, "HEAD") == 0))
      return route;
    n += (size_t)snprintf(allowed + n, HEADER_BYTES - n, "%s%s%s", n ? ", " : "", route->method,
                          is_get ? ", HEAD" : "");
    assert(n < HEADER_BYTES);
  }
  return NULL;
}

static bool is_json(const struct server_request *r) {
  const char *type = server_header(r, "Content-Type");
  return type != NULL && strncasecmp(type, "application/json", 16) == 0 &&
         (type[16] == '\0' || type[16] == ';' || type[16] == ' ');
}

static void handle(struct server_request *r, const char *method, const char *path) {
  char allowed[HEADER_BYTES];
  struct server *h = r->http;
  r->state = HANDLED;
  h->body_bytes -= r->body_counted;
  r->body_counted = 0;
  if (r->refusal == 413) {
    server_problem(r, 413, NULL, "the body is over the limit of %u bytes", LIMIT_API_BODY_BYTES);
    return;
  }
  if (r->refusal == 503) {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, 503, NULL, "too many requests are being received: try again");
    return;
  }
  r->route = find_route(h, method, path, r->part, allowed);
  if (r->route == NULL && allowed[0] != '\0') {
    server_set_header(r, "Allow", allowed);
    server_problem(r, 405, NULL, "%s takes %s only", path, allowed);
  } else if (r->route == NULL) {
    server_problem(r, 404, NULL, "there is nothing at %s", path);
  } else if (r->route->takes_body && !is_json(r)) {
    server_problem(r, 415, NULL, "the body must be JSON: send Content-Type: application/json");
  } else {
    r->route->handle(h->ctx, r);
  }
  if (r->state == HANDLED)
    BUG("%s %s was neither answered nor kept", method, path);
}

static void take_body(struct server_request *r, const char *bytes, size_t n) {
  struct server *h = r->http;
  if (r->refusal == 0 && r->body.n + n > LIMIT_API_BODY_BYTES)
    r->refusal = 413;
  if (r->refusal == 0 && h->body_bytes + n > LIMIT_API_BODIES_BYTES)
    r->refusal = 503;
  if (r->refusal != 0) {
    h->body_bytes -= r->body_counted;
    r->body_counted = 0;
    buf_deinit(&r->body);
    return;
  }
  buf_append(&r->body, bytes, n);
  h->body_bytes += n;
  r->body_counted += n;
}

static enum MHD_Result queue(struct server_request *r) {
  enum MHD_Result queued = MHD_queue_response(r->mhd, r->status, r->response);
  MHD_destroy_response(r->response); /* our reference */
  r->response = NULL;
  return queued;
}

/* A body that says it is too long is refused before it comes. */
static bool says_too_long(const struct server_request *r) {
  const char *length = server_header(r, "Content-Length");
  long n;
  return length != NULL && (!str_to_long(str_from(length), &n) || n > (long)LIMIT_API_BODY_BYTES);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *n, void **slot) {
  struct server *h = ctx;
  struct server_request *r = *slot;
  (void)version;
  if (r == NULL) {
    r = xcalloc(1, sizeof *r);
    r->http = h;
    r->mhd = mhd;
    *slot = r;
    connection_of(mhd)->request = r;
    if (!says_too_long(r))
      return MHD_YES;
    r->refusal = 413;
    handle(r, method, path);
    return queue(r);
  }
  if (*n > 0) {
    take_body(r, bytes, *n);
    *n = 0;
    return MHD_YES;
  }
  if (r->state == RECEIVING)
    handle(r, method, path);
  if (r->state == KEPT) {
    if (!r->suspended) {
      r->suspended = true;
      MHD_suspend_connection(mhd);
    }
    return MHD_YES;
  }
  return r->response ? queue(r) : MHD_NO;
}

static void end_request(struct server_request *r) {
  if (r->gone != NULL && r->state == KEPT)
    r->gone(r->gone_ctx);
  if (r->response != NULL)
    MHD_destroy_response(r->response);
  r->http->body_bytes -= r->body_counted;
  buf_deinit(&r->body);
  free(r);
}

static void on_completed(void *ctx, struct MHD_Connection *mhd, void **slot,
                         enum MHD_RequestTerminationCode why) {
  struct server *h = ctx;
  struct server_request *r = *slot;
  (void)why;
  struct connection *c = connection_of(mhd);
  if (c != NULL) {
    c->request = NULL;
    c->since = uv_now(h->loop);
  }
  *slot = NULL;
  if (r != NULL && r->streaming != NULL)
    r->streaming->request = NULL;
  if (r != NULL)
    end_request(r);
}

const char *server_part(const struct server_request *r) {
  return r->part;
}

const char *server_query(const struct server_request *r, const char *name) {
  return MHD_lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, name);
}

const char *server_header(const struct server_request *r, const char *name) {
  return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

struct str server_body(const struct server_request *r) {
  return buf_view(&r->body);
}

void server_keep(struct server_request *r, void (*gone)(void *ctx), void *ctx) {
  assert(r->state == HANDLED);
  r->state = KEPT;
  r->gone = gone;
  r->gone_ctx = ctx;
}

/* --- answering --- */

static void resume(struct server_request *r) {
  if (!r->suspended)
    return;
  r->suspended = false;
  MHD_resume_connection(r->mhd);
  want_run(r->http);
}

void server_set_header(struct server_request *r, const char *name, const char *value) {
  size_t i = r->headers[0].name ? 1 : 0;
  r->headers[i].name = name;
  (void)snprintf(r->headers[i].value, sizeof r->headers[i].value, "%s", value);
}

static void answer(struct server_request *r, unsigned status, const char *type,
                   struct MHD_Response *response) {
  assert(r->state == HANDLED || r->state == KEPT);
  if (response == NULL)
    BUG("no response could be made");
  r->state = ANSWERED;
  r->status = status;
  r->response = response;
  if (type != NULL)
    (void)MHD_add_response_header(response, "Content-Type", type);
  for (size_t i = 0; i < ARRAY_LEN(r->headers) && r->headers[i].name; i++)
    (void)MHD_add_response_header(response, r->headers[i].name, r->headers[i].value);
  resume(r);
}

void server_reply(struct server_request *r, unsigned status, const char *type, struct str bytes) {
  answer(
      r, status, type,
      MHD_create_response_from_buffer(bytes.n, (void *)(uintptr_t)bytes.p, MHD_RESPMEM_MUST_COPY));
}

static void reply_json(struct server_request *r, unsigned status, const char *type, json_t *taken) {
  struct buf text = {0};
  json_write(taken, &text);
  json_decref(taken);
  size_t n = text.n;
  answer(r, status, type,
         MHD_create_response_from_buffer(n, buf_take(&text), MHD_RESPMEM_MUST_FREE));
}

void server_reply_json(struct server_request *r, unsigned status, json_t *taken) {
  reply_json(r, status, "application/json", taken);
}

static const char *title_of(unsigned status) {
  switch (status) {
  case 400:
    return "Bad Request";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 409:
    return "Conflict";
  case 413:
    return "Content Too Large";
  case 415:
    return "Unsupported Media Type";
  case 422:
    return "Unprocessable Content";
  case 503:
    return "Service Unavailable";
  case 507:
    return "Insufficient Storage";
  default:
    return "Internal Server Error";
  }
}

void server_problem(struct server_request *r, unsigned status, json_t *members, const char *fmt,
                    ...) {
  struct buf safe = {0};
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  buf_safe(&safe, str_from(text), false); /* it may quote what is not UTF-8 */
  json_t *problem = json_pack("{ss ss si ss}", "type", "about:blank", "title", title_of(status),
                              "status", (int)status, "detail", buf_c(&safe));
  buf_deinit(&safe);
  if (members != NULL)
    json_object_update(problem, members);
  json_decref(members);
  reply_json(r, status, "application/problem+json", problem);
}

/* --- streams --- */

static ssize_t on_stream_read(void *ctx, uint64_t at, char *out, size_t max) {
  struct streaming *s = ctx;
  struct server_request *r = s->request;
  (void)at;
  ssize_t n = r == NULL || r->http->closing ? -1 : s->ops->read(s->stream, out, max);
  if (n < 0)
    return MHD_CONTENT_READER_END_OF_STREAM;
  if (n == 0 && !r->suspended) {
    r->suspended = true;
    MHD_suspend_connection(r->mhd);
  }
  return n;
}

static void on_stream_closed(void *ctx) {
  struct streaming *s = ctx;
  if (s->request != NULL)
    s->request->streaming = NULL;
  s->ops->closed(s->stream);
  free(s);
}

void server_stream(struct server_request *r, const char *type, const struct server_stream_ops *ops,
                   void *stream) {
  struct streaming *s = xcalloc(1, sizeof *s);
  *s = (struct streaming){r, ops, stream};
  r->streaming = s;
  answer(r, 200, type,
         MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_stream_read, s,
                                           on_stream_closed));
  (void)MHD_add_response_header(r->response, "Cache-Control", "no-store");
  r->state = STREAMING;
}

void server_wake(struct server_request *r) {
  resume(r);
}

/* --- the server --- */

struct server *server_new(uv_loop_t *loop, const struct control_socket *socket,
                          const struct server_route *routes, void *ctx, unsigned max_connections,
                          struct err *err) {
  struct server *h = xcalloc(1, sizeof *h);
  *h = (struct server){.loop = loop,
                       .socket = socket,
                       .routes = routes,
                       .ctx = ctx,
                       .max_connections = max_connections};
  h->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
                            NULL, NULL, on_request, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
                            MHD_OPTION_CONNECTION_LIMIT, max_connections + 1,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LIMIT_API_CONNECTION_BYTES,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LIMIT_API_IDLE_S,
                            MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
  const union MHD_DaemonInfo *info =
      h->mhd ? MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
  if (info == NULL) {
    if (h->mhd)
      MHD_stop_daemon(h->mhd);
    free(h);
    (void)err_set(err, ERR_IO, "the HTTP server cannot start");
    return NULL;
  }
  if (uv_poll_init(loop, &h->events, info->epoll_fd) != 0 ||
      uv_poll_init(loop, &h->listener, socket->fd) != 0)
    BUG("the loop takes no descriptor");
  uv_timer_init(loop, &h->timer);
  uv_timer_init(loop, &h->ticker);
  uv_timer_init(loop, &h->accept_again);
  h->events.data = h->listener.data = h->timer.data = h->ticker.data = h->accept_again.data = h;
  h->open_handles = 5;
  uv_poll_start(&h->events, UV_READABLE, on_events);
  uv_timer_start(&h->ticker, on_tick, TICK_MS, TICK_MS);
  listen_on(h);
  return h;
}

unsigned server_connections(const struct server *h) {
  return h->connection_count;
}

static void on_closed(uv_handle_t *handle) {
  struct server *h = handle->data;
  if (--h->open_handles == 0)
    free(h);
}

void server_free(struct server *h) {
  if (h == NULL)
    return;
  h->closing = true;
  for (struct connection *c = h->connections; c; c = c->next)
    if (c->request != NULL && c->request->suspended) {
      c->request->suspended = false;
      MHD_resume_connection(c->mhd);
    }
  uv_poll_stop(&h->events);
  uv_poll_stop(&h->listener);
  MHD_stop_daemon(h->mhd); /* completes every request */
  uv_close((uv_handle_t *)&h->events, on_closed);
  uv_close((uv_handle_t *)&h->listener, on_closed);
  uv_close((uv_handle_t *)&h->timer, on_closed);
  uv_close((uv_handle_t *)&h->ticker, on_closed);
  uv_close((uv_handle_t *)&h->accept_again, on_closed);
}
