/* Kappa and intervals against published worked examples. */
#include "audit/kappa.h"

#include "base/err.h"
#include "support/test.h"

#include <math.h>

static void near_to(double got, double wanted, double off) {
  if (!(fabs(got - wanted) <= off))
    fail_msg("%.6f is not %.6f", got, wanted);
}

static struct kappa of(const int *cells, size_t k) {
  struct kappa_table t = {0};
  for (size_t i = 0; i < k; i++)
    for (size_t j = 0; j < k; j++)
      for (int n = 0; n < cells[i * k + j]; n++)
        kappa_add(&t, (long)i, (long)j, 1);
  return kappa_of(&t);
}

/* SAS/STAT User's Guide, PROC FREQ, "Agreement Study": kappa 0.3449, ASE 0.0724, 95 % confidence
 * limits 0.2030 and 0.4868. */
TEST(sas_skin_condition) {
  static const int cells[] = {10, 4, 1, 0, 5, 10, 12, 2, 2, 4, 12, 5, 0, 2, 6, 13};
  struct kappa k = of(cells, 4);
  assert_true(k.known);
  near_to(k.kappa, 0.3449, 0.00005);
  near_to(k.low, 0.2030, 0.00005);
  near_to(k.high, 0.4868, 0.00005);
}

/* Fleiss, Levin, Paik, Statistical Methods for Rates and Proportions, 3rd edition, table 18.1
 * (Fleiss 1981, p. 213): kappa .68, standard error .087, interval from .51 to .85. */
TEST(fleiss_diagnoses) {
  static const int cells[] = {75, 1, 4, 5, 4, 1, 0, 0, 10};
  struct kappa k = of(cells, 3);
  near_to(k.kappa, 0.68, 0.005);
  near_to((k.high - k.low) / 2 / 1.96, 0.087, 0.001);
  near_to(k.high, 0.85, 0.005);
}

/* R package statpsych, ci.kappa(.05, 31, 12, 4, 58): 0.6756757, SE 0.07344761, from 0.5317210 to
 * 0.8196303. */
TEST(statpsych_two_by_two) {
  static const int cells[] = {31, 12, 4, 58};
  struct kappa k = of(cells, 2);
  near_to(k.kappa, 0.6756757, 1e-7);
  near_to(k.low, 0.5317210, 1e-6);
  near_to(k.high, 0.8196303, 1e-6);
}

/* Cohen, Educational and Psychological Measurement 20 (1960), as counts of 200: kappa .492; the
 * same kind of table in Fleiss, Cohen and Everitt (1969): kappa .429, variance .002885. */
TEST(cohen_and_fleiss_tables) {
  static const int cohen[] = {88, 14, 18, 10, 40, 10, 2, 6, 12};
  static const int everitt[] = {106, 10, 4, 22, 28, 10, 2, 12, 6};
  struct kappa k = of(cohen, 3);
  near_to(k.kappa, 0.492, 0.0005);
  k = of(everitt, 3);
  near_to(k.kappa, 0.429, 0.0005);
  near_to(pow((k.high - k.low) / 2 / 1.959964, 2), 0.002885, 0.000001);
}

/* Landis and Koch, Biometrics 33 (1977), 159-174: two neurologists, patients of Winnipeg (kappa
 * .208, standard error .050) and of New Orleans (.297, .079). */
TEST(landis_and_koch_patients) {
  static const int winnipeg[] = {38, 5, 0, 1, 33, 11, 3, 0, 10, 14, 5, 6, 3, 7, 3, 10};
  static const int orleans[] = {5, 3, 0, 0, 3, 11, 4, 0, 2, 13, 3, 4, 1, 2, 4, 14};
  struct kappa k = of(winnipeg, 4);
  near_to(k.kappa, 0.208, 0.0005);
  near_to((k.high - k.low) / 2 / 1.96, 0.050, 0.001);
  k = of(orleans, 4);
  near_to(k.kappa, 0.297, 0.0005);
  near_to((k.high - k.low) / 2 / 1.96, 0.079, 0.001);
}

/* Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81 of 263 from .2553 to .3662, 15
 * of 148 from .0624 to .1605, 0 of 20 from 0 to .1611, 1 of 29 from .0061 to .1718. */
TEST(newcombe_shares) {
  static const struct {
    double x, n, low, high;
  } rows[] = {{81, 263, 0.2553, 0.3662},
              {15, 148, 0.0624, 0.1605},
              {0, 20, 0, 0.1611},
              {1, 29, 0.0061, 0.1718}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    double low, high;
    kappa_wilson(rows[i].x / rows[i].n, rows[i].n, &low, &high);
    near_to(low, rows[i].low, 0.00005);
    near_to(high, rows[i].high, 0.00005);
  }
}

TEST(corners) {
  struct kappa_table t = {0};
  assert_false(kappa_of(&t).known);
  for (int i = 0; i < 50; i++)
    kappa_add(&t, 1, 1, 1);
  struct kappa k = kappa_of(&t);
  assert_false(k.known); /* both say the same always: chance agrees as much */
  near_to(k.agreement, 1, 0);
  kappa_add(&t, 2, 2, 1);
  near_to(kappa_of(&t).kappa, 1, 1e-12);
  kappa_add(&t, 1000000, -5, 1);
  assert_true(kappa_of(&t).kappa < 1);
}

/* A rater who never varies makes kappa 0 by arithmetic: it is not known, however many turns. */
/* 60 turns, one rater names the second rule twice, the other never (Gwet 2008: AC1 0.9655). */
TEST(shares_of_each_rule) {
  struct kappa_table t = {0};
  for (int n = 0; n < 60; n++)
    kappa_add(&t, 1, n < 58 ? 1 : 2, 1);
  struct kappa_rule one = kappa_rule_of(&t, 1, true), two = kappa_rule_of(&t, 2, true);
  near_to(one.found.share, 58.0 / 60, 1e-12);
  near_to(one.found.low, 0.886, 0.0005);
  near_to(one.found.high, 0.991, 0.0005);
  near_to(one.right.share, 1, 1e-12);
  assert_true(two.found.n == 0);
  near_to(two.right.n, 2, 1e-12);
  near_to(two.right.high, 0.658, 0.0005);
  near_to(kappa_ac1(&t), 0.9655, 0.0005);
  assert_int_equal(kappa_needed(1, 0.8), 16);
  assert_int_equal(kappa_needed(0, 0.8), 1);
  assert_int_equal(kappa_needed(0.8, 0.8), 0);
}

TEST(one_never_varies) {
  struct kappa_table t = {0}, back = {0};
  struct kappa_stratum stratum = {.weight = 7.0 / 3};
  for (int i = 0; i < 60; i++) {
    kappa_add(&t, 1, i < 58 ? 1 : 2, 7.0 / 3);
    kappa_add(&back, i < 58 ? 1 : 2, 1, 1);
    kappa_stratum_add(&stratum, 1, i < 58 ? 1 : 2);
  }
  assert_false(kappa_of(&t).known);
  assert_false(kappa_of(&back).known);
  assert_false(kappa_of_strata(&t, &stratum, 1).known);
  near_to(kappa_of(&back).agreement, 58.0 / 60, 1e-12);
  kappa_add(&t, 2, 1, 7.0 / 3);
  assert_true(kappa_of(&t).known);
  struct kappa_table once = {0};
  kappa_add(&once, 1, 2, 1);
  assert_false(kappa_of(&once).known);
}

/* A weight of three is three turns for the share, and one for how sure it is. */
TEST(weights) {
  struct kappa_table t = {0}, plain = {0};
  for (int i = 0; i < 40; i++) {
    long second = i % 4 == 0 ? 2 : 1;
    kappa_add(&t, 1 + i % 2, second, i % 2 == 0 ? 3 : 1);
    for (int n = 0; n < (i % 2 == 0 ? 3 : 1); n++)
      kappa_add(&plain, 1 + i % 2, second, 1);
  }
  struct kappa k = kappa_of(&t), p = kappa_of(&plain);
  near_to(k.kappa, p.kappa, 1e-12);
  near_to(k.agreement, p.agreement, 1e-12);
  assert_true(k.high - k.low > p.high - p.low);
}

/* Cochran, Sampling Techniques (1977), 5.9: the variance of a stratified mean is the sum of
 * W^2 (1 - f) s^2 / n. Worked out by hand for two strata, with a turn more of each kind in s^2. */
TEST(strata_by_hand) {
  struct kappa_table t = {0};
  struct kappa_stratum strata[2] = {{.weight = 10}, {.weight = 2}};
  for (int i = 0; i < 20; i++) { /* 200, of which 20 were drawn and 15 agree */
    kappa_add(&t, 1, i < 15 ? 1 : 2, 10);
    kappa_stratum_add(&strata[0], 1, i < 15 ? 1 : 2);
  }
  for (int i = 0; i < 40; i++) { /* 80, of which 40 were drawn and 10 agree */
    kappa_add(&t, 2, i < 10 ? 2 : 1, 2);
    kappa_stratum_add(&strata[1], 2, i < 10 ? 2 : 1);
  }
  struct kappa k = kappa_of_strata(&t, strata, 2);
  double w1 = 200.0 / 280, w2 = 80.0 / 280, share = w1 * .75 + w2 * .25, low, high;
  double variance =
      w1 * w1 * .9 * (16. / 22 * 6 / 22 / 20) + w2 * w2 * .5 * (11. / 42 * 31 / 42 / 40);
  kappa_wilson(share, share * (1 - share) / variance, &low, &high);
  near_to(k.agreement, share, 1e-12);
  near_to(k.agreement_low, low, 1e-12);
  near_to(k.agreement_high, high, 1e-12);
}

/* One stratum of which little was drawn is no other thing than a plain sample. */
TEST(one_stratum_is_a_plain_sample) {
  struct kappa_table t = {0}, plain = {0};
  struct kappa_stratum stratum = {.weight = 1e9};
  static const int cells[] = {75, 1, 4, 5, 4, 1, 0, 0, 10};
  for (int i = 0; i < 9; i++)
    for (int n = 0; n < cells[i]; n++) {
      kappa_add(&t, i / 3, i % 3, 1e9);
      kappa_add(&plain, i / 3, i % 3, 1);
      kappa_stratum_add(&stratum, i / 3, i % 3);
    }
  struct kappa a = kappa_of_strata(&t, &stratum, 1), b = kappa_of(&plain);
  near_to(a.kappa, b.kappa, 1e-12);
  near_to(a.low, b.low, 0.002); /* n - 1 instead of n */
  near_to(a.high, b.high, 0.002);
  near_to(a.agreement_low, b.agreement_low, 0.01);
}

static uint32_t chance_of(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33);
}

TEST(no_negative_zero) {
  assert_true(kappa_shown(-0.004) == 0 && !signbit(kappa_shown(-0.004)));
  assert_true(kappa_shown(-0.006) == -0.006);
}

/* Two raters who never agree in a sample, and two who always do, whose shares are sums of
 * fractions: the interval is that of so many turns without strata. */
TEST(one_sided_strata) {
  for (long other = 1; other <= 2; other++) {
    struct kappa_table t = {0};
    struct kappa_stratum strata[3] = {
        {.weight = 22.0 / 5}, {.weight = 8.0 / 5}, {.weight = 7.0 / 3}};
    for (size_t i = 0; i < 13; i++) {
      size_t h = i / 5;
      kappa_add(&t, 1, other, strata[h].weight);
      kappa_stratum_add(&strata[h], 1, other);
    }
    struct kappa k = kappa_of_strata(&t, strata, 3), plain = kappa_of(&t);
    near_to(k.agreement, other == 1, 1e-9);
    near_to(k.agreement_low, plain.agreement_low, 1e-12);
    near_to(k.agreement_high, plain.agreement_high, 1e-12);
    assert_true(k.agreement_high - k.agreement_low < 0.5);
  }
}

/* 3,000 samples of a population whose truth is known, as many of each of three unlike strata: the
 * mean of the estimates is the truth, and 95 % intervals hold it about so often. */
TEST(samples_of_a_known_truth) {
  enum { STRATA = 3, DRAWN = 40, TIMES = 3000 };
  static const double size[STRATA] = {8000, 1500, 500};
  /* of each stratum, in thousands: both say 1, 1 against 2, 2 against 1, both say 2 */
  static const int shares[STRATA][4] = {
      {620, 20, 30, 330}, {300, 250, 150, 300}, {100, 50, 600, 250}};
  struct kappa_table all = {0};
  uint64_t seed = 23;
  double agreement = 0, kappa = 0;
  int holds = 0, holds_kappa = 0;
  for (int h = 0; h < STRATA; h++)
    for (int c = 0; c < 4; c++)
      kappa_add(&all, 1 + c / 2, 1 + c % 2, size[h] * shares[h][c] / 1000);
  struct kappa truth = kappa_of(&all);
  for (int i = 0; i < TIMES; i++) {
    struct kappa_table t = {0};
    struct kappa_stratum strata[STRATA] = {{0}};
    for (int h = 0; h < STRATA; h++) {
      strata[h].weight = size[h] / DRAWN;
      for (int n = 0; n < DRAWN; n++) {
        int at = (int)(chance_of(&seed) % 1000), c = 0;
        for (; at >= shares[h][c]; c++)
          at -= shares[h][c];
        kappa_add(&t, 1 + c / 2, 1 + c % 2, strata[h].weight);
        kappa_stratum_add(&strata[h], 1 + c / 2, 1 + c % 2);
      }
    }
    struct kappa k = kappa_of_strata(&t, strata, STRATA);
    agreement += k.agreement / TIMES;
    kappa += k.kappa / TIMES;
    holds += k.agreement_low <= truth.agreement && truth.agreement <= k.agreement_high;
    holds_kappa += k.low <= truth.kappa && truth.kappa <= k.high;
  }
  near_to(agreement, truth.agreement, 0.003);
  near_to(kappa, truth.kappa, 0.01);
  assert_in_range(holds, TIMES * 94 / 100, TIMES * 99 / 100);
  assert_in_range(holds_kappa, TIMES * 92 / 100, TIMES * 98 / 100);
}
