/* Templates: names, sections, and what must stay as it is. */
#include "format/template.h"

#include "base/buf.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct template_var vars[] = {
    {{"name", 4}, {"Ann", 3}}, {{"task", 4}, {"do {name} {?name}x{/name}", 25}},
    {{"empty", 5}, {"", 0}},   {{"n", 1}, {"7", 1}},
    {{NULL, 0}, {NULL, 0}},
};

struct sink {
  struct buf out;
  size_t pieces;
};

static void on_piece(void *ctx, struct str piece, const struct template_var *var) {
  struct sink *sink = ctx;
  assert_true(piece.n > 0);
  if (var != NULL)
    assert_true(str_eq(piece, var->value));
  buf_str(&sink->out, piece);
  sink->pieces++;
}

static void expect(const char *text, const char *out) {
  struct sink sink = {{0}, 0};
  template_render(str_from(text), vars, on_piece, &sink);
  if (strcmp(buf_c(&sink.out), out) != 0)
    fail_msg("%s gives\n%s\nwanted\n%s", text, buf_c(&sink.out), out);
  buf_deinit(&sink.out);
}

TEST(names_and_sections) {
  DATA_ROWS("format/template/names_and_sections.yaml", c, text, out)
    expect(c.text, c.out);
}

TEST(one_parsed_template_takes_other_values) {
  struct template_var own[] = {{STR("a"), STR("one")}, {STR("b"), STR("")}, {{NULL, 0}, {NULL, 0}}};
  struct template *t = template_parse(STR("{?a}<{a}>{/a}{!b}-{/b}{?b}[{b}{a}]{/b}{c}"), own);
  static const struct {
    const char *a, *b, *out;
  } values[] = {
      {"one", "", "<one>-{c}"}, {"", "two", "[two]{c}"}, {"{b}", "{a}", "<{b}>[{a}{b}]{c}"}};
  for (size_t i = 0; i < ARRAY_LEN(values); i++) {
    struct sink sink = {{0}, 0};
    own[0].value = str_from(values[i].a);
    own[1].value = str_from(values[i].b);
    template_put(t, own, on_piece, &sink);
    assert_string_equal(buf_c(&sink.out), values[i].out);
    buf_deinit(&sink.out);
  }
  template_free(t);
  template_free(NULL);
}

TEST(deep_nesting_is_bounded) {
  buf_auto_t text = {0};
  for (int i = 0; i < 16; i++)
    buf_puts(&text, "{?name}");
  buf_puts(&text, "x");
  for (int i = 0; i < 16; i++)
    buf_puts(&text, "{/name}");
  expect(buf_c(&text), "x");
  buf_clear(&text);
  for (int i = 0; i < 500; i++)
    buf_puts(&text, "{?name}");
  for (int i = 0; i < 500; i++)
    buf_puts(&text, "{/name}");
  struct sink sink = {{0}, 0};
  template_render(buf_view(&text), vars, on_piece, &sink); /* what is too deep stays as text */
  assert_true(sink.out.n < text.n);
  buf_deinit(&sink.out);
}

static double seconds(const char *pattern, const char *end, size_t n) {
  buf_auto_t text = {0};
  double best = 1e9;
  while (text.n < n)
    buf_puts(&text, pattern);
  buf_puts(&text, end);
  for (int i = 0; i < 3; i++) {
    struct sink sink = {{0}, 0};
    clock_t start = clock();
    template_render(buf_view(&text), vars, on_piece, &sink);
    double took = (double)(clock() - start) / CLOCKS_PER_SEC;
    best = took < best ? took : best;
    buf_deinit(&sink.out);
  }
  return best;
}

/* Eight times the text; quadratic would be 64 times. What takes no time is not compared. */
TEST(time_is_linear) {
  DATA_ROWS("format/template/time_is_linear.yaml", c, pattern, end) {
    double small = seconds(c.pattern, c.end, 16 * 1024);
    double large = seconds(c.pattern, c.end, 128 * 1024);
    if (large > 24 * small && large > 0.05)
      fail_msg("%s: %.4f s, eight times as much %.4f s", c.pattern, small, large);
  }
}

TEST(what_a_template_uses) {
  assert_true(template_uses(STR("do {task} now"), "task"));
  assert_true(template_uses(STR("{task}"), "task"));
  assert_false(template_uses(STR("do task now"), "task"));
  assert_false(template_uses(STR("{tasks} {task {?task}"), "task"));
  assert_false(template_uses(STR(""), "task"));
}
