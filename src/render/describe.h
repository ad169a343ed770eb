/* describe.h - tells a model in words what a compiled schema asks for.
 *
 * Three renderings of the same schema. All show every keyword that the validator checks; a schema
 * that is too large to be shown is refused, never shown in part.
 *
 *   prompt  sentences and one line a field, nested by indent:
 *             - name: type [constraints] (required|optional) - description
 *           `(each item)` and the like stand for what has no name. The last lines name the fields
 *           where null is allowed. In English or Japanese.
 *   types   a typed notation with the constraints as comments: the fewest tokens.
 *   json    the schema itself, compact, its annotations kept or dropped.
 *
 * Text by a schema's author (names, descriptions, patterns) stays on its line: line ends, fences
 * and invisible characters are removed from sentences and escaped in names.
 *
 * describe_request is the request to a model without a schema mode: one sentence, written only
 * here, and the schema in one of these forms.
 *
 * Ownership: *text is the caller's, NUL-terminated, and freed with describe_free. It is NULL unless
 * the status is SCHEMA_OK. The schema is only read; calls may run in parallel. The one error is
 * SCHEMA_TOO_COMPLEX: a bound below was met. */
#ifndef SEGUE_RENDER_DESCRIBE_H
#define SEGUE_RENDER_DESCRIBE_H

#include "base/buf.h"
#include "schema/schema.h"

enum {
  DESCRIBE_LEVELS_MAX = 200,             /* nesting of one rendering */
  DESCRIBE_BYTES_MAX = 16 * 1024 * 1024, /* length of one rendering */
  DESCRIBE_REPEAT_LINES = 12,            /* a structure of more lines is not shown twice */
  DESCRIBE_NULL_BYTES = 4000             /* names of fields that may be null, in one sentence */
};

enum describe_language { DESCRIBE_ENGLISH, DESCRIBE_JAPANESE };

/* Finds "en" or "ja". False: it is neither. */
bool describe_language_find(const char *name, enum describe_language *language);

enum schema_status describe_prompt(const struct schema *schema, enum describe_language language,
                                   char **text) __attribute__((warn_unused_result));

enum schema_status describe_types(const struct schema *schema, char **text)
    __attribute__((warn_unused_result));

/* Always SCHEMA_OK. `annotations` false: without title, description, default, examples, deprecated,
 * readOnly, writeOnly and $comment. */
enum schema_status describe_json(const struct schema *schema, bool annotations, char **text);

enum describe_form { DESCRIBE_AS_PROMPT, DESCRIBE_AS_TYPES, DESCRIBE_AS_JSON, DESCRIBE_AS_COUNT };
/* "prompt", "types", "json"; ends with NULL. */
extern const char *const describe_form_names[];
bool describe_form_find(const char *name, enum describe_form *form);

/* Appends the request, ending in a newline. A schema that is too large for the form is shown as
 * JSON. */
void describe_request(const struct schema *schema, enum describe_form form,
                      enum describe_language language, struct buf *out);

/* Estimates the tokens in the text without a model's table, to within about 15 %. */
size_t describe_tokens(const char *text);

void describe_free(char *text);

#endif
