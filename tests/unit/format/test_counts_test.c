/* Summaries of test programs, as they print them: a table. */

#include "support/test.h"
#include "format/test_counts.h"

#include <stdio.h>
#include <string.h>

static const struct row {
  enum test_format format;
  const char *text;
  bool found;
  long passed, failed, skipped;
} rows[] = {
    {TESTS_CTEST, "100% tests passed, 0 tests failed out of 12\n", true, 12, 0, 0},
    {TESTS_CTEST, "67% tests passed, 1 tests failed out of 3\n\nTotal Test time\n", true, 2, 1, 0},
    {TESTS_CTEST,
     "1/2 Test #1: a ...***Skipped   0.00 sec\n2/2 Test #2: b ...   Passed\n"
     "100% tests passed, 0 tests failed out of 2\n",
     true, 1, 0, 1},
    {TESTS_CTEST,
     "1/3 Test #1: a ...   Passed\n2/3 Test #2: b ...***Not Run (Disabled)\n"
     "3/3 Test #3: c ...***Skipped\n100% tests passed, 0 tests failed out of 2\n",
     true, 1, 0, 2},
    {TESTS_CTEST, "No tests were found!!!\n", true, 0, 0, 0},
    {TESTS_CTEST, "ninja: error\n", false, 0, 0, 0},
    {TESTS_PYTEST, "==== 3 failed, 10 passed, 2 skipped in 0.12s ====\n", true, 10, 3, 2},
    {TESTS_PYTEST, "\x1b[32m==== \x1b[1m5 passed\x1b[0m in 1.01s ====\x1b[0m\r\n", true, 5, 0, 0},
    {TESTS_PYTEST, "3 passed, 1 warning in 0.01s\n", true, 3, 0, 0},
    {TESTS_PYTEST, "1 passed, 2 errors in 0.5s\n", true, 1, 2, 0},
    {TESTS_PYTEST, "===== no tests ran in 0.00s =====\n", true, 0, 0, 0},
    {TESTS_PYTEST, "40 deselected in 0.1s\n", true, 0, 0, 0},
    {TESTS_PYTEST, "2 files in 3 folders\nall passed\n", false, 0, 0, 0},
    {TESTS_GO, "ok  \texample/a\t0.003s\nFAIL\texample/b\t0.1s\nFAIL\n", true, 1, 1, 0},
    {TESTS_GO, "ok  \texample/a\t0.003s [no tests to run]\n?   \tb\t[no test files]\n", true, 0, 0,
     0},
    {TESTS_GO,
     "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/x (0.00s)\n"
     "--- FAIL: TestB (0.00s)\n--- SKIP: TestC (0.00s)\nFAIL\nFAIL\texample\t0.1s\n",
     true, 2, 1, 1},
    {TESTS_GO,
     "{\"Action\":\"pass\",\"Package\":\"a\",\"Test\":\"T\"}\n"
     "{\"Action\":\"fail\",\"Package\":\"a\",\"Test\":\"U\"}\n"
     "{\"Action\":\"fail\",\"Package\":\"a\"}\n",
     true, 1, 1, 0},
    {TESTS_CARGO,
     "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out\n"
     "test result: FAILED. 1 passed; 2 failed; 0 ignored\n",
     true, 6, 2, 1},
    {TESTS_CARGO,
     "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 5783 filtered out;"
     " finished in 0.00s\n",
     true, 0, 0, 0},
    {TESTS_CARGO, "     Summary [   0.5s] 5 tests run: 4 passed, 1 failed, 7 skipped\n", true, 4, 1,
     7},
    {TESTS_JEST, "Tests:       1 failed, 2 skipped, 3 passed, 6 total\n", true, 3, 1, 2},
    {TESTS_JEST, "      Tests  3 passed (3)\n", true, 3, 0, 0},
    {TESTS_JEST, "No tests found, exiting with code 0\n", true, 0, 0, 0},
    {TESTS_JEST, "Tests:  1 failed, 1 total\nTests:  2 passed, 2 total\n", true, 2, 1, 0},
    {TESTS_PYTEST, "1 failed, 2 passed in 0.1s\n===== 4 passed in 0.2s =====\n", true, 6, 1, 0},
    {TESTS_CTEST,
     "50% tests passed, 1 tests failed out of 2\n100% tests passed, 0 tests failed out of 3\n",
     true, 4, 1, 0},
    {TESTS_TAP, "1..4\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP no net\nnot ok 4 # TODO later\n", true,
     1, 1, 2},
    {TESTS_TAP, "1..3\nok 1\n    not ok 1 - of a subtest\n", true, 1, 2, 0},
    {TESTS_TAP, "1..0 # skipped\n", true, 0, 0, 0},
    {TESTS_TAP, "1..3\nok 1\nok 2\n1..2\nok 1\nok 2\n", true, 4, 1, 0},
    {TESTS_TAP, "1..1\nok 1\nok 2\n", true, 2, 1, 0},
    {TESTS_TAP, "1..2\nok 1 - see \\#12 # SKIP no net\nok 2 - a # b # skip\n", true, 0, 0, 2},
    {TESTS_TAP, "1..1\nok 1 - C# works\n", true, 1, 0, 0},
    {TESTS_TAP, "okay then\n", false, 0, 0, 0},
    {TESTS_UNITTEST, "......\nRan 6 tests in 0.001s\n\nOK\n", true, 6, 0, 0},
    {TESTS_UNITTEST,
     "Ran 7 tests in 0.000s\n\nFAILED (failures=1, errors=1, skipped=1, expected failures=2, "
     "unexpected successes=1)\n",
     true, 1, 3, 3},
    {TESTS_UNITTEST, "Ran 1 test in 0.0s\n\nOK (skipped=1)\nRan 2 tests in 0.1s\n\nOK\n", true, 2,
     0, 1},
    {TESTS_UNITTEST, "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", true, 0, 0, 0},
    {TESTS_UNITTEST, "Ran 3 tests in 0.1s\nSegmentation fault\n", true, 0, 1, 0},
    {TESTS_UNITTEST, "OK\nRan away\n", false, 0, 0, 0},
    {TESTS_NODE,
     "# tests 6\n# suites 0\n# pass 1\n# fail 1\n# cancelled 1\n# skipped 1\n# todo 2\n", true, 1,
     2, 3},
    {TESTS_NODE, "\u2139 tests 3\n\u2139 pass 3\n\u2139 fail 0\n", true, 3, 0, 0},
    {TESTS_NODE, "# pass over\n# a comment\n", false, 0, 0, 0},
    /* what began and did not end */
    {TESTS_TAP, "TAP version 14\nok 1 - a\nok 2 - b\nKilled\n", true, 2, 1, 0},
    {TESTS_CARGO,
     "running 5 tests\ntest result: ok. 5 passed; 0 failed; 0 ignored\n"
     "running 3 tests\ntest a ... ok\n",
     true, 5, 1, 0},
    {TESTS_CARGO, "running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored\n", true, 1, 0,
     0},
    {TESTS_PYTEST,
     "==== test session starts ====\n==== 3 passed in 0.1s ====\n"
     "==== test session starts ====\nFatal Python error: Segmentation fault\n",
     true, 3, 1, 0},
    {TESTS_CTEST,
     "Test project /a\n100% tests passed, 0 tests failed out of 3\nTest project /b\n"
     "    Start 1: x\n",
     true, 3, 1, 0},
    {TESTS_CTEST, "Test project /a\n67% tests passed, 1 test failed out of 3\n", true, 2, 1, 0},
    {TESTS_CTEST, "Test project /a\nNo tests were found!!!\n", true, 0, 0, 0},
    /* failures that are no test's */
    {TESTS_JEST, "Test Suites: 1 failed, 1 passed, 2 total\nTests:       3 passed, 3 total\n", true,
     3, 1, 0},
    {TESTS_JEST,
     "Test Suites: 1 failed, 1 passed, 2 total\nTests:       1 failed, 3 passed, 4 total\n", true,
     3, 1, 0},
    {TESTS_JEST, " Test Files  1 failed | 1 passed (2)\n      Tests  2 passed (2)\n", true, 2, 1,
     0},
    {TESTS_JEST, " Test Files  1 passed (1)\n      Tests  2 passed (2)\n     Errors  1 error\n",
     true, 2, 1, 0},
    {TESTS_JEST, "No test files found, exiting with code 0\n", true, 0, 0, 0},
    {TESTS_CARGO,
     "     Summary [  60.0s] 4 tests run: 2 passed, 1 timed out, 1 exec failed, 0 skipped\n", true,
     2, 2, 0},
};

TEST(counts_are_read) {
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct test_counts got;
    bool found = test_counts_read(rows[i].format, str_from(rows[i].text), &got);
    if (found != rows[i].found || got.passed != rows[i].passed || got.failed != rows[i].failed ||
        got.skipped != rows[i].skipped)
      fail_msg("row %zu: %d: %ld passed, %ld failed, %ld skipped of %s", i, found, got.passed,
               got.failed, got.skipped, rows[i].text);
  }
}

TEST(reports_are_read) {
  static const char report[] =
      "<?xml version=\"1.0\"?><testsuites><testsuite name=\"s\" tests=\"4\">"
      "<testcase name=\"a\"/><testcase name=\"b\"><failure>x</failure></testcase>"
      "<testcase name=\"c\"><skipped/></testcase><testcase name=\"d\"><error/><system-out>"
      "&lt;failure/&gt;</system-out></testcase></testsuite></testsuites>";
  static const char bomb[] = "<!DOCTYPE t [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><t>&b;</t>";
  struct test_counts got = {.passed = 10};
  struct err err;
  assert_true(test_counts_junit(STR(report), &got, &err));
  assert_int_equal(got.passed, 11);
  assert_int_equal(got.failed, 2);
  assert_int_equal(got.skipped, 1);
  static const char not_run[] =
      "<testsuite errors=\"1\"><error message=\"cannot be loaded\"/>"
      "<testcase name=\"a\" status=\"notrun\" result=\"suppressed\"/>"
      "<testcase name=\"b\" status=\"run\" result=\"completed\"/>"
      "<testcase name=\"c\" status=\"disabled\"/><testcase name=\"d\" result=\"skipped\"/>"
      "<testcase name=\"e\" status=\"fail\"/></testsuite>";
  got = (struct test_counts){0};
  assert_true(test_counts_junit(STR(not_run), &got, &err));
  assert_int_equal(got.passed, 1);
  assert_int_equal(got.failed, 2);
  assert_int_equal(got.skipped, 3);
  assert_false(test_counts_junit(STR(bomb), &got, &err));
  assert_non_null(strstr(err.text, "document type"));
  assert_false(test_counts_junit(STR("<a><b></a>"), &got, &err));
  assert_false(test_counts_junit(STR(""), &got, &err));
}

TEST(formats_are_named) {
  enum test_format format;
  struct str path;
  assert_true(test_format_parse(STR("junit:a/b.xml"), &format, &path));
  assert_true(format == TESTS_JUNIT && str_eq_c(path, "a/b.xml"));
  assert_true(test_format_parse(STR("ctest"), &format, &path));
  assert_false(test_format_parse(STR("junit"), &format, &path));
  assert_false(test_format_parse(STR("junit:"), &format, &path));
  assert_false(test_format_parse(STR("pytest:x"), &format, &path));
  assert_false(test_format_parse(STR("mocha"), &format, &path));
}
