#include "structured/tag.h"

#include <limits.h>
#include <string.h>

/* How far the end of a code span is looked for: keeps the pass linear on text that is made to be
 * slow. */
enum { LOST_ELEMENTS = 16, SPAN_BYTES = 16 * 1024 };

static char fold(char c) {
  return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool folded_equal(const char *a, const char *b, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (fold(a[i]) != fold(b[i]))
      return false;
  return true;
}

/* Length of the tag at p (which is '['), 0 when there is none. */
static size_t match(const char *p, size_t n, const char *name, size_t name_n, long *number) {
  size_t i = 1;
  if (n < name_n + 4 || !folded_equal(p + 1, name, name_n) || p[1 + name_n] != ':')
    return 0;
  i += name_n + 1;
  size_t digits = i;
  long value = 0;
  while (i < n && p[i] >= '0' && p[i] <= '9') {
    value = value > (LONG_MAX - 9) / 10 ? LONG_MAX : value * 10 + (p[i] - '0');
    i++;
  }
  if (i == digits || i >= n || p[i] != ']')
    return 0;
  *number = value;
  return i + 1;
}

/* --- what an agent quotes --- */

static const char *const quoting_elements[] = {
    "code",    "pre",    "samp", "blockquote", "q",       "quote", "cite",     "output",
    "stdout",  "stderr", "file", "document",   "example", "think", "thinking", "reasoning",
    "thought", "result", "tool", "function",   "prompt",  "task",  NULL};

static bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == ':';
}

/* The quoting element that opens at p ('<'): length of its name, 0 when it is none. Names that
 * begin with tool or function count too (tool_result, function_results, ...). */
static size_t quoting_element(const char *p, size_t n) {
  size_t len = 0;
  while (1 + len < n && name_char(p[1 + len]))
    len++;
  if (len == 0 || 1 + len >= n || memchr("> \t\r\n", p[1 + len], 5) == NULL)
    return 0;
  if ((len >= 4 && folded_equal(p + 1, "tool", 4)) ||
      (len >= 8 && folded_equal(p + 1, "function", 8)))
    return len;
  for (size_t i = 0; quoting_elements[i]; i++)
    if (strlen(quoting_elements[i]) == len && folded_equal(p + 1, quoting_elements[i], len))
      return len;
  return 0;
}

/* Offset behind </name> for the element whose name is at p + 1, 0 when it never closes. The search
 * for closers is bounded to one pass each by the caller: an element found is skipped whole. */
static size_t element_end(const char *p, size_t n, size_t name_n) {
  for (size_t i = 1 + name_n; i + name_n + 2 < n; i++) {
    const char *lt = memchr(p + i, '<', n - i);
    if (lt == NULL)
      break;
    i = (size_t)(lt - p);
    if (i + name_n + 2 < n && p[i + 1] == '/' && folded_equal(p + i + 2, p + 1, name_n) &&
        p[i + 2 + name_n] == '>')
      return i + name_n + 3;
  }
  return 0;
}

/* What an opener without a closer means: reasoning that was cut off hides the rest; any other is a
 * placeholder in prose ("usage: x <file>") and hides nothing. */
static bool is_reasoning(const char *p, size_t name_n) {
  static const char *const names[] = {"think", "thinking", "reasoning", "thought"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strlen(names[i]) == name_n && folded_equal(p + 1, names[i], name_n))
      return true;
  return false;
}

struct marks {
  const char *open, *close;
};

static const struct marks quotation_marks[] = {
    {"\"", "\""},
    {"\xE2\x80\x9C", "\xE2\x80\x9D"}, /* “ ” */
    {"\xE2\x80\x9E", "\xE2\x80\x9C"}, /* „ “ */
    {"\xE2\x80\x9E", "\xE2\x80\x9D"}, /* „ ” */
    {"\xE2\x80\x98", "\xE2\x80\x99"}, /* ‘ ’ */
    {"\xC2\xAB", "\xC2\xBB"},         /* « » */
    {"\xE2\x80\xB9", "\xE2\x80\xBA"}, /* ‹ › */
    {"\xE3\x80\x8C", "\xE3\x80\x8D"}, /* 「 」 */
    {"\xE3\x80\x8E", "\xE3\x80\x8F"}, /* 『 』 */
    {"\xEF\xBC\x82", "\xEF\xBC\x82"}, /* ＂ ＂ */
};

/* These open where others close, so they count only right beside the tag. */
static const struct marks tight_marks[] = {
    {"'", "'"},
    {"\xE2\x80\x9D", "\xE2\x80\x9D"}, /* ” ” */
    {"\xE2\x80\x99", "\xE2\x80\x99"}, /* ’ ’ */
    {"\xC2\xBB", "\xC2\xAB"},         /* » « */
    {"\xE2\x80\xBA", "\xE2\x80\xB9"}, /* › ‹ */
    {"\xE2\x80\x9A", "\xE2\x80\x98"}, /* ‚ ‘ */
};

enum { MARK_COUNT = sizeof quotation_marks / sizeof quotation_marks[0] };

/* The quotations of one line, followed from tag to tag so that each byte is looked at once. */
struct quotes {
  const char *line; /* NULL: none yet */
  size_t at[MARK_COUNT];
  bool inside[MARK_COUNT];
  size_t last_close[MARK_COUNT]; /* where the last closing mark of the line stands; 0: nowhere */
};

static bool mark_at(const char *line, size_t n, size_t i, const char *mark) {
  size_t mark_n = strlen(mark);
  return line[i] == mark[0] && i + mark_n <= n && memcmp(line + i, mark, mark_n) == 0;
}

static void begin_line(struct quotes *q, const char *line, size_t n) {
  *q = (struct quotes){.line = line};
  for (size_t m = 0; m < MARK_COUNT; m++)
    for (size_t i = n; i > 0 && q->last_close[m] == 0; i--)
      if (mark_at(line, n, i - 1, quotation_marks[m].close))
        q->last_close[m] = i - 1;
}

/* Is the tag at [at, at + len) of this line between quotation marks? Asked in order of `at`. */
static bool in_quotation(struct quotes *q, const char *line, size_t n, size_t at, size_t len) {
  bool quoted = false;
  if (q->line != line)
    begin_line(q, line, n);
  for (size_t m = 0; m < MARK_COUNT; m++) {
    size_t i = q->at[m];
    while (i < at) {
      const char *mark = q->inside[m] ? quotation_marks[m].close : quotation_marks[m].open;
      bool met = mark_at(line, at, i, mark);
      q->inside[m] ^= met;
      i += met ? strlen(mark) : 1;
    }
    q->at[m] = i;
    quoted |= q->inside[m] && q->last_close[m] >= at + len;
  }
  for (size_t m = 0; m < sizeof tight_marks / sizeof tight_marks[0]; m++) {
    size_t open_n = strlen(tight_marks[m].open);
    quoted |= at >= open_n && at + len < n && mark_at(line, at, at - open_n, tight_marks[m].open) &&
              mark_at(line, n, at + len, tight_marks[m].close);
  }
  return quoted;
}

struct scan {
  const char *name;
  size_t name_n;
  enum tag_pick pick;
  struct tag_result *out;
  bool any;
};

static void take(struct scan *s, long number, size_t offset, size_t length) {
  struct tag_result *out = s->out;
  if (s->any && number != out->number)
    out->ambiguous = true;
  if (!s->any || s->pick == TAG_LAST) {
    out->found = true;
    out->number = number;
    out->offset = offset;
    out->length = length;
  }
  s->any = true;
}

static void scan_reply(struct scan *s, const char *text, size_t n) {
  size_t i = 0;
  while (i < n) {
    const char *p = memchr(text + i, '[', n - i);
    if (p == NULL)
      return;
    i = (size_t)(p - text);
    long number;
    size_t len = match(p, n - i, s->name, s->name_n, &number);
    if (len > 0)
      take(s, number, i, len);
    i += len > 0 ? len : 1;
  }
}

static size_t run_length(const char *p, size_t n, char c) {
  size_t i = 0;
  while (i < n && p[i] == c)
    i++;
  return i;
}

/* Offset behind the backtick run that closes the code span of `ticks` ticks opened before p, 0 when
 * none closes it before the paragraph ends. */
static size_t span_end(const char *p, size_t n, size_t ticks) {
  if (n > SPAN_BYTES)
    n = SPAN_BYTES;
  for (size_t i = 0; i < n;) {
    if (p[i] == '\n' && i + 1 < n && p[i + 1] == '\n')
      return 0;
    if (p[i] != '`') {
      i++;
      continue;
    }
    size_t run = run_length(p + i, n - i, '`');
    i += run;
    if (run == ticks)
      return i;
  }
  return 0;
}

/* Where the line that starts at p ends (without its newline). */
static size_t line_length(const char *p, size_t n) {
  const char *nl = memchr(p, '\n', n);
  return nl ? (size_t)(nl - p) : n;
}

static bool is_blank(const char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
      return false;
  return true;
}

static void scan_agent(struct scan *s, const char *text, size_t n) {
  size_t i = 0;
  int lost_elements = 0;    /* openers without a closer: looked for so often, to stay linear */
  bool blank_before = true; /* an indented line is code only after a blank one */
  char fence = 0;           /* '`' or '~' while inside a fence */
  size_t fence_n = 0;
  struct quotes quotes = {0};
  while (i < n) {
    size_t line_n = line_length(text + i, n - i), end = i + line_n, at = i;
    size_t indent = run_length(text + i, line_n, ' ');
    char first = indent < line_n ? text[i + indent] : '\0';
    size_t run =
        first == '`' || first == '~' ? run_length(text + i + indent, line_n - indent, first) : 0;
    if (fence) {
      if (indent < 4 && first == fence && run >= fence_n &&
          is_blank(text + i + indent + run, line_n - indent - run))
        fence = 0;
      i = end + 1;
      blank_before = false;
      continue;
    }
    if (run >= 3 && indent < 4 &&
        !(first == '`' && memchr(text + i + indent + run, '`', line_n - indent - run))) {
      fence = first;
      fence_n = run;
      i = end + 1;
      continue;
    }
    bool code = blank_before && (indent >= 4 || first == '\t') && !is_blank(text + i, line_n);
    if (first == '>' || code) { /* a block quote, indented code */
      i = end + 1;
      blank_before = code;
      continue;
    }
    blank_before = is_blank(text + i, line_n);
    while (at < end) {
      char c = text[at];
      if (c == '`') {
        size_t ticks = run_length(text + at, end - at, '`');
        size_t close = span_end(text + at + ticks, n - at - ticks, ticks);
        at += ticks + close;
        if (at > end) { /* the span went on over the line's end */
          i = at;
          line_n = line_length(text + i, n - i);
          end = i + line_n;
        }
      } else if (c == '<' && quoting_element(text + at, n - at) > 0) {
        size_t name_n = quoting_element(text + at, n - at);
        size_t close = lost_elements < LOST_ELEMENTS ? element_end(text + at, n - at, name_n) : 0;
        lost_elements += close == 0;
        at += close > 0 ? close : is_reasoning(text + at, name_n) ? n - at : 1;
        if (at > end) {
          i = at;
          end = i + line_length(text + i, n - i);
        }
      } else if (c == '[') {
        long number;
        size_t len = match(text + at, n - at, s->name, s->name_n, &number);
        bool escaped = at > i && text[at - 1] == '\\';
        if (len > 0 && !escaped && !in_quotation(&quotes, text + i, end - i, at - i, len))
          take(s, number, at, len);
        at += len > 0 ? len : 1;
      } else {
        at++;
      }
    }
    i = end + 1;
  }
}

void tag_find(const char *text, size_t n, const char *name, size_t name_n, enum tag_pick pick,
              enum tag_scope scope, struct tag_result *out) {
  struct scan s = {.name = name, .name_n = name_n, .pick = pick, .out = out};
  *out = (struct tag_result){0};
  if (name_n == 0 || text == NULL)
    return;
  if (scope == TAG_REPLY)
    scan_reply(&s, text, n);
  else
    scan_agent(&s, text, n);
}
