/* Views of bytes, numbers, and the nearest of some names. */
#include "base/str.h"

#include "base/err.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(views) {
  assert_int_equal(str_from(NULL).n, 0);
  assert_true(str_eq((struct str){NULL, 0}, STR("")));
  assert_true(str_eq_c(STR("abc"), "abc"));
  assert_false(str_eq_c(STR("abc"), "ab"));
  assert_false(str_eq(STR("a\0b"), STR("a\0c")));
  assert_true(str_starts(STR("when(x)"), "when("));
  assert_false(str_starts(STR("whe"), "when("));
  assert_true(str_starts(STR("x"), ""));
  assert_true(str_among(STR("b"), "a b cd") && str_among(STR("cd"), "a b cd"));
  assert_false(str_among(STR("c"), "a b cd") || str_among(STR("a b"), "a b cd"));
  assert_false(str_among(STR(""), "a b") || str_among(STR("a"), ""));
  assert_true(str_ends(STR("a.yaml"), ".yaml"));
  assert_true(str_ends(STR(""), ""));
  assert_false(str_ends(STR("yaml"), ".yaml"));
  assert_true(str_has(STR("a\0bc"), "bc"));
  assert_true(str_has((struct str){NULL, 0}, ""));
  assert_false(str_has((struct str){NULL, 0}, "a"));
  assert_true(str_eq_fold(STR("Content-TYPE"), "content-type"));
  assert_false(str_eq_fold(STR("content-typ"), "content-type"));
  assert_true(str_starts_fold(STR("HTTP://x"), "http://"));
  assert_false(str_starts_fold(STR("http"), "http://"));
  assert_true(str_eq_c(str_trim(STR(" \t\r\n\v\fx y\n ")), "x y"));
  assert_int_equal(str_trim(STR(" \n ")).n, 0);
  assert_true(str_eq_c(str_trim(STR("\xc2\xa0x")), "\xc2\xa0x")); /* ASCII only */
}

TEST(lines) {
  static const struct {
    const char *text, *joined; /* with | between */
  } cases[] = {
      {"a\nb", "a|b"}, {"a\nb\n", "a|b|"}, {"", ""}, {"\n\n", "||"}, {"a\r\nb", "a\r|b"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct str rest = str_from(cases[i].text);
    char got[64];
    size_t n = 0;
    while (rest.p != NULL) {
      struct str line = str_next_line(&rest);
      memcpy(got + n, line.p, line.n);
      n += line.n;
      if (rest.p != NULL)
        got[n++] = '|';
    }
    got[n] = '\0';
    assert_string_equal(got, cases[i].joined);
  }
}

TEST(numbers) {
  DATA_ROWS("base/str/numbers.yaml", c, text, ok, value) {
    long value = 0;
    assert_int_equal(str_to_long(str_from(c.text), &value), data_true(c.ok));
    assert_int_equal(value, data_number(c.value));
  }
}

TEST(hexadecimal_digits) {
  static const char digits[] = "0123456789abcdef", capitals[] = "ABCDEF";
  for (int i = 0; i < 16; i++)
    assert_int_equal(str_hex_digit(digits[i]), i);
  for (int i = 0; i < 6; i++)
    assert_int_equal(str_hex_digit(capitals[i]), 10 + i);
  for (const char *p = "/:@G`g \n"; *p; p++)
    assert_int_equal(str_hex_digit(*p), -1);
  assert_int_equal(str_hex_digit('\0'), -1);
}

TEST(near_names) {
  static const char huge[64] = {0};
  size_t distance = 99;
  assert_true(str_near(STR("review"), STR("review"), &distance));
  assert_int_equal(distance, 0);
  assert_true(str_near(STR("reveiw"), STR("review"), &distance));
  assert_int_equal(distance, 2);
  assert_false(str_near(STR("plan"), STR("review"), &distance));
  assert_int_equal(distance, 6);
  assert_false(str_near(STR(""), STR("a"), &distance));
  assert_false(str_near(STR("a"), (struct str){huge, sizeof huge}, &distance));
  assert_false(str_near((struct str){huge, sizeof huge}, STR("a"), &distance));
}

TEST(the_nearest_name) {
  static const char *const names[] = {"instruction", "initial_movement", "rules",        "persona",
                                      "pi",          "same_tool",        "same_failure", NULL};
  char huge[200];
  DATA_ROWS("base/str/the_nearest_name.yaml", c, word, nearest) {
    const char *got = str_nearest(str_from(c.word), names);
    if (c.nearest)
      assert_string_equal(got, c.nearest);
    else
      assert_null(got);
  }
  memset(huge, 'x', sizeof huge);
  assert_null(str_nearest((struct str){huge, sizeof huge}, names));
}

TEST(numbers_as_text) {
  static const struct {
    int64_t value;
    const char *text;
  } cases[] = {{0, "0"},
               {7, "7"},
               {-1, "-1"},
               {1200, "1200"},
               {INT64_MAX, "9223372036854775807"},
               {INT64_MIN, "-9223372036854775808"}};
  char out[STR_NUMBER_BYTES];
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    assert_int_equal(str_from_number(out, cases[i].value), strlen(cases[i].text));
    assert_string_equal(out, cases[i].text);
  }
}
