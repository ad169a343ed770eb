/* A day's budget for all of a user's sessions: what is read, and what is refused with its place. */
#include "host/daily_usage.h"
#include "support/data.h"
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
                             "providers: {claude: {cost: 10.5}, codex: {calls: 1}}\n"
                             "store: {day: {cost: 50}}\n"
                             "folders: {/no/such/folder/: {day: {calls: 7}}}\n",
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
  assert_int_equal(limits->count, 4);
  assert_int_equal(limits->of[2].of, BUDGET_OF_STORE);
  assert_string_equal(limits->of[3].folder, "/no/such/folder");
  assert_int_equal(limits->of[3].budget.limit[BUDGET_CALLS], 7);
  assert_string_equal(limits->of[1].name, "codex");
  assert_int_equal(limits->of[1].budget.limit[BUDGET_CALLS], 1);
  assert_int_equal(limits->of[1].budget.limit[BUDGET_COST], -1); /* not bounded */
  registry_free(registry);
}

TEST(mistakes_are_refused_at_their_place) {
  DATA_ROWS("host/daily_budget/mistakes_are_refused_at_their_place.yaml", c, text, line, column,
            what) {
    struct err err = {0};
    json_t *budget = read_text(c.text, &err);
    if (budget != NULL)
      fail_msg("accepted: %s", c.text);
    if (err.line != (int)data_number(c.line) || err.column != (int)data_number(c.column) ||
        strstr(err.text, c.what) == NULL)
      fail_msg("%s: %d:%d: %s", c.text, err.line, err.column, err.text);
  }
}
