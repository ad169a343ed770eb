/* Percentiles held against the sorted numbers themselves. */
#include "audit/percentiles.h"

#include "base/err.h"
#include "support/test.h"

#include <stdlib.h>

static int order(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t seed = 1;
static uint64_t next_random(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return seed >> 20;
}

static void compare(size_t n, unsigned bits) {
  AUTO(percentiles_deinit) struct percentiles s = {0};
  int64_t *values = malloc((n + 1) * sizeof *values), sum = 0;
  for (size_t i = 0; i < n; i++) {
    values[i] = (int64_t)(next_random() & ((1ull << (1 + next_random() % bits)) - 1));
    sum += values[i];
    percentiles_add(&s, values[i]);
  }
  qsort(values, n, sizeof *values, order);
  assert_int_equal(s.count, n);
  assert_int_equal(s.sum, sum);
  for (int percent = 1; percent <= 100; percent++) {
    uint64_t got = percentiles_at(&s, percent);
    uint64_t is = n > 0 ? (uint64_t)values[(n * (size_t)percent + 99) / 100 - 1] : 0;
    uint64_t off = got > is ? got - is : is - got;
    if (n <= PERCENTILES_EXACT_COUNT || is < 64)
      assert_int_equal(off, 0);
    assert_true(off <= is / 128);
  }
  free(values);
}

TEST(is_near) {
  static const size_t counts[] = {0, 1, 2, 7, 8, 9, 63, 64, 65, 100, 1000, 20000};
  for (size_t i = 0; i < ARRAY_LEN(counts); i++)
    for (unsigned bits = 1; bits < 44; bits += 3)
      compare(counts[i], bits);
}

TEST(takes_any_number) {
  AUTO(percentiles_deinit) struct percentiles s = {0};
  for (int i = 0; i < 100; i++) {
    percentiles_add(&s, INT64_MAX);
    percentiles_add(&s, INT64_MIN);
  }
  assert_int_equal(s.sum, INT64_MAX);
  assert_int_equal(percentiles_at(&s, 50), 0);
  assert_true(percentiles_at(&s, 99) > (uint64_t)INT64_MAX / 2);
  assert_true(s.bytes < 4096);
}
