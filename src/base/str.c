/* Compares and parts views of bytes, reads numbers from them, and finds the nearest of some
 * names. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct str str_from(const char *s) {
  return s ? (struct str){s, strlen(s)} : (struct str){"", 0};
}

bool str_eq(struct str a, struct str b) {
  return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_eq_c(struct str a, const char *b) {
  if (a.n == 0 || b == NULL || a.p[0] != b[0]) /* most differ here, in a search through names */
    return a.n == 0 && (b == NULL || b[0] == '\0');
  return str_eq(a, str_from(b));
}

bool str_starts(struct str s, const char *prefix) {
  if (s.n == 0 || s.p[0] != prefix[0])
    return prefix[0] == '\0';
  size_t n = strlen(prefix);
  return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

bool str_ends(struct str s, const char *suffix) {
  size_t n = strlen(suffix);
  return s.n >= n && (n == 0 || memcmp(s.p + s.n - n, suffix, n) == 0);
}

bool str_has(struct str s, const char *part) {
  size_t n = strlen(part);
  return n == 0 || (s.n > 0 && memmem(s.p, s.n, part, n) != NULL);
}

/* Returns the next of some texts that stand one `apart` apart, and moves *list behind it. */
static struct str str_next_of(const char **list, char apart) {
  const char *end = strchrnul(*list, apart);
  struct str one = {*list, (size_t)(end - *list)};
  *list = end + (*end == apart);
  return one;
}

bool str_has_any(struct str s, const char *parts) {
  while (*parts != '\0') {
    struct str part = str_next_of(&parts, '|');
    if (s.n >= part.n && memmem(s.p, s.n, part.p, part.n) != NULL)
      return true;
  }
  return false;
}

bool str_among(struct str word, const char *words) {
  while (*words != '\0') {
    if (str_eq(word, str_next_of(&words, ' ')))
      return true;
  }
  return false;
}

bool str_eq_fold(struct str a, const char *b) {
  if (a.n == 0 || str_lower(a.p[0]) != str_lower(b[0]))
    return a.n == 0 && b[0] == '\0';
  return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

bool str_starts_fold(struct str s, const char *prefix) {
  if (s.n == 0 || str_lower(s.p[0]) != str_lower(prefix[0]))
    return prefix[0] == '\0';
  size_t n = strlen(prefix);
  return s.n >= n && strncasecmp(s.p, prefix, n) == 0;
}

struct str str_trim(struct str s) {
  while (s.n > 0 && str_is_space(s.p[0])) {
    s.p++;
    s.n--;
  }
  while (s.n > 0 && str_is_space(s.p[s.n - 1]))
    s.n--;
  return s;
}

bool str_is_variable(struct str name) {
  for (size_t i = 0; i < name.n; i++) {
    char ch = name.p[i];
    bool letter = (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z') || ch == '_';
    if (!letter && (i == 0 || ch < '0' || ch > '9'))
      return false;
  }
  return name.n > 0;
}

bool str_has_control(struct str s) {
  for (size_t i = 0; i < s.n; i++)
    if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7F)
      return true;
  return false;
}

struct str str_cut(struct str *rest, char at) {
  struct str part = *rest;
  const char *end = rest->n > 0 ? memchr(rest->p, at, rest->n) : NULL;
  if (end == NULL) {
    *rest = (struct str){NULL, 0};
    return part;
  }
  part.n = (size_t)(end - part.p);
  rest->p = end + 1;
  rest->n -= part.n + 1;
  return part;
}

struct str str_next_line(struct str *rest) {
  return str_cut(rest, '\n');
}

bool str_drop(struct str *s, const char *prefix) {
  if (!str_starts(*s, prefix))
    return false;
  s->p += strlen(prefix);
  s->n -= strlen(prefix);
  return true;
}

bool str_to_long(struct str s, long *out) {
  long value = 0;
  bool negative = false;
  if (s.n > 0 && s.p[0] == '-') {
    negative = true;
    s.p++;
    s.n--;
  }
  if (s.n == 0 || s.n > 18)
    return false;
  for (size_t i = 0; i < s.n; i++) {
    if (s.p[i] < '0' || s.p[i] > '9')
      return false;
    value = value * 10 + (s.p[i] - '0');
  }
  *out = negative ? -value : value;
  return true;
}

size_t str_from_number(char out[STR_NUMBER_BYTES], int64_t value) {
  if (value >= 0 && value < 10) { /* most are */
    out[0] = (char)('0' + value);
    out[1] = '\0';
    return 1;
  }
  char digits[STR_NUMBER_BYTES];
  size_t at = sizeof digits - 1;
  uint64_t rest = value < 0 ? 0u - (uint64_t)value : (uint64_t)value;
  digits[at] = '\0';
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (value < 0)
    digits[--at] = '-';
  memcpy(out, digits + at, sizeof digits - at);
  return sizeof digits - 1 - at;
}

/* Returns true if one is the other's beginning: scen and scenario, condition_text and condition. */
static bool begins_like(struct str word, const char *name) {
  enum { MIN = 3 };
  size_t n = strlen(name), shorter = n < word.n ? n : word.n;
  return shorter >= MIN + (n < word.n) && memcmp(word.p, name, shorter) == 0;
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_near(struct str word, struct str name, size_t *distance) {
  enum { MAX = 40 };
  size_t row[MAX + 1];
  if (word.n == 0 || word.n > MAX || name.n > MAX)
    return false;
  for (size_t j = 0; j <= name.n; j++)
    row[j] = j;
  for (size_t i = 1; i <= word.n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= name.n; j++) {
      size_t cost = diagonal + (lower(word.p[i - 1]) != lower(name.p[j - 1]));
      diagonal = row[j];
      if (row[j] + 1 < cost)
        cost = row[j] + 1;
      if (row[j - 1] + 1 < cost)
        cost = row[j - 1] + 1;
      row[j] = cost;
    }
  }
  *distance = row[name.n];
  return row[name.n] <= word.n / 3 + 1 && row[name.n] < name.n; /* not all of it is another one */
}

const char *str_nearest(struct str word, const char *const *names) {
  enum { MAX = 40 };
  const char *best = NULL, *alike = NULL;
  size_t best_distance = 0, distance;
  if (word.n == 0 || word.n > MAX)
    return NULL;
  for (; *names; names++) {
    if (alike == NULL && begins_like(word, *names))
      alike = *names;
    if (!str_near(word, str_from(*names), &distance))
      continue;
    if (best == NULL || distance < best_distance ||
        (distance == best_distance && begins_like(word, *names) && !begins_like(word, best))) {
      best = *names;
      best_distance = distance;
    }
  }
  return best ? best : alike;
}

struct str_hint str_hint(struct str word, const char *const *names) {
  struct str_hint hint = {""};
  const char *near = str_nearest(word, names);
  if (near != NULL)
    print_into(hint.text, sizeof hint.text, ": did you mean \"%s\"?", near);
  return hint;
}

size_t str_span(struct str s, const char *also) {
  size_t n = 0;
  while (n < s.n && s.p[n] != '\0' &&
         (strchr(also, s.p[n]) != NULL || str_is_digit(s.p[n]) || str_is_letter(s.p[n])))
    n++;
  return n;
}

size_t str_count(const char *const *list) {
  size_t n = 0;
  while (list != NULL && list[n] != NULL)
    n++;
  return n;
}

bool str_is_one(struct str word, const char *const *names) {
  return str_index(word, names, str_count(names)) >= 0;
}

int str_index(struct str word, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (str_eq_c(word, names[i]))
      return (int)i;
  return -1;
}

void str_from_real(char out[STR_REAL_BYTES], double value) {
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(out, STR_REAL_BYTES, "%.*g", digits, value);
    if (strtod(out, NULL) == value)
      break;
  }
}

void print_into(char *out, size_t size, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(out, size, fmt, args);
  va_end(args);
}

int str_hex_digit(char c) {
  if (str_is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
