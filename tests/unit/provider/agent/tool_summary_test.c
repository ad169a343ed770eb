/* Checks that a tool which an agent tells of is made short, and stays apart from others. */
#include "provider/agent/tool_summary.h"

#include "base/buf.h"
#include "base/limits.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

static json_t *data_of(const char *input, const char *output, int failed) {
  json_auto_t *in = input ? data_json(input) : NULL, *out = output ? data_json(output) : NULL;
  const struct tool_summary tool = {.name = STR("Bash"),
                                    .id = STR("t1"),
                                    .state = "end",
                                    .failed = failed,
                                    .input = in,
                                    .output = out};
  return tool_summary_data(&tool);
}

static void expect_text(const char *input, const char *output, int failed, const char *key,
                        const char *wanted) {
  json_auto_t *data = data_of(input, output, failed);
  const char *got = json_string_value(json_object_get(data, key));
  if (wanted == NULL ? got != NULL : got == NULL || strcmp(got, wanted) != 0)
    fail_msg("%s of %s, %s: %s", key, input, output, got ? got : "nothing");
}

TEST(a_shell_s_argument_is_its_command) {
  expect_text("{'command':'make test','description':'x'}", NULL, -1, "argument", "make test");
  expect_text("{'command':['ls','-l']}", NULL, -1, "argument", "[\"ls\",\"-l\"]");
  expect_text("{'file_path':'/a'}", NULL, -1, "argument", "{\"file_path\":\"/a\"}");
  expect_text("'plain'", NULL, -1, "argument", "plain");
  expect_text("{}", NULL, -1, "argument", NULL);
  expect_text("{'command':''}", NULL, -1, "argument", NULL);
}

/* Two that differ behind the cut are two. */
TEST(a_long_argument_is_cut_and_told_apart) {
  buf_auto_t one = {0}, two = {0};
  buf_puts(&one, "'");
  for (int i = 0; i < 3000; i++)
    buf_puts(&one, i % 2 ? "\\u0001" : "\xc3\xa4");
  buf_str(&two, buf_view(&one));
  buf_puts(&one, "a'");
  buf_puts(&two, "b'");
  json_auto_t *a = data_of(buf_c(&one), NULL, -1), *b = data_of(buf_c(&two), NULL, -1);
  const json_t *first = json_object_get(a, "argument"), *second = json_object_get(b, "argument");
  assert_false(json_equal(first, second));
  assert_true(json_dumpb(first, NULL, 0, JSON_ENCODE_ANY) <= LIMIT_TOOL_ARGUMENT_BYTES + 2);
  assert_non_null(strstr(json_string_value(first), "bytes, sha256 "));
}

TEST(output_keeps_its_first_and_last_lines) {
  buf_auto_t text = {0};
  expect_text(NULL, "[{'type':'text','text':'one'},{'type':'text','text':'two'}]", 0, "output",
              "one\ntwo");
  expect_text(NULL, "{'stdout':'out\\n','stderr':'err'}", 0, "output", "out\nerr");
  expect_text(NULL, "'1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10'", 0, "output",
              "1\n2\n3\n4\n5\n6\n7\n8\n9\n10");
  expect_text(NULL, "'1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n11\\n12'", 0, "output",
              "1\n2\n3\n4\n... 2 lines\n7\n8\n9\n10\n11\n12");
  expect_text(NULL, "'  \\n '", 0, "output", NULL);
  buf_puts(&text, "'");
  for (int i = 0; i < 50; i++)
    buf_puts(&text,
             "\\u0002\\u0003 a long line that is nothing but itself, over and over again, and "
             "then again, until nobody wants to read it any more, which is now. Or so one "
             "would think, but no\\n");
  buf_puts(&text, "'");
  json_auto_t *data = data_of(NULL, buf_c(&text), 0);
  assert_true(json_dumpb(data, NULL, 0, JSON_COMPACT) < LIMIT_CALL_EVENT_BYTES);
  const char *output = json_string_value(json_object_get(data, "output"));
  assert_non_null(output);
  assert_string_equal(output + strlen(output) - 9, "... (cut)");
}

TEST(an_exit_may_stand_in_words) {
  static const struct {
    const char *output;
    int failed, exit; /* -1: none */
  } cases[] = {{"'Exit code 137'", 1, 137},
               {"'x\\nExit Code: 2\\ny'", 1, 2},
               {"'Exit code 137'", 0, -1}, /* its own words */
               {"'the Exit code 3'", 1, -1},
               {"'Exit code none'", 1, -1},
               {"'Exit code 99999999999999999999'", 1, -1}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *data = data_of(NULL, cases[i].output, cases[i].failed);
    const json_t *told = json_object_get(data, "exit");
    if (cases[i].exit < 0 ? told != NULL : json_integer_value(told) != cases[i].exit)
      fail_msg("%s", cases[i].output);
  }
}
