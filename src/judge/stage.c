/* Names the stages of judging and their outcomes. */
#include "judge/stage.h"

#include <assert.h>

static const struct {
  const char *name, *match_method, *words;
  bool listable;
} stages[STAGE_COUNT] = {
    [STAGE_AUTO_SELECT] = {"auto_select", "auto_select", "only one rule", false},
    [STAGE_AGGREGATE] = {"aggregate", "aggregate", "from its parts", false},
    [STAGE_WHEN] = {"when", "when", "an expression", false},
    [STAGE_STRUCTURED_OUTPUT] = {"structured_output", "structured_output", "judge's value", true},
    [STAGE_PHASE3_TAG] = {"phase3_tag", "tag_fallback", "tag in the judge's reply", true},
    [STAGE_PHASE1_TAG] = {"phase1_tag", "tag_fallback", "tag in the agent's reply", true},
    [STAGE_AI_JUDGE] = {"ai_judge", "ai_judge", "asked again", true},
    [STAGE_AI_JUDGE_FALLBACK] = {"ai_judge_fallback", "ai_judge", "asked another judge", false},
    [STAGE_HUMAN] = {"human", "human", "a person", false},
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

struct str judge_stage_words(struct str name) {
  if (str_eq_c(name, "tag_fallback"))
    return STR("tag in the reply");
  if (str_eq_c(name, "rule_no_match"))
    return STR("no rule matched");
  if (str_eq_c(name, "judge_unavailable"))
    return STR("no judge answered");
  for (int i = 0; i < STAGE_COUNT; i++)
    if (str_eq_c(name, stages[i].name))
      return str_from(stages[i].words);
  return name;
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
