/* schema_lint.h - warns of valid schemas that ask for trouble when a model has to fill them. It is
 * pure; `doc` is read as it is, and references only within it.
 *
 * There are two warnings, in the order of the document:
 *  - keyword "required": a required member that takes a fact (a text, a number, a list with a least
 *    length) and neither null nor one of a few values. A model that finds no such fact in its input
 *    must invent one: "required and not nullable: ...". Not for enum, const, default and booleans,
 *    nor for members whose name says that the model makes them up (reason, summary, ...).
 *  - keyword "unbounded", once, at "$": there is no enum, const, bound (minimum, maxLength,
 *    pattern, ...) or invariant, so whatever has the right types passes. */
#ifndef SEGUE_SCHEMA_SCHEMA_LINT_H
#define SEGUE_SCHEMA_SCHEMA_LINT_H

#include "schema/schema.h"

/* Adds to `warnings`: path and pointer are places in the schema, and the message does not repeat
 * the path, as in errors. */
void schema_lint(const json_t *doc, bool has_invariants, struct schema_errors *warnings);

#endif
