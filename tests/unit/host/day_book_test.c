/* The sums of a day: over books, over limits, over lines that somebody else wrote. */
#include "host/day_book.h"

#include "base/log.h"
#include "format/json_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static char home[64];

static int begin(void **state) {
  (void)state;
  (void)snprintf(home, sizeof home, "/tmp/segue-day-XXXXXX");
  if (mkdtemp(home) == NULL)
    return -1;
  return setenv("XDG_STATE_HOME", home, 1);
}

static int end(void **state) {
  char command[128];
  (void)state;
  (void)snprintf(command, sizeof command, "rm -rf %s", home);
  return system(command);
}

static const int64_t one_call[BUDGET_UNITS] = {[BUDGET_CALLS] = 1};
static const int64_t some[BUDGET_UNITS] = {
    [BUDGET_TOKENS] = 400, [BUDGET_COST] = 250000000, [BUDGET_TIME] = 1500};

static struct day_limits limits_of(struct day_limit *of, size_t count, const char *day) {
  struct day_limits limits = {.of = of, .count = count};
  json_error_t error;
  json_t *json = json_loads(day, 0, &error);
  budget_read(json, &limits.all);
  json_decref(json);
  return limits;
}

static void two_books_see_each_other(void **state) {
  struct day_book a, b;
  struct budget_hit hit;
  struct day_limits limits = limits_of(NULL, 0, "{\"tokens\": 800}");
  (void)state;
  day_book_init(&a);
  day_book_init(&b);
  day_book_add(&a, STR("x"), some);
  assert_false(day_book_refuses(&b, &limits, STR("y"), false, &hit));
  day_book_add(&b, STR("y"), some);
  assert_true(day_book_refuses(&a, &limits, STR("z"), false, &hit));
  assert_int_equal(hit.used, 800);
  assert_int_equal(hit.limit, 800);
  assert_int_equal(hit.of, BUDGET_OF_DAY);
  assert_false(day_book_refuses(&a, &limits, STR("command"), false, &hit));
  day_book_deinit(&a);
  day_book_init(&a); /* as another process */
  assert_true(day_book_refuses(&a, &limits, STR("x"), false, &hit));
  day_book_deinit(&a);
  day_book_deinit(&b);
}

static void one_provider_and_its_next_attempt(void **state) {
  struct day_limit of = {.provider = (char *)"x"};
  struct day_limits limits = limits_of(&of, 1, "{}");
  struct day_limits calls = limits_of(NULL, 0, "{\"calls\": 1}");
  struct day_book book;
  struct budget_hit hit;
  (void)state;
  of.budget = calls.all;
  day_book_init(&book);
  day_book_add(&book, STR("x"), one_call);
  assert_true(day_book_refuses(&book, &limits, STR("x"), false, &hit));
  assert_false(day_book_refuses(&book, &limits, STR("x"), true, &hit)); /* it is in the sum */
  assert_false(day_book_refuses(&book, &limits, STR("y"), false, &hit));
  day_book_deinit(&book);
}

static void four_fifths_once(void **state) {
  struct day_limits limits = limits_of(NULL, 0, "{\"cost\": 0.3}");
  struct day_book book;
  struct budget_hit hit;
  (void)state;
  day_book_init(&book);
  assert_false(day_book_near(&book, &limits, STR("x"), &hit));
  day_book_add(&book, STR("x"), some);
  assert_true(day_book_near(&book, &limits, STR("x"), &hit));
  assert_false(day_book_near(&book, &limits, STR("x"), &hit));
  day_book_deinit(&book);
}

static void nothing_is_written_for_commands(void **state) {
  struct day_book book;
  int64_t used[BUDGET_UNITS];
  (void)state;
  day_book_init(&book);
  day_book_add(&book, STR("command"), some);
  day_book_used(&book, STR(""), used);
  assert_int_equal(used[BUDGET_TOKENS], 0);
  day_book_deinit(&book);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(two_books_see_each_other, begin, end),
      cmocka_unit_test_setup_teardown(one_provider_and_its_next_attempt, begin, end),
      cmocka_unit_test_setup_teardown(four_fifths_once, begin, end),
      cmocka_unit_test_setup_teardown(nothing_is_written_for_commands, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
