/* describe_phrase.h - words for a place's types and constraints, shared by the renderings. */
#ifndef SEGUE_RENDER_DESCRIBE_PHRASE_H
#define SEGUE_RENDER_DESCRIBE_PHRASE_H

#include "render/describe_words.h"
#include "render/line_text.h"
#include "schema/outline.h"

struct describer {
  struct walk walk;
  enum describe_language language;
  struct buf out;
  /* Puts a subschema of a constraint, such as what `not` forbids, into its line. False: it has
   * lines of its own, or none because `out` is NULL and the question was only whether it would. */
  bool (*put_inside)(struct describer *d, struct place place, struct buf *out);
  /* if/then/else, dependentSchemas and the forms of a typed place also stand among the
   * constraints */
  bool all_inside;
  bool values_elsewhere; /* enum and const are shown as types */
  int level;
};

/* Returns false, with walk.status set, if the text is too long or too deep. */
bool describe_going(struct describer *d);

/* Returns the first enum or const, or NULL. */
const struct op *describe_fixed(const struct outline *outline);
/* Returns the types to show: those that keywords and fixed values hint at if there is no `type`. */
unsigned describe_shown_types(const struct outline *outline);
/* Returns the only anyOf or oneOf of a place that says nothing about its type: the forms are its
 * type. */
const struct op *describe_type_forms(const struct outline *outline);
bool describe_forms_disjoint(struct describer *d, const struct op *forms);
/* Writes "string or null". */
void describe_type_words(struct describer *d, unsigned types, struct buf *out);
/* Writes "at least 1 character, pattern: ^a"; nothing if there are none. `bare`: the place stands
 * in a branch of another, so that its required fields need not be declared. */
void describe_constraints(struct describer *d, const struct outline *outline, bool bare,
                          struct buf *out);
/* A required field without a schema is shown as a constraint, not as a field. */
bool describe_field_listed(const struct describer *d, const struct outline *outline,
                           const struct outline_field *field, bool bare);
/* Returns true if null is valid there, and the types shown say so. */
bool describe_admits_null(struct describer *d, struct place place, const struct outline *outline);

/* Returns true if it has only constraints, fixed values and types, so that it fits into a line. */
bool describe_is_leaf(struct describer *d, struct place place, int levels);

#endif
