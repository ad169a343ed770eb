/* Makes numbers within bounds, as plain decimals, digit by digit.
 *
 * A decimal that is compared with a bound as text is later compared as a double. Rounding keeps the
 * order, so a text that is not below an included bound is not below it as a double. It may meet an
 * excluded one: there decimals stay within the digits that doubles tell apart. */
#include "gbnf/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  FRACTION_DIGITS = 20, /* behind the point */
  INTEGER_DIGITS = 16,  /* before it: beyond that, doubles and integers differ */
  SAFE_DIGITS = 15,     /* decimals with this many digits are distinct doubles */
  BOUND_DIGITS = 60     /* digits of a bound written out, on either side of the point */
};

struct digits_of {
  bool negative;
  bool huge;           /* more digits than are written out */
  int whole, fraction; /* counts of digits; a whole part of at least one */
  char digits[2 * BOUND_DIGITS + 2];
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

/* Reads digits from "-d.dddde-xx". */
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
    point += (int)strtol(p + 1, NULL, 10);
  d->huge = point > BOUND_DIGITS;
  if (d->huge)
    return;
  for (int i = point < 1 ? point - 1 : 0; i < n || i < point; i++) {
    if (i >= point && d->fraction == BOUND_DIGITS)
      break;
    d->digits[d->whole + d->fraction] = i >= 0 && i < n ? digits[i] : '0';
    if (i < point || (point < 1 && i == point - 1))
      d->whole++;
    else
      d->fraction++;
  }
  trim(d);
}

static void digits_of_value(const json_t *value, struct digits_of *d) {
  char text[400];
  if (json_is_integer(value)) {
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  } else if (fabs(json_real_value(value)) >= 1e15) {
    snprintf(text, sizeof text, "%.0f", json_real_value(value));
  } else {
    str_from_real(text, json_real_value(value));
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

/* Makes the nearest whole number within a bound. `up` says that it is a minimum. */
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

struct magnitudes {                   /* bounds of magnitudes */
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
  if (max <= 0)
    return &gb_empty;
  return gb_repeat(g, "digits", gb_class(g, "[0-9]"), (uint64_t)min, (uint64_t)max);
}

static const struct gb_node *zeros(struct gb *g, int min, int max) {
  if (max <= 0)
    return &gb_empty;
  return gb_repeat(g, "zeros", gb_word(g, "0"), (uint64_t)min, (uint64_t)max);
}

static int whole_digit(const struct digits_of *d, int i) {
  return i < d->whole ? d->digits[i] - '0' : 0;
}

static int fraction_digit(const struct digits_of *d, int i) {
  return i < d->fraction ? d->digits[d->whole + i] - '0' : 0;
}

/* Returns true if the number may end after `at` digits of the fraction, all equal to the bounds so
 * far. */
static bool may_end(const struct magnitudes *r, int at, bool on_low, bool on_high) {
  if (on_low && (r->low->fraction > at || r->low_out))
    return false;
  return !on_high || r->high->fraction > at || !r->high_out;
}

/* Writes the digits from `at` on, which so far are those of the low or the high bound. */
typedef const struct gb_node *digits_fn(struct gb *g, const struct magnitudes *r, int at,
                                        bool on_low, bool on_high);
struct digit_place {
  digits_fn *rest;
  const struct magnitudes *r;
  int at;
  bool on_low, on_high;
};

/* Writes the digit at a place, from low to high, and what may follow each. */
static const struct gb_node *by_digit(struct gb *g, const struct digit_place *p, int low,
                                      int high) {
  const struct gb_node *node = &gb_never;
  if (p->on_low && p->on_high && low == high)
    return gb_seq(g, digits(g, low, low), p->rest(g, p->r, p->at + 1, true, true));
  if (p->on_low && p->on_high && low > high)
    return node;
  if (p->on_low) {
    node =
        gb_alt(g, node, gb_seq(g, digits(g, low, low), p->rest(g, p->r, p->at + 1, true, false)));
    low++;
  }
  if (p->on_high) {
    node =
        gb_alt(g, node, gb_seq(g, digits(g, high, high), p->rest(g, p->r, p->at + 1, false, true)));
    high--;
  }
  if (low <= high)
    node =
        gb_alt(g, node, gb_seq(g, digits(g, low, high), p->rest(g, p->r, p->at + 1, false, false)));
  return node;
}

static const struct gb_node *fraction(struct gb *g, const struct magnitudes *r, int at, bool on_low,
                                      bool on_high) {
  const struct gb_node *end = at > 0 && may_end(r, at, on_low, on_high) ? &gb_empty : &gb_never;
  on_low = on_low && (r->low_out || at < r->low->fraction);
  if (!on_low && !on_high)
    return at ? some_digits(g, 0, r->fraction - at) : some_digits(g, 1, r->fraction);
  int room = r->fraction - at;
  int safe = on_low && r->low_out ? SAFE_DIGITS - r->length - at : room;
  if (room <= 0 || safe <= 0)
    return end;
  bool low_over = on_low && at >= r->low->fraction, high_over = on_high && at >= r->high->fraction;
  if (high_over && !on_low) {
    if (r->high_out)
      return end;
    return zeros(g, at ? 0 : 1, room);
  }
  if (low_over && !on_high) {
    /* Further digits must not all be zeros: above an excluded bound, however little. The first
     * that counts is one of `safe`. Where no more than those may count at all, because an excluded
     * bound lies above too, zeros may still follow. */
    const struct gb_node *some = digits(g, 1, 9);
    if (room > safe)
      return gb_seq(g, zeros(g, 0, safe - 1), some, some_digits(g, 0, room - 1));
    return gb_seq(g, some_digits(g, 0, room - 1), some, zeros(g, 0, room - 1));
  }
  int low = on_low ? fraction_digit(r->low, at) : 0,
      high = on_high ? fraction_digit(r->high, at) : 9;
  const struct digit_place place = {fraction, r, at, on_low, on_high};
  return gb_alt(g, end, by_digit(g, &place, low, high));
}

static const struct gb_node *after_whole(struct gb *g, const struct magnitudes *r, bool on_low,
                                         bool on_high) {
  if (r->integral)
    return &gb_empty;
  if (!on_low && !on_high) {
    if (r->fraction <= 0)
      return &gb_empty;
    return gb_maybe(g, "fraction", gb_seq(g, gb_word(g, "."), some_digits(g, 1, r->fraction)));
  }
  const struct gb_node *plain = may_end(r, 0, on_low, on_high) ? &gb_empty : &gb_never;
  if (r->fraction <= 0)
    return plain;
  return gb_alt(g, plain, gb_seq(g, gb_word(g, "."), fraction(g, r, 0, on_low, on_high)));
}

static const struct gb_node *whole(struct gb *g, const struct magnitudes *r, int at, bool on_low,
                                   bool on_high) {
  int left = r->length - at;
  if (!left)
    return after_whole(g, r, on_low, on_high);
  if (!on_low && !on_high && at)
    return gb_seq(g, some_digits(g, left, left), after_whole(g, r, false, false));
  int low = on_low ? whole_digit(r->low, at) : !at && r->length > 1;
  int high = on_high ? whole_digit(r->high, at) : 9;
  const struct digit_place place = {whole, r, at, on_low, on_high};
  return by_digit(g, &place, low, high);
}

/* Returns true if numbers of this length may be so little below an excluded bound that they are
 * rounded to it: those as long as the bound, or one digit shorter (99.9... below 100). */
static bool near_high(const struct magnitudes *r, int length) {
  return r->high_out && length + 1 >= r->high->whole;
}

/* Returns the room for a fraction. An integer with a fraction of zeros is read as a double: with
 * many digits it may be rounded across a bound that is an integer of its length. */
static int fraction_room(const struct magnitudes *r, int length, bool at_bound) {
  if (near_high(r, length))
    return SAFE_DIGITS - length;
  return at_bound && length > SAFE_DIGITS ? 0 : FRACTION_DIGITS;
}

static const struct gb_node *magnitudes(struct gb *g, struct magnitudes r) {
  int longest = INTEGER_DIGITS > r.low->whole ? INTEGER_DIGITS : r.low->whole;
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
    while (!on_low && !on_high && until + 1 <= longest && !near_high(&r, until + 1) &&
           !(r.high && until + 1 == r.high->whole))
      until++;
    r.length = until;
    r.fraction = fraction_room(&r, until, on_low || on_high);
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

/* Holds the bounds of a shape, written out. */
struct written_bounds {
  struct digits_of low, high;
  bool has_low, has_high;
  bool low_out, high_out; /* excluded */
};

static void note_bound(struct gb *g, const struct gb_shape *shape, bool minimum, const char *why) {
  bool exclusive = minimum ? shape->minimum_exclusive : shape->maximum_exclusive;
  const char *keyword = minimum ? "minimum" : "maximum";
  if (exclusive)
    keyword = minimum ? "exclusiveMinimum" : "exclusiveMaximum";
  gb_note(g, shape->number_entry, keyword, why);
}

/* Includes large bounds. Integers beyond 64 bits become doubles, which may be rounded to a bound
 * that they must not meet: such a bound is held as if it were included. */
static void include_large(struct gb *g, const struct gb_shape *shape, bool minimum,
                          const struct digits_of *d, bool *out) {
  enum { EXACT_DIGITS = 18 };
  if (!*out || d->huge || d->whole <= EXACT_DIGITS)
    return;
  *out = false;
  note_bound(g, shape, minimum, "a bound of so many digits is not excluded, only kept");
}

static void read_bounds(struct gb *g, const struct gb_shape *shape, bool integral,
                        struct written_bounds *b) {
  *b = (struct written_bounds){.has_low = shape->minimum != NULL,
                               .has_high = shape->maximum != NULL,
                               .low_out = shape->minimum_exclusive,
                               .high_out = shape->maximum_exclusive};
  if (b->has_low)
    digits_of_value(shape->minimum, &b->low);
  if (b->has_high)
    digits_of_value(shape->maximum, &b->high);
  /* Bounds may be too small to be written out: 0 is on one side of them. */
  double low = json_number_value(shape->minimum), high = json_number_value(shape->maximum);
  if (b->has_low && is_zero(&b->low) && low != 0)
    b->low_out = low > 0;
  if (b->has_high && is_zero(&b->high) && high != 0)
    b->high_out = high < 0;
  include_large(g, shape, true, &b->low, &b->low_out);
  include_large(g, shape, false, &b->high, &b->high_out);
  if (integral && b->has_low && !b->low.huge) {
    make_whole(&b->low, true, b->low_out);
    b->low_out = false;
  }
  if (integral && b->has_high && !b->high.huge) {
    make_whole(&b->high, false, b->high_out);
    b->high_out = false;
  }
}

static const struct gb_node *between_bounds(struct gb *g, const struct written_bounds *b,
                                            bool integral) {
  static const struct digits_of zero = {.whole = 1, .digits = "0"};
  static const struct digits_of one = {.whole = 1, .digits = "1"};
  bool has_low = b->has_low && !b->low.huge, has_high = b->has_high && !b->high.huge;
  const struct gb_node *node = &gb_never;
  if (!has_high || !b->high.negative) { /* from 0 upwards */
    bool from_low = has_low && !b->low.negative;
    node = magnitudes(g, (struct magnitudes){.low = from_low ? &b->low : &zero,
                                             .high = has_high ? &b->high : NULL,
                                             .low_out = from_low && b->low_out,
                                             .high_out = b->high_out,
                                             .integral = integral});
  }
  if (!has_low || b->low.negative) { /* below 0 */
    struct magnitudes r = {.low = integral ? &one : &zero,
                           .high = has_low ? &b->low : NULL,
                           .low_out = has_high && is_zero(&b->high) && b->high_out,
                           .high_out = b->low_out,
                           .integral = integral};
    if (has_high && b->high.negative) {
      r.low = &b->high;
      r.low_out = b->high_out;
    }
    node = gb_alt(g, node, gb_seq(g, gb_word(g, "-"), magnitudes(g, r)));
  }
  return node;
}

const struct gb_node *gb_number(struct gb *g, const struct gb_shape *shape) {
  bool integral = shape->integral;
  struct written_bounds b;
  for (const struct gb_link *m = shape->multiples; m; m = m->next) {
    integral = integral || schema_value_is_integral(m->value);
    if (json_number_value(m->value) != 1)
      gb_note(g, m->entry, "multipleOf", "a grammar cannot divide");
  }
  for (const struct gb_link *v = shape->not_values; v; v = v->next)
    if (json_is_number(v->value))
      gb_note(g, v->entry, v->keyword, "a single number is kept out by the validator only");
  const char *any = integral ? "integer" : "number";
  if (!shape->minimum && !shape->maximum)
    return gb_primitive(g, any);
  read_bounds(g, shape, integral, &b);
  if ((b.low.huge && !b.low.negative) || (b.high.huge && b.high.negative)) {
    note_bound(g, shape, b.low.huge && !b.low.negative,
               "a bound of so many digits is kept by the validator only");
    return gb_primitive(g, any);
  }
  if (!integral && b.has_low && is_zero(&b.low) && !b.low_out && !b.has_high)
    return gb_primitive(g, "unsigned");
  const struct gb_node *node = between_bounds(g, &b, integral);
  if (node != &gb_never || integral)
    return node;
  note_bound(g, shape, b.has_low,
             "no decimal of few digits lies there; kept by the validator only");
  return gb_primitive(g, any);
}
