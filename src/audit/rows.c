/* Reads logs for audits: proves each line, and passes on what its records add up to. */
#include "audit/rows.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "core/record.h"
#include "core/state.h"
#include "store/reader.h"
#include "store/record_line.h"
#include "json/pull.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum rows_taken {
  ROWS_TAKEN,
  ROWS_BAD,    /* not a record, though its hash is right */
  ROWS_BEYOND, /* a bound was met */
};

struct rows_head { /* members that all records have; texts are raw */
  int64_t v, seq;
  struct str ts, type;
  struct pull rest; /* the record after these members if they come first; else all of it */
};

#define IS(key, literal)                                                                           \
  ((key).n == sizeof(literal) - 1 && memcmp((key).p, literal, sizeof(literal) - 1) == 0)

const char *rows_log_name(enum rows_log state) {
  static const char *const names[ROWS_LOG_COUNT] = {
      [ROWS_SOUND] = "sound",          [ROWS_TORN] = "torn",       [ROWS_EMPTY] = "empty",
      [ROWS_TAMPERED] = "tampered",    [ROWS_FOREIGN] = "foreign", [ROWS_NEWER] = "newer",
      [ROWS_UNREADABLE] = "unreadable"};
  assert(state < ROWS_LOG_COUNT);
  return names[state];
}

/* --- words and numbers --- */

/* Read the current value: a text as its number, a count within bounds, a time in ms. */
static uint32_t rows_name(struct rows *rows, struct pull *at) {
  struct str raw;
  if (!pull_text(at, &raw))
    return DICTIONARY_NONE;
  return dictionary_add(rows->names, pull_decode(raw, &rows->scratch));
}

static const int64_t most = (int64_t)1 << 40; /* a log may hold any number */

static void rows_count(struct pull *at, int64_t *out) {
  int64_t n;
  if (pull_integer(at, &n) && n >= 0 && n <= most)
    *out = n;
}

static void rows_long(struct pull *at, long *out) {
  int64_t n = 0;
  rows_count(at, &n);
  *out = (long)n;
}

static int64_t rows_time_of(struct str raw) {
  char text[RECORD_TIME_BYTES] = "";
  int64_t ms = 0;
  if (raw.n < sizeof text) {
    memcpy(text, raw.p, raw.n);
    text[raw.n] = '\0';
  }
  return record_time_parse(text, &ms) ? ms : 0;
}

void row_use_add(struct row_use *sum, const struct row_use *one) {
  sum->calls += one->calls;
  sum->ms += one->ms;
  sum->input += one->input;
  sum->output += one->output;
  sum->cost_nano += one->cost_nano;
  sum->unpriced += one->unpriced;
}

/* Counts use as core/spend.c does. */
static void take_usage(struct pull *at, struct row_use *use) {
  struct str key;
  double usd = -1;
  if (!pull_open(at, '{'))
    return;
  while (pull_key(at, &key)) {
    if (IS(key, "input"))
      rows_count(at, &use->input);
    else if (IS(key, "output"))
      rows_count(at, &use->output);
    else if (IS(key, "cost_usd"))
      (void)pull_number(at, &usd);
    else
      pull_skip(at);
  }
  if (usd >= 0 && usd <= LIMIT_COST_USD)
    use->cost_nano = (int64_t)(usd * 1e9 + 0.5);
  else
    use->unpriced = 1;
}

/* --- heads --- */

static bool rows_head(struct str line, struct rows_head *head) {
  struct pull at = pull_of(line);
  struct str key;
  int seen = 0;
  bool first = true;
  *head = (struct rows_head){.type = {"", 0}, .ts = {"", 0}};
  if (!pull_open(&at, '{'))
    return false;
  head->rest = at;
  while (seen < 4 && pull_key(&at, &key)) {
    seen++;
    if (IS(key, "v"))
      rows_count(&at, &head->v);
    else if (IS(key, "seq"))
      rows_count(&at, &head->seq);
    else if (IS(key, "ts"))
      (void)pull_text(&at, &head->ts);
    else if (IS(key, "type"))
      (void)pull_text(&at, &head->type);
    else {
      pull_skip(&at);
      seen--;
      first = false;
    }
  }
  if (first && seen == 4)
    head->rest = at;
  return !at.bad;
}

/* --- turns and calls --- */

static struct rows_turn *turn_find(struct rows *rows, long turn) {
  for (size_t i = rows->turn_count; i > 0; i--)
    if (rows->turns[i - 1].turn == turn)
      return &rows->turns[i - 1];
  return NULL;
}

/* Finds a call of an open turn; NULL: there is none. */
static struct rows_call *rows_call_find(struct rows *rows, long turn, long call) {
  for (size_t i = rows->call_count; i > 0; i--)
    if (rows->calls[i - 1].call == call && rows->calls[i - 1].turn == turn)
      return &rows->calls[i - 1];
  return NULL;
}

static enum rows_taken take_turn_start(struct rows *rows, struct pull *at) {
  struct rows_turn turn = {0};
  struct str key;
  while (pull_key(at, &key)) {
    if (IS(key, "turn"))
      rows_long(at, &turn.turn);
    else if (IS(key, "movement"))
      turn.movement = rows_name(rows, at);
    else
      pull_skip(at);
  }
  if (rows->turn_count >= LIMIT_AUDIT_OPEN_COUNT)
    return ROWS_BEYOND;
  rows->turns = xgrow(rows->turns, &rows->turn_room, rows->turn_count + 1, sizeof *rows->turns);
  rows->turns[rows->turn_count++] = turn;
  return ROWS_TAKEN;
}

/* Returns the record that {"ref": "5#/schema"} names, 0 if it is no such reference. */
static int64_t referred_record(struct str raw) {
  struct pull at = pull_of(raw);
  struct str key, place;
  int64_t seq = 0;
  if (!pull_open(&at, '{') || !pull_key(&at, &key) || !IS(key, "ref") || !pull_text(&at, &place))
    return 0;
  for (size_t i = 0; i < place.n && place.p[i] >= '0' && place.p[i] <= '9' && seq < INT32_MAX; i++)
    seq = seq * 10 + (place.p[i] - '0');
  return seq;
}

/* Names a schema: it is in the first call that sends it, and later ones refer to that record. */
static uint32_t schema_name(struct rows *rows, struct str raw, int64_t seq) {
  char hash[SHA256_HEX];
  int64_t place = referred_record(raw);
  for (size_t i = 0; place > 0 && i < rows->schema_count; i++)
    if (rows->schemas[i].seq == place)
      return rows->schemas[i].name;
  if (place > 0)
    return DICTIONARY_NONE;
  sha256_hex(raw.p, raw.n, NULL, 0, hash);
  uint32_t name = dictionary_add(rows->names, (struct str){hash, 12});
  if (rows->schema_count < ROWS_SCHEMA_COUNT)
    rows->schemas[rows->schema_count++] = (struct rows_schema){seq, name};
  return name;
}

static enum rows_taken take_call_start(struct rows *rows, struct pull *at,
                                       const struct rows_head *head) {
  struct rows_call call = {0};
  struct str key, schema = {"", 0};
  while (pull_key(at, &key)) {
    if (IS(key, "turn"))
      rows_long(at, &call.turn);
    else if (IS(key, "call"))
      rows_long(at, &call.call);
    else if (IS(key, "provider"))
      call.provider = rows_name(rows, at);
    else if (IS(key, "model"))
      call.model = rows_name(rows, at);
    else if (IS(key, "schema"))
      schema = pull_raw(at);
    else if (IS(key, "stage"))
      call.stage = rows_name(rows, at);
    else
      pull_skip(at);
  }
  if (rows->wants_schema && schema.n > 0 && call.stage == DICTIONARY_NONE)
    call.schema = schema_name(rows, schema, head->seq);
  struct rows_call *known = rows_call_find(rows, call.turn, call.call);
  if (known != NULL) { /* another attempt, perhaps at another provider */
    call.use = known->use;
    *known = call;
    return ROWS_TAKEN;
  }
  if (rows->call_count >= LIMIT_AUDIT_OPEN_COUNT)
    return ROWS_BEYOND;
  rows->calls = xgrow(rows->calls, &rows->call_room, rows->call_count + 1, sizeof *rows->calls);
  rows->calls[rows->call_count++] = call;
  return ROWS_TAKEN;
}

static enum rows_taken take_call_end(struct rows *rows, struct pull *at) {
  struct row_use use = {.calls = 1};
  long turn = 0, number = 0;
  struct str key;
  while (pull_key(at, &key)) {
    if (IS(key, "turn"))
      rows_long(at, &turn);
    else if (IS(key, "call"))
      rows_long(at, &number);
    else if (IS(key, "duration_ms"))
      rows_count(at, &use.ms);
    else if (IS(key, "usage"))
      take_usage(at, &use);
    else
      pull_skip(at);
  }
  struct rows_call *call = rows_call_find(rows, turn, number);
  if (call != NULL)
    row_use_add(&call->use, &use);
  return ROWS_TAKEN;
}

static enum rows_taken take_check(struct rows *rows, struct pull *at) {
  long number = 0;
  bool valid = false, repaired = false;
  struct str key, outcome;
  while (pull_key(at, &key)) {
    if (IS(key, "turn"))
      rows_long(at, &number);
    else if (IS(key, "outcome"))
      valid = pull_text(at, &outcome) && IS(outcome, "valid");
    else if (IS(key, "repaired"))
      repaired = pull_true(at);
    else
      pull_skip(at);
  }
  struct rows_turn *turn = turn_find(rows, number);
  if (turn != NULL && valid)
    turn->mended = repaired;
  return ROWS_TAKEN;
}

/* --- results --- */

static uint32_t rows_basis(struct name_list *names, uint32_t cause) {
  struct str text = cause != DICTIONARY_NONE ? dictionary_text(names, cause) : STR("");
  size_t n = strlen("complete:");
  if (!str_starts(text, "complete:") || text.n <= n)
    return DICTIONARY_NONE;
  char word[32];
  print_into(word, sizeof word, "%.*s", (int)(text.n - n), text.p + n);
  return dictionary_add(names, str_from(word));
}

void rows_of_session(struct name_list *names, const struct row_session *session, struct row *row) {
  row->workflow = session->workflow;
  row->folder = session->folder;
  row->user = session->user;
  row->outcome = session->outcome;
  row->basis = rows_basis(names, session->cause);
}

static void give_row(struct rows *rows, struct row *row) {
  rows_of_session(rows->names, &rows->session, row);
  row->stages = rows->stages + row->stage_first;
  if (rows->sink.judged != NULL)
    rows->sink.judged(rows->ctx, row);
}

/* Keeps a row, or hands it out. Its stages are the last ones, from row->stage_first on. */
static void rows_emit(struct rows *rows, struct row *row) {
  if (rows->proven) {
    give_row(rows, row);
    rows->stage_count = 0;
    return;
  }
  bool full = rows->count == LIMIT_AUDIT_ROW_COUNT || rows->stage_count > 4 * LIMIT_AUDIT_ROW_COUNT;
  if (rows->spills || full) {
    rows->spills = true;
    rows->stage_count = row->stage_first;
    return;
  }
  rows->list = xgrow(rows->list, &rows->room, rows->count + 1, sizeof *rows->list);
  rows->list[rows->count++] = *row;
}

/* --- values --- */

/* Adds the movement's own calls: who worked, with which schema, at what cost. */
static void add_work(struct rows *rows, struct row *row) {
  for (size_t i = 0; i < rows->call_count; i++) {
    const struct rows_call *call = &rows->calls[i];
    if (call->turn != row->turn || call->stage != DICTIONARY_NONE)
      continue;
    row_use_add(&row->work, &call->use);
    if (row->worker == DICTIONARY_NONE) {
      row->worker = call->provider;
      row->worker_model = call->model;
    }
    if (row->schema == DICTIONARY_NONE)
      row->schema = call->schema;
  }
}

/* Finds who worked on a turn that was judged before, whose calls are forgotten; keeps who worked on
 * one that found no rule. */
static void keep_worker(struct rows *rows, struct row *row) {
  struct rows_unruled *kept = rows->unruled;
  for (size_t i = 0; i < ROWS_UNRULED_COUNT && i < rows->unruled_count; i++)
    if (kept[i].turn == row->turn && row->worker == DICTIONARY_NONE) {
      row->movement = row->movement != DICTIONARY_NONE ? row->movement : kept[i].movement;
      row->worker = kept[i].worker;
      row->worker_model = kept[i].worker_model;
      row->schema = kept[i].schema;
    }
  if (row->kind == ROW_JUDGMENT && row->rule == 0)
    kept[rows->unruled_count++ % ROWS_UNRULED_COUNT] = (struct rows_unruled){
        row->turn, row->movement, row->worker, row->worker_model, row->schema};
}

static struct row_stage *rows_stage_add(struct rows *rows) {
  rows->stages =
      xgrow(rows->stages, &rows->stage_room, rows->stage_count + 1, sizeof *rows->stages);
  return &rows->stages[rows->stage_count++];
}

static void add_rest(struct rows *rows, struct row *row) {
  for (size_t i = 0; i < rows->call_count; i++) {
    const struct rows_call *call = &rows->calls[i];
    bool used = call->counted || call->use.calls == 0;
    if (call->turn != row->turn || call->stage == DICTIONARY_NONE || used)
      continue;
    *rows_stage_add(rows) = (struct row_stage){.stage = call->stage,
                                               .reason = dictionary_add(rows->names, STR("unused")),
                                               .provider = call->provider,
                                               .model = call->model,
                                               .use = call->use};
    row->rest_count++;
  }
}

/* Adds to a row the turn's calls that it does not have yet, emits it and forgets the turn. */
static void rows_close_turn(struct rows *rows, struct row *row) {
  add_work(rows, row);
  keep_worker(rows, row);
  add_rest(rows, row);
  size_t kept = 0;
  for (size_t i = 0; i < rows->call_count; i++)
    if (rows->calls[i].turn != row->turn)
      rows->calls[kept++] = rows->calls[i];
  rows->call_count = kept;
  kept = 0;
  for (size_t i = 0; i < rows->turn_count; i++)
    if (rows->turns[i].turn != row->turn)
      rows->turns[kept++] = rows->turns[i];
  rows->turn_count = kept;
  rows_emit(rows, row);
}

static enum rows_taken rows_value(struct rows *rows, struct pull *at,
                                  const struct rows_head *head) {
  struct row row = {.kind = ROW_VALUE, .time_ms = rows_time_of(head->ts)};
  int64_t answers = 0;
  struct str key, outcome;
  while (pull_key(at, &key)) {
    if (IS(key, "turn"))
      rows_long(at, &row.turn);
    else if (IS(key, "movement"))
      row.movement = rows_name(rows, at);
    else if (IS(key, "outcome"))
      row.value = pull_text(at, &outcome) && IS(outcome, "value");
    else if (IS(key, "attempts"))
      rows_count(at, &answers);
    else if (IS(key, "first_pass"))
      row.first_pass = pull_true(at);
    else
      pull_skip(at);
  }
  const struct rows_turn *turn = turn_find(rows, row.turn);
  row.answers = (uint32_t)(answers > UINT32_MAX ? UINT32_MAX : answers);
  row.mended = row.value && turn != NULL && turn->mended;
  row.stage_first = rows->stage_count;
  add_work(rows, &row);
  rows_emit(rows, &row);
  return ROWS_TAKEN;
}

/* --- judgments --- */

static bool is_machine(struct str stage) {
  return IS(stage, "when") || IS(stage, "auto_select") || IS(stage, "aggregate");
}

const char *rows_reason(struct str stage, enum stage_outcome outcome, bool none, struct str error) {
  bool machine = is_machine(stage);
  bool tag = IS(stage, "phase3_tag") || IS(stage, "phase1_tag");
  switch (outcome) {
  case OUTCOME_NO_MATCH:
    if (machine)
      return "false";
    return !none && tag ? "no_tag" : "none";
  case OUTCOME_UNREADABLE:
    if (IS(error, "the reply is empty"))
      return "empty";
    if (IS(error, "the JSON in the reply is cut off"))
      return "truncated";
    if (IS(error, "the JSON in the reply is broken"))
      return "broken_json";
    return IS(error, "no vote could be read") ? "no_vote" : "no_json";
  case OUTCOME_INVALID:
    return "wrong_shape";
  case OUTCOME_ERROR:
    return machine ? "expression" : "error";
  case OUTCOME_OUT_OF_RANGE:
  case OUTCOME_HIDDEN:
  case OUTCOME_AMBIGUOUS:
  case OUTCOME_SKIPPED:
    return stage_outcome_name(outcome);
  case OUTCOME_MATCHED:
  case OUTCOME_COUNT:
    break;
  }
  return outcome == OUTCOME_MATCHED ? "" : "unknown";
}

/* Adds the calls that a stage lists. A reply may have served two stages: it counts in the first.
 * False: there are too many. */
static bool take_stage_calls(struct rows *rows, struct pull *at, long turn,
                             struct row_stage *stage) {
  size_t n = 0;
  if (!pull_open(at, '['))
    return true;
  while (pull_item(at)) {
    long number = 0;
    rows_long(at, &number);
    if (++n > LIMIT_AUDIT_STAGE_COUNT)
      return false;
    stage->call_count = (uint8_t)n;
    struct rows_call *call = rows_call_find(rows, turn, number);
    if (call == NULL)
      continue;
    stage->provider = call->provider;
    stage->model = call->model;
    stage->shares = call->counted;
    if (call->counted)
      continue;
    call->counted = true;
    row_use_add(&stage->use, &call->use);
    if (n > 1)
      row_use_add(&stage->corrections, &call->use);
  }
  stage->asked = n > 0 && !stage->shares;
  return true;
}

struct stage_said { /* members that may come before or after the calls */
  struct str stage, error, class;
  uint32_t provider, model;
  bool none;
};

static void finish_stage(struct rows *rows, const struct stage_said *said,
                         struct row_stage *stage) {
  const char *word =
      rows_reason(said->stage, (enum stage_outcome)stage->outcome, said->none, said->error);
  stage->machine = is_machine(said->stage);
  stage->readable = stage->outcome == OUTCOME_MATCHED || strcmp(word, "none") == 0;
  bool classed = stage->outcome == OUTCOME_ERROR || stage->outcome == OUTCOME_SKIPPED;
  if (classed && said->class.n > 0) {
    char text[96];
    print_into(text, sizeof text, "%s:%.*s", word, (int)(said->class.n < 60 ? said->class.n : 60),
               said->class.p);
    stage->reason = dictionary_add(rows->names, str_from(text));
  } else {
    stage->reason = dictionary_add(rows->names, str_from(word));
  }
  if (said->provider != DICTIONARY_NONE) {
    stage->provider = said->provider;
    stage->model = said->model;
  }
}

/* Returns the text that says why nothing was read: of several answers that of the last one. */
static struct str missing_text(struct pull *at) {
  struct str text = {"", 0}, raw;
  if (!pull_open(at, '['))
    return text;
  while (pull_item(at))
    if (pull_text(at, &raw) &&
        (text.n == 0 || IS(raw, "no JSON in the reply") ||
         strcmp(rows_reason(STR(""), OUTCOME_UNREADABLE, false, raw), "no_json") != 0))
      text = raw;
  return text;
}

static bool take_stage(struct rows *rows, struct pull *at, long turn, struct row_stage *stage) {
  struct stage_said said = {.stage = {"", 0}, .error = {"", 0}, .class = {"", 0}};
  struct str key, text;
  bool few = true;
  *stage = (struct row_stage){.outcome = OUTCOME_COUNT};
  if (!pull_open(at, '{'))
    return true;
  while (few && pull_key(at, &key)) {
    enum stage_outcome outcome;
    if (IS(key, "stage")) {
      (void)pull_text(at, &said.stage);
      stage->stage = dictionary_add(rows->names, said.stage);
    } else if (IS(key, "outcome")) {
      if (pull_text(at, &text) && stage_outcome_from_name(text, &outcome))
        stage->outcome = (uint8_t)outcome;
    } else if (IS(key, "class"))
      (void)pull_text(at, &said.class);
    else if (IS(key, "calls"))
      few = take_stage_calls(rows, at, turn, stage);
    else if (IS(key, "errors"))
      said.error = missing_text(at);
    else if (IS(key, "provider"))
      said.provider = rows_name(rows, at);
    else if (IS(key, "model"))
      said.model = rows_name(rows, at);
    else if (IS(key, "none"))
      said.none = pull_true(at);
    else if (IS(key, "rule") || IS(key, "vote")) {
      int64_t n = 0;
      bool is_rule = IS(key, "rule");
      rows_count(at, &n);
      if (is_rule)
        stage->rule = (uint32_t)(n > UINT32_MAX ? UINT32_MAX : n);
      else
        stage->vote = (uint8_t)(n > 0 && n < UINT8_MAX ? n : UINT8_MAX);
    } else {
      pull_skip(at);
    }
  }
  finish_stage(rows, &said, stage);
  return few;
}

static bool take_stages(struct rows *rows, struct pull *at, struct row *row) {
  if (!pull_open(at, '['))
    return true;
  while (pull_item(at)) {
    if (row->stage_count == LIMIT_AUDIT_STAGE_COUNT)
      return false;
    struct row_stage *stage = rows_stage_add(rows);
    if (!take_stage(rows, at, row->turn, stage))
      return false;
    row->ambiguous |= stage->outcome == OUTCOME_AMBIGUOUS;
    row->stage_count++;
  }
  return true;
}

/* Reads the turn's number in a pass of its own, before the stages, whatever their order. */
static long rows_turn_of(struct pull at) {
  struct str key;
  long turn = 0;
  while (pull_key(&at, &key)) {
    if (IS(key, "turn")) {
      rows_long(&at, &turn);
      return turn;
    }
    pull_skip(&at);
  }
  return turn;
}

/* Reads what became of the turn's mark. A turn that is judged again counts in its own session. */
static uint8_t rows_mark(const struct rows *rows, struct pull *at) {
  struct str word;
  if (!pull_text(at, &word) || rows->session.again.session[0] != '\0')
    return TAG_UNASKED;
  for (int i = TAG_UNASKED + 1; i < TAG_MARK_COUNT; i++)
    if (str_eq_c(word, tag_mark_name((enum tag_mark)i)))
      return (uint8_t)i;
  return TAG_UNASKED;
}

/* Takes what a sound record says. */
static enum rows_taken rows_judgment(struct rows *rows, struct pull *at,
                                     const struct rows_head *head) {
  struct row row = {
      .kind = ROW_JUDGMENT, .time_ms = rows_time_of(head->ts), .turn = rows_turn_of(*at)};
  int64_t rule = 0;
  struct str key;
  row.stage_first = rows->stage_count;
  while (pull_key(at, &key)) {
    if (IS(key, "movement"))
      row.movement = rows_name(rows, at);
    else if (IS(key, "rule"))
      rows_count(at, &rule);
    else if (IS(key, "method"))
      row.method = rows_name(rows, at);
    else if (IS(key, "match_method"))
      row.match_method = rows_name(rows, at);
    else if (IS(key, "provider"))
      row.provider = rows_name(rows, at);
    else if (IS(key, "model"))
      row.model = rows_name(rows, at);
    else if (IS(key, "failure"))
      row.failure = rows_name(rows, at);
    else if (IS(key, "mark"))
      row.mark = rows_mark(rows, at);
    else if (IS(key, "ambiguous"))
      row.ambiguous |= pull_true(at);
    else if (!IS(key, "stages"))
      pull_skip(at);
    else if (!take_stages(rows, at, &row))
      return ROWS_BEYOND;
  }
  row.rule = (uint32_t)(rule > UINT32_MAX ? UINT32_MAX : rule);
  /* If models were asked and no stage could use an answer, there is no verdict. */
  bool asked = false, readable = false;
  for (size_t i = 0; i < row.stage_count; i++) {
    const struct row_stage *stage = &rows->stages[row.stage_first + i];
    asked |= stage->asked;
    readable |= stage->readable && stage->vote == 0;
  }
  row.undecided = row.rule == 0 && asked && !readable;
  /* A log may not name the judge: it is the model that the deciding stage asked, or else
   * the last one asked. */
  for (size_t i = row.stage_count; i > 0 && row.provider == DICTIONARY_NONE; i--) {
    const struct row_stage *stage = &rows->stages[row.stage_first + i - 1];
    bool decided = stage->stage == row.method;
    if (row.method == DICTIONARY_NONE ? stage->asked : decided) {
      row.provider = stage->provider;
      row.model = stage->model;
    }
  }
  rows_close_turn(rows, &row);
  return ROWS_TAKEN;
}

/* --- the session --- */

static void take_again(struct rows *rows, struct pull *at) {
  struct row_again *again = &rows->session.again;
  struct str key, id = {"", 0};
  if (!pull_open(at, '{'))
    return;
  while (pull_key(at, &key)) {
    if (IS(key, "session"))
      (void)pull_text(at, &id);
    else if (IS(key, "turn"))
      rows_long(at, &again->turn);
    else if (IS(key, "repeat"))
      rows_long(at, &again->repeat);
    else if (IS(key, "name"))
      again->name = rows_name(rows, at);
    else if (IS(key, "settings"))
      again->settings = rows_name(rows, at);
    else
      pull_skip(at);
  }
  if (id.n < sizeof again->session)
    print_into(again->session, sizeof again->session, STR_FMT, STR_ARG(id));
}

/* Passes over an object and returns one of its members to be read; nothing if it has none. */
static struct pull rows_member_of(struct pull *at, const char *name) {
  struct str key, raw = {"", 0};
  for (bool in = pull_open(at, '{'); in && pull_key(at, &key);) {
    struct str value = pull_raw(at);
    if (str_eq_c(key, name))
      raw = value;
  }
  return pull_of(raw);
}

static void rows_config(struct rows *rows, struct pull *at) {
  struct str key;
  for (bool in = pull_open(at, '{'); in && pull_key(at, &key);)
    if (IS(key, "rejudges"))
      take_again(rows, at);
    else if (IS(key, "cwd"))
      rows->session.folder = rows_name(rows, at);
    else if (IS(key, "user"))
      rows->session.user = rows_name(rows, at);
    else
      pull_skip(at);
}

static enum rows_taken take_session_start(struct rows *rows, struct pull *at,
                                          const struct rows_head *head) {
  struct str key, id = {"", 0};
  rows->session.started_ms = rows->session.time_ms = rows_time_of(head->ts);
  while (pull_key(at, &key)) {
    if (IS(key, "session"))
      (void)pull_text(at, &id);
    else if (IS(key, "workflow")) {
      struct pull name = rows_member_of(at, "name");
      rows->session.workflow = rows_name(rows, &name);
    } else if (IS(key, "config")) {
      rows_config(rows, at);
    } else
      pull_skip(at);
  }
  if (id.n < sizeof rows->session.id)
    print_into(rows->session.id, sizeof rows->session.id, STR_FMT, STR_ARG(id));
  return ROWS_TAKEN;
}

/* Takes a session_stop or session_end: the status, and its reason with the class of an error. */
static enum rows_taken take_session_end(struct rows *rows, struct pull *at,
                                        const struct rows_head *head, bool stop) {
  struct str key, word = {"", 0}, class = {"", 0};
  buf_auto_t cause = {.max = LIMIT_AUDIT_NAME_BYTES};
  while (pull_key(at, &key)) {
    if (IS(key, "reason") && stop)
      (void)pull_text(at, &word);
    else if (IS(key, "outcome") && !stop)
      (void)pull_text(at, &word);
    else if (IS(key, "basis"))
      (void)pull_text(at, &class);
    else if (IS(key, "class"))
      (void)pull_text(at, &class);
    else if (IS(key, "error")) {
      struct pull of_error = rows_member_of(at, "class");
      (void)pull_text(&of_error, &class);
    } else
      pull_skip(at);
  }
  buf_printf(&cause, STR_FMT "%s" STR_FMT, STR_ARG(word), class.n > 0 ? ":" : "", STR_ARG(class));
  rows->session.cause = dictionary_add(rows->names, buf_view(&cause));
  rows->session.outcome =
      dictionary_add(rows->names, stop ? str_from(session_stop_status(word, class)) : word);
  rows->session.time_ms = rows_time_of(head->ts);
  rows->session.unavailable_stops += stop && IS(word, "judge_unavailable");
  return ROWS_TAKEN;
}

static enum rows_taken rows_take(struct rows *rows, struct pull *at, const struct rows_head *head) {
  if (IS(head->type, "judgment"))
    return rows_judgment(rows, at, head);
  if (IS(head->type, "call_start"))
    return take_call_start(rows, at, head);
  if (IS(head->type, "call_end"))
    return take_call_end(rows, at);
  if (IS(head->type, "turn_start"))
    return take_turn_start(rows, at);
  if (IS(head->type, "check"))
    return take_check(rows, at);
  if (IS(head->type, "structured"))
    return rows_value(rows, at, head);
  if (rows->proven) /* the first pass already took the session */
    return ROWS_TAKEN;
  if (IS(head->type, "session_start"))
    return take_session_start(rows, at, head);
  if (IS(head->type, "session_resume")) {
    rows->session.cause = DICTIONARY_NONE;
    rows->session.outcome = DICTIONARY_NONE;
    return ROWS_TAKEN;
  }
  bool stop = IS(head->type, "session_stop");
  if (stop || IS(head->type, "session_end"))
    return take_session_end(rows, at, head, stop);
  return ROWS_TAKEN;
}

/* --- reading --- */

static enum rows_log rows_refuse(struct rows *rows, enum rows_log state, const char *why) {
  err_set(&rows->err, ERR_CORRUPT, "record %llu: %s", (unsigned long long)rows->records + 1, why);
  return state;
}

/* Takes a whole line. ROWS_LOG_COUNT: it is sound, go on. */
static enum rows_log rows_line(struct rows *rows, struct str line) {
  char next[SHA256_HEX];
  struct rows_head head;
  struct err err;
  bool readable = rows_head(line, &head), first = rows->records == 0;
  bool begins = readable && str_eq_c(head.type, "session_start") && head.v > 0;
  if (first && !begins)
    return rows_refuse(rows, ROWS_FOREIGN, "it does not begin a session");
  if (readable && head.v > RECORD_VERSION)
    return rows_refuse(rows, ROWS_NEWER, "its version is newer");
  if (!rows->proven && !record_line_check(line, rows->hash, next, &err))
    return rows_refuse(rows, ROWS_TAMPERED, err.text);
  if (!rows->proven && (memchr(line.p, '\0', line.n) != NULL || !utf8_valid(line.p, line.n)))
    return rows_refuse(rows, ROWS_TAMPERED, "it is not text");
  if (!readable || head.v != RECORD_VERSION || head.seq != (int64_t)rows->records + 1)
    return rows_refuse(rows, ROWS_TAMPERED, "it is not the next record");
  struct pull at = head.rest;
  enum rows_taken taken = rows_take(rows, &at, &head);
  switch (at.bad && taken == ROWS_TAKEN ? ROWS_BAD : taken) {
  case ROWS_TAKEN:
    break;
  case ROWS_BAD:
    return rows_refuse(rows, ROWS_TAMPERED, "it cannot be read");
  case ROWS_BEYOND:
    return rows_refuse(rows, ROWS_UNREADABLE, "it has more calls or stages than are counted");
  }
  if (!rows->proven)
    memcpy(rows->hash, next, SHA256_HEX);
  rows->records++;
  rows->end += line.n + 1;
  return ROWS_LOG_COUNT;
}

/* Ends a log that has no further whole line. */
static enum rows_log rows_at_end(struct rows *rows, const struct log_reader *r, bool piece) {
  if (r->error != 0) {
    err_set_errno(&rows->err, r->error, "it cannot be read");
    return ROWS_UNREADABLE;
  }
  if (r->too_long)
    return rows_refuse(rows, ROWS_UNREADABLE, "its line is longer than audit reads");
  if (piece && !reader_is_owned(r)) /* its owner may be writing */
    return rows->records > 0 ? ROWS_TORN : ROWS_EMPTY;
  return rows->records > 0 ? ROWS_SOUND : ROWS_EMPTY;
}

static enum rows_log rows_pass(struct rows *rows, const struct store_ref *ref, uint64_t until) {
  struct log_reader r;
  struct str line;
  enum rows_log state = ROWS_LOG_COUNT;
  rows->count = rows->stage_count = rows->call_count = rows->turn_count = rows->schema_count = 0;
  rows->records = rows->end = 0;
  rows->unruled_count = 0;
  memcpy(rows->hash, record_line_first_hash, SHA256_HEX);
  if (!reader_open(&r, ref, &rows->err))
    return ROWS_UNREADABLE;
  r.max = LIMIT_AUDIT_LINE_BYTES;
  while (state == ROWS_LOG_COUNT && rows->end < until) {
    bool more = reader_next(&r, &line);
    rows->bytes += more ? line.n + r.whole : 0;
    if (more && r.whole)
      state = rows_line(rows, line);
    else
      state = rows_at_end(rows, &r, more);
  }
  /* Turns that were never judged are closed too. */
  while (rows->call_count > 0) {
    const struct rows_turn *turn = turn_find(rows, rows->calls[0].turn);
    struct row row = {.kind = ROW_REST,
                      .turn = rows->calls[0].turn,
                      .movement = turn != NULL ? turn->movement : DICTIONARY_NONE,
                      .time_ms = rows->session.time_ms,
                      .stage_first = rows->stage_count};
    rows_close_turn(rows, &row);
  }
  if (!rows->proven && rows->session.outcome == DICTIONARY_NONE)
    rows->session.outcome =
        dictionary_add(rows->names, reader_is_owned(&r) ? STR("running") : STR("open"));
  reader_close(&r);
  return state;
}

enum rows_log rows_read(struct rows *rows, const struct store_ref *ref) {
  assert(rows != NULL);
  assert(rows->names != NULL);
  rows->session = (struct row_session){0};
  rows->spills = rows->proven = false;
  enum rows_log state = rows_pass(rows, ref, UINT64_MAX);
  if (state != ROWS_SOUND && state != ROWS_TORN)
    return state;
  if (store_ref_is_copy(ref, rows->session.id, &rows->err))
    return ROWS_FOREIGN; /* the session is counted under its own name */
  if (rows->spills) {
    const struct row_session session = rows->session;
    rows->proven = true;
    (void)rows_pass(rows, ref, rows->end);
    rows->session = session;
    rows->proven = false;
  } else {
    for (size_t i = 0; i < rows->count; i++)
      give_row(rows, &rows->list[i]);
  }
  if (rows->sink.ended != NULL)
    rows->sink.ended(rows->ctx, &rows->session);
  return state;
}

void rows_deinit(struct rows *rows) {
  buf_deinit(&rows->scratch);
  free(rows->list);
  free(rows->stages);
  free(rows->calls);
  free(rows->turns);
  *rows = (struct rows){0};
}
