/* Measures the agreement of two raters. */
#include "audit/kappa.h"

#include <assert.h>
#include <math.h>

static const double z95 = 1.959963984540054;
/* a share this near to 0 or 1 is 0 or 1: sums of weights are not exact */
static const double share_edge = 1e-9;

size_t kappa_category(long verdict) {
  if (verdict <= 0)
    return 0;
  return verdict < KAPPA_CATEGORIES - 1 ? (size_t)verdict : KAPPA_CATEGORIES - 1;
}

void kappa_add(struct kappa_table *t, long first, long second, double weight) {
  assert(weight > 0);
  t->cell[kappa_category(first)][kappa_category(second)] += weight;
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

double kappa_shown(double number) {
  return fabs(number) < 0.005 ? 0 : number;
}

struct margins {
  double first[KAPPA_CATEGORIES], second[KAPPA_CATEGORIES]; /* shares */
  double sum, agree, chance;
  double most; /* the largest of either's shares */
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
  for (size_t i = 0; i < KAPPA_CATEGORIES; i++) {
    m.chance += m.first[i] * m.second[i];
    m.most = fmax(m.most, fmax(m.first[i], m.second[i]));
  }
  return m;
}

/* Computes equation 13 of Fleiss, Cohen and Everitt, Psychological Bulletin 72 (1969), 323-327. */
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
  double spread = a + rest * rest * b - c * c;
  return spread > 1e-12 ? sqrt(spread / n) / (1 - m->chance) : 0; /* less is rounding */
}

struct kappa kappa_of(const struct kappa_table *t) {
  struct margins m = margins_of(t);
  struct kappa k = {.n = t->n, .agreement = m.agree};
  if (t->n == 0)
    return k;
  double n = m.sum * m.sum / t->squares;
  kappa_wilson(fmin(1, m.agree), n, &k.agreement_low, &k.agreement_high);
  k.known = m.most < 1 - share_edge;
  if (!k.known)
    return k;
  k.kappa = (m.agree - m.chance) / (1 - m.chance);
  double half = z95 * kappa_error(t, &m, k.kappa, n);
  k.low = fmax(-1, k.kappa - half);
  k.high = fmin(1, k.kappa + half);
  return k;
}

static struct kappa_share share_of(const struct kappa_table *t, double sum, double of, double hit) {
  struct kappa_share s = {.of = of, .hit = hit};
  if (of <= 0)
    return s;
  s.n = of * sum / t->squares;
  s.share = fmin(1, hit / of);
  kappa_wilson(s.share, s.n, &s.low, &s.high);
  return s;
}

struct kappa_rule kappa_rule_of(const struct kappa_table *t, int rule, bool first_is_reference) {
  const struct margins m = margins_of(t);
  double both = t->cell[rule][rule], first = 0, second = 0;
  for (size_t k = 0; k < KAPPA_CATEGORIES; k++) {
    first += t->cell[rule][k];
    second += t->cell[k][rule];
  }
  return (struct kappa_rule){
      .found = share_of(t, m.sum, first_is_reference ? first : second, both),
      .right = share_of(t, m.sum, first_is_reference ? second : first, both),
  };
}

double kappa_ac1(const struct kappa_table *t) {
  const struct margins m = margins_of(t);
  double chance = 0;
  int used = 0;
  for (size_t i = 0; i < KAPPA_CATEGORIES; i++) {
    double mean = (m.first[i] + m.second[i]) / 2;
    used += mean > 0;
    chance += mean * (1 - mean);
  }
  chance = used > 1 ? chance / (used - 1) : 0;
  return (m.agree - chance) / (1 - chance);
}

int kappa_needed(double share, double bound) {
  for (int n = 1; n <= KAPPA_NEEDED_MOST; n++) {
    double low, high;
    kappa_wilson(share, n, &low, &high);
    if (low >= bound || high < bound)
      return n;
  }
  return 0;
}

/* --- samples by strata --- */

void kappa_stratum_add(struct kappa_stratum *s, long first, long second) {
  s->cell[kappa_category(first)][kappa_category(second)]++;
  s->n++;
}

enum { ADDED_OF_ALL = 6 };

/* Returns a stratum's share in the variance of the whole mean. spread: the variance of one turn. */
static double stratum_part(const struct kappa_stratum *s, double sum, double spread) {
  double n = (double)s->n, share = s->weight * n / sum;
  return s->weight > 1 ? share * share * (1 - 1 / s->weight) * fmax(0, spread) / n : 0;
}

static double share_variance(const struct margins *m, const struct kappa_stratum *strata,
                             size_t count) {
  double variance = 0;
  for (size_t h = 0; h < count; h++) {
    double same = 1, n = (double)strata[h].n + 2;
    for (size_t i = 0; i < KAPPA_CATEGORIES; i++)
      same += strata[h].cell[i][i];
    variance += stratum_part(&strata[h], m->sum, same / n * (1 - same / n));
  }
  return variance;
}

/* Returns how much a turn of this cell moves kappa. */
static double kappa_move(const struct margins *m, double kappa, size_t i, size_t k) {
  double chance = m->second[i] + m->first[k] - 2 * m->chance;
  return ((double)(i == k) - m->agree - (1 - kappa) * chance) / (1 - m->chance);
}

static double kappa_spread(const struct kappa_table *t, const struct margins *m, double kappa,
                           const struct kappa_stratum *s) {
  double sum = 0, squares = 0, n = (double)s->n + ADDED_OF_ALL;
  for (size_t i = 0; i < KAPPA_CATEGORIES; i++)
    for (size_t k = 0; k < KAPPA_CATEGORIES; k++) {
      double turns = s->cell[i][k] + ADDED_OF_ALL * t->cell[i][k] / m->sum;
      double move = turns > 0 ? kappa_move(m, kappa, i, k) : 0;
      sum += turns * move;
      squares += turns * move * move;
    }
  return (squares - sum * sum / n) / (n - 1);
}

struct kappa kappa_of_strata(const struct kappa_table *t, const struct kappa_stratum *strata,
                             size_t count) {
  struct margins m = margins_of(t);
  struct kappa k = kappa_of(t);
  if (k.n == 0 || count == 0)
    return k;
  double share = fmin(1, m.agree), variance = share_variance(&m, strata, count);
  bool one_sided = share < share_edge || share > 1 - share_edge; /* Wilson's n would be 0 */
  if (variance > 0 && !one_sided)
    kappa_wilson(share, share * (1 - share) / variance, &k.agreement_low, &k.agreement_high);
  if (!k.known)
    return k;
  variance = 0;
  for (size_t h = 0; h < count; h++)
    variance += stratum_part(&strata[h], m.sum, kappa_spread(t, &m, k.kappa, &strata[h]));
  if (variance > 0) {
    k.low = fmax(-1, k.kappa - z95 * sqrt(variance));
    k.high = fmin(1, k.kappa + z95 * sqrt(variance));
  }
  return k;
}
