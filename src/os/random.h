/* random.h - random bytes of the system. */
#ifndef SEGUE_OS_RANDOM_H
#define SEGUE_OS_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/* at once: up to this many always come whole, even with signals */
enum { RANDOM_FILL_BYTES_MAX = 256 };

void random_fill(void *p, size_t n);
/* Does the same for callers that can do without. False: the system has none yet, early at boot. */
bool random_try(void *p, size_t n);

#endif
