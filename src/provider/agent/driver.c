/* Finds the driver of a profile and a transport. */
#include "provider/agent/driver.h"

#include "base/log.h"

#include <assert.h>
#include <string.h>

static bool has_transport(const struct profile *profile, enum transport transport) {
  switch (transport) {
  case TRANSPORT_EXEC:
    return profile->argv != NULL;
  case TRANSPORT_NATIVE:
    return json_string_value(json_object_get(profile->native, "driver")) != NULL;
  case TRANSPORT_ACP:
    return profile->acp != NULL;
  case TRANSPORT_COUNT:
    break;
  }
  BUG("a transport has no number");
}

const struct driver_ops *driver_find(const struct profile *profile, enum transport transport,
                                     struct err *err) {
  assert(profile != NULL);
  assert(transport < TRANSPORT_COUNT);
  static const struct driver_ops *const drivers[] = {&driver_exec, &driver_acp, &driver_claude,
                                                     &driver_codex, &driver_opencode};
  const char *native = json_string_value(json_object_get(profile->native, "driver"));
  bool there = has_transport(profile, transport);
  for (size_t i = 0; there && i < ARRAY_LEN(drivers); i++)
    if (drivers[i]->transport == transport &&
        (transport != TRANSPORT_NATIVE || strcmp(drivers[i]->name, native) == 0))
      return drivers[i];
  err_set(err, ERR_INVALID, "provider %s has no transport %s", profile->capability.name,
          transport_name(transport));
  return NULL;
}

struct permission_policy driver_policy(const struct agent_call *call) {
  return (struct permission_policy){.permission = call->permission,
                                    .cwd = call->cwd,
                                    .tools = call->tools,
                                    .run = call->request->run};
}
