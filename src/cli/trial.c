/* Judges a case once. */
#include "cli/trial.h"

#include "base/limits.h"
#include "cli/json_io.h"
#include "format/json_object.h"
#include "host/solo.h"
#include "judge/chain.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- cases --- */

static bool trial_rules(struct trial_case *c, const json_t *rules, struct err *err) {
  size_t i;
  json_t *rule;
  c->rules = json_array();
  json_array_foreach(rules, i, rule) {
    json_t *condition = json_is_string(rule) ? rule : json_at(rule, "condition");
    if (!json_is_string(condition))
      return err_set(err, ERR_USAGE,
                     "\"rules\" must contain conditions: texts, or {\"condition\": text}");
    json_array_append(c->rules, condition);
  }
  return json_array_size(c->rules) > 0 ||
         err_set(err, ERR_USAGE, "\"rules\" must be a list of conditions");
}

bool trial_case_read(struct trial_case *c, struct str line, struct err *err) {
  *c = (struct trial_case){.line = json_io_parse("case", line, err)};
  if (c->line == NULL)
    return false;
  const json_t *report = json_at(c->line, "report"), *expected = json_at(c->line, "expected");
  const json_t *text = report != NULL ? report : json_at(c->line, "text");
  if (!json_is_string(text))
    return err_set(err, ERR_USAGE, "\"text\" must be a string");
  c->text = json_view(text);
  c->id = json_string_value(json_at(c->line, "id"));
  c->movement = json_string_value(json_at(c->line, "movement"));
  c->no_judgment = json_is_array(json_at(c->line, "errors")) && json_at(c->line, "rules") == NULL;
  if (c->no_judgment)
    return true;
  if (!trial_rules(c, json_at(c->line, "rules"), err))
    return false;
  c->expects = expected != NULL;
  c->expected = (long)json_integer_value(expected);
  bool fits = c->expected >= 0 && c->expected <= (long)json_array_size(c->rules);
  return !c->expects || json_is_null(expected) || (json_is_integer(expected) && fits) ||
         err_set(err, ERR_USAGE,
                 "\"expected\" must be a rule's number, or 0 or null if none holds");
}

void trial_case_deinit(struct trial_case *c) {
  json_decref(c->line);
  json_decref(c->rules);
  *c = (struct trial_case){0};
}

/* --- running --- */

struct trial {
  struct solo solo;
  struct trial_got *got;
};

static void trial_on_record(void *ctx, const struct record *record, struct str line) {
  struct trial_got *got = ((struct trial *)ctx)->got;
  (void)line;
  if (record->type == RECORD_CALL_END) { /* the first answer is the text that is judged */
    buf_clear(&got->reply);
    if (record_number(record, MEMBER_CALL) > 1)
      buf_str(&got->reply, record_text(record, MEMBER_TEXT));
  } else if (record->type == RECORD_JUDGMENT) {
    got->readable = chain_was_decided(record_tree(record, MEMBER_STAGES));
    got->rule = (long)record_number(record, MEMBER_RULE);
    (void)snprintf(got->method, sizeof got->method, "%s", record_text_c(record, MEMBER_METHOD));
    buf_str(&got->why, record_text(record, MEMBER_REASON));
  } else if (record->type == RECORD_SESSION_STOP && !got->readable) {
    buf_str(&got->why, record_text(record, MEMBER_MESSAGE));
  }
}

static void trial_on_trouble(void *ctx, const char *message) {
  (void)ctx;
  (void)message; /* the stop reports it */
}

static void trial_on_finished(void *ctx, struct session *s) {
  (void)s;
  solo_finished(&((struct trial *)ctx)->solo);
}

static struct workflow *trial_workflow(const struct trial_case *c, const struct setup *setup,
                                       const char *provider, const char *model,
                                       const json_t *stages, struct err *err) {
  const char *name = c->movement && c->movement[0] ? c->movement : "step";
  json_t *rules = json_array(), *judge = json_object(), *condition;
  size_t i;
  json_array_foreach(c->rules, i, condition) {
    json_array_append_new(rules, json_pack("{sO ss}", "condition", condition, "next", "COMPLETE"));
  }
  if (provider != NULL)
    json_object_set_new(judge, "provider", json_string(provider));
  if (model != NULL)
    json_object_set_new(judge, "model", json_string(model));
  if (stages != NULL)
    json_object_set(judge, "stages", (json_t *)stages);
  if (json_object_get(setup->config, "options"))
    json_object_set(judge, "options", json_object_get(setup->config, "options"));
  json_t *doc =
      json_pack("{ss ss s[{ss s[s] so so}]}", "name", "test", "initial_movement", name, "movements",
                "name", name, "command", "given", "judge", judge, "rules", rules);
  struct workflow *wf = workflow_build(doc, err);
  json_decref(doc);
  return wf;
}

static bool trial_session(const struct trial_case *c, struct setup *setup, struct trial_got *got,
                          struct err *err) {
  static const struct watcher watcher = {
      .record = trial_on_record, .trouble = trial_on_trouble, .finished = trial_on_finished};
  struct trial t = {.got = got};
  if (!solo_init(&t.solo, NULL, setup->registry, err))
    return false;
  const struct session_params params = {
      .setup = {.cwd = setup->cwd, .scenario = setup->has_scenario ? &setup->scenario : NULL},
      .workflow = setup->workflow,
      .task = STR(""),
      .config = setup->config};
  struct session *s = t.solo.session = host_start(&t.solo.host, &params, &watcher, &t, err);
  bool ok = s != NULL;
  if (ok) {
    host_answer(s, c->text);
    got->stopped = solo_run(&t.solo, NULL, NULL) > 0;
    ok = session_broken(s) == NULL;
    if (!ok)
      *err = *session_broken(s);
  }
  solo_deinit(&t.solo);
  return ok;
}

/* Makes the case the workflow of the setup, until trial_over. */
static bool trial_begin(const struct trial_case *c, struct setup *setup, const char *provider,
                        const char *model, const json_t *stages, struct err *err) {
  assert(c->rules != NULL);
  json_object_del(setup->config, "provider");
  json_object_del(setup->config, "model");
  setup->workflow = trial_workflow(c, setup, provider, model, stages, err);
  return setup->workflow != NULL && setup_preflight(setup, err);
}

static void trial_over(struct setup *setup) {
  if (setup->workflow != NULL)
    workflow_unref(setup->workflow);
  setup->workflow = NULL;
}

/* Returns whether the judges can answer at all, as far as that is seen without asking them. */
static bool trial_ready(const struct setup *setup, struct err *err) {
  struct preflight p = setup_preflight_of(setup);
  p.looks = p.answered = true;
  return preflight_passes(&p, err);
}

bool trial_check(const struct trial_case *c, struct setup *setup, const char *provider,
                 const char *model, const json_t *stages, struct err *err) {
  bool ok = trial_begin(c, setup, provider, model, stages, err) && trial_ready(setup, err);
  trial_over(setup);
  return ok;
}

bool trial_run(const struct trial_case *c, struct setup *setup, const char *provider,
               const char *model, const json_t *stages, struct trial_got *got, struct err *err) {
  *got = (struct trial_got){.reply = {.max = LIMIT_JUDGE_TEXT_BYTES}};
  bool ok =
      trial_begin(c, setup, provider, model, stages, err) && trial_session(c, setup, got, err);
  trial_over(setup);
  return ok;
}

void trial_got_deinit(struct trial_got *got) {
  buf_deinit(&got->reply);
  buf_deinit(&got->why);
}
