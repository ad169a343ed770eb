#include "judge/chain.h"

#include "base/buf.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/chain_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- rules --- */

bool chain_shows(const struct chain_spec *spec, const struct rule *rule) {
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
    if (chain_shows(spec, rule) && rule->kind != RULE_WHEN && !label_seen(out, n, rule->label))
      out[n++] = rule;
  }
  return n;
}

bool chain_offers(const struct chain_spec *spec, long number) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(spec, offered);
  for (size_t i = 0; i < n; i++)
    if (offered[i]->number == number)
      return true;
  return false;
}

size_t chain_first_label(const struct chain_spec *spec) {
  size_t i = 0;
  while (i < spec->rule_count &&
         (!chain_shows(spec, &spec->rules[i]) || spec->rules[i].kind == RULE_WHEN))
    i++;
  return i;
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

static const struct rule *rule_of(const struct chain_spec *spec, const json_t *object) {
  json_int_t number = json_integer_value(json_at(object, "rule"));
  return number >= 1 && (size_t)number <= spec->rule_count ? &spec->rules[number - 1] : NULL;
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
    json_t *earlier = chain_value(spec, stage, r);
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
         stage_object_find(stages, STAGE_PHASE3_TAG) == NULL &&
         chain_find_tag(spec, reply->text, STAGE_PHASE3_TAG, &tag) &&
         chain_offers(spec, tag.number);
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
  step->stage = stage_object_stage(object);
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
    const json_t *before = stage_object_find(stages, STAGE_STRUCTURED_OUTPUT);
    if (before && has_no_value(stage_object_outcome(before)) &&
        saved_tag(spec, stages, structured)) {
      json_t *object = chain_tag(spec, stage, structured->text);
      json_array_append_new(json_at(object, "calls"), json_integer(structured->call));
      json_put(object, "reason", json_string_nocheck("from the structured_output reply"));
      yield_stage(step, object);
      return;
    }
  }
  if (reply == NULL) {
    const char *trouble = provider_trouble(stages);
    if (trouble != NULL) {
      json_t *object = stage_object_new(stage, OUTCOME_SKIPPED);
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
    object = stage_object_new(stage, OUTCOME_ERROR);
  } else if (stage == STAGE_PHASE3_TAG) {
    object = chain_tag(spec, stage, answered->text);
  } else {
    object = chain_value(spec, stage, answered);
    bool reask = answered == reply && has_no_value(stage_object_outcome(object)) &&
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
    stage_object_error(object, reply->error_text.p ? reply->error_text.p : "", reply->error_text.n);
  }
  add_calls(object, replies, n, stage);
  yield_stage(step, object);
}

/* Index into spec->stages of the next one that has no object yet; stage_count when all have. */
static size_t next_stage(const struct chain_spec *spec, const json_t *stages) {
  size_t i = 0;
  while (i < spec->stage_count && stage_object_find(stages, spec->stages[i]) != NULL)
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
    if (!stage_calls(stage_object_stage(object)))
      continue;
    enum stage_outcome outcome = stage_object_outcome(object);
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
  const char *class = json_string_value(json_at(failed, "class")); /* a log may lack it */
  size_t n = strlen(step->reason);
  if (failed != NULL)
    (void)snprintf(step->reason + n, sizeof step->reason - n, " (%s: %s: %.200s)",
                   json_string_value(json_at(failed, "stage")), class ? class : "no class",
                   text ? text : "");
}

void chain_next(const struct chain_spec *spec, const json_t *stages,
                const struct chain_reply *replies, size_t n, struct chain_step *step) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  assert(spec->rule_count <= LIMIT_RULE_COUNT);
  *step = (struct chain_step){.stage = STAGE_COUNT};
  size_t done = json_array_size(stages), labels = chain_offered(spec, offered);
  size_t first = chain_first_label(spec);
  const json_t *last = done > 0 ? json_array_get(stages, done - 1) : NULL;

  if (last != NULL && stage_object_outcome(last) == OUTCOME_MATCHED) {
    const struct rule *chosen = rule_of(spec, last);
    bool failed;
    if (chosen == NULL) {
      step->action = CHAIN_FAILED;
      (void)snprintf(step->reason, sizeof step->reason,
                     "the record names a rule that is not there");
      return;
    }
    step->stage = stage_object_stage(last);
    step->ambiguous = json_is_true(json_at(last, "ambiguous"));
    if (chosen->kind == RULE_WHEN) {
      step->action = CHAIN_VERDICT;
      step->rule = chosen;
      return;
    }
    const struct rule *winner =
        chain_walk(spec, chosen, &failed, step->reason, sizeof step->reason);
    if (winner != NULL && winner->kind == RULE_WHEN) {
      json_t *object = stage_object_new(STAGE_WHEN, OUTCOME_MATCHED);
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
  if (last != NULL && stage_object_stage(last) == STAGE_WHEN &&
      stage_object_outcome(last) == OUTCOME_ERROR) {
    step->action = CHAIN_FAILED;
    const json_t *errors = json_at(last, "errors"); /* before the last, what was false */
    const char *why = json_string_value(json_array_get(errors, json_array_size(errors) - 1));
    (void)snprintf(step->reason, sizeof step->reason, "%s",
                   why ? why : "a when() expression cannot be evaluated");
    return;
  }
  bool has_when = false;
  for (size_t i = 0; i < first; i++)
    has_when |= chain_shows(spec, &spec->rules[i]);
  if (has_when && done == 0) {
    yield_stage(step, chain_when(spec, first));
    return;
  }
  if (labels == 0) {
    step->action = CHAIN_NO_MATCH;
    (void)snprintf(step->reason, sizeof step->reason, "%s",
                   has_when ? "no when() rule is true" : "no rule can be selected");
    return;
  }
  if (labels == 1) {
    json_t *object = stage_object_new(STAGE_AUTO_SELECT, OUTCOME_MATCHED);
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
    yield_stage(step, chain_tag(spec, STAGE_PHASE1_TAG, spec->agent_text));
  else
    call_stage(spec, spec->stages[i], stages, replies, n, step);
}

void chain_step_deinit(struct chain_step *step) {
  json_decref(step->errors);
  json_decref(step->object);
  *step = (struct chain_step){0};
}
