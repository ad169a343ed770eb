/* Looks at what stands around a bracket: is it prose, or may it open a value? */
#include "extract/internal.h"

#include <assert.h>
#include <string.h>

bool extract_line_start(const struct extract_pass *p, size_t i) {
  while (i > 0 && (p->text[i - 1] == ' ' || p->text[i - 1] == '\t'))
    i--;
  return i <= p->trim_start || p->text[i - 1] == '\n' || p->text[i - 1] == '\r' ||
         p->text[i - 1] == '>';
}

size_t extract_comment_end(const char *text, size_t n, size_t i) {
  const char *end;
  assert(i + 1 < n);
  if (text[i + 1] == '/')
    end = memchr(text + i, '\n', n - i);
  else if ((end = memmem(text + i + 2, n - i - 2, LIT("*/"))) != NULL)
    end += 2;
  return end ? (size_t)(end - text) : n;
}

/* Returns the offset after white space, comments, and line breaks written as \n. */
static size_t look_past(const char *text, size_t end, size_t i) {
  while (i < end) {
    if (text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r'))
      i++;
    else if (i + 1 < end && text[i] == '\\' && jscan_one_of("nrt", text[i + 1]))
      i += 2;
    else if (text[i] == '#')
      while (i < end && text[i] != '\n')
        i++;
    else if (i + 1 < end && text[i] == '/' && jscan_one_of("/*", text[i + 1]))
      i = extract_comment_end(text, end, i);
    else
      return i;
  }
  return end;
}

/* Returns the length of the quotation mark at i, in all the ways in which it comes out wrong; 0 for
 * none. */
static size_t look_quote(const char *text, size_t end, size_t i) {
  static const char *const marks[] = {"\"",       "'",        "`",           "\\\"",  "\xC2\xB4",
                                      "\xC2\xAB", "\xC2\xBB", "&quot;",      "&#34;", "&#x22;",
                                      "&apos;",   "&#39;",    "\xEF\xBC\x82"};
  unsigned char first = (unsigned char)text[i];
  if (first < '"' || (first > '\'' && first < '\\') || (first > '`' && first < 0xC2))
    return 0; /* most text is none of these */
  for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
    size_t n = strlen(marks[k]);
    if (end - i >= n && memcmp(text + i, marks[k], n) == 0)
      return n;
  }
  bool curly = end - i >= 3 && memcmp(text + i, LIT("\xE2\x80")) == 0 &&
               (unsigned char)text[i + 2] >= 0x98 && (unsigned char)text[i + 2] <= 0x9F;
  return curly ? 3 : 0;
}

/* Returns true if a brace opens something like an object although the strict scan refused its first
 * key: {step: 1, {'a': 1, {“a”: 1, {"a" {. Looks at no more than LOOK_BYTES. */
bool extract_loose_member(const char *text, size_t n, size_t i) {
  enum { LOOK_BYTES = 256 };
  size_t end = n - i > LOOK_BYTES ? i + LOOK_BYTES : n;
  i = look_past(text, end, i + 1);
  if (i >= end)
    return false;
  size_t k = i, quote = look_quote(text, end, i);
  if (quote) {
    k += quote;
    while (k < end && look_quote(text, end, k) == 0 && !jscan_one_of("\n{}", text[k]))
      k++;
    if (k >= end || look_quote(text, end, k) == 0)
      return false;
    k += look_quote(text, end, k);
  } else {
    while (k < end &&
           ((text[k] >= 'a' && text[k] <= 'z') || (text[k] >= 'A' && text[k] <= 'Z') ||
            (text[k] >= '0' && text[k] <= '9') || jscan_one_of("_$-\"", text[k]) ||
            (text[k] == '\\' && k + 1 < end && text[k + 1] == '_') ||
            ((text[k] & 0x80) && !(end - k >= 2 && memcmp(text + k, LIT("\xEF\xBC")) == 0))))
      k++;
    if (k == i)
      return false;
  }
  k = look_past(text, end, k);
  if (k + 1 >= end)
    return false;
  if (text[k] == ':')
    return text[k + 1] != ':';
  if (end - k >= 3 && memcmp(text + k, LIT("\xEF\xBC\x9A")) == 0) /* full-width */
    return true;
  if (quote == 0)
    return false;
  return jscan_one_of("{[=-0123456789", text[k]) ||
         (end - k > 5 &&
          (memcmp(text + k, LIT("true")) == 0 || memcmp(text + k, LIT("false")) == 0 ||
           memcmp(text + k, LIT("null")) == 0));
}

/* Returns true if a string or a container follows the bracket. */
bool extract_item_next(const struct extract_pass *p, size_t i) {
  for (i++; i < p->n && (p->text[i] == ' ' || p->text[i] == '\n'); i++)
    ;
  return i < p->n && (p->text[i] == '"' || p->text[i] == '{' || p->text[i] == '[');
}

/* Returns true for the box of "- [ ] to do". */
bool extract_checkbox(const struct extract_pass *p, size_t i, size_t end) {
  return end - i == 3 && p->text[i] == '[' && p->text[i + 1] == ' ' && i >= 2 &&
         p->text[i - 1] == ' ' && jscan_one_of("-*+.)", p->text[i - 2]) && end < p->n &&
         p->text[end] == ' ';
}

/* Returns true if only words stand between the failure of a value without end and the bracket at i:
 * the value was given up in mid-air, and what starts at i is no part of it. */
bool extract_prose_between(const struct extract_pass *p, size_t from, size_t i) {
  bool word = false;
  if (i < from || i - from > 256)
    return false;
  for (size_t k = from; k < i; k++) {
    char c = p->text[k];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
    if (!letter && !(c >= '0' && c <= '9') && !jscan_one_of(" \t\r\n.!?;-", c))
      return false;
    word = word || letter;
  }
  return word;
}

/* Returns true if the next byte alone shows that the bracket at i is prose: [link], {option}, {
 * color: red }. */
bool extract_plainly_prose(const struct extract_pass *p, size_t i) {
  size_t k = i + 1;
  while (k < p->n &&
         (p->text[k] == ' ' || p->text[k] == '\n' || p->text[k] == '\r' || p->text[k] == '\t'))
    k++;
  if (k >= p->n)
    return false;
  char c = p->text[k];
  if (p->text[i] == '{' && (c == '{' || c == '['))
    return !extract_line_start(p, i);
  if (p->text[i] == '{') { /* bare words may still be an object that lost its quotes */
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
      return false;
    while (k < p->n &&
           ((p->text[k] >= 'a' && p->text[k] <= 'z') || (p->text[k] >= 'A' && p->text[k] <= 'Z')))
      k++;
    return k < p->n && p->text[k] == '}' && !extract_line_start(p, i);
  }
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (!letter || extract_line_start(p, i))
    return false;
  if (c != 't' && c != 'f' && c != 'n')
    return true;
  static const char second_of[] = "tr fa nu"; /* true, false, null */
  return k + 1 < p->n && p->text[k + 1] != strchr(second_of, c)[1];
}
