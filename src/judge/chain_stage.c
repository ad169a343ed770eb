/* One stage of the chain, judged: its object from expressions, from a tag, from a value. */
#include "base/buf.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/chain_internal.h"
#include "judge/reading.h"

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
    if (stage_object_stage(object) == stage)
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

static void add_tag(const struct chain_spec *spec, json_t *object, const struct rule *rule) {
  struct buf tag = {0};
  rule_tag(spec->movement, rule->number, &tag);
  json_put(object, "tag", json_stringn_nocheck(tag.p, tag.n));
  buf_deinit(&tag);
}

/* --- expressions --- */

/* Evaluates the when() rules [0, end) in file order. The notes of those that were false are added
 * as errors: they say why the next stage was tried. */
json_t *chain_when(const struct chain_spec *spec, size_t end) {
  json_t *object = stage_object_new(STAGE_WHEN, OUTCOME_NO_MATCH);
  for (size_t i = 0; i < end; i++) {
    const struct rule *rule = &spec->rules[i];
    struct expr_error err;
    if (!chain_shows(spec, rule) || rule->kind != RULE_WHEN)
      continue;
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

/* After `chosen` was picked: the rule that wins in file order with that label fixed, NULL when no
 * guard holds. *failed is set when an expression cannot be evaluated. */
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
      *failed = true;
      (void)snprintf(reason, reason_bytes, "rule %d, %.*s: %.300s", rule->number,
                     (int)(rule->when_text.n < 150 ? rule->when_text.n : 150), rule->when_text.p,
                     err.text);
      return NULL;
    }
  }
  return NULL;
}

/* --- what a model said --- */

/* Number -> outcome; a matched one also gets its rule and tag. */
static enum stage_outcome place_number(const struct chain_spec *spec, double number, json_t *object,
                                       const char *what) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(spec, offered);
  struct buf text = {0};
  enum stage_outcome outcome;
  for (size_t i = 0; i < n; i++)
    if ((double)offered[i]->number == number) {
      json_put(object, "rule", json_integer(offered[i]->number));
      add_tag(spec, object, offered[i]);
      return OUTCOME_MATCHED;
    }
  if (number == 0) {
    buf_printf(&text, "%s 0: no rule holds", what);
    outcome = OUTCOME_NO_MATCH;
  } else {
    if (number < 1e15)
      buf_printf(&text, "%s %.0f is not offered (", what, number);
    else
      buf_printf(&text, "%s a number out of any range is not offered (", what);
    for (size_t i = 0; i < n; i++)
      buf_printf(&text, "%s%d", i ? ", " : "", offered[i]->number);
    buf_putc(&text, ')');
    outcome =
        number >= 1 && number <= (double)spec->rule_count ? OUTCOME_HIDDEN : OUTCOME_OUT_OF_RANGE;
  }
  stage_object_error(object, text.p, text.n);
  buf_deinit(&text);
  return outcome;
}

bool chain_find_tag(const struct chain_spec *spec, struct str text, enum judge_stage stage,
                    struct tag_result *tag) {
  if (stage == STAGE_AI_JUDGE)
    tag_find(text.p, text.n, "JUDGE", 5, TAG_FIRST, TAG_REPLY, tag);
  else
    tag_find(text.p, text.n, spec->movement.p, spec->movement.n, TAG_LAST,
             stage == STAGE_PHASE1_TAG ? TAG_AGENT : TAG_REPLY, tag);
  return tag->found;
}

/* A stage decided by a tag in `text`. */
json_t *chain_tag(const struct chain_spec *spec, enum judge_stage stage, struct str text) {
  struct tag_result tag;
  json_t *object = stage_object_new(stage, OUTCOME_NO_MATCH);
  enum stage_outcome outcome = OUTCOME_NO_MATCH;
  if (str_trim(text).n == 0 && stage != STAGE_PHASE1_TAG) {
    stage_object_error(object, "the reply is empty", 18);
    outcome = OUTCOME_UNREADABLE;
  } else if (!chain_find_tag(spec, text, stage, &tag)) {
    stage_object_error(object, "no tag", 6);
  } else {
    char what[64];
    (void)snprintf(what, sizeof what, "tag");
    outcome = place_number(spec, (double)tag.number, object, what);
    if (outcome == OUTCOME_NO_MATCH) {
      json_array_clear(json_at(object, "errors"));
      stage_object_error(object, "tag 0 names no rule", 19);
    }
    if (tag.ambiguous)
      json_put(object, "ambiguous", json_true());
    if (outcome == OUTCOME_MATCHED)
      json_put(object, "tag", json_stringn_nocheck(text.p + tag.offset, tag.length));
  }
  json_put(object, "outcome", json_string_nocheck(stage_outcome_name(outcome)));
  return object;
}

json_t *chain_value(const struct chain_spec *spec, enum judge_stage stage,
                    const struct chain_reply *reply) {
  const char *key = stage == STAGE_AI_JUDGE ? "matched_index" : "step";
  struct reading reading;
  json_t *object = stage_object_new(stage, OUTCOME_UNREADABLE);
  enum stage_outcome outcome;
  reading_init(&reading,
               stage == STAGE_AI_JUDGE ? spec->schemas->evaluation : spec->schemas->judgment, key,
               reply->structured, reply->text);
  if (reading.where != NULL)
    json_put(object, "extract_stage", json_string_nocheck(reading.where));
  if (reading.value == NULL) {
    outcome = OUTCOME_UNREADABLE;
    stage_object_error(object, reading.missing, strlen(reading.missing));
  } else if (!reading.valid) {
    outcome = OUTCOME_INVALID;
    for (size_t i = 0; i < reading.errors.count && i < LIMIT_STAGE_ERROR_COUNT; i++) {
      struct buf line = {.max = LIMIT_ERROR_TEXT_BYTES};
      buf_printf(&line, "%s: %s", reading.errors.items[i].path, reading.errors.items[i].message);
      stage_object_error(object, line.p, utf8_floor(line.p, line.n));
      buf_deinit(&line);
    }
  } else {
    outcome = place_number(spec, json_number_value(json_object_get(reading.value, key)), object,
                           stage == STAGE_AI_JUDGE ? "$.matched_index:" : "$.step:");
    json_t *reason = json_at(reading.value, "reason");
    size_t reason_n = json_string_length(reason); /* its whole text stands in the call's answer */
    if (json_is_string(reason))
      json_put(object, "reason",
               json_text((struct str){json_string_value(reason), reason_n < LIMIT_ERROR_TEXT_BYTES
                                                                     ? reason_n
                                                                     : LIMIT_ERROR_TEXT_BYTES}));
  }
  /* [JUDGE:N] in the text is the ai stage's own fallback. */
  struct tag_result tag;
  if (stage == STAGE_AI_JUDGE && outcome != OUTCOME_MATCHED && outcome != OUTCOME_NO_MATCH &&
      chain_find_tag(spec, reply->text, stage, &tag) &&
      (outcome == OUTCOME_UNREADABLE || tag.number == 0 || chain_offers(spec, tag.number))) {
    outcome = place_number(spec, (double)tag.number, object, "tag");
    if (tag.ambiguous)
      json_put(object, "ambiguous", json_true());
  }
  json_put(object, "outcome", json_string_nocheck(stage_outcome_name(outcome)));
  reading_deinit(&reading);
  return object;
}
