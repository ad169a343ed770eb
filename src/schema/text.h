/* text.h - checks JSON text against a schema without building the value: for millions of records,
 * nearly all of them valid.
 *
 *   struct schema_reader *r = schema_reader_new(schema);      one a thread; borrows the schema
 *   if (schema_reader_takes(r, text)) ... r's members ...     any number of times
 *   schema_reader_free(r);
 *
 * A text is taken if it is one object (RFC 8259, as json/scan.h reads it) and nothing else, repeats
 * no member name at any depth, and is valid. If it is not taken, this module does not say why:
 * build the value and check it with schema.h, which knows every keyword. Such a text costs at most
 * twice as much as one that is taken. A reader remembers what was asked of objects with the same
 * members, so the first objects of each kind take longest. */
#ifndef SEGUE_SCHEMA_TEXT_H
#define SEGUE_SCHEMA_TEXT_H

#include "base/str.h"
#include "schema/schema.h"

/* Holds a member of the object that was taken last, and borrows its text. */
struct schema_member {
  struct str key, value; /* as in the text; strings without their quotes */
  json_type type;        /* true and false are types of their own */
  bool escaped;          /* there are escapes in the string */
};

struct schema_reader;

struct schema_reader *schema_reader_new(const struct schema *schema);
void schema_reader_free(struct schema_reader *r); /* accepts NULL */

bool schema_reader_takes(struct schema_reader *r, struct str text);
/* Returns the members in their order; valid until the next text. */
const struct schema_member *schema_reader_members(const struct schema_reader *r, size_t *count);

/* Tells whether a text stands at a place (a JSON Pointer without its first slash) of a sound value.
 * False: none does, or it takes a tree to tell. */
bool schema_text_has(struct str json, const char *pointer);

#endif
