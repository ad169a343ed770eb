/* Feeds arrays in pieces of all sizes and looks at which items are told, and when. */
#include "extract/items.h"

#include "base/memory.h"
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

static const struct {
  const char *name, *text, *items;
  enum item_stream_state state;
} cases[] = {
    {"plain", "[1, \"two\", {\"a\": [3, \"]\"]}, null]", "1\n\"two\"\n{\"a\":[3,\"]\"]}\nnull\n",
     ITEM_STREAM_DONE},
    {"empty text", "", "", ITEM_STREAM_TEXT},
    {"empty array", "[ ]", "", ITEM_STREAM_TEXT},
    {"fenced", "Here they are:\n```json\n[\n  {\"a\": 1},\n  {\"a\": 2}\n]\n```\nAll of them: [3]",
     "{\"a\":1}\n{\"a\":2}\n", ITEM_STREAM_DONE},
    {"a citation in a line", "As [1] says:\n[2]", "2\n", ITEM_STREAM_DONE},
    {"an empty one before", "[]\n[2]", "2\n", ITEM_STREAM_DONE},
    {"reasoning", "<think>\n[1, 2]\n</think>\n[3]", "3\n", ITEM_STREAM_DONE},
    {"reasoning in brackets", "[THINK]\n[1]\n[/THINK]\n[true]", "true\n", ITEM_STREAM_DONE},
    {"the channel of harmony", "<|channel|>analysis\n[1]<|end|>\n[2]", "2\n", ITEM_STREAM_DONE},
    {"triangles", "\xE2\x97\x81think\xE2\x96\xB7\n[1]\xE2\x97\x81/think\xE2\x96\xB7[2]", "2\n",
     ITEM_STREAM_DONE},
    {"a closer alone", "so\n</think>[2]", "2\n", ITEM_STREAM_DONE},
    {"reasoning without an end", "<think>\n[1, 2]\n", "", ITEM_STREAM_REASONING},
    {"words after the bracket", "[note: see below]\n[1]", "1\n", ITEM_STREAM_DONE},
    {"a refused first item", "[\"no\", 1]\n[2]", "2\n", ITEM_STREAM_DONE},
    {"a refused later item", "[1, \"no\", 2]\n[3]", "1\n", ITEM_STREAM_BROKEN},
    {"a broken item", "[1, {\"a\": }, 2]", "1\n", ITEM_STREAM_BROKEN},
    {"two commas", "[1,, 2]", "1\n", ITEM_STREAM_BROKEN},
    {"no comma", "[1 2]", "1\n", ITEM_STREAM_BROKEN},
    {"a number at the end of the text", "[1, 23", "1\n", ITEM_STREAM_ITEM},
    {"a string with all that ends things", "[\"a\\\"]},\\\\\", \"b\"]", "\"a\\\"]},\\\\\"\n\"b\"\n",
     ITEM_STREAM_DONE},
    {"a mark before it", "\xEF\xBB\xBF[1]", "1\n", ITEM_STREAM_DONE},
    {"indented", "  \t[1]", "1\n", ITEM_STREAM_DONE},
    {"nothing but brackets", "[[[[[[", "", ITEM_STREAM_ITEM},
    {"an object is no array", "{\"a\": [1, 2]}", "", ITEM_STREAM_TEXT},
};

TEST(items_are_told_whatever_the_pieces) {
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    for (size_t piece = 1; piece < 40; piece++) {
      buf_auto_t out = {0};
      enum item_stream_state end;
      feed_all(cases[i].text, piece, &out, &end);
      if (strcmp(buf_c(&out), cases[i].items) != 0 || end != cases[i].state)
        fail_msg("%s, pieces of %zu: state %d, items:\n%s", cases[i].name, piece, (int)end,
                 buf_c(&out));
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
