/* http.h - HTTP/1.1 on the control socket: libmicrohttpd driven by the loop.
 *
 *   http_new(loop, &socket, routes, ctx, &err)
 *   routes[i].handle(ctx, r)       a whole request is there; answer it now, or keep r and later
 *   http_reply / http_reply_json / http_problem      once for each request
 *   http_stream(r, &ops, stream)   or an answer without an end
 *   http_free(h)                   open requests are cut off; then the loop runs once more
 *
 * A request that was kept stays valid until it is answered, or until `gone` is called for it
 * (http_keep): its client left, or the server ends. After that it must not be touched.
 * Nothing here blocks, and every size and time is bounded (limits.h). One thread. */
#ifndef SEGUE_DAEMON_HTTP_H
#define SEGUE_DAEMON_HTTP_H

#include "base/buf.h"
#include "daemon/socket.h"

#include <jansson.h>
#include <sys/types.h>
#include <uv.h>

struct http;
struct http_request;

struct http_route {
  const char *method;  /* NULL ends a table */
  const char *path;    /* literal parts and {name} parts: /v1/sessions/{id} */
  const char *summary; /* for --help */
  bool takes_body;     /* JSON */
  void (*handle)(void *ctx, struct http_request *r);
};

/* NULL: err says why. Routes, socket and ctx are borrowed for the server's life. max_connections: more
 * wait to be accepted. */
struct http *http_new(uv_loop_t *loop, const struct control_socket *socket,
                      const struct http_route *routes, void *ctx, unsigned max_connections,
                      struct err *err) MUST_CHECK;
void http_free(struct http *h); /* NULL is fine */
unsigned http_connections(const struct http *h);

const char *http_part(const struct http_request *r);                     /* what stood for {name} */
const char *http_query(const struct http_request *r, const char *name);  /* or NULL */
const char *http_header(const struct http_request *r, const char *name); /* or NULL */
struct str http_body(const struct http_request *r);

/* The request is answered later, from the loop. gone(ctx) when that is pointless now. */
void http_keep(struct http_request *r, void (*gone)(void *ctx), void *ctx);

void http_reply(struct http_request *r, unsigned status, const char *type, struct str bytes);
void http_reply_json(struct http_request *r, unsigned status, json_t *taken);
/* application/problem+json (RFC 9457). `members` (taken, may be NULL) stand beside its own. */
void http_problem(struct http_request *r, unsigned status, json_t *members, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Before the reply. */
void http_set_header(struct http_request *r, const char *name, const char *value);

/* An answer that goes on: `read` is asked for bytes while the client takes them. */
struct http_stream_ops {
  ssize_t (*read)(void *stream, char *out, size_t max); /* bytes; 0: none now; -1: that was all */
  void (*closed)(void *stream); /* exactly once; nothing is called after it */
};
void http_stream(struct http_request *r, const char *type, const struct http_stream_ops *ops,
                 void *stream);
/* There may be bytes again. Any time until `closed`. */
void http_wake(struct http_request *r);

#endif
