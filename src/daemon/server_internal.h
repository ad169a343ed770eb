/* server_internal.h - shared by the parts of the server.
 *
 * server.c accepts connections, drives libmicrohttpd and keeps the time; server_request.c follows
 * one request from its first byte to the last byte of its answer. Bytes that make no request are
 * refused by the library itself, with its own page: plain, but seen only by programs of the same
 * user. */
#ifndef SEGUE_DAEMON_SERVER_INTERNAL_H
#define SEGUE_DAEMON_SERVER_INTERNAL_H

#include "base/list.h"
#include "daemon/server.h"

#include "daemon/mhd_load.h"

enum { SERVER_PARTS = 2, SERVER_HEADER_BYTES = 64 };

struct connection { /* one that was accepted */
  struct list_node in_server;
  struct MHD_Connection *mhd;
  struct server_request *request; /* being answered; NULL: we wait for the client */
  uint64_t since;                 /* uv_now, of the last answer */
  long process;                   /* of the client; 0: not known */
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

/* Makes the server run again soon. From anywhere on the loop, even callbacks of libmicrohttpd. */
void server_want_run(struct server *h);
/* Tells the keeper of a suspended request that its client has hung up; there is no answer. */
void server_request_left(struct server_request *r);

/* Callbacks of libmicrohttpd. */
enum MHD_Result server_on_request(void *ctx, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *n, void **slot);
void server_on_completed(void *ctx, struct MHD_Connection *mhd, void **slot,
                         enum MHD_RequestTerminationCode why);

#endif
