/* Talks to an agent that is an HTTP server on this machine. */
#include "provider/agent/agent_server.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "format/sse.h"
#include "os/random.h"
#include "provider/api/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Holds one request. What libcurl's callbacks deliver is kept here until the loop gets to it
 * (`soon`). */
struct server_asked {
  struct server_asked *next;
  struct agent_server *server;
  struct http_exchange *exchange; /* NULL: it is over */
  int id;
  bool events, begun, begun_told, over;
  int status;
  struct buf body;  /* what we send */
  struct buf bytes; /* what came: a whole reply, or the unread part of a stream */
  struct sse sse;
  enum error_class class;
  char message[256];
};

struct agent_server {
  struct http *http;
  struct http_lane *lane;
  struct agent_server_sink sink;
  struct server_asked *asked; /* those not yet reported to their end */
  unsigned port;
  char authorization[160];
  uv_timer_t soon, wake;
  unsigned handles;
  bool closing;
  void (*on_closed)(void *ctx);
  void *closed_ctx;
};

/* --- the password --- */

char *agent_server_password(void) {
  unsigned char random[LIMIT_SERVER_SECRET_BYTES];
  char *password = xmalloc(2 * sizeof random + 1);
  random_fill(random, sizeof random);
  for (size_t i = 0; i < sizeof random; i++)
    print_into(password + 2 * i, 3, "%02x", random[i]);
  explicit_bzero(random, sizeof random);
  return password;
}

static void base64(const char *text, char *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *p = (const unsigned char *)text;
  for (size_t n = strlen(text); n > 0; n -= n < 3 ? n : 3, p += 3) {
    unsigned bits = (unsigned)p[0] << 16;
    if (n > 1)
      bits |= (unsigned)p[1] << 8;
    if (n > 2)
      bits |= (unsigned)p[2];
    *out++ = digits[bits >> 18];
    *out++ = digits[bits >> 12 & 63];
    *out++ = n > 1 ? digits[bits >> 6 & 63] : '=';
    *out++ = n > 2 ? digits[bits & 63] : '=';
  }
  *out = '\0';
}

/* --- telling --- */

static void tell_later(struct agent_server *s);

static void agent_server_tell(struct server_asked *x, bool begun) {
  struct agent_server *s = x->server;
  const struct driver_reply reply = {.id = x->id,
                                     .class = x->class,
                                     .status = x->status,
                                     .begun = begun,
                                     .body = begun ? (struct str){0} : buf_view(&x->bytes),
                                     .message = x->class ? x->message : NULL};
  s->sink.reply(s->sink.ctx, &reply);
}

static bool agent_server_on_event(void *ctx, struct str type, struct str data) {
  struct server_asked *x = ctx;
  (void)type;
  x->server->sink.event(x->server->sink.ctx, data);
  return true;
}

static void agent_server_read_stream(struct server_asked *x) {
  struct buf bytes = x->bytes;
  x->bytes = (struct buf){.max = bytes.max};
  if (!x->begun_told) {
    x->begun_told = true;
    agent_server_tell(x, true);
  }
  bool more = sse_feed(&x->sse, buf_view(&bytes));
  if (more && x->over)
    more = sse_end(&x->sse);
  buf_deinit(&bytes);
  if (more || x->class != CLASS_NONE)
    return;
  x->class = CLASS_PROTOCOL;
  print_into(x->message, sizeof x->message, "an event is larger than %u bytes",
             LIMIT_AGENT_LINE_BYTES);
  if (x->exchange != NULL)
    http_cancel(x->exchange);
}

static void agent_server_on_handle_closed(uv_handle_t *handle) {
  struct agent_server *s = handle->data;
  if (--s->handles > 0)
    return;
  void (*on_closed)(void *ctx) = s->on_closed;
  void *ctx = s->closed_ctx;
  explicit_bzero(s->authorization, sizeof s->authorization);
  free(s);
  on_closed(ctx);
}

static void close_if_done(struct agent_server *s) {
  if (!s->closing || s->asked != NULL || uv_is_closing((uv_handle_t *)&s->soon))
    return;
  uv_close((uv_handle_t *)&s->soon, agent_server_on_handle_closed);
  uv_close((uv_handle_t *)&s->wake, agent_server_on_handle_closed);
}

/* Tells what has come. New requests are put at the front, so they wait for the next round. */
static void agent_server_on_soon(uv_timer_t *timer) {
  struct agent_server *s = timer->data;
  for (struct server_asked *x = s->asked, *next; x != NULL; x = next) {
    next = x->next;
    if (x->events && x->begun && (x->bytes.n > 0 || !x->begun_told || x->over))
      agent_server_read_stream(x);
    if (x->over) {
      agent_server_tell(x, false);
      CHAIN_REMOVE(x->server->asked, x);
      if (x->events)
        sse_deinit(&x->sse);
      buf_deinit(&x->body);
      buf_deinit(&x->bytes);
      free(x);
    }
  }
  close_if_done(s);
}

static void tell_later(struct agent_server *s) {
  uv_timer_start(&s->soon, agent_server_on_soon, 0, 0);
}

/* --- what libcurl brings --- */

static bool agent_server_on_head(void *ctx, int status) {
  struct server_asked *x = ctx;
  x->status = status;
  x->begun = x->events && status == 200;
  if (x->events && !x->begun)
    x->bytes.max = LIMIT_HTTP_ERROR_BYTES;
  tell_later(x->server);
  return true;
}

static bool agent_server_on_body(void *ctx, struct str bytes) {
  struct server_asked *x = ctx;
  buf_str(&x->bytes, bytes);
  if (x->begun)
    tell_later(x->server);
  return true;
}

static void agent_server_on_done(void *ctx, const struct http_end *end) {
  struct server_asked *x = ctx;
  x->exchange = NULL;
  x->over = true;
  x->status = end->status;
  if (x->class == CLASS_NONE)
    x->class = api_end_class(end->kind);
  if (x->message[0] == '\0')
    print_into(x->message, sizeof x->message, "%.255s", end->message);
  tell_later(x->server);
}

/* --- from outside --- */

static void on_wake(uv_timer_t *timer) {
  struct agent_server *s = timer->data;
  if (!s->closing) {
    s->sink.woke(s->sink.ctx);
    return;
  }
  for (struct server_asked *x = s->asked; x != NULL; x = x->next) /* its grace is over */
    if (x->exchange != NULL)
      http_cancel(x->exchange);
}

struct agent_server *agent_server_new(struct http *http, uv_loop_t *loop, const char *password,
                                      const struct agent_server_sink *sink) {
  struct agent_server *s = xcalloc(1, sizeof *s);
  char pair[2 * LIMIT_SERVER_SECRET_BYTES + 16];
  static const char basic[] = "Authorization: Basic ";
  s->http = http;
  s->lane = http_lane(http, "servers of agents", LIMIT_SERVER_LANE_COUNT);
  s->sink = *sink;
  print_into(pair, sizeof pair, "opencode:%s", password);
  memcpy(s->authorization, basic, sizeof basic);
  base64(pair, s->authorization + sizeof basic - 1);
  explicit_bzero(pair, sizeof pair);
  uv_timer_init(loop, &s->soon);
  uv_timer_init(loop, &s->wake);
  s->soon.data = s->wake.data = s;
  s->handles = 2;
  return s;
}

void agent_server_at(struct agent_server *s, unsigned port) {
  assert(port > 0);
  assert(port < 65536);
  s->port = port;
}

void agent_server_request(struct agent_server *s, const struct driver_request *request) {
  assert(request->path[0] == '/');
  const char *const headers[] = {
      s->authorization,
      request->events ? "Accept: text/event-stream" : "Content-Type: application/json", NULL};
  char url[LIMIT_HTTP_URL_BYTES];
  if (s->closing || s->port == 0)
    return;
  struct server_asked *x = xcalloc(1, sizeof *x);
  const struct http_sink sink = {NULL, agent_server_on_head, agent_server_on_body,
                                 agent_server_on_done, x};
  x->next = s->asked;
  s->asked = x;
  x->server = s;
  x->id = request->id;
  x->events = request->events;
  if (request->body.p != NULL)
    buf_str(&x->body, request->body);
  if (x->events)
    sse_init(&x->sse, LIMIT_AGENT_LINE_BYTES, agent_server_on_event, x);
  print_into(url, sizeof url, "http://127.0.0.1:%u%s", s->port, request->path);
  const struct http_request out = {.lane = s->lane,
                                   .url = url,
                                   .post = request->body.p != NULL,
                                   .headers = headers,
                                   .body = buf_view(&x->body),
                                   .alone = true,
                                   .max_bytes = x->events ? SIZE_MAX : LIMIT_AGENT_LINE_BYTES};
  x->exchange = http_start(s->http, &out, &sink);
}

void agent_server_wake(struct agent_server *s, uint64_t ms) {
  if (s->closing)
    return;
  (void)uv_timer_stop(&s->wake);
  if (ms > 0)
    uv_timer_start(&s->wake, on_wake, ms, 0);
}

void agent_server_close(struct agent_server *s, uint64_t grace_ms, void (*on_closed)(void *ctx),
                        void *ctx) {
  assert(on_closed != NULL);
  s->closing = true;
  s->on_closed = on_closed;
  s->closed_ctx = ctx;
  uv_timer_start(&s->wake, on_wake, grace_ms, 0);
  tell_later(s);
}
