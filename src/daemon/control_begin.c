/* Begins sessions for clients (submit, fork, judge, ask), and checks workflows. */
#include "daemon/control_internal.h"

#include "daemon/view.h"

bool control_refuse_draining(const struct control *api, struct server_request *r) {
  if (!api->draining)
    return false;
  server_set_header(r, "Retry-After", "5");
  server_problem(r, 503, NULL, "the daemon is stopping: it takes no more sessions");
  return true;
}

void control_refuse(const struct intake_result *result) {
  const struct err *err = &result->err;
  json_t *list = result->errors.count > 0 ? launch_errors_json(&result->errors) : NULL;
  json_t *members = list ? json_pack("{so}", "errors", list) : NULL;
  if (err->line > 0)
    server_problem(result->request, result->status, members, "%s:%d:%d: %s", err->file, err->line,
                   err->column, err->text);
  else
    server_problem(result->request, result->status, members, "%s", err->text);
}

/* The first record shows that a session is kept; a question's client waits for its end. */
static const enum awaited awaited_by[] = {
    [ASKS_SESSION] = FIRST_RECORD, [ASKS_JUDGMENT] = JUDGMENT, [ASKS_VALUE] = VALUE};

/* If another session with its key is running, answers with that one. */
static bool skip_session(struct control *api, struct server_request *r, const struct launch *l) {
  const char *key = json_string_value(json_object_get(l->config, "unique"));
  const struct daemon_entry *other = l->skips ? sessions_with_key(api->sessions, key) : NULL;
  if (other != NULL && other->brief.seq > 0)
    control_reply_session(api, r, 200, other->id);
  else if (other != NULL)
    control_wait_for(api, r, other->id, SKIPPED, 0);
  return other != NULL;
}

static void control_on_session(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  struct server_request *r = result->request;
  struct err err = {0};
  if (!result->ok) {
    control_refuse(result);
    return;
  }
  if (control_refuse_draining(api, r) || /* it began meanwhile */
      skip_session(api, r, &result->launch))
    return;
  enum launch_asks asks = result->launch.asks;
  const struct daemon_entry *e = sessions_submit(api->sessions, &result->launch, &err);
  if (e != NULL) {
    control_wait_for(api, r, e->id, awaited_by[asks], 0);
  } else {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, err.code == ERR_FULL ? 507 : 503, NULL, "%s", err.text);
  }
}

static void control_on_fork(void *ctx, struct intake_result *result) {
  struct err err = {0};
  if (result->ok && !launch_find_scenario(&result->launch, &err))
    server_problem(result->request, 422, NULL, "%s", err.text);
  else
    control_on_session(ctx, result);
}

static void act_fork(struct about *a, struct server_request *r, struct daemon_entry *e) {
  struct store_ref log;
  entry_ref(e, &log);
  intake_take_about(&a->api->intake, r, &log, launch_parse_fork, control_on_fork);
  about_free(a);
}

void control_fork(void *ctx, struct server_request *r) {
  if (!control_refuse_draining(ctx, r))
    about_take(about_new(ctx, act_fork), r);
}

static void control_on_looked(void *ctx, struct intake_result *result) {
  (void)ctx;
  if (result->ok)
    server_reply_json(result->request, 200, json_incref(result->launch.answer));
  else
    control_refuse(result);
}

void control_judge(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  if (!control_refuse_draining(api, r))
    intake_take(&api->intake, r, launch_parse_judge, control_on_session);
}

void control_ask(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  if (!control_refuse_draining(api, r))
    intake_take(&api->intake, r, launch_parse_ask, control_on_session);
}

void control_lint(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  intake_take(&api->intake, r, launch_parse_lint, control_on_looked);
}

void control_plan(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  intake_take(&api->intake, r, launch_parse_plan, control_on_looked);
}

void control_submit(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  if (!control_refuse_draining(api, r))
    intake_take(&api->intake, r, launch_parse, control_on_session);
}
