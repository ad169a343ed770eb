/* Patterns of protected paths; counts of tests against those before the work; what people say. */
#include "core/checks.h"

#include "base/memory.h"
#include "core/steer.h"
#include "support/data.h"
#include "support/play.h"
#include "support/test.h"

TEST(patterns_say_which_paths) {
  DATA_ROWS("core/checks/patterns_say_which_paths.yaml", c, pattern, path, matches)
    if (protect_matches(str_from(c.pattern), str_from(c.path)) != data_true(c.matches))
      fail_msg("%s, %s", c.pattern, c.path);
}

static const char counting[] =
    "{'name':'w','movements':["
    "{'name':'before','command':['make'],'tests':'auto','rules':[{'condition':'when(true)',"
    "'next':'work'}]},"
    "{'name':'work','instruction':'x','rules':[{'condition':'y','next':'after'}]},"
    "{'name':'after','command':['make'],'tests':'auto','rules':[{'condition':'when(true)',"
    "'next':'COMPLETE'}]},"
    "{'name':'other','command':['make','all'],'tests':'auto','rules':[{'condition':'when(true)',"
    "'next':'COMPLETE'}]}]}";

/* Only the same command before the work tells how many there were. */
TEST(counts_fall_against_those_before_the_work) {
  DATA_ROWS("core/checks/counts_fall_against_those_before_the_work.yaml", c, first, movement, now,
            fell) {
    AUTO(play_deinit) struct play p;
    json_auto_t *now = data_json(c.now);
    play_init(&p, c.now, counting, NULL, NULL);
    play_start(&p);
    p.core.gates = json_pack("{s{so}}", "before", "first", data_json(c.first));
    const struct turn turn = {.movement = (size_t)data_number(c.movement)};
    const char *fell = checks_fell(&p.core, &turn, now);
    if (strcmp(fell ? fell : "no", c.fell) != 0)
      fail_msg("row %zu: %s, not %s", c.at, fell ? fell : "no", c.fell);
  }
}

TEST(counts_are_told_in_words) {
  DATA_ROWS("core/checks/counts_are_told_in_words.yaml", c, tests, words, passes) {
    json_auto_t *tests = data_json(c.tests);
    buf_auto_t told = {0};
    checks_tests(tests, &told);
    if (strcmp(buf_c(&told), c.words) != 0 || checks_is_no_pass(tests) == data_true(c.passes))
      fail_msg("%s: %s", c.tests, buf_c(&told));
  }
}

TEST(what_a_person_says_is_for_one_call) {
  AUTO(play_deinit) struct play p;
  struct err err;
  struct turn *turn = NULL;
  play_init(&p, "steer", counting, NULL,
            "{'before':{'text':'1','exit':0},'work':'did it','work/structured_output':"
            "{'structured':{'step':1,'reason':'r'}},'after':{'text':'1','exit':0}}");
  play_start(&p);
  assert_int_equal(core_steer_will(&p.core), 0); /* a command is running, and hears nothing */
  assert_false(core_steer_text_check(&p.core, STR("  "), &err));
  assert_non_null(strstr(err.text, "what is said must have 1 to"));
  assert_true(core_steer_text_check(&p.core, STR("Mind the names."), &err));
  play_step(&p);
  assert_non_null(core_steer_call(&p.core, &turn));
  long call = core_steer_call(&p.core, &turn)->id;
  struct event ev = play_event(&p, EVENT_STEER);
  json_auto_t *by = data_json("{'uid':1,'name':'t'}");
  ev.call = call;
  ev.message = "Mind the names.";
  ev.reason = "key-1";
  ev.by = by;
  play_decide(&p, &ev);
  play_commit(&p);
  assert_true(core_steer_has(&p.core, "key-1"));
  assert_false(core_steer_has(&p.core, "key-2"));
  const json_t *next = core_steer_next(&p.core, call, 0);
  assert_true(str_eq_c(data_get(next, "text"), "Mind the names."));
  assert_null(core_steer_next(&p.core, call, (uint64_t)json_int_at(next, "said")));
  assert_null(core_steer_next(&p.core, call + 1, 0));
  play_run(&p);
  assert_null(core_steer_call(&p.core, &turn));
  assert_false(core_steer_text_check(&p.core, STR("Too late."), &err));
  assert_non_null(strstr(err.text, "it has ended already"));
}

/* A pattern that would take for ever protects. */
TEST(many_stars_cost_no_time) {
  buf_auto_t pattern = {0}, path = {0};
  for (int i = 0; i < 60; i++) {
    buf_puts(&pattern, "**a");
    buf_puts(&path, "aa");
  }
  buf_puts(&pattern, "b");
  assert_true(protect_matches(buf_view(&pattern), buf_view(&path)));
}

/* A command names a file by its words, in its folder or in one that it names, or by a program that
 * reads it; not by chance. */
TEST(commands_name_files) {
  static const struct {
    const char *argv[4], *path;
    bool named;
  } cases[] = {
      {{"tests/check.sh"}, "tests/check.sh", true},
      {{"sh", "./tests/check.sh"}, "tests/check.sh", true},
      {{"sh", "-c", "FOO=1 sh 'tests/check.sh'>out 2>&1"}, "tests/check.sh", true},
      {{"sh", "-c", "cd tests;./check.sh"}, "tests/check.sh", true},
      {{"sh", "-c", "for t in tests/*.sh; do sh $t; done"}, "tests/a.sh", true},
      {{"sh", "-c", "for t in tests/*.sh; do sh $t; done"}, "tests/deep/a.sh", false},
      {{"sh", "check.sh"}, "tests/check.sh", false},
      {{"sh", "tests/check.sh"}, "check.sh", false},
      {{"sh", "tests/check.sh"}, "other/tests/check.sh", false},
      {{"sh", "tests/check.sh"}, "tests/acheck.sh", false},
      {{"make", "test"}, "Makefile", true},
      {{"make", "test"}, "sub/Makefile", false},
      {{"make", "-C", "sub/"}, "sub/GNUmakefile", true},
      {{"sh", "-c", "/usr/bin/make test"}, "makefile", true},
      {{"cmake", "--build"}, "Makefile", false},
      {{"npm", "test"}, "package.json", true},
      {{"sh", "-c", "true"}, "package.json", false},
      {{NULL}, "Makefile", false},
      {{"", " ;; "}, "a", false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    const struct movement m = {.argv = cases[i].argv};
    if (checks_names(&m, str_from(cases[i].path)) != cases[i].named)
      fail_msg("%zu: %s", i, cases[i].path);
  }
  const char *argv[] = {"sh", "check.sh", NULL};
  const struct movement below = {.argv = argv, .cwd = STR("tests")};
  assert_true(checks_names(&below, STR("tests/check.sh")));
  assert_false(checks_names(&below, STR("check.sh")));
}

TEST_GROUP(NULL, play_over)
