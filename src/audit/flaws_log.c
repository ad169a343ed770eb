/* Finds the failing answers of one log and makes cases of them. */
#include "audit/flaws.h"
#include "audit/flaws_internal.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "core/state.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps a word beyond its record, each distinct one once. */
static const char *flaw_word(struct flaw_log *log, const json_t *text) {
  const char *word = json_string_value(text);
  if (word == NULL)
    return NULL;
  if (json_object_get(log->words, word) == NULL)
    json_object_set_new(log->words, word, json_string(word));
  return json_string_value(json_object_get(log->words, word));
}

static long flaw_number(const json_t *record, const char *key) {
  return (long)json_integer_value(json_object_get(record, key));
}

static struct flaw_call *flaw_call_of(struct flaw_log *log, long turn, long call) {
  for (size_t i = log->call_count; i > 0; i--)
    if (log->calls[i - 1].call == call && log->calls[i - 1].turn == turn)
      return &log->calls[i - 1];
  return NULL;
}

static void flaw_on_call_start(struct flaw_log *log, const json_t *record, uint64_t seq) {
  long turn = flaw_number(record, "turn"), number = flaw_number(record, "call");
  struct flaw_call *call = flaw_call_of(log, turn, number);
  if (call == NULL && log->call_count == LIMIT_AUDIT_OPEN_COUNT)
    return;
  if (call == NULL) {
    if (log->call_count == log->call_room) {
      log->call_room = log->call_room ? log->call_room * 2 : 16;
      log->calls = xrealloc(log->calls, log->call_room * sizeof *log->calls);
    }
    call = &log->calls[log->call_count++];
    *call = (struct flaw_call){.turn = turn, .call = number, .start_seq = seq, .shape = "empty"};
    call->works = json_at(record, "stage") == NULL;
  }
  call->provider = flaw_word(log, json_at(record, "provider"));
  call->model = flaw_word(log, json_at(record, "model"));
}

static void flaw_on_call_end(struct flaw_log *log, const json_t *record, uint64_t seq) {
  struct flaw_call *call =
      flaw_call_of(log, flaw_number(record, "turn"), flaw_number(record, "call"));
  if (call == NULL)
    return;
  bool native = json_at(record, "structured") != NULL;
  call->end_seq = seq;
  call->answered = json_at(record, "error") == NULL;
  call->shape = native ? "native" : flaws_shape(json_view(json_at(record, "text")));
}

/* Adds a failing answer; takes the errors. Returns false if there is no room, or no answer. */
static bool add_flaw(struct flaw_log *log, const json_t *record, long number, const char *movement,
                     const char *stage, json_t *errors) {
  long turn = flaw_number(record, "turn");
  const struct flaw_call *call = flaw_call_of(log, turn, number);
  if (call == NULL || call->end_seq == 0 || log->flaw_count == LIMIT_AUDIT_FLAW_COUNT) {
    log->left_out++;
    json_decref(errors);
    return false;
  }
  if ((log->flaw_count & (log->flaw_count - 1)) == 0)
    log->flaws =
        xrealloc(log->flaws, (log->flaw_count ? log->flaw_count * 2 : 1) * sizeof *log->flaws);
  struct flaw *flaw = &log->flaws[log->flaw_count++];
  *flaw = (struct flaw){.turn = turn,
                        .call = number,
                        .start_seq = call->start_seq,
                        .end_seq = call->end_seq,
                        .movement = movement,
                        .provider = call->provider,
                        .model = call->model,
                        .stage = stage,
                        .shape = call->shape,
                        .errors = errors};
  (void)record_time_parse(json_string_value(json_at(record, "ts")), &flaw->time_ms);
  for (size_t i = log->call_count; stage != NULL && i > 0 && flaw->report_seq == 0; i--)
    if (log->calls[i - 1].turn == turn && log->calls[i - 1].works)
      flaw->report_seq = log->calls[i - 1].end_seq;
  return true;
}

static json_t *one_error(struct str path, struct str keyword, struct str message) {
  return json_pack("{so so so}", "path", json_text(path), "keyword", json_text(keyword), "message",
                   json_text(message));
}

/* Returns the movement of a turn, which is kept as a word under "turn N". */
static const char *flaw_movement(const struct flaw_log *log, long turn) {
  char key[40];
  (void)snprintf(key, sizeof key, "\nturn %ld", turn);
  return json_string_value(json_object_get(log->words, key));
}

static void flaw_on_turn_start(struct flaw_log *log, const json_t *record) {
  char key[40];
  const json_t *movement = json_at(record, "movement");
  (void)snprintf(key, sizeof key, "\nturn %ld", flaw_number(record, "turn"));
  if (flaw_word(log, movement) != NULL)
    json_object_set(log->words, key, json_object_get(log->words, json_string_value(movement)));
}

/* Drops the calls of a turn that was judged: they are no longer needed. */
static void flaw_on_judgment(struct flaw_log *log, const json_t *record) {
  char key[40];
  long turn = flaw_number(record, "turn");
  size_t kept = 0;
  for (size_t i = 0; i < log->call_count; i++)
    if (log->calls[i].turn != turn)
      log->calls[kept++] = log->calls[i];
  log->call_count = kept;
  (void)snprintf(key, sizeof key, "\nturn %ld", turn);
  (void)json_object_del(log->words, key);
}

static void flaw_on_check(struct flaw_log *log, const json_t *record) {
  json_t *errors = json_array(), *error;
  size_t i;
  const char *outcome = json_string_value(json_at(record, "outcome"));
  if (outcome == NULL || strcmp(outcome, "valid") == 0) {
    json_decref(errors);
    return;
  }
  json_array_foreach(json_at(record, "errors"), i, error) {
    json_array_append_new(errors, one_error(json_view(json_at(error, "path")),
                                            json_view(json_at(error, "keyword")),
                                            json_view(json_at(error, "message"))));
  }
  if (json_array_size(errors) == 0)
    json_array_append_new(errors, one_error(STR("$"), str_from(outcome), str_from(outcome)));
  (void)add_flaw(log, record, flaw_number(record, "call"),
                 flaw_movement(log, flaw_number(record, "turn")), NULL, errors);
}

json_t *flaw_stage_error(struct str text, struct str reason) {
  const char *colon = text.n > 0 && text.p[0] == '$' ? strstr(text.p, ": ") : NULL;
  if (colon == NULL || (size_t)(colon - text.p) >= text.n)
    return one_error(STR("$"), reason, text);
  size_t n = (size_t)(colon - text.p);
  return one_error((struct str){text.p, n}, reason, (struct str){text.p + n + 2, text.n - n - 2});
}

/* Adds the answers of a judge who was asked to correct itself, as far as they failed. */
static void add_corrected(struct flaw_log *log, const json_t *record, enum stage_outcome outcome) {
  const json_t *calls = json_at(record, "calls");
  long turn = flaw_number(record, "turn");
  bool mended = outcome == OUTCOME_MATCHED || outcome == OUTCOME_NO_MATCH, unanswered = false;
  size_t i, answers = 0, added = 0, first = log->flaw_count;
  json_t *call;
  json_array_foreach(calls, i, call) {
    const struct flaw_call *c = flaw_call_of(log, turn, (long)json_integer_value(call));
    unanswered = c == NULL || !c->answered;
    answers += !unanswered;
  }
  size_t failed = answers > 0 && mended ? answers - 1 : answers;
  json_array_foreach(calls, i, call) {
    const struct flaw_call *c = flaw_call_of(log, turn, (long)json_integer_value(call));
    if (c != NULL && c->answered && added < failed)
      added += add_flaw(log, record, c->call, flaw_movement(log, turn),
                        flaw_word(log, json_at(record, "stage")), NULL);
  }
  if (added == 0)
    return;
  struct flaw *flaw = &log->flaws[first];
  flaw->joint = json_clone_top(json_at(record, "errors"));
  if (flaw->joint == NULL)
    flaw->joint = json_array();
  if (unanswered || outcome == OUTCOME_NO_MATCH) /* the last error is not a failing answer's */
    (void)json_array_remove(flaw->joint, json_array_size(flaw->joint) - 1);
  flaw->joint_count = added;
  flaw->joint_outcome = outcome;
  flaw->joint_mended = mended;
}

static void flaw_on_stage(struct flaw_log *log, const json_t *record) {
  const json_t *calls = json_at(record, "calls"), *said = json_at(record, "errors");
  struct str stage = json_view(json_at(record, "stage"));
  enum stage_outcome outcome = OUTCOME_COUNT;
  (void)stage_outcome_from_name(json_view(json_at(record, "outcome")), &outcome);
  bool failed = outcome == OUTCOME_UNREADABLE || outcome == OUTCOME_INVALID ||
                outcome == OUTCOME_OUT_OF_RANGE || outcome == OUTCOME_HIDDEN ||
                outcome == OUTCOME_AMBIGUOUS;
  if (json_array_size(calls) > 1 && outcome != OUTCOME_ERROR && outcome != OUTCOME_SKIPPED) {
    add_corrected(log, record, outcome);
    return;
  }
  if (!failed || json_array_size(calls) == 0)
    return;
  json_t *errors = json_array(), *text;
  size_t i;
  struct str reason =
      str_from(rows_reason(stage, outcome, false, json_view(json_array_get(said, 0))));
  json_array_foreach(said, i, text) {
    json_array_append_new(errors, flaw_stage_error(json_view(text), reason));
  }
  if (json_array_size(errors) == 0)
    json_array_append_new(errors, one_error(STR("$"), reason, reason));
  (void)add_flaw(log, record, (long)json_integer_value(json_array_get(calls, 0)),
                 flaw_movement(log, flaw_number(record, "turn")),
                 flaw_word(log, json_at(record, "stage")), errors);
}

static void flaw_on_session_start(struct flaw_log *log, const json_t *record) {
  struct str id = json_view(json_at(record, "session"));
  if (id.n < sizeof log->session)
    (void)snprintf(log->session, sizeof log->session, STR_FMT, STR_ARG(id));
  log->workflow_doc = json_incref(json_at(record, "workflow"));
  log->workflow = json_string_value(json_at(log->workflow_doc, "name"));
}

static void flaw_record(struct flaw_log *log, const json_t *record) {
  const char *type = json_string_value(json_at(record, "type"));
  uint64_t seq = (uint64_t)json_integer_value(json_at(record, "seq"));
  if (type == NULL)
    return;
  if (strcmp(type, "call_start") == 0)
    flaw_on_call_start(log, record, seq);
  else if (strcmp(type, "call_end") == 0)
    flaw_on_call_end(log, record, seq);
  else if (strcmp(type, "turn_start") == 0)
    flaw_on_turn_start(log, record);
  else if (strcmp(type, "check") == 0)
    flaw_on_check(log, record);
  else if (strcmp(type, "stage") == 0)
    flaw_on_stage(log, record);
  else if (strcmp(type, "judgment") == 0)
    flaw_on_judgment(log, record);
  else if (strcmp(type, "session_start") == 0)
    flaw_on_session_start(log, record);
  else if (strcmp(type, "session_stop") == 0)
    log->outcome = session_stop_status(json_view(json_at(record, "reason")));
  else if (strcmp(type, "session_resume") == 0)
    log->outcome = NULL;
  else if (strcmp(type, "session_end") == 0)
    log->outcome = flaw_word(log, json_at(record, "outcome"));
}

enum rows_log flaw_log_read(struct flaw_log *log, const struct store_ref *ref) {
  struct err err;
  json_t *record;
  *log = (struct flaw_log){.words = json_object()};
  if (!book_open(&log->book, ref, true, &err))
    return ROWS_UNREADABLE;
  log->book.reader.max = LIMIT_AUDIT_LINE_BYTES;
  while ((record = book_next(&log->book)) != NULL) {
    bool begins =
        log->book.records > 1 || str_eq_c(json_view(json_at(record, "type")), "session_start");
    bool ours = begins && json_integer_value(json_at(record, "v")) == RECORD_VERSION;
    if (ours)
      flaw_record(log, record);
    json_decref(record);
    if (!ours)
      return begins ? ROWS_NEWER : ROWS_FOREIGN;
  }
  if (log->outcome == NULL)
    log->outcome = book_owned(&log->book) ? "running" : "open";
  if (log->book.state == BOOK_DAMAGED)
    return log->book.records == 0 ? ROWS_FOREIGN : ROWS_TAMPERED;
  if (log->book.records == 0)
    return ROWS_EMPTY;
  if (store_ref_is_copy(ref, log->session, &err))
    return ROWS_FOREIGN;
  return log->book.state == BOOK_TORN ? ROWS_TORN : ROWS_SOUND;
}

void flaw_log_deinit(struct flaw_log *log) {
  for (size_t i = 0; i < log->flaw_count; i++)
    json_decref(log->flaws[i].errors), json_decref(log->flaws[i].joint);
  free(log->flaws);
  free(log->calls);
  json_decref(log->words);
  json_decref(log->workflow_doc);
  book_close(&log->book);
  *log = (struct flaw_log){0};
}

/* --- cases --- */

void flaw_name(const struct flaw_log *log, const struct flaw *flaw, char *out, size_t n) {
  (void)snprintf(out, n, "%s/%ld/%ld", log->session, flaw->turn, flaw->call);
}

static void flaw_put_word(json_t *out, const char *key, const char *word) {
  if (word != NULL)
    json_object_set_new(out, key, json_text(str_from(word)));
}

/* Writes the text of an answer, from its blob if it is in one. */
static void flaw_put_answer(const struct flaw_log *log, json_t *out, const char *key,
                            uint64_t seq) {
  const struct recall recall = book_recall(&log->book);
  struct buf text = {0};
  struct err err;
  json_t *record = seq > 0 ? book_get(&log->book, seq, &err) : NULL;
  if (record != NULL && !recall_text(&recall, record, "text", &text, &err))
    buf_str(&text, json_view(json_at(record, "text")));
  json_object_set_new(out, key, json_text(buf_view(&text)));
  json_t *native = json_at(record, "structured");
  if (strcmp(key, "text") == 0) {
    json_t *value = native ? json_incref(native) : json_loadb(buf_c(&text), text.n, 0, NULL);
    if (value != NULL)
      json_object_set_new(out, "data", value);
  }
  json_decref(record);
  buf_deinit(&text);
}

/* Returns the rules of a movement, or of a group's child, which is called GROUP.CHILD. */
static json_t *rules_of(const struct flaw_log *log, const char *movement) {
  size_t i, k;
  json_t *item, *child;
  struct str whole = str_from(movement ? movement : "");
  json_array_foreach(json_at(log->workflow_doc, "movements"), i, item) {
    struct str name = json_view(json_at(item, "name"));
    if (name.n > 0 && str_eq(name, whole))
      return json_at(item, "rules");
    if (name.n == 0 || name.n >= whole.n || whole.p[name.n] != '.' ||
        memcmp(name.p, whole.p, name.n) != 0)
      continue;
    const struct str of_child = {whole.p + name.n + 1, whole.n - name.n - 1};
    json_array_foreach(json_at(item, "parallel"), k, child) {
      if (str_eq(json_view(json_at(child, "name")), of_child))
        return json_at(child, "rules");
    }
  }
  return NULL;
}

/* Writes the schema: it is in the first call that sends it, and later ones refer to that record. */
static void flaw_put_schema(const struct flaw_log *log, json_t *out, const json_t *schema) {
  const char *place = json_string_value(json_at(schema, "ref"));
  struct err err;
  if (schema == NULL)
    return;
  if (place == NULL || json_object_size(schema) != 1) {
    json_object_set(out, "schema", (json_t *)schema);
    return;
  }
  json_t *first = book_get(&log->book, strtoull(place, NULL, 10), &err);
  if (json_at(first, "schema") != NULL)
    json_object_set(out, "schema", json_at(first, "schema"));
  json_decref(first);
}

json_t *flaw_case(const struct flaw_log *log, const struct flaw *flaw) {
  char id[80];
  struct err err;
  json_t *out = json_object(), *start = book_get(&log->book, flaw->start_seq, &err);
  flaw_name(log, flaw, id, sizeof id);
  flaw_put_word(out, "id", id);
  flaw_put_answer(log, out, "text", flaw->end_seq);
  flaw_put_schema(log, out, json_at(start, "schema"));
  if (json_at(start, "prompt_sha256") != NULL)
    json_object_set(out, "prompt_sha256", json_at(start, "prompt_sha256"));
  json_object_set(out, "errors", flaw->errors);
  flaw_put_word(out, "workflow", log->workflow);
  flaw_put_word(out, "movement", flaw->movement);
  flaw_put_word(out, "provider", flaw->provider);
  flaw_put_word(out, "model", flaw->model);
  if (flaw->stage != NULL) {
    flaw_put_word(out, "stage", flaw->stage);
    json_t *rules = rules_of(log, flaw->movement);
    if (rules != NULL)
      json_object_set(out, "rules", rules);
    if (flaw->report_seq > 0)
      flaw_put_answer(log, out, "report", flaw->report_seq);
  }
  json_decref(start);
  return out;
}
