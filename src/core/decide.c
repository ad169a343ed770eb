/* Turns an event into the records and effects that follow from it. */
#include "core/decide.h"
#include "core/head.h"

#include "base/log.h"
#include "base/utf8.h"
#include "core/checks.h"
#include "core/evidence.h"
#include "core/evidence_steps.h"
#include "core/fold.h"
#include "core/group.h"
#include "core/guard.h"
#include "core/hidden_tests.h"
#include "core/human.h"
#include "core/monitor.h"
#include "core/report_file.h"
#include "core/steer.h"
#include "core/step.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "judge/usage.h"
#include "render/describe.h"
#include "structured/reask.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Returns true if for_each has no items, as `why` says: its turn has no verdict. */
static bool group_lacks_items(const struct core *core, const struct turn *turn, struct buf *why) {
  const struct movement *m = core_movement(core, turn);
  if (m->for_each == NULL || turn->items != NULL)
    return false;
  buf_printf(why, "for_each: %s is no list of at most %u items as things are",
             json_string_value(m->for_each), LIMIT_ITEM_COUNT);
  return true;
}

/* Returns true if all children failed, so that there is nothing else to judge. */
static bool group_all_failed(const struct turn *turn) {
  for (size_t i = 0; i < turn->part_count; i++)
    if (!turn->parts[i].failed && !turn->parts[i].skipped)
      return false;
  return turn->part_count > 0;
}

static void vote(json_t *votes, struct str label, json_int_t n) {
  json_int_t before = json_integer_value(json_object_getn(votes, label.p, label.n));
  json_object_setn_new(votes, label.p, label.n, json_integer(before + n));
}

/* Adds `parts` and `votes` to what the group's when() and aggregates see. */
static void group_env(const struct core *core, const struct turn *turn, json_t *env) {
  const struct movement *group = core_movement(core, turn);
  json_t *parts = json_array(), *votes = json_object();
  vote(votes, STR(ALL_ANY_ERROR), 0);
  vote(votes, STR(ALL_ANY_NONE), 0);
  for (size_t i = 0; i < group->child_count; i++) {
    const struct movement *m = &core->workflow->movements[group->first_child + i];
    for (size_t k = 0; k < m->rule_count; k++)
      vote(votes, rule_vote(&m->rules[k]), 0);
  }
  for (size_t i = 0; i < turn->part_count; i++) {
    const struct movement *m = &core->workflow->movements[group_part_movement(group, i)];
    vote(votes, turn->parts[i].label, 1);
    json_array_append_new(parts, json_pack("{so so}", "name", json_text(m->own_name), "label",
                                           json_text(turn->parts[i].label)));
  }
  json_put(env, "parts", parts);
  json_put(env, "votes", votes);
}

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
  json_put(env, "evidence", json_string(evidence_word(core, turn)));
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
    if (call_is_own(c) || c->id <= turn->evidence.judged_to)
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

/* Returns the mark that a person named for a text with a prompt of their own; empty: none. */
static struct str given_mark(const struct core *core) {
  return json_view(json_at(core->config, "mark"));
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
      .reasks_said = m->judge.reasks_said,
      .agent_text = buf_view(&turn->text),
      .mark = str_from(turn->mark),
      .own_scope = given_mark(core).n == 0 && m->argv != NULL ? TAG_COMMAND : TAG_AGENT,
      .own_tag = m->judge.own_tag,
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

/* --- what calls need --- */

static json_t *step_merged(const json_t *base, const json_t *top) {
  if (base == NULL && top == NULL)
    return NULL;
  json_t *both = base ? json_clone_top(base) : json_object();
  if (top)
    json_object_update(both, (json_t *)top);
  return both;
}

/* Makes a turn's nonce. It is the same for all judgments of a turn's answer, even after a resume,
 * so that a backend can cache its reading of the report. It is derived from the report itself,
 * because no text can contain its own. */
static void step_turn_nonce(const struct core *core, const struct turn *turn, struct str report,
                            char out[17]) {
  char head[96], hex[SHA256_HEX];
  int n = snprintf(head, sizeof head, "%s %ld\n", core->session, turn->id);
  assert(n > 0 && (size_t)n < sizeof head);
  sha256_hex(head, (size_t)n, report.p, report.n, hex);
  memcpy(out, hex, 16);
  out[16] = '\0';
}

/* --- a movement's own work ---
 *
 * Its call, its reports and, with structured_output, everything until its value is there: checks of
 * what came back, corrections, invariants that must be run, and what follows when there will be no
 * value. The rules are in structured/reask.h; this makes their records and calls. */

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
  json_auto_t *base = step_merged(json_at(core->config, "default_options"), m->options);
  return step_merged(base, json_at(core->config, "options"));
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
 * ends, or its error leads on. */
static void start_work(struct step *s, struct turn *turn, struct step_call *n) {
  if (steer_takes(s->core, turn, n->purpose))
    n->said = steer_put(s->core, turn, NULL, &n->prompt);
  if (n->purpose == PURPOSE_EXECUTE)
    evidence_put_first(s->core, turn, &n->prompt);
  if (!n->prompt.bytes.cut) {
    step_start_call(s, turn, n);
    return;
  }
  struct str why =
      STR("the prompt is over the limit of 24 MiB: shorten the task or the response before");
  if (turn->group > 0)
    step_end_child(s, turn, ALL_ANY_ERROR, why, CLASS_BAD_REQUEST);
  else if (!step_take_error_way(s, turn, CLASS_BAD_REQUEST, why))
    step_stop(s, "prompt_too_long", turn, CLASS_BAD_REQUEST, why, NULL);
  step_drop_call(n);
}

/* Draws the turn's mark from a hash of the event's random bytes: a token shows those. */
static void step_mark(const struct step *s, const struct turn *turn, char out[TAG_MARK_BYTES + 1]) {
  const struct core *core = s->core;
  struct str given = given_mark(core);
  unsigned char random[TAG_MARK_BYTES];
  char head[64], hex[SHA256_HEX];
  print_into(head, sizeof head, "mark %ld %ld\n", turn->id, core->call_count);
  sha256_hex(head, strlen(head), (const char *)s->ev->entropy, sizeof s->ev->entropy, hex);
  for (size_t i = 0; i < sizeof random; i++)
    random[i] = (unsigned char)(str_hex_digit(hex[2 * i]) << 4 | str_hex_digit(hex[2 * i + 1]));
  if (given.n == TAG_MARK_BYTES)
    print_into(out, TAG_MARK_BYTES + 1, "%.*s", TAG_MARK_BYTES, given.p);
  else if (turn->mark[0] != '\0')
    memcpy(out, turn->mark, sizeof turn->mark);
  else
    tag_mark_make(random, core->mark_letters, out);
}

static void step_execute(struct step *s, struct turn *turn, bool raise) {
  const struct core *core = s->core;
  const struct movement *m = core_movement(s->core, turn);
  struct prompt_view view;
  struct step_call n = {.purpose = PURPOSE_EXECUTE,
                        .stage = STAGE_COUNT,
                        .timeout_ms = (uint64_t)step_time_left(s, turn, m->timeout_ms)};
  char mark[TAG_MARK_BYTES + 1];
  step_view(s, turn, NULL, &view);
  step_mark(s, turn, mark);
  view.mark = str_from(mark);
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
  if (prompt_asks_for_tag(m, view.interactive) &&
      (m->argv != NULL || prompt_shows(&n.prompt, view.mark)))
    n.mark = view.mark;
  start_work(s, turn, &n);
}

/* Makes a line "$.a: message" of each error, for a person or a model to read. A place in the text
 * is part of the message. */
static json_t *error_lines(const json_t *errors) {
  json_t *lines = json_array();
  JSON_EACH(errors, i, error) {
    buf_auto_t line = {0};
    const char *path = json_string_value(json_at(error, "path"));
    const char *message = json_string_value(json_at(error, "message"));
    if (json_at(error, "offset") == NULL && path != NULL)
      buf_printf(&line, "%s: ", path);
    buf_puts(&line, message ? message : "");
    json_array_append_new(lines, json_text(buf_view(&line)));
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
  buf_auto_t value = {0};
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
                                         .keep_valid = m->structured->keep_valid,
                                         .more = step->more};
  const json_t *shown = wrong->text.n == 0 ? wrong->structured : NULL;
  if (step->value != NULL || shown != NULL) {
    json_write(step->value ? step->value : shown, &value);
    correction.output = buf_view(&value);
    view.bad_seq = 0;
  }
  prompt_reask(&view, &correction, &n.prompt);
  json_decref((json_t *)correction.errors);
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
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
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
  return readable ? answer_errors(&errors, &dropped) : NULL;
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
          .enforced = call->enforced,
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
  json_auto_t *closing = reask_close(turn->checks, step);
  struct record_draft d;
  buf_auto_t message = {0};
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
    json_auto_t *lines = error_lines(step->errors);
    const char *first = json_string_value(json_array_get(lines, 0));
    message.max = LIMIT_ERROR_TEXT_BYTES;
    buf_printf(&message, "no valid value after %zu attempt%s: %s", attempts,
               attempts == 1 ? "" : "s", reask_reason_words(step->reason));
    if (first != NULL && step->reason != REASK_REASON_REFUSED &&
        step->reason != REASK_REASON_LENGTH)
      buf_printf(&message, ": %s", first);
    message.n = message.n > 0 ? utf8_floor(message.p, message.n) : 0;
    record_put_bytes(&d, MEMBER_MESSAGE, buf_view(&message));
    /* The value is replaced by an object with a single member, which no rule takes for
     * data. */
    if (m->structured->on_failure == ON_FAILURE_SENTINEL)
      record_put_tree(&d, MEMBER_VALUE,
                      json_pack("{s{sO* sO* sO*}}", "sentinel", "reason",
                                json_at(closing, "reason"), "attempts",
                                json_at(closing, "attempts"), "errors",
                                json_at(closing, "errors")));
  }
  step_emit(s, &d);
}

/* Builds the question that a person is to answer. */
static json_t *escalated_question(const struct step *s, const struct turn *turn) {
  const struct movement *m = core_movement(s->core, turn);
  const struct call *call = turn_last_answer(turn);
  const json_t *check = json_array_get(turn->checks, json_array_size(turn->checks) - 1);
  buf_auto_t text = buf_of("What is the value of the movement \"" STR_FMT "\"? %s.",
                           STR_ARG(m->name), turn->reason ? turn->reason : "There is none");
  json_t *question = json_object();
  json_put(question, "text", json_text(buf_view(&text)));
  if (call != NULL)
    json_put(question, "call", json_integer(call->id));
  json_object_set_nocheck(question, "errors", json_at(check, "errors"));
  json_object_set_nocheck(question, "schema", (json_t *)m->structured->document);
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

/* Halts the turn, or lets its error lead on, for a check whose outcome cannot be read. */
static bool shape_halt(struct step *s, struct turn *turn, const struct call *check) {
  const struct structured_config *so = core_movement(s->core, turn)->structured;
  bool is_command =
      invariants_get(so->invariants, (size_t)check->invariant - 1)->kind == INVARIANT_COMMAND;
  buf_auto_t message = {0};
  if (is_command)
    buf_printf(&message,
               "the command that checks invariant %d was killed or did not run (exit status %d)",
               check->invariant, check->exit);
  else
    buf_puts(&message, "the model that was asked about an invariant gave no readable answer");
  return step_take_error_way(s, turn, is_command ? CLASS_CRASHED : CLASS_PROTOCOL,
                             buf_view(&message)) ||
         step_halt(s, "check_unavailable", turn, CLASS_NONE, buf_view(&message), NULL);
}

static bool step_shape(struct step *s, struct turn *turn) {
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
  AUTO(past_deinit) struct past past;
  const struct call *unreadable = shape_gather(s, turn, trouble, &past);
  if (unreadable != NULL)
    return shape_halt(s, turn, unreadable);
  const struct reask_spec spec = {.answer = {.schema = so->schema,
                                             .document = so->document,
                                             .repair = so->repair,
                                             .max_bytes = LIMIT_STRUCTURED_BYTES,
                                             .max_depth = LIMIT_STRUCTURED_DEPTH},
                                  .invariants = so->invariants,
                                  .max_reasks = so->max_reasks,
                                  .keep_valid = so->keep_valid,
                                  .can_raise = can_raise(s, turn),
                                  .max_ms = so->time_budget_ms,
                                  .max_tokens = so->token_budget,
                                  .out_of_time = out_of_time};
  AUTO(reask_step_deinit) struct reask_step step;
  reask_next(&spec, turn->checks, past.replies, past.reply_count, past.runs, past.run_count, &step);
  bool calls =
      step.action == REASK_GENERATE || step.action == REASK_CORRECT || step.action == REASK_RUN;
  bool goes_on = !calls || !s->env->draining;
  if (goes_on)
    take_step(s, turn, &step);
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
  contract_sha256(report_answer(s->core, turn, step->call), sha256);
  step_turn_record(s, &d, RECORD_REPORT, turn);
  record_put_text(&d, MEMBER_MOVEMENT, core_movement(s->core, turn)->name);
  record_put_text(&d, MEMBER_FILE, step->contract->name);
  record_put_text(&d, MEMBER_SHA256, str_from(sha256));
  if (step->call != NULL)
    record_put_number(&d, MEMBER_CALL, step->call->id);
  step_emit(s, &d);
  step_effect(s, EFFECT_REPORTS, 0, 0);
}

static bool step_report(struct step *s, struct turn *turn) {
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

/* --- turns --- */

/* Returns the options of a judge's call, with its effort. */
static json_t *judge_options(const struct step *s, const struct movement *m,
                             const struct step_call *n) {
  json_t *options = step_merged(NULL, m->judge.options);
  const char *effort = capability_judge_effort(capability_find(s->env->providers, n->provider));
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

/* Shows a judge how checks ended, in texts that the caller keeps. */
static void view_checks(const struct core *core, const struct turn *turn,
                        struct buf *const texts[3], struct prompt_view *view) {
  checks_tell(core, turn, texts[0]);
  checks_tests(turn->tests, texts[1]);
  evidence_tell(core, turn, texts[2]);
  view->checks = buf_view(texts[0]);
  view->tests = buf_view(texts[1]);
  view->evidence = buf_view(texts[2]);
  view->no_pass = checks_is_no_pass(turn->tests);
}

/* Returns what that judge said last in this stage, and where it stands. */
static struct str last_reply(const struct turn *turn, const struct chain_step *step,
                             uint64_t *seq) {
  struct str reply = {"", 0};
  for (const struct call *c = turn->calls; c; c = c->next)
    if (c->stage == step->stage && c->vote == step->vote) {
      reply = buf_view(&c->text);
      *seq = c->text_seq;
    }
  return reply;
}

static void judge_call(struct step *s, struct turn *turn, const struct chain_spec *spec,
                       const struct chain_step *step) {
  const struct core *core = s->core;
  size_t judge = evidence_judge_of(core, turn);
  const struct movement *m = &core->workflow->movements[judge];
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
  buf_auto_t judged = {0};
  struct joined joined;
  step_view(s, turn, nonce, &view);
  if (kept_judged(turn, &judged, &joined)) {
    view.answer = buf_view(&judged);
    view.answer_joined = &joined;
    view.answer_seq = 0;
  }
  buf_auto_t changed = {0};
  if (evidence_judges(turn)) {
    evidence_put_task_files(core, turn, &changed);
    view.changed = buf_view(&changed);
    view.answer = view.task;
    view.answer_joined = NULL;
    view.answer_seq = 0;
  }
  step_turn_nonce(core, turn, view.answer, nonce);
  n.fence = str_from(nonce);
  buf_auto_t checks = {0}, tests = {0}, evidence = {0};
  view_checks(core, turn, (struct buf *[]){&checks, &tests, &evidence}, &view);
  if (step->vote > 0)
    core_panel_backend(core->workflow, core->config, judge, step->vote, &n.provider, &n.model);
  else
    core_judge_backend(core->workflow, core->config, judge, &n.provider, &n.model);
  view.by_tool =
      core_judges_by_tool(core->workflow, core->config, judge, step->vote, s->env->providers);
  n.options = judge_options(s, m, &n);
  n.schema = chain_call_schema(spec, step->stage);
  buf_auto_t again = {0};
  if (step->reask && n.schema == NULL) {
    const char *last =
        json_string_value(json_array_get(step->errors, json_array_size(step->errors) - 1));
    buf_puts(&again, last ? last : "");
    view.again = buf_view(&again);
    prompt_judge(&view, &asked, step->stage, &n.prompt);
  } else if (step->reask) {
    struct str bad = last_reply(turn, step, &view.bad_seq);
    const struct prompt_correction correction = {.schema = n.schema,
                                                 .output = bad,
                                                 .errors = step->errors,
                                                 .spec = &asked,
                                                 .stage = step->stage};
    prompt_reask(&view, &correction, &n.prompt);
  } else {
    prompt_judge(&view, &asked, step->stage, &n.prompt);
  }
  free(joined.joints);
  step_start_call(s, turn, &n);
}

/* Puts who judged, from the last stage that named a rule and asked somebody, and what all stages
 * used. */
static void decide_put_judge(struct record_draft *d, const json_t *stages) {
  const json_t *judged = NULL;
  json_t *usage = NULL;
  JSON_EACH(stages, i, object) {
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

/* Puts the version of the readers, and what became of the turn's mark, if one was asked. */
static void put_reader(const struct step *s, const struct turn *turn, struct record_draft *d) {
  struct judging_turn judging;
  struct tag_result tag;
  record_put_number(d, MEMBER_READER, CHAIN_READER);
  if (turn->mark[0] == '\0' || !judging_of(&judging, s->core, turn, s->env->schemas))
    return;
  (void)chain_find_tag(&judging.spec, buf_view(&turn->text), STAGE_PHASE1_TAG, &tag);
  record_put_word(d, MEMBER_MARK, tag_mark_name(tag.mark));
  judging_deinit(&judging);
}

static void verdict(struct step *s, struct turn *turn, const struct chain_step *step) {
  const struct movement *m = core_movement(s->core, turn);
  const struct rule *rule = step->rule;
  struct record_draft d;
  buf_auto_t tag = {0};
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
  put_reader(s, turn, &d);
  decide_put_judge(&d, turn->stages);
  record_put_tree(&d, MEMBER_STAGES, json_clone_top(turn->stages));
  enum basis basis = evidence_basis(s->core, turn, step->stage);
  if (m->group == NO_GROUP && str_eq_c(rule->next, "COMPLETE") && basis != BASIS_NONE)
    record_put_word(&d, MEMBER_BASIS, basis_name(basis));
  step_emit(s, &d);
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
  put_reader(s, turn, &d);
  decide_put_judge(&d, turn->stages);
  record_put_tree(&d, MEMBER_STAGES, json_clone_top(turn->stages));
  step_emit(s, &d);
}

/* Returns CLASS_AUTH if a judge refused the login, which a person mends; else CLASS_NONE. */
static enum error_class refused_login(const struct turn *turn) {
  JSON_EACH(turn->stages, i, stage) {
    if (str_eq_c(json_view_at(stage, "class"), error_class_name(CLASS_AUTH)))
      return CLASS_AUTH;
  }
  return CLASS_NONE;
}

/* Makes a person's verdict a stage like others, with who gave it and why, unless it is one. */
static bool put_persons_verdict(struct step *s, const struct turn *turn) {
  const json_t *last = json_array_get(turn->stages, json_array_size(turn->stages) - 1);
  if (turn->verdict == NULL || str_eq_c(json_view_at(last, "stage"), judge_stage_name(STAGE_HUMAN)))
    return false;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_STAGE, turn);
  record_put_body(&d,
                  json_pack("{ss ss s[] sO sO* sO* si}", "stage", judge_stage_name(STAGE_HUMAN),
                            "outcome", stage_outcome_name(OUTCOME_MATCHED), "calls", "rule",
                            json_at(turn->verdict, "rule"), "reason", json_at(turn->verdict, "why"),
                            "by", json_at(turn->verdict, "by"), "duration_ms", 0));
  step_emit(s, &d);
  return true;
}

/* Does one step of judging. Returns false when it waits for a call. */
static bool judge_turn(struct step *s, struct turn *turn) {
  buf_auto_t why = {0};
  if (put_persons_verdict(s, turn))
    return true;
  if (turn->verdict == NULL && group_lacks_items(s->core, turn, &why)) {
    no_verdict(s, turn, END_FAILED, buf_c(&why));
    return true;
  }
  struct judging_turn judging;
  if (!judging_of(&judging, s->core, turn, s->env->schemas))
    return false;
  AUTO(chain_step_deinit) struct chain_step step;
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
    more =
        step_halt(s, "judge_unavailable", turn, refused_login(turn), str_from(step.reason), NULL);
    break;
  }
  judging_deinit(&judging);
  return more;
}

/* Judges whether the task allows what was changed in the check, of which nothing is recorded before
 * the end: the replies say all. */
static bool judge_task(struct step *s, struct turn *turn) {
  struct chain_reply replies[TURN_JUDGE_CALLS];
  struct chain_spec spec = evidence_task_spec(s, turn);
  json_auto_t *stages = json_array();
  struct chain_step step;
  size_t n;
  if (!judge_replies(turn, replies, TURN_JUDGE_CALLS, &n))
    return false;
  while (chain_next(&spec, stages, replies, n, &step), step.action == CHAIN_STAGE) {
    json_array_append(stages, step.object);
    chain_step_deinit(&step);
  }
  bool more = step.action != CHAIN_CALL || !s->env->draining;
  if (step.action != CHAIN_CALL)
    evidence_task_judged(s, turn, &step, stages);
  else if (more)
    judge_call(s, turn, &spec, &step);
  chain_step_deinit(&step);
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
  buf_auto_t why = {0};
  bool more;
  switch (turn->phase) {
  case TURN_EXECUTING:
    if (turn->group > 0 && worktree_hold_child(s, turn))
      return false;
    if (human_hold(turn, s->core))
      return human_wait(s, turn);
    if (turn->parts != NULL)
      return group_advance(s, turn);
    if (s->core->workflow->movements[turn->movement].structured != NULL)
      return step_shape(s, turn);
    call = turn_execute_call(turn);
    if (call == NULL && !s->env->draining)
      step_execute(s, turn, false);
    if (call == NULL)
      return !s->env->draining;
    return call->state == CALL_FAILED &&
           step_halt(s, "provider_error", turn, call->class, buf_view(&call->text), NULL);
  case TURN_REPORTING:
    return step_report(s, turn);
  case TURN_JUDGING:
    if (turn->question != NULL)
      return human_wait(s, turn);
    if (head_refuses(s->core, turn, &why))
      more = step_halt(s, "head_moved", turn, CLASS_NONE, buf_view(&why), NULL);
    else if (protect_refuses(s->core, turn, &why))
      more = step_halt(s, "protected", turn, CLASS_NONE, buf_view(&why), NULL);
    else if (!evidence_hold_turn(s, turn, &more))
      more = evidence_judges(turn) ? judge_task(s, turn) : judge_turn(s, turn);
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
  buf_auto_t why = {0};
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

/* Returns true if no call is running or waiting to run again: only people are waited for. */
static bool human_alone(const struct core *core) {
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    if (turn_is_calling(turn))
      return false;
  return !core_worktree_busy(core);
}

/* Arms the timers of open questions, after a resume and when a deadline may be over. */
static void human_arm(struct step *s) {
  for (const struct turn *turn = s->core->turns; turn; turn = turn->next)
    if (turn->question != NULL && turn->until_ms > s->ev->time_ms)
      step_effect(s, EFFECT_TIMER, 0, turn->until_ms - s->ev->time_ms);
}

/* Advances until every open turn waits for something outside. */
static void advance(struct step *s) {
  bool moved = true;
  if (s->core->status == SESSION_RUNNING && s->core->awaits_carried) /* nobody was told about it */
    step_end(s, END_CANCELLED, "it was cut off before it had taken over its parent's state");
  while (moved && s->core->status == SESSION_RUNNING) {
    moved = false;
    if (s->core->has_next && (!s->env->draining || s->core->next < 0) && !hidden_hold_next(s) &&
        !worktree_hold_next(s) && !evidence_hold_next(s)) {
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
  evidence_resume(s);
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

/* Takes what a person says: it moves nothing. */
static void take_steer(struct step *s) {
  struct turn *turn;
  const struct call *call = core_steer_call(s->core, &turn);
  struct record_draft d;
  step_record(s, &d, RECORD_STEER);
  if (call != NULL)
    record_put_number(&d, MEMBER_TURN, turn->id);
  if (call != NULL && call->id == s->ev->call) {
    record_put_number(&d, MEMBER_CALL, call->id);
    step_effect(s, EFFECT_STEER, call->id, 0);
  }
  record_put_text(&d, MEMBER_TEXT, str_from(s->ev->message));
  record_put_tree(&d, MEMBER_BY, json_incref((json_t *)s->ev->by));
  record_put_bytes(&d, MEMBER_KEY, str_from(s->ev->reason));
  step_emit(s, &d);
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
  case EVENT_HIDDEN:
    hidden_event(s);
    break;
  case EVENT_EVIDENCE:
    evidence_event(s);
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
  case EVENT_STEER:
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
  bool lets_go = core_waits(core) && ev->steer != NULL; /* of those that it waits for */
  if ((core->status == SESSION_STOPPED || lets_go) && accepts)
    emit_resume(&s, ev->reason);
  else if (core->status != SESSION_ENDED && ev->kind == EVENT_ANSWER && ev->hold)
    human_take(&s); /* a resume continues the session */
  else if (core->status != SESSION_ENDED && ev->kind == EVENT_STEER)
    take_steer(&s);
  else if (core->status != SESSION_ENDED && !accepts &&
           (core->status != SESSION_STOPPED || resumes))
    take_event(&s);
}
