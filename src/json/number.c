/* Reads numbers: integers that fit, and the nearest double of all others. */
#include "json/scan.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* These powers of ten are exact: a mantissa below 2^53 times or over one of them is rounded once,
 * so it is right (Clinger 1990). */
static const double pow10_exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum { DIGITS_KEPT = 18 }; /* so many always fit 64 bits */

static bool jscan_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Reads a number by strtod. It reads the locale's decimal point, so the copy gets that one. */
static enum jscan_code slow_real(const char *s, size_t len, json_t **value) {
  struct buf copy = {0};
  for (size_t i = 0; i < len; i++) {
    if (s[i] == '.')
      buf_puts(&copy, localeconv()->decimal_point);
    else
      buf_putc(&copy, s[i]);
  }
  double d = strtod(buf_c(&copy), NULL);
  buf_deinit(&copy);
  if (!isfinite(d))
    return JSCAN_NUMBER_RANGE;
  *value = jscan_made(json_real(d));
  return JSCAN_OK;
}

/* Holds a number taken apart. The mantissa holds the first DIGITS_KEPT digits. */
struct jscan_parts {
  uint64_t mantissa;
  size_t digits;
  int exp10;
  bool minus, real;
};

static size_t read_digits(const char *text, size_t n, size_t i, struct jscan_parts *parts) {
  for (; i < n && jscan_digit(text[i]); i++, parts->digits++)
    if (parts->digits < DIGITS_KEPT) {
      parts->mantissa = parts->mantissa * 10 + (uint64_t)(text[i] - '0');
      parts->exp10 -= parts->real;
    }
  return i;
}

/* Reads an exponent, from after the e. */
static size_t read_exponent(const char *text, size_t n, size_t i, struct jscan_parts *parts) {
  enum { EXPONENT_MAX = 100000 }; /* beyond, more digits change nothing */
  bool minus = i < n && text[i] == '-';
  int e = 0;
  if (i < n && (text[i] == '-' || text[i] == '+'))
    i++;
  for (; i < n && jscan_digit(text[i]); i++)
    if (e < EXPONENT_MAX)
      e = e * 10 + (text[i] - '0');
  parts->exp10 += minus ? -e : e;
  return i;
}

/* Reads the parts of a number. Sets *end to after the number, or to where it fails. */
static enum jscan_code read_parts(const char *text, size_t n, size_t i, struct jscan_parts *parts,
                                  size_t *end) {
  parts->minus = i < n && text[i] == '-';
  size_t first = i + parts->minus;
  *end = first;
  if (first >= n)
    return JSCAN_TRUNCATED;
  if (!jscan_digit(text[first]))
    return JSCAN_SYNTAX;
  i = *end = read_digits(text, n, first, parts);
  if (parts->digits > 1 && text[first] == '0') {
    *end = first + 1;
    return JSCAN_SYNTAX;
  }
  if (i < n && text[i] == '.') {
    parts->real = true;
    i = *end = read_digits(text, n, i + 1, parts);
    if (text[i - 1] == '.')
      return i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
  }
  if (i < n && (text[i] == 'e' || text[i] == 'E')) {
    parts->real = true;
    i = *end = read_exponent(text, n, i + 1, parts);
    if (!jscan_digit(text[i - 1]))
      return i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
  }
  return JSCAN_OK;
}

enum jscan_code jscan_number(const char *text, size_t n, size_t from, json_t **value, size_t *end) {
  struct jscan_parts parts = {0};
  assert(from < n);
  enum jscan_code code = read_parts(text, n, from, &parts, end);
  if (code != JSCAN_OK)
    return code;
  uint64_t m = parts.mantissa;
  if (!parts.real && parts.digits <= DIGITS_KEPT) {
    *value = jscan_made(json_integer(parts.minus ? -(json_int_t)m : (json_int_t)m));
    return JSCAN_OK;
  }
  if (!parts.real && parts.digits == DIGITS_KEPT + 1) {
    uint64_t u = m * 10 + (uint64_t)(text[*end - 1] - '0'); /* below 10^19 < 2^64 */
    uint64_t limit = (uint64_t)INT64_MAX + (parts.minus ? 1 : 0);
    if (u <= limit) {
      *value = jscan_made(json_integer(parts.minus ? (json_int_t)(0 - u) : (json_int_t)u));
      return JSCAN_OK;
    }
  }
  if (parts.real && parts.digits <= DIGITS_KEPT && m < (UINT64_C(1) << 53) && parts.exp10 >= -22 &&
      parts.exp10 <= 22) {
    double d = (double)m;
    if (parts.exp10 < 0)
      d /= pow10_exact[-parts.exp10];
    else
      d *= pow10_exact[parts.exp10];
    *value = jscan_made(json_real(parts.minus ? -d : d));
    return JSCAN_OK;
  }
  code = slow_real(text + from, *end - from, value);
  if (code == JSCAN_NUMBER_RANGE)
    *end = from;
  return code;
}
