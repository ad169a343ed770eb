#include "structured/tag.h"

#include "extract_internal.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

/* How many names of elements are looked for in vain and how far the end of a code span is looked
 * for: keeps the pass linear on text that is made to be slow. */
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
    "code",       "pre",     "samp",   "blockquote", "q",        "quote",  "quoted",
    "cite",       "output",  "stdout", "stderr",     "log",      "logs",   "diff",
    "patch",      "trace",   "file",   "document",   "example",  "think",  "thinking",
    "reasoning",  "thought", "result", "tool",       "function", "prompt", "task",
    "transcript", "system",  "user",   "details",    "summary",  NULL};

static bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == ':';
}

/* Of a name with its namespaces (x:function_results), the part behind the last colon. */
static const char *local_name(const char *name, size_t *n) {
  for (size_t i = *n; i > 0; i--)
    if (name[i - 1] == ':') {
      *n -= i;
      return name + i;
    }
  return name;
}

/* The quoting element that opens at p ('<'): length of its name with its namespace, 0 when it is
 * none. Names that begin with tool or function count too (tool_result, function_results, ...). */
static size_t quoting_element(const char *p, size_t n) {
  size_t len = 0;
  while (1 + len < n && name_char(p[1 + len]))
    len++;
  if (len == 0 || 1 + len >= n || memchr("> \t\r\n", p[1 + len], 5) == NULL)
    return 0;
  size_t local_n = len;
  const char *local = local_name(p + 1, &local_n);
  if ((local_n >= 4 && folded_equal(local, "tool", 4)) ||
      (local_n >= 8 && folded_equal(local, "function", 8)))
    return len;
  for (size_t i = 0; quoting_elements[i]; i++)
    if (strlen(quoting_elements[i]) == local_n && folded_equal(local, quoting_elements[i], local_n))
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
  const char *local = local_name(p + 1, &name_n);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strlen(names[i]) == name_n && folded_equal(local, names[i], name_n))
      return true;
  return false;
}

/* Openers that have no closer behind them: what is not found once is not looked for again. */
struct lost {
  struct {
    const char *name;
    size_t n;
  } names[LOST_ELEMENTS];
  size_t count;
  bool comment;
};

static bool is_lost(const struct lost *lost, const char *name, size_t n) {
  for (size_t i = 0; i < lost->count; i++)
    if (lost->names[i].n == n && folded_equal(lost->names[i].name, name, n))
      return true;
  return lost->count == LOST_ELEMENTS;
}

/* Length of what the '<' at p makes a quotation: an element or a comment, closers included. 0 when
 * it does not. */
static size_t markup_length(const char *p, size_t n, struct lost *lost) {
  if (n >= 4 && memcmp(p, "<!--", 4) == 0) {
    for (size_t i = 2; !lost->comment && i + 3 <= n; i++)
      if (memcmp(p + i, "-->", 3) == 0)
        return i + 3;
    lost->comment = true;
    return 0;
  }
  size_t name_n = quoting_element(p, n);
  bool reasoning = name_n > 0 && is_reasoning(p, name_n);
  if (name_n == 0 || (!reasoning && is_lost(lost, p + 1, name_n)))
    return 0;
  size_t close = element_end(p, n, name_n);
  if (close == 0 && reasoning)
    return n;
  if (close == 0) {
    lost->names[lost->count].name = p + 1;
    lost->names[lost->count++].n = name_n;
  }
  return close;
}

struct marks {
  const char *open, *close[2];
};

static const struct marks quotation_marks[] = {
    {"\"", {"\""}},
    {"\xE2\x80\x9C", {"\xE2\x80\x9D"}},                 /* “ ” */
    {"\xE2\x80\x9E", {"\xE2\x80\x9C", "\xE2\x80\x9D"}}, /* „ “ and „ ” */
    {"\xE2\x80\x98", {"\xE2\x80\x99"}},                 /* ‘ ’ */
    {"\xC2\xAB", {"\xC2\xBB"}},                         /* « » */
    {"\xE2\x80\xB9", {"\xE2\x80\xBA"}},                 /* ‹ › */
    {"\xE3\x80\x8C", {"\xE3\x80\x8D"}},                 /* 「 」 */
    {"\xE3\x80\x8E", {"\xE3\x80\x8F"}},                 /* 『 』 */
    {"\xEF\xBC\x82", {"\xEF\xBC\x82"}},                 /* ＂ ＂ */
};

/* These open where others close, so they count only right beside the tag. */
static const struct marks tight_marks[] = {
    {"'", {"'"}},
    {"\xE2\x80\x9D", {"\xE2\x80\x9D"}}, /* ” ” */
    {"\xE2\x80\x99", {"\xE2\x80\x99"}}, /* ’ ’ */
    {"\xC2\xBB", {"\xC2\xAB"}},         /* » « */
    {"\xE2\x80\xBA", {"\xE2\x80\xB9"}}, /* › ‹ */
    {"\xE2\x80\x9A", {"\xE2\x80\x98"}}, /* ‚ ‘ */
};

enum { MARK_COUNT = sizeof quotation_marks / sizeof quotation_marks[0] };

/* The quotations of a paragraph: which are open where the pass stands, and where the last mark that
 * closes each stands, up to the paragraph's end. The latter are learned when a tag asks for them,
 * once for each byte. */
struct quotes {
  bool inside[MARK_COUNT];
  size_t last_close[MARK_COUNT]; /* 0: nowhere */
  size_t learned;                /* up to here */
};

/* Length of the mark when it stands at text[i], else 0. */
static size_t mark_at(const char *text, size_t n, size_t i, const char *mark) {
  size_t mark_n = strlen(mark);
  return i + mark_n <= n && memcmp(text + i, mark, mark_n) == 0 ? mark_n : 0;
}

static bool may_be_mark(char c) {
  return c == '"' || (unsigned char)c >= 0xC2;
}

static bool is_letter(char c) {
  return fold(c) >= 'A' && fold(c) <= 'Z';
}

/* An inch mark (a 5" pipe) opens nothing. */
static size_t opening_mark(const char *text, size_t n, size_t i, const struct marks *marks) {
  if (text[i] == '"' && i > 0 && text[i - 1] >= '0' && text[i - 1] <= '9' &&
      (i + 1 == n || memchr(" \t\r\n.,;:)", text[i + 1], 9) != NULL))
    return 0;
  return mark_at(text, n, i, marks->open);
}

/* An apostrophe (don’t) closes nothing. */
static size_t closing_mark(const char *text, size_t n, size_t i, const struct marks *marks) {
  size_t len = 0;
  for (size_t k = 0; k < 2 && len == 0 && marks->close[k]; k++)
    len = mark_at(text, n, i, marks->close[k]);
  if (len > 0 && i > 0 && i + len < n && mark_at(text, n, i, "\xE2\x80\x99") &&
      is_letter(text[i - 1]) && is_letter(text[i + len]))
    return 0;
  return len;
}

/* Goes on over text[i]: the bytes that were looked at. A mark that closes does not open too. */
static size_t follow_quotes(struct quotes *q, const char *text, size_t n, size_t i) {
  if (!may_be_mark(text[i]))
    return 1;
  for (size_t m = 0; m < MARK_COUNT; m++) {
    size_t len = q->inside[m] ? closing_mark(text, n, i, &quotation_marks[m]) : 0;
    if (len > 0) {
      q->inside[m] = false;
      return len;
    }
  }
  for (size_t m = 0; m < MARK_COUNT; m++) {
    size_t len = opening_mark(text, n, i, &quotation_marks[m]);
    if (len > 0) {
      q->inside[m] = true;
      return len;
    }
  }
  return 1;
}

static void end_quotes(struct quotes *q) {
  memset(q->inside, 0, sizeof q->inside);
}

/* Offset of the first blank line at or behind `from`, n when there is none. A line that goes on at
 * `from` is not blank. */
static size_t paragraph_end(const char *text, size_t n, size_t from) {
  for (size_t i = from; i < n;) {
    const char *nl = memchr(text + i, '\n', n - i);
    if (nl == NULL)
      return n;
    i = (size_t)(nl - text) + 1;
    size_t line = i;
    while (i < n && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r'))
      i++;
    if (i < n && text[i] == '\n')
      return line;
  }
  return n;
}

static void learn_closers(struct quotes *q, const char *text, size_t n, size_t from) {
  q->learned = paragraph_end(text, n, from);
  memset(q->last_close, 0, sizeof q->last_close);
  for (size_t i = from; i < q->learned; i++)
    for (size_t m = 0; m < MARK_COUNT && may_be_mark(text[i]); m++)
      if (closing_mark(text, n, i, &quotation_marks[m]) > 0)
        q->last_close[m] = i;
}

/* Is the tag at [at, at + len) between quotation marks? Asked in order of `at`. */
static bool in_quotation(struct quotes *q, const char *text, size_t n, size_t at, size_t len) {
  bool quoted = false;
  if (at >= q->learned)
    learn_closers(q, text, n, at);
  for (size_t m = 0; m < MARK_COUNT; m++)
    quoted |= q->inside[m] && q->last_close[m] >= at + len;
  for (size_t m = 0; m < sizeof tight_marks / sizeof tight_marks[0]; m++) {
    size_t open_n = strlen(tight_marks[m].open);
    quoted |= at >= open_n && mark_at(text, n, at - open_n, tight_marks[m].open) > 0 &&
              mark_at(text, n, at + len, tight_marks[m].close[0]) > 0;
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

/* The answer stands outside of the reasoning sections. */
static void scan_reply(struct scan *s, const char *text, size_t n) {
  size_t i = 0;
  while (i < n) {
    size_t closed = 0, len;
    long number;
    if (text[i] != '[' && text[i] != '<' && text[i] != '\xE2') {
      i++;
      continue;
    }
    len = text[i] == '[' ? match(text + i, n - i, s->name, s->name_n, &number) : 0;
    if (len > 0) {
      take(s, number, i, len);
      i += len;
      continue;
    }
    switch (extract_tag_at(text, n, i, &closed)) {
    case EXTRACT_TAG_OPENER:
      if (closed == SIZE_MAX)
        return;
      i = closed;
      break;
    case EXTRACT_TAG_CLOSER: /* all before it was reasoning */
      s->any = false;
      *s->out = (struct tag_result){0};
      i = closed;
      break;
    case EXTRACT_TAG_NO:
      i++;
      break;
    }
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

/* The list markers that a line begins with, and the spaces about them ("  - 1. "): their length, 0
 * when there is none. */
static size_t list_markers(const char *p, size_t n) {
  size_t length = 0;
  for (;;) {
    size_t i = length, digits = 0;
    while (i < n && (p[i] == ' ' || p[i] == '\t'))
      i++;
    while (i + digits < n && p[i + digits] >= '0' && p[i + digits] <= '9')
      digits++;
    i += digits;
    if (i + 1 >= n || memchr(digits > 0 ? ".)." : "-*+", p[i], 3) == NULL ||
        (p[i + 1] != ' ' && p[i + 1] != '\t'))
      return length;
    for (i++; i < n && (p[i] == ' ' || p[i] == '\t');)
      i++;
    length = i;
  }
}

static size_t columns(const char *p, size_t n) {
  size_t column = 0;
  for (size_t i = 0; i < n; i++)
    column += p[i] == '\t' ? 4 - column % 4 : 1;
  return column;
}

struct fence {
  char mark; /* '`' or '~', 0: none */
  size_t run;
  size_t column; /* where what belongs to its list item begins, 0 outside of lists */
};

static struct fence fence_opened(const char *line, size_t n) {
  size_t markers = list_markers(line, n);
  size_t at = markers + run_length(line + markers, n - markers, ' ');
  char mark = at < n ? line[at] : '\0';
  size_t run = mark == '`' || mark == '~' ? run_length(line + at, n - at, mark) : 0;
  if (run < 3 || (markers == 0 && at >= 4) ||
      (mark == '`' && memchr(line + at + run, '`', n - at - run)))
    return (struct fence){0};
  return (struct fence){.mark = mark, .run = run, .column = columns(line, markers)};
}

static bool fence_closed(const struct fence *fence, const char *line, size_t n) {
  size_t at = 0;
  while (at < n && (line[at] == ' ' || line[at] == '\t'))
    at++;
  size_t run = run_length(line + at, n - at, fence->mark);
  return columns(line, at) < fence->column + 4 && run >= fence->run &&
         is_blank(line + at + run, n - at - run);
}

struct agent {
  struct scan *s;
  const char *text;
  size_t n;
  struct quotes quotes;
  struct lost lost;
};

/* Goes on behind what was skipped; a blank line in it ends the paragraph. */
static size_t skip(struct agent *a, size_t at, size_t length) {
  if (paragraph_end(a->text, at + length, at) < at + length)
    end_quotes(&a->quotes);
  return at + length;
}

/* The line [i, end) of prose, and the lines on which what is skipped in it ends: the offset of
 * their end. */
static size_t scan_prose(struct agent *a, size_t i, size_t end) {
  const char *text = a->text;
  size_t n = a->n, at = i;
  while (at < end) {
    char c = text[at];
    if (c == '`') {
      size_t ticks = run_length(text + at, end - at, '`');
      at = skip(a, at, ticks + span_end(text + at + ticks, n - at - ticks, ticks));
    } else if (c == '<') {
      size_t length = markup_length(text + at, n - at, &a->lost);
      at = skip(a, at, length > 0 ? length : 1);
    } else if (c == '[') {
      long number;
      size_t len = match(text + at, n - at, a->s->name, a->s->name_n, &number);
      bool escaped = at > i && text[at - 1] == '\\';
      if (len > 0 && !escaped && !in_quotation(&a->quotes, text, n, at, len))
        take(a->s, number, at, len);
      at += len > 0 ? len : 1;
    } else {
      at += follow_quotes(&a->quotes, text, n, at);
    }
    if (at > end) { /* what was skipped went on over the line's end */
      i = at;
      end = i + line_length(text + i, n - i);
    }
  }
  return end;
}

static void scan_agent(struct scan *s, const char *text, size_t n) {
  struct agent a = {.s = s, .text = text, .n = n};
  struct fence fence = {0};
  bool blank_before = true; /* an indented line is code only after a blank one */
  for (size_t i = 0; i < n; i++) {
    const char *line = text + i;
    size_t line_n = line_length(line, n - i), end = i + line_n;
    size_t indent = run_length(line, line_n, ' ');
    char first = indent < line_n ? line[indent] : '\0';
    bool blank = is_blank(line, line_n);
    struct fence opened = fence.mark ? fence : fence_opened(line, line_n);
    bool code = blank_before && (indent >= 4 || first == '\t') && !blank;
    if (blank)
      end_quotes(&a.quotes);
    if (fence.mark) {
      if (fence_closed(&fence, line, line_n))
        fence.mark = 0;
      blank_before = false;
    } else if (opened.mark) {
      fence = opened;
    } else if (first == '>' || code) { /* a block quote, indented code */
      blank_before = code;
    } else {
      blank_before = blank;
      end = scan_prose(&a, i, end);
    }
    i = end;
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
