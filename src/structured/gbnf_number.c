/* Numbers within bounds, as plain decimals, digit by digit.
 *
 * A decimal that is compared with a bound as text is later compared as a double. Rounding keeps the
 * order, so a text that is not below an included bound is not below it as a double. It may meet an
 * excluded one: there decimals stay within the digits that doubles tell apart. */
#include "structured/gbnf_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct digits_of {
  bool negative;
  bool huge;           /* more digits than are written out */
  int whole, fraction; /* counts of digits; a whole part of at least one */
  char digits[2 * GB_BOUND_DIGITS + 2];
};

static void trim(struct digits_of *d) {
  while (d->fraction && d->digits[d->whole + d->fraction - 1] == '0')
    d->fraction--;
  int zeros = 0;
  while (zeros + 1 < d->whole && d->digits[zeros] == '0')
    zeros++;
  memmove(d->digits, d->digits + zeros, (size_t)(d->whole - zeros + d->fraction));
  d->whole -= zeros;
  if (d->whole == 1 && !d->fraction && d->digits[0] == '0')
    d->negative = false;
}

/* From "-d.dddde-xx". */
static void decimal_of_text(const char *text, struct digits_of *d) {
  char digits[400];
  int n = 0, point = -1;
  const char *p = text;
  *d = (struct digits_of){.negative = *p == '-'};
  for (p += d->negative; *p && *p != 'e'; p++) {
    if (*p == '.')
      point = n;
    else if (n < (int)sizeof digits)
      digits[n++] = *p;
  }
  if (point < 0)
    point = n;
  if (*p == 'e')
    point += atoi(p + 1);
  d->huge = point > GB_BOUND_DIGITS;
  if (d->huge)
    return;
  for (int i = point < 1 ? point - 1 : 0; i < n || i < point; i++) {
    if (i >= point && d->fraction == GB_BOUND_DIGITS)
      break;
    d->digits[d->whole + d->fraction] = i >= 0 && i < n ? digits[i] : '0';
    if (i < point || (point < 1 && i == point - 1))
      d->whole++;
    else
      d->fraction++;
  }
  trim(d);
}

static void decimal_of(const json_t *value, struct digits_of *d) {
  char text[400];
  if (json_is_integer(value)) {
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  } else if (fabs(json_real_value(value)) >= 1e15) {
    snprintf(text, sizeof text, "%.0f", json_real_value(value));
  } else {
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*e", digits - 1, json_real_value(value));
      if (strtod(text, NULL) == json_real_value(value))
        break;
    }
  }
  decimal_of_text(text, d);
}

/* Adds 1 to the magnitude of a whole number, or takes it away. */
static void step(struct digits_of *d, int by) {
  int i = d->whole - 1;
  while (i >= 0 && d->digits[i] == (by > 0 ? '9' : '0')) {
    d->digits[i] = by > 0 ? '0' : '9';
    i--;
  }
  if (i >= 0) {
    d->digits[i] = (char)(d->digits[i] + by);
  } else if (by > 0) {
    memmove(d->digits + 1, d->digits, (size_t)d->whole);
    d->digits[0] = '1';
    d->whole++;
  }
  trim(d);
}

static bool is_zero(const struct digits_of *d) {
  return d->whole == 1 && !d->fraction && d->digits[0] == '0';
}

/* The nearest whole number within a bound. `up`: a minimum. */
static void make_whole(struct digits_of *d, bool up, bool exclusive) {
  bool part = d->fraction > 0;
  d->fraction = 0;
  bool outward = up != d->negative; /* the magnitude grows */
  bool negative = d->negative;
  if (part ? outward : exclusive && outward) {
    step(d, 1);
  } else if (!part && exclusive) {
    if (is_zero(d)) { /* a maximum below 0 */
      d->digits[0] = '1';
      negative = !up;
    } else {
      step(d, -1);
    }
  }
  d->negative = negative && !is_zero(d);
}

struct range {                        /* of magnitudes */
  const struct digits_of *low, *high; /* high NULL: none */
  bool low_out, high_out;             /* excluded */
  bool integral;
  int length;   /* digits before the point */
  int fraction; /* digits behind it at most */
};

static const struct gb_node *digits(struct gb *g, int from, int to) {
  char low = (char)('0' + from), text[] = {'[', low, '-', (char)('0' + to), ']', '\0'};
  return from == to ? gb_literal(g, &low, 1) : gb_class(g, text);
}

static const struct gb_node *some_digits(struct gb *g, int min, int max) {
  return max <= 0 ? &gb_empty
                  : gb_repeat(g, "digits", gb_class(g, "[0-9]"), (uint64_t)(min < 0 ? 0 : min),
                              (uint64_t)max);
}

static int digit_at(const struct digits_of *d, int whole_or_fraction, int i) {
  int n = whole_or_fraction ? d->fraction : d->whole;
  return i < n ? d->digits[(whole_or_fraction ? d->whole : 0) + i] - '0' : 0;
}

static const struct gb_node *fraction_free(struct gb *g, int max) {
  if (max <= 0)
    return &gb_empty;
  return gb_maybe(g, "fraction", gb_seq(g, gb_word(g, "."), some_digits(g, 1, max)));
}

/* May the number end after `at` digits of the fraction, all equal to the bounds so far? */
static bool may_end(const struct range *r, int at, bool on_low, bool on_high) {
  if (on_low && (r->low->fraction > at || r->low_out))
    return false;
  return !on_high || r->high->fraction > at || !r->high_out;
}

static const struct gb_node *fraction(struct gb *g, const struct range *r, int at, bool on_low,
                                      bool on_high) {
  const struct gb_node *end = at > 0 && may_end(r, at, on_low, on_high) ? &gb_empty : &gb_never;
  on_low = on_low && (r->low_out || at < r->low->fraction);
  if (!on_low && !on_high)
    return at ? some_digits(g, 0, r->fraction - at) : some_digits(g, 1, r->fraction);
  int room = r->fraction - at;
  int safe = on_low && r->low_out ? GB_SAFE_DIGITS - r->length - at : room;
  if (room <= 0 || safe <= 0)
    return end;
  bool low_over = on_low && at >= r->low->fraction, high_over = on_high && at >= r->high->fraction;
  if (high_over && !on_low) {
    if (r->high_out)
      return end;
    return gb_repeat(g, "zeros", gb_word(g, "0"), at ? 0 : 1, (uint64_t)room);
  }
  if (low_over && !on_high) /* above it, by whatever little */
    return gb_seq(g, gb_repeat(g, "zeros", gb_word(g, "0"), 0, (uint64_t)(safe - 1)),
                  digits(g, 1, 9), some_digits(g, 0, room - safe));
  int low = on_low ? digit_at(r->low, 1, at) : 0, high = on_high ? digit_at(r->high, 1, at) : 9;
  const struct gb_node *node = end;
  if (on_low && on_high && low == high)
    return gb_alt(g, end, gb_seq(g, digits(g, low, low), fraction(g, r, at + 1, true, true)));
  if (on_low && on_high && low > high)
    return end;
  if (on_low) {
    node = gb_alt(g, node, gb_seq(g, digits(g, low, low), fraction(g, r, at + 1, true, false)));
    low++;
  }
  if (on_high) {
    node = gb_alt(g, node, gb_seq(g, digits(g, high, high), fraction(g, r, at + 1, false, true)));
    high--;
  }
  if (low <= high)
    node = gb_alt(g, node, gb_seq(g, digits(g, low, high), fraction(g, r, at + 1, false, false)));
  return node;
}

static const struct gb_node *after_whole(struct gb *g, const struct range *r, bool on_low,
                                         bool on_high) {
  if (r->integral)
    return &gb_empty;
  if (!on_low && !on_high)
    return fraction_free(g, r->fraction);
  const struct gb_node *plain = may_end(r, 0, on_low, on_high) ? &gb_empty : &gb_never;
  if (r->fraction <= 0)
    return plain;
  return gb_alt(g, plain, gb_seq(g, gb_word(g, "."), fraction(g, r, 0, on_low, on_high)));
}

static const struct gb_node *whole(struct gb *g, const struct range *r, int at, bool on_low,
                                   bool on_high) {
  int left = r->length - at;
  if (!left)
    return after_whole(g, r, on_low, on_high);
  if (!on_low && !on_high && at)
    return gb_seq(g, some_digits(g, left, left), after_whole(g, r, false, false));
  int low = on_low ? digit_at(r->low, 0, at) : !at && r->length > 1;
  int high = on_high ? digit_at(r->high, 0, at) : 9;
  if (on_low && on_high && low == high)
    return gb_seq(g, digits(g, low, low), whole(g, r, at + 1, true, true));
  if (on_low && on_high && low > high)
    return &gb_never;
  const struct gb_node *node = &gb_never;
  if (on_low) {
    node = gb_alt(g, node, gb_seq(g, digits(g, low, low), whole(g, r, at + 1, true, false)));
    low++;
  }
  if (on_high) {
    node = gb_alt(g, node, gb_seq(g, digits(g, high, high), whole(g, r, at + 1, false, true)));
    high--;
  }
  if (low <= high)
    node = gb_alt(g, node, gb_seq(g, digits(g, low, high), whole(g, r, at + 1, false, false)));
  return node;
}

static int fraction_room(const struct range *r, int length) {
  return r->high_out ? GB_SAFE_DIGITS - length : GB_FRACTION_DIGITS;
}

static const struct gb_node *magnitudes(struct gb *g, struct range r) {
  int longest = GB_INTEGER_DIGITS > r.low->whole ? GB_INTEGER_DIGITS : r.low->whole;
  if (r.high && r.high->whole > longest && !r.integral)
    r.high = NULL;
  if (!r.high)
    r.high_out = false;
  else
    longest = r.high->whole;
  const struct gb_node *node = &gb_never;
  for (int length = r.low->whole; node && length <= longest; length++) {
    bool on_low = length == r.low->whole, on_high = r.high && length == r.high->whole;
    int until = length; /* lengths without a bound go together */
    while (!on_low && !on_high && until + 1 <= longest && !(r.high && until + 1 == r.high->whole))
      until++;
    r.length = until;
    r.fraction = fraction_room(&r, until);
    if (!on_low && !on_high)
      node = gb_alt(g, node,
                    gb_seq(g, digits(g, 1, 9), some_digits(g, length - 1, until - 1),
                           after_whole(g, &r, false, false)));
    else
      node = gb_alt(g, node, whole(g, &r, 0, on_low, on_high));
    length = until;
  }
  return node;
}

static bool note_multiples(struct gb *g, const struct gb_shape *shape, bool *integral) {
  for (const struct gb_link *m = shape->multiples; m; m = m->next) {
    *integral = *integral || schema_value_is_integral(m->value);
    if (json_number_value(m->value) != 1 &&
        !gb_note(g, m->entry, "multipleOf", "a grammar cannot divide"))
      return false;
  }
  return true;
}

static const struct gb_node *within(struct gb *g, const struct gb_shape *shape, bool integral) {
  static const struct digits_of zero = {.whole = 1, .digits = "0"};
  static const struct digits_of one = {.whole = 1, .digits = "1"};
  struct digits_of low = {0}, high = {0};
  bool low_out = shape->minimum_exclusive, high_out = shape->maximum_exclusive;
  bool has_low = shape->minimum != NULL, has_high = shape->maximum != NULL;
  if (shape->fractional && integral)
    return &gb_never;
  if (shape->fractional && (has_low || has_high) &&
      !gb_note(g, shape->number_entry, "type",
               "integers within bounds are kept out by the "
               "validator only"))
    return NULL;
  if (shape->fractional && !has_low && !has_high) /* few digits: no rounding to an integer */
    return gb_seq(g, gb_maybe(g, "minus", gb_word(g, "-")),
                  gb_alt(g, gb_word(g, "0"), gb_seq(g, digits(g, 1, 9), some_digits(g, 0, 7))),
                  gb_word(g, "."), some_digits(g, 0, 5), digits(g, 1, 9));
  if (!has_low && !has_high)
    return gb_primitive(g, integral ? "integer" : "number");
  if (has_low)
    decimal_of(shape->minimum, &low);
  if (has_high)
    decimal_of(shape->maximum, &high);
  if ((has_low && low.huge && !low.negative) || (has_high && high.huge && high.negative)) {
    bool noted = gb_note(g, shape->number_entry, has_low && low.huge ? "minimum" : "maximum",
                         "a bound of so many digits is kept by the validator only");
    return noted ? gb_primitive(g, integral ? "integer" : "number") : NULL;
  }
  /* Bounds too small to be written out: above 0, or below it. */
  low_out = low_out || (has_low && is_zero(&low) && json_number_value(shape->minimum) > 0);
  high_out = high_out || (has_high && is_zero(&high) && json_number_value(shape->maximum) < 0);
  has_low = has_low && !low.huge;
  has_high = has_high && !high.huge;
  if (integral && has_low) {
    make_whole(&low, true, low_out);
    low_out = false;
  }
  if (integral && has_high) {
    make_whole(&high, false, high_out);
    high_out = false;
  }
  if (!integral && has_low && !has_high && is_zero(&low) && !low_out)
    return gb_primitive(g, "unsigned");
  const struct gb_node *node = &gb_never;
  if (!has_high || !high.negative) { /* from 0 upwards */
    bool from_low = has_low && !low.negative;
    struct range r = {from_low ? &low : &zero,
                      has_high ? &high : NULL,
                      from_low && low_out,
                      high_out,
                      integral,
                      0,
                      0};
    node = magnitudes(g, r);
  }
  if (!has_low || low.negative) { /* below 0 */
    bool from_high = has_high && high.negative;
    bool past_zero = has_high && is_zero(&high) && high_out;
    struct range r = {from_high  ? &high
                      : integral ? &one
                                 : &zero,
                      has_low ? &low : NULL,
                      from_high ? high_out : past_zero,
                      low_out,
                      integral,
                      0,
                      0};
    node = gb_alt(g, node, gb_seq(g, gb_word(g, "-"), magnitudes(g, r)));
  }
  return node;
}

static int by_value(const void *a, const void *b) {
  return schema_value_compare(*(const json_t *const *)a, *(const json_t *const *)b);
}

/* Between two numbers that are kept out; NULL: no such. */
static struct gb_shape between(const struct gb_shape *shape, const json_t *low,
                               const json_t *high) {
  struct gb_shape s = *shape;
  if (low && (!s.minimum || schema_value_compare(low, s.minimum) >= 0)) {
    s.minimum = low;
    s.minimum_exclusive = true;
  }
  if (high && (!s.maximum || schema_value_compare(high, s.maximum) <= 0)) {
    s.maximum = high;
    s.maximum_exclusive = true;
  }
  return s;
}

const struct gb_node *gb_number(struct gb *g, const struct gb_shape *shape) {
  const json_t *out[GB_NOT_BRANCHES_MAX];
  bool integral = shape->integral;
  size_t n = 0;
  if (!note_multiples(g, shape, &integral))
    return NULL;
  for (const struct gb_link *v = shape->not_values; v; v = v->next) {
    if (!json_is_number(v->value))
      continue;
    if (n < GB_NOT_BRANCHES_MAX)
      out[n++] = v->value;
    else if (!gb_note(g, v->entry, v->keyword,
                      "so many numbers are kept out by the validator only"))
      return NULL;
  }
  if (!n)
    return within(g, shape, integral);
  qsort(out, n, sizeof *out, by_value);
  const struct gb_node *node = &gb_never;
  for (size_t i = 0; node && i <= n; i++) {
    struct gb_shape s = between(shape, i ? out[i - 1] : NULL, i < n ? out[i] : NULL);
    int order = s.minimum && s.maximum ? schema_value_compare(s.minimum, s.maximum) : -1;
    if (order > 0 || (!order && (s.minimum_exclusive || s.maximum_exclusive)))
      continue;
    node = gb_alt(g, node, within(g, &s, integral));
  }
  return node;
}
