/* Computes intervals of shares. */
#include "audit/exact.h"

#include <assert.h>
#include <math.h>

static const double miss95 = 0.05;

/* --- the beta distribution --- */

/* Returns the continued fraction of the incomplete beta function, by Lentz's method (Press et al.,
 * Numerical Recipes, 6.4). */
static double beta_fraction(double a, double b, double x) {
  enum { STEPS = 10000 };
  const double tiny = 1e-300, enough = 1e-12;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (fabs(d) < tiny ? tiny : d);
  double f = d;
  for (int m = 1; m <= STEPS; m++) {
    double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 + even * d;
    c = 1 + even / c;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    f *= d * (fabs(c) < tiny ? tiny : c);
    d = 1 + odd * d;
    c = 1 + odd / c;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    f *= d * c;
    if (fabs(d * c - 1) < enough)
      break;
  }
  return f;
}

/* Returns the share of beta(a, b) below x. scale: the logarithm of its constant. */
static double beta_below(double a, double b, double scale, double x) {
  double front = exp(scale + a * log(x) + b * log1p(-x));
  if (x < (a + 1) / (a + b + 2))
    return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* Returns the point below which a share p of beta(a, b) lies; all lies at 0 if a is 0, at 1 if b
 * is. */
static double beta_point(double a, double b, double p) {
  enum { HALVINGS = 40 };
  double low = 0, high = 1;
  if (a <= 0 || b <= 0)
    return a > 0;
  double scale = lgamma(a + b) - lgamma(a) - lgamma(b);
  for (int i = 0; i < HALVINGS; i++) {
    double middle = (low + high) / 2;
    if (beta_below(a, b, scale, middle) < p)
      low = middle;
    else
      high = middle;
  }
  return (low + high) / 2;
}

struct exact exact_share(double hits, double n, double miss) {
  assert(hits >= 0);
  assert(hits <= n + 1e-9);
  double rest = fmax(0, n - hits);
  return (struct exact){.share = n > 0 ? hits / n : 0,
                        .low = beta_point(hits, rest + 1, miss / 2),
                        .high = beta_point(hits + 1, rest, 1 - miss / 2)};
}

/* --- cells --- */

struct moments {
  double mean, variance;
};

static struct moments beta_moments(double a, double b) {
  double n = a + b;
  return (struct moments){a / n, a * b / (n * n * (n + 1))};
}

/* Returns the labels of a cell as a number of equal ones (Kish 1965), and their hits. */
static double cell_labels(const struct exact_cell *c, double *hits) {
  double n = c->squares > 0 ? c->n * c->n / c->squares : 0;
  *hits = c->n > 0 ? fmin(1, c->hits / c->n) * n : 0;
  return n;
}

/* Returns the mid-P distribution of a cell's share: the even mixture of the two that give the
 * bounds of Clopper and Pearson. */
static struct moments cell_moments(double n, double hits) {
  struct moments low = beta_moments(hits, n - hits + 1), high = beta_moments(hits + 1, n - hits);
  double apart = high.mean - low.mean;
  return (struct moments){(low.mean + high.mean) / 2,
                          (low.variance + high.variance) / 2 + apart * apart / 4};
}

struct exact exact_cells(const struct exact_cell *cells, size_t count) {
  double all = 0, n = 0, hits = 0, between = 0;
  struct moments sum = {0};
  size_t last = 0, used = 0;
  for (size_t i = 0; i < count; i++) {
    all += cells[i].population;
    n += cells[i].n;
    hits += cells[i].hits;
    used += cells[i].population > 0;
    last = cells[i].population > 0 ? i : last;
  }
  struct exact out = {0, 0, 1};
  if (n <= 0)
    return out;
  for (size_t i = 0; i < count; i++) {
    double own = 0, labels = cell_labels(&cells[i], &own), part = cells[i].population / all;
    struct moments m = cell_moments(labels, own);
    out.share += part * (labels > 0 ? own / labels : hits / n);
    sum.mean += part * m.mean;
    sum.variance += part * part * m.variance;
  }
  if (used == 1) {
    n = cell_labels(&cells[last], &hits);
    return exact_share(hits, n, miss95);
  }
  for (size_t i = 0; i < count; i++) {
    double own = 0, labels = cell_labels(&cells[i], &own);
    double off = labels > 0 ? own / labels - out.share : 0;
    between += cells[i].population / all * off * off;
  }
  sum.variance += between / all;
  double k = sum.mean * (1 - sum.mean) / sum.variance - 1;
  if (k > 0) {
    out.low = fmin(out.share, beta_point(k * sum.mean, k * (1 - sum.mean), miss95 / 2));
    out.high = fmax(out.share, beta_point(k * sum.mean, k * (1 - sum.mean), 1 - miss95 / 2));
  }
  return out;
}

size_t exact_next(const struct exact_cell *cells, size_t count) {
  size_t best = count;
  double most = 0;
  for (size_t i = 0; i < count; i++) {
    double own = 0, labels = cell_labels(&cells[i], &own);
    double gain = cells[i].population * cells[i].population * cell_moments(labels, own).variance /
                  (labels + 1);
    if (labels < cells[i].population && gain > most) {
      most = gain;
      best = i;
    }
  }
  return best;
}

void exact_allot(const double *population, const double *doubt, size_t count, size_t want,
                 size_t *out) {
  for (size_t i = 0; i < count; i++)
    out[i] = 0;
  for (; want > 0; want--) {
    size_t best = count;
    double most = 0;
    for (size_t i = 0; i < count; i++) {
      double n = (double)out[i], part = population[i] * doubt[i];
      double gain = out[i] > 0 ? part * part / (n * (n + 1)) : HUGE_VAL;
      bool largest = gain > most || (best < count && gain >= HUGE_VAL && most >= HUGE_VAL &&
                                     part > population[best] * doubt[best]);
      if (n < population[i] && largest) {
        most = gain;
        best = i;
      }
    }
    if (best == count)
      return;
    out[best]++;
  }
}

/* --- days --- */

static double plain_share(const struct exact_day *d) {
  return (double)d->hits / (double)d->all;
}

/* Returns whether the two shares differ: Newcombe's interval leaves out 0. */
static bool shares_differ(const struct exact_day *x, const struct exact_day *y, double miss) {
  if (plain_share(x) > plain_share(y)) {
    const struct exact_day *swap = x;
    x = y;
    y = swap;
  }
  double low = exact_share((double)y->hits, (double)y->all, miss).low;
  double high = exact_share((double)x->hits, (double)x->all, miss).high;
  return plain_share(y) - plain_share(x) > hypot(plain_share(y) - low, high - plain_share(x));
}

/* Returns the logarithm of the likelihood of a side with its own share. */
static double side_likelihood(const struct exact_day *d) {
  double p = plain_share(d), n = (double)d->all;
  return (p > 0 ? n * p * log(p) : 0) + (p < 1 ? n * (1 - p) * log1p(-p) : 0);
}

bool exact_change(const struct exact_day *days, size_t count, size_t series,
                  struct exact_change *out) {
  struct exact_day all = {0}, before = {0};
  double best = -INFINITY;
  for (size_t i = 0; i < count; i++) {
    all.hits += days[i].hits;
    all.all += days[i].all;
  }
  for (size_t i = 1; i < count; i++) {
    before.hits += days[i - 1].hits;
    before.all += days[i - 1].all;
    struct exact_day since = {days[i].day, all.hits - before.hits, all.all - before.all};
    if (before.all < EXACT_SIDE_LEAST || since.all < EXACT_SIDE_LEAST)
      continue;
    double likely = side_likelihood(&before) + side_likelihood(&since);
    if (likely > best && shares_differ(&before, &since, miss95 / (double)((count - 1) * series))) {
      best = likely;
      *out = (struct exact_change){i, before, since};
    }
  }
  return best > -INFINITY;
}
