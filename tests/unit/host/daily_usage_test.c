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

static const int64_t some[BUDGET_UNITS] = {
    [BUDGET_TOKENS] = 400, [BUDGET_COST] = 250000000, [BUDGET_TIME] = 1500};

/* A call of this provider, of a session that began in /work/api. */
static const struct day_call *call_of(const char *provider) {
  static struct day_call call;
  static struct store logs;
  store_at(&logs, "/logs");
  call = (struct day_call){str_from(provider), &logs, "/work/api"};
  return &call;
}

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
  daily_usage_add(&a, &limits, call_of("x"), some);
  assert_false(daily_usage_take(&b, &limits, call_of("y"), &hit));
  daily_usage_add(&b, &limits, call_of("y"), some);
  assert_true(daily_usage_take(&a, &limits, call_of("z"), &hit));
  assert_int_equal(hit.used, 800);
  assert_int_equal(hit.limit, 800);
  assert_int_equal(hit.of, BUDGET_OF_DAY);
  assert_false(daily_usage_take(&a, &limits, call_of("command"), &hit));
  daily_usage_deinit(&a);
  daily_usage_init(&a); /* as another process */
  assert_true(daily_usage_take(&a, &limits, call_of("x"), &hit));
  daily_usage_deinit(&a);
  daily_usage_deinit(&b);
}

TEST_WITH(begin, end, one_provider_and_its_next_attempt) {
  struct day_limit of = {.of = BUDGET_OF_DAY, .name = (char *)"x"};
  struct day_limits limits = limits_of(&of, 1, "{}");
  struct day_limits calls = limits_of(NULL, 0, "{\"calls\": 1}");
  AUTO(daily_usage_deinit) struct daily_usage book;
  struct budget_hit hit;
  of.budget = calls.all;
  daily_usage_init(&book);
  assert_false(daily_usage_take(&book, &limits, call_of("x"), &hit));
  assert_true(daily_usage_take(&book, &limits, call_of("x"), &hit));
  assert_false(daily_usage_refuses(&book, &limits, call_of("x"), &hit)); /* it is in the sum */
  assert_false(daily_usage_take(&book, &limits, call_of("y"), &hit));
}

TEST_WITH(begin, end, four_fifths_once) {
  struct day_limits limits = limits_of(NULL, 0, "{\"cost\": 0.3}");
  AUTO(daily_usage_deinit) struct daily_usage book;
  struct budget_hit hit;
  daily_usage_init(&book);
  assert_false(daily_usage_near(&book, &limits, call_of("x"), &hit));
  daily_usage_add(&book, &limits, call_of("x"), some);
  assert_true(daily_usage_near(&book, &limits, call_of("x"), &hit));
  assert_false(daily_usage_near(&book, &limits, call_of("x"), &hit));
}

TEST_WITH(begin, end, nothing_is_written_for_commands) {
  AUTO(daily_usage_deinit) struct daily_usage book;
  int64_t used[BUDGET_UNITS];
  daily_usage_init(&book);
  daily_usage_add(&book, NULL, call_of("command"), some);
  daily_usage_used(&book, STR(""), used);
  assert_int_equal(used[BUDGET_TOKENS], 0);
}

/* A folder's limit counts what was begun there or below, a store's what is kept there, each of them
 * once in the sum of all. */
TEST_WITH(begin, end, folders_and_stores) {
  struct day_limit of[] = {{.of = BUDGET_OF_FOLDER, .name = (char *)"~/api"},
                           {.of = BUDGET_OF_STORE, .name = (char *)""}};
  struct day_limits limits = limits_of(of, ARRAY_LEN(of), "{\"tokens\": 2000}");
  struct day_limits each = limits_of(NULL, 0, "{\"tokens\": 800}");
  static const struct {
    const char *store, *folder;
    bool refused;
    enum budget_of of;
  } cases[] = {{"/logs", "/work/api", true, BUDGET_OF_FOLDER},
               {"/logs", "/work/api/deep", true, BUDGET_OF_FOLDER},
               {"/other", "/work/api", true, BUDGET_OF_FOLDER},
               {"/logs", "/work/apis", true, BUDGET_OF_STORE},
               {"/other", "/work/apis", false, BUDGET_OF_DAY},
               {"/logs", NULL, true, BUDGET_OF_STORE},
               {NULL, "/work/api", true, BUDGET_OF_FOLDER}, /* kept nowhere */
               {NULL, "/work/apis", false, BUDGET_OF_DAY},
               {"postgres://h/d", "/work/api", false, BUDGET_OF_DAY}}; /* it counts by itself */
  AUTO(daily_usage_deinit) struct daily_usage book;
  struct budget_hit hit;
  int64_t used[BUDGET_UNITS];
  of[0].folder = (char *)"/work/api";
  of[0].budget = of[1].budget = each.all;
  daily_usage_init(&book);
  daily_usage_add(&book, &limits, call_of("x"), some);
  daily_usage_add(&book, &limits, call_of("y"), some);
  daily_usage_used(&book, STR(""), used);
  assert_int_equal(used[BUDGET_TOKENS], 800);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct store store;
    if (cases[i].store != NULL)
      store_at(&store, cases[i].store);
    const struct day_call call = {STR("z"), cases[i].store ? &store : NULL, cases[i].folder};
    if (daily_usage_refuses(&book, &limits, &call, &hit) != cases[i].refused ||
        (cases[i].refused && hit.of != cases[i].of))
      fail_msg("case %zu: of %d", i, (int)hit.of);
  }
}
