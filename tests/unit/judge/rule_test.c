/* Rule conditions: labels, when(), label && when(), and what is never taken for a label. */
#include "judge/rule.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(forms_are_told_apart) {
  DATA_ROWS("judge/rule/forms_are_told_apart.yaml", c, text, kind, condition, label, when_text) {
    AUTO(arena_deinit) struct arena arena = {0};
    struct rule rule = {0};
    struct err err = {0};
    if (!rule_parse(&arena, str_from(c.text), &rule, NULL, &err))
      fail_msg("%s: %s", c.text, err.text);
    enum rule_kind kind = data_among(c.kind, "label when label_when");
    assert_int_equal(rule.kind, kind);
    assert_true(str_eq_c(rule.condition, c.condition));
    assert_true(str_eq_c(rule.label, c.label));
    assert_true(str_eq_c(rule.when_text, c.when_text));
    assert_int_equal(rule.when != NULL, kind != RULE_LABEL);
  }
}

/* all() and any() are when() rules over the children, and keep what they were written as. */
TEST(aggregates_are_read) {
  AUTO(arena_deinit) struct arena arena = {0};
  struct rule rule = {0};
  struct err err = {0};
  assert_true(rule_parse(&arena, STR(" all(\"a, \\\"b\\\"\", c d ) && when(exit == 0)"), &rule,
                         NULL, &err));
  assert_int_equal(rule.kind, RULE_WHEN);
  assert_int_equal(rule.label.n, 0);
  assert_true(rule.aggregate->all && rule.aggregate->count == 2);
  assert_true(str_eq_c(rule.aggregate->labels[0], "a, \"b\""));
  assert_true(str_eq_c(rule.aggregate->labels[1], "c d"));
  assert_true(str_eq(rule.when_text, rule.condition));
  assert_true(rule_parse(&arena, STR("any(x)"), &rule, NULL, &err));
  assert_true(!rule.aggregate->all && rule.aggregate->count == 1);
  assert_true(rule_parse(&arena, STR("any"), &rule, NULL, &err));
  assert_true(rule.kind == RULE_LABEL && rule.aggregate == NULL);
}

TEST(refusals_name_the_place) {
  DATA_ROWS("judge/rule/refusals_name_the_place.yaml", c, text, offset, error) {
    AUTO(arena_deinit) struct arena arena = {0};
    struct rule rule = {0};
    struct err err = {0};
    size_t where = 999;
    bool ok = rule_parse(&arena, str_from(c.text), &rule, &where, &err);
    if (ok || where != (size_t)data_number(c.offset) || strstr(err.text, c.error) == NULL)
      fail_msg("%s: %s at %zu, \"%s\"", c.text, ok ? "parsed" : "refused", where, err.text);
  }
}
