/* Any bytes through the cleaner and the writers: what comes out is UTF-8, steers nothing, is the
 * same when it is cleaned again, and makes no markup. */
#include "base/utf8.h"
#include "web/html.h"
#include "web/markdown.h"
#include "web/report.h"
#include "web/sanitize.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void holds(bool truth) {
  if (!truth)
    abort();
}

static void clean_holds(struct str text) {
  buf_auto_t once = {0}, twice = {0};
  sanitize_text(&once, text);
  sanitize_text(&twice, buf_view(&once));
  holds(utf8_valid(buf_c(&once), once.n));
  holds(str_eq(buf_view(&once), buf_view(&twice)));
  for (size_t i = 0; i < once.n; i++) {
    unsigned char c = (unsigned char)once.p[i];
    holds((c >= 0x20 || c == '\n' || c == '\t') && c != 0x7F);
  }
}

static void html_holds(struct str text) {
  buf_auto_t out = {0};
  struct html h = {.out = &out};
  html_text(&h, text);
  for (size_t i = 0; i < out.n; i++) {
    holds(strchr("<>\"'`", out.p[i]) == NULL);
    holds(out.p[i] != '&' || (i + 1 < out.n && out.p[i + 1] == '#'));
  }
}

static void markdown_holds(struct str text) {
  buf_auto_t out = {0};
  markdown_text(&out, text);
  for (size_t i = 0; i < out.n; i++)
    if (strchr("`*_[]<>|", out.p[i]) != NULL)
      holds(i > 0 && out.p[i - 1] == '\\');
  holds(memchr(buf_c(&out), '\n', out.n) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct str text = {(const char *)data, size};
  clean_holds(text);
  html_holds(text);
  markdown_holds(text);
  return 0;
}
