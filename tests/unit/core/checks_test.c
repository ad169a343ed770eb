/* Patterns of protected paths. */
#include "core/checks.h"

#include "support/data.h"
#include "support/test.h"

TEST(patterns_say_which_paths) {
  DATA_ROWS("core/checks/patterns_say_which_paths.yaml", c, pattern, path, matches)
    if (protect_matches(str_from(c.pattern), str_from(c.path)) != data_true(c.matches))
      fail_msg("%s, %s", c.pattern, c.path);
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
