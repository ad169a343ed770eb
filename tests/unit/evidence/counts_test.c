/* Counts that are found in whatever a check prints: a table; and when they fell. */
#include "evidence/counts.h"
#include "support/test.h"

static const struct row {
  const char *text;
  enum counts_kind kind;
  long passed, failed, skipped;
} rows[] = {
    {"", COUNTS_NONE, 0, 0, 0},
    {"make: Nothing to be done\n", COUNTS_NONE, 0, 0, 0},
    {"100% tests passed, 0 tests failed out of 12\n", COUNTS_MEASURED, 12, 0, 0},
    {"..F\n==== 1 failed, 10 passed, 2 skipped in 0.12s ====\n", COUNTS_MEASURED, 10, 1, 2},
    {"Ran 6 tests in 0.001s\n\nOK\n", COUNTS_MEASURED, 6, 0, 0},
    {"1..2\nok 1 - a\nnot ok 2 - b\n", COUNTS_MEASURED, 1, 1, 0},
    {"ok then\nok 2\n", COUNTS_NONE, 0, 0, 0},
    {"TAP version 13\n1..1\nok 1 - a\n# tests 3\n# pass 2\n# fail 1\n", COUNTS_MEASURED, 2, 1, 0},
    {"ok  \texample/a\t0.003s\n", COUNTS_MEASURED, 1, 0, 0},
    {"test result: ok. 5 passed; 0 failed; 1 ignored\n", COUNTS_MEASURED, 5, 0, 1},
    /* several runners in one check */
    {"Ran 2 tests in 0.1s\n\nOK\n=== 3 passed in 0.2s ===\n", COUNTS_MEASURED, 5, 0, 0},
    /* a runner that ran nothing says so */
    {"===== no tests ran in 0.00s =====\n", COUNTS_MEASURED, 0, 0, 0},
    /* what any echo can print is only said */
    {"FAIL tests/b\n2 of 4 pass\n", COUNTS_SAID, 2, 2, 0},
    {"12/12 tests passed\n", COUNTS_SAID, 12, 0, 0},
    {"7 passed, 1 failed, 2 skipped\n", COUNTS_SAID, 7, 1, 2},
    {"a: 3 passed\nb: 4 passed\n", COUNTS_SAID, 7, 0, 0},
    {"0 of 4 pass\n", COUNTS_SAID, 0, 4, 0},
    {"5 passengers\n", COUNTS_SAID, 5, 0, 0},
    {"2 failed\n", COUNTS_NONE, 0, 0, 0},
    {"v1.2 passed\n", COUNTS_NONE, 0, 0, 0},
    {"99999999999999999999 passed\n", COUNTS_NONE, 0, 0, 0},
};

TEST(counts_are_found_without_a_format) {
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct check_counts got;
    counts_find(str_from(rows[i].text), &got);
    if (got.kind != rows[i].kind || got.tests.passed != rows[i].passed ||
        got.tests.failed != rows[i].failed || got.tests.skipped != rows[i].skipped)
      fail_msg("row %zu: kind %d: %ld passed, %ld failed, %ld skipped of %s", i, (int)got.kind,
               got.tests.passed, got.tests.failed, got.tests.skipped, rows[i].text);
  }
}

static const struct {
  const char *before, *now;
  enum counts_fall fall;
} falls[] = {
    {"Ran 4 tests in 1s\n\nOK\n", "Ran 5 tests in 1s\n\nOK\n", COUNTS_HOLD},
    {"Ran 4 tests in 1s\n\nFAILED (failures=2)\n", "Ran 4 tests in 1s\n\nOK\n", COUNTS_HOLD},
    {"Ran 4 tests in 1s\n\nFAILED (failures=2)\n", "Ran 2 tests in 1s\n\nOK\n", COUNTS_FEWER},
    {"Ran 4 tests in 1s\n\nOK\n", "Ran 4 tests in 1s\n\nFAILED (errors=1)\n", COUNTS_FEWER},
    {"Ran 4 tests in 1s\n\nFAILED (failures=2)\n", "Ran 4 tests in 1s\n\nOK (skipped=2)\n",
     COUNTS_SKIPPED},
    {"Ran 4 tests in 1s\n\nOK\n", "", COUNTS_GONE},
    {"Ran 4 tests in 1s\n\nOK\n", "4 of 4 pass\n", COUNTS_GONE},
    {"4 of 4 pass\n", "Ran 4 tests in 1s\n\nOK\n", COUNTS_HOLD},
    {"2 of 4 pass\n", "4 of 4 pass\n", COUNTS_HOLD},
    {"2 of 4 pass\n", "", COUNTS_GONE},
    {"", "", COUNTS_HOLD},
    {"Segmentation fault\n", "Ran 1 test in 1s\n\nOK\n", COUNTS_HOLD},
};

TEST(fewer_tests_are_a_fall) {
  for (size_t i = 0; i < ARRAY_LEN(falls); i++) {
    struct check_counts before, now;
    counts_find(str_from(falls[i].before), &before);
    counts_find(str_from(falls[i].now), &now);
    if (counts_compare(&before, &now) != falls[i].fall)
      fail_msg("row %zu: %d", i, (int)counts_compare(&before, &now));
  }
}

TEST(counts_are_told) {
  static const struct {
    const char *text, *told;
  } told[] = {
      {"", "no counts"},
      {"2 of 4 pass\n", "said: 2 of 4 passed"},
      {"Ran 4 tests in 1s\n\nFAILED (failures=1, skipped=2)\n", "1 of 2 tests passed, 2 skipped"},
  };
  for (size_t i = 0; i < ARRAY_LEN(told); i++) {
    struct check_counts counts;
    buf_auto_t out = {0};
    counts_find(str_from(told[i].text), &counts);
    counts_put(&counts, &out);
    assert_string_equal(buf_c(&out), told[i].told);
  }
}
