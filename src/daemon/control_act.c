/* Does what clients ask of an existing session: cancel, resume, answer. */
#include "daemon/control_internal.h"

#include "base/buf.h"
#include "base/log.h"
#include "daemon/view.h"

#include <string.h>

/* --- cancelling, resuming --- */

void control_cancel(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  char id[STORE_ID_BYTES];
  struct err err = {0};
  struct daemon_entry *e = control_find(api, r, id) ? control_entry(api, r, id) : NULL;
  struct view v;
  if (e == NULL)
    return;
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
  if (!sessions_cancel(api->sessions, e, &err)) {
    if (err.code == ERR_LOCKED)
      server_problem(r, 409, NULL, "another program runs it, and only that one can cancel it");
    else
      server_problem(r, err.code == ERR_INVALID ? 409 : 500, NULL, "%s", err.text);
  } else if (e->session != NULL && session_paused(e->session)) {
    control_reply_broken(r, e, CANCEL);
  } else {
    control_wait_for(api, r, id, CANCEL, 0);
  }
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

/* Takes ownership of the steer. */
static void resume_with(struct control *api, struct server_request *r, struct steer *st) {
  char id[STORE_ID_BYTES];
  struct err err = {0};
  struct daemon_entry *e = control_find(api, r, id) ? control_entry(api, r, id) : NULL;
  if (e == NULL)
    return;
  if (e->state != ENTRY_OVER && !entry_is_elsewhere(e))
    server_problem(r, 409, NULL, "it is %s: there is nothing to resume", entry_status(e));
  else if (!sessions_resume(api->sessions, e, st, &err))
    refuse_resume(r, &err);
  else if (e->state == ENTRY_WRITING)
    control_wait_for(api, r, id, RESUME, 0);
  else
    control_reply_session(api, r, 202, id);
}

static void control_on_steer(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  struct steer *st = &result->launch.steer;
  if (!result->ok)
    control_refuse(result);
  else if (!control_refuse_draining(api, result->request))
    resume_with(api, result->request, st);
}

void control_resume(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct steer nothing = {0};
  if (control_refuse_draining(api, r))
    return;
  if (server_body(r).n > 0) {
    intake_take(&api->intake, r, launch_parse_steer, control_on_steer);
    return;
  }
  resume_with(api, r, &nothing);
  steer_deinit(&nothing);
}

/* --- people --- */

/* Takes ownership of the answer. */
static void answer_with(struct control *api, struct server_request *r, struct core_answer *answer) {
  char id[STORE_ID_BYTES];
  struct err err = {0};
  uint64_t question;
  struct daemon_entry *e = control_find(api, r, id) ? control_entry(api, r, id) : NULL;
  if (e == NULL)
    return;
  if (!sessions_answer(api->sessions, e, answer, &question, &err))
    refuse_resume(r, &err);
  else
    control_wait_for(api, r, id, ANSWER, question);
}

static void control_on_answer(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  if (!result->ok)
    control_refuse(result);
  else if (!control_refuse_draining(api, result->request))
    answer_with(api, result->request, &result->launch.said.core);
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
    answer_with(api, r, &said.core);
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
