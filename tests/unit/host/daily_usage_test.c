/* The sums of a day: over books, over limits, over lines that somebody else wrote. */
#include "host/daily_usage.h"

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char home[64];

static int begin(void **state) {
  (void)state;
  print_into(home, sizeof home, "/tmp/segue-day-XXXXXX");
  if (mkdtemp(home) == NULL)
    return -1;
  return setenv("XDG_STATE_HOME", home, 1);
}

static int end(void **state) {
  char command[128];
  (void)state;
  print_into(command, sizeof command, "rm -rf %s", home);
  return system(command);
}

static const int64_t one_call[BUDGET_UNITS] = {[BUDGET_CALLS] = 1};
static const int64_t some[BUDGET_UNITS] = {
    [BUDGET_TOKENS] = 400, [BUDGET_COST] = 250000000, [BUDGET_TIME] = 1500};

static struct day_limits limits_of(struct day_limit *of, size_t count, const char *day) {
  struct day_limits limits = {.of = of, .count = count};
  json_error_t error;
  json_auto_t *json = json_loads(day, 0, &error);
  budget_read(json, &limits.all);
  return limits;
}

TEST_WITH(begin, end, two_books_see_each_other) {
  struct daily_usage a, b;
  struct budget_hit hit;
  struct day_limits limits = limits_of(NULL, 0, "{\"tokens\": 800}");
  daily_usage_init(&a);
  daily_usage_init(&b);
  daily_usage_add(&a, STR("x"), some);
  assert_false(daily_usage_refuses(&b, &limits, STR("y"), false, &hit));
  daily_usage_add(&b, STR("y"), some);
  assert_true(daily_usage_refuses(&a, &limits, STR("z"), false, &hit));
  assert_int_equal(hit.used, 800);
  assert_int_equal(hit.limit, 800);
  assert_int_equal(hit.of, BUDGET_OF_DAY);
  assert_false(daily_usage_refuses(&a, &limits, STR("command"), false, &hit));
  daily_usage_deinit(&a);
  daily_usage_init(&a); /* as another process */
  assert_true(daily_usage_refuses(&a, &limits, STR("x"), false, &hit));
  daily_usage_deinit(&a);
  daily_usage_deinit(&b);
}

TEST_WITH(begin, end, one_provider_and_its_next_attempt) {
  struct day_limit of = {.provider = (char *)"x"};
  struct day_limits limits = limits_of(&of, 1, "{}");
  struct day_limits calls = limits_of(NULL, 0, "{\"calls\": 1}");
  AUTO(daily_usage_deinit) struct daily_usage book;
  struct budget_hit hit;
  of.budget = calls.all;
  daily_usage_init(&book);
  daily_usage_add(&book, STR("x"), one_call);
  assert_true(daily_usage_refuses(&book, &limits, STR("x"), false, &hit));
  assert_false(daily_usage_refuses(&book, &limits, STR("x"), true, &hit)); /* it is in the sum */
  assert_false(daily_usage_refuses(&book, &limits, STR("y"), false, &hit));
}

TEST_WITH(begin, end, four_fifths_once) {
  struct day_limits limits = limits_of(NULL, 0, "{\"cost\": 0.3}");
  AUTO(daily_usage_deinit) struct daily_usage book;
  struct budget_hit hit;
  daily_usage_init(&book);
  assert_false(daily_usage_near(&book, &limits, STR("x"), &hit));
  daily_usage_add(&book, STR("x"), some);
  assert_true(daily_usage_near(&book, &limits, STR("x"), &hit));
  assert_false(daily_usage_near(&book, &limits, STR("x"), &hit));
}

TEST_WITH(begin, end, nothing_is_written_for_commands) {
  AUTO(daily_usage_deinit) struct daily_usage book;
  int64_t used[BUDGET_UNITS];
  daily_usage_init(&book);
  daily_usage_add(&book, STR("command"), some);
  daily_usage_used(&book, STR(""), used);
  assert_int_equal(used[BUDGET_TOKENS], 0);
}
