/* Scenario files: what is refused, and which reply a call takes. */

#include "provider/scenario.h"
#include "support/data.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

TEST(mistakes_are_named) {
  DATA_ROWS("provider/scenario/mistakes_are_named.yaml", c, text, error) {
    struct scenario s;
    struct err err = {0};
    char whole[1200];
    if (scenario_parse(&s, "s.yaml", str_from(c.text), &err))
      fail_msg("%s: accepted", c.text);
    print_into(whole, sizeof whole, "%s:%d:%d: %s", err.file, err.line, err.column, err.text);
    if (strstr(whole, c.error) == NULL)
      fail_msg("%s: %s", c.text, whole);
    assert_int_equal(err.code, ERR_FILE);
  }
}

static const char text[] =
    "replies:\n"
    "  - {movement: fix, purpose: execute, contains: '2 of 5', text: a}\n"
    "  - {movement: fix, purpose: execute, times: 2, text: b}\n"
    "  - {stage: phase3_tag, text: c, times: 0}\n"
    "  - {movement: fix, purpose: reask, structured: {step: 1}}\n"
    "  - {movement: fix, purpose: judge, stage: ai_judge, error: {class: network}}\n"
    "  - {contains: '', movement: '', text: d}\n";

static const struct pick {
  const char *movement;
  enum call_purpose purpose;
  enum judge_stage stage;
  const char *prompt, *uses;
  long index;
} picks[] = {
    {"fix", PURPOSE_EXECUTE, STAGE_COUNT, "now 2 of 5 fail", "[]", 0},
    {"fix", PURPOSE_EXECUTE, STAGE_COUNT, "now 2 of 5 fail", "[1]", 1},
    {"fix", PURPOSE_EXECUTE, STAGE_COUNT, "3 of 5", "[]", 1},
    {"fix", PURPOSE_EXECUTE, STAGE_COUNT, "3 of 5", "[0, 1]", 1},
    {"fix", PURPOSE_EXECUTE, STAGE_COUNT, "3 of 5", "[0, 2]", -1},
    {"Fix", PURPOSE_EXECUTE, STAGE_COUNT, "2 of 5", "[]", -1},
    {"fix", PURPOSE_JUDGE, STAGE_PHASE3_TAG, "", "[0, 0, 1000]", 2},
    {"any", PURPOSE_JUDGE, STAGE_PHASE3_TAG, "", "[]", 2},
    {"fix", PURPOSE_REASK, STAGE_STRUCTURED_OUTPUT, "", "[]", 3},
    {"fix", PURPOSE_JUDGE, STAGE_STRUCTURED_OUTPUT, "", "[]", -1},
    {"fix", PURPOSE_JUDGE, STAGE_AI_JUDGE, "", "[]", 4},
    {"fix", PURPOSE_JUDGE, STAGE_AI_JUDGE, "", "[0, 0, 0, 0, 1]", -1},
    {"", PURPOSE_EXECUTE, STAGE_COUNT, "", "[]", 5},
};

TEST(the_first_that_fits_is_taken) {
  AUTO(scenario_deinit) struct scenario s;
  struct err err;
  if (!scenario_parse(&s, "s.yaml", str_from(text), &err))
    fail_msg("%s", err.text);
  assert_int_equal(strlen(s.sha256), 64);
  for (size_t i = 0; i < ARRAY_LEN(picks); i++) {
    const struct call_request request = {.movement = str_from(picks[i].movement),
                                         .purpose = picks[i].purpose,
                                         .stage = picks[i].stage,
                                         .prompt = str_from(picks[i].prompt)};
    json_auto_t *uses = json_loads(picks[i].uses, 0, NULL);
    long index = scenario_pick(&s, &request, uses, NULL);
    if (index != picks[i].index)
      fail_msg("pick %zu: %ld instead of %ld", i, index, picks[i].index);
  }
  const struct call_request request = {
      .movement = STR("fix"), .purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT, .prompt = STR("")};
  assert_int_equal(scenario_pick(&s, &request, NULL, NULL), 1);
}

TEST(json_is_read_as_well) {
  AUTO(scenario_deinit) struct scenario s;
  struct err err;
  assert_true(scenario_parse(&s, "s.json", STR("{\"replies\": [{\"text\": \"\\u00e9\"}]}"), &err));
  assert_string_equal(json_string_value(json_object_get(json_array_get(s.replies, 0), "text")),
                      "\xC3\xA9");
}

TEST(files_are_loaded) {
  struct scenario s;
  struct err err;
  assert_true(scenario_load(&s, SEGUE_SOURCE_DIR "/workflows/demo/scenario.yaml", &err));
  assert_true(json_array_size(s.replies) > 3);
  scenario_deinit(&s);
  assert_false(scenario_load(&s, SEGUE_SOURCE_DIR "/workflows/none.yaml", &err));
  assert_int_equal(err.code, ERR_NOT_FOUND);
  assert_false(scenario_load(&s, SEGUE_SOURCE_DIR, &err));
}
