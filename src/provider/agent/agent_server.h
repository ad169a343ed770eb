/* agent_server.h - is the client's side of an agent that is an HTTP server on this machine: its
 * password, requests, its stream of events. Their meaning is the driver's business.
 *
 *   server = agent_server_new(http, loop, password, &sink)    nothing is sent yet
 *   agent_server_at(server, port)                       127.0.0.1, as soon as it is known
 *   agent_server_request(server, &request) ...          any number at once
 *   agent_server_wake(server, ms)                       sink.woke then
 *   agent_server_close(server, grace_ms, on_closed, ctx)     once; the server is gone in on_closed
 *
 * The sink is told from the loop only, never from within these functions, and never from within one
 * of libcurl's: it may ask for more at any time. Requests carry the password (Basic, user
 * `opencode`) and go to loopback without any proxy; connections are not kept, since the program
 * ends with its call. */
#ifndef SEGUE_PROVIDER_AGENT_AGENT_SERVER_H
#define SEGUE_PROVIDER_AGENT_AGENT_SERVER_H

#include "http/http.h"
#include "provider/agent/driver.h"

struct agent_server;

struct agent_server_sink {
  void (*reply)(void *ctx, const struct driver_reply *reply);
  void (*event)(void *ctx, struct str data);
  void (*woke)(void *ctx);
  void *ctx;
};

/* Makes a new password from the kernel's random bytes, in hexadecimal. Wipe and free it. */
char *agent_server_password(void);

struct agent_server *agent_server_new(struct http *http, uv_loop_t *loop, const char *password,
                                      const struct agent_server_sink *sink);
void agent_server_at(struct agent_server *server, unsigned port);
void agent_server_request(struct agent_server *server, const struct driver_request *request);
void agent_server_wake(struct agent_server *server, uint64_t ms); /* 0: cancels it */
/* Sends no more requests, since the program is gone. Replies that are under way and complete within
 * grace_ms are still passed on; then on_closed comes from the loop. */
void agent_server_close(struct agent_server *server, uint64_t grace_ms,
                        void (*on_closed)(void *ctx), void *ctx);

#endif
