/* Proves a log: chain, schema, order, references. */
#include "audit/verify.h"

#include "audit/report_files.h"
#include "audit/verified_reader.h"
#include "base/log.h"
#include "base/resource.h"
#include "core/apply.h"
#include "core/evidence.h"
#include "core/record.h"
#include "core/state.h"
#include "core/workflow.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "schema/schema.h"
#include "store/heads.h"
#include "store/record_line.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

/* --- links --- */

/* This checks what a record says about other records and the workflow: places of texts (12#/text),
 * the record that holds a prompt, numbers of calls, the rule that was chosen and where it leads,
 * counts. The chain proves that nobody changed a record afterwards; this proves that what a record
 * points at is there, whoever wrote it. Memory is fixed: a text that is referred to is read from
 * the file again. */

enum { LINKS_KNOWN_COUNT = 256 }; /* places already checked: prompts share most of theirs */

struct look {
  char (*known)[TEXTS_PLACE_BYTES]; /* LINKS_KNOWN_COUNT of them, of one log */
  const struct verified_reader *book;
  const struct core *core;
  const struct record *record;
  struct err *err;
};

static const struct turn *turn_of(const struct look *l) {
  return core_turn(l->core, (long)record_number(l->record, MEMBER_TURN));
}

static const struct movement *movement_of(const struct look *l, const struct turn *turn) {
  return &l->core->workflow->movements[turn->movement];
}

/* --- links: places of texts --- */

static bool check_place(void *ctx, size_t part, const char *place) {
  const struct look *l = ctx;
  uint32_t hash = 2166136261u;
  /* FNV-1a */
  for (const char *p = place; *p; p++)
    hash = (hash ^ (unsigned char)*p) * 16777619u;
  char *known = l->known[hash % LINKS_KNOWN_COUNT];
  struct err why = {0};
  if (strcmp(known, place) == 0)
    return true;
  if (strtoull(place, NULL, 10) > l->core->seq)
    return err_set(l->err, ERR_CORRUPT,
                   "its prompt[%zu] refers to %.80s, which is not an earlier record", part, place);
  if (!verified_has_text(l->book, place, &why))
    return err_set(l->err, ERR_CORRUPT, "its prompt[%zu] refers to %.80s: %s", part, place,
                   why.text);
  if (strlen(place) < TEXTS_PLACE_BYTES)
    memcpy(known, place, strlen(place) + 1);
  return true;
}

/* --- links: numbers of records, attempts and calls --- */

static bool is_number(const struct look *l, enum member key, json_int_t expected) {
  json_int_t value = record_number(l->record, key);
  return record_get(l->record, key) == NULL || value == expected ||
         err_set(l->err, ERR_CORRUPT,
                 "its %s is %" JSON_INTEGER_FORMAT
                 ", but the records before it make it %" JSON_INTEGER_FORMAT,
                 record_member_name(key), value, expected);
}

static bool is_call(const struct look *l, const char *key, json_int_t id) {
  const struct turn *turn = turn_of(l);
  return turn == NULL ||
         turn_call(turn, (long)id) != NULL || /* if there is no turn, the fold reports it */
         err_set(l->err, ERR_CORRUPT,
                 "its %s names call %" JSON_INTEGER_FORMAT ", which turn %ld has not made", key, id,
                 turn->id);
}

static bool are_calls(const struct look *l, const char *key) {
  JSON_EACH(json_object_get(l->record->body, key), i, id)
    if (!is_call(l, key, json_integer_value(id)))
      return false;
  return true;
}

static bool check_call_start(const struct look *l) {
  const struct turn *turn = turn_of(l);
  const struct call *call =
      turn ? turn_call(turn, (long)record_number(l->record, MEMBER_CALL)) : NULL;
  if (call == NULL && record_get(l->record, MEMBER_PROMPT_OF) != NULL)
    return err_set(l->err, ERR_CORRUPT,
                   "its prompt_of names record %" JSON_INTEGER_FORMAT
                   ", which holds no prompt of this call",
                   (json_int_t)record_number(l->record, MEMBER_PROMPT_OF));
  bool own = record_get(l->record, MEMBER_PROMPT) != NULL;
  return (call == NULL || ((own || is_number(l, MEMBER_PROMPT_OF, (json_int_t)call->prompt_seq)) &&
                           is_number(l, MEMBER_REPEATS, call->attempt))) &&
         record_each_ref(l->record, MEMBER_PROMPT, check_place, (void *)l);
}

static bool check_check(const struct look *l) {
  return is_call(l, "call", json_int_at(l->record->body, "call")) && are_calls(l, "runs");
}

static bool check_stage(const struct look *l) {
  return are_calls(l, "calls");
}

/* --- links: the workflow --- */

/* Checks that two texts are the same. */
static bool links_is_text(const struct look *l, enum member key, struct str expected,
                          const char *whose) {
  struct str value = record_text(l->record, key);
  return str_eq(value, expected) ||
         err_set(l->err, ERR_CORRUPT, "its %s is \"%.*s\", but %s \"%.*s\"",
                 record_member_name(key), (int)(value.n < 80 ? value.n : 80), value.p, whose,
                 (int)(expected.n < 80 ? expected.n : 80), expected.p);
}

static bool check_turn_start(const struct look *l) {
  const struct core *core = l->core;
  long index =
      core->workflow ? workflow_find(core->workflow, record_text(l->record, MEMBER_MOVEMENT)) : -1;
  if (index < 0)
    return true;
  const struct turn *group = core_turn(core, (long)record_number(l->record, MEMBER_PARENT_TURN));
  return is_number(l, MEMBER_ITERATION, group ? group->iteration : core->iteration_count + 1) &&
         is_number(l, MEMBER_MOVEMENT_ITERATION, core->movement_counts[index] + 1);
}

static bool check_own_movement(const struct look *l) {
  const struct turn *turn = turn_of(l);
  return turn == NULL ||
         links_is_text(l, MEMBER_MOVEMENT, movement_of(l, turn)->name, "its turn runs");
}

static bool check_structured(const struct look *l) {
  return check_own_movement(l) && (record_get(l->record, MEMBER_CALL) == NULL ||
                                   is_call(l, "call", record_number(l->record, MEMBER_CALL)));
}

static bool check_judgment(const struct look *l) {
  const struct turn *turn = turn_of(l);
  const struct movement *m = turn ? movement_of(l, turn) : NULL;
  int64_t rule = record_number(l->record, MEMBER_RULE);
  enum judge_stage method;
  if (!check_own_movement(l))
    return false;
  if (turn != NULL && !json_same(record_tree(l->record, MEMBER_STAGES), turn->stages))
    return err_set(l->err, ERR_CORRUPT, "its stages are not those of the stage records before it");
  if (m == NULL || rule < 1 || (size_t)rule > m->rule_count)
    return true; /* the fold reports it */
  const struct rule *chosen = &m->rules[rule - 1];
  buf_auto_t tag = {0};
  rule_tag(m->own_name, chosen->number, &tag);
  bool ok =
      links_is_text(l, MEMBER_CONDITION, chosen->condition, "that rule's is") &&
      (m->group != NO_GROUP || links_is_text(l, MEMBER_NEXT, chosen->next, "that rule's is")) &&
      links_is_text(l, MEMBER_TAG, buf_view(&tag), "that rule's is");
  return ok && (!judge_stage_from_name(record_text(l->record, MEMBER_METHOD), &method) ||
                links_is_text(l, MEMBER_MATCH_METHOD, str_from(judge_stage_match_method(method)),
                              "that method's is"));
}

static bool check_turn_end(const struct look *l) {
  const struct turn *turn = turn_of(l);
  const struct movement *m = turn ? movement_of(l, turn) : NULL;
  return m == NULL || turn->rule < 1 || m->group != NO_GROUP ||
         links_is_text(l, MEMBER_NEXT, m->rules[turn->rule - 1].next, "that rule's is");
}

/* --- links: the session --- */

static bool check_stop(const struct look *l) {
  const json_t *call = json_object_get(record_tree(l->record, MEMBER_QUESTION), "call");
  if (record_get(l->record, MEMBER_TURN) != NULL && turn_of(l) == NULL)
    return err_set(l->err, ERR_CORRUPT, "its turn is not open");
  return call == NULL || is_call(l, "question", json_integer_value(call));
}

static bool check_end(const struct look *l) {
  const struct core *core = l->core;
  const json_t *methods = record_tree(l->record, MEMBER_METHODS);
  struct str outcome = record_text(l->record, MEMBER_OUTCOME);
  json_int_t counted = 0, told = 0;
  if (!is_number(l, MEMBER_TURNS, core->turn_count))
    return false;
  JSON_MEMBERS(methods, key, value) {
    json_int_t n = 0;
    for (int i = 0; i < STAGE_COUNT; i++)
      if (strcmp(judge_stage_match_method((enum judge_stage)i), key) == 0)
        n += core->method_counts[i];
    if (json_integer_value(value) != n)
      return err_set(l->err, ERR_CORRUPT,
                     "its methods say %s %" JSON_INTEGER_FORMAT
                     ", but the judgments %" JSON_INTEGER_FORMAT,
                     key, json_integer_value(value), n);
    told += n;
  }
  for (int i = 0; i < STAGE_COUNT; i++)
    counted += core->method_counts[i];
  if (told != counted)
    return err_set(l->err, ERR_CORRUPT,
                   "its methods count %" JSON_INTEGER_FORMAT
                   " judgments, but there are %" JSON_INTEGER_FORMAT,
                   told, counted);
  bool complete = str_eq_c(outcome, "complete"), abort = str_eq_c(outcome, "abort");
  bool refused = abort && core->evidence.last_answer == EVIDENCE_STOP; /* by a person */
  if ((complete || abort) && !refused &&
      !(core->has_next && core->next == (complete ? NEXT_COMPLETE : NEXT_ABORT)))
    return err_set(l->err, ERR_CORRUPT, "its outcome is %s, but no rule led there",
                   complete ? "complete" : "abort");
  return true;
}

/* --- logs --- */

/* An owner may be writing, so a torn end is looked at again before it counts. */
enum { TORN_LOOK_COUNT = 5, TORN_WAIT_MS = 20 };

struct verifier {
  struct schema *schema;
};

struct verifier *verifier_new(struct err *err) {
  const struct resource *r = resource_find("schemas/session-log.json");
  json_auto_t *doc = r ? record_line_read(str_trim((struct str){r->p, r->n}), NULL) : NULL;
  struct schema *schema = doc ? schema_compile(doc, NULL, NULL, NULL) : NULL;
  if (schema == NULL) {
    err_set(err, ERR_INVALID, "the built-in schemas/session-log.json does not compile");
    return NULL;
  }
  struct verifier *v = xcalloc(1, sizeof *v);
  v->schema = schema;
  return v;
}

void verifier_free(struct verifier *v) {
  if (v == NULL)
    return;
  schema_free(v->schema);
  free(v);
}

const char *verify_state_name(enum verify_state state) {
  static const char *const names[] = {[VERIFY_COMPLETE] = "complete",
                                      [VERIFY_OPEN] = "open",
                                      [VERIFY_EMPTY] = "empty",
                                      [VERIFY_TORN] = "torn",
                                      [VERIFY_BAD] = "bad"};
  return names[state];
}

static bool check_schema(const struct verifier *v, const json_t *record, struct err *err) {
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  if (json_int_at(record, "v") > RECORD_VERSION)
    return err_set(err, ERR_CORRUPT, "its version is newer than this program reads");
  enum schema_status status = schema_check(v->schema, record, &errors);
  if (status != SCHEMA_OK) {
    char more[48] = "";
    size_t others = errors.count + errors.dropped;
    if (others > 1)
      print_into(more, sizeof more, " (and %zu more)", others - 1);
    err_set(err, ERR_CORRUPT, "schema: %s: %s%s", errors.count ? errors.items[0].path : "$",
            errors.count ? errors.items[0].message : schema_status_name(status), more);
  }
  return status == SCHEMA_OK;
}

enum phase { NEW, RUNNING, STOPPED, ENDED };

/* Holds everything known while one log is read. */
struct verify_pass {
  struct verified_reader book;
  struct core core;
  char known[LINKS_KNOWN_COUNT][TEXTS_PLACE_BYTES];
  enum phase phase;
  struct report_files reports;
  char blob_name[SHA256_HEX]; /* last blob read; "": none */
  struct buf blob;
  json_t *json;              /* the record being checked */
  struct record_draft draft; /* the same as members */
};

/* Reads a blob; one that several records in a row name is read and hashed once. The bytes are
 * borrowed until the next call. */
static bool verify_blob(struct verify_pass *r, const char *name, struct str *bytes,
                        struct err *err) {
  if (strcmp(r->blob_name, name) != 0) {
    buf_clear(&r->blob);
    r->blob_name[0] = '\0';
    if (!store_blob_get(&r->book.store, name, &r->blob, err))
      return false;
    print_into(r->blob_name, sizeof r->blob_name, "%s", name);
  }
  *bytes = buf_view(&r->blob);
  return true;
}

/* Checks every member "<key>_blob": its blob must exist, with the hash and the size given in the
 * member after it. */
static bool check_blobs(struct verify_pass *r, struct err *err) {
  static const enum member blobs[] = {MEMBER_TASK_BLOB, MEMBER_TEXT_BLOB, MEMBER_STDERR_BLOB};
  const struct record *record = &r->draft.record;
  for (size_t i = 0; i < ARRAY_LEN(blobs); i++) {
    const char *name = record_text_c(record, blobs[i]);
    int64_t bytes = record_number(record, (enum member)(blobs[i] + 1));
    struct str blob;
    if (record_get(record, blobs[i]) == NULL)
      continue;
    bool ok = verify_blob(r, name, &blob, err);
    if (ok && (int64_t)blob.n != bytes)
      ok = err_set(err, ERR_CORRUPT, "its %s has %zu bytes, not %lld", record_member_name(blobs[i]),
                   blob.n, (long long)bytes);
    if (!ok) {
      err->code = ERR_CORRUPT; /* a missing blob is a damaged log, not a missing log */
      return false;
    }
  }
  return true;
}

static bool check_workflow(const struct verify_pass *r, struct err *err) {
  const struct record *record = &r->draft.record;
  char *text = json_dump_text(record_tree(record, MEMBER_WORKFLOW), JSON_COMPACT | JSON_SORT_KEYS);
  char sha256[SHA256_HEX];
  if (text == NULL)
    return err_set(err, ERR_CORRUPT, "it has no workflow");
  sha256_hex(text, strlen(text), NULL, 0, sha256);
  free(text);
  return str_eq_c(record_text(record, MEMBER_WORKFLOW_SHA256), sha256) ||
         err_set(err, ERR_CORRUPT, "its workflow_sha256 does not match its workflow");
}

/* Checks the order of the session's own records: a start, then stops and resumes in turn, an
 * end. */
static bool check_order(enum phase *phase, enum record_type type, struct err *err) {
  bool starts = type == RECORD_SESSION_START, resumes = type == RECORD_SESSION_RESUME;
  if (*phase == ENDED)
    return err_set(err, ERR_CORRUPT, "it comes after session_end");
  if (*phase == NEW && !starts)
    return err_set(err, ERR_CORRUPT, "a log begins with session_start");
  if (*phase != NEW && starts)
    return err_set(err, ERR_CORRUPT, "a second session_start");
  if (*phase == STOPPED && (type == RECORD_ANSWER || type == RECORD_STEER))
    return true;
  if (*phase == STOPPED && !resumes)
    return err_set(err, ERR_CORRUPT, "a stopped session goes on with session_resume");
  *phase = type == RECORD_SESSION_STOP ? STOPPED : RUNNING;
  if (type == RECORD_SESSION_END)
    *phase = ENDED;
  return true;
}

static bool blob_of(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  struct str bytes;
  if (!verify_blob(ctx, sha256, &bytes, err))
    return false;
  buf_append(out, bytes.p, bytes.n);
  return true;
}

/* Folds the record, and so finds what a resume would: the end of a call that never began, a rule
 * that the workflow does not have. */
static bool check_fold(struct verify_pass *r, struct err *err) {
  const struct core_source source = {.ctx = r, .blob = blob_of};
  if (core_apply(&r->core, &r->draft.record, NULL, &source, err))
    return true;
  struct err raw = *err;
  const char *why =
      strstr(raw.text, "): "); /* "record 7 (stage): why": its number is reported anyway */
  return err_set(err, ERR_CORRUPT, "%s", why && raw.text[0] == 'r' ? why + 3 : raw.text);
}

/* Reads the next record into the draft. False: the book says why. */
static bool next_record(struct verify_pass *r) {
  r->json = verified_next(&r->book);
  if (r->json == NULL)
    return false;
  record_read(&r->draft, r->json);
  return true;
}

static void drop_record(struct verify_pass *r) {
  record_drop(&r->draft);
  json_decref(r->json);
  r->json = NULL;
}

static bool check_record(const struct verifier *v, struct verify_pass *r,
                         struct verify_result *out) {
  struct err *err = &out->why;
  const struct record *record = &r->draft.record;
  if (!check_schema(v, r->json, err) || !check_order(&r->phase, record->type, err) ||
      !check_blobs(r, err))
    return false;
  if (record->type == RECORD_SESSION_START) {
    print_into(out->session, sizeof out->session, "%s", record_text_c(record, MEMBER_SESSION));
    if (!check_workflow(r, err) || !store_ref_suits(&r->book.ref, out->session, err))
      return false;
  }
  /* The record passed the schema and is checked before it is applied: `core` is the fold of those
   * before it. The book must keep `places`. False: err says which member is wrong. */
  static bool (*const checks[RECORD_TYPE_COUNT + 1])(const struct look *l) = {
      [RECORD_TURN_START] = check_turn_start, [RECORD_CALL_START] = check_call_start,
      [RECORD_CHECK] = check_check,           [RECORD_STRUCTURED] = check_structured,
      [RECORD_REPORT] = check_structured,     [RECORD_STAGE] = check_stage,
      [RECORD_JUDGMENT] = check_judgment,     [RECORD_TURN_END] = check_turn_end,
      [RECORD_SESSION_STOP] = check_stop,     [RECORD_SESSION_END] = check_end,
  };
  const struct look look = {r->known, &r->book, &r->core, record, err};
  return (checks[record->type] == NULL || checks[record->type](&look)) && check_fold(r, err);
}

/* Checks every known head of the session: its record must be there and be the same. */
static bool check_heads(const struct heads *const *heads, size_t n, const struct verified_reader *b,
                        struct verify_result *out) {
  for (size_t i = 0; i < n; i++) {
    size_t count;
    const struct ledger_entry *entry = heads_of(heads[i], out->session, &count);
    for (size_t k = 0; k < count; k++) {
      if (entry[k].seq != b->records || entry[k].kind == LEDGER_REMOVED)
        continue;
      if (strcmp(entry[k].hash, b->hash) != 0)
        return err_set(&out->why, ERR_CORRUPT,
                       "the ledger has another record: the log was rewritten");
    }
  }
  return true;
}

/* Checks the last heads once the log has ended. */
static bool check_last_heads(const struct heads *const *heads, size_t n,
                             struct verify_result *out) {
  for (size_t i = 0; i < n; i++) {
    const struct ledger_entry *last = heads_last(heads[i], out->session);
    if (last == NULL || last->kind == LEDGER_REMOVED)
      continue;
    if (last->seq > out->records)
      return err_set(&out->why, ERR_CORRUPT,
                     "it is missing: the ledger has record %llu, so the end was cut off",
                     (unsigned long long)last->seq);
    if (last->seq == out->records && last->kind != LEDGER_CUT && last->kind != LEDGER_HELD)
      out->seal = last->late && out->seal != VERIFY_SEALED ? VERIFY_SEALED_LATE : VERIFY_SEALED;
  }
  return true;
}

/* Compares the log with what the store keeps of it elsewhere, which knows of a record that is
 * missing at the end and of a log that was rewritten as a whole; the chain cannot tell. */
static bool check_due(const struct verified_reader *b, struct verify_result *out) {
  struct reader_due due;
  if (!reader_due(&b->reader, &due) || due.records != b->records)
    return true;
  return strcmp(due.hash, b->hash) == 0 ||
         err_set(&out->why, ERR_CORRUPT, "the store's row has another hash: the log was rewritten");
}

static bool check_last_due(const struct verified_reader *b, struct verify_result *out) {
  struct reader_due due;
  return !reader_due(&b->reader, &due) || due.records <= out->records ||
         err_set(&out->why, ERR_CORRUPT,
                 "it is missing: the store's row says %llu records, so the end was cut off",
                 (unsigned long long)due.records);
}

struct verify_heads {
  const struct heads *const *items;
  size_t count;
};

/* Reads records and checks each by those before it. False: one is not sound, and out says why. */
static bool check_records(const struct verifier *v, struct verify_pass *r,
                          const struct verify_heads *heads, struct verify_result *out) {
  struct verified_reader *b = &r->book;
  int looks = 0;
  for (;;) {
    bool more = next_record(r);
    if (!more)
      drop_record(r);
    if (!more && b->state == VERIFIED_TORN && looks++ < TORN_LOOK_COUNT && verified_owned(b)) {
      const struct timespec time = {0, TORN_WAIT_MS * 1000000};
      (void)nanosleep(&time, NULL);
      if (verified_again(b))
        continue;
    }
    if (!more)
      return true;
    bool sound = check_record(v, r, out) && check_heads(heads->items, heads->count, b, out) &&
                 check_due(b, out);
    report_files_take(&r->reports, &r->draft.record);
    drop_record(r);
    if (!sound)
      return false;
    out->records++;
  }
}

static void conclude(struct verify_pass *r, bool sound, const struct verify_heads *heads,
                     struct verify_result *out) {
  struct verified_reader *b = &r->book;
  if (sound && b->state == VERIFIED_DAMAGED)
    out->why = b->damage;
  if (sound && b->state == VERIFIED_TORN && r->phase == ENDED)
    sound = err_set(&out->why, ERR_CORRUPT, "%llu bytes stand behind session_end",
                    (unsigned long long)b->torn_bytes);
  if (sound && b->state != VERIFIED_DAMAGED)
    sound = check_last_heads(heads->items, heads->count, out) && check_last_due(b, out);
  if (!sound || b->state == VERIFIED_DAMAGED) {
    out->state = VERIFY_BAD;
    out->bad_record = out->records + 1;
  } else if (b->state == VERIFIED_TORN) {
    out->state = VERIFY_TORN;
    out->torn_bytes = b->torn_bytes;
  } else {
    out->state = r->phase == ENDED ? VERIFY_COMPLETE : VERIFY_OPEN;
    if (r->phase == NEW)
      out->state = VERIFY_EMPTY;
  }
  if (out->state != VERIFY_BAD) {
    buf_auto_t told = {.max = sizeof out->reports - 1};
    report_files_look(&r->reports, &r->book.store, out->session);
    out->reports_changed = r->reports.changed;
    out->reports_missing = r->reports.missing;
    report_files_told(&r->reports, false, &told);
    print_into(out->reports, sizeof out->reports, "%s", buf_c(&told));
  }
}

bool verify_log(const struct verifier *v, const struct store_ref *ref,
                const struct heads *const *heads, size_t heads_count, struct verify_result *out,
                struct err *err) {
  const struct verify_heads known = {heads, heads_count};
  struct verify_pass r = {.phase = NEW};
  if (!verified_open(&r.book, ref, true, err))
    return false;
  *out = (struct verify_result){0};
  core_init(&r.core);
  r.core.proves = true;
  conclude(&r, check_records(v, &r, &known, out), &known, out);
  report_files_deinit(&r.reports);
  buf_deinit(&r.blob);
  core_deinit(&r.core);
  verified_close(&r.book);
  return true;
}
