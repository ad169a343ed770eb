/* internal.h - shared by http.c and curl.c: exchanges, their lanes, and the libcurl side. */
#ifndef SEGUE_HTTP_INTERNAL_H
#define SEGUE_HTTP_INTERNAL_H

#include "base/limits.h"
#include "base/list.h"
#include "http/curl_load.h"
#include "http/http.h"

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

/* --- http.c, for the callbacks of libcurl --- */

/* Sets why it ends, unless that is already known. */
void exchange_set_end(struct http_exchange *x, enum http_end_kind kind, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Ends it with HTTP_END_NETWORK, from the loop; may be called within callbacks of libcurl. */
void exchange_fail_soon(struct http_exchange *x, const char *why);
void exchange_note_byte(struct http_exchange *x); /* it does not stall */
void exchange_arm_clock(struct http_exchange *x); /* its next limit of time rings */
void http_drain(struct http *http);               /* tells the ends that libcurl knows */
void http_handle_closed(struct http *http);       /* one of `handles` */

/* --- http/curl.c --- */

/* Loads libcurl with the first request. */
bool http_curl_load(struct http *http, struct err *err) MUST_CHECK;
struct http_easy *http_curl_easy(const struct curl_api *curl);
/* Takes what libcurl says of an exchange that is over. */
void http_curl_end(struct http_exchange *x, CURLcode code);

#endif
