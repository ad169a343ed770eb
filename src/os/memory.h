/* memory.h - advises the allocator about memory that is large, or no longer needed. */
#ifndef SEGUE_OS_MEMORY_H
#define SEGUE_OS_MEMORY_H

#include <stddef.h>

/* Returns free memory to the system, except keep_bytes at the end of the heap. */
void memory_give_back(size_t keep_bytes);
/* Blocks of at least this many bytes are mapped from the system and returned to it one by one.
 * Otherwise, after the first such block, the allocator takes them from its heap, where growing
 * means copying and free memory stays. */
void memory_map_large(size_t bytes);

#endif
