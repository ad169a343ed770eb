/* schema_lint.h - warns of valid schemas that ask for trouble when a model has to fill them. It is
 * pure; `doc` is read as it is, and references only within it.
 *
 * The warnings, in the order of the document:
 *  - keyword "unknown": a word that is no keyword, and a slip away from one; or OpenAPI's
 *    `nullable` in a schema of a draft that does not know it (schema/upgrade.h reads it elsewhere).
 *  - keyword "$ref": a keyword that draft 07 ignores, since it stands beside a reference.
 *  - keyword "impossible": bounds, types and lists that together no value satisfies.
 *  - keyword "required": a required member that `properties` does not have, or
 *  - keyword "required": one that takes a fact (a text, a number, a list with a least
 *    length) and neither null nor one of a few values. A model that finds no such fact in its input
 *    must invent one: "required and not nullable: ...". Not for enum, const, default and booleans,
 *    nor for members whose name says that the model makes them up (reason, summary, ...).
 *  - keyword "unbounded", once, at "$": there is no enum, const, bound (minimum, maxLength,
 *    pattern, ...) or invariant, so whatever has the right types passes. */
#ifndef SEGUE_SCHEMA_SCHEMA_LINT_H
#define SEGUE_SCHEMA_SCHEMA_LINT_H

#include "schema/schema.h"

/* Returns true for an object of which no member is a keyword or says what the schema is for, as
 * {"invalid": "schema"}, with an error that says so. */
bool schema_says_nothing(const json_t *doc, struct schema_errors *errors);
/* Adds to `warnings`: path and pointer are places in the schema, and the message does not repeat
 * the path, as in errors. */
void schema_lint(const json_t *doc, bool has_invariants, struct schema_errors *warnings);

#endif
