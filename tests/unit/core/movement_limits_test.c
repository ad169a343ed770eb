/* Tests durations, folders, ways to count tests, and where a program works. */
#include "core/movement_limits.h"

#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(durations_have_a_unit_and_a_most) {
  static const struct {
    const char *text;
    long ms, deadline_ms; /* 0: it is none */
  } cases[] = {
      {"1ms", 1, 1},
      {"90s", 90000, 90000},
      {"2m", 120000, 120000},
      {"24h", 86400000, 86400000},
      {"25h", 0, 90000000}, /* a call's is at most a day */
      {"1d", 86400000, 86400000},
      {"90d", 0, 7776000000},
      {"91d", 0, 0},
      {"0s", 0, 0},
      {"", 0, 0},
      {"s", 0, 0},
      {"5", 0, 0},
      {"5 s", 0, 0},
      {"-5s", 0, 0},
      {"1.5h", 0, 0},
      {"5w", 0, 0},
      {"1234567890ms", 0, 0}, /* ten digits */
      {"999999999d", 0, 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct err err = {0};
    struct str text = str_from(cases[i].text);
    if (limits_duration_ms(text, -7) != (cases[i].ms > 0 ? cases[i].ms : -7) ||
        limits_deadline_ms(text) != cases[i].deadline_ms)
      fail_msg("%s: %ld %ld", cases[i].text, limits_duration_ms(text, -7),
               limits_deadline_ms(text));
    assert_int_equal(limits_check_duration(text, &err), cases[i].ms > 0);
    assert_true(cases[i].ms > 0 || strstr(err.text, "must be a duration of 1ms to 24h"));
    err = (struct err){0};
    assert_int_equal(limits_check_deadline(text, &err), cases[i].deadline_ms > 0);
    assert_true(cases[i].deadline_ms > 0 || strstr(err.text, "must be a duration of at most 90d"));
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
  static const struct {
    const char *text, *error; /* NULL: it is one */
  } cases[] = {
      {"ctest", NULL},
      {"junit:out/report.xml", NULL},
      {"junit", "names no report: write junit:PATH"},
      {"junit:", "names no report: write junit:PATH"},
      {"pytest:out", "takes no path with pytest: write pytest"},
      {"pytst", "knows no \"pytst\": did you mean pytest?"},
      {"pytst:out", "knows no \"pytst\": did you mean pytest?"},
      {"something", "knows no \"something\": write ctest, pytest, go, cargo, jest, tap, unittest, "
                    "node or junit:"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct err err = {0};
    bool ok = limits_check_tests(str_from(cases[i].text), &err);
    if (ok != (cases[i].error == NULL) || (!ok && strstr(err.text, cases[i].error) == NULL))
      fail_msg("%s: %s", cases[i].text, ok ? "taken" : err.text);
  }
}

TEST(a_folder_may_come_from_a_value) {
  static const struct {
    const char *cwd, *folder;
  } cases[] = {
      {"plain/folder", "plain/folder"},
      {"{structured:plan.dir}/src", "web/src"},
      {"{structured:plan.count}", "7"},
      {"{structured:plan.parts}", "[1]"},
      {"x{structured:plan.none}y{structured:plan.nothing}z", "xyz"},
      {"{structured:nowhere.dir}", ""},
      {"{structured:plan.dir", "{structured:plan.dir"},
      {"{task}", "{task}"},
  };
  json_auto_t *doc = data_json(
      "{'name':'w','movements':[{'name':'plan','structured_output':{'schema':{'type':'object'},"
      "'on_failure':'error'},'rules':[{'condition':'done','next':'COMPLETE'}]}]}");
  json_auto_t *values = data_json("{'plan':{'dir':'web','count':7,'parts':[1],'nothing':null}}");
  struct err err = {0};
  struct workflow *wf = workflow_build(doc, &err);
  assert_non_null(wf);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct movement m = {.cwd = str_from(cases[i].cwd)};
    buf_auto_t out = {0};
    limits_cwd(wf, &m, values, &out);
    assert_string_equal(buf_c(&out), cases[i].folder);
  }
  workflow_unref(wf);
}
