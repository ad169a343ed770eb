/* Skips white space and reasoning sections from the start of a text to what it says. */
#include "extract/empty.h"

#include "extract/internal.h"

/* Returns where what the text says begins, after a closer of reasoning that was not opened. */
static size_t behind_stray_closer(struct str text) {
  size_t begin = 0;
  for (size_t i = 0; i < text.n; i++) {
    size_t closed = 0;
    bool mark = text.p[i] == '<' || text.p[i] == '[' || text.p[i] == '\xE2';
    size_t after = i + (mark && text.p[i] == '\xE2' ? 3 : 1);
    if (mark && after < text.n && (text.p[after] == '/' || text.p[after] == '|') &&
        extract_tag_at(text.p, text.n, i, &closed) == EXTRACT_TAG_CLOSER)
      begin = closed;
  }
  return begin;
}

bool extract_says_nothing(struct str text) {
  for (size_t i = behind_stray_closer(text); i < text.n;) {
    struct str rest = str_trim((struct str){text.p + i, text.n - i});
    size_t closed = 0;
    if (rest.n == 0)
      return true;
    i = (size_t)(rest.p - text.p);
    if (*rest.p != '<' && *rest.p != '[' && *rest.p != '\xE2')
      return false;
    if (extract_tag_at(text.p, text.n, i, &closed) == EXTRACT_TAG_NO)
      return false;
    i = closed < text.n ? closed : text.n;
  }
  return true;
}
