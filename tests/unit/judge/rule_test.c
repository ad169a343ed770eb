/* Rule conditions: labels, when(), label && when(), and what is never taken for a label. */
#include "judge/rule.h"
#include "support/test.h"

#include <string.h>

static const struct good {
  const char *text;
  enum rule_kind kind;
  const char *condition, *label, *when_text;
} goods[] = {
    {"approved", RULE_LABEL, "approved", "approved", ""},
    {"  needs fix \n", RULE_LABEL, "needs fix", "needs fix", ""},
    {"問題なし", RULE_LABEL, "問題なし", "問題なし", ""},
    {"COMPLETE", RULE_LABEL, "COMPLETE", "COMPLETE", ""},
    {"whenever (it) fits", RULE_LABEL, "whenever (it) fits", "whenever (it) fits", ""},
    {"when all tests pass", RULE_LABEL, "when all tests pass", "when all tests pass", ""},
    {"all (or most) pass", RULE_LABEL, "all (or most) pass", "all (or most) pass", ""},
    {"it's \"A && B\"", RULE_LABEL, "it's \"A && B\"", "it's \"A && B\"", ""},
    {"both (A && B)", RULE_LABEL, "both (A && B)", "both (A && B)", ""},
    {"5\" tall :)", RULE_LABEL, "5\" tall :)", "5\" tall :)", ""},
    {"when(exit == 0)", RULE_WHEN, "when(exit == 0)", "", "exit == 0"},
    {"when( exit == 0 && iteration > 1 )", RULE_WHEN, "when( exit == 0 && iteration > 1 )", "",
     "exit == 0 && iteration > 1"},
    {"when((true) || (false))", RULE_WHEN, "when((true) || (false))", "", "(true) || (false)"},
    {"when(structured.a.b == \") && when(\")", RULE_WHEN, "when(structured.a.b == \") && when(\")",
     "", "structured.a.b == \") && when(\""},
    {"when(exit == 0\n  && true)", RULE_WHEN, "when(exit == 0\n  && true)", "",
     "exit == 0\n  && true"},
    {"needs_fix && when(false)", RULE_LABEL_WHEN, "needs_fix && when(false)", "needs_fix", "false"},
    {"a(b)&&when(true && (exit > 1))", RULE_LABEL_WHEN, "a(b)&&when(true && (exit > 1))", "a(b)",
     "true && (exit > 1)"},
    {"say \"a && b\" && when(true)", RULE_LABEL_WHEN, "say \"a && b\" && when(true)",
     "say \"a && b\"", "true"},
};

TEST(forms_are_told_apart) {
  for (size_t i = 0; i < ARRAY_LEN(goods); i++) {
    const struct good *c = &goods[i];
    AUTO(arena_deinit) struct arena arena = {0};
    struct rule rule = {0};
    struct err err = {0};
    if (!rule_parse(&arena, str_from(c->text), &rule, NULL, &err))
      fail_msg("%s: %s", c->text, err.text);
    assert_int_equal(rule.kind, c->kind);
    assert_true(str_eq_c(rule.condition, c->condition));
    assert_true(str_eq_c(rule.label, c->label));
    assert_true(str_eq_c(rule.when_text, c->when_text));
    assert_int_equal(rule.when != NULL, c->kind != RULE_LABEL);
  }
}

static const struct bad {
  const char *text;
  size_t offset;
  const char *error;
} bads[] = {
    {"", 0, "the condition is empty"},
    {" \n", 0, "the condition is empty"},
    {"when(", 0, "when( has no closing )"},
    {"when()", 5, "the expression is empty"},
    {"when(exit == 0", 0, "when( has no closing )"},
    {"when(exit == \"0)", 0, "when( has no closing )"},
    {"  when(exit == x)", 15, "no value is named x"},
    {"when(exit == 0) please", 15, "text follows when(...)"},
    {"when (exit == 0)", 0, "a space stands between when and ("},
    {"When(exit == 0)", 0, "in small letters"},
    {"x && WHEN(exit == 0)", 5, "when("},
    {"when(true) && when(false)", 0, "write label && when(...), or when(A && B)"},
    {"when(true) && approved", 0, "the label goes first"},
    {"approved && tested", 12, "after && stands one when(...)"},
    {"approved && when(true) && when(true)", 12, "after && stands one when(...)"},
    {"approved && when(exti == 1)", 17, "did you mean exit?"},
    {"approved && when(true", 12, "when( has no closing )"},
    {"approved &&", 11, "after && stands one when(...)"},
    {"&& when(true)", 0, "no label stands before &&"},
    {"an (open one && when(true)", 0, "stays open before &&"},
    {"two\nlines", 0, "one line"},
    {"all(approved", 0, "all( has no closing )"},
    {"all()", 4, "all(...) has an empty place"},
    {"any(\"a\", )", 9, "any(...) has an empty place"},
    {"any(\"a\" b)", 9, "write a comma between two labels"},
    {"all(\"a\") or so", 0, "or text follows it"},
    {"all(\"a\") && b", 12, "after && stands one when(...)"},
    {"all(\"a\") && when(exti == 1)", 17, "did you mean exit?"},
    {"ai(\"looks good\")", 0, "write its text as the condition itself"}, /* row 89 */
    {"ai(\"looks good", 0, "write its text as the condition itself"},
};

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
  for (size_t i = 0; i < ARRAY_LEN(bads); i++) {
    const struct bad *c = &bads[i];
    AUTO(arena_deinit) struct arena arena = {0};
    struct rule rule = {0};
    struct err err = {0};
    size_t where = 999;
    bool ok = rule_parse(&arena, str_from(c->text), &rule, &where, &err);
    if (ok || where != c->offset || strstr(err.text, c->error) == NULL)
      fail_msg("%s: %s at %zu, \"%s\"", c->text, ok ? "parsed" : "refused", where, err.text);
  }
}
