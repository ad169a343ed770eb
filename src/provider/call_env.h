/* call_env.h - decides which further variables the program of a call gets, and which of their
 * values are secrets.
 *
 * `env` of the user's configuration goes to every program. Of `secrets` a program gets those that
 * its movement names, and only when it does the movement's work: no judge, no check, no other
 * movement. Their values are hidden in the output of every program, even one that never got them:
 * an agent may have written one to a file. */
#ifndef SEGUE_PROVIDER_CALL_ENV_H
#define SEGUE_PROVIDER_CALL_ENV_H

#include "base/arena.h"
#include "provider/provider.h"
#include "provider/redact.h"

/* Returns the names, NULL-terminated, in `a`. */
const char *const *call_env_names(struct arena *a, const struct provider_env *env,
                                  const struct call_request *request);
void call_env_hide(struct secrets *secrets, const struct provider_env *env);

#endif
