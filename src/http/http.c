/* Runs HTTP exchanges on the loop: their states, their lanes and their limits of time. */
#include "http/http.h"

#include "base/log.h"
#include "http/internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

void exchange_set_end(struct http_exchange *x, enum http_end_kind kind, const char *fmt, ...) {
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

void exchange_fail_soon(struct http_exchange *x, const char *why) {
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

void exchange_arm_clock(struct http_exchange *x) {
  arm_clock(x->http, deadline(x));
}

void exchange_note_byte(struct http_exchange *x) {
  x->stall_at = x->stall_ms ? uv_now(x->http->loop) + x->stall_ms : 0;
}

/* --- exchanges --- */

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

void http_drain(struct http *http) {
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

void http_handle_closed(struct http *http) {
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
