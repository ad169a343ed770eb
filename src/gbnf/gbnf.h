/* gbnf.h - JSON Schema to a llama.cpp grammar (GBNF), with a list of what the grammar cannot
 * enforce.
 *
 * A local model that samples under the grammar writes compact or pretty JSON with members in the
 * order of the schema. Apart from the listed keywords, every text that the grammar derives
 * validates against the schema: what a grammar cannot hold makes it wider, never narrower. It
 * neither negates nor intersects: what must not match is listed unless it cannot match anyway, and
 * of several patterns for one text the first is written.
 *
 * Calling order: gbnf_convert, read the result, gbnf_result_deinit. Any number of threads at once.
 *
 * A value without a declared type may be what the drafts say: anything the schema does not forbid.
 * Where a schema names a type, it is read as a description of what to write:
 *   - an object with `properties` and no word on further ones (no `additionalProperties`,
 *     `patternProperties`, `unevaluatedProperties`) gets none;
 *   - `format` of a string is kept to (else it is an annotation and listed);
 *   - an integer is written without a fraction.
 * Narrower than the schema, and not listed: plain decimals within bounds, at most 16 digits before
 * the point where no bound asks for more, 40 blanks of indentation, strings in the usual escapes,
 * capital T and Z in dates, members in the order of the schema.
 *
 * Errors: a hostile schema runs into a bound and is GBNF_TOO_COMPLEX; a schema that nothing can
 * match is GBNF_UNSATISFIABLE.
 *
 * Rules from: llama.cpp grammars/README.md; limits of its parser: repetitions below 2,000, no left
 * recursion.
 */
#ifndef SEGUE_GBNF_GBNF_H
#define SEGUE_GBNF_GBNF_H

#include "schema/schema.h"

enum gbnf_status {
  GBNF_OK,
  GBNF_INVALID_SCHEMA, /* the schema itself is wrong, or a reference leads nowhere */
  GBNF_UNSATISFIABLE,  /* no finite value matches: `false` at the root, say */
  GBNF_TOO_COMPLEX     /* a bound was hit */
};

enum {
  GBNF_RULES_MAX = 20000,                /* rules of one grammar */
  GBNF_TEXT_BYTES_MAX = 4 * 1024 * 1024, /* size of one grammar */
  /* keywords listed; one more note says that there are others */
  GBNF_NOTES_MAX = 1000,
  GBNF_REPEAT_MAX = 1999 /* a repetition count that llama.cpp takes */
};

/* Names a keyword that the grammar does not enforce, or not fully; the validator does. */
struct gbnf_note {
  char *pointer; /* JSON Pointer of the subschema; in another document after its URI and '#' */
  const char *keyword; /* static */
  const char *why;     /* static: one line */
};

struct gbnf_opts {
  bool think;                             /* "<think>...</think>" may come before the JSON */
  const struct schema_registry *registry; /* may be NULL */
  const char *default_draft;              /* as in schema_opts */
  bool thinking; /* the template may have written "<think>" already: also without it */
};

struct gbnf_result {
  char *text;    /* the grammar, NUL-terminated; NULL if refused */
  size_t length; /* bytes */
  struct gbnf_note *notes;
  size_t note_count;
  char *refusal_pointer; /* where in the schema; NULL if there is none */
  char *refusal;         /* one line; NULL if not refused */
};

/* `opts` may be NULL. *out is overwritten; the caller deinits it whatever the status. */
enum gbnf_status gbnf_convert(const json_t *doc, const struct gbnf_opts *opts,
                              struct gbnf_result *out) __attribute__((warn_unused_result));

/* Leaves an empty struct; accepts a zeroed one. */
void gbnf_result_deinit(struct gbnf_result *result);

/* Returns "ok", "invalid_schema", "unsatisfiable" or "too_complex". */
const char *gbnf_status_name(enum gbnf_status status);

#endif
