/* rejected_parameter.h - finds why a request was refused: for a parameter that can be left out, for
 * the schema's form, or for the model. Pure. */
#ifndef SEGUE_PROVIDER_API_REJECTED_PARAMETER_H
#define SEGUE_PROVIDER_API_REJECTED_PARAMETER_H

#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>

/* Holds a server's words: the parameter that it named in a field of its own ("" if none), and its
 * message for people. */
struct rejected_parameter {
  const char *param, *message;
};

/* Returns the name of a parameter in the request `body` that was refused and can be left out, or
 * NULL. Borrowed from `body`. needed: a parameter that every request must have, or NULL. */
const char *rejected_parameter_parameter(const struct rejected_parameter *refusal,
                                         const json_t *body, const char *needed);
bool rejected_parameter_is_about_schema(const struct rejected_parameter *refusal);
/* Returns true if the field that it names holds what is asked: no other backend would take it. */
bool rejected_parameter_is_about_content(const struct rejected_parameter *refusal);

/* Returns how many tokens an answer may have, where so many were refused: a smaller number that the
 * words name; or 0. */
long rejected_parameter_most(const struct rejected_parameter *refusal, long than);

/* Removes the parameter from the body, wherever it is. */
void rejected_parameter_leave_out(json_t *body, const char *name);

#endif
