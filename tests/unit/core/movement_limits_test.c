/* Tests durations, folders, ways to count tests, and where a program works. */
#include "core/movement_limits.h"

#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(durations_have_a_unit_and_a_most) {
  DATA_ROWS("core/movement_limits/durations_have_a_unit_and_a_most.yaml", c, text, ms,
            deadline_ms) {
    struct err err = {0};
    struct str text = str_from(c.text);
    if (limits_duration_ms(text, -7) != (data_number(c.ms) > 0 ? data_number(c.ms) : -7) ||
        limits_deadline_ms(text) != data_number(c.deadline_ms))
      fail_msg("%s: %ld %ld", c.text, limits_duration_ms(text, -7), limits_deadline_ms(text));
    assert_int_equal(limits_check_duration(text, &err), data_number(c.ms) > 0);
    assert_true(data_number(c.ms) > 0 || strstr(err.text, "must be a duration of 1ms to 24h"));
    err = (struct err){0};
    assert_int_equal(limits_check_deadline(text, &err), data_number(c.deadline_ms) > 0);
    assert_true(data_number(c.deadline_ms) > 0 ||
                strstr(err.text, "must be a duration of at most 90d"));
  }
}

TEST(a_program_works_below_the_sessions_folder) {
  static const struct {
    const char *cwd;
    bool ok;
  } cases[] = {
      {"", true},       {"a", true},       {"a/b", true},    {"..a/b..", true},
      {"{item}", true}, {"/a", false},     {"..", false},    {"../a", false},
      {"a/..", false},  {"a/../b", false}, {"a//..", false}, {"./../a", false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct err err = {0};
    if (limits_check_cwd(str_from(cases[i].cwd), &err) != cases[i].ok)
      fail_msg("%s", cases[i].cwd);
  }
}

TEST(ways_to_count_tests_are_known) {
  DATA_ROWS("core/movement_limits/ways_to_count_tests_are_known.yaml", c, text, error) {
    struct err err = {0};
    bool ok = limits_check_tests(str_from(c.text), &err);
    if (ok != (c.error == NULL) || (!ok && strstr(err.text, c.error) == NULL))
      fail_msg("%s: %s", c.text, ok ? "taken" : err.text);
  }
}

TEST(a_folder_may_come_from_a_value) {
  json_auto_t *doc = data_json(
      "{'name':'w','movements':[{'name':'plan','structured_output':{'schema':{'type':'object'},"
      "'on_failure':'error'},'rules':[{'condition':'done','next':'COMPLETE'}]}]}");
  json_auto_t *values = data_json("{'plan':{'dir':'web','count':7,'parts':[1],'nothing':null}}");
  struct err err = {0};
  struct workflow *wf = workflow_build(doc, &err);
  assert_non_null(wf);
  DATA_ROWS("core/movement_limits/a_folder_may_come_from_a_value.yaml", c, cwd, folder) {
    struct movement m = {.cwd = str_from(c.cwd)};
    buf_auto_t out = {0};
    limits_cwd(wf, &m, values, &out);
    assert_string_equal(buf_c(&out), c.folder);
  }
  workflow_unref(wf);
}
