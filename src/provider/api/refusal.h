/* refusal.h - why a request was refused: for a parameter that can be left out, for the schema's
 * form, or for the model? Pure. */
#ifndef SEGUE_PROVIDER_API_REFUSAL_H
#define SEGUE_PROVIDER_API_REFUSAL_H

#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>

/* A server said this: the parameter that it named in a field of its own ("" when none), and its
 * words for people. */
struct refusal {
  const char *param, *message;
};

/* The name of a parameter of the request `body` that is refused and can be left out; NULL when
 * there is none. Borrowed from `body`. needed: one that no request may lack, or NULL. */
const char *refusal_parameter(const struct refusal *refusal, const json_t *body,
                              const char *needed);
bool refusal_is_about_schema(const struct refusal *refusal);
bool refusal_is_about_model(const struct refusal *refusal);

/* Takes the parameter out of the body, wherever it stands. */
void refusal_leave_out(json_t *body, const char *name);

#endif
