/* random.h - random bytes of the system. */
#ifndef SEGUE_OS_RANDOM_H
#define SEGUE_OS_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

enum { RANDOM_FILL_BYTES_MAX = 256 }; /* at once: so many come whole, whatever signals do */

void random_fill(void *p, size_t n);
/* The same for what can do without: false where the system has none yet, early at boot. */
bool random_try(void *p, size_t n);

#endif
