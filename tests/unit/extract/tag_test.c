/* Tests what is read as a tag that names a rule: with its mark, where none was asked, as a judge's
 * whole reply; and that time grows with the text only. More cases are data: tests/data/judge. */
#include "extract/tag.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MARK "k7wd"

static struct tag_result read_by(struct str text, enum tag_scope scope, const char *mark) {
  static const struct tag_words words[] = {{1, {"approved", 8}}, {2, {"needs `a` fix", 13}}};
  const struct tag_query query = {STR("fix"), str_from(mark), scope, words, ARRAY_LEN(words)};
  struct tag_result tag;
  tag_read(text, &query, &tag);
  return tag;
}

static struct tag_result find(const char *text, enum tag_scope scope, const char *mark) {
  return read_by(str_from(text), scope, mark);
}

static struct tag_result find_marked(const char *text) {
  return find(text, TAG_AGENT, MARK);
}

TEST(a_marked_tag_on_the_last_line_names_a_rule) {
  static const char *const lines[] = {
      "[FIX:1] k7wd",
      "[fix:1] K7WD",
      "**[FIX:1] k7wd**",
      "`[FIX:1]` **k7wd**",
      "[FIX:1] (k7wd)",
      "[FIX:1] \"k7wd\"",
      "[FIX:1]: k7wd",
      "[FIX:1]k7wd",
      "[FIX:1] k7wd.",
      "[FIX:1] k7wd。",
      "[FIX:1] k7wd!",
      "✅ [FIX:1] k7wd 🎉",
      "- [FIX:1] k7wd",
      "3. [FIX:1] k7wd",
      "- [x] [FIX:1] k7wd",
      "## [FIX:1] k7wd",
      "# [FIX:1] k7wd",
      "> [FIX:1] k7wd",
      "=> [FIX:1] k7wd",
      "\"[FIX:1] k7wd\"",
      "| [FIX:1] k7wd |",
      "      [FIX:1] k7wd",
      "```\n[FIX:1] k7wd\n```",
      "```text\n[FIX:1] k7wd",
      "[FIX:1]\xC2\xA0k7wd",
      "[FIX:1]\xE2\x80\x8B k7wd",
      "\xE2\x80\x8F[FIX:1] k7wd",
      "[FIX:1] k7wd\r\n",
      "[FIX:1] k7wd</s>",
      "[FIX:1] k7wd\n<|im_end|>\n",
      "[FIX:1] k7wd\n\n---\n🎉\n",
      "[FIX:1] k7wd approved",
      "[FIX:1] k7wd: approved.",
      "[FIX:1] k7wd - **approved**",
      "[FIX:1] k7wd (Approved)",
      "<final>[FIX:1] k7wd</final>",
      "［FIX：１］ k7wd",
      "【FIX:1】k7wd",
      "[ FIX : 1 ] k7wd",
      "Verdict: [FIX:1] k7wd",
      "- **Verdict:** [FIX:1] k7wd",
      "Well, what I found comes to this — [FIX:1] k7wd",
      "判定：[FIX:1] k7wd",
      "Werdykt -> `[FIX:1] k7wd`",
      "<think>or [FIX:2] k7wd?</think>\n[FIX:1] k7wd",
  };
  for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
    buf_auto_t text = {0};
    buf_printf(&text, "Two of five fail, see `[FIX:2]`.\n\n%s", lines[i]);
    for (int command = 0; command < 2; command++) {
      struct tag_result tag = read_by(buf_view(&text), command ? TAG_COMMAND : TAG_AGENT, MARK);
      if (!tag.found || tag.ambiguous || tag.tag.number != 1 || tag.tag.line < 3)
        fail_msg("%s: found %d number %ld", lines[i], tag.found, tag.tag.number);
      assert_true(tag.marked && tag.mark == TAG_PRESENT);
    }
  }
}

TEST(other_lines_name_none) {
  static const struct {
    const char *line;
    enum tag_mark mark;
  } lines[] = {
      {"[FIX:1]", TAG_MISSING},
      {"Done.", TAG_MISSING},
      {"[FIX:1] k7wb", TAG_WRONG},
      {"[FIX:1] x3pq", TAG_WRONG},
      {"[FIX:1] k7w", TAG_MISSING},
      {"[FIX:1] k7wdd", TAG_MISSING},
      {"[FIX:1] 7kwd", TAG_MISSING},
      {"[FIX:1 k7wd]", TAG_ELSEWHERE},
      {"k7wd [FIX:1]", TAG_ELSEWHERE},
      {"[FIX:1]\nk7wd", TAG_ELSEWHERE},
      {"[FIX:1] k7wd?", TAG_ELSEWHERE},
      {"[FIX:1]? k7wd", TAG_ELSEWHERE},
      {"~~[FIX:1] k7wd~~", TAG_ELSEWHERE},
      {"[FIX:1] ~~k7wd~~", TAG_ELSEWHERE},
      {"[FIX:1] k7wd ...", TAG_ELSEWHERE},
      {"... [FIX:1] k7wd", TAG_ELSEWHERE},
      {"- [ ] [FIX:1] k7wd", TAG_ELSEWHERE},
      {"<!-- [FIX:1] k7wd -->", TAG_ELSEWHERE},
      {"<b>[FIX:1] k7wd</b>", TAG_ELSEWHERE},
      {"So it is [FIX:1] k7wd", TAG_ELSEWHERE},
      {"He wrote: \"[FIX:1] k7wd\"", TAG_ELSEWHERE},
      {"[FIX:1] k7wd if all pass", TAG_ELSEWHERE},
      {"[FIX:1] k7wd needs `a` fix", TAG_ELSEWHERE},
      {"[FIX:1] k7wd approved, or not", TAG_ELSEWHERE},
      {"[FIX:1] k7wd [FIX:2] k7wd", TAG_ELSEWHERE},
      {"[FIX:1] k7wd\n\nNo.", TAG_ELSEWHERE},
      {"[FIX:1] k7wd\n\xFF", TAG_ELSEWHERE},
      {"[FIX:1] ~~~~~~~~~~~~~~~~~~ k7wd", TAG_ELSEWHERE},
      {"[FIXX:1] k7wd", TAG_ELSEWHERE},
      {"<think>\n[FIX:1] k7wd", TAG_ELSEWHERE},
      {"[FIX:1] k7wd </think>", TAG_ELSEWHERE},
      {"As soon as all is green\n\n[FIX:1] k7wd", TAG_ELSEWHERE},
      {"Subject to this:\n[FIX:1] k7wd", TAG_ELSEWHERE},
  };
  for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
    buf_auto_t text = {0};
    buf_printf(&text, "Two of five fail.\n\n%s", lines[i].line);
    struct tag_result tag = read_by(buf_view(&text), TAG_AGENT, MARK);
    if (tag.found || tag.mark != lines[i].mark)
      fail_msg("%s: found %d, mark %s", lines[i].line, tag.found, tag_mark_name(tag.mark));
  }
}

TEST(the_line_above_is_closed) {
  static const char *const closed[] = {
      "All pass.", "全部通过。", "(Two fail.)", "**Done!**",   "# Verdict",   "- and a test",
      "2) then",   "| a | b |",  "---",         "```\na\n```", "see [FIX:1]", "",
      "सब ठीक है।", "ሁሉም አለፈ።",   "ٹھیک ہے۔",    "အောင်သည်။",     "անցավ։"};
  for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
    buf_auto_t text = {0};
    buf_printf(&text, "%s\n\n[FIX:2] k7wd", closed[i]);
    if (!read_by(buf_view(&text), TAG_AGENT, MARK).found)
      fail_msg("%s", closed[i]);
  }
  assert_false(find_marked("If so,\n[FIX:2] k7wd").found);
  assert_true(find("ok 5 - last one\n[FIX:2] k7wd", TAG_COMMAND, MARK).found);
}

TEST(another_number_makes_doubt) {
  DATA_ROWS("extract/tag/another_number_makes_doubt.yaml", c, text, ambiguous) {
    struct tag_result tag = find_marked(c.text);
    if (!tag.found || tag.tag.number != 1 || tag.ambiguous != data_true(c.ambiguous))
      fail_msg("%s: %d %ld %d", c.text, tag.found, tag.tag.number, tag.ambiguous);
  }
}

TEST(without_a_mark_the_last_line_is_the_tag_alone) {
  static const char *const right[] = {
      "[FIX:1]",    "**[FIX:1]**.", "a\n`[FIX:1]`\n", "a [FIX:2]\n[FIX:1]", "[FIX:1]\n\n[FIX:1]",
      "[FIX:1]</s>"};
  static const char *const wrong[] = {"- [FIX:1]",    "Verdict: [FIX:1]",  "[FIX:1] approved",
                                      "> [FIX:1]",    "```\n[FIX:1]\n```", "[FIX:1]\nso",
                                      "\"[FIX:1]\"",  "[FIX:1]?",          "so [FIX:1]",
                                      "[FIX:1] k7wd", "<think>\n[FIX:1]"};
  for (size_t i = 0; i < ARRAY_LEN(right); i++)
    for (int command = 0; command < 2; command++) {
      struct tag_result tag =
          find(right[i], command ? TAG_COMMAND : TAG_AGENT, command ? MARK : "");
      if (!tag.found || tag.ambiguous || tag.marked || tag.tag.number != 1)
        fail_msg("%s", right[i]);
    }
  for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
    if (find(wrong[i], TAG_AGENT, "").found)
      fail_msg("%s", wrong[i]);
  assert_true(find("[FIX:2] was it.\n\n[FIX:1]", TAG_AGENT, "").ambiguous);
}

TEST(a_reply_is_the_tag_and_nothing_else) {
  static const char *const right[] = {"[FIX:1]",
                                      " **[FIX:1]**\n",
                                      "`[FIX:1]`.",
                                      "```\n[FIX:1]\n```",
                                      "\n~~~text\n\n**[FIX:1]**\n~~~\n",
                                      "- [FIX:1]",
                                      "[FIX:1] k7wd",
                                      "[FIX:1]</s>",
                                      "<think>[FIX:2]</think>\n[FIX:1]",
                                      "\xEF\xBB\xBF[FIX:1]"};
  static const char *const wrong[] = {"Rule 2 holds.\n\n[FIX:1]",
                                      "[FIX:1] approved",
                                      "[FIX:1]\n[FIX:1]",
                                      "Not [FIX:1]",
                                      "\"[FIX:1]\"",
                                      "[FIX:1]?",
                                      "~~[FIX:1]~~",
                                      "> [FIX:1]",
                                      "```\n[FIX:1]\n```\nso",
                                      "<b>[FIX:1]</b>",
                                      "[FIX:1] x3pq",
                                      ""};
  for (size_t i = 0; i < ARRAY_LEN(right); i++) {
    struct tag_result tag = find(right[i], TAG_REPLY, MARK);
    if (!tag.found || tag.tag.number != 1)
      fail_msg("%s", right[i]);
    assert_memory_equal(right[i] + tag.tag.offset, "[FIX:1]", 7);
  }
  for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
    if (find(wrong[i], TAG_REPLY, MARK).found)
      fail_msg("%s", wrong[i]);
}

TEST(marks_are_words_that_nobody_writes) {
  uint32_t used = 0;
  for (unsigned i = 0; i < 19; i++) {
    char mark[TAG_MARK_BYTES + 1];
    tag_mark_make((const unsigned char[]){7, (unsigned char)i, 0, 255}, used, mark);
    uint32_t letter = tag_mark_letter(str_from(mark));
    assert_true(letter != 0 && (used & letter) == 0); /* its first letter is new */
    assert_null(strpbrk(mark, "aeiouly01"));
    used |= letter;
  }
  char mark[TAG_MARK_BYTES + 1]; /* all are used: any will do */
  tag_mark_make((const unsigned char[]){7, 1, 2, 3}, used, mark);
  assert_int_not_equal(tag_mark_letter(str_from(mark)), 0);
  static const char *const words[] = {"", "k7w", "k7wdx", "a7wd", "k1wd", "7kwd", "k wd", "lbcd"};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    assert_int_equal(tag_mark_letter(str_from(words[i])), 0);
}

TEST(the_marked_line_can_be_cut) {
  struct str text = STR("Two fail.\n\nVerdict: [FIX:2] k7wd\n\n"), none = STR("Two fail.\n[FIX:2]");
  assert_true(tag_cut_marked(&text, STR("fix"), STR(MARK)));
  assert_true(str_eq(text, STR("Two fail.\n\n")));
  assert_false(tag_cut_marked(&text, STR("fix"), STR(MARK)));
  assert_false(tag_cut_marked(&none, STR("fix"), STR(MARK)));
  assert_false(tag_cut_marked(&none, STR("fix"), STR("")));
}

/* A foreign text, marks of other questions included, at any place of any reply never decides. */
TEST(no_foreign_text_decides) {
  static const char *const foreign[] = {
      "[FIX:1]",        "[FIX:1] x3pq",    "Verdict: [FIX:2] b9zz",
      "**[FIX:1]**",    "［FIX：1］ x3pq", "<final>[FIX:1]</final>",
      "> [FIX:2] h4kd", "[FIX:1] k7",      "k7 [FIX:1] wd",
      "[FIX:2] k7wb"};
  static const char *const own[] = {"I looked.\n", "Two fail. ", "\n",
                                    "\n\n",        "```\n",      "- ",
                                    "# ",          "k7wd ",      "the word k7wd\n",
                                    "| a |\n",     "<think>",    "</think>",
                                    "approved\n",  ": ",         "\"",
                                    "</s>",        "✅ "};
  uint32_t x = 4711;
  for (int round = 0; round < 30000; round++) {
    buf_auto_t text = {0};
    x = x * 1664525u + 1013904223u;
    int place = (int)((x >> 16) % 8);
    for (int i = 0; i < 8; i++) {
      x = x * 1664525u + 1013904223u;
      if (i == place)
        buf_printf(&text, "\n%s\n", foreign[(x >> 16) % ARRAY_LEN(foreign)]);
      else
        buf_puts(&text, own[(x >> 16) % ARRAY_LEN(own)]);
    }
    if (read_by(buf_view(&text), TAG_AGENT, MARK).found)
      fail_msg("%s", text.p);
  }
}

TEST(mentions_are_bounded) {
  buf_auto_t text = {0};
  for (size_t i = 0; i < LIMIT_TAG_MENTION_COUNT + 3; i++)
    buf_puts(&text, "see [FIX:2] ");
  struct tag_result tag = find_marked(text.p);
  assert_false(tag.found);
  assert_int_equal(tag.mention_count, LIMIT_TAG_MENTION_COUNT);
  assert_int_equal(tag.mentions_dropped, 3);
}

/* Random pieces: never beyond the text, and a tag found is a tag there. */
TEST(any_text_at_all) {
  static const char *const pieces[] = {
      "[FIX:1]", "[FIX:2]", " k7wd", "`",       "```",      "\n",      "\n\n", "> ",       "    ",
      "*",       "**",      "</s>",  "<think>", "</think>", "Verdict", ": ",   "approved", "(",
      ")",       "~~~",     "a",     "[",       "\xE2",     "✅",       "\xff", "<",        "---",
      "\t",      "\r\n",    "- ",    "1. ",     "# ",       "[THINK]", "。",   "\xC2\xA0"};
  uint32_t x = 12345;
  for (int round = 0; round < 20000; round++) {
    buf_auto_t text = {0};
    for (int i = 0; i < 9; i++) {
      x = x * 1664525u + 1013904223u;
      buf_puts(&text, pieces[(x >> 16) % ARRAY_LEN(pieces)]);
    }
    char_auto_t *exact = malloc(text.n); /* no byte more than it says */
    memcpy(exact, text.p, text.n);
    for (int scope = 0; scope < 4; scope++) {
      struct tag_result tag =
          read_by((struct str){exact, text.n}, scope == 3 ? TAG_AGENT : (enum tag_scope)scope,
                  scope == 3 ? "" : MARK);
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
    (void)read_by((struct str){text, n}, scope, MARK);
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
                                         "- ",
                                         "1. ",
                                         "- ~~~\n",
                                         "[FIX:1111111111",
                                         "[THINK",
                                         "\xE2\x97\x81",
                                         "# ",
                                         "[FIX:1] (",
                                         "[FIX:1] k7wd ",
                                         "[FIX:1] k7wd\n",
                                         "[FIX:1] k7wd approved\n",
                                         "[FIX:1] (((",
                                         "k7wd",
                                         "approved\n",
                                         "\"[ ",
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
