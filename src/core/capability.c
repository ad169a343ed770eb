/* Finds what a provider can do by its name. */
#include "core/capability.h"

#include <stddef.h>

const char *const option_names[] = {"temperature", "seed", "max_tokens", "effort", NULL};

const struct capability *capability_find(const struct capability *table, struct str name) {
  for (; table->name; table++)
    if (str_eq_c(name, table->name))
      return table;
  return NULL;
}
