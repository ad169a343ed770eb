/* value_ref.h - {structured:MOVEMENT.FIELD}: a value that an earlier movement made, named in a
 * template.
 *
 * MOVEMENT is the longest movement name that the path begins with (names may contain dots); members
 * and items follow: .address.city, .items[0].name. MOVEMENT alone is the whole value. */
#ifndef SEGUE_CORE_VALUE_REF_H
#define SEGUE_CORE_VALUE_REF_H

#include "core/workflow.h"

/* A variable with a reference begins so. */
#define PROMPT_STRUCTURED "structured:"
/* So does one with a report, by its file, and one with a movement's last answer. */
#define PROMPT_REPORT   "report:"
#define PROMPT_RESPONSE "response:"
/* This one gives the branches that a group's children worked on: a line each, in the order of the
 * items. */
#define PROMPT_BRANCHES "branches:"

/* This one gives an input of the workflow: {input:NAME}. */
#define PROMPT_INPUT "input:"

struct prompt_ref {
  struct str movement; /* borrowed from the path */
  struct str rest;     /* "" or ".field[0]..." */
};

/* Splits a path. False: it does not begin with a movement's name. */
bool prompt_ref_parse(struct str path, const struct workflow *workflow, struct prompt_ref *out);
/* Does the same with the movements' names, NULL-terminated. */
bool prompt_ref_split(struct str path, const char *const *movements, struct prompt_ref *out);
/* Takes the next part of rest: a member's name, or an index with *is_index set. Returns false at
 * the end, or if rest begins with neither. */
bool prompt_ref_next(struct str *rest, struct str *part, bool *is_index);
/* Returns the part of a movement's value that it names; NULL if it is missing. Borrowed. */
const json_t *prompt_ref_value(const struct prompt_ref *ref, const json_t *value);

#endif
