/* memory.h - what the allocator is told about memory that is large, or no longer needed. */
#ifndef SEGUE_OS_MEMORY_H
#define SEGUE_OS_MEMORY_H

#include <stddef.h>

/* Gives what is free back to the system, but for so many bytes at the end of the heap. */
void memory_give_back(size_t keep_bytes);
/* Pieces of at least so many bytes come from the system and go back to it, each by itself. Else the
 * allocator begins after the first such piece to take them from its heap, where growing is copying
 * and what is free stays. */
void memory_map_large(size_t bytes);

#endif
