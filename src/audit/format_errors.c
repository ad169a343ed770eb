/* Collects failing answers and groups them. */
#include "audit/format_errors.h"

#include "audit/rows.h"
#include "audit/verified_reader.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "core/state.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "judge/parse_reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct format_error_call {
  long turn, call;
  bool works;                   /* it does the movement's own work */
  bool answered;                /* its last attempt was */
  uint64_t start_seq, end_seq;  /* records of its first attempt, and of its last answer */
  const char *provider, *model; /* model may be NULL; owned by the log's words */
  const char *shape;
};

struct format_error { /* a failing answer */
  long turn, call;
  int64_t time_ms;
  uint64_t start_seq, end_seq, report_seq; /* report: the judged answer; 0: none */
  const char *movement, *provider, *model; /* NULL where not known; owned by the log's words */
  const char *stage, *shape;
  json_t *errors; /* [{"path", "keyword", "message"}]; owned; NULL until format_error_split */
  /* The first answer of a judge who was asked to correct itself has the stage's error texts
   * (owned), how many answers failed, the stage's outcome, and if a later answer was good. */
  json_t *joint;
  size_t joint_count;
  enum stage_outcome joint_outcome;
  bool joint_mended;
};

struct format_error_log {
  struct verified_reader book;
  json_t *words; /* texts of records, kept while the log is read */
  json_t *workflow_doc;
  char session[40];
  const char *workflow, *outcome; /* NULL: not known */
  struct format_error_call *calls;
  size_t call_count, call_room;
  struct format_error *format_errors;
  size_t flaw_count, flaw_room;
  uint64_t left_out;
  const struct chain_schemas
      *schemas; /* borrowed, for format_error_split; NULL: none could be made */
};

/* --- forms --- */

/* Returns empty, json, json_cut (begins as JSON and breaks off), fenced, json_in_prose or prose. */
static const char *format_errors_shape(struct str text) {
  text = str_trim(text);
  if (text.n == 0)
    return "empty";
  char begin = text.p[0], end = text.p[text.n - 1];
  if (begin == '{' || begin == '[')
    return end == begin + 2 ? "json" : "json_cut"; /* ASCII: '}' is '{' + 2, ']' is '[' + 2 */
  if (str_has(text, "```"))
    return "fenced";
  return memchr(text.p, '{', text.n) != NULL ? "json_in_prose" : "prose";
}

/* Appends "$.items[3].name" as "$.items[*].name". */
static void format_errors_path(struct str path, struct buf *out) {
  for (size_t i = 0; i < path.n; i++) {
    buf_putc(out, path.p[i]);
    if (path.p[i] != '[' || i + 1 == path.n || path.p[i + 1] < '0' || path.p[i + 1] > '9')
      continue;
    buf_putc(out, '*');
    while (i + 1 < path.n && path.p[i + 1] >= '0' && path.p[i + 1] <= '9')
      i++;
  }
}

/* --- one log: its failing answers --- */

/* Keeps a word beyond its record, each distinct one once. */
static const char *format_error_word(struct format_error_log *log, const json_t *text) {
  const char *word = json_string_value(text);
  if (word == NULL)
    return NULL;
  if (json_object_get(log->words, word) == NULL)
    json_object_set_new(log->words, word, json_string(word));
  return json_string_value(json_object_get(log->words, word));
}

static struct format_error_call *format_error_call_of(struct format_error_log *log, long turn,
                                                      long call) {
  for (size_t i = log->call_count; i > 0; i--)
    if (log->calls[i - 1].call == call && log->calls[i - 1].turn == turn)
      return &log->calls[i - 1];
  return NULL;
}

static void format_error_on_call_start(struct format_error_log *log, const json_t *record,
                                       uint64_t seq) {
  long turn = (long)json_int_at(record, "turn"), number = (long)json_int_at(record, "call");
  struct format_error_call *call = format_error_call_of(log, turn, number);
  if (call == NULL && log->call_count == LIMIT_AUDIT_OPEN_COUNT)
    return;
  if (call == NULL) {
    log->calls = xgrow(log->calls, &log->call_room, log->call_count + 1, sizeof *log->calls);
    call = &log->calls[log->call_count++];
    *call = (struct format_error_call){
        .turn = turn, .call = number, .start_seq = seq, .shape = "empty"};
    call->works = json_at(record, "stage") == NULL;
  }
  call->provider = format_error_word(log, json_at(record, "provider"));
  call->model = format_error_word(log, json_at(record, "model"));
}

/* Adds a failing answer; takes the errors. Returns false if there is no room, or no answer. */
static bool add_flaw(struct format_error_log *log, const json_t *record, long number,
                     const char *movement, const char *stage, json_t *errors) {
  long turn = (long)json_int_at(record, "turn");
  const struct format_error_call *call = format_error_call_of(log, turn, number);
  if (call == NULL || call->end_seq == 0 || log->flaw_count == LIMIT_AUDIT_FLAW_COUNT) {
    log->left_out++;
    json_decref(errors);
    return false;
  }
  log->format_errors =
      xgrow(log->format_errors, &log->flaw_room, log->flaw_count + 1, sizeof *log->format_errors);
  struct format_error *format_error = &log->format_errors[log->flaw_count++];
  *format_error = (struct format_error){.turn = turn,
                                        .call = number,
                                        .start_seq = call->start_seq,
                                        .end_seq = call->end_seq,
                                        .movement = movement,
                                        .provider = call->provider,
                                        .model = call->model,
                                        .stage = stage,
                                        .shape = call->shape,
                                        .errors = errors};
  (void)record_time_parse(json_string_value(json_at(record, "ts")), &format_error->time_ms);
  for (size_t i = log->call_count; stage != NULL && i > 0 && format_error->report_seq == 0; i--)
    if (log->calls[i - 1].turn == turn && log->calls[i - 1].works)
      format_error->report_seq = log->calls[i - 1].end_seq;
  return true;
}

static json_t *one_error(struct str path, struct str keyword, struct str message) {
  return json_pack("{so so so}", "path", json_text(path), "keyword", json_text(keyword), "message",
                   json_text(message));
}

/* Returns the movement of a turn, which is kept as a word under "turn N". */
static const char *format_error_movement(const struct format_error_log *log, long turn) {
  char key[40];
  print_into(key, sizeof key, "\nturn %ld", turn);
  return json_string_value(json_object_get(log->words, key));
}

static void format_error_on_check(struct format_error_log *log, const json_t *record) {
  json_t *errors = json_array();
  const char *outcome = json_string_value(json_at(record, "outcome"));
  if (outcome == NULL || strcmp(outcome, "valid") == 0) {
    json_decref(errors);
    return;
  }
  JSON_EACH(json_at(record, "errors"), i, error) {
    json_array_append_new(errors,
                          one_error(json_view_at(error, "path"), json_view_at(error, "keyword"),
                                    json_view_at(error, "message")));
  }
  if (json_array_size(errors) == 0)
    json_array_append_new(errors, one_error(STR("$"), str_from(outcome), str_from(outcome)));
  (void)add_flaw(log, record, (long)json_int_at(record, "call"),
                 format_error_movement(log, (long)json_int_at(record, "turn")), NULL, errors);
}

/* Parses an error of a stage, a text such as "$.step: expected integer, found string". */
static json_t *format_error_stage_error(struct str text, struct str reason) {
  const char *colon = text.n > 0 && text.p[0] == '$' ? strstr(text.p, ": ") : NULL;
  if (colon == NULL || (size_t)(colon - text.p) >= text.n)
    return one_error(STR("$"), reason, text);
  size_t n = (size_t)(colon - text.p);
  return one_error((struct str){text.p, n}, reason, (struct str){text.p + n + 2, text.n - n - 2});
}

/* Adds the answers of a judge who was asked to correct itself, as far as they failed. */
static void add_corrected(struct format_error_log *log, const json_t *record,
                          enum stage_outcome outcome) {
  const json_t *calls = json_at(record, "calls");
  long turn = (long)json_int_at(record, "turn");
  bool mended = outcome == OUTCOME_MATCHED || outcome == OUTCOME_NO_MATCH, unanswered = false;
  size_t answers = 0, added = 0, first = log->flaw_count;
  JSON_EACH(calls, i, call) {
    const struct format_error_call *c =
        format_error_call_of(log, turn, (long)json_integer_value(call));
    unanswered = c == NULL || !c->answered;
    answers += !unanswered;
  }
  size_t failed = answers > 0 && mended ? answers - 1 : answers;
  JSON_EACH(calls, i, call) {
    const struct format_error_call *c =
        format_error_call_of(log, turn, (long)json_integer_value(call));
    if (c != NULL && c->answered && added < failed)
      added += add_flaw(log, record, c->call, format_error_movement(log, turn),
                        format_error_word(log, json_at(record, "stage")), NULL);
  }
  if (added == 0)
    return;
  struct format_error *format_error = &log->format_errors[first];
  format_error->joint = json_clone_top(json_at(record, "errors"));
  if (format_error->joint == NULL)
    format_error->joint = json_array();
  if (unanswered || outcome == OUTCOME_NO_MATCH) /* the last error is not a failing answer's */
    (void)json_array_remove(format_error->joint, json_array_size(format_error->joint) - 1);
  format_error->joint_count = added;
  format_error->joint_outcome = outcome;
  format_error->joint_mended = mended;
}

static void format_error_on_stage(struct format_error_log *log, const json_t *record) {
  const json_t *calls = json_at(record, "calls"), *said = json_at(record, "errors");
  struct str stage = json_view_at(record, "stage");
  enum stage_outcome outcome = OUTCOME_COUNT;
  (void)stage_outcome_from_name(json_view_at(record, "outcome"), &outcome);
  bool failed = outcome == OUTCOME_UNREADABLE || outcome == OUTCOME_INVALID ||
                outcome == OUTCOME_OUT_OF_RANGE || outcome == OUTCOME_HIDDEN ||
                outcome == OUTCOME_AMBIGUOUS;
  if (json_array_size(calls) > 1 && outcome != OUTCOME_ERROR && outcome != OUTCOME_SKIPPED) {
    add_corrected(log, record, outcome);
    return;
  }
  if (!failed || json_array_size(calls) == 0)
    return;
  json_t *errors = json_array();
  struct str reason =
      str_from(rows_reason(stage, outcome, false, json_view(json_array_get(said, 0))));
  JSON_EACH(said, i, text)
    json_array_append_new(errors, format_error_stage_error(json_view(text), reason));
  if (json_array_size(errors) == 0)
    json_array_append_new(errors, one_error(STR("$"), reason, reason));
  (void)add_flaw(log, record, (long)json_integer_value(json_array_get(calls, 0)),
                 format_error_movement(log, (long)json_int_at(record, "turn")),
                 format_error_word(log, json_at(record, "stage")), errors);
}

static void format_error_record(struct format_error_log *log, const json_t *record) {
  const char *type = json_string_value(json_at(record, "type"));
  uint64_t seq = (uint64_t)json_int_at(record, "seq");
  if (type == NULL)
    return;
  if (strcmp(type, "call_start") == 0)
    format_error_on_call_start(log, record, seq);
  else if (strcmp(type, "call_end") == 0) {
    struct format_error_call *call = format_error_call_of(log, (long)json_int_at(record, "turn"),
                                                          (long)json_int_at(record, "call"));
    if (call != NULL) {
      bool native = json_at(record, "structured") != NULL;
      call->end_seq = seq;
      call->answered = json_at(record, "error") == NULL;
      call->shape = native ? "native" : format_errors_shape(json_view_at(record, "text"));
    }
  } else if (strcmp(type, "turn_start") == 0) {
    char key[40];
    const json_t *movement = json_at(record, "movement");
    print_into(key, sizeof key, "\nturn %ld", (long)json_int_at(record, "turn"));
    if (format_error_word(log, movement) != NULL)
      json_object_set(log->words, key, json_object_get(log->words, json_string_value(movement)));
  } else if (strcmp(type, "check") == 0)
    format_error_on_check(log, record);
  else if (strcmp(type, "stage") == 0)
    format_error_on_stage(log, record);
  else if (strcmp(type, "judgment") == 0) {
    /* The calls of a turn that was judged are no longer needed. */
    char key[40];
    long turn = (long)json_int_at(record, "turn");
    size_t kept = 0;
    for (size_t i = 0; i < log->call_count; i++)
      if (log->calls[i].turn != turn)
        log->calls[kept++] = log->calls[i];
    log->call_count = kept;
    print_into(key, sizeof key, "\nturn %ld", turn);
    (void)json_object_del(log->words, key);
  } else if (strcmp(type, "session_start") == 0) {
    struct str id = json_view_at(record, "session");
    if (id.n < sizeof log->session)
      print_into(log->session, sizeof log->session, STR_FMT, STR_ARG(id));
    log->workflow_doc = json_incref(json_at(record, "workflow"));
    log->workflow = json_string_value(json_at(log->workflow_doc, "name"));
  } else if (strcmp(type, "session_stop") == 0)
    log->outcome =
        session_stop_status(json_view_at(record, "reason"), json_view_at(record, "class"));
  else if (strcmp(type, "session_resume") == 0)
    log->outcome = NULL;
  else if (strcmp(type, "session_end") == 0)
    log->outcome = format_error_word(log, json_at(record, "outcome"));
}

/* Reads a whole log. Its format errors count only if it is sound or torn. */
static enum rows_log format_error_log_read(struct format_error_log *log,
                                           const struct store_ref *ref) {
  struct err err;
  json_t *record;
  *log = (struct format_error_log){.words = json_object()};
  if (!verified_open(&log->book, ref, true, &err))
    return ROWS_UNREADABLE;
  log->book.reader.max = LIMIT_AUDIT_LINE_BYTES;
  while ((record = verified_next(&log->book)) != NULL) {
    bool begins = log->book.records > 1 || str_eq_c(json_view_at(record, "type"), "session_start");
    bool ours = begins && json_int_at(record, "v") == RECORD_VERSION;
    if (ours)
      format_error_record(log, record);
    json_decref(record);
    if (!ours)
      return begins ? ROWS_NEWER : ROWS_FOREIGN;
  }
  if (log->outcome == NULL)
    log->outcome = verified_owned(&log->book) ? "running" : "open";
  if (log->book.state == VERIFIED_DAMAGED)
    return log->book.records == 0 ? ROWS_FOREIGN : ROWS_TAMPERED;
  if (log->book.records == 0)
    return ROWS_EMPTY;
  if (store_ref_is_copy(ref, log->session, &err))
    return ROWS_FOREIGN;
  return log->book.state == VERIFIED_TORN ? ROWS_TORN : ROWS_SOUND;
}

static void format_error_log_deinit(struct format_error_log *log) {
  for (size_t i = 0; i < log->flaw_count; i++)
    json_decref(log->format_errors[i].errors), json_decref(log->format_errors[i].joint);
  free(log->format_errors);
  free(log->calls);
  json_decref(log->words);
  json_decref(log->workflow_doc);
  verified_close(&log->book);
  *log = (struct format_error_log){0};
}

/* --- errors of several answers --- */

/* A stage of a judge who was asked to correct itself lists the errors of all its answers, one
 * answer after the other. This divides them. */

/* Returns whether the text is a schema's error, of which one answer can have several. */
static bool split_is_schema_error(struct str text) {
  return text.n > 0 && text.p[0] == '$' && !str_has(text, " is not offered (") &&
         !str_has(text, ": 0: no rule holds");
}

static bool split_is_of_tag(struct str text) {
  return text.n > 4 && memcmp(text.p, "tag ", 4) == 0;
}

/* Returns how many errors the schema of the stage has for the answer. */
static size_t split_read(const struct format_error_log *log,
                         const struct format_error *format_error) {
  const struct resolve recall = verified_recall(&log->book);
  bool ai = strcmp(format_error->stage, "ai_judge") == 0;
  buf_auto_t text = {0};
  struct err err;
  struct parsed_reply reading;
  json_t *record = verified_get(&log->book, format_error->end_seq, &err);
  if (record == NULL)
    return 1;
  if (!resolve_text(&recall, record, "text", &text, &err))
    buf_str(&text, json_view_at(record, "text"));
  parsed_reply_init(&reading, ai ? log->schemas->evaluation : log->schemas->judgment,
                    ai ? "matched_index" : "step", json_at(record, "structured"), buf_view(&text),
                    STR(""));
  size_t n = reading.value != NULL && !reading.valid ? reading.errors.count : 1;
  parsed_reply_deinit(&reading);
  json_decref(record);
  return n < LIMIT_STAGE_ERROR_COUNT ? n : LIMIT_STAGE_ERROR_COUNT;
}

/* Returns how many of the errors from `at` on are of this answer, which others follow. */
static size_t split_count(const struct format_error_log *log,
                          const struct format_error *format_error, const json_t *texts, size_t at) {
  size_t run = 0, n = 1, all = json_array_size(texts);
  while (at + run < all && split_is_schema_error(json_view(json_array_get(texts, at + run))))
    run++;
  if (run > 1) {
    n = log->schemas != NULL ? split_read(log, format_error) : 1;
    n = n < run ? n : run;
  }
  bool tag = strcmp(format_error->stage, "ai_judge") == 0 && at + n < all &&
             split_is_of_tag(json_view(json_array_get(texts, at + n)));
  return n + tag;
}

/* Returns the class of an answer's errors by their texts. */
static struct str split_reason(const struct format_error *format_error, const json_t *texts,
                               size_t at, size_t n) {
  struct str first = json_view(json_array_get(texts, at));
  enum stage_outcome outcome = OUTCOME_UNREADABLE;
  for (size_t i = at; i < at + n; i++)
    if (str_has(json_view(json_array_get(texts, i)), " is not offered ("))
      outcome = OUTCOME_OUT_OF_RANGE;
  if (outcome == OUTCOME_UNREADABLE && split_is_schema_error(first))
    outcome = OUTCOME_INVALID;
  return str_from(rows_reason(str_from(format_error->stage), outcome, false, first));
}

/* Gives the errors of a format error with `joint` to it and to the answers after it that failed. */
static void format_error_split(const struct format_error_log *log, struct format_error *first) {
  json_auto_t *texts = first->joint;
  size_t at = 0, all = json_array_size(texts);
  first->joint = NULL;
  for (size_t k = 0; k < first->joint_count; k++) {
    struct format_error *format_error = &first[k];
    bool last = k + 1 == first->joint_count;
    bool decides = last && !first->joint_mended; /* the stage's own outcome is its own */
    size_t n = last ? all - at : 0;
    if (!last && at < all)
      n = split_count(log, format_error, texts, at);
    n = n < all - at ? n : all - at;
    /* The answer that decided has the class of the stage's outcome. */
    struct str reason;
    if (decides)
      reason = str_from(rows_reason(str_from(first->stage), first->joint_outcome, false,
                                    json_view(json_array_get(texts, at))));
    else
      reason = split_reason(format_error, texts, at, n);
    format_error->errors = json_array();
    for (size_t i = at; i < at + n; i++)
      json_array_append_new(format_error->errors,
                            format_error_stage_error(json_view(json_array_get(texts, i)), reason));
    if (n == 0)
      json_array_append_new(format_error->errors, format_error_stage_error(reason, reason));
    at += n;
  }
}

/* --- cases --- */

/* Writes "SESSION/TURN/CALL". */
static void format_error_name(const struct format_error_log *log,
                              const struct format_error *format_error, char *out, size_t n) {
  print_into(out, n, "%s/%ld/%ld", log->session, format_error->turn, format_error->call);
}

static void format_error_put_word(json_t *out, const char *key, const char *word) {
  if (word != NULL)
    json_object_set_new(out, key, json_text(str_from(word)));
}

/* Writes the text of an answer, from its blob if it is in one. */
static void format_error_put_answer(const struct format_error_log *log, json_t *out,
                                    const char *key, uint64_t seq) {
  const struct resolve recall = verified_recall(&log->book);
  buf_auto_t text = {0};
  struct err err;
  json_auto_t *record = seq > 0 ? verified_get(&log->book, seq, &err) : NULL;
  if (record != NULL && !resolve_text(&recall, record, "text", &text, &err))
    buf_str(&text, json_view_at(record, "text"));
  json_object_set_new(out, key, json_text(buf_view(&text)));
  json_t *native = json_at(record, "structured");
  if (strcmp(key, "text") == 0) {
    json_t *value = native ? json_incref(native) : json_loadb(buf_c(&text), text.n, 0, NULL);
    if (value != NULL)
      json_object_set_new(out, "data", value);
  }
}

/* Returns the rules of a movement, or of a group's child, which is called GROUP.CHILD. */
static json_t *rules_of(const struct format_error_log *log, const char *movement) {
  struct str whole = str_from(movement ? movement : "");
  JSON_EACH(json_at(log->workflow_doc, "movements"), i, item) {
    struct str name = json_view_at(item, "name");
    if (name.n > 0 && str_eq(name, whole))
      return json_at(item, "rules");
    if (name.n == 0 || name.n >= whole.n || whole.p[name.n] != '.' ||
        memcmp(name.p, whole.p, name.n) != 0)
      continue;
    const struct str of_child = {whole.p + name.n + 1, whole.n - name.n - 1};
    JSON_EACH(json_at(item, "parallel"), k, child)
      if (str_eq(json_view_at(child, "name"), of_child))
        return json_at(child, "rules");
  }
  return NULL;
}

/* Writes the schema: it is in the first call that sends it, and later ones refer to that record. */
static void format_error_put_schema(const struct format_error_log *log, json_t *out,
                                    const json_t *schema) {
  const char *place = json_string_value(json_at(schema, "ref"));
  struct err err;
  if (schema == NULL)
    return;
  if (place == NULL || json_object_size(schema) != 1) {
    json_object_set(out, "schema", (json_t *)schema);
    return;
  }
  json_auto_t *first = verified_get(&log->book, strtoull(place, NULL, 10), &err);
  if (json_at(first, "schema") != NULL)
    json_object_set(out, "schema", json_at(first, "schema"));
}

/* Returns the case that format_errors.h describes, as a new reference. */
static json_t *format_error_case(const struct format_error_log *log,
                                 const struct format_error *format_error) {
  char id[80];
  struct err err;
  json_t *out = json_object(), *start = verified_get(&log->book, format_error->start_seq, &err);
  format_error_name(log, format_error, id, sizeof id);
  format_error_put_word(out, "id", id);
  format_error_put_answer(log, out, "text", format_error->end_seq);
  format_error_put_schema(log, out, json_at(start, "schema"));
  if (json_at(start, "prompt_sha256") != NULL)
    json_object_set(out, "prompt_sha256", json_at(start, "prompt_sha256"));
  json_object_set(out, "errors", format_error->errors);
  format_error_put_word(out, "workflow", log->workflow);
  format_error_put_word(out, "movement", format_error->movement);
  format_error_put_word(out, "provider", format_error->provider);
  format_error_put_word(out, "model", format_error->model);
  if (format_error->stage != NULL) {
    format_error_put_word(out, "stage", format_error->stage);
    json_t *rules = rules_of(log, format_error->movement);
    if (rules != NULL)
      json_object_set(out, "rules", rules);
    if (format_error->report_seq > 0)
      format_error_put_answer(log, out, "report", format_error->report_seq);
  }
  json_decref(start);
  return out;
}

/* --- groups --- */

static char *format_error_copy(struct str s) {
  return xstrndup(s.p, s.n < LIMIT_AUDIT_NAME_BYTES ? s.n : LIMIT_AUDIT_NAME_BYTES);
}

static struct format_error_group *format_error_group_of(struct format_errors *f,
                                                        const struct format_error *format_error,
                                                        struct str path, struct str keyword,
                                                        struct str message) {
  buf_auto_t key = {.max = 1024};
  uint32_t at = (uint32_t)f->count;
  buf_printf(&key, "%s\n" STR_FMT "\n" STR_FMT "\n%s",
             format_error->stage ? format_error->stage : "", STR_ARG(path), STR_ARG(keyword),
             format_error->shape);
  bool known = map_get(&f->map, buf_view(&key), &at);
  if (!known && f->count < LIMIT_AUDIT_FLAW_COUNT) {
    map_put(&f->map, &f->arena, buf_view(&key), at);
    f->groups = xgrow(f->groups, &f->room, f->count + 1, sizeof *f->groups);
    struct format_error_group *g = &f->groups[f->count++];
    *g = (struct format_error_group){.path = format_error_copy(path),
                                     .keyword = format_error_copy(keyword),
                                     .shape = format_error->shape,
                                     .message = format_error_copy(message)};
    g->stage = format_error->stage ? format_error_copy(str_from(format_error->stage)) : NULL;
    format_error_name(f->log, format_error, g->example, sizeof g->example);
    known = true;
  }
  return known ? &f->groups[at] : NULL;
}

static void count_error(struct format_errors *f, const struct format_error *format_error,
                        const json_t *error) {
  buf_auto_t path = {0};
  f->errors++;
  format_errors_path(json_view_at(error, "path"), &path);
  struct format_error_group *g =
      format_error_group_of(f, format_error, buf_view(&path), json_view_at(error, "keyword"),
                            json_view_at(error, "message"));
  if (g == NULL) {
    f->left_out++;
    return;
  }
  g->count++;
  if (g->last_seen != f->answers) {
    g->last_seen = f->answers;
    g->answers++;
  }
}

static bool format_error_is_wanted(const struct format_errors *f,
                                   const struct format_error *format_error) {
  const struct aggregate *c = f->aggregate;
  return format_error->time_ms >= c->since_ms &&
         aggregate_wants(c, AGGREGATE_WORKFLOW, f->log->workflow) &&
         aggregate_wants(c, AGGREGATE_OUTCOME, f->log->outcome) &&
         aggregate_wants(c, AGGREGATE_MOVEMENT, format_error->movement) &&
         aggregate_wants(c, AGGREGATE_PROVIDER, format_error->provider) &&
         aggregate_wants(c, AGGREGATE_MODEL, format_error->model) &&
         (c->wanted[AGGREGATE_METHOD] == NULL ||
          aggregate_wants(c, AGGREGATE_METHOD, format_error->stage)) &&
         (c->wanted[AGGREGATE_WORKER] == NULL ||
          (format_error->stage == NULL &&
           aggregate_wants(c, AGGREGATE_WORKER, format_error->provider)));
}

static void count_flaw(struct format_errors *f, const struct format_error *format_error) {
  if (!format_error_is_wanted(f, format_error))
    return;
  f->answers++;
  JSON_EACH(format_error->errors, i, error)
    count_error(f, format_error, error);
  if (f->on_case != NULL) {
    json_auto_t *item = format_error_case(f->log, format_error);
    f->on_case(f->ctx, item);
  }
}

/* --- logs --- */

void format_errors_read(void *format_errors, const struct store_ref *ref) {
  struct format_errors *f = format_errors;
  struct format_error_log log;
  f->log = &log;
  enum rows_log state = format_error_log_read(&log, ref);
  f->logs[state]++;
  f->left_out += log.left_out;
  bool counts = state == ROWS_SOUND || state == ROWS_TORN;
  log.schemas = f->has_schemas ? &f->schemas : NULL;
  for (size_t i = 0; counts && i < log.flaw_count; i++)
    if (log.format_errors[i].joint != NULL)
      format_error_split(&log, &log.format_errors[i]);
  for (size_t i = 0; counts && i < log.flaw_count; i++)
    count_flaw(f, &log.format_errors[i]);
  format_error_log_deinit(&log);
  f->log = NULL;
}

struct format_errors *format_errors_new(const struct aggregate *aggregate) {
  struct format_errors *f = xcalloc(1, sizeof *f);
  assert(aggregate != NULL);
  f->aggregate = aggregate;
  struct err err;
  f->has_schemas = chain_schemas_init(&f->schemas, &err);
  return f;
}

static int format_error_order(const void *a, const void *b) {
  const struct format_error_group *x = a, *y = b;
  if (x->count != y->count)
    return x->count < y->count ? 1 : -1;
  return strcmp(x->keyword, y->keyword) ? strcmp(x->keyword, y->keyword) : strcmp(x->path, y->path);
}

void format_errors_sort(struct format_errors *f) {
  if (f->count > 1)
    qsort(f->groups, f->count, sizeof *f->groups, format_error_order);
}

json_t *format_errors_json(const struct format_errors *f) {
  json_t *list = json_array(), *logs = json_object();
  for (size_t i = 0; i < f->count; i++) {
    const struct format_error_group *g = &f->groups[i];
    json_array_append_new(list, json_pack("{so so so ss sI sI so ss}", "stage",
                                          g->stage ? json_text(str_from(g->stage)) : json_null(),
                                          "path", json_text(str_from(g->path)), "keyword",
                                          json_text(str_from(g->keyword)), "shape", g->shape,
                                          "count", (json_int_t)g->count, "answers",
                                          (json_int_t)g->answers, "message",
                                          json_text(str_from(g->message)), "example", g->example));
  }
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    json_object_set_new(logs, rows_log_name((enum rows_log)i),
                        json_integer((json_int_t)f->logs[i]));
  return json_pack("{so s{sI sI sI so}}", "errors", list, "totals", "answers",
                   (json_int_t)f->answers, "errors", (json_int_t)f->errors, "left_out",
                   (json_int_t)f->left_out, "logs", logs);
}

void format_errors_free(struct format_errors *f) {
  if (f == NULL)
    return;
  for (size_t i = 0; i < f->count; i++) {
    free(f->groups[i].stage);
    free(f->groups[i].path);
    free(f->groups[i].keyword);
    free(f->groups[i].message);
  }
  free(f->groups);
  if (f->has_schemas)
    chain_schemas_deinit(&f->schemas);
  map_deinit(&f->map);
  arena_deinit(&f->arena);
  free(f);
}
