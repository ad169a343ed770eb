/* Intervals of shares against published values, and simulated users and series of days. */
#include "audit/exact.h"

#include "base/limits.h"
#include "support/test.h"

#include <math.h>

static void near_to(double got, double wanted, double off) {
  if (!(fabs(got - wanted) <= off))
    fail_msg("%.7f is not %.7f", got, wanted);
}

/* R: binom.test(x, n)$conf.int, also at other levels. */
TEST(clopper_pearson) {
  static const struct {
    double hits, n, miss, low, high;
  } rows[] = {{0, 60, 0.05, 0, 0.0596295},
              {3, 60, 0.05, 0.0104323, 0.1392432},
              {60, 60, 0.05, 0.9403705, 1},
              {10, 20, 0.05, 0.2719578, 0.7280422},
              {1, 1, 0.05, 0.025, 1},
              {0, 0, 0.05, 0, 1},
              {682, 925, 0.05, 0.7076683, 0.7654066},
              {1, 10, 0.01, 0.0005011, 0.5442871}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct exact e = exact_share(rows[i].hits, rows[i].n, rows[i].miss);
    near_to(e.low, rows[i].low, 1e-6);
    near_to(e.high, rows[i].high, 1e-6);
  }
}

TEST(one_cell_is_the_exact_interval) {
  struct exact_cell one = {.population = 412, .n = 60, .hits = 3, .squares = 60};
  struct exact e = exact_cells(&one, 1), plain = exact_share(3, 60, 0.05);
  assert_true(e.low == plain.low);
  assert_true(e.high == plain.high);
  /* each of these labels stands for two judgments: nothing else changes */
  one = (struct exact_cell){.population = 412, .n = 120, .hits = 6, .squares = 240};
  e = exact_cells(&one, 1);
  near_to(e.high, plain.high, 1e-9);
}

TEST(nothing_known_is_said_so) {
  struct exact_cell cells[] = {{.population = 10}, {.population = 5}};
  struct exact e = exact_cells(cells, 2);
  assert_true(e.low == 0);
  assert_true(e.high == 1);
  /* a cell without labels may hold anything, and is the next to label */
  cells[0] = (struct exact_cell){.population = 50, .n = 50, .squares = 50};
  cells[1] = (struct exact_cell){.population = 50};
  e = exact_cells(cells, 2);
  assert_true(e.high > 0.5);
  assert_true(exact_next(cells, 2) == 1);
  cells[1] = (struct exact_cell){.population = 50, .n = 50, .hits = 9, .squares = 50};
  assert_true(exact_next(cells, 2) == 2);
}

TEST(labels_go_where_doubt_is) {
  static const double population[] = {900, 90, 10, 4}, doubt[] = {0.3, 0.5, 0.3, 0.5};
  size_t out[4];
  exact_allot(population, doubt, 4, 60, out);
  assert_true(out[0] + out[1] + out[2] + out[3] == 60);
  assert_true(out[0] > 45);
  assert_true(out[1] > 5);
  assert_true(out[2] == 1);
  assert_true(out[3] == 1);
  exact_allot(population, doubt, 4, 2, out); /* the largest strata first */
  assert_true(out[0] == 1);
  assert_true(out[1] == 1);
  exact_allot(population, doubt, 4, 5000, out); /* no more than there are */
  assert_true(out[0] == 900);
  assert_true(out[3] == 4);
}

/* --- simulated users --- */

static double chance(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 11) / 9007199254740992.0;
}

enum { USERS = 1000, LABELS = 60 };

struct second_judge {
  double finds, alarms; /* of wrong approvals, and of right ones, the share it does not approve */
  size_t approvals;
};

struct user_figures {
  double covers, width, alone_covers, alone_width; /* means */
};

/* Returns the wrong ones among n drawn from `all`, of which `wrong` are. */
static double draw(uint64_t *seed, size_t all, size_t wrong, size_t n) {
  double hits = 0;
  for (size_t i = 0; i < n; i++) {
    bool hit = chance(seed) * (double)(all - i) < (double)wrong;
    hits += hit;
    wrong -= hit;
  }
  return hits;
}

static struct user_figures simulate(double rate, struct second_judge judge, uint64_t seed) {
  static const double doubt[] = {0.3, 0.5};
  struct user_figures f = {0};
  struct exact plains[LABELS + 1];
  for (int i = 0; i <= LABELS; i++)
    plains[i] = exact_share(i, LABELS, 0.05);
  for (int user = 0; user < USERS; user++) {
    size_t wrong[2] = {0}, n[2];
    double population[2] = {0};
    for (size_t i = 0; i < judge.approvals; i++) {
      bool is_wrong = chance(&seed) < rate;
      bool differs = chance(&seed) < (is_wrong ? judge.finds : judge.alarms);
      wrong[differs] += is_wrong;
      population[differs]++;
    }
    exact_allot(population, doubt, 2, LABELS, n);
    struct exact_cell cells[2];
    for (int i = 0; i < 2; i++)
      cells[i] = (struct exact_cell){.population = population[i],
                                     .n = (double)n[i],
                                     .hits = draw(&seed, (size_t)population[i], wrong[i], n[i]),
                                     .squares = (double)n[i]};
    struct exact e = exact_cells(cells, 2);
    double alone = draw(&seed, judge.approvals, wrong[0] + wrong[1], LABELS);
    struct exact plain = plains[(size_t)alone];
    f.covers += (double)(e.low <= rate && rate <= e.high) / USERS;
    f.width += (e.high - e.low) / USERS;
    f.alone_covers += (double)(plain.low <= rate && rate <= plain.high) / USERS;
    f.alone_width += (plain.high - plain.low) / USERS;
  }
  return f;
}

static const double rates[] = {0.02, 0.05, 0.2};

/* A good second judge finds 98 % of the wrong approvals, and doubts 1 % of the right ones. Together
 * the intervals are a third narrower than those of 60 labels alone. At 2 % nothing can be: where
 * all labels of the large cell are right, 95 % confidence leaves three in as many as there are. */
TEST(a_good_second_judge_saves_a_third) {
  static const double narrower[] = {0.7, 0.62, 0.5};
  double width = 0, alone = 0;
  for (size_t i = 0; i < 3; i++) {
    struct user_figures f = simulate(rates[i], (struct second_judge){0.98, 0.01, 1000}, 55);
    print_message("%2.0f %%: covers %.3f, width %.4f; labels alone %.3f, %.4f; %.2f\n",
                  100 * rates[i], f.covers, f.width, f.alone_covers, f.alone_width,
                  f.width / f.alone_width);
    assert_true(f.covers >= 0.93);
    assert_true(f.alone_covers >= 0.93);
    assert_true(f.width <= narrower[i] * f.alone_width);
    width += f.width;
    alone += f.alone_width;
  }
  assert_true(width <= alone * 2 / 3);
}

/* Whatever the second judge is, and however many approvals there are. */
TEST(intervals_cover) {
  static const struct second_judge judges[] = {{0.9, 0.05, 300}, {0.5, 0.5, 1000},
                                               {0, 0.1, 500},    {0.7, 0.2, 120},
                                               {1, 0, 800},      {0.3, 0.01, 600}};
  static const double more[] = {0.01, 0.02, 0.035, 0.05, 0.2, 0.5};
  double least = 1;
  for (size_t k = 0; k < sizeof judges / sizeof *judges; k++)
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
      struct user_figures f = simulate(more[i], judges[k], 7 * k + i + 1);
      if (f.covers < 0.93)
        print_message("%zu: %.3f covers %.3f\n", k, more[i], f.covers);
      least = fmin(least, f.covers);
    }
  print_message("least %.3f\n", least);
  assert_true(least >= 0.93);
}

/* --- days --- */

/* At most 5 in 100 unchanged series are said to have changed. */
TEST(an_unchanged_series_says_nothing) {
  static const double shares[] = {0, 0.005, 0.03, 0.1, 0.5, 0.97};
  static const size_t days[] = {2, 7, 30}, most[] = {3, 20, 60};
  uint64_t seed = 11;
  enum { SERIES = 200 };
  for (size_t s = 0; s < 6; s++)
    for (size_t d = 0; d < 3; d++)
      for (size_t m = 0; m < 3; m++) {
        int said = 0;
        for (int k = 0; k < SERIES; k++) {
          struct exact_day series[30] = {0};
          struct exact_change change;
          for (size_t i = 0; i < days[d]; i++) {
            series[i].day = (uint32_t)(20000 + i);
            series[i].all = 1 + (uint64_t)(chance(&seed) * (double)most[m]);
            for (uint64_t n = 0; n < series[i].all; n++)
              series[i].hits += chance(&seed) < shares[s];
          }
          said += exact_change(series, days[d], 1, &change);
        }
        if (said * 20 > SERIES)
          fail_msg("%d of %d at %.3f, %zu days, %zu", said, SERIES, shares[s], days[d], most[m]);
      }
}

TEST(a_change_is_dated) {
  uint64_t seed = 3;
  int found = 0, near = 0;
  enum { SERIES = 100, DAYS = 20, CHANGED = 12 };
  for (int k = 0; k < SERIES; k++) {
    struct exact_day series[DAYS] = {0};
    struct exact_change change;
    for (size_t i = 0; i < DAYS; i++) {
      series[i] = (struct exact_day){.day = (uint32_t)i, .all = 80};
      for (int n = 0; n < 80; n++)
        series[i].hits += chance(&seed) < (i < CHANGED ? 0.03 : 0.12);
    }
    if (!exact_change(series, DAYS, 3, &change))
      continue;
    found++;
    near += change.since.day + 1 >= CHANGED && change.since.day <= CHANGED + 1;
    assert_true(change.before.all + change.since.all == 80 * DAYS);
  }
  print_message("found %d, within a day %d\n", found, near);
  assert_true(found >= 95);
  assert_true(near >= 70);
}

TEST(a_few_judgments_are_no_change) {
  struct exact_change change;
  const struct exact_day small[] = {{1, 2, 61}, {2, 9, 98}}, large[] = {{1, 20, 610}, {2, 90, 980}};
  const struct exact_day tiny[] = {{1, 0, 9}, {2, 500, 500}};
  assert_false(exact_change(small, 2, 1, &change));
  assert_false(exact_change(tiny, 2, 1, &change));
  assert_false(exact_change(small, 0, 1, &change));
  assert_true(exact_change(large, 2, 1, &change));
  assert_true(change.at == 1);
  assert_true(change.before.hits == 20);
  assert_true(change.since.hits == 90);
}
