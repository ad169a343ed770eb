/* Finds the driver of a profile and a transport. */
#include "provider/agent/driver.h"

#include <assert.h>
#include <string.h>

const struct driver_ops *driver_find(const struct profile *profile, enum transport transport,
                                     struct err *err) {
  assert(profile != NULL);
  assert(transport < TRANSPORT_COUNT);
  static const struct driver_ops *const drivers[] = {&driver_exec, &driver_acp, &driver_claude,
                                                     &driver_codex, &driver_opencode};
  const char *native = json_string_value(json_object_get(profile->native, "driver"));
  const json_t *keys = profile_keys_of(profile, transport);
  bool there = keys != NULL && (transport != TRANSPORT_EXEC || profile->argv != NULL);
  for (size_t i = 0; there && i < ARRAY_LEN(drivers); i++)
    if (drivers[i]->transport == transport &&
        (transport != TRANSPORT_NATIVE || (native && strcmp(drivers[i]->name, native) == 0)))
      return drivers[i];
  err_set(err, ERR_INVALID, "provider %s has no transport %s", profile->capability.name,
          transport_name(transport));
  return NULL;
}

bool driver_allows(const struct agent_call *call, const struct permission_policy_ask *ask,
                   const char **reason) {
  const struct permission_policy policy = {.permission = call->permission,
                                           .cwd = call->cwd,
                                           .tools = call->tools,
                                           .run = call->request->run};
  return permission_policy_allows(ask, &policy, reason);
}

bool driver_transport(const struct profile *profile, const json_t *settings, enum transport *out,
                      struct err *err) {
  const char *wanted = json_string_value(json_object_get(settings, "transport"));
  *out = profile->preferred;
  if (wanted != NULL && strcmp(wanted, "auto") != 0 && !transport_from_name(str_from(wanted), out))
    return err_set(err, ERR_FILE, "providers.%s.transport must be auto, exec, native or acp",
                   profile->capability.name);
  return driver_find(profile, *out, err) != NULL;
}
