#include "format/json_pool.h"

#include "base/limits.h"
#include "base/log.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A slab holds pieces of one size; which, stands in its number's entry of `slab_class`. */
enum { STEP = 16, CLASSES = 9, SLAB_BYTES = 16 * 1024 }; /* pieces of 16 to 144 bytes */
#define SLABS (LIMIT_JSON_POOL_BYTES / SLAB_BYTES)

struct piece {
  struct piece *next;
};

static char *region; /* NULL: not in use */
static size_t slab_count;
static unsigned char slab_class[SLABS];
static struct piece *free_pieces[CLASSES];
/* Of a class: what no piece was cut from yet. Only what is cut is touched, and takes memory. */
static struct {
  char *at;
  size_t pieces;
} uncut[CLASSES];
static _Thread_local bool owner;

static bool add_slab(size_t class) {
  if (slab_count == SLABS)
    return false;
  char *slab = region + slab_count * SLAB_BYTES;
  slab_class[slab_count++] = (unsigned char)class;
  uncut[class].at = slab;
  uncut[class].pieces = SLAB_BYTES / ((class + 1) * STEP);
  return true;
}

static void *take(size_t n) {
  size_t class = n == 0 ? 0 : (n - 1) / STEP;
  if (class >= CLASSES || !owner)
    return malloc(n);
  struct piece *p = free_pieces[class];
  if (p != NULL) {
    free_pieces[class] = p->next;
    return p;
  }
  if (uncut[class].pieces == 0 && !add_slab(class))
    return malloc(n);
  uncut[class].pieces--;
  p = (struct piece *)(void *)uncut[class].at;
  uncut[class].at += (class + 1) * STEP;
  return p;
}

static void give(void *ptr) {
  uintptr_t at = (uintptr_t)ptr - (uintptr_t)region;
  if (at >= LIMIT_JSON_POOL_BYTES) {
    free(ptr);
    return;
  }
  if (!owner)
    BUG("a JSON value is freed on a thread that does not own it");
  struct piece *p = ptr;
  size_t class = slab_class[at / SLAB_BYTES];
  p->next = free_pieces[class];
  free_pieces[class] = p;
}

void json_pool_use(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  void *p = mmap(NULL, LIMIT_JSON_POOL_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region != NULL || p == MAP_FAILED)
    return; /* malloc does it all */
  region = p;
  owner = true;
  json_set_alloc_funcs(take, give);
#else
  (void)take;
  (void)give;
#endif
}
