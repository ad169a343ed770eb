/* Looks ahead: space, comments, quotes and keys. */
#include "extract/repair_internal.h"

#include <string.h>

/* Returns the length of the white space at i: JSON's own, and what word processors and web pages
 * put in its place. */
size_t repair_space(const struct repair *r, size_t i) {
  if (i >= r->n)
    return 0;
  const unsigned char *s = (const unsigned char *)r->t + i;
  size_t left = r->n - i;
  if (s[0] == ' ' || (s[0] >= '\t' && s[0] <= '\r'))
    return 1;
  if (s[0] < 0xC2 || left < 2)
    return 0;
  if (s[0] == 0xC2 && (s[1] == 0xA0 || s[1] == 0x85))
    return 2;
  if (left < 3)
    return 0;
  if (s[0] == 0xE2 && s[1] == 0x80 &&
      (s[2] <= 0x8D || s[2] == 0xA8 || s[2] == 0xA9 || s[2] == 0xAF))
    return 3; /* U+2000 to U+200D, line and paragraph separators, narrow no-break space */
  if ((s[0] == 0xE2 && s[1] == 0x81 && (s[2] == 0x9F || s[2] == 0xA0)) ||
      (s[0] == 0xE3 && s[1] == 0x80 && s[2] == 0x80) ||
      (s[0] == 0xEF && s[1] == 0xBB && s[2] == 0xBF))
    return 3;
  return 0;
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
  *len = 1;
  if (i >= r->n)
    return QUOTE_NONE;
  const unsigned char *s = (const unsigned char *)r->t + i;
  switch (s[0]) {
  case '"':
    return QUOTE_DOUBLE;
  case '\'':
    return QUOTE_SINGLE;
  case '`':
    return QUOTE_TICK;
  case 0xC2:
    *len = 2;
    if (r->n - i < 2)
      return QUOTE_NONE;
    if (s[1] == 0xAB || s[1] == 0xBB)
      return QUOTE_CURLY2;
    return s[1] == 0xB4 ? QUOTE_CURLY1 : QUOTE_NONE;
  case 0xE2:
    *len = 3;
    if (r->n - i < 3 || s[1] != 0x80)
      return QUOTE_NONE;
    if (s[2] >= 0x98 && s[2] <= 0x9B)
      return QUOTE_CURLY1;
    return s[2] >= 0x9C && s[2] <= 0x9F ? QUOTE_CURLY2 : QUOTE_NONE;
  case 0xEF:
    *len = 3;
    return r->n - i >= 3 && s[1] == 0xBC && s[2] == 0x82 ? QUOTE_CURLY2 : QUOTE_NONE;
  default:
    return QUOTE_NONE;
  }
}

bool repair_closes(enum repair_quote open, enum repair_quote close) {
  switch (open) {
  case QUOTE_NONE:
    return false;
  case QUOTE_DOUBLE:
    return close == QUOTE_DOUBLE;
  case QUOTE_SINGLE:
    return close == QUOTE_SINGLE;
  case QUOTE_TICK:
    return close == QUOTE_TICK || close == QUOTE_SINGLE;
  case QUOTE_CURLY2:
    return close == QUOTE_CURLY2 || close == QUOTE_DOUBLE;
  case QUOTE_CURLY1:
    return close == QUOTE_CURLY1 || close == QUOTE_SINGLE || close == QUOTE_TICK;
  }
  return false;
}

bool repair_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '-' || (c & 0x80);
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
    while (k < end && (repair_word_byte(r->t[k]) || r->t[k] == '.'))
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
