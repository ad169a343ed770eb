#include "extract_internal.h"

#include <string.h>

bool extract_line_start(const struct extract_pass *p, size_t i) {
  while (i > 0 && (p->text[i - 1] == ' ' || p->text[i - 1] == '\t'))
    i--;
  return i <= p->trim_start || p->text[i - 1] == '\n' || p->text[i - 1] == '\r' ||
         p->text[i - 1] == '>';
}

/* Does a brace open something like an object although the strict scan refused its first key: {step:
 * 1, {'a': 1, {“a”: 1? Looks at no more than 128 bytes. */
bool extract_loose_member(const char *text, size_t n, size_t i) {
  size_t end = n - i > 128 ? i + 128 : n;
  i++;
  while (i < end && jscan_one_of(" \t\r\n", text[i]) && text[i])
    i++;
  if (i >= end)
    return false;
  size_t k = i;
  char c = text[i];
  if (c == '\'' || c == '`') {
    for (k = i + 1; k < end && text[k] != c && text[k] != '\n';)
      k++;
    if (k >= end || text[k] != c)
      return false;
    k++;
  } else {
    while (k < end && ((text[k] >= 'a' && text[k] <= 'z') || (text[k] >= 'A' && text[k] <= 'Z') ||
                       (text[k] >= '0' && text[k] <= '9') || text[k] == '_' || text[k] == '$' ||
                       text[k] == '"' || text[k] == '\\' || (text[k] & 0x80)))
      k++;
    if (k == i)
      return false;
  }
  while (k < end && (text[k] == ' ' || text[k] == '\t'))
    k++;
  return k + 1 < end && text[k] == ':' && text[k + 1] != ':';
}

/* does a string or a container follow the bracket? */
bool extract_item_next(const struct extract_pass *p, size_t i) {
  for (i++; i < p->n && (p->text[i] == ' ' || p->text[i] == '\n'); i++)
    ;
  return i < p->n && (p->text[i] == '"' || p->text[i] == '{' || p->text[i] == '[');
}

/* "- [ ] to do" */
bool extract_checkbox(const struct extract_pass *p, size_t i, size_t end) {
  return end - i == 3 && p->text[i] == '[' && p->text[i + 1] == ' ' && i >= 2 &&
         p->text[i - 1] == ' ' && jscan_one_of("-*+.)", p->text[i - 2]) && end < p->n &&
         p->text[end] == ' ';
}

/* Between the failure of a value without end and the bracket at i stand words and nothing else: the
 * value was given up in mid-air, and what starts at i is not a part of it. */
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

/* Can the bracket at i be told from a value by the next byte alone? [link], {option}, { color: red
 * } */
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
  if (p->text[i] == '{') { /* only words may still be an object that lost its quotes */
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
  return k + 1 < p->n && p->text[k + 1] != (c == 't' ? 'r' : c == 'f' ? 'a' : 'u');
}
