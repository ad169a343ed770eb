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
#include "daemon/metrics.h"
#include "daemon/news.h"
#include "daemon/reading.h"
#include "daemon/sessions.h"
#include "daemon/tails.h"
#include "daemon/versions.h"

struct waiter;
struct window;
struct control {
  struct sessions *sessions;
  struct server *http;
  struct intake intake;
  struct readings readings;
  struct news news;    /* changes of all sessions */
  struct tails tails;  /* what running calls said last */
  struct shelf *shelf; /* tracks of the sessions that are looked at */
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
/* control_web.c: the window. address: "127.0.0.1:PORT"; NULL: any port, closed when nobody looks
 * for long. */
bool control_open_window(struct control *api, const char *address, struct err *err) MUST_CHECK;
void control_post_code(void *api, struct server_request *r);
/* Does what a page asks for: cancel, resume. */
void control_act(void *api, struct server_request *r, const char *id, const char *what);
/* control_counts.c: what is counted. record NULL: the session goes from memory. */
void control_get_view(void *api, struct server_request *r);
void control_get_turns(void *api, struct server_request *r);
void control_get_turn(void *api, struct server_request *r);
void control_get_call(void *api, struct server_request *r);
void control_get_text(void *api, struct server_request *r);
void control_get_records(void *api, struct server_request *r);
void control_get_found(void *api, struct server_request *r);
void control_get_compare(void *api, struct server_request *r);
void control_get_integrity(void *api, struct server_request *r);
void control_get_changes(void *api, struct server_request *r);
bool control_find(struct control *api, struct server_request *r, char id[STORE_ID_BYTES]);
void control_get_audit(void *api, struct server_request *r);
void control_get_metrics(void *api, struct server_request *r);
void control_on_said(void *api, const struct daemon_entry *e, long turn, long call, bool thinking,
                     struct str text);
void control_on_record(void *api, const struct daemon_entry *e, const struct record *record);
/* Gets ready for the daemon's end: nothing is submitted any more, and nothing is begun for those
 * who look. */
void control_drain(struct control *api);
void control_close(struct control *api); /* before the loop ends */
/* Is no request being read that would still be answered? */
bool control_idle(const struct control *api);
void control_deinit(struct control *api); /* it is idle */

#endif
