/* pull.h - walks JSON text member by member and builds nothing, for reading a few members out of
 * millions of records.
 *
 *   struct pull at = pull_of(text);
 *   if (pull_open(&at, '{'))
 *     while (pull_key(&at, &key)) {
 *       if (str_eq_c(key, "turn")) pull_integer(&at, &turn);     each value is taken, or
 *       else pull_skip(&at);                                     skipped: one of the two
 *     }
 *   if (at.bad) ...                                              what was taken counts for nothing
 *
 * Not a validator: skipping only minds strings and brackets (jscan_value is strict). Once bad, it
 * stays bad and every call returns false. Texts are the bytes between the quotes, escapes and all,
 * borrowed from the text: see pull_decode. No recursion, no memory. */
#ifndef SEGUE_JSON_PULL_H
#define SEGUE_JSON_PULL_H

#include "base/buf.h"

#include <stdint.h>

struct pull {
  const char *p, *end;
  bool bad;
  bool first; /* directly behind an opening bracket */
};

struct pull pull_of(struct str text);

/* Enters an object ('{') or an array ('['). False: the value is something else and was skipped. */
bool pull_open(struct pull *at, char bracket);
/* Reads the next member's key; its value comes next. False: the object is over. */
bool pull_key(struct pull *at, struct str *key);
/* Returns true if an item comes next. False: the array is over. */
bool pull_item(struct pull *at);

/* Returns the value if it is of that kind; otherwise false, and it was skipped. */
bool pull_text(struct pull *at, struct str *raw);
bool pull_integer(struct pull *at, int64_t *value);
bool pull_number(struct pull *at, double *value);
bool pull_true(struct pull *at);
void pull_skip(struct pull *at);
/* Skips the value and returns its bytes as they are. */
struct str pull_raw(struct pull *at);

/* Returns the text that raw bytes from pull_text or pull_key stand for: the bytes themselves if
 * they have no escape, otherwise decoded into `scratch`. Broken escapes stay as they are. */
struct str pull_decode(struct str raw, struct buf *scratch);

#endif
