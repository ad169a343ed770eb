/* support.h - declares URIs, values, formats and documents for the other files of the room;
 * internal. */
#ifndef SEGUE_SCHEMA_SUPPORT_H
#define SEGUE_SCHEMA_SUPPORT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/map.h"
#include "base/utf8.h"
#include "schema/pattern.h"
#include "schema/schema.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- values (schema/value.c) --- */

bool schema_value_is_integral(const json_t *value); /* a number without a fraction */
/* Returns what a keyword counts to: a whole number from 0 on. */
uint64_t schema_value_count(const json_t *value);
/* Returns -1, 0 or 1, exact between 64-bit integers and doubles. Both are numbers. */
int schema_value_compare(const json_t *a, const json_t *b);
int schema_value_compare_mixed(json_int_t a, double b);
/* The magnitude is mantissa * 10^exponent, from the shortest decimal text of the number, which is
 * what its author wrote. */
struct decimal {
  uint64_t mantissa;
  int exponent;
};
struct decimal schema_value_decimal(double number);
bool schema_value_multiple_of(const json_t *value, const json_t *divisor);
/* Returns whether arrays and objects are nested more than `levels` deep. */
bool schema_value_too_deep(const json_t *value, int levels);
/* Reduces `work`. If it is used up, or the values are too deep, `work` is below 0 and the answer is
 * false. */
bool schema_value_equal(const json_t *a, const json_t *b, int64_t *work);
/* Returns whether no two items are equal; if not, `first` and `second` are the indexes of two that
 * are. */
bool schema_value_unique(const json_t *array, size_t *first, size_t *second, int64_t *work);

/* --- formats (schema/format.c) --- */

struct format;
struct format *schema_format_find(const char *name); /* NULL: nobody checks it */
bool schema_format_valid(struct format *format, const char *text, size_t length);
const char *schema_format_form(const struct format *format); /* tells how it is written */

#endif
