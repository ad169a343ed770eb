/* Finds a file that is compiled in, by its name. */
#include "base/resource.h"

#include <string.h>

const struct resource *resource_find(const char *name) {
  for (const struct resource *r = resource_table; r->name; r++)
    if (strcmp(r->name, name) == 0)
      return r;
  return NULL;
}
