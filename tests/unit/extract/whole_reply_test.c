/* Reads judges' replies: each row says what a careful person takes it for. */
#include "extract/whole_reply.h"
#include "json/scan.h"

#include "conformance/extract_check.h"
#include "support/data.h"
#include "support/test.h"

static const char *outcome_name(enum whole_reply_outcome outcome) {
  static const char *const names[] = {"valid", "refused",     "ambiguous", "words",
                                      "echo",  "placeholder", "broken",    "nothing"};
  return names[outcome];
}

static const char judgment[] =
    "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":\"integer\"},\"reason\":{\"type\":"
    "\"string\"}},\"required\":[\"step\",\"reason\"],\"additionalProperties\":false}";

#define ONE "{\"reason\": \"all pass\", \"step\": 1}"
#define TWO "{\"reason\": \"two fail\", \"step\": 2}"

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
  DATA_ROWS("extract/whole_reply/replies_are_one_answer.yaml", c, reply, report, outcome, step) {
    AUTO(whole_reply_deinit) struct whole_reply s;
    whole_reply_read(&s, str_from(c.reply), &check, str_from(c.report));
    json_int_t step = json_integer_value(json_object_get(s.value, "step"));
    enum whole_reply_outcome outcome = s.outcome;
    if (strcmp(outcome_name(outcome), c.outcome) != 0 ||
        (outcome == WHOLE_REPLY_VALID && step != (int)data_number(c.step)))
      fail_msg("row %zu: %s, step %d, and not %s: %s", c.at, outcome_name(s.outcome), (int)step,
               c.outcome, c.reply);
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
