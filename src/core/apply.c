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
  const json_t *record;
  struct workflow *workflow;
  const struct core_source *source;
  struct err *err;
};

static struct str get_strn(const struct fold *f, const char *key, size_t n) {
  const json_t *value = json_object_getn(f->record, key, n);
  return json_is_string(value) ? (struct str){json_string_value(value), json_string_length(value)}
                               : (struct str){"", 0};
}

#define get_str(f, key) get_strn((f), "" key, sizeof(key) - 1)
#define get_int(f, key) json_integer_value(json_at((f)->record, key))

static bool bad(const struct fold *f, const char *what) {
  return err_set(f->err, ERR_CORRUPT, "record %lld (%s): %s", (long long)get_int(f, "seq"),
                 get_str(f, "type").p, what);
}

/* The bytes of the text `key`, from the record or from its blob ("<key>_blob"). */
static bool get_text(const struct fold *f, const char *key, struct buf *out) {
  char blob_key[32] = "";
  (void)strncat(strncat(blob_key, key, 16), "_blob", 8);
  struct str blob = get_strn(f, blob_key, strlen(blob_key)),
             inline_text = get_strn(f, key, strlen(key));
  buf_clear(out);
  if (blob.n > 0)
    return f->source != NULL ? f->source->blob(f->source->ctx, blob.p, out, f->err)
                             : bad(f, "its text is in a blob that is not at hand");
  buf_str(out, inline_text);
  return true;
}

static void set_json(json_t **slot, const json_t *value) {
  json_decref(*slot);
  *slot = value && !json_is_null(value) ? json_incref((json_t *)value) : NULL;
}

static struct turn *turn_of(const struct fold *f) {
  struct turn *turn = core_turn(f->core, (long)get_int(f, "turn"));
  if (turn == NULL)
    (void)bad(f, "its turn is not open");
  return turn;
}

static bool apply_session_start(const struct fold *f) {
  struct core *core = f->core;
  if (core->status != SESSION_NEW)
    return bad(f, "a session starts once");
  if (get_int(f, "v") != RECORD_VERSION)
    return bad(f, "its version is not the one that this program reads");
  struct str id = get_str(f, "session");
  if (id.n == 0 || id.n >= sizeof core->session)
    return bad(f, "it has no session id");
  if (f->workflow != NULL) {
    core->workflow = workflow_ref(f->workflow);
  } else {
    json_t *doc = json_at(f->record, "workflow");
    core->workflow = workflow_build(doc, f->err);
    if (core->workflow == NULL)
      return err_wrap(f->err, "record 1: its workflow cannot be built");
  }
  const struct workflow *wf = core->workflow;
  (void)snprintf(core->session, sizeof core->session, "%s", id.p);
  core->config = json_incref(json_at(f->record, "config"));
  if (!get_text(f, "task", &core->task))
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
  long index = workflow_find(core->workflow, get_str(f, "movement"));
  if (index < 0)
    return bad(f, "its movement is not in the workflow");
  if (!core->has_next || core->next != index)
    return bad(f, "no movement was to be entered, or another");
  struct turn *turn = xcalloc(1, sizeof *turn);
  turn->id = ++core->turn_count;
  if (get_int(f, "turn") != turn->id) {
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
  const json_t *schema = json_at(f->record, "schema");
  const char *ref = json_string_value(json_at(schema, "ref"));
  char place[TEXTS_PLACE_BYTES];
  if (ref != NULL && json_object_size(schema) == 1) {
    schema = json_object_get(f->core->schemas, ref);
    if (schema == NULL)
      return bad(f, "its schema refers to a record that has none");
  } else if (schema != NULL) {
    (void)snprintf(place, sizeof place, "%lld#/schema", (long long)get_int(f, "seq"));
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
  json_int_t number = get_int(f, "invariant");
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
  if (!call_purpose_from_name(get_str(f, "purpose"), &purpose))
    return (void)bad(f, "its purpose is unknown"), NULL;
  bool judges = purpose == PURPOSE_JUDGE || json_at(f->record, "stage") != NULL;
  if (turn->phase != (judges ? TURN_JUDGING : TURN_EXECUTING))
    return (void)bad(f, "its turn is not at that point"), NULL;
  if (judges && !judge_stage_from_name(get_str(f, "stage"), &stage))
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
  call->invariant = purpose == PURPOSE_CHECK ? (int)get_int(f, "invariant") : 0;
  call->prompt_seq = (uint64_t)get_int(f, "seq");
  *at = call;
  return call;
}

static void set_provider_session(struct call *call, struct str id) {
  free(call->provider_session);
  call->provider_session = id.n > 0 ? xstrndup(id.p, id.n) : NULL;
}

/* The conversation that the attempt goes on with; else it begins one. */
static void use_session(const struct fold *f, struct call *call) {
  const json_t *session = json_at(f->record, "session");
  const json_t *id = json_at(session, "id");
  call->resumed = json_is_true(json_at(session, "resumed")) && json_is_string(id);
  set_provider_session(call, call->resumed ? str_from(json_string_value(id)) : STR(""));
}

static bool apply_call_start(const struct fold *f) {
  struct turn *turn = turn_of(f);
  if (turn == NULL)
    return false;
  long id = (long)get_int(f, "call");
  struct call *call = turn_call(turn, id);
  const json_t *prompt = json_at(f->record, "prompt");
  bool repeats = json_at(f->record, "repeats") != NULL;
  uint64_t seq = f->core->seq + 1; /* the record's */
  json_int_t attempt = get_int(f, "attempt");
  if (attempt != (call ? call->attempt : 0) + 1)
    return bad(f, "its attempt is not the next one");
  if (call != NULL && call->state != (repeats ? CALL_RUNNING : CALL_WAITING))
    return bad(f, "its call does not wait for another attempt");
  if (call == NULL) {
    call = new_call(f, turn, id);
    if (call == NULL)
      return false;
  }
  struct str provider = get_str(f, "provider"), model = get_str(f, "model");
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
  set_json(&call->options, json_at(f->record, "options"));
  if (attempt == 1)
    set_json(&call->wanted, call->options);
  set_json(&call->token, json_at(f->record, "token"));
  if (!use_schema(f, call))
    return false;
  call->timeout_ms = (uint64_t)get_int(f, "timeout_ms");
  call->attempt = (int)attempt;
  call->state = CALL_RUNNING;
  if (!repeats)
    count_token(f->core, call);
  size_t i;
  json_t *part;
  json_array_foreach(prompt, i, part) {
    if (json_is_string(part))
      texts_add(&f->core->texts, (struct str){json_string_value(part), json_string_length(part)},
                seq, TEXT_PART, (uint32_t)i);
  }
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
  struct str name = get_str(f, "fallback");
  if (name.n == 0)
    return;
  free(call->fallback);
  call->fallback = xstrndup(name.p, name.n);
  call->state = CALL_WAITING;
  call->wait_until_ms = 0;
}

static bool apply_admission(const struct fold *f) {
  struct turn *turn = turn_of(f);
  struct call *call = turn ? turn_call(turn, (long)get_int(f, "call")) : NULL;
  enum admission_answer answer;
  if (turn == NULL)
    return false;
  if (call == NULL || call->state != CALL_RUNNING)
    return bad(f, "its call is not running");
  if (!admission_from_name(get_str(f, "answer"), &answer))
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
  struct call *call = turn ? turn_call(turn, (long)get_int(f, "call")) : NULL;
  if (turn == NULL)
    return false;
  if (call == NULL || call->state != CALL_RUNNING)
    return bad(f, "its call is not running");
  const json_t *error = json_at(f->record, "error");
  const json_t *wait = json_at(f->record, "retry_in_ms");
  if (get_int(f, "attempt") != call->attempt)
    return bad(f, "that attempt is not running");
  if (!is_duration(get_int(f, "duration_ms")) || !is_duration(json_integer_value(wait)))
    return bad(f, "a time in it cannot be");
  call->duration_ms += get_int(f, "duration_ms");
  call->tokens += tokens_of(json_at(f->record, "usage"));
  if (get_str(f, "provider_session").n > 0)
    set_provider_session(call, get_str(f, "provider_session"));
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
      if (!record_time_parse(get_str(f, "ts").p, &now))
        return bad(f, "its ts is not a time");
      call->wait_until_ms = now + json_integer_value(wait);
    }
    return true;
  }
  if (!get_text(f, "text", &call->text))
    return false;
  set_json(&call->structured, json_at(f->record, "structured"));
  call->state = CALL_DONE;
  call->text_seq = (uint64_t)get_int(f, "seq");
  buf_deinit(&call->prompt);
  const json_t *exit_status = json_at(f->record, "exit");
  if (call->purpose == PURPOSE_CHECK) {
    call->has_exit = json_is_integer(exit_status);
    call->exit = (int)json_integer_value(exit_status);
    return get_text(f, "stderr", &call->error_text);
  }
  if (call->purpose == PURPOSE_EXECUTE) {
    keep_session(f, turn, call);
    turn->has_exit = json_is_integer(exit_status);
    turn->exit = (int)json_integer_value(exit_status);
  }
  if (call->purpose == PURPOSE_EXECUTE && structured_of(f, turn) == NULL) {
    take_answer(turn, call);
    set_json(&turn->structured, call->structured);
    turn->phase = TURN_JUDGING;
  }
  return true;
}

static bool is_common(const char *key, size_t n) {
  static const struct str common[] = {{"v", 1},    {"seq", 3},  {"ts", 2},
                                      {"type", 4}, {"turn", 4}, {"hash", 4}};
  for (size_t i = 0; n <= 4 && i < ARRAY_LEN(common); i++)
    if (str_eq((struct str){key, n}, common[i]))
      return true;
  return false;
}

/* The body of a record without what all records have. */
static json_t *body_of(const struct fold *f) {
  json_t *object = json_object(), *record = (json_t *)f->record;
  for (void *at = json_object_iter(record); at; at = json_object_iter_next(record, at)) {
    const char *key = json_object_iter_key(at);
    size_t n = json_object_iter_key_len(at);
    if (!is_common(key, n))
      json_object_setn_new_nocheck(object, key, n, json_incref(json_object_iter_value(at)));
  }
  return object;
}

static bool apply_check(const struct fold *f) {
  struct turn *turn = turn_of(f);
  const struct call *call = turn ? turn_call(turn, (long)get_int(f, "call")) : NULL;
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_EXECUTING || structured_of(f, turn) == NULL)
    return bad(f, "its turn has no value to check");
  if (call == NULL || !call_generates(call) ||
      (call->state != CALL_DONE && call->state != CALL_FAILED))
    return bad(f, "its call brought nothing to check");
  if (get_int(f, "number") != (json_int_t)json_array_size(turn->checks) + 1)
    return bad(f, "its number is not the next one");
  json_array_append_new(turn->checks, body_of(f));
  return true;
}

/* How the making of a value ended, in one round: a value, or none and what follows from that. */
static bool apply_structured(const struct fold *f) {
  struct turn *turn = turn_of(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_EXECUTING || structured_of(f, turn) == NULL || turn->escalated)
    return bad(f, "its turn has no value to bring");
  struct str outcome = get_str(f, "outcome"), message = get_str(f, "message");
  const json_t *value = json_at(f->record, "value");
  free(turn->reason);
  turn->reason = message.n > 0 ? xstrndup(message.p, message.n) : NULL;
  if (str_eq_c(outcome, "escalated")) {
    turn->escalated = true;
    return true;
  }
  if (str_eq_c(outcome, "failed")) {
    turn->phase = TURN_JUDGED;
    turn->failure = END_FAILED;
    turn->error = json_pack("{ss ss*}", "class", "structured_output", "reason",
                            json_string_value(json_at(f->record, "reason")));
    return true;
  }
  if (value == NULL || (!str_eq_c(outcome, "value") && !str_eq_c(outcome, "sentinel")))
    return bad(f, "it has no value and no other outcome");
  struct call *call = turn_call(turn, (long)get_int(f, "call"));
  if (json_at(f->record, "call") != NULL &&
      (call == NULL || !call_generates(call) || call->state != CALL_DONE))
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
  struct call *call = turn ? turn_call(turn, (long)get_int(f, "call")) : NULL;
  if (turn == NULL)
    return false;
  if (call == NULL || call->state != CALL_RUNNING)
    return bad(f, "its call is not running");
  call->event_count++;
  if (str_eq_c(get_str(f, "event"), "session")) {
    const json_t *id = json_at(json_object_get(f->record, "data"), "provider_session");
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
  if (!judge_stage_from_name(get_str(f, "stage"), &stage) ||
      !stage_outcome_from_name(get_str(f, "outcome"), &outcome))
    return bad(f, "its stage or outcome is unknown");
  const json_t *body = f->source != NULL ? f->source->body : NULL;
  json_array_append_new(turn->stages, body ? json_incref((json_t *)body) : body_of(f));
  return true;
}

static bool apply_judgment(const struct fold *f) {
  struct turn *turn = turn_of(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_JUDGING)
    return bad(f, "its turn is judged already");
  const struct movement *m = &f->core->workflow->movements[turn->movement];
  json_int_t rule = get_int(f, "rule");
  enum judge_stage method;
  if (rule < 0 || (size_t)rule > m->rule_count)
    return bad(f, "its rule is not in the workflow");
  if (rule == 0) {
    struct str reason = get_str(f, "reason");
    if (!session_outcome_from_name(get_str(f, "failure"), &turn->failure) ||
        (turn->failure != END_RULE_NO_MATCH && turn->failure != END_FAILED))
      return bad(f, "it has neither a rule nor a failure");
    free(turn->reason);
    turn->reason = xstrndup(reason.p, reason.n);
  } else {
    if (!judge_stage_from_name(get_str(f, "method"), &method))
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
  if (get_int(f, "rule") != turn->rule)
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
  const json_t *class = json_at(f->record, "class");
  core->status = SESSION_STOPPED;
  core->stop_class = CLASS_NONE;
  (void)error_class_from_name(str_from(json_string_value(class)), &core->stop_class);
  buf_clear(&core->stop_reason);
  buf_clear(&core->stop_message);
  buf_str(&core->stop_reason, get_str(f, "reason"));
  buf_str(&core->stop_message, get_str(f, "message"));
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
  if (!session_outcome_from_name(get_str(f, "outcome"), &f->core->outcome))
    return bad(f, "its outcome is unknown");
  buf_clear(&f->core->stop_message);
  buf_str(&f->core->stop_message, get_str(f, "message"));
  f->core->status = SESSION_ENDED;
  return true;
}

static const struct {
  const char *type;
  bool (*apply)(const struct fold *f);
} types[] = {
    {"session_start", apply_session_start},
    {"turn_start", apply_turn_start},
    {"call_start", apply_call_start},
    {"admission", apply_admission},
    {"call_event", apply_call_event},
    {"call_end", apply_call_end},
    {"check", apply_check},
    {"structured", apply_structured},
    {"stage", apply_stage},
    {"judgment", apply_judgment},
    {"turn_end", apply_turn_end},
    {"session_stop", apply_session_stop},
    {"session_resume", apply_session_resume},
    {"session_end", apply_session_end},
};

bool core_apply(struct core *core, const json_t *record, struct workflow *workflow,
                const struct core_source *source, struct err *err) {
  struct fold f = {core, record, workflow, source, err};
  if (get_int(&f, "seq") != (json_int_t)core->seq + 1)
    return bad(&f, "its seq is not the next one");
  if (core->status == SESSION_ENDED)
    return bad(&f, "nothing follows session_end");
  struct str type = get_str(&f, "type");
  bool resumes = str_eq_c(type, "session_resume");
  if (core->status == SESSION_NEW && !str_eq_c(type, "session_start"))
    return bad(&f, "a log begins with session_start");
  if (core->status == SESSION_STOPPED && !resumes)
    return bad(&f, "a stopped session goes on with session_resume");
  for (size_t i = 0; i < ARRAY_LEN(types); i++)
    if (types[i].type[0] == type.p[0] && str_eq_c(type, types[i].type)) {
      if (!types[i].apply(&f))
        return false;
      core->resumed = resumes;
      core->seq++;
      return true;
    }
  return bad(&f, "its type is unknown");
}
