/* Accepts connections and drives libmicrohttpd. */
#include "base/limits.h"
#include "base/log.h"
#include "daemon/server_internal.h"
#include "os/peer.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { TICK_MS = 1000 };

static void server_run(struct server *h);

/* --- accepting --- */

static void on_listener(uv_poll_t *poll, int status, int events);

static void listen_on(struct server *h) {
  if (h->listening || h->closing || h->connections.count >= h->max_connections)
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

/* A connection's memory is fixed when it begins, and sooner or later the library touches all of it:
 * so a client that sends little, as pages do, gets little. Its later requests must fit too; one
 * that does not is answered 431 and closed, and the next connection gets more. */
static struct engine *engine_for(struct server *h, int fd) {
  char head[4096];
  if (h->engine_count == 1)
    return &h->engines[0];
  assert(h->door->short_head_bytes <= sizeof head);
  ssize_t n = recv(fd, head, h->door->short_head_bytes, MSG_PEEK | MSG_DONTWAIT);
  bool whole = n > 0 && memmem(head, (size_t)n, LIT("\r\n\r\n")) != NULL;
  return &h->engines[whole ? 1 : 0];
}

static void on_listener(uv_poll_t *poll, int status, int events) {
  struct server *h = poll->data;
  struct sockaddr_storage address = {.ss_family = h->door ? AF_INET : AF_UNIX};
  socklen_t bytes = h->door ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_un);
  (void)status;
  (void)events;
  for (;;) {
    if (h->connections.count >= h->max_connections) { /* until one closes */
      listen_off(h);
      break;
    }
    int fd = h->door ? h->door->accept(h->listens) : socket_accept(h->socket);
    if (fd < 0 && errno == EPERM) {
      log_warn("another user connected to the %s and was refused",
               h->door ? "window's port" : "control socket");
      continue;
    }
    if (fd < 0 && errno == EACCES) {
      log_warn("a program in a sandbox connected to the control socket and was refused");
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
    /* On failure it closes fd itself. */
    (void)microhttpd.add_connection(engine_for(h, fd)->mhd, fd, (const struct sockaddr *)&address,
                                    bytes);
  }
  server_run(h);
}

static void hang_up(struct connection *c) {
  c->ends = true;
  const union MHD_ConnectionInfo *info =
      microhttpd.get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
  (void)shutdown(info->connect_fd, SHUT_RDWR); /* MHD sees the end and closes it */
}

static bool waits_for_client(const struct connection *c) {
  return !c->ends && (c->request == NULL || c->request->state == RECEIVING);
}

/* A page or script that keeps opening connections without a request must not take every place:
 * each process may leave only so many idle, and its oldest is closed. Behind a door, where it is
 * not known, all browsers count as one. The list begins with the newest. */
static void server_make_room(const struct server *h) {
  struct connection *oldest = NULL;
  const struct connection *newest = LIST_FIRST(struct connection, in_server, &h->connections);
  unsigned waiting = 0, most = h->max_connections / 4;
  if (h->door == NULL && most < LIMIT_API_PEER_MIN_COUNT)
    most = LIMIT_API_PEER_MIN_COUNT;
  LIST_EACH(struct connection, c, in_server, &h->connections) {
    if ((c->process == 0 && h->door == NULL) || c->process != newest->process ||
        !waits_for_client(c))
      continue;
    waiting++;
    if (oldest == NULL || c->since <= oldest->since)
      oldest = c;
  }
  if (waiting > most && oldest != NULL && oldest != newest)
    hang_up(oldest);
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **slot,
                          enum MHD_ConnectionNotificationCode code) {
  struct server *h = ctx;
  struct connection *c = *slot;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    c = xcalloc(1, sizeof *c);
    c->mhd = mhd;
    c->since = uv_now(h->loop);
    list_push_front(&h->connections, &c->in_server);
    *slot = c;
    const union MHD_ConnectionInfo *info =
        microhttpd.get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    c->process = peer_process(info->connect_fd);
    server_make_room(h);
    return;
  }
  list_remove(&h->connections, &c->in_server);
  free(c);
  *slot = NULL;
  listen_on(h);
}

/* --- running --- */

static void server_on_timer(uv_timer_t *timer) {
  server_run(timer->data);
}

static void on_events(uv_poll_t *poll, int status, int events) {
  (void)status;
  (void)events;
  server_run(poll->data);
}

/* A run never starts within another: MHD's callbacks that want one get it from the loop. */
void server_want_run(struct server *h) {
  h->wanted = true;
  if (!h->running && !h->closing)
    uv_timer_start(&h->timer, server_on_timer, 0, 0);
}

static void server_run(struct server *h) {
  MHD_UNSIGNED_LONG_LONG wait_ms, least_ms = UINT64_MAX;
  if (h->running || h->closing)
    return;
  h->running = true;
  h->wanted = false;
  for (size_t i = 0; i < h->engine_count; i++)
    (void)microhttpd.run(h->engines[i].mhd);
  h->running = false;
  for (size_t i = 0; i < h->engine_count; i++)
    if (microhttpd.get_timeout(h->engines[i].mhd, &wait_ms) == MHD_YES && wait_ms < least_ms)
      least_ms = wait_ms;
  if (h->wanted)
    uv_timer_start(&h->timer, server_on_timer, 0, 0);
  else if (least_ms < UINT64_MAX)
    uv_timer_start(&h->timer, server_on_timer, least_ms, 0);
  else
    uv_timer_stop(&h->timer);
}

/* The library does not look at a connection while its request is held, or its stream has nothing to
 * say. */
static bool has_left(const struct connection *c) {
  const struct server_request *r = c->request;
  if (r == NULL || (r->state != KEPT && r->state != STREAMING) || !r->suspended)
    return false;
  const union MHD_ConnectionInfo *info =
      microhttpd.get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
  struct pollfd end = {.fd = info->connect_fd};
  return poll(&end, 1, 0) == 1 && (end.revents & (POLLHUP | POLLERR)) != 0;
}

/* A request that trickles in holds its connection for LIMIT_API_REQUEST_MS at most. */
static void server_on_tick(uv_timer_t *timer) {
  struct server *h = timer->data;
  uint64_t now = uv_now(h->loop);
  LIST_EACH(struct connection, c, in_server, &h->connections) {
    if (waits_for_client(c) && now - c->since >= LIMIT_API_REQUEST_MS)
      hang_up(c);
    else if (has_left(c))
      server_request_left(c->request);
  }
}

/* --- the server --- */

static bool engine_begin(struct server *h, size_t connection_bytes) {
  struct engine *e = &h->engines[h->engine_count];
  e->mhd = microhttpd.start_daemon(
      MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
      server_on_request, h, MHD_OPTION_NOTIFY_COMPLETED, server_on_completed, h,
      MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_CONNECTION_LIMIT,
      h->max_connections + 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_bytes,
      MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LIMIT_API_IDLE_S, MHD_OPTION_SIGPIPE_HANDLED_BY_APP,
      1, MHD_OPTION_END);
  const union MHD_DaemonInfo *info =
      e->mhd ? microhttpd.get_daemon_info(e->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
  if (info == NULL) {
    if (e->mhd)
      microhttpd.stop_daemon(e->mhd);
    return false;
  }
  if (uv_poll_init(h->loop, &e->events, info->epoll_fd) != 0)
    BUG("the loop takes no descriptor");
  e->events.data = h;
  h->engine_count++;
  h->open_handles++;
  return true;
}

/* Takes ownership of h. */
static struct server *server_begin(struct server *h, size_t connection_bytes, size_t short_bytes,
                                   struct err *err) {
  if (!mhd_load(err)) {
    free(h);
    return NULL;
  }
  if (uv_poll_init(h->loop, &h->listener, h->listens) != 0)
    BUG("the loop takes no descriptor");
  uv_timer_init(h->loop, &h->timer);
  uv_timer_init(h->loop, &h->ticker);
  uv_timer_init(h->loop, &h->accept_again);
  h->listener.data = h->timer.data = h->ticker.data = h->accept_again.data = h;
  h->open_handles = 4;
  if (!engine_begin(h, connection_bytes) || (short_bytes > 0 && !engine_begin(h, short_bytes))) {
    server_free(h);
    (void)err_set(err, ERR_IO, "the HTTP server cannot start");
    return NULL;
  }
  for (size_t i = 0; i < h->engine_count; i++)
    uv_poll_start(&h->engines[i].events, UV_READABLE, on_events);
  uv_timer_start(&h->ticker, server_on_tick, TICK_MS, TICK_MS);
  listen_on(h);
  return h;
}

struct server *server_new(uv_loop_t *loop, const struct control_socket *socket,
                          const struct server_route *routes, void *ctx, unsigned max_connections,
                          struct err *err) {
  struct server *h = xcalloc(1, sizeof *h);
  *h = (struct server){.loop = loop,
                       .socket = socket,
                       .listens = socket->fd,
                       .body_max = LIMIT_API_BODY_BYTES,
                       .routes = routes,
                       .ctx = ctx,
                       .max_connections = max_connections};
  return server_begin(h, LIMIT_API_CONNECTION_BYTES, 0, err);
}

struct server *server_new_door(uv_loop_t *loop, const struct server_door *door,
                               const struct server_route *routes, void *ctx,
                               unsigned max_connections, struct err *err) {
  struct server *h = xcalloc(1, sizeof *h);
  *h = (struct server){.loop = loop,
                       .door = door,
                       .listens = door->fd,
                       .body_max = door->body_bytes,
                       .routes = routes,
                       .ctx = ctx,
                       .max_connections = max_connections};
  return server_begin(h, door->connection_bytes, door->short_bytes, err);
}

unsigned server_connections(const struct server *h) {
  return (unsigned)h->connections.count;
}

static void server_on_closed(uv_handle_t *handle) {
  struct server *h = handle->data;
  if (--h->open_handles == 0)
    free(h);
}

void server_free(struct server *h) {
  if (h == NULL)
    return;
  h->closing = true;
  LIST_EACH(struct connection, c, in_server, &h->connections)
    if (c->request != NULL && c->request->suspended) {
      c->request->suspended = false;
      microhttpd.resume_connection(c->mhd);
    }
  /* This comes before MHD closes its descriptor, whose number another thread may get at once. */
  for (size_t i = 0; i < h->engine_count; i++)
    uv_close((uv_handle_t *)&h->engines[i].events, server_on_closed);
  uv_close((uv_handle_t *)&h->listener, server_on_closed);
  for (size_t i = 0; i < h->engine_count; i++)
    microhttpd.stop_daemon(h->engines[i].mhd); /* completes every request */
  uv_close((uv_handle_t *)&h->timer, server_on_closed);
  uv_close((uv_handle_t *)&h->ticker, server_on_closed);
  uv_close((uv_handle_t *)&h->accept_again, server_on_closed);
}
