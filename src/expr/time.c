/* Reads dates and date-times as instants (RFC 3339). */
#include "expr/eval.h"
#include "schema/format.h"

/* Returns the days since 1970-01-01 of a proleptic Gregorian date. */
static int64_t days_of(int year, int month, int day) {
  int64_t y = month <= 2 ? year - 1 : year;
  int64_t era = (y >= 0 ? y : y - 399) / 400, year_of_era = y - era * 400;
  int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719468;
}

static bool read_clock(struct format_cursor *c, struct instant *out) {
  int hour, minute, second, away;
  if (!schema_cursor_digits(c, 2, &hour) || !schema_cursor_char(c, ':') ||
      !schema_cursor_digits(c, 2, &minute) || !schema_cursor_char(c, ':') ||
      !schema_cursor_digits(c, 2, &second) || hour > 23 || minute > 59 || second > 60)
    return false;
  if (schema_cursor_char(c, '.')) {
    out->fraction.p = c->p;
    while (c->p < c->end && is_decimal(*c->p))
      c->p++;
    out->fraction.n = (size_t)(c->p - out->fraction.p);
    if (out->fraction.n == 0)
      return false;
    while (out->fraction.n && out->fraction.p[out->fraction.n - 1] == '0')
      out->fraction.n--;
  }
  if (!schema_cursor_zone(c, &away))
    return false;
  out->seconds += (hour * 60 + minute + away) * 60 + second;
  return c->p == c->end;
}

bool expr_instant(struct str text, struct instant *out) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  struct format_cursor c = {text.p, text.p + text.n};
  int year, month, day;
  if (text.n < 10 || !schema_cursor_digits(&c, 4, &year) || !schema_cursor_char(&c, '-') ||
      !schema_cursor_digits(&c, 2, &month) || !schema_cursor_char(&c, '-') ||
      !schema_cursor_digits(&c, 2, &day) || month < 1 || month > 12 || day < 1)
    return false;
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  if (day > days[month - 1] + (month == 2 && leap))
    return false;
  *out = (struct instant){.seconds = days_of(year, month, day) * 86400};
  if (c.p == c.end)
    return true;
  if (!schema_cursor_char(&c, 'T') && !schema_cursor_char(&c, 't') && !schema_cursor_char(&c, ' '))
    return false;
  return read_clock(&c, out);
}

int expr_instant_compare(const struct instant *a, const struct instant *b) {
  if (a->seconds != b->seconds)
    return a->seconds < b->seconds ? -1 : 1;
  size_t n = a->fraction.n < b->fraction.n ? a->fraction.n : b->fraction.n;
  int order = n ? memcmp(a->fraction.p, b->fraction.p, n) : 0;
  if (order != 0)
    return order < 0 ? -1 : 1;
  return (a->fraction.n > b->fraction.n) - (a->fraction.n < b->fraction.n);
}
