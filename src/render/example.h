/* example.h - makes a value of the shape that a schema asks for: for a person, or as an anchor in a
 * prompt.
 *
 * It shows shape, not values: const, the first value of an enum, every field, one item, and
 * placeholders: "<date-time>" for a format, "<string>", 0, false, null. If a length, a bound or an
 * asserted format forbids the placeholder, it uses a value that fits; a schema's own `examples` and
 * `default` come after that. A text for a pattern is not searched for: where none is given,
 * "<text that matches PATTERN>" stands for it.
 *
 * Without such words the result was checked with the schema: it is valid, or there is no example.
 * With them it is no valid value, and the status says so. Not every schema that admits a value gets
 * an example: of the forms of a value few are tried.
 *
 * Ownership: *value is a new reference. The schema is only read; calls may run in parallel.
 */
#ifndef SEGUE_RENDER_EXAMPLE_H
#define SEGUE_RENDER_EXAMPLE_H

#include "render/describe.h"
#include "schema/schema.h"

enum {
  EXAMPLE_STRING_BYTES = 64 * 1024, /* a string; longer ones are refused */
  EXAMPLE_ITEMS_MAX = 1000,         /* items or fields that a schema can ask for */
  EXAMPLE_VALUES_USUAL = 10000,     /* then what can be left out is left out */
  EXAMPLE_LEVELS_MAX = 200          /* arrays and objects inside each other */
};

enum example_status {
  EXAMPLE_OK,
  EXAMPLE_WORDS, /* words stand for a text that matches a pattern; the trouble says where first */
  EXAMPLE_NONE,  /* no value was found; the trouble says where it failed last */
  EXAMPLE_TOO_COMPLEX
};

/* Where and why: cut to their size, always NUL-terminated. */
struct example_trouble {
  char pointer[512]; /* place of the subschema: "/properties/code" */
  char message[256];
};

/* `trouble` may be NULL. */
enum example_status example_make(const struct schema *schema, json_t **value,
                                 struct example_trouble *trouble)
    __attribute__((warn_unused_result));

/* The example as a part of a prompt: a sentence that says that the values are placeholders, then
 * the JSON on a line of its own. *text goes with describe_free. */
enum example_status example_anchor(const struct schema *schema, enum describe_language language,
                                   char **text) __attribute__((warn_unused_result));

/* Returns a word for a status: "ok", "in_words", "no_example", "too_complex". */
const char *example_status_name(enum example_status status);

#endif
