/* Makes the objects of stages, and judges the stage that needs no model: when() rules. */
#include "base/buf.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/chain_internal.h"

#include <stdio.h>
#include <string.h>

/* --- objects --- */

enum judge_stage stage_object_stage(const json_t *object) {
  enum judge_stage stage = STAGE_COUNT;
  (void)judge_stage_from_name(str_from(json_string_value(json_at(object, "stage"))), &stage);
  return stage;
}

enum stage_outcome stage_object_outcome(const json_t *object) {
  enum stage_outcome outcome = OUTCOME_COUNT;
  (void)stage_outcome_from_name(str_from(json_string_value(json_at(object, "outcome"))), &outcome);
  return outcome;
}

const json_t *stage_object_find(const json_t *stages, enum judge_stage stage) {
  size_t i;
  json_t *object;
  json_array_foreach(stages, i, object) {
    if (stage_object_stage(object) == stage && !stage_object_is_vote(object))
      return object;
  }
  return NULL;
}

json_t *stage_object_new(enum judge_stage stage, enum stage_outcome outcome) {
  json_t *object = json_object();
  json_put(object, "stage", json_string_nocheck(judge_stage_name(stage)));
  json_put(object, "outcome", json_string_nocheck(stage_outcome_name(outcome)));
  json_put(object, "calls", json_array());
  return object;
}

void stage_object_error(json_t *object, const char *text, size_t n) {
  json_t *errors = json_at(object, "errors");
  if (errors == NULL) {
    errors = json_array();
    json_put(object, "errors", errors);
  }
  json_array_append_new(
      errors,
      json_text((struct str){text, n < LIMIT_ERROR_TEXT_BYTES ? n : LIMIT_ERROR_TEXT_BYTES}));
}

/* --- expressions --- */

static void name_stage(json_t *object, enum judge_stage stage) {
  json_put(object, "stage", json_string_nocheck(judge_stage_name(stage)));
}

/* Evaluates the when() rules [0, end) and all aggregates in file order. The notes of those that
 * were false are added as errors: they say why the next stage was tried. */
json_t *chain_when(const struct chain_spec *spec, size_t end) {
  json_t *object = stage_object_new(STAGE_WHEN, OUTCOME_NO_MATCH);
  for (size_t i = 0; i < spec->rule_count; i++) {
    const struct rule *rule = &spec->rules[i];
    struct expr_error err;
    if (!chain_shows(spec, rule) || rule->kind != RULE_WHEN ||
        (i >= end && rule->aggregate == NULL))
      continue;
    name_stage(object, rule->aggregate ? STAGE_AGGREGATE : STAGE_WHEN);
    struct buf note = {0};
    switch (expr_eval(rule->when, spec->env, &err)) {
    case EXPR_TRUE:
      json_put(object, "outcome", json_string_nocheck(stage_outcome_name(OUTCOME_MATCHED)));
      json_put(object, "rule", json_integer(rule->number));
      buf_printf(&note, STR_FMT " is true", STR_ARG(rule->when_text));
      json_put(object, "reason", json_text(buf_view(&note)));
      buf_deinit(&note);
      return object;
    case EXPR_FALSE:
      buf_printf(&note, STR_FMT " is false", STR_ARG(rule->when_text));
      stage_object_error(object, note.p, note.n);
      break;
    case EXPR_ERROR:
      if (rule->is_global) {
        buf_printf(&note, STR_FMT " cannot be told here: %s", STR_ARG(rule->when_text), err.text);
        stage_object_error(object, note.p, note.n);
        break;
      }
      json_put(object, "outcome", json_string_nocheck(stage_outcome_name(OUTCOME_ERROR)));
      buf_printf(&note, "rule %d, " STR_FMT ": %s", rule->number, STR_ARG(rule->when_text),
                 err.text);
      stage_object_error(object, note.p, note.n);
      buf_deinit(&note);
      return object;
    }
    buf_deinit(&note);
  }
  return object;
}

/* Returns the rule that wins in file order with the chosen label, NULL when no guard holds. Sets
 * *failed if an expression cannot be evaluated. */
const struct rule *chain_walk(const struct chain_spec *spec, const struct rule *chosen,
                              bool *failed, char *reason, size_t reason_bytes) {
  *failed = false;
  for (size_t i = 0; i < spec->rule_count; i++) {
    const struct rule *rule = &spec->rules[i];
    struct expr_error err;
    if (!chain_shows(spec, rule))
      continue;
    if (rule->kind != RULE_WHEN && !str_eq(rule->label, chosen->label))
      continue;
    if (rule->kind == RULE_LABEL)
      return rule;
    switch (expr_eval(rule->when, spec->env, &err)) {
    case EXPR_TRUE:
      return rule;
    case EXPR_FALSE:
      if (rule->kind == RULE_LABEL_WHEN)
        (void)snprintf(reason, reason_bytes, "\"%.*s\" was chosen, but its guard %.*s is false",
                       (int)rule->label.n, rule->label.p, (int)rule->when_text.n,
                       rule->when_text.p);
      break;
    case EXPR_ERROR:
      if (rule->is_global)
        break;
      *failed = true;
      (void)snprintf(reason, reason_bytes, "rule %d, %.*s: %.300s", rule->number,
                     (int)(rule->when_text.n < 150 ? rule->when_text.n : 150), rule->when_text.p,
                     err.text);
      return NULL;
    }
  }
  return NULL;
}
