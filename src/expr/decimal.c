/* Calculates with the numbers of expressions. */
#include "expr/decimal.h"

#include <assert.h>

typedef unsigned __int128 u128;

enum {
  DIGITS = 34, /* significant digits kept; 10^35 and the sum of two coefficients fit 128 bits */
  EXPONENT_MAX = 6144,
  SHOWN_DIGITS = 17,    /* in a message: what a double needs */
  TOLERANCE_DIGITS = 15 /* one part in 10^15 */
};

static u128 power(unsigned n) { /* ten to the power of n, n <= 38 */
  u128 p = 1;
  while (n--)
    p *= 10;
  return p;
}

static int digit_count(u128 digits) {
  int n = 0;
  for (; digits > UINT64_MAX; digits /= 10)
    n++;
  for (uint64_t low = (uint64_t)digits; low; low /= 10)
    n++;
  return n;
}

struct number number_integer(json_int_t value) {
  return (struct number){.kind = NUMBER_INTEGER, .integer = value, .exact = true};
}

struct number number_real(double value) {
  return (struct number){.kind = NUMBER_REAL, .real = value};
}

struct number number_of_json(const json_t *value) {
  if (json_is_integer(value))
    return number_integer(json_integer_value(value));
  return number_real(json_real_value(value));
}

static struct number decimal(const struct number *a) {
  struct number out = {.kind = NUMBER_DECIMAL, .exact = a->kind == NUMBER_INTEGER};
  if (a->kind == NUMBER_DECIMAL)
    return *a;
  if (a->kind == NUMBER_INTEGER) {
    out.negative = a->integer < 0;
    out.digits = a->integer < 0 ? 0 - (uint64_t)a->integer : (uint64_t)a->integer;
    return out;
  }
  struct decimal written = schema_value_decimal(a->real);
  out.negative = a->real < 0;
  out.digits = written.mantissa;
  out.exponent = written.exponent;
  return out;
}

/* Takes `times` digits away, rounded half to even; true if any was not 0. */
static bool shrink(struct number *a, int times) {
  unsigned last = 0;
  bool below = false; /* something behind `last` */
  if (times > DIGITS + 4) {
    below = a->digits != 0;
    a->exponent += times - (DIGITS + 4);
    times = DIGITS + 4;
  }
  bool lost = below;
  for (; times > 0; times--) {
    below = below || last != 0;
    last = (unsigned)(a->digits % 10);
    lost = lost || last != 0;
    a->digits /= 10;
    a->exponent++;
  }
  if (last > 5 || (last == 5 && (below || a->digits % 2 == 1)))
    a->digits++;
  return lost;
}

static enum number_status decimal_finish(struct number *a) {
  for (int n; (n = digit_count(a->digits)) > DIGITS;) /* rounding up may add a digit */
    if (shrink(a, n - DIGITS))
      a->exact = false;
  if (a->digits == 0 || a->exponent < -EXPONENT_MAX - DIGITS) {
    a->digits = 0;
    a->exponent = 0;
    a->negative = false;
  }
  return a->exponent > EXPONENT_MAX ? NUMBER_RANGE : NUMBER_OK;
}

/* Gives both the same exponent: the larger one is written with more digits as far as they go, then
 * the smaller loses some. */
static void align(struct number *a, struct number *b) {
  struct number *high = a->exponent > b->exponent ? a : b, *low = high == a ? b : a;
  if (high->digits == 0)
    high->exponent = low->exponent;
  if (low->digits == 0)
    low->exponent = high->exponent;
  int free_digits = DIGITS - digit_count(high->digits), gap = high->exponent - low->exponent;
  int up = gap < free_digits ? gap : free_digits;
  high->digits *= power((unsigned)up);
  high->exponent -= up;
  if (gap > up && shrink(low, gap - up))
    low->exact = false;
}

static enum number_status decimal_add(struct number x, struct number y, struct number *out) {
  align(&x, &y);
  *out = x;
  out->exact = x.exact && y.exact;
  if (x.negative == y.negative) {
    out->digits = x.digits + y.digits;
  } else if (x.digits >= y.digits) {
    out->digits = x.digits - y.digits;
  } else {
    out->digits = y.digits - x.digits;
    out->negative = y.negative;
  }
  return decimal_finish(out);
}

enum number_status number_add(const struct number *a, const struct number *b, struct number *out) {
  assert(out != NULL);
  json_int_t sum;
  if (a->kind == NUMBER_INTEGER && b->kind == NUMBER_INTEGER &&
      !__builtin_add_overflow(a->integer, b->integer, &sum)) {
    *out = number_integer(sum);
    return NUMBER_OK;
  }
  return decimal_add(decimal(a), decimal(b), out);
}

enum number_status number_subtract(const struct number *a, const struct number *b,
                                   struct number *out) {
  struct number minus = number_negate(b);
  return number_add(a, &minus, out);
}

struct number number_negate(const struct number *a) {
  struct number out = *a;
  if (a->kind == NUMBER_REAL) {
    out.real = -a->real;
  } else if (a->kind == NUMBER_INTEGER && a->integer != INT64_MIN) {
    out.integer = -a->integer;
  } else {
    out = decimal(a);
    out.negative = !out.negative && out.digits != 0;
  }
  return out;
}

struct number number_magnitude(const struct number *a) {
  bool negative = a->negative;
  if (a->kind == NUMBER_INTEGER)
    negative = a->integer < 0;
  else if (a->kind == NUMBER_REAL)
    negative = a->real < 0;
  return negative ? number_negate(a) : *a;
}

/* Multiplies to 256 bits, the lowest word first. */
static void multiply_wide(u128 a, u128 b, uint64_t out[4]) {
  const uint64_t x[2] = {(uint64_t)a, (uint64_t)(a >> 64)};
  const uint64_t y[2] = {(uint64_t)b, (uint64_t)(b >> 64)};
  memset(out, 0, 4 * sizeof *out);
  for (int i = 0; i < 2; i++) {
    u128 carry = 0;
    for (int j = 0; j < 2; j++) {
      carry += (u128)x[i] * y[j] + out[i + j];
      out[i + j] = (uint64_t)carry;
      carry >>= 64;
    }
    out[i + 2] = (uint64_t)carry;
  }
}

static unsigned divide_wide_by_ten(uint64_t n[4]) {
  u128 rest = 0;
  for (int i = 3; i >= 0; i--) {
    u128 part = rest << 64 | n[i];
    n[i] = (uint64_t)(part / 10);
    rest = part % 10;
  }
  return (unsigned)rest;
}

/* Something is lost behind the digits, which number more than are kept: the last of them tells it,
 * so that the result is rounded once. */
static void mark_lost(struct number *a) {
  a->exact = false;
  if (a->digits % 10 == 0 || a->digits % 10 == 5)
    a->digits++;
}

enum number_status number_multiply(const struct number *a, const struct number *b,
                                   struct number *out) {
  json_int_t product;
  if (a->kind == NUMBER_INTEGER && b->kind == NUMBER_INTEGER &&
      !__builtin_mul_overflow(a->integer, b->integer, &product)) {
    *out = number_integer(product);
    return NUMBER_OK;
  }
  struct number x = decimal(a), y = decimal(b);
  uint64_t wide[4];
  bool sticky = false;
  multiply_wide(x.digits, y.digits, wide);
  *out = x;
  out->negative = x.negative != y.negative;
  out->exponent = x.exponent + y.exponent;
  out->exact = x.exact && y.exact;
  /* The result keeps up to 36 digits. */
  while (wide[3] || wide[2] || ((u128)wide[1] << 64 | wide[0]) >= power(DIGITS + 2)) {
    sticky = divide_wide_by_ten(wide) != 0 || sticky;
    out->exponent++;
  }
  out->digits = (u128)wide[1] << 64 | wide[0];
  if (sticky)
    mark_lost(out);
  return decimal_finish(out);
}

enum number_status number_divide(const struct number *a, const struct number *b,
                                 struct number *out) {
  assert(out != NULL);
  struct number x = decimal(a), y = decimal(b);
  if (y.digits == 0)
    return NUMBER_BY_ZERO;
  *out = x;
  out->negative = x.negative != y.negative;
  out->exponent = x.exponent - y.exponent;
  out->exact = x.exact && y.exact;
  out->digits = x.digits / y.digits;
  u128 rest = x.digits % y.digits;
  while (rest != 0 && out->digits < power(DIGITS + 1)) { /* one digit more, for rounding */
    out->digits = out->digits * 10 + rest * 10 / y.digits;
    rest = rest * 10 % y.digits;
    out->exponent--;
  }
  if (rest != 0)
    mark_lost(out);
  return decimal_finish(out);
}

enum number_status number_remainder(const struct number *a, const struct number *b,
                                    struct number *out) {
  if (a->kind == NUMBER_INTEGER && b->kind == NUMBER_INTEGER && b->integer != 0) {
    *out = number_integer(b->integer == -1 ? 0 : a->integer % b->integer);
    return NUMBER_OK;
  }
  struct number x = decimal(a), y = decimal(b);
  if (y.digits == 0)
    return NUMBER_BY_ZERO;
  int shift = x.exponent - y.exponent;
  *out = x;
  out->exact = x.exact && y.exact;
  if (shift >= 0) {
    out->digits = x.digits % y.digits;
    for (; shift > 0 && out->digits; shift--)
      out->digits = out->digits * 10 % y.digits;
    out->exponent = y.exponent;
  } else if (digit_count(y.digits) - shift <= 38) {
    out->digits = x.digits % (y.digits * power((unsigned)-shift));
  } /* else the divisor is the larger one: the remainder is all of x */
  return decimal_finish(out);
}

struct number number_round(const struct number *a, int places, enum number_rounding how) {
  struct number out = decimal(a);
  int drop = -places - out.exponent;
  if (a->kind == NUMBER_INTEGER && places >= 0)
    return *a;
  if (drop <= 0 || out.digits == 0)
    return out;
  u128 whole = drop <= 38 ? out.digits / power((unsigned)drop) : 0;
  u128 rest = drop <= 38 ? out.digits - whole * power((unsigned)drop) : out.digits;
  bool half = drop <= 37 && rest >= power((unsigned)drop) / 2;
  bool away = how == ROUND_HALF_AWAY ? half : rest != 0 && out.negative == (how == ROUND_DOWN);
  out.digits = whole + away;
  out.exponent += drop;
  (void)decimal_finish(&out);
  return out;
}

/* --- comparing --- */

static int compare_magnitudes(struct number x, struct number y) {
  if (x.digits == 0 || y.digits == 0)
    return (x.digits != 0) - (y.digits != 0);
  int places = digit_count(x.digits) + x.exponent - digit_count(y.digits) - y.exponent;
  if (places != 0)
    return places < 0 ? -1 : 1;
  align(&x, &y); /* both begin at the same place, so nothing is lost */
  return (x.digits > y.digits) - (x.digits < y.digits);
}

int number_compare(const struct number *a, const struct number *b) {
  if (a->kind != NUMBER_DECIMAL && b->kind != NUMBER_DECIMAL) {
    if (a->kind == NUMBER_INTEGER && b->kind == NUMBER_INTEGER)
      return (a->integer > b->integer) - (a->integer < b->integer);
    if (a->kind == NUMBER_INTEGER)
      return schema_value_compare_mixed(a->integer, b->real);
    if (b->kind == NUMBER_INTEGER)
      return -schema_value_compare_mixed(b->integer, a->real);
    return (a->real > b->real) - (a->real < b->real);
  }
  struct number x = decimal(a), y = decimal(b), minus = number_negate(&y), gap;
  int order = x.negative ? compare_magnitudes(y, x) : compare_magnitudes(x, y);
  if (x.negative != y.negative)
    order = x.negative ? -1 : 1;
  if (order == 0 || (x.exact && y.exact) || decimal_add(x, minus, &gap) != NUMBER_OK)
    return order;
  gap.exponent += TOLERANCE_DIGITS;
  const struct number *larger = compare_magnitudes(x, y) > 0 ? &x : &y;
  return compare_magnitudes(gap, *larger) > 0 ? order : 0;
}

/* --- words --- */

void number_text(const struct number *a, struct buf *out) {
  struct number n = decimal(a);
  char digits[DIGITS + 6];
  int count = digit_count(n.digits), at = (int)sizeof digits;
  if (a->kind == NUMBER_INTEGER) {
    buf_printf(out, "%" JSON_INTEGER_FORMAT, a->integer);
    return;
  }
  if (count > SHOWN_DIGITS)
    (void)shrink(&n, count - SHOWN_DIGITS);
  for (; n.digits && n.digits % 10 == 0; n.digits /= 10)
    n.exponent++;
  for (u128 left = n.digits; left; left /= 10)
    digits[--at] = (char)('0' + (int)(left % 10));
  count = (int)sizeof digits - at;
  int point = count + n.exponent; /* digits before the point */
  if (n.negative)
    buf_puts(out, "-");
  if (count == 0) {
    buf_puts(out, "0");
  } else if (point > 21 || point < -6) {
    buf_append(out, digits + at, 1);
    if (count > 1) {
      buf_puts(out, ".");
      buf_append(out, digits + at + 1, (size_t)count - 1);
    }
    buf_printf(out, "e%+d", point - 1);
  } else if (point <= 0) {
    buf_puts(out, "0.");
    for (; point < 0; point++)
      buf_puts(out, "0");
    buf_append(out, digits + at, (size_t)count);
  } else {
    buf_append(out, digits + at, (size_t)(count < point ? count : point));
    for (int i = count; i < point; i++)
      buf_puts(out, "0");
    if (count > point) {
      buf_puts(out, ".");
      buf_append(out, digits + at + point, (size_t)(count - point));
    }
  }
}
