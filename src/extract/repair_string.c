/* Looks ahead, and reads a string whose quotes cannot be trusted. */
#include "base/str.h"
#include "base/utf8.h"
#include "extract/repair_internal.h"

#include <string.h>

/* --- what a repair does: it is noted, its words are accounted for, its work is bounded --- */

void repair_note(struct repair *r, const char *name, size_t offset) {
  struct repair_result *out = r->out;
  if (out->repair_count < EXTRACT_REPAIRS_MAX) {
    out->repairs =
        xgrow(out->repairs, &out->repairs_room, out->repairs_listed + 1, sizeof *out->repairs);
    out->repairs[out->repairs_listed++] = (struct extract_repair){name, offset};
  }
  out->repair_count++;
}

void repair_keep(struct repair *r, size_t from, size_t to) {
  if (from >= to)
    return;
  r->spans = xgrow(r->spans, &r->span_room, r->span_count + 1, sizeof *r->spans);
  r->spans[r->span_count++] = (struct repair_span){from, to};
}

bool repair_spend(struct repair *r, size_t bytes) {
  if (r->work_left < bytes) {
    r->work_left = 0;
    r->failed = true;
    return false;
  }
  r->work_left -= bytes;
  return true;
}

/* --- looking ahead: space, comments, quotes and keys; none of it moves r->i --- */

/* Returns the length of the white space at i: JSON's own, and what word processors and web pages
 * put in its place. */
size_t repair_space(const struct repair *r, size_t i) {
  uint32_t cp;
  if (i >= r->n || str_is_space(r->t[i]))
    return i < r->n;
  size_t len = r->t[i] & 0x80 ? utf8_decode(r->t + i, r->n - i, &cp) : 0;
  bool space = len > 0 && (cp == 0x85 || cp == 0xA0 || (cp >= 0x2000 && cp <= 0x200D) ||
                           cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F ||
                           cp == 0x2060 || cp == 0x3000 || cp == 0xFEFF);
  return space ? len : 0;
}

bool repair_fence_at(const struct repair *r, size_t i) {
  return i + 3 <= r->n && memcmp(r->t + i, LIT("```")) == 0;
}

static size_t comment(const struct repair *r, size_t i) {
  const char *t = r->t;
  if (i + 1 < r->n && t[i] == '/' && t[i + 1] == '*') {
    for (size_t k = i + 2; k + 1 < r->n; k++)
      if (t[k] == '*' && t[k + 1] == '/')
        return k + 2;
    return r->n;
  }
  if (t[i] == '#' || (i + 1 < r->n && t[i] == '/' && t[i + 1] == '/')) {
    const char *eol = memchr(t + i, '\n', r->n - i);
    if (eol)
      return (size_t)(eol - t);
    /* all on one line: the comment cannot have swallowed the closers */
    size_t k = i;
    while (k < r->n && t[k] != '}' && t[k] != ']')
      k++;
    return k;
  }
  return i;
}

size_t repair_junk(struct repair *r, size_t i, bool note) {
  size_t start = i;
  for (;;) {
    size_t len;
    while ((len = repair_space(r, i)))
      i += len;
    if (i >= r->n)
      break;
    size_t after = comment(r, i);
    if (after == i)
      break;
    if (note) {
      repair_note(r, "comment", i);
      repair_keep(r, i, after);
    }
    i = after;
  }
  repair_spend(r, i - start);
  return i;
}

enum repair_quote repair_quote_at(const struct repair *r, size_t i, size_t *len) {
  uint32_t cp = 0;
  *len = i < r->n ? utf8_decode(r->t + i, r->n - i, &cp) : 0;
  switch (cp) {
  case '"':
    return QUOTE_DOUBLE;
  case '\'':
    return QUOTE_SINGLE;
  case '`':
    return QUOTE_TICK;
  case 0xB4: /* an accent */
    return QUOTE_CURLY1;
  case 0xAB:
  case 0xBB:
  case 0xFF02:
    return QUOTE_ANGLE; /* only its own kind closes it */
  case 0x300C:
  case 0x300E:
    return QUOTE_CORNER;
  case 0x300D:
  case 0x300F:
    return QUOTE_CORNER_END;
  default:
    if (cp >= 0x2018 && cp <= 0x201F)
      return cp < 0x201C ? QUOTE_CURLY1 : QUOTE_CURLY2;
    return QUOTE_NONE;
  }
}

bool repair_closes(enum repair_quote open, enum repair_quote close) {
  if (open == QUOTE_NONE || open == QUOTE_CORNER)
    return open == QUOTE_CORNER && close == QUOTE_CORNER_END;
  if (open == close)
    return true;
  return (close == QUOTE_DOUBLE && open == QUOTE_CURLY2) ||
         (close == QUOTE_SINGLE && (open == QUOTE_TICK || open == QUOTE_CURLY1)) ||
         (close == QUOTE_TICK && open == QUOTE_CURLY1);
}

bool repair_key_at(struct repair *r, size_t i) {
  size_t len, k = i, end = r->n - i > REPAIR_KEY_MAX ? i + REPAIR_KEY_MAX : r->n;
  if (i >= r->n)
    return false;
  if (r->t[k] == '\\')
    k++;
  enum repair_quote open = repair_quote_at(r, k, &len);
  if (open != QUOTE_NONE) {
    k += len;
    size_t start = k;
    while (k < end) {
      if (r->t[k] == '\n' || r->t[k] == '{' || r->t[k] == '}')
        return false;
      if (r->t[k] == '\\' && k + 1 < end && r->t[k + 1] != '"')
        k++;
      else if (repair_closes(open, repair_quote_at(r, k, &len)))
        break;
      k++;
    }
    repair_spend(r, k - start);
    if (k >= end)
      return false;
    k += len;
  } else {
    while (k < end && (jscan_word_byte(r->t[k]) || r->t[k] == '.'))
      k++;
    repair_spend(r, k - i);
    if (k == i)
      return false;
    if (k < end && (r->t[k] == '"' || r->t[k] == '\''))
      k++; /* only its first quote is missing */
  }
  while (k < r->n && (r->t[k] == ' ' || r->t[k] == '\t' || r->t[k] == '\r' || r->t[k] == '\n'))
    k++;
  if (k >= r->n || r->t[k] != ':')
    return false;
  return open != QUOTE_NONE || k + 2 >= r->n || memcmp(r->t + k, LIT("://")) != 0;
}

unsigned repair_brackets(struct str text) {
  size_t braces = 0, squares = 0;
  for (size_t i = 0; i < text.n; i++) {
    char c = text.p[i];
    if ((c == '}' && braces == 0) || (c == ']' && squares == 0))
      return REPAIR_STRAY_CLOSER;
    braces += (c == '{') - (size_t)(c == '}');
    squares += (c == '[') - (size_t)(c == ']');
  }
  return braces + squares > 0 ? REPAIR_UNCLOSED : 0;
}

bool repair_in(const struct repair *r, char kind) {
  for (size_t d = 0; d < r->depth; d++)
    if (r->stack[d] == kind || (kind == '{' && r->stack[d] == 's'))
      return true;
  return false;
}

bool repair_ellipsis_at(struct repair *r, size_t i, size_t *len) {
  size_t k = i;
  if (i + 3 <= r->n && memcmp(r->t + i, LIT("\xE2\x80\xA6")) == 0)
    k += 3;
  else
    while (k < r->n && r->t[k] == '.')
      k++;
  *len = k - i;
  if (k - i < 3)
    return false;
  k = repair_junk(r, k, false);
  return k >= r->n || jscan_one_of(",]})", r->t[k]) || r->t[k] == '"';
}

/* --- the content of a string, good escapes and bad ones --- */

static int repair_hex_digits(const char *s, size_t count) {
  int v = 0;
  for (size_t k = 0; k < count; k++) {
    int d = str_hex_digit(s[k]);
    if (d < 0)
      return -1;
    v = v * 16 + d;
  }
  return v;
}

/* Decodes the escape after the backslash at i, which ends before `end`. Returns the offset after
 * it. */
static size_t decode_escape(struct repair *r, size_t i, size_t end) {
  static const char from[] = "\"\\/bfnrt'`", to[] = "\"\\/\b\f\n\r\t'`";
  const char *t = r->t;
  char out[UTF8_BYTES_MAX];
  if (i + 1 >= end) { /* it was cut within an escape */
    repair_note(r, "bad_escape", i);
    return end;
  }
  char c = t[i + 1];
  const char *at = c ? strchr(from, c) : NULL;
  if (at) {
    if (c == '\'' || c == '`')
      repair_note(r, "bad_escape", i);
    buf_append(&r->buf, &to[at - from], 1);
    return i + 2;
  }
  size_t digits = c == 'u' ? 4 : 0;
  if (c == 'x')
    digits = 2;
  if (digits) {
    int v = end - i - 2 >= digits ? repair_hex_digits(t + i + 2, digits) : -1;
    if (v >= 0) {
      uint32_t cp = (uint32_t)v;
      size_t next = i + 2 + digits;
      if (end - next >= 6 && t[next] == '\\' && t[next + 1] == 'u') {
        int low = repair_hex_digits(t + next + 2, 4);
        if (low >= 0 && utf8_join(cp, (uint32_t)low, &cp))
          next += 6;
      }
      buf_append(&r->buf, out, utf8_put(out, cp));
      if (c == 'x')
        repair_note(r, "bad_escape", i);
      return next;
    }
    repair_note(r, "bad_escape", i);
    size_t k = i + 2; /* cut off by the end of the text? then it says nothing */
    while (k < end && repair_hex_digits(t + k, 1) >= 0)
      k++;
    if (k == end)
      return end;
  }
  repair_note(r, "bad_escape", i);
  buf_append(&r->buf, LIT("\\"));
  return i + 1;
}

/* Returns false for a pattern or a formula, which keeps its backslashes. */
static bool no_letter_escapes(const struct repair *r, size_t i, size_t end) {
  for (; i + 1 < end; i++) {
    if (r->t[i] == '$')
      return false;
    if (r->t[i] != '\\')
      continue;
    char c = r->t[++i];
    if (str_is_letter(c) && !jscan_one_of("bfnrtu", c))
      return false;
  }
  return true;
}

void repair_decode(struct repair *r, size_t i, size_t end) {
  bool control = false, plain = no_letter_escapes(r, i, end);
  repair_keep(r, i, end);
  repair_spend(r, end - i);
  while (i < end && !r->failed) {
    unsigned char c = (unsigned char)r->t[i];
    size_t k = i;
    while (k < end && (unsigned char)r->t[k] >= 0x20 && (unsigned char)r->t[k] < 0x80 &&
           r->t[k] != '\\')
      k++;
    if (k > i) {
      buf_append(&r->buf, r->t + i, k - i);
      i = k;
    } else if (c == '\\') {
      if (plain && i + 1 < end && jscan_one_of("_*#~", r->t[i + 1])) {
        repair_note(r, "bad_escape", i++); /* Markdown's */
        buf_putc(&r->buf, r->t[i++]);
      } else {
        i = decode_escape(r, i, end);
      }
    } else if (c < 0x20) {
      if (!control)
        repair_note(r, "control_character", i);
      control = true;
      buf_append(&r->buf, r->t + i++, 1);
    } else {
      size_t len = utf8_decode(r->t + i, end - i, NULL);
      if (!len) {
        repair_note(r, "bad_utf8", i);
        buf_append(&r->buf, LIT("\xEF\xBF\xBD"));
      } else {
        buf_append(&r->buf, r->t + i, len);
      }
      i += len ? len : 1;
    }
  }
}

/* --- whether a quote inside a string is its end --- */

/* Tells what a quote inside a string is: content, its end, perhaps its end (taken when no better
 * one comes), or the opening quote of something after it, this string having lost its own closing
 * quote. */
enum repair_verdict { REPAIR_INNER, REPAIR_END, REPAIR_PERHAPS, REPAIR_MISSED };

struct repair_reading {
  enum repair_place place;
  enum repair_quote open;
  size_t open_at, start;         /* the opening quote, the content */
  size_t inner_quotes;           /* quotes judged to be content */
  size_t inner_brackets;         /* open { or [ in the content that a quote follows */
  size_t colon;                  /* first colon in the content, SIZE_MAX without */
  size_t end, after;             /* end of the content, SIZE_MAX until known; where to go on */
  size_t perhaps, perhaps_after; /* the last quote that might end it, SIZE_MAX without */
  size_t escaped_end;            /* \" that looks like the end, SIZE_MAX without: C:\dir\" */
};

/* Returns true if a whole quoted run at i ends the text: it is a key whose value was cut off. */
static bool quoted_last(struct repair *r, size_t i) {
  size_t len, k;
  enum repair_quote open = repair_quote_at(r, i, &len);
  if (open == QUOTE_NONE || r->n - i > REPAIR_KEY_MAX)
    return false;
  for (k = i + len; k < r->n; k++)
    if (repair_closes(open, repair_quote_at(r, k, &len)))
      break;
  repair_spend(r, r->n - i);
  return k < r->n && repair_junk(r, k + len, false) >= r->n;
}

/* Returns true if there is a line break in [i, j). */
static bool repair_line_break(const struct repair *r, size_t i, size_t j) {
  return j > i && memchr(r->t + i, '\n', j - i) != NULL;
}

static bool starts_value(const struct repair *r, size_t i) {
  size_t len;
  char c = r->t[i];
  return repair_quote_at(r, i, &len) != QUOTE_NONE || c == '{' || c == '[' || c == '-' ||
         str_is_digit(c);
}

static bool literal_at(const struct repair *r, size_t i) {
  static const char *const words[] = {"true", "false", "null", "True", "False", "None"};
  for (size_t w = 0; w < 6; w++) {
    size_t len = strlen(words[w]);
    if (r->n - i >= len && memcmp(r->t + i, words[w], len) == 0 &&
        (i + len == r->n || !jscan_word_byte(r->t[i + len])))
      return true;
  }
  return false;
}

/* Returns true if a comma, a closer or the end follows a whole quoted run at i. */
static bool quoted_item_at(struct repair *r, size_t i) {
  size_t len, k, end = r->n - i > REPAIR_KEY_MAX ? i + REPAIR_KEY_MAX : r->n;
  enum repair_quote open = repair_quote_at(r, i, &len);
  if (open == QUOTE_NONE)
    return false;
  for (k = i + len; k < end && r->t[k] != '\n'; k++) {
    if (r->t[k] == '\\')
      k++;
    else if (repair_closes(open, repair_quote_at(r, k, &len)))
      break;
  }
  repair_spend(r, k - i);
  if (k >= end || r->t[k] == '\n')
    return false;
  size_t after = k + len;
  k = repair_junk(r, after, false);
  return k >= r->n || jscan_one_of(",]}", r->t[k]) || (k > after && starts_value(r, k));
}

/* Returns true if words and no quote stand from i to a closer: they are a comment or an item
 * without quotes, not the middle of a string. */
static bool words_then_closer(struct repair *r, size_t i) {
  size_t k = i, end = r->n - i > REPAIR_KEY_MAX ? i + REPAIR_KEY_MAX : r->n;
  while (k < end && (jscan_word_byte(r->t[k]) || r->t[k] == ' ' || r->t[k] == '.'))
    k++;
  repair_spend(r, k - i);
  return k > i && k < end && (r->t[k] == '}' || r->t[k] == ']') &&
         repair_in(r, r->t[k] == '}' ? '{' : '[');
}

/* Finds a comma and an unquoted key before `end`: ", b:". Returns the comma's offset, SIZE_MAX if
 * there is none. */
static size_t comma_key_before(const struct repair *r, size_t start, size_t end) {
  size_t k = end;
  while (k > start && repair_space(r, k - 1) == 1)
    k--;
  size_t stop = k;
  while (k > start && jscan_word_byte(r->t[k - 1]))
    k--;
  if (k == stop)
    return SIZE_MAX;
  while (k > start && repair_space(r, k - 1) == 1)
    k--;
  return k > start && r->t[k - 1] == ',' ? k - 1 : SIZE_MAX;
}

/* Returns true for an odd number of quotes on this line, which speaks for a lost quote; an even one
 * speaks for quotes inside. */
static bool odd_quotes(struct repair *r, const struct repair_reading *s) {
  size_t count = 0, len, k = s->open_at;
  for (; k < r->n && r->t[k] != '\n' && k - s->open_at < 2 * REPAIR_KEY_MAX; k++) {
    if (r->t[k] == '\\')
      k++;
    else if (repair_quote_at(r, k, &len) == s->open)
      count++;
  }
  repair_spend(r, k - s->open_at);
  return count % 2;
}

/* Returns the offset before the white space and block comments that end at i. */
static size_t back(struct repair *r, size_t start, size_t i) {
  for (;;) {
    while (i > start && repair_space(r, i - 1) == 1)
      i--;
    if (i < start + 4 || r->t[i - 1] != '/' || r->t[i - 2] != '*')
      return i;
    size_t k = i - 3;
    while (k > start && i - k < REPAIR_KEY_MAX && !(r->t[k - 1] == '/' && r->t[k] == '*'))
      k--;
    if (k == start || i - k >= REPAIR_KEY_MAX || !repair_spend(r, i - k))
      return i;
    i = k - 1;
  }
}

/* The quote at q, after which what matters next is at `next`; MISSED sets *end of the content */
static enum repair_verdict repair_judge_key(struct repair *r, struct repair_reading *s, size_t q,
                                            size_t next, size_t *end) {
  size_t len;
  if (next >= r->n)
    return REPAIR_END;
  char c = r->t[next];
  if (c == ':')
    return REPAIR_END;
  size_t before = q;
  while (before > s->start && repair_space(r, before - 1) == 1)
    before--;
  if (s->colon != SIZE_MAX &&
      (before > s->start && (r->t[before - 1] == ':' || r->t[before - 1] == ','))) {
    *end = s->colon;
    return REPAIR_MISSED;
  }
  if (c == ',' || c == '}' || c == ']' || c == '=' || starts_value(r, next) ||
      literal_at(r, next)) {
    bool twice = repair_quote_at(r, next, &len) != QUOTE_NONE && next == q + 1;
    return twice ? REPAIR_PERHAPS : REPAIR_END;
  }
  return REPAIR_PERHAPS;
}

/* Returns true if what stands at u, after a closer that follows the string, allows the closer to be
 * one. */
static bool repair_closer_fits(struct repair *r, size_t u) {
  size_t next = repair_junk(r, u, false);
  return next >= r->n || jscan_one_of(",]});", r->t[next]) || repair_line_break(r, u, next) ||
         repair_fence_at(r, next);
}

/* Returns true if q is rather the opening quote of what comes next, and the string has lost its
 * own. Then *end is where the string ended. */
static bool opens_next(struct repair *r, const struct repair_reading *s, size_t q, size_t *end) {
  bool member = s->place == REPAIR_MEMBER;
  size_t before = back(r, s->start, q);
  if (before == s->start)
    return false;
  char last = r->t[before - 1];
  bool comma = last == ',';
  bool broke = repair_line_break(r, before, q);
  if (member && (comma || broke) && repair_key_at(r, q) && !s->inner_brackets) {
    *end = comma ? before - 1 : before;
    return true;
  }
  if (member && last == ':' && odd_quotes(r, s)) {
    *end = comma_key_before(r, s->start, before - 1);
    if (*end != SIZE_MAX)
      return true;
  }
  if (!member && comma && quoted_item_at(r, q) && (broke || odd_quotes(r, s))) {
    *end = before - 1;
    return true;
  }
  if (last == '+' && quoted_item_at(r, q) && odd_quotes(r, s)) {
    *end = back(r, s->start, before - 1);
    return true;
  }
  return false;
}

/* Judges a quote that a comma at `next` follows. */
static enum repair_verdict judge_comma(struct repair *r, const struct repair_reading *s,
                                       size_t next) {
  size_t len, far = next;
  bool pair_open = s->inner_quotes % 2;
  while (far < r->n && r->t[far] == ',')
    far = repair_junk(r, far + 1, false);
  if (far >= r->n || r->t[far] == '}' || r->t[far] == ']' || repair_ellipsis_at(r, far, &len))
    return REPAIR_END;
  if (s->place == REPAIR_MEMBER) {
    if (s->inner_brackets && pair_open)
      return REPAIR_PERHAPS;
    if (repair_key_at(r, far) || (r->t[far] == '{' && repair_in(r, '[')) || quoted_last(r, far))
      return REPAIR_END;
    return REPAIR_PERHAPS;
  }
  if (s->inner_brackets)
    return REPAIR_PERHAPS;
  if (starts_value(r, far) || literal_at(r, far))
    return REPAIR_END;
  return pair_open ? REPAIR_PERHAPS : REPAIR_END;
}

/* Judges the quote of an item that something else follows. */
static enum repair_verdict judge_item(struct repair *r, const struct repair_reading *s,
                                      size_t after, size_t next) {
  size_t len;
  char c = r->t[next];
  bool digit = next > after && str_is_digit(c);
  bool quoted = next > after && repair_quote_at(r, next, &len) != QUOTE_NONE;
  if (c == ':' || c == '{' || c == '[' || digit || (quoted && quoted_item_at(r, next)))
    return s->inner_quotes % 2 ? REPAIR_INNER : REPAIR_END; /* ':': a member without its braces */
  if (repair_line_break(r, after, next) && starts_value(r, next))
    return REPAIR_END;
  return REPAIR_INNER;
}

/* Returns true if a mark at `next` ends the string: a semicolon for a comma, the end of a tuple, a
 * + before another string. */
static bool mark_follows(struct repair *r, const struct repair_reading *s, size_t next) {
  size_t len;
  switch (r->t[next]) {
  case ';':
    return s->place == REPAIR_MEMBER && repair_key_at(r, repair_junk(r, next + 1, false));
  case ')':
    return repair_in(r, '(');
  case '+':
    return repair_quote_at(r, repair_junk(r, next + 1, false), &len) != QUOTE_NONE;
  default:
    return false;
  }
}

/* Returns true if the closers at i close all that is open, and nothing but marks follows. */
static bool closes_all(struct repair *r, size_t i) {
  size_t depth = r->depth;
  for (; depth > 0 && i < r->n; i = repair_junk(r, i + 1, false), depth--) {
    char kind = r->stack[depth - 1];
    if (r->t[i] != (kind == '[' ? ']' : '}') || kind == '(')
      return false;
  }
  while (i < r->n && (jscan_one_of(";)", r->t[i]) || repair_space(r, i)))
    i++;
  return depth == 0 && (i >= r->n || repair_fence_at(r, i));
}

static enum repair_verdict repair_judge_value(struct repair *r, struct repair_reading *s, size_t q,
                                              size_t after, size_t next, size_t *end) {
  size_t len;
  bool member = s->place == REPAIR_MEMBER;
  bool pair_open = s->inner_quotes % 2;
  if (next >= r->n)
    return REPAIR_END;
  if (opens_next(r, s, q, end))
    return REPAIR_MISSED;
  char c = r->t[next];
  if (repair_fence_at(r, next))
    return REPAIR_END;
  if (c == '}' || c == ']') {
    if (s->inner_brackets)
      return closes_all(r, next) ? REPAIR_END : REPAIR_INNER;
    bool open = repair_in(r, c == '}' ? '{' : '[');
    return open ? REPAIR_END : REPAIR_PERHAPS;
  }
  if (c == ',')
    return judge_comma(r, s, next);
  if (mark_follows(r, s, next))
    return REPAIR_END;
  if (repair_key_at(r, next)) { /* a comma is missing */
    bool quoted = repair_quote_at(r, next, &len) != QUOTE_NONE;
    bool apart = repair_line_break(r, after, next);
    if (quoted && member)
      apart = next > after || !pair_open;
    if (apart)
      return member || r->depth > 1 ? REPAIR_END : REPAIR_PERHAPS;
  }
  if (next > after && !pair_open && words_then_closer(r, next))
    return REPAIR_END;
  return member ? REPAIR_INNER : judge_item(r, s, after, next);
}

/* --- strings --- */

/* Returns the offset before the white space, and the `stop` characters besides, that end at i. */
static size_t string_back(const struct repair *r, size_t start, size_t i, char stop) {
  while (i > start && (repair_space(r, i - 1) == 1 || r->t[i - 1] == stop))
    i--;
  return i;
}

/* Returns where the string ends if its quote was lost before a line that starts something new;
 * SIZE_MAX if there is no such line. */
static size_t lost_before_line(struct repair *r, const struct repair_reading *s) {
  for (size_t k = s->start; k < r->n; k++) {
    if (r->t[k] != '\n')
      continue;
    size_t len, next = repair_junk(r, k, false);
    if (next >= r->n)
      break;
    if (repair_fence_at(r, next)) {
      r->n = k;
      break;
    }
    char c = r->t[next];
    bool closer = (c == '}' || c == ']') && repair_in(r, c == '}' ? '{' : '[') &&
                  repair_closer_fits(r, next + 1);
    if (closer || (s->place == REPAIR_MEMBER && repair_key_at(r, next)) ||
        (s->place == REPAIR_ITEM && repair_quote_at(r, next, &len) == s->open))
      return string_back(r, s->start, k, ',');
    k = next - 1;
  }
  return SIZE_MAX;
}

/* Returns true if the closers in [from, to) close containers that are open, innermost first. */
static bool closes_open(const struct repair *r, size_t from, size_t to) {
  size_t depth = r->depth;
  for (size_t k = from; k < to && depth; k++) {
    if (repair_space(r, k) == 1)
      continue;
    char kind = r->stack[depth - 1];
    if ((r->t[k] == '}') != (kind == '{' || kind == 's'))
      break;
    depth--;
  }
  return depth < r->depth;
}

/* Returns the comma before `end` at which the next item or member starts on the same line, or `end`
 * itself. A comma of prose has a space after it. */
static size_t lost_before_comma(struct repair *r, const struct repair_reading *s, size_t end) {
  for (size_t k = s->start; k < end; k++) {
    if (r->t[k] != ',')
      continue;
    bool next = s->place == REPAIR_MEMBER && repair_key_at(r, repair_junk(r, k + 1, false));
    if (s->place == REPAIR_ITEM)
      next = k > s->start && !repair_space(r, k + 1);
    if (next)
      return k;
  }
  return end;
}

/* Returns where a string ends that no quote ends: the lost quote stood before a line that starts
 * something new, or before the closers that end the text, or the text itself is cut off. */
static size_t lost_end(struct repair *r, const struct repair_reading *s) {
  size_t line = lost_before_line(r, s);
  if (line != SIZE_MAX) {
    repair_note(r, "missing_quote", line);
    return line;
  }
  size_t cut = string_back(r, s->start, r->n, '`'), first = cut;
  while (first > s->start &&
         (jscan_one_of("}]", r->t[first - 1]) || repair_space(r, first - 1) == 1))
    first--;
  if (!closes_open(r, first, cut)) {
    r->out->truncated = true;
    repair_note(r, "truncated", r->n);
    return r->n;
  }
  first = string_back(r, s->start, first, ' ');
  if (first > s->start + 1 && r->t[first - 1] == '+' && repair_space(r, first - 2) == 1)
    first -= 2; /* the operator of a concatenation that has no right side */
  first = lost_before_comma(r, s, first);
  repair_note(r, "missing_quote", first);
  return first;
}

/* Returns the length of "" or """ as a delimiter at i, 1 if neither is there. */
static size_t quote_run(const struct repair *r, size_t i) {
  size_t k = i;
  while (k < r->n && k - i < 3 && r->t[k] == r->t[i])
    k++;
  if (k - i == 3)
    return 3;
  if (k - i == 2 && k < r->n && (jscan_word_byte(r->t[k]))) {
    for (size_t j = k; j + 1 < r->n && j - k < REPAIR_KEY_MAX && r->t[j] != '\n'; j++)
      if (r->t[j] == r->t[i] && r->t[j + 1] == r->t[i])
        return 2;
  }
  return 1;
}

/* Returns true if the quote at k, the first inside a string, closes something that nothing opened.
 * Inches and such stand after a digit. */
static bool closes_only(const struct repair *r, const struct repair_reading *s, size_t k,
                        size_t len) {
  char before = k > s->start ? r->t[k - 1] : ' ', after = k + len < r->n ? r->t[k + len] : ' ';
  bool digit = str_is_digit(before);
  for (size_t i = s->start, n; i < k; i++)
    if (repair_quote_at(r, i, &n) == QUOTE_CURLY2)
      return false; /* it closes that one */
  if (k == s->start)
    return jscan_one_of(",:]}", after); /* an empty string */
  if (jscan_one_of(" \t\r\n([{<=:,;'\"`", before))
    return false;
  return jscan_one_of(",:;]}", after) || (!digit && repair_space(r, k + len) > 0);
}

/* Notes the quotes that are content. If the first of them can only be a closing quote, the string
 * ended there and what follows was swallowed: better no repair. */
static void note_inner_quotes(struct repair *r, const struct repair_reading *s, size_t end) {
  bool first = true;
  for (size_t k = s->start, len; k < end; k++) {
    if (r->t[k] == '\\') {
      k++;
    } else if (repair_closes(s->open, repair_quote_at(r, k, &len))) {
      repair_note(r, "unescaped_quote", k);
      r->failed = r->failed || (first && s->open == QUOTE_DOUBLE && closes_only(r, s, k, len));
      first = false;
    }
  }
}

/* Returns true if a string without a trustworthy end has swallowed what follows it. Then it holds a
 * closer that it did not open, or, where its quote is lost, a comma and the start of another
 * value. */
static bool repair_swallowed(const char *t, size_t n, bool lost) {
  if (repair_brackets((struct str){t, n}))
    return true;
  for (size_t i = 0; lost && i < n; i++) {
    if (t[i] != ',')
      continue;
    size_t k = i + 1;
    while (k < n && jscan_one_of(" \t\r\n", t[k]))
      k++;
    if (k < n &&
        (jscan_one_of("\"{[", t[k]) || str_is_digit(t[k]) ||
         (t[k] == '-' && k + 1 < n && str_is_digit(t[k + 1])) ||
         (n - k >= 4 && (memcmp(t + k, LIT("true")) == 0 || memcmp(t + k, LIT("null")) == 0)) ||
         (n - k >= 5 && memcmp(t + k, LIT("false")) == 0)))
      return true;
  }
  return false;
}

/* Reads a string in two or three quotes at r->i, with as many at its end. Returns false if it is
 * none. */
static bool read_run(struct repair *r) {
  size_t run = quote_run(r, r->i);
  if (run < 2)
    return false;
  repair_note(r, "quote_style", r->i);
  for (size_t k = r->i + run; k + run <= r->n; k++)
    if (memcmp(r->t + k, r->t + r->i, run) == 0) {
      repair_decode(r, r->i + run, k);
      repair_spend(r, k - r->i);
      r->i = k + run;
      return true;
    }
  repair_spend(r, r->n - r->i); /* it was looked for in vain */
  return false;
}

/* Looks at the backslash at i: C:\dir\" may be the end of a string after all. */
static void look_at_escape(struct repair *r, struct repair_reading *s, size_t i) {
  size_t len;
  if (i + 2 >= r->n || s->escaped_end != SIZE_MAX ||
      !repair_closes(s->open, repair_quote_at(r, i + 1, &len)))
    return;
  size_t next = repair_junk(r, i + 1 + len, false);
  if (next < r->n && ((r->t[next] == ':' && s->place == REPAIR_KEY) ||
                      (r->t[next] == '}' && repair_closer_fits(r, next + 1))))
    s->escaped_end = i;
}

/* Looks at the quote at i, of `len` bytes, which could close the string. */
static void look_at_quote(struct repair *r, struct repair_reading *s, size_t i, size_t len) {
  size_t next = repair_junk(r, i + len, false), missed = 0;
  enum repair_verdict v;
  if (s->place == REPAIR_KEY)
    v = repair_judge_key(r, s, i, next, &missed);
  else
    v = repair_judge_value(r, s, i, i + len, next, &missed);
  switch (v) {
  case REPAIR_END:
    s->end = i;
    s->after = i + len;
    break;
  case REPAIR_MISSED:
    repair_note(r, "missing_quote", missed);
    s->end = s->after = missed;
    break;
  case REPAIR_PERHAPS:
    s->perhaps = i;
    s->perhaps_after = i + len;
    s->inner_quotes++;
    break;
  case REPAIR_INNER:
    s->inner_quotes++;
    break;
  }
}

/* Looks for the end of the string; s->end stays SIZE_MAX when no quote is surely its end. */
static void find_end(struct repair *r, struct repair_reading *s) {
  size_t i = s->start, len;
  while (i < r->n && s->end == SIZE_MAX && repair_spend(r, 1)) {
    if (r->t[i] == '\\') {
      look_at_escape(r, s, i);
      i += 2;
      continue;
    }
    if (r->t[i] == ':' && s->colon == SIZE_MAX)
      s->colon = i;
    if (r->t[i] == '{' || r->t[i] == '[') {
      size_t next = i + 1;
      while (next < r->n && repair_space(r, next) == 1)
        next++;
      size_t behind = next + (next < r->n && r->t[next] == '"');
      while (behind > next && behind < r->n && repair_space(r, behind) == 1)
        behind++;
      s->inner_brackets += behind > next && behind < r->n && !jscan_one_of(",]}", r->t[behind]);
    } else if ((r->t[i] == '}' || r->t[i] == ']') && s->inner_brackets) {
      s->inner_brackets--;
    }
    enum repair_quote quote = repair_quote_at(r, i, &len);
    if (quote != QUOTE_NONE && repair_closes(s->open, quote)) {
      look_at_quote(r, s, i, len);
      i += len;
    } else {
      i++;
    }
  }
}

/* Settles the end when no quote was surely it. Returns false if it is the backslash before one:
 * then all is read. */
static bool settle_end(struct repair *r, struct repair_reading *s) {
  if (s->perhaps != SIZE_MAX) {
    s->end = s->perhaps;
    s->after = s->perhaps_after;
  } else if (s->escaped_end != SIZE_MAX) {
    repair_note(r, "bad_escape", s->escaped_end);
    repair_decode(r, s->start, s->escaped_end);
    buf_putc(&r->buf, '\\');
    r->i = s->escaped_end + 2;
    return false;
  } else if (s->place == REPAIR_KEY && s->colon != SIZE_MAX) {
    repair_note(r, "missing_quote", s->colon);
    s->end = s->after = s->colon;
  } else {
    s->end = s->after = lost_end(r, s);
  }
  return true;
}

bool repair_string(struct repair *r, enum repair_place place) {
  size_t len;
  buf_clear(&r->buf);
  if (r->t[r->i] == '\\') {
    repair_note(r, "bad_escape", r->i);
    r->i++;
  }
  struct repair_reading s = {.place = place,
                             .open_at = r->i,
                             .colon = SIZE_MAX,
                             .end = SIZE_MAX,
                             .perhaps = SIZE_MAX,
                             .escaped_end = SIZE_MAX};
  s.open = repair_quote_at(r, r->i, &len);
  if (s.open != QUOTE_DOUBLE)
    repair_note(r, "quote_style", r->i);
  if (s.open <= QUOTE_SINGLE && read_run(r))
    return !r->failed;
  s.start = r->i + len;
  find_end(r, &s);
  if (s.end == SIZE_MAX && !settle_end(r, &s))
    return !r->failed;
  if (s.inner_quotes == 1 && repair_closes(s.open, repair_quote_at(r, s.start, &len)) &&
      s.after > s.end) {
    repair_note(r, "extra_quote", s.start); /* ""value": the opening quote stands there twice */
    s.start += len;
    s.inner_quotes = 0;
  }
  if (s.after > s.end && place == REPAIR_KEY) {
    /* A line break before the closing quote of a key is layout. */
    size_t stop = string_back(r, s.start, s.end, ' ');
    if (repair_line_break(r, stop, s.end)) {
      repair_note(r, "control_character", stop);
      s.end = stop;
    }
  }
  if (s.inner_quotes)
    note_inner_quotes(r, &s, s.end);
  bool lost = s.after == s.end && !r->out->truncated;
  if ((s.inner_quotes || lost) && repair_swallowed(r->t + s.start, s.end - s.start, lost))
    r->failed = true;
  repair_decode(r, s.start, s.end);
  r->i = s.after;
  return !r->failed;
}
