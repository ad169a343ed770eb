/* Makes launches for questions: a text to judge, a value to ask for, a workflow to check. */
#include "daemon/launch/internal.h"

#include "base/limits.h"
#include "format/json_write.h"
#include "host/key_leak.h"
#include "host/plan.h"

#include <string.h>

/* --- as a workflow of one movement --- */

/* Copies the members that are present. */
static void copy_members(json_t *to, const json_t *from, const char *const *names) {
  for (size_t i = 0; names[i] != NULL; i++) {
    json_t *value = json_object_get(from, names[i]);
    if (value != NULL)
      json_object_set(to, names[i], value);
  }
}

/* Writes out the movement (taken) as a workflow, to be checked like any file. */
static json_t *workflow_member(const struct launch_body *p, const char *name, json_t *movement) {
  static const char *const copied[] = {"language", "schema_as", NULL};
  struct buf text = {0};
  json_t *doc = json_pack("{ss s[o]}", "name", name, "movements", movement);
  copy_members(doc, p->body, copied);
  json_write(doc, &text);
  json_t *member = json_pack("{so ss}", "text", json_stringn(text.p, text.n), "name", name);
  json_decref(doc);
  buf_deinit(&text);
  return member;
}

/* Reads the session (taken) that represents the question. */
static bool question_session(const struct launch_body *p, json_t *session) {
  static const char *const copied[] = {"cwd", "scenario", "allow_secret", NULL};
  copy_members(session, p->body, copied);
  if (json_object_get(session, "cwd") == NULL)
    json_object_set_new(session, "cwd", json_string("/"));
  bool ok = launch_parse(p->l, session, p->err, p->errors);
  if (ok) /* a client waits for the answer */
    json_object_set_new(p->l->config, "wait_for_outage", json_false());
  json_decref(session);
  return ok;
}

/* --- judge --- */

static bool take_given(const struct launch_body *p) {
  const json_t *text = json_object_get(p->body, "text");
  if (!json_is_string(text))
    return err_set(p->err, ERR_INVALID, "text must be given: the text to judge");
  if (json_string_length(text) > LIMIT_TASK_BYTES)
    return err_set(p->err, ERR_LIMIT, "text is over the limit of %u bytes", LIMIT_TASK_BYTES);
  buf_append(&p->l->given, json_string_value(text), json_string_length(text));
  return true;
}

static json_t *judge_rules(const struct launch_body *p) {
  const json_t *given = json_object_get(p->body, "rules"), *condition;
  json_t *rules = json_array();
  size_t i;
  json_array_foreach(given, i, condition) {
    if (json_is_string(condition))
      json_array_append_new(rules,
                            json_pack("{sO ss}", "condition", condition, "next", "COMPLETE"));
  }
  if (i > 0 && json_array_size(rules) == json_array_size(given))
    return rules;
  json_decref(rules);
  err_set(p->err, ERR_INVALID, "rules must be a list of conditions, such as [\"approved\"]");
  return NULL;
}

/* The movement has a command that is never run: the text stands as its answer. */
static json_t *judge_movement(const struct launch_body *p, json_t *rules) {
  static const char *const members[] = {"provider", "model",      "options",
                                        "stages",   "max_reasks", NULL};
  const char *standard = p->l->generation->user.provider;
  const char *name = json_string_value(json_object_get(p->body, "name"));
  json_t *judge = json_object();
  copy_members(judge, p->body, members);
  if (json_object_get(judge, "provider") == NULL && standard != NULL)
    json_object_set_new(judge, "provider", json_string(standard));
  return json_pack("{ss s[s] so so}", "name", name ? name : "step", "command", "./given", "judge",
                   judge, "rules", rules);
}

/* Several labels need a model, unless only the text's own tag may decide. */
static bool somebody_judges(const struct launch_body *p) {
  const json_t *stages = json_object_get(p->body, "stages"), *item;
  size_t labels = 0, i;
  bool asks = stages == NULL;
  json_array_foreach(stages, i, item) {
    const char *stage = json_string_value(item);
    asks |= stage != NULL && (strcmp(stage, "structured_output") == 0 ||
                              strcmp(stage, "phase3_tag") == 0 || strcmp(stage, "ai_judge") == 0);
  }
  json_array_foreach(json_object_get(p->body, "rules"), i, item) {
    labels += !str_starts(str_from(json_string_value(item)), "when(");
  }
  return !asks || labels < 2 || json_object_get(p->body, "provider") != NULL ||
         p->l->generation->user.provider != NULL ||
         err_set(p->err, ERR_INVALID,
                 "nothing can judge: give \"provider\", or only the stage phase1_tag, which needs "
                 "none");
}

bool launch_parse_judge(struct launch *l, const json_t *body, struct err *err,
                        struct err_list *errors) {
  static const char *const members[] = {
      "text",     "rules",    "name",    "stages", "model",        "provider", "max_reasks",
      "language", "scenario", "options", "cwd",    "allow_secret", NULL};
  struct launch_body p = {.l = l, .body = body, .err = err, .errors = errors};
  if (!json_is_object(body))
    return err_set(err, ERR_INVALID, "the body must be an object with text and rules");
  if (!launch_members_known(&p, body, "", members) || !take_given(&p))
    return false;
  json_t *rules = judge_rules(&p);
  if (rules == NULL)
    return false;
  if (!somebody_judges(&p)) {
    json_decref(rules);
    return false;
  }
  if (!json_is_true(json_object_get(body, "allow_secret")) &&
      !keys_check(NULL, buf_view(&l->given), l->generation->user.hidden, "allow_secret", err)) {
    json_decref(rules);
    return false;
  }
  l->asks = ASKS_JUDGMENT;
  json_t *workflow = workflow_member(&p, "judge", judge_movement(&p, rules));
  if (!question_session(&p, json_pack("{so}", "workflow", workflow)))
    return false;
  json_object_del(l->config, "submitted"); /* its text is lost when this daemon ends */
  return true;
}

/* --- ask --- */

static json_t *ask_movement(const json_t *body) {
  static const char *const members[] = {
      "schema",       "on_failure", "invariants",     "example", "repair", "assert_format",
      "token_budget", "max_reasks", "time_budget_ms", "reask",   NULL};
  json_t *structured = json_pack("{ss}", "on_failure", "error");
  copy_members(structured, body, members);
  return json_pack("{ss ss sb so s{s[s]} s[{ss ss}]}", "name", "ask", "instruction", "{task}",
                   "bare_prompt", 1, "structured_output", structured, "judge", "stages",
                   "phase1_tag", "rules", "condition", "answered", "next", "COMPLETE");
}

bool launch_parse_ask(struct launch *l, const json_t *body, struct err *err,
                      struct err_list *errors) {
  static const char *const members[] = {
      "prompt",   "schema",   "invariants",    "max_reasks",     "on_failure",
      "example",  "repair",   "assert_format", "reask",          "schema_as",
      "language", "provider", "token_budget",  "time_budget_ms", "model",
      "options",  "scenario", "cwd",           "allow_secret",   NULL};
  static const char *const copied[] = {"provider", "model", "options", NULL};
  struct launch_body p = {.l = l, .body = body, .err = err, .errors = errors};
  if (!json_is_object(body))
    return err_set(err, ERR_INVALID, "the body must be an object with prompt and schema");
  if (!launch_members_known(&p, body, "", members))
    return false;
  if (!json_is_string(json_object_get(body, "prompt")))
    return err_set(err, ERR_INVALID, "prompt must be given, as a text");
  if (json_object_get(body, "schema") == NULL)
    return err_set(err, ERR_INVALID,
                   "schema must be given: an object, or the name of a built-in one");
  l->asks = ASKS_VALUE;
  json_t *session = json_pack("{so sO}", "workflow", workflow_member(&p, "ask", ask_movement(body)),
                              "task", json_object_get(body, "prompt"));
  copy_members(session, body, copied);
  return question_session(&p, session);
}

/* --- lint, plan --- */

json_t *launch_errors_json(const struct err_list *errors) {
  json_t *list = json_array();
  for (size_t i = 0; i < errors->count && i < LIMIT_API_ERROR_COUNT; i++) {
    const struct err *item = &errors->items[i];
    json_t *object = json_object();
    json_object_set_new(object, "message", json_text(str_from(item->text)));
    if (item->line > 0) {
      json_object_set_new(object, "file", json_text(str_from(item->file)));
      json_object_set_new(object, "line", json_integer(item->line));
      json_object_set_new(object, "column", json_integer(item->column));
    }
    json_array_append_new(list, object);
  }
  return list;
}

bool launch_parse_lint(struct launch *l, const json_t *body, struct err *err,
                       struct err_list *errors) {
  struct err_list warnings = {0};
  struct launch_body p = {
      .l = l, .body = body, .err = err, .errors = errors, .warnings = &warnings, .lints = true};
  l->asks = ASKS_NOTHING;
  bool ok = launch_read(&p), told = ok || errors->count > 0;
  size_t count = ok ? l->workflow->movement_count : 0;
  if (told)
    l->answer = json_pack("{sb so so so}", "ok", ok, "movements",
                          ok ? json_integer((json_int_t)count) : json_null(), "errors",
                          launch_errors_json(errors), "warnings", launch_errors_json(&warnings));
  workflow_marks_free(p.marks);
  err_list_deinit(&warnings);
  return told;
}

bool launch_parse_plan(struct launch *l, const json_t *body, struct err *err,
                       struct err_list *errors) {
  struct launch_body p = {.l = l, .body = body, .err = err, .errors = errors};
  l->asks = ASKS_NOTHING;
  bool ok = launch_read(&p);
  if (ok) {
    const struct preflight flight = launch_flight(&p);
    l->answer = plan_json(&flight, l->env->store);
  }
  workflow_marks_free(p.marks);
  return ok;
}
