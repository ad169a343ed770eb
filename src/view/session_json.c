/* Writes a session's view as JSON. */
#include "format/json_object.h"
#include "format/json_write.h"
#include "view/session.h"

#include "core/budget.h"
#include "core/record.h"

static const double nano = 1e9;

static json_t *time_json(int64_t ms) {
  char text[RECORD_TIME_BYTES];
  if (ms <= 0)
    return json_null();
  record_time(ms, text);
  return json_string(text);
}

static void put_spend(json_t *out, const struct spend *s) {
  json_put(out, "calls", json_integer(s->calls));
  json_put(out, "input", json_integer(s->input));
  json_put(out, "output", json_integer(s->output));
  json_put(out, "cost_usd", s->priced > 0 ? json_real((double)s->cost_nano / nano) : json_null());
  if (s->unpriced > 0)
    json_put(out, "unpriced", json_integer(s->unpriced));
}

static json_t *spans_json(const struct view_turn *t) {
  json_t *list = json_array();
  for (size_t i = 0; i < t->span_count; i++)
    json_array_append_new(list, json_pack("{ss so so}", "kind", view_span_name(t->spans[i].kind),
                                          "from", time_json(t->spans[i].from_ms), "to",
                                          time_json(t->spans[i].to_ms)));
  return list;
}

static json_t *doing_json(const struct view_turn *t) {
  json_t *out = json_object();
  json_put(out, "kind", json_string(view_span_name(t->doing->kind)));
  json_put(out, "since", time_json(t->doing->since_ms));
  json_put(out, "until", time_json(t->doing->until_ms));
  if (t->doing->waits_for.n > 0)
    json_put(out, "reason", json_text(t->doing->waits_for));
  return out;
}

static json_t *view_stages_json(const struct view_turn *t) {
  json_t *list = json_array();
  for (size_t i = 0; i < t->stage_count; i++) {
    const struct view_stage *s = &t->stages[i];
    json_t *out = json_object();
    json_put(out, "stage", json_text(s->stage));
    json_put(out, "outcome", json_text(s->outcome));
    json_put(out, "why", json_text(s->why));
    json_put(out, "provider", json_text(s->provider));
    if (s->vote > 0)
      json_put(out, "vote", json_integer(s->vote));
    json_put(out, "calls", json_integer(s->calls));
    json_put(out, "duration_ms", json_integer(s->duration_ms));
    json_array_append_new(list, out);
  }
  return list;
}

static json_t *view_turn_json(const struct view_turn *t) {
  json_t *out = json_object();
  json_put(out, "turn", json_integer(t->turn));
  json_put(out, "movement", json_text(t->movement));
  json_put(out, "run", json_integer(t->run));
  if (t->parent > 0)
    json_put(out, "parent", json_integer(t->parent));
  json_put(out, "provider", json_text(t->provider));
  json_put(out, "what", json_text(t->what));
  json_put(out, "over", json_boolean(t->over));
  json_put(out, "judged", json_boolean(t->judged));
  json_put(out, "leads_to", json_text(t->leads_to));
  json_put(out, "method", json_text(t->method));
  json_put(out, "why", json_text(t->why));
  json_put(out, "rule", t->rule > 0 ? json_integer(t->rule) : json_null());
  json_put(out, "condition", json_text(t->condition));
  json_put(out, "ambiguous", json_boolean(t->ambiguous));
  if (t->failed_calls > 0)
    json_put(out, "failed_calls", json_integer(t->failed_calls));
  if (view_turn_failed(t))
    json_put(out, "failed", json_true());
  if (t->unproven)
    json_put(out, "unproven", json_true());
  json_put(out, "started", time_json(t->started_ms));
  json_put(out, "duration_ms", json_integer(t->duration_ms));
  json_put(out, "files", json_integer(t->files));
  put_spend(out, &t->spend);
  json_put(out, "spans", spans_json(t));
  if (t->doing != NULL && t->doing->kind != VIEW_SPAN_KINDS)
    json_put(out, "doing", doing_json(t));
  json_put(out, "stages", view_stages_json(t));
  return out;
}

static json_t *view_rules_json(const struct view_movement *m) {
  json_t *list = json_array();
  for (size_t i = 0; i < m->rule_count; i++) {
    json_t *out = json_object();
    json_put(out, "condition", json_text(m->rules[i].condition));
    json_put(out, "next", json_text(m->rules[i].next));
    json_put(out, "taken", json_integer(m->rules[i].taken));
    json_array_append_new(list, out);
  }
  return list;
}

static json_t *view_movement_json(const struct view_movement *m) {
  json_t *out = json_object();
  json_put(out, "name", json_text(m->name));
  json_put(out, "who", json_text(m->who));
  json_put(out, "runs", json_integer(m->runs));
  json_put(out, "open", json_boolean(m->open));
  json_put(out, "duration_ms", json_integer(m->duration_ms));
  put_spend(out, &m->spend);
  json_put(out, "rules", view_rules_json(m));
  return out;
}

static json_t *chain_json(const struct view_session *v) {
  json_t *out = json_object();
  json_put(out, "state", json_string(view_chain_name(v->chain)));
  json_put(out, "records", json_integer((json_int_t)v->records));
  if (v->chain == VIEW_TORN)
    json_put(out, "torn_bytes", json_integer((json_int_t)v->torn_bytes));
  if (v->chain == VIEW_BAD)
    json_put(out, "error", json_text(v->damage));
  return out;
}

static json_t *bounds_json(const struct view_session *v) {
  json_t *list = json_array();
  for (size_t i = 0; i < v->bound_count; i++) {
    const struct view_bound *b = &v->bounds[i];
    json_t *out = json_object();
    json_put(out, "kind", json_string(view_bound_name(b->kind)));
    if (b->of.n > 0)
      json_put(out, "of", json_text(b->of));
    if (view_bound_has_time(b->kind)) {
      json_put(out, "until", time_json(b->until_ms));
    } else if (b->kind == VIEW_BOUND_STALL) {
      json_put(out, "limit", json_integer(b->limit));
    } else {
      bool budget = b->kind == VIEW_BOUND_BUDGET || b->kind == VIEW_BOUND_CALL;
      bool money = budget && b->unit == BUDGET_COST;
      if (budget)
        json_put(out, "unit", json_string(budget_unit_name(b->unit)));
      json_put(out, "used", money ? json_real((double)b->used / nano) : json_integer(b->used));
      json_put(out, "limit", money ? json_real((double)b->limit / nano) : json_integer(b->limit));
    }
    json_array_append_new(list, out);
  }
  return list;
}

json_t *view_session_json(const struct view_session *v) {
  json_t *out = json_object(), *turns = json_array(), *movements = json_array();
  for (size_t i = 0; i < v->turn_count; i++)
    json_array_append_new(turns, view_turn_json(&v->turns[i]));
  for (size_t i = 0; i < v->movement_count; i++)
    json_array_append_new(movements, view_movement_json(&v->movements[i]));
  json_put(out, "session", json_text(str_from(v->id)));
  json_put(out, "log", json_text(v->log));
  json_put(out, "workflow", json_text(v->workflow));
  json_put(out, "workflow_path", json_text(v->workflow_path));
  json_put(out, "task", json_text(v->task));
  if (v->task_more_bytes > 0)
    json_put(out, "task_more_bytes", json_integer((json_int_t)v->task_more_bytes));
  if (v->forked_from.n > 0)
    json_put(out, "forked_from", json_text(v->forked_from));
  json_put(out, "status", json_text(v->status));
  json_put(out, "message", json_text(v->message));
  json_put(out, "resumable", json_boolean(v->resumable));
  json_put(out, "started", time_json(v->started_ms));
  json_put(out, "updated", time_json(v->last_ms));
  json_put(out, "turns_ms", json_integer(v->turns_ms));
  json_put(out, "spent", v->spent ? json_incref(v->spent) : json_object());
  json_put(out, "methods", v->methods ? json_incref(v->methods) : json_object());
  json_put(out, "chain", chain_json(v));
  json_put(out, "bounds", bounds_json(v));
  json_put(out, "movements", movements);
  json_put(out, "turns", turns);
  if (v->turns_left_out > 0)
    json_put(out, "turns_left_out", json_integer(v->turns_left_out));
  return out;
}
