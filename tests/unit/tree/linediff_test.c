/* Lines added and removed: a table, and the smallest script by comparison with a slow method. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tree/linediff.h"

#include <string.h>

struct row {
  const char *before, *after;
  long added, removed;
};

static const struct row rows[] = {
    {"", "", 0, 0},
    {"", "a\n", 1, 0},
    {"a\n", "", 0, 1},
    {"a\n", "a\n", 0, 0},
    {"a", "a\n", 0, 0},
    {"a\nb\nc\n", "a\nx\nc\n", 1, 1},
    {"a\nb\nc\n", "a\nc\n", 0, 1},
    {"a\nc\n", "a\nb\nc\n", 1, 0},
    {"a\nb\n", "b\na\n", 1, 1},
    {"a\nb\nc\nd\n", "x\na\nc\ny\nd\n", 2, 1},
    {"a\na\na\n", "a\n", 0, 2},
    {"\n\n", "\n", 0, 1},
    {"one\ntwo\n", "three\nfour\nfive\n", 3, 2},
};

static void lines_are_counted(void **state) {
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    long added = -1, removed = -1;
    linediff_count(str_from(rows[i].before), str_from(rows[i].after), &added, &removed);
    if (added != rows[i].added || removed != rows[i].removed)
      fail_msg("row %zu: +%ld -%ld", i, added, removed);
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

static void the_script_is_the_smallest(void **state) {
  struct buf before = {0}, after = {0};
  uint32_t seed = 42;
  (void)state;
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
  buf_deinit(&before);
  buf_deinit(&after);
}

/* Beyond the bound of work everything counts as changed, in bounded time. */
static void big_changes_are_bounded(void **state) {
  enum { LINES = 20000 };
  struct buf before = {0}, after = {0};
  long added, removed;
  (void)state;
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
  buf_deinit(&before);
  buf_deinit(&after);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_are_counted),
      cmocka_unit_test(the_script_is_the_smallest),
      cmocka_unit_test(big_changes_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
