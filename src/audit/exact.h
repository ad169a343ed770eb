/* exact.h - intervals of shares that hold for small counts. Pure.
 *
 * exact_share is the interval of Clopper and Pearson (1934). exact_cells is that of a share over
 * cells of known size, each with its own sample: the cells' confidence distributions are added
 * (Fay, Proschan and Brittain 2015), in their mid-P form (Fay and Brittain 2016), and the sum is
 * taken as the beta distribution with its mean and variance. With one cell it is exact_share. What
 * the cells' sizes themselves say of the rate is an estimate from `population` judgments; its
 * variance counts, as in prediction-powered inference (Angelopoulos et al. 2023), of which this is
 * the form whose predictions are words. exact_test.c simulates how often it covers. */
#ifndef SEGUE_AUDIT_EXACT_H
#define SEGUE_AUDIT_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exact {
  double share, low, high;
};

/* hits of n; miss: the chance that the interval misses, such as 0.05. n 0: 0 to 1. */
struct exact exact_share(double hits, double n, double miss);

struct exact_cell {
  double population;       /* judgments in the cell */
  double n, hits, squares; /* sums of the labels' weights, and of their squares */
};
/* 95 %. A cell without labels may hold anything. */
struct exact exact_cells(const struct exact_cell *cells, size_t count);
/* Returns the cell of which one more label would narrow the interval most; `count`: none would. */
size_t exact_next(const struct exact_cell *cells, size_t count);

/* Divides `want` labels among strata of these sizes so that the variance is least (Neyman 1934),
 * where `doubt` is the standard deviation that each is taken to have; each stratum gets one as far
 * as there are enough, the largest first. */
void exact_allot(const double *population, const double *doubt, size_t count, size_t want,
                 size_t *out);

struct exact_day {
  uint32_t day; /* since 1970 */
  uint64_t hits, all;
};
struct exact_change {
  size_t at; /* the first day of the new share */
  struct exact_day before, since;
};
/* Finds where a series of days changed its share. False: the intervals allow no such sentence. Each
 * day that leaves EXACT_SIDE_LEAST judgments on both sides is tried, and said is the likeliest one
 * for which the interval of the difference (Newcombe 1998, method 10, of exact_share) leaves out 0.
 * All series and days that are tried miss together 5 % at most: `series` is how many of them the
 * caller looks at. */
enum { EXACT_SIDE_LEAST = 10 };
bool exact_change(const struct exact_day *days, size_t count, size_t series,
                  struct exact_change *out);

#endif
