/* test_counts.h - how many tests passed and failed, read from what a test program printed.
 *
 * Pure: text in, numbers out. A program that ran no test has passed = failed = 0; that this is not
 * a pass is for the caller to say. Skipped tests count as neither. If a command ran several test
 * programs, their summaries are added up.
 *
 * A program that began (where the format says so) and gave no summary counts as one that failed.
 *
 *   ctest   the line "N% tests passed, F tests failed out of T"; skipped tests count as neither
 *   pytest  the summary ("3 failed, 10 passed in 0.12s"); errors count as failed
 *   go      with -v or -json its tests, else its packages: "ok", "FAIL", "[no tests to run]"
 *   cargo   all lines "test result:", and the summary of nextest
 *   jest    the line "Tests:", of vitest "Tests"; if no test failed, files that could not be run
 *   unittest  "Ran N tests" and the line after it; expected failures count as skipped
 *   node    "tests N", "pass N" and so on, of both its reporters; cancelled tests count as failed,
 *           todo as skipped
 *   tap     "ok" and "not ok" that are not indented; tests that the plan promised and that did not
 *           come failed, and so did a program that ended before its plan
 *   junit   an XML report: its <testcase> elements, and errors of whole suites */
#ifndef SEGUE_FORMAT_TEST_COUNTS_H
#define SEGUE_FORMAT_TEST_COUNTS_H

#include "base/err.h"
#include "base/str.h"

enum test_format {
  TESTS_NONE,
  TESTS_CTEST,
  TESTS_PYTEST,
  TESTS_GO,
  TESTS_CARGO,
  TESTS_JEST,
  TESTS_TAP,
  TESTS_UNITTEST,
  TESTS_NODE,
  TESTS_JUNIT,
  TESTS_AUTO, /* any but junit: evidence/counts.h finds them */
  TESTS_COUNT
};

struct test_counts {
  long passed, failed, skipped;
};

/* "pytest", "junit:build/report.xml": path is what follows the colon (required for junit). False:
 * it is none of them. */
bool test_format_parse(struct str text, enum test_format *format, struct str *path);
const char *test_format_name(enum test_format format);

/* Lists the names for "did you mean", NULL-terminated. */
extern const char *const test_format_names[];

/* Reads every format but junit and auto. False: the text holds no summary of that kind. */
bool test_counts_read(enum test_format format, struct str text, struct test_counts *out);

/* Adds the test cases of one report. False: err says why it cannot be read. It never follows an
 * entity or a document type. */
bool test_counts_junit(struct str xml, struct test_counts *add, struct err *err) MUST_CHECK;

/* The version of libexpat, such as "2.5.0", loading it first; NULL if it cannot be loaded. Not to
 * be freed. */
const char *junit_library(void);

#endif
