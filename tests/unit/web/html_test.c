/* Markup and the cleaner: what comes from outside is text, whatever it says. */
#include "web/html.h"

#include "support/test.h"
#include "web/markdown.h"
#include "web/parts.h"
#include "web/report.h"
#include "web/sanitize.h"

#include <stdlib.h>
#include <string.h>

TEST(texts_are_escaped) {
  buf_auto_t out = {0};
  struct html h = {.out = &out};
  HTML(&h, "<p");
  HTML_ATTR(&h, "title", STR("\"><script>'`&"));
  HTML(&h, ">");
  html_text(&h, STR("<img src=x onerror=\"alert(1)\">&amp;"));
  html_said(&h, STR("a'b`c"));
  HTML(&h, "</p>");
  assert_string_equal(buf_c(&out),
                      "<p title=\"&#34;&#62;&#60;script&#62;&#39;&#96;&#38;\">&#60;img src=x "
                      "onerror=&#34;alert(1)&#34;&#62;&#38;amp;<bdi>a&#39;b&#96;c</bdi></p>");
}

TEST(links_lead_nowhere_else) {
  buf_auto_t out = {0};
  struct html h = {.out = &out};
  HTML(&h, "<a");
  HTML_LINK(&h, "sessions/", STR("../x?\"y#z:\xFF"), "/turns");
  HTML(&h, ">");
  assert_string_equal(buf_c(&out), "<a href=\"sessions/%2E%2E%2Fx%3F%22y%23z%3A%FF/turns\">");
}

/* The end of a text that was cut; one that is whole has none. */
TEST(cut_ends) {
  static const struct {
    const char *root;
    struct part_cut cut;
    const char *markup;
  } cases[] = {
      {"/w/x/", {.shown = 5, .bytes = 5, .whole_page = true}, ""},
      {"/w/x/",
       {.shown = 4096, .bytes = 1258291, .ref = STR_INIT("1#/t\"k")},
       "<p class=origin>Shown: 4.0 KiB of 1.2 MiB. <a href=\"text?ref=1%23%2Ft%22k\">Show all "
       "(1.2 MiB)</a></p>"},
      {"/w/x/",
       {.shown = 1, .bytes = 9, .session = STR_INIT("a-1"), .ref = STR_INIT("3"), .within = true},
       "<span class=dim> ... Shown: 1 byte of 9 bytes. <a href=\"/w/x/s/a-1/text?ref=3\">Show all "
       "(9 bytes)</a></span>"},
      {"/w/x/",
       {.shown = 1, .bytes = 2048, .whole_page = true},
       "<p class=origin>Shown: 1 byte of 2.0 KiB. <a href=\"?all=1\">Show all (2.0 KiB)</a></p>"},
      {"/w/x/",
       {.shown = 1, .bytes = 3 * PART_WHOLE_BYTES, .whole_page = true},
       "<p class=origin>Shown: 1 byte of 3.0 MiB. <a href=\"?all=1\">Show 1.0 MiB of 3.0 "
       "MiB</a></p>"},
      {NULL, /* a file has no addresses */
       {.shown = 1, .bytes = 2048, .ref = STR_INIT("1#/task"), .whole_page = true},
       "<p class=origin>Shown: 1 byte of 2.0 KiB.</p>"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t out = {0};
    struct html h = {.out = &out, .root = cases[i].root};
    part_cut(&h, &cases[i].cut);
    assert_string_equal(buf_c(&out), cases[i].markup);
  }
}

TEST(texts_fit) {
  AUTO(arena_deinit) struct arena arena = {0};
  struct str fit = fit_text(&arena, STR("short"), 5);
  assert_true(str_eq_c(fit, "short"));
  fit = fit_text(&arena, STR("longer"), 5);
  assert_true(str_eq_c(fit, "longe... (1 bytes left out)"));
  fit = fit_text(&arena, STR("<<<<<<"), 11); /* of which each takes five bytes */
  assert_true(str_eq_c(fit, "<<... (4 bytes left out)"));
  fit = fit_text(&arena, STR("\xE8\xA9\xA6\xE9\xA8\x93"), 5); /* no character is parted */
  assert_true(str_eq_c(fit, "\xE8\xA9\xA6... (3 bytes left out)"));
  fit = fit_text(&arena, STR("\xE2\x80\xAE"), 1);
  assert_true(str_eq_c(fit, "... (3 bytes left out)"));
}

struct clean_case {
  const char *name;
  struct str in;
  const char *out;
};

TEST(cleaned) {
  static const struct clean_case cases[] = {
      {"plain", STR_INIT("a\tb\nc"), "a\tb\nc"},
      {"colours", STR_INIT("\x1B[31mred\x1B[0m"), "red"},
      {"link", STR_INIT("\x1B]8;;http://x\x1B\\go\x1B]8;;\x1B\\"), "go"},
      {"clipboard",
       STR_INIT("a\x1B]52;c;aGk=\x07"
                "b"),
       "ab"},
      {"device", STR_INIT("a\x1BP1$r\x1B\\b"), "ab"},
      {"carriage returns", STR_INIT("a\r\nb\rc"),
       "a\nb\xE2\x90\x8D"
       "c"},
      {"NUL", STR_INIT("a\0b"),
       "a\xE2\x90\x80"
       "b"},
      {"DEL", STR_INIT("\x7F"), "\xE2\x90\xA1"},
      {"C1", STR_INIT("\xC2\x9B"), "\xE2\x9F\xA8U+009B\xE2\x9F\xA9"},
      {"bidi", STR_INIT("\xE2\x80\xAE"), "\xE2\x9F\xA8U+202E\xE2\x9F\xA9"},
      {"tag characters", STR_INIT("\xF3\xA0\x81\x81"), "\xE2\x9F\xA8U+E0041\xE2\x9F\xA9"},
      {"zero width",
       STR_INIT("a\xE2\x80\x8D"
                "b"),
       "a\xE2\x9F\xA8U+200D\xE2\x9F\xA9"
       "b"},
      {"joined sign", STR_INIT("\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80"),
       "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80"},
      {"surrogate", STR_INIT("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"cut", STR_INIT("a\xE3\x81"), "a\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"Japanese", STR_INIT("\xE8\xA9\xA6"), "\xE8\xA9\xA6"},
      {"noncharacter", STR_INIT("\xEF\xBF\xBE"), "\xEF\xBF\xBD"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    buf_auto_t out = {0};
    sanitize_text(&out, cases[i].in);
    if (strcmp(buf_c(&out), cases[i].out) != 0)
      fail_msg("%s: %s", cases[i].name, buf_c(&out));
  }
}

TEST(markdown_is_text) {
  static const struct clean_case cases[] = {
      {"plain", STR_INIT("exit 0, 5 of 5 pass (ok)."), "exit 0, 5 of 5 pass (ok)."},
      {"link", STR_INIT("[x](y) ![i](j)"), "\\[x\\](y) !\\[i\\](j)"},
      {"address", STR_INIT("see https://x www.y"), "see https\\://x www\\.y"},
      {"table", STR_INIT("a|b\nc"), "a\\|b c"},
      {"markup", STR_INIT("<b>*_`#"), "\\<b\\>\\*\\_\\`\\#"},
      {"list", STR_INIT("- a"), "\\- a"},
      {"numbers", STR_INIT("1. a"), "1\\. a"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    buf_auto_t out = {0};
    markdown_text(&out, cases[i].in);
    if (strcmp(buf_c(&out), cases[i].out) != 0)
      fail_msg("%s: %s", cases[i].name, buf_c(&out));
  }
}
