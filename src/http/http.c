/* Runs HTTP exchanges on the loop: their states, their lanes and their limits of time; and connects
 * libcurl to the loop. */
#include "http/http.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "http/address.h"
#include "http/curl_load.h"
#include "os/loop.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The life of an exchange; X(state, the states it may move to). */
#define EXCHANGE_STATES(X)                                                                         \
  /* waits for a place in its lane */                                                              \
  X(WAITING, XS(ACTIVE) | XS(ENDING))                                                              \
  /* libcurl has it */                                                                             \
  X(ACTIVE, XS(ENDING) | XS(ENDED))                                                                \
  /* its end is known and waits to be told from the loop */                                        \
  X(ENDING, XS(ENDED))                                                                             \
  X(ENDED, 0)

enum exchange_state {
#define XS_ENUM(name, next) EXCHANGE_STATE_##name,
  EXCHANGE_STATES(XS_ENUM)
#undef XS_ENUM
};

/* A handle of libcurl and the exchange it serves. The callbacks get this, so that nothing need be
 * set again for each request. */
struct http_easy {
  CURL *easy;
  struct http_exchange *exchange;
  char detail[CURL_ERROR_SIZE];
};

struct http_exchange {
  struct list_node in_state; /* in the list of its state */
  struct http *http;
  struct http_lane *lane;
  struct http_sink sink;
  enum exchange_state state;
  struct http_end end;
  struct http_easy *slot;
  struct curl_slist *headers;
  char *url, *ca_file;
  struct str body;
  uint64_t total_at, stall_at; /* of the loop's clock; 0: no limit */
  uint64_t stall_ms, connect_ms;
  size_t max_bytes, header_bytes;
  bool post, allow_http, plain, alone;
  bool in_head; /* headers come, and there are more */
  bool head_told, encoded, connected;
  bool ended_by_us; /* `end` was set before libcurl was told to stop */
};

struct http_lane {
  struct http_lane *next;
  char *name;
  unsigned max, active;
  struct list waiting; /* struct http_exchange */
};

struct http {
  uv_loop_t *loop;
  const struct curl_api *curl; /* NULL until the first request */
  CURLM *multi;
  struct http_lane *lanes;
  struct list active, ending;
  struct http_easy *idle[LIMIT_HTTP_IDLE_HANDLES];
  size_t idle_count, open_count;
  uv_timer_t curl_timer; /* libcurl's own */
  uv_timer_t clock;      /* the next stall or total limit */
  uv_timer_t soon;       /* tells `ending` */
  unsigned handles;      /* of the above and sockets, not yet closed */
  bool in_callback;      /* libcurl calls us: its multi functions must not be called */
  bool closing;
};

/* --- exchanges --- */

enum { EXPECT_BYTES = 500000 };

/* --- states and lists --- */

static struct list *exchange_list_of(struct http_exchange *x) {
  switch (x->state) {
  case EXCHANGE_STATE_WAITING:
    return &x->lane->waiting;
  case EXCHANGE_STATE_ACTIVE:
    return &x->http->active;
  case EXCHANGE_STATE_ENDING:
    return &x->http->ending;
  case EXCHANGE_STATE_ENDED:
    return NULL;
  }
  BUG("an exchange is in no state");
}

static void set_state(struct http_exchange *x, enum exchange_state state) {
#define XS(name)            (1u << EXCHANGE_STATE_##name)
#define XS_NEXT(name, next) [EXCHANGE_STATE_##name] = (next),
  static const unsigned next[] = {EXCHANGE_STATES(XS_NEXT)};
#undef XS_NEXT
#undef XS
  assert(next[x->state] & (1u << state));
  if (x->state == EXCHANGE_STATE_ACTIVE)
    x->lane->active--;
  list_remove(exchange_list_of(x), &x->in_state);
  x->state = state;
  if (state == EXCHANGE_STATE_ACTIVE)
    x->lane->active++;
  if (exchange_list_of(x))
    list_push_back(exchange_list_of(x), &x->in_state);
}

/* Sets why it ends, unless that is already known. */
PRINTF_LIKE(3, 4)
static void exchange_set_end(struct http_exchange *x, enum http_end_kind kind, const char *fmt,
                             ...) {
  va_list ap;
  if (x->ended_by_us)
    return;
  x->ended_by_us = true;
  x->end.kind = kind;
  va_start(ap, fmt);
  (void)vsnprintf(x->end.message, sizeof x->end.message, fmt, ap);
  va_end(ap);
}

static void exchange_on_soon(uv_timer_t *timer);

/* Ends it with HTTP_END_NETWORK, from the loop; may be called within callbacks of libcurl. */
static void exchange_fail_soon(struct http_exchange *x, const char *why) {
  exchange_set_end(x, HTTP_END_NETWORK, "%s", why);
  uv_timer_start(&x->http->soon, exchange_on_soon, 0, 0);
}

/* Ends the exchange: its end is reported from the loop, not from here. */
static void end_soon(struct http_exchange *x) {
  set_state(x, EXCHANGE_STATE_ENDING);
  uv_timer_start(&x->http->soon, exchange_on_soon, 0, 0);
}

/* --- limits of time --- */

static void on_clock(uv_timer_t *timer);

static uint64_t deadline(const struct http_exchange *x) {
  uint64_t at = x->total_at;
  if (x->state == EXCHANGE_STATE_ACTIVE && x->stall_at && (at == 0 || x->stall_at < at))
    return x->stall_at;
  return at;
}

/* Sets the clock. Bytes move a stall limit on without telling it: it may ring too early, never too
 * late. */
static void arm_clock(struct http *http, uint64_t at) {
  uint64_t now = uv_now(http->loop), in = at > now ? at - now : 0;
  if (at != 0 &&
      (!uv_is_active((uv_handle_t *)&http->clock) || uv_timer_get_due_in(&http->clock) > in))
    uv_timer_start(&http->clock, on_clock, in, 0);
}

/* Its next limit of time rings */
static void exchange_arm_clock(struct http_exchange *x) {
  arm_clock(x->http, deadline(x));
}

/* It does not stall */
static void exchange_note_byte(struct http_exchange *x) {
  x->stall_at = x->stall_ms ? uv_now(x->http->loop) + x->stall_ms : 0;
}

/* --- exchanges --- */

static bool http_curl_load(struct http *http, struct err *err);
static struct http_easy *http_curl_easy(const struct curl_api *curl);
static void http_curl_end(struct http_exchange *x, CURLcode code);

static void activate(struct http_exchange *x) {
  struct http *http = x->http;
  const struct curl_api *curl = http->curl;
  x->slot = http->idle_count > 0 ? http->idle[--http->idle_count] : http_curl_easy(curl);
  x->slot->exchange = x;
  x->slot->detail[0] = '\0';
  CURL *easy = x->slot->easy;
  curl->easy_setopt(easy, CURLOPT_URL, x->url);
  curl->easy_setopt(easy, CURLOPT_HTTPHEADER, x->headers);
  if (x->post) {
    curl->easy_setopt(easy, CURLOPT_POST, 1L);
    curl->easy_setopt(easy, CURLOPT_POSTFIELDS, x->body.n ? x->body.p : "");
    curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body.n);
  } else {
    curl->easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  }
  if (x->ca_file != NULL) {
    curl->easy_setopt(easy, CURLOPT_CAINFO, x->ca_file);
    curl->easy_setopt(easy, CURLOPT_CAPATH, NULL);
  }
  curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, x->alone ? 1L : 0L);
  curl->easy_setopt(easy, CURLOPT_FORBID_REUSE, x->alone ? 1L : 0L);
  /* Behind TLS, it waits for the handshake to learn whether one connection can be shared. Without
   * TLS, libcurl would wait for the first reply, which may be long in coming. */
  curl->easy_setopt(easy, CURLOPT_PIPEWAIT, x->plain ? 0L : 1L);
  set_state(x, EXCHANGE_STATE_ACTIVE);
  x->stall_at = uv_now(http->loop) + x->connect_ms; /* until there is a connection */
  exchange_arm_clock(x);
  uv_ref((uv_handle_t *)&http->curl_timer);
  if (curl->multi_add_handle(http->multi, easy) != CURLM_OK)
    exchange_fail_soon(x, "libcurl refused the request");
}

static void release_easy(struct http_exchange *x) {
  struct http *http = x->http;
  struct http_easy *slot = x->slot;
  if (slot == NULL)
    return;
  slot->exchange = NULL;
  x->slot = NULL;
  /* A handle with its own CA file is not shared. */
  if (http->idle_count < LIMIT_HTTP_IDLE_HANDLES && x->ca_file == NULL) {
    /* Nothing of this exchange, its key least of all, stays behind. */
    http->curl->easy_setopt(slot->easy, CURLOPT_HTTPHEADER, NULL);
    http->idle[http->idle_count++] = slot;
  } else {
    http->curl->easy_cleanup(slot->easy);
    free(slot);
  }
}

static void next_of_lane(struct http *http, struct http_lane *lane) {
  while (lane->waiting.first && lane->active < lane->max && !http->in_callback)
    activate(LIST_FIRST(struct http_exchange, in_state, &lane->waiting));
  if (http->in_callback && lane->waiting.first)
    uv_timer_start(&http->soon, exchange_on_soon, 0, 0);
}

/* Tells the end; the exchange is gone afterwards. */
static void exchange_finish(struct http_exchange *x) {
  struct http *http = x->http;
  struct http_lane *lane = x->lane;
  set_state(x, EXCHANGE_STATE_ENDED);
  release_easy(x);
  for (struct curl_slist *h = x->headers; h; h = h->next) /* keys stand in them */
    explicit_bzero(h->data, strlen(h->data));
  if (http->curl)
    http->curl->slist_free_all(x->headers);
  x->headers = NULL;
  if (http->active.first == NULL)
    uv_unref((uv_handle_t *)&http->curl_timer);
  if (--http->open_count == 0)
    uv_timer_stop(&http->clock);
  next_of_lane(http, lane);
  x->sink.done(x->sink.ctx, &x->end);
  free(x->url);
  free(x->ca_file);
  free(x);
}

/* Tells the ends that libcurl knows */
static void http_drain(struct http *http) {
  const struct curl_api *curl = http->curl;
  CURLMsg *message;
  int left;
  while ((message = curl->multi_info_read(http->multi, &left)) != NULL) {
    struct http_easy *slot = NULL;
    CURLcode code = message->data.result; /* message dies with remove_handle */
    if (message->msg != CURLMSG_DONE)
      continue;
    curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
    curl->multi_remove_handle(http->multi, slot->easy);
    struct http_exchange *x = slot->exchange;
    if (code == CURLE_OK && !x->head_told && x->sink.head != NULL) {
      http->in_callback = true;
      if (!x->sink.head(x->sink.ctx, x->end.status))
        exchange_set_end(x, HTTP_END_STOPPED, "not read further");
      http->in_callback = false;
    }
    if (!x->ended_by_us)
      http_curl_end(x, code);
    exchange_finish(x);
  }
}

/* Ends the exchange from our side, outside of libcurl's callbacks. */
static void abandon(struct http_exchange *x) {
  if (x->state == EXCHANGE_STATE_ACTIVE)
    x->http->curl->multi_remove_handle(x->http->multi, x->slot->easy);
  end_soon(x);
}

/* Does what could not be done from within a callback of libcurl, then tells the ends that wait. */
static void exchange_on_soon(uv_timer_t *timer) {
  struct http *http = timer->data;
  LIST_EACH(struct http_exchange, x, in_state, &http->active) {
    if (x->ended_by_us)
      abandon(x);
  }
  for (struct http_lane *lane = http->lanes; lane; lane = lane->next)
    next_of_lane(http, lane);
  const struct http_exchange *last = LIST_LAST(struct http_exchange, in_state, &http->ending);
  for (bool more = last != NULL; more;) { /* what is added meanwhile waits for the next turn */
    struct http_exchange *x = LIST_FIRST(struct http_exchange, in_state, &http->ending);
    more = x != last;
    exchange_finish(x);
  }
  if (http->ending.first)
    uv_timer_start(&http->soon, exchange_on_soon, 0, 0);
}

static void check_limits(struct http_exchange *x, uint64_t now) {
  if (x->total_at != 0 && now >= x->total_at)
    exchange_set_end(x, HTTP_END_TOTAL_LIMIT, "not finished within its time limit");
  else if (x->state != EXCHANGE_STATE_ACTIVE || x->stall_at == 0 || now < x->stall_at)
    return;
  else if (!x->connected)
    exchange_set_end(x, HTTP_END_CONNECT_LIMIT, "no connection within %llu ms",
                     (unsigned long long)x->connect_ms);
  else if (x->in_head)
    exchange_set_end(x, HTTP_END_STALL_LIMIT, "its headers were not complete within %llu ms",
                     (unsigned long long)x->stall_ms);
  else
    exchange_set_end(x, HTTP_END_STALL_LIMIT, "no byte for %llu ms",
                     (unsigned long long)x->stall_ms);
  abandon(x);
}

static uint64_t check_list(struct list *list, uint64_t now, uint64_t next_at) {
  LIST_EACH(struct http_exchange, x, in_state, list) {
    check_limits(x, now);
    uint64_t at = x->state == EXCHANGE_STATE_ENDING ? 0 : deadline(x);
    if (at != 0 && (next_at == 0 || at < next_at))
      next_at = at;
  }
  return next_at;
}

static void on_clock(uv_timer_t *timer) {
  struct http *http = timer->data;
  uint64_t now = uv_now(http->loop), next_at = check_list(&http->active, now, 0);
  for (struct http_lane *lane = http->lanes; lane; lane = lane->next)
    next_at = check_list(&lane->waiting, now, next_at);
  arm_clock(http, next_at);
}

struct http_exchange *http_start(struct http *http, const struct http_request *request,
                                 const struct http_sink *sink) {
  assert(request->lane != NULL);
  assert(request->url != NULL);
  assert(sink->done != NULL);
  struct http_exchange *x = xcalloc(1, sizeof *x);
  struct err err;
  uint64_t now = uv_now(http->loop);
  x->http = http;
  x->lane = request->lane;
  x->sink = *sink;
  x->url = xstrdup(request->url);
  x->ca_file = request->ca_file ? xstrdup(request->ca_file) : NULL;
  x->body = request->body;
  x->post = request->post;
  x->allow_http = request->allow_http;
  x->alone = request->alone;
  x->plain = str_starts_fold(str_from(request->url), "http:");
  x->connect_ms = request->connect_ms ? request->connect_ms : LIMIT_HTTP_CONNECT_MS;
  x->stall_ms = request->stall_ms;
  x->total_at = request->total_ms ? now + request->total_ms : 0;
  x->max_bytes = request->max_bytes;
  x->state = EXCHANGE_STATE_WAITING;
  list_push_back(&x->lane->waiting, &x->in_state);
  http->open_count++;
  if (!http_curl_load(http, &err)) {
    exchange_set_end(x, HTTP_END_REFUSED, "%.200s", err.text);
    end_soon(x);
    return x;
  }
  for (const char *const *h = request->headers; h && *h; h++)
    x->headers = http->curl->slist_append(x->headers, *h);
  x->headers = http->curl->slist_append(x->headers, "Accept-Encoding: identity");
  if (x->body.n > EXPECT_BYTES) /* libcurl would wait for a 100 Continue */
    x->headers = http->curl->slist_append(x->headers, "Expect:");
  arm_clock(http, x->total_at);
  next_of_lane(http, x->lane);
  return x;
}

void http_cancel(struct http_exchange *x) {
  assert(x->state != EXCHANGE_STATE_ENDED);
  exchange_set_end(x, HTTP_END_CANCELLED, "cancelled");
  if (x->http->in_callback && x->state == EXCHANGE_STATE_ACTIVE)
    uv_timer_start(&x->http->soon, exchange_on_soon, 0, 0);
  else if (x->state != EXCHANGE_STATE_ENDING)
    abandon(x);
}

void http_hasten(struct http_exchange *x, uint64_t stall_ms) {
  if (x->state != EXCHANGE_STATE_ACTIVE)
    return;
  x->stall_ms = stall_ms;
  x->stall_at = uv_now(x->http->loop) + stall_ms;
  arm_clock(x->http, x->stall_at);
}

/* --- the transport --- */

struct http *http_new(uv_loop_t *loop) {
  struct http *http = xcalloc(1, sizeof *http);
  uv_timer_t *timers[] = {&http->curl_timer, &http->clock, &http->soon};
  http->loop = loop;
  for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
    uv_timer_init(loop, timers[i]);
    timers[i]->data = http;
    http->handles++;
  }
  uv_unref((uv_handle_t *)&http->curl_timer);
  return http;
}

/* One of `handles` */
static void http_handle_closed(struct http *http) {
  if (--http->handles == 0 && http->closing)
    free(http);
}

static void exchange_on_timer_closed(uv_handle_t *handle) {
  http_handle_closed(handle->data);
}

void http_free(struct http *http) {
  if (http == NULL)
    return;
  assert(http->open_count == 0);
  http->closing = true;
  if (http->multi != NULL) {
    while (http->idle_count > 0) {
      struct http_easy *slot = http->idle[--http->idle_count];
      http->curl->easy_cleanup(slot->easy);
      free(slot);
    }
    http->curl->multi_cleanup(http->multi);
    http->curl->global_cleanup();
  }
  while (http->lanes != NULL) {
    struct http_lane *lane = http->lanes;
    http->lanes = lane->next;
    free(lane->name);
    free(lane);
  }
  uv_close((uv_handle_t *)&http->curl_timer, exchange_on_timer_closed);
  uv_close((uv_handle_t *)&http->clock, exchange_on_timer_closed);
  uv_close((uv_handle_t *)&http->soon, exchange_on_timer_closed);
}

struct http_lane *http_lane(struct http *http, const char *name, unsigned max) {
  assert(max > 0);
  struct http_lane *lane = http->lanes;
  while (lane != NULL && strcmp(lane->name, name) != 0)
    lane = lane->next;
  if (lane == NULL) {
    lane = xcalloc(1, sizeof *lane);
    lane->name = xstrdup(name);
    lane->next = http->lanes;
    http->lanes = lane;
  }
  lane->max = max;
  return lane;
}

/* --- libcurl: its callbacks, its sockets and its timer --- */

struct http_socket {
  uv_poll_t poll;
  curl_socket_t fd;
  struct http *http;
};

/* --- libcurl's callbacks: they note and pass on, and never call a curl_multi function --- */

static size_t http_curl_on_body(char *bytes, size_t one, size_t n, void *ctx) {
  struct http_exchange *x = ((struct http_easy *)ctx)->exchange;
  (void)one;
  exchange_note_byte(x);
  if (x->ended_by_us)
    return 0;
  x->http->in_callback = true;
  if (!x->head_told) {
    x->head_told = true;
    if (x->sink.head && !x->sink.head(x->sink.ctx, x->end.status))
      exchange_set_end(x, HTTP_END_STOPPED, "not read further");
  }
  if (n > x->max_bytes - x->end.bytes)
    exchange_set_end(x, HTTP_END_TOO_LARGE, "the reply is larger than %zu bytes", x->max_bytes);
  else
    x->end.bytes += n;
  if (!x->ended_by_us && !x->sink.body(x->sink.ctx, (struct str){bytes, n}))
    exchange_set_end(x, HTTP_END_STOPPED, "not read further");
  x->http->in_callback = false;
  return x->ended_by_us ? 0 : n;
}

static size_t http_curl_on_header(char *bytes, size_t one, size_t n, void *ctx) {
  struct http_exchange *x = ((struct http_easy *)ctx)->exchange;
  struct str line = str_trim((struct str){bytes, n});
  (void)one;
  if (x->ended_by_us)
    return 0;
  x->header_bytes += n;
  x->in_head = line.n > 0;
  if (line.n == 0) /* a head that trickles is none */
    exchange_note_byte(x);
  if (x->header_bytes > LIMIT_HTTP_HEADER_BYTES) {
    exchange_set_end(x, HTTP_END_TOO_LARGE, "the reply has more than %u bytes of headers",
                     LIMIT_HTTP_HEADER_BYTES);
    return 0;
  }
  if (line.n > 9 && str_starts(line, "HTTP/")) { /* also after a 100 Continue */
    const char *space = memchr(line.p, ' ', line.n);
    x->end.status = space ? (int)strtol(space + 1, NULL, 10) : 0;
    return n;
  }
  const char *colon = memchr(line.p, ':', line.n);
  if (colon == NULL || x->end.status < 200)
    return n;
  struct str name = {line.p, (size_t)(colon - line.p)};
  struct str value = str_trim((struct str){colon + 1, line.n - name.n - 1});
  if (str_eq_fold(name, "content-encoding")) {
    /* One encoding is decoded; a stack of them, or one that needs much memory, is not. */
    if (x->encoded ||
        !(str_eq_c(value, "gzip") || str_eq_c(value, "x-gzip") || str_eq_c(value, "deflate") ||
          str_eq_c(value, "br") || str_eq_c(value, "identity") || value.n == 0)) {
      exchange_set_end(x, HTTP_END_PROTOCOL, "the reply's encoding \"%.*s\" is not decoded",
                       (int)(value.n < 40 ? value.n : 40), value.p);
      return 0;
    }
    x->encoded = true;
  }
  if (x->sink.header) {
    x->http->in_callback = true;
    x->sink.header(x->sink.ctx, name, value);
    x->http->in_callback = false;
  }
  return x->ended_by_us ? 0 : n;
}

static bool http_curl_is_allowed(struct http_exchange *x, enum http_address kind) {
  if (kind == HTTP_ADDRESS_FORBIDDEN)
    exchange_set_end(x, HTTP_END_REFUSED,
                     "the address is link-local or a metadata service: no request goes there");
  else if (x->plain && !x->allow_http && kind != HTTP_ADDRESS_LOOPBACK)
    exchange_set_end(
        x, HTTP_END_REFUSED,
        "plain http is for this machine only: use https, or allow_http: true in the user's "
        "configuration");
  else
    return true;
  return false;
}

static curl_socket_t on_open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to) {
  (void)purpose;
  if (!http_curl_is_allowed(((struct http_easy *)ctx)->exchange, http_address_kind(&to->addr)))
    return CURL_SOCKET_BAD;
  return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* libcurl also calls this for a connection that another request opened. */
static int on_before_request(void *ctx, char *to_ip, char *from_ip, int to_port, int from_port) {
  (void)from_ip;
  (void)to_port;
  (void)from_port;
  struct http_exchange *x = ((struct http_easy *)ctx)->exchange;
  if (!http_curl_is_allowed(x, http_address_of_text(to_ip)))
    return CURL_PREREQFUNC_ABORT;
  x->connected = true;
  exchange_note_byte(x); /* from now on it may stall */
  exchange_arm_clock(x);
  return CURL_PREREQFUNC_OK;
}

/* --- libcurl on the loop --- */

static void on_poll(uv_poll_t *poll, int status, int events) {
  struct http_socket *s = poll->data;
  struct http *http = s->http; /* s may be closing after socket_action */
  int flags = status < 0 ? CURL_CSELECT_ERR : 0, running;
  if (events & UV_READABLE)
    flags |= CURL_CSELECT_IN;
  if (events & UV_WRITABLE)
    flags |= CURL_CSELECT_OUT;
  http->curl->multi_socket_action(http->multi, s->fd, flags, &running);
  http_drain(http);
}

static void on_curl_timer(uv_timer_t *timer) {
  struct http *http = timer->data;
  int running;
  http->curl->multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
  http_drain(http);
}

static int want_timer(CURLM *multi, long ms, void *ctx) {
  struct http *http = ctx;
  (void)multi;
  if (http->closing)
    return 0;
  if (ms < 0)
    uv_timer_stop(&http->curl_timer);
  else /* 0: in the next turn of the loop, never from within this callback */
    uv_timer_start(&http->curl_timer, on_curl_timer, (uint64_t)ms, 0);
  return 0;
}

static void on_socket_closed(uv_handle_t *handle) {
  struct http_socket *s = handle->data;
  struct http *http = s->http;
  free(s);
  http_handle_closed(http);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned) {
  struct http *http = ctx;
  struct http_socket *s = assigned;
  if (what == CURL_POLL_REMOVE) {
    if (s != NULL) {
      uv_poll_stop(&s->poll); /* now: the descriptor may be watched again in this same turn */
      uv_close((uv_handle_t *)&s->poll, on_socket_closed);
      http->curl->multi_assign(http->multi, fd, NULL);
    }
    return 0;
  }
  if (s == NULL) {
    s = xcalloc(1, sizeof *s);
    s->fd = fd;
    s->http = http;
    s->poll.data = s;
    if (fault_fails("watch") || uv_poll_init_socket(http->loop, &s->poll, fd) != 0) {
      free(s);
      /* libcurl is never told: 7.88 crashes after a callback that failed, and it takes no request
       * until all that it has are over. */
      struct http_easy *slot = NULL;
      http->curl->easy_getinfo(easy, CURLINFO_PRIVATE, &slot);
      if (slot != NULL && slot->exchange != NULL)
        exchange_fail_soon(slot->exchange, "the system allows no more sockets to be watched");
      return 0;
    }
    http->handles++;
    http->curl->multi_assign(http->multi, fd, s);
  }
  int events = 0;
  if (what & CURL_POLL_IN)
    events |= UV_READABLE;
  if (what & CURL_POLL_OUT)
    events |= UV_WRITABLE;
  uv_poll_start(&s->poll, events, on_poll);
  return 0;
}

/* Loads libcurl with the first request. */
static bool http_curl_load(struct http *http, struct err *err) {
  if (http->multi != NULL)
    return true;
  const struct curl_api *curl = curl_load(err);
  if (curl == NULL)
    return false;
  if (curl->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return err_set(err, ERR_IO, "libcurl cannot be initialised");
  http->curl = curl;
  http->multi = curl->multi_init();
  if (http->multi == NULL)
    BUG("libcurl has no memory");
  curl->multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
  curl->multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
  curl->multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, want_timer);
  curl->multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
  curl->multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)LIMIT_HTTP_CONNECTIONS);
  return true;
}

/* Sets what is the same for every request; a handle that comes back keeps it. */
static struct http_easy *http_curl_easy(const struct curl_api *curl) {
  struct http_easy *slot = xcalloc(1, sizeof *slot);
  CURL *easy = slot->easy = curl->easy_init();
  if (easy == NULL)
    BUG("libcurl has no memory");
  curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl->easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  curl->easy_setopt(easy, CURLOPT_PROXY, ""); /* whatever the environment says */
  curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  curl->easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
  curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a cancel does not wait for a name */
  curl->easy_setopt(easy, CURLOPT_USERAGENT, "segue/" SEGUE_VERSION);
  /* An encoding is decoded if it comes all the same; the header below asks for none. */
  curl->easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip, deflate, br");
  curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, http_curl_on_body);
  curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, http_curl_on_header);
  curl->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
  curl->easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_before_request);
  curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, slot->detail);
  curl->easy_setopt(easy, CURLOPT_PRIVATE, slot);
  curl->easy_setopt(easy, CURLOPT_WRITEDATA, slot);
  curl->easy_setopt(easy, CURLOPT_HEADERDATA, slot);
  curl->easy_setopt(easy, CURLOPT_OPENSOCKETDATA, slot);
  curl->easy_setopt(easy, CURLOPT_PREREQDATA, slot);
  return slot;
}

/* Takes what libcurl says of an exchange that is over. */
static void http_curl_end(struct http_exchange *x, CURLcode code) {
  assert(x->slot != NULL);
  assert(x->slot->exchange == x);
  const char *why = x->slot->detail[0] ? x->slot->detail : x->http->curl->easy_strerror(code);
  switch ((int)code) {
  case CURLE_OK:
    x->end.kind = HTTP_END_COMPLETE;
    x->ended_by_us = true;
    break;
  case CURLE_OPERATION_TIMEDOUT:
    exchange_set_end(x, HTTP_END_CONNECT_LIMIT, "no connection within %llu ms",
                     (unsigned long long)x->connect_ms);
    break;
  case CURLE_PARTIAL_FILE:
  case CURLE_RECV_ERROR:
  case CURLE_SEND_ERROR:
  case CURLE_GOT_NOTHING:
  case CURLE_HTTP2:
  case CURLE_HTTP2_STREAM:
    exchange_set_end(x, HTTP_END_CUT, "the connection broke %s: %s",
                     x->end.status ? "before the reply was whole" : "before a reply came", why);
    break;
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
    exchange_set_end(x, HTTP_END_TLS, "the certificate is not accepted: %s", why);
    break;
  case CURLE_UNSUPPORTED_PROTOCOL: /* also what speaks no HTTP at all */
    if (x->connected)
      exchange_set_end(x, HTTP_END_PROTOCOL, "the reply cannot be read: %s", why);
    else
      exchange_set_end(x, HTTP_END_REFUSED, "the URL cannot be used: %s", why);
    break;
  case CURLE_URL_MALFORMAT:
    exchange_set_end(x, HTTP_END_REFUSED, "the URL cannot be used: %s", why);
    break;
  case CURLE_BAD_CONTENT_ENCODING:
  case CURLE_WEIRD_SERVER_REPLY:
  case CURLE_WRITE_ERROR:
    exchange_set_end(x, HTTP_END_PROTOCOL, "the reply cannot be read: %s", why);
    break;
  default:
    exchange_set_end(x, x->end.status ? HTTP_END_CUT : HTTP_END_NETWORK, "%s", why);
  }
}

/* --- one request --- */

struct http_one {
  struct buf *out;
  struct http_end end;
};

static bool one_takes(void *ctx, struct str bytes) {
  struct http_one *one = ctx;
  buf_str(one->out, bytes);
  return true;
}

static void one_is_done(void *ctx, const struct http_end *end) {
  struct http_one *one = ctx;
  one->end = *end;
}

bool http_now(const struct http_request *request, struct buf *out, int *status, struct err *err) {
  uv_loop_t loop;
  struct http_one one = {.out = out};
  struct http_request asked = *request;
  if (!loop_init(&loop, err))
    return false;
  struct http *http = http_new(&loop);
  asked.lane = http_lane(http, "one", 1);
  const struct http_sink sink = {.body = one_takes, .done = one_is_done, .ctx = &one};
  (void)http_start(http, &asked, &sink);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  http_free(http);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  (void)uv_loop_close(&loop);
  *status = one.end.status;
  return one.end.kind == HTTP_END_COMPLETE ||
         err_set(err, ERR_IO, "%.300s: %s", request->url, one.end.message);
}
