/* Holds back calls that a budget refuses, ends those that exceed one, and reports what was used. */
#include "core/step.h"

#include "base/limits.h"
#include "core/guard.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

struct str step_next_place(const struct call *call) {
  return str_from(call->fallback != NULL ? call->fallback : call->provider);
}

static bool is_day_budget_hit(const struct step *s, struct str provider, bool begun,
                              struct budget_hit *hit) {
  return s->env->day_refuses != NULL && s->env->day_refuses(s->env->ctx, provider, begun, hit);
}

bool step_over_budget(struct step *s, struct turn *turn, const struct call *call,
                      struct str provider) {
  struct budget_hit hit;
  struct buf message = {0};
  if (!budget_refuses_call(s->core, turn, call, &hit) &&
      !is_day_budget_hit(s, provider, call != NULL, &hit))
    return false;
  bool first = s->halt.reason == NULL;
  budget_tell(s->core, &hit, &message);
  (void)step_halt(s, "budget", turn, CLASS_NONE, buf_view(&message), NULL);
  if (first)
    s->halt.budget = budget_json(&hit);
  buf_deinit(&message);
  return true;
}

void step_stop_budget(struct step *s, const struct turn *turn, const struct budget_hit *hit) {
  struct buf message = {0};
  step_forget_halt(s);
  budget_tell(s->core, hit, &message);
  s->halt.budget = budget_json(hit);
  step_stop(s, "budget", turn, CLASS_NONE, buf_view(&message), NULL);
  step_forget_halt(s);
  buf_deinit(&message);
}

void step_put_budget(struct record_draft *d, json_t *notes) {
  if (notes != NULL)
    record_put_tree(d, MEMBER_BUDGET, notes);
}

json_t *step_call_usage(const struct core *core, const struct call *call,
                        const struct call_result *r) {
  bool tells = json_at(r->usage, "input") != NULL || json_at(r->usage, "output") != NULL;
  if (tells || call->told.usage == NULL || r->class == CLASS_NONE)
    return spend_priced(r->usage, json_at(core->config, "prices"), str_from(call->model));
  json_t *usage = json_clone_top(call->told.usage);
  json_object_set_new(usage, "told", json_string("partial"));
  return usage;
}

void step_explain_end(const struct core *core, const struct turn *turn, const struct call *call,
                      struct call_result *r) {
  struct budget_hit hit;
  struct buf message = {0};
  if (r->class == CLASS_LOOPING)
    (void)guard_of_call(core, turn, call, &message);
  else if (budget_must_end_call(core, turn, call, &hit))
    budget_tell(core, &hit, &message);
  if (message.n > 0)
    call_result_fail(r, r->class, "it was ended: %s", buf_c(&message));
  buf_deinit(&message);
}

static void end_call_as(struct step *s, const struct call *call, enum error_class class) {
  step_effect(s, EFFECT_END_CALL, call->id, 0);
  s->out->effects[s->out->effect_count - 1].class = class;
}

void step_guard_call(struct step *s, const struct turn *turn, const struct call *call) {
  struct buf why = {0};
  enum guard_action action = guard_of_call(s->core, turn, call, &why);
  if (action == GUARD_STOP)
    end_call_as(s, call, CLASS_LOOPING);
  if (action == GUARD_WARN) {
    struct record_draft d;
    step_turn_record(s, &d, RECORD_CALL_EVENT, turn);
    record_put_number(&d, MEMBER_CALL, call->id);
    record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
    record_put_word(&d, MEMBER_EVENT, "note");
    record_put_tree(&d, MEMBER_DATA, json_pack("{so}", "text", json_text(buf_view(&why))));
    step_emit(s, &d);
  }
  buf_deinit(&why);
}

void step_end_over_budget(struct step *s) {
  struct budget_hit hit;
  for (const struct turn *t = s->core->turns; t; t = t->next)
    for (const struct call *c = t->calls; c; c = c->next)
      if (c->state == CALL_RUNNING && budget_must_end_call(s->core, t, c, &hit)) {
        end_call_as(s, c, CLASS_BUDGET);
      }
}
