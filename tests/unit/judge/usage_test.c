/* Tests the sum of what calls used: tokens that cannot be, costs that are not known. */
#include "judge/usage.h"

#include "support/data.h"
#include "support/test.h"

static void expect_sum(const char *parts, const char *wanted) {
  json_t *list = data_json(parts), *want = data_json(wanted), *sum = NULL;
  JSON_EACH(list, i, part) {
    usage_add(&sum, part);
  }
  if (json_is_null(want) ? sum != NULL : !json_equal(sum, want))
    fail_msg("%s gives another sum than %s", parts, wanted);
  json_decref(list);
  json_decref(want);
  json_decref(sum);
}

TEST(usage_is_added_up) {
  expect_sum("[]", "null");
  expect_sum("[null,7]", "null");
  expect_sum("[{'input':1,'output':2},null,{'input':10,'output':20,'cached':5}]",
             "{'input':11,'output':22,'cached':5}");
  expect_sum("[{'input':1,'cost_usd':0.5},{'input':1,'cost_usd':0.25}]",
             "{'input':2,'cost_usd':0.75}");
  expect_sum("[{'input':1,'cost_usd':0.5},{'input':1}]", "{'input':2}");
  expect_sum("[{'input':1},{'input':1,'cost_usd':0.5}]", "{'input':2}");
  expect_sum("[{'input':-1}]", "{'input':1099511627776}");
  expect_sum("[{'input':9223372036854775807},{'input':9223372036854775807}]",
             "{'input':1099511627776}");
  expect_sum("[{'input':'1','cost_usd':'2'}]", "{}");
  expect_sum("[{'cost_usd':-1.5}]", "{}");
}
