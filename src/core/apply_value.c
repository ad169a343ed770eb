/* Folds what came of an answer: its checks, its value and the stages of its judgment. */
#include "base/log.h"
#include "core/fold.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <stdlib.h>

bool apply_check(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  const struct call *call =
      turn ? turn_call(turn, (long)json_integer_value(json_at(f->record->body, "call"))) : NULL;
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_EXECUTING || fold_structured(f, turn) == NULL)
    return fold_bad(f, "its turn has no value to check");
  if (call == NULL || !call_generates(call) ||
      (call->state != CALL_DONE && call->state != CALL_FAILED))
    return fold_bad(f, "its call brought nothing to check");
  json_int_t number = json_integer_value(json_at(f->record->body, "number"));
  if (number != (json_int_t)json_array_size(turn->checks) + 1)
    return fold_bad(f, "its number is not the next one");
  json_array_append(turn->checks, f->record->body);
  return true;
}

/* Folds how one round of making a value ended: with a value, or without one and what follows from
 * that. */
bool apply_structured(const struct fold *f) {
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

bool apply_stage(const struct fold *f) {
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

bool apply_judgment(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_JUDGING)
    return fold_bad(f, "its turn is judged already");
  const struct movement *m = &f->core->workflow->movements[turn->movement];
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
  }
  turn->rule = (int)rule;
  turn->phase = TURN_JUDGED;
  return true;
}
