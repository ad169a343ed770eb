/* json_value.h - compares and copies JSON values whatever their keys are: a key may contain NUL,
 * where jansson's json_equal, json_copy and json_deep_copy stop reading it (measured, 2.14).
 *
 * Values come from the scanner or are made here, so they are no deeper than JSCAN_DEPTH_MAX and no
 * value contains itself. */
#ifndef SEGUE_FORMAT_JSON_VALUE_H
#define SEGUE_FORMAT_JSON_VALUE_H

#include <jansson.h>
#include <stdbool.h>

/* The same types and values, in objects with the members in any order. 1 and 1.0 differ; NULL is
 * the same as nothing, not even as NULL. */
bool json_same(const json_t *a, const json_t *b);

/* Copies an array or object with the same members, which are shared; of any other value it makes
 * what json_clone does. The copy is the caller's; NULL of NULL. */
json_t *json_clone_top(const json_t *value);
/* Copies a value with all that it contains; nothing is shared but true, false and null. */
json_t *json_clone(const json_t *value);

#endif
