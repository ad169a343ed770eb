/* kappa.h - two raters' verdicts on the same turns: how far they agree beyond chance.
 *
 * Cohen's kappa (1960) with the large-sample standard error of Fleiss, Cohen and Everitt (1969) for
 * a kappa that is not 0, and its 95 % interval. A weighted table (a sample by strata) has the size
 * (sum of w)^2 / sum of w^2 (Kish 1965). A share has Wilson's interval (1927). Pure. */
#ifndef SEGUE_AUDIT_KAPPA_H
#define SEGUE_AUDIT_KAPPA_H

#include <stdbool.h>
#include <stddef.h>

enum { KAPPA_CATEGORIES = 33 }; /* no rule, rules 1 to 31, any rule beyond */

struct kappa_table {
  double cell[KAPPA_CATEGORIES][KAPPA_CATEGORIES]; /* weights: first rater's verdict, second's */
  double squares;                                  /* sum of squared weights */
  unsigned long n;                                 /* turns */
};

struct kappa {
  unsigned long n;
  double agreement, agreement_low, agreement_high; /* shares */
  bool known;                                      /* false: both always say one and the same */
  double kappa, low, high;
};

/* Verdicts: number of a rule, 0 for none. */
void kappa_add(struct kappa_table *t, long first, long second, double weight);
struct kappa kappa_of(const struct kappa_table *t);
/* Wilson's 95 % interval of a share of n. */
void kappa_wilson(double share, double n, double *low, double *high);

#endif
