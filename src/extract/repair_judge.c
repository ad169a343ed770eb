/* Judges whether a quote inside a string is its end. */
#include "extract/repair_internal.h"

#include <string.h>

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
bool repair_line_break(const struct repair *r, size_t i, size_t j) {
  return j > i && memchr(r->t + i, '\n', j - i) != NULL;
}

static bool starts_value(const struct repair *r, size_t i) {
  size_t len;
  char c = r->t[i];
  return repair_quote_at(r, i, &len) != QUOTE_NONE || c == '{' || c == '[' || c == '-' ||
         (c >= '0' && c <= '9');
}

static bool literal_at(const struct repair *r, size_t i) {
  static const char *const words[] = {"true", "false", "null", "True", "False", "None"};
  for (size_t w = 0; w < 6; w++) {
    size_t len = strlen(words[w]);
    if (r->n - i >= len && memcmp(r->t + i, words[w], len) == 0 &&
        (i + len == r->n || !repair_word_byte(r->t[i + len])))
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
  while (k < end && (repair_word_byte(r->t[k]) || r->t[k] == ' ' || r->t[k] == '.'))
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
  while (k > start && repair_word_byte(r->t[k - 1]))
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

enum repair_verdict repair_judge_key(struct repair *r, struct repair_reading *s, size_t q,
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
bool repair_closer_fits(struct repair *r, size_t u) {
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
  bool digit = next > after && c >= '0' && c <= '9';
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

enum repair_verdict repair_judge_value(struct repair *r, struct repair_reading *s, size_t q,
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
      return REPAIR_INNER;
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
