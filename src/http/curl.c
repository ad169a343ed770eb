/* Connects libcurl to the loop: its callbacks, its sockets and its timer. */
#include "base/fault.h"
#include "base/log.h"
#include "http/address.h"
#include "http/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

static bool is_known_encoding(struct str value) {
  return str_eq_c(value, "gzip") || str_eq_c(value, "x-gzip") || str_eq_c(value, "deflate") ||
         str_eq_c(value, "br") || str_eq_c(value, "identity") || value.n == 0;
}

static bool http_curl_is_name(struct str name, const char *lower) {
  return str_eq_fold(name, lower);
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
    x->end.http2 = line.p[5] == '2';
    return n;
  }
  const char *colon = memchr(line.p, ':', line.n);
  if (colon == NULL || x->end.status < 200)
    return n;
  struct str name = {line.p, (size_t)(colon - line.p)};
  struct str value = str_trim((struct str){colon + 1, line.n - name.n - 1});
  if (http_curl_is_name(name, "content-encoding")) {
    /* One encoding is decoded; a stack of them, or one that needs much memory, is not. */
    if (x->encoded || !is_known_encoding(value)) {
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

/* Ends an exchange whose socket cannot be watched. libcurl is never told: 7.88 crashes after a
 * callback that failed, and it takes no request until all that it has are over. */
static void cannot_watch(const struct http *http, CURL *easy) {
  struct http_easy *slot = NULL;
  http->curl->easy_getinfo(easy, CURLINFO_PRIVATE, &slot);
  if (slot != NULL && slot->exchange != NULL)
    exchange_fail_soon(slot->exchange, "the system allows no more sockets to be watched");
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
      cannot_watch(http, easy);
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

bool http_curl_load(struct http *http, struct err *err) {
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
struct http_easy *http_curl_easy(const struct curl_api *curl) {
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

void http_curl_end(struct http_exchange *x, CURLcode code) {
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
