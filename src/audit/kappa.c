/* Measures the agreement of two raters. */
#include "audit/kappa.h"

#include <assert.h>
#include <math.h>

static const double z95 = 1.959963984540054;

static size_t category(long verdict) {
  if (verdict <= 0)
    return 0;
  return verdict < KAPPA_CATEGORIES - 1 ? (size_t)verdict : KAPPA_CATEGORIES - 1;
}

void kappa_add(struct kappa_table *t, long first, long second, double weight) {
  assert(weight > 0);
  t->cell[category(first)][category(second)] += weight;
  t->squares += weight * weight;
  t->n++;
}

void kappa_wilson(double share, double n, double *low, double *high) {
  assert(n > 0);
  double z2 = z95 * z95 / n, middle = share + z2 / 2;
  double half = z95 * sqrt(share * (1 - share) / n + z2 / (4 * n));
  *low = fmax(0, (middle - half) / (1 + z2));
  *high = fmin(1, (middle + half) / (1 + z2));
}

struct margins {
  double first[KAPPA_CATEGORIES], second[KAPPA_CATEGORIES]; /* shares */
  double sum, agree, chance;
};

static struct margins margins_of(const struct kappa_table *t) {
  struct margins m = {0};
  for (size_t i = 0; i < KAPPA_CATEGORIES; i++)
    for (size_t k = 0; k < KAPPA_CATEGORIES; k++)
      m.sum += t->cell[i][k];
  for (size_t i = 0; i < KAPPA_CATEGORIES && m.sum > 0; i++) {
    m.agree += t->cell[i][i] / m.sum;
    for (size_t k = 0; k < KAPPA_CATEGORIES; k++) {
      m.first[i] += t->cell[i][k] / m.sum;
      m.second[k] += t->cell[i][k] / m.sum;
    }
  }
  for (size_t i = 0; i < KAPPA_CATEGORIES; i++)
    m.chance += m.first[i] * m.second[i];
  return m;
}

/* Equation 13 of Fleiss, Cohen and Everitt, Psychological Bulletin 72 (1969), 323-327. */
static double kappa_error(const struct kappa_table *t, const struct margins *m, double kappa,
                          double n) {
  double a = 0, b = 0, rest = 1 - kappa, c = kappa - m->chance * rest;
  for (size_t i = 0; i < KAPPA_CATEGORIES; i++)
    for (size_t k = 0; k < KAPPA_CATEGORIES; k++) {
      double p = t->cell[i][k] / m->sum;
      if (i == k) {
        double own = 1 - (m->first[i] + m->second[i]) * rest;
        a += p * own * own;
      } else {
        double across = m->second[i] + m->first[k];
        b += p * across * across;
      }
    }
  return sqrt(fmax(0, (a + rest * rest * b - c * c) / n)) / (1 - m->chance);
}

struct kappa kappa_of(const struct kappa_table *t) {
  struct margins m = margins_of(t);
  struct kappa k = {.n = t->n, .agreement = m.agree};
  if (t->n == 0)
    return k;
  double n = m.sum * m.sum / t->squares;
  kappa_wilson(fmin(1, m.agree), n, &k.agreement_low, &k.agreement_high);
  k.known = m.chance < 1 - 1e-12;
  if (!k.known)
    return k;
  k.kappa = (m.agree - m.chance) / (1 - m.chance);
  double half = z95 * kappa_error(t, &m, k.kappa, n);
  k.low = fmax(-1, k.kappa - half);
  k.high = fmin(1, k.kappa + half);
  return k;
}
