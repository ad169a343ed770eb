#include "provider/http.h"

#include "base/limits.h"
#include "base/log.h"
#include "provider/curl_load.h"
#include "provider/http_address.h"

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

/* A handle of libcurl and whom it serves: the callbacks get this, so that nothing of it is to be set
 * anew for each request. */
struct http_easy {
  CURL *easy;
  struct http_exchange *exchange;
  char detail[CURL_ERROR_SIZE];
};

struct http_exchange {
  struct http_exchange *prev, *next; /* in the list of its state */
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
  bool post, allow_http, plain;
  bool head_told, encoded, connected;
  bool ended_by_us; /* `end` was set before libcurl was told to stop */
};

struct exchange_list {
  struct http_exchange *first, *last;
};

struct http_lane {
  struct http_lane *next;
  char *name;
  unsigned max, active;
  struct exchange_list waiting;
};

struct http {
  uv_loop_t *loop;
  const struct curl_api *curl; /* NULL until the first request */
  CURLM *multi;
  struct http_lane *lanes;
  struct exchange_list active, ending;
  struct http_easy *idle[LIMIT_HTTP_IDLE_HANDLES];
  size_t idle_count, open_count, socket_count;
  uv_timer_t curl_timer; /* libcurl's own */
  uv_timer_t clock;      /* the next stall or total limit */
  uv_timer_t soon;       /* tells `ending` */
  unsigned handles;      /* of the above and sockets, not yet closed */
  bool in_callback;      /* libcurl calls us: its multi functions must not be called */
  bool closing;
};

struct http_socket {
  uv_poll_t poll;
  curl_socket_t fd;
  struct http *http;
};

/* --- states and lists --- */

static struct exchange_list *list_of(struct http_exchange *x) {
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

static void list_add(struct exchange_list *list, struct http_exchange *x) {
  x->prev = list->last;
  x->next = NULL;
  *(list->last ? &list->last->next : &list->first) = x;
  list->last = x;
}

static void list_remove(struct exchange_list *list, struct http_exchange *x) {
  *(x->prev ? &x->prev->next : &list->first) = x->next;
  *(x->next ? &x->next->prev : &list->last) = x->prev;
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
  list_remove(list_of(x), x);
  x->state = state;
  if (state == EXCHANGE_STATE_ACTIVE)
    x->lane->active++;
  if (list_of(x))
    list_add(list_of(x), x);
}

static void set_end(struct http_exchange *x, enum http_end_kind kind, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void set_end(struct http_exchange *x, enum http_end_kind kind, const char *fmt, ...) {
  va_list ap;
  if (x->ended_by_us)
    return;
  x->ended_by_us = true;
  x->end.kind = kind;
  va_start(ap, fmt);
  (void)vsnprintf(x->end.message, sizeof x->end.message, fmt, ap);
  va_end(ap);
}

static void on_soon(uv_timer_t *timer);

/* Its end is told from the loop, not from here. */
static void end_soon(struct http_exchange *x) {
  set_state(x, EXCHANGE_STATE_ENDING);
  uv_timer_start(&x->http->soon, on_soon, 0, 0);
}

/* --- limits of time --- */

static void on_clock(uv_timer_t *timer);

static uint64_t deadline(const struct http_exchange *x) {
  uint64_t at = x->total_at;
  return x->state == EXCHANGE_STATE_ACTIVE && x->stall_at && (at == 0 || x->stall_at < at)
             ? x->stall_at
             : at;
}

/* Bytes move a stall limit on without telling the clock: it may ring too early, never too late. */
static void arm_clock(struct http *http, uint64_t at) {
  uint64_t now = uv_now(http->loop), in = at > now ? at - now : 0;
  if (at != 0 &&
      (!uv_is_active((uv_handle_t *)&http->clock) || uv_timer_get_due_in(&http->clock) > in))
    uv_timer_start(&http->clock, on_clock, in, 0);
}

static void note_byte(struct http_exchange *x) {
  x->stall_at = x->stall_ms ? uv_now(x->http->loop) + x->stall_ms : 0;
}

/* --- libcurl's callbacks: they note and pass on, and never call a curl_multi function --- */

static size_t on_body(char *bytes, size_t one, size_t n, void *ctx) {
  struct http_exchange *x = ((struct http_easy *)ctx)->exchange;
  (void)one;
  note_byte(x);
  if (x->ended_by_us)
    return 0;
  x->http->in_callback = true;
  if (!x->head_told) {
    x->head_told = true;
    if (x->sink.head && !x->sink.head(x->sink.ctx, x->end.status))
      set_end(x, HTTP_END_STOPPED, "not read further");
  }
  if (n > x->max_bytes - x->end.bytes)
    set_end(x, HTTP_END_TOO_LARGE, "the reply is larger than %zu bytes", x->max_bytes);
  else
    x->end.bytes += n;
  if (!x->ended_by_us && !x->sink.body(x->sink.ctx, (struct str){bytes, n}))
    set_end(x, HTTP_END_STOPPED, "not read further");
  x->http->in_callback = false;
  return x->ended_by_us ? 0 : n;
}

static bool is_known_encoding(struct str value) {
  return str_eq_c(value, "gzip") || str_eq_c(value, "x-gzip") || str_eq_c(value, "deflate") ||
         str_eq_c(value, "br") || str_eq_c(value, "identity") || value.n == 0;
}

static bool is_name(struct str name, const char *lower) {
  return name.n == strlen(lower) && strncasecmp(name.p, lower, name.n) == 0;
}

static size_t on_header(char *bytes, size_t one, size_t n, void *ctx) {
  struct http_exchange *x = ((struct http_easy *)ctx)->exchange;
  struct str line = str_trim((struct str){bytes, n});
  (void)one;
  note_byte(x);
  if (x->ended_by_us)
    return 0;
  x->header_bytes += n;
  if (x->header_bytes > LIMIT_HTTP_HEADER_BYTES) {
    set_end(x, HTTP_END_TOO_LARGE, "the reply has more than %u bytes of headers",
            LIMIT_HTTP_HEADER_BYTES);
    return 0;
  }
  if (line.n > 9 && str_starts(line, "HTTP/")) { /* also after a 100 Continue */
    const char *space = memchr(line.p, ' ', line.n);
    x->end.status = space ? atoi(space + 1) : 0;
    x->end.http2 = line.p[5] == '2';
    return n;
  }
  const char *colon = memchr(line.p, ':', line.n);
  if (colon == NULL || x->end.status < 200)
    return n;
  struct str name = {line.p, (size_t)(colon - line.p)};
  struct str value = str_trim((struct str){colon + 1, line.n - name.n - 1});
  if (is_name(name, "content-encoding")) {
    /* One encoding is decoded; a stack of them, or one that needs much memory, is not. */
    if (x->encoded || !is_known_encoding(value)) {
      set_end(x, HTTP_END_PROTOCOL, "the reply's encoding \"%.40s\" is not decoded",
              value.n ? value.p : "");
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

static bool is_allowed(struct http_exchange *x, enum http_address kind) {
  if (kind == HTTP_ADDRESS_FORBIDDEN)
    set_end(x, HTTP_END_REFUSED,
            "the address is link-local or a metadata service: no request goes there");
  else if (x->plain && !x->allow_http && kind != HTTP_ADDRESS_LOOPBACK)
    set_end(x, HTTP_END_REFUSED,
            "plain http is for this machine only: use https, or allow_http: true in the user's "
            "configuration");
  else
    return true;
  return false;
}

static curl_socket_t on_open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to) {
  (void)purpose;
  if (!is_allowed(((struct http_easy *)ctx)->exchange, http_address_kind(&to->addr)))
    return CURL_SOCKET_BAD;
  return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* Of a connection that another request opened, too. */
static int on_before_request(void *ctx, char *to_ip, char *from_ip, int to_port, int from_port) {
  (void)from_ip;
  (void)to_port;
  (void)from_port;
  struct http_exchange *x = ((struct http_easy *)ctx)->exchange;
  if (!is_allowed(x, http_address_of_text(to_ip)))
    return CURL_PREREQFUNC_ABORT;
  x->connected = true;
  note_byte(x); /* from now on it may stall */
  arm_clock(x->http, deadline(x));
  return CURL_PREREQFUNC_OK;
}

/* --- libcurl on the loop --- */

static void drain(struct http *http);

static void on_poll(uv_poll_t *poll, int status, int events) {
  struct http_socket *s = poll->data;
  struct http *http = s->http; /* s may be closing after socket_action */
  int flags = status < 0 ? CURL_CSELECT_ERR : 0, running;
  if (events & UV_READABLE)
    flags |= CURL_CSELECT_IN;
  if (events & UV_WRITABLE)
    flags |= CURL_CSELECT_OUT;
  http->curl->multi_socket_action(http->multi, s->fd, flags, &running);
  drain(http);
}

static void on_curl_timer(uv_timer_t *timer) {
  struct http *http = timer->data;
  int running;
  http->curl->multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
  drain(http);
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

static void maybe_freed(struct http *http) {
  if (http->closing && http->handles == 0)
    free(http);
}

static void on_socket_closed(uv_handle_t *handle) {
  struct http_socket *s = handle->data;
  struct http *http = s->http;
  free(s);
  http->handles--;
  maybe_freed(http);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned) {
  struct http *http = ctx;
  struct http_socket *s = assigned;
  (void)easy;
  if (what == CURL_POLL_REMOVE) {
    if (s != NULL) {
      uv_poll_stop(&s->poll); /* now: the descriptor may be watched again in this same turn */
      uv_close((uv_handle_t *)&s->poll, on_socket_closed);
      http->socket_count--;
      http->curl->multi_assign(http->multi, fd, NULL);
    }
    return 0;
  }
  if (s == NULL) {
    s = xcalloc(1, sizeof *s);
    s->fd = fd;
    s->http = http;
    s->poll.data = s;
    if (uv_poll_init_socket(http->loop, &s->poll, fd) != 0) {
      free(s);
      return -1;
    }
    http->handles++;
    http->socket_count++;
    http->curl->multi_assign(http->multi, fd, s);
  }
  uv_poll_start(&s->poll,
                (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0),
                on_poll);
  return 0;
}

static bool load(struct http *http, struct err *err) {
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

/* --- exchanges --- */

/* What is the same for every request; a handle that comes back keeps it. */
static struct http_easy *new_easy(const struct curl_api *curl) {
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
  /* Decoded if it comes all the same; the header below asks for none. */
  curl->easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip, deflate, br");
  curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
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

static void activate(struct http_exchange *x) {
  struct http *http = x->http;
  const struct curl_api *curl = http->curl;
  x->slot = http->idle_count > 0 ? http->idle[--http->idle_count] : new_easy(curl);
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
  /* Behind TLS, wait for the handshake to learn whether one connection can be shared. Without, libcurl
   * would wait for the first reply, which may be long in coming. */
  curl->easy_setopt(easy, CURLOPT_PIPEWAIT, x->plain ? 0L : 1L);
  curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)x->connect_ms);
  set_state(x, EXCHANGE_STATE_ACTIVE);
  arm_clock(http, deadline(x));
  uv_ref((uv_handle_t *)&http->curl_timer);
  if (curl->multi_add_handle(http->multi, easy) != CURLM_OK)
    BUG("libcurl takes no request");
}

static void release_easy(struct http_exchange *x) {
  struct http *http = x->http;
  struct http_easy *slot = x->slot;
  if (slot == NULL)
    return;
  slot->exchange = NULL;
  x->slot = NULL;
  /* A handle with its own CA file is not for everybody. */
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
    activate(lane->waiting.first);
  if (http->in_callback && lane->waiting.first)
    uv_timer_start(&http->soon, on_soon, 0, 0);
}

/* Tells the end; the exchange is gone afterwards. */
static void finish(struct http_exchange *x) {
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

static void translate(struct http_exchange *x, CURLcode code) {
  const char *why = x->slot->detail[0] ? x->slot->detail : x->http->curl->easy_strerror(code);
  switch ((int)code) {
  case CURLE_OK:
    x->end.kind = HTTP_END_COMPLETE;
    x->ended_by_us = true;
    break;
  case CURLE_OPERATION_TIMEDOUT:
    set_end(x, HTTP_END_CONNECT_LIMIT, "no connection within %llu ms",
            (unsigned long long)x->connect_ms);
    break;
  case CURLE_PARTIAL_FILE:
  case CURLE_RECV_ERROR:
  case CURLE_SEND_ERROR:
  case CURLE_GOT_NOTHING:
  case CURLE_HTTP2:
  case CURLE_HTTP2_STREAM:
    set_end(x, HTTP_END_CUT, "the connection broke %s: %s",
            x->end.status ? "before the reply was whole" : "before a reply came", why);
    break;
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
    set_end(x, HTTP_END_TLS, "the certificate is not accepted: %s", why);
    break;
  case CURLE_UNSUPPORTED_PROTOCOL: /* also what speaks no HTTP at all */
    if (x->connected)
      set_end(x, HTTP_END_PROTOCOL, "the reply cannot be read: %s", why);
    else
      set_end(x, HTTP_END_REFUSED, "the URL cannot be used: %s", why);
    break;
  case CURLE_URL_MALFORMAT:
    set_end(x, HTTP_END_REFUSED, "the URL cannot be used: %s", why);
    break;
  case CURLE_BAD_CONTENT_ENCODING:
  case CURLE_WEIRD_SERVER_REPLY:
  case CURLE_WRITE_ERROR:
    set_end(x, HTTP_END_PROTOCOL, "the reply cannot be read: %s", why);
    break;
  default:
    set_end(x, x->end.status ? HTTP_END_CUT : HTTP_END_NETWORK, "%s", why);
  }
}

static void drain(struct http *http) {
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
        set_end(x, HTTP_END_STOPPED, "not read further");
      http->in_callback = false;
    }
    if (!x->ended_by_us)
      translate(x, code);
    finish(x);
  }
}

/* Ends it from our side, outside of libcurl's callbacks. */
static void abandon(struct http_exchange *x) {
  if (x->state == EXCHANGE_STATE_ACTIVE)
    x->http->curl->multi_remove_handle(x->http->multi, x->slot->easy);
  end_soon(x);
}

/* What could not be done from within a callback of libcurl, then the ends that wait. */
static void on_soon(uv_timer_t *timer) {
  struct http *http = timer->data;
  for (struct http_exchange *x = http->active.first, *next; x; x = next) {
    next = x->next;
    if (x->ended_by_us)
      abandon(x);
  }
  for (struct http_lane *lane = http->lanes; lane; lane = lane->next)
    next_of_lane(http, lane);
  struct http_exchange *last = http->ending.last;
  for (bool more = last != NULL; more;) { /* what is added meanwhile waits for the next turn */
    struct http_exchange *x = http->ending.first;
    more = x != last;
    finish(x);
  }
  if (http->ending.first)
    uv_timer_start(&http->soon, on_soon, 0, 0);
}

static void check_limits(struct http_exchange *x, uint64_t now) {
  if (x->total_at != 0 && now >= x->total_at)
    set_end(x, HTTP_END_TOTAL_LIMIT, "not finished within its time limit");
  else if (x->state == EXCHANGE_STATE_ACTIVE && x->stall_at != 0 && now >= x->stall_at)
    set_end(x, HTTP_END_STALL_LIMIT, "no byte for %llu ms", (unsigned long long)x->stall_ms);
  else
    return;
  abandon(x);
}

static uint64_t check_list(struct exchange_list *list, uint64_t now, uint64_t next_at) {
  for (struct http_exchange *x = list->first, *next; x; x = next) {
    next = x->next;
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
  x->plain = strncasecmp(request->url, "http:", 5) == 0;
  x->connect_ms = request->connect_ms ? request->connect_ms : LIMIT_HTTP_CONNECT_MS;
  x->stall_ms = request->stall_ms;
  x->total_at = request->total_ms ? now + request->total_ms : 0;
  x->max_bytes = request->max_bytes;
  x->state = EXCHANGE_STATE_WAITING;
  list_add(&x->lane->waiting, x);
  http->open_count++;
  if (!load(http, &err)) {
    set_end(x, HTTP_END_REFUSED, "%.200s", err.text);
    end_soon(x);
    return x;
  }
  for (const char *const *h = request->headers; h && *h; h++)
    x->headers = http->curl->slist_append(x->headers, *h);
  x->headers = http->curl->slist_append(x->headers, "Accept-Encoding: identity");
  if (x->post) /* no wait for a 100 Continue */
    x->headers = http->curl->slist_append(x->headers, "Expect:");
  arm_clock(http, x->total_at);
  next_of_lane(http, x->lane);
  return x;
}

void http_cancel(struct http_exchange *x) {
  set_end(x, HTTP_END_CANCELLED, "cancelled");
  if (x->http->in_callback && x->state == EXCHANGE_STATE_ACTIVE)
    uv_timer_start(&x->http->soon, on_soon, 0, 0);
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

static void on_timer_closed(uv_handle_t *handle) {
  struct http *http = handle->data;
  http->handles--;
  maybe_freed(http);
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
  uv_close((uv_handle_t *)&http->curl_timer, on_timer_closed);
  uv_close((uv_handle_t *)&http->clock, on_timer_closed);
  uv_close((uv_handle_t *)&http->soon, on_timer_closed);
}

size_t http_open_count(const struct http *http) {
  return http->open_count;
}

size_t http_socket_count(const struct http *http) {
  return http->socket_count;
}

struct http_lane *http_lane(struct http *http, const char *name, unsigned max) {
  struct http_lane *lane = http->lanes;
  while (lane != NULL && strcmp(lane->name, name) != 0)
    lane = lane->next;
  if (lane == NULL) {
    lane = xcalloc(1, sizeof *lane);
    lane->name = xstrdup(name);
    lane->next = http->lanes;
    http->lanes = lane;
  }
  lane->max = max > 0 ? max : 1;
  return lane;
}
