/* Invariants: expressions on values, the words of their failures, lists, what commands print. */
#include "structured/invariant.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* JSON with ' for " */
static json_t *parse(const char *text) {
  char *copy = strdup(text);
  json_error_t error;
  assert_non_null(copy);
  for (char *p = copy; *p; p++)
    *p = *p == '\'' ? '"' : *p;
  json_t *value = json_loads(copy, JSON_DECODE_ANY, &error);
  if (value == NULL)
    fail_msg("%s: %s", text, error.text);
  free(copy);
  return value;
}

static const char order[] =
    "{'items':[{'price':10,'n':2,'name':'pen','tags':['a','b']},"
    "{'price':20,'n':1,'name':'ink','tags':['b'],'discount':null}],'total':30,'bad':25,"
    "'start':'2024-01-01','end':'2024-02-01','at':'2024-01-01T01:00:00+01:00','rate':0.5,"
    "'status':'open','paid':false,'ok':true,'empty':[],'none':null,'zero':0,'odd-name':5,"
    "'odd':7,'big':9007199254740993,'near':9007199254740992.0,'word':'h\\u00e9llo','root':1,"
    "'matrix':[[1,2],[3,4]],'orders':[{'lines':[{'p':0.1},{'p':0.2}]},{'lines':[{'p':0.3}]}],"
    "'sum':0.6,'ids':['x','y','x'],'noisy':0.30000000000000004,'text5':'5','nested':{'a':{'b':1}},"
    "'flags':[true,true],'mixed':[1,'a'],'item':{'x':1},'min':3,'max':4}";

static const struct {
  const char *expr, *line; /* NULL: it holds; else "path: text behind "invariant EXPR "" */
} cases[] = {
    /* the example of the issue */
    {"sum(items[].price) == total", NULL},
    {"sum(items[].price) == bad", "$.bad: does not hold: 30 is not 25"},
    {"bad == sum(items[].price)", "$.bad: does not hold: 25 is not 30"},
    /* references */
    {"$.total == 30 && root == 1", NULL}, /* here root is a member */
    {"nested.root.total == 1", "$.nested.root.total: does not hold: null is not 1"},
    {"all(items, price <= root.total)", NULL},
    {"nested.a.b == 1 && $['nested'].a['b'] == 1", NULL},
    {"items[0].price == 10 && items[-1].price == 20", NULL},
    {"items[2].price == 10", "$.items[2].price: does not hold: null is not 10"},
    {"items[].price == [10, 20] && items.price == items[*].price", NULL},
    {"orders[].lines[].p == [0.1, 0.2, 0.3] && orders.lines.p == orders[].lines[].p", NULL},
    {"matrix[] == [[1,2],[3,4]] && matrix[][] == [1,2,3,4]", NULL},
    {"['odd-name'] == 5", "$: does not hold: [\"odd-name\"] is not 5"},
    {"$['odd-name'] == 5 && $[\"odd-name\"] - 3 == 2", NULL},
    {"odd-zero == 7", NULL},
    {"totl == 30", "$.totl: does not hold: null is not 30 (there is no totl: did you mean total?)"},
    {".total == 30 && @.total == 30", NULL},
    {"word.length == 5 && items.length == 2 && length(word) == 5 && size(items) == len(items)",
     NULL},
    {"item.x == 1 && min < max", NULL},
    /* numbers */
    {"1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3.5 && 7 % 4 == 3 && -7 % 4 == -3", NULL},
    {"10 - 2 - 3 == 5 && 2 - -3 == 5 && -(1 + 2) == -3 && 100 / 10 / 2 == 5", NULL},
    {"0.1 + 0.2 == 0.3 && 0.1 * 3 == 0.3 && 1.1 + 2.2 == 3.3 && 0.3 % 0.1 == 0", NULL},
    {"0.1 + 0.2 <= 0.3 && 0.1 + 0.2 >= 0.3 && !(0.1 + 0.2 > 0.3)", NULL},
    {"sum(orders[].lines[].p) == sum", NULL},
    {"0.1 + 0.2 == noisy", NULL},
    {"10 / 3 * 3 == 10 && 1 / 3 + 1 / 3 + 1 / 3 == 1", NULL},
    {"big == 9007199254740993 && big != 9007199254740992 && big > near && big - near == 1", NULL},
    {"big * big - big * big == 0 && big * big + 1 > big * big", NULL},
    {"total / zero > 1", "$.zero: cannot be checked: division by zero: zero is 0"},
    {"total % zero == 1", "$.zero: cannot be checked: division by zero: zero is 0"},
    {"sum(items, price * n) == 40 && avg(items[].price) == 15 && count(items) == 2", NULL},
    {"min(items[].price) == 10 && max(items, price) == 20 && min(empty) == null", NULL},
    {"sum(empty) == 0 && count(empty) == 0 && avg(empty) == null && max(empty) == null", NULL},
    {"min(empty) > 0",
     "$.empty: cannot be checked: min(empty) is missing or null, which has no order"},
    {"abs(-3) == 3 && round(2.5) == 3 && round(-2.5) == -3 && round(1.005, 2) == 1.01", NULL},
    {"floor(-1.5) == -2 && ceil(-1.5) == -1 && floor(1.5) == 1 && ceil(1.2) == 2", NULL},
    {"round(1234, -2) == 1200 && round(10 / 3, 2) == 3.33", NULL},
    {"sum(items[].name) > 0",
     "$.items[0].name: cannot be checked: items[].name is a text at item 0: sum needs numbers"},
    {"sum(items[].discount) > 0",
     "$.items[0].discount: cannot be checked: items[].discount is missing or null at item 0: sum "
     "needs numbers"},
    {"sum(items, default(discount, 0)) == 0", NULL},
    {"count(items, price > 15) == 1", NULL},
    {"rate * 100 == 51", "$.rate: does not hold: 50 is not 51"},
    {"total + none == 1", "$.none: cannot be checked: none is missing or null: + needs a number"},
    {"total + status == 1", "$.status: cannot be checked: status is a text: + needs a number"},
    {"1000000000000 + 0.01 != 1000000000000 && 1000000000000 - 0.01 < 1000000000000", NULL},
    /* null and missing */
    {"none == null && missing == null && none == missing && !has(missing) && has(total)", NULL},
    {"discount == null || discount < 1", NULL},
    {"missing < 5", "$.missing: cannot be checked: missing is missing or null, which has no order"},
    {"default(missing, 5) == 5 && default(total, 5) == 30", NULL},
    {"has(missing)", "$.missing: does not hold: missing is missing or null (there is no missing)"},
    {"missing", "$.missing: cannot be checked: missing is missing or null, not true or false"},
    {"all(missing, x > 1)",
     "$.missing: cannot be checked: missing is missing or null: all needs a list"},
    /* texts and dates */
    {"status == 'open' && status == \"open\" && status + '!' == 'open!'", NULL},
    {"status in ['open', 'closed'] && !(status in ['x']) && status not in ['x']", NULL},
    {"status in ['new', 'done']",
     "$.status: does not hold: \"open\" is not in [\"new\", \"done\"]"},
    {"'pe' in items[0].name && 'odd' in $ && 'odd2' not in $", NULL},
    {"start < end", NULL},
    {"end < start", "$.end: does not hold: \"2024-02-01\" is not before \"2024-01-01\""},
    {"end <= start", "$.end: does not hold: \"2024-02-01\" is after \"2024-01-01\""},
    {"start == at && start >= at && start in [at]", NULL},
    {"'2024-01-01T00:00:00Z' < '2024-01-01T00:00:00.5Z' && 'b' > 'a' && 'B' < 'a'", NULL},
    {"'2023-12-31T23:59:60Z' == '2024-01-01T00:00:00Z'", NULL},
    {"'2024-01-01T00:00:00.50Z' == '2024-01-01T00:00:00.5Z'", NULL},
    {"'2024-02-30' < '2024-02-4'", NULL}, /* no dates: as texts */
    {"text5 == 5", "$.text5: does not hold: \"5\" is not 5"},
    {"text5 < 6",
     "$.text5: cannot be checked: text5 is a text and 6 is a number: < <= > >= compare "
     "two numbers or two texts"},
    {"startsWith(status, 'op') && status.endsWith('en') && status.contains('pe')", NULL},
    {"starts_with(status, 'x')", "$.status: does not hold: \"open\" does not start with \"x\""},
    {"matches(status, r\"^[a-z]+$\") && status.matches('^o')", NULL},
    {"matches(status, '^\\\\d+$')",
     "$.status: does not hold: \"open\" does not match \"^\\\\d+$\""},
    {"'tab\\t' == 'tab\\u0009' && r'\\d' == '\\\\d' && '\\ud83d\\ude00' == '\xF0\x9F\x98\x80'",
     NULL},
    /* lists and quantors */
    {"all(items, price > 0)", NULL},
    {"all(items, price > 10)", "$.items[0].price: does not hold: 10 is not greater than 10"},
    {"all(items, price > 100)",
     "$.items[0].price: does not hold: 10 is not greater than 100 (so too at item 1)"},
    {"all(items[].price, item < 20)", "$.items[1].price: does not hold: 20 is not less than 20"},
    {"items.all(i, i.price <= total) && items.exists(i, i.name == 'pen')", NULL},
    {"all(items, price <= $.total) && all(items, price >= $.sum)", NULL},
    {"all(items, price <= limit)",
     "$.items[0].limit: cannot be checked: limit is missing or null, which has no order"},
    {"any(items, price == 10) && exists(items, item.price == 20) && none(items, price > 20)", NULL},
    {"any(items, price > 20)", "$.items: does not hold: 0 of 2 items fulfil price > 20"},
    {"any(empty, price > 20)", "$.empty: does not hold: empty is empty"},
    {"none(items, price > 10)", "$.items[1].price: does not hold: 20 is greater than 10"},
    {"one(items, price > 10) && exists_one(items, x, x.price > 10)", NULL},
    {"one(items, price > 1)", "$.items: does not hold: 2 of 2 items fulfil price > 1"},
    {"all(empty, x) && none(empty, x) && !any(empty, x) && all(flags) && !none(flags)", NULL},
    {"all(items, all(tags, item != ''))", NULL},
    {"all(items, 'b' in tags) && all(items, t, t.tags.length <= 2)", NULL},
    {"all(items, 'a' in tags)", "$.items[1].tags: does not hold: \"a\" is not in [\"b\"]"},
    {"all(items, discount > 0)",
     "$.items[0].discount: cannot be checked: discount is missing or null, which has no order"},
    {"all(items, any(tags, @ == 'a'))",
     "$.items[1].tags: does not hold: 0 of 1 items fulfil @ == 'a'"},
    {"unique(items[].name) && unique(items, price) && !unique(ids)", NULL},
    {"unique(ids)", "$.ids[2]: does not hold: items 0 and 2 are both \"x\""},
    {"contains(items[0].tags, 'a') && contains(status, 'en')", NULL},
    {"contains(ids, 'z')", "$.ids: does not hold: [\"x\",\"y\",\"x\"] does not contain \"z\""},
    {"max(mixed) == 1", "$.mixed[1]: cannot be checked: mixed is a text at item 1: max needs all"},
    /* logic */
    {"!paid == true || ok", NULL},
    {"paid", "$.paid: does not hold: paid is false"},
    {"!ok", "$.ok: does not hold: ok is true"},
    {"!(total == 30)", "$.total: does not hold: 30 is 30"},
    {"total > 1 && bad > 26", "$.bad: does not hold: 25 is not greater than 26"},
    {"total < 1 || bad > 26",
     "$.total: does not hold: 30 is not less than 1, and 25 is not greater than 26"},
    {"total != 30", "$.total: does not hold: total is 30"},
    {"total", "$.total: cannot be checked: total is a number, not true or false: compare it"},
    {"(total > 1) == ok", NULL},
    {"[1, 'a', null, [2]] == [1.0, 'a', null, [2]]", NULL},
    {"total[].x == 1", "$.total: cannot be checked: total[].x: what stands before [] is a number"},
};

static void expressions(void **state) {
  (void)state;
  json_t *value = parse(order);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct schema_errors errs = {0};
    enum schema_status status;
    json_t *list = json_pack("[s]", cases[i].expr);
    assert_non_null(list);
    struct invariants *invariants = invariants_compile(list, &errs, &status);
    if (invariants == NULL)
      fail_msg("%s: %s", cases[i].expr, errs.count ? errs.items[0].message : "?");
    struct buf line = {0};
    status = invariants_check(invariants, value, &errs);
    assert_int_equal(status, invariants_check(invariants, value, NULL));
    assert_int_equal(status == SCHEMA_OK, errs.count == 0);
    if (errs.count == 1) {
      const char *message = errs.items[0].message;
      size_t skip = strlen("invariant ") + strlen(cases[i].expr) + 1;
      assert_string_equal(errs.items[0].keyword, "invariant");
      assert_string_equal(errs.items[0].schema_path, "/invariants/0");
      buf_printf(&line, "%s: %s", errs.items[0].path,
                 strlen(message) > skip ? message + skip : message);
    }
    const char *wanted = cases[i].line ? cases[i].line : "";
    if (strncmp(buf_c(&line), wanted, strlen(wanted)) != 0 || (*wanted == '\0' && line.n))
      fail_msg("%s\n  got    %s\n  wanted %s\n", cases[i].expr, buf_c(&line), wanted);
    buf_deinit(&line);
    schema_errors_deinit(&errs);
    invariants_free(invariants);
    json_decref(list);
  }
  json_decref(value);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(expressions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
