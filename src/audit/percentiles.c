/* Counts numbers in buckets that grow with them. */
#include "audit/percentiles.h"

#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 64, FIRST_EXACT = 8, ROWS = PERCENTILES_POWERS + 1 };

static void count_one(struct percentiles *m, uint64_t value) {
  /* Row 0 holds 0 to 63; row r > 0 holds 64 buckets of 2^(r-1) each, from 2^(r+5) on. */
  size_t row = value < STEPS ? 0 : (size_t)(58 - __builtin_clzll(value));
  if (m->buckets[row] == NULL) {
    m->buckets[row] = xmalloc(STEPS * sizeof **m->buckets);
    memset(m->buckets[row], 0, STEPS * sizeof **m->buckets);
    m->bytes += STEPS * sizeof **m->buckets;
  }
  m->buckets[row][row == 0 ? (size_t)value : (size_t)((value >> (row - 1)) - STEPS)]++;
}

void percentiles_add(struct percentiles *m, int64_t value) {
  if (value < 0)
    value = 0;
  if (__builtin_add_overflow(m->sum, value, &m->sum))
    m->sum = INT64_MAX;
  if (m->count == PERCENTILES_EXACT_COUNT) {
    m->buckets = xmalloc(ROWS * sizeof *m->buckets);
    m->bytes = ROWS * sizeof *m->buckets;
    memset(m->buckets, 0, ROWS * sizeof *m->buckets);
    for (size_t i = 0; i < PERCENTILES_EXACT_COUNT; i++)
      count_one(m, m->exact[i]);
    free(m->exact);
    m->exact = NULL;
  }
  if (m->buckets != NULL) {
    count_one(m, (uint64_t)value);
  } else {
    bool full = m->count == 0 || (m->count >= FIRST_EXACT && (m->count & (m->count - 1)) == 0);
    size_t room = m->count < FIRST_EXACT ? FIRST_EXACT : (size_t)m->count * 2;
    if (full) {
      m->bytes = room * sizeof *m->exact;
      m->exact = xrealloc(m->exact, m->bytes);
    }
    m->exact[m->count] = (uint64_t)value;
  }
  m->count++;
}

static int percentiles_order(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

uint64_t percentiles_at(const struct percentiles *m, int percent) {
  assert(percent >= 1);
  assert(percent <= 100);
  if (m->count == 0)
    return 0;
  /* ceil(count * percent / 100), without overflow */
  uint64_t rank =
      m->count / 100 * (uint64_t)percent + (m->count % 100 * (uint64_t)percent + 99) / 100;
  if (m->exact != NULL) {
    uint64_t sorted[PERCENTILES_EXACT_COUNT];
    memcpy(sorted, m->exact, (size_t)m->count * sizeof *sorted);
    qsort(sorted, (size_t)m->count, sizeof *sorted, percentiles_order);
    return sorted[rank - 1];
  }
  for (size_t row = 0; row < ROWS; row++)
    for (size_t step = 0; m->buckets[row] != NULL && step < STEPS; step++) {
      uint64_t here = m->buckets[row][step];
      if (here >= rank) {
        /* The value is the middle of its bucket. */
        if (row == 0)
          return step;
        uint64_t width = 1ull << (row - 1);
        return (STEPS + step) * width + width / 2;
      }
      rank -= here;
    }
  return 0;
}

void percentiles_deinit(struct percentiles *m) {
  for (size_t row = 0; m->buckets != NULL && row < ROWS; row++)
    free(m->buckets[row]);
  free(m->buckets);
  free(m->exact);
  *m = (struct percentiles){0};
}
