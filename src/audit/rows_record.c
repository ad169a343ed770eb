/* Takes from a record what a row of an audit needs. */
#include "audit/rows_internal.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "core/state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const int64_t most = (int64_t)1 << 40; /* a log may hold any number */

/* --- words and numbers --- */

uint32_t rows_name(struct rows *rows, struct pull *at) {
  struct str raw;
  if (!pull_text(at, &raw))
    return NAMES_NONE;
  return names_add(rows->names, pull_decode(raw, &rows->scratch));
}

void rows_count(struct pull *at, int64_t *out) {
  int64_t n;
  if (pull_integer(at, &n) && n >= 0 && n <= most)
    *out = n;
}

void rows_long(struct pull *at, long *out) {
  int64_t n = 0;
  rows_count(at, &n);
  *out = (long)n;
}

int64_t rows_time_of(struct str raw) {
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

bool rows_head(struct str line, struct rows_head *head) {
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

struct rows_call *rows_call_find(struct rows *rows, long turn, long call) {
  for (size_t i = rows->call_count; i > 0; i--)
    if (rows->calls[i - 1].call == call && rows->calls[i - 1].turn == turn)
      return &rows->calls[i - 1];
  return NULL;
}

void rows_turn_forget(struct rows *rows, long turn) {
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
    return NAMES_NONE;
  sha256_hex(raw.p, raw.n, NULL, 0, hash);
  uint32_t name = names_add(rows->names, (struct str){hash, 12});
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
    else {
      call.judges |= IS(key, "stage");
      pull_skip(at);
    }
  }
  if (rows->wants_schema && schema.n > 0 && !call.judges)
    call.schema = schema_name(rows, schema, head->seq);
  struct rows_call *known = rows_call_find(rows, call.turn, call.call);
  if (known != NULL) { /* another attempt, perhaps at another provider */
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

/* --- values --- */

void rows_add_work(struct rows *rows, struct row *row) {
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
  rows_add_work(rows, &row);
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
  rows->session.time_ms = rows_time_of(head->ts);
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

/* Takes a session_stop or session_end: the status, and its reason with the class of an error. */
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
  rows->session.time_ms = rows_time_of(head->ts);
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
  if (IS(head->type, "session_resume"))
    return take_session_resume(rows);
  bool stop = IS(head->type, "session_stop");
  if (stop || IS(head->type, "session_end"))
    return take_session_end(rows, at, head, stop);
  return ROWS_TAKEN;
}

enum rows_taken rows_take(struct rows *rows, const struct rows_head *head) {
  struct pull at = head->rest;
  assert(rows != NULL);
  enum rows_taken taken = take_type(rows, &at, head);
  return at.bad && taken == ROWS_TAKEN ? ROWS_BAD : taken;
}
