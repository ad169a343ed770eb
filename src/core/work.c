/* Does a movement's own work: its call, its reports and, with structured_output, everything until
 * its value is there. That means checks of what came back, corrections, invariants that must be run, and what
 * follows when there will be no value. The rules are in structured/reask.h; this file makes their
 * records and calls. */
#include "core/group.h"
#include "core/human.h"
#include "core/step.h"

#include "base/log.h"
#include "base/utf8.h"
#include "core/record.h"
#include "core/report_file.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "render/describe.h"
#include "structured/reask.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- options --- */

/* Keeps the options that a backend takes. Returns NULL if none is left. Consumes options. */
static json_t *accepted(json_t *options, const struct capability *cap) {
  for (size_t i = 0; options != NULL && option_names[i]; i++)
    if (cap == NULL || (cap->options & (1u << i)) == 0)
      json_object_del(options, option_names[i]);
  if (json_object_size(options) > 0)
    return options;
  json_decref(options);
  return NULL;
}

/* Merges the options: the user's defaults, the file's on top, then the flags'. */
static json_t *work_options(const struct core *core, const struct movement *m) {
  json_t *base = step_merged(json_at(core->config, "default_options"), m->options);
  json_t *all = step_merged(base, json_at(core->config, "options"));
  json_decref(base);
  return all;
}

/* Doubles the limit that cut the answer. A log may hold any number. Consumes options. */
static json_t *raised(json_t *options) {
  if (options == NULL)
    options = json_object();
  json_int_t limit = json_int_at(options, "max_tokens");
  if (limit <= 0)
    limit = LIMIT_RAISED_TOKENS;
  else
    limit = limit < LIMIT_OPTION_TOKENS / 2 ? limit * 2 : LIMIT_OPTION_TOKENS;
  json_put(options, "max_tokens", json_integer(limit));
  return options;
}

/* --- calls --- */

/* Starts a call; consumes `n`. If its prompt had to be cut, the session stops or the child's turn
 * ends. */
static void start_work(struct step *s, struct turn *turn, struct step_call *n) {
  if (!n->prompt.bytes.cut) {
    step_start_call(s, turn, n);
    return;
  }
  struct str why =
      STR("the prompt is over the limit of 24 MiB: shorten the task or the response before");
  if (turn->group > 0)
    step_end_child(s, turn, ALL_ANY_ERROR, why, CLASS_BAD_REQUEST);
  else
    step_stop(s, "prompt_too_long", turn, CLASS_BAD_REQUEST, why, NULL);
  prompt_deinit(&n->prompt);
  json_decref(n->options);
  json_decref(n->schema);
}

void step_execute(struct step *s, struct turn *turn, bool raise) {
  const struct core *core = s->core;
  const struct movement *m = core_movement(s->core, turn);
  struct prompt_view view;
  struct step_call n = {.purpose = PURPOSE_EXECUTE,
                        .stage = STAGE_COUNT,
                        .timeout_ms = (uint64_t)step_time_left(s, turn, m->timeout_ms)};
  step_view(s, turn, NULL, &view);
  core_backend(core->workflow, core->config, turn->movement, &n.provider, &n.model);
  if (m->argv == NULL) {
    n.options = work_options(core, m);
    if (raise)
      n.options = raised(n.options);
    if (m->structured != NULL)
      n.schema = json_incref((json_t *)m->structured->document);
    const struct capability *cap = capability_find(s->env->providers, n.provider);
    view.held = cap ? cap->held : NULL;
    view.shows_schema =
        core_prompt_schema(core->workflow, core->config, turn->movement, s->env->providers);
  }
  prompt_execute(&view, &n.prompt);
  start_work(s, turn, &n);
}

/* Makes a line "$.a: message" of each error, for a person or a model to read. A place in the text
 * is part of the message. */
static json_t *error_lines(const json_t *errors) {
  json_t *lines = json_array();
  size_t i;
  json_t *error;
  json_array_foreach(errors, i, error) {
    struct buf line = {0};
    const char *path = json_string_value(json_at(error, "path"));
    const char *message = json_string_value(json_at(error, "message"));
    if (json_at(error, "offset") == NULL && path != NULL)
      buf_printf(&line, "%s: ", path);
    buf_puts(&line, message ? message : "");
    json_array_append_new(lines, json_text(buf_view(&line)));
    buf_deinit(&line);
  }
  return lines;
}

/* Returns the k-th generation of this round. */
static const struct call *generation(const struct turn *turn, size_t k) {
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call_generates(call) && k-- == 0)
      return call;
  return NULL;
}

static void step_nonce(const unsigned char entropy[16], char out[17]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 8; i++) {
    out[2 * i] = digits[entropy[i] >> 4];
    out[2 * i + 1] = digits[entropy[i] & 15];
  }
  out[16] = '\0';
}

static void correct(struct step *s, struct turn *turn, const struct reask_step *step) {
  const struct core *core = s->core;
  const struct movement *m = core_movement(s->core, turn);
  const struct call *wrong = generation(turn, step->reply);
  struct step_call n = {.purpose = PURPOSE_REASK,
                        .stage = STAGE_COUNT,
                        .timeout_ms = (uint64_t)step_time_left(s, turn, m->timeout_ms)};
  struct prompt_view view;
  struct buf value = {0};
  char nonce[17];
  assert(wrong != NULL);
  step_nonce(s->ev->entropy, nonce);
  step_view(s, turn, nonce, &view);
  core_reask_backend(core->workflow, core->config, turn->movement, &n.provider, &n.model);
  n.options = accepted(work_options(core, m), capability_find(s->env->providers, n.provider));
  if (step->raise)
    n.options = raised(n.options);
  n.schema = json_incref((json_t *)m->structured->document);
  view.bad_seq = wrong->text_seq;
  struct prompt_correction correction = {.schema = m->structured->document,
                                         .output = buf_view(&wrong->text),
                                         .errors = error_lines(step->errors),
                                         .more = step->more};
  if (wrong->text.n == 0 && wrong->structured != NULL) {
    json_write(wrong->structured, &value);
    correction.output = buf_view(&value);
    view.bad_seq = 0;
  }
  prompt_reask(&view, &correction, &n.prompt);
  json_decref((json_t *)correction.errors);
  buf_deinit(&value);
  start_work(s, turn, &n);
}

/* Runs one invariant on a value that has passed so far. */
static void run_invariant(struct step *s, struct turn *turn, const struct reask_step *step) {
  const struct core *core = s->core;
  const struct movement *m = core_movement(s->core, turn);
  const struct invariant *invariant = invariants_get(m->structured->invariants, step->invariant);
  struct step_call n = {.purpose = PURPOSE_CHECK,
                        .stage = STAGE_COUNT,
                        .invariant = (int)step->invariant + 1,
                        .timeout_ms = (uint64_t)step_time_left(s, turn, LIMIT_CHECK_WALL_MS)};
  struct prompt_view view;
  char nonce[17];
  step_nonce(s->ev->entropy, nonce);
  step_view(s, turn, nonce, &view);
  if (invariant->kind == INVARIANT_COMMAND) {
    n.provider = STR("command");
    n.prompt = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
    prompt_value(step->value, &n.prompt);
  } else {
    core_judge_backend(core->workflow, core->config, turn->movement, &n.provider, &n.model);
    n.options = accepted(step_merged(NULL, m->judge.options),
                         capability_find(s->env->providers, n.provider));
    n.schema = json_incref(s->env->schemas->invariant_doc);
    prompt_invariant(&view, str_from(invariant->text), step->value, &n.prompt);
  }
  start_work(s, turn, &n);
}

/* --- what has happened so far, as the machine wants it --- */

struct past {
  struct reask_reply *replies;
  struct reask_run *runs;
  size_t reply_count, run_count;
  json_t *run_errors; /* owned array: one list for each run */
};

static void past_deinit(struct past *past) {
  free(past->replies);
  free(past->runs);
  json_decref(past->run_errors);
}

/* Reads a model's verdict on an invariant. Returns false if it cannot be read, so that nothing is
 * known. */
static bool read_verdict(const struct step *s, const struct call *call,
                         const struct invariant *invariant, const json_t *value,
                         struct schema_errors *errors) {
  const struct answer_spec spec = {.schema = s->env->schemas->invariant,
                                   .document = s->env->schemas->invariant_doc};
  struct answer answer;
  answer_read(&answer, &spec, call->structured, buf_c(&call->text), call->text.n);
  bool readable = answer.outcome == ANSWER_VALID;
  const json_t *reason = json_at(answer.value, "reason");
  if (readable && json_is_false(json_at(answer.value, "holds")))
    invariant_report(invariant, value, json_string_value(reason), json_string_length(reason),
                     errors);
  answer_deinit(&answer);
  return readable;
}

/* Lists the errors that a run of an invariant found; NULL when it cannot be read. */
static json_t *run_outcome(const struct step *s, const struct turn *turn, const struct call *call,
                           const json_t *value) {
  const struct movement *m = core_movement(s->core, turn);
  const struct invariant *invariant =
      invariants_get(m->structured->invariants, (size_t)call->invariant - 1);
  struct schema_errors errors = {0};
  bool readable = true;
  size_t dropped;
  if (invariant->kind == INVARIANT_COMMAND) {
    readable = invariant_command_told(call->exit);
    const struct invariant_output output = {.exit_status = call->exit,
                                            .out = call->text.p,
                                            .out_n = call->text.n,
                                            .err = call->error_text.p,
                                            .err_n = call->error_text.n};
    if (readable)
      (void)invariant_command_result(invariant, value, &output, &errors);
  } else {
    readable = read_verdict(s, call, invariant, value, &errors);
  }
  json_t *list = readable ? answer_errors(&errors, &dropped) : NULL;
  schema_errors_deinit(&errors);
  return list;
}

static const json_t *value_of(const struct step *s, const struct turn *turn,
                              const struct call *call, struct answer *answer) {
  const struct structured_config *so = core_movement(s->core, turn)->structured;
  const struct answer_spec spec = {
      .schema = so->schema, .document = so->document, .repair = so->repair};
  answer_read(answer, &spec, call->structured, buf_c(&call->text), call->text.n);
  return answer->value;
}

/* Takes the backend's count or, without one, at least the answer, so that a budget does end. */
static int64_t tokens_taken(const struct structured_config *so, const struct call *call) {
  if (call->tokens > 0 || so->token_budget == 0 || call->state != CALL_DONE)
    return call->tokens;
  return (int64_t)describe_tokens(buf_c(&call->text));
}

/* Returns the check whose outcome cannot be read, NULL if all can. `lost` is a call that brought
 * nothing, or NULL. */
static const struct call *shape_gather(const struct step *s, const struct turn *turn,
                                       const struct call *lost, struct past *past) {
  size_t own = 0;
  const struct call *of = NULL, *unreadable = NULL;
  for (const struct call *call = turn->calls; call; call = call->next)
    own += call_is_own(call);
  *past = (struct past){.replies = xcalloc(own + 1, sizeof *past->replies),
                        .runs = xcalloc(own + 1, sizeof *past->runs),
                        .run_errors = json_array()};
  for (const struct call *call = turn->calls; call; call = call->next) {
    if (call == lost)
      continue;
    if (call_generates(call)) {
      bool answered = call->state == CALL_DONE;
      enum reask_end end = call->class == CLASS_REFUSED ? REASK_REFUSED : REASK_CUT;
      of = call;
      past->replies[past->reply_count++] = (struct reask_reply){
          .call = call->id,
          .end = answered ? REASK_ANSWERED : end,
          .text = answered ? buf_c(&call->text) : "",
          .n = answered ? call->text.n : 0,
          .structured = answered ? call->structured : NULL,
          .duration_ms = call->duration_ms,
          .tokens = tokens_taken(core_movement(s->core, turn)->structured, call),
      };
    } else if (call_is_own(call) && of != NULL) {
      struct answer answer = {0};
      json_t *errors = run_outcome(s, turn, call, value_of(s, turn, of, &answer));
      answer_deinit(&answer);
      bool is_judged = false; /* there is a check for this answer */
      for (size_t i = 0; i < json_array_size(turn->checks); i++)
        is_judged |= json_int_at(json_array_get(turn->checks, i), "call") == of->id;
      if (errors == NULL && !is_judged) {
        unreadable = call;
        break;
      }
      if (errors == NULL) /* an older program read a killed command as a verdict */
        errors = json_array();
      json_array_append_new(past->run_errors, errors);
      past->runs[past->run_count++] = (struct reask_run){
          .call = call->id,
          .reply = past->reply_count - 1,
          .invariant = (size_t)call->invariant - 1,
          .errors = errors,
          .duration_ms = call->duration_ms,
          .tokens = tokens_taken(core_movement(s->core, turn)->structured, call)};
    }
  }
  return unreadable;
}

/* --- how it ends --- */

static void close_value(struct step *s, struct turn *turn, const struct reask_step *step) {
  static const char *const outcomes[ON_FAILURE_COUNT] = {"failed", "escalated", "sentinel"};
  const struct movement *m = core_movement(s->core, turn);
  bool found = step->action == REASK_VALUE;
  const struct call *call = found ? generation(turn, step->reply) : turn_last_answer(turn);
  json_t *closing = reask_close(turn->checks, step);
  struct record_draft d;
  struct buf message = {0};
  step_turn_record(s, &d, RECORD_STRUCTURED, turn);
  record_put_text(&d, MEMBER_MOVEMENT, m->name);
  record_put_word(&d, MEMBER_OUTCOME, found ? "value" : outcomes[m->structured->on_failure]);
  record_put_members(&d, closing);
  if (call != NULL)
    record_put_number(&d, MEMBER_CALL, call->id);
  if (found) {
    record_put_tree(&d, MEMBER_VALUE, json_incref(step->value));
  } else {
    /* For example: "no valid value after 3 attempts (exhausted): $.a: ...", with the first of the
     * last errors. */
    size_t attempts = json_array_size(turn->checks);
    json_t *lines = error_lines(step->errors);
    const char *first = json_string_value(json_array_get(lines, 0));
    message.max = LIMIT_ERROR_TEXT_BYTES;
    buf_printf(&message, "no valid value after %zu attempt%s: %s", attempts,
               attempts == 1 ? "" : "s", reask_reason_words(step->reason));
    if (first != NULL && step->reason != REASK_REASON_REFUSED &&
        step->reason != REASK_REASON_LENGTH)
      buf_printf(&message, ": %s", first);
    message.n = message.n > 0 ? utf8_floor(message.p, message.n) : 0;
    json_decref(lines);
    record_put_bytes(&d, MEMBER_MESSAGE, buf_view(&message));
    /* What stands in for the value is an object with a single member, which no rule takes for
     * data. */
    if (m->structured->on_failure == ON_FAILURE_SENTINEL)
      record_put_tree(&d, MEMBER_VALUE,
                      json_pack("{s{sO* sO* sO*}}", "sentinel", "reason",
                                json_at(closing, "reason"), "attempts",
                                json_at(closing, "attempts"), "errors",
                                json_at(closing, "errors")));
  }
  step_emit(s, &d);
  json_decref(closing);
  buf_deinit(&message);
}

/* Builds the question that a person is to answer. */
static json_t *escalated_question(const struct step *s, const struct turn *turn) {
  const struct movement *m = core_movement(s->core, turn);
  const struct call *call = turn_last_answer(turn);
  const json_t *check = json_array_get(turn->checks, json_array_size(turn->checks) - 1);
  struct buf text = {0};
  buf_printf(&text, "What is the value of the movement \"" STR_FMT "\"? %s.", STR_ARG(m->name),
             turn->reason ? turn->reason : "There is none");
  json_t *question = json_object();
  json_put(question, "text", json_text(buf_view(&text)));
  if (call != NULL)
    json_put(question, "call", json_integer(call->id));
  json_object_set_nocheck(question, "errors", json_at(check, "errors"));
  json_object_set_nocheck(question, "schema", (json_t *)m->structured->document);
  buf_deinit(&text);
  return question;
}

/* --- the machine --- */

static void take_step(struct step *s, struct turn *turn, const struct reask_step *step) {
  switch (step->action) {
  case REASK_GENERATE:
    step_execute(s, turn, step->raise);
    break;
  case REASK_CORRECT:
    correct(s, turn, step);
    break;
  case REASK_RUN:
    run_invariant(s, turn, step);
    break;
  case REASK_CHECKED: {
    struct record_draft d;
    step_turn_record(s, &d, RECORD_CHECK, turn);
    record_put_body(&d, json_incref(step->object));
    step_emit(s, &d);
    break;
  }
  case REASK_VALUE:
  case REASK_FAILED:
    close_value(s, turn, step);
    break;
  }
}

static bool can_raise(const struct step *s, const struct turn *turn) {
  const struct call *last = NULL;
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call_generates(call))
      last = call;
  const struct capability *cap =
      last ? capability_find(s->env->providers, str_from(last->provider)) : NULL;
  return cap != NULL && (cap->options & OPTION_MAX_TOKENS) != 0;
}

bool step_shape(struct step *s, struct turn *turn) {
  const struct structured_config *so = core_movement(s->core, turn)->structured;
  if (turn_is_calling(turn))
    return false;
  if (turn->escalated && turn->question == NULL) {
    human_ask(s, turn, "value", escalated_question(s, turn));
    return true;
  }
  if (turn->escalated)
    return human_take_due_default(s, turn);
  /* Trouble is a last call that failed in a way that the machine does not know. */
  const struct call *trouble = turn_last_own_call(turn);
  if (trouble != NULL && (trouble->state != CALL_FAILED ||
                          (call_generates(trouble) &&
                           (trouble->class == CLASS_REFUSED || trouble->class == CLASS_LENGTH))))
    trouble = NULL;
  /* Without time for another try it would end the same way after a resume. */
  bool out_of_time = trouble != NULL && so->time_budget_ms > 0 && trouble->class == CLASS_TIMEOUT &&
                     step_time_left(s, turn, LIMIT_CALL_WALL_MS) <= LIMIT_BUDGET_SLACK_MS;
  if (trouble != NULL && !out_of_time)
    return step_halt(s, "provider_error", turn, trouble->class, buf_view(&trouble->text), NULL);
  struct past past;
  const struct call *unreadable = shape_gather(s, turn, trouble, &past);
  if (unreadable != NULL) {
    const struct invariant *invariant =
        invariants_get(so->invariants, (size_t)unreadable->invariant - 1);
    struct buf message = {0};
    if (invariant->kind == INVARIANT_COMMAND)
      buf_printf(&message,
                 "the command that checks invariant %d was killed or did not run (exit status %d)",
                 unreadable->invariant, unreadable->exit);
    else
      buf_puts(&message, "the model that was asked about an invariant gave no readable answer");
    past_deinit(&past);
    bool moved = step_halt(s, "check_unavailable", turn, CLASS_NONE, buf_view(&message), NULL);
    buf_deinit(&message);
    return moved;
  }
  const struct reask_spec spec = {.answer = {.schema = so->schema,
                                             .document = so->document,
                                             .repair = so->repair,
                                             .max_bytes = LIMIT_STRUCTURED_BYTES,
                                             .max_depth = LIMIT_STRUCTURED_DEPTH},
                                  .invariants = so->invariants,
                                  .max_reasks = so->max_reasks,
                                  .can_raise = can_raise(s, turn),
                                  .max_ms = so->time_budget_ms,
                                  .max_tokens = so->token_budget,
                                  .out_of_time = out_of_time};
  struct reask_step step;
  reask_next(&spec, turn->checks, past.replies, past.reply_count, past.runs, past.run_count, &step);
  bool calls =
      step.action == REASK_GENERATE || step.action == REASK_CORRECT || step.action == REASK_RUN;
  bool goes_on = !calls || !s->env->draining;
  if (goes_on)
    take_step(s, turn, &step);
  reask_step_deinit(&step);
  past_deinit(&past);
  return goes_on;
}

/* --- reports --- */

static void report_ask(struct step *s, struct turn *turn, const struct report_step *step) {
  const struct core *core = s->core;
  const struct movement *m = core_movement(core, turn);
  /* The turn's last call that brought its answer, or a report in the same conversation, did the
   * work. There is none if the program that wrote the log did not record it. */
  const struct call *worker = NULL;
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call->state == CALL_DONE && (call_generates(call) || call->resumed))
      worker = call;
  struct prompt_view view;
  char nonce[17];
  struct step_call n = {.purpose = PURPOSE_REPORT,
                        .stage = STAGE_COUNT,
                        .report = (int)(step->contract - m->contracts) + 1,
                        .timeout_ms = (uint64_t)m->timeout_ms,
                        .options = work_options(core, m)};
  core_backend(core->workflow, core->config, turn->movement, &n.provider, &n.model);
  const struct capability *c =
      worker ? capability_find(s->env->providers, str_from(worker->provider)) : NULL;
  if (!step->fresh && c != NULL && c->sessions && worker->provider_session != NULL) {
    n.provider = str_from(worker->provider);
    n.model = str_from(worker->model);
    n.provider_session = worker->provider_session;
  }
  step_view(s, turn, nonce, &view);
  step_turn_nonce(core, turn, view.answer, nonce);
  prompt_report(&view, step->contract, n.provider_session == NULL, &n.prompt);
  start_work(s, turn, &n);
}

static void report_keep(struct step *s, struct turn *turn, const struct report_step *step) {
  struct record_draft d;
  char sha256[SHA256_HEX];
  const struct buf *answer = step->call ? &step->call->text : &turn->text;
  contract_sha256(buf_view(answer), sha256);
  step_turn_record(s, &d, RECORD_REPORT, turn);
  record_put_text(&d, MEMBER_MOVEMENT, core_movement(s->core, turn)->name);
  record_put_text(&d, MEMBER_FILE, step->contract->name);
  record_put_text(&d, MEMBER_SHA256, str_from(sha256));
  if (step->call != NULL)
    record_put_number(&d, MEMBER_CALL, step->call->id);
  step_emit(s, &d);
  step_effect(s, EFFECT_REPORTS, 0, 0);
}

bool step_report(struct step *s, struct turn *turn) {
  struct report_step step;
  report_next(core_movement(s->core, turn), turn, &step);
  switch (step.action) {
  case REPORT_ASK:
    if (s->env->draining)
      return false;
    report_ask(s, turn, &step);
    return true;
  case REPORT_WAIT:
    return false;
  case REPORT_KEEP:
    report_keep(s, turn, &step);
    return true;
  case REPORT_FAILED:
    return step_halt(s, "provider_error", turn, step.call->class, buf_view(&step.call->text), NULL);
  }
  return false;
}
