/* text.h - is a value valid for a schema, as text? It is not built for that: for millions of
 * records that are valid nearly all.
 *
 *   struct schema_reader *r = schema_reader_new(schema);      one a thread; borrows the schema
 *   if (schema_reader_takes(r, text)) ... r's members ...     any number of times
 *   schema_reader_free(r);
 *
 * Takes: the text is one object (RFC 8259, as json/scan.h reads it) and nothing else, no member
 * stands twice in it, at any depth, and it is valid. If not, nothing is said: whoever wants to know
 * more builds the value and has it checked (schema.h), which knows every keyword and says what is
 * wrong. A text that is not taken costs at most twice what one costs that is. A reader remembers
 * what was asked of objects with the same members, so the first of each kind take longest. */
#ifndef SEGUE_SCHEMA_TEXT_H
#define SEGUE_SCHEMA_TEXT_H

#include "base/str.h"
#include "schema/schema.h"

/* A member of the object that was taken last; borrows its text. */
struct schema_member {
  struct str key, value; /* as they stand there; of a string without its quotes */
  json_type type;        /* of true and false: which */
  bool escaped;          /* there are escapes in the string */
};

struct schema_reader;

struct schema_reader *schema_reader_new(const struct schema *schema);
void schema_reader_free(struct schema_reader *r); /* accepts NULL */

bool schema_reader_takes(struct schema_reader *r, struct str text);
/* In their order, until the next text. */
const struct schema_member *schema_reader_members(const struct schema_reader *r, size_t *count);

#endif
