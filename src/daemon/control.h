/* control.h - the control API: schemas/api.json as routes over the sessions.
 *
 *   control_init(&api, &sessions); then api.http = server_new(..., control_routes, &api, ...)
 *   control_changed(&api, entry)         the sessions' `changed`
 *
 * The table of routes is what requests are dispatched by, what `segue serve --help` prints, and
 * what the test holds against schemas/api.json. */
#ifndef SEGUE_DAEMON_CONTROL_H
#define SEGUE_DAEMON_CONTROL_H

#include "base/buf.h"
#include "base/list.h"
#include "daemon/events.h"
#include "daemon/intake.h"
#include "daemon/metrics.h"
#include "daemon/provider_status.h"
#include "daemon/read_job.h"
#include "daemon/sessions.h"
#include "store/store.h"
#include "web/pages.h"

struct output_tail_said {
  struct buf text;
  uint64_t end; /* bytes so far */
};

struct output_tail {
  struct list_node in_tails;
  char id[STORE_ID_BYTES];
  long turn, call;
  struct output_tail_said text, thinking;
};

struct output_tails {
  struct list all; /* the last to speak comes first */
  size_t bytes;
};

struct waiter;
struct window;
struct control {
  struct sessions *sessions;
  struct server *http;
  struct intake intake;
  struct read_jobs readings;
  struct event_stream news;      /* changes of all sessions */
  struct output_tails tails;     /* what running calls said last */
  struct view_cache *view_cache; /* tracks of the sessions that are looked at */
  struct metrics metrics;
  struct client_versions versions; /* of the programs of agents */
  const char *http_origin;         /* of window.h */
  bool http_any_peer;
  struct window *window; /* or NULL: no port is open */
  struct list waiters;   /* struct waiter: requests that are answered when their session gets on */
  bool draining;         /* nothing is submitted any more */
  char started[32];
};

extern const struct server_route control_routes[];

void control_init(struct control *api, struct sessions *sessions);
void control_changed(void *api, struct daemon_entry *e);
/* address: "127.0.0.1:PORT"; NULL: any port, and the window closes when nobody looks for long. */
bool control_open_window(struct control *api, const char *address, struct err *err) MUST_CHECK;
/* Gets ready for the daemon's end: nothing is submitted any more, and nothing is begun for those
 * who look. */
void control_drain(struct control *api);
void control_close(struct control *api); /* before the loop ends */
/* Is no request being read that would still be answered? */
bool control_idle(const struct control *api);
void control_deinit(struct control *api); /* it is idle */

#endif
