/* Tells where a broken piece of JSON ends, and whether a text holds a key of the answer. */
#include "extract/internal.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { PIECE_KEY_MAX = 128 }; /* the most bytes of a key that are examined */

static bool piece_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t space_back(const char *t, size_t from, size_t i) {
  while (i > from && piece_space(t[i - 1]))
    i--;
  return i;
}

/* Returns the length of the quotation mark that ends at i, straight, curly or an accent; 0 if none
 * does. */
static size_t quote_back(const char *t, size_t from, size_t i) {
  if (i > from && jscan_one_of("\"'`", t[i - 1]))
    return 1;
  if (i >= from + 3 && memcmp(t + i - 3, LIT("\xE2\x80")) == 0 && (unsigned char)t[i - 1] >= 0x98 &&
      (unsigned char)t[i - 1] <= 0x9F)
    return 3;
  return i >= from + 2 && memcmp(t + i - 2, LIT("\xC2\xB4")) == 0 ? 2 : 0;
}

static bool piece_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '-' || (c & 0x80);
}

/* Returns true if the text that ends at i, before a colon, is a key of the answer. Without quotes
 * it is one only after a brace, or after a comma in a piece that is known to be broken. */
static bool key_before(const struct extract_pass *p, size_t from, size_t i, bool in_piece) {
  const char *t = p->text;
  i = space_back(t, from, i);
  size_t quote = quote_back(t, from, i), end = i - quote, start;
  if (quote) {
    if (end > from && t[end - 1] == '\\')
      end--;
    for (start = end; start > from && end - start < PIECE_KEY_MAX; start--)
      if (quote_back(t, from, start))
        break;
    if (!quote_back(t, from, start))
      return false;
  } else {
    for (start = end; start > from && end - start < PIECE_KEY_MAX && piece_word(t[start - 1]);)
      start--;
    size_t before = space_back(t, from, start);
    if (before == from || !(t[before - 1] == '{' || (in_piece && t[before - 1] == ',')))
      return false;
  }
  return end > start && p->opts->check->is_key(p->opts->check->ctx, t + start, end - start);
}

bool extract_key_between(const struct extract_pass *p, size_t from, size_t to, bool in_piece) {
  assert(from <= to && to <= p->n);
  if (p->opts->check == NULL || p->opts->check->is_key == NULL)
    return false;
  for (size_t i = from; i < to; i++) {
    bool wide = (unsigned char)p->text[i] == 0xEF && to - i >= 3 &&
                memcmp(p->text + i, LIT("\xEF\xBC\x9A")) == 0; /* a full-width colon */
    if ((p->text[i] == ':' || p->text[i] == '=' || wide) && key_before(p, from, i, in_piece))
      return true;
  }
  return false;
}

/* Names the ways to count brackets. A broken piece breaks some of the rules that they rest on, so
 * its end is known only where all of them agree. */
enum piece_reading { PIECE_STRINGS_AND_COMMENTS, PIECE_STRINGS, PIECE_PLAIN, PIECE_READINGS };

/* Returns the offset after the string or comment at i, i itself if there is none. */
static size_t piece_opaque(const char *t, size_t n, size_t i, enum piece_reading how) {
  if (t[i] == '"' && how != PIECE_PLAIN) {
    for (i++; i < n && t[i] != '"'; i++)
      if (t[i] == '\\')
        i++;
    return i < n ? i + 1 : n;
  }
  if (how != PIECE_STRINGS_AND_COMMENTS)
    return i;
  if (t[i] == '#' || (t[i] == '/' && i + 1 < n && t[i + 1] == '/')) {
    const char *line = memchr(t + i, '\n', n - i);
    return line ? (size_t)(line - t) : n;
  }
  if (t[i] == '/' && i + 1 < n && t[i + 1] == '*') {
    for (i += 2; i + 1 < n && !(t[i] == '*' && t[i + 1] == '/');)
      i++;
    return i + 1 < n ? i + 2 : n;
  }
  return i;
}

/* Returns the offset after the closer of the bracket at i, SIZE_MAX if the text ends first or a
 * closer is of another kind than its opener. Sets *plain if no string or comment was passed, so
 * that all readings agree. */
static size_t piece_closed(struct extract_pass *p, size_t i, enum piece_reading how, bool *plain) {
  char stack[JSCAN_DEPTH_MAX];
  const char *t = p->text;
  size_t depth = 0, end = SIZE_MAX, from = i;
  size_t n = p->n - i > p->piece_work ? i + p->piece_work : p->n;
  *plain = true;
  while (i < n) {
    size_t after = piece_opaque(t, n, i, how);
    if (after > i) {
      i = after;
      *plain = false;
      continue;
    }
    char c = t[i++];
    if (c == '{' || c == '[') {
      if (depth == JSCAN_DEPTH_MAX)
        break;
      stack[depth++] = c == '{' ? '}' : ']';
    } else if (c == '}' || c == ']') {
      if (stack[--depth] != c)
        break;
      if (depth == 0) {
        end = i;
        break;
      }
    }
  }
  p->piece_work -= i - from;
  return end;
}

/* Returns true if only blanks, a fence or markup follow on the line. */
static bool piece_ends_line(const struct extract_pass *p, size_t i) {
  while (i < p->n && (p->text[i] == ' ' || p->text[i] == '\t' || p->text[i] == '\r'))
    i++;
  return i >= p->n || p->text[i] == '\n' || p->text[i] == '`' || p->text[i] == '~' ||
         p->text[i] == '<';
}

/* Returns true if a word or another value starts at i. */
static bool starts_other(const struct extract_pass *p, size_t i) {
  return i < p->n && (piece_word(p->text[i]) || p->text[i] == '{' || p->text[i] == '[');
}

size_t extract_piece_end(struct extract_pass *p, size_t i, size_t fail) {
  assert(i < p->n && (p->text[i] == '{' || p->text[i] == '['));
  bool plain, ignored;
  size_t end = piece_closed(p, i, PIECE_STRINGS_AND_COMMENTS, &plain);
  for (int how = PIECE_STRINGS; how < PIECE_READINGS && end != SIZE_MAX && !plain; how++)
    if (piece_closed(p, i, (enum piece_reading)how, &ignored) != end)
      end = SIZE_MAX;
  if (end == SIZE_MAX || end < fail)
    return SIZE_MAX;
  bool over = piece_ends_line(p, end);
  if (p->opts->check == NULL || p->opts->check->is_key == NULL) /* any word may be a value */
    over = over || starts_other(p, end + (end < p->n && p->text[end] == ' '));
  return over ? end : SIZE_MAX;
}

bool extract_stray_closer(const struct extract_pass *p, size_t from, size_t to) {
  size_t braces = 0, brackets = 0;
  assert(from <= to && to <= p->n);
  for (size_t i = from; i < to; i++) {
    char c = p->text[i];
    if ((c == '}' && braces == 0) || (c == ']' && brackets == 0))
      return true;
    braces += (c == '{') - (size_t)(c == '}');
    brackets += (c == '[') - (size_t)(c == ']');
  }
  return false;
}
