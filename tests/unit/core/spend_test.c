/* The use of a session: sums, prices, and what is not known. */
#include "core/spend.h"

#include "support/data.h"
#include "support/test.h"

#include <string.h>

static double cost_of(const json_t *object) {
  return json_number_value(json_object_get(object, "cost_usd"));
}

static json_int_t number_of(const json_t *object, const char *name) {
  return json_integer_value(json_object_get(object, name));
}

static void add(struct spends *s, enum call_purpose purpose, const char *movement,
                const char *usage) {
  json_auto_t *value = usage ? data_json(usage) : NULL;
  spends_add(s, purpose, str_from(movement), STR("p"), value, 10);
}

TEST(calls_are_summed_up) {
  AUTO(spends_deinit) struct spends s = {0};
  buf_auto_t shown = {0};
  add(&s, PURPOSE_EXECUTE, "fix", "{'input':1000,'output':11,'cached':900,'cost_usd':0.1}");
  add(&s, PURPOSE_JUDGE, "fix", "{'input':100,'output':1,'cost_usd':0.2}");
  add(&s, PURPOSE_REASK, "fix", "{'told':'none'}");
  add(&s, PURPOSE_EXECUTE, "test", NULL); /* a command */
  json_auto_t *told = spends_json(&s);
  assert_int_equal(number_of(told, "calls"), 4);
  assert_int_equal(number_of(told, "duration_ms"), 40);
  assert_int_equal(number_of(told, "input"), 1100);
  assert_int_equal(number_of(told, "uncounted"), 1);
  assert_int_equal(number_of(told, "unpriced"), 1);
  assert_true(cost_of(told) > 0.2999999 && cost_of(told) < 0.3000001);
  const json_t *purposes = json_object_get(told, "purposes");
  assert_int_equal(number_of(json_object_get(purposes, "work"), "input"), 1000);
  assert_int_equal(number_of(json_object_get(purposes, "judging"), "input"), 100);
  assert_int_equal(number_of(json_object_get(purposes, "corrections"), "uncounted"), 1);
  const json_t *test = json_object_get(json_object_get(told, "movements"), "test");
  assert_null(json_object_get(test, "cost_usd"));
  spend_print(told, &shown);
  assert_string_equal(buf_c(&shown),
                      "1112 tokens (1 of 4 calls did not tell all), $0.3000 and that "
                      "of 1 calls, unknown");
  buf_clear(&shown);
  spend_print(test, &shown);
  assert_int_equal(shown.n, 0);
}

/* A log may hold any number. */
TEST(what_cannot_be_counts_as_nothing) {
  AUTO(spends_deinit) struct spends s = {0};
  add(&s, PURPOSE_EXECUTE, "a", "{'input':-5,'output':9223372036854775807,'cost_usd':-1}");
  add(&s, PURPOSE_EXECUTE, "a", "{'input':'x','cost_usd':1e300}");
  json_auto_t *told = spends_json(&s);
  assert_null(json_object_get(told, "input"));
  assert_null(json_object_get(told, "output"));
  assert_null(json_object_get(told, "cost_usd"));
  assert_int_equal(number_of(told, "unpriced"), 2);
}

TEST(prices_count_where_nobody_tells) {
  json_auto_t *prices = data_json("{'m':{'input':3,'output':15,'cached':0.3},'n':{'input':1}}");
  static const struct {
    const char *usage, *model;
    double cost; /* below 0: none */
    bool by_table;
  } cases[] = {
      {"{'input':1000000,'output':100000,'cached':500000}", "m", 1.5 + 0.15 + 1.5, true},
      {"{'input':1000000,'output':5,'cached':1000000}", "n", 1, true},
      {"{'input':1000000,'output':5,'cost_usd':7}", "m", 7, false},
      {"{'input':1000000,'output':5}", "other", -1, false},
      {"{'told':'none'}", "m", -1, false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *usage = data_json(cases[i].usage);
    json_auto_t *priced = spend_priced(usage, prices, str_from(cases[i].model));
    const json_t *cost = json_object_get(priced, "cost_usd");
    double off = json_number_value(cost) - cases[i].cost;
    if ((cost != NULL) != (cases[i].cost >= 0) || (cost != NULL && (off > 1e-9 || off < -1e-9)) ||
        (json_object_get(priced, "cost_from") != NULL) != cases[i].by_table)
      fail_msg("case %zu: %f", i, json_number_value(cost));
  }
  assert_null(spend_priced(NULL, prices, STR("m")));
}
