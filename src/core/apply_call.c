/* Folds calls: their start, their place, what they tell, their end. */
#include "base/log.h"
#include "core/decide.h"
#include "core/fold.h"
#include "core/gates.h"
#include "core/guard.h"
#include "core/report.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "judge/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts the call's token: small numbers in an array (a script takes its replies by number), others
 * in an object by their text. */
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

/* Takes the schema, which only the first call_start that sends it holds; later ones refer to that
 * record. */
static bool use_schema(const struct fold *f, struct call *call) {
  const json_t *schema = NULL;
  struct str ref;
  char place[TEXTS_PLACE_BYTES];
  if (record_ref(f->record, MEMBER_SCHEMA, &ref)) {
    schema = json_object_getn(f->core->schemas, ref.p, ref.n);
    if (schema == NULL)
      return fold_bad(f, "its schema refers to a record that has none");
  } else if (record_get(f->record, MEMBER_SCHEMA) != NULL) {
    (void)snprintf(place, sizeof place, "%lld#/schema", (long long)f->record->seq);
    schema = f->core->proves ? json_true() : fold_tree(f, MEMBER_SCHEMA);
    json_object_set(f->core->schemas, place, (json_t *)schema);
  }
  fold_set_json(&call->schema, schema);
  return true;
}

static size_t count_generations(const struct turn *turn) {
  size_t count = 0;
  for (const struct call *call = turn->calls; call; call = call->next)
    count += call_generates(call);
  return count;
}

/* Returns true if the turn may make such a call now. A turn makes one call of its own; to produce a
 * value it makes more, one after the other. */
static bool may_call(const struct fold *f, const struct turn *turn, enum call_purpose purpose) {
  const struct structured_config *structured = fold_structured(f, turn);
  json_int_t number = fold_number(f, MEMBER_INVARIANT);
  bool checks = purpose == PURPOSE_CHECK;
  if (purpose != PURPOSE_EXECUTE && purpose != PURPOSE_REASK && !checks)
    return fold_bad(f, "its purpose is not of this point");
  if (structured == NULL && (purpose != PURPOSE_EXECUTE || turn->calls != NULL))
    return fold_bad(f, "its turn has had its call");
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call->state == CALL_RUNNING || call->state == CALL_WAITING)
      return fold_bad(f, "another call of its turn is not over");
  if (checks && (number < 1 || (size_t)number > invariants_count(structured->invariants)))
    return fold_bad(f, "its invariant is not in the workflow");
  return checks || count_generations(turn) < TURN_GENERATIONS ||
         fold_bad(f, "its turn asked often enough");
}

/* Notes which files the session has changed, for people to see; a file's latest report wins. */
static void note_touched(struct core *core, const json_t *files) {
  const json_t *file;
  size_t i;
  if (core->touched == NULL && json_array_size(files) > 0)
    core->touched = json_object();
  json_array_foreach((json_t *)files, i, file) {
    struct str path = json_view(json_at(file, "path"));
    bool known = json_object_getn(core->touched, path.p, path.n) != NULL;
    if (path.n > 0 && (known || json_object_size(core->touched) < LIMIT_TOUCHED_COUNT))
      json_object_setn_new(core->touched, path.p, path.n, json_incref((json_t *)file));
  }
}

/* Adds up what the attempts of the turn changed, counting each file once. */
static void add_changed(const struct fold *f, struct turn *turn) {
  const json_t *files = fold_tree(f, MEMBER_FILES), *file;
  int64_t more = fold_number(f, MEMBER_FILES_MORE);
  size_t i;
  bool shared = record_is_true(f->record, MEMBER_FILES_SHARED); /* they belong to no single call */
  if (files == NULL || shared)
    turn->files_lost |= turn->files != NULL;
  if (files == NULL || shared || !json_is_array(files))
    return;
  note_touched(f->core, files);
  turn->files_more += more > 0 && more < LIMIT_TREE_FILES ? more : 0;
  if (turn->files == NULL || json_array_size(turn->files) == 0) {
    fold_set_json(&turn->files, files);
    return;
  }
  json_t *both = json_clone_top(turn->files);
  json_array_foreach(files, i, file) {
    size_t k = 0;
    while (k < json_array_size(both) &&
           !json_same(json_at(json_array_get(both, k), "path"), json_at(file, "path")))
      k++;
    if (k == json_array_size(both))
      json_array_append(both, (json_t *)file);
  }
  fold_set_json(&turn->files, both);
  json_decref(both);
}

static struct call *new_call(const struct fold *f, struct turn *turn, long id) {
  enum call_purpose purpose;
  enum judge_stage stage = STAGE_COUNT;
  int stage_calls = 0;
  struct call **at = &turn->calls;
  if (id != f->core->call_count + 1)
    return (void)fold_bad(f, "its call number is not the next one"), NULL;
  if (!call_purpose_from_name(fold_text(f, MEMBER_PURPOSE), &purpose))
    return (void)fold_bad(f, "its purpose is unknown"), NULL;
  bool judges = purpose == PURPOSE_JUDGE || fold_has(f, MEMBER_STAGE);
  bool reports = purpose == PURPOSE_REPORT;
  enum turn_phase phase = judges ? TURN_JUDGING : TURN_EXECUTING;
  if (turn->phase != (reports ? TURN_REPORTING : phase))
    return (void)fold_bad(f, "its turn is not at that point"), NULL;
  if (judges && purpose != PURPOSE_JUDGE && purpose != PURPOSE_REASK)
    return (void)fold_bad(f, "its purpose is not of this point"), NULL;
  if (judges && !judge_stage_from_name(fold_text(f, MEMBER_STAGE), &stage))
    return (void)fold_bad(f, "it is for no stage"), NULL;
  if (reports ? !report_may_call(f, turn) : !judges && !may_call(f, turn, purpose))
    return NULL;
  json_int_t vote = judges ? fold_number(f, MEMBER_VOTE) : 0;
  if (vote < 0 || vote > LIMIT_PANEL_COUNT)
    return (void)fold_bad(f, "its vote is of no panel"), NULL;
  for (; *at; at = &(*at)->next)
    stage_calls += (*at)->stage == stage && (*at)->vote == (int)vote;
  if (judges && stage_calls >= STAGE_JUDGE_CALLS)
    return (void)fold_bad(f, "its stage asked often enough"), NULL;
  struct call *call = xcalloc(1, sizeof *call);
  f->core->call_count = id;
  spends_begin(&f->core->spends, f->core->workflow->movements[turn->movement].name,
               fold_text(f, MEMBER_PROVIDER));
  call->id = id;
  call->purpose = purpose;
  call->stage = stage;
  call->vote = (int)vote;
  call->invariant = purpose == PURPOSE_CHECK ? (int)fold_number(f, MEMBER_INVARIANT) : 0;
  call->report = reports ? report_number(f, turn) : 0;
  call->prompt_seq = (uint64_t)f->record->seq;
  *at = call;
  return call;
}

static void set_provider_session(struct call *call, struct str id) {
  call->forks = call->forks && str_eq_c(id, call->provider_session);
  free(call->provider_session);
  call->provider_session = id.n > 0 ? xstrndup(id.p, id.n) : NULL;
}

/* Takes the conversation that the attempt continues, if it continues one. */
static void use_session(const struct fold *f, struct call *call) {
  const json_t *session = fold_tree(f, MEMBER_SESSION);
  const json_t *id = json_at(session, "id");
  call->resumed = json_is_true(json_at(session, "resumed")) && json_is_string(id);
  set_provider_session(call, call->resumed ? str_from(json_string_value(id)) : STR(""));
  call->forks = call->resumed && json_is_true(json_at(session, "forked"));
}

static void forget_told(struct call *call) {
  json_decref(call->told.usage);
  memset(&call->told, 0, sizeof call->told);
}

/* Counts what an interrupted attempt reported of its use: nothing more is known. */
static void count_lost(const struct fold *f, const struct turn *turn, struct call *call) {
  struct core *core = f->core;
  if (call->told.usage == NULL)
    return;
  json_t *usage = json_clone_top(call->told.usage);
  json_object_set_new(usage, "told", json_string("partial"));
  spends_add(&core->spends, call->purpose, core->workflow->movements[turn->movement].name,
             str_from(call->provider), usage, 0);
  json_decref(usage);
  call->spent.tokens += call->told.tokens;
  call->spent.cost_nano += call->told.cost_nano;
}

bool apply_call_start(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  if (turn == NULL)
    return false;
  long id = (long)fold_number(f, MEMBER_CALL);
  struct call *call = turn_call(turn, id);
  bool repeats = fold_has(f, MEMBER_REPEATS);
  uint64_t seq = f->core->seq + 1; /* the number of this record */
  json_int_t attempt = fold_number(f, MEMBER_ATTEMPT);
  if (attempt != (call ? call->attempt : 0) + 1)
    return fold_bad(f, "its attempt is not the next one");
  if (call != NULL && call->state != (repeats ? CALL_RUNNING : CALL_WAITING))
    return fold_bad(f, "its call does not wait for another attempt");
  if (call == NULL) {
    call = new_call(f, turn, id);
    if (call == NULL)
      return false;
  }
  struct str provider = fold_text(f, MEMBER_PROVIDER), model = fold_text(f, MEMBER_MODEL);
  if (call->fallback != NULL) { /* the call starts anew elsewhere */
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
  struct str cwd = fold_text(f, MEMBER_CWD);
  free(call->cwd);
  call->cwd = cwd.n > 0 ? xstrndup(cwd.p, cwd.n) : NULL;
  fold_set_json(&call->sandbox, fold_tree(f, MEMBER_SANDBOX));
  fold_set_json(&call->options, fold_tree(f, MEMBER_OPTIONS));
  if (attempt == 1)
    fold_set_json(&call->wanted, call->options);
  fold_set_json(&call->token, fold_tree(f, MEMBER_TOKEN));
  if (!use_schema(f, call))
    return false;
  struct str sha256 = fold_text(f, MEMBER_PROMPT_SHA256);
  if (sha256.n == SHA256_HEX - 1)
    memcpy(call->prompt_sha256, sha256.p, sha256.n);
  call->timeout_ms = (uint64_t)fold_number(f, MEMBER_TIMEOUT_MS);
  call->attempt = (int)attempt;
  call->state = CALL_RUNNING;
  if (repeats)
    count_lost(f, turn, call);
  forget_told(call);
  call->tool_count = 0;
  if (!repeats)
    count_token(f->core, call);
  else
    turn->files_lost |= call->purpose == PURPOSE_EXECUTE;
  struct str part;
  for (uint32_t i = 0; !f->core->proves && record_part(f->record, i, &part); i++)
    texts_add(&f->core->texts, part, seq, TEXT_PART, i);
  return true;
}

/* Returns the tokens of an attempt; impossible counts saturate. */
static int64_t apply_call_tokens_of(const json_t *usage) {
  json_int_t input = json_integer_value(json_at(usage, "input"));
  json_int_t output = json_integer_value(json_at(usage, "output"));
  const json_int_t most = (json_int_t)1 << 40;
  return (input < 0 || input > most ? most : input) + (output < 0 || output > most ? most : output);
}

/* Returns true for a duration of at most some 30 years, so that sums stay in range. */
static bool is_duration(json_int_t ms) {
  return ms >= 0 && ms < (json_int_t)1 << 40;
}

/* Sends the next attempt to another provider, without a wait. */
static void take_fallback(const struct fold *f, struct call *call) {
  struct str name = fold_text(f, MEMBER_FALLBACK);
  if (name.n == 0)
    return;
  free(call->fallback);
  call->fallback = xstrndup(name.p, name.n);
  call->state = CALL_WAITING;
  call->wait_until_ms = 0;
}

/* Returns the record's running call and sets its turn; NULL with err set if the call does not
 * run. */
static struct call *running_call(const struct fold *f, struct turn **turn) {
  *turn = fold_turn(f);
  if (*turn == NULL)
    return NULL;
  struct call *call = turn_call(*turn, (long)fold_number(f, MEMBER_CALL));
  if (call != NULL && call->state == CALL_RUNNING)
    return call;
  (void)fold_bad(f, "its call is not running");
  return NULL;
}

bool apply_admission(const struct fold *f) {
  struct turn *turn;
  struct call *call = running_call(f, &turn);
  enum admission_answer answer;
  if (call == NULL)
    return false;
  if (!admission_from_name(fold_text(f, MEMBER_ANSWER), &answer))
    return fold_bad(f, "its answer is unknown");
  if (answer == ADMISSION_FALLBACK)
    take_fallback(f, call);
  return true;
}

/* Remembers the conversation that the next call continues. */
static void keep_session(const struct fold *f, const struct turn *turn, const struct call *call) {
  struct buf key = {0};
  if (call->provider_session == NULL || call->forks ||
      turn->item > 0) /* a fork is not continued, nor is an item's conversation */
    return;
  core_session_key(&f->core->workflow->movements[turn->movement], str_from(call->provider), false,
                   &key);
  json_object_set_new(f->core->sessions, buf_c(&key), json_string(call->provider_session));
  buf_deinit(&key);
}

/* Notes until when the provider has to cool down; meanwhile others do its work and its judging. */
static void keep_behind(const struct fold *f, const struct call *call, const json_t *error) {
  json_int_t ms = json_integer_value(json_at(error, "retry_after_ms"));
  int64_t now_ms;
  if (call->fallback == NULL || !record_time_parse(f->record->ts.p, &now_ms))
    return;
  if (ms < LIMIT_BEHIND_MS || ms > LIMIT_RESET_WAIT_MS)
    ms = LIMIT_BEHIND_MS;
  if (f->core->behind == NULL)
    f->core->behind = json_object();
  json_object_set_new(f->core->behind, call->provider, json_integer(now_ms + ms));
}

/* Folds a failed attempt: the call waits for the next one, goes to another provider, or is over. */
static bool call_failed(const struct fold *f, struct call *call, const json_t *error) {
  const json_t *message = json_at(error, "message");
  bool wait = fold_has(f, MEMBER_RETRY_IN_MS);
  int64_t now_ms;
  call->class = CLASS_PROTOCOL;
  (void)error_class_from_name(str_from(json_string_value(json_at(error, "class"))), &call->class);
  buf_clear(&call->text);
  if (json_is_string(message))
    buf_append(&call->text, json_string_value(message), json_string_length(message));
  call->failures++;
  call->session_lost |= call->class == CLASS_NOT_FOUND && call->resumed;
  call->state = wait ? CALL_WAITING : CALL_FAILED;
  take_fallback(f, call);
  keep_behind(f, call, error);
  if (!wait)
    return true;
  if (!record_time_parse(f->record->ts.p, &now_ms))
    return fold_bad(f, "its ts is not a time");
  call->wait_until_ms = now_ms + fold_number(f, MEMBER_RETRY_IN_MS);
  return true;
}

/* Notes what the attempt has used so far. */
static void keep_told(const struct fold *f, struct call *call) {
  json_t *usage = fold_tree(f, MEMBER_DATA);
  if (!str_eq_c(fold_text(f, MEMBER_EVENT), "usage") || !json_is_object(usage))
    return;
  json_t *priced = spend_priced(usage, json_at(f->core->config, "prices"), str_from(call->model));
  struct spend one = spend_of(priced, 0);
  forget_told(call);
  call->told.tokens = one.input + one.output;
  call->told.cost_nano = one.cost_nano;
  call->told.usage = priced;
}

/* Sums up what was used, and keeps how far a conversation has come, for the call that continues
 * it. */
static void keep_usage(const struct fold *f, const struct turn *turn, struct call *call) {
  struct core *core = f->core;
  const json_t *usage = fold_tree(f, MEMBER_USAGE), *total = json_at(usage, "total");
  struct str id = fold_text(f, MEMBER_PROVIDER_SESSION);
  spends_add(&core->spends, call->purpose, core->workflow->movements[turn->movement].name,
             str_from(call->provider), usage, fold_number(f, MEMBER_DURATION_MS));
  if (usage == NULL && fold_tree(f, MEMBER_ERROR) == NULL)
    spends_silent(&core->spends, str_from(call->provider));
  struct spend one = spend_of(usage, fold_number(f, MEMBER_DURATION_MS));
  call->spent.tokens += one.input + one.output;
  call->spent.cost_nano += one.cost_nano;
  call->spent.ms += one.duration_ms;
  forget_told(call);
  if (total == NULL || id.n == 0)
    return;
  if (core->totals == NULL)
    core->totals = json_object();
  json_object_setn_new(core->totals, id.p, id.n, json_incref((json_t *)total));
}

bool apply_call_end(const struct fold *f) {
  struct turn *turn;
  struct call *call = running_call(f, &turn);
  if (call == NULL)
    return false;
  const json_t *error = fold_tree(f, MEMBER_ERROR);
  int64_t wait_ms = fold_number(f, MEMBER_RETRY_IN_MS);
  if (fold_number(f, MEMBER_ATTEMPT) != call->attempt)
    return fold_bad(f, "that attempt is not running");
  if (!is_duration(fold_number(f, MEMBER_DURATION_MS)) || !is_duration(wait_ms))
    return fold_bad(f, "a time in it cannot be");
  call->duration_ms += fold_number(f, MEMBER_DURATION_MS);
  call->tokens += apply_call_tokens_of(fold_tree(f, MEMBER_USAGE));
  if (!call_is_own(call))
    usage_add(&call->usage, fold_tree(f, MEMBER_USAGE));
  keep_usage(f, turn, call);
  if (call->purpose == PURPOSE_EXECUTE)
    add_changed(f, turn);
  if (call->purpose == PURPOSE_EXECUTE)
    gates_changed(f->core, turn);
  if (fold_text(f, MEMBER_PROVIDER_SESSION).n > 0)
    set_provider_session(call, fold_text(f, MEMBER_PROVIDER_SESSION));
  if (error != NULL)
    return call_failed(f, call, error);
  if (!fold_take_text(f, MEMBER_TEXT, &call->text))
    return false;
  fold_set_json(&call->structured, fold_tree(f, MEMBER_STRUCTURED));
  call->state = CALL_DONE;
  call->text_seq = (uint64_t)f->record->seq;
  buf_deinit(&call->prompt);
  bool has_exit = record_is_number(f->record, MEMBER_EXIT);
  if (call->purpose == PURPOSE_CHECK) {
    call->has_exit = has_exit;
    call->exit = (int)fold_number(f, MEMBER_EXIT);
    return fold_take_text(f, MEMBER_STDERR, &call->error_text);
  }
  if (call->purpose == PURPOSE_REPORT && call->resumed)
    keep_session(f, turn, call);
  if (call->purpose == PURPOSE_EXECUTE) {
    keep_session(f, turn, call);
    fold_set_json(&turn->tests, fold_tree(f, MEMBER_TESTS));
    turn->has_exit = has_exit;
    turn->exit = (int)fold_number(f, MEMBER_EXIT);
  }
  if (call->purpose == PURPOSE_EXECUTE && fold_structured(f, turn) == NULL) {
    fold_take_answer(turn, call);
    fold_set_json(&turn->structured, call->structured);
    fold_worked(f, turn);
  }
  return true;
}

bool apply_call_event(const struct fold *f) {
  struct turn *turn;
  struct call *call = running_call(f, &turn);
  if (call == NULL)
    return false;
  call->event_count++;
  keep_told(f, call);
  if (str_eq_c(fold_text(f, MEMBER_EVENT), "tool"))
    guards_see_tool(call, fold_tree(f, MEMBER_DATA));
  if (str_eq_c(fold_text(f, MEMBER_EVENT), "session")) {
    const json_t *id = json_at(fold_tree(f, MEMBER_DATA), "provider_session");
    if (json_string_length(id) > 0)
      set_provider_session(call, str_from(json_string_value(id)));
  }
  const json_t *refused = json_at(fold_tree(f, MEMBER_DATA), "refused");
  size_t length = json_string_length(refused);
  if (length > 0 && length <= LIMIT_NAME_BYTES)
    core_refuse(f->core, call, refused);
  return true;
}
