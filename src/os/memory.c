/* Tells the allocator how to keep memory. */
#include "os/memory.h"

#include <assert.h>
#include <limits.h>
#include <malloc.h>

void memory_give_back(size_t keep_bytes) {
  (void)malloc_trim(keep_bytes);
}

void memory_map_large(size_t bytes) {
  assert(bytes <= INT_MAX);
#ifdef M_ARENA_MAX
  (void)mallopt(M_ARENA_MAX, 1); /* else each thread of the pool keeps a heap of its own */
#endif
#ifdef M_MMAP_THRESHOLD
  (void)mallopt(M_MMAP_THRESHOLD, (int)bytes);
#endif
}
