/* Summaries of test programs, as they print them: a table. */

#include "support/test.h"
#include "format/test_counts.h"
#include "support/data.h"

#include <stdio.h>
#include <string.h>

TEST(counts_are_read) {
  DATA_ROWS("format/test_counts/counts_are_read.yaml", c, format, text, found, passed, failed,
            skipped) {
    struct test_counts got;
    bool found =
        test_counts_read(data_among(c.format, "none ctest pytest go cargo jest tap unittest node"),
                         str_from(c.text), &got);
    if (found != data_true(c.found) || got.passed != data_number(c.passed) ||
        got.failed != data_number(c.failed) || got.skipped != data_number(c.skipped))
      fail_msg("row %zu: %d: %ld passed, %ld failed, %ld skipped of %s", c.at, found, got.passed,
               got.failed, got.skipped, c.text);
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
