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

TEST(expressions) {
  json_auto_t *value = data_json(order);
  DATA_ROWS("structured/invariant/expressions.yaml", c, expr, line) {
    AUTO(schema_errors_deinit) struct schema_errors errs = {0};
    enum schema_status status;
    json_auto_t *list = json_pack("[s]", c.expr);
    assert_non_null(list);
    struct invariants *invariants = invariants_compile(list, &errs, &status);
    if (invariants == NULL)
      fail_msg("%s: %s", c.expr, errs.count ? errs.items[0].message : "?");
    buf_auto_t line = {0};
    status = invariants_check(invariants, value, &errs);
    assert_int_equal(status, invariants_check(invariants, value, NULL));
    assert_int_equal(status == SCHEMA_OK, errs.count == 0);
    if (errs.count == 1) {
      const char *message = errs.items[0].message;
      size_t skip = strlen("invariant ") + strlen(c.expr) + 1;
      assert_string_equal(errs.items[0].keyword, "invariant");
      assert_string_equal(errs.items[0].schema_path, "/invariants/0");
      buf_printf(&line, "%s: %s", errs.items[0].path,
                 strlen(message) > skip ? message + skip : message);
    }
    const char *wanted = c.line ? c.line : "";
    if (strncmp(buf_c(&line), wanted, strlen(wanted)) != 0 || (*wanted == '\0' && line.n))
      fail_msg("%s\n  got    %s\n  wanted %s\n", c.expr, buf_c(&line), wanted);
    invariants_free(invariants);
  }
}

TEST(refusals) {
  DATA_ROWS("structured/invariant/refusals.yaml", c, list, path, message) {
    AUTO(schema_errors_deinit) struct schema_errors errs = {0};
    enum schema_status status;
    json_auto_t *list = data_json(c.list);
    struct invariants *invariants = invariants_compile(list, &errs, &status);
    bool sound = c.path == NULL;
    if ((invariants != NULL) != sound || (status == SCHEMA_OK) != sound ||
        (!sound && (strcmp(errs.items[0].path, c.path) != 0 ||
                    strstr(errs.items[0].message, c.message) == NULL)))
      fail_msg("%s: %s: %s", c.list, errs.count ? errs.items[0].path : "sound",
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
  DATA_ROWS("structured/invariant/words_and_places_of_their_own.yaml", c, exit_status, out, err,
            errors) {
    char_auto_t *text = strdup(c.out);
    for (char *p = text; *p; p++)
      *p = *p == '\'' ? '"' : *p;
    const struct invariant_output output = {(int)data_number(c.exit_status), text, c.err,
                                            strlen(text), strlen(c.err)};
    enum schema_status status = invariant_command_result(command, value, &output, &errs);
    assert_int_equal(status, (int)data_number(c.exit_status) ? SCHEMA_INVALID : SCHEMA_OK);
    put_errors(&out, &errs);
    assert_string_equal(buf_c(&out), c.errors);
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
