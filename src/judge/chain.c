#include "judge/chain.h"

#include "base/buf.h"
#include "base/resource.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/reading.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- schemas --- */

static struct schema *compile_resource(const char *name, json_t **doc, struct err *err) {
  const struct resource *r = resource_find(name);
  *doc = r ? json_loadb(r->p, r->n, 0, NULL) : NULL;
  struct schema *schema = *doc ? schema_compile(*doc, NULL, NULL, NULL) : NULL;
  if (schema == NULL)
    (void)err_set(err, ERR_INVALID, "the built-in %s does not compile", name);
  return schema;
}

bool chain_schemas_init(struct chain_schemas *schemas, struct err *err) {
  schemas->judgment = compile_resource("schemas/judgment.json", &schemas->judgment_doc, err);
  schemas->evaluation = compile_resource("schemas/evaluation.json", &schemas->evaluation_doc, err);
  schemas->invariant = compile_resource("schemas/invariant.json", &schemas->invariant_doc, err);
  schemas->narrowed = json_object();
  if (schemas->judgment && schemas->evaluation && schemas->invariant)
    return true;
  chain_schemas_deinit(schemas);
  return false;
}

void chain_schemas_deinit(struct chain_schemas *schemas) {
  if (schemas->judgment)
    schema_free(schemas->judgment);
  if (schemas->evaluation)
    schema_free(schemas->evaluation);
  schema_free(schemas->invariant);
  json_decref(schemas->invariant_doc);
  json_decref(schemas->judgment_doc);
  json_decref(schemas->evaluation_doc);
  json_decref(schemas->narrowed);
  *schemas = (struct chain_schemas){0};
}

/* --- rules --- */

static bool visible(const struct chain_spec *spec, const struct rule *rule) {
  return spec->interactive || !rule->interactive_only;
}

static bool label_seen(const struct rule *const *seen, size_t n, struct str label) {
  for (size_t i = 0; i < n; i++)
    if (str_eq(seen[i]->label, label))
      return true;
  return false;
}

size_t chain_offered(const struct chain_spec *spec, const struct rule **out) {
  size_t n = 0;
  for (size_t i = 0; i < spec->rule_count; i++) {
    const struct rule *rule = &spec->rules[i];
    if (visible(spec, rule) && rule->kind != RULE_WHEN && !label_seen(out, n, rule->label))
      out[n++] = rule;
  }
  return n;
}

static bool stage_calls(enum judge_stage stage) {
  return stage == STAGE_STRUCTURED_OUTPUT || stage == STAGE_PHASE3_TAG || stage == STAGE_AI_JUDGE;
}

bool chain_needs_judge(const struct chain_spec *spec) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  if (spec->rule_count > LIMIT_RULE_COUNT || chain_offered(spec, offered) < 2)
    return false;
  for (size_t i = 0; i < spec->stage_count; i++)
    if (stage_calls(spec->stages[i]))
      return true;
  return false;
}

static void append_number(struct buf *out, int number) {
  char digits[STR_NUMBER_BYTES];
  size_t n = str_from_number(digits, number);
  buf_putc(out, ' ');
  buf_append(out, digits, n);
}

json_t *chain_call_schema(const struct chain_spec *spec, enum judge_stage stage) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  if (stage != STAGE_STRUCTURED_OUTPUT && stage != STAGE_AI_JUDGE)
    return NULL;
  bool ai = stage == STAGE_AI_JUDGE;
  size_t n = chain_offered(spec, offered);
  struct buf key = {0};
  buf_puts(&key, judge_stage_name(stage));
  for (size_t i = 0; i < n; i++)
    append_number(&key, offered[i]->number);
  json_t *doc = json_incref(json_object_get(spec->schemas->narrowed, key.p));
  if (doc == NULL) {
    doc = json_deep_copy(ai ? spec->schemas->evaluation_doc : spec->schemas->judgment_doc);
    json_t *number = json_object_get(json_at(doc, "properties"), ai ? "matched_index" : "step");
    json_t *numbers = json_pack("[i]", 0);
    for (size_t i = 0; i < n; i++)
      json_array_append_new(numbers, json_integer(offered[i]->number));
    json_object_del(number, "minimum");
    json_put(number, "enum", numbers);
    if (json_object_size(spec->schemas->narrowed) < LIMIT_SCHEMA_CACHE_COUNT)
      json_object_set_nocheck(spec->schemas->narrowed, key.p, doc);
  }
  buf_deinit(&key);
  return doc;
}

/* ---- reading recorded stages ------------------------------------------------------------------
 */

static enum judge_stage object_stage(const json_t *object) {
  enum judge_stage stage = STAGE_COUNT;
  (void)judge_stage_from_name(str_from(json_string_value(json_at(object, "stage"))), &stage);
  return stage;
}

static enum stage_outcome object_outcome(const json_t *object) {
  enum stage_outcome outcome = OUTCOME_COUNT;
  (void)stage_outcome_from_name(str_from(json_string_value(json_at(object, "outcome"))), &outcome);
  return outcome;
}

static const json_t *find_stage(const json_t *stages, enum judge_stage stage) {
  size_t i;
  json_t *object;
  json_array_foreach(stages, i, object) {
    if (object_stage(object) == stage)
      return object;
  }
  return NULL;
}

static const struct rule *rule_of(const struct chain_spec *spec, const json_t *object) {
  json_int_t number = json_integer_value(json_at(object, "rule"));
  return number >= 1 && (size_t)number <= spec->rule_count ? &spec->rules[number - 1] : NULL;
}

/* ---- building stage objects -------------------------------------------------------------------
 */

static json_t *stage_object(enum judge_stage stage, enum stage_outcome outcome) {
  json_t *object = json_object();
  json_put(object, "stage", json_string_nocheck(judge_stage_name(stage)));
  json_put(object, "outcome", json_string_nocheck(stage_outcome_name(outcome)));
  json_put(object, "calls", json_array());
  return object;
}

static void add_error(json_t *object, const char *text, size_t n) {
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

/* ---- when: rules before the first label --------------------------------------------------------
 */

static size_t first_label(const struct chain_spec *spec) {
  size_t i = 0;
  while (i < spec->rule_count &&
         (!visible(spec, &spec->rules[i]) || spec->rules[i].kind == RULE_WHEN))
    i++;
  return i;
}

/* Evaluates the when() rules [0, end) in file order. The notes of those that were false are added
 * as errors: they say why the next stage was tried. */
static json_t *run_when(const struct chain_spec *spec, size_t end) {
  json_t *object = stage_object(STAGE_WHEN, OUTCOME_NO_MATCH);
  for (size_t i = 0; i < end; i++) {
    const struct rule *rule = &spec->rules[i];
    struct expr_error err;
    if (!visible(spec, rule) || rule->kind != RULE_WHEN)
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
      add_error(object, note.p, note.n);
      break;
    case EXPR_ERROR:
      json_put(object, "outcome", json_string_nocheck(stage_outcome_name(OUTCOME_ERROR)));
      buf_printf(&note, "rule %d, " STR_FMT ": %s", rule->number, STR_ARG(rule->when_text),
                 err.text);
      add_error(object, note.p, note.n);
      buf_deinit(&note);
      return object;
    }
    buf_deinit(&note);
  }
  return object;
}

/* After `chosen` was picked: the rule that wins in file order with that label fixed, NULL when no
 * guard holds. *failed is set when an expression cannot be evaluated. */
static const struct rule *walk(const struct chain_spec *spec, const struct rule *chosen,
                               bool *failed, char *reason, size_t reason_bytes) {
  *failed = false;
  for (size_t i = 0; i < spec->rule_count; i++) {
    const struct rule *rule = &spec->rules[i];
    struct expr_error err;
    if (!visible(spec, rule))
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

/* --- stages that read a model's words --- */

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
  add_error(object, text.p, text.n);
  buf_deinit(&text);
  return outcome;
}

static bool tag_in(const struct chain_spec *spec, struct str text, enum judge_stage stage,
                   struct tag_result *tag) {
  if (stage == STAGE_AI_JUDGE)
    tag_find(text.p, text.n, "JUDGE", 5, TAG_FIRST, TAG_REPLY, tag);
  else
    tag_find(text.p, text.n, spec->movement.p, spec->movement.n, TAG_LAST,
             stage == STAGE_PHASE1_TAG ? TAG_AGENT : TAG_REPLY, tag);
  return tag->found;
}

static bool is_offered(const struct chain_spec *spec, long number) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(spec, offered);
  for (size_t i = 0; i < n; i++)
    if (offered[i]->number == number)
      return true;
  return false;
}

/* A stage decided by a tag in `text`. */
static json_t *tag_object(const struct chain_spec *spec, enum judge_stage stage, struct str text) {
  struct tag_result tag;
  json_t *object = stage_object(stage, OUTCOME_NO_MATCH);
  enum stage_outcome outcome = OUTCOME_NO_MATCH;
  if (str_trim(text).n == 0 && stage != STAGE_PHASE1_TAG) {
    add_error(object, "the reply is empty", 18);
    outcome = OUTCOME_UNREADABLE;
  } else if (!tag_in(spec, text, stage, &tag)) {
    add_error(object, "no tag", 6);
  } else {
    char what[64];
    (void)snprintf(what, sizeof what, "tag");
    outcome = place_number(spec, (double)tag.number, object, what);
    if (outcome == OUTCOME_NO_MATCH) {
      json_array_clear(json_at(object, "errors"));
      add_error(object, "tag 0 names no rule", 19);
    }
    if (tag.ambiguous)
      json_put(object, "ambiguous", json_true());
    if (outcome == OUTCOME_MATCHED)
      json_put(object, "tag", json_stringn_nocheck(text.p + tag.offset, tag.length));
  }
  json_put(object, "outcome", json_string_nocheck(stage_outcome_name(outcome)));
  return object;
}

static json_t *value_object(const struct chain_spec *spec, enum judge_stage stage,
                            const struct chain_reply *reply) {
  const char *key = stage == STAGE_AI_JUDGE ? "matched_index" : "step";
  struct reading reading;
  json_t *object = stage_object(stage, OUTCOME_UNREADABLE);
  enum stage_outcome outcome;
  reading_init(&reading,
               stage == STAGE_AI_JUDGE ? spec->schemas->evaluation : spec->schemas->judgment, key,
               reply->structured, reply->text);
  if (reading.where != NULL)
    json_put(object, "extract_stage", json_string_nocheck(reading.where));
  if (reading.value == NULL) {
    outcome = OUTCOME_UNREADABLE;
    add_error(object, reading.missing, strlen(reading.missing));
  } else if (!reading.valid) {
    outcome = OUTCOME_INVALID;
    for (size_t i = 0; i < reading.errors.count && i < LIMIT_STAGE_ERROR_COUNT; i++) {
      struct buf line = {.max = LIMIT_ERROR_TEXT_BYTES};
      buf_printf(&line, "%s: %s", reading.errors.items[i].path, reading.errors.items[i].message);
      add_error(object, line.p, utf8_floor(line.p, line.n));
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
      tag_in(spec, reply->text, stage, &tag) &&
      (outcome == OUTCOME_UNREADABLE || tag.number == 0 || is_offered(spec, tag.number))) {
    outcome = place_number(spec, (double)tag.number, object, "tag");
    if (tag.ambiguous)
      json_put(object, "ambiguous", json_true());
  }
  json_put(object, "outcome", json_string_nocheck(stage_outcome_name(outcome)));
  reading_deinit(&reading);
  return object;
}

/* ---- the chain ---------------------------------------------------------------------------------
 */

static const struct chain_reply *last_reply_of(const struct chain_reply *replies, size_t n,
                                               enum judge_stage stage, int *count) {
  const struct chain_reply *last = NULL;
  *count = 0;
  for (size_t i = 0; i < n; i++)
    if (replies[i].stage == stage) {
      last = &replies[i];
      (*count)++;
    }
  return last;
}

static const struct chain_reply *last_answer_of(const struct chain_reply *replies, size_t n,
                                                enum judge_stage stage) {
  const struct chain_reply *last = NULL;
  for (size_t i = 0; i < n; i++)
    if (replies[i].stage == stage && replies[i].error_class == NULL)
      last = &replies[i];
  return last;
}

static void add_calls(json_t *object, const struct chain_reply *replies, size_t n,
                      enum judge_stage stage) {
  int64_t total_ms = 0;
  for (size_t i = 0; i < n; i++)
    if (replies[i].stage == stage) {
      json_array_append_new(json_at(object, "calls"), json_integer(replies[i].call));
      total_ms += replies[i].duration_ms;
    }
  json_put(object, "duration_ms", json_integer(total_ms));
}

static bool lists_stage(const struct chain_spec *spec, enum judge_stage stage) {
  for (size_t i = 0; i < spec->stage_count; i++)
    if (spec->stages[i] == stage)
      return true;
  return false;
}

/* What was wrong with the answers that reasks corrected: the judgment tells all of it. */
static void add_earlier_errors(const struct chain_spec *spec, enum judge_stage stage,
                               const struct chain_reply *replies, const struct chain_reply *last,
                               json_t *object) {
  json_t *all = json_array();
  for (const struct chain_reply *r = replies; r < last; r++) {
    if (r->stage != stage || r->error_class != NULL)
      continue;
    json_t *earlier = value_object(spec, stage, r);
    json_array_extend(all, json_at(earlier, "errors"));
    json_decref(earlier);
  }
  if (json_array_size(all) > 0) {
    json_array_extend(all, json_at(object, "errors"));
    json_object_set_nocheck(object, "errors", all);
  }
  json_decref(all);
}

/* Does the structured_output reply hold a tag that can decide as phase3_tag? Only where that stage
 * is still to come. */
static bool saved_tag(const struct chain_spec *spec, const json_t *stages,
                      const struct chain_reply *reply) {
  struct tag_result tag;
  return reply != NULL && reply->error_class == NULL && lists_stage(spec, STAGE_PHASE3_TAG) &&
         find_stage(stages, STAGE_PHASE3_TAG) == NULL &&
         tag_in(spec, reply->text, STAGE_PHASE3_TAG, &tag) && is_offered(spec, tag.number);
}

static bool has_no_value(enum stage_outcome outcome) {
  return outcome == OUTCOME_UNREADABLE || outcome == OUTCOME_INVALID ||
         outcome == OUTCOME_OUT_OF_RANGE || outcome == OUTCOME_HIDDEN;
}

/* Why a call stage would be pointless: an earlier one met auth or quota trouble. NULL: it is not.
 */
static const char *provider_trouble(const json_t *stages) {
  size_t i;
  json_t *object;
  json_array_foreach(stages, i, object) {
    const char *class = json_string_value(json_at(object, "class"));
    if (class && (strcmp(class, "auth") == 0 || strcmp(class, "quota") == 0))
      return class;
  }
  return NULL;
}

static void yield_stage(struct chain_step *step, json_t *object) {
  step->action = CHAIN_STAGE;
  step->stage = object_stage(object);
  if (json_at(object, "duration_ms") == NULL)
    json_put(object, "duration_ms", json_integer(0));
  step->object = object;
}

static void call_stage(const struct chain_spec *spec, enum judge_stage stage, const json_t *stages,
                       const struct chain_reply *replies, size_t n, struct chain_step *step) {
  int count;
  const struct chain_reply *reply = last_reply_of(replies, n, stage, &count);
  const struct chain_reply *structured = last_answer_of(replies, n, STAGE_STRUCTURED_OUTPUT);
  if (reply == NULL && stage == STAGE_PHASE3_TAG) {
    const json_t *before = find_stage(stages, STAGE_STRUCTURED_OUTPUT);
    if (before && has_no_value(object_outcome(before)) && saved_tag(spec, stages, structured)) {
      json_t *object = tag_object(spec, stage, structured->text);
      json_array_append_new(json_at(object, "calls"), json_integer(structured->call));
      json_put(object, "reason", json_string_nocheck("from the structured_output reply"));
      yield_stage(step, object);
      return;
    }
  }
  if (reply == NULL) {
    const char *trouble = provider_trouble(stages);
    if (trouble != NULL) {
      json_t *object = stage_object(stage, OUTCOME_SKIPPED);
      json_put(object, "class", json_string_nocheck(trouble));
      yield_stage(step, object);
      return;
    }
    step->action = CHAIN_CALL;
    step->stage = stage;
    return;
  }
  const struct chain_reply *answered = last_answer_of(replies, n, stage);
  json_t *object;
  if (answered == NULL) {
    object = stage_object(stage, OUTCOME_ERROR);
  } else if (stage == STAGE_PHASE3_TAG) {
    object = tag_object(spec, stage, answered->text);
  } else {
    object = value_object(spec, stage, answered);
    bool reask = answered == reply && has_no_value(object_outcome(object)) &&
                 count <= spec->max_reasks &&
                 !(stage == STAGE_STRUCTURED_OUTPUT && saved_tag(spec, stages, reply));
    if (reask) {
      step->action = CHAIN_CALL;
      step->stage = stage;
      step->reask = true;
      step->errors = json_incref(json_at(object, "errors"));
      json_decref(object);
      return;
    }
  }
  if (answered != NULL && stage != STAGE_PHASE3_TAG)
    add_earlier_errors(spec, stage, replies, answered, object);
  if (reply->error_class != NULL) { /* of a reask too: what was answered before it stays answered */
    json_put(object, "class", json_string_nocheck(reply->error_class));
    add_error(object, reply->error_text.p ? reply->error_text.p : "", reply->error_text.n);
  }
  add_calls(object, replies, n, stage);
  yield_stage(step, object);
}

/* Index into spec->stages of the next one that has no object yet; stage_count when all have. */
static size_t next_stage(const struct chain_spec *spec, const json_t *stages) {
  size_t i = 0;
  while (i < spec->stage_count && find_stage(stages, spec->stages[i]) != NULL)
    i++;
  return i;
}

static void finish_unmatched(const struct chain_spec *spec, const json_t *stages,
                             struct chain_step *step) {
  bool called = false, readable = false;
  const json_t *failed = NULL; /* the first stage that got no answer: why */
  size_t i;
  json_t *object;
  json_array_foreach(stages, i, object) {
    if (!stage_calls(object_stage(object)))
      continue;
    enum stage_outcome outcome = object_outcome(object);
    called = true;
    readable |=
        outcome != OUTCOME_ERROR && outcome != OUTCOME_SKIPPED && outcome != OUTCOME_UNREADABLE;
    if (failed == NULL && outcome == OUTCOME_ERROR)
      failed = object;
  }
  step->action = called && !readable ? CHAIN_UNAVAILABLE : CHAIN_NO_MATCH;
  (void)snprintf(step->reason, sizeof step->reason, "%s",
                 step->action == CHAIN_UNAVAILABLE ? "no stage got a readable answer from the judge"
                 : spec->stage_count == 0          ? "no rule holds and no stage is configured"
                                                   : "no stage named a rule that was offered");
  const char *text = json_string_value(json_array_get(json_at(failed, "errors"), 0));
  size_t n = strlen(step->reason);
  if (failed != NULL)
    (void)snprintf(step->reason + n, sizeof step->reason - n, " (%s: %s: %.200s)",
                   json_string_value(json_at(failed, "stage")),
                   json_string_value(json_at(failed, "class")), text ? text : "");
}

void chain_next(const struct chain_spec *spec, const json_t *stages,
                const struct chain_reply *replies, size_t n, struct chain_step *step) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  assert(spec->rule_count <= LIMIT_RULE_COUNT);
  *step = (struct chain_step){.stage = STAGE_COUNT};
  size_t done = json_array_size(stages), labels = chain_offered(spec, offered);
  size_t first = first_label(spec);
  const json_t *last = done > 0 ? json_array_get(stages, done - 1) : NULL;

  if (last != NULL && object_outcome(last) == OUTCOME_MATCHED) {
    const struct rule *chosen = rule_of(spec, last);
    bool failed;
    if (chosen == NULL) {
      step->action = CHAIN_FAILED;
      (void)snprintf(step->reason, sizeof step->reason,
                     "the record names a rule that is not there");
      return;
    }
    step->stage = object_stage(last);
    step->ambiguous = json_is_true(json_at(last, "ambiguous"));
    if (chosen->kind == RULE_WHEN) {
      step->action = CHAIN_VERDICT;
      step->rule = chosen;
      return;
    }
    const struct rule *winner = walk(spec, chosen, &failed, step->reason, sizeof step->reason);
    if (winner != NULL && winner->kind == RULE_WHEN) {
      json_t *object = stage_object(STAGE_WHEN, OUTCOME_MATCHED);
      struct buf note = {0};
      bool before = winner->number < chosen->number;
      buf_printf(&note, STR_FMT " is true and %s \"" STR_FMT "\"%s", STR_ARG(winner->when_text),
                 before ? "stands before" : "follows", STR_ARG(chosen->label),
                 before ? "" : ", whose guard is false");
      json_put(object, "rule", json_integer(winner->number));
      json_put(object, "reason", json_text(buf_view(&note)));
      buf_deinit(&note);
      if (step->ambiguous)
        json_put(object, "ambiguous", json_true());
      yield_stage(step, object);
      return;
    }
    step->action = failed ? CHAIN_FAILED : winner ? CHAIN_VERDICT : CHAIN_NO_MATCH;
    step->rule = winner;
    return;
  }
  if (last != NULL && object_stage(last) == STAGE_WHEN && object_outcome(last) == OUTCOME_ERROR) {
    step->action = CHAIN_FAILED;
    const json_t *errors = json_at(last, "errors"); /* before the last, what was false */
    const char *why = json_string_value(json_array_get(errors, json_array_size(errors) - 1));
    (void)snprintf(step->reason, sizeof step->reason, "%s",
                   why ? why : "a when() expression cannot be evaluated");
    return;
  }
  bool has_when = false;
  for (size_t i = 0; i < first; i++)
    has_when |= visible(spec, &spec->rules[i]);
  if (has_when && done == 0) {
    yield_stage(step, run_when(spec, first));
    return;
  }
  if (labels == 0) {
    step->action = CHAIN_NO_MATCH;
    (void)snprintf(step->reason, sizeof step->reason, "%s",
                   has_when ? "no when() rule is true" : "no rule can be selected");
    return;
  }
  if (labels == 1) {
    json_t *object = stage_object(STAGE_AUTO_SELECT, OUTCOME_MATCHED);
    json_put(object, "rule", json_integer(offered[0]->number));
    json_put(object, "reason", json_string_nocheck("the only rule that can be selected"));
    yield_stage(step, object);
    return;
  }
  size_t i = next_stage(spec, stages);
  if (i == spec->stage_count) {
    finish_unmatched(spec, stages, step);
    return;
  }
  if (spec->stages[i] == STAGE_PHASE1_TAG)
    yield_stage(step, tag_object(spec, STAGE_PHASE1_TAG, spec->agent_text));
  else
    call_stage(spec, spec->stages[i], stages, replies, n, step);
}

void chain_step_deinit(struct chain_step *step) {
  json_decref(step->errors);
  json_decref(step->object);
  *step = (struct chain_step){0};
}
