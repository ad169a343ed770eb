/* schema_forms.h - gives one canonical schema in the forms that a model API takes: adapted, as a
 * grammar, in words; turns answers back and checks them. Made once for each schema and preset, then
 * shared.
 *
 *   schemas = api_schemas_new()
 *   s = api_schema_get(schemas, canonical, preset, reasoning)   counted: api_schema_unref
 *   api_schema_find(s, rung, text, &found)
 *   api_schemas_free(schemas) */
#ifndef SEGUE_PROVIDER_API_SCHEMA_FORMS_H
#define SEGUE_PROVIDER_API_SCHEMA_FORMS_H

#include "provider/api/preset.h"

struct api_schemas;
struct api_schema;

struct api_schemas *api_schemas_new(void);
void api_schemas_free(struct api_schemas *schemas);

/* Never returns NULL. reasoning: a text of that name comes first in the adapted form and is removed
 * from answers. */
struct api_schema *api_schema_get(struct api_schemas *schemas, const json_t *canonical,
                                  const struct preset *preset, bool reasoning);
void api_schema_unref(struct api_schema *s);

/* Returns those of `rungs` that this schema can be sent on; *why says what prevents the others
 * (static, or living as long as the schema), NULL if nothing does. */
unsigned api_schema_rungs(struct api_schema *s, unsigned rungs, const char **why);
const json_t *api_schema_adapted(const struct api_schema *s); /* NULL: the dialect cannot hold it */
/* n 0: none can be made. `think`: "<think>...</think>" may come before the value; `opened`: its
 * first mark may be the template's. Valid until it is asked for otherwise. */
struct str api_schema_grammar(struct api_schema *s, bool think, bool opened);

enum api_fit {
  API_FIT_VALID,
  API_FIT_WRONG, /* the form is right, a value is not: for a reask */
  /* Something that any constraint would have enforced is missing: the reply was unconstrained. */
  API_FIT_LOOSE
};
struct api_value {
  /* in the canonical shape, owned; NULL: the text has none, or one only for the caller's own
   * reader: among words, or with a duplicate key */
  json_t *value;
  enum api_fit fit;
};
/* Reads the text that came on that rung as a single answer: a value, perhaps wrapped in a fence, an
 * element or reasoning (extract/whole_reply.h). */
void api_schema_find(struct api_schema *s, enum rung rung, struct str text,
                     struct api_value *found);

#endif
