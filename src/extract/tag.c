/* Finds the line of a text that names a rule: which lines may, and what else mentions one. */
#include "extract/tag.h"

#include "extract/internal.h"
#include "extract/tag_line.h"

#include <assert.h>
#include <string.h>

static size_t run_length(const char *p, size_t n, char c) {
  size_t i = 0;
  while (i < n && p[i] == c)
    i++;
  return i;
}

static bool is_blank(const char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
      return false;
  return true;
}

static struct str line_at(const char *p, size_t n) {
  const char *nl = memchr(p, '\n', n);
  return (struct str){p, nl ? (size_t)(nl - p) : n};
}

/* --- fences --- */

/* Returns the length of the list markers that a line begins with, and of the spaces around them (" 
 * - 1. "); 0 if there are none. */
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

static struct fence fence_opened(struct str line) {
  size_t markers = list_markers(line.p, line.n);
  size_t at = markers + run_length(line.p + markers, line.n - markers, ' ');
  char mark = at < line.n ? line.p[at] : '\0';
  size_t run = mark == '`' || mark == '~' ? run_length(line.p + at, line.n - at, mark) : 0;
  if (run < 3 || (markers == 0 && at >= 4) ||
      (mark == '`' && memchr(line.p + at + run, '`', line.n - at - run)))
    return (struct fence){0};
  return (struct fence){.mark = mark, .run = run, .column = columns(line.p, markers)};
}

static bool fence_closed(const struct fence *fence, struct str line) {
  size_t at = 0;
  while (at < line.n && (line.p[at] == ' ' || line.p[at] == '\t'))
    at++;
  size_t run = run_length(line.p + at, line.n - at, fence->mark);
  return columns(line.p, at) < fence->column + 4 && run >= fence->run &&
         is_blank(line.p + at + run, line.n - at - run);
}

/* Returns what stands in a reply that is one fence as a whole, any other reply as it is. */
static struct str without_fence(struct str text) {
  struct str first = line_at(text.p, text.n), rest;
  struct fence fence = fence_opened(first);
  if (fence.mark == 0 || first.n == text.n)
    return text;
  size_t start = first.n + 1;
  for (size_t i = start; i < text.n; i += rest.n + 1) {
    rest = line_at(text.p + i, text.n - i);
    if (fence_closed(&fence, rest))
      return i + rest.n < text.n ? text : (struct str){text.p + start, i - start};
  }
  return text;
}

/* --- which line is the last --- */

static struct str trim_end(struct str s) {
  while (s.n > 0 && memchr(" \t\r\n", s.p[s.n - 1], 4) != NULL)
    s.n--;
  return s;
}

/* Returns the text up to the end of the last line that says something. */
static struct str up_to_last_line(struct str text) {
  text = trim_end(text);
  while (text.n > 0) {
    const char *nl = memrchr(text.p, '\n', text.n);
    size_t start = nl ? (size_t)(nl - text.p) + 1 : 0;
    if (!tag_line_is_empty((struct str){text.p + start, text.n - start}))
      break;
    text.n = start;
    text = trim_end(text);
  }
  return text;
}

static bool has_byte_of(struct str s, const char *bytes) {
  for (size_t i = 0; i < s.n; i++)
    if (s.p[i] != '\0' && strchr(bytes, s.p[i]) != NULL)
      return true;
  return false;
}

/* Returns the text without a signature: the line "-- " and one of a few words that take nothing
 * back. */
static struct str without_signature(struct str text) {
  enum { SIGNATURE_BYTES = 40 };
  const char *nl = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;
  if (nl == NULL)
    return text;
  struct str above = {text.p, (size_t)(nl - text.p)}, line = {nl + 1, text.n - above.n - 1};
  const char *mark = memrchr(above.p, '\n', above.n);
  if (mark == NULL || line.n > SIGNATURE_BYTES || has_byte_of(line, ".,;:!?[]") ||
      tag_takes_back(line))
    return text;
  struct str dashes = trim_end((struct str){mark + 1, (size_t)(nl - mark - 1)});
  if (!str_eq_c(dashes, "--"))
    return text;
  return up_to_last_line((struct str){text.p, (size_t)(mark - text.p)});
}

/* --- the pass --- */

struct pass {
  const struct tag_query *query;
  struct str text; /* up to the end of its last line */
  struct fence fence;
  /* The last line that says something, unless what it speaks of is over; whether it speaks of the
   * next one is asked only where that counts. */
  struct str said;
  bool said_foreign; /* it begins with the mark of foreign text */
  bool announced; /* a line of this paragraph speaks of the next ones, no list or table between */
  size_t lines;   /* those of this paragraph, so far */
  char above;     /* what the line above begins with; NUL: none, or it is blank */
  struct tag_blocks blocks;
  bool foreign;       /* a line of this paragraph begins with the mark of foreign text */
  bool foreign_above; /* so did the paragraph before the blank line */
  /* The last two lines of the form, before the last line, that differ in their number: whatever
   * that names, one of them names another. */
  struct tag_place before[2];
  size_t before_count;
  struct tag_result *out;
};

static void keep_doubt(struct pass *pass, const struct tag_place *place) {
  if (pass->before_count > 0 && pass->before[0].number != place->number) {
    pass->before[1] = pass->before[0];
    pass->before_count = 2;
  }
  pass->before_count += pass->before_count == 0;
  pass->before[0] = *place;
}

static bool is_offered(const struct tag_query *query, long number) {
  for (size_t i = 0; i < query->word_count; i++)
    if (query->words[i].number == number)
      return true;
  return false;
}

/* Returns true if the last line that says something speaks of the next one. */
static bool is_pointed(const struct pass *pass) {
  return pass->said.n > 0 && (tag_points_below(pass->said, pass->query) ||
                              (pass->said_foreign && tag_shows_output(pass->said)));
}

static bool is_not_foreign(const struct pass *pass) {
  return !pass->foreign && !pass->foreign_above && !pass->announced &&
         !tag_blocks_open(&pass->blocks) && !is_pointed(pass);
}

static void take_line(struct pass *pass, size_t at, struct str line) {
  struct tag_place place = {0};
  bool last = at + line.n == pass->text.n;
  const char *cr = last ? NULL : memchr(line.p, '\r', line.n);
  if (cr != NULL) /* the end of a line to those who use it so */
    line.n = (size_t)(cr - line.p);
  bool tag = memchr(line.p, '[', line.n) != NULL &&
             tag_line_read(trim_end(line), pass->query, last, &place) &&
             (line.p[0] != '|' || pass->above == '|') && (line.p[0] != '+' || pass->above != '-');
  if (!tag && (last || !tag_line_number(line, pass->query, false, &place) ||
               !is_offered(pass->query, place.number)))
    return;
  place.offset += at;
  if (!last) {
    keep_doubt(pass, &place);
  } else if (is_not_foreign(pass)) {
    pass->out->found = true;
    pass->out->tag = place;
  }
}

/* Returns true if the mark at text[i] may close a reasoning section: only the byte after it can
 * make it a closer. */
static bool may_close(struct str text, size_t i) {
  size_t after = i + (text.p[i] == '\xE2' ? 3 : 1);
  return after < text.n && (text.p[after] == '/' || text.p[after] == '|');
}

/* Returns how many bytes of what stands at `at` a reasoning section takes away, SIZE_MAX if it
 * never ends. An opener counts at the start of its line. What stands before a closer without one
 * was reasoning too, but a line of the form in it still makes the last one doubtful: anybody can
 * write a closer. */
static size_t reasoning_at(struct pass *pass, size_t at, struct str line) {
  size_t indent = run_length(line.p, line.n, ' '), closed = 0;
  for (size_t i = 0; i < line.n; i++) {
    if ((line.p[i] != '<' && line.p[i] != '[' && line.p[i] != '\xE2') ||
        (i != indent && !may_close(pass->text, at + i)))
      continue;
    enum extract_tag kind = extract_tag_at(pass->text.p, pass->text.n, at + i, &closed);
    if (kind == EXTRACT_TAG_NO || (kind == EXTRACT_TAG_OPENER && i != indent))
      continue;
    if (i > 0) /* before a closer */
      take_line(pass, at, (struct str){line.p, i});
    pass->foreign = pass->foreign_above = pass->announced = false;
    pass->said = (struct str){0};
    pass->blocks = (struct tag_blocks){0};
    return closed == SIZE_MAX ? SIZE_MAX : closed - at;
  }
  return 0;
}

static void look_at_line(struct pass *pass, size_t at, struct str line) {
  if (pass->fence.mark) {
    if (fence_closed(&pass->fence, line))
      pass->fence.mark = 0;
    return;
  }
  pass->fence = fence_opened(line);
  if (pass->fence.mark) {
    pass->announced = false; /* the fence holds what was announced */
    pass->said = (struct str){0};
    return;
  }
  if (is_blank(line.p, line.n)) {
    pass->foreign_above |= pass->foreign;
    pass->foreign = pass->announced = false;
    pass->above = '\0';
    pass->lines = 0;
    tag_blocks_line(&pass->blocks, line);
    return;
  }
  if (line.p[0] != ' ')
    pass->foreign_above = false;
  take_line(pass, at, line);
  if (at + line.n == pass->text.n)
    return;
  tag_blocks_line(&pass->blocks, line);
  pass->above = line.p[0];
  if (tag_line_is_empty(line))
    return;
  pass->said = line;
  pass->said_foreign = tag_begins_foreign(line);
  pass->foreign |= pass->said_foreign;
  bool starts = pass->lines++ == 0; /* its paragraph */
  if (starts)
    pass->announced = tag_opens_text(line) && is_pointed(pass);
  else
    pass->announced &= line.p[0] != '|' && list_markers(line.p, line.n) == 0;
}

static void look_at_lines(struct pass *pass) {
  const struct str text = pass->text;
  for (size_t at = 0; at < text.n;) {
    struct str line = line_at(text.p + at, text.n - at);
    size_t reasoning = pass->fence.mark ? 0 : reasoning_at(pass, at, line);
    if (reasoning == SIZE_MAX)
      return;
    if (reasoning == 0)
      look_at_line(pass, at, line);
    at += reasoning > 0 ? reasoning : line.n + 1;
  }
}

/* --- all the others --- */

static bool same_place(const struct tag_place *a, const struct tag_place *b) {
  return a->length > 0 && a->offset == b->offset;
}

/* Names what is only mentioned, and the lines of all. */
static void find_mentions(struct str text, struct str name, struct tag_result *out) {
  struct tag_place place = {.line = 1};
  for (size_t i = 0; i < text.n; i++) {
    place.line += text.p[i] == '\n';
    place.length =
        text.p[i] == '[' ? tag_match((struct str){text.p + i, text.n - i}, name, &place.number) : 0;
    if (place.length == 0)
      continue;
    place.offset = i;
    if (same_place(&out->tag, &place))
      out->tag = place;
    else if (same_place(&out->other, &place))
      out->other = place;
    else if (out->mention_count < LIMIT_TAG_MENTION_COUNT)
      out->mentions[out->mention_count++] = place;
    else
      out->mentions_dropped++;
    i += place.length - 1;
  }
}

/* Returns the text without the byte order mark at its start. */
static struct str without_mark(struct str text) {
  size_t mark = str_starts(text, "\xEF\xBB\xBF") ? 3 : 0;
  return (struct str){text.p + mark, text.n - mark};
}

void tag_read(struct str text, const struct tag_query *query, struct tag_result *out) {
  assert(query->name.n == 0 || query->name.p != NULL);
  *out = (struct tag_result){0};
  if (query->name.n == 0 || text.n == 0)
    return;
  struct str said = without_mark(text);
  struct pass pass = {.query = query, .text = without_signature(up_to_last_line(said)), .out = out};
  size_t start = (size_t)(said.p - text.p);
  if (query->scope == TAG_REPLY) {
    struct str trimmed = str_trim(pass.text), inner = without_fence(trimmed);
    if (inner.p != trimmed.p) {
      pass.text = up_to_last_line(inner);
      start = (size_t)(inner.p - text.p);
    }
  }
  look_at_lines(&pass);
  for (size_t i = 0; out->found && !out->ambiguous && i < pass.before_count; i++)
    if (pass.before[i].number != out->tag.number) {
      out->ambiguous = true;
      out->other = pass.before[i];
      out->other.offset += start;
    }
  out->tag.offset += start;
  find_mentions(text, query->name, out);
}

/* Returns the line that ends at `to`, or the last one above it that says something. */
static struct str line_above(struct str text, size_t to) {
  struct str above = up_to_last_line((struct str){text.p, to});
  const char *nl = above.n > 0 ? memrchr(above.p, '\n', above.n) : NULL;
  size_t start = nl ? (size_t)(nl - above.p) + 1 : 0;
  return (struct str){above.p + start, above.n - start};
}

bool tag_number_beside(struct str text, size_t from, size_t to, long number,
                       const struct tag_query *query, struct tag_place *place) {
  assert(from <= to && to <= text.n);
  struct str whole = up_to_last_line(text), line = line_above(text, from);
  if (fence_opened(line).mark)
    line = line_above(text, (size_t)(line.p - text.p));
  bool found = tag_line_number(line, query, false, place) && place->number != number;
  for (size_t at = to; at < whole.n && !found; at += line.n + 1) {
    line = line_at(whole.p + at, whole.n - at);
    found = tag_line_number(line, query, at + line.n == whole.n, place) && place->number != number;
  }
  if (!found)
    return false;
  place->offset += (size_t)(line.p - text.p);
  place->line = 1;
  for (size_t i = 0; i < place->offset; i++)
    place->line += text.p[i] == '\n';
  return true;
}
