/* Takes from a record what a row of an audit needs. */
#include "audit/rows_internal.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "core/state.h"
#include "json/pull.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define IS(key, literal)                                                                           \
  ((key).n == sizeof(literal) - 1 && memcmp((key).p, literal, sizeof(literal) - 1) == 0)

static const int64_t most = (int64_t)1 << 40; /* a log may hold any number */

/* --- words and numbers --- */

static uint32_t rows_name(struct rows *rows, struct pull *at) {
  struct str raw;
  if (!pull_text(at, &raw))
    return NAMES_NONE;
  return names_add(rows->names, pull_decode(raw, &rows->scratch));
}

static void take_count(struct pull *at, int64_t *out) {
  int64_t n;
  if (pull_integer(at, &n) && n >= 0 && n <= most)
    *out = n;
}

static void rows_long(struct pull *at, long *out) {
  int64_t n = 0;
  take_count(at, &n);
  *out = (long)n;
}

static int64_t time_of(struct str raw) {
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

/* As core/spend.c counts it. */
static void take_usage(struct pull *at, struct row_use *use) {
  struct str key;
  double usd = -1;
  if (!pull_open(at, '{'))
    return;
  while (pull_key(at, &key)) {
    if (IS(key, "input"))
      take_count(at, &use->input);
    else if (IS(key, "output"))
      take_count(at, &use->output);
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

bool rows_head(struct str line, struct rows_head *head) {
  struct pull at = pull_of(line);
  struct str key;
  int seen = 0;
  *head = (struct rows_head){.type = {"", 0}, .ts = {"", 0}};
  if (!pull_open(&at, '{'))
    return false;
  while (seen < 4 && pull_key(&at, &key)) {
    seen++;
    if (IS(key, "v"))
      take_count(&at, &head->v);
    else if (IS(key, "seq"))
      take_count(&at, &head->seq);
    else if (IS(key, "ts"))
      (void)pull_text(&at, &head->ts);
    else if (IS(key, "type"))
      (void)pull_text(&at, &head->type);
    else {
      pull_skip(&at);
      seen--;
    }
  }
  return !at.bad;
}

/* --- turns and calls --- */

static struct rows_turn *turn_find(struct rows *rows, long turn) {
  for (size_t i = rows->turn_count; i > 0; i--)
    if (rows->turns[i - 1].turn == turn)
      return &rows->turns[i - 1];
  return NULL;
}

static struct rows_call *call_find(struct rows *rows, long turn, long call) {
  for (size_t i = rows->call_count; i > 0; i--)
    if (rows->calls[i - 1].call == call && rows->calls[i - 1].turn == turn)
      return &rows->calls[i - 1];
  return NULL;
}

/* A judged turn has no more calls. */
static void turn_forget(struct rows *rows, long turn) {
  size_t kept = 0;
  for (size_t i = 0; i < rows->call_count; i++)
    if (rows->calls[i].turn != turn)
      rows->calls[kept++] = rows->calls[i];
  rows->call_count = kept;
  kept = 0;
  for (size_t i = 0; i < rows->turn_count; i++)
    if (rows->turns[i].turn != turn)
      rows->turns[kept++] = rows->turns[i];
  rows->turn_count = kept;
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
  if (rows->turn_count == rows->turn_room) {
    rows->turn_room = rows->turn_room ? rows->turn_room * 2 : 16;
    rows->turns = xrealloc(rows->turns, rows->turn_room * sizeof *rows->turns);
  }
  rows->turns[rows->turn_count++] = turn;
  return ROWS_TAKEN;
}

static uint32_t schema_name(struct rows *rows, struct str raw) {
  char hash[SHA256_HEX];
  sha256_hex(raw.p, raw.n, NULL, 0, hash);
  return names_add(rows->names, (struct str){hash, 12});
}

static enum rows_taken take_call_start(struct rows *rows, struct pull *at) {
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
    else {
      call.judges |= IS(key, "stage");
      pull_skip(at);
    }
  }
  if (rows->wants_schema && schema.n > 0 && !call.judges)
    call.schema = schema_name(rows, schema);
  struct rows_call *known = call_find(rows, call.turn, call.call);
  if (known != NULL) { /* another attempt, perhaps of another provider */
    call.use = known->use;
    *known = call;
    return ROWS_TAKEN;
  }
  if (rows->call_count >= LIMIT_AUDIT_OPEN_COUNT)
    return ROWS_BEYOND;
  if (rows->call_count == rows->call_room) {
    rows->call_room = rows->call_room ? rows->call_room * 2 : 16;
    rows->calls = xrealloc(rows->calls, rows->call_room * sizeof *rows->calls);
  }
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
      take_count(at, &use.ms);
    else if (IS(key, "usage"))
      take_usage(at, &use);
    else
      pull_skip(at);
  }
  struct rows_call *call = call_find(rows, turn, number);
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

/* --- judgments --- */

/* The movement's own calls: who worked, with which schema, what it cost. */
static void add_work(struct rows *rows, struct row *row) {
  for (size_t i = 0; i < rows->call_count; i++) {
    const struct rows_call *call = &rows->calls[i];
    if (call->turn != row->turn || call->judges)
      continue;
    row_use_add(&row->work, &call->use);
    if (row->worker == NAMES_NONE) {
      row->worker = call->provider;
      row->worker_model = call->model;
    }
    if (row->schema == NAMES_NONE)
      row->schema = call->schema;
  }
}

static enum rows_taken rows_value(struct rows *rows, struct pull *at,
                                  const struct rows_head *head) {
  struct row row = {.kind = ROW_VALUE, .time_ms = time_of(head->ts)};
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
      take_count(at, &answers);
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

/* Adds the calls that a stage lists. False: they are too many. */
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
    const struct rows_call *call = call_find(rows, turn, number);
    if (call == NULL)
      continue;
    stage->provider = call->provider;
    stage->model = call->model;
    row_use_add(&stage->use, &call->use);
  }
  stage->asked = n > 0;
  return true;
}

struct stage_said { /* members that may come before or after the calls */
  struct str stage, error;
  struct str class;
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
    (void)snprintf(text, sizeof text, "%s:%.*s", word,
                   (int)(said->class.n < 60 ? said->class.n : 60), said->class.p);
    stage->reason = names_add(rows->names, str_from(text));
  } else {
    stage->reason = names_add(rows->names, str_from(word));
  }
  if (said->provider != NAMES_NONE) {
    stage->provider = said->provider;
    stage->model = said->model;
  }
}

static struct str first_text(struct pull *at) {
  struct str first = {"", 0}, raw;
  if (!pull_open(at, '['))
    return first;
  while (pull_item(at))
    if (pull_text(at, &raw) && first.n == 0)
      first = raw;
  return first;
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
      stage->stage = names_add(rows->names, said.stage);
    } else if (IS(key, "outcome")) {
      if (pull_text(at, &text) && stage_outcome_from_name(text, &outcome))
        stage->outcome = (uint8_t)outcome;
    } else if (IS(key, "class"))
      (void)pull_text(at, &said.class);
    else if (IS(key, "calls"))
      few = take_stage_calls(rows, at, turn, stage);
    else if (IS(key, "errors"))
      said.error = first_text(at);
    else if (IS(key, "provider"))
      said.provider = rows_name(rows, at);
    else if (IS(key, "model"))
      said.model = rows_name(rows, at);
    else if (IS(key, "none"))
      said.none = pull_true(at);
    else if (IS(key, "rule") || IS(key, "vote")) {
      int64_t n = 0;
      bool is_rule = IS(key, "rule");
      take_count(at, &n);
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
    if (rows->stage_count == rows->stage_room) {
      rows->stage_room = rows->stage_room ? rows->stage_room * 2 : 64;
      rows->stages = xrealloc(rows->stages, rows->stage_room * sizeof *rows->stages);
    }
    struct row_stage *stage = &rows->stages[rows->stage_count];
    if (!take_stage(rows, at, row->turn, stage))
      return false;
    row->ambiguous |= stage->outcome == OUTCOME_AMBIGUOUS;
    rows->stage_count++;
    row->stage_count++;
  }
  return true;
}

/* The judge of logs that do not name him: who was asked by the stage that decided, or was last. */
static void find_judge(const struct rows *rows, struct row *row) {
  for (size_t i = row->stage_count; i > 0 && row->provider == NAMES_NONE; i--) {
    const struct row_stage *stage = &rows->stages[row->stage_first + i - 1];
    bool decided = stage->stage == row->method;
    if (row->method == NAMES_NONE ? stage->asked : decided) {
      row->provider = stage->provider;
      row->model = stage->model;
    }
  }
}

/* The turn's number and the stages come apart: the number first, whatever the order. */
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

static enum rows_taken take_judgment(struct rows *rows, struct pull *at,
                                     const struct rows_head *head) {
  struct row row = {.kind = ROW_JUDGMENT, .time_ms = time_of(head->ts), .turn = rows_turn_of(*at)};
  int64_t rule = 0;
  struct str key;
  row.stage_first = rows->stage_count;
  while (pull_key(at, &key)) {
    if (IS(key, "movement"))
      row.movement = rows_name(rows, at);
    else if (IS(key, "rule"))
      take_count(at, &rule);
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
    else if (IS(key, "ambiguous"))
      row.ambiguous |= pull_true(at);
    else if (!IS(key, "stages"))
      pull_skip(at);
    else if (!take_stages(rows, at, &row))
      return ROWS_BEYOND;
  }
  row.rule = (uint32_t)(rule > UINT32_MAX ? UINT32_MAX : rule);
  find_judge(rows, &row);
  add_work(rows, &row);
  turn_forget(rows, row.turn);
  rows_emit(rows, &row);
  return ROWS_TAKEN;
}

/* --- the session --- */

static uint32_t workflow_name(struct rows *rows, struct pull *at) {
  uint32_t name = NAMES_NONE;
  struct str key;
  if (!pull_open(at, '{'))
    return name;
  while (pull_key(at, &key)) {
    if (IS(key, "name"))
      name = rows_name(rows, at);
    else
      pull_skip(at);
  }
  return name;
}

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
    (void)snprintf(again->session, sizeof again->session, STR_FMT, STR_ARG(id));
}

static void rows_config(struct rows *rows, struct pull *at) {
  struct str key;
  if (!pull_open(at, '{'))
    return;
  while (pull_key(at, &key)) {
    if (IS(key, "rejudges"))
      take_again(rows, at);
    else
      pull_skip(at);
  }
}

static enum rows_taken take_session_start(struct rows *rows, struct pull *at,
                                          const struct rows_head *head) {
  struct str key, id = {"", 0};
  rows->session.time_ms = time_of(head->ts);
  while (pull_key(at, &key)) {
    if (IS(key, "session"))
      (void)pull_text(at, &id);
    else if (IS(key, "workflow"))
      rows->session.workflow = workflow_name(rows, at);
    else if (IS(key, "config"))
      rows_config(rows, at);
    else
      pull_skip(at);
  }
  if (id.n < sizeof rows->session.id)
    (void)snprintf(rows->session.id, sizeof rows->session.id, STR_FMT, STR_ARG(id));
  return ROWS_TAKEN;
}

static struct str error_class(struct pull *at) {
  struct str key, class = {"", 0};
  if (!pull_open(at, '{'))
    return class;
  while (pull_key(at, &key)) {
    if (IS(key, "class"))
      (void)pull_text(at, &class);
    else
      pull_skip(at);
  }
  return class;
}

/* A session_stop or session_end: how it stands, and why, with the class of an error. */
static enum rows_taken take_session_end(struct rows *rows, struct pull *at,
                                        const struct rows_head *head, bool stop) {
  struct str key, word = {"", 0}, class = {"", 0};
  struct buf cause = {.max = LIMIT_AUDIT_NAME_BYTES};
  while (pull_key(at, &key)) {
    if (IS(key, "reason") && stop)
      (void)pull_text(at, &word);
    else if (IS(key, "outcome") && !stop)
      (void)pull_text(at, &word);
    else if (IS(key, "class"))
      (void)pull_text(at, &class);
    else if (IS(key, "error"))
      class = error_class(at);
    else
      pull_skip(at);
  }
  buf_printf(&cause, STR_FMT "%s" STR_FMT, STR_ARG(word), class.n > 0 ? ":" : "", STR_ARG(class));
  rows->session.cause = names_add(rows->names, buf_view(&cause));
  rows->session.outcome = names_add(rows->names, stop ? str_from(session_stop_status(word)) : word);
  rows->session.time_ms = time_of(head->ts);
  rows->session.unavailable_stops += stop && IS(word, "judge_unavailable");
  buf_deinit(&cause);
  return ROWS_TAKEN;
}

static enum rows_taken take_session_resume(struct rows *rows) {
  rows->session.cause = NAMES_NONE;
  rows->session.outcome = NAMES_NONE;
  return ROWS_TAKEN;
}

static enum rows_taken take_type(struct rows *rows, struct pull *at, const struct rows_head *head) {
  if (IS(head->type, "judgment"))
    return take_judgment(rows, at, head);
  if (IS(head->type, "call_start"))
    return take_call_start(rows, at);
  if (IS(head->type, "call_end"))
    return take_call_end(rows, at);
  if (IS(head->type, "turn_start"))
    return take_turn_start(rows, at);
  if (IS(head->type, "check"))
    return take_check(rows, at);
  if (IS(head->type, "structured"))
    return rows_value(rows, at, head);
  if (rows->proven) /* the first pass took the session */
    return ROWS_TAKEN;
  if (IS(head->type, "session_start"))
    return take_session_start(rows, at, head);
  if (IS(head->type, "session_resume"))
    return take_session_resume(rows);
  bool stop = IS(head->type, "session_stop");
  if (stop || IS(head->type, "session_end"))
    return take_session_end(rows, at, head, stop);
  return ROWS_TAKEN;
}

enum rows_taken rows_take(struct rows *rows, struct str line, const struct rows_head *head) {
  struct pull at = pull_of(line);
  assert(rows != NULL);
  if (!pull_open(&at, '{'))
    return ROWS_BAD;
  enum rows_taken taken = take_type(rows, &at, head);
  return at.bad && taken == ROWS_TAKEN ? ROWS_BAD : taken;
}
