/* pointer.h - JSON Pointers (RFC 6901) into a value, with one addition: a step `*` stands for every
 * item of an array and every member of an object, in their order.
 *
 * "" is the value itself. Nothing is copied: results belong to the root. */
#ifndef SEGUE_FORMAT_POINTER_H
#define SEGUE_FORMAT_POINTER_H

#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>

/* "" or a text that begins with / and in which each ~ is ~0 or ~1, with at most
 * LIMIT_POINTER_STEPS steps. */
bool pointer_valid(struct str pointer);

/* Returns the first value found, or NULL. */
const json_t *pointer_get(const json_t *root, struct str pointer);

/* Visits every value found, in order; `each` returns false to stop. */
typedef bool (*pointer_fn)(void *ctx, const json_t *value);
void pointer_each(const json_t *root, struct str pointer, pointer_fn each, void *ctx);

#endif
