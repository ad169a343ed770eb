/* Reads judges' replies: each row says what a careful person takes it for. */
#include "extract/whole_reply.h"
#include "json/scan.h"

#include "conformance/extract_check.h"
#include "support/test.h"

static const char *outcome_name(enum whole_reply_outcome outcome) {
  static const char *const names[] = {"valid", "refused",     "ambiguous", "words",
                                      "echo",  "placeholder", "broken",    "nothing"};
  return names[outcome];
}

static const char judgment[] =
    "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":\"integer\"},\"reason\":{\"type\":"
    "\"string\"}},\"required\":[\"step\",\"reason\"],\"additionalProperties\":false}";

#define ONE   "{\"reason\": \"all pass\", \"step\": 1}"
#define TWO   "{\"reason\": \"two fail\", \"step\": 2}"
#define FENCE "```"

static const struct row {
  const char *reply, *report; /* report NULL: none is given */
  enum whole_reply_outcome outcome;
  int step; /* of a valid value */
} rows[] = {
    /* one value and nothing else */
    {TWO, NULL, WHOLE_REPLY_VALID, 2},
    {"\xEF\xBB\xBF\n  " TWO "\n\n", NULL, WHOLE_REPLY_VALID, 2},
    {FENCE "json\n" TWO "\n" FENCE, NULL, WHOLE_REPLY_VALID, 2},
    {FENCE FENCE "\n" TWO "\n" FENCE FENCE, NULL, WHOLE_REPLY_VALID, 2},
    {"~~~\n" TWO "\n~~~\n", NULL, WHOLE_REPLY_VALID, 2},
    {"<think>" ONE "?</think>\n" TWO, NULL, WHOLE_REPLY_VALID, 2},
    {"[THINK]hm[/THINK]<think>hm</think>" TWO, NULL, WHOLE_REPLY_VALID, 2},
    {"<tool_call>\n" TWO "\n</tool_call>", NULL, WHOLE_REPLY_VALID, 2},
    {"<answer>" FENCE "json\n" TWO "\n" FENCE "</answer>", NULL, WHOLE_REPLY_VALID, 2},
    {"[" TWO "]", NULL, WHOLE_REPLY_VALID, 2},
    {"\"{\\\"reason\\\": \\\"two fail\\\", \\\"step\\\": 2}\"", NULL, WHOLE_REPLY_VALID, 2},
    {"{\"name\": \"judge\", \"arguments\": " TWO "}", NULL, WHOLE_REPLY_VALID, 2},
    {"{\"name\": \"judge\", \"arguments\": \"{\\\"reason\\\": \\\"f\\\", \\\"step\\\": 2}\"}", NULL,
     WHOLE_REPLY_VALID, 2},
    {FENCE "python\n" TWO "\n" FENCE, NULL, WHOLE_REPLY_VALID, 2},
    /* a value among words is not the answer, whatever they say */
    {"Two tests fail, so:\n\n" TWO, NULL, WHOLE_REPLY_WORDS, 0},
    {"Verdict: " TWO, NULL, WHOLE_REPLY_WORDS, 0},
    {TWO "\n\nThank you.", NULL, WHOLE_REPLY_WORDS, 0},
    {TWO " [REVIEW:2]", NULL, WHOLE_REPLY_WORDS, 0},
    {"If all passed, I would say:\n" ONE, NULL, WHOLE_REPLY_WORDS, 0},
    {"\xE5\xA0\xB1\xE5\x91\x8A\xE3\x81\xAF " ONE, NULL, WHOLE_REPLY_WORDS, 0},
    {"<!-- " ONE " -->", NULL, WHOLE_REPLY_WORDS, 0},
    {TWO "\n\nAgain:\n\n" TWO, NULL, WHOLE_REPLY_WORDS, 0},
    {"My answer:\n{\"step\": 2}", NULL, WHOLE_REPLY_WORDS, 0},
    /* echoes, whole replies too */
    {ONE, "All done.\n" ONE, WHOLE_REPLY_ECHO, 0},
    {ONE, "All done. {\"step\":1,\"reason\":\"all pass\"}", WHOLE_REPLY_ECHO, 0},
    {FENCE "json\n" ONE "\n" FENCE, "x \"{\\\"reason\\\":\\\"all pass\\\",\\\"step\\\":1}\" y",
     WHOLE_REPLY_ECHO, 0},
    {"{\n  \"reason\": \"all pass\",\n  \"step\": 1\n}", "x\n" FENCE "\n" ONE "\n" FENCE,
     WHOLE_REPLY_ECHO, 0},
    {TWO, "Report: " ONE, WHOLE_REPLY_VALID, 2},
    /* two that differ, a key given twice */
    {TWO "\n\nThe report had:\n\n" ONE, NULL, WHOLE_REPLY_AMBIGUOUS, 0},
    {"First " ONE ", then " TWO, NULL, WHOLE_REPLY_AMBIGUOUS, 0},
    {TWO "\n{\"step\": 1}", NULL, WHOLE_REPLY_AMBIGUOUS, 0},
    {"{\"reason\": \"x\", \"step\": 2, \"step\": 1}", NULL, WHOLE_REPLY_AMBIGUOUS, 0},
    /* refused, placeholders, drafts, nothing */
    {"{\"reason\": \"x\", \"step\": \"2\"}", NULL, WHOLE_REPLY_REFUSED, 0},
    {"{\"reason\": \"x\", \"step\": 2, \"was\": " ONE "}", NULL, WHOLE_REPLY_REFUSED, 0},
    {"{\"draft\": " ONE ", \"final\": " TWO "}", NULL, WHOLE_REPLY_REFUSED, 0},
    {"{\"reason\": \"<what shows it>\", \"step\": 1}", NULL, WHOLE_REPLY_PLACEHOLDER, 0},
    {"{\"reason\": \"...\", \"step\": 1}", NULL, WHOLE_REPLY_PLACEHOLDER, 0},
    {"{\"reason\": \"\", \"step\": 1}", NULL, WHOLE_REPLY_PLACEHOLDER, 0},
    {"{\"reason\": \" \\n\", \"step\": 1}", NULL, WHOLE_REPLY_PLACEHOLDER, 0},
    {"{\"reason\": \"prints <b>bold</b>\", \"step\": 2}", NULL, WHOLE_REPLY_VALID, 2},
    {ONE "\n\nNo:\n{\"reason\": \"two fail\", \"step\": 2,}", NULL, WHOLE_REPLY_BROKEN, 0},
    {"{\"reason\": \"says \"" ONE "\" there\", \"step\": 2}", NULL, WHOLE_REPLY_BROKEN, 0},
    {"{\"reason\": \"two fail\", \"st", NULL, WHOLE_REPLY_BROKEN, 0},
    {"No verdict.", NULL, WHOLE_REPLY_NOTHING, 0},
    {"", NULL, WHOLE_REPLY_NOTHING, 0},
    {"<think>" ONE "</think>", NULL, WHOLE_REPLY_NOTHING, 0},
    {"2", NULL, WHOLE_REPLY_NOTHING, 0},
};

static json_t *sole_parse(const char *text) {
  AUTO(jscan_deinit) struct jscan js;
  struct jscan_result r;
  jscan_init(&js, text, strlen(text));
  assert_int_equal(jscan_value(&js, 0, &r), JSCAN_OK);
  return r.value;
}

TEST(replies_are_one_answer) {
  json_auto_t *schema = sole_parse(judgment);
  const struct extract_check check = {schema, extract_check_valid, extract_check_nearness,
                                      extract_check_echo, extract_check_key};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    AUTO(whole_reply_deinit) struct whole_reply s;
    whole_reply_read(&s, str_from(rows[i].reply), &check, str_from(rows[i].report));
    json_int_t step = json_integer_value(json_object_get(s.value, "step"));
    enum whole_reply_outcome outcome = s.outcome;
    if (outcome != rows[i].outcome || (outcome == WHOLE_REPLY_VALID && step != rows[i].step))
      fail_msg("row %zu: %s, step %d, and not %s: %s", i, outcome_name(s.outcome), (int)step,
               outcome_name(rows[i].outcome), rows[i].reply);
    assert_true((s.value != NULL) ==
                (s.outcome == WHOLE_REPLY_VALID || s.outcome == WHOLE_REPLY_REFUSED));
  }
}

/* Both candidates can be told: their values and where they stand. */
TEST(ambiguous_tells_both_places) {
  static const char reply[] = "First " ONE ", then " TWO;
  json_auto_t *schema = sole_parse(judgment);
  const struct extract_check check = {schema, extract_check_valid, extract_check_nearness,
                                      extract_check_echo, extract_check_key};
  AUTO(whole_reply_deinit) struct whole_reply s;
  whole_reply_read(&s, str_from(reply), &check, str_from(NULL));
  assert_int_equal(s.outcome, WHOLE_REPLY_AMBIGUOUS);
  assert_int_equal(s.place_count, 2);
  assert_memory_equal(reply + s.places[0].offset, ONE, s.places[0].length);
  assert_memory_equal(reply + s.places[1].offset, TWO, s.places[1].length);
  assert_int_equal(json_integer_value(json_object_get(s.places[1].value, "step")), 2);
}
