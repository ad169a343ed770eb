/* lint.h - warns of schemas that are sound but ask for trouble when a model has to fill them. Pure;
 * `doc` is read as it is, and references only within it.
 *
 * Two warnings, in the order of the document:
 *  - keyword "required": a required member that takes a fact (a text, a number, a list with a least
 *    length) and neither null nor one of a few values. A model that finds no such fact in its input
 * must invent one: "required and not nullable: ...". It leaves out enum, const, default, booleans,
 * and members whose name says that the model makes them up (reason, summary, confidence, ...).
 *  - keyword "unbounded", once, at "$": no enum, const, bound (minimum, maxLength, pattern, ...)
 *    and no invariant, so that whatever has the right types passes. */
#ifndef SEGUE_SCHEMA_LINT_H
#define SEGUE_SCHEMA_LINT_H

#include "schema/schema.h"

/* Adds warnings to `warnings`: path and pointer are places in the schema, message is without the
 * path, as in errors. */
void schema_lint(const json_t *doc, bool has_invariants, struct schema_errors *warnings);

#endif
