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
      "<tool_result>[FIX:1]</tool_result>",
      "<tool_result id=\"4\">\n[FIX:1]\n</tool_result>",
      "<function_results>[FIX:1]</function_results>",
      "<output>[FIX:1]</output>",
      "<pre>[FIX:1]</pre>",
      "<code>[FIX:1]</code>",
      "<document\nname=\"x\">[FIX:1]</document>",
      "<blockquote>\n[FIX:1]\n</blockquote>",
      "<file path=\"a.md\">\n```\n[FIX:1]\n</file>",
      "\n- ```\n\n  [FIX:1]\n  ```\n",
      "\n- ```text\n\n  [FIX:1]\n    ```\n",
      "\n+ ```\r\n\r\n  [FIX:1]\r\n  ```\r\n",
      "\n1. ```\n\n   [FIX:1]\n   ```\n",
      "\n12) ~~~~\n\n    ~~~\n    [FIX:1]\n    ~~~~\n",
      "\n* ~~~\n  [FIX:1]\n  ~~~\n",
      "\n*\t~~~\n\t[FIX:1]\n\t~~~\n",
      "\n-   ~~~\n[FIX:1]\n~~~\n",
      "\n- 1. ~~~\n\n[FIX:1]\n     ~~~\n",
      "\n- a\n    - ~~~\n      [FIX:1]\n      ~~~\n",
      "\n  - * 3. ```\n\n  [FIX:1]\n         ```\n",
      "The instructions say \"end your reply with\n[FIX:1]\" but it is not done",
      "\"one\ntwo [FIX:1]\nthree\"",
      "\"one\r\ntwo [FIX:1]\r\nthree\"",
      "“ende\n[FIX:1]\nso”",
      "„ende\n[FIX:1]“",
      "„koniec\n[FIX:1]”",
      "‘end, don’t stop\n[FIX:1]’",
      "«\n[FIX:1]\n»",
      "「\n[FIX:1]\n」",
      "\"end `with\nit` and\n[FIX:1]\"",
      "\"see <b>\n<file>\n</file> and\n[FIX:1]\"",
      "\"a\" and \"b\n[FIX:1]\"",
      "<details>\n\n[FIX:1]\n</details>",
      "<log>[FIX:1]</log>",
      "<logs>[FIX:1]</logs>",
      "<diff>\n[FIX:1]</diff>",
      "<patch>[FIX:1]</patch>",
      "<trace>[FIX:1]</trace>",
      "<transcript>[FIX:1]</transcript>",
      "<system>[FIX:1]</system>",
      "<user name=\"a\">[FIX:1]</user>",
      "<quoted>[FIX:1]</quoted>",
      "<Summary>[FIX:1]</summary>",
      "<x:function_results>[FIX:1]</x:function_results>",
      "<a:b:log>[FIX:1]</a:b:log>",
      "<!-- [FIX:1] -->",
      "<!--\n\n[FIX:1]\n\n-->",
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
      "- ```\n\n  code\n  ```\n[FIX:1]",
      "- ```\n  code\n     ```\n[FIX:1]",
      "- ~~~\ncode\n~~~\n[FIX:1]",
      "- ``` not a fence `\n\n[FIX:1]",
      "-~~~\n[FIX:1]",
      "1.~~~\n[FIX:1]",
      "- 1 ~~~\n[FIX:1]",
      "- - -\n[FIX:1]",
      "say \"end with\n[FIX:1]",
      "say \"end with\n\n[FIX:1] and \"b\"",
      "say \"end with\n \t\r\n[FIX:1] and \"b\"",
      "say \"end with\n```\n\n```\n[FIX:1] and \"b\"",
      "say \"end with <log>\n\n</log>\n[FIX:1] and \"b\"",
      "say \"end [FIX:1] with\n\n\"b\"",
      "a 3\" pipe\n[FIX:1] and a \"b\"",
      "the `\"` is kept\n[FIX:1] and a \"b\"",
      "\"a\nb\" [FIX:1] \"c\"",
      "„a” [FIX:1] “b”",
      "„a“ [FIX:1] „b”",
      "the agents' plan\n[FIX:1]\nisn't it the users' own",
      "it’s done, don’t\n[FIX:1]\nisn’t it",
      "‘tis done [FIX:1], don’t ask",
      "usage: x <log>\n[FIX:1]",
      "in <details> [FIX:1]",
      "<x:log>[FIX:1]</log>",
      "<log:x>[FIX:1]</log:x>",
      "<a> <!-- [FIX:1]",
      "<!-- a --> [FIX:1] <!-- b -->",
      "<!--> [FIX:1] -->",
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(plain); i++)
    if (!find(plain[i], TAG_LAST, TAG_AGENT).found)
      fail_msg("%s does not count", plain[i]);
}

/* Names that stand as placeholders do not use up what is looked for. */
static void placeholders_hide_no_element(void **state) {
  struct buf text = {0};
  (void)state;
  for (int i = 0; i < 40; i++)
    buf_puts(&text, "/home/<user>/x <file>\n");
  buf_puts(&text, "\n<log>[FIX:1]</log>\n<think>[FIX:1]</think>\n[FIX:2]");
  struct tag_result tag = find(text.p, TAG_LAST, TAG_AGENT);
  assert_true(tag.found && !tag.ambiguous);
  assert_int_equal(tag.number, 2);
  buf_deinit(&text);
}

/* More names than are looked for: reasoning is still skipped, what follows still counts. */
static void many_names_without_closers(void **state) {
  struct buf text = {0};
  (void)state;
  for (int i = 0; i < 4000; i++)
    buf_printf(&text, "<tool_%d> ", i);
  buf_puts(&text, "<think>[FIX:1]</think> [FIX:2]");
  clock_t start = clock();
  struct tag_result tag = find(text.p, TAG_LAST, TAG_AGENT);
  assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 0.5);
  assert_true(tag.found && !tag.ambiguous);
  assert_int_equal(tag.number, 2);
  buf_deinit(&text);
}

/* In both scopes. */
static void reasoning_is_no_answer(void **state) {
  static const char *const closed[] = {
      "<think>[FIX:1]</think>",     "<thinking>\n\n[FIX:1]\n</thinking>",
      "<THINK>[FIX:1]</think>",     "<reasoning>[FIX:1] or [FIX:3]</reasoning>",
      "<thought>[FIX:1]</thought>", "<think></think><think>[FIX:1]</think>",
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(closed); i++)
    for (int scope = 0; scope < 2; scope++)
      for (int before = 0; before < 2; before++) {
        struct buf text = {0};
        if (find(closed[i], TAG_LAST, scope ? TAG_AGENT : TAG_REPLY).found)
          fail_msg("%s counts", closed[i]);
        buf_printf(&text, "%s%s\n%s", before ? "[FIX:2] " : "", closed[i], before ? "" : "[FIX:2]");
        for (int pick = 0; pick < 2; pick++) {
          struct tag_result tag =
              find(text.p, pick ? TAG_FIRST : TAG_LAST, scope ? TAG_AGENT : TAG_REPLY);
          if (!tag.found || tag.number != 2 || tag.ambiguous)
            fail_msg("%s: %d %ld", text.p, tag.found, tag.number);
          assert_memory_equal(text.p + tag.offset, "[FIX:2]", 7);
        }
        buf_deinit(&text);
      }
}

static void reasoning_in_a_reply(void **state) {
  static const struct {
    const char *text;
    long number; /* 0: none */
  } cases[] = {
      {"[THINK][FIX:1][/THINK][FIX:2]", 2},
      {"[think]\n[FIX:1]", 0},
      {"[FIX:2] <think>[FIX:1]", 2}, /* cut off: hides the rest */
      {"<reasoning>[FIX:1]\n\n[FIX:3]", 0},
      {"maybe [FIX:1]</think>[FIX:2]", 2}, /* no opener: hides what stands before */
      {"maybe [FIX:1] [FIX:3]</think>", 0},
      {"[FIX:1]</thinking>[FIX:2]</thinking>[FIX:3]", 3},
      {"[FIX:1][/THINK][FIX:2]", 2},
      {"<think>a<think>b</think>[FIX:1]</think>[FIX:2]", 2},
      {"\xE2\x97\x81think\xE2\x96\xB7[FIX:1]\xE2\x97\x81/think\xE2\x96\xB7[FIX:2]", 2},
      {"<|channel|>analysis[FIX:1]<|end|>[FIX:2]", 2},
      {"<think>a</think>\n```\n**`[FIX:2]`**\n```", 2},
      {"<log>[FIX:2]</log>", 2}, /* only reasoning is skipped */
      {"<!-- [FIX:2] -->", 2},
      {"- ```\n\n  [FIX:2]\n  ```", 2},
      {"<thinker>[FIX:2]", 2},
      {"[thinks] [FIX:2]", 2},
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    for (int pick = 0; pick < 2; pick++) {
      struct tag_result tag = find(cases[i].text, pick ? TAG_FIRST : TAG_LAST, TAG_REPLY);
      if (tag.number != cases[i].number || tag.found != (cases[i].number > 0) || tag.ambiguous)
        fail_msg("%s: %d %ld %d", cases[i].text, tag.found, tag.number, tag.ambiguous);
    }
  /* the movement's own name */
  struct tag_result tag;
  tag_find("[THINK:2]", 9, "think", 5, TAG_LAST, TAG_REPLY, &tag);
  assert_int_equal(tag.number, 2);
}

/* Random pieces: never beyond the text, the same each time, a tag found is a tag there. */
static void any_text_at_all(void **state) {
  static const char *const pieces[] = {
      "[FIX:1]", "[FIX:2]", "`",       "```",      "\n",       "\n\n", "> ",      "    ",    "\"",
      "“",       "”",       "<think>", "</think>", "<tool_x ", ">",    "'",       "~~~",     "a",
      "[",       "\\",      "「",      "\xff",     "<",        "</",   "\t",      "\r\n",    "- ",
      "1. ",     "<!--",    "-->",     "[THINK]",  "’",        "‘",    "<x:log>", "</x:log>"};
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
      if (scope == 1 && tag.found && strcasestr(text.p, "think") == NULL)
        assert_true(find(text.p, TAG_LAST, TAG_REPLY).found);
    }
    free(exact);
    buf_deinit(&text);
  }
}

/* Seconds of processor time for the pattern repeated to n bytes; the best of three. */
static double seconds(const char *pattern, size_t n, enum tag_scope scope) {
  char *text = malloc(n);
  size_t length = strlen(pattern);
  double best = 1e9;
  for (size_t i = 0; i < n; i++)
    text[i] = pattern[i % length];
  for (int round = 0; round < 3; round++) {
    struct tag_result tag;
    clock_t start = clock();
    tag_find(text, n, "fix", 3, TAG_LAST, scope, &tag);
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
                                         "`` [FIX:1]\n",
                                         "\"[FIX:1]\n",
                                         "‘[FIX:1]\na’a",
                                         "a \"b [FIX:1] <q>\n</q>\n",
                                         "\"[FIX:1] <q>\n\n</q>",
                                         "„",
                                         "- ",
                                         "1. ",
                                         "1",
                                         "- ~~~\n",
                                         "<!--",
                                         "<!-->",
                                         "<!-- [FIX:1] -->",
                                         "<x:log>",
                                         "<a:log><b:log><c:log><d:log><e:log><f:log>",
                                         "a:",
                                         "<a:a:a:",
                                         "<think>[FIX:1]</think>",
                                         "[FIX:1]</think>",
                                         "[THINK",
                                         "[think][/think]",
                                         "<|channel|>analysis",
                                         "\xE2\x97\x81"};
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
    for (int k = 0; k < 2; k++) {
      enum tag_scope scope = k ? TAG_AGENT : TAG_REPLY;
      double small = seconds(patterns[i], 16 * 1024, scope);
      double large = seconds(patterns[i], 128 * 1024, scope);
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
      cmocka_unit_test(placeholders_hide_no_element),
      cmocka_unit_test(many_names_without_closers),
      cmocka_unit_test(reasoning_is_no_answer),
      cmocka_unit_test(reasoning_in_a_reply),
      cmocka_unit_test(any_text_at_all),
      cmocka_unit_test(hostile_text_takes_linear_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
