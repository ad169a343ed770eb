/* A day's budget for all of a user's sessions: what is read, and what is refused with its place. */
#include "host/daily_usage.h"
#include "support/test.h"

#include <string.h>

static json_t *read_text(const char *text, struct err *err) {
  AUTO(arena_deinit) struct arena arena = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  const struct yaml_node *root = yaml_parse(&arena, "config.yaml", str_from(text), 10000, &errors);
  if (root == NULL)
    fail_msg("no YAML: %s", text);
  return day_set_read("config.yaml", root, err);
}

TEST(limits_are_kept_with_the_registry) {
  struct provider_registry *registry = registry_new(NULL);
  struct err err = {0};
  json_t *budget = read_text("day: {tokens: 2000000, cost: 20, time: 8h, calls: 500}\n"
                             "providers: {claude: {cost: 10.5}, codex: {calls: 1}}\n",
                             &err);
  if (budget == NULL)
    fail_msg("%s", err.text);
  assert_null(day_set_of(registry));
  day_set_keep(registry, NULL);
  assert_null(day_set_of(registry));
  day_set_keep(registry, budget);
  json_decref(budget);
  const struct day_limits *limits = day_set_of(registry);
  assert_non_null(limits);
  assert_int_equal(limits->all.limit[BUDGET_TOKENS], 2000000);
  assert_int_equal(limits->all.limit[BUDGET_CALLS], 500);
  assert_int_equal(limits->count, 2);
  assert_string_equal(limits->of[1].provider, "codex");
  assert_int_equal(limits->of[1].budget.limit[BUDGET_CALLS], 1);
  assert_int_equal(limits->of[1].budget.limit[BUDGET_COST], -1); /* not bounded */
  registry_free(registry);
}

static const struct {
  const char *text;
  int line, column;
  const char *what;
} wrong[] = {
    {"[day]", 1, 1, "budget must be a map"},
    {"20", 1, 1, "budget must be a map"},
    {"week: {cost: 20}", 1, 1, "has day and providers"},
    {"day:", 1, 5, "a map of what may be used in a day"},
    {"day: {}", 1, 6, "a map of what may be used in a day"},
    {"day: [cost]", 1, 6, "a map of what may be used in a day"},
    {"day: {token: 5}", 1, 7, "did you mean \"tokens\"?"},
    {"day: {movements: 5}", 1, 7, "use tokens, cost, time or calls"},
    {"day: {tokens: 0}", 1, 15, "a whole number of tokens"},
    {"day: {tokens: 1.5}", 1, 15, "a whole number of tokens"},
    {"day: {tokens: many}", 1, 15, "a whole number of tokens"},
    {"day: {cost: 0}", 1, 13, "US dollars above 0"},
    {"day: {cost: -1}", 1, 13, "US dollars above 0"},
    {"day: {cost: $20}", 1, 13, "US dollars above 0"},
    {"day: {time: 25h}", 1, 13, "a duration of 1ms to 24h"},
    {"day: {time: 0s}", 1, 13, "a duration of 1ms to 24h"},
    {"day: {time: 8}", 1, 13, "a duration of 1ms to 24h"},
    {"day: {calls: -1}", 1, 14, "a whole number of calls"},
    {"day: {cost: 20, calls: null}", 1, 24, "a whole number of calls"},
    {"day: {cost: 20}\nproviders: [claude]", 2, 12, "providers must be a map"},
    {"providers: {claude: 10}", 1, 21, "a map of what may be used in a day"},
    {"providers: {claude: {cost: 10}, codex: {price: 1}}", 1, 41, "has no \"price\""},
};

TEST(mistakes_are_refused_at_their_place) {
  for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
    struct err err = {0};
    json_t *budget = read_text(wrong[i].text, &err);
    if (budget != NULL)
      fail_msg("accepted: %s", wrong[i].text);
    if (err.line != wrong[i].line || err.column != wrong[i].column ||
        strstr(err.text, wrong[i].what) == NULL)
      fail_msg("%s: %d:%d: %s", wrong[i].text, err.line, err.column, err.text);
  }
}
