/* Turns an event into the records and effects that follow from it. */
#include "core/decide.h"

#include "core/checks.h"
#include "core/fold.h"
#include "core/group.h"
#include "core/guard.h"
#include "core/human.h"
#include "core/monitor.h"
#include "core/report_file.h"
#include "core/step.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "judge/usage.h"

#include <assert.h>
#include <stdlib.h>

/* --- what a turn is judged by ---
 *
 * Shows a turn as the chain of stages sees it: its rules, the agent's text, the input
 * of expressions, and the finished judge calls. It serves a decision and its replay alike.
 *
 *   struct judging_turn j;
 *   if (judging_of(&j, core, turn, schemas)) chain_next(&j.spec, stages, j.replies, j.count, ...)
 *   judging_deinit(&j)
 *
 * All is borrowed from the core except `env`. */

static json_t *when_env(const struct core *core, const struct turn *turn) {
  json_t *env = json_object(), *values = json_clone_top(core->structured);
  const struct movement *m = core_movement(core, turn);
  json_put(env, "iteration", json_integer(turn->iteration));
  json_put(env, "movement_iteration", json_integer(turn->movement_iteration));
  if (turn->has_exit)
    json_put(env, "exit", json_integer(checks_exit(turn)));
  if (turn->has_exit || core->check.turn > 0)
    json_put(env, "last_exit", json_integer(turn->has_exit ? checks_exit(turn) : core->check.exit));
  /* At least this many files changed if an attempt was cut off, but nobody knows all of them. A
   * turn that made no call has neither files nor a reason. */
  int64_t changed = (int64_t)json_array_size(turn->files) + turn->files_more;
  const char *why = turn->shared ? "others ran beside it" : turn->unseen;
  bool counted = turn->files != NULL && !turn->shared && (changed > 0 || why == NULL);
  if (counted)
    json_put(env, "changed", json_integer(changed));
  if (counted && why == NULL && turn->files_more == 0)
    json_put(env, "files", json_incref(turn->files));
  else if (why != NULL || counted)
    json_put(env, EXPR_WHY, json_text(str_from(why ? why : "there are too many to name all")));
  json_put(env, "tests", json_incref(turn->tests));
  json_t *gates = checks_json(core, turn);
  json_put(env, "checks", gates);
  /* A rule may look at its own movement's value: this run's, not an earlier one's. */
  json_object_setn_new(values, m->name.p, m->name.n,
                       turn->structured ? json_incref(turn->structured) : json_null());
  /* Each value says whether it is a sentinel, true or false, because an expression cannot ask for a
   * missing member. */
  for (size_t i = 0; i < core->workflow->movement_count; i++) {
    const struct movement *each = &core->workflow->movements[i];
    const json_t *value = json_object_getn(values, each->name.p, each->name.n);
    const json_t *own = json_at(value, "sentinel");
    bool is_sentinel = json_object_size(value) == 1 && json_is_object(own);
    if (each->structured == NULL || !json_is_object(value) || (own != NULL && !is_sentinel))
      continue;
    json_t *told = json_clone_top(value);
    json_put(told, "sentinel", json_boolean(is_sentinel));
    json_object_setn_new(values, each->name.p, each->name.n, told);
  }
  json_put(env, "structured", values);
  if (turn->parts != NULL)
    group_env(core, turn, env);
  return env;
}

/* Collects the finished judge calls as the chain wants them. Returns false while one is open. */
static bool judge_replies(const struct turn *turn, struct chain_reply *replies, size_t max,
                          size_t *count) {
  *count = 0;
  for (const struct call *c = turn->calls; c; c = c->next) {
    if (call_is_own(c))
      continue;
    if (c->state == CALL_RUNNING || c->state == CALL_WAITING)
      return false;
    assert(*count < max);
    replies[(*count)++] = (struct chain_reply){
        .stage = c->stage,
        .vote = c->vote,
        .call = c->id,
        .error_class = c->state == CALL_FAILED ? error_class_name(c->class) : NULL,
        .error_text = c->state == CALL_FAILED ? buf_view(&c->text) : STR(""),
        .text = c->state == CALL_DONE ? buf_view(&c->text) : STR(""),
        .structured = c->structured,
        .provider = str_from(c->provider),
        .model = str_from(c->model),
        .prompt_sha256 = str_from(c->prompt_sha256),
        .usage = c->usage,
        .duration_ms = c->duration_ms,
    };
  }
  return true;
}

bool judging_of(struct judging_turn *j, const struct core *core, const struct turn *turn,
                const struct chain_schemas *schemas) {
  const struct movement *m = core_movement(core, turn);
  if (!judge_replies(turn, j->replies, TURN_JUDGE_CALLS, &j->count))
    return false;
  j->env = NULL;
  for (size_t i = 0; i < m->rule_count && j->env == NULL; i++)
    if (m->rules[i].when != NULL)
      j->env = when_env(core, turn);
  j->spec = (struct chain_spec){
      .schemas = schemas,
      .rules = m->rules,
      .rule_count = m->rule_count,
      .interactive = json_is_true(json_at(core->config, "interactive")),
      .movement = m->own_name,
      .stages = m->judge.stages,
      .stage_count = m->judge.stage_count,
      .max_reasks = m->judge.max_reasks,
      .panel = (int)json_array_size(m->judge.panel),
      .agree = m->judge.agree,
      .split_asks = m->judge.split_asks,
      .agent_text = buf_view(&turn->text),
      .joined = turn->parts != NULL,
      .env = j->env,
      .deterministic = turn->parts != NULL && group_all_failed(turn),
  };
  return true;
}

void judging_deinit(struct judging_turn *j) {
  json_decref(j->env); /* the replies are many and large, and nobody needs them any more */
  j->env = NULL;
  j->count = 0;
}

/* --- decide --- */

/* --- turns --- */

/* Returns the options of a judge's call, with its effort. */
static json_t *judge_options(const struct step *s, const struct movement *m,
                             const struct step_call *n) {
  json_t *options = step_merged(NULL, m->judge.options);
  struct str model = n->model.n > 0 ? n->model : core_model_of(s->core->config, n->provider);
  const char *effort =
      capability_judge_effort(capability_find(s->env->providers, n->provider), model);
  bool said = m->judge.effort != NULL || json_object_get(options, "effort") != NULL;
  if (!said && effort == NULL)
    return options;
  if (options == NULL)
    options = json_object();
  if (m->judge.effort != NULL)
    json_object_set_nocheck(options, "effort", (json_t *)m->judge.effort);
  else if (!said)
    json_object_set_new_nocheck(options, "effort", json_string(effort));
  return options;
}

static void judge_call(struct step *s, struct turn *turn, const struct chain_spec *spec,
                       const struct chain_step *step) {
  const struct core *core = s->core;
  const struct movement *m = core_movement(core, turn);
  struct step_call n = {.purpose = step->reask ? PURPOSE_REASK : PURPOSE_JUDGE,
                        .stage = step->stage,
                        .vote = step->vote,
                        .timeout_ms = (uint64_t)m->judge.timeout_ms};
  struct chain_spec asked = *spec;
  asked.rotation = (int)json_int_at(json_at(core->config, "rejudges"), "rotation");
  if (m->judge.rotates && step->vote > 0)
    asked.rotation += step->vote - 1;
  struct prompt_view view;
  char nonce[17] = "";
  struct buf judged = {0};
  struct joined joined;
  step_view(s, turn, nonce, &view);
  if (kept_judged(turn, &judged, &joined)) {
    view.answer = buf_view(&judged);
    view.answer_joined = &joined;
    view.answer_seq = 0;
  }
  step_turn_nonce(core, turn, view.answer, nonce);
  struct buf checks = {0}, tests = {0};
  checks_tell(core, turn, &checks);
  checks_tests(turn->tests, &tests);
  view.checks = buf_view(&checks);
  view.tests = buf_view(&tests);
  view.no_pass = checks_is_no_pass(turn->tests);
  if (step->vote > 0)
    core_panel_backend(core->workflow, core->config, turn->movement, step->vote, &n.provider,
                       &n.model);
  else
    core_judge_backend(core->workflow, core->config, turn->movement, &n.provider, &n.model);
  view.by_tool = core_judges_by_tool(core->workflow, core->config, turn->movement, step->vote,
                                     s->env->providers);
  n.options = judge_options(s, m, &n);
  n.schema = chain_call_schema(spec, step->stage);
  if (step->reask) {
    struct str bad = {"", 0};
    for (const struct call *c = turn->calls; c; c = c->next)
      if (c->stage == step->stage && c->vote == step->vote) {
        bad = buf_view(&c->text);
        view.bad_seq = c->text_seq;
      }
    const struct prompt_correction correction = {.schema = n.schema,
                                                 .output = bad,
                                                 .errors = step->errors,
                                                 .spec = &asked,
                                                 .stage = step->stage};
    prompt_reask(&view, &correction, &n.prompt);
  } else {
    prompt_judge(&view, &asked, step->stage, &n.prompt);
  }
  buf_deinit(&checks);
  buf_deinit(&tests);
  buf_deinit(&judged);
  free(joined.joints);
  step_start_call(s, turn, &n);
}

/* Puts who judged, from the last stage that named a rule and asked somebody, and what all stages
 * used. */
static void decide_put_judge(struct record_draft *d, const json_t *stages) {
  const json_t *judged = NULL, *object;
  json_t *usage = NULL;
  size_t i;
  json_array_foreach((json_t *)stages, i, object) {
    usage_add(&usage, json_at(object, "usage"));
    bool votes = json_at(object, "vote") != NULL;
    if (json_at(object, "rule") != NULL && json_at(object, "provider") != NULL && !votes)
      judged = object;
  }
  record_put_bytes(d, MEMBER_PROVIDER, json_view(json_at(judged, "provider")));
  record_put_bytes(d, MEMBER_MODEL, json_view(json_at(judged, "model")));
  record_put_bytes(d, MEMBER_PROMPT_SHA256, json_view(json_at(judged, "prompt_sha256")));
  record_put_tree(d, MEMBER_USAGE, usage);
}

static void verdict(struct step *s, struct turn *turn, const struct chain_step *step) {
  const struct movement *m = core_movement(s->core, turn);
  const struct rule *rule = step->rule;
  struct record_draft d;
  struct buf tag = {0};
  rule_tag(m->own_name, rule->number, &tag);
  step_turn_record(s, &d, RECORD_JUDGMENT, turn);
  record_put_text(&d, MEMBER_MOVEMENT, m->name);
  record_put_number(&d, MEMBER_RULE, rule->number);
  record_put_text(&d, MEMBER_CONDITION, rule->condition);
  if (m->group == NO_GROUP)
    record_put_text(&d, MEMBER_NEXT, rule->next);
  else
    record_put_null(&d, MEMBER_NEXT);
  record_put_text(&d, MEMBER_TAG, buf_view(&tag));
  record_put_word(&d, MEMBER_METHOD, judge_stage_name(step->stage));
  record_put_word(&d, MEMBER_MATCH_METHOD, judge_stage_match_method(step->stage));
  decide_put_judge(&d, turn->stages);
  record_put_tree(&d, MEMBER_STAGES, json_clone_top(turn->stages));
  step_emit(s, &d);
  buf_deinit(&tag);
}

/* Judges a turn without a rule: the answers named none, or an expression cannot be evaluated.
 * `failure` is how the session ends. */
static void no_verdict(struct step *s, struct turn *turn, enum session_outcome failure,
                       const char *reason) {
  static const enum member none[] = {MEMBER_RULE, MEMBER_CONDITION, MEMBER_NEXT,
                                     MEMBER_TAG,  MEMBER_METHOD,    MEMBER_MATCH_METHOD};
  struct record_draft d;
  step_turn_record(s, &d, RECORD_JUDGMENT, turn);
  record_put_text(&d, MEMBER_MOVEMENT, s->core->workflow->movements[turn->movement].name);
  for (size_t i = 0; i < ARRAY_LEN(none); i++)
    record_put_null(&d, none[i]);
  record_put_word(&d, MEMBER_FAILURE, session_outcome_name(failure));
  record_put_tree(&d, MEMBER_REASON, json_text(str_from(reason)));
  decide_put_judge(&d, turn->stages);
  record_put_tree(&d, MEMBER_STAGES, json_clone_top(turn->stages));
  step_emit(s, &d);
}

/* Does one step of judging. Returns false when it waits for a call. */
static bool judge_turn(struct step *s, struct turn *turn) {
  struct buf why = {0};
  struct str last =
      json_view(json_at(json_array_get(turn->stages, json_array_size(turn->stages) - 1), "stage"));
  if (turn->verdict != NULL && !str_eq_c(last, judge_stage_name(STAGE_HUMAN))) {
    /* A person's verdict becomes a stage like others, with who gave it and why. */
    struct record_draft d;
    step_turn_record(s, &d, RECORD_STAGE, turn);
    record_put_body(
        &d, json_pack("{ss ss s[] sO sO* sO* si}", "stage", judge_stage_name(STAGE_HUMAN),
                      "outcome", stage_outcome_name(OUTCOME_MATCHED), "calls", "rule",
                      json_at(turn->verdict, "rule"), "reason", json_at(turn->verdict, "why"), "by",
                      json_at(turn->verdict, "by"), "duration_ms", 0));
    step_emit(s, &d);
    return true;
  }
  if (turn->verdict == NULL && group_lacks_items(s->core, turn, &why)) {
    no_verdict(s, turn, END_FAILED, buf_c(&why));
    buf_deinit(&why);
    return true;
  }
  struct judging_turn judging;
  if (!judging_of(&judging, s->core, turn, s->env->schemas))
    return false;
  struct chain_step step;
  bool more = true;
  chain_next(&judging.spec, turn->stages, judging.replies, judging.count, &step);
  switch (step.action) {
  case CHAIN_CALL:
    more = !s->env->draining;
    if (more)
      judge_call(s, turn, &judging.spec, &step);
    break;
  case CHAIN_STAGE: {
    struct record_draft d;
    step_turn_record(s, &d, RECORD_STAGE, turn);
    record_put_body(&d, json_incref(step.object));
    step_emit(s, &d);
    break;
  }
  case CHAIN_VERDICT:
    verdict(s, turn, &step);
    break;
  case CHAIN_NO_MATCH:
    no_verdict(s, turn, END_RULE_NO_MATCH, step.reason);
    break;
  case CHAIN_FAILED:
    no_verdict(s, turn, END_FAILED, step.reason);
    break;
  case CHAIN_SPLIT:
    human_ask_rule(s, turn, &judging.spec, step.reason);
    break;
  case CHAIN_UNAVAILABLE:
    more = step_halt(s, "judge_unavailable", turn, CLASS_NONE, str_from(step.reason), NULL);
    break;
  }
  chain_step_deinit(&step);
  judging_deinit(&judging);
  return more;
}

static bool has_running_call(const struct turn *turn) {
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call->state == CALL_RUNNING)
      return true;
  return false;
}

/* Ends one child of a group that stops: one that waits for no call, unless `running_too`. Returns
 * false if there is none. */
static bool group_end_one(struct step *s, bool running_too) {
  for (struct turn *turn = s->core->turns; turn; turn = turn->next)
    if (group_stops(s->core, turn) && (running_too || !has_running_call(turn))) {
      struct record_draft d;
      step_turn_record(s, &d, RECORD_TURN_END, turn);
      record_put_number(&d, MEMBER_PARENT_TURN, turn->group);
      record_put_word(&d, MEMBER_OUTCOME, "cancelled");
      record_put_text(&d, MEMBER_MESSAGE, STR("another one failed, and stop_on is error"));
      step_emit(s, &d);
      return true;
    }
  return false;
}

static bool group_advance(struct step *s, struct turn *turn) {
  const struct movement *group = core_movement(s->core, turn);
  if (turn->part_failed > 0 && group->stops_on_error)
    return group_end_one(s, false);
  if (turn->part_next == turn->part_count || (long)turn->part_open >= group->concurrency ||
      s->env->draining)
    return false;
  size_t index = group_part_movement(group, turn->part_next);
  struct record_draft d;
  step_record(s, &d, RECORD_TURN_START);
  record_put_number(&d, MEMBER_TURN, s->core->turn_count + 1);
  record_put_text(&d, MEMBER_MOVEMENT, s->core->workflow->movements[index].name);
  record_put_number(&d, MEMBER_PARENT_TURN, turn->id);
  if (group->for_each != NULL)
    record_put_number(&d, MEMBER_ITEM, (int64_t)turn->part_next + 1);
  record_put_number(&d, MEMBER_ITERATION, turn->iteration);
  record_put_number(&d, MEMBER_MOVEMENT_ITERATION, s->core->movement_counts[index] + 1);
  step_emit(s, &d);
  return true;
}

/* Moves one turn on as far as one record goes. Returns false when it waits. */
static bool advance_turn(struct step *s, struct turn *turn) {
  struct call *call;
  struct buf why = {0};
  bool more;
  switch (turn->phase) {
  case TURN_EXECUTING:
    if (turn->group > 0 && worktree_hold_child(s, turn))
      return false;
    if (turn->parts != NULL)
      return group_advance(s, turn);
    if (human_hold(turn, s->core))
      return human_wait(s, turn);
    if (s->core->workflow->movements[turn->movement].structured != NULL)
      return step_shape(s, turn);
    call = turn_execute_call(turn);
    if (call == NULL && s->env->draining)
      return false;
    if (call == NULL) {
      step_execute(s, turn, false);
      return true;
    }
    if (call->state == CALL_FAILED) {
      return step_halt(s, "provider_error", turn, call->class, buf_view(&call->text), NULL);
    }
    return false;
  case TURN_REPORTING:
    return step_report(s, turn);
  case TURN_JUDGING:
    if (turn->question != NULL)
      return human_wait(s, turn);
    if (protect_refuses(s->core, turn, &why))
      more = step_halt(s, "protected", turn, CLASS_NONE, buf_view(&why), NULL);
    else
      more = judge_turn(s, turn);
    buf_deinit(&why);
    return more;
  case TURN_JUDGED:
    if (human_hold(turn, s->core))
      return human_wait(s, turn);
    if (turn->group > 0 && worktree_child_commits(s, turn))
      return false;
    if (turn->group > 0) {
      const char *outcome = NULL;
      if (turn->rule == 0)
        outcome = turn->failure == END_RULE_NO_MATCH ? ALL_ANY_NONE : ALL_ANY_ERROR;
      step_end_child(s, turn, outcome, str_from(turn->reason), CLASS_NONE);
      return true;
    }
    if (turn->rule == 0)
      step_fail(s, turn);
    else {
      const struct rule *rule = &s->core->workflow->movements[turn->movement].rules[turn->rule - 1];
      struct record_draft d;
      step_turn_record(s, &d, RECORD_TURN_END, turn);
      record_put_number(&d, MEMBER_RULE, rule->number);
      record_put_text(&d, MEMBER_NEXT, rule->next);
      step_emit(s, &d);
    }
    return true;
  }
  return false;
}

static void enter_next(struct step *s) {
  struct core *core = s->core;
  const struct workflow *wf = core->workflow;
  struct budget_hit hit;
  struct buf why = {0};
  if (core->next == NEXT_COMPLETE) {
    step_end(s, END_COMPLETE, NULL);
  } else if (core->next == NEXT_ABORT) {
    step_end(s, END_ABORT, NULL);
  } else if (core_is_at_max(core)) {
    char message[LIMIT_NAME_BYTES + 128];
    const struct movement *m = &wf->movements[core->next];
    print_into(message, sizeof message, "max_movements is %ld; \"%.*s\" would have been next",
               core_max_movements(core), (int)m->name.n, m->name.p);
    step_stop(s, session_outcome_name(END_MAX_MOVEMENTS), NULL, CLASS_NONE, str_from(message),
              NULL);
  } else if (budget_refuses_turn(core, monitor_next(core), &hit)) {
    step_stop_budget(s, NULL, &hit);
  } else if (guard_of_next(core, &why) == GUARD_STOP) {
    step_stop(s, "looping", NULL, CLASS_NONE, buf_view(&why), NULL);
  } else {
    size_t index = monitor_next(core);
    const struct movement *m = &wf->movements[index];
    struct record_draft d;
    json_t *notes = budget_count_notes(core, index, BUDGET_MOVEMENTS);
    step_record(s, &d, RECORD_TURN_START);
    record_put_number(&d, MEMBER_TURN, core->turn_count + 1);
    record_put_text(&d, MEMBER_MOVEMENT, m->name);
    record_put_number(&d, MEMBER_ITERATION, core->iteration_count + 1);
    record_put_number(&d, MEMBER_MOVEMENT_ITERATION, core->movement_counts[index] + 1);
    record_put_bytes(&d, MEMBER_NOTE, buf_view(&why));
    record_put_tree(&d, MEMBER_BUDGET, notes);
    step_emit(s, &d);
  }
  buf_deinit(&why);
}

/* Returns true if no call is waiting for an answer: then a drain is over. */
static bool is_idle(const struct core *core) {
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    if (has_running_call(turn))
      return false;
  return !core_worktree_busy(core);
}

/* Holds back a call that should be tried again, or had no time left, if a budget forbids its
 * start. */
static bool decide_holds(struct step *s, struct turn *turn) {
  for (const struct call *call = turn->calls; call; call = call->next) {
    bool late = call->state == CALL_FAILED && call->class == CLASS_TIMEOUT && call_is_own(call);
    if ((call->state == CALL_WAITING || late) &&
        step_over_budget(s, turn, call, step_next_place(call)))
      return true;
  }
  return false;
}

/* Advances until every open turn waits for something outside. */
static void advance(struct step *s) {
  bool moved = true;
  if (s->core->status == SESSION_RUNNING && s->core->awaits_carried) /* nobody was told about it */
    step_end(s, END_CANCELLED, "it was cut off before it had taken over its parent's state");
  while (moved && s->core->status == SESSION_RUNNING) {
    moved = false;
    if (s->core->has_next && (!s->env->draining || s->core->next < 0) && !worktree_hold_next(s)) {
      enter_next(s);
      moved = true;
      continue;
    }
    for (struct turn *turn = s->core->turns; turn && !moved; turn = turn->next) {
      s->refused = false;
      moved = !decide_holds(s, turn) && advance_turn(s, turn) && !s->refused;
      if (moved)
        break; /* the turn may no longer exist */
    }
    if (!moved && s->halt.reason != NULL && is_idle(s->core)) {
      json_t *question = s->halt.question;
      s->halt.question = NULL;
      step_stop(s, s->halt.reason, s->halt.turn, s->halt.class, buf_view(&s->halt.message),
                question);
    } else if (!moved && s->asks && !s->env->attended && human_alone(s->core))
      human_stop(s);
    step_forget_halt(s);
  }
  if (s->env->draining && s->core->status == SESSION_RUNNING && is_idle(s->core))
    step_stop(s, "shutdown", NULL, CLASS_NONE, STR("the program that ran it was stopped"), NULL);
}

/* --- events --- */

bool core_steer_check(const struct core *core, const struct core_steer *steer, struct err *err) {
  long number = steer ? steer->rule : 0;
  const json_t *max = steer ? json_at(steer->config, "max_movements") : NULL;
  bool raised =
      max != NULL && (!json_is_integer(max) || json_integer_value(max) > core->iteration_count);
  const json_t *added = steer ? json_at(steer->changed, "add_budget") : NULL;
  if (!budget_added_check(core->workflow, added, err) || budget_still_used_up(core, added, err))
    return false;
  if (number == 0) {
    bool wants = core->outcome == END_MAX_MOVEMENTS && !raised;
    return !wants || err_set(err, ERR_USAGE,
                             "the session has had its %ld turns: give --max-movements with a "
                             "higher number, or infinite",
                             core->iteration_count);
  }
  const struct turn *turn = core_unjudged_turn(core);
  if (turn == NULL)
    return err_set(err, ERR_USAGE, "no turn waits for a rule: leave out --rule");
  const struct movement *m = core_movement(core, turn);
  return (number > 0 && (size_t)number <= m->rule_count) ||
         err_set(err, ERR_USAGE, "movement \"" STR_FMT "\" has no rule %ld: use 1 to %zu",
                 STR_ARG(m->name), number, m->rule_count);
}

static void put_steer(const struct step *s, struct record_draft *d,
                      const struct core_steer *steer) {
  const struct turn *turn = steer->rule > 0 ? core_unjudged_turn(s->core) : NULL;
  bool anew = steer->config != NULL && !json_same(steer->config, s->core->config);
  assert(steer->rule == 0 || turn != NULL);
  record_put_tree(d, MEMBER_BY, json_incref((json_t *)steer->by));
  if (turn != NULL)
    record_put_tree(d, MEMBER_VERDICT,
                    json_pack("{sI si so*}", "turn", (json_int_t)turn->id, "rule", steer->rule,
                              "why", steer->why ? json_text(str_from(steer->why)) : NULL));
  if (json_object_size(steer->changed) > 0)
    record_put_tree(d, MEMBER_CHANGED, json_incref((json_t *)steer->changed));
  if (anew)
    record_put_tree(d, MEMBER_CONFIG, json_incref((json_t *)steer->config));
}

static void emit_resume(struct step *s, const char *reason) {
  struct record_draft d;
  step_record(s, &d, RECORD_SESSION_RESUME);
  record_put_bytes(&d, MEMBER_REASON, str_from(reason));
  record_put_tree(&d, MEMBER_CUT, json_incref(s->ev->cut));
  record_put_tree(&d, MEMBER_WORKER, json_incref(s->ev->worker));
  if (s->ev->steer != NULL)
    put_steer(s, &d, s->ev->steer);
  step_emit(s, &d);
}

/* Returns true if a call would start again although a budget forbids it. */
static bool resume_exceeds(struct step *s) {
  struct budget_hit hit;
  for (struct turn *turn = s->core->turns; turn; turn = turn->next)
    for (struct call *call = turn->calls; call; call = call->next)
      if ((call->state == CALL_RUNNING || call->state == CALL_WAITING) &&
          budget_refuses_call(s->core, turn, call, &hit)) {
        step_stop_budget(s, turn, &hit);
        return true;
      }
  return false;
}

static void on_resume(struct step *s) {
  human_arm(s);
  const struct core_steer *steer = s->ev->steer;
  bool is_news = s->ev->cut != NULL ||
                 (steer != NULL && (steer->rule > 0 || json_object_size(steer->changed) > 0));
  if (!s->core->resumed || is_news) /* else it was recorded, and nothing came of it yet */
    emit_resume(s, s->ev->reason);
  while (group_end_one(s, true)) /* whose group stops, whatever they were doing */
    ;
  if (resume_exceeds(s))
    return;
  for (struct turn *turn = s->core->turns; turn; turn = turn->next)
    for (struct call *call = turn->calls; call; call = call->next) {
      if (call->state == CALL_RUNNING)
        step_restart_call(s, turn, call, true);
      else if (call->state == CALL_WAITING && call->wait_until_ms > s->ev->time_ms) {
        /* The rest of its wait is bounded: the clock may have jumped since it was recorded. */
        int64_t ms = call->wait_until_ms - s->ev->time_ms;
        int64_t most = call->outage.tries > 0 ? LIMIT_OUTAGE_MAX_MS : LIMIT_RESET_WAIT_MS;
        step_effect(s, EFFECT_TIMER, call->id, ms < most ? ms : most);
      } else if (call->state == CALL_WAITING)
        step_restart_call(s, turn, call, false);
    }
  worktree_resume(s);
}

static void step_carry(struct step *s, const struct core_parent *parent) {
  const struct core *core = parent->core;
  struct record_draft d;
  assert(core->has_next && core->next >= 0 && core->turns == NULL);
  step_record(s, &d, RECORD_CARRIED);
  record_put_text(&d, MEMBER_MOVEMENT, core->workflow->movements[core->next].name);
  if (core->has_last_text)
    step_put_text(&d, MEMBER_TEXT, parent->text);
  record_put_tree(&d, MEMBER_PARENT,
                  json_pack("{ss sI ss}", "session", core->session, "seq", (json_int_t)core->seq,
                            "hash", parent->hash));
  record_put_tree(&d, MEMBER_STATE, fork_state(core));
  step_emit(s, &d);
}

void core_start(struct core *core, const struct core_params *params, const struct event *ev,
                const struct core_env *env, struct core_out *out) {
  struct step s = {.core = core,
                   .ev = ev,
                   .env = env,
                   .out = out,
                   .workflow = params->workflow,
                   .task = params->task,
                   .carried = params->parent ? params->parent->text : NULL};
  char sha256[SHA256_HEX];
  struct record_draft d;
  *out = (struct core_out){0};
  record_time(ev->time_ms, s.time);
  step_record(&s, &d, RECORD_SESSION_START);
  record_put_text(&d, MEMBER_SESSION, str_from(params->session));
  record_put_tree(&d, MEMBER_VERSIONS, json_pack("{ss}", "segue", SEGUE_VERSION));
  step_put_text(&d, MEMBER_TASK, params->task);
  if (params->workflow_path)
    record_put_tree(&d, MEMBER_WORKFLOW_PATH, json_text(str_from(params->workflow_path)));
  if (json_array_size(params->facets) > 0)
    record_put_tree(&d, MEMBER_FACETS, json_incref(params->facets));
  workflow_hash(params->workflow, sha256);
  record_put_text(&d, MEMBER_WORKFLOW_SHA256, str_from(sha256));
  record_put_tree(&d, MEMBER_WORKFLOW, json_incref(params->workflow->doc));
  record_put_tree(&d, MEMBER_CONFIG, json_incref(params->config));
  if (params->parent != NULL)
    record_put_bool(&d, MEMBER_CARRIES, true);
  step_emit(&s, &d);
  if (params->parent != NULL)
    step_carry(&s, params->parent);
  if (!params->hold)
    advance(&s);
}

static void take_event(struct step *s) {
  const struct event *ev = s->ev;
  struct turn *turn = NULL;
  struct call *call;
  switch (ev->kind) {
  case EVENT_CALL_END:
    step_call_end(s);
    break;
  case EVENT_ADMISSION:
    step_admission(s);
    break;
  case EVENT_CALL_NEWS:
    step_call_news(s);
    break;
  case EVENT_TIMER:
    if (ev->call == 0)
      human_arm(s);
    call = core_call(s->core, ev->call, &turn);
    if (call != NULL && call->state == CALL_WAITING && !s->env->draining &&
        !step_over_budget(s, turn, call, step_next_place(call)))
      step_restart_call(s, turn, call, false);
    break;
  case EVENT_WORKTREE:
    worktree_event(s);
    break;
  case EVENT_CANCEL:
    step_end(s, END_CANCELLED, ev->message);
    break;
  case EVENT_STOP:
    step_stop(s, ev->reason, NULL, CLASS_NONE, str_from(ev->message), NULL);
    break;
  case EVENT_RESUME:
    on_resume(s);
    break;
  case EVENT_ANSWER:
    human_take(s);
    break;
  case EVENT_ACCEPT:
  case EVENT_BEGIN:
  case EVENT_DRAIN:
    break;
  }
  advance(s);
}

void core_decide(struct core *core, const struct event *ev, const struct core_env *env,
                 struct core_out *out) {
  struct step s = {.core = core, .ev = ev, .env = env, .out = out};
  *out = (struct core_out){0};
  record_time(ev->time_ms, s.time);
  if (core->status == SESSION_STOPPED && ev->kind == EVENT_CANCEL)
    emit_resume(&s, "cancel");
  bool resumes = ev->kind == EVENT_RESUME, accepts = ev->kind == EVENT_ACCEPT;
  if (core->status == SESSION_STOPPED && accepts)
    emit_resume(&s, ev->reason);
  else if (core->status != SESSION_ENDED && ev->kind == EVENT_ANSWER && ev->hold)
    human_take(&s); /* a resume continues the session */
  else if (core->status != SESSION_ENDED && !accepts &&
           (core->status != SESSION_STOPPED || resumes))
    take_event(&s);
}
