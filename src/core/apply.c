#include "core/apply.h"

#include "base/log.h"
#include "core/decide.h"
#include "core/record.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fold {
  struct core *core;
  const struct record *record;
  struct workflow *workflow;
  const struct core_source *source;
  struct err *err;
};

static struct str text_of(const struct fold *f, enum member key) {
  return record_text(f->record, key);
}

static int64_t number_of(const struct fold *f, enum member key) {
  return record_number(f->record, key);
}

static json_t *tree_of(const struct fold *f, enum member key) {
  return record_tree(f->record, key);
}

static struct str body_text(const struct fold *f, const char *key) {
  const json_t *text = json_object_get(f->record->body, key);
  return json_is_string(text) ? (struct str){json_string_value(text), json_string_length(text)}
                              : STR("");
}

static bool has(const struct fold *f, enum member key) {
  return record_get(f->record, key) != NULL;
}

static bool bad(const struct fold *f, const char *what) {
  return err_set(f->err, ERR_CORRUPT, "record %lld (" STR_FMT "): %s", (long long)f->record->seq,
                 STR_ARG(f->record->type_name), what);
}

/* The bytes of a text, from the record or from its blob (the next member). */
static bool take_text(const struct fold *f, enum member key, struct buf *out) {
  struct str blob = text_of(f, key + 1);
  buf_clear(out);
  if (blob.n > 0)
    return f->source != NULL ? f->source->blob(f->source->ctx, blob.p, out, f->err)
                             : bad(f, "its text is in a blob that is not at hand");
  buf_str(out, text_of(f, key));
  return true;
}

static void set_json(json_t **slot, const json_t *value) {
  json_decref(*slot);
  *slot = value && !json_is_null(value) ? json_incref((json_t *)value) : NULL;
}

static struct turn *turn_of(const struct fold *f) {
  struct turn *turn = core_turn(f->core, (long)number_of(f, MEMBER_TURN));
  if (turn == NULL)
    (void)bad(f, "its turn is not open");
  return turn;
}

static bool apply_session_start(const struct fold *f) {
  struct core *core = f->core;
  if (core->status != SESSION_NEW)
    return bad(f, "a session starts once");
  if (f->record->version != RECORD_VERSION)
    return bad(f, "its version is not the one that this program reads");
  struct str id = text_of(f, MEMBER_SESSION);
  if (id.n == 0 || id.n >= sizeof core->session)
    return bad(f, "it has no session id");
  if (f->workflow != NULL) {
    core->workflow = workflow_ref(f->workflow);
  } else {
    json_t *doc = tree_of(f, MEMBER_WORKFLOW);
    core->workflow = workflow_build(doc, f->err);
    if (core->workflow == NULL)
      return err_wrap(f->err, "record 1: its workflow cannot be built");
  }
  const struct workflow *wf = core->workflow;
  (void)snprintf(core->session, sizeof core->session, "%s", id.p);
  core->config = json_incref(tree_of(f, MEMBER_CONFIG));
  if (!take_text(f, MEMBER_TASK, &core->task))
    return false;
  core->movement_counts = xcalloc(wf->movement_count, sizeof *core->movement_counts);
  core->status = SESSION_RUNNING;
  core->has_next = true;
  core->next = (int)wf->initial;
  for (uint32_t i = 0; i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    texts_add(&core->texts, m->persona, 1, TEXT_PERSONA, i);
    texts_add(&core->texts, m->policy, 1, TEXT_POLICY, i);
    texts_add(&core->texts, m->knowledge, 1, TEXT_KNOWLEDGE, i);
    texts_add(&core->texts, m->instruction, 1, TEXT_INSTRUCTION, i);
  }
  return true;
}

static bool apply_turn_start(const struct fold *f) {
  struct core *core = f->core;
  long index = workflow_find(core->workflow, text_of(f, MEMBER_MOVEMENT));
  if (index < 0)
    return bad(f, "its movement is not in the workflow");
  if (!core->has_next || core->next != index)
    return bad(f, "no movement was to be entered, or another");
  struct turn *turn = xcalloc(1, sizeof *turn);
  turn->id = ++core->turn_count;
  if (number_of(f, MEMBER_TURN) != turn->id) {
    free(turn);
    return bad(f, "its turn number is not the next one");
  }
  turn->movement = (size_t)index;
  turn->iteration = turn->id;
  turn->movement_iteration = ++core->movement_counts[index];
  turn->stages = json_array();
  turn->checks = json_array();
  core->has_next = false;
  struct turn **at = &core->turns;
  while (*at)
    at = &(*at)->next;
  *at = turn;
  return true;
}

/* Small numbers are counted in an array (a script takes its replies by number), other tokens in an
 * object by their text. */
static void count_token(struct core *core, const struct call *call) {
  json_t *counts = json_object_get(core->token_counts, call->provider);
  json_int_t number = json_integer_value(call->token);
  if (call->token == NULL)
    return;
  if (json_is_integer(call->token) && number >= 0 && number < LIMIT_TOKEN_NUMBER) {
    if (!json_is_array(counts)) {
      counts = json_array();
      json_object_set_new(core->token_counts, call->provider, counts);
    }
    while (json_array_size(counts) <= (size_t)number)
      json_array_append_new(counts, json_integer(0));
    json_t *count = json_array_get(counts, (size_t)number);
    json_integer_set(count, json_integer_value(count) + 1);
    return;
  }
  if (!json_is_object(counts)) {
    counts = json_object();
    json_object_set_new(core->token_counts, call->provider, counts);
  }
  char *key = json_dump_text(call->token, JSON_COMPACT | JSON_ENCODE_ANY);
  json_int_t n = json_integer_value(json_object_get(counts, key));
  json_object_set_new(counts, key, json_integer(n + 1));
  free(key);
}

/* A schema stands in the first call_start that sends it; later ones refer to that. */
static bool use_schema(const struct fold *f, struct call *call) {
  const json_t *schema = tree_of(f, MEMBER_SCHEMA);
  struct str ref;
  char place[TEXTS_PLACE_BYTES];
  if (record_ref(f->record, MEMBER_SCHEMA, &ref)) {
    schema = json_object_getn(f->core->schemas, ref.p, ref.n);
    if (schema == NULL)
      return bad(f, "its schema refers to a record that has none");
  } else if (schema != NULL) {
    (void)snprintf(place, sizeof place, "%lld#/schema", (long long)f->record->seq);
    json_object_set(f->core->schemas, place, (json_t *)schema);
  }
  set_json(&call->schema, schema);
  return true;
}

static const struct structured_config *structured_of(const struct fold *f,
                                                     const struct turn *turn) {
  return f->core->workflow->movements[turn->movement].structured;
}

static size_t count_generations(const struct turn *turn) {
  size_t count = 0;
  for (const struct call *call = turn->calls; call; call = call->next)
    count += call_generates(call);
  return count;
}

/* A turn has one call of its own; with a value to be made, more of them, one after the other. */
static bool may_call(const struct fold *f, const struct turn *turn, enum call_purpose purpose) {
  const struct structured_config *structured = structured_of(f, turn);
  json_int_t number = number_of(f, MEMBER_INVARIANT);
  bool checks = purpose == PURPOSE_CHECK;
  if (purpose != PURPOSE_EXECUTE && purpose != PURPOSE_REASK && !checks)
    return bad(f, "its purpose is not of this point");
  if (structured == NULL && (purpose != PURPOSE_EXECUTE || turn->calls != NULL))
    return bad(f, "its turn has had its call");
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call->state == CALL_RUNNING || call->state == CALL_WAITING)
      return bad(f, "another call of its turn is not over");
  if (checks && (number < 1 || (size_t)number > invariants_count(structured->invariants)))
    return bad(f, "its invariant is not in the workflow");
  return checks || count_generations(turn) < TURN_GENERATIONS ||
         bad(f, "its turn asked often enough");
}

static struct call *new_call(const struct fold *f, struct turn *turn, long id) {
  enum call_purpose purpose;
  enum judge_stage stage = STAGE_COUNT;
  int stage_calls = 0;
  struct call **at = &turn->calls;
  if (id != f->core->call_count + 1)
    return (void)bad(f, "its call number is not the next one"), NULL;
  if (!call_purpose_from_name(text_of(f, MEMBER_PURPOSE), &purpose))
    return (void)bad(f, "its purpose is unknown"), NULL;
  bool judges = purpose == PURPOSE_JUDGE || has(f, MEMBER_STAGE);
  if (turn->phase != (judges ? TURN_JUDGING : TURN_EXECUTING))
    return (void)bad(f, "its turn is not at that point"), NULL;
  if (judges && purpose != PURPOSE_JUDGE && purpose != PURPOSE_REASK)
    return (void)bad(f, "its purpose is not of this point"), NULL;
  if (judges && !judge_stage_from_name(text_of(f, MEMBER_STAGE), &stage))
    return (void)bad(f, "it is for no stage"), NULL;
  if (!judges && !may_call(f, turn, purpose))
    return NULL;
  for (; *at; at = &(*at)->next)
    stage_calls += (*at)->stage == stage;
  if (judges && stage_calls >= STAGE_JUDGE_CALLS)
    return (void)bad(f, "its stage asked often enough"), NULL;
  struct call *call = xcalloc(1, sizeof *call);
  f->core->call_count = id;
  call->id = id;
  call->purpose = purpose;
  call->stage = stage;
  call->invariant = purpose == PURPOSE_CHECK ? (int)number_of(f, MEMBER_INVARIANT) : 0;
  call->prompt_seq = (uint64_t)f->record->seq;
  *at = call;
  return call;
}

static void set_provider_session(struct call *call, struct str id) {
  free(call->provider_session);
  call->provider_session = id.n > 0 ? xstrndup(id.p, id.n) : NULL;
}

/* The conversation that the attempt goes on with; else it begins one. */
static void use_session(const struct fold *f, struct call *call) {
  const json_t *session = tree_of(f, MEMBER_SESSION);
  const json_t *id = json_at(session, "id");
  call->resumed = json_is_true(json_at(session, "resumed")) && json_is_string(id);
  set_provider_session(call, call->resumed ? str_from(json_string_value(id)) : STR(""));
}

static bool apply_call_start(const struct fold *f) {
  struct turn *turn = turn_of(f);
  if (turn == NULL)
    return false;
  long id = (long)number_of(f, MEMBER_CALL);
  struct call *call = turn_call(turn, id);
  bool repeats = has(f, MEMBER_REPEATS);
  uint64_t seq = f->core->seq + 1; /* the record's */
  json_int_t attempt = number_of(f, MEMBER_ATTEMPT);
  if (attempt != (call ? call->attempt : 0) + 1)
    return bad(f, "its attempt is not the next one");
  if (call != NULL && call->state != (repeats ? CALL_RUNNING : CALL_WAITING))
    return bad(f, "its call does not wait for another attempt");
  if (call == NULL) {
    call = new_call(f, turn, id);
    if (call == NULL)
      return false;
  }
  struct str provider = text_of(f, MEMBER_PROVIDER), model = text_of(f, MEMBER_MODEL);
  if (call->fallback != NULL) { /* a new start elsewhere */
    free(call->fallback);
    call->fallback = NULL;
    call->failures = 0;
    call->session_lost = false;
  }
  use_session(f, call);
  free(call->provider);
  free(call->model);
  call->provider = xstrndup(provider.p, provider.n);
  call->model = model.n ? xstrndup(model.p, model.n) : NULL;
  set_json(&call->options, tree_of(f, MEMBER_OPTIONS));
  if (attempt == 1)
    set_json(&call->wanted, call->options);
  set_json(&call->token, tree_of(f, MEMBER_TOKEN));
  if (!use_schema(f, call))
    return false;
  call->timeout_ms = (uint64_t)number_of(f, MEMBER_TIMEOUT_MS);
  call->attempt = (int)attempt;
  call->state = CALL_RUNNING;
  if (!repeats)
    count_token(f->core, call);
  struct str part;
  for (uint32_t i = 0; record_part(f->record, i, &part); i++)
    texts_add(&f->core->texts, part, seq, TEXT_PART, i);
  return true;
}

/* Tokens of an attempt; what cannot be counts as the most that can. */
static int64_t tokens_of(const json_t *usage) {
  json_int_t input = json_integer_value(json_at(usage, "input"));
  json_int_t output = json_integer_value(json_at(usage, "output"));
  const json_int_t most = (json_int_t)1 << 40;
  return (input < 0 || input > most ? most : input) + (output < 0 || output > most ? most : output);
}

/* At most some 30 years: sums of them stay in range. */
static bool is_duration(json_int_t ms) {
  return ms >= 0 && ms < (json_int_t)1 << 40;
}

/* The next attempt goes to another provider, at once. */
static void take_fallback(const struct fold *f, struct call *call) {
  struct str name = text_of(f, MEMBER_FALLBACK);
  if (name.n == 0)
    return;
  free(call->fallback);
  call->fallback = xstrndup(name.p, name.n);
  call->state = CALL_WAITING;
  call->wait_until_ms = 0;
}

static bool apply_admission(const struct fold *f) {
  struct turn *turn = turn_of(f);
  struct call *call = turn ? turn_call(turn, (long)number_of(f, MEMBER_CALL)) : NULL;
  enum admission_answer answer;
  if (turn == NULL)
    return false;
  if (call == NULL || call->state != CALL_RUNNING)
    return bad(f, "its call is not running");
  if (!admission_from_name(text_of(f, MEMBER_ANSWER), &answer))
    return bad(f, "its answer is unknown");
  if (answer == ADMISSION_FALLBACK)
    take_fallback(f, call);
  return true;
}

/* What the next call of the same conversation goes on with. */
static void keep_session(const struct fold *f, const struct turn *turn, const struct call *call) {
  struct buf key = {0};
  if (call->provider_session == NULL)
    return;
  core_session_key(&f->core->workflow->movements[turn->movement], str_from(call->provider), &key);
  json_object_set_new(f->core->sessions, buf_c(&key), json_string(call->provider_session));
  buf_deinit(&key);
}

/* The answer becomes the turn's; the call keeps none. */
static void take_answer(struct turn *turn, struct call *call) {
  buf_deinit(&turn->text);
  turn->text = call->text;
  turn->text_seq = call->text_seq;
  call->text = (struct buf){0};
}

static bool apply_call_end(const struct fold *f) {
  struct turn *turn = turn_of(f);
  struct call *call = turn ? turn_call(turn, (long)number_of(f, MEMBER_CALL)) : NULL;
  if (turn == NULL)
    return false;
  if (call == NULL || call->state != CALL_RUNNING)
    return bad(f, "its call is not running");
  const json_t *error = tree_of(f, MEMBER_ERROR);
  bool wait = has(f, MEMBER_RETRY_IN_MS);
  int64_t wait_ms = number_of(f, MEMBER_RETRY_IN_MS);
  if (number_of(f, MEMBER_ATTEMPT) != call->attempt)
    return bad(f, "that attempt is not running");
  if (!is_duration(number_of(f, MEMBER_DURATION_MS)) || !is_duration(wait_ms))
    return bad(f, "a time in it cannot be");
  call->duration_ms += number_of(f, MEMBER_DURATION_MS);
  call->tokens += tokens_of(tree_of(f, MEMBER_USAGE));
  if (text_of(f, MEMBER_PROVIDER_SESSION).n > 0)
    set_provider_session(call, text_of(f, MEMBER_PROVIDER_SESSION));
  if (error != NULL) {
    const json_t *class = json_at(error, "class");
    const json_t *message = json_at(error, "message");
    call->class = CLASS_PROTOCOL;
    (void)error_class_from_name(str_from(json_string_value(class)), &call->class);
    buf_clear(&call->text);
    if (json_is_string(message))
      buf_append(&call->text, json_string_value(message), json_string_length(message));
    call->failures++;
    call->session_lost |= call->class == CLASS_NOT_FOUND && call->resumed;
    call->state = wait ? CALL_WAITING : CALL_FAILED;
    take_fallback(f, call);
    if (wait) {
      int64_t now;
      if (!record_time_parse(f->record->ts.p, &now))
        return bad(f, "its ts is not a time");
      call->wait_until_ms = now + wait_ms;
    }
    return true;
  }
  if (!take_text(f, MEMBER_TEXT, &call->text))
    return false;
  set_json(&call->structured, tree_of(f, MEMBER_STRUCTURED));
  call->state = CALL_DONE;
  call->text_seq = (uint64_t)f->record->seq;
  buf_deinit(&call->prompt);
  bool has_exit = record_is_number(f->record, MEMBER_EXIT);
  if (call->purpose == PURPOSE_CHECK) {
    call->has_exit = has_exit;
    call->exit = (int)number_of(f, MEMBER_EXIT);
    return take_text(f, MEMBER_STDERR, &call->error_text);
  }
  if (call->purpose == PURPOSE_EXECUTE) {
    keep_session(f, turn, call);
    turn->has_exit = has_exit;
    turn->exit = (int)number_of(f, MEMBER_EXIT);
  }
  if (call->purpose == PURPOSE_EXECUTE && structured_of(f, turn) == NULL) {
    take_answer(turn, call);
    set_json(&turn->structured, call->structured);
    turn->phase = TURN_JUDGING;
  }
  return true;
}

static bool apply_check(const struct fold *f) {
  struct turn *turn = turn_of(f);
  const struct call *call =
      turn ? turn_call(turn, (long)json_integer_value(json_at(f->record->body, "call"))) : NULL;
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_EXECUTING || structured_of(f, turn) == NULL)
    return bad(f, "its turn has no value to check");
  if (call == NULL || !call_generates(call) ||
      (call->state != CALL_DONE && call->state != CALL_FAILED))
    return bad(f, "its call brought nothing to check");
  json_int_t number = json_integer_value(json_at(f->record->body, "number"));
  if (number != (json_int_t)json_array_size(turn->checks) + 1)
    return bad(f, "its number is not the next one");
  json_array_append(turn->checks, f->record->body);
  return true;
}

/* How the making of a value ended, in one round: a value, or none and what follows from that. */
static bool apply_structured(const struct fold *f) {
  struct turn *turn = turn_of(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_EXECUTING || structured_of(f, turn) == NULL || turn->escalated)
    return bad(f, "its turn has no value to bring");
  struct str outcome = text_of(f, MEMBER_OUTCOME), message = text_of(f, MEMBER_MESSAGE);
  const json_t *value = tree_of(f, MEMBER_VALUE);
  free(turn->reason);
  turn->reason = message.n > 0 ? xstrndup(message.p, message.n) : NULL;
  if (str_eq_c(outcome, "escalated")) {
    turn->escalated = true;
    return true;
  }
  if (str_eq_c(outcome, "failed")) {
    turn->phase = TURN_JUDGED;
    turn->failure = END_FAILED;
    const char *reason = record_text_c(f->record, MEMBER_REASON);
    turn->error =
        json_pack("{ss ss*}", "class", "structured_output", "reason", reason[0] ? reason : NULL);
    return true;
  }
  if (value == NULL || (!str_eq_c(outcome, "value") && !str_eq_c(outcome, "sentinel")))
    return bad(f, "it has no value and no other outcome");
  struct call *call = turn_call(turn, (long)number_of(f, MEMBER_CALL));
  if (has(f, MEMBER_CALL) && (call == NULL || !call_generates(call) || call->state != CALL_DONE))
    return bad(f, "its call did not answer");
  if (call != NULL)
    take_answer(turn, call);
  if (turn->text.n == 0) { /* the backend gave a value and no text */
    json_write(value, &turn->text);
    turn->text_seq = 0;
  }
  set_json(&turn->structured, value);
  turn->phase = TURN_JUDGING;
  return true;
}

static bool apply_call_event(const struct fold *f) {
  struct turn *turn = turn_of(f);
  struct call *call = turn ? turn_call(turn, (long)number_of(f, MEMBER_CALL)) : NULL;
  if (turn == NULL)
    return false;
  if (call == NULL || call->state != CALL_RUNNING)
    return bad(f, "its call is not running");
  call->event_count++;
  if (str_eq_c(text_of(f, MEMBER_EVENT), "session")) {
    const json_t *id = json_at(tree_of(f, MEMBER_DATA), "provider_session");
    if (json_string_length(id) > 0)
      set_provider_session(call, str_from(json_string_value(id)));
  }
  return true;
}

static bool apply_stage(const struct fold *f) {
  struct turn *turn = turn_of(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_JUDGING)
    return bad(f, "its turn is not being judged");
  enum judge_stage stage;
  enum stage_outcome outcome;
  if (!judge_stage_from_name(body_text(f, "stage"), &stage) ||
      !stage_outcome_from_name(body_text(f, "outcome"), &outcome))
    return bad(f, "its stage or outcome is unknown");
  json_array_append(turn->stages, f->record->body);
  return true;
}

static bool apply_judgment(const struct fold *f) {
  struct turn *turn = turn_of(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_JUDGING)
    return bad(f, "its turn is judged already");
  const struct movement *m = &f->core->workflow->movements[turn->movement];
  json_int_t rule = number_of(f, MEMBER_RULE);
  enum judge_stage method;
  if (rule < 0 || (size_t)rule > m->rule_count)
    return bad(f, "its rule is not in the workflow");
  if (rule == 0) {
    struct str reason = text_of(f, MEMBER_REASON);
    if (!session_outcome_from_name(text_of(f, MEMBER_FAILURE), &turn->failure) ||
        (turn->failure != END_RULE_NO_MATCH && turn->failure != END_FAILED))
      return bad(f, "it has neither a rule nor a failure");
    free(turn->reason);
    turn->reason = xstrndup(reason.p, reason.n);
  } else {
    if (!judge_stage_from_name(text_of(f, MEMBER_METHOD), &method))
      return bad(f, "its method is unknown");
    f->core->method_counts[method]++;
  }
  turn->rule = (int)rule;
  turn->phase = TURN_JUDGED;
  return true;
}

static bool apply_turn_end(const struct fold *f) {
  struct core *core = f->core;
  struct turn *turn = turn_of(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_JUDGED || turn->rule == 0)
    return bad(f, "its turn has no verdict");
  if (number_of(f, MEMBER_RULE) != turn->rule)
    return bad(f, "its rule is not the one that was judged");
  const struct movement *m = &core->workflow->movements[turn->movement];
  core->has_next = true;
  core->next = m->rule_next[turn->rule - 1];
  buf_deinit(&core->last_text);
  core->last_text = turn->text;
  core->last_text_seq = turn->text_seq;
  core->has_last_text = true;
  turn->text = (struct buf){0};
  json_object_setn_new(core->structured, m->name.p, m->name.n,
                       turn->structured ? json_incref(turn->structured) : json_null());
  core_drop_turn(core, turn);
  return true;
}

static bool apply_session_stop(const struct fold *f) {
  struct core *core = f->core;
  core->status = SESSION_STOPPED;
  core->stop_class = CLASS_NONE;
  (void)error_class_from_name(text_of(f, MEMBER_CLASS), &core->stop_class);
  buf_clear(&core->stop_reason);
  buf_clear(&core->stop_message);
  buf_str(&core->stop_reason, text_of(f, MEMBER_REASON));
  buf_str(&core->stop_message, text_of(f, MEMBER_MESSAGE));
  return true;
}

/* A person looked at it: another round, from the last answer on if there is one, with the budgets
 * as they were at first. */
static void begin_round(struct turn *turn) {
  struct call *keep = NULL;
  for (struct call *call = turn->calls; call; call = call->next)
    if (call_generates(call) && call->state == CALL_DONE)
      keep = call;
  for (struct call *call = turn->calls, *next; call; call = next) {
    next = call->next;
    if (call != keep)
      core_drop_call(turn, call);
  }
  if (keep != NULL) {
    keep->duration_ms = 0;
    keep->tokens = 1; /* next to none; 0 is an answer that nobody counted */
  }
  json_array_clear(turn->checks);
  turn->escalated = false;
}

/* The last of a turn's own calls, NULL when there is none. */
static struct call *last_own(const struct turn *turn) {
  struct call *last = NULL;
  for (struct call *call = turn->calls; call; call = call->next)
    if (call_is_own(call))
      last = call;
  return last;
}

/* A refusal or a cut is an outcome of its own where a value is to be made. */
static bool call_ends_value(const struct fold *f, const struct turn *turn,
                            const struct call *call) {
  return structured_of(f, turn) != NULL && call_generates(call) &&
         (call->class == CLASS_REFUSED || call->class == CLASS_LENGTH);
}

/* Another chance, from the first of its providers on. */
static void begin_again(const struct fold *f, const struct turn *turn, struct call *call) {
  struct str first, model;
  core_first_backend(f->core, turn, call, &first, &model);
  call->state = CALL_WAITING;
  call->wait_until_ms = 0;
  call->failures = 0;
  if (first.n > 0 && !str_eq_c(first, call->provider))
    call->fallback = xstrndup(first.p, first.n);
}

/* What failed for good gets another chance: that is what a resume asks for. */
static bool apply_session_resume(const struct fold *f) {
  struct str reason = buf_view(&f->core->stop_reason);
  bool unavailable = str_eq_c(reason, "judge_unavailable");
  bool escalated = str_eq_c(reason, "escalated"), no_check = str_eq_c(reason, "check_unavailable");
  for (struct turn *turn = f->core->turns; turn; turn = turn->next) {
    if (turn->phase == TURN_JUDGING && unavailable) {
      json_array_clear(turn->stages);
      core_drop_judging(turn);
    }
    if (turn->phase != TURN_EXECUTING)
      continue;
    if (turn->escalated && escalated)
      begin_round(turn);
    struct call *call = last_own(turn);
    if (call != NULL && call->purpose == PURPOSE_CHECK && call->state == CALL_DONE && no_check) {
      core_drop_call(turn, call);
    } else if (call != NULL && call->state == CALL_FAILED && !call_ends_value(f, turn, call)) {
      begin_again(f, turn, call);
    }
  }
  f->core->status = SESSION_RUNNING;
  buf_clear(&f->core->stop_reason);
  buf_clear(&f->core->stop_message);
  return true;
}

static bool apply_session_end(const struct fold *f) {
  if (!session_outcome_from_name(text_of(f, MEMBER_OUTCOME), &f->core->outcome))
    return bad(f, "its outcome is unknown");
  buf_clear(&f->core->stop_message);
  buf_str(&f->core->stop_message, text_of(f, MEMBER_MESSAGE));
  f->core->status = SESSION_ENDED;
  return true;
}

static bool (*const apply_type[RECORD_TYPE_COUNT])(const struct fold *f) = {
    [RECORD_SESSION_START] = apply_session_start,
    [RECORD_TURN_START] = apply_turn_start,
    [RECORD_CALL_START] = apply_call_start,
    [RECORD_ADMISSION] = apply_admission,
    [RECORD_CALL_EVENT] = apply_call_event,
    [RECORD_CALL_END] = apply_call_end,
    [RECORD_CHECK] = apply_check,
    [RECORD_STRUCTURED] = apply_structured,
    [RECORD_STAGE] = apply_stage,
    [RECORD_JUDGMENT] = apply_judgment,
    [RECORD_TURN_END] = apply_turn_end,
    [RECORD_SESSION_STOP] = apply_session_stop,
    [RECORD_SESSION_RESUME] = apply_session_resume,
    [RECORD_SESSION_END] = apply_session_end,
};

bool core_apply(struct core *core, const struct record *record, struct workflow *workflow,
                const struct core_source *source, struct err *err) {
  struct fold f = {core, record, workflow, source, err};
  bool resumes = record->type == RECORD_SESSION_RESUME;
  if (record->seq != core->seq + 1)
    return bad(&f, "its seq is not the next one");
  if (core->status == SESSION_ENDED)
    return bad(&f, "nothing follows session_end");
  if (core->status == SESSION_NEW && record->type != RECORD_SESSION_START)
    return bad(&f, "a log begins with session_start");
  if (core->status == SESSION_STOPPED && !resumes)
    return bad(&f, "a stopped session goes on with session_resume");
  if (record->type == RECORD_TYPE_COUNT)
    return bad(&f, "its type is unknown");
  if (!apply_type[record->type](&f))
    return false;
  core->resumed = resumes;
  core->seq++;
  return true;
}

bool core_apply_json(struct core *core, const json_t *json, struct workflow *workflow,
                     const struct core_source *source, struct err *err) {
  struct record_draft d;
  record_read(&d, json);
  bool ok = core_apply(core, &d.record, workflow, source, err);
  record_drop(&d);
  return ok;
}
