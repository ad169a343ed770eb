#include "host/backends.h"

struct provider_registry *backends_new(const struct config *config, struct err *err) {
  (void)err;
  return registry_new(config->providers);
}
