/* server.h - HTTP/1.1 on the control socket: libmicrohttpd driven by the loop.
 *
 *   server_new(loop, &socket, routes, ctx, &err)
 *   routes[i].handle(ctx, r)       a whole request is there; answer it now, or keep r and later
 *   server_reply / server_reply_json / server_problem      once for each request
 *   server_stream(r, &ops, stream)   or an answer without an end
 *   server_free(h)                   open requests are cut off; then the loop runs once more
 *
 * A request that was kept stays valid until it is answered, or until `gone` is called for it
 * (server_keep): its client left, or the server ends. After that it must not be touched. Nothing
 * here blocks, and every size and time is bounded (limits.h). Single-threaded.
 *
 * --- the library ---
 *
 * Libmicrohttpd is loaded by the daemon instead of at every start: linked, it would cost every
 * start of the program a millisecond, as much as everything else, because it draws in gnutls and
 * eight more libraries. */
#ifndef SEGUE_DAEMON_SERVER_H
#define SEGUE_DAEMON_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include "daemon/socket.h"

#include <jansson.h>
#include <sys/types.h>
#include <uv.h>

struct server;
struct server_request;

enum { SERVER_PART_BYTES = 128 }; /* of a path */
enum server_takes { TAKES_NOTHING, TAKES_JSON, TAKES_JSON_OR_NOTHING };

struct server_route {
  const char *method;       /* NULL ends a table */
  const char *path;         /* literal parts and {name} parts: /v1/sessions/{id} */
  const char *summary;      /* for --help */
  enum server_takes takes;  /* for a body */
  const char *const *query; /* the arguments that it takes, up to NULL; or NULL for none */
  void (*handle)(void *ctx, struct server_request *r);
  int what; /* which of them, for the handler of several routes */
};

/* A way in besides the control socket, with rules of its own. */
struct server_door {
  int fd;                  /* listens; its owner closes it, after the server has ended */
  int (*accept)(int fd);   /* as socket_accept */
  size_t connection_bytes; /* memory of one: its request line and headers must fit */
  size_t short_bytes;      /* of one whose first request has at most short_head_bytes of them */
  size_t short_head_bytes;
  size_t header_bytes;        /* of a request: all its header fields, with their line ends */
  size_t body_bytes;          /* of a request */
  const char *const *headers; /* name, value, ..., NULL: of every answer */
  /* Called once a request's headers are there. False: it may not come in. Otherwise *path, the
   * request's, becomes the path that the routes know. */
  bool (*enter)(void *ctx, struct server_request *r, const char *method, const char **path);
  /* Answers what may not come in and what does not exist: both look the same. */
  void (*refuse)(void *ctx, struct server_request *r);
};
/* NULL: err says why. Routes, socket or door, and ctx are borrowed for the server's life.
 * max_connections: more wait to be accepted. door: NULL for the control socket; else the server
 * takes its descriptor over only if it begins. */
struct server *server_new(uv_loop_t *loop, const struct control_socket *socket,
                          const struct server_door *door, const struct server_route *routes,
                          void *ctx, unsigned max_connections, struct err *err) MUST_CHECK;
void server_free(struct server *h); /* NULL is fine */
unsigned server_connections(const struct server *h);

/* Handles a kept request again, with this for its first {name}; server_is_again is then true. */
void server_handle_again(struct server_request *r, const char *part);
bool server_is_again(const struct server_request *r);
const char *server_part(const struct server_request *r);  /* the path's value of {name} */
const char *server_part2(const struct server_request *r); /* and for the second one, or "" */
const char *server_query(const struct server_request *r, const char *name);  /* or NULL */
const char *server_header(const struct server_request *r, const char *name); /* or NULL */
struct str server_body(const struct server_request *r);
int server_what(const struct server_request *r); /* its route's */
/* The number of the window's browser that asks; 0: a program, on the socket. */
void server_set_browser(struct server_request *r, unsigned number);
unsigned server_browser(const struct server_request *r);
/* NULL unless a program that a session runs asks on the socket: then its call's private folder, ""
 * if that is not known. */
const char *server_program(const struct server_request *r);
struct buf server_take_body(struct server_request *r); /* leaves it without one */

/* The request will be answered later, from the loop; gone(ctx) is called if that has become
 * pointless. The keeper may hand it on to another keeper. */
void server_keep(struct server_request *r, void (*gone)(void *ctx), void *ctx);
/* Was `gone` called because the server ends? Otherwise the client has left. */
bool server_closes(const struct server_request *r);

void server_reply(struct server_request *r, unsigned status, const char *type, struct str bytes);
void server_reply_json(struct server_request *r, unsigned status, json_t *taken);
/* Answers with application/problem+json (RFC 9457). `members` (taken, may be NULL) are added to its
 * own. */
void server_problem(struct server_request *r, unsigned status, json_t *members, const char *fmt,
                    ...) PRINTF_LIKE(4, 5);
/* Adds a header to the reply that follows; at most two. value: up to SERVER_VALUE_BYTES. */
enum { SERVER_VALUE_BYTES = 256 };
void server_set_header(struct server_request *r, const char *name, const char *value);

/* An answer without an end: `read` is asked for bytes while the client takes them. */
struct server_stream_ops {
  ssize_t (*read)(void *stream, char *out, size_t max); /* bytes; 0: none now; -1: the end */
  void (*closed)(void *stream); /* exactly once, perhaps at once; nothing is called after it */
};
void server_stream(struct server_request *r, const char *type, const struct server_stream_ops *ops,
                   void *stream);
/* There may be bytes again. Any time until `closed`. */
void server_wake(struct server_request *r);

/* --- the library --- */

/* Loads it, once; it stays for the life of the program. False: err says what is missing. */
bool mhd_load(struct err *err) MUST_CHECK;

#endif
