/* Tags: where the picked one stands, what an agent quotes, and time that grows with the text only.
 * The grammar's table is data: tests/data/judge/tags.yaml. */
#include "structured/tag.h"

#include "base/buf.h"
#include "base/err.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct tag_result find(const char *text, enum tag_pick pick, enum tag_scope scope) {
  struct tag_result tag;
  tag_find(text, strlen(text), "fix", 3, pick, scope, &tag);
  return tag;
}

static void the_place_of_the_picked_tag(void **state) {
  static const char text[] = "a [FIX:1] b [fix:22] c";
  (void)state;
  struct tag_result tag = find(text, TAG_LAST, TAG_REPLY);
  assert_true(tag.found && tag.ambiguous);
  assert_int_equal(tag.number, 22);
  assert_memory_equal(text + tag.offset, "[fix:22]", tag.length);
  assert_int_equal(tag.length, 8);
  tag = find(text, TAG_FIRST, TAG_AGENT);
  assert_int_equal(tag.number, 1);
  assert_int_equal(tag.offset, 2);
  assert_true(tag.ambiguous);
}

static void nothing_to_look_in_or_for(void **state) {
  struct tag_result tag = {.found = true};
  (void)state;
  tag_find(NULL, 0, "fix", 3, TAG_LAST, TAG_REPLY, &tag);
  assert_false(tag.found);
  tag_find("[:1]", 4, "", 0, TAG_LAST, TAG_REPLY, &tag);
  assert_false(tag.found);
  tag_find("[FIX:1]", 6, "fix", 3, TAG_LAST, TAG_REPLY, &tag); /* the view ends before ] */
  assert_false(tag.found);
  tag_find("[a\0b:1]", 7, "a\0b", 3, TAG_LAST, TAG_REPLY, &tag);
  assert_true(tag.found);
  tag_find("[FIX:9223372036854775807]", 25, "fix", 3, TAG_LAST, TAG_REPLY, &tag);
  assert_true(tag.number > 1000000);
}

/* Every way of quoting, around a tag, after real text, before real text. */
static void what_is_quoted_is_no_evidence(void **state) {
  static const char *const quoted[] = {
      "`[FIX:1]`",
      "``[FIX:1]``",
      "`` ` [FIX:1] ``",
      "\n```\n[FIX:1]\n```\n",
      "\n```text [x]\n[FIX:1]\n```\n",
      "\n~~~\n[FIX:1]\n~~~\n",
      "\n  ~~~~\n[FIX:1]\n~~~\n[FIX:1]\n~~~~\n",
      "\n> [FIX:1]\n",
      "\n  > [FIX:1]\n",
      "\n\n    [FIX:1]\n\n",
      "\n\n\t[FIX:1]\n\n",
      "\"[FIX:1]\"",
      "\"write [FIX:1] then\"",
      "'[FIX:1]'",
      "“write [FIX:1] so”",
      "„schreib [FIX:1]“",
      "„napisz [FIX:1]”",
      "”[FIX:1]”",
      "‘[FIX:1]’",
      "‚[FIX:1]‘",
      "« [FIX:1] »",
      "»[FIX:1]«",
      "‹[FIX:1]›",
      "「[FIX:1]」",
      "『[FIX:1]と』",
      "＂[FIX:1]＂",
      "\\[FIX:1]",
      "<think>[FIX:1]</think>",
      "<thinking>\n\n[FIX:1]\n</thinking>",
      "<THINK>[FIX:1]</think>",
      "<reasoning>[FIX:1]</reasoning>",
      "<tool_result>[FIX:1]</tool_result>",
      "<tool_result id=\"4\">\n[FIX:1]\n</tool_result>",
      "<function_results>[FIX:1]</function_results>",
      "<output>[FIX:1]</output>",
      "<pre>[FIX:1]</pre>",
      "<code>[FIX:1]</code>",
      "<document\nname=\"x\">[FIX:1]</document>",
      "<blockquote>\n[FIX:1]\n</blockquote>",
      "<file path=\"a.md\">\n```\n[FIX:1]\n</file>",
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(quoted); i++) {
    struct buf text = {0};
    struct tag_result tag = find(quoted[i], TAG_LAST, TAG_AGENT);
    if (tag.found)
      fail_msg("%s counts", quoted[i]);
    if (strstr(quoted[i], "[FIX:1]") && !find(quoted[i], TAG_LAST, TAG_REPLY).found)
      fail_msg("%s does not count in a reply", quoted[i]);
    buf_printf(&text, "All done here. %s\n[FIX:2]\n", quoted[i]);
    tag = find(text.p, TAG_LAST, TAG_AGENT);
    if (!tag.found || tag.number != 2 || tag.ambiguous)
      fail_msg("behind %s: %d %ld", quoted[i], tag.found, tag.number);
    buf_clear(&text);
    buf_printf(&text, "[FIX:2]\n%s", quoted[i]);
    tag = find(text.p, TAG_LAST, TAG_AGENT);
    if (!tag.found || tag.number != 2 || tag.ambiguous)
      fail_msg("before %s: %d %ld", quoted[i], tag.found, tag.number);
    buf_deinit(&text);
  }
}

static void what_only_looks_quoted_counts(void **state) {
  static const char *const plain[] = {
      "[FIX:1]",
      "**[FIX:1]**",
      "__[FIX:1]__",
      "- [FIX:1]",
      "# [FIX:1]",
      "| [FIX:1] |",
      "text\n    [FIX:1]",
      "a ` tick\n\n[FIX:1]",
      "a 3\" pipe, so [FIX:1]",
      "don't [FIX:1], it's ok",
      "\"quoted\" [FIX:1]",
      "[FIX:1] \"quoted\"",
      "\"a\" [FIX:1] \"b\"",
      "“a” [FIX:1] “b”",
      "«a» [FIX:1] «b»",
      "「a」[FIX:1]「b」",
      "`a` [FIX:1] `b`",
      "<b>[FIX:1]</b>",
      "<thinker>[FIX:1]</thinker>",
      "a < b [FIX:1]",
      "3 > 2 [FIX:1]",
      "```\ncode\n```\n[FIX:1]",
      "> quote\n\n[FIX:1]",
      "```c\ncode\n````\n[FIX:1]",
      "(see [FIX:1])",
      "[FIX:1].",
      "``` not a fence ` [FIX:1]",
      "\n\n    code\n\n[FIX:1]",
      "</think>[FIX:1]",
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(plain); i++)
    if (!find(plain[i], TAG_LAST, TAG_AGENT).found)
      fail_msg("%s does not count", plain[i]);
}

/* Random pieces: never beyond the text, the same each time, a tag found is a tag there. */
static void any_text_at_all(void **state) {
  static const char *const pieces[] = {
      "[FIX:1]", "[FIX:2]", "`",       "```",      "\n",       "\n\n", "> ", "    ", "\"",
      "“",       "”",       "<think>", "</think>", "<tool_x ", ">",    "'",  "~~~",  "a",
      "[",       "\\",      "「",      "\xff",     "<",        "</",   "\t", "\r\n"};
  uint32_t x = 12345;
  (void)state;
  for (int round = 0; round < 6000; round++) {
    struct buf text = {0};
    for (int i = 0; i < 12; i++) {
      x = x * 1664525u + 1013904223u;
      buf_puts(&text, pieces[(x >> 16) % ARRAY_LEN(pieces)]);
    }
    char *exact = malloc(text.n); /* no byte more than it says */
    memcpy(exact, text.p, text.n);
    for (int scope = 0; scope < 2; scope++) {
      struct tag_result tag;
      tag_find(exact, text.n, "fix", 3, TAG_LAST, scope ? TAG_AGENT : TAG_REPLY, &tag);
      if (tag.found) {
        assert_true(tag.offset + tag.length <= text.n);
        assert_int_equal(exact[tag.offset], '[');
        assert_int_equal(exact[tag.offset + tag.length - 1], ']');
      }
      if (scope == 1 && tag.found)
        assert_true(find(text.p, TAG_LAST, TAG_REPLY).found);
    }
    free(exact);
    buf_deinit(&text);
  }
}

/* Seconds of processor time for the pattern repeated to n bytes; the best of three. */
static double seconds(const char *pattern, size_t n) {
  char *text = malloc(n);
  size_t length = strlen(pattern);
  double best = 1e9;
  for (size_t i = 0; i < n; i++)
    text[i] = pattern[i % length];
  for (int round = 0; round < 3; round++) {
    struct tag_result tag;
    clock_t start = clock();
    tag_find(text, n, "fix", 3, TAG_LAST, TAG_AGENT, &tag);
    double took = (double)(clock() - start) / CLOCKS_PER_SEC;
    best = took < best ? took : best;
  }
  free(text);
  return best;
}

static void hostile_text_takes_linear_time(void **state) {
  static const char *const patterns[] = {"[FIX:1]",
                                         "\"[FIX:1]",
                                         "“[FIX:1]",
                                         "`[FIX:1]",
                                         "`` ` ",
                                         "`",
                                         "<think>",
                                         "<think ",
                                         "<tool_a",
                                         "<think></think>",
                                         "<",
                                         "> [FIX:1]\n",
                                         "    [FIX:1]\n",
                                         "```\n",
                                         "```\n[FIX:1]\n",
                                         "[FIX:",
                                         "[",
                                         "\\[FIX:1]",
                                         "「",
                                         "\n\n`[FIX:1]",
                                         "<code>[FIX:1]",
                                         "[FIX:1111111111",
                                         "'[FIX:1]'",
                                         "`` [FIX:1]\n"};
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
    double small = seconds(patterns[i], 16 * 1024), large = seconds(patterns[i], 128 * 1024);
    /* eight times the text; quadratic would be 64 times; what takes no time is not compared */
    if (large > 0.05 && large > small * 24)
      fail_msg("%s: %.4f s, then %.4f s", patterns[i], small, large);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_place_of_the_picked_tag),
      cmocka_unit_test(nothing_to_look_in_or_for),
      cmocka_unit_test(what_is_quoted_is_no_evidence),
      cmocka_unit_test(what_only_looks_quoted_counts),
      cmocka_unit_test(any_text_at_all),
      cmocka_unit_test(hostile_text_takes_linear_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
