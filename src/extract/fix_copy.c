/* Removes from a text what covers all of it, and remembers where each byte came from. */
#include "extract/fix_copy.h"

#include "base/log.h"
#include "base/utf8.h"
#include "json/scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void fix_copy_deinit(struct fix_copy *c) {
  buf_deinit(&c->text);
  free(c->at);
  *c = (struct fix_copy){0};
}

/* Puts bytes that stand for what is at `at` in the text; n may be 0, for the end. */
static void copy_put(struct fix_copy *c, const char *p, size_t n, size_t at) {
  if (c->room < c->text.n + n + 1) {
    c->room = c->text.n + n + 1 + (c->text.n + n) / 2;
    c->at = xrealloc(c->at, c->room * sizeof *c->at);
  }
  for (size_t i = 0; i < n; i++)
    c->at[c->text.n + i] = (uint32_t)at;
  buf_append(&c->text, p, n);
  c->at[c->text.n] = (uint32_t)at + 1;
}

static void copy_end(struct fix_copy *c, size_t limit) {
  copy_put(c, "", 0, limit);
  c->at[c->text.n] = (uint32_t)limit;
}

static bool copy_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Returns the byte that \n, \t or \r at text[i] stands for, else NUL. */
static char line_escape(const char *text, size_t i, size_t limit) {
  static const char table[] = "n\nt\tr\r";
  if (i + 1 >= limit || text[i] != '\\' || !jscan_one_of("ntr", text[i + 1]))
    return '\0';
  return strchr(table, text[i + 1])[1];
}

bool fix_copy_unescaped(struct fix_copy *c, const char *text, size_t from, size_t limit) {
  assert(from < limit);
  const char *quote = memchr(text + from, '"', limit - from);
  size_t i = quote ? (size_t)(quote - text) : from;
  if (i < from + 2 || text[i - 1] != '\\')
    return false;
  size_t before = i - 1;
  while (before > from && (copy_blank(text[before - 1]) ||
                           (before > from + 1 && line_escape(text, before - 2, limit) != '\0')))
    before -= copy_blank(text[before - 1]) ? 1 : 2;
  if (before == from || !jscan_one_of("[{,:", text[before - 1]))
    return false;
  for (i = from; i < limit; i++) {
    char line = line_escape(text, i, limit);
    if (line != '\0') {
      copy_put(c, &line, 1, i++);
    } else if (text[i] == '\\' && i + 1 < limit && jscan_one_of("\"\\/", text[i + 1])) {
      copy_put(c, text + i + 1, 1, i);
      i++;
    } else {
      copy_put(c, text + i, 1, i);
    }
  }
  copy_end(c, limit);
  return true;
}

bool fix_copy_unquoted(struct fix_copy *c, const char *text, size_t from, size_t limit) {
  size_t line = from;
  while (line > 0 && text[line - 1] != '\n')
    line--;
  while (line < from && copy_blank(text[line]))
    line++;
  if (text[line] != '>')
    return false;
  for (size_t i = from; i < limit;) {
    copy_put(c, text + i, 1, i);
    if (text[i++] != '\n')
      continue;
    size_t mark = i;
    while (mark < limit && copy_blank(text[mark]))
      mark++;
    if (mark < limit && text[mark] == '>')
      i = mark + 1;
  }
  copy_end(c, limit);
  return true;
}

/* --- HTML entities --- */

enum { ENTITY_BYTES = 10 };

/* Reads the entity at text[i]: its character goes to `out`, with the length of both. Returns false
 * if there is none. */
static bool entity_at(const char *text, size_t i, size_t limit, char out[UTF8_BYTES_MAX],
                      size_t *out_n, size_t *length) {
  static const struct {
    const char *name;
    char c;
  } names[] = {{"quot", '"'}, {"apos", '\''}, {"amp", '&'}, {"lt", '<'}, {"gt", '>'}};
  char word[ENTITY_BYTES + 1] = "";
  size_t n = 0;
  if (text[i] != '&')
    return false;
  while (i + 1 + n < limit && n < ENTITY_BYTES && text[i + 1 + n] != ';') {
    word[n] = text[i + 1 + n];
    n++;
  }
  if (n == 0 || i + 1 + n >= limit || text[i + 1 + n] != ';')
    return false;
  *length = n + 2;
  *out_n = 1;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (strcmp(names[k].name, word) == 0) {
      out[0] = names[k].c;
      return true;
    }
  if (word[0] != '#')
    return false;
  bool hex = word[1] == 'x' || word[1] == 'X';
  const char *digits = word + (hex ? 2 : 1);
  if (*digits == '\0' || digits[strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789")])
    return false;
  unsigned long cp = strtoul(digits, NULL, hex ? 16 : 10);
  if (cp == 0 || cp > UTF8_LAST)
    return false;
  *out_n = utf8_put(out, (uint32_t)cp);
  return true;
}

bool fix_copy_entities(struct fix_copy *c, const char *text, size_t from, size_t limit) {
  char out[UTF8_BYTES_MAX];
  size_t i = from, n, length;
  assert(from < limit);
  while (i < limit && !jscan_one_of("\"&", text[i]))
    i++;
  size_t before = i;
  while (before > from && copy_blank(text[before - 1]))
    before--;
  if (i >= limit || before == from || !jscan_one_of("[{,:", text[before - 1]) ||
      !entity_at(text, i, limit, out, &n, &length) || n != 1 || !jscan_one_of("\"'", out[0]))
    return false;
  for (i = from; i < limit;) {
    if (entity_at(text, i, limit, out, &n, &length)) {
      copy_put(c, out, n, i);
      i += length;
    } else {
      copy_put(c, text + i, 1, i);
      i++;
    }
  }
  copy_end(c, limit);
  return true;
}

/* --- punctuation --- */

/* Returns the ASCII punctuation that the bytes at text[i] were meant to be, NUL for none. */
static char foreign_mark(const char *text, size_t i, size_t limit, size_t *length) {
  static const struct {
    const char *bytes;
    char c;
  } marks[] = {{"\xEF\xBC\x9A", ':'}, {"\xEF\xBC\x8C", ','},
               {"\xEF\xBC\x9B", ','}, {"\xE3\x80\x81", ','},
               {"\xEF\xBD\x9B", '{'}, {"\xEF\xBD\x9D", '}'},
               {"\xEF\xBC\xBB", '['}, {"\xEF\xBC\xBD", ']'},
               {"\xEF\xBC\x82", '"'}, {";", ','}};
  if (!jscan_one_of(";\\\xEF\xE3", text[i]))
    return '\0';
  for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
    *length = strlen(marks[k].bytes);
    if (limit - i >= *length && memcmp(text + i, marks[k].bytes, *length) == 0)
      return marks[k].c;
  }
  *length = 2;
  return line_escape(text, i, limit) != '\0' ? ' ' : '\0';
}

static bool is_curly(const char *text, size_t i, size_t limit) {
  return limit - i >= 3 && memcmp(text + i, LIT("\xE2\x80")) == 0 &&
         (unsigned char)text[i + 2] >= 0x98 && (unsigned char)text[i + 2] <= 0x9F;
}

/* Returns the offset after the string that opens at text[i], the limit if nothing closes it. */
static size_t behind_string(const char *text, size_t i, size_t limit) {
  bool curly = is_curly(text, i, limit);
  char open = text[i];
  for (i += curly ? 3 : 1; i < limit; i++) {
    if (text[i] == '\\')
      i++;
    else if (curly && is_curly(text, i, limit))
      return i + 3;
    else if (!curly && text[i] == open)
      return i + 1;
  }
  return limit;
}

bool fix_copy_punctuation(struct fix_copy *c, const char *text, size_t from, size_t limit) {
  size_t changes = 0, depth = 0, first = from, length;
  assert(from < limit);
  while (first < limit && foreign_mark(text, first, limit, &length) == '\0')
    first++;
  if (first == limit)
    return false;
  for (size_t i = from; i < limit;) {
    if (text[i] == '"' || text[i] == '\'' || is_curly(text, i, limit)) {
      for (size_t end = behind_string(text, i, limit); i < end; i++)
        copy_put(c, text + i, 1, i);
      continue;
    }
    char mark = foreign_mark(text, i, limit, &length);
    if (mark != '\0') {
      changes++;
      copy_put(c, &mark, 1, i);
    } else {
      mark = text[i];
      length = 1;
      copy_put(c, &mark, 1, i);
    }
    i += length;
    depth += mark == '{' || mark == '[';
    if ((mark == '}' || mark == ']') && (depth == 0 || --depth == 0)) {
      copy_end(c, i); /* another text follows */
      return changes > 0;
    }
  }
  copy_end(c, limit);
  return changes > 0;
}
