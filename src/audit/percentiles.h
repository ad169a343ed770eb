/* percentiles.h - computes count, sum and percentiles of many numbers in little memory.
 *
 *   struct percentiles m = {0}; percentiles_add(&m, n) ...; percentiles_at(&m, 99);
 *       percentiles_deinit(&m)
 *
 * Up to PERCENTILES_EXACT_COUNT numbers are kept as they are. Beyond that they are counted in
 * buckets, 64 for each power of two, and a percentile is within 1/128 of the true one (numbers
 * below 64 stay exact). A percentile is by the nearest rank: the least number that p % of all do
 * not exceed (Hyndman and Fan 1996, definition 1). Buckets are allocated only for powers that
 * occur. */
#ifndef SEGUE_AUDIT_PERCENTILES_H
#define SEGUE_AUDIT_PERCENTILES_H

#include <stddef.h>
#include <stdint.h>

enum { PERCENTILES_EXACT_COUNT = 64, PERCENTILES_POWERS = 59 };

struct percentiles {
  uint64_t count;
  int64_t sum;
  size_t bytes;       /* its memory */
  uint64_t *exact;    /* while there are few */
  uint32_t **buckets; /* PERCENTILES_POWERS + 1 pointers, NULL where no number fell */
};

/* Negative numbers count as 0; the sum stays at the largest number there is. */
void percentiles_add(struct percentiles *m, int64_t value);
/* Returns a percentile. percent: 1 to 100. 0 if there are no numbers. */
uint64_t percentiles_at(const struct percentiles *m, int percent);
void percentiles_deinit(struct percentiles *m);

#endif
