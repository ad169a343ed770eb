/* control.h - the control API: schemas/api.json as routes over the sessions.
 *
 *   control_init(&api, &sessions); then api.http = server_new(..., control_routes, &api, ...)
 *   control_changed(&api, entry)         the sessions' `changed`
 *
 * The table of routes is what requests are dispatched by, what `segue serve --help` prints, and
 * what the test holds against schemas/api.json. */
#ifndef SEGUE_DAEMON_CONTROL_H
#define SEGUE_DAEMON_CONTROL_H

#include "base/list.h"
#include "daemon/intake.h"
#include "daemon/sessions.h"

struct waiter;
struct control {
  struct sessions *sessions;
  struct server *http;
  struct intake intake;
  struct list waiters; /* struct waiter: requests that are answered when their session gets on */
  bool draining;       /* nothing is submitted any more */
  char started[32];
};

extern const struct server_route control_routes[];

void control_init(struct control *api, struct sessions *sessions);
void control_changed(void *api, struct daemon_entry *e);
/* No request is being read that would still be answered. */
bool control_idle(const struct control *api);

#endif
