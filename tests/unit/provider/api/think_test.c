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
  static const struct {
    const char *in, *thinking, *text;
  } cases[] = {
      {"plain", "", "plain"},
      {"", "", ""},
      {"<think>a</think>b", "a", "b"},
      {"<think>a</think>\n\n b ", "a", "b "},
      {" \n<think>\na\n</think>\n{}", "\na\n", "{}"},
      {"<thinking>a</thinking>b", "a", "b"},
      {"<think></think>b", "", "b"},
      {"<think>no end", "no end", ""},
      {"<think>a</thin", "a</thin", ""},
      {"<think>1 < 2, a << b, </ </t </think>c", "1 < 2, a << b, </ </t ", "c"},
      {"<think>a</th</think>b", "a</th", "b"},
      {"<think>a<</think>b", "a<", "b"},
      {"<thi", "", "<thi"},
      {"<thin air>", "", "<thin air>"},
      {"  two spaces", "", "  two spaces"},
      {"                              many spaces <think>", "",
       "                              many spaces <think>"},
      {"text <think>not at the head</think>", "", "text <think>not at the head</think>"},
      {"<think>a</think>b<think>c</think>", "a", "b<think>c</think>"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    for (size_t piece = 1; piece <= 20; piece++) {
      struct think t = {0};
      struct parts parts = {0};
      size_t n = strlen(cases[i].in);
      for (size_t at = 0; at < n; at += piece)
        think_push(&t, (struct str){cases[i].in + at, n - at < piece ? n - at : piece}, on_part,
                   &parts);
      think_flush(&t, on_part, &parts);
      if (strcmp(buf_c(&parts.text), cases[i].text) != 0 ||
          strcmp(buf_c(&parts.thinking), cases[i].thinking) != 0)
        fail_msg("\"%s\" in pieces of %zu: thinking \"%s\", text \"%s\"", cases[i].in, piece,
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
