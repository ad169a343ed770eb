/* Makes cases of recorded turns, to be judged again. */
#include "audit/rejudge.h"

#include "audit/verified_reader.h"
#include "base/log.h"
#include "core/apply.h"
#include "core/report_file.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the workflow of a case --- */

/* Writes a condition, with its expression replaced by its value. */
static json_t *rejudge_condition(const struct rule *rule, const json_t *env) {
  struct expr_error error;
  buf_auto_t text = {0};
  if (rule->kind == RULE_LABEL)
    return json_text(rule->condition);
  bool holds = expr_eval(rule->when, env, &error) == EXPR_TRUE;
  if (rule->kind == RULE_LABEL_WHEN)
    buf_printf(&text, STR_FMT " && ", STR_ARG(rule->label));
  buf_printf(&text, "when(%s)", holds ? "true" : "false");
  return json_text(buf_view(&text));
}

static json_t *rejudge_rules(const struct movement *m, const json_t *env) {
  json_t *rules = json_array();
  for (size_t i = 0; i < m->rule_count; i++) {
    const struct rule *r = &m->rules[i];
    json_t *rule = json_pack("{so ss}", "condition", rejudge_condition(r, env), "next", "COMPLETE");
    json_put_text(rule, "appendix", r->appendix);
    json_put_true(rule, "interactive_only", r->interactive_only);
    json_array_append_new(rules, rule);
  }
  return rules;
}

static json_t *rejudge_stages(const struct judge_config *judge, bool joined) {
  json_t *stages = json_array();
  for (size_t i = 0; i < judge->stage_count; i++)
    if (!joined || judge->stages[i] != STAGE_PHASE1_TAG)
      json_array_append_new(stages, json_string(judge_stage_name(judge->stages[i])));
  return stages;
}

static void rejudge_put(json_t *object, const char *key, const json_t *value) {
  if (value != NULL)
    json_object_set(object, key, (json_t *)value);
}

/* Writes the recorded judge as it was resolved then. */
static void recorded_judge(const struct core *core, const struct turn *turn, json_t *out) {
  const struct judge_config *judge = &core->workflow->movements[turn->movement].judge;
  struct str provider, model;
  core_judge_backend(core->workflow, core->config, turn->movement, &provider, &model);
  json_put_text(out, "provider", provider);
  json_put_text(out, "model", model);
  rejudge_put(out, "options", judge->options);
  rejudge_put(out, "effort", judge->effort);
  if (judge->panel == NULL)
    return;
  rejudge_put(out, "panel", judge->panel);
  json_object_set_new(out, "agree", json_integer(judge->agree));
  json_object_set_new(out, "order", json_string(judge->rotates ? "rotate" : "fixed"));
}

static json_t *rejudge_judge(const struct core *core, const struct turn *turn,
                             const struct rejudge_as *as) {
  const struct judge_config *judge = &core->workflow->movements[turn->movement].judge;
  json_t *out = json_object();
  int reasks = as->max_reasks >= 0 ? as->max_reasks : judge->max_reasks;
  if (as->provider == NULL && as->panel == NULL)
    recorded_judge(core, turn, out);
  if (as->provider != NULL)
    json_object_set_new(out, "provider", json_string(as->provider));
  if (as->model != NULL)
    json_object_set_new(out, "model", json_string(as->model));
  rejudge_put(out, "options", as->options);
  rejudge_put(out, "panel", as->panel);
  if (as->panel != NULL && as->agree > 0)
    json_object_set_new(out, "agree", json_integer(as->agree));
  rejudge_put(out, "stages", as->stages);
  if (as->stages == NULL)
    json_object_set_new(out, "stages", rejudge_stages(judge, turn->parts != NULL));
  json_object_set_new(out, "max_reasks", json_integer(reasks));
  json_object_set_new(out, "timeout_ms", json_integer(judge->timeout_ms));
  return out;
}

/* Writes the command as a judge is told of it; it does not run. */
static json_t *given_command(const struct movement *m) {
  json_t *argv = json_array();
  for (size_t i = 0; m->argv != NULL && m->argv[i] != NULL; i++)
    json_array_append_new(argv, json_text(str_from(m->argv[i])));
  if (m->argv == NULL)
    json_array_append_new(argv, json_string("given"));
  return argv;
}

/* Adds the last check, which only the carried-over state names. */
static void add_check(const struct core *core, struct str own, json_t *movements) {
  const struct movement *m = &core->workflow->movements[core->check.movement];
  if (core->check.turn > 0 && !str_eq(m->name, own))
    json_array_append_new(movements, json_pack("{so so s[{ss ss}]}", "name", json_text(m->name),
                                               "command", given_command(m), "rules", "condition",
                                               "over", "next", "COMPLETE"));
}

static struct workflow *rejudge_workflow(const struct core *core, const struct turn *turn,
                                         const json_t *env, const struct rejudge_as *as,
                                         struct err *err) {
  const struct workflow *wf = core->workflow;
  const struct movement *m = &wf->movements[turn->movement];
  struct str name = m->group == NO_GROUP ? m->name : m->own_name;
  struct str language = as->language ? str_from(as->language) : wf->language;
  json_t *movement =
      json_pack("{so so so so}", "name", json_text(name), "command", given_command(m), "rules",
                rejudge_rules(m, env), "judge", rejudge_judge(core, turn, as));
  json_put_true(movement, "edit", m->edit);
  json_put_text(movement, "description", m->description);
  json_t *doc = json_pack("{so so so ss s[o]}", "name", json_text(wf->name), "language",
                          json_text(language), "initial_movement", json_text(name), "max_movements",
                          "infinite", "movements", movement);
  add_check(core, name, json_object_get(doc, "movements"));
  struct workflow *out = workflow_build(doc, err);
  json_decref(doc);
  return out;
}

/* --- a case --- */

/* Copies what the session knew before this turn's work, as far as a judge is shown it. */
static void carry_core(const struct core *from, const struct turn *turn, struct core *to) {
  memcpy(to->session, from->session, sizeof to->session);
  to->seq = from->seq;
  to->has_next = true;
  to->next = 0;
  to->turn_count = turn->id - 1;
  to->iteration_count = turn->iteration > 0 ? turn->iteration - 1 : 0;
  to->movement_counts = xcalloc(to->workflow->movement_count, sizeof *to->movement_counts);
  to->movement_counts[0] = turn->movement_iteration > 0 ? turn->movement_iteration - 1 : 0;
  to->gates = json_clone(from->gates);
  to->touched = json_clone(from->touched);
  if (from->check.turn == 0)
    return;
  to->check.turn = from->check.turn;
  to->check.exit = from->check.exit;
  to->check.movement =
      (size_t)workflow_find(to->workflow, from->workflow->movements[from->check.movement].name);
}

static void take_work(const struct turn *turn, struct call_result *out) {
  buf_auto_t judged = {0};
  struct joined joined;
  if (kept_judged(turn, &judged, &joined)) {
    buf_str(&out->text.bytes, buf_view(&judged));
    free(joined.joints);
  } else {
    buf_str(&out->text.bytes, buf_view(&turn->text));
  }
  out->has_exit = turn->has_exit;
  out->exit = turn->exit;
  out->tests = json_incref(turn->tests);
  if (!turn->shared)
    out->files = json_incref(turn->files);
  if (turn->unseen != NULL)
    print_into(out->files_unknown, sizeof out->files_unknown, "%s", turn->unseen);
  out->head = json_incref(turn->head);
  out->files_more = turn->files != NULL && turn->files_more > 0 ? (size_t)turn->files_more : 0;
}

static struct rejudge_case *case_of(const struct core *core, const struct turn *turn,
                                    const struct chain_schemas *schemas,
                                    const struct rejudge_as *as, struct err *err) {
  struct judging_turn judging;
  struct rejudge_case *c = xcalloc(1, sizeof *c);
  core_init(&c->core);
  if (!judging_of(&judging, core, turn, schemas)) {
    err_set(err, ERR_CORRUPT, "a judge's call of turn %ld is not over", turn->id);
  } else {
    c->core.workflow = rejudge_workflow(core, turn, judging.env, as, err);
    judging_deinit(&judging);
  }
  if (c->core.workflow == NULL) {
    rejudge_case_free(c);
    return NULL;
  }
  carry_core(core, turn, &c->core);
  take_work(turn, &c->answer);
  buf_str(&c->task, buf_view(&core->task));
  return c;
}

const struct core_parent *rejudge_parent(struct rejudge_case *c) {
  c->parent = (struct core_parent){&c->core, c->hash, &c->text};
  return &c->parent;
}

void rejudge_answer(const struct rejudge_case *c, struct call_result *out) {
  *out = (struct call_result){.has_exit = c->answer.has_exit,
                              .exit = c->answer.exit,
                              .tests = json_incref(c->answer.tests),
                              .files = json_incref(c->answer.files),
                              .head = json_incref(c->answer.head),
                              .files_more = c->answer.files_more};
  memcpy(out->files_unknown, c->answer.files_unknown, sizeof out->files_unknown);
  buf_str(&out->text.bytes, buf_view(&c->answer.text.bytes));
}

void rejudge_case_free(struct rejudge_case *c) {
  if (c == NULL)
    return;
  core_deinit(&c->core);
  call_result_deinit(&c->answer);
  text_deinit(&c->text);
  buf_deinit(&c->task);
  free(c);
}

/* --- logs --- */

struct rejudge_reading {
  const long *turns; /* ascending */
  size_t n, found;
  const struct rejudge_as *as;
  struct chain_schemas schemas;
  struct verified_reader book;
  struct core core;
};

static int rejudge_compare(const void *a, const void *b) {
  const long *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

/* Makes a case of a judged turn, if it is wanted. before: the hash of the record before the
 * judgment. */
static bool take_judged(struct rejudge_reading *r, const json_t *record, const char *before,
                        struct rejudge_case **out, struct err *err) {
  long number = (long)json_int_at(record, "turn");
  const long *wanted = bsearch(&number, r->turns, r->n, sizeof *r->turns, rejudge_compare);
  if (wanted == NULL)
    return true;
  const struct turn *turn = core_turn(&r->core, number);
  if (turn == NULL)
    return err_set(err, ERR_CORRUPT, "turn %ld is judged and not open", number);
  struct rejudge_case *c = case_of(&r->core, turn, &r->schemas, r->as, err);
  if (c == NULL)
    return err_wrap(err, "turn %ld", number);
  c->index = (size_t)(wanted - r->turns);
  memcpy(c->hash, before, sizeof c->hash);
  r->found++;
  *out = c;
  return true;
}

struct rejudge_reading *rejudge_open(const struct store_ref *ref, const long *turns, size_t n,
                                     const struct rejudge_as *as, struct err *err) {
  struct rejudge_reading *r = xcalloc(1, sizeof *r);
  assert(n > 0);
  *r = (struct rejudge_reading){.turns = turns, .n = n, .as = as};
  core_init(&r->core);
  if (!chain_schemas_init(&r->schemas, err) || !verified_open(&r->book, ref, false, err)) {
    rejudge_close(r);
    return NULL;
  }
  return r;
}

bool rejudge_next(struct rejudge_reading *r, struct rejudge_case **out, struct err *err) {
  const struct core_source source = {.ctx = &r->book, .blob = verified_blob};
  char before[SHA256_HEX];
  json_t *record;
  bool ok = true;
  *out = NULL;
  memcpy(before, r->book.hash, sizeof before);
  while (ok && *out == NULL && r->found < r->n && (record = verified_next(&r->book)) != NULL) {
    if (str_eq_c(json_view_at(record, "type"), "judgment"))
      ok = take_judged(r, record, before, out, err);
    ok = ok && core_apply_json(&r->core, record, NULL, &source, err);
    memcpy(before, r->book.hash, sizeof before);
    json_decref(record);
  }
  if (!ok) {
    rejudge_case_free(*out);
    *out = NULL;
  }
  if (!ok || *out != NULL || r->found == r->n)
    return ok;
  if (r->book.state == VERIFIED_DAMAGED)
    return err_set(err, ERR_CORRUPT, "record %llu: %.600s", (unsigned long long)r->book.records + 1,
                   r->book.damage.text);
  return err_set(err, ERR_NOT_FOUND, "not all of its turns are judged");
}

void rejudge_close(struct rejudge_reading *r) {
  if (r == NULL)
    return;
  core_deinit(&r->core);
  verified_close(&r->book);
  chain_schemas_deinit(&r->schemas);
  free(r);
}
