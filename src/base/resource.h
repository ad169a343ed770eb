/* resource.h - files compiled into the program: prompts/<lang>/<name>.md, schemas/<name>.json.
 *
 * The table is written by cmake/embed.cmake; names are paths below the source root without "src/",
 * sorted. The bytes are followed by a NUL that `n` does not count. */
#ifndef SEGUE_BASE_RESOURCE_H
#define SEGUE_BASE_RESOURCE_H

#include <stddef.h>

struct resource {
  const char *name; /* NULL ends the table */
  const char *p;
  size_t n;
};

extern const struct resource resource_table[];

const struct resource *resource_find(const char *name); /* NULL when there is none */

#endif
