/* when() expressions: what parses, what it is worth, where and how it is refused. */
#include "expr/expr.h"

#include "base/arena.h"
#include "base/buf.h"
#include "support/test.h"

#include <string.h>

static const char environment[] =
    "{\"exit\": 2, \"iteration\": 3, \"movement_iteration\": 1, \"structured\": {"
    " \"test\": {\"ok\": true, \"bad\": false, \"failed\": 2, \"rate\": 0.5, \"none\": null,"
    "  \"name\": \"a && b\", \"quote\": \"say \\\"hi\\\" \\\\\", \"word\": \"h\\u00e9llo\","
    "  \"big\": 9007199254740993, \"matrix\": [[1, 2], [3, 4]],"
    "  \"files\": [\"a.c\", \"b.c\"], \"findings\": ["
    "    {\"severity\": \"high\", \"tags\": [\"x\"], \"fixed\": false},"
    "    {\"severity\": \"low\", \"tags\": [\"x\", \"y\"], \"fixed\": true}],"
    "  \"holes\": [{\"a\": 1}, {\"b\": 1}], \"empty\": [], \"length\": 7, \"day\": \"2026-02-28\"},"
    " \"fix-it\": {\"done\": true}, \"review.v2\": {\"done\": true}, \"レビュー\": {\"可\": "
    "true}}}";

static const struct expr *parse_when(struct arena *arena, const char *text,
                                     struct expr_error *err) {
  return expr_parse(arena, text, strlen(text), EXPR_WHEN, err);
}

static const struct value_case {
  const char *text;
  enum expr_value value;
  const char *error; /* part of the message of EXPR_ERROR */
} value_cases[] = {
    {"true", EXPR_TRUE, NULL},
    {"false", EXPR_FALSE, NULL},
    {" exit == 2 ", EXPR_TRUE, NULL},
    {"exit==2", EXPR_TRUE, NULL},
    {"exit != 2", EXPR_FALSE, NULL},
    {"exit == 2.0", EXPR_TRUE, NULL},
    {"exit == \"2\"", EXPR_FALSE, NULL}, /* strict: no conversion */
    {"exit == true", EXPR_FALSE, NULL},
    {"exit == null", EXPR_FALSE, NULL},
    {"2 == exit", EXPR_TRUE, NULL},
    {"iteration >= 3 && movement_iteration < 2", EXPR_TRUE, NULL},
    {"iteration > 3 || iteration <= 2 || exit > -1", EXPR_TRUE, NULL},
    {"false || false && true", EXPR_FALSE, NULL},
    {"true || false && false", EXPR_TRUE, NULL}, /* && binds closer */
    {"(true || false) && false", EXPR_FALSE, NULL},
    {"!(exit == 0)", EXPR_TRUE, NULL},
    {"!true || !false", EXPR_TRUE, NULL},
    {"!!structured.test.ok", EXPR_TRUE, NULL},
    {"structured.test.ok", EXPR_TRUE, NULL},
    {"structured.test.bad", EXPR_FALSE, NULL},
    {"structured.test.failed == 2", EXPR_TRUE, NULL},
    {"structured.test.rate == 0.5", EXPR_TRUE, NULL},
    {"structured.test.rate < 0.51", EXPR_TRUE, NULL},
    {"structured.test.none == null", EXPR_TRUE, NULL},
    {"structured.test.ok != null", EXPR_TRUE, NULL},
    {"structured.test.big == 9007199254740992", EXPR_ERROR, "15 digits"},
    {"structured.test.big > 900719925474099", EXPR_TRUE, NULL},
    /* row 86: escapes, operators inside texts do not split */
    {"structured.test.name == \"a && b\"", EXPR_TRUE, NULL},
    {"structured.test.quote == \"say \\\"hi\\\" \\\\\"", EXPR_TRUE, NULL},
    {"structured.test.name == \"x\" || exit == 2", EXPR_TRUE, NULL},
    {"structured.test.word.length == 5", EXPR_TRUE, NULL},
    {"structured.test.word == \"héllo\"", EXPR_TRUE, NULL},
    {"structured.test.length == 7", EXPR_TRUE, NULL}, /* an own member of that name */
    {"structured.test.files.length == 2", EXPR_TRUE, NULL},
    {"structured.test.empty.length == 0", EXPR_TRUE, NULL},
    {"structured.test.files[1] == \"b.c\"", EXPR_TRUE, NULL},
    {"structured.test.matrix[1][0] == 3", EXPR_TRUE, NULL},
    {"structured.test.findings[0].severity == \"high\"", EXPR_TRUE, NULL},
    {"contains(structured.test.files, \"a.c\")", EXPR_TRUE, NULL},
    {"contains(structured.test.files, \"c.c\")", EXPR_FALSE, NULL},
    {"contains(structured.test.empty, 1)", EXPR_FALSE, NULL},
    {"contains(structured.test.matrix[0], iteration)", EXPR_FALSE, NULL},
    {"contains(structured.test.matrix[0], exit)", EXPR_TRUE, NULL},
    {"contains(structured.test.findings.severity, \"low\")", EXPR_TRUE, NULL}, /* projection */
    {"structured.test.findings.severity.length == 2", EXPR_TRUE, NULL},
    {"exists(structured.test.findings, item.severity == \"low\" && contains(item.tags, \"y\"))",
     EXPR_TRUE, NULL},
    {"exists(structured.test.findings, item.severity == \"high\" && contains(item.tags, \"y\"))",
     EXPR_FALSE, NULL},
    {"exists(structured.test.findings, item.fixed)", EXPR_TRUE, NULL},
    {"exists(structured.test.findings, exists(item.tags, item == \"y\"))", EXPR_TRUE, NULL},
    {"exists(structured.test.files, item == \"b.c\")", EXPR_TRUE, NULL},
    {"exists(structured.test.empty, item.x)", EXPR_FALSE, NULL},
    {"is_date(structured.test.day)", EXPR_TRUE, NULL},
    {"is_date(structured.test.name) || !is_date(structured.test.day)", EXPR_FALSE, NULL},
    {"is_date(structured.test.failed)", EXPR_FALSE, NULL},
    {"structured.fix-it.done", EXPR_TRUE, NULL},
    {"structured[\"review.v2\"].done", EXPR_TRUE, NULL},
    {"structured.レビュー.可", EXPR_TRUE, NULL},
    {"true || structured.nope.x", EXPR_TRUE, NULL}, /* what is not needed is not looked up */
    {"false && structured.nope.x", EXPR_FALSE, NULL},
    /* evaluation errors: never false */
    {"structured.nope.x", EXPR_ERROR, "structured.nope.x has no value: there is no nope"},
    {"!structured.nope.x", EXPR_ERROR, "no nope"},
    {"structured.test.nope == 1", EXPR_ERROR, "there is no nope"},
    {"structured.test.nope != 1 || true", EXPR_ERROR, "there is no nope"},
    {"structured.test.toString == 1", EXPR_ERROR, "there is no toString"}, /* row 87 */
    {"structured.test.constructor != null", EXPR_ERROR, "there is no constructor"},
    {"structured.test.files[2] == \"x\"", EXPR_ERROR, "there is no [2]"},
    {"structured.test.ok.deep == 1", EXPR_ERROR, "there is no deep"},
    {"structured.test.failed", EXPR_ERROR, "is a number, not true or false: compare it"},
    {"structured.test.name", EXPR_ERROR, "is a text"},
    {"exit", EXPR_ERROR, "exit is a number"},
    {"structured.test.name > 1", EXPR_ERROR, "is a text: < <= > >= compare numbers only"},
    {"is_date(structured.test.nope)", EXPR_ERROR, "there is no nope"},
    {"contains(structured.test.ok, 1)", EXPR_ERROR, "is true or false: contains needs a list"},
    {"exists(structured.test, item.x)", EXPR_ERROR, "names no field"},
    {"exists(structured.test.name, item == 1)", EXPR_ERROR, "is a text: exists needs a list"},
    {"exists(structured.test.holes, item.b == 1)", EXPR_ERROR, "there is no b"},
    {"contains(structured.test.holes.a, 5)", EXPR_ERROR, "there is no a"},
};

TEST(values_are_as_the_grammar_says) {
  json_auto_t *env = json_loads(environment, 0, NULL);
  assert_non_null(env);
  for (size_t i = 0; i < ARRAY_LEN(value_cases); i++) {
    const struct value_case *c = &value_cases[i];
    AUTO(arena_deinit) struct arena arena = {0};
    struct expr_error err;
    const struct expr *e = parse_when(&arena, c->text, &err);
    enum expr_value value = e ? expr_eval(e, env, &err) : EXPR_ERROR;
    if (value != c->value || (c->error && strstr(err.text, c->error) == NULL))
      fail_msg("%s: value %d, \"%s\"", c->text, (int)value, err.text);
  }
}

static const struct rejected_parameter {
  const char *text;
  size_t offset;
  const char *error;
} refusals[] = {
    {"", 0, "the expression is empty"},
    {"  ", 0, "the expression is empty"},
    {"exit = 0", 5, "write =="},
    {"exit === 0", 5, "one more ="},
    {"exit == ", 8, "a value is missing at the end"},
    {"exit == 0 and true", 10, "unexpected and: put && or ||"},
    {"exit == 0 &&", 12, "a value is missing"},
    {"&& true", 0, "a value is expected here"},
    {"exit == 'x'", 8, "double quotes"},
    {"exit == \"x", 8, "no closing \""},
    {"exit == \"a\\n\"", 10, "only \\\" and \\\\"},
    {"exit > \"5\"", 7, "compare numbers only"},
    {"true < exit", 0, "compare numbers only"},
    {"exit >= null", 8, "compare numbers only"},
    {"5", 0, "alone is neither true nor false"},
    {"\"text\"", 0, "alone is neither true nor false"},
    {"null", 0, "alone is neither true nor false"},
    {"(exit == 0", 0, "( has no closing )"},
    {"exit == 0)", 9, "unexpected )"},
    {"(exit) == 0", 7, "unexpected =="},
    {"exti == 0", 0, "did you mean exit?"},
    {"context.task.x == 1", 0, "no value is named context"},
    {"effect.x == 1", 0, "no value is named effect"}, /* row 88 */
    {"structured.test", 0, "names no field"},
    {"structured", 0, "names no field"},
    {"structured.test. == 1", 16, "a name must follow the dot"},
    {"structured.test.a[x] == 1", 17, "between [ and ]"},
    {"structured.test.a[1 == 1", 17, "[ has no closing ]"},
    {"exit.code == 0", 0, "exit is a number and has no parts"},
    {"item.x == 1", 0, "only inside exists"},
    {"exists(structured.a.b, item.x == 1) && item.y", 39, "only inside exists"},
    {"contains(\"a\", 1)", 9, "needs a reference to a list"},
    {"is_date(\"2026-01-01\")", 8, "needs a reference first"},
    {"is_date(structured.a.b, 1)", 22, "takes no more: write is_date(text)"},
    {"is_date(structured.a.b", 8, "is_date( has no closing )"},
    {"isDate(structured.a.b)", 0, "no function is named isDate"},
    {"contains(structured.a.b)", 23, "needs a comma"},
    {"contains(structured.a.b, 1", 9, "contains( has no closing )"},
    {"includes(structured.a.b, 1)", 0, "no function is named includes"},
    {"exit == 5abc", 8, "not a number"},
    {"exit == 5.", 8, "not a number"},
    {"exit == -", 8, "not a number"},
    {"exit == .5", 8, "a value is expected here"},
    {"exit == 1234567890123456", 8, "at most 15 digits"},
    {"exit == 0 & true", 10, "unexpected &"},
};

TEST(refusals_name_the_place) {
  for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
    const struct rejected_parameter *c = &refusals[i];
    AUTO(arena_deinit) struct arena arena = {0};
    struct expr_error err;
    const struct expr *e = parse_when(&arena, c->text, &err);
    if (e != NULL || err.offset != c->offset || strstr(err.text, c->error) == NULL)
      fail_msg("%s: %s at %zu, \"%s\"", c->text, e ? "parsed" : "refused", err.offset, err.text);
  }
}

TEST(depth_and_size_are_bounded) {
  static const struct {
    const char *open, *middle, *close;
    unsigned times;
    bool parses;
  } cases[] = {
      {"(", "true", ")", EXPR_DEPTH_MAX - 1, true},
      {"(", "true", ")", EXPR_DEPTH_MAX, false},
      {"!", "true", "", EXPR_DEPTH_MAX, false},
      {"(", "", "", 100000, false},
      {"true && ", "true", "", EXPR_NODES_MAX - 2, true},
      {"true && ", "true", "", EXPR_NODES_MAX, false},
      {"true && ", "true", "", 100000, false},
      {"exists(structured.a.b, ", "true", ")", EXPR_DEPTH_MAX, false},

      {"", "structured.a.b", "[0]", 100000, false},
  };
  json_auto_t *env = json_object();
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(arena_deinit) struct arena arena = {0};
    struct expr_error err;
    buf_auto_t text = {0};
    for (unsigned k = 0; k < cases[i].times; k++)
      buf_puts(&text, cases[i].open);
    buf_puts(&text, cases[i].middle);
    for (unsigned k = 0; k < cases[i].times; k++)
      buf_puts(&text, cases[i].close);
    const struct expr *e = parse_when(&arena, buf_c(&text), &err);
    bool holds = e && expr_eval(e, env, &err) != EXPR_ERROR;
    if (holds != cases[i].parses)
      fail_msg("case %zu: %s", i, err.text);
  }
}

TEST(invariants_are_bounded_too) {
  static const struct {
    const char *open, *middle, *close;
    unsigned times;
    bool parses;
  } cases[] = {{"-", "a", " == 1", EXPR_DEPTH_MAX - 2, true},
               {"-", "a", " == 1", EXPR_DEPTH_MAX, false},
               {"(", "a", ")", EXPR_DEPTH_MAX / 2 - 1, true},
               {"(", "a", ")", EXPR_DEPTH_MAX, false}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(arena_deinit) struct arena arena = {0};
    struct expr_error err;
    buf_auto_t text = {0};
    for (unsigned k = 0; k < cases[i].times; k++)
      buf_puts(&text, cases[i].open);
    buf_puts(&text, cases[i].middle);
    for (unsigned k = 0; k < (cases[i].close[0] == ')' ? cases[i].times : 1); k++)
      buf_puts(&text, cases[i].close);
    if ((expr_parse(&arena, text.p, text.n, EXPR_INVARIANT, &err) != NULL) != cases[i].parses)
      fail_msg("case %zu: %s", i, err.text);
  }
}

static void collect(void *ctx, const struct str *path, size_t n) {
  for (size_t i = 0; i < n; i++)
    buf_printf(ctx, "%s%.*s", i ? "/" : "", (int)path[i].n, path[i].p);
  buf_putc(ctx, ' ');
}

TEST(references_are_listed) {
  AUTO(arena_deinit) struct arena arena = {0};
  struct expr_error err;
  buf_auto_t all = {0};
  const struct expr *e = parse_when(&arena,
                                    "exit == 0 || !(structured.a.b[2].c > iteration) && "
                                    "exists(structured.x.y, item.z == structured.q.r)",
                                    &err);
  assert_non_null(e);
  expr_each_ref(e, collect, &all);
  assert_string_equal(buf_c(&all),
                      "exit structured/a/b/c iteration structured/x/y structured/q/r ");
}
