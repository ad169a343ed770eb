/* Lines added and removed: a table, and the smallest script by comparison with a slow method. */

#include "base/buf.h"
#include "git/linediff.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(lines_are_counted) {
  DATA_ROWS("git/linediff/lines_are_counted.yaml", c, before, after, added, removed) {
    long added = -1, removed = -1;
    linediff_count(str_from(c.before), str_from(c.after), &added, &removed);
    if (added != data_number(c.added) || removed != data_number(c.removed))
      fail_msg("row %zu: +%ld -%ld", c.at, added, removed);
  }
}

/* Length of the longest common subsequence of two texts of one-letter lines. */
static long common(const char *a, const char *b) {
  long best[16][16] = {{0}};
  size_t n = strlen(a), m = strlen(b);
  for (size_t i = 1; i <= n; i++)
    for (size_t k = 1; k <= m; k++)
      if (a[i - 1] == b[k - 1])
        best[i][k] = best[i - 1][k - 1] + 1;
      else
        best[i][k] = best[i - 1][k] > best[i][k - 1] ? best[i - 1][k] : best[i][k - 1];
  return best[n][m];
}

static void spread(struct buf *out, const char *letters) {
  buf_clear(out);
  for (; *letters; letters++)
    buf_printf(out, "%c\n", *letters);
}

TEST(the_script_is_the_smallest) {
  buf_auto_t before = {0}, after = {0};
  uint32_t seed = 42;
  for (int round = 0; round < 3000; round++) {
    char a[12] = "", b[12] = "";
    long added, removed;
    for (int side = 0; side < 2; side++) {
      char *text = side ? b : a;
      seed = seed * 1664525 + 1013904223;
      size_t n = (seed >> 20) % 11;
      for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        text[i] = (char)('a' + (seed >> 24) % 3);
      }
    }
    spread(&before, a);
    spread(&after, b);
    linediff_count(buf_view(&before), buf_view(&after), &added, &removed);
    long same = common(a, b);
    if (added != (long)strlen(b) - same || removed != (long)strlen(a) - same)
      fail_msg("round %d: \"%s\" to \"%s\": +%ld -%ld", round, a, b, added, removed);
  }
}

/* Beyond the bound of work everything counts as changed, in bounded time. */
TEST(big_changes_are_bounded) {
  enum { LINES = 20000 };
  buf_auto_t before = {0}, after = {0};
  long added, removed;
  buf_puts(&before, "head\n");
  buf_puts(&after, "head\n");
  for (int i = 0; i < LINES; i++) {
    buf_printf(&before, "a%d\n", i);
    buf_printf(&after, "b%d\n", i);
  }
  buf_puts(&before, "tail\n");
  buf_puts(&after, "tail\n");
  linediff_count(buf_view(&before), buf_view(&after), &added, &removed);
  assert_int_equal(added, LINES);
  assert_int_equal(removed, LINES);
}

/* Puts one side of a script together, and counts its signs. */
static void side_of(struct buf *out, const struct linediff_line *lines, size_t count, char sign,
                    long *signs) {
  buf_clear(out);
  *signs = 0;
  for (size_t i = 0; i < count; i++) {
    if (lines[i].sign == sign)
      ++*signs;
    if (lines[i].sign == sign || lines[i].sign == ' ')
      buf_printf(out, STR_FMT "\n", STR_ARG(lines[i].text));
  }
}

TEST(the_lines_make_both_texts) {
  buf_auto_t before = {0}, after = {0}, made = {0};
  uint32_t seed = 7;
  for (int round = 0; round < 3000; round++) {
    long added, removed, pluses, minuses;
    size_t count;
    for (int side = 0; side < 2; side++) {
      struct buf *text = side ? &after : &before;
      buf_clear(text);
      seed = seed * 1664525 + 1013904223;
      for (uint32_t n = (seed >> 20) % 15; n > 0; n--) {
        seed = seed * 1664525 + 1013904223;
        buf_printf(text, "%c\n", (char)('a' + (seed >> 24) % 4));
      }
    }
    linediff_count(buf_view(&before), buf_view(&after), &added, &removed);
    struct linediff_line *lines = linediff_lines(buf_view(&before), buf_view(&after), 1000, &count);
    if (added + removed == 0 && count > 0) { /* nothing differs: all of it is left out */
      assert_int_equal(count, 1);
      free(lines);
      continue;
    }
    side_of(&made, lines, count, '-', &minuses);
    assert_string_equal(buf_c(&made), buf_c(&before));
    side_of(&made, lines, count, '+', &pluses);
    assert_string_equal(buf_c(&made), buf_c(&after));
    assert_int_equal(pluses, added);
    assert_int_equal(minuses, removed);
    free(lines);
  }
}

TEST(far_lines_are_left_out) {
  static const struct {
    const char *before, *after, *told; /* a sign a line; a digit: so many are left out */
  } cases[] = {
      {"", "", ""},
      {"a\nb\nc\nd\n", "a\nb\nc\nd\n", "4"},
      {"1\n2\n3\n4\n5\nx\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\ny\n6\n7\n8\n9\n", "3  -+  2"},
      {"x\n1\n2\n3\n4\n5\n6\nx\n", "1\n2\n3\n4\n5\n6\n", "-  2  -"},
      {"x\n1\n2\n3\n4\n5\nx\n", "1\n2\n3\n4\n5\n", "-     -"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    size_t count;
    buf_auto_t told = {0};
    struct linediff_line *lines =
        linediff_lines(str_from(cases[i].before), str_from(cases[i].after), 2, &count);
    for (size_t k = 0; k < count; k++)
      buf_putc(&told, lines[k].sign == '@' ? (char)('0' + lines[k].count) : lines[k].sign);
    assert_string_equal(buf_c(&told), cases[i].told);
    free(lines);
  }
}

TEST(big_scripts_are_bounded) {
  enum { LINES = 20000 };
  buf_auto_t before = {0}, after = {0};
  size_t count;
  for (int i = 0; i < LINES; i++) {
    buf_printf(&before, "a%d\n", i);
    buf_printf(&after, "b%d\n", i);
  }
  free(linediff_lines(buf_view(&before), buf_view(&after), 3, &count));
  assert_int_equal(count, 2 * LINES);
}
