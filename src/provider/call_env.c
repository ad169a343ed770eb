/* Chooses the variables of a call's program. */
#include "provider/call_env.h"

#include "format/json_value.h"

#include <stdlib.h>
#include <string.h>

static bool may_have(const struct provider_env *env, const json_t *name) {
  const json_t *allowed;
  size_t i;
  json_array_foreach((json_t *)env->secrets, i, allowed) {
    if (json_is_string(name) && json_same(allowed, name))
      return true;
  }
  return false;
}

const char *const *call_env_names(struct arena *a, const struct provider_env *env,
                                  const struct call_request *request) {
  size_t n = 0, i;
  const json_t *name;
  while (env->pass_env != NULL && env->pass_env[n] != NULL)
    n++;
  const char **names = arena_array(a, n + json_array_size(request->secrets) + 1, sizeof *names);
  if (n > 0)
    memcpy(names, env->pass_env, n * sizeof *names);
  json_array_foreach((json_t *)request->secrets, i, name) {
    if (may_have(env, name))
      names[n++] = json_string_value(name);
  }
  return names;
}

void call_env_hide(struct secrets *secrets, const struct provider_env *env) {
  const json_t *name;
  size_t i;
  secrets_add_env(secrets, env->pass_env);
  json_array_foreach((json_t *)env->secrets, i, name) {
    const char *const names[] = {json_string_value(name), NULL};
    secrets_add_env(secrets, names);
  }
}
