/* Folds records into the state. */
#include "core/apply.h"

#include "base/list.h"
#include "base/log.h"
#include "base/utf8.h"
#include "core/budget.h"
#include "core/checks.h"
#include "core/decide.h"
#include "core/evidence.h"
#include "core/fold.h"
#include "core/group.h"
#include "core/guard.h"
#include "core/head.h"
#include "core/monitor.h"
#include "core/report_file.h"
#include "core/steer.h"
#include "core/worktree.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "judge/usage.h"

#include <stdlib.h>
#include <string.h>

/* --- what all records need --- */

/* null and NULL: none */
static void fold_set_json(json_t **slot, const json_t *value) {
  json_decref(*slot);
  *slot = value && !json_is_null(value) ? json_incref((json_t *)value) : NULL;
}

/* Returns the record's turn; NULL if it is not open (err is set). */
static struct turn *fold_turn(const struct fold *f) {
  struct turn *turn = core_turn(f->core, (long)fold_number(f, MEMBER_TURN));
  if (turn == NULL)
    (void)fold_bad(f, "its turn is not open");
  return turn;
}

static const struct structured_config *fold_structured(const struct fold *f,
                                                       const struct turn *turn) {
  return f->core->workflow->movements[turn->movement].structured;
}

/* Ends the movement's own work: its reports follow, or its judgment. */
static void fold_worked(const struct fold *f, struct turn *turn) {
  bool reports = f->core->workflow->movements[turn->movement].contract_count > 0;
  turn->phase = reports ? TURN_REPORTING : TURN_JUDGING;
}

/* Makes the answer the turn's; the call keeps none. */
static void fold_take_answer(struct turn *turn, struct call *call) {
  buf_deinit(&turn->text);
  turn->text = call->text;
  turn->text_seq = call->text_seq;
  call->text = (struct buf){0};
}

/* --- calls --- */

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
  char_auto_t *key = json_dump_text(call->token, JSON_COMPACT | JSON_ENCODE_ANY);
  json_int_t n = json_integer_value(json_object_get(counts, key));
  json_object_set_new(counts, key, json_integer(n + 1));
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
    print_into(place, sizeof place, "%lld#/schema", (long long)f->record->seq);
    schema = f->core->proves ? json_true() : fold_tree(f, MEMBER_SCHEMA);
    json_object_set(f->core->schemas, place, (json_t *)schema);
  }
  fold_set_json(&call->schema, schema);
  return true;
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
  if (turn_is_calling(turn))
    return fold_bad(f, "another call of its turn is not over");
  if (checks && (number < 1 || (size_t)number > invariants_count(structured->invariants)))
    return fold_bad(f, "its invariant is not in the workflow");
  size_t count = 0;
  for (const struct call *call = turn->calls; call; call = call->next)
    count += call_generates(call);
  return checks || count < TURN_GENERATIONS || fold_bad(f, "its turn asked often enough");
}

static void lose_changes(struct core *core, struct turn *turn, struct str why, bool blind) {
  turn->blind |= blind;
  free(turn->unseen);
  turn->unseen = xstrndup(why.p, why.n);
  touched_unknown(core, turn);
}

/* Adds up what the attempts of the turn changed, counting each file once. */
static void add_changed(const struct fold *f, struct turn *turn) {
  head_take(f->core, turn, fold_tree(f, MEMBER_HEAD));
  const json_t *files = fold_tree(f, MEMBER_FILES);
  struct str why = fold_text(f, MEMBER_FILES_UNKNOWN);
  int64_t more = fold_number(f, MEMBER_FILES_MORE);
  bool again = json_at(f->core->config, "rejudges") != NULL; /* perhaps of a turn without a call */
  turn->shared |= record_is_true(f->record, MEMBER_FILES_SHARED);
  /* Without `files`, the last of those that shared the tree has them. */
  if (why.n > 0 || (!json_is_array(files) && !again && !turn->shared))
    lose_changes(f->core, turn, why.n > 0 ? why : STR("nobody looked"),
                 !record_is_true(f->record, MEMBER_PROTECTED_SEEN));
  if (!json_is_array(files))
    return;
  more = more > 0 && more < LIMIT_TREE_FILES ? more : 0;
  touched_add(f->core, turn, files, more);
  turn->files_more += more;
  if (turn->files == NULL || json_array_size(turn->files) == 0) {
    fold_set_json(&turn->files, files);
    return;
  }
  json_auto_t *both = json_clone_top(turn->files);
  JSON_EACH(files, i, file) {
    size_t k = 0;
    while (k < json_array_size(both) &&
           !json_same(json_at(json_array_get(both, k), "path"), json_at(file, "path")))
      k++;
    if (k == json_array_size(both))
      json_array_append(both, (json_t *)file);
  }
  fold_set_json(&turn->files, both);
}

static int report_number(const struct fold *f, const struct turn *turn) {
  const struct movement *m = core_movement(f->core, turn);
  for (size_t i = 0; i < m->contract_count; i++)
    if (str_eq(m->contracts[i].name, fold_text(f, MEMBER_FILE)))
      return (int)i + 1;
  return 0;
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
  if (reports) {
    struct report_step step;
    report_next(core_movement(f->core, turn), turn, &step);
    if (report_number(f, turn) != (int)step.number)
      return (void)fold_bad(f, "its report is not the next one"), NULL;
    if (step.action != REPORT_ASK)
      return (void)fold_bad(f, "its report was asked for often enough"), NULL;
  } else if (!judges && !may_call(f, turn, purpose)) {
    return NULL;
  }
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

/* Keeps how far a conversation has come, for the call that continues it. Logs of older versions
 * have no total where the backend told a cost: that was told. */
static void keep_total(struct core *core, struct str id, const json_t *usage) {
  json_auto_t *total = json_incref((json_t *)json_at(usage, "total"));
  const json_t *cost = json_at(usage, "cost_usd");
  if (total == NULL && cost != NULL && json_at(usage, "cost_from") == NULL)
    total = json_pack("{sO}", "cost_usd", cost);
  if (total != NULL && id.n > 0 && core->totals == NULL)
    core->totals = json_object();
  if (total != NULL && id.n > 0)
    json_object_setn(core->totals, id.p, id.n, total);
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
  keep_total(core, str_from(call->provider_session), call->told.usage);
  call->spent.tokens += call->told.tokens;
  call->spent.cost_nano += call->told.cost_nano;
}

/* Counts a wait for a provider that is away. */
static void count_away(struct core *core, int64_t from_ms, int64_t until_ms) {
  if (from_ms < core->away.until_ms && core->away.until_ms - from_ms <= LIMIT_OUTAGE_MAX_MS)
    from_ms = core->away.until_ms; /* else the clock was set back */
  if (until_ms > from_ms && until_ms - from_ms <= LIMIT_OUTAGE_TOTAL_MS)
    core->away.ms += until_ms - from_ms;
  core->away.until_ms = until_ms > from_ms ? until_ms : from_ms;
}

/* Takes what a record says of an outage; returns false if it says nothing. */
static bool keep_outage(const struct fold *f, struct call *call) {
  const json_t *outage = fold_tree(f, MEMBER_OUTAGE);
  json_int_t tries = json_int_at(outage, "tries");
  if (!record_time_parse(json_view(json_at(outage, "since")).p, &call->outage.since_ms))
    return false;
  if (call->outage.tries == 0 && !record_time_parse(f->record->ts.p, &call->outage.began_ms))
    return false;
  if (!record_time_parse(json_view(json_at(outage, "until")).p, &call->outage.until_ms))
    call->outage.until_ms = 0;
  call->outage.tries = tries > 0 && tries < LIMIT_TOKEN_NUMBER ? (int)tries : 1;
  return true;
}

/* An attempt starts that waited for a provider. The record says how far the outage's times moved
 * because nobody waited, or the clock was set. Where it does not, the wait was as long as it was
 * meant to be. */
static void outage_waited(const struct fold *f, struct call *call) {
  int64_t now_ms, since_ms = call->outage.since_ms;
  if (call->outage.tries == 0 || !record_time_parse(f->record->ts.p, &now_ms))
    return;
  int64_t late_ms = now_ms - call->outage.at_ms;
  if (keep_outage(f, call)) {
    late_ms -= call->outage.since_ms - since_ms;
    if (late_ms > 0)
      count_away(f->core, now_ms - late_ms, now_ms);
  } else if (late_ms > LIMIT_OUTAGE_LATE_MS || late_ms < -LIMIT_OUTAGE_LATE_MS) {
    call->outage.since_ms += late_ms;
  }
  call->outage.began_ms += call->outage.since_ms - since_ms;
  call->outage.from_ms = call->outage.at_ms = now_ms;
}

/* Notes who may have edited last, for what hidden tests say of the work. */
static void note_worker(struct core *core, const struct turn *turn, const struct call *call) {
  const struct movement *m = core_movement(core, turn);
  if (!call_generates(call) || m->argv != NULL || !m->edit ||
      json_at(core->config, "hidden_tests") == NULL)
    return;
  json_decref(core->hidden.worker);
  core->hidden.worker = json_pack("{ss ss*}", "provider", call->provider, "model", call->model);
}

/* Takes who is called, and with what. */
static void call_takes(const struct fold *f, const struct turn *turn, struct call *call) {
  struct str provider = fold_text(f, MEMBER_PROVIDER), model = fold_text(f, MEMBER_MODEL);
  free(call->provider);
  free(call->model);
  call->provider = xstrndup(provider.p, provider.n);
  call->model = model.n ? xstrndup(model.p, model.n) : NULL;
  note_worker(f->core, turn, call);
  struct str cwd = fold_text(f, MEMBER_CWD);
  free(call->cwd);
  call->cwd = cwd.n > 0 ? xstrndup(cwd.p, cwd.n) : NULL;
  fold_set_json(&call->sandbox, fold_tree(f, MEMBER_SANDBOX));
  fold_set_json(&call->options, fold_tree(f, MEMBER_OPTIONS));
  fold_set_json(&call->token, fold_tree(f, MEMBER_TOKEN));
}

static bool apply_call_start(const struct fold *f) {
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
  if (call == NULL)
    call = new_call(f, turn, id);
  if (call == NULL)
    return false;
  outage_waited(f, call);
  if (call->fallback != NULL) { /* the call starts anew elsewhere */
    free(call->fallback);
    call->fallback = NULL;
    call->failures = call->outage.tries = call->stalls.count = 0;
    call->stalls.last_ms = 0;
    call->session_lost = false;
  }
  if (repeats)
    count_lost(f, turn, call);
  forget_told(call);
  use_session(f, call);
  call_takes(f, turn, call);
  if (attempt == 1)
    fold_set_json(&call->wanted, call->options);
  if (!use_schema(f, call))
    return false;
  struct str mark = fold_text(f, MEMBER_MARK);
  uint32_t letter = tag_mark_letter(mark);
  if (letter != 0) {
    memcpy(turn->mark, mark.p, mark.n);
    f->core->mark_letters |= letter;
  }
  struct str sha256 = fold_text(f, MEMBER_PROMPT_SHA256);
  if (sha256.n == SHA256_HEX - 1)
    memcpy(call->prompt_sha256, sha256.p, sha256.n);
  if (fold_has(f, MEMBER_PROMPT)) /* also an attempt that is told why the last one ended */
    call->prompt_seq = (uint64_t)f->record->seq;
  if (!steer_given(f, turn, call))
    return false;
  call->timeout_ms = (uint64_t)fold_number(f, MEMBER_TIMEOUT_MS);
  call->attempt = (int)attempt;
  call->state = CALL_RUNNING;
  call->tool_count = 0;
  if (!repeats)
    count_token(f->core, call);
  else if (call->purpose == PURPOSE_EXECUTE)
    lose_changes(f->core, turn, STR("an attempt was cut off"), true);
  struct str part;
  for (uint32_t i = 0; !f->core->proves && record_part(f->record, i, &part); i++)
    texts_add(&f->core->texts, part, seq, TEXT_PART, i);
  return true;
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

static bool apply_admission(const struct fold *f) {
  struct turn *turn;
  struct call *call = running_call(f, &turn);
  enum admission_answer answer;
  if (call == NULL)
    return false;
  if (!admission_from_name(fold_text(f, MEMBER_ANSWER), &answer))
    return fold_bad(f, "its answer is unknown");
  if (answer == ADMISSION_FALLBACK)
    take_fallback(f, call);
  if (answer == ADMISSION_ADMITTED) {
    outage_waited(f, call);
  } else if (keep_outage(f, call)) {
    (void)error_class_from_name(fold_text(f, MEMBER_REASON), &call->class);
    if (!record_time_parse(f->record->ts.p, &call->outage.from_ms))
      return fold_bad(f, "its ts is not a time");
    call->outage.at_ms = call->outage.from_ms;
  }
  return true;
}

/* Remembers the conversation that the next call continues. */
static void keep_session(const struct fold *f, const struct turn *turn, const struct call *call) {
  buf_auto_t key = {0};
  if (call->provider_session == NULL || call->forks ||
      turn->item > 0) /* a fork is not continued, nor is an item's conversation */
    return;
  core_session_key(core_movement(f->core, turn), str_from(call->provider), false, &key);
  json_object_set_new(f->core->sessions, buf_c(&key), json_string(call->provider_session));
}

/* Notes until when the provider has to cool down; meanwhile others do its work and its judging. */
static void keep_behind(const struct fold *f, const struct call *call, const json_t *error) {
  json_int_t ms = json_int_at(error, "retry_after_ms");
  int64_t now_ms;
  if (call->fallback == NULL || !record_time_parse(f->record->ts.p, &now_ms))
    return;
  if (ms < LIMIT_BEHIND_MS || ms > LIMIT_RESET_WAIT_MS)
    ms = LIMIT_BEHIND_MS;
  if (f->core->behind == NULL)
    f->core->behind = json_object();
  json_object_set_new(f->core->behind, call->provider, json_integer(now_ms + ms));
}

static void set_reached(struct core *core, const struct call *call, bool answered) {
  if (core->reached == NULL)
    core->reached = json_object();
  json_object_set_new(core->reached, call->provider, json_boolean(answered));
}

/* Keeps what background tasks do that no call waits for again. */
static void keep_outlived(struct core *core, const json_t *outlived) {
  if (json_array_size(outlived) > 0 && core->outlived == NULL)
    core->outlived = json_array();
  JSON_EACH(outlived, i, what) {
    if (json_array_size(core->outlived) < LIMIT_AGENT_TASK_COUNT)
      json_array_append(core->outlived, what);
  }
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
  call->session_lost |= call->class == CLASS_NOT_FOUND && call->resumed;
  call->state = wait ? CALL_WAITING : CALL_FAILED;
  /* The attempt is one of the call's, or one of an outage, which uses up none of them. After an
   * outage that lasted too long, no call waits for that provider until it answers. */
  const json_t *outage = fold_tree(f, MEMBER_OUTAGE);
  if (outage == NULL) {
    if (call->outage.tries > 0 && call->state == CALL_FAILED &&
        error_class_is_transient(call->class))
      set_reached(f->core, call, false);
    call->outage.tries = 0;
    call->stalls.last_ms = json_integer_value(json_at(error, "silent_ms"));
    if (call->stalls.last_ms > 0)
      call->stalls.count++;
    else
      call->failures++;
  } else {
    (void)keep_outage(f, call);
  }
  take_fallback(f, call);
  keep_behind(f, call, error);
  if (!wait)
    return true;
  if (!record_time_parse(f->record->ts.p, &now_ms))
    return fold_bad(f, "its ts is not a time");
  call->wait_until_ms = call->outage.at_ms = now_ms + fold_number(f, MEMBER_RETRY_IN_MS);
  call->outage.from_ms = now_ms;
  if (call->outage.tries > 0 && call->outage.until_ms > 0)
    count_away(f->core, now_ms, call->wait_until_ms);
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
  const json_t *usage = fold_tree(f, MEMBER_USAGE);
  spends_add(&core->spends, call->purpose, core->workflow->movements[turn->movement].name,
             str_from(call->provider), usage, fold_number(f, MEMBER_DURATION_MS));
  if (usage == NULL && fold_tree(f, MEMBER_ERROR) == NULL)
    spends_silent(&core->spends, str_from(call->provider));
  struct spend one = spend_of(usage, fold_number(f, MEMBER_DURATION_MS));
  call->spent.tokens += one.input + one.output;
  call->spent.cost_nano += one.cost_nano;
  call->spent.ms += one.duration_ms;
  forget_told(call);
  keep_total(core, fold_text(f, MEMBER_PROVIDER_SESSION), usage);
}

static bool apply_call_end(const struct fold *f) {
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
  const json_t *usage = fold_tree(f, MEMBER_USAGE);
  json_int_t input = json_int_at(usage, "input"), output = json_int_at(usage, "output");
  const json_int_t most = (json_int_t)1 << 40;
  call->tokens +=
      (input < 0 || input > most ? most : input) + (output < 0 || output > most ? most : output);
  if (!call_is_own(call))
    usage_add(&call->usage, fold_tree(f, MEMBER_USAGE));
  keep_usage(f, turn, call);
  if (call->purpose == PURPOSE_EXECUTE) {
    add_changed(f, turn);
    checks_changed(f->core, turn, fold_tree(f, MEMBER_FILES_BETWEEN));
  }
  if (fold_text(f, MEMBER_PROVIDER_SESSION).n > 0)
    set_provider_session(call, fold_text(f, MEMBER_PROVIDER_SESSION));
  keep_outlived(f->core, fold_tree(f, MEMBER_OUTLIVED));
  if (error != NULL)
    return call_failed(f, call, error);
  if (!fold_take_text(f, MEMBER_TEXT, &call->text))
    return false;
  fold_set_json(&call->structured, fold_tree(f, MEMBER_STRUCTURED));
  call->enforced = str_among(fold_text(f, MEMBER_ENFORCED), "native grammar tool");
  call->state = CALL_DONE;
  set_reached(f->core, call, true);
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
    buf_set(&call->error_text, fold_text(f, MEMBER_STDERR)); /* tests are counted there, too */
    fold_set_json(&turn->tests, fold_tree(f, MEMBER_TESTS));
    fold_set_json(&turn->unfinished, fold_tree(f, MEMBER_UNFINISHED));
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

static bool apply_call_event(const struct fold *f) {
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
  if (str_eq_c(fold_text(f, MEMBER_EVENT), "steer"))
    steer_read(f, turn, call);
  const json_t *refused = json_at(fold_tree(f, MEMBER_DATA), "refused");
  size_t length = json_string_length(refused);
  if (length > 0 && length <= LIMIT_NAME_BYTES)
    core_refuse(f->core, call, refused);
  return true;
}

/* --- what came of an answer: its checks, its value, its judgment --- */

static bool apply_check(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  const struct call *call =
      turn ? turn_call(turn, (long)json_int_at(f->record->body, "call")) : NULL;
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_EXECUTING || fold_structured(f, turn) == NULL)
    return fold_bad(f, "its turn has no value to check");
  if (call == NULL || !call_generates(call) ||
      (call->state != CALL_DONE && call->state != CALL_FAILED))
    return fold_bad(f, "its call brought nothing to check");
  json_int_t number = json_int_at(f->record->body, "number");
  if (number != (json_int_t)json_array_size(turn->checks) + 1)
    return fold_bad(f, "its number is not the next one");
  json_array_append(turn->checks, f->record->body);
  return true;
}

/* Folds how one round of making a value ended: with a value, or without one and what follows from
 * that. */
static bool apply_structured(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_EXECUTING || fold_structured(f, turn) == NULL || turn->escalated)
    return fold_bad(f, "its turn has no value to bring");
  struct str outcome = fold_text(f, MEMBER_OUTCOME), message = fold_text(f, MEMBER_MESSAGE);
  const json_t *value = fold_tree(f, MEMBER_VALUE);
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
    return fold_bad(f, "it has no value and no other outcome");
  struct call *call = turn_call(turn, (long)fold_number(f, MEMBER_CALL));
  if (fold_has(f, MEMBER_CALL) &&
      (call == NULL || !call_generates(call) || call->state != CALL_DONE))
    return fold_bad(f, "its call did not answer");
  if (call != NULL)
    fold_take_answer(turn, call);
  if (turn->text.n == 0) { /* the backend gave a value but no text */
    json_write(value, &turn->text);
    turn->text_seq = 0;
  }
  fold_set_json(&turn->structured, value);
  fold_worked(f, turn);
  return true;
}

static bool apply_stage(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_JUDGING)
    return fold_bad(f, "its turn is not being judged");
  enum judge_stage stage;
  enum stage_outcome outcome;
  if (!judge_stage_from_name(json_view(json_at(f->record->body, "stage")), &stage) ||
      !stage_outcome_from_name(json_view(json_at(f->record->body, "outcome")), &outcome))
    return fold_bad(f, "its stage or outcome is unknown");
  json_array_append(turn->stages, f->record->body);
  return true;
}

static bool apply_judgment(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_JUDGING)
    return fold_bad(f, "its turn is judged already");
  const struct movement *m = core_movement(f->core, turn);
  json_int_t rule = fold_number(f, MEMBER_RULE);
  enum judge_stage method;
  if (rule < 0 || (size_t)rule > m->rule_count)
    return fold_bad(f, "its rule is not in the workflow");
  if (rule == 0) {
    struct str reason = fold_text(f, MEMBER_REASON);
    if (!session_outcome_from_name(fold_text(f, MEMBER_FAILURE), &turn->failure) ||
        (turn->failure != END_RULE_NO_MATCH && turn->failure != END_FAILED))
      return fold_bad(f, "it has neither a rule nor a failure");
    free(turn->reason);
    turn->reason = xstrndup(reason.p, reason.n);
  } else {
    if (!judge_stage_from_name(fold_text(f, MEMBER_METHOD), &method))
      return fold_bad(f, "its method is unknown");
    f->core->method_counts[method]++;
    evidence_judged(f->core, method, fold_text(f, MEMBER_BASIS));
  }
  turn->rule = (int)rule;
  turn->phase = TURN_JUDGED;
  return true;
}

/* --- turns and the session --- */

static bool apply_session_start(const struct fold *f) {
  struct core *core = f->core;
  if (core->status != SESSION_NEW)
    return fold_bad(f, "a session starts once");
  if (f->record->version != RECORD_VERSION)
    return fold_bad(f, "its version is not the one that this program reads");
  struct str id = fold_text(f, MEMBER_SESSION);
  if (id.n == 0 || id.n >= sizeof core->session)
    return fold_bad(f, "it has no session id");
  if (f->workflow != NULL) {
    core->workflow = workflow_ref(f->workflow);
  } else {
    json_t *doc = fold_tree(f, MEMBER_WORKFLOW);
    core->workflow = workflow_build(doc, f->err);
    if (core->workflow == NULL)
      return err_wrap(f->err, "record 1: its workflow cannot be built");
  }
  const struct workflow *wf = core->workflow;
  print_into(core->session, sizeof core->session, "%s", id.p);
  core->config = json_incref(fold_tree(f, MEMBER_CONFIG));
  if (!fold_take_text(f, MEMBER_TASK, &core->task))
    return false;
  core->movement_counts = xcalloc(wf->movement_count, sizeof *core->movement_counts);
  core->loops = xcalloc(wf->monitor_count + 1, sizeof *core->loops);
  core->status = SESSION_RUNNING;
  core->awaits_carried = record_is_true(f->record, MEMBER_CARRIES);
  core->has_next = true;
  core->next = (int)wf->initial;
  for (uint32_t i = 0; !core->proves && i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    uint32_t at = i;
    if (m->group != NO_GROUP)
      at = texts_child_index((size_t)m->group, i - wf->movements[m->group].first_child);
    texts_add(&core->texts, m->persona, 1, TEXT_PERSONA, at);
    texts_add(&core->texts, m->policy, 1, TEXT_POLICY, at);
    texts_add(&core->texts, m->knowledge, 1, TEXT_KNOWLEDGE, at);
    texts_add(&core->texts, m->instruction, 1, TEXT_INSTRUCTION, at);
  }
  return true;
}

static bool apply_turn_start(const struct fold *f) {
  struct core *core = f->core;
  if (core->awaits_carried)
    return fold_bad(f, "its session has not taken over what it begins with");
  long index = workflow_find(core->workflow, fold_text(f, MEMBER_MOVEMENT));
  if (index < 0)
    return fold_bad(f, "its movement is not in the workflow");
  bool is_child = core->workflow->movements[index].group != NO_GROUP;
  bool waits = core->has_next && core->next >= 0;
  if (!is_child && (!waits || monitor_next(core) != (size_t)index))
    return fold_bad(f, "no movement was to be entered, or another");
  if (fold_number(f, MEMBER_TURN) != core->turn_count + 1)
    return fold_bad(f, "its turn number is not the next one");
  struct turn *turn = xcalloc(1, sizeof *turn);
  turn->id = core->turn_count + 1;
  turn->movement = (size_t)index;
  CHAIN_APPEND(core->turns, turn);
  if (!group_enter(f, turn)) {
    core_drop_turn(core, turn);
    return false;
  }
  core->turn_count++;
  core->iteration_count += !is_child;
  turn->iteration = core->iteration_count;
  turn->movement_iteration = ++core->movement_counts[index];
  const struct movement *m = &core->workflow->movements[index];
  core->edits |= m->edit && !m->own_worktree;
  if (!is_child)
    guards_see_turn(core, (size_t)index);
  turn->stages = json_array();
  turn->checks = json_array();
  core->has_next = is_child && core->has_next;
  return true;
}

/* Finds where a turn's error leads. Only work that brought nothing can fail, no judgment. */
static bool error_way_of(const struct fold *f, const struct turn *turn,
                         const struct error_way **way) {
  const struct call *last = turn_last_own_call(turn);
  enum error_class class;
  if ((turn->phase != TURN_EXECUTING && turn->phase != TURN_REPORTING) || turn_is_calling(turn) ||
      (last != NULL && last->state != CALL_FAILED && last->purpose != PURPOSE_CHECK))
    return fold_bad(f, "its turn did not fail");
  *way = NULL;
  if (error_class_from_name(fold_text(f, MEMBER_CLASS), &class))
    *way = movement_on_error(core_movement(f->core, turn), class);
  return (*way != NULL && str_eq((*way)->to, fold_text(f, MEMBER_NEXT))) ||
         fold_bad(f, "its error does not lead there");
}

/* Notes how a turn failed, or that it did not. A judge reads it among what was measured: whatever a
 * client says stays on one line. */
static void note_error(const struct fold *f, const struct movement *m, bool failed) {
  struct core *core = f->core;
  buf_clear(&core->error.text);
  core->error.count = failed ? core->error.count + 1 : 0;
  if (!failed)
    return;
  buf_printf(&core->error.text, STR_FMT " (" STR_FMT "): ", STR_ARG(m->name),
             STR_ARG(fold_text(f, MEMBER_CLASS)));
  buf_safe(&core->error.text, fold_text(f, MEMBER_MESSAGE), false);
}

static bool apply_turn_end(const struct fold *f) {
  struct core *core = f->core;
  struct turn *turn = fold_turn(f);
  if (turn == NULL)
    return false;
  if (turn->group > 0) {
    struct worktree *own = core_worktree(core, turn->id);
    if (own != NULL)
      own->asked = WORKTREE_IDLE; /* nothing more is asked for it */
    return group_take(f, turn);
  }
  const struct movement *m = core_movement(core, turn);
  const struct error_way *way = NULL;
  bool failed = str_eq_c(fold_text(f, MEMBER_OUTCOME), ALL_ANY_ERROR);
  bool rejected = turn->rejected && (m->approve != NULL || turn->plan != NULL);
  if (failed && !error_way_of(f, turn, &way))
    return false;
  if (!failed && !rejected && (turn->phase != TURN_JUDGED || turn->rule == 0))
    return fold_bad(f, "its turn has no verdict");
  if (!failed && !rejected && fold_number(f, MEMBER_RULE) != turn->rule)
    return fold_bad(f, "its rule is not the one that was judged");
  if (!failed && !rejected && m->rules[turn->rule - 1].asks && !turn->answered)
    return fold_bad(f, "its question was not answered");
  if (m->argv != NULL && turn->has_exit) {
    guards_see_end(core, turn);
    checks_put(core, turn);
  }
  core->ended.turn = turn->id;
  core->ended.movement = turn->movement;
  core->has_next = true;
  if (failed)
    core->next = way->next;
  else if (rejected)
    core->next = m->approve != NULL ? m->approve->on_reject : NEXT_ABORT;
  else
    core->next = m->rule_next[turn->rule - 1];
  note_error(f, m, failed);
  monitor_note(core, turn->movement);
  bool passed = m->gate && checks_exit(turn) == 0; /* its exit status says nothing about the work */
  bool silent = failed && turn->text.n == 0;
  forget_signed_line(core, turn);
  if (!silent)
    kept_answer(core, m, buf_view(&turn->text), turn->text_seq, &turn->joined);
  if (m->monitor == NULL && !passed && !silent) { /* else the loop goes on with the text it had */
    buf_deinit(&core->last_text);
    core->last_text = turn->text;
    core->last_text_seq = turn->text_seq;
    free(core->last_joined.joints);
    core->last_joined = turn->joined;
    turn->joined = (struct joined){0};
    core->has_last_text = true;
    turn->text = (struct buf){0};
  }
  if (turn->parts != NULL)
    group_publish(core, turn);
  kept_move(&core->reports, &turn->reports);
  json_object_setn_new(core->structured, m->name.p, m->name.n,
                       turn->structured ? json_incref(turn->structured) : json_null());
  core_drop_turn(core, turn);
  return true;
}

/* Settles the question. */
static void forget_question(struct turn *turn) {
  json_decref(turn->question);
  turn->question = NULL;
  turn->question_seq = 0;
  turn->until_ms = 0;
}

static bool apply_report(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  struct report_step step;
  char sha256[SHA256_HEX];
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_REPORTING)
    return fold_bad(f, "its turn is not at that point");
  report_next(core_movement(f->core, turn), turn, &step);
  bool same_call = fold_number(f, MEMBER_CALL) == (step.call ? step.call->id : 0);
  if (step.action != REPORT_KEEP || !same_call ||
      !str_eq(fold_text(f, MEMBER_FILE), step.contract->name))
    return fold_bad(f, "it is not the report that comes next");
  struct str answer = report_answer(f->core, turn, step.call);
  contract_sha256(answer, sha256);
  if (!str_eq_c(fold_text(f, MEMBER_SHA256), sha256))
    return fold_bad(f, "its sha256 is not that of the answer which it keeps");
  uint64_t seq = step.call ? step.call->text_seq : turn->text_seq;
  struct str text = str_trim(answer); /* prompts show it without the surrounding blanks */
  struct kept_text *kept = kept_put(&turn->reports, step.contract->name);
  buf_str(&kept->text, text);
  const struct buf *whole = step.call ? &step.call->text : &turn->text;
  kept->seq = text.n == whole->n ? seq : 0;
  kept->judged = step.contract->judged;
  kept->since = (uint64_t)f->record->seq;
  contract_sha256(text, kept->sha256);
  if (step.number == core_movement(f->core, turn)->contract_count)
    turn->phase = TURN_JUDGING;
  return true;
}

/* --- questions and answers --- */

static bool apply_question(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  json_t *question = fold_tree(f, MEMBER_QUESTION);
  struct str until = fold_text(f, MEMBER_UNTIL);
  if (turn == NULL)
    return false;
  if (turn->question != NULL || !turn_may_ask(f->core, turn, json_view(json_at(question, "kind"))))
    return fold_bad(f, "its turn has nothing to ask");
  if (!record_time_parse(f->record->ts.p, &turn->asked_ms))
    return fold_bad(f, "its time cannot be read");
  if (until.n > 0 && !record_time_parse(until.p, &turn->until_ms))
    return fold_bad(f, "its deadline is no time");
  turn->question = json_incref(question);
  turn->question_seq = f->core->seq + 1;
  return true;
}

/* Notes who answered which question and when, for later readers. */
static void note_answer(const struct fold *f, const struct turn *turn) {
  struct core *core = f->core;
  struct str text = fold_text(f, MEMBER_TEXT);
  if (core->answers == NULL)
    core->answers = json_array();
  if (text.n > LIMIT_CHOICE_BYTES)
    text.n = utf8_floor(text.p, LIMIT_CHOICE_BYTES);
  json_array_append_new(
      core->answers,
      json_pack("{sI so so so so* so so*}", "question", (json_int_t)turn->question_seq, "movement",
                json_text(core_movement(core, turn)->name), "answer",
                json_text(fold_text(f, MEMBER_ANSWER)), "text", json_text(text), "by",
                json_incref(fold_tree(f, MEMBER_BY)), "at", json_text(f->record->ts), "reason",
                fold_has(f, MEMBER_REASON) ? json_text(fold_text(f, MEMBER_REASON)) : NULL));
}

/* Keeps the question, as a quotation, and its answer below the movement's earlier ones. */
static void keep_input(struct core *core, const struct turn *turn, struct str answer) {
  struct str name = core_movement(core, turn)->name, line;
  struct str rest = json_view(json_at(turn->question, "text"));
  buf_auto_t text = {0};
  if (core->inputs == NULL)
    core->inputs = json_object();
  buf_str(&text, json_view(json_object_getn(core->inputs, name.p, name.n)));
  if (text.n > 0)
    buf_puts(&text, "\n\n---\n\n");
  while (rest.n > 0) {
    line = str_next_line(&rest);
    buf_puts(&text, "> ");
    buf_str(&text, line);
    buf_putc(&text, '\n');
  }
  buf_putc(&text, '\n');
  buf_str(&text, answer);
  size_t from = 0;
  if (text.n > LIMIT_INPUTS_BYTES)
    from = utf8_ceil(text.p, text.n, text.n - LIMIT_INPUTS_BYTES);
  json_object_setn_new(core->inputs, name.p, name.n,
                       json_text((struct str){text.p + from, text.n - from}));
}

static json_t *value_of_answer(const struct fold *f) {
  json_t *given = fold_tree(f, MEMBER_VALUE);
  if (given != NULL)
    return json_incref(given);
  json_t *value = json_object();
  json_put(value, "text", json_text(fold_text(f, MEMBER_TEXT)));
  if (fold_has(f, MEMBER_CHOICE))
    json_put(value, "choice", json_integer(fold_number(f, MEMBER_CHOICE)));
  json_put(value, "timed_out", json_boolean(fold_has(f, MEMBER_REASON)));
  return value;
}

/* Returns the rule that a choice stands for; 0 if there is none, as in a log that was tampered
 * with. */
static int chosen_rule(const struct fold *f, const struct turn *turn) {
  size_t choice = (size_t)fold_number(f, MEMBER_CHOICE) - 1;
  json_int_t rule = json_integer_value(json_array_get(json_at(turn->question, "rules"), choice));
  size_t count = core_movement(f->core, turn)->rule_count;
  return rule >= 1 && (size_t)rule <= count ? (int)rule : 0;
}

static void take_rule(const struct fold *f, struct turn *turn, int rule) {
  json_decref(turn->verdict);
  turn->verdict = json_pack("{si}", "rule", rule);
  if (fold_has(f, MEMBER_BY))
    json_put(turn->verdict, "by", json_incref(fold_tree(f, MEMBER_BY)));
}

/* Returns true if the answer is valid: an answer in a tampered log must not get around a schema. */
static bool answer_fits(const struct fold *f, const struct turn *turn) {
  const struct movement *m = core_movement(f->core, turn);
  const struct schema *schema = m->ask ? m->ask->schema : NULL;
  const json_t *document = m->ask ? m->ask->document : NULL;
  if (turn_asks(turn, "value")) {
    schema = m->structured->schema;
    document = m->structured->document;
  }
  if (schema == NULL)
    return fold_tree(f, MEMBER_VALUE) == NULL;
  struct err ignored;
  json_auto_t *value = ask_read(schema, document, fold_text(f, MEMBER_TEXT), &ignored);
  return value != NULL && json_same(value, fold_tree(f, MEMBER_VALUE));
}

static bool apply_answer(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  struct str word = fold_text(f, MEMBER_ANSWER), text = fold_text(f, MEMBER_TEXT);
  if (turn == NULL)
    return false;
  if (turn->question == NULL)
    return fold_bad(f, "its turn asks nothing");
  bool approves = turn_asks(turn, "approve"), rejects = str_eq_c(word, "reject");
  if (approves != (rejects || str_eq_c(word, "approve")))
    return fold_bad(f, "its answer is none to that question");
  if (!approves && !answer_fits(f, turn))
    return fold_bad(f, "its value does not fit the schema");
  if (turn_asks(turn, "judge") && chosen_rule(f, turn) == 0)
    return fold_bad(f, "it is no rule of its movement");
  if (turn_asks(turn, "evidence") && !fold_has(f, MEMBER_CHOICE))
    return fold_bad(f, "it is none of the choices");
  note_answer(f, turn);
  if (rejects) {
    turn->rejected = true;
    buf_set(&turn->text, text);
    turn->text_seq = f->core->seq + 1;
  } else if (turn_asks(turn, "evidence")) {
    evidence_answered(f->core, turn, (long)fold_number(f, MEMBER_CHOICE));
  } else if (turn_asks(turn, "judge")) {
    take_rule(f, turn, chosen_rule(f, turn));
  } else if (turn_asks(turn, "input")) {
    keep_input(f->core, turn, text);
    turn->answered = true;
  } else if (approves) {
    turn->answered = true;
  } else {
    const struct movement *m = core_movement(f->core, turn);
    int rule = m->ask && fold_has(f, MEMBER_CHOICE) ? ask_rule(m, fold_text(f, MEMBER_TEXT)) : 0;
    buf_set(&turn->text, fold_text(f, MEMBER_TEXT));
    turn->text_seq = f->core->seq + 1;
    json_decref(turn->structured);
    turn->structured = value_of_answer(f);
    turn->escalated = false;
    turn->phase = TURN_JUDGING;
    if (rule > 0)
      take_rule(f, turn, rule);
  }
  forget_question(turn);
  f->core->answered |= f->core->status == SESSION_STOPPED;
  return true;
}

/* --- worktrees --- */

static void worktree_keep(char **slot, const json_t *data, const char *name) {
  const char *text = json_string_value(json_object_get(data, name));
  free(*slot);
  *slot = text ? xstrdup(text) : NULL;
}

static bool take_make(const struct fold *f, long number) {
  struct core *core = f->core;
  const struct turn *turn = number > 0 ? core_turn(core, number) : NULL;
  struct worktree *w = &core->worktree;
  if (number > 0 && (turn == NULL || turn->group == 0 || core_worktree(core, number) != NULL))
    return fold_bad(f, "that turn takes no worktree");
  if (number == 0 && w->made)
    return fold_bad(f, "the session has its worktree");
  if (turn != NULL) {
    w = xcalloc(1, sizeof *w);
    *w = (struct worktree){.next = core->worktrees,
                           .turn = turn->id,
                           .group = turn->group,
                           .movement = turn->movement};
    core->worktrees = w;
  }
  worktree_keep(&w->branch, fold_tree(f, MEMBER_DATA), "branch");
  worktree_keep(&w->base, fold_tree(f, MEMBER_DATA), "base");
  w->asked = WORKTREE_MAKING;
  return w->branch != NULL || fold_bad(f, "it names no branch");
}

static bool take_made(const struct fold *f, struct worktree *w) {
  const json_t *data = fold_tree(f, MEMBER_DATA);
  worktree_keep(&w->branch, data, "branch");
  worktree_keep(&w->base, data, "base");
  worktree_keep(&w->path, data, "path");
  worktree_keep(&w->folder, data, "folder");
  w->made =
      w->branch && w->base && w->path && w->folder && w->path[0] == '/' && w->folder[0] == '/';
  return w->made || fold_bad(f, "it does not say where the worktree is");
}

static bool take_commit(const struct fold *f, struct worktree *w) {
  long number = (long)fold_number(f, MEMBER_TURN);
  if (number <= w->committed)
    return fold_bad(f, "there is nothing to commit");
  worktree_keep(&w->message, fold_tree(f, MEMBER_DATA), "message");
  w->committing = number;
  return w->message != NULL || fold_bad(f, "it has no message");
}

static bool take_committed(const struct fold *f, struct worktree *w) {
  (void)f;
  w->committed = w->committing;
  worktree_keep(&w->message, NULL, "");
  return true;
}

static bool take_adopt(const struct fold *f, struct worktree *w) {
  return w->made || fold_bad(f, "it has no branch");
}

static bool take_adopted(const struct fold *f, struct worktree *w) {
  (void)f;
  w->strays = false;
  return true;
}

/* The changes of a workspace that are allowed: see core/worktree.h. */
static const struct {
  const char *event;
  enum worktree_asked from, to;
  bool (*take)(const struct fold *f, struct worktree *w);
} workspace_changes[] = {
    {"made", WORKTREE_MAKING, WORKTREE_IDLE, take_made},
    {"commit", WORKTREE_IDLE, WORKTREE_COMMITTING, take_commit},
    {"committed", WORKTREE_COMMITTING, WORKTREE_IDLE, take_committed},
    {"adopt", WORKTREE_IDLE, WORKTREE_ADOPTING, take_adopt},
    {"adopted", WORKTREE_ADOPTING, WORKTREE_IDLE, take_adopted},
};

static bool apply_workspace(const struct fold *f) {
  struct str event = fold_text(f, MEMBER_EVENT);
  long number = (long)fold_number(f, MEMBER_TURN);
  struct worktree *w = core_worktree(f->core, number);
  if (str_eq_c(event, "make"))
    return take_make(f, number);
  if (w == NULL)
    w = &f->core->worktree;
  for (size_t i = 0; i < ARRAY_LEN(workspace_changes); i++) {
    if (!str_eq_c(event, workspace_changes[i].event))
      continue;
    if (w->asked != workspace_changes[i].from && workspace_changes[i].to == WORKTREE_IDLE)
      return fold_bad(f, "nobody asked for it");
    if (w->asked != workspace_changes[i].from)
      return fold_bad(f, "something else is asked for");
    w->asked = workspace_changes[i].to;
    return workspace_changes[i].take(f, w);
  }
  return fold_bad(f, "its event is unknown");
}

/* --- stopping, resuming, ending --- */

static bool apply_session_stop(const struct fold *f) {
  struct core *core = f->core;
  core->status = SESSION_STOPPED;
  core->answered = false;
  (void)session_outcome_from_name(fold_text(f, MEMBER_REASON), &core->outcome);
  core->stop_class = CLASS_NONE;
  (void)error_class_from_name(fold_text(f, MEMBER_CLASS), &core->stop_class);
  buf_clear(&core->stop_reason);
  buf_clear(&core->stop_message);
  buf_str(&core->stop_reason, fold_text(f, MEMBER_REASON));
  core->hidden.passed |= str_eq_c(buf_view(&core->stop_reason), "hidden_tests"); /* once resumed */
  buf_str(&core->stop_message, fold_text(f, MEMBER_MESSAGE));
  fold_set_json(&core->stop_budget, fold_tree(f, MEMBER_BUDGET));
  return true;
}

/* Begins another round after a person's decision: from the last answer if there is one, with fresh
 * budgets. */
static void begin_round(struct turn *turn) {
  struct call *keep = turn_last_answer(turn);
  for (struct call *call = turn->calls, *next; call; call = next) {
    next = call->next;
    if (call != keep)
      core_drop_call(turn, call);
  }
  if (keep != NULL) {
    keep->duration_ms = 0;
    keep->tokens = 1; /* almost none; 0 would mean that nobody counted them */
  }
  json_array_clear(turn->checks);
  turn->escalated = false;
  forget_question(turn);
}

/* Gives the call another chance, starting with the first of its providers. */
static void begin_again(const struct fold *f, const struct turn *turn, struct call *call) {
  struct str first, model;
  core_first_backend(f->core, turn, call, &first, &model);
  call->state = CALL_WAITING;
  call->wait_until_ms = 0;
  call->failures = call->outage.tries = 0;
  bool same = str_eq_c(first, call->provider) && str_eq(model, str_from(call->model));
  if (first.n > 0 && !same && call->fallback == NULL)
    call->fallback = xstrndup(first.p, first.n);
}

/* Returns true if the call goes to another provider or model now than under the former
 * configuration. */
static bool is_moved(struct core *core, json_t *before, const struct turn *turn,
                     const struct call *call) {
  struct str now, was, now_model, was_model;
  json_t *config = core->config;
  core_first_backend(core, turn, call, &now, &now_model);
  core->config = before;
  core_first_backend(core, turn, call, &was, &was_model);
  core->config = config;
  return !str_eq(now, was) || !str_eq(now_model, was_model);
}

/* Takes another configuration: an unfinished call starts again where it now belongs, and so does
 * judging begun by another judge. */
static void take_config(const struct fold *f, json_t *config) {
  struct core *core = f->core;
  json_auto_t *before = core->config;
  core->config = json_incref(config);
  for (struct turn *turn = core->turns; turn; turn = turn->next) {
    bool judge_moved = false;
    for (struct call *call = turn->calls; call; call = call->next) {
      bool moved = is_moved(core, before, turn, call);
      judge_moved |= moved && !call_is_own(call);
      if (moved && call_is_own(call) && call->state != CALL_DONE)
        begin_again(f, turn, call);
    }
    if (judge_moved && turn->phase == TURN_JUDGING) {
      json_array_clear(turn->stages);
      core_drop_judging(turn);
    }
  }
}

/* Reopens a turn that was judged without a rule: it is judged again, or makes its value again. */
static bool reopen(struct turn *turn) {
  bool lacks_value = turn->error != NULL;
  if (turn->phase != TURN_JUDGED || turn->rule != 0)
    return false;
  turn->phase = lacks_value ? TURN_EXECUTING : TURN_JUDGING;
  turn->failure = END_NONE;
  free(turn->reason);
  turn->reason = NULL;
  json_decref(turn->error);
  turn->error = NULL;
  json_array_clear(turn->stages);
  core_drop_judging(turn);
  if (lacks_value)
    begin_round(turn);
  return true;
}

/* Takes a person's verdict, which ends all other judging of that turn. The turn's answer is the
 * last one that it had. */
static bool take_verdict(const struct fold *f) {
  json_t *verdict = fold_tree(f, MEMBER_VERDICT);
  struct turn *turn = verdict ? core_unjudged_turn(f->core) : NULL;
  if (verdict == NULL)
    return true;
  json_int_t rule = json_int_at(verdict, "rule");
  if (turn == NULL || turn->id != json_int_at(verdict, "turn"))
    return fold_bad(f, "its verdict is on a turn that waits for none");
  if (rule < 1 || (size_t)rule > f->core->workflow->movements[turn->movement].rule_count)
    return fold_bad(f, "its verdict names a rule that is not there");
  (void)reopen(turn);
  struct call *answer = turn_last_answer(turn);
  if (answer != NULL && turn->text.n == 0)
    fold_take_answer(turn, answer);
  turn->phase = TURN_JUDGING;
  turn->escalated = false;
  forget_question(turn);
  json_array_clear(turn->stages);
  core_drop_judging(turn);
  json_decref(turn->verdict);
  turn->verdict = json_clone_top(verdict);
  if (fold_has(f, MEMBER_BY))
    json_put(turn->verdict, "by", json_incref(fold_tree(f, MEMBER_BY)));
  return true;
}

/* Resumes the session: what failed for good gets another chance. */
static bool apply_session_resume(const struct fold *f) {
  if (fold_tree(f, MEMBER_CONFIG) != NULL)
    take_config(f, fold_tree(f, MEMBER_CONFIG));
  if (!take_verdict(f))
    return false;
  budget_added_take(f->core, json_at(fold_tree(f, MEMBER_CHANGED), "add_budget"));
  if (str_eq_c(buf_view(&f->core->stop_reason), "budget")) /* each call's own use counts anew */
    for (struct turn *turn = f->core->turns; turn; turn = turn->next)
      for (struct call *call = turn->calls; call; call = call->next)
        memset(&call->spent, 0, sizeof call->spent);
  for (struct turn *t = f->core->turns; t; t = t->next) { /* others have yet to show their work */
    struct str stop = buf_view(&f->core->stop_reason);
    t->let_be |= t->phase == TURN_JUDGING && str_eq_c(stop, "protected");
    t->head_let_be |= t->phase == TURN_JUDGING && str_eq_c(stop, "head_moved");
  }
  if (str_eq_c(buf_view(&f->core->stop_reason), "looping"))
    guards_forget(f->core);
  struct str reason = buf_view(&f->core->stop_reason);
  if (reason.n > 0) { /* not a crash: the first provider may work again, so ask it first */
    json_decref(f->core->behind);
    f->core->behind = NULL;
  }
  if (reason.n > 0 || fold_has(f, MEMBER_BY)) { /* the settings may be others now */
    json_decref(f->core->reached);
    f->core->reached = NULL;
    f->core->away.ms = 0;
  }
  if (reason.n > 0)
    f->core->error.count = 0;
  bool unavailable = str_eq_c(reason, "judge_unavailable") || str_eq_c(reason, "judge_split");
  bool escalated = str_eq_c(reason, "escalated") && !f->core->answered;
  bool no_check = str_eq_c(reason, "check_unavailable");
  for (struct turn *turn = f->core->turns; turn; turn = turn->next) {
    if (f->core->outcome != END_NONE && reopen(turn)) /* not a crash: this is why it stopped */
      group_reopen(turn);
    if (turn->phase == TURN_JUDGING && unavailable && !turn_is_calling(turn)) {
      json_array_clear(turn->stages);
      core_drop_judging(turn);
    }
    if (turn->phase != TURN_EXECUTING && turn->phase != TURN_REPORTING)
      continue;
    if (turn->escalated && escalated)
      begin_round(turn);
    struct call *call = turn_last_own_call(turn);
    if (call != NULL && call->purpose == PURPOSE_CHECK && call->state == CALL_DONE && no_check) {
      core_drop_call(turn, call);
    } else if (call != NULL && call->state == CALL_FAILED && /* these are outcomes of their own: */
               !(fold_structured(f, turn) != NULL && call_generates(call) &&
                 (call->class == CLASS_REFUSED || call->class == CLASS_LENGTH))) {
      begin_again(f, turn, call);
    }
  }
  f->core->status = SESSION_RUNNING;
  f->core->answered = false;
  f->core->outcome = END_NONE;
  buf_clear(&f->core->stop_reason);
  buf_clear(&f->core->stop_message);
  fold_set_json(&f->core->stop_budget, NULL);
  return true;
}

static bool apply_hidden_tests(const struct fold *f) {
  fold_set_json(&f->core->hidden.result, fold_tree(f, MEMBER_DATA));
  f->core->hidden.turn = f->core->turn_count;
  f->core->hidden.passed = json_is_true(json_at(f->core->hidden.result, "passes"));
  return true;
}

static bool apply_session_end(const struct fold *f) {
  if (!session_outcome_from_name(fold_text(f, MEMBER_OUTCOME), &f->core->outcome))
    return fold_bad(f, "its outcome is unknown");
  buf_set(&f->core->stop_message, fold_text(f, MEMBER_MESSAGE));
  f->core->status = SESSION_ENDED;
  return true;
}

static bool (*const apply_type[RECORD_TYPE_COUNT])(const struct fold *f) = {
    [RECORD_SESSION_START] = apply_session_start,
    [RECORD_CARRIED] = apply_carried,
    [RECORD_TURN_START] = apply_turn_start,
    [RECORD_CALL_START] = apply_call_start,
    [RECORD_ADMISSION] = apply_admission,
    [RECORD_CALL_EVENT] = apply_call_event,
    [RECORD_CALL_END] = apply_call_end,
    [RECORD_CHECK] = apply_check,
    [RECORD_STRUCTURED] = apply_structured,
    [RECORD_REPORT] = apply_report,
    [RECORD_STAGE] = apply_stage,
    [RECORD_JUDGMENT] = apply_judgment,
    [RECORD_TURN_END] = apply_turn_end,
    [RECORD_SESSION_STOP] = apply_session_stop,
    [RECORD_SESSION_RESUME] = apply_session_resume,
    [RECORD_SESSION_END] = apply_session_end,
    [RECORD_QUESTION] = apply_question,
    [RECORD_ANSWER] = apply_answer,
    [RECORD_STEER] = steer_apply,
    [RECORD_WORKSPACE] = apply_workspace,
    [RECORD_HIDDEN_TESTS] = apply_hidden_tests,
    [RECORD_EVIDENCE] = evidence_apply,
};

bool core_apply(struct core *core, const struct record *record, struct workflow *workflow,
                const struct core_source *source, struct err *err) {
  struct fold f = {core, record, workflow, source, err};
  bool resumes = record->type == RECORD_SESSION_RESUME, says = record->type == RECORD_STEER;
  if (record->seq != core->seq + 1)
    return fold_bad(&f, "its seq is not the next one");
  if (core->status == SESSION_ENDED)
    return fold_bad(&f, "nothing follows session_end");
  if (core->status == SESSION_NEW && record->type != RECORD_SESSION_START)
    return fold_bad(&f, "a log begins with session_start");
  if (core->status == SESSION_STOPPED && !resumes && !says && record->type != RECORD_ANSWER)
    return fold_bad(&f, "a stopped session goes on with session_resume");
  if (record->type == RECORD_TYPE_COUNT)
    return fold_bad(&f, "its type is unknown");
  if (!apply_type[record->type](&f))
    return false;
  core->resumed = resumes || (core->resumed && says);
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
