/* Says what comes next in judging a turn: a call, a stage to record, or the verdict. */
#include "judge/chain.h"

#include "base/buf.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/chain_internal.h"
#include "judge/usage.h"

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
  for (size_t i = 0; i < spec->rule_count && !spec->deterministic; i++) {
    const struct rule *rule = &spec->rules[i];
    if (chain_shows(spec, rule) && rule->kind != RULE_WHEN && !label_seen(out, n, rule->label))
      out[n++] = rule;
  }
  return n;
}

size_t chain_shown(const struct chain_spec *spec, const struct rule **out) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(spec, offered);
  for (size_t i = 0; i < n; i++)
    out[i] = offered[(i + (size_t)spec->rotation) % n];
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

/* Returns the place of the first rule with a label, rule_count if there is none. */
static size_t chain_first_label(const struct chain_spec *spec) {
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

/* --- the chain --- */

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

static void put_str(json_t *object, const char *key, struct str text) {
  if (text.n > 0)
    json_object_set_new(object, key, json_text(text));
}

/* Puts who was asked and with which prompt. */
static void chain_put_judge(json_t *object, const struct chain_reply *reply) {
  put_str(object, "provider", reply->provider);
  put_str(object, "model", reply->model);
  put_str(object, "prompt_sha256", reply->prompt_sha256);
}

/* Adds the calls of a stage, in order, and what they used. */
static void add_calls(json_t *object, const struct chain_reply *replies, size_t n,
                      enum judge_stage stage) {
  int64_t total_ms = 0;
  json_t *usage = NULL;
  for (size_t i = 0; i < n; i++)
    if (replies[i].stage == stage) {
      json_array_append_new(json_at(object, "calls"), json_integer(replies[i].call));
      total_ms += replies[i].duration_ms;
      usage_add(&usage, replies[i].usage);
    }
  if (usage != NULL)
    json_put(object, "usage", usage);
  json_put(object, "duration_ms", json_integer(total_ms));
}

static bool lists_stage(const struct chain_spec *spec, enum judge_stage stage) {
  for (size_t i = 0; i < spec->stage_count; i++)
    if (spec->stages[i] == stage)
      return true;
  return false;
}

/* Adds what was wrong with the answers that reasks corrected: the judgment records all of it. */
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

/* Returns whether the structured_output reply holds a tag that can decide as phase3_tag, if that
 * stage is still to come. */
static bool saved_tag(const struct chain_spec *spec, const json_t *stages,
                      const struct chain_reply *reply) {
  struct tag_result tag;
  return reply != NULL && reply->error_class == NULL && lists_stage(spec, STAGE_PHASE3_TAG) &&
         stage_object_find(stages, STAGE_PHASE3_TAG) == NULL &&
         chain_find_tag(spec, reply->text, STAGE_PHASE3_TAG, &tag) && !tag.ambiguous &&
         chain_offers(spec, tag.tag.number);
}

static bool chain_has_no_value(enum stage_outcome outcome) {
  return outcome == OUTCOME_UNREADABLE || outcome == OUTCOME_INVALID ||
         outcome == OUTCOME_OUT_OF_RANGE || outcome == OUTCOME_HIDDEN;
}

/* Returns why asking would be pointless, an earlier stage's auth or quota trouble, or NULL. */
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

void chain_yield(struct chain_step *step, json_t *object) {
  step->action = CHAIN_STAGE;
  step->stage = stage_object_stage(object);
  if (json_at(object, "duration_ms") == NULL)
    json_put(object, "duration_ms", json_integer(0));
  step->object = object;
}

void chain_call_stage(const struct chain_spec *spec, enum judge_stage stage, const json_t *stages,
                      const struct chain_reply *replies, size_t n, struct chain_step *step) {
  int count;
  const struct chain_reply *reply = last_reply_of(replies, n, stage, &count);
  const struct chain_reply *structured = last_answer_of(replies, n, STAGE_STRUCTURED_OUTPUT);
  if (reply == NULL && stage == STAGE_PHASE3_TAG) {
    const json_t *before = stage_object_find(stages, STAGE_STRUCTURED_OUTPUT);
    if (before && chain_has_no_value(stage_object_outcome(before)) &&
        saved_tag(spec, stages, structured)) {
      json_t *object = chain_tag(spec, stages, stage, structured->text);
      json_array_append_new(json_at(object, "calls"), json_integer(structured->call));
      chain_put_judge(object, structured);
      json_put(object, "reason", json_string_nocheck("from the structured_output reply"));
      chain_yield(step, object);
      return;
    }
  }
  if (reply == NULL) {
    const char *trouble = provider_trouble(stages);
    if (trouble != NULL) {
      json_t *object = stage_object_new(stage, OUTCOME_SKIPPED);
      json_put(object, "class", json_string_nocheck(trouble));
      chain_yield(step, object);
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
    object = chain_tag(spec, stages, stage, answered->text);
  } else {
    object = chain_value(spec, stage, answered);
    bool reask = answered == reply && chain_has_no_value(stage_object_outcome(object)) &&
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
  if (reply->error_class != NULL) { /* also of a reask: an answer before it still counts */
    json_put(object, "class", json_string_nocheck(reply->error_class));
    stage_object_error(object, reply->error_text.p ? reply->error_text.p : "", reply->error_text.n);
  }
  chain_put_judge(object, answered ? answered : reply);
  add_calls(object, replies, n, stage);
  chain_yield(step, object);
}

/* Returns the index in spec->stages of the next stage without an object; stage_count if all have
 * one. */
static size_t next_stage(const struct chain_spec *spec, const json_t *stages) {
  size_t i = 0;
  while (i < spec->stage_count && stage_object_find(stages, spec->stages[i]) != NULL)
    i++;
  return i;
}

/* Finds the first stage in which evidence conflicted, NULL if there is none. */
static const json_t *first_conflict(const json_t *stages) {
  size_t i;
  json_t *object;
  json_array_foreach(stages, i, object) {
    if (stage_object_outcome(object) == OUTCOME_AMBIGUOUS && !stage_object_is_vote(object))
      return object;
  }
  return NULL;
}

/* Appends a stage's name and its last error. */
static void append_why(char *reason, size_t bytes, const json_t *object, const char *class) {
  const json_t *errors = json_at(object, "errors");
  const char *text = json_string_value(json_array_get(errors, json_array_size(errors) - 1));
  size_t n = strlen(reason);
  (void)snprintf(reason + n, bytes - n, " (%s: %s%s%.200s)",
                 json_string_value(json_at(object, "stage")), class ? class : "", class ? ": " : "",
                 text ? text : "");
}

static void finish_unmatched(const struct chain_spec *spec, const json_t *stages,
                             struct chain_step *step) {
  bool called = false, readable = false;
  const json_t *failed = NULL, *conflict = first_conflict(stages);
  size_t i;
  json_t *object;
  json_array_foreach(stages, i, object) {
    if (!stage_calls(stage_object_stage(object)) || stage_object_is_vote(object))
      continue;
    enum stage_outcome outcome = stage_object_outcome(object);
    called = true;
    readable |=
        outcome != OUTCOME_ERROR && outcome != OUTCOME_SKIPPED && outcome != OUTCOME_UNREADABLE;
    if (failed == NULL && outcome == OUTCOME_ERROR)
      failed = object;
  }
  const char *reason = "no stage named a rule that was offered";
  step->action = called && !readable ? CHAIN_UNAVAILABLE : CHAIN_NO_MATCH;
  if (step->action == CHAIN_UNAVAILABLE)
    reason = "no stage got a readable answer from the judge";
  else if (spec->stage_count == 0)
    reason = "no rule holds and no stage is configured";
  else if (conflict != NULL)
    reason = "the evidence conflicts and no stage is left";
  (void)snprintf(step->reason, sizeof step->reason, "%s", reason);
  if (conflict != NULL)
    append_why(step->reason, sizeof step->reason, conflict, NULL);
  if (failed != NULL) { /* a log may lack the class */
    const char *class = json_string_value(json_at(failed, "class"));
    append_why(step->reason, sizeof step->reason, failed, class ? class : "no class");
  }
}

/* Finds, once a label was chosen, the rule that wins with it, or an earlier when() that is true. */
static void after_match(const struct chain_spec *spec, const json_t *last,
                        struct chain_step *step) {
  const struct rule *chosen = rule_of(spec, last);
  bool failed;
  if (chosen == NULL) {
    step->action = CHAIN_FAILED;
    (void)snprintf(step->reason, sizeof step->reason, "the record names a rule that is not there");
    return;
  }
  step->stage = stage_object_stage(last);
  if (chosen->kind == RULE_WHEN || step->stage == STAGE_HUMAN) { /* a person's decision stands */
    step->action = CHAIN_VERDICT;
    step->rule = chosen;
    return;
  }
  const struct rule *winner = chain_walk(spec, chosen, &failed, step->reason, sizeof step->reason);
  if (winner == NULL || winner->kind != RULE_WHEN) {
    step->action = winner ? CHAIN_VERDICT : CHAIN_NO_MATCH;
    if (failed)
      step->action = CHAIN_FAILED;
    step->rule = winner;
    return;
  }
  json_t *object =
      stage_object_new(winner->aggregate ? STAGE_AGGREGATE : STAGE_WHEN, OUTCOME_MATCHED);
  struct buf note = {0};
  bool before = winner->number < chosen->number;
  buf_printf(&note, STR_FMT " is true and %s \"" STR_FMT "\"%s", STR_ARG(winner->when_text),
             before ? "stands before" : "follows", STR_ARG(chosen->label),
             before ? "" : ", whose guard is false");
  json_put(object, "rule", json_integer(winner->number));
  json_put(object, "reason", json_text(buf_view(&note)));
  buf_deinit(&note);
  chain_yield(step, object);
}

static void after_broken_when(const json_t *last, struct chain_step *step) {
  const json_t *errors = json_at(last, "errors"); /* those before the last one say what was false */
  const char *why = json_string_value(json_array_get(errors, json_array_size(errors) - 1));
  step->action = CHAIN_FAILED;
  (void)snprintf(step->reason, sizeof step->reason, "%s",
                 why ? why : "a when() expression cannot be evaluated");
}

static bool is_deterministic(const json_t *object) {
  enum judge_stage stage = stage_object_stage(object);
  return stage == STAGE_WHEN || stage == STAGE_AGGREGATE;
}

static void select_only_label(const struct rule *rule, struct chain_step *step) {
  json_t *object = stage_object_new(STAGE_AUTO_SELECT, OUTCOME_MATCHED);
  json_put(object, "rule", json_integer(rule->number));
  json_put(object, "reason", json_string_nocheck("the only rule that can be selected"));
  chain_yield(step, object);
}

/* Returns true if not enough votes of a panel's stage agreed. */
static bool is_split(const json_t *object) {
  return object != NULL && stage_calls(stage_object_stage(object)) &&
         stage_object_outcome(object) == OUTCOME_AMBIGUOUS && !stage_object_is_vote(object);
}

static void next_in_list(const struct chain_spec *spec, const json_t *stages,
                         const struct chain_reply *replies, size_t n, struct chain_step *step) {
  size_t i = next_stage(spec, stages);
  const json_t *last = json_array_get(stages, json_array_size(stages) - 1);
  if (spec->split_asks && is_split(last)) {
    step->action = CHAIN_SPLIT;
    (void)snprintf(step->reason, sizeof step->reason, "the judges do not agree");
    append_why(step->reason, sizeof step->reason, last, NULL);
  } else if (i == spec->stage_count)
    finish_unmatched(spec, stages, step);
  else if (spec->stages[i] == STAGE_PHASE1_TAG)
    chain_yield(
        step, chain_tag(spec, stages, STAGE_PHASE1_TAG, spec->joined ? STR("") : spec->agent_text));
  else if (spec->panel > 0)
    chain_panel(spec, spec->stages[i], stages, replies, n, step);
  else
    chain_call_stage(spec, spec->stages[i], stages, replies, n, step);
}

static const char *no_label_reason(const struct chain_spec *spec, bool has_when) {
  if (spec->deterministic)
    return "every child failed, and no rule takes that";
  return has_when ? "no when() rule is true" : "no rule can be selected";
}

void chain_next(const struct chain_spec *spec, const json_t *stages,
                const struct chain_reply *replies, size_t n, struct chain_step *step) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  assert(spec->rule_count <= LIMIT_RULE_COUNT);
  assert(n == 0 || replies != NULL);
  *step = (struct chain_step){.stage = STAGE_COUNT};
  size_t done = json_array_size(stages), labels = chain_offered(spec, offered);
  size_t first = chain_first_label(spec);
  const json_t *last = done > 0 ? json_array_get(stages, done - 1) : NULL;
  bool over = last != NULL && !stage_object_is_vote(last);
  enum stage_outcome outcome = over ? stage_object_outcome(last) : OUTCOME_COUNT;
  bool has_when = false;
  for (size_t i = 0; i < spec->rule_count; i++)
    has_when |= chain_shows(spec, &spec->rules[i]) && (i < first || spec->rules[i].aggregate);

  if (outcome == OUTCOME_MATCHED) {
    after_match(spec, last, step);
  } else if (outcome == OUTCOME_ERROR && is_deterministic(last)) {
    after_broken_when(last, step);
  } else if (has_when && done == 0) {
    chain_yield(step, chain_when(spec, first));
  } else if (labels == 0) {
    step->action = CHAIN_NO_MATCH;
    (void)snprintf(step->reason, sizeof step->reason, "%s", no_label_reason(spec, has_when));
  } else if (labels == 1) {
    select_only_label(offered[0], step);
  } else {
    next_in_list(spec, stages, replies, n, step);
  }
}

void chain_step_deinit(struct chain_step *step) {
  json_decref(step->errors);
  json_decref(step->object);
  *step = (struct chain_step){0};
}
