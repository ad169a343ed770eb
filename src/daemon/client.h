/* client.h - asks the daemon: one request on the control socket, one answer. Blocking; for the
 * command line. HTTP through libcurl. */
#ifndef SEGUE_DAEMON_CLIENT_H
#define SEGUE_DAEMON_CLIENT_H

#include "base/err.h"

#include <jansson.h>

struct client_reply {
  long status;   /* of HTTP */
  json_t *value; /* the answer; NULL when there was none */
};

/* Sends a request and waits for the answer. socket: --socket or NULL. body may be NULL. False: no
 * answer; ERR_NOT_FOUND if there is no daemon. A problem is an answer too: see client_problem. */
bool client_ask(const char *socket, const char *method, const char *path, const json_t *body,
                struct client_reply *reply, struct err *err) MUST_CHECK;
void client_reply_deinit(struct client_reply *reply);

/* True, with err set, when the answer says that the request was refused. */
bool client_problem(const struct client_reply *reply, struct err *err);

#endif
