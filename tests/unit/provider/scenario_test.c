/* Scenario files: what is refused, and which reply a call takes. */

#include "provider/scenario.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const struct bad {
  const char *text, *error;
} bads[] = {
    {"", "s.yaml"},
    {"- a\n", "replies"},
    {"[]", "replies:"},
    {"replies: 3", "replies:"},
    {"replies: {a: b}", "replies:"},
    {"replies: []\nextra: 1", "unknown key \"extra\""},
    {"replies: [hello]", "reply 1 is not a map"},
    {"replies: [{text: a}, {txt: b}]",
     "s.yaml:1:23: reply 2: unknown key \"txt\": did you mean \"text\"?"},
    {"replies: [{movement: x}]", "the reply is empty"},
    {"replies: [{text: a, movement: [x]}]", "movement must be a text"},
    {"replies: [{text: 1}]", "text must be a text"},
    {"replies: [{text: a, times: -1}]", "s.yaml:1:28: reply 1: times must be"},
    {"replies: [{text: a, times: many}]", "times must be"},
    {"replies: [{text: a, delay_ms: 1.5}]", "delay_ms must be"},
    {"replies: [{text: a, delay_ms: 99999999999}]", "delay_ms must be"},
    {"replies: [{text: a, purpose: guess}]", "purpose \"guess\" is unknown"},
    {"replies: [{text: a, stage: tag}]", "stage \"tag\" is unknown"},
    {"replies: [{error: bad}]", "error.class must be one of"},
    {"replies: [{error: {class: none}}]", "error.class must be one of"},
    {"replies: [{error: {class: network, retry_after_ms: soon}}]", "retry_after_ms must be"},
    {"replies:\n  - text: a\n  - error:\n      class: network\n      retry: 1\n",
     "s.yaml:5:7: reply 2: unknown key \"retry\""},
    {"replies:\n  - error:\n      class: none\n", "s.yaml:3:14: reply 1: error.class"},
    {"replies: [{error: {class: network, message: 3}}]", "error.message must be a text"},
    {"replies:\n  - text: a\n    write:\n      x: [1]\n", "s.yaml:4:10: reply 1: the content"},
    {"replies:\n  - text: a\n  - movement: x\n", "s.yaml:3:5: reply 2: the reply is empty"},
    {"extra: 1\nreplies: []\n", "s.yaml:1:1: unknown key"},
    {"replies: [{text: a, write: x}]", "write must be a map"},
    {"replies: [{text: a, write: {x: 1}}]", "the content of x must be a text"},
    {"replies: [{text: a, text: b}]", "text"},
    {"replies: [", "s.yaml:1"},
    {"{\"replies\": [{\"text\": \"a\", \"text\": \"b\"}]}", "s.yaml:1"},
    {"{\"replies\": [{\"text\": \"a\"}]} more", "s.yaml:1"},
    {"{\"replies\": [{\"text\": \"a\"}]", "s.yaml:"},
    {"{\"replies\": [{\"txt\": \"a\"}]}", "s.yaml:1:15: reply 1: unknown key \"txt\""},
    {"{\"replies\": [{\"text\": \"a\", \"purpose\": \"judge\\u0000\"}]}", "a NUL character"},
    {"{\"replies\": [{\"text\": \"a\", \"structured\": {\"b\": [\"c\", \"\\u0000\"]}}]}",
     "a NUL character"},
    {"{\"replies\": [{\"text\": \"a\", \"write\": {\"b\\u0000\": \"c\"}}]}", "a NUL character"},
};

TEST(mistakes_are_named) {
  for (size_t i = 0; i < ARRAY_LEN(bads); i++) {
    struct scenario s;
    struct err err = {0};
    char whole[1200];
    if (scenario_parse(&s, "s.yaml", str_from(bads[i].text), &err))
      fail_msg("%s: accepted", bads[i].text);
    print_into(whole, sizeof whole, "%s:%d:%d: %s", err.file, err.line, err.column, err.text);
    if (strstr(whole, bads[i].error) == NULL)
      fail_msg("%s: %s", bads[i].text, whole);
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
