/* api.h - the control API: schemas/api.json as routes over the sessions.
 *
 *   api_init(&api, &sessions, max_sessions); http_new(..., api_routes, &api, ...); api.http = ...
 *   api_changed(&api, entry)         the sessions' `changed`
 *
 * The table of routes is what requests are dispatched by, what `segue serve --help` prints, and what
 * the test holds against schemas/api.json. */
#ifndef SEGUE_DAEMON_API_H
#define SEGUE_DAEMON_API_H

#include "daemon/sessions.h"

struct waiter;
struct api {
  struct sessions *sessions;
  struct http *http;
  struct waiter *waiters; /* requests that are answered when their session gets on */
  bool draining;          /* nothing is submitted any more */
  char started[32];
};

extern const struct http_route api_routes[];

void api_init(struct api *api, struct sessions *sessions);
void api_changed(void *api, struct entry *e);

#endif
