/* Does what clients ask of an existing session: cancel, resume, answer. */
#include "daemon/control_internal.h"

#include "base/buf.h"
#include "base/log.h"
#include "daemon/view.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- which session --- */

struct about *about_new(struct control *api, about_act act) {
  struct about *a = xcalloc(1, sizeof *a);
  a->api = api;
  a->act = act;
  return a;
}

void about_free(struct about *a) {
  entry_ask_deinit(&a->ask);
  snapshot_deinit(&a->snapshot);
  free(a);
}

/* Memory does not know enough: it is another's, or is about to be let go of. */
static bool about_asks_store(const struct about *a, const char *word) {
  const struct sessions *ss = a->api->sessions;
  const struct daemon_entry *e = sessions_find(ss, word);
  if (!ss->shared || (e != NULL && e->brief.seq == 0))
    return false;
  return e == NULL || !view_is_in_memory(ss, word) || (a->settles && brief_is_stopped(&e->brief));
}

static void about_taken(void *what, struct server_request *r) {
  struct about *a = what;
  struct daemon_entry *e = sessions_update(a->api->sessions, &a->snapshot);
  if (e->brief.seq > 0) {
    a->act(a, r, e);
    return;
  }
  server_problem(r, 404, NULL, "there is no session %s", e->id);
  about_free(a);
}

static void about_work(void *what, struct reading_answer *answer) {
  struct about *a = what;
  const struct store *store = a->api->sessions->env->store;
  if (!snapshot_take(&a->snapshot, store, a->word, a->settles, &answer->err))
    answer->status = answer->err.code == ERR_NOT_FOUND ? 404 : 503;
  answer->hand_on = about_taken;
}

static void about_drop(void *what) {
  about_free(what);
}

void about_take(struct about *a, struct server_request *r) {
  struct control *api = a->api;
  const char *word = server_part(r);
  if (about_asks_store(a, word)) {
    (void)snprintf(a->word, sizeof a->word, "%s", word);
    if (control_store_answers(api, r))
      reading_take(&api->readings, r, about_work, about_drop, a);
    else
      about_free(a);
    return;
  }
  struct daemon_entry *e =
      control_find(api, r, a->snapshot.id) ? control_entry(api, r, a->snapshot.id) : NULL;
  if (e != NULL)
    a->act(a, r, e);
  else
    about_free(a);
}

/* --- cancelling, resuming --- */

static void control_cancel_one(struct control *api, struct server_request *r,
                               struct daemon_entry *e) {
  const char *id = e->id;
  struct err err = {0};
  struct view v;
  if (view_of(&v, api->sessions, id, &err)) {
    bool done = strcmp(v.status, "cancelled") == 0;
    bool ended = brief_is_over(v.brief);
    if (ended && !done)
      server_problem(r, 409, NULL, "it has ended already: %s", v.status);
    view_deinit(&v);
    if (done)
      control_reply_session(api, r, 200, id);
    if (ended)
      return;
  }
  e->cancelled_by = server_browser(r);
  if (!sessions_cancel(api->sessions, e, &err)) {
    if (err.code == ERR_LOCKED)
      server_problem(r, 409, NULL,
                     "another program is running it, and only that one can cancel it");
    else
      server_problem(r, err.code == ERR_INVALID ? 409 : 500, NULL, "%s", err.text);
  } else if (e->session != NULL && session_paused(e->session)) {
    control_reply_broken(r, e, CANCEL);
  } else {
    control_wait_for(api, r, id, CANCEL, 0);
  }
}

static void act_cancel(struct about *a, struct server_request *r, struct daemon_entry *e) {
  control_cancel_one(a->api, r, e);
  about_free(a);
}

void control_cancel(void *ctx, struct server_request *r) {
  about_take(about_new(ctx, act_cancel), r);
}

static void refuse_resume(struct server_request *r, const struct err *err) {
  bool conflict = err->code == ERR_LOCKED || err->code == ERR_INVALID;
  unsigned status = conflict ? 409 : 500;
  if (err->code == ERR_LIMIT)
    status = 503;
  if (err->code == ERR_USAGE)
    status = 422;
  server_problem(r, status, NULL, "%s", err->text);
}

static void control_on_ask_gone(void *ctx) {
  struct about *a = ctx;
  a->request = NULL;
}

static void control_on_asked(struct entry_ask *ask, struct daemon_entry *e, const struct err *err) {
  struct about *a = (struct about *)((char *)ask - offsetof(struct about, ask));
  struct server_request *r = a->request;
  if (r != NULL && err != NULL)
    refuse_resume(r, err);
  else if (r != NULL && ask->answers)
    control_wait_for(a->api, r, e->id, ANSWER, ask->question);
  else if (r != NULL && e->state == ENTRY_WRITING)
    control_wait_for(a->api, r, e->id, RESUME, 0);
  else if (r != NULL)
    control_reply_session(a->api, r, 202, e->id);
  about_free(a);
}

static void about_ask(struct about *a, struct server_request *r) {
  a->ask.done = control_on_asked;
  a->request = r;
  server_keep(r, control_on_ask_gone, a);
}

static void act_resume(struct about *a, struct server_request *r, struct daemon_entry *e) {
  if (e->state != ENTRY_OVER && !entry_is_elsewhere(e)) {
    server_problem(r, 409, NULL, "it is %s: there is nothing to resume", entry_status(e));
    about_free(a);
    return;
  }
  about_ask(a, r);
  sessions_resume(a->api->sessions, e, &a->ask);
}

/* Takes over the steer. */
static void resume_with(struct control *api, struct server_request *r, struct steer *st) {
  struct about *a = about_new(api, act_resume);
  a->settles = true;
  a->ask.steer = *st;
  a->ask.steer.browser = server_browser(r);
  *st = (struct steer){0};
  about_take(a, r);
}

static void control_on_steer(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  if (!result->ok)
    control_refuse(result);
  else if (!control_refuse_draining(api, result->request))
    resume_with(api, result->request, &result->launch.steer);
}

void control_resume(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct steer nothing = {0};
  if (control_refuse_draining(api, r))
    return;
  if (server_body(r).n > 0)
    intake_take(&api->intake, r, launch_parse_steer, control_on_steer);
  else
    resume_with(api, r, &nothing);
}

/* --- people --- */

static void act_answer(struct about *a, struct server_request *r, struct daemon_entry *e) {
  about_ask(a, r);
  sessions_answer(a->api->sessions, e, &a->ask);
}

/* Takes over the answer. */
static void answer_with(struct control *api, struct server_request *r, struct said *said) {
  struct about *a = about_new(api, act_answer);
  a->settles = true;
  a->ask.answers = true;
  a->ask.said = *said;
  steer_set_browser(a->ask.said.by, server_browser(r));
  *said = (struct said){0};
  about_take(a, r);
}

static void control_on_answer(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  if (!result->ok)
    control_refuse(result);
  else if (!control_refuse_draining(api, result->request))
    answer_with(api, result->request, &result->launch.said);
}

static void take_answer_body(struct control *api, struct server_request *r, intake_parse parse,
                             enum answer_says says) {
  struct said said = {0};
  struct err err = {0};
  if (control_refuse_draining(api, r))
    return;
  if (server_body(r).n > 0) {
    intake_take(&api->intake, r, parse, control_on_answer);
    return;
  }
  if (said_parse(&said, NULL, says, &err))
    answer_with(api, r, &said);
  else
    server_problem(r, 400, NULL, "%s", err.text);
  said_deinit(&said);
}

void control_take_answer(void *ctx, struct server_request *r) {
  take_answer_body(ctx, r, launch_parse_answer, SAYS_TEXT);
}

void control_approve(void *ctx, struct server_request *r) {
  take_answer_body(ctx, r, launch_parse_approve, SAYS_APPROVE);
}

void control_reject(void *ctx, struct server_request *r) {
  take_answer_body(ctx, r, launch_parse_reject, SAYS_REJECT);
}

void control_act(void *ctx, struct server_request *r, const char *id, const char *what) {
  static const struct {
    const char *what;
    void (*handle)(void *ctx, struct server_request *r);
  } acts[] = {{"cancel", control_cancel},
              {"resume", control_resume},
              {"answer", control_take_answer},
              {"approve", control_approve},
              {"reject", control_reject}};
  (void)id; /* the request's path names it, as on the socket */
  for (size_t i = 0; i < ARRAY_LEN(acts); i++)
    if (strcmp(acts[i].what, what) == 0)
      acts[i].handle(ctx, r);
}
