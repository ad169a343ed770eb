/* Reads the words of an expression: names, numbers, texts; and says what was found instead. */
#include "expr/node.h"

#include "base/utf8.h"
#include "json/scan.h"

#include <stdarg.h>
#include <stdio.h>

enum { NUMBER_DIGITS_MAX = 15, INTEGER_DIGITS_MAX = 18, EXCERPT_BYTES = 120 };

void *expr_fail(struct expr_parser *p, enum expr_code code, size_t at, const char *format, ...) {
  va_list args;
  p->error->code = code;
  p->error->offset = at < p->n ? at : p->n;
  va_start(args, format);
  (void)vsnprintf(p->error->text, sizeof p->error->text, format, args);
  va_end(args);
  return NULL;
}

struct expr *expr_node(struct expr_parser *p, enum node_kind kind, size_t at) {
  if (++p->nodes > EXPR_NODES_MAX)
    return expr_fail(p, EXPR_LIMIT, p->at,
                     "the expression has more than %d parts: split it into several %s",
                     EXPR_NODES_MAX, p->dialect == EXPR_WHEN ? "rules" : "invariants");
  struct expr *e = arena_alloc(p->arena, sizeof *e);
  e->kind = kind;
  e->dialect = p->dialect;
  e->at = at;
  return e;
}

void expr_skip_space(struct expr_parser *p) {
  while (p->at < p->n && jscan_one_of(" \t\r\n", p->text[p->at]))
    p->at++;
}

bool expr_looking_at(const struct expr_parser *p, const char *word) {
  size_t n = strlen(word);
  return p->n - p->at >= n && memcmp(p->text + p->at, word, n) == 0;
}

bool expr_accept(struct expr_parser *p, const char *word) {
  expr_skip_space(p);
  if (!expr_looking_at(p, word))
    return false;
  p->at += strlen(word);
  return true;
}

bool expr_accept_word(struct expr_parser *p, const char *word) {
  size_t from = p->at;
  if (!expr_accept(p, word) || (p->at < p->n && expr_name_byte(p, p->text[p->at], false))) {
    p->at = from;
    return false;
  }
  return true;
}

bool expr_name_byte(const struct expr_parser *p, char c, bool first) {
  unsigned char u = (unsigned char)c;
  return (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || u == '_' || u >= 0x80 ||
         (!first && ((u >= '0' && u <= '9') || (u == '-' && p->dialect == EXPR_WHEN)));
}

struct str expr_take_name(struct expr_parser *p) {
  size_t from = p->at;
  while (p->at < p->n && expr_name_byte(p, p->text[p->at], p->at == from))
    p->at++;
  return (struct str){p->text + from, p->at - from};
}

/* Returns a piece of text, with a '?' for what is not a whole character or could control a
 * terminal. */
struct excerpt expr_excerpt(const char *text, size_t n) {
  struct excerpt out;
  size_t to = 0;
  for (size_t i = 0; i < n && to < EXCERPT_BYTES;) {
    size_t length = utf8_decode(text + i, n - i, NULL);
    unsigned char c = (unsigned char)text[i];
    bool control = length == 0 || c < 0x20 || c == 0x7f || (c == 0xc2 && (text[i + 1] & 0x60) == 0);
    if (control) {
      out.text[to++] = '?';
    } else {
      memcpy(out.text + to, text + i, length);
      to += length;
    }
    i += length ? length : 1;
  }
  out.text[to] = '\0';
  return out;
}

struct excerpt expr_found(const struct expr_parser *p) {
  size_t n = 0;
  if (p->at >= p->n)
    return (struct excerpt){"the end"};
  while (p->at + n < p->n && n < 20 && !jscan_one_of(" \t\r\n", p->text[p->at + n]))
    n++;
  return expr_excerpt(p->text + p->at, n ? n : 1);
}

/* Parses -?digits(.digits). Up to 15 digits such a decimal is exact as m / 10^k in one rounding,
 * and no locale is asked. */
struct expr *expr_parse_number(struct expr_parser *p) {
  size_t from = p->at, digits = 0, fraction = 0;
  bool negative = p->text[p->at] == '-', point = false;
  json_int_t value = 0;
  double scale = 1;
  if (negative)
    p->at++;
  for (; p->at < p->n; p->at++) {
    char c = p->text[p->at];
    if (c == '.' && !point && digits > 0) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9')
      break;
    if (++digits > (p->dialect == EXPR_WHEN ? NUMBER_DIGITS_MAX : INTEGER_DIGITS_MAX))
      return expr_fail(p, EXPR_SYNTAX, from, "a number has at most %zu digits: shorten it",
                       digits - 1);
    value = value * 10 + (c - '0');
    if (point) {
      fraction++;
      scale *= 10;
    }
  }
  if (digits == 0 || (point && fraction == 0) ||
      (p->at < p->n && expr_name_byte(p, p->text[p->at], true)))
    return expr_fail(p, EXPR_SYNTAX, from, "not a number: write digits, like 3, -1 or 0.5");
  if (point && digits > NUMBER_DIGITS_MAX)
    return expr_fail(p, EXPR_SYNTAX, from,
                     "a number with a point has at most %d digits: shorten it", NUMBER_DIGITS_MAX);
  struct expr *e = expr_node(p, NODE_NUMBER, from);
  if (e == NULL)
    return NULL;
  value = negative ? -value : value;
  e->number = point ? number_real((double)value / scale) : number_integer(value);
  return e;
}

/* --- texts --- */

static int hex_value(const char *p) {
  int value = 0;
  for (int i = 0; i < 4; i++) {
    char c = p[i];
    int digit = -1;
    if (c >= '0' && c <= '9')
      digit = c - '0';
    else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
      digit = (c | 0x20) - 'a' + 10;
    if (digit < 0)
      return -1;
    value = value * 16 + digit;
  }
  return value;
}

/* Reads the escape whose \ is at the cursor, to its last byte. Returns the length of what it stands
 * for, 0 on an error. */
static size_t parse_escape(struct expr_parser *p, char to[4]) {
  static const char from_escape[] = "\"\\'/ntrbf", meaning[] = "\"\\'/\n\t\r\b\f";
  size_t from = p->at;
  char c = from + 1 < p->n ? p->text[from + 1] : '\0';
  const char *at = c ? strchr(from_escape, c) : NULL;
  if (p->dialect == EXPR_WHEN) {
    if (c != '"' && c != '\\')
      return expr_fail(p, EXPR_SYNTAX, from,
                       "only \\\" and \\\\ are escapes in a string: write \\\\ for one \\") != NULL;
  } else if (c == 'u') {
    int unit = p->n - from > 5 ? hex_value(p->text + from + 2) : -1;
    unsigned cp = (unsigned)unit;
    if (unit < 0)
      return expr_fail(p, EXPR_SYNTAX, from, "\\u needs four hexadecimal digits") != NULL;
    p->at += 5;
    struct str rest = {p->text + p->at + 1, p->n - p->at - 1};
    if (rest.n > 5 && str_starts(rest, "\\u") &&
        utf8_join(cp, (uint32_t)hex_value(rest.p + 2), &cp))
      p->at += 6;
    return utf8_put(to, cp);
  }
  if (at == NULL)
    return expr_fail(p, EXPR_SYNTAX, from,
                     "no such escape in a text: write \\\\ for one \\, or r\"...\" for a text "
                     "without escapes") != NULL;
  p->at++;
  to[0] = meaning[at - from_escape];
  return 1;
}

bool expr_parse_string(struct expr_parser *p, struct str *out) {
  bool raw = p->text[p->at] == 'r';
  p->at += raw;
  size_t open = p->at++, n = 0;
  char quote = p->text[open];
  char *to = arena_alloc(p->arena, p->n - open + 1);
  for (; p->at < p->n; p->at++) {
    char c = p->text[p->at];
    if (c == quote) {
      p->at++;
      *out = (struct str){to, n};
      return true;
    }
    if (c == '\\' && !raw) {
      size_t length = parse_escape(p, to + n);
      if (length == 0)
        return false;
      n += length;
    } else {
      to[n++] = c;
    }
  }
  return expr_fail(p, EXPR_SYNTAX, open, "the string has no closing %c: add it", quote) != NULL;
}

/* --- near names --- */

const char *expr_nearest(struct str word, const char *const *names) {
  const char *best = NULL;
  size_t best_distance = 0, distance;
  for (; *names; names++)
    if (str_near(word, str_from(*names), &distance) && (best == NULL || distance < best_distance)) {
      best = *names;
      best_distance = distance;
    }
  return best;
}
