/* http.h - HTTP requests on the loop: libcurl's multi interface, its sockets and timer watched by
 * libuv.
 *
 *   http = http_new(loop)                      cheap: libcurl is loaded by the first request
 *   lane = http_lane(http, "name", 4)        at most that many of a lane's requests at once
 *   x = http_start(http, &request, &sink)      never calls back before it has returned
 *   http_cancel(x)                             any time until done
 *   http_free(http)                            no request open; then run the loop once more
 *
 * What a request may do is narrow: http and https only; http to loopback only, unless allow_http;
 * never to link-local or metadata addresses (the resolved address of each connection counts);
 * certificates are always verified; there are no redirects, proxies, cookies or netrc. An
 * unrequested compressed body (gzip, deflate, br) is decoded within the same bound of bytes.
 * Connections are kept and shared, unless `alone`; HTTP/2 is spoken where a TLS server offers it.
 *
 * Loop thread only. All times are milliseconds. */
#ifndef SEGUE_HTTP_HTTP_H
#define SEGUE_HTTP_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdint.h>
#include <uv.h>

struct http;
struct http_lane;
struct http_exchange; /* a request and its reply */

/* Returns the version of libcurl, such as "7.88.1", and loads it first; NULL if it cannot be
 * loaded. Not to be freed. */
const char *http_library(void);

struct http *http_new(uv_loop_t *loop);
void http_free(struct http *http); /* NULL is fine */

/* Returns the lane of that name, made if it is new. Requests beyond `max` (at least 1) wait in
 * order; the last number given counts. Lanes live as long as the transport. */
struct http_lane *http_lane(struct http *http, const char *name, unsigned max);

struct http_request {
  struct http_lane *lane;
  const char *url;
  bool post;                  /* else GET */
  const char *const *headers; /* "Name: value", NULL-ended */
  struct str body;            /* borrowed until done */
  const char *ca_file;        /* a PEM file to use instead of the system's authorities; or NULL */
  bool allow_http;            /* plain http also beyond loopback */
  bool alone;                 /* on a new connection, closed afterwards */
  uint64_t connect_ms;        /* name, connection and TLS */
  uint64_t stall_ms;          /* without a byte, from the moment it was sent off; 0: no limit */
  uint64_t total_ms;          /* from http_start on, waiting in the lane included; 0: no limit */
  size_t max_bytes;           /* of the reply's body, decoded */
};

enum http_end_kind {
  HTTP_END_COMPLETE,  /* the reply is whole; its status may be anything */
  HTTP_END_STOPPED,   /* `body` or `head` wanted no more */
  HTTP_END_CANCELLED, /* http_cancel */
  HTTP_END_NETWORK,   /* no connection: name, address, handshake */
  HTTP_END_CUT,       /* the connection broke before the reply was whole */
  HTTP_END_CONNECT_LIMIT,
  HTTP_END_STALL_LIMIT,
  HTTP_END_TOTAL_LIMIT,
  HTTP_END_TOO_LARGE, /* over max_bytes, or LIMIT_HTTP_HEADER_BYTES of headers */
  HTTP_END_REFUSED,   /* by the rules above: address, scheme, URL */
  HTTP_END_TLS,       /* the certificate is not trusted, or the CA file is unusable */
  HTTP_END_PROTOCOL   /* not HTTP, or an encoding that is not decoded */
};

struct http_end {
  enum http_end_kind kind;
  int status;        /* 0: no reply began */
  uint64_t bytes;    /* of the body, decoded */
  char message[256]; /* one sentence for people, unless complete */
};

/* All are called from the loop: header for each of the reply's headers (the name as sent), head
 * once before the first byte of the body, or before done. False from body or head ends the
 * exchange. done is the last: the exchange is gone when it returns. Starting and cancelling is
 * allowed in done only; cancelling this exchange also in the others. */
struct http_sink {
  void (*header)(void *ctx, struct str name, struct str value); /* or NULL */
  bool (*head)(void *ctx, int status);                          /* or NULL */
  bool (*body)(void *ctx, struct str bytes);
  void (*done)(void *ctx, const struct http_end *end);
  void *ctx;
};

/* Never returns NULL: what is wrong with a request comes by done. */
struct http_exchange *http_start(struct http *http, const struct http_request *request,
                                 const struct http_sink *sink);
void http_cancel(struct http_exchange *exchange);
/* Carries one request out on a loop of its own; `lane` is not looked at. Its body goes to `out`.
 * False: there is no whole reply. */
bool http_now(const struct http_request *request, struct buf *out, int *status,
              struct err *err) MUST_CHECK;
/* Allows at most stall_ms without a byte from now on: everything that matters has come. */
void http_hasten(struct http_exchange *exchange, uint64_t stall_ms);

#endif
