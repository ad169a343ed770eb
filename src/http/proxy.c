/* Forwards a program's connections to the hosts that it may reach.
 *
 * DESIGN. A tunnel is one connection of the program: a pipe to it, and once its request was read
 * and its host let through, a TCP connection. It owns its handles and counts them down; it is freed
 * when the last is closed and no look-up of a name is under way. A slow reader stops the other end
 * from being read. */
#include "http/proxy.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "http/address.h"
#include "os/fs.h"
#include "os/loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- which hosts it lets through --- */

enum { HTTPS_PORT = 443, PORT_MAX = 65535 };

static bool is_port(struct str text, unsigned *port) {
  long number;
  if (!str_to_long(text, &number) || number < 1 || number > PORT_MAX)
    return false;
  *port = (unsigned)number;
  return true;
}

bool proxy_split(struct str text, struct str *host, unsigned *port) {
  const char *end = text.p + text.n, *after;
  if (text.n == 0)
    return false;
  if (text.p[0] == '[') {
    after = memchr(text.p, ']', text.n);
    if (after == NULL)
      return false;
    *host = (struct str){text.p + 1, (size_t)(after - text.p) - 1};
    after++;
  } else {
    after = memchr(text.p, ':', text.n);
    if (after == NULL)
      after = end;
    *host = (struct str){text.p, (size_t)(after - text.p)};
  }
  if (host->n == 0 || str_has_control(*host) || memchr(host->p, ' ', host->n) != NULL)
    return false;
  if (after == end)
    return true;
  return *after == ':' && is_port((struct str){after + 1, (size_t)(end - after) - 1}, port);
}

static bool is_same_name(struct str a, struct str b) {
  return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

/* Drops the root's dot: a name that ends in it means the same as the name without it. */
static struct str without_dot(struct str host) {
  if (host.n > 1 && host.p[host.n - 1] == '.')
    host.n--;
  return host;
}

bool proxy_lets(const char *const *hosts, struct str host, unsigned port) {
  host = without_dot(host);
  for (size_t i = 0; hosts != NULL && hosts[i] != NULL; i++) {
    struct str name;
    unsigned allowed = HTTPS_PORT;
    if (!proxy_split(str_from(hosts[i]), &name, &allowed) || allowed != port)
      continue;
    if (is_same_name(name, host))
      return true;
    if (!str_starts(name, "*.") || host.n <= name.n - 1)
      continue;
    const struct str tail = {host.p + host.n - (name.n - 1), name.n - 1};
    if (is_same_name(tail, (struct str){name.p + 1, name.n - 1}))
      return true;
  }
  return false;
}

bool proxy_is_loopback(struct str host) {
  char literal[64];
  host = without_dot(host);
  if (str_eq_fold(host, "localhost") ||
      (host.n > 10 && str_eq_fold((struct str){host.p + host.n - 10, 10}, ".localhost")))
    return true;
  if (host.n >= sizeof literal)
    return false;
  memcpy(literal, host.p, host.n);
  literal[host.n] = '\0';
  return http_address_of_text(literal) == HTTP_ADDRESS_LOOPBACK;
}

/* --- the proxy behind ours --- */

void proxy_read_upstream(struct str url, char **where, char **credentials) {
  *where = *credentials = NULL;
  if (str_starts_fold(url, "http://"))
    url = (struct str){url.p + 7, url.n - 7};
  else if (str_has(url, "://"))
    return;
  while (url.n > 0 && url.p[url.n - 1] == '/')
    url.n--;
  const char *at = url.n > 0 ? memrchr(url.p, '@', url.n) : NULL;
  if (at != NULL) {
    const struct str user = {url.p, (size_t)(at - url.p)};
    buf_auto_t plain = {0};
    buf_percent_decoded(&plain, user); /* %40 is an @ of a password */
    struct buf coded = {0};
    buf_base64(&coded, buf_view(&plain));
    *credentials = buf_take(&coded);
    if (plain.n > 0)
      explicit_bzero(plain.p, plain.n);
    url = (struct str){at + 1, url.n - user.n - 1};
  }
  buf_auto_t text = {0};
  buf_str(&text, url);
  if (url.n > 0)
    *where = buf_take(&text);
}

/* --- tunnels --- */

enum { BACKLOG = 64, PIECE_BYTES = 16 * 1024 };

struct proxy {
  struct proxy_spec spec; /* its list and folder are ours */
  char **hosts;
  char *upstream, *credentials; /* HOST:PORT of the proxy behind us, or NULL; base64, or NULL */
  uv_pipe_t listener;
  struct list tunnels;
  char *refused[LIMIT_PROXY_REFUSALS];
  size_t refused_count;
  bool closing, listener_closed;
};

/* HEAD -> LOOKING_UP -> CONNECTING -> OPEN; what cannot be opened -> REFUSED; each -> CLOSING */
enum tunnel_state {
  TUNNEL_HEAD,
  TUNNEL_LOOKING_UP,
  TUNNEL_CONNECTING,
  TUNNEL_OPEN,
  TUNNEL_REFUSED,
  TUNNEL_CLOSING,
};

struct tunnel {
  struct list_node in_proxy;
  struct proxy *proxy;
  enum tunnel_state state;
  uv_pipe_t client;
  uv_tcp_t server;
  uv_timer_t timer;
  uv_connect_t connecting;
  uv_work_t work;
  int handles; /* not closed yet */
  bool has_server, looks_up, client_ended, server_ended;
  bool plain;   /* no CONNECT: what was read goes to the host as well */
  bool relayed; /* through the proxy behind us, which answers */
  struct buf head;
  char host[256], service[8];
  struct addrinfo *found, *next; /* what the name leads to, and which is tried next */
  char bytes[2][PIECE_BYTES];    /* read from the server, from the client */
};

struct outgoing {
  uv_write_t request;
  struct tunnel *tunnel;
  char bytes[];
};

static void try_next(struct tunnel *t);

/* --- ends --- */

static void proxy_done(struct proxy *p) {
  if (!p->closing || !p->listener_closed || p->tunnels.count > 0)
    return;
  for (size_t i = 0; p->hosts[i] != NULL; i++)
    free(p->hosts[i]);
  for (size_t i = 0; i < p->refused_count; i++)
    free(p->refused[i]);
  free(p->hosts);
  free(p->upstream);
  if (p->credentials != NULL)
    explicit_bzero(p->credentials, strlen(p->credentials));
  free(p->credentials);
  free(p);
}

static void tunnel_done(struct tunnel *t) {
  struct proxy *p = t->proxy;
  if (t->handles > 0 || t->looks_up)
    return;
  list_remove(&p->tunnels, &t->in_proxy);
  if (t->found != NULL)
    freeaddrinfo(t->found);
  buf_deinit(&t->head);
  free(t);
  proxy_done(p);
}

static void on_tunnel_closed(uv_handle_t *handle) {
  struct tunnel *t = handle->data;
  t->handles--;
  tunnel_done(t);
}

static void on_server_closed_for_next(uv_handle_t *handle) {
  struct tunnel *t = handle->data;
  t->handles--;
  t->has_server = false;
  if (t->state == TUNNEL_CLOSING)
    tunnel_done(t);
  else
    try_next(t);
}

static void tunnel_close(struct tunnel *t) {
  if (t->state == TUNNEL_CLOSING)
    return;
  t->state = TUNNEL_CLOSING;
  uv_close((uv_handle_t *)&t->client, on_tunnel_closed);
  uv_close((uv_handle_t *)&t->timer, on_tunnel_closed);
  if (t->has_server && !uv_is_closing((uv_handle_t *)&t->server))
    uv_close((uv_handle_t *)&t->server, on_tunnel_closed);
}

/* --- bytes --- */

static void tunnel_allocate(uv_handle_t *handle, size_t size, uv_buf_t *out) {
  struct tunnel *t = handle->data;
  (void)size;
  *out = uv_buf_init(t->bytes[handle == (uv_handle_t *)&t->client], PIECE_BYTES);
}

static void on_client_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes);
static void on_server_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes);

static void read_client(struct tunnel *t) {
  if (!t->client_ended)
    (void)uv_read_start((uv_stream_t *)&t->client, tunnel_allocate, on_client_read);
}

static void read_server(struct tunnel *t) {
  if (!t->server_ended)
    (void)uv_read_start((uv_stream_t *)&t->server, tunnel_allocate, on_server_read);
}

/* Returns true if both ends have said all, and it has gone out. */
static bool tunnel_is_over(const struct tunnel *t) {
  return t->client_ended && t->server_ended &&
         uv_stream_get_write_queue_size((const uv_stream_t *)&t->client) == 0 &&
         uv_stream_get_write_queue_size((const uv_stream_t *)&t->server) == 0;
}

static void on_written(uv_write_t *request, int status) {
  struct outgoing *o = request->data;
  struct tunnel *t = o->tunnel;
  uv_stream_t *to = request->handle;
  free(o);
  if (t->state == TUNNEL_CLOSING)
    return;
  if (status != 0) {
    tunnel_close(t);
    return;
  }
  if (t->state != TUNNEL_OPEN || uv_stream_get_write_queue_size(to) > 0)
    return;
  if (tunnel_is_over(t))
    tunnel_close(t);
  else if (to == (uv_stream_t *)&t->client)
    read_server(t);
  else
    read_client(t);
}

/* Sends a copy of the bytes. Returns false if more should not be read before they are out. */
static bool tunnel_put(struct tunnel *t, uv_stream_t *to, const char *bytes, size_t n) {
  struct outgoing *o = xcalloc(1, sizeof *o + n);
  memcpy(o->bytes, bytes, n);
  o->tunnel = t;
  o->request.data = o;
  const uv_buf_t out = uv_buf_init(o->bytes, (unsigned)n);
  if (uv_write(&o->request, to, &out, 1, on_written) != 0) {
    free(o);
    tunnel_close(t);
    return false;
  }
  return uv_stream_get_write_queue_size(to) < LIMIT_PROXY_QUEUE_BYTES;
}

static void on_shut(uv_shutdown_t *request, int status) {
  (void)status;
  free(request);
}

/* Ends one direction: tells the other end; after both, the tunnel is over. */
static void end_towards(struct tunnel *t, uv_stream_t *to) {
  uv_shutdown_t *request = xcalloc(1, sizeof *request);
  if (uv_shutdown(request, to, on_shut) != 0)
    free(request);
  if (tunnel_is_over(t))
    tunnel_close(t);
}

static void on_server_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes) {
  struct tunnel *t = stream->data;
  if (n > 0 && !tunnel_put(t, (uv_stream_t *)&t->client, bytes->base, (size_t)n) &&
      t->state != TUNNEL_CLOSING)
    (void)uv_read_stop(stream);
  if (n >= 0)
    return;
  t->server_ended = true;
  (void)uv_read_stop(stream);
  if (n != UV_EOF)
    tunnel_close(t);
  else
    end_towards(t, (uv_stream_t *)&t->client);
}

/* --- the answer to who asks --- */

/* Refuses in words that a client may show. What the client still sends is read and dropped until it
 * leaves, for a while: a connection closed over unread bytes would take the answer away from it. */
static void tunnel_refuse(struct tunnel *t, const char *status, const char *words) {
  char reply[1200];
  if (t->state == TUNNEL_CLOSING)
    return;
  t->state = TUNNEL_REFUSED;
  int n = snprintf(reply, sizeof reply,
                   "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                   "Connection: close\r\n\r\n%s\n",
                   status, strlen(words) + 1, words);
  (void)tunnel_put(t, (uv_stream_t *)&t->client, reply, (size_t)n);
  if (t->state == TUNNEL_CLOSING)
    return;
  (void)uv_timer_start(&t->timer, t->timer.timer_cb, LIMIT_PROXY_LINGER_MS, 0);
  read_client(t);
  uv_shutdown_t *request = xcalloc(1, sizeof *request);
  if (uv_shutdown(request, (uv_stream_t *)&t->client, on_shut) != 0) {
    free(request);
    tunnel_close(t);
  }
}

/* --- to the host --- */

/* Writes HOST:PORT, with brackets where the host has colons itself. */
static void put_where(const struct tunnel *t, char *where, size_t size) {
  bool colons = strchr(t->host, ':') != NULL;
  print_into(where, size, colons ? "[%s]:%s" : "%s:%s", t->host, t->service);
}

static void tunnel_open(struct tunnel *t) {
  static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
  t->state = TUNNEL_OPEN;
  (void)uv_timer_stop(&t->timer);
  if (t->relayed) {
    /* Asks the proxy behind us. Its answer goes to the client as it is. */
    buf_auto_t asked = {0};
    char where[300];
    put_where(t, where, sizeof where);
    buf_printf(&asked, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", where, where);
    if (t->proxy->credentials != NULL)
      buf_printf(&asked, "Proxy-Authorization: Basic %s\r\n", t->proxy->credentials);
    buf_puts(&asked, "\r\n");
    (void)tunnel_put(t, (uv_stream_t *)&t->server, asked.p, asked.n);
  } else if (!t->plain)
    (void)tunnel_put(t, (uv_stream_t *)&t->client, yes, sizeof yes - 1);
  if (t->state == TUNNEL_OPEN && t->head.n > 0)
    (void)tunnel_put(t, (uv_stream_t *)&t->server, t->head.p, t->head.n);
  buf_deinit(&t->head);
  if (t->state != TUNNEL_OPEN)
    return;
  read_client(t);
  read_server(t);
}

static void on_tunnel_connected(uv_connect_t *request, int status) {
  struct tunnel *t = request->data;
  if (t->state == TUNNEL_CLOSING)
    return;
  if (status == 0)
    tunnel_open(t);
  else
    uv_close((uv_handle_t *)&t->server, on_server_closed_for_next);
}

/* Reports the refused HOST:PORT, once. */
static void tell_refused(struct proxy *p, const char *where) {
  bool known = p->spec.refused == NULL || p->refused_count == LIMIT_PROXY_REFUSALS;
  for (size_t i = 0; i < p->refused_count; i++)
    known = known || strcmp(p->refused[i], where) == 0;
  if (known)
    return;
  p->refused[p->refused_count++] = xstrdup(where);
  p->spec.refused(p->spec.ctx, where);
}

/* Returns true if the tunnel may lead to this address. A list may name localhost, or an address
 * itself; a name that leads to this machine or into its private networks is somebody's trick. */
static bool may_go_to(const struct tunnel *t, const struct sockaddr *address, socklen_t n) {
  enum http_address kind = http_address_kind(address);
  char text[64], where[80];
  if (t->relayed)
    return true; /* the user's own, which sees to where names lead */
  if (kind != HTTP_ADDRESS_FORBIDDEN && kind != HTTP_ADDRESS_LOOPBACK &&
      http_address_is_own(address))
    kind = HTTP_ADDRESS_LOOPBACK;
  if (kind == HTTP_ADDRESS_PUBLIC)
    return true;
  if (kind == HTTP_ADDRESS_FORBIDDEN ||
      getnameinfo(address, n, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
    return false;
  if ((kind == HTTP_ADDRESS_LOOPBACK && proxy_is_loopback(str_from(t->host))) ||
      proxy_lets(t->proxy->spec.hosts, str_from(text), (unsigned)strtoul(t->service, NULL, 10)))
    return true;
  print_into(where, sizeof where, strchr(text, ':') ? "[%s]:%s" : "%s:%s", text, t->service);
  tell_refused(t->proxy, where);
  return false;
}

static void try_next(struct tunnel *t) {
  while (t->next != NULL && !may_go_to(t, t->next->ai_addr, t->next->ai_addrlen))
    t->next = t->next->ai_next;
  if (t->next == NULL) {
    tunnel_refuse(t, "502 Bad Gateway", "segue: the host could not be reached");
    return;
  }
  const struct sockaddr *address = t->next->ai_addr;
  t->next = t->next->ai_next;
  (void)uv_tcp_init(t->proxy->spec.loop, &t->server);
  t->server.data = t;
  t->connecting.data = t;
  t->has_server = true;
  t->handles++;
  if (uv_tcp_connect(&t->connecting, &t->server, address, on_tunnel_connected) != 0)
    uv_close((uv_handle_t *)&t->server, on_server_closed_for_next);
}

static void look_up(uv_work_t *work) {
  struct tunnel *t = work->data;
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
  const struct addrinfo any = {.ai_socktype = SOCK_STREAM};
  char behind[256], number[8];
  const char *host = t->host, *service = t->service;
  if (t->relayed) {
    struct str name;
    unsigned port = 80;
    if (!proxy_split(str_from(t->proxy->upstream), &name, &port) || name.n >= sizeof behind)
      return;
    print_into(behind, sizeof behind, STR_FMT, STR_ARG(name));
    print_into(number, sizeof number, "%u", port);
    host = behind;
    service = number;
  }
  if (getaddrinfo(host, service, &hints, &t->found) != 0 &&
      getaddrinfo(host, service, &any, &t->found) != 0) /* loopback is no configured one */
    t->found = NULL;
}

static void on_looked_up(uv_work_t *work, int status) {
  struct tunnel *t = work->data;
  (void)status;
  t->looks_up = false;
  if (t->state == TUNNEL_CLOSING) {
    tunnel_done(t);
    return;
  }
  t->state = TUNNEL_CONNECTING;
  t->next = t->found;
  if (t->found == NULL)
    tunnel_refuse(t, "502 Bad Gateway", "segue: the host's name is not known");
  else
    try_next(t);
}

/* --- what is asked for --- */

/* Reads "CONNECT HOST:PORT HTTP/1.1", or "GET http://HOST/PATH HTTP/1.1", which becomes "GET /PATH
 * ..." with the word that no further request follows. */
static bool read_request(struct tunnel *t, size_t head_bytes, unsigned *port) {
  struct str all = {t->head.p, head_bytes}, rest = all, line = str_next_line(&rest), host;
  struct str method = str_cut(&line, ' '), target = str_cut(&line, ' ');
  if (line.p == NULL)
    return false;
  t->plain = !str_eq_c(method, "CONNECT");
  struct str path = STR("/");
  if (t->plain) {
    if (!str_starts_fold(target, "http://"))
      return false;
    struct str after = {target.p + 7, target.n - 7};
    target = str_cut(&after, '/');
    if (after.p != NULL)
      path = (struct str){after.p - 1, after.n + 1};
  }
  *port = t->plain ? 80 : 443;
  if (!proxy_split(target, &host, port) || host.n >= sizeof t->host)
    return false;
  memcpy(t->host, host.p, host.n);
  t->host[host.n] = '\0';
  print_into(t->service, sizeof t->service, "%u", *port);
  struct buf sent = {0};
  if (t->plain) {
    buf_str(&sent, method);
    buf_putc(&sent, ' ');
    buf_str(&sent, path);
    buf_puts(&sent, " HTTP/1.1\r\nConnection: close\r\n");
    while (rest.n > 0) {
      struct str field = str_next_line(&rest);
      if (str_starts_fold(field, "proxy-") || str_starts_fold(field, "connection:"))
        continue;
      buf_str(&sent, field);
      buf_putc(&sent, '\n');
    }
  }
  buf_append(&sent, t->head.p + head_bytes, t->head.n - head_bytes);
  buf_deinit(&t->head);
  t->head = sent;
  return true;
}

static void take_request(struct tunnel *t, size_t head_bytes) {
  unsigned port;
  (void)uv_read_stop((uv_stream_t *)&t->client);
  if (!read_request(t, head_bytes, &port)) {
    tunnel_refuse(t, "400 Bad Request",
                  "segue: this proxy takes CONNECT HOST:PORT and http:// requests");
    return;
  }
  if (!proxy_lets(t->proxy->spec.hosts, str_from(t->host), port)) {
    char where[300], words[800];
    put_where(t, where, sizeof where);
    print_into(words, sizeof words,
               "segue: its network is api, which does not let it out to %s: "
               "sandbox: {hosts: [%s]} in config.yaml allows it",
               where, where);
    tunnel_refuse(t, "403 Forbidden", words);
    tell_refused(t->proxy, where);
    return;
  }
  t->state = TUNNEL_LOOKING_UP;
  t->relayed = t->proxy->upstream != NULL && !t->plain && !proxy_is_loopback(str_from(t->host));
  t->looks_up = true;
  t->work.data = t;
  (void)uv_timer_start(&t->timer, t->timer.timer_cb, LIMIT_PROXY_CONNECT_MS, 0);
  loop_work(t->proxy->spec.loop, &t->work, look_up, on_looked_up);
}

/* Returns the length of the head, 0 if it has not all come yet. */
static size_t request_end(const struct buf *head) {
  for (size_t i = 0; i + 3 < head->n; i++)
    if (memcmp(head->p + i, LIT("\r\n\r\n")) == 0)
      return i + 4;
  return 0;
}

static void on_client_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes) {
  struct tunnel *t = stream->data;
  if (n < 0) {
    t->client_ended = true;
    (void)uv_read_stop(stream);
    if (n != UV_EOF || t->state != TUNNEL_OPEN)
      tunnel_close(t);
    else
      end_towards(t, (uv_stream_t *)&t->server);
    return;
  }
  if (t->state == TUNNEL_OPEN) {
    if (n > 0 && !tunnel_put(t, (uv_stream_t *)&t->server, bytes->base, (size_t)n) &&
        t->state != TUNNEL_CLOSING)
      (void)uv_read_stop(stream);
    return;
  }
  if (t->state == TUNNEL_REFUSED)
    return;
  buf_append(&t->head, bytes->base, (size_t)n);
  size_t whole = request_end(&t->head);
  if (whole > 0)
    take_request(t, whole);
  else if (t->head.n > LIMIT_PROXY_HEAD_BYTES)
    tunnel_refuse(t, "431 Request Header Fields Too Large",
                  "segue: the request's head is too long");
}

static void on_tunnel_timer(uv_timer_t *timer) {
  tunnel_close(timer->data);
}

static void on_tunnel_connection(uv_stream_t *listener, int status) {
  struct proxy *p = listener->data;
  if (status != 0 || p->closing)
    return;
  struct tunnel *t = xcalloc(1, sizeof *t);
  t->proxy = p;
  list_push_back(&p->tunnels, &t->in_proxy);
  (void)uv_pipe_init(p->spec.loop, &t->client, 0);
  (void)uv_timer_init(p->spec.loop, &t->timer);
  t->client.data = t->timer.data = t;
  t->handles = 2;
  if (uv_accept(listener, (uv_stream_t *)&t->client) != 0 ||
      p->tunnels.count > LIMIT_PROXY_CONNECTIONS) {
    tunnel_close(t);
    return;
  }
  (void)uv_timer_start(&t->timer, on_tunnel_timer, LIMIT_PROXY_HEAD_MS, 0);
  read_client(t);
}

/* --- the listener --- */

static void on_listener_closed(uv_handle_t *handle) {
  struct proxy *p = handle->data;
  p->listener_closed = true;
  proxy_done(p);
}

struct proxy *proxy_new(const struct proxy_spec *spec, struct err *err) {
  size_t n = str_count(spec->hosts);
  /* Listens in the folder. The socket is named by a handle on it: a path may be too long for an
   * address. */
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int dir = open(spec->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  print_into(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir, PROXY_SOCKET);
  if (dir >= 0)
    (void)unlinkat(dir, PROXY_SOCKET, 0); /* left by an earlier process of this call */
  if (dir < 0 || fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    err_set_errno(err, errno, "cannot make a socket in %s", spec->folder);
    fs_close(fd);
    fd = -1;
  }
  fs_close(dir);
  if (fd < 0)
    return NULL;
  struct proxy *p = xcalloc(1, sizeof *p);
  p->spec = *spec;
  p->hosts = xcalloc(n + 1, sizeof *p->hosts);
  for (size_t i = 0; i < n; i++)
    p->hosts[i] = xstrdup(spec->hosts[i]);
  p->spec.hosts = (const char *const *)p->hosts;
  p->spec.folder = p->spec.upstream = NULL;
  proxy_read_upstream(str_from(spec->upstream), &p->upstream, &p->credentials);
  (void)uv_pipe_init(spec->loop, &p->listener, 0);
  p->listener.data = p;
  int rc = uv_pipe_open(&p->listener, fd);
  if (rc != 0)
    (void)close(fd);
  else
    rc = uv_listen((uv_stream_t *)&p->listener, BACKLOG, on_tunnel_connection);
  if (rc == 0)
    return p;
  err_set(err, ERR_INVALID, "cannot listen in %s: %s", spec->folder, uv_strerror(rc));
  proxy_free(p);
  return NULL;
}

void proxy_free(struct proxy *p) {
  if (p == NULL)
    return;
  assert(!p->closing);
  p->closing = true;
  p->spec.refused = NULL;
  LIST_EACH(struct tunnel, t, in_proxy, &p->tunnels)
    tunnel_close(t);
  uv_close((uv_handle_t *)&p->listener, on_listener_closed);
}
