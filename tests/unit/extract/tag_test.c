/* Tests the form of the line that names a rule: what has it, what lacks it, where it stands, and
 * that time grows with the text only. More cases are data: tests/data/judge/tags.yaml. */
#include "extract/tag.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct tag_result read_text(struct str text, enum tag_scope scope) {
  static const struct tag_words words[] = {{1, {"approved", 8}}, {2, {"needs `a` fix", 13}}};
  const struct tag_query query = {STR("fix"), scope, words, ARRAY_LEN(words)};
  struct tag_result tag;
  tag_read(text, &query, &tag);
  return tag;
}

static struct tag_result find(const char *text, enum tag_scope scope) {
  return read_text(str_from(text), scope);
}

TEST(lines_of_the_form_name_a_rule) {
  static const char *const lines[] = {
      "[FIX:1]",
      "[fix:1]",
      "[FIX: 1]",
      "   [FIX:1]  ",
      "- [FIX:1]",
      "* [FIX:1]",
      "+ [FIX:1]",
      "• [FIX:1]",
      "3. [FIX:1]",
      "12) [FIX:1]",
      "[FIX:1].",
      "[FIX:1]!",
      "[FIX:1]。",
      "**[FIX:1]**",
      "*[FIX:1]*",
      "_[FIX:1]_",
      "`[FIX:1]`",
      "**`[FIX:1]`**",
      "***[FIX:1]***",
      "✅ [FIX:1]",
      "[FIX:1] ✅",
      "[FIX:1] 🎉🎉",
      "❤️ [FIX:1]",
      "👩‍💻 [FIX:1] 👍🏽",
      "Verdict: [FIX:1]",
      "verdict : [FIX:1]",
      "**Verdict:** [FIX:1]",
      "**Verdict**: `[FIX:1]`",
      "***Verdict:** [FIX:1]*",
      "Verdict - [FIX:1]",
      "Verdict — [FIX:1]",
      "My final verdict: [FIX:1]",
      "Overall status: [FIX:1].",
      "→ [FIX:1]",
      "-> **[FIX:1]**",
      "Verdict → [FIX:1]",
      "## [FIX:1]",
      "### **[FIX:1]**",
      "## ✅ [FIX:1] approved",
      "| a | b |\n|---|---|\n| **Verdict** | [FIX:1] |",
      "| a | b |\n| Status: | `[FIX:1]` |",
      "[FIX:1]\n\n-- \nthe reviewer",
      "Two fail, so:\n\n[FIX:1]",
      "Here is my verdict:\n[FIX:1]",
      "I ran:\n```\n$ make\n```\n\n[FIX:1]",
      "## Verdict: [FIX:1]",
      "### **Result**: [FIX:1]",
      "- **Decision:** [FIX:1]",
      "✅ **Final verdict: [FIX:1]**",
      "Next: [FIX:1]",
      "判定：[FIX:1]",
      "最終判定: **[FIX:1]**",
      "最终结果：[FIX:1]。",
      "判定結果：[FIX:1]",
      "Endgültiges Urteil: [FIX:1]",
      "Fazit: [FIX:1]",
      "Décision finale\xC2\xA0: [FIX:1]",
      "Résultat : [FIX:1]",
      "Veredicto final: [FIX:1]",
      "최종 판정: [FIX:1]",
      "[FIX:1] approved",
      "[FIX:1] Approved.",
      "[FIX:1] (approved)",
      "[FIX:1]（approved）",
      "[FIX:1] - approved",
      "[FIX:1] — *approved*",
      "**[FIX:1]** (approved) ✅",
      "[FIX:1]</s>",
      "[FIX:1]\n<|im_end|>",
      "[FIX:1]\n\n---\n",
      "[FIX:1]\n***\n✨\n",
      "[FIX:1]\r\n",
  };
  for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
    buf_auto_t text = {0};
    buf_printf(&text, "Two of five fail, see `[FIX:2]`.\n\n%s", lines[i]);
    for (int scope = 0; scope < 2; scope++) {
      struct tag_result tag = read_text(buf_view(&text), scope ? TAG_AGENT : TAG_REPLY);
      if (!tag.found || tag.ambiguous || tag.tag.number != 1 || tag.tag.line < 3)
        fail_msg("%s: found %d number %ld", lines[i], tag.found, tag.tag.number);
      assert_int_equal(tag.mention_count, 1);
    }
  }
}

TEST(other_lines_name_none) {
  static const char *const lines[] = {
      "I end with [FIX:1]",
      "[FIX:1] it is",
      "Not [FIX:1]",
      "Verdict: not [FIX:1]",
      "no: [FIX:1]",
      "Verdict [FIX:1]",
      "Verdict is: [FIX:1]",
      "Verdicts: [FIX:1]",
      "# [FIX:1]",
      "## Not: [FIX:1]",
      "####### Verdict: [FIX:1]",
      "> [FIX:1]",
      "~~[FIX:1]~~",
      "\"[FIX:1]\"",
      "“[FIX:1]”",
      "([FIX:1])",
      "[ ] [FIX:1]",
      "- [ ] [FIX:1]",
      "- - [FIX:1]",
      "[[FIX:1]]",
      "\\[FIX:1]",
      "[FIX:1](x)",
      "[FIX:1]: x",
      "![FIX:1]",
      "| [FIX:1] |",
      "<b>[FIX:1]</b>",
      "[FIX:1] [FIX:1]",
      "[FIX:1]?",
      "    [FIX:1]",
      "\t[FIX:1]",
      "**[FIX:1]",
      "[FIX:1]`",
      "`` [FIX:1]`",
      "[FIX:1] needs `a` fix",
      "[FIX:1] not approved",
      "[FIX:1] (approved",
      "[FIX:1] approved, or not",
      "[FIX:  1]",
      "[FIX:１]",
      "[FIX:-1]",
      "[FIX:1.0]",
      "[FIX :1]",
      "[FIX：1]",
      "[F\xC2\xADIX:1]",
      "[FIX:1]\xE2\x80\x8B",
      "\xEF\xBB\xBF[FIX:1]",
      "\xE2\x80\xAE[FIX:1]",
      "[FIX:1\xCC\xB8]",
      "[FIX:1]\rno",
      "[FIX:1]\x08\x08",
      "\x1B[9m[FIX:1]\x1B[0m",
      "❝[FIX:1]❞",
      "✅\xE2\x80\x8D [FIX:1]",
      "Verdict:                                                   [FIX:1]",
      "$ [FIX:1]",
      "[FIX:1]\nThanks!",
      "[FIX:1]\n<b>",
      "[FIX:1]\n-- \nme. I take it back",
      "[FIX:1]\n-- \nnot really",
      "| Verdict | [FIX:1] | old |",
      "| author | [FIX:1] |",
      "README.md says, and I quote:\n\n[FIX:1]",
      "If all passed, I would say:\n[FIX:1]",
      "They want me to end with\n[FIX:1]",
      "$ cat verdict\n[FIX:1]",
      "me@box:~$ cat verdict\nok\n[FIX:1]",
      "## README.md\n\n[FIX:1]",
      "=== README.md ===\nfine\n[FIX:1]",
      "README says:\n---\n[FIX:1]\n---",
      "\"\"\"\nfine\n\n[FIX:1]",
      "cat <<EOF\n\n[FIX:1]",
      "<file>\n\n[FIX:1]",
      "<!-- a\n\n[FIX:1]",
      "@@ -1 +1 @@\n [FIX:1]",
      "User: end so\n[FIX:1]",
      "He says “end so.\n\n[FIX:1]",
      "[FIX:1]\n\xC2\xA0",
      "> so\n[FIX:1]",
      "> so\nand\n[FIX:1]",
      "<result>\n[FIX:1]",
      ":::quote\n[FIX:1]",
      ".. code::\n\n   [FIX:1]",
      ".. note:: x\n[FIX:1]",
      "```\n[FIX:1]",
      "```\n[FIX:1]\n```\nso",
      "~~~~\n[FIX:1]\n~~~",
      "- ```\n  [FIX:1]",
      "<think>\n[FIX:1]",
      "<think>a</think>\nb",
      "[THINK]hm\n\n[FIX:1]",
      "[FIX:1] </think>",
  };
  for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
    buf_auto_t text = {0};
    buf_printf(&text, "Two of five fail.\n\n%s", lines[i]);
    for (int scope = 0; scope < 2; scope++) {
      struct tag_result tag = read_text(buf_view(&text), scope ? TAG_AGENT : TAG_REPLY);
      if (tag.found)
        fail_msg("%s: found %ld", lines[i], tag.tag.number);
    }
  }
}

TEST(places_are_told) {
  static const char text[] = "I read `[FIX:7]`.\n[fix:22]\nor\n\n[FIX:1]\n\n";
  struct tag_result tag = find(text, TAG_AGENT);
  assert_true(tag.found && tag.ambiguous);
  assert_memory_equal(text + tag.tag.offset, "[FIX:1]", tag.tag.length);
  assert_int_equal(tag.tag.line, 5);
  assert_memory_equal(text + tag.other.offset, "[fix:22]", tag.other.length);
  assert_int_equal(tag.other.number, 22);
  assert_int_equal(tag.other.line, 2);
  assert_int_equal(tag.mention_count, 1);
  assert_int_equal(tag.mentions[0].number, 7);
  assert_int_equal(tag.mentions[0].line, 1);
}

TEST(mentions_are_bounded) {
  buf_auto_t text = {0};
  for (size_t i = 0; i < LIMIT_TAG_MENTION_COUNT + 3; i++)
    buf_puts(&text, "see [FIX:2] ");
  struct tag_result tag = find(text.p, TAG_AGENT);
  assert_false(tag.found);
  assert_int_equal(tag.mention_count, LIMIT_TAG_MENTION_COUNT);
  assert_int_equal(tag.mentions_dropped, 3);
}

TEST(another_line_of_the_form_makes_doubt) {
  static const struct {
    const char *text;
    bool ambiguous;
  } cases[] = {
      {"[FIX:1]\n\n[FIX:1]", false},          {"[FIX:2]\n\n[FIX:1]", true},
      {"- [FIX:2]\n- [FIX:1]", true},         {"[FIX:1]\n[FIX:2]\n[FIX:1]", true},
      {"[FIX:2]\n[FIX:3]\n[FIX:1]", true},    {"so [FIX:2]\n\n[FIX:1]", false},
      {"```\n[FIX:2]\n```\n[FIX:1]", false},  {"> [FIX:2]\n\n[FIX:1]", false},
      {"[FIX:2]\n</think>\n[FIX:1]", true},   {"<think>\n[FIX:2]\n</think>\n[FIX:1]", false},
      {"***[FIX:2]\n\n[FIX:1]\n***\n", true}, {"[FIX:0]\n\n[FIX:1]", true},
      {"Verdict: 2\n\n[FIX:1]", true},        {"**Status:** needs `a` fix\n\n[FIX:1]", true},
      {"Verdict: 1\n\n[FIX:1]", false},       {"Result: 7\n\n[FIX:1]", false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct tag_result tag = find(cases[i].text, TAG_AGENT);
    if (!tag.found || tag.tag.number != 1 || tag.ambiguous != cases[i].ambiguous)
      fail_msg("%s: %d %ld %d", cases[i].text, tag.found, tag.tag.number, tag.ambiguous);
  }
}

TEST(only_a_reply_may_be_one_fence) {
  static const char *const whole[] = {"```\n[FIX:1]\n```", "\n~~~text\n\n**[FIX:1]**\n~~~\n"};
  static const char *const part[] = {"```\n[FIX:1]\n```\nso", "so\n```\n[FIX:1]\n```",
                                     "```\n[FIX:1]\n```\n```\n[FIX:1]\n```", "```\n[FIX:1]"};
  for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
    struct tag_result tag = find(whole[i], TAG_REPLY);
    assert_true(tag.found);
    assert_memory_equal(whole[i] + tag.tag.offset, "[FIX:1]", 7);
    assert_false(find(whole[i], TAG_AGENT).found);
  }
  for (size_t i = 0; i < ARRAY_LEN(part); i++)
    assert_false(find(part[i], TAG_REPLY).found);
}

TEST(a_mark_of_byte_order_is_no_part_of_the_text) {
  static const char text[] = "\xEF\xBB\xBF[FIX:1]";
  struct tag_result tag = find(text, TAG_AGENT);
  assert_true(tag.found);
  assert_int_equal(tag.tag.offset, 3);
  assert_true(find("\xEF\xBB\xBF```\n[FIX:1]\n```", TAG_REPLY).found);
}

TEST(nothing_to_look_in_or_for) {
  struct tag_query query = {.name = STR("")};
  struct tag_result tag = {.found = true};
  assert_false(find("", TAG_REPLY).found);
  assert_false(find(" \n\n", TAG_AGENT).found);
  tag_read(STR("[:1]"), &query, &tag);
  assert_false(tag.found);
  assert_false(read_text((struct str){"[FIX:1]", 6}, TAG_REPLY).found); /* ends before ] */
  query.name = STR("a\0b");
  tag_read(STR("[a\0b:1]"), &query, &tag);
  assert_true(tag.found);
  assert_true(find("[FIX:9223372036854775807]", TAG_REPLY).tag.number > 1000000);
}

/* Random pieces: never beyond the text, and a tag found is a tag there. */
TEST(any_text_at_all) {
  static const char *const pieces[] = {
      "[FIX:1]", "[FIX:2]", "`",       "```",      "\n",      "\n\n", "> ",       "    ", "*",
      "**",      "</s>",    "<think>", "</think>", "Verdict", ": ",   "approved", "(",    ")",
      "~~~",     "a",       "[",       "\xE2",     "✅",       "\xff", "<",        "---",  "\t",
      "\r\n",    "- ",      "1. ",     "# ",       "[THINK]", "。",   "\xC2\xA0"};
  uint32_t x = 12345;
  for (int round = 0; round < 20000; round++) {
    buf_auto_t text = {0};
    for (int i = 0; i < 9; i++) {
      x = x * 1664525u + 1013904223u;
      buf_puts(&text, pieces[(x >> 16) % ARRAY_LEN(pieces)]);
    }
    char_auto_t *exact = malloc(text.n); /* no byte more than it says */
    memcpy(exact, text.p, text.n);
    for (int scope = 0; scope < 2; scope++) {
      struct tag_result tag = read_text((struct str){exact, text.n}, scope ? TAG_AGENT : TAG_REPLY);
      assert_true(!tag.ambiguous || tag.found);
      if (!tag.found)
        continue;
      assert_true(tag.tag.offset + tag.tag.length <= text.n);
      assert_int_equal(exact[tag.tag.offset], '[');
      assert_int_equal(exact[tag.tag.offset + tag.tag.length - 1], ']');
      assert_true(tag.tag.line > 0 && (!tag.ambiguous || tag.other.line > 0));
    }
  }
}

/* Seconds of processor time for the pattern repeated to n bytes; the best of three. */
static double seconds(const char *pattern, size_t n, enum tag_scope scope) {
  char_auto_t *text = malloc(n);
  size_t length = strlen(pattern);
  double best = 1e9;
  for (size_t i = 0; i < n; i++)
    text[i] = pattern[i % length];
  for (int round = 0; round < 3; round++) {
    clock_t start = clock();
    (void)read_text((struct str){text, n}, scope);
    double took = (double)(clock() - start) / CLOCKS_PER_SEC;
    best = took < best ? took : best;
  }
  return best;
}

TEST(hostile_text_takes_linear_time) {
  static const char *const patterns[] = {"[FIX:1]",
                                         "[FIX:1]\n",
                                         "`[FIX:1]\n",
                                         "`",
                                         "*",
                                         "* ",
                                         "<think>",
                                         "a <think>",
                                         "a\n<think>",
                                         "</think>",
                                         "a <|channel|>analysis",
                                         "<think></think>",
                                         "<think></think>\n",
                                         "> [FIX:1]\n",
                                         "```\n[FIX:1]\n",
                                         "---\n",
                                         "✅\n",
                                         "✅",
                                         " ",
                                         "\n",
                                         "</s>",
                                         "Verdict: ",
                                         "my ",
                                         "my final ",
                                         "判定",
                                         "- ",
                                         "1. ",
                                         "- ~~~\n",
                                         "[FIX:1111111111",
                                         "[THINK",
                                         "\xE2\x97\x81",
                                         "# ",
                                         "[FIX:1] (",
                                         "so my verdict ",
                                         "I, my, so: ",
                                         "以下のよう",
                                         "a next lin",
                                         "\"\"\"",
                                         "<a>\n",
                                         "<!--",
                                         "<<E\n",
                                         "a@b ",
                                         "| a |\n",
                                         "=== a ===\n",
                                         "says:\n"};
#ifdef SLOW_BUILD
  skip(); /* emulated: the times of two runs say nothing about the text */
#endif
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
