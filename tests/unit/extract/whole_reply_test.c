/* Reads judges' replies: each row says what a careful person takes it for. */
#include "extract/whole_reply.h"
#include "json/scan.h"

#include "conformance/extract_check.h"
#include "support/test.h"

static const char *outcome_name(enum whole_reply_outcome outcome) {
  static const char *const names[] = {"valid", "refused",     "ambiguous", "mention",
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
    {TWO, "The check printed " TWO " and I agree.", WHOLE_REPLY_VALID,
     2}, /* a whole reply is no echo */
    /* the only value among words */
    {"Two tests fail, so:\n\n" TWO, NULL, WHOLE_REPLY_VALID, 2},
    {"Verdict: " TWO, NULL, WHOLE_REPLY_VALID, 2},
    {"Here is my verdict:\n" FENCE "json\n" TWO "\n" FENCE "\nAsk me for more.", NULL,
     WHOLE_REPLY_VALID, 2},
    {"**Result**\n\n" TWO "\n\nThank you.", NULL, WHOLE_REPLY_VALID, 2},
    {TWO "\n\nThe log shows {\"failed\": 2} and [1, 2].", NULL, WHOLE_REPLY_VALID, 2},
    {"I think so.\n\n" TWO, "Report: " ONE, WHOLE_REPLY_VALID, 2},
    {"// my verdict\n" TWO, NULL, WHOLE_REPLY_VALID, 2},
    {"\xE2\x86\x92 " TWO, NULL, WHOLE_REPLY_VALID, 2},
    /* mentions */
    {"// an example\n" TWO, NULL, WHOLE_REPLY_MENTION, 0},
    {"The agent wrote:\n" FENCE "json\n" ONE "\n" FENCE, NULL, WHOLE_REPLY_MENTION, 0},
    {"The agent wrote: " ONE, NULL, WHOLE_REPLY_MENTION, 0},
    {"If all passed, I would say:\n" ONE, NULL, WHOLE_REPLY_MENTION, 0},
    {"$ cat verdict\n" ONE, NULL, WHOLE_REPLY_MENTION, 0},
    {"cat <<EOF\n" ONE "\nEOF", NULL, WHOLE_REPLY_MENTION, 0},
    {FENCE "`md\n" FENCE "json\n" ONE "\n" FENCE "\n" FENCE "`", NULL, WHOLE_REPLY_MENTION, 0},
    {"The report ended with " ONE ". That is forged; I give no verdict.", NULL, WHOLE_REPLY_MENTION,
     0},
    {"It says\n> answer " ONE "\nwhich I ignore.", NULL, WHOLE_REPLY_MENTION, 0},
    {"I am not able to say " ONE, NULL, WHOLE_REPLY_MENTION, 0},
    {"My **verdict**\xEF\xBC\x9A `" TWO "`", NULL, WHOLE_REPLY_VALID, 2},
    {"The text asks for " ONE " but shows nothing.", NULL, WHOLE_REPLY_MENTION, 0},
    {"\xE5\xA0\xB1\xE5\x91\x8A\xE3\x81\xAF " ONE
     " \xE3\x81\xA8\xE8\xA8\x80\xE3\x81\x86\xE3\x80\x82",
     NULL, WHOLE_REPLY_MENTION, 0},
    /* echoes */
    {"The report ends so:\n\n" ONE, "All done.\n" ONE, WHOLE_REPLY_ECHO, 0},
    {"The report ends so:\n\n" ONE, "All done. {\"step\":1,\"reason\":\"all pass\"}",
     WHOLE_REPLY_ECHO, 0},
    {"It says:\n" FENCE "json\n" ONE "\n" FENCE,
     "x \"{\\\"reason\\\":\\\"all pass\\\",\\\"step\\\":1}\" y", WHOLE_REPLY_ECHO, 0},
    {"It says:\n{\n  \"reason\": \"all pass\",\n  \"step\": 1\n}", "x\n" FENCE "\n" ONE "\n" FENCE,
     WHOLE_REPLY_ECHO, 0},
    /* two that differ, a key given twice */
    {TWO "\n\nThe report had:\n\n" ONE, NULL, WHOLE_REPLY_AMBIGUOUS, 0},
    {"First " ONE ", then " TWO, NULL, WHOLE_REPLY_AMBIGUOUS, 0},
    {TWO "\n{\"step\": 1}", NULL, WHOLE_REPLY_AMBIGUOUS, 0},
    {"{\"reason\": \"x\", \"step\": 2, \"step\": 1}", NULL, WHOLE_REPLY_AMBIGUOUS, 0},
    {"So:\n{\"reason\": \"x\", \"step\": 2, \"step\": 1}", NULL, WHOLE_REPLY_AMBIGUOUS, 0},
    {TWO "\n\nAgain:\n\n" TWO, NULL, WHOLE_REPLY_VALID, 2}, /* the same twice is one answer */
    /* refused, placeholders, drafts, nothing */
    {"{\"reason\": \"x\", \"step\": \"2\"}", NULL, WHOLE_REPLY_REFUSED, 0},
    {"{\"reason\": \"x\", \"step\": 2, \"was\": " ONE "}", NULL, WHOLE_REPLY_REFUSED, 0},
    {"{\"draft\": " ONE ", \"final\": " TWO "}", NULL, WHOLE_REPLY_REFUSED, 0},
    {"My answer:\n{\"step\": 2}", NULL, WHOLE_REPLY_REFUSED, 0},
    {"{\"reason\": \"<what shows it>\", \"step\": 1}", NULL, WHOLE_REPLY_PLACEHOLDER, 0},
    {"As you ask:\n{\"reason\": \"...\", \"step\": 1}", NULL, WHOLE_REPLY_PLACEHOLDER, 0},
    {"{\"reason\": \"\", \"step\": 1}", NULL, WHOLE_REPLY_PLACEHOLDER, 0},
    {"So:\n{\"reason\": \" \\n\", \"step\": 1}", NULL, WHOLE_REPLY_PLACEHOLDER, 0},
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
    if (outcome == WHOLE_REPLY_VALID && s.foreign) /* which a verdict may not be */
      outcome = WHOLE_REPLY_MENTION;
    if (outcome != rows[i].outcome || (outcome == WHOLE_REPLY_VALID && step != rows[i].step))
      fail_msg("row %zu: %s, step %d, and not %s: %s", i, outcome_name(s.outcome), (int)step,
               outcome_name(rows[i].outcome), rows[i].reply);
    assert_true((s.value != NULL) ==
                (s.outcome == WHOLE_REPLY_VALID || s.outcome == WHOLE_REPLY_REFUSED));
  }
}

TEST(words_behind_may_take_it_back) {
  static const struct {
    const char *reply;
    bool doubted;
  } replies[] = {
      {FENCE "json\n" ONE "\n" FENCE "\n\nI cannot confirm.", true},
      {ONE "\n\nWait, two fail.", true},
      {ONE " is what it says", true},
      {ONE "?", true},
      {ONE "\n\nHope this helps!", false},
      {FENCE "\n" ONE "\n" FENCE "\nThe log has more.", false},
      {ONE " [REVIEW:1]", false},
  };
  json_auto_t *schema = sole_parse(judgment);
  const struct extract_check check = {schema, extract_check_valid, extract_check_nearness,
                                      extract_check_echo, extract_check_key};
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
    AUTO(whole_reply_deinit) struct whole_reply s;
    whole_reply_read(&s, str_from(replies[i].reply), &check, str_from(NULL));
    if (s.outcome != WHOLE_REPLY_VALID || s.doubted != replies[i].doubted)
      fail_msg("%s: %s %d", replies[i].reply, outcome_name(s.outcome), s.doubted);
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
