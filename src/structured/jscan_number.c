#include "jscan.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* exact powers of ten: a mantissa below 2^53 times or over one of them rounds once, so it is right
 * (Clinger 1990) */
static const double pow10_exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* strtod reads the locale's decimal point, so the copy gets that one */
static enum jscan_code slow_real(const char *s, size_t len, json_t **value) {
  const char *point = localeconv()->decimal_point;
  size_t point_len = strlen(point);
  if (len > (SIZE_MAX / 2) - point_len)
    return JSCAN_NUMBER_RANGE;
  char small[128];
  char *copy = small;
  if (len + point_len + 1 > sizeof small) {
    copy = jscan_realloc(NULL, len + point_len + 1);
    if (!copy)
      return JSCAN_OUT_OF_MEMORY;
  }
  size_t w = 0;
  for (size_t i = 0; i < len; i++) {
    if (s[i] == '.') {
      memcpy(copy + w, point, point_len);
      w += point_len;
    } else {
      copy[w++] = s[i];
    }
  }
  copy[w] = '\0';
  double d = strtod(copy, NULL);
  if (copy != small)
    jscan_free(copy);
  if (!isfinite(d))
    return JSCAN_NUMBER_RANGE;
  *value = json_real(d);
  return *value ? JSCAN_OK : JSCAN_OUT_OF_MEMORY;
}

enum jscan_code jscan_number(const char *text, size_t n, size_t from, json_t **value, size_t *end) {
  size_t i = from;
  bool minus = text[i] == '-';
  if (minus)
    i++;
  size_t int_start = i;
  uint64_t m = 0;
  size_t digits = 0;
  int exp10 = 0;
  bool real = false;
  *end = i;
  if (i >= n)
    return JSCAN_TRUNCATED;
  if (!is_digit(text[i]))
    return JSCAN_SYNTAX;
  for (; i < n && is_digit(text[i]); i++, digits++)
    if (digits < 18)
      m = m * 10 + (uint64_t)(text[i] - '0');
  *end = i;
  if (digits > 1 && text[int_start] == '0') {
    *end = int_start + 1;
    return JSCAN_SYNTAX;
  }
  if (i < n && text[i] == '.') {
    real = true;
    size_t fraction = ++i;
    for (; i < n && is_digit(text[i]); i++, digits++)
      if (digits < 18) {
        m = m * 10 + (uint64_t)(text[i] - '0');
        exp10--;
      }
    *end = i;
    if (i == fraction)
      return i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
  }
  if (i < n && (text[i] == 'e' || text[i] == 'E')) {
    real = true;
    i++;
    bool exp_minus = i < n && text[i] == '-';
    if (i < n && (text[i] == '-' || text[i] == '+'))
      i++;
    size_t exponent = i;
    int e = 0;
    for (; i < n && is_digit(text[i]); i++)
      if (e < 100000)
        e = e * 10 + (text[i] - '0');
    *end = i;
    if (i == exponent)
      return i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
    exp10 += exp_minus ? -e : e;
  }
  *end = i;
  if (!real) {
    if (digits <= 18) {
      *value = json_integer(minus ? -(json_int_t)m : (json_int_t)m);
      return *value ? JSCAN_OK : JSCAN_OUT_OF_MEMORY;
    }
    if (digits == 19) {
      uint64_t u = m * 10 + (uint64_t)(text[i - 1] - '0'); /* below 10^19 < 2^64 */
      uint64_t limit = (uint64_t)INT64_MAX + (minus ? 1 : 0);
      if (u <= limit) {
        *value = json_integer(minus ? (json_int_t)(0 - u) : (json_int_t)u);
        return *value ? JSCAN_OK : JSCAN_OUT_OF_MEMORY;
      }
    }
  } else if (digits <= 18 && m < (UINT64_C(1) << 53) && exp10 >= -22 && exp10 <= 22) {
    double d = (double)m;
    d = exp10 < 0 ? d / pow10_exact[-exp10] : d * pow10_exact[exp10];
    *value = json_real(minus ? -d : d);
    return *value ? JSCAN_OK : JSCAN_OUT_OF_MEMORY;
  }
  enum jscan_code code = slow_real(text + from, i - from, value);
  if (code == JSCAN_NUMBER_RANGE)
    *end = from;
  return code;
}
