/* <think> blocks at the head of a text, in pieces of every length. */
#include "provider/api/think.h"

#include "support/data.h"
#include "support/test.h"

#include <string.h>

struct parts {
  struct buf text, thinking;
};

static void on_part(void *ctx, bool thinking, struct str piece) {
  struct parts *parts = ctx;
  buf_str(thinking ? &parts->thinking : &parts->text, piece);
}

TEST(blocks_are_split_off) {
  DATA_ROWS("provider/api/think/blocks_are_split_off.yaml", c, in, thinking, text)
    for (size_t piece = 1; piece <= 20; piece++) {
      struct think t = {0};
      struct parts parts = {0};
      size_t n = strlen(c.in);
      for (size_t at = 0; at < n; at += piece)
        think_push(&t, (struct str){c.in + at, n - at < piece ? n - at : piece}, on_part, &parts);
      think_flush(&t, on_part, &parts);
      if (strcmp(buf_c(&parts.text), c.text) != 0 ||
          strcmp(buf_c(&parts.thinking), c.thinking) != 0)
        fail_msg("\"%s\" in pieces of %zu: thinking \"%s\", text \"%s\"", c.in, piece,
                 buf_c(&parts.thinking), buf_c(&parts.text));
      buf_deinit(&parts.text);
      buf_deinit(&parts.thinking);
    }
}

TEST(a_bare_end_is_found) {
  assert_int_equal(think_bare_end(STR("hm</think>\n\nyes")), 12);
  assert_int_equal(think_bare_end(STR("hm</thinking>yes")), 13);
  assert_int_equal(think_bare_end(STR("a <think>b</think>")), 0);
  assert_int_equal(think_bare_end(STR("no tag")), 0);
  assert_int_equal(think_bare_end(STR("")), 0);
}
