/* Judges recorded turns again, from recorded replies. */
#include "audit/replay.h"

#include "audit/verified_reader.h"
#include "base/log.h"
#include "core/apply.h"
#include "core/decide.h"
#include "format/json_object.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 4 * TURN_JUDGE_CALLS }; /* for one judgment: each call, and each stage */

struct replay {
  struct chain_schemas schemas;
  uint64_t counts[REPLAY_KIND_COUNT];
};

const char *replay_kind_name(enum replay_kind kind) {
  static const char *const names[REPLAY_KIND_COUNT] = {
      [REPLAY_SAME] = "same", [REPLAY_METHOD] = "method", [REPLAY_RULE] = "rule",
      [REPLAY_ASKS] = "asks", [REPLAY_HUMAN] = "human",   [REPLAY_OLDER] = "older"};
  assert(kind < REPLAY_KIND_COUNT);
  return names[kind];
}

struct replay *replay_new(struct err *err) {
  struct replay *r = xcalloc(1, sizeof *r);
  if (chain_schemas_init(&r->schemas, err))
    return r;
  free(r);
  return NULL;
}

uint64_t replay_count(const struct replay *r, enum replay_kind kind) {
  assert(kind < REPLAY_KIND_COUNT);
  return r->counts[kind];
}

void replay_free(struct replay *r) {
  if (r == NULL)
    return;
  chain_schemas_deinit(&r->schemas);
  free(r);
}

/* --- one judgment --- */

struct rerun {
  const struct judging_turn *judging;
  struct chain_reply used[TURN_JUDGE_CALLS]; /* replies in the order of their questions */
  bool taken[TURN_JUDGE_CALLS];
  size_t count;
  json_t *stages;
};

/* Finds the reply to today's question: the first one left for this stage and vote. */
static bool rerun_reply(struct rerun *run, const struct chain_step *step) {
  for (size_t i = 0; i < run->judging->count; i++) {
    const struct chain_reply *reply = &run->judging->replies[i];
    if (run->taken[i] || reply->stage != step->stage || reply->vote != step->vote)
      continue;
    run->taken[i] = true;
    run->used[run->count++] = *reply;
    return true;
  }
  return false;
}

/* Judges a turn again. False: a question has no reply. */
static bool rerun_turn(const struct judging_turn *judging, struct replay_turn *out, char *why,
                       size_t why_bytes) {
  struct rerun run = {.judging = judging, .stages = json_array()};
  bool asks = false, over = false;
  for (int i = 0; i < STEPS_MAX && !over; i++) {
    struct chain_step step;
    chain_next(&judging->spec, run.stages, run.used, run.count, &step);
    if (step.action == CHAIN_CALL) {
      asks = over = !rerun_reply(&run, &step);
      if (asks)
        out->method_now = judge_stage_name(step.stage);
    } else if (step.action == CHAIN_STAGE) {
      json_array_append(run.stages, step.object);
    } else {
      if (step.action == CHAIN_VERDICT) {
        out->rule_now = step.rule->number;
        out->method_now = judge_stage_name(step.stage);
      }
      print_into(why, why_bytes, "%s", step.action == CHAIN_VERDICT ? "" : step.reason);
      over = true;
    }
    chain_step_deinit(&step);
  }
  json_decref(run.stages);
  return !asks;
}

static bool same_word(const char *a, const char *b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void replay_judgment(struct replay *r, const struct core *core, const json_t *record,
                            replay_fn on_turn, void *ctx) {
  char why[LIMIT_ERROR_TEXT_BYTES] = "";
  long number = (long)json_int_at(record, "turn");
  struct replay_turn told = {.turn = number,
                             .session = core->session,
                             .movement = json_string_value(json_at(record, "movement")),
                             .rule = (long)json_int_at(record, "rule"),
                             .method = json_string_value(json_at(record, "method")),
                             .why = why};
  const struct turn *turn = core->turns;
  struct judging_turn judging;
  while (turn != NULL && turn->id != number)
    turn = turn->next;
  if (told.method != NULL && strcmp(told.method, judge_stage_name(STAGE_HUMAN)) == 0) {
    told.kind = REPLAY_HUMAN;
  } else if (turn == NULL || !judging_of(&judging, core, turn, &r->schemas)) {
    return; /* the fold rejects the record */
  } else {
    if (!rerun_turn(&judging, &told, why, sizeof why))
      told.kind = REPLAY_ASKS;
    else if (told.rule != told.rule_now)
      told.kind = REPLAY_RULE;
    else
      told.kind = same_word(told.method, told.method_now) ? REPLAY_SAME : REPLAY_METHOD;
    judging_deinit(&judging);
    if (told.kind != REPLAY_SAME && json_int_at(record, "reader") < CHAIN_READER)
      told.kind = REPLAY_OLDER;
  }
  r->counts[told.kind]++;
  on_turn(ctx, &told);
}

/* --- logs --- */

bool replay_log(struct replay *r, const struct store_ref *ref, replay_fn on_turn, void *ctx,
                struct err *err) {
  struct verified_reader book;
  struct core core;
  json_t *record;
  bool ok = true;
  if (!verified_open(&book, ref, false, err))
    return false;
  const struct core_source source = {.ctx = &book, .blob = verified_blob};
  core_init(&core);
  while (ok && (record = verified_next(&book)) != NULL) {
    const char *type = json_string_value(json_at(record, "type"));
    if (type != NULL && strcmp(type, "judgment") == 0)
      replay_judgment(r, &core, record, on_turn, ctx);
    ok = core_apply_json(&core, record, NULL, &source, err);
    if (ok && book.records == 1) /* a copy must not count a second time */
      ok = !store_ref_is_copy(ref, core.session, err);
    json_decref(record);
  }
  if (ok && book.state == VERIFIED_DAMAGED)
    ok = err_set(err, ERR_CORRUPT, "record %llu: %.600s", (unsigned long long)book.records + 1,
                 book.damage.text);
  core_deinit(&core);
  verified_close(&book);
  return ok;
}
