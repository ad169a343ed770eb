/* Emits the records of one decision: what its calls and stops say, and what a prompt of a turn can
 * show. Makes calls: the request, the conversation that it continues, the start, what a call
 * reports, its end, and whether it is tried again; also what budgets and guards say of it. */
#include "core/step.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/answer.h"
#include "core/apply.h"
#include "core/checks.h"
#include "core/evidence.h"
#include "core/group.h"
#include "core/guard.h"
#include "core/monitor.h"
#include "core/movement_limits.h"
#include "core/sandbox_settings.h"
#include "core/steer.h"
#include "core/value_ref.h"
#include "extract/whole_reply.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- outputs ---
 *
 * Makes what a complete session returns: the `outputs` of its workflow, filled in.
 *
 * Each output is a template with the variables of an instruction (prompt.h). A template that is
 * just {structured:MOVEMENT.FIELD} gives that value, whatever its type, or null if there is none. A
 * text over LIMIT_RETURN_BYTES is cut. A value over it, or one that no longer fits in
 * LIMIT_RETURNS_BYTES after those before it, is null: the log has it in full. Pure. */

static json_t *output_value(const struct prompt_view *view, struct str path) {
  struct prompt_ref ref;
  buf_auto_t text = {0};
  if (!prompt_ref_parse(path, view->workflow, &ref))
    return json_null();
  const json_t *value =
      prompt_ref_value(&ref, json_object_getn(view->values, ref.movement.p, ref.movement.n));
  if (value == NULL)
    return json_null();
  json_write(value, &text);
  bool fits = text.n <= LIMIT_RETURN_BYTES;
  return fits ? json_incref((json_t *)value) : json_null();
}

json_t *outputs_make(const struct prompt_view *view) {
  const json_t *wanted = view->workflow->outputs;
  size_t bytes = 0;
  if (wanted == NULL)
    return NULL;
  json_t *outputs = json_object();
  JSON_MEMBERS(wanted, name, text) {
    /* A text that is one {structured:PATH} alone stands for that value, whatever its type. */
    struct str words = str_trim(json_view(text)), all;
    size_t n = strlen("{" PROMPT_STRUCTURED);
    AUTO(prompt_deinit) struct prompt filled = {0};
    buf_auto_t written = {0};
    json_t *value;
    if (str_starts(words, "{" PROMPT_STRUCTURED) && words.n > n + 1 &&
        memchr(words.p, '}', words.n) == words.p + words.n - 1) {
      value = output_value(view, (struct str){words.p + n, words.n - n - 1});
    } else {
      prompt_fill(view, json_view(text), &filled);
      all = buf_view(&filled.bytes);
      if (all.n > LIMIT_RETURN_BYTES)
        all.n = utf8_floor(all.p, LIMIT_RETURN_BYTES);
      value = json_text(all);
    }
    json_write(value, &written);
    if (bytes + written.n > LIMIT_RETURNS_BYTES) {
      json_decref(value);
      value = json_null();
    } else {
      bytes += written.n;
    }
    json_object_set_new(outputs, name, value);
  }
  return outputs;
}

/* --- step --- */

static bool incoming_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  const struct step *s = ctx;
  const struct call_result *result = s->ev->result;
  const struct text *texts[] = {s->task, s->carried, result ? &result->text : NULL,
                                result ? &result->error_text : NULL};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    if (texts[i] != NULL && strcmp(texts[i]->blob, sha256) == 0) {
      buf_append(out, texts[i]->bytes.p, texts[i]->bytes.n);
      return true;
    }
  return err_set(err, ERR_NOT_FOUND, "a text that did not just come in");
}

void step_emit(struct step *s, struct record_draft *d) {
  struct err err = {0};
  const struct core_source source = {s, incoming_blob};
  struct record *record = record_keep(d);
  if (!core_apply(s->core, record, s->workflow, &source, &err))
    BUG("own record: %s", err.text);
  struct core_out *out = s->out;
  if (out->record_count % 8 == 0)
    out->records = xrealloc(out->records, (out->record_count + 8) * sizeof *out->records);
  out->records[out->record_count++] = record;
}

void step_effect(struct step *s, enum effect_kind kind, long call, int64_t delay_ms) {
  struct core_out *out = s->out;
  if (out->effect_count % 8 == 0)
    out->effects = xrealloc(out->effects, (out->effect_count + 8) * sizeof *out->effects);
  out->effects[out->effect_count++] = (struct effect){kind, call, delay_ms, CLASS_NONE};
}

void step_record(const struct step *s, struct record_draft *d, enum record_type type) {
  record_begin(d, s->core->seq + 1, str_from(s->time), type);
}

void step_turn_record(const struct step *s, struct record_draft *d, enum record_type type,
                      const struct turn *turn) {
  step_record(s, d, type);
  record_put_number(d, MEMBER_TURN, turn->id);
}

void step_put_text(struct record_draft *d, enum member key, const struct text *text) {
  struct str view = buf_view(&text->bytes);
  if (text->blob[0] == '\0') {
    record_put_text(d, key, view); /* checked when it came in */
    return;
  }
  record_put_tree(d, key, text_render(view));
  record_put_text(d, key + 1, str_from(text->blob));
  record_put_number(d, key + 2, (int64_t)view.n);
}

/* --- ending and stopping --- */

static void cancel_running(struct step *s) {
  for (struct turn *t = s->core->turns; t; t = t->next)
    for (struct call *c = t->calls; c; c = c->next)
      if (c->state == CALL_RUNNING)
        step_effect(s, EFFECT_CANCEL_CALL, c->id, 0);
}

static json_t *method_counts(const struct core *core) {
  json_t *counts = json_object();
  for (int i = 0; i < STAGE_COUNT; i++) {
    const char *name = judge_stage_match_method((enum judge_stage)i);
    json_int_t n = json_integer_value(json_object_get(counts, name)) + core->method_counts[i];
    if (n > 0)
      json_object_set_new_nocheck(counts, name, json_integer(n));
  }
  return counts;
}

/* Returns the view for a time when no movement runs. */
static struct prompt_view view_at_end(const struct core *core) {
  return (struct prompt_view){
      .workflow = core->workflow,
      .movement = core->workflow->movements, /* any will do: the view does not name it */
      .task = buf_view(&core->task),
      .previous = buf_view(&core->last_text),
      .has_previous = core->has_last_text,
      .error = buf_view(&core->error.text),
      .max_movements = core_max_movements(core),
      .iteration = core->iteration_count,
      .values = core->structured,
      .reports = core->reports,
      .responses = core->responses,
      .worktrees = core->worktrees,
      .report_dir = json_view(json_at(core->config, "report_dir")),
  };
}

void step_end(struct step *s, enum session_outcome outcome, const char *message) {
  cancel_running(s);
  struct record_draft d;
  step_record(s, &d, RECORD_SESSION_END);
  record_put_word(&d, MEMBER_OUTCOME, session_outcome_name(outcome));
  record_put_bytes(&d, MEMBER_MESSAGE, str_from(message));
  record_put_number(&d, MEMBER_TURNS, s->core->turn_count);
  record_put_tree(&d, MEMBER_METHODS, method_counts(s->core));
  record_put_tree(&d, MEMBER_SPENT, spends_json(&s->core->spends));
  if (outcome == END_COMPLETE && s->core->evidence.basis != BASIS_NONE)
    record_put_word(&d, MEMBER_BASIS, basis_name((enum basis)s->core->evidence.basis));
  if (outcome == END_COMPLETE && s->core->workflow->outputs != NULL) {
    const struct prompt_view view = view_at_end(s->core);
    record_put_tree(&d, MEMBER_OUTPUTS, outputs_make(&view));
  }
  step_emit(s, &d);
  step_effect(s, EFFECT_FINISHED, 0, 0);
}

static void begin_stop(struct step *s, struct record_draft *d, const char *reason,
                       const struct turn *turn) {
  cancel_running(s);
  step_record(s, d, RECORD_SESSION_STOP);
  record_put_text(d, MEMBER_REASON, str_from(reason));
  if (turn != NULL)
    record_put_number(d, MEMBER_TURN, turn->id);
}

static void finish_stop(struct step *s, struct record_draft *d) {
  json_t *questions = core_questions(s->core);
  record_put_tree(d, MEMBER_QUESTIONS, questions);
  record_put_bool(d, MEMBER_RESUMABLE, true);
  record_put_tree(d, MEMBER_SPENT, spends_json(&s->core->spends));
  record_put_tree(d, MEMBER_BUDGET, json_incref(s->halt.budget));
  step_emit(s, d);
  step_effect(s, EFFECT_FINISHED, 0, 0);
}

void step_stop(struct step *s, const char *reason, const struct turn *turn, enum error_class class,
               struct str message, json_t *question) {
  struct record_draft d;
  begin_stop(s, &d, reason, turn);
  if (class != CLASS_NONE)
    record_put_word(&d, MEMBER_CLASS, error_class_name(class));
  const struct call *call = turn != NULL && class != CLASS_NONE ? turn->calls : NULL;
  while (call != NULL && (call->state != CALL_FAILED || call->class != class))
    call = call->next;
  if (call != NULL)
    record_put_bytes(&d, MEMBER_PROVIDER, str_from(call->provider));
  record_put_bytes(&d, MEMBER_MESSAGE, message);
  record_put_tree(&d, MEMBER_QUESTION, question);
  finish_stop(s, &d);
}

void step_end_child(struct step *s, struct turn *turn, const char *outcome, struct str message,
                    enum error_class class) {
  struct record_draft d;
  long group = turn->group;
  assert(group > 0);
  step_turn_record(s, &d, RECORD_TURN_END, turn);
  record_put_number(&d, MEMBER_PARENT_TURN, group);
  if (outcome == NULL) {
    record_put_number(&d, MEMBER_RULE, turn->rule);
  } else {
    record_put_word(&d, MEMBER_OUTCOME, outcome);
    record_put_bytes(&d, MEMBER_MESSAGE, message);
  }
  if (class != CLASS_NONE)
    record_put_word(&d, MEMBER_CLASS, error_class_name(class));
  step_emit(s, &d);
  for (turn = s->core->turns; turn; turn = turn->next) /* the first one is gone */
    for (struct call *call = turn->calls; call; call = call->next)
      if (turn->group == group && call->state == CALL_RUNNING && group_stops(s->core, turn))
        step_effect(s, EFFECT_CANCEL_CALL, call->id, 0);
}

bool step_take_error_way(struct step *s, struct turn *turn, enum error_class class,
                         struct str message) {
  const struct error_way *way = movement_on_error(core_movement(s->core, turn), class);
  struct record_draft d;
  buf_auto_t why = {0};
  bool refused = class == CLASS_NONE || way == NULL ||
                 s->core->error.count >= LIMIT_ERRORS_IN_ROW ||
                 protect_refuses(s->core, turn, &why);
  if (refused)
    return false;
  step_turn_record(s, &d, RECORD_TURN_END, turn);
  record_put_word(&d, MEMBER_OUTCOME, ALL_ANY_ERROR);
  record_put_text(&d, MEMBER_NEXT, way->to);
  record_put_bytes(&d, MEMBER_MESSAGE, message);
  record_put_word(&d, MEMBER_CLASS, error_class_name(class));
  step_emit(s, &d);
  return true;
}

/* Returns true once a call has begun that is not a program of the workflow. */
static bool has_asked_model(const struct core *core) {
  return core->spends.all.begun > spends_of(&core->spends.providers, STR("command")).begun;
}

bool step_halt(struct step *s, const char *reason, struct turn *turn, enum error_class class,
               struct str message, json_t *question) {
  if (class == CLASS_DENIED) /* no failure of the work: nobody mends it, whatever it belongs to */
    reason = has_asked_model(s->core) ? "denied" : "provider_error";
  else if (turn->group > 0 && class != CLASS_NONE) {
    json_decref(question);
    step_end_child(s, turn, ALL_ANY_ERROR, message, class);
    return true;
  }
  if (step_take_error_way(s, turn, class, message)) {
    json_decref(question);
    return true;
  }
  if (s->halt.reason != NULL) {
    json_decref(question);
    return false;
  }
  s->halt =
      (struct step_halt){.reason = reason, .turn = turn, .class = class, .question = question};
  buf_str(&s->halt.message, message);
  return false;
}

void step_forget_halt(struct step *s) {
  json_decref(s->halt.question);
  json_decref(s->halt.budget);
  buf_deinit(&s->halt.message);
  s->halt = (struct step_halt){0};
  s->asks = false;
}

void step_fail(struct step *s, const struct turn *turn) {
  struct record_draft d;
  assert(turn->phase == TURN_JUDGED && turn->rule == 0);
  begin_stop(s, &d, session_outcome_name(turn->failure), turn);
  record_put_bytes(&d, MEMBER_MESSAGE, str_from(turn->reason));
  record_put_tree(&d, MEMBER_ERROR, json_incref(turn->error));
  finish_stop(s, &d);
}

/* Returns the item that the child is for; NULL: its group has no for_each. */
static const json_t *group_item(const struct core *core, const struct turn *child) {
  const struct turn *group = child->item > 0 ? core_turn(core, child->group) : NULL;
  return group ? json_array_get(group->items, (size_t)child->item - 1) : NULL;
}

void step_view(const struct step *s, const struct turn *turn, const char *nonce,
               struct prompt_view *view) {
  const struct core *core = s->core;
  const struct movement *check =
      core->check.turn > 0 ? &core->workflow->movements[core->check.movement] : NULL;
  const json_t *gate = check ? json_object_getn(core->gates, check->name.p, check->name.n) : NULL;
  const struct movement *m = core_movement(core, turn);
  *view = (struct prompt_view){
      .workflow = core->workflow,
      .templates = s->env->templates,
      .movement = m,
      .overrides = json_at(core->config, "templates"),
      .task = buf_view(&core->task),
      .previous = buf_view(&core->last_text),
      .task_seq = 1,
      .previous_seq = core->last_text_seq,
      .previous_joined = &core->last_joined,
      .answer_joined = &turn->joined,
      .answer_seq = turn->text_seq,
      .has_previous = core->has_last_text,
      .max_movements = core_max_movements(core),
      .iteration = turn->iteration,
      .movement_iteration = turn->movement_iteration,
      .item = group_item(core, turn),
      .index = turn->item,
      .answer = buf_view(&turn->text),
      .files = turn->shared ? NULL : turn->files,
      .files_more = turn->files_more,
      .unseen = turn->unseen,
      .head = turn->head,
      .unfinished = turn->unfinished,
      .said = core->said,
      .error = buf_view(&core->error.text),
      .touched = core->touched,
      .check = check ? check->name : STR(""),
      .checks_by = check,
      .check_first = json_at(gate, "first"),
      .check_turn = core->check.turn,
      .check_exit = core->check.exit,
      .interactive = json_is_true(json_at(core->config, "interactive")),
      .has_exit = turn->has_exit,
      .exit = turn->exit,
      .nonce = nonce,
      .values = core->structured,
      .own_reports = turn->reports,
      .reports = core->reports,
      .responses = core->responses,
      .worktrees = core->worktrees,
      .cycle_count = monitor_count(core, core_movement(core, turn)),
      .report_dir = json_view(json_at(core->config, "report_dir")),
      .user_inputs = json_view(json_object_getn(core->inputs, m->name.p, m->name.n)),
  };
}

/* --- budgets and guards --- */

struct str step_next_place(const struct call *call) {
  return str_from(call->fallback != NULL ? call->fallback : call->provider);
}

bool step_over_budget(struct step *s, struct turn *turn, const struct call *call,
                      struct str provider) {
  struct budget_hit hit;
  buf_auto_t message = {0};
  if (!budget_refuses_call(s->core, turn, call, &hit) &&
      !(s->env->day_refuses != NULL &&
        s->env->day_refuses(s->env->ctx, provider, call != NULL, &hit)))
    return false;
  bool first = s->halt.reason == NULL;
  budget_tell(s->core, &hit, &message);
  (void)step_halt(s, "budget", turn, CLASS_NONE, buf_view(&message), NULL);
  if (first)
    s->halt.budget = budget_json(&hit);
  return true;
}

void step_stop_budget(struct step *s, const struct turn *turn, const struct budget_hit *hit) {
  buf_auto_t message = {0};
  step_forget_halt(s);
  budget_tell(s->core, hit, &message);
  s->halt.budget = budget_json(hit);
  step_stop(s, "budget", turn, CLASS_NONE, buf_view(&message), NULL);
  step_forget_halt(s);
}

/* Returns the use of an attempt: from its end, or from what it reported before. New or NULL. */
static json_t *step_call_usage(const struct core *core, const struct call *call,
                               const struct call_result *r) {
  bool tells = json_at(r->usage, "input") != NULL || json_at(r->usage, "output") != NULL;
  if (tells || call->told.usage == NULL || r->class == CLASS_NONE)
    return spend_priced(r->usage, json_at(core->config, "prices"), str_from(call->model));
  json_t *usage = json_clone_top(call->told.usage);
  json_object_set_new(usage, "told", json_string("partial"));
  return usage;
}

static void step_explain_end(const struct core *core, const struct turn *turn,
                             const struct call *call, struct call_result *r) {
  struct budget_hit hit;
  buf_auto_t message = {0};
  if (r->class == CLASS_LOOPING)
    (void)guard_of_call(core, turn, call, &message);
  else if (budget_must_end_call(core, turn, call, &hit))
    budget_tell(core, &hit, &message);
  if (message.n > 0)
    call_result_fail(r, r->class, "it was ended: %s", buf_c(&message));
}

static void end_call_as(struct step *s, const struct call *call, enum error_class class) {
  step_effect(s, EFFECT_END_CALL, call->id, 0);
  s->out->effects[s->out->effect_count - 1].class = class;
}

/* Ends a call that goes in circles, or notes it. */
static void step_guard_call(struct step *s, const struct turn *turn, const struct call *call) {
  buf_auto_t why = {0};
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
}

/* --- requests --- */

int64_t step_time_left(const struct step *s, const struct turn *turn, int64_t most) {
  const struct structured_config *so = core_movement(s->core, turn)->structured;
  if (so == NULL || so->time_budget_ms == 0)
    return most;
  int64_t left = so->time_budget_ms;
  for (const struct call *call = turn->calls; call; call = call->next)
    left -= call->duration_ms;
  if (left > most)
    left = most;
  return left > 1 ? left : 1;
}

/* Returns for how long a client's background work is waited for; 0: as long as its backend says. */
static uint64_t background_ms(const struct core *core) {
  const json_t *own = json_at(core->workflow->doc, "wait_for_background");
  const json_t *said = own != NULL ? own : json_at(core->config, "wait_for_background");
  return (uint64_t)limits_duration_ms(json_view(said), 0);
}

void core_request(const struct core *core, const struct turn *turn, const struct call *call,
                  struct call_request *out) {
  const struct movement *m = core_movement(core, turn);
  /* A call that was cut off may have begun the conversation of its token. */
  const char *id = call->resumed ? call->provider_session : json_string_value(call->token);
  *out = (struct call_request){
      .session = core->session,
      .turn = turn->id,
      .call = call->id,
      .attempt = call->attempt,
      .purpose = call->purpose,
      .stage = call->stage,
      .movement = m->name,
      .provider = str_from(call->provider),
      .model = str_from(call->model),
      .options = call->options,
      .argv = step_argv(m, call->purpose, call->invariant),
      .prompt = buf_view(&call->prompt),
      .mark = call->purpose == PURPOSE_EXECUTE ? str_from(turn->mark) : STR(""),
      .schema = call->schema,
      .schema_as = core->workflow->schema_as,
      .language = workflow_language(core->workflow),
      .token = call->token,
      .edit = call->purpose == PURPOSE_EXECUTE && m->writes,
      .permission = call->purpose == PURPOSE_EXECUTE ? m->permission : PERMISSION_READONLY,
      .run = call->purpose == PURPOSE_EXECUTE ? m->run : NULL,
      .provider_session = call->resumed ? str_from(call->provider_session) : STR(""),
      .forks = call->forks,
      .timeout_ms = call->timeout_ms,
      .stall_ms = call->purpose == PURPOSE_EXECUTE ? (uint64_t)m->stall_ms : 0,
      .tests = call->purpose == PURPOSE_EXECUTE ? m->tests : STR(""),
      .gates = call->purpose == PURPOSE_EXECUTE && m->gate,
      .cwd = call->cwd,
      .sandbox = call->sandbox,
      .conversation = id ? json_object_get(core->totals, id) : NULL,
      .secrets = call->purpose == PURPOSE_EXECUTE ? m->secrets : NULL,
      .background_ms = background_ms(core),
      .outlived = core->outlived,
      .refused = core_refused(core, str_from(call->provider), str_from(call->model)),
  };
}

/* --- provider sessions --- */

/* Returns the conversation that an execute call could continue, NULL if there is none. */
static const char *known_session(const struct step *s, const struct movement *m,
                                 enum call_purpose purpose, struct str provider, bool common) {
  const struct capability *c = capability_find(s->env->providers, provider);
  buf_auto_t key = {0};
  if (purpose != PURPOSE_EXECUTE || c == NULL || !c->sessions ||
      json_object_size(s->core->sessions) == 0)
    return NULL;
  core_session_key(m, provider, common, &key);
  const json_t *id = json_object_get(s->core->sessions, buf_c(&key));
  return json_string_value(id);
}

/* Chooses the conversation that a movement's call begins with. Sets `why_not` if there is one, but
 * not for this call, or if a sibling may have it. Siblings and items continue copies of what they
 * share. */
static void choose_session(const struct step *s, const struct turn *turn, const struct step_call *n,
                           struct call_request *request, const char **why_not) {
  const struct movement *m = core_movement(s->core, turn);
  const struct capability *c = capability_find(s->env->providers, n->provider);
  bool copies = turn->item > 0;
  if (n->purpose == PURPOSE_REPORT) { /* report_ask found the conversation */
    request->provider_session = str_from(n->provider_session);
    return;
  }
  const char *known = known_session(s, m, n->purpose, n->provider, copies);
  if (known == NULL && m->shares_conversation && n->purpose == PURPOSE_EXECUTE) {
    known = known_session(s, m, n->purpose, n->provider, true);
    copies = true;
    *why_not = known ? NULL : "a sibling has the same conversation: this one begins its own";
  }
  if (known != NULL && m->fresh_session)
    *why_not = "the movement has session: refresh";
  else if (known != NULL && copies && !c->forks)
    *why_not = "others have it, and the backend cannot fork it: this one begins its own";
  else if (known != NULL) {
    request->provider_session = str_from(known);
    request->forks = copies;
  }
}

/* Tells in call_start whether a conversation is resumed, and why not. */
static void calls_put_session(struct record_draft *d, const struct call_request *r,
                              const char *reason) {
  json_t *forked = r->forks ? json_true() : NULL;
  if (r->provider_session.n > 0)
    record_put_tree(d, MEMBER_SESSION,
                    json_pack("{sb so so*}", "resumed", 1, "id", json_text(r->provider_session),
                              "forked", forked));
  else if (reason != NULL)
    record_put_tree(d, MEMBER_SESSION, json_pack("{sb ss}", "resumed", 0, "reason", reason));
}

/* Keeps those of the wanted options that the provider takes. */
static json_t *taken_options(const struct step *s, const json_t *wanted, struct str provider) {
  const struct capability *c = capability_find(s->env->providers, provider);
  json_t *kept = json_object();
  for (size_t i = 0; c && option_names[i]; i++) {
    json_t *value = json_object_get(wanted, option_names[i]);
    if (value && (c->options & (1u << i)))
      json_object_set_nocheck(kept, option_names[i], value);
  }
  if (json_object_size(kept) > 0)
    return kept;
  json_decref(kept);
  return NULL;
}

/* Skips a provider that was replaced a short while ago and asks the one that took over. */
static void pass_over(const struct step *s, const struct turn *turn, struct step_call *n) {
  const struct core *core = s->core;
  struct str next = n->provider;
  while (next.n > 0 &&
         json_integer_value(json_object_getn(core->behind, next.p, next.n)) > s->ev->time_ms) {
    char_auto_t *name = xstrndup(next.p, next.n);
    const struct call call = {
        .purpose = n->purpose, .stage = n->stage, .invariant = n->invariant, .provider = name};
    next = core_next_backend(core, turn, &call);
  }
  if (next.n == 0 || str_eq(next, n->provider))
    return; /* all were replaced: the first is as good as any */
  json_t *options = taken_options(s, n->options, next);
  json_decref(n->options);
  n->options = options;
  n->provider = next;
  n->model = core_model_of(core->config, next);
}

/* Prepares the call's token. One event may begin several calls, so each gets random bytes of its
 * own, from which a provider may make the id of a new conversation. */
static json_t *prepare_token(const struct step *s, const struct call_request *request) {
  unsigned char entropy[16];
  const json_t *counts =
      json_object_getn(s->core->token_counts, request->provider.p, request->provider.n);
  memcpy(entropy, s->ev->entropy, sizeof entropy);
  for (size_t i = 0; i < sizeof request->call; i++)
    entropy[sizeof entropy - 1 - i] ^= (unsigned char)((unsigned long)request->call >> (8 * i));
  return s->env->prepare(s->env->ctx, request, counts, entropy);
}

/* Puts the schema itself, or a reference to where it was logged first. */
static void calls_put_schema(struct record_draft *d, const struct core *core,
                             const json_t *schema) {
  json_t *schemas = core->schemas;
  for (void *at = json_object_iter(schemas); at; at = json_object_iter_next(schemas, at))
    if (json_same(json_object_iter_value(at), schema)) {
      record_put_ref(d, MEMBER_SCHEMA, json_object_iter_key(at));
      return;
    }
  record_put_tree(d, MEMBER_SCHEMA, json_incref((json_t *)schema));
}

/* vote, invariant, report: which of a turn's calls it is, each from 1; 0: it is none. */
static void call_start_record(const struct step *s, struct record_draft *d, const struct turn *turn,
                              const struct call_request *r, int vote, int invariant, int report) {
  step_turn_record(s, d, RECORD_CALL_START, turn);
  record_put_number(d, MEMBER_CALL, r->call);
  record_put_number(d, MEMBER_ATTEMPT, r->attempt);
  record_put_word(d, MEMBER_PURPOSE, call_purpose_name(r->purpose));
  if (r->stage != STAGE_COUNT)
    record_put_word(d, MEMBER_STAGE, judge_stage_name(r->stage));
  const struct movement *m = core_movement(s->core, turn);
  if (vote > 0)
    record_put_number(d, MEMBER_VOTE, vote);
  if (invariant > 0)
    record_put_number(d, MEMBER_INVARIANT, invariant);
  if (report > 0)
    record_put_text(d, MEMBER_FILE, m->contracts[report - 1].name);
  record_put_bytes(d, MEMBER_PROVIDER, r->provider);
  record_put_bytes(d, MEMBER_MODEL, r->model);
  record_put_bytes(d, MEMBER_MARK, r->mark);
  record_put_tree(d, MEMBER_OPTIONS, json_incref((json_t *)r->options));
  if (r->schema)
    calls_put_schema(d, s->core, r->schema);
  if (r->cwd != NULL)
    record_put_bytes(d, MEMBER_CWD, str_from(r->cwd));
  const struct capability *c = capability_find(s->env->providers, r->provider);
  record_put_tree(d, MEMBER_SANDBOX, sandbox_of_call(s->core->config, m, c, r->argv != NULL));
  record_put_number(d, MEMBER_TIMEOUT_MS, (int64_t)r->timeout_ms);
}

void step_drop_call(struct step_call *n) {
  prompt_deinit(&n->prompt);
  json_decref(n->said);
  json_decref(n->options);
  json_decref(n->schema);
}

static struct call_request first_request(const struct core *core, const struct turn *turn,
                                         const struct step_call *n) {
  const struct movement *m = core_movement(core, turn);
  return (struct call_request){
      .session = core->session,
      .turn = turn->id,
      .call = core->call_count + 1,
      .attempt = 1,
      .purpose = n->purpose,
      .stage = n->stage,
      .movement = m->name,
      .provider = n->provider,
      .model = n->model,
      .options = n->options,
      .argv = step_argv(m, n->purpose, n->invariant),
      .prompt = buf_view(&n->prompt.bytes),
      .mark = n->mark,
      .schema = n->schema,
      .edit = n->purpose == PURPOSE_EXECUTE && m->writes,
      .permission = n->purpose == PURPOSE_EXECUTE ? m->permission : PERMISSION_READONLY,
      .run = n->purpose == PURPOSE_EXECUTE ? m->run : NULL,
      .timeout_ms = budget_time_left(core, turn, n->timeout_ms),
  };
}

/* Makes the notes on budgets that are due when a call begins. Returns a new list, NULL if there are
 * none. */
static json_t *start_notes(const struct step *s, const struct turn *turn, struct str provider) {
  struct budget_hit hit;
  json_t *notes = budget_count_notes(s->core, turn->movement, BUDGET_CALLS);
  if (s->env->day_notes == NULL || !s->env->day_notes(s->env->ctx, provider, &hit))
    return notes;
  json_t *day = budget_day_notes(&hit);
  if (notes != NULL)
    json_array_extend(day, notes);
  json_decref(notes);
  return day;
}

static json_t *step_without_nulls(json_t *options) {
  json_t *kept = NULL;
  JSON_MEMBERS(options, name, value) {
    if (kept == NULL && !json_is_null(value))
      kept = json_object();
    if (!json_is_null(value))
      json_object_set(kept, name, value);
  }
  json_decref(options);
  return kept;
}

/* Hashes a question without the words that are new for each turn, so that equal ones group. */
static void hash_question(struct str prompt, struct str fence, struct str mark,
                          char out[SHA256_HEX]) {
  const struct str dropped[] = {fence, mark};
  buf_auto_t bare = {0};
  for (size_t i = 0, n; i < prompt.n; i += n) {
    n = 0;
    for (size_t k = 0; k < ARRAY_LEN(dropped) && n == 0; k++)
      if (dropped[k].n > 0 && dropped[k].n <= prompt.n - i &&
          memcmp(prompt.p + i, dropped[k].p, dropped[k].n) == 0)
        n = dropped[k].n;
    if (n == 0)
      buf_putc(&bare, prompt.p[i]);
    n += n == 0;
  }
  sha256_hex(buf_c(&bare), bare.n, NULL, 0, out);
}

void step_start_call(struct step *s, struct turn *turn, struct step_call *n) {
  const struct movement *m = core_movement(s->core, turn);
  if (step_over_budget(s, turn, NULL, n->provider)) {
    s->refused = true;
    step_drop_call(n);
    return;
  }
  n->options = step_without_nulls(n->options);
  if (s->core->behind != NULL)
    pass_over(s, turn, n);
  struct call_request request = first_request(s->core, turn, n);
  buf_auto_t cwd = {0};
  limits_cwd(s->core->workflow, m, s->core->structured, &cwd);
  request.cwd = cwd.n > 0 ? buf_c(&cwd) : NULL;
  const char *why_not = NULL;
  choose_session(s, turn, n, &request, &why_not);
  struct record_draft d;
  struct prompt_log log;
  call_start_record(s, &d, turn, &request, n->vote, n->invariant, n->report);
  calls_put_session(&d, &request, why_not);
  json_t *token = prepare_token(s, &request);
  record_put_tree(&d, MEMBER_TOKEN, token);
  char sha256[SHA256_HEX];
  if (n->stage != STAGE_COUNT) {
    hash_question(request.prompt, n->fence, str_from(turn->mark), sha256);
    record_put_text(&d, MEMBER_PROMPT_SHA256, str_from(sha256));
  }
  prompt_log_init(&log, &n->prompt, &s->core->texts);
  record_put_parts(&d, MEMBER_PROMPT, log.parts, log.count);
  record_put_tree(&d, MEMBER_SAID, json_incref(n->said));
  record_put_tree(&d, MEMBER_BUDGET, start_notes(s, turn, request.provider));
  step_emit(s, &d);
  prompt_log_deinit(&log);
  struct call *call = turn_call(turn, request.call);
  assert(call != NULL);
  buf_deinit(&call->prompt);
  call->prompt = n->prompt.bytes; /* not state: the effect sends it; recovery reads it back */
  n->prompt.bytes = (struct buf){0};
  step_drop_call(n);
  step_effect(s, EFFECT_START_CALL, call->id, 0);
}

/* Returns the conversation that the next attempt continues, NULL if it begins a new one. */
static const char *next_session(const struct step *s, const struct call *call,
                                const char **reason) {
  const struct capability *c = capability_find(s->env->providers, str_from(call->provider));
  bool works = call->purpose == PURPOSE_EXECUTE || call->resumed;
  bool can = works && c && c->sessions && call->provider_session;
  if (can && call->session_lost)
    *reason = "the backend has lost that conversation";
  else if (can && call->fallback && strcmp(call->fallback, call->provider) != 0)
    *reason = "it was another provider's";
  else if (can && call->forks && !c->forks)
    *reason = "the backend cannot fork it";
  else if (can) /* so that finished work is not done again */
    return call->provider_session;
  return NULL;
}

/* Gives what the user or the workflow says of outages. Returns false if none is waited for. */
static bool outage_setting(const struct core *core, const struct call *call, struct str *said) {
  const json_t *config = json_at(core->config, "wait_for_outage");
  const json_t *own = json_at(core->workflow->doc, "wait_for_outage");
  const json_t *setting = own == NULL || json_is_false(config) ? config : own;
  *said = json_view(setting);
  return !json_is_false(setting) && !str_eq_c(*said, "off") &&
         !json_is_false(json_object_get(core->reached, call->provider));
}

bool core_waits_for_outage(const struct core *core, const struct call *call) {
  struct str said;
  return outage_setting(core, call, &said);
}

/* Returns for how long an outage of the call's provider is waited for; 0: not at all. */
static int64_t outage_most(const struct step *s, const struct call *call) {
  struct str said;
  if (!outage_setting(s->core, call, &said))
    return 0;
  bool known =
      json_object_get(s->core->reached, call->provider) != NULL ||
      (s->env->has_answered != NULL && s->env->has_answered(s->env->ctx, str_from(call->provider)));
  int64_t most = limits_duration_ms(said, LIMIT_OUTAGE_WAIT_MS);
  return known || most < LIMIT_OUTAGE_NEW_WAIT_MS ? most : LIMIT_OUTAGE_NEW_WAIT_MS;
}

/* Returns until when the call waits for its provider. */
static int64_t outage_until(const struct step *s, const struct call *call) {
  int64_t now_ms = s->ev->time_ms, began_ms = now_ms;
  if (call->outage.tries > 0 && call->outage.began_ms < now_ms)
    began_ms = call->outage.began_ms; /* else the clock was set back */
  int64_t until_ms = began_ms + outage_most(s, call);
  int64_t total_ms = now_ms + LIMIT_OUTAGE_TOTAL_MS - s->core->away.ms;
  return until_ms < total_ms ? until_ms : total_ms;
}

/* until_ms 0: until a person has logged in. */
static void put_outage(struct record_draft *d, const struct call *call, int64_t since_ms,
                       int64_t until_ms, int tries) {
  char since[RECORD_TIME_BYTES], until[RECORD_TIME_BYTES];
  record_time(since_ms, since);
  record_time(until_ms, until);
  record_put_tree(d, MEMBER_OUTAGE,
                  json_pack("{so ss ss* si}", "provider", json_text(str_from(call->provider)),
                            "since", since, "until", until_ms > 0 ? until : NULL, "tries", tries));
}

/* Puts what the outage's times are after a wait: later by all time in which nobody waited, as the
 * host's clock knows it. */
static void put_outage_waited(const struct step *s, struct record_draft *d,
                              const struct call *call) {
  int64_t late_ms = s->ev->time_ms - call->outage.from_ms - s->ev->away.waited_ms;
  int64_t until_ms = call->outage.until_ms;
  if (call->outage.tries == 0 || s->ev->away.waited_ms <= 0)
    return;
  if (late_ms <= LIMIT_OUTAGE_LATE_MS && late_ms >= -LIMIT_OUTAGE_LATE_MS)
    late_ms = 0;
  put_outage(d, call, call->outage.since_ms + late_ms, until_ms > 0 ? until_ms + late_ms : 0,
             call->outage.tries);
}

/* Returns since when the provider is away, as the call or the host knows it. */
static int64_t outage_since(const struct step *s, const struct call *call) {
  int64_t since_ms = s->ev->time_ms, told_ms = s->ev->away.since_ms;
  if (call->outage.tries > 0 && call->outage.since_ms < since_ms)
    since_ms = call->outage.since_ms;
  return told_ms > 0 && told_ms < since_ms ? told_ms : since_ms;
}

/* Puts in front of the prompt of work that the last attempt was ended because it said nothing.
 * Returns the number of bytes put there; 0: nothing was, or it stands there from an attempt before.
 * A prompt that the log cannot hold as text stays as it is. */
static size_t tell_stall(const struct core *core, struct call *call) {
  struct buf prompt = {.max = call->prompt.max};
  long long silent_s = (call->stalls.last_ms + 999) / 1000;
  struct str was = buf_view(&call->prompt);
  if (silent_s == 0 || call->purpose != PURPOSE_EXECUTE || !utf8_valid(was.p, was.n))
    return 0;
  if (workflow_language(core->workflow) == DESCRIBE_JAPANESE)
    buf_printf(&prompt,
               "前回の実行は %lld 秒間何も出力しなかったため、終了されました。"
               "すでに済んでいることを確認し、そこから続けてください。\n\n",
               silent_s);
  else
    buf_printf(&prompt,
               "Your last run printed nothing for %lld s, so it was ended. Look at what is done "
               "already, and go on from there.\n\n",
               silent_s);
  size_t told = str_starts(was, buf_c(&prompt)) ? 0 : prompt.n;
  if (told > 0) {
    buf_str(&prompt, was);
    buf_deinit(&call->prompt);
    call->prompt = prompt; /* not state, like all of it */
  } else {
    buf_deinit(&prompt);
  }
  return told;
}

/* Puts there what a person said and its prompt has not; *said: as of steer_put. Returns the number
 * of bytes put there. */
static size_t tell_steer(const struct core *core, const struct turn *turn, struct call *call,
                         json_t **said) {
  struct str was = buf_view(&call->prompt);
  struct prompt prompt = {.bytes = call->prompt}; /* not state, like all of it */
  if (!steer_takes(core, turn, call->purpose) || was.n > LIMIT_PROMPT_BYTES / 2 ||
      !utf8_valid(was.p, was.n))
    return 0;
  *said = steer_put(core, turn, call, &prompt);
  free(prompt.parts);
  call->prompt = prompt.bytes;
  return call->prompt.n - was.n;
}

void step_restart_call(struct step *s, struct turn *turn, struct call *call, bool repeats) {
  struct call_request request;
  struct str first, model;
  const char *reason = NULL, *id = next_session(s, call, &reason);
  json_auto_t *options = NULL;
  json_auto_t *said = NULL;
  size_t told = tell_steer(s->core, turn, call, &said);
  told += tell_stall(s->core, call);
  core_request(s->core, turn, call, &request);
  request.attempt = call->attempt + 1;
  request.provider_session = id ? str_from(id) : STR("");
  request.forks = call->forks;
  if (call_is_own(call) && call->purpose != PURPOSE_REPORT)
    request.timeout_ms = (uint64_t)step_time_left(s, turn, (int64_t)call->timeout_ms);
  request.timeout_ms = budget_time_left(s->core, turn, request.timeout_ms);
  if (call->fallback != NULL) {
    request.provider = str_from(call->fallback);
    core_first_backend(s->core, turn, call, &first, &model);
    request.model =
        str_eq(request.provider, first) ? model : core_model_of(s->core->config, request.provider);
    request.options = options = taken_options(s, call->wanted, request.provider);
  }
  struct record_draft d;
  call_start_record(s, &d, turn, &request, call->vote, call->invariant, call->report);
  calls_put_session(&d, &request, reason);
  put_outage_waited(s, &d, call);
  json_t *token = repeats ? json_incref(call->token) : prepare_token(s, &request);
  record_put_tree(&d, MEMBER_TOKEN, token);
  record_put_tree(&d, MEMBER_SAID, json_incref(said));
  if (repeats)
    record_put_number(&d, MEMBER_REPEATS, call->attempt);
  struct record_part parts[] = {{{call->prompt.p, told}, false},
                                {{call->prompt.p + told, call->prompt.n - told}, false}};
  if (told > 0)
    record_put_parts(&d, MEMBER_PROMPT, parts, ARRAY_LEN(parts));
  else
    record_put_number(&d, MEMBER_PROMPT_OF, (int64_t)call->prompt_seq);
  step_emit(s, &d);
  step_effect(s, EFFECT_START_CALL, call->id, 0);
}

/* --- what a call reports, and its end --- */

/* Goes to the provider that takes over, unless none is wanted. During a drain that is left to the
 * resume. */
static void go_elsewhere(struct step *s, struct turn *turn, struct call *call) {
  if (!s->env->draining && !group_stops(s->core, turn) &&
      !step_over_budget(s, turn, call, step_next_place(call)))
    step_restart_call(s, turn, call, false);
}

/* Returns the pause before the next attempt: it doubles up to `most`, half fixed, half jitter. */
static int64_t retry_pause(const struct step *s, int64_t first, int times, int64_t most) {
  int64_t wait = first << (times < 16 ? times : 16);
  wait = wait < most ? wait : most;
  return wait / 2 + (int64_t)s->ev->entropy[15] * (wait / 2) / 255;
}

/* Returns the pause before the next attempt while the provider is away, and puts since when it is
 * and until when it is waited for: the last attempt comes then. -1: that time is over. */
static int64_t outage_pause(const struct step *s, const struct call *call,
                            const struct call_result *r, struct record_draft *d) {
  int64_t now_ms = s->ev->time_ms, until_ms = s->ev->away.held ? 0 : outage_until(s, call);
  int tries = call->outage.tries + 1;
  tries = tries > s->ev->away.tries ? tries : s->ev->away.tries;
  if (!s->ev->away.held && until_ms <= now_ms + LIMIT_BUDGET_SLACK_MS)
    return -1;
  /* The longest pause has no jitter: those before it keep machines apart. */
  int64_t wait = LIMIT_OUTAGE_MAX_MS;
  if (!s->ev->away.held && (int64_t)LIMIT_OUTAGE_PAUSE_MS << (tries < 16 ? tries - 1 : 15) < wait)
    wait = retry_pause(s, LIMIT_OUTAGE_PAUSE_MS, tries - 1, LIMIT_OUTAGE_MAX_MS);
  wait = wait > r->retry_after_ms ? wait : r->retry_after_ms;
  put_outage(d, call, outage_since(s, call), until_ms, tries);
  return until_ms == 0 || wait < until_ms - now_ms ? wait : until_ms - now_ms;
}

/* Returns how often a call that says nothing is tried again: another attempt mostly answers. */
static long stall_retries(const struct step *s, const struct turn *turn, const struct call *call) {
  if (step_is_command(s->core, turn, call)) /* it may have done half of its work */
    return 0;
  return call_is_own(call) ? core_movement(s->core, turn)->stall_retries : LIMIT_STALL_RETRY_COUNT;
}

/* Returns the wait before another attempt at the same provider, -1 if there is to be none. */
static int64_t retry_delay(const struct step *s, const struct turn *turn, const struct call *call,
                           const struct call_result *r, bool once_more, bool may_fall_back,
                           struct record_draft *d) {
  int attempts = once_more ? LIMIT_SILENT_ATTEMPT_COUNT : LIMIT_CALL_ATTEMPT_COUNT;
  if (r->class == CLASS_BUDGET && call->failures + 1 < LIMIT_CALL_ATTEMPT_COUNT)
    return 0;                                    /* it waits for a person to add to the budget */
  bool report = call->purpose == PURPOSE_REPORT; /* another call reports everything */
  if (r->class == CLASS_NOT_FOUND && call->resumed && !call->session_lost && !report)
    return 0; /* its conversation may be gone: try once more without it */
  if (r->silent_ms > 0 && call->stalls.count < stall_retries(s, turn, call))
    return retry_pause(s, LIMIT_RETRY_BASE_MS, call->stalls.count, LIMIT_RETRY_MAX_MS);
  if (s->ev->away.held && !may_fall_back)
    return outage_pause(s, call, r, d);
  bool passes = error_class_is_transient(r->class), gives_up = call->failures + 1 >= attempts;
  bool in_time = r->retry_after_ms > 0 && !gives_up; /* the backend named a time: it is kept to */
  if (passes && !may_fall_back && !in_time && r->retry_after_ms <= LIMIT_RETRY_AFTER_MS &&
      (call->outage.tries > 0 || outage_most(s, call) > 0))
    return outage_pause(s, call, r, d);
  if ((!once_more && !passes) || gives_up)
    return -1;
  if (r->retry_after_ms > LIMIT_RETRY_AFTER_MS &&
      json_is_false(json_at(s->core->config, "wait_for_reset")))
    return -1;
  if (r->retry_after_ms > LIMIT_RETRY_AFTER_MS)
    return may_fall_back || r->retry_after_ms > LIMIT_RESET_WAIT_MS ? -1 : r->retry_after_ms;
  if (r->retry_after_ms > 0)
    return r->retry_after_ms;
  return retry_pause(s, LIMIT_RETRY_BASE_MS, call->failures, LIMIT_RETRY_MAX_MS);
}

static void put_error(struct record_draft *d, const struct call_result *r) {
  struct str message = str_from(r->message);
  json_t *error = json_pack("{ss}", "class", error_class_name(r->class));
  if (utf8_valid(message.p, message.n))
    json_put(error, "message", json_stringn_nocheck(message.p, message.n));
  else
    json_put(error, "message", text_render(message));
  if (r->retry_after_ms > 0)
    json_put(error, "retry_after_ms", json_integer(r->retry_after_ms));
  if (r->silent_ms > 0)
    json_put(error, "silent_ms", json_integer(r->silent_ms));
  record_put_tree(d, MEMBER_ERROR, error);
}

/* Puts what a result holds besides its text, and counts it in the day. */
static void put_result_members(const struct step *s, const struct turn *turn,
                               const struct call *call, struct record_draft *d,
                               const struct call_result *r) {
  const struct core *core = s->core;
  json_t *usage = step_call_usage(core, call, r);
  record_put_tree(d, MEMBER_STRUCTURED, json_incref(r->structured));
  if (r->enforced)
    record_put_text(d, MEMBER_ENFORCED, str_from(r->enforced));
  if (r->has_exit)
    record_put_number(d, MEMBER_EXIT, r->exit);
  const char *fell = checks_fell(core, turn, r->tests);
  json_t *tests = fell != NULL && r->exit == 0 ? json_clone_top(r->tests) : json_incref(r->tests);
  if (tests != r->tests)
    json_put(tests, "fell", json_string(fell));
  record_put_tree(d, MEMBER_TESTS, tests);
  if (r->signal > 0)
    record_put_number(d, MEMBER_SIGNAL, r->signal);
  if (r->error_text.bytes.n > 0)
    step_put_text(d, MEMBER_STDERR, &r->error_text);
  if (r->dropped_bytes > 0)
    record_put_number(d, MEMBER_DROPPED_BYTES, (int64_t)r->dropped_bytes);
  if (r->error_dropped_bytes > 0)
    record_put_number(d, MEMBER_STDERR_DROPPED_BYTES, (int64_t)r->error_dropped_bytes);
  record_put_tree(d, MEMBER_FILES, json_incref(r->files));
  if (r->files_more > 0)
    record_put_number(d, MEMBER_FILES_MORE, (int64_t)r->files_more);
  if (r->files_shared)
    record_put_bool(d, MEMBER_FILES_SHARED, true);
  record_put_bytes(d, MEMBER_FILES_UNKNOWN, str_from(r->files_unknown));
  if (r->protected_seen)
    record_put_bool(d, MEMBER_PROTECTED_SEEN, true);
  record_put_tree(d, MEMBER_FILES_BETWEEN, json_incref(r->files_between));
  record_put_tree(d, MEMBER_HEAD, json_incref(r->head));
  record_put_tree(d, MEMBER_UNFINISHED, json_incref(r->unfinished));
  record_put_tree(d, MEMBER_OUTLIVED, json_incref(r->outlived));
  record_put_tree(d, MEMBER_REQUESTS, json_incref(r->requests));
  record_put_tree(d, MEMBER_USAGE, usage);
  record_put_bytes(d, MEMBER_PROVIDER_SESSION, str_from(r->provider_session));
  record_put_bytes(d, MEMBER_NOTE, str_from(r->note));
  record_put_number(d, MEMBER_DURATION_MS, r->duration_ms);
  struct spend used = spend_of(usage, r->duration_ms);
  if (s->env->day_count != NULL)
    s->env->day_count(s->env->ctx, call, &used);
  record_put_tree(d, MEMBER_BUDGET,
                  budget_notes(core, turn, call, usage, r->duration_ms, r->class == CLASS_NONE));
}

void step_call_end(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  if (call == NULL || call->state != CALL_RUNNING)
    return; /* cancelled, or of an earlier attempt */
  assert(s->ev->result != NULL);
  struct call_result r = *s->ev->result; /* borrowed: only its class and message may change */
  int64_t wait = -1;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_CALL_END, turn);
  record_put_number(&d, MEMBER_CALL, call->id);
  record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
  /* A backend that answered without saying anything gave no answer. A command may be silent: its
   * exit status speaks. */
  bool silent = r.class == CLASS_NONE && r.structured == NULL &&
                !step_is_command(s->core, turn, call) &&
                extract_says_nothing(buf_view(&r.text.bytes));
  if (r.class == CLASS_BUDGET || r.class == CLASS_LOOPING)
    step_explain_end(s->core, turn, call, &r);
  if (silent)
    call_result_fail(&r, CLASS_PROTOCOL, "the answer is empty%s",
                     str_trim(buf_view(&r.text.bytes)).n > 0 ? ": it holds reasoning alone" : "");
  if (r.class != CLASS_NONE) {
    put_error(&d, &r);
    struct str next = core_next_backend(s->core, turn, call);
    /* Nobody could read the reply (a proxy's page, say): work that changes nothing may be asked for
     * again. */
    bool work = call->purpose == PURPOSE_EXECUTE || call->purpose == PURPOSE_REASK ||
                call->purpose == PURPOSE_REPORT;
    bool once_more = silent || (r.class == CLASS_PROTOCOL && work &&
                                !s->core->workflow->movements[turn->movement].edit &&
                                !step_is_command(s->core, turn, call));
    wait = retry_delay(s, turn, call, &r, once_more, next.n > 0, &d);
    if (wait >= 0)
      record_put_number(&d, MEMBER_RETRY_IN_MS, wait);
    else if (next.n > 0 && (r.elsewhere || error_class_falls_back(r.class)))
      record_put_bytes(&d, MEMBER_FALLBACK, next);
    if (r.text.bytes.n > 0)
      step_put_text(&d, MEMBER_TEXT, &r.text); /* the text that came before it failed */
  } else {
    step_put_text(&d, MEMBER_TEXT, &r.text);
  }
  put_result_members(s, turn, call, &d, &r);
  step_emit(s, &d);
  if (wait >= 0)
    step_effect(s, EFFECT_TIMER, call->id, wait);
  else if (call->fallback != NULL)
    go_elsewhere(s, turn, call);
}

void step_admission(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  if (call == NULL || call->state != CALL_RUNNING)
    return;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_ADMISSION, turn);
  char until[RECORD_TIME_BYTES];
  record_put_number(&d, MEMBER_CALL, call->id);
  record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
  record_put_bytes(&d, MEMBER_PROVIDER, str_from(call->provider));
  record_put_word(&d, MEMBER_ANSWER, admission_name(s->ev->admission));
  record_put_bytes(&d, MEMBER_REASON, str_from(s->ev->reason));
  record_put_bytes(&d, MEMBER_MESSAGE, str_from(s->ev->message));
  if (s->ev->until_ms > 0) {
    record_time(s->ev->until_ms, until);
    record_put_text(&d, MEMBER_UNTIL, str_from(until));
  }
  if (s->ev->admission == ADMISSION_WAIT && s->ev->away.since_ms > 0)
    put_outage(&d, call, outage_since(s, call),
               strcmp(s->ev->reason, error_class_name(CLASS_AUTH)) == 0 ? 0 : outage_until(s, call),
               call->outage.tries > s->ev->away.tries ? call->outage.tries : s->ev->away.tries);
  else if (s->ev->admission == ADMISSION_ADMITTED)
    put_outage_waited(s, &d, call);
  if (s->ev->admission == ADMISSION_FALLBACK)
    record_put_bytes(&d, MEMBER_FALLBACK, core_next_backend(s->core, turn, call));
  step_emit(s, &d);
  if (call->fallback != NULL)
    go_elsewhere(s, turn, call);
  else if (s->ev->admission == ADMISSION_ADMITTED)
    step_effect(s, EFFECT_START_CALL, call->id, 0);
}

void step_call_news(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  const json_t *news = s->ev->news;
  if (call == NULL || call->state != CALL_RUNNING ||
      (call->event_count >= LIMIT_CALL_EVENT_COUNT && json_at(news, "tried") == NULL &&
       json_at(news, "said") == NULL) ||
      (news && json_dumpb(news, NULL, 0, JSON_COMPACT) > LIMIT_CALL_EVENT_BYTES))
    return;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_CALL_EVENT, turn);
  record_put_number(&d, MEMBER_CALL, call->id);
  record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
  record_put_word(&d, MEMBER_EVENT, s->ev->news_kind);
  record_put_tree(&d, MEMBER_DATA, json_incref((json_t *)news));
  step_emit(s, &d);
  if (strcmp(s->ev->news_kind, "usage") == 0) {
    struct budget_hit hit;
    for (const struct turn *t = s->core->turns; t; t = t->next)
      for (const struct call *c = t->calls; c; c = c->next)
        if (c->state == CALL_RUNNING && budget_must_end_call(s->core, t, c, &hit))
          end_call_as(s, c, CLASS_BUDGET);
  } else if (strcmp(s->ev->news_kind, "tool") == 0 && json_at(news, "argument") != NULL)
    step_guard_call(s, turn, call);
}
