/* kappa.h - measures how far two raters' verdicts on the same turns agree beyond chance.
 *
 * Cohen's kappa (1960) with the large-sample standard error of Fleiss, Cohen and Everitt (1969) for
 * a kappa that is not 0, and its 95 % interval. A weighted table (a sample by strata) has the size
 * (sum of w)^2 / sum of w^2 (Kish 1965). A share has Wilson's interval (1927). Pure. */
#ifndef SEGUE_AUDIT_KAPPA_H
#define SEGUE_AUDIT_KAPPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KAPPA_CATEGORIES = 33 }; /* no rule, rules 1 to 31, any later rule */

#define KAPPA_UNKNOWN "one rater never varied" /* why, in what people and programs read */

struct kappa_table {
  double cell[KAPPA_CATEGORIES][KAPPA_CATEGORIES]; /* weights: first rater's verdict, second's */
  double squares;                                  /* sum of squared weights */
  unsigned long n;                                 /* turns */
};

struct kappa {
  unsigned long n;
  double agreement, agreement_low, agreement_high; /* shares */
  bool
      known; /* false: a rater gave only one verdict, which makes kappa 0 whatever the other says */
  double kappa, low, high;
};

/* Returns a verdict's place in a table. */
size_t kappa_category(long verdict);
/* Counts a turn. A verdict is the number of a rule, or 0 for none. */
void kappa_add(struct kappa_table *t, long first, long second, double weight);
struct kappa kappa_of(const struct kappa_table *t);

/* Counts the turns of one stratum: n drawn from `population`, each standing for population / drawn
 * turns. */
struct kappa_stratum {
  double weight; /* a turn's weight */
  unsigned long n;
  uint32_t cell[KAPPA_CATEGORIES][KAPPA_CATEGORIES];
};
void kappa_stratum_add(struct kappa_stratum *s, long first, long second);
/* Measures a stratified sample, with the intervals of its design: the sum of the strata's own
 * variances (Cochran 1977, 5.9), for kappa by its linear part (Woodruff 1971). A small stratum in
 * which all agree still has variance: for the variance alone each stratum gets one more turn that
 * agrees and one that does not (for the share), or six in the whole sample's proportions (for
 * kappa). Simulated in tests/unit/audit/kappa_test.c. Strata drawn whole add no variance. */
struct kappa kappa_of_strata(const struct kappa_table *t, const struct kappa_stratum *strata,
                             size_t count);
/* Measures how a judge and a reference meet at one rule, 0 for none. A share's n is its own part of
 * the table's size; 0: nobody named it, and nothing is known. */
struct kappa_share {
  double n, of, hit; /* of, hit: sums of weights */
  double share, low, high;
};
struct kappa_rule {
  struct kappa_share found; /* of what the reference calls so (sensitivity) */
  struct kappa_share right; /* of what the judge calls so (precision) */
};
struct kappa_rule kappa_rule_of(const struct kappa_table *t, int rule, bool first_is_reference);
/* Returns Gwet's AC1 (2008), over the categories that were used. */
double kappa_ac1(const struct kappa_table *t);
/* Returns the least n at which Wilson's interval of this share lies on one side of the bound; 0: no
 * n up to KAPPA_NEEDED_MOST. */
enum { KAPPA_NEEDED_MOST = 10000 };
int kappa_needed(double share, double bound);

/* Returns the number as two decimals show it: never -0.00. */
double kappa_shown(double number);
/* Computes Wilson's 95 % interval of a share of n. */
void kappa_wilson(double share, double n, double *low, double *high);

#endif
