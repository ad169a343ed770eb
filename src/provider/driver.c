/* The drivers by name. */
#include "provider/driver.h"

#include "base/log.h"

#include <string.h>

const struct driver_ops *driver_find(const struct profile *profile, enum transport transport,
                                     struct err *err) {
  static const struct driver_ops *const drivers[] = {&driver_exec, &driver_acp, &driver_claude,
                                                     &driver_codex, &driver_opencode};
  const char *native = json_string_value(json_object_get(profile->native, "driver"));
  bool there = transport == TRANSPORT_EXEC     ? profile->argv != NULL
               : transport == TRANSPORT_NATIVE ? native != NULL
                                               : profile->acp != NULL;
  for (size_t i = 0; there && i < ARRAY_LEN(drivers); i++)
    if (drivers[i]->transport == transport &&
        (transport != TRANSPORT_NATIVE || strcmp(drivers[i]->name, native) == 0))
      return drivers[i];
  (void)err_set(err, ERR_INVALID, "provider %s has no transport %s", profile->capability.name,
                transport_name(transport));
  return NULL;
}
