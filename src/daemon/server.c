/* Accepts connections, drives libmicrohttpd, and follows each request from its first byte to the
 * last byte of its answer.
 *
 * Bytes that make no request are refused by the library itself, with its own page: plain, but seen
 * only by programs of the same user. */
#include "daemon/server.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "daemon/serve.h"
#include "format/json_write.h"
#include "os/orphans.h"
#include "os/peer.h"
#include "store/store.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

/* --- the library --- */

/* The functions of <microhttpd.h> are called through this table, which is empty before mhd_load. */
#define MHD_FUNCTIONS(X)                                                                           \
  X(get_version)                                                                                   \
  X(start_daemon)                                                                                  \
  X(stop_daemon)                                                                                   \
  X(run)                                                                                           \
  X(get_timeout)                                                                                   \
  X(get_daemon_info)                                                                               \
  X(add_connection)                                                                                \
  X(get_connection_info)                                                                           \
  X(get_connection_values)                                                                         \
  X(lookup_connection_value)                                                                       \
  X(suspend_connection)                                                                            \
  X(resume_connection)                                                                             \
  X(queue_response)                                                                                \
  X(create_response_from_buffer)                                                                   \
  X(create_response_from_callback)                                                                 \
  X(add_response_header)                                                                           \
  X(destroy_response)

struct mhd_api {
#define MHD_MEMBER(name) __typeof__(&MHD_##name) name;
  MHD_FUNCTIONS(MHD_MEMBER)
#undef MHD_MEMBER
};

static struct mhd_api microhttpd;

static bool load_all(void *library, struct err *err) {
  void *symbol;
/* POSIX allows a data pointer from dlsym to hold a function's address; memcpy satisfies ISO C. */
#define MHD_LOAD(name)                                                                             \
  symbol = dlsym(library, "MHD_" #name);                                                           \
  if (symbol == NULL)                                                                              \
    return err_set(err, ERR_IO, "libmicrohttpd has no MHD_" #name ": it is too old");              \
  memcpy(&microhttpd.name, &symbol, sizeof symbol);
  MHD_FUNCTIONS(MHD_LOAD)
#undef MHD_LOAD
  return true;
}

bool mhd_load(struct err *err) {
  static bool loaded;
  if (loaded)
    return true;
  void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return err_set(err, ERR_IO,
                   "libmicrohttpd, the daemon's HTTP server, cannot be loaded (%.200s): install it",
                   dlerror());
  loaded = load_all(library, err);
  return loaded;
}

const char *serve_library(void) {
  struct err ignored;
  return mhd_load(&ignored) ? microhttpd.get_version() : NULL;
}

enum { SERVER_PARTS = 2, SERVER_HEADER_BYTES = 64, BLOCK_BYTES = 1024, TICK_MS = 1000 };

struct connection { /* one that was accepted */
  struct list_node in_server;
  struct MHD_Connection *mhd;
  struct server_request *request; /* being answered; NULL: we wait for the client */
  uint64_t since;                 /* uv_now, of the last answer */
  long process;                   /* of the client; 0: not known */
  char *program;                  /* of a session: see server_program; NULL: it is none */
  bool ends;                      /* shut down, will be closed */
};

/* RECEIVING -> HANDLED -> (KEPT ->) ANSWERED -> (STREAMING ->) gone */
enum request_state { RECEIVING, HANDLED, KEPT, ANSWERED, STREAMING };

struct server_request {
  struct server *http;
  struct MHD_Connection *mhd;
  enum request_state state;
  bool suspended;
  bool left; /* the client of its stream is gone */
  bool again;
  bool head; /* the method is HEAD: no body is wanted */
  const struct server_route *route;
  char parts[SERVER_PARTS][SERVER_PART_BYTES];
  struct buf body;
  size_t body_counted; /* of http.body_bytes */
  unsigned refusal;    /* status for a body that is refused, or 0 */
  unsigned browser;    /* of the window, or 0 */
  struct MHD_Response *response;
  unsigned status;
  struct {
    const char *name;
    char value[SERVER_VALUE_BYTES];
  } headers[2];
  void (*gone)(void *ctx);
  void *gone_ctx;
  struct streaming *streaming;
};

/* MHD may drop a response before or after its request, so a stream belongs to neither. */
struct streaming {
  struct server_request *request; /* NULL: it is over */
  const struct server_stream_ops *ops;
  void *stream;
};

struct engine { /* an instance of the library: a bound of memory for each connection */
  struct MHD_Daemon *mhd;
  uv_poll_t events;
};

struct server {
  uv_loop_t *loop;
  const struct control_socket *socket; /* NULL: there is a door */
  const struct server_door *door;      /* or NULL */
  int listens;                         /* the descriptor */
  size_t body_max;
  const struct server_route *routes;
  void *ctx;
  struct engine engines[2]; /* for any request; for short ones, where there is a door */
  size_t engine_count;
  uv_poll_t listener;
  uv_timer_t timer;  /* what MHD waits for, and the next run after a wake */
  uv_timer_t ticker; /* requests that take too long */
  uv_timer_t accept_again;
  int open_handles;
  unsigned max_connections;
  struct list connections; /* struct connection, the newest first */
  size_t body_bytes;
  bool running, wanted, closing, listening;
};

/* --- running --- */

static void server_on_timer(uv_timer_t *timer);

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

static void server_on_timer(uv_timer_t *timer) {
  server_run(timer->data);
}

static void on_events(uv_poll_t *poll, int status, int events) {
  (void)status;
  (void)events;
  server_run(poll->data);
}

/* --- requests --- */

static struct connection *connection_of(struct MHD_Connection *mhd) {
  const union MHD_ConnectionInfo *info =
      microhttpd.get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info->socket_context;
}

/* Each {name} in the route matches one part of the path, up to the next slash. */
static bool path_fits(const char *route, const char *path,
                      char parts[SERVER_PARTS][SERVER_PART_BYTES]) {
  size_t found = 0;
  parts[0][0] = parts[1][0] = '\0';
  while (*route) {
    if (*route != '{') {
      if (*route++ != *path++)
        return false;
      continue;
    }
    size_t n = strcspn(path, "/");
    if (n == 0 || n >= SERVER_PART_BYTES)
      return false;
    assert(found < SERVER_PARTS);
    memcpy(parts[found], path, n);
    parts[found++][n] = '\0';
    path += n;
    route = strchr(route, '}') + 1;
  }
  return *path == '\0';
}

/* On NULL, `allowed` holds the methods that the path takes, in the form of the Allow header; ""
 * means none. */
static const struct server_route *find_route(const struct server *h, const char *method,
                                             const char *path,
                                             char part[SERVER_PARTS][SERVER_PART_BYTES],
                                             char allowed[SERVER_HEADER_BYTES]) {
  size_t n = 0;
  allowed[0] = '\0';
  for (const struct server_route *route = h->routes; route->method; route++) {
    if (!path_fits(route->path, path, part))
      continue;
    bool is_get = strcmp(route->method, "GET") == 0;
    if (strcmp(route->method, method) == 0 || (is_get && strcmp(method, "HEAD") == 0))
      return route;
    n += (size_t)snprintf(allowed + n, SERVER_HEADER_BYTES - n, "%s%s%s", n ? ", " : "",
                          route->method, is_get ? ", HEAD" : "");
    assert(n < SERVER_HEADER_BYTES);
  }
  return NULL;
}

static bool is_json(const struct server_request *r) {
  const char *type = server_header(r, "Content-Type");
  return type != NULL && strncasecmp(type, LIT("application/json")) == 0 &&
         (type[16] == '\0' || type[16] == ';' || type[16] == ' ');
}

static bool wants_json(const struct server_request *r) {
  enum server_takes takes = r->route->takes;
  return takes == TAKES_JSON || (takes == TAKES_JSON_OR_NOTHING && r->body.n > 0);
}

static enum MHD_Result on_argument(void *ctx, enum MHD_ValueKind kind, const char *name,
                                   const char *value) {
  struct server_request *r = ctx;
  static const char *const none[] = {NULL};
  const char *const *names = r->route->query ? r->route->query : none;
  (void)kind;
  (void)value;
  for (size_t i = 0; names[i]; i++)
    if (strcmp(names[i], name) == 0)
      return MHD_YES;
  const char *near = str_nearest(str_from(name), names);
  server_problem(r, 400, NULL, "unknown parameter \"%.80s\"%s%s%s", name,
                 near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
  return MHD_NO;
}

/* A misspelt filter must not pass for no filter. Returns false if it has answered the request. */
static bool arguments_known(struct server_request *r) {
  (void)microhttpd.get_connection_values(r->mhd, MHD_GET_ARGUMENT_KIND, on_argument, r);
  return r->state == HANDLED;
}

/* Returns false if it has answered with what is wrong with the request's framing. */
static bool is_received(struct server_request *r) {
  if (r->refusal == 400 || r->refusal == 501) {
    const char *why =
        "the request contradicts itself about where its body ends, or which host it is for";
    if (r->refusal == 501)
      why = "the body must be plain or chunked: no other transfer coding is supported";
    server_problem(r, r->refusal, NULL, "%s", why);
    return false;
  }
  if (r->refusal == 421) {
    server_problem(r, 421, NULL,
                   "this host is not served: write http://segue/ or http://localhost/");
    return false;
  }
  if (r->refusal == 413) {
    server_problem(r, 413, NULL, "the body is over the limit of %zu bytes", r->http->body_max);
    return false;
  }
  if (r->refusal == 503) {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, 503, NULL, "too many requests are being received: try again");
    return false;
  }
  return true;
}

/* Requests that only look at logs read them in the pool (read_job.h), so that nobody who needs the
 * loop waits for a log. */
static void request_hand_over(struct server *h, struct server_request *r) {
  store_reads_nothing(r->route->takes == TAKES_NOTHING && strcmp(r->route->method, "GET") == 0);
  r->route->handle(h->ctx, r);
  store_reads_nothing(false);
}

/* Answers a request that came in by the door. */
static void handle_guest(struct server_request *r, const char *method, const char *path) {
  char allowed[SERVER_HEADER_BYTES];
  struct server *h = r->http;
  if (r->refusal == 431) { /* whoever sends it */
    server_problem(r, 431, NULL, "the headers are over the limit of %zu bytes",
                   h->door->header_bytes);
    return;
  }
  bool enters = r->refusal == 0 && h->door->enter(h->ctx, r, method, &path);
  r->route = enters ? find_route(h, method, path, r->parts, allowed) : NULL;
  if (r->route == NULL || (wants_json(r) && !is_json(r)))
    h->door->refuse(h->ctx, r);
  else if (arguments_known(r))
    request_hand_over(h, r);
}

static void dispatch_request(struct server_request *r, const char *method, const char *path) {
  char allowed[SERVER_HEADER_BYTES];
  struct server *h = r->http;
  r->state = HANDLED;
  r->head = strcmp(method, "HEAD") == 0;
  h->body_bytes -= r->body_counted;
  r->body_counted = 0;
  if (h->door != NULL) {
    handle_guest(r, method, path);
    return;
  }
  if (!is_received(r))
    return;
  r->route = find_route(h, method, path, r->parts, allowed);
  if (r->route == NULL && allowed[0] != '\0') {
    server_set_header(r, "Allow", allowed);
    server_problem(r, 405, NULL, "%s takes %s only", path, allowed);
  } else if (r->route == NULL) {
    server_problem(r, 404, NULL, "there is nothing at %s", path);
  } else if (wants_json(r) && !is_json(r)) {
    server_problem(r, 415, NULL, "the body must be JSON: send Content-Type: application/json");
  } else if (arguments_known(r)) {
    request_hand_over(h, r);
  }
  if (r->state == HANDLED)
    BUG("%s %s was neither answered nor kept", method, path);
}

static void take_body(struct server_request *r, const char *bytes, size_t n) {
  struct server *h = r->http;
  if (r->refusal == 0 && r->body.n + n > h->body_max)
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
  enum MHD_Result queued = microhttpd.queue_response(r->mhd, r->status, r->response);
  microhttpd.destroy_response(r->response); /* our reference */
  r->response = NULL;
  return queued;
}

/* These header fields say where a body ends, whom the request is for, and who sent it. No client
 * gives one twice; if something between did, only one of both would be looked at. */
struct framing {
  const char *length, *coding, *host, *site, *origin;
  size_t bytes; /* of all fields, each with ": " and its line's end */
  bool twice;
};

static enum MHD_Result on_field(void *ctx, enum MHD_ValueKind kind, const char *name,
                                const char *value) {
  struct framing *f = ctx;
  const char **slot = strcasecmp(name, "Content-Length") == 0 ? &f->length : NULL;
  if (strcasecmp(name, "Transfer-Encoding") == 0)
    slot = &f->coding;
  else if (strcasecmp(name, "Host") == 0)
    slot = &f->host;
  else if (strcasecmp(name, "Sec-Fetch-Site") == 0)
    slot = &f->site;
  else if (strcasecmp(name, "Origin") == 0)
    slot = &f->origin;
  (void)kind;
  f->bytes += strlen(name) + (value ? strlen(value) : 0) + 4;
  if (slot == NULL)
    return MHD_YES;
  f->twice = f->twice || *slot != NULL;
  *slot = value ? value : "";
  return MHD_YES;
}

/* A page in a browser whose requests something forwards to the socket sends its own name as host.
 * The rule is the same as for a service on the loopback address. */
static bool is_our_host(const char *host) {
  static const char *const names[] = {"segue", "localhost", "127.0.0.1", "[::1]"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    size_t n = strlen(names[i]);
    if (strncasecmp(host, names[i], n) != 0)
      continue;
    const char *port = host + n;
    if (*port == '\0' || (*port == ':' && port[1 + strspn(port + 1, "0123456789")] == '\0'))
      return true;
  }
  return host[0] == '\0';
}

/* Returns the status for a request to refuse before its body comes, because the body's end is
 * unclear or too far off, or the request is for somebody else. Returns 0 to accept it. */
static unsigned refuse_early(const struct server_request *r) {
  struct framing f = {0};
  long n = 0;
  (void)microhttpd.get_connection_values(r->mhd, MHD_HEADER_KIND, on_field, &f);
  if (r->http->door != NULL && f.bytes > r->http->door->header_bytes)
    return 431;
  if (f.twice || (f.length != NULL && f.coding != NULL))
    return 400;
  if (f.host != NULL && r->http->door == NULL && !is_our_host(f.host))
    return 421;
  if (f.coding != NULL && strcasecmp(f.coding, "chunked") != 0)
    return 501;
  bool too_long =
      f.length != NULL && (!str_to_long(str_from(f.length), &n) || n > (long)r->http->body_max);
  return too_long ? 413 : 0;
}

static enum MHD_Result server_on_request(void *ctx, struct MHD_Connection *mhd, const char *path,
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
    r->refusal = refuse_early(r);
    if (r->refusal == 0)
      return MHD_YES;
    dispatch_request(r, method, path);
    return queue(r);
  }
  if (*n > 0) {
    take_body(r, bytes, *n);
    *n = 0;
    return MHD_YES;
  }
  if (r->state == RECEIVING)
    dispatch_request(r, method, path);
  if (r->state == KEPT) {
    if (!r->suspended) {
      r->suspended = true;
      microhttpd.suspend_connection(mhd);
    }
    return MHD_YES;
  }
  return r->response ? queue(r) : MHD_NO;
}

static void server_on_completed(void *ctx, struct MHD_Connection *mhd, void **slot,
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
  if (r != NULL) {
    if (r->gone != NULL && r->state == KEPT)
      r->gone(r->gone_ctx);
    if (r->response != NULL)
      microhttpd.destroy_response(r->response);
    r->http->body_bytes -= r->body_counted;
    buf_deinit(&r->body);
    free(r);
  }
}

void server_handle_again(struct server_request *r, const char *part) {
  assert(r->state == KEPT && strlen(part) < SERVER_PART_BYTES);
  memcpy(r->parts[0], part, strlen(part) + 1);
  r->again = true;
  request_hand_over(r->http, r);
}

bool server_is_again(const struct server_request *r) {
  return r->again;
}

const char *server_part(const struct server_request *r) {
  return r->parts[0];
}

const char *server_part2(const struct server_request *r) {
  return r->parts[1];
}

const char *server_query(const struct server_request *r, const char *name) {
  return microhttpd.lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, name);
}

const char *server_header(const struct server_request *r, const char *name) {
  return microhttpd.lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

void server_set_browser(struct server_request *r, unsigned number) {
  r->browser = number;
}

const char *server_program(const struct server_request *r) {
  const struct connection *c = connection_of(r->mhd);
  return c != NULL ? c->program : NULL;
}

unsigned server_browser(const struct server_request *r) {
  return r->browser;
}

int server_what(const struct server_request *r) {
  return r->route->what;
}

struct str server_body(const struct server_request *r) {
  return buf_view(&r->body);
}

struct buf server_take_body(struct server_request *r) {
  struct buf body = r->body;
  r->body = (struct buf){0};
  return body;
}

void server_keep(struct server_request *r, void (*gone)(void *ctx), void *ctx) {
  assert(r->state == HANDLED || r->state == KEPT);
  r->state = KEPT;
  r->gone = gone;
  r->gone_ctx = ctx;
}

/* --- answering --- */

static void request_resume(struct server_request *r) {
  if (!r->suspended)
    return;
  r->suspended = false;
  microhttpd.resume_connection(r->mhd);
  /* A run never starts within another: MHD's callbacks that want one get it from the loop. */
  r->http->wanted = true;
  if (!r->http->running && !r->http->closing)
    uv_timer_start(&r->http->timer, server_on_timer, 0, 0);
}

bool server_closes(const struct server_request *r) {
  return r->http->closing;
}

void server_set_header(struct server_request *r, const char *name, const char *value) {
  size_t i = r->headers[0].name ? 1 : 0;
  r->headers[i].name = name;
  print_into(r->headers[i].value, sizeof r->headers[i].value, "%s", value);
}

static void request_answer(struct server_request *r, unsigned status, const char *type,
                           struct MHD_Response *response) {
  assert(r->state == HANDLED || r->state == KEPT);
  if (response == NULL)
    BUG("no response could be made");
  r->state = ANSWERED;
  r->status = status;
  r->response = response;
  if (type != NULL)
    (void)microhttpd.add_response_header(response, "Content-Type", type);
  for (size_t i = 0; i < ARRAY_LEN(r->headers) && r->headers[i].name; i++)
    (void)microhttpd.add_response_header(response, r->headers[i].name, r->headers[i].value);
  const char *const *more = r->http->door ? r->http->door->headers : NULL;
  for (; more != NULL && more[0] != NULL; more += 2)
    (void)microhttpd.add_response_header(response, more[0], more[1]);
  request_resume(r);
}

void server_reply(struct server_request *r, unsigned status, const char *type, struct str bytes) {
  request_answer(r, status, type,
                 microhttpd.create_response_from_buffer(bytes.n, (void *)(uintptr_t)bytes.p,
                                                        MHD_RESPMEM_MUST_COPY));
}

static void request_reply_text(struct server_request *r, unsigned status, const char *type,
                               struct buf *taken) {
  size_t n = taken->n;
  request_answer(r, status, type,
                 microhttpd.create_response_from_buffer(n, buf_take(taken), MHD_RESPMEM_MUST_FREE));
}

void server_reply_json(struct server_request *r, unsigned status, json_t *taken) {
  struct buf text = {0};
  json_write(taken, &text);
  json_decref(taken);
  request_reply_text(r, status, "application/json", &text);
}

static const char *title_of(unsigned status) {
  switch (status) {
  case 400:
    return "Bad Request";
  case 403:
    return "Forbidden";
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
  case 421:
    return "Misdirected Request";
  case 422:
    return "Unprocessable Content";
  case 501:
    return "Not Implemented";
  case 502:
    return "Bad Gateway";
  case 503:
    return "Service Unavailable";
  case 507:
    return "Insufficient Storage";
  default:
    return "Internal Server Error";
  }
}

/* Writes the body of a problem. `members` (taken, may be NULL) are added to its own. */
static void put_problem(struct buf *out, unsigned status, json_t *members, const char *detail) {
  buf_auto_t safe = {0};
  buf_safe(&safe, str_from(detail), false); /* it may quote bytes that are not UTF-8 */
  json_auto_t *problem = json_pack("{ss ss si ss}", "type", "about:blank", "title",
                                   title_of(status), "status", (int)status, "detail", buf_c(&safe));
  if (members != NULL)
    json_object_update(problem, members);
  json_decref(members);
  json_write(problem, out);
}

void server_problem(struct server_request *r, unsigned status, json_t *members, const char *fmt,
                    ...) {
  struct buf body = {0};
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  put_problem(&body, status, members, text);
  request_reply_text(r, status, "application/problem+json", &body);
}

/* --- streams --- */

static ssize_t on_stream_read(void *ctx, uint64_t at, char *out, size_t max) {
  struct streaming *s = ctx;
  struct server_request *r = s->request;
  (void)at;
  ssize_t n = r == NULL || r->left || r->http->closing ? -1 : s->ops->read(s->stream, out, max);
  if (n < 0)
    return MHD_CONTENT_READER_END_OF_STREAM;
  if (n == 0 && !r->suspended) {
    r->suspended = true;
    microhttpd.suspend_connection(r->mhd);
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
  if (r->head) { /* the library would end a body that was never sent */
    server_reply(r, 200, type, STR(""));
    ops->closed(stream);
    return;
  }
  struct streaming *s = xcalloc(1, sizeof *s);
  *s = (struct streaming){r, ops, stream};
  r->streaming = s;
  request_answer(r, 200, type,
                 microhttpd.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                          on_stream_read, s, on_stream_closed));
  (void)microhttpd.add_response_header(r->response, "Cache-Control", "no-store");
  r->state = STREAMING;
}

void server_wake(struct server_request *r) {
  request_resume(r);
}

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
    bool held;
    c->process = peer_process(info->connect_fd);
    c->program = orphan_program(c->process, &held);
    server_make_room(h);
    return;
  }
  list_remove(&h->connections, &c->in_server);
  free(c->program);
  free(c);
  *slot = NULL;
  listen_on(h);
}

/* --- time --- */

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
    else if (has_left(c)) {
      /* Its client has hung up while it was suspended: its keeper is told, there is no answer. */
      struct server_request *r = c->request;
      r->left = r->state == STREAMING;
      if (r->state == KEPT)
        r->state = ANSWERED;
      if (!r->left && r->gone != NULL)
        r->gone(r->gone_ctx);
      request_resume(r);
    }
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

struct server *server_new(uv_loop_t *loop, const struct control_socket *socket,
                          const struct server_door *door, const struct server_route *routes,
                          void *ctx, unsigned max_connections, struct err *err) {
  if (!mhd_load(err))
    return NULL;
  struct server *h = xcalloc(1, sizeof *h);
  *h = (struct server){.loop = loop,
                       .socket = socket,
                       .door = door,
                       .listens = door != NULL ? door->fd : socket->fd,
                       .body_max = door != NULL ? door->body_bytes : LIMIT_API_BODY_BYTES,
                       .routes = routes,
                       .ctx = ctx,
                       .max_connections = max_connections};
  if (uv_poll_init(loop, &h->listener, h->listens) != 0)
    BUG("the loop takes no descriptor");
  uv_timer_init(loop, &h->timer);
  uv_timer_init(loop, &h->ticker);
  uv_timer_init(loop, &h->accept_again);
  h->listener.data = h->timer.data = h->ticker.data = h->accept_again.data = h;
  h->open_handles = 4;
  if (!engine_begin(h, door != NULL ? door->connection_bytes : LIMIT_API_CONNECTION_BYTES) ||
      (door != NULL && door->short_bytes > 0 && !engine_begin(h, door->short_bytes))) {
    server_free(h);
    err_set(err, ERR_IO, "the HTTP server cannot start");
    return NULL;
  }
  for (size_t i = 0; i < h->engine_count; i++)
    uv_poll_start(&h->engines[i].events, UV_READABLE, on_events);
  uv_timer_start(&h->ticker, server_on_tick, TICK_MS, TICK_MS);
  listen_on(h);
  return h;
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
