/* view.h - a session as the control API shows it: from memory while it is live, otherwise from its
 * log.
 *
 *   view_of(&v, sessions, id, &err); view_json(&v, sessions); view_deinit(&v) */
#ifndef SEGUE_DAEMON_VIEW_H
#define SEGUE_DAEMON_VIEW_H

#include "daemon/sessions.h"

struct view {
  const char *id;
  const struct brief *brief;
  const char *status, *message;
  size_t position;
  struct brief own; /* if it was read from the log */
};

/* False: there is no such session, or no longer. With a shared store, only memory is asked:
 * sessions_update first. */
bool view_of(struct view *v, const struct sessions *ss, const char *id, struct err *err);
/* True if it can be shown without its log. */
bool view_is_in_memory(const struct sessions *ss, const char *id);
json_t *view_json(const struct view *v, const struct sessions *ss); /* a new object */
void view_deinit(struct view *v);
/* True if it has neither ended nor stopped. */
bool view_is_unfinished(const struct brief *b);

#endif
