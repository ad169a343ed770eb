/* Invariants: expressions on values, the words of their failures, lists, what commands print. */
#include "structured/invariant.h"

#include "base/buf.h"
#include "base/memory.h"
#include "support/data.h"
#include "support/test.h"
#include "json/scan.h"

#include <stdlib.h>
#include <string.h>

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
    {"sum(items[].name) > 0", "$.items[0].name: cannot be checked: items[].name is the text "
                              "\"pen\" at item 0: sum needs numbers"},
    {"sum(items[].discount) > 0",
     "$.items[0].discount: cannot be checked: items[].discount is missing or null at item 0: sum "
     "needs numbers"},
    {"sum(items, default(discount, 0)) == 0", NULL},
    {"count(items, price > 15) == 1", NULL},
    {"rate * 100 == 51", "$.rate: does not hold: 50 is not 51"},
    {"total + none == 1", "$.none: cannot be checked: none is missing or null: + needs a number"},
    {"total + status == 1",
     "$.status: cannot be checked: status is the text \"open\": + needs a number"},
    {"1000000000000 + 0.01 != 1000000000000 && 1000000000000 - 0.01 < 1000000000000", NULL},
    /* null and missing */
    {"none == null && missing == null && none == missing && !has(missing) && has(total)", NULL},
    {"discount == null || discount < 1", NULL},
    {"missing < 5", "$.missing: cannot be checked: missing is missing or null, which has no order "
                    "(there is no missing)"},
    {"default(missing, 5) == 5 && default(total, 5) == 30", NULL},
    {"has(missing)", "$.missing: does not hold: missing is missing or null (there is no missing)"},
    {"missing", "$.missing: cannot be checked: missing is missing or null, not true or false "
                "(there is no missing)"},
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
    {"is_date(start) && is_date(at) && at.is_date() && isDate('2024-02-29')", NULL},
    {"!is_date('2023-02-29') && !is_date('31.12.2026') && !is_date(total) && !is_date(none)", NULL},
    {"!is_date('2024-1-01') && !is_date('2024-01-01T10:00') && !is_date('') && !is_date(items)",
     NULL},
    {"all(items, is_date(name))",
     "$.items[0].name: does not hold: \"pen\" is no date like 2026-12-31 (so too at item 1)"},
    {"is_date(total)", "$.total: does not hold: 30 is no date like 2026-12-31"},
    {"is_date(strat)", "$.strat: does not hold: null is no date like 2026-12-31 (there is no "
                       "strat: did you mean start?)"},
    {"!is_date(start)", "$.start: does not hold: \"2024-01-01\" is a date"},
    {"text5 == 5", "$.text5: does not hold: \"5\" is not 5"},
    {"text5 < 6",
     "$.text5: cannot be checked: the text \"5\" and 6 have no order: < <= > >= compare "
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
    {"all(items, price <= limit)", "$.items[0].limit: cannot be checked: limit is missing or null, "
                                   "which has no order (there is no limit)"},
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
    {"max(mixed) == 1",
     "$.mixed[1]: cannot be checked: mixed is the text \"a\" at item 1: max needs all"},
    /* logic */
    {"!paid == true || ok", NULL},
    {"paid", "$.paid: does not hold: paid is false"},
    {"!ok", "$.ok: does not hold: ok is true"},
    {"!(total == 30)", "$.total: does not hold: 30 is 30"},
    {"total > 1 && bad > 26", "$.bad: does not hold: 25 is not greater than 26"},
    {"total < 1 || bad > 26",
     "$.total: does not hold: 30 is not less than 1, and 25 is not greater than 26"},
    {"total != 30", "$.total: does not hold: total is 30"},
    {"total", "$.total: cannot be checked: total is 30, not true or false: compare it"},
    {"(total > 1) == ok", NULL},
    {"[1, 'a', null, [2]] == [1.0, 'a', null, [2]]", NULL},
    {"sum(filter(items, n > 1), price) == 10 && items.map(i, i.price * i.n) == [20, 20]", NULL},
    {"items.filter(i, i.n > 5).length == 0 && filter(items[].price, item > 15) == [20]", NULL},
    {"filter(items, n == 1).price == [20] && sum(map(items, price)) == 30", NULL},
    {"filter(map(items, price), item > 15) == [20] && filter(items, true)[1].n == 1", NULL},
    {"count(filter(items, n)) == 1",
     "$.items[0].n: cannot be checked: n is 2 at item 0: filter needs true or false"},
    {"every(items, price > 0) && some(items, price > 15)", NULL},
    {"sum(items[].price * items[].n) == 1",
     "$.items: cannot be checked: items[].price is a list: * "
     "needs a number; to calculate with each item write "
     "sum(list, a * b)"},
    {"items[].price > 0", "$.items: cannot be checked: items[].price is a list: to compare each"},
    {"all(items, price * n == 20)", NULL},
    {"abs(sum(items[].price) - bad) < 0.01", "$.items: does not hold: 5 is not less than 0.01"},
    {"total[].x == 1", "$.total: cannot be checked: total[].x: what stands before [] is 30"},
};

TEST(expressions) {
  json_auto_t *value = data_json(order);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    AUTO(schema_errors_deinit) struct schema_errors errs = {0};
    enum schema_status status;
    json_auto_t *list = json_pack("[s]", cases[i].expr);
    assert_non_null(list);
    struct invariants *invariants = invariants_compile(list, &errs, &status);
    if (invariants == NULL)
      fail_msg("%s: %s", cases[i].expr, errs.count ? errs.items[0].message : "?");
    buf_auto_t line = {0};
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
    invariants_free(invariants);
  }
}

TEST(refusals) {
  static const struct {
    const char *list, *path, *message;
  } refused[] = {
      {"{}", "$", "invariants are a list"},
      {"'a > 1'", "$", "invariants are a list"},
      {"[1]", "$[0]", "an expression or an object"},
      {"['a >']", "$[0]", "a value is missing at the end"},
      {"['']", "$[0]", "the expression is empty: write a condition like total >= 0 (at byte 0"},
      {"['a > 1','a = 1']", "$[1]", "= does not compare: write == (at byte 2 of \"a = 1\")"},
      {"['smu(a) == 1']", "$[0]", "no function is named smu: did you mean sum?"},
      {"['summary(a) == 1']", "$[0]", "no function is named summary"},
      {"['total']", NULL, NULL},
      {"['total + 1']", "$[0]", "neither true nor false: compare it"},
      {"['sum(a)']", "$[0]", "neither true nor false"},
      {"['all(a, 1)']", "$[0]", "neither true nor false"},
      {"['a > 1 && 5']", "$[0]", "neither true nor false"},
      {"['!5']", "$[0]", "neither true nor false"},
      {"['a < null']", "$[0]", "use == or != here"},
      {"['a < b < c']", "$[0]", "unexpected <"},
      {"['a and b']", "$[0]", "put && or ||"},
      {"['not a']", "$[0]", "write ! for not"},
      {"['not (a > 1)']", "$[0]", "write ! for not"},
      {"['a == [1']", "$[0]", "the list has no closing ]"},
      {"['(a']", "$[0]", "( has no closing )"},
      {"['a[x] == 1']", "$[0]", "write a number, a \"name\" or nothing between [ and ]"},
      {"['sum(a, b, c, d) == 1']", "$[0]", "sum takes no more"},
      {"['sum() == 1']", "$[0]", "sum needs more"},
      {"['length(a, b) == 1']", "$[0]", "length takes no more"},
      {"['matches(a, b)']", "$[0]", "must be a text written here"},
      {"['1234567890123456789 == a']", "$[0]", "at most 18 digits"},
      {"[{'expr':'a == 1','ai':'q'}]", "$[0]", "only one of expr, command and ai"},
      {"[{'message':'m'}]", "$[0]", "one of expr, command and ai is needed"},
      {"[{'expr':'a == 1','color':'red'}]", "$[0]", "message and path"},
      {"[{'expr':1}]", "$[0].expr", "an expression is a text"},
      {"[{'expr':'a ='}]", "$[0].expr", "write =="},
      {"[{'expr':'a == 1','path':'a b['}]", "$[0].path", "write a JSON Pointer"},
      {"[{'expr':'a == 1','message':''}]", "$[0].message", "a text is needed"},
      {"[{'command':'ls'}]", "$[0].command", "a list of words"},
      {"[{'command':[]}]", "$[0].command", "a list of words"},
      {"[{'command':['a',1]}]", "$[0].command", "each word"},
      {"[{'ai':''}]", "$[0].ai", "a text is needed"},
      {"[]", NULL, NULL},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    AUTO(schema_errors_deinit) struct schema_errors errs = {0};
    enum schema_status status;
    json_auto_t *list = data_json(refused[i].list);
    struct invariants *invariants = invariants_compile(list, &errs, &status);
    bool sound = refused[i].path == NULL;
    if ((invariants != NULL) != sound || (status == SCHEMA_OK) != sound ||
        (!sound && (strcmp(errs.items[0].path, refused[i].path) != 0 ||
                    strstr(errs.items[0].message, refused[i].message) == NULL)))
      fail_msg("%s: %s: %s", refused[i].list, errs.count ? errs.items[0].path : "sound",
               errs.count ? errs.items[0].message : "");
    invariants_free(invariants);
  }
}

/* The lines of all errors, one behind the other. */
static void put_errors(struct buf *out, struct schema_errors *errs) {
  buf_clear(out);
  for (size_t i = 0; i < errs->count; i++)
    buf_printf(out, "%s%s|%s|%s", i ? "; " : "", errs->items[i].path, errs->items[i].pointer,
               errs->items[i].message);
  schema_errors_deinit(errs);
}

TEST(words_and_places_of_their_own) {
  json_auto_t *value = data_json("{'a':[{'b':1},{'b':2}],'total':4,'x/y':{'~':0},'7':{}}");
  json_auto_t *list =
      data_json("[{'expr':'total == 3','message':'the total is three','path':'/a/1/b'},"
                "{'expr':'total == 3','path':'$.a[0]'},"
                "{'expr':'miss > 3','message':'m'},"
                "{'command':['./x','y z'],'message':'the program says no'},"
                "{'ai':'Is it so?','path':'total'}]");
  struct schema_errors errs = {0};
  buf_auto_t out = {0};
  struct invariants *invariants = invariants_compile(list, &errs, NULL);
  assert_non_null(invariants);
  assert_int_equal(invariants_check(invariants, value, &errs), SCHEMA_INVALID);
  put_errors(&out, &errs);
  assert_string_equal(
      buf_c(&out),
      "$.a[1].b|/a/1/b|the total is three (total == 3: 4 is not 3); "
      "$.a[0]|/a/0|invariant total == 3 does not hold: 4 is not 3; "
      "$.miss|/miss|m (miss > 3: miss is missing or null, which has no order (there is no miss))");
  const struct invariant *command = invariants_get(invariants, 3),
                         *ai = invariants_get(invariants, 4);
  assert_int_equal(command->kind, INVARIANT_COMMAND);
  assert_string_equal(command->argv[1], "y z");
  assert_null(command->argv[2]);
  assert_string_equal(command->text, "./x y z");
  assert_true(invariants_need(invariants, INVARIANT_AI));
  assert_string_equal(ai->text, "Is it so?");
  invariant_report(ai, value, "no,\n it\x1b is\xff not", 16, &errs);
  put_errors(&out, &errs);
  assert_string_equal(buf_c(&out),
                      "$.total|/total|invariant Is it so? does not hold: no, it? is? not");
  static const struct {
    int exit_status;
    const char *out, *err, *errors;
  } ends[] = {
      {0, "{'message':'x'}", "noise", ""},
      {1, "", "", "$||the program says no (exit status 1)"},
      {1, "  \n", "bad\n", "$||the program says no (exit status 1: bad)"},
      {137, "too  big\n\n", "bad\n", "$||the program says no (exit status 137: too big)"},
      {2, "{'path':'$.a[1].b','message':'no'}\n", "x", "$.a[1].b|/a/1/b|the program says no (no)"},
      {2, "hello\n{'pointer':'/x~1y/~0','message':'p'}\r\n{'path':'a','message':'q'}", "",
       "$[\"x/y\"][\"~\"]|/x~1y/~0|the program says no (p); $.a|/a|the program says no (q)"},
      {2, "{'message':'whole'}", "", "$||the program says no (whole)"},
      {2, "{'pointer':'/7','message':'m'}", "", "$[\"7\"]|/7|the program says no (m)"},
      {2, "{'note':'no message'}", "",
       "$||the program says no (exit status 2: {\"note\":\"no message\"})"},
  };
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    char_auto_t *text = strdup(ends[i].out);
    for (char *p = text; *p; p++)
      *p = *p == '\'' ? '"' : *p;
    const struct invariant_output output = {ends[i].exit_status, text, ends[i].err, strlen(text),
                                            strlen(ends[i].err)};
    enum schema_status status = invariant_command_result(command, value, &output, &errs);
    assert_int_equal(status, ends[i].exit_status ? SCHEMA_INVALID : SCHEMA_OK);
    put_errors(&out, &errs);
    assert_string_equal(buf_c(&out), ends[i].errors);
  }
  const struct invariant_output pathed = {1, "{\"path\":\"$.a\",\"message\":\"m\"}\nx", "", 28, 0};
  assert_int_equal(invariant_command_result(ai, value, &pathed, &errs), SCHEMA_INVALID);
  put_errors(&out, &errs); /* a place that was said comes before the declared one */
  assert_string_equal(buf_c(&out), "$.a|/a|m");
  invariants_free(invariants);
}

TEST(bounds) {
  json_t *value = json_object(), *numbers = json_array(), *all = json_array();
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  enum schema_status status;
  for (int i = 0; i < 3000; i++)
    json_array_append_new(numbers, json_integer(i));
  json_object_set_new(value, "n", numbers);
  static const struct {
    const char *expr;
    enum schema_status status;
  } runs[] = {
      {"unique(n) && sum(n) == 4498500 && all(n, x, x >= 0)", SCHEMA_OK},
      {"all(n, x, any(n, y, y == x))", SCHEMA_TOO_COMPLEX},
      {"none(n, x, any(n, y, any(n, z, z < 0)))", SCHEMA_TOO_COMPLEX},
      {"matches('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab', '^(a|a|aa)+$')", SCHEMA_TOO_COMPLEX},
      {"1 / 3 * 1.5 < 1 && 2 % 0.3 < 1", SCHEMA_OK}};
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    json_auto_t *list = json_pack("[s]", runs[i].expr);
    struct invariants *invariants = invariants_compile(list, &errs, NULL);
    assert_non_null(invariants);
    status = invariants_check(invariants, value, &errs);
    if (status != runs[i].status)
      fail_msg("%s: %s", runs[i].expr, schema_status_name(status));
    assert_int_equal(invariants_check(invariants, value, NULL), status);
    assert_int_equal(errs.count > 0, status != SCHEMA_OK);
    invariants_free(invariants);
    schema_errors_deinit(&errs);
  }
  for (int i = 0; i <= INVARIANTS_MAX; i++)
    json_array_append_new(all, json_string("true"));
  assert_null(invariants_compile(all, NULL, &status));
  assert_int_equal(status, SCHEMA_INVALID_SCHEMA);
  json_decref(all);
  json_decref(value);
}
