/* UTF-8 is read, written, measured and cut as RFC 3629 says. */
#include "base/utf8.h"

#include "base/err.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(utf8_as_the_rfc_says) {
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

TEST(a_cut_never_splits_a_sequence) {
  static const char text[] = "aé日😀b";
  for (size_t n = 0; n < sizeof text; n++) {
    size_t cut = utf8_floor(text, n);
    assert_true(cut <= n && n - cut < 4);
    assert_true(utf8_valid(text, cut));
    size_t next = utf8_ceil(text, sizeof text, n);
    assert_true(next >= n && next - n < 4);
    assert_true(utf8_valid(text, next));
  }
  assert_int_equal(utf8_count(text, sizeof text - 1), 5);
  assert_int_equal(utf8_floor("\x80\x80\x80\x80\x80", 5), 5); /* not UTF-8: as it is */
}

TEST(widths) {
  static const struct {
    uint32_t cp;
    int width;
  } cases[] = {{'a', 1},    {0xe9, 1},   {0x301, 0},   {0x65e5, 2}, {0xff21, 2},
               {0xac00, 2}, {0x200d, 0}, {0x1f600, 2}, {0x2588, 1}, {0xfe0f, 0}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    assert_int_equal(utf8_width(cases[i].cp), cases[i].width);
}

/* Text is looked at many bytes at a time: an ill-formed byte anywhere is found. */
TEST(one_bad_byte_anywhere) {
  char text[200];
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

/* Every character is written as what is read again; a surrogate is not one. */
TEST(all_characters_there_and_back) {
  for (uint32_t cp = 0; cp <= UTF8_LAST; cp++) {
    char out[UTF8_BYTES_MAX];
    size_t n = utf8_put(out, cp);
    uint32_t back = 0;
    assert_int_equal(utf8_decode(out, n, &back), n);
    assert_int_equal(back, utf8_is_surrogate(cp) ? 0xFFFD : cp);
    assert_int_equal(utf8_count(out, n), 1);
  }
}

TEST(halves_of_a_character) {
  uint32_t cp = 0;
  assert_true(utf8_join(0xD83D, 0xDE00, &cp));
  assert_int_equal(cp, 0x1F600);
  assert_true(utf8_join(0xDBFF, 0xDFFF, &cp));
  assert_int_equal(cp, UTF8_LAST);
  assert_false(utf8_join(0xDE00, 0xD83D, &cp));
  assert_false(utf8_join(0xD83D, 'a', &cp));
}
