/* Takes from the record of a judgment what its row needs: the stages, and which models were
 * asked. */
#include "audit/rows_internal.h"
#include "base/limits.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

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

/* Adds the calls that a stage lists. False: there are too many. */
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
    const struct rows_call *call = rows_call_find(rows, turn, number);
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

static bool says_missing(struct str error) {
  return IS(error, "no JSON in the reply") ||
         strcmp(rows_reason(STR(""), OUTCOME_UNREADABLE, false, error), "no_json") != 0;
}

/* Returns the text that says why nothing was read: of several answers that of the last one. */
static struct str missing_text(struct pull *at) {
  struct str text = {"", 0}, raw;
  if (!pull_open(at, '['))
    return text;
  while (pull_item(at))
    if (pull_text(at, &raw) && (text.n == 0 || says_missing(raw)))
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
      stage->stage = names_add(rows->names, said.stage);
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

/* Finds the judge of a log that does not name it: the model that the deciding stage asked, or else
 * the last one asked. */
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

/* True if models were asked and no stage could use an answer: that is no verdict. */
static bool is_undecided(const struct rows *rows, const struct row *row) {
  bool asked = false, readable = false;
  for (size_t i = 0; i < row->stage_count; i++) {
    const struct row_stage *stage = &rows->stages[row->stage_first + i];
    asked |= stage->asked;
    readable |= stage->readable && stage->vote == 0;
  }
  return row->rule == 0 && asked && !readable;
}

/* Finds who worked on a turn that was judged before, whose calls are forgotten; keeps who worked on
 * one that found no rule. */
static void keep_worker(struct rows *rows, struct row *row) {
  struct rows_unruled *kept = rows->unruled;
  for (size_t i = 0; i < ROWS_UNRULED_COUNT && i < rows->unruled_count; i++)
    if (kept[i].turn == row->turn && row->worker == NAMES_NONE) {
      row->worker = kept[i].worker;
      row->worker_model = kept[i].worker_model;
      row->schema = kept[i].schema;
    }
  if (row->rule == 0)
    kept[rows->unruled_count++ % ROWS_UNRULED_COUNT] =
        (struct rows_unruled){row->turn, row->worker, row->worker_model, row->schema};
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

enum rows_taken rows_judgment(struct rows *rows, struct pull *at, const struct rows_head *head) {
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
    else if (IS(key, "ambiguous"))
      row.ambiguous |= pull_true(at);
    else if (!IS(key, "stages"))
      pull_skip(at);
    else if (!take_stages(rows, at, &row))
      return ROWS_BEYOND;
  }
  row.rule = (uint32_t)(rule > UINT32_MAX ? UINT32_MAX : rule);
  row.undecided = is_undecided(rows, &row);
  find_judge(rows, &row);
  rows_add_work(rows, &row);
  keep_worker(rows, &row);
  rows_turn_forget(rows, row.turn);
  rows_emit(rows, &row);
  return ROWS_TAKEN;
}
