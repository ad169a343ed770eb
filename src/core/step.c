/* Emits the records of one decision, and gathers what a prompt of a turn can show. */
#include "core/step.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "core/answer.h"
#include "core/apply.h"
#include "core/group.h"
#include "core/monitor.h"
#include "core/value_ref.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
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
  struct buf text = {0};
  if (!prompt_ref_parse(path, view->workflow, &ref))
    return json_null();
  const json_t *value =
      prompt_ref_value(&ref, json_object_getn(view->values, ref.movement.p, ref.movement.n));
  if (value == NULL)
    return json_null();
  json_write(value, &text);
  bool fits = text.n <= LIMIT_RETURN_BYTES;
  buf_deinit(&text);
  return fits ? json_incref((json_t *)value) : json_null();
}

json_t *outputs_make(const struct prompt_view *view) {
  const json_t *wanted = view->workflow->outputs, *text;
  const char *name;
  size_t bytes = 0;
  if (wanted == NULL)
    return NULL;
  json_t *outputs = json_object();
  json_object_foreach((json_t *)wanted, name, text) {
    /* A text that is one {structured:PATH} alone stands for that value, whatever its type. */
    struct str words = str_trim(json_view(text)), all;
    size_t n = strlen("{" PROMPT_STRUCTURED);
    struct prompt filled = {0};
    struct buf written = {0};
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
      prompt_deinit(&filled);
    }
    json_write(value, &written);
    if (bytes + written.n > LIMIT_RETURNS_BYTES) {
      json_decref(value);
      value = json_null();
    } else {
      bytes += written.n;
    }
    buf_deinit(&written);
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
  record_put_bytes(&d, MEMBER_MESSAGE, message);
  record_put_tree(&d, MEMBER_QUESTION, question);
  finish_stop(s, &d);
}

/* Cancels the calls of a failed child's siblings, which are no longer wanted. Each sibling ends
 * when its call has ended. */
static void cancel_siblings(struct step *s, long group) {
  for (struct turn *turn = s->core->turns; turn; turn = turn->next)
    for (struct call *call = turn->calls; call; call = call->next)
      if (turn->group == group && call->state == CALL_RUNNING && group_stops(s->core, turn))
        step_effect(s, EFFECT_CANCEL_CALL, call->id, 0);
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
  cancel_siblings(s, group);
}

bool step_halt(struct step *s, const char *reason, struct turn *turn, enum error_class class,
               struct str message, json_t *question) {
  if (turn->group > 0 && class != CLASS_NONE) {
    json_decref(question);
    step_end_child(s, turn, ALL_ANY_ERROR, message, class);
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
      .unfinished = turn->unfinished,
      .touched = core->touched,
      .check = check ? check->name : STR(""),
      .checks_by = check,
      .check_first = json_at(gate, "first"),
      .check_turn = core->check.turn,
      .check_exit = core->check.exit,
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
