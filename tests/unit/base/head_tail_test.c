/* An output that is longer than its bound: its beginning, its end, and how much is
 * missing between. */

#include "base/head_tail.h"
#include "base/utf8.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole text in pieces of `piece` bytes, through a bound of max. */
static struct buf pass(struct str text, size_t piece, size_t max) {
  struct head_tail h;
  head_tail_init(&h, max);
  for (size_t i = 0; i < text.n; i += piece)
    head_tail_append(&h, (struct str){text.p + i, text.n - i < piece ? text.n - i : piece});
  return head_tail_finish(&h);
}

/* The number in the line between, and where what follows it begins. */
static uint64_t missing(const struct buf *b, size_t *from, size_t *to) {
  unsigned long long n = 0;
  const char *line = memmem(b->p, b->n, "[... ", 5);
  assert_non_null(line);
  assert_int_equal(sscanf(line, "[... %llu bytes were cut here ...]", &n), 1);
  assert_true(line == b->p || line[-1] == '\n');
  *from = (size_t)(line - b->p);
  *to = (size_t)((const char *)memchr(line, '\n', b->n - *from) - b->p) + 1;
  return n;
}

static struct buf lines(size_t count) {
  struct buf b = {0};
  for (size_t i = 0; i < count; i++)
    buf_printf(&b, "line %zu\n", i);
  return b;
}

TEST(what_fits_is_not_touched) {
  for (size_t n = 0; n <= 512; n++) {
    buf_auto_t text = {0};
    for (size_t i = 0; i < n; i++)
      buf_putc(&text, (char)(i * 7));
    buf_auto_t kept = pass(buf_view(&text), 5, 512);
    assert_int_equal(kept.n, n);
    assert_int_equal(kept.dropped, 0);
    assert_false(kept.cut);
    assert_memory_equal(buf_c(&kept), buf_c(&text), n + 1);
  }
}

TEST(both_ends_stay_and_the_sum_is_right) {
  static const size_t pieces[] = {1, 7, 100, 511, 512, 513, 4096, 1u << 20};
  static const size_t bounds[] = {256, 512, 1000, 5000, 60000};
  for (size_t m = 0; m < ARRAY_LEN(bounds); m++)
    for (size_t k = 0; k < ARRAY_LEN(pieces); k++)
      for (size_t count = 30; count < 100000; count = count * 2 + 1) {
        buf_auto_t text = lines(count), kept = pass(buf_view(&text), pieces[k], bounds[m]);
        if (text.n <= bounds[m]) {
          assert_memory_equal(kept.p, text.p, text.n);
        } else {
          size_t from, to;
          uint64_t gone = missing(&kept, &from, &to);
          assert_true(kept.cut && kept.n <= bounds[m]);
          assert_int_equal(gone, kept.dropped);
          assert_int_equal(from + (kept.n - to) + gone, text.n);
          assert_memory_equal(kept.p, text.p, from);
          assert_memory_equal(kept.p + to, text.p + text.n - (kept.n - to), kept.n - to);
          assert_memory_equal(kept.p + to, "line ", 5); /* whole lines on both sides */
          assert_true(from == 0 || kept.p[from - 1] == '\n');
          assert_true(kept.n - to > from); /* the end is the larger part */
          assert_int_equal(kept.p[kept.n], '\0');
        }
      }
}

TEST(without_lines_characters_stay_whole) {
  for (size_t shift = 0; shift < 4; shift++) {
    buf_auto_t text = {0};
    for (size_t i = 0; i < shift; i++)
      buf_putc(&text, 'x');
    for (size_t i = 0; i < 3000; i++)
      buf_puts(&text, i % 2 ? "\xE6\xA4\x9C" : "\xF0\x9F\x8E\xB5");
    buf_auto_t kept = pass(buf_view(&text), 64, 1000);
    size_t from, to;
    uint64_t gone = missing(&kept, &from, &to);
    assert_true(utf8_valid(kept.p, kept.n));
    assert_int_equal(from - 1 + (kept.n - to) + gone, text.n); /* the line's own newline */
  }
}

TEST(bytes_that_are_no_text_are_counted) {
  buf_auto_t text = {0};
  for (size_t i = 0; i < 70000; i++)
    buf_putc(&text, (char)(0x80 | (i & 0x3F)));
  buf_auto_t kept = pass(buf_view(&text), 1000, 2000);
  size_t from, to;
  uint64_t gone = missing(&kept, &from, &to);
  assert_int_equal(from - 1 + (kept.n - to) + gone, text.n);
  assert_true(kept.n > 1900); /* no search for a character eats it up */
}

TEST(it_can_be_used_again) {
  struct head_tail h;
  head_tail_init(&h, 256);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 500; i++)
      head_tail_append(&h, STR("0123456789\n"));
    struct buf kept = head_tail_finish(&h);
    assert_true(kept.cut);
    buf_deinit(&kept);
    head_tail_append(&h, STR("short"));
    kept = head_tail_finish(&h);
    assert_string_equal(kept.p, "short");
    assert_false(kept.cut);
    buf_deinit(&kept);
  }
  head_tail_append(&h, STR("left"));
  head_tail_deinit(&h);
  head_tail_deinit(&h);
}

TEST(a_text_without_its_end_says_so) {
  buf_auto_t b = {.max = 4};
  buf_puts(&b, "abc");
  buf_say_cut(&b);
  assert_string_equal(b.p, "abc");
  buf_puts(&b, "defgh");
  buf_say_cut(&b);
  assert_string_equal(b.p, "abcd\n[... 4 bytes were cut here ...]\n");
  assert_int_equal(b.dropped, 4);
}
