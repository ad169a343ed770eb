/* Reads the user's configuration and makes its backends, as one generation each time. */
#include "base/log.h"
#include "daemon/launch.h"
#include "host/overrides.h"
#include "host/preflight.h"

#include <stdlib.h>

struct generation *generation_new(struct err *err) {
  struct generation *g = xcalloc(1, sizeof *g);
  g->references = 1;
  if (!config_load(&g->user, err)) {
    free(g);
    return NULL;
  }
  g->registry = backends_new(&g->user, err);
  if (g->registry == NULL) {
    config_deinit(&g->user);
    free(g);
    return NULL;
  }
  backends_warn(g->registry);
  overrides_warn();
  return g;
}

struct generation *generation_ref(struct generation *g) {
  g->references++;
  return g;
}

void generation_unref(struct generation *g) {
  if (g == NULL || --g->references > 0)
    return;
  registry_free(g->registry);
  config_deinit(&g->user);
  free(g);
}
