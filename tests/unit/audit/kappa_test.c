/* Kappa and intervals against published worked examples. */
#include "audit/kappa.h"

#include "base/err.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

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
static void sas_skin_condition(void **state) {
  (void)state;
  static const int cells[] = {10, 4, 1, 0, 5, 10, 12, 2, 2, 4, 12, 5, 0, 2, 6, 13};
  struct kappa k = of(cells, 4);
  assert_true(k.known);
  near_to(k.kappa, 0.3449, 0.00005);
  near_to(k.low, 0.2030, 0.00005);
  near_to(k.high, 0.4868, 0.00005);
}

/* Fleiss, Levin, Paik, Statistical Methods for Rates and Proportions, 3rd edition, table 18.1
 * (Fleiss 1981, p. 213): kappa .68, standard error .087, interval from .51 to .85. */
static void fleiss_diagnoses(void **state) {
  (void)state;
  static const int cells[] = {75, 1, 4, 5, 4, 1, 0, 0, 10};
  struct kappa k = of(cells, 3);
  near_to(k.kappa, 0.68, 0.005);
  near_to((k.high - k.low) / 2 / 1.96, 0.087, 0.001);
  near_to(k.high, 0.85, 0.005);
}

/* R package statpsych, ci.kappa(.05, 31, 12, 4, 58): 0.6756757, SE 0.07344761, from 0.5317210 to
 * 0.8196303. */
static void statpsych_two_by_two(void **state) {
  (void)state;
  static const int cells[] = {31, 12, 4, 58};
  struct kappa k = of(cells, 2);
  near_to(k.kappa, 0.6756757, 1e-7);
  near_to(k.low, 0.5317210, 1e-6);
  near_to(k.high, 0.8196303, 1e-6);
}

/* Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81 of 263 from .2553 to .3662, 15
 * of 148 from .0624 to .1605, 0 of 20 from 0 to .1611, 1 of 29 from .0061 to .1718. */
static void newcombe_shares(void **state) {
  (void)state;
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

static void corners(void **state) {
  (void)state;
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

/* A weight of three is three turns for the share, and one for how sure it is. */
static void weights(void **state) {
  (void)state;
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sas_skin_condition),
                                     cmocka_unit_test(fleiss_diagnoses),
                                     cmocka_unit_test(statpsych_two_by_two),
                                     cmocka_unit_test(newcombe_shares),
                                     cmocka_unit_test(corners),
                                     cmocka_unit_test(weights)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
