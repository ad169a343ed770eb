/* Allocates, or aborts. */
#include "base/memory.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *memory_or_abort(void *p) {
  if (p == NULL) {
    fputs("segue: out of memory\n", stderr);
    abort();
  }
  return p;
}

void *xmalloc(size_t n) {
  return memory_or_abort(malloc(n ? n : 1));
}

void *xcalloc(size_t count, size_t n) {
  return memory_or_abort(calloc(count ? count : 1, n ? n : 1));
}

void *xrealloc(void *p, size_t n) {
  return memory_or_abort(realloc(p, n ? n : 1));
}

void *xgrow(void *items, size_t *capacity, size_t need, size_t each) {
  assert(each > 0);
  if (need <= *capacity)
    return items;
  size_t wanted = *capacity ? *capacity * 2 : 8;
  while (wanted < need)
    wanted *= 2;
  assert(wanted <= SIZE_MAX / 2 / each);
  *capacity = wanted;
  return xrealloc(items, wanted * each);
}

char *xstrdup(const char *s) {
  return xstrndup(s, strlen(s));
}

char *xstrndup(const char *s, size_t n) {
  char *copy = xmalloc(n + 1);
  memcpy(copy, s, n);
  copy[n] = '\0';
  return copy;
}

char *text_copy(const char *s) {
  return s != NULL ? xstrdup(s) : NULL;
}

void text_free(char **text) {
  free(*text);
}
