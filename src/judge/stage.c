/* Names the stages of judging and their outcomes. */
#include "judge/stage.h"

#include <assert.h>

static const struct {
  const char *name, *match_method;
  bool listable;
} stages[STAGE_COUNT] = {
    [STAGE_AUTO_SELECT] = {"auto_select", "auto_select", false},
    [STAGE_AGGREGATE] = {"aggregate", "aggregate", false},
    [STAGE_WHEN] = {"when", "when", false},
    [STAGE_STRUCTURED_OUTPUT] = {"structured_output", "structured_output", true},
    [STAGE_PHASE3_TAG] = {"phase3_tag", "tag_fallback", true},
    [STAGE_PHASE1_TAG] = {"phase1_tag", "tag_fallback", true},
    [STAGE_AI_JUDGE] = {"ai_judge", "ai_judge", true},
    [STAGE_AI_JUDGE_FALLBACK] = {"ai_judge_fallback", "ai_judge", false},
    [STAGE_HUMAN] = {"human", "human", false},
};

static const char *const outcomes[OUTCOME_COUNT] = {
    [OUTCOME_MATCHED] = "matched",
    [OUTCOME_NO_MATCH] = "no_match",
    [OUTCOME_UNREADABLE] = "unreadable",
    [OUTCOME_INVALID] = "invalid",
    [OUTCOME_OUT_OF_RANGE] = "out_of_range",
    [OUTCOME_HIDDEN] = "hidden",
    [OUTCOME_ERROR] = "error",
    [OUTCOME_AMBIGUOUS] = "ambiguous",
    [OUTCOME_SKIPPED] = "skipped",
};

const char *judge_stage_name(enum judge_stage stage) {
  assert(stage < STAGE_COUNT);
  return stages[stage].name;
}

const char *judge_stage_match_method(enum judge_stage stage) {
  assert(stage < STAGE_COUNT);
  return stages[stage].match_method;
}

const char *stage_outcome_name(enum stage_outcome outcome) {
  assert(outcome < OUTCOME_COUNT);
  return outcomes[outcome];
}

bool judge_stage_from_name(struct str name, enum judge_stage *out) {
  for (int i = 0; i < STAGE_COUNT; i++)
    if (str_eq_c(name, stages[i].name)) {
      *out = (enum judge_stage)i;
      return true;
    }
  return false;
}

bool stage_outcome_from_name(struct str name, enum stage_outcome *out) {
  int i = str_index(name, outcomes, OUTCOME_COUNT);
  if (i >= 0)
    *out = (enum stage_outcome)i;
  return i >= 0;
}

bool judge_stage_is_listable(enum judge_stage stage) {
  assert(stage < STAGE_COUNT);
  return stages[stage].listable;
}
