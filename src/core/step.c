#include "core/step.h"

#include "base/log.h"
#include "core/apply.h"
#include "core/record.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool incoming_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  const struct step *s = ctx;
  (void)err;
  assert(s->incoming != NULL && strcmp(s->incoming->blob, sha256) == 0);
  buf_append(out, s->incoming->bytes.p, s->incoming->bytes.n);
  return true;
}

void step_begin(struct step *s) {
  char text[RECORD_TIME_BYTES];
  record_time(s->ev->time_ms, text);
  s->time = json_string_nocheck(text);
  *s->out = (struct core_out){0};
}

void step_over(struct step *s) {
  json_decref(s->time);
}

void step_emit(struct step *s, json_t *record) {
  struct err err = {0};
  const struct core_source source = {s, incoming_blob, s->body};
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
  out->effects[out->effect_count++] = (struct effect){kind, call, delay_ms};
}

json_t *step_record(const struct step *s, const char *type) {
  return record_new(s->core->seq + 1, s->time, type);
}

json_t *step_turn_record(const struct step *s, const char *type, const struct turn *turn) {
  json_t *record = step_record(s, type);
  json_put(record, "turn", json_integer(turn->id));
  return record;
}

void step_set_text(json_t *record, const char *key, const struct text *text) {
  struct str view = buf_view(&text->bytes);
  char name[32];
  if (text->blob[0] == '\0') {
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

void step_end(struct step *s, enum session_outcome outcome, const char *message,
              const json_t *error) {
  cancel_running(s);
  json_t *record = step_record(s, "session_end");
  json_put(record, "outcome", json_string_nocheck(session_outcome_name(outcome)));
  if (message && message[0])
    json_put(record, "message", json_text(str_from(message)));
  if (error != NULL)
    json_object_set_nocheck(record, "error", (json_t *)error);
  json_put(record, "turns", json_integer(s->core->turn_count));
  json_put(record, "methods", method_counts(s->core));
  step_emit(s, record);
  step_effect(s, EFFECT_FINISHED, 0, 0);
}

void step_stop(struct step *s, const char *reason, const struct turn *turn, enum error_class class,
               struct str message, json_t *question) {
  cancel_running(s);
  json_t *record = step_record(s, "session_stop");
  json_put(record, "reason", json_string_nocheck(reason));
  if (turn != NULL)
    json_put(record, "turn", json_integer(turn->id));
  if (class != CLASS_NONE)
    json_put(record, "class", json_string_nocheck(error_class_name(class)));
  record_set_str(record, "message", message);
  if (question != NULL)
    json_put(record, "question", question);
  json_put(record, "resumable", json_true());
  step_emit(s, record);
  step_effect(s, EFFECT_FINISHED, 0, 0);
}

void step_nonce(const unsigned char entropy[16], char out[17]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 8; i++) {
    out[2 * i] = digits[entropy[i] >> 4];
    out[2 * i + 1] = digits[entropy[i] & 15];
  }
  out[16] = '\0';
}

void step_view(const struct step *s, const struct turn *turn, const char *nonce,
               struct prompt_view *view) {
  const struct core *core = s->core;
  *view = (struct prompt_view){
      .workflow = core->workflow,
      .templates = s->env->templates,
      .movement = &core->workflow->movements[turn->movement],
      .overrides = json_at(core->config, "templates"),
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
      .values = core->structured,
  };
}

json_t *step_merged(const json_t *base, const json_t *top) {
  if (base == NULL && top == NULL)
    return NULL;
  json_t *both = base ? json_copy((json_t *)base) : json_object();
  if (top)
    json_object_update(both, (json_t *)top);
  return both;
}
