/* counts.h - how many tests a check ran, found in what it printed, and whether they became fewer.
 *
 * Pure. Every format of format/test_counts.h but JUnit is looked for in the text; those that are
 * there are added up. A line such as "4 of 4 pass" is only said: any echo can print it. It counts
 * where no runner's own summary is there, and never in the place of one that was there before. */
#ifndef SEGUE_EVIDENCE_COUNTS_H
#define SEGUE_EVIDENCE_COUNTS_H

#include "base/buf.h"
#include "format/test_counts.h"

enum counts_kind { COUNTS_NONE, COUNTS_SAID, COUNTS_MEASURED };

struct check_counts {
  enum counts_kind kind;
  enum test_format format; /* COUNTS_MEASURED: the first one found */
  struct test_counts tests;
};

void counts_find(struct str text, struct check_counts *out);

enum counts_fall {
  COUNTS_HOLD,
  COUNTS_GONE,   /* there were some, and there are none, or only said ones */
  COUNTS_FEWER,  /* fewer passed, or fewer in all */
  COUNTS_SKIPPED /* more are skipped */
};
enum counts_fall counts_compare(const struct check_counts *before, const struct check_counts *now);

/* Appends "2 of 4 tests passed, 1 skipped", "said: 4 of 4 passed" or "no counts". */
void counts_put(const struct check_counts *counts, struct buf *out);

#endif
