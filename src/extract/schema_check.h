/* schema_check.h - tells by a JSON Schema which value in a text is the requested answer.
 *
 *   struct extract_schema asked = {doc, schema};       both borrowed for as long as it is used
 *   struct extract_check check = extract_schema_check(&asked);
 *   opts.want = extract_schema_want(doc); opts.check = &check;
 *
 * Nearness counts the keys that a value shares with the schema: the required ones or, if none is
 * required, those it names; a root that is just a $ref is followed. The schema itself, or another
 * schema with the same keys, is an echo and never an answer. */
#ifndef SEGUE_EXTRACT_SCHEMA_CHECK_H
#define SEGUE_EXTRACT_SCHEMA_CHECK_H

#include "base/str.h"
#include "extract/extract.h"
#include "schema/schema.h"

struct extract_schema {
  const json_t *doc;
  const struct schema *schema; /* compiled from doc */
};

struct extract_check extract_schema_check(struct extract_schema *asked);

/* The root that the schema means: its `type` if that is object or array; also object for a schema
 * with properties and no type, which, taken literally, any number would satisfy. */
enum extract_want extract_schema_want(const json_t *doc);

/* Returns whether an answer holds this key: the key is required or, where none is, named. */
bool extract_schema_key(const json_t *doc, const char *name, size_t n);

/* Sets *label to the one value of the root's enum (or const) of texts that the text names, as words
 * of its own and in the same letters, behind reasoning. False: it names none, or several. */
bool extract_label(const json_t *doc, struct str text, const json_t **label);

/* The subschema that a root of nothing but {"$ref": "#/..."} stands for; doc itself otherwise. */
const json_t *extract_schema_root(const json_t *doc);

#endif
