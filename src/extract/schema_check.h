/* A JSON Schema as the extractor's check: which value in a text is the answer that was asked for.
 *
 *   struct extract_schema asked = {doc, schema};       both borrowed for as long as it is used
 *   struct extract_check check = extract_schema_check(&asked);
 *   opts.want = extract_schema_want(doc); opts.check = &check;
 *
 * Nearness counts the keys that a value shares with the schema: the required ones, or where none is
 * required, those that it names; a root that is only a $ref is followed. The schema itself, or
 * another schema with the same keys, is an echo and never an answer. */
#ifndef SEGUE_EXTRACT_SCHEMA_CHECK_H
#define SEGUE_EXTRACT_SCHEMA_CHECK_H

#include "extract/extract.h"
#include "schema/schema.h"

struct extract_schema {
  const json_t *doc;
  const struct schema *schema; /* compiled from doc */
};

struct extract_check extract_schema_check(struct extract_schema *asked);

/* The root that the schema means: what its `type` says when that is one of object and array; object
 * too for a schema with properties and no type, which by the letter any number would pass. */
enum extract_want extract_schema_want(const json_t *doc);

/* Does an answer hold this key? One that is required, or where none is, one that is named. */
bool extract_schema_key(const json_t *doc, const char *name, size_t n);

/* The subschema that a root of nothing but {"$ref": "#/..."} stands for; doc itself otherwise. */
const json_t *extract_schema_root(const json_t *doc);

#endif
