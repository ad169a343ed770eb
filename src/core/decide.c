#include "core/decide.h"

#include "base/log.h"
#include "core/apply.h"
#include "core/prompt.h"
#include "core/record.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void core_out_deinit(struct core_out *out) {
  for (size_t i = 0; i < out->record_count; i++)
    json_decref(out->records[i]);
  free(out->records);
  free(out->effects);
  *out = (struct core_out){0};
}

/* One step: everything a decision reads and writes. */
struct step {
  struct core *core;
  const struct event *ev;
  const struct core_env *env;
  struct core_out *out;
  const struct text *incoming; /* the text that just came, for apply */
  struct workflow *workflow;   /* of a session that starts */
};

static bool incoming_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  const struct step *s = ctx;
  (void)err;
  assert(s->incoming != NULL && strcmp(s->incoming->blob, sha256) == 0);
  buf_append(out, s->incoming->bytes.p, s->incoming->bytes.n);
  return true;
}

/* Applies a record and puts it out. Takes it over. */
static void emit(struct step *s, json_t *record) {
  struct err err = {0};
  const struct core_source source = {s, incoming_blob};
  if (!core_apply(s->core, record, s->workflow, &source, &err))
    BUG("own record: %s", err.text);
  struct core_out *out = s->out;
  out->records = xrealloc(out->records, (out->record_count + 1) * sizeof *out->records);
  out->records[out->record_count++] = record;
}

static void effect(struct step *s, enum effect_kind kind, long call, int64_t delay_ms) {
  struct core_out *out = s->out;
  out->effects = xrealloc(out->effects, (out->effect_count + 1) * sizeof *out->effects);
  out->effects[out->effect_count++] = (struct effect){kind, call, delay_ms};
}

static json_t *new_record(const struct step *s, const char *type) {
  return record_new(s->core->seq + 1, s->ev->time_ms, type);
}

static json_t *turn_record(const struct step *s, const char *type, const struct turn *turn) {
  json_t *record = new_record(s, type);
  json_object_set_new_nocheck(record, "turn", json_integer(turn->id));
  return record;
}

static void set_text(json_t *record, const char *key, const struct text *text) {
  struct str view = buf_view(&text->bytes);
  char name[32];
  if (text->blob[0] == '\0') {
    assert(!text_needs_blob(view)); /* the host's work, on entry */
    json_object_set_new_nocheck(record, key,
                                json_stringn_nocheck(view.p, view.n)); /* checked on entry */
    return;
  }
  json_object_set_new_nocheck(record, key, text_render(view));
  (void)snprintf(name, sizeof name, "%s_blob", key);
  json_object_set_new_nocheck(record, name, json_string_nocheck(text->blob));
  (void)snprintf(name, sizeof name, "%s_bytes", key);
  json_object_set_new_nocheck(record, name, json_integer((json_int_t)view.n));
}

/* --- ending and stopping --- */

static void cancel_running(struct step *s) {
  for (struct turn *t = s->core->turns; t; t = t->next)
    for (struct call *c = t->calls; c; c = c->next)
      if (c->state == CALL_RUNNING)
        effect(s, EFFECT_CANCEL_CALL, c->id, 0);
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

static void end_session(struct step *s, enum session_outcome outcome, const char *message) {
  cancel_running(s);
  json_t *record = new_record(s, "session_end");
  json_object_set_new_nocheck(record, "outcome",
                              json_string_nocheck(session_outcome_name(outcome)));
  if (message && message[0])
    json_object_set_new_nocheck(record, "message", json_text(str_from(message)));
  json_object_set_new_nocheck(record, "turns", json_integer(s->core->turn_count));
  json_object_set_new_nocheck(record, "methods", method_counts(s->core));
  emit(s, record);
  effect(s, EFFECT_FINISHED, 0, 0);
}

static void stop_session(struct step *s, const char *reason, const struct turn *turn,
                         enum error_class class, struct str message) {
  cancel_running(s);
  json_t *record = new_record(s, "session_stop");
  json_object_set_new_nocheck(record, "reason", json_string_nocheck(reason));
  if (turn != NULL)
    json_object_set_new_nocheck(record, "turn", json_integer(turn->id));
  if (class != CLASS_NONE)
    json_object_set_new_nocheck(record, "class", json_string_nocheck(error_class_name(class)));
  record_set_str(record, "message", message);
  json_object_set_new_nocheck(record, "resumable", json_true());
  emit(s, record);
  effect(s, EFFECT_FINISHED, 0, 0);
}

/* --- calls --- */

void core_request(const struct core *core, const struct turn *turn, const struct call *call,
                  struct call_request *out) {
  const struct movement *m = &core->workflow->movements[turn->movement];
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
      .argv = call->purpose == PURPOSE_EXECUTE ? m->argv : NULL,
      .prompt = buf_view(&call->prompt),
      .schema = call->schema,
      .token = call->token,
      .edit = call->purpose == PURPOSE_EXECUTE && (m->edit || m->argv != NULL),
      .timeout_ms = call->timeout_ms,
  };
}

/* A call that does not exist yet: its parts are handed over here. */
struct new_call {
  enum call_purpose purpose;
  enum judge_stage stage;
  struct str provider, model;
  json_t *options, *schema; /* taken; may be NULL */
  uint64_t timeout_ms;
  struct prompt prompt; /* taken */
};

static json_t *prepare_token(const struct step *s, const struct call_request *request) {
  char provider[LIMIT_NAME_BYTES + 1];
  (void)snprintf(provider, sizeof provider, "%.*s", (int)request->provider.n, request->provider.p);
  return s->env->prepare(s->env->ctx, request, json_object_get(s->core->token_counts, provider),
                         s->ev->entropy);
}

/* The schema itself, or where it was logged first. */
static json_t *schema_or_ref(const struct core *core, const json_t *schema) {
  const char *place;
  json_t *known;
  json_object_foreach(core->schemas, place, known) {
    if (json_equal(known, schema))
      return json_pack("{ss}", "ref", place);
  }
  return json_incref((json_t *)schema);
}

static json_t *call_start_record(const struct step *s, const struct turn *turn,
                                 const struct call_request *r) {
  json_t *record = turn_record(s, "call_start", turn);
  json_object_set_new_nocheck(record, "call", json_integer(r->call));
  json_object_set_new_nocheck(record, "attempt", json_integer(r->attempt));
  json_object_set_new_nocheck(record, "purpose",
                              json_string_nocheck(call_purpose_name(r->purpose)));
  if (r->stage != STAGE_COUNT)
    json_object_set_new_nocheck(record, "stage", json_string_nocheck(judge_stage_name(r->stage)));
  record_set_str(record, "provider", r->provider);
  record_set_str(record, "model", r->model);
  if (r->options)
    json_object_set_nocheck(record, "options", (json_t *)r->options);
  if (r->schema)
    json_object_set_new_nocheck(record, "schema", schema_or_ref(s->core, r->schema));
  json_object_set_new_nocheck(record, "timeout_ms", json_integer((json_int_t)r->timeout_ms));
  return record;
}

static void start_call(struct step *s, struct turn *turn, struct new_call *n) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  struct call_request request = {
      .session = s->core->session,
      .turn = turn->id,
      .call = s->core->call_count + 1,
      .attempt = 1,
      .purpose = n->purpose,
      .stage = n->stage,
      .movement = m->name,
      .provider = n->provider,
      .model = n->model,
      .options = n->options,
      .argv = n->purpose == PURPOSE_EXECUTE ? m->argv : NULL,
      .prompt = buf_view(&n->prompt.bytes),
      .schema = n->schema,
      .edit = m->edit,
      .timeout_ms = n->timeout_ms,
  };
  json_t *record = call_start_record(s, turn, &request);
  json_t *token = prepare_token(s, &request);
  if (token)
    json_object_set_new_nocheck(record, "token", token);
  json_object_set_new_nocheck(record, "prompt", prompt_parts(&n->prompt, &s->core->texts));
  emit(s, record);
  struct call *call = turn_call(turn, request.call);
  assert(call != NULL);
  buf_deinit(&call->prompt);
  call->prompt = n->prompt.bytes; /* not state: what the effect sends; recovery reads it back */
  n->prompt.bytes = (struct buf){0};
  prompt_deinit(&n->prompt);
  json_decref(n->options);
  json_decref(n->schema);
  effect(s, EFFECT_START_CALL, call->id, 0);
}

/* The same call once more. `repeats`: the attempt before may have been sent (a crash), so it keeps
 * its token; else the wait after a failure is over and the provider prepares anew. */
static void restart_call(struct step *s, struct turn *turn, struct call *call, bool repeats) {
  struct call_request request;
  core_request(s->core, turn, call, &request);
  request.attempt = call->attempt + 1;
  json_t *record = call_start_record(s, turn, &request);
  json_t *token = repeats ? json_incref(call->token) : prepare_token(s, &request);
  if (token)
    json_object_set_new_nocheck(record, "token", token);
  if (repeats)
    json_object_set_new_nocheck(record, "repeats", json_integer(call->attempt));
  json_object_set_new_nocheck(record, "prompt_of", json_integer((json_int_t)call->prompt_seq));
  emit(s, record);
  effect(s, EFFECT_START_CALL, call->id, 0);
}

/* --- turns --- */

static void hex_nonce(const unsigned char entropy[16], char out[17]) {
  for (int i = 0; i < 8; i++)
    (void)snprintf(out + 2 * i, 3, "%02x", entropy[i]);
}

static void view_of(const struct step *s, const struct turn *turn, const char *nonce,
                    struct prompt_view *view) {
  const struct core *core = s->core;
  *view = (struct prompt_view){
      .workflow = core->workflow,
      .movement = &core->workflow->movements[turn->movement],
      .overrides = json_object_get(core->config, "templates"),
      .task = buf_view(&core->task),
      .previous = buf_view(&core->last_text),
      .task_seq = 1,
      .previous_seq = core->last_text_seq,
      .answer_seq = turn->text_seq,
      .has_previous = core->has_last_text,
      .iteration = turn->iteration,
      .movement_iteration = turn->movement_iteration,
      .answer = buf_view(&turn->text),
      .has_exit = turn->has_exit,
      .exit = turn->exit,
      .nonce = nonce,
  };
}

static json_t *merged(const json_t *base, const json_t *top) {
  if (base == NULL && top == NULL)
    return NULL;
  json_t *both = base ? json_copy((json_t *)base) : json_object();
  if (top)
    json_object_update(both, (json_t *)top);
  return both;
}

static void execute_turn(struct step *s, struct turn *turn) {
  const struct core *core = s->core;
  const struct movement *m = &core->workflow->movements[turn->movement];
  struct prompt_view view;
  struct new_call n = {.purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT};
  view_of(s, turn, NULL, &view);
  core_backend(core->workflow, core->config, turn->movement, &n.provider, &n.model);
  if (m->argv == NULL) { /* the user's defaults, the file's, the flags' on top */
    json_t *base = merged(json_object_get(core->config, "default_options"), m->options);
    n.options = merged(base, json_object_get(core->config, "options"));
    json_decref(base);
  }
  n.timeout_ms = LIMIT_CALL_WALL_MS;
  prompt_execute(&view, &n.prompt);
  if (n.prompt.bytes.cut) { /* never a shorter one than was meant */
    stop_session(
        s, "prompt_too_long", turn, CLASS_BAD_REQUEST,
        STR("the prompt is over the limit of 24 MiB: shorten the task or the response before"));
    prompt_deinit(&n.prompt);
    json_decref(n.options);
    return;
  }
  start_call(s, turn, &n);
}

static json_t *when_env(const struct core *core, const struct turn *turn) {
  json_t *env = json_object();
  json_object_set_new_nocheck(env, "iteration", json_integer(turn->iteration));
  json_object_set_new_nocheck(env, "movement_iteration", json_integer(turn->movement_iteration));
  json_object_set_nocheck(env, "structured", core->structured);
  const struct movement *m = &core->workflow->movements[turn->movement];
  if (turn->has_exit)
    json_object_set_new_nocheck(env, "exit", json_integer(turn->exit));
  if (turn->structured) { /* a rule may look at its own movement's value */
    json_t *own = json_copy(core->structured);
    json_object_setn_new(own, m->name.p, m->name.n, json_incref(turn->structured));
    json_object_set_new_nocheck(env, "structured", own);
  }
  return env;
}

static void judge_call(struct step *s, struct turn *turn, const struct chain_spec *spec,
                       const struct chain_step *step) {
  const struct core *core = s->core;
  const struct movement *m = &core->workflow->movements[turn->movement];
  struct new_call n = {.purpose = step->reask ? PURPOSE_REASK : PURPOSE_JUDGE,
                       .stage = step->stage,
                       .timeout_ms = (uint64_t)m->judge.timeout_ms};
  struct prompt_view view;
  char nonce[17];
  hex_nonce(s->ev->entropy, nonce);
  view_of(s, turn, nonce, &view);
  core_judge_backend(core->workflow, core->config, turn->movement, &n.provider, &n.model);
  struct str name = n.provider;
  const struct capability *cap = capability_find(s->env->providers, name);
  json_t *base =
      cap && (cap->options & OPTION_TEMPERATURE) ? json_pack("{si}", "temperature", 0) : NULL;
  n.options = merged(base, m->judge.options);
  json_decref(base);
  n.schema = chain_call_schema(spec, step->stage);
  if (step->reask) {
    struct str bad = {"", 0};
    for (const struct call *c = turn->calls; c; c = c->next)
      if (c->stage == step->stage) {
        bad = buf_view(&c->text);
        view.bad_seq = c->text_seq;
      }
    prompt_reask(&view, spec, step->stage, n.schema, bad, step->errors, &n.prompt);
  } else {
    prompt_judge(&view, spec, step->stage, &n.prompt);
  }
  start_call(s, turn, &n);
}

/* What every judgment record has, verdict or not. */
static json_t *judgment_record(const struct step *s, const struct turn *turn) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  json_t *record = turn_record(s, "judgment", turn);
  record_set_str(record, "movement", m->name);
  return record;
}

static void verdict(struct step *s, struct turn *turn, const struct chain_step *step) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  const struct rule *rule = step->rule;
  json_t *record = judgment_record(s, turn);
  struct buf tag = {0};
  rule_tag(m->name, rule->number, &tag);
  json_object_set_new_nocheck(record, "rule", json_integer(rule->number));
  json_object_set_new_nocheck(record, "condition",
                              json_stringn_nocheck(rule->condition.p, rule->condition.n));
  json_object_set_new_nocheck(record, "next", json_stringn_nocheck(rule->next.p, rule->next.n));
  json_object_set_new_nocheck(record, "tag", json_stringn_nocheck(tag.p, tag.n));
  json_object_set_new_nocheck(record, "method", json_string_nocheck(judge_stage_name(step->stage)));
  json_object_set_new_nocheck(record, "match_method",
                              json_string_nocheck(judge_stage_match_method(step->stage)));
  json_object_set_new_nocheck(record, "ambiguous", json_boolean(step->ambiguous));
  json_object_set_new_nocheck(record, "stages", json_copy(turn->stages));
  buf_deinit(&tag);
  emit(s, record);
}

/* The judgment of a turn without a rule: readable answers that named none, or an expression that
 * cannot be evaluated. Its failure is how the session ends. */
static void no_verdict(struct step *s, struct turn *turn, enum session_outcome failure,
                       const char *reason) {
  json_t *record = judgment_record(s, turn);
  json_object_set_new_nocheck(record, "rule", json_null());
  json_object_set_new_nocheck(record, "condition", json_null());
  json_object_set_new_nocheck(record, "next", json_null());
  json_object_set_new_nocheck(record, "tag", json_null());
  json_object_set_new_nocheck(record, "method", json_null());
  json_object_set_new_nocheck(record, "match_method", json_null());
  json_object_set_new_nocheck(record, "ambiguous", json_false());
  json_object_set_new_nocheck(record, "failure",
                              json_string_nocheck(session_outcome_name(failure)));
  json_object_set_new_nocheck(record, "reason", json_text(str_from(reason)));
  json_object_set_new_nocheck(record, "stages", json_copy(turn->stages));
  emit(s, record);
}

/* Collects the finished judge calls as the chain wants them. Returns false while one is open. */
static bool judge_replies(const struct turn *turn, struct chain_reply *replies, size_t max,
                          size_t *count) {
  *count = 0;
  for (const struct call *c = turn->calls; c; c = c->next) {
    if (c->purpose == PURPOSE_EXECUTE)
      continue;
    if (c->state == CALL_RUNNING || c->state == CALL_WAITING)
      return false;
    assert(*count < max);
    replies[(*count)++] = (struct chain_reply){
        .stage = c->stage,
        .call = c->id,
        .error_class = c->state == CALL_FAILED ? error_class_name(c->class) : NULL,
        .error_text = c->state == CALL_FAILED ? buf_view(&c->text) : STR(""),
        .text = c->state == CALL_DONE ? buf_view(&c->text) : STR(""),
        .structured = c->structured,
        .duration_ms = c->duration_ms,
    };
  }
  return true;
}

/* One step of judging. Returns false when it waits for a call. */
static bool judge_turn(struct step *s, struct turn *turn) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  struct chain_reply replies[TURN_JUDGE_CALLS];
  size_t count;
  if (!judge_replies(turn, replies, TURN_JUDGE_CALLS, &count))
    return false;
  json_t *env = when_env(s->core, turn);
  struct chain_spec spec = {
      .schemas = s->env->schemas,
      .rules = m->rules,
      .rule_count = m->rule_count,
      .interactive = json_is_true(json_object_get(s->core->config, "interactive")),
      .movement = m->name,
      .stages = m->judge.stages,
      .stage_count = m->judge.stage_count,
      .max_reasks = m->judge.max_reasks,
      .agent_text = buf_view(&turn->text),
      .env = env,
  };
  struct chain_step step;
  bool more = true;
  chain_next(&spec, turn->stages, replies, count, &step);
  switch (step.action) {
  case CHAIN_CALL:
    judge_call(s, turn, &spec, &step);
    break;
  case CHAIN_STAGE: {
    json_t *record = turn_record(s, "stage", turn);
    json_object_update(record, step.object);
    emit(s, record);
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
  case CHAIN_UNAVAILABLE:
    stop_session(s, "judge_unavailable", turn, CLASS_NONE, str_from(step.reason));
    more = false;
    break;
  }
  chain_step_deinit(&step);
  json_decref(env);
  return more;
}

/* Moves one turn on as far as one record goes. Returns false when it waits. */
static bool advance_turn(struct step *s, struct turn *turn) {
  struct call *call;
  switch (turn->phase) {
  case TURN_EXECUTING:
    call = turn_execute_call(turn);
    if (call == NULL) {
      execute_turn(s, turn);
      return true;
    }
    if (call->state == CALL_FAILED) {
      stop_session(s, "provider_error", turn, call->class, buf_view(&call->text));
      return true;
    }
    return false;
  case TURN_JUDGING:
    return judge_turn(s, turn);
  case TURN_JUDGED: {
    const struct movement *m = &s->core->workflow->movements[turn->movement];
    if (turn->rule == 0) {
      end_session(s, turn->failure, turn->reason);
      return true;
    }
    const struct rule *rule = &m->rules[turn->rule - 1];
    json_t *end = turn_record(s, "turn_end", turn);
    json_object_set_new_nocheck(end, "rule", json_integer(rule->number));
    json_object_set_new_nocheck(end, "next", json_stringn_nocheck(rule->next.p, rule->next.n));
    emit(s, end);
    return true;
  }
  }
  return false;
}

static void enter_next(struct step *s) {
  struct core *core = s->core;
  const struct workflow *wf = core->workflow;
  if (core->next == NEXT_COMPLETE) {
    end_session(s, END_COMPLETE, NULL);
  } else if (core->next == NEXT_ABORT) {
    end_session(s, END_ABORT, NULL);
  } else if (wf->max_movements != MOVEMENTS_INFINITE && core->turn_count >= wf->max_movements) {
    char message[LIMIT_NAME_BYTES + 128];
    const struct movement *m = &wf->movements[core->next];
    (void)snprintf(message, sizeof message, "max_movements is %ld; \"%.*s\" would have been next",
                   wf->max_movements, (int)m->name.n, m->name.p);
    end_session(s, END_MAX_MOVEMENTS, message);
  } else {
    const struct movement *m = &wf->movements[core->next];
    json_t *record = new_record(s, "turn_start");
    json_object_set_new_nocheck(record, "turn", json_integer(core->turn_count + 1));
    record_set_str(record, "movement", m->name);
    json_object_set_new_nocheck(record, "iteration", json_integer(core->turn_count + 1));
    json_object_set_new_nocheck(record, "movement_iteration",
                                json_integer(core->movement_counts[core->next] + 1));
    emit(s, record);
  }
}

/* Goes on until every open turn waits for something outside. */
static void advance(struct step *s) {
  bool moved = true;
  while (moved && s->core->status == SESSION_RUNNING) {
    moved = false;
    if (s->core->has_next) {
      enter_next(s);
      moved = true;
      continue;
    }
    for (struct turn *turn = s->core->turns; turn; turn = turn->next)
      if (advance_turn(s, turn)) { /* the turn may be gone now */
        moved = true;
        break;
      }
  }
}

/* --- events --- */

static int64_t retry_delay(const struct step *s, const struct call *call,
                           const struct call_result *r) {
  if (!error_class_is_transient(r->class) || call->failures + 1 >= LIMIT_CALL_ATTEMPT_COUNT ||
      r->retry_after_ms > LIMIT_RETRY_AFTER_MS)
    return -1;
  if (r->retry_after_ms > 0)
    return r->retry_after_ms;
  int64_t wait = LIMIT_RETRY_BASE_MS << call->failures;
  if (wait > LIMIT_RETRY_MAX_MS)
    wait = LIMIT_RETRY_MAX_MS;
  return wait / 2 + (int64_t)s->ev->entropy[15] * (wait / 2) / 255; /* half fixed, half jitter */
}

static void on_call_end(struct step *s) {
  const struct call_result *r = s->ev->result;
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  if (call == NULL || call->state != CALL_RUNNING)
    return; /* cancelled, or of an attempt that is over */
  int64_t wait = -1;
  json_t *record = turn_record(s, "call_end", turn);
  json_object_set_new_nocheck(record, "call", json_integer(call->id));
  json_object_set_new_nocheck(record, "attempt", json_integer(call->attempt));
  if (r->class != CLASS_NONE) {
    struct str message = str_from(r->message);
    json_t *error = json_pack("{ss}", "class", error_class_name(r->class));
    json_object_set_new_nocheck(error, "message",
                                utf8_valid(message.p, message.n)
                                    ? json_stringn_nocheck(message.p, message.n)
                                    : text_render(message));
    if (r->retry_after_ms > 0)
      json_object_set_new_nocheck(error, "retry_after_ms", json_integer(r->retry_after_ms));
    json_object_set_new_nocheck(record, "error", error);
    wait = retry_delay(s, call, r);
    if (wait >= 0)
      json_object_set_new_nocheck(record, "retry_in_ms", json_integer(wait));
    if (r->text.bytes.n > 0)
      set_text(record, "text", &r->text); /* what came before it failed */
  } else {
    set_text(record, "text", &r->text);
  }
  if (r->structured)
    json_object_set_nocheck(record, "structured", r->structured);
  if (r->enforced)
    json_object_set_new_nocheck(record, "enforced", json_string_nocheck(r->enforced));
  if (r->has_exit)
    json_object_set_new_nocheck(record, "exit", json_integer(r->exit));
  if (r->error_text.bytes.n > 0)
    set_text(record, "stderr", &r->error_text);
  if (r->dropped_bytes > 0)
    json_object_set_new_nocheck(record, "dropped_bytes",
                                json_integer((json_int_t)r->dropped_bytes));
  if (r->error_dropped_bytes > 0)
    json_object_set_new_nocheck(record, "stderr_dropped_bytes",
                                json_integer((json_int_t)r->error_dropped_bytes));
  if (r->files)
    json_object_set_nocheck(record, "files", r->files);
  if (r->usage)
    json_object_set_nocheck(record, "usage", r->usage);
  record_set_str(record, "provider_session", str_from(r->provider_session));
  record_set_str(record, "note", str_from(r->note));
  json_object_set_new_nocheck(record, "duration_ms", json_integer(r->duration_ms));
  s->incoming = &r->text;
  emit(s, record);
  s->incoming = NULL;
  if (wait >= 0)
    effect(s, EFFECT_TIMER, call->id, wait);
}

static void on_call_news(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  const json_t *news = s->ev->news;
  if (call == NULL || call->state != CALL_RUNNING || call->event_count >= LIMIT_CALL_EVENT_COUNT ||
      (news && json_dumpb(news, NULL, 0, JSON_COMPACT) > LIMIT_CALL_EVENT_BYTES))
    return;
  json_t *record = turn_record(s, "call_event", turn);
  json_object_set_new_nocheck(record, "call", json_integer(call->id));
  json_object_set_new_nocheck(record, "attempt", json_integer(call->attempt));
  json_object_set_new_nocheck(record, "event", json_string_nocheck(s->ev->news_kind));
  if (news)
    json_object_set_nocheck(record, "data", (json_t *)news);
  emit(s, record);
}

/* The clock may have jumped since the wait was recorded. */
static int64_t bounded_wait(int64_t ms) {
  return ms < LIMIT_RETRY_AFTER_MS ? ms : LIMIT_RETRY_AFTER_MS;
}

static void on_resume(struct step *s) {
  json_t *record = new_record(s, "session_resume");
  record_set_str(record, "reason", str_from(s->ev->reason));
  emit(s, record);
  for (struct turn *turn = s->core->turns; turn; turn = turn->next)
    for (struct call *call = turn->calls; call; call = call->next) {
      if (call->state == CALL_RUNNING)
        restart_call(s, turn, call, true);
      else if (call->state == CALL_WAITING && call->wait_until_ms > s->ev->time_ms)
        effect(s, EFFECT_TIMER, call->id, bounded_wait(call->wait_until_ms - s->ev->time_ms));
      else if (call->state == CALL_WAITING)
        restart_call(s, turn, call, false);
    }
}

void core_start(struct core *core, const struct core_params *params, const struct event *ev,
                const struct core_env *env, struct core_out *out) {
  struct step s = {.core = core,
                   .ev = ev,
                   .env = env,
                   .out = out,
                   .incoming = params->task,
                   .workflow = params->workflow};
  char sha256[SHA256_HEX];
  *out = (struct core_out){0};
  json_t *record = new_record(&s, "session_start");
  json_object_set_new_nocheck(record, "session", json_string_nocheck(params->session));
  json_object_set_new_nocheck(record, "versions", json_pack("{ss}", "segue", SEGUE_VERSION));
  set_text(record, "task", params->task);
  if (params->workflow_path)
    json_object_set_new_nocheck(record, "workflow_path",
                                json_text(str_from(params->workflow_path)));
  workflow_hash(params->workflow, sha256);
  json_object_set_new_nocheck(record, "workflow_sha256", json_string_nocheck(sha256));
  json_object_set_nocheck(record, "workflow", params->workflow->doc);
  json_object_set_nocheck(record, "config", params->config);
  emit(&s, record);
  s.incoming = NULL;
  advance(&s);
}

void core_decide(struct core *core, const struct event *ev, const struct core_env *env,
                 struct core_out *out) {
  struct step s = {.core = core, .ev = ev, .env = env, .out = out};
  *out = (struct core_out){0};
  if (core->status == SESSION_ENDED)
    return;
  if (core->status == SESSION_STOPPED && ev->kind != EVENT_RESUME)
    return;
  switch (ev->kind) {
  case EVENT_CALL_END:
    on_call_end(&s);
    break;
  case EVENT_CALL_NEWS:
    on_call_news(&s);
    break;
  case EVENT_TIMER: {
    struct turn *turn = NULL;
    struct call *call = core_call(core, ev->call, &turn);
    if (call != NULL && call->state == CALL_WAITING)
      restart_call(&s, turn, call, false);
    break;
  }
  case EVENT_CANCEL:
    end_session(&s, END_CANCELLED, ev->message);
    break;
  case EVENT_STOP:
    stop_session(&s, ev->reason, NULL, CLASS_NONE, str_from(ev->message));
    break;
  case EVENT_RESUME:
    on_resume(&s);
    break;
  }
  advance(&s);
}
