/* Counts that are found in whatever a check prints: a table; and when they fell. */
#include "evidence/counts.h"
#include "support/data.h"
#include "support/test.h"

TEST(counts_are_found_without_a_format) {
  DATA_ROWS("evidence/counts/counts_are_found_without_a_format.yaml", c, text, kind, passed, failed,
            skipped) {
    struct check_counts got;
    counts_find(str_from(c.text), &got);
    if (got.kind != data_among(c.kind, "none said measured") ||
        got.tests.passed != data_number(c.passed) || got.tests.failed != data_number(c.failed) ||
        got.tests.skipped != data_number(c.skipped))
      fail_msg("row %zu: kind %d: %ld passed, %ld failed, %ld skipped of %s", c.at, (int)got.kind,
               got.tests.passed, got.tests.failed, got.tests.skipped, c.text);
  }
}

TEST(fewer_tests_are_a_fall) {
  DATA_ROWS("evidence/counts/fewer_tests_are_a_fall.yaml", c, before, now, fall) {
    struct check_counts before, now;
    counts_find(str_from(c.before), &before);
    counts_find(str_from(c.now), &now);
    if (counts_compare(&before, &now) != data_among(c.fall, "hold gone fewer skipped"))
      fail_msg("row %zu: %d", c.at, (int)counts_compare(&before, &now));
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
