/* Gathers what the judging of a turn is based on. */
#include "core/judging.h"

#include "core/checks.h"
#include "core/group.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>

static bool has_when(const struct movement *m) {
  for (size_t i = 0; i < m->rule_count; i++)
    if (m->rules[i].when != NULL)
      return true;
  return false;
}

static json_t *when_env(const struct core *core, const struct turn *turn) {
  json_t *env = json_object(), *values = json_clone_top(core->structured);
  const struct movement *m = &core->workflow->movements[turn->movement];
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
  if (turn->tests != NULL)
    json_put(env, "tests", json_incref(turn->tests));
  json_t *gates = checks_json(core, turn);
  if (gates != NULL)
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
  const struct movement *m = &core->workflow->movements[turn->movement];
  if (!judge_replies(turn, j->replies, TURN_JUDGE_CALLS, &j->count))
    return false;
  j->env = has_when(m) ? when_env(core, turn) : NULL;
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
