/* decimal.h - the numbers of expressions; internal. Numbers that were read stay as they are and
 * compare exactly; results are decimal with 34 digits, rounded half to even (as IEEE 754's
 * decimal128). */
#ifndef SEGUE_EXPR_DECIMAL_H
#define SEGUE_EXPR_DECIMAL_H

#include "schema/support.h"

enum number_kind { NUMBER_INTEGER, NUMBER_REAL, NUMBER_DECIMAL };

struct number {
  enum number_kind kind;
  bool exact;    /* DECIMAL: made of integers alone, without rounding */
  bool negative; /* DECIMAL */
  int exponent;  /* DECIMAL: digits * 10^exponent */
  json_int_t integer;
  double real;
  unsigned __int128 digits; /* below 10^34 */
};

enum number_status { NUMBER_OK, NUMBER_BY_ZERO, NUMBER_RANGE };

struct number number_integer(json_int_t value);
struct number number_real(double value);
struct number number_of_json(const json_t *value); /* a number */

enum number_status number_add(const struct number *a, const struct number *b, struct number *out);
enum number_status number_subtract(const struct number *a, const struct number *b,
                                   struct number *out);
enum number_status number_multiply(const struct number *a, const struct number *b,
                                   struct number *out);
enum number_status number_divide(const struct number *a, const struct number *b,
                                 struct number *out);
enum number_status number_remainder(const struct number *a, const struct number *b,
                                    struct number *out);
struct number number_negate(const struct number *a);
struct number number_magnitude(const struct number *a);

enum number_rounding { ROUND_HALF_AWAY, ROUND_DOWN, ROUND_UP };
/* Rounds to `places` digits after the point, -30 to 30. */
struct number number_round(const struct number *a, int places, enum number_rounding how);

/* Returns -1, 0 or 1, with the tolerance of expr.h. */
int number_compare(const struct number *a, const struct number *b);
void number_text(const struct number *a, struct buf *out); /* at most 17 digits */

#endif
