/* Holds requests until their session has come as far as they asked for. */
#include "daemon/control_internal.h"

#include "base/log.h"
#include "daemon/question.h"
#include "daemon/view.h"
#include "daemon/window/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct waiter {
  struct list_node in_control;
  struct control *api;
  struct server_request *request;
  char id[STORE_ID_BYTES];
  enum awaited what;
  uint64_t question; /* for ANSWER */
};

static void waiter_drop(struct waiter *w) {
  list_remove(&w->api->waiters, &w->in_control);
  free(w);
}

/* Nobody is waiting for the answer any more, so the question is dropped. */
static void control_on_gone(void *ctx) {
  struct waiter *w = ctx;
  struct sessions *ss = w->api->sessions;
  bool asks = w->what == JUDGMENT || w->what == VALUE;
  struct daemon_entry *e = asks && !server_closes(w->request) ? sessions_find(ss, w->id) : NULL;
  waiter_drop(w);
  if (e != NULL)
    sessions_leave(ss, e);
}

void control_wait_for(struct control *api, struct server_request *r, const char *id,
                      enum awaited what, uint64_t question) {
  struct waiter *w = xcalloc(1, sizeof *w);
  *w = (struct waiter){.api = api, .request = r, .what = what, .question = question};
  (void)snprintf(w->id, sizeof w->id, "%s", id);
  list_push_front(&api->waiters, &w->in_control);
  server_keep(r, control_on_gone, w);
}

void control_reply_broken(struct server_request *r, const struct daemon_entry *e,
                          enum awaited what) {
  const struct err *broken = e->session ? session_broken(e->session) : NULL;
  bool paused = e->session != NULL && session_paused(e->session) != NULL;
  bool full = paused || (broken != NULL && broken->code == ERR_FULL);
  const char *why = entry_message(e) ? entry_message(e) : "its log broke";
  if (what == CANCEL && (paused || e->state == ENTRY_BROKEN)) {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, full ? 507 : 503, NULL,
                   "the cancel has not been accepted yet: %s. This daemon keeps trying while it "
                   "runs, but forgets it when it ends: ask again to be sure",
                   why);
  } else if (what == CANCEL && e->sessions->shared) {
    server_problem(r, 504, NULL, "%s", why); /* its worker did not do it in time */
  } else if (what == FIRST_RECORD && broken != NULL && broken->code == ERR_LIMIT) {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, 503, NULL, "%s", why);
  } else {
    const char *what_not = what == RESUME ? "it was not resumed: " : "";
    if (what == ANSWER)
      what_not = "it was not answered: ";
    server_problem(r, full ? 507 : 500, NULL, "%s%s", what_not, why);
  }
}

/* Answers a waiter whose time has come. */
static void control_answer(struct control *api, struct server_request *r,
                           const struct daemon_entry *e, enum awaited what, uint64_t question) {
  char place[64];
  switch (what) {
  case ANSWER:
    if (brief_asks(&e->brief, question))
      break;
    control_reply_session(api, r, 202, e->id);
    return;
  case SKIPPED:
    if (e->brief.seq == 0)
      break;
    control_reply_session(api, r, 200, e->id);
    return;
  case FIRST_RECORD:
    if (e->brief.seq == 0)
      break;
    (void)snprintf(place, sizeof place, "/v1/sessions/%s", e->id);
    server_set_header(r, "Location", place);
    control_reply_session(api, r, 201, e->id);
    return;
  case RESUME:
    if (brief_is_stopped(&e->brief))
      break;
    control_reply_session(api, r, 202, e->id);
    return;
  case JUDGMENT:
  case VALUE:
    if (view_is_unfinished(&e->brief))
      break;
    question_take(&api->readings, r, e, what == JUDGMENT);
    return;
  case CANCEL:
    if (!brief_is_over(&e->brief))
      break;
    if (strcmp(e->brief.status, "cancelled") == 0)
      control_reply_session(api, r, 200, e->id);
    else
      server_problem(r, 409, NULL, "it has ended already: %s", e->brief.status);
    return;
  }
  control_reply_broken(r, e, what);
}

void control_changed(void *ctx, struct daemon_entry *e) {
  struct control *api = ctx;
  news_add(&api->news, e->id, entry_status(e), e->brief.seq);
  if (api->window != NULL)
    window_changed(api->window, e->id);
  bool paused = e->session != NULL && session_paused(e->session) != NULL;
  bool over = e->state == ENTRY_OVER || e->state == ENTRY_BROKEN || paused ||
              strcmp(e->brief.status, "running") != 0;
  LIST_EACH(struct waiter, w, in_control, &api->waiters) {
    struct server_request *r = w->request;
    enum awaited what = w->what;
    uint64_t question = w->question;
    bool open = what == ANSWER && brief_asks(&e->brief, question) && e->state != ENTRY_BROKEN &&
                e->state != ENTRY_OVER;
    if (strcmp(w->id, e->id) != 0 || (what >= CANCEL && !over) || open)
      continue;
    waiter_drop(w);
    control_answer(api, r, e, what, question);
  }
}
