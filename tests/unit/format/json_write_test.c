/* The writer against jansson's own: the same bytes. */

#include "base/memory.h"
#include "format/json_write.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static void same(json_t *value) {
  buf_auto_t out = {0};
  char_auto_t *wanted = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
  json_write(value, &out);
  assert_string_equal(buf_c(&out), wanted);
  json_decref(value);
}

TEST(test_same_as_jansson) {
  static const char *const texts[] = {
      "{}",
      "[]",
      "null",
      "true",
      "false",
      "0",
      "-1",
      "9223372036854775807",
      "-9223372036854775808",
      "-2.5",
      "1.0",
      "\"\"",
      "\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\\u0001\\u001f\"",
      "\"h\\u00e9 \\u8a08\\u753b \\ud83d\\ude00\"",
      "{\"b\":1,\"a\":[1,[2,{\"c\":null}],\"x\"],\"\":{}}",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    json_t *value = json_loads(texts[i], JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    same(value);
  }
}

/* Characters that need an escape, at each place of texts of each length around the widths that are
 * copied. */
TEST(test_every_length) {
  static const char *const odd[] = {"\"", "\\", "\n", "\x01", "\xC3\xA9", "\xF0\x9F\x98\x80"};
  char text[200];
  for (size_t n = 0; n < 140; n++) {
    memset(text, 'a', n);
    same(json_stringn(text, n));
    for (size_t at = 0; at < n; at++) {
      const char *what = odd[(n + at) % (sizeof odd / sizeof odd[0])];
      size_t width = strlen(what);
      memset(text, 'b', n);
      if (at + width <= n)
        memcpy(text + at, what, width);
      same(json_stringn(text, n));
    }
  }
}

TEST(test_reals_have_the_fewest_digits) {
  static const struct {
    double value;
    const char *text;
  } reals[] = {{0.1, "0.1"},
               {0.9, "0.9"},
               {1e300, "1e+300"},
               {3, "3.0"},
               {1.0 / 3, "0.3333333333333333"},
               {0.1 + 0.2, "0.30000000000000004"},
               {-0.0, "-0.0"},
               {5e-324, "4.94065645841247e-324"},
               {1.7976931348623157e308, "1.797693134862316e+308"}};
  for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
    buf_auto_t out = {0};
    json_write_real(reals[i].value, &out);
    assert_true(strtod(buf_c(&out), NULL) == reals[i].value);
    if (i + 1 < sizeof reals / sizeof reals[0]) /* of the largest only that it reads back */
      assert_string_equal(buf_c(&out), reals[i].text);
  }
}

/* Every code point: the value that a reader gets is the same, and nothing that steers a terminal is
 * there as it is. */
TEST(test_every_code_point) {
  for (uint32_t cp = 0; cp <= 0x10FFFF; cp += cp < 0x3000 ? 1 : 97) {
    char text[16] = "0123456789";
    buf_auto_t out = {0};
    size_t n = 3;
    if (cp >= 0xD800 && cp <= 0xDFFF)
      continue;
    if (cp < 0x80) {
      text[n++] = (char)cp;
    } else if (cp < 0x800) {
      text[n++] = (char)(0xC0 | cp >> 6);
      text[n++] = (char)(0x80 | (cp & 0x3F));
    } else if (cp < 0x10000) {
      text[n++] = (char)(0xE0 | cp >> 12);
      text[n++] = (char)(0x80 | (cp >> 6 & 0x3F));
      text[n++] = (char)(0x80 | (cp & 0x3F));
    } else {
      text[n++] = (char)(0xF0 | cp >> 18);
      text[n++] = (char)(0x80 | (cp >> 12 & 0x3F));
      text[n++] = (char)(0x80 | (cp >> 6 & 0x3F));
      text[n++] = (char)(0x80 | (cp & 0x3F));
    }
    text[n++] = 'z';
    json_auto_t *value = json_stringn(text, n);
    assert_non_null(value);
    json_write(value, &out);
    json_auto_t *back = json_loadb(out.p, out.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_true(json_equal(value, back));
    buf_auto_t safe = {0};
    buf_safe(&safe, buf_view(&out), false);
    assert_string_equal(buf_c(&safe), buf_c(&out));
  }
}

/* Bytes behind the text, as memory that was used before has them. */
TEST(test_ends_with_nul) {
  buf_auto_t out = {0};
  json_auto_t *number = json_integer(7);
  buf_puts(&out, "longer than a number");
  buf_clear(&out);
  json_write(number, &out);
  assert_string_equal(buf_c(&out), "7");
}
