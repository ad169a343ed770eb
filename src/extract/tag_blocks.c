/* Keeps track of what a line opens and another closes: quotations, elements, here-documents. */
#include "extract/tag_line.h"

#include <string.h>

static struct str blocks_skip(struct str s, size_t n) {
  return (struct str){s.p + n, s.n - n};
}

static bool in_name(char c) {
  return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9');
}

static size_t marks_in(struct str s, const char *part) {
  size_t n = strlen(part), count = 0;
  for (size_t i = 0; i + n <= s.n; i++)
    if (s.p[i] == part[0] && memcmp(s.p + i, part, n) == 0) {
      count += i == 0 || s.p[i - 1] != '`'; /* a code span names it */
      i += n - 1;
    }
  return count;
}

static bool needs_no_end(struct str name) {
  static const char *const single[] = {"br", "hr", "img", "input", "p",    "li",
                                       "td", "tr", "th",  "link",  "meta", NULL};
  for (size_t i = 0; single[i]; i++)
    if (str_eq_fold(name, single[i]))
      return true;
  return false;
}

/* Returns the name of the element that the line opens and does not close ("<name ..."), empty if
 * there is none. */
static struct str element_opened(struct str line) {
  line = str_trim(line);
  size_t n = 0;
  while (1 + n < line.n && line.p[0] == '<' &&
         (in_name(line.p[1 + n]) || (n > 0 && memchr("_-", line.p[1 + n], 2) != NULL)))
    n++;
  struct str name = {line.p + 1, n};
  const char *end = n > 0 && line.p[line.n - 1] == '>' ? memchr(line.p, '>', line.n) : NULL;
  if (end == NULL || (line.p[1 + n] != '>' && line.p[1 + n] != ' ') || end[-1] == '/' ||
      tag_token(line) > 0 || needs_no_end(name))
    return (struct str){0};
  return name;
}

static bool element_closed(struct str line, struct str name) {
  for (; line.n > name.n + 2; line = blocks_skip(line, 1))
    if (str_starts(line, "</") && memcmp(line.p + 2, name.p, name.n) == 0)
      return true;
  return false;
}

/* Returns the word that ends a here-document which the line opens, empty if there is none. */
static struct str heredoc_opened(struct str line) {
  const char *at = memmem(line.p, line.n, LIT("<<"));
  size_t ticks = 0;
  for (const char *p = line.p; at != NULL && p < at; p++)
    ticks += *p == '`';
  if (at == NULL || ticks % 2 != 0) /* a code span names it */
    return (struct str){0};
  struct str rest = blocks_skip(line, (size_t)(at - line.p) + 2);
  while (rest.n > 0 && memchr("-~'\"", rest.p[0], 4) != NULL)
    rest = blocks_skip(rest, 1);
  size_t n = 0;
  while (n < rest.n && ((rest.p[n] >= 'A' && rest.p[n] <= 'Z') || rest.p[n] == '_'))
    n++;
  return (struct str){rest.p, n};
}

static void track_comment(struct tag_blocks *b, struct str line) {
  while (line.n > 0) {
    const char *at =
        b->comment ? memmem(line.p, line.n, LIT("-->")) : memmem(line.p, line.n, LIT("<!--"));
    if (at == NULL)
      return;
    line = blocks_skip(line, (size_t)(at - line.p) + (b->comment ? 3 : 4));
    b->comment = !b->comment;
  }
}

/* Tracks quotation marks: „ opens what “ closes; else “ opens. */
static void track_quotes(struct tag_blocks *b, struct str line) {
  for (; line.n > 0; line = blocks_skip(line, 1)) {
    if (line.p[0] == '"')
      b->straight = !b->straight;
    else if (!(line.p[0] & 0x80))
      continue;
    else if (str_starts(line, "„"))
      b->low = b->curly = true;
    else if (str_starts(line, "“"))
      b->curly = !b->low, b->low = false;
    else if (str_starts(line, "”"))
      b->curly = b->low = false;
    else if (str_starts(line, "‘") || str_starts(line, "‚"))
      b->single = !b->single;
    else if (str_starts(line, "’"))
      b->single = false;
    else if (str_starts(line, "《"))
      b->corner = true;
    else if (str_starts(line, "》"))
      b->corner = false;
    else if (str_starts(line, "「") || str_starts(line, "『"))
      b->corner = true;
    else if (str_starts(line, "」") || str_starts(line, "』"))
      b->corner = false;
    else if (str_starts(line, "«") || str_starts(line, "»"))
      b->angle = !b->angle;
  }
}

void tag_blocks_line(struct tag_blocks *b, struct str line) {
  line = str_trim(line);
  if (line.n == 0) {
    b->straight = false; /* one that stays open is a slip, or a sign of inches */
    return;
  }
  if (b->word.n > 0) {
    if (str_eq(line, b->word))
      b->word.n = 0;
    return;
  }
  size_t triple = marks_in(line, "\"\"\"");
  b->triple ^= triple % 2 != 0;
  b->triple_single ^= marks_in(line, "'''") % 2 != 0;
  track_comment(b, line);
  if (b->element.n == 0)
    b->element = element_opened(line);
  if (b->element.n > 0 && element_closed(line, b->element))
    b->element.n = 0;
  b->word = heredoc_opened(line);
  if (triple == 0)
    track_quotes(b, line);
}

bool tag_blocks_open(const struct tag_blocks *b) {
  return b->word.n > 0 || b->triple || b->triple_single || b->comment || b->element.n > 0 ||
         b->straight || b->single || b->curly || b->corner || b->angle;
}
