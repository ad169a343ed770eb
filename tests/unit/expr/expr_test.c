/* when() expressions: what parses, what it is worth, where and how it is refused. */
#include "expr/expr.h"

#include "base/arena.h"
#include "base/buf.h"
#include "support/data.h"
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

TEST(values_are_as_the_grammar_says) {
  json_auto_t *env = json_loads(environment, 0, NULL);
  assert_non_null(env);
  DATA_ROWS("expr/values_are_as_the_grammar_says.yaml", c, text, value, error) {
    AUTO(arena_deinit) struct arena arena = {0};
    struct expr_error err;
    const struct expr *e = parse_when(&arena, c.text, &err);
    enum expr_value value = e ? expr_eval(e, env, &err) : EXPR_ERROR;
    if (value != data_among(c.value, "false true error") ||
        (c.error && strstr(err.text, c.error) == NULL))
      fail_msg("%s: value %d, \"%s\"", c.text, (int)value, err.text);
  }
}

TEST(refusals_name_the_place) {
  DATA_ROWS("expr/refusals_name_the_place.yaml", c, text, offset, error) {
    AUTO(arena_deinit) struct arena arena = {0};
    struct expr_error err;
    const struct expr *e = parse_when(&arena, c.text, &err);
    if (e != NULL || err.offset != (size_t)data_number(c.offset) ||
        strstr(err.text, c.error) == NULL)
      fail_msg("%s: %s at %zu, \"%s\"", c.text, e ? "parsed" : "refused", err.offset, err.text);
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
