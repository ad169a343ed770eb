/* Calls: their records, from the request to what came back. */
#include "core/step.h"

#include "core/record.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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
  json_t *record = step_turn_record(s, "call_start", turn);
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

void step_start_call(struct step *s, struct turn *turn, struct step_call *n) {
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
  step_emit(s, record);
  struct call *call = turn_call(turn, request.call);
  assert(call != NULL);
  buf_deinit(&call->prompt);
  call->prompt = n->prompt.bytes; /* not state: what the effect sends; recovery reads it back */
  n->prompt.bytes = (struct buf){0};
  prompt_deinit(&n->prompt);
  json_decref(n->options);
  json_decref(n->schema);
  step_effect(s, EFFECT_START_CALL, call->id, 0);
}

void step_restart_call(struct step *s, struct turn *turn, struct call *call, bool repeats) {
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
  step_emit(s, record);
  step_effect(s, EFFECT_START_CALL, call->id, 0);
}
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

void step_call_end(struct step *s) {
  const struct call_result *r = s->ev->result;
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  if (call == NULL || call->state != CALL_RUNNING)
    return; /* cancelled, or of an attempt that is over */
  int64_t wait = -1;
  json_t *record = step_turn_record(s, "call_end", turn);
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
      step_set_text(record, "text", &r->text); /* what came before it failed */
  } else {
    step_set_text(record, "text", &r->text);
  }
  if (r->structured)
    json_object_set_nocheck(record, "structured", r->structured);
  if (r->enforced)
    json_object_set_new_nocheck(record, "enforced", json_string_nocheck(r->enforced));
  if (r->has_exit)
    json_object_set_new_nocheck(record, "exit", json_integer(r->exit));
  if (r->error_text.bytes.n > 0)
    step_set_text(record, "stderr", &r->error_text);
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
  step_emit(s, record);
  s->incoming = NULL;
  if (wait >= 0)
    step_effect(s, EFFECT_TIMER, call->id, wait);
}

void step_call_news(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  const json_t *news = s->ev->news;
  if (call == NULL || call->state != CALL_RUNNING || call->event_count >= LIMIT_CALL_EVENT_COUNT ||
      (news && json_dumpb(news, NULL, 0, JSON_COMPACT) > LIMIT_CALL_EVENT_BYTES))
    return;
  json_t *record = step_turn_record(s, "call_event", turn);
  json_object_set_new_nocheck(record, "call", json_integer(call->id));
  json_object_set_new_nocheck(record, "attempt", json_integer(call->attempt));
  json_object_set_new_nocheck(record, "event", json_string_nocheck(s->ev->news_kind));
  if (news)
    json_object_set_nocheck(record, "data", (json_t *)news);
  step_emit(s, record);
}
