/* Feeds arrays in pieces of all sizes and looks at which items are told, and when. */
#include "extract/items.h"

#include "base/memory.h"
#include "support/data.h"
#include "support/test.h"
#include "json/scan.h"

#include <stdlib.h>
#include <string.h>

enum { ITEM_MAX = 4096 };

/* Writes down what is told, an item a line. Items that are the text "no" are refused. */
static bool on_item(void *ctx, const json_t *item) {
  struct buf *out = ctx;
  if (json_is_string(item) && strcmp(json_string_value(item), "no") == 0)
    return false;
  char_auto_t *text = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);
  buf_printf(out, "%s\n", text);
  return true;
}

static void feed_all(const char *text, size_t piece, struct buf *out,
                     enum item_stream_state *state) {
  AUTO(item_stream_deinit) struct item_stream s;
  size_t n = strlen(text);
  item_stream_init(&s, ITEM_MAX);
  for (size_t i = 0; i < n; i += piece)
    item_stream_feed(&s, text + i, n - i < piece ? n - i : piece, on_item, out);
  item_stream_end(&s, on_item, out);
  *state = s.state;
}

TEST(items_are_told_whatever_the_pieces) {
  DATA_ROWS("extract/items/items_are_told_whatever_the_pieces.yaml", c, name, text, items, state)
    for (size_t piece = 1; piece < 40; piece++) {
      buf_auto_t out = {0};
      enum item_stream_state end;
      feed_all(c.text, piece, &out, &end);
      if (strcmp(buf_c(&out), c.items) != 0 ||
          end != data_among(c.state, "text reasoning item comma done broken"))
        fail_msg("%s, pieces of %zu: state %d, items:\n%s", c.name, piece, (int)end, buf_c(&out));
    }
}

TEST(an_item_is_told_with_its_last_byte) {
  static const char text[] = "[{\"a\": 1}, \"x\", 12, [3]]";
  static const size_t ends[] = {9, 14, 19,
                                23}; /* bytes fed when each is whole: 12 needs its comma */
  struct item_stream s;
  buf_auto_t out = {0};
  size_t next = 0;
  item_stream_init(&s, ITEM_MAX);
  for (size_t i = 0; i < strlen(text); i++) {
    item_stream_feed(&s, text + i, 1, on_item, &out);
    if (next < ARRAY_LEN(ends) && s.count > next)
      assert_int_equal(i + 1, ends[next++]);
  }
  assert_int_equal(next, ARRAY_LEN(ends));
  item_stream_deinit(&s);
  item_stream_init(&s, ITEM_MAX);
  buf_clear(&out);
  item_stream_feed(&s, "[1, true, 19", 12, on_item, &out);
  item_stream_end(&s, on_item, &out); /* it may have been 1999 */
  assert_string_equal(buf_c(&out), "1\ntrue\n");
  item_stream_deinit(&s);
}

TEST(one_item_is_all_that_is_kept) {
  AUTO(item_stream_deinit) struct item_stream s;
  buf_auto_t out = {0};
  item_stream_init(&s, ITEM_MAX);
  item_stream_feed(&s, "[", 1, on_item, &out);
  for (int i = 0; i < 2000; i++)
    item_stream_feed(&s, "{\"name\": \"some words\"},\n", 24, on_item, &out);
  assert_int_equal(s.count, 2000);
  assert_true(s.text.cap < 1024);
  buf_clear(&out);
  for (int i = 0; i < 300; i++) /* an item beyond its limit */
    item_stream_feed(&s, "[\"0123456789\", ", 15, on_item, &out);
  assert_int_equal(s.state, ITEM_STREAM_BROKEN);
  assert_int_equal(out.n, 0);
}

/* Long reasoning in single bytes must not be searched anew each time. */
TEST(long_reasoning_is_linear) {
  enum { BYTES = 2 * 1024 * 1024 };
  AUTO(item_stream_deinit) struct item_stream s;
  buf_auto_t out = {0};
  item_stream_init(&s, ITEM_MAX);
  item_stream_feed(&s, "<think>", 7, on_item, &out);
  for (int i = 0; i < BYTES; i++)
    item_stream_feed(&s, "<", 1, on_item, &out);
  item_stream_feed(&s, "</think>[1]", 11, on_item, &out);
  item_stream_end(&s, on_item, &out);
  assert_string_equal(buf_c(&out), "1\n");
}
