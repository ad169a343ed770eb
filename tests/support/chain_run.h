/* chain_run.h - a judge chain driven to its end on scripted replies, for unit and data tests.
 *
 *   chain_run(&run, case)   case: an object as tests/data/judge/README.md describes
 *   chain_run_deinit(&run)
 *
 * Each step is asked for twice: the chain is a function of what was recorded. */
#ifndef SEGUE_TESTS_CHAIN_RUN_H
#define SEGUE_TESTS_CHAIN_RUN_H

#include "format/json_object.h"
#include "judge/chain.h"
#include "support/data.h"

#include <string.h>

/* Chains are run with these: TEST_GROUP(chain_setup, chain_teardown) compiles it. */
static struct chain_schemas schemas;

static inline int chain_setup(void **state) {
  struct err err = {0};
  (void)state;
  if (!chain_schemas_init(&schemas, &err))
    fail_msg("%s", err.text);
  return 0;
}

static inline int chain_teardown(void **state) {
  (void)state;
  chain_schemas_deinit(&schemas);
  return 0;
}

enum { CHAIN_RUN_REPLIES = 64, CHAIN_RUN_STEPS = 200 };

struct chain_run {
  struct arena arena;
  struct rule rules[LIMIT_RULE_COUNT];
  enum judge_stage stages_wanted[STAGE_COUNT];
  struct chain_spec spec;
  json_t *env;
  struct chain_reply replies[CHAIN_RUN_REPLIES];
  size_t reply_count;
  json_t *stages; /* the stage objects */
  size_t calls, reasks;
  json_t *reask_errors; /* of the last reask */
  enum chain_action action;
  enum judge_stage method; /* VERDICT */
  int rule;                /* VERDICT */
  char reason[LIMIT_ERROR_TEXT_BYTES];
  const char *trouble; /* the run could not go on: a call that no reply was written for */
};

static inline void chain_run_rule(struct chain_run *run, const char *name, const json_t *rule,
                                  size_t i) {
  struct str condition = json_is_string(rule) ? data_str(rule) : data_get(rule, "condition");
  struct err err = {0};
  assert_true(i < LIMIT_RULE_COUNT);
  if (!rule_parse(&run->arena, condition, &run->rules[i], NULL, &err))
    fail_msg("%s: rule %zu: %s", name, i + 1, err.text);
  run->rules[i].number = (int)i + 1;
  run->rules[i].next = STR("COMPLETE");
  run->rules[i].appendix = data_get(rule, "appendix");
  run->rules[i].interactive_only = json_is_true(json_object_get(rule, "interactive_only"));
}

/* The rules, stages and settings of a case; no step is made yet. */
static inline void chain_run_init(struct chain_run *run, const json_t *c) {
  const char *name = json_string_value(json_object_get(c, "name"));
  const json_t *stages = json_object_get(c, "stages");
  *run = (struct chain_run){.stages = json_array(), .method = STAGE_COUNT};
  json_t *env = json_object_get(c, "env");
  run->env = json_is_object(env) ? json_incref(env) : json_object();
  run->spec = (struct chain_spec){
      .schemas = &schemas,
      .rules = run->rules,
      .rule_count = json_array_size(json_object_get(c, "rules")),
      .interactive = json_is_true(json_object_get(c, "interactive")),
      .movement = json_object_get(c, "movement") ? data_get(c, "movement") : STR("review"),
      .stages = run->stages_wanted,
      .max_reasks = (int)json_integer_value(json_object_get(c, "max_reasks")),
      .reasks_said = json_object_get(c, "max_reasks") != NULL,
      .agent_text = data_get(c, "text"),
      .mark = json_is_true(json_object_get(c, "unasked")) ? STR("") : STR("k7wd"),
      .own_scope = json_is_true(json_object_get(c, "command")) ? TAG_COMMAND : TAG_AGENT,
      .own_tag = !json_is_false(json_object_get(c, "own_tag")),
      .env = run->env,
  };
  JSON_EACH(json_object_get(c, "rules"), i, v)
    chain_run_rule(run, name, v, i);
  if (stages == NULL) {
    static const enum judge_stage all[] = {STAGE_STRUCTURED_OUTPUT, STAGE_PHASE3_TAG,
                                           STAGE_PHASE1_TAG, STAGE_AI_JUDGE};
    memcpy(run->stages_wanted, all, sizeof all);
    run->spec.stage_count = ARRAY_LEN(all);
  }
  JSON_EACH(stages, i, v) {
    if (!judge_stage_from_name(data_str(v), &run->stages_wanted[i]))
      fail_msg("%s: no stage %s", name, json_string_value(v));
    run->spec.stage_count++;
  }
}

/* The next reply written for the stage; false when there is none. Borrows from the case. */
static inline bool chain_run_reply(struct chain_run *run, const json_t *c, enum judge_stage stage) {
  const json_t *list = json_object_get(json_object_get(c, "replies"), judge_stage_name(stage));
  size_t used = 0;
  for (size_t i = 0; i < run->reply_count; i++)
    used += run->replies[i].stage == stage;
  const json_t *reply = json_is_array(list) ? json_array_get(list, used) : list;
  if (reply == NULL || (!json_is_array(list) && used > 0))
    return false;
  assert_true(run->reply_count < CHAIN_RUN_REPLIES);
  struct str text = json_is_string(reply) ? data_str(reply) : data_get(reply, "text");
  bool fails = json_object_get(reply, "error") != NULL;
  run->replies[run->reply_count] = (struct chain_reply){
      .stage = stage,
      .call = 10 + (long)run->reply_count,
      .error_class = json_string_value(json_object_get(reply, "error")),
      .error_text = fails ? text : STR(""),
      .text = fails ? STR("") : text,
      .structured = json_object_get(reply, "structured"),
      .duration_ms = 7,
  };
  run->reply_count++;
  return true;
}

static inline void chain_run_same(const struct chain_step *a, const struct chain_step *b) {
  assert_int_equal(a->action, b->action);
  assert_int_equal(a->stage, b->stage);
  assert_int_equal(a->reask, b->reask);
  assert_ptr_equal(a->rule, b->rule);
  assert_string_equal(a->reason, b->reason);
  assert_true(a->object == b->object || json_equal(a->object, b->object));
  assert_true(a->errors == b->errors || json_equal(a->errors, b->errors));
}

static inline void chain_run(struct chain_run *run, const json_t *c) {
  chain_run_init(run, c);
  for (int i = 0; i < CHAIN_RUN_STEPS; i++) {
    struct chain_step step, again;
    chain_next(&run->spec, run->stages, run->replies, run->reply_count, &step);
    chain_next(&run->spec, run->stages, run->replies, run->reply_count, &again);
    chain_run_same(&step, &again);
    chain_step_deinit(&again);
    run->action = step.action;
    if (step.action == CHAIN_CALL) {
      run->calls++;
      run->reasks += step.reask;
      if (step.reask) {
        json_decref(run->reask_errors);
        run->reask_errors = json_incref(step.errors);
      }
      if (!chain_run_reply(run, c, step.stage))
        run->trouble = judge_stage_name(step.stage);
    } else if (step.action == CHAIN_STAGE) {
      json_array_append(run->stages, step.object);
    } else {
      run->method = step.stage;
      run->rule = step.rule ? step.rule->number : 0;
      memcpy(run->reason, step.reason, sizeof run->reason);
    }
    bool over = (step.action != CHAIN_CALL && step.action != CHAIN_STAGE) || run->trouble;
    chain_step_deinit(&step);
    if (over)
      return;
  }
  fail_msg("the chain did not end within %d steps", CHAIN_RUN_STEPS);
}

static inline void chain_run_deinit(struct chain_run *run) {
  arena_deinit(&run->arena);
  json_decref(run->stages);
  json_decref(run->env);
  json_decref(run->reask_errors);
}

static inline const char *chain_action_name(enum chain_action action) {
  static const char *const names[] = {"call",     "stage",       "verdict",
                                      "no_match", "unavailable", "failed"};
  return names[action];
}

#endif
