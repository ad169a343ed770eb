/* The growing buffer: its maximum, what it tells of a cut, and text made safe for a terminal. */
#include "base/buf.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(it_grows_and_ends_in_nul) {
  struct buf b = {0};
  assert_string_equal(buf_c(&b), "");
  assert_int_equal(buf_view(&b).n, 0);
  for (int i = 0; i < 1000; i++) {
    buf_printf(&b, "%d,", i % 10);
    assert_int_equal(b.p[b.n], '\0');
  }
  assert_int_equal(b.n, 2000);
  assert_false(b.cut);
  buf_clear(&b);
  assert_string_equal(buf_c(&b), "");
  buf_str(&b, STR("a\0b"));
  assert_int_equal(b.n, 3);
  assert_memory_equal(b.p, "a\0b", 4);
  buf_deinit(&b);
  buf_deinit(&b);
  assert_null(b.p);
}

TEST(room_alone_is_an_empty_text) {
  buf_auto_t b = {0};
  char *before = malloc(3000); /* what was there before must not show */
  assert_non_null(before);
  memset(before, 'x', 3000);
  free(before);
  buf_reserve(&b, 3000);
  assert_string_equal(buf_c(&b), "");
}

TEST(a_long_printf) {
  buf_auto_t b = {0};
  char text[5000];
  for (size_t n = 250; n < 262; n++) { /* around the small buffer */
    memset(text, 'x', n);
    text[n] = '\0';
    buf_clear(&b);
    buf_printf(&b, "%s", text);
    assert_string_equal(b.p, text);
  }
  memset(text, 'y', sizeof text);
  text[sizeof text - 1] = '\0';
  buf_clear(&b);
  buf_printf(&b, "[%s]", text);
  assert_int_equal(b.n, sizeof text + 1);
}

TEST(a_maximum_keeps_what_fits) {
  buf_auto_t b = {.max = 5};
  buf_puts(&b, "abc");
  assert_false(b.cut);
  buf_puts(&b, "defg");
  assert_string_equal(b.p, "abcde");
  assert_true(b.cut);
  assert_int_equal(b.dropped, 2);
  buf_putc(&b, 'h');
  assert_int_equal(b.dropped, 3);
  buf_printf(&b, "%d", 1234);
  assert_int_equal(b.dropped, 7);
  assert_int_equal(b.n, 5);
  buf_clear(&b);
  assert_false(b.cut);
  assert_int_equal(b.dropped, 0);
  buf_puts(&b, "12345");
  assert_false(b.cut);
}

TEST(taking_gives_the_bytes_away) {
  buf_auto_t b = {.max = 10};
  char_auto_t *empty = buf_take(&b);
  assert_string_equal(empty, "");
  buf_puts(&b, "mine");
  char_auto_t *text = buf_take(&b);
  assert_string_equal(text, "mine");
  assert_int_equal(b.n, 0);
  assert_int_equal(b.max, 10);
}

static const struct safe_case {
  const char *text, *lines, *line; /* with and without line breaks kept */
} safe_cases[] = {
    {"plain text, 日本語 é", "plain text, 日本語 é", "plain text, 日本語 é"},
    {"a\nb\tc", "a\nb\tc", "a b c"},
    {"a\r\nb", "a\nb", "a b"},
    {"50%\rdone", "50%\\x0ddone", "50%\\x0ddone"},
    {"\x1b[31mred\x1b[0m", "\\e[31mred\\e[0m", "\\e[31mred\\e[0m"},
    {"\x1b]0;title\x07", "\\e]0;title\\x07", "\\e]0;title\\x07"},
    {"\xc2\x9b"
     "31m",
     "\\x9b31m", "\\x9b31m"}, /* C1 CSI */
    {"a\x7f"
     "b\x08",
     "a\\x7fb\\x08", "a\\x7fb\\x08"},
    {"\xe2\x80\xae"
     "evil",
     "\\u202eevil", "\\u202eevil"}, /* right-to-left override */
    {"\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069", "\\u2066x\\u2069"},
    {"\xe2\x80\xa8", "\\u2028", "\\u2028"}, /* line separator */
    {"\xff\xc3", "\\xff\\xc3", "\\xff\\xc3"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
    {"", "", ""},
};

TEST(nothing_steers_a_terminal) {
  for (size_t i = 0; i < ARRAY_LEN(safe_cases); i++)
    for (int lines = 0; lines < 2; lines++) {
      buf_auto_t b = {0};
      buf_safe(&b, str_from(safe_cases[i].text), lines);
      assert_string_equal(buf_c(&b), lines ? safe_cases[i].lines : safe_cases[i].line);
      assert_true(utf8_valid(buf_c(&b), b.n));
    }
}

TEST(no_byte_pair_gets_through_unsafe) {
  buf_auto_t b = {0};
  for (unsigned i = 0; i < 65536; i++) {
    char pair[2] = {(char)(i >> 8), (char)i};
    buf_clear(&b);
    buf_safe(&b, (struct str){pair, 2}, false);
    for (size_t k = 0; k < b.n; k++)
      assert_true((unsigned char)b.p[k] >= 0x20 && b.p[k] != 0x7f);
    assert_true(utf8_valid(b.p ? b.p : "", b.n));
  }
}

TEST(escape_sequences_go) {
  DATA_ROWS("base/buf/escape_sequences_go.yaml", c, text, left) {
    buf_auto_t b = {0};
    buf_puts(&b, c.text);
    b.n = escapes_drop(b.p, b.n);
    assert_string_equal(buf_c(&b), c.left);
    assert_int_equal(b.n, strlen(c.left));
  }
}
