/* The names of stages and outcomes: one table, there and back. */
#include "judge/stage.h"
#include "support/test.h"

TEST(names_go_there_and_back) {
  enum judge_stage stage;
  enum stage_outcome outcome;
  for (int i = 0; i < STAGE_COUNT; i++) {
    assert_true(judge_stage_from_name(str_from(judge_stage_name((enum judge_stage)i)), &stage));
    assert_int_equal(stage, i);
  }
  for (int i = 0; i < OUTCOME_COUNT; i++) {
    assert_true(
        stage_outcome_from_name(str_from(stage_outcome_name((enum stage_outcome)i)), &outcome));
    assert_int_equal(outcome, i);
  }
  assert_false(judge_stage_from_name(STR("Phase3_tag"), &stage));
  assert_false(judge_stage_from_name(STR(""), &stage));
  assert_false(stage_outcome_from_name(STR("tag_fallback"), &outcome));
}

TEST(match_methods) {
  static const struct {
    enum judge_stage stage;
    const char *match_method;
    bool listable;
  } cases[STAGE_COUNT] = {
      {STAGE_AUTO_SELECT, "auto_select", false},
      {STAGE_AGGREGATE, "aggregate", false},
      {STAGE_WHEN, "when", false},
      {STAGE_STRUCTURED_OUTPUT, "structured_output", true},
      {STAGE_PHASE3_TAG, "tag_fallback", true},
      {STAGE_PHASE1_TAG, "tag_fallback", true},
      {STAGE_AI_JUDGE, "ai_judge", true},
      {STAGE_AI_JUDGE_FALLBACK, "ai_judge", false},
      {STAGE_HUMAN, "human", false},
  };
  for (size_t i = 0; i < STAGE_COUNT; i++) {
    assert_string_equal(judge_stage_match_method(cases[i].stage), cases[i].match_method);
    assert_int_equal(judge_stage_is_listable(cases[i].stage), cases[i].listable);
  }
}
