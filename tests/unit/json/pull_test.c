/* Walks JSON without building it: what is taken, what is skipped, what is refused. */
#include "base/memory.h"
#include "support/test.h"
#include "json/pull.h"

#include <stdlib.h>
#include <string.h>

TEST(takes_members) {
  struct pull at =
      pull_of(STR(" {\"a\" : 12 ,\"b\":\"x\\\"y\",\"c\":[1,{\"d\":\"]}\"}],\"e\":-0.5e1,"
                  "\"f\":true,\"g\":null} "));
  struct str key, text = {"", 0};
  int64_t n = 0;
  double real = 0;
  bool truth = false;
  buf_auto_t scratch = {0};
  size_t members = 0;
  assert_true(pull_open(&at, '{'));
  for (; pull_key(&at, &key); members++) {
    if (str_eq_c(key, "a"))
      assert_true(pull_integer(&at, &n));
    else if (str_eq_c(key, "b"))
      assert_true(pull_text(&at, &text));
    else if (str_eq_c(key, "e"))
      assert_true(pull_number(&at, &real));
    else if (str_eq_c(key, "f"))
      truth = pull_true(&at);
    else
      pull_skip(&at);
  }
  assert_false(at.bad);
  assert_int_equal(members, 6);
  assert_int_equal(n, 12);
  assert_true(real == -5.0);
  assert_true(truth);
  assert_true(str_eq_c(pull_decode(text, &scratch), "x\"y"));
}

TEST(takes_items) {
  struct pull at = pull_of(STR("[1,[2,3],\"4\"]"));
  int64_t n, sum = 0;
  size_t items = 0;
  assert_true(pull_open(&at, '['));
  for (; pull_item(&at); items++)
    sum += pull_integer(&at, &n) ? n : 100;
  assert_false(at.bad);
  assert_int_equal(items, 3);
  assert_int_equal(sum, 201);
}

/* A value of another kind is skipped, and the walk goes on behind it. */
TEST(skips_other_kinds) {
  static const char *const values[] = {"7", "\"t\\\\\"", "[[],{}]", "{\"x\":{}}", "true", "-1.5"};
  for (size_t i = 0; i < ARRAY_LEN(values); i++) {
    buf_auto_t text = {0};
    struct str key, raw;
    int64_t n = 0;
    double real;
    buf_printf(&text, "{\"v\":%s,\"w\":%s,\"x\":%s,\"end\":1}", values[i], values[i], values[i]);
    struct pull at = pull_of(buf_view(&text));
    assert_true(pull_open(&at, '{'));
    assert_true(pull_key(&at, &key));
    assert_int_equal(pull_text(&at, &raw), values[i][0] == '"');
    assert_true(pull_key(&at, &key));
    assert_int_equal(pull_number(&at, &real), strchr("-7", values[i][0]) != NULL);
    assert_true(pull_key(&at, &key));
    assert_int_equal(pull_open(&at, '['), values[i][0] == '[');
    if (values[i][0] == '[')
      while (pull_item(&at))
        pull_skip(&at);
    assert_true(pull_key(&at, &key) && str_eq_c(key, "end"));
    assert_true(pull_integer(&at, &n));
    assert_false(pull_key(&at, &key));
    assert_false(at.bad);
  }
}

static void walk(struct pull *at) {
  struct str key;
  if (pull_open(at, '{'))
    while (pull_key(at, &key))
      pull_skip(at);
}

TEST(refuses) {
  static const char *const texts[] = {"",
                                      "{",
                                      "{\"a\"",
                                      "{\"a\":",
                                      "{\"a\":1",
                                      "{\"a\":}",
                                      "{\"a\":1 \"b\"",
                                      "{a:1}",
                                      "{\"a\":\"",
                                      "{\"a\":[1",
                                      "{\"a\":\"\\\"}",
                                      "{\"a\":1,}",
                                      "{\"a\" 1}",
                                      "{\"a\":1,",
                                      "{,}",
                                      "{\"a\":@}"};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    /* on the heap, so that a sanitizer sees a byte too far */
    size_t n = strlen(texts[i]);
    char_auto_t *copy = malloc(n + 1);
    memcpy(copy, texts[i], n);
    struct pull at = pull_of((struct str){copy, n});
    walk(&at);
    if (!at.bad)
      fail_msg("%s is taken", texts[i]);
    assert_false(pull_item(&at));
  }
}

TEST(decodes) {
  buf_auto_t scratch = {0};
  struct pull at = pull_of(STR("\"gr\\u00f6\\u00dfe\\n\""));
  struct str raw;
  assert_true(pull_text(&at, &raw));
  assert_true(str_eq_c(pull_decode(raw, &scratch), "gr\xc3\xb6\xc3\x9f"
                                                   "e\n"));
  at = pull_of(STR("\"\\q\""));
  assert_true(pull_text(&at, &raw));
  assert_true(str_eq_c(pull_decode(raw, &scratch), "\\q"));
}
