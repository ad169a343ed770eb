/* Views of bytes, UTF-8 and its widths, numbers, and the nearest of some names. */
#include "base/str.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void views(void **state) {
  (void)state;
  assert_int_equal(str_from(NULL).n, 0);
  assert_true(str_eq((struct str){NULL, 0}, STR("")));
  assert_true(str_eq_c(STR("abc"), "abc"));
  assert_false(str_eq_c(STR("abc"), "ab"));
  assert_false(str_eq(STR("a\0b"), STR("a\0c")));
  assert_true(str_starts(STR("when(x)"), "when("));
  assert_false(str_starts(STR("whe"), "when("));
  assert_true(str_starts(STR("x"), ""));
  assert_true(str_eq_c(str_trim(STR(" \t\r\n\v\fx y\n ")), "x y"));
  assert_int_equal(str_trim(STR(" \n ")).n, 0);
  assert_true(str_eq_c(str_trim(STR("\xc2\xa0x")), "\xc2\xa0x")); /* ASCII only */
}

static void lines(void **state) {
  static const struct {
    const char *text, *joined; /* with | between */
  } cases[] = {
      {"a\nb", "a|b"}, {"a\nb\n", "a|b|"}, {"", ""}, {"\n\n", "||"}, {"a\r\nb", "a\r|b"},
  };
  (void)state;
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

static void numbers(void **state) {
  static const struct {
    const char *text;
    bool ok;
    long value;
  } cases[] = {
      {"0", true, 0},
      {"42", true, 42},
      {"-7", true, -7},
      {"007", true, 7},
      {"", false, 0},
      {"-", false, 0},
      {"+1", false, 0},
      {" 1", false, 0},
      {"1 ", false, 0},
      {"1.5", false, 0},
      {"0x1", false, 0},
      {"１", false, 0},
      {"999999999999999999", true, 999999999999999999},
      {"1000000000000000000", false, 0},
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    long value = 0;
    assert_int_equal(str_to_long(str_from(cases[i].text), &value), cases[i].ok);
    assert_int_equal(value, cases[i].value);
  }
}

static void utf8_as_the_rfc_says(void **state) {
  static const struct {
    const char *text;
    size_t length; /* of the first sequence */
    uint32_t cp;
  } cases[] = {
      {"a", 1, 'a'},
      {"\x7f", 1, 0x7f},
      {"\xc2\x80", 2, 0x80},
      {"\xdf\xbf", 2, 0x7ff},
      {"\xe0\xa0\x80", 3, 0x800},
      {"\xef\xbf\xbf", 3, 0xffff},
      {"\xf0\x90\x80\x80", 4, 0x10000},
      {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
      {"\xc0\x80", 0, 0},         /* overlong */
      {"\xc1\xbf", 0, 0},         /* overlong */
      {"\xe0\x9f\xbf", 0, 0},     /* overlong */
      {"\xf0\x8f\xbf\xbf", 0, 0}, /* overlong */
      {"\xed\xa0\x80", 0, 0},     /* surrogate */
      {"\xed\xbf\xbf", 0, 0},     /* surrogate */
      {"\xf4\x90\x80\x80", 0, 0}, /* above U+10FFFF */
      {"\xf5\x80\x80\x80", 0, 0},
      {"\x80", 0, 0},
      {"\xff", 0, 0},
      {"\xc3", 0, 0},
      {"\xe3\x81", 0, 0},
      {"\xc3(", 0, 0},
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    uint32_t cp = 0;
    size_t n = strlen(cases[i].text);
    assert_int_equal(utf8_decode(cases[i].text, n, &cp), cases[i].length);
    assert_int_equal(utf8_valid(cases[i].text, n), cases[i].length > 0);
    if (cases[i].length > 0)
      assert_int_equal(cp, cases[i].cp);
    char long_text[40] = "0123456789abcdef"; /* behind the eight bytes at once */
    memcpy(long_text + 16, cases[i].text, n);
    assert_int_equal(utf8_valid(long_text, 16 + n), cases[i].length > 0);
  }
  assert_int_equal(utf8_decode("", 0, NULL), 0);
  assert_true(utf8_valid("", 0));
  assert_true(utf8_valid("\0", 1));
}

static void a_cut_never_splits_a_sequence(void **state) {
  static const char text[] = "aé日😀b";
  (void)state;
  for (size_t n = 0; n < sizeof text; n++) {
    size_t cut = utf8_floor(text, n);
    assert_true(cut <= n && n - cut < 4);
    assert_true(utf8_valid(text, cut));
  }
  assert_int_equal(utf8_floor("\x80\x80\x80\x80\x80", 5), 5); /* not UTF-8: as it is */
}

static void widths(void **state) {
  static const struct {
    uint32_t cp;
    int width;
  } cases[] = {{'a', 1},    {0xe9, 1},   {0x301, 0},   {0x65e5, 2}, {0xff21, 2},
               {0xac00, 2}, {0x200d, 0}, {0x1f600, 2}, {0x2588, 1}, {0xfe0f, 0}};
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    assert_int_equal(utf8_width(cases[i].cp), cases[i].width);
}

static void the_nearest_name(void **state) {
  static const char *const names[] = {"instruction", "initial_movement", "rules", "persona", NULL};
  static const struct {
    const char *word, *nearest;
  } cases[] = {{"instuction", "instruction"},
               {"rule", "rules"},
               {"Rules", "rules"},
               {"personas", "persona"},
               {"xyzzy", NULL},
               {"", NULL},
               {"initial_movment", "initial_movement"},
               {"rules", "rules"},
               {"init", "initial_movement"},
               {"in", NULL},
               {"persona_text", "persona"},
               {"rul", "rules"}};
  char huge[200];
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    const char *got = str_nearest(str_from(cases[i].word), names);
    if (cases[i].nearest)
      assert_string_equal(got, cases[i].nearest);
    else
      assert_null(got);
  }
  memset(huge, 'x', sizeof huge);
  assert_null(str_nearest((struct str){huge, sizeof huge}, names));
}

static void numbers_as_text(void **state) {
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
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    assert_int_equal(str_from_number(out, cases[i].value), strlen(cases[i].text));
    assert_string_equal(out, cases[i].text);
  }
}

/* What is looked at many bytes at a time: an ill-formed byte anywhere is found. */
static void one_bad_byte_anywhere(void **state) {
  char text[200];
  (void)state;
  for (size_t n = 1; n < sizeof text; n++)
    for (size_t at = 0; at < n; at++) {
      memset(text, 'a', n);
      assert_true(utf8_valid(text, n));
      text[at] = (char)0x80;
      assert_false(utf8_valid(text, n));
      if (at + 2 <= n) {
        memcpy(text + at, "\xC3\xA9", 2);
        assert_true(utf8_valid(text, n));
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_as_text),
      cmocka_unit_test(one_bad_byte_anywhere),
      cmocka_unit_test(views),
      cmocka_unit_test(lines),
      cmocka_unit_test(numbers),
      cmocka_unit_test(utf8_as_the_rfc_says),
      cmocka_unit_test(widths),
      cmocka_unit_test(a_cut_never_splits_a_sequence),
      cmocka_unit_test(the_nearest_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
