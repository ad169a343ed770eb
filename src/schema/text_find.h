/* text_find.h - finds values in JSON text, for checks that build no tree; internal. */
#ifndef SEGUE_SCHEMA_TEXT_FIND_H
#define SEGUE_SCHEMA_TEXT_FIND_H

#include "base/str.h"
#include "json/scan.h"

/* An object with more members is left to the code that builds trees. */
enum { TEXT_MEMBERS_MAX = 64 };

/* Holds a value in the text. A scalar was read strictly when it was found. A list or an object was
 * only skipped over; whoever accepts it must first read it strictly. */
struct text_value {
  struct str text; /* a string without its quotes */
  int64_t number;  /* an integer's value */
  json_type type;
  bool escaped, read;
  struct plan_place *place;       /* where a plan found it (text_plan.h) */
  const struct plan_taken *taken; /* it has the text of this object, which passed there; or NULL */
};

struct text_object {
  size_t count;
  uint64_t bits;        /* filter for keys: if a bit is not set, no key here has it */
  const char *kind_key; /* see text_kind */
  const struct text_value *kind;
  struct str keys[TEXT_MEMBERS_MAX];
  struct text_value values[TEXT_MEMBERS_MAX];
};

size_t text_space(const struct jscan *js, size_t at); /* after white space */
/* Finds the value that begins at `at`. Returns the offset after it, or 0. */
size_t text_find_value(const struct jscan *js, size_t at, struct text_value *v);
/* Finds the members of the object that begins at `at`. Returns the offset after it, or 0 if it is
 * not an object, has a duplicate member, a key with escapes or too many members. */
size_t text_find_members(const struct jscan *js, size_t at, struct text_object *o);
struct text_value *text_member(struct text_object *o, struct str key); /* or NULL */

#endif
