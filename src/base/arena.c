/* Hands out memory from blocks that all go at once. */
#include "base/arena.h"

#include "base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
  struct arena_block *next;
  size_t n, cap;
  _Alignas(max_align_t) char data[];
};

enum { BLOCK_BYTES = 4000 };

void *arena_alloc(struct arena *a, size_t n) {
  size_t align = _Alignof(max_align_t);
  assert(n < SIZE_MAX / 2);
  n = (n + align - 1) / align * align;
  struct arena_block *b = a->blocks;
  if (b == NULL || b->cap - b->n < n) {
    size_t cap = n > BLOCK_BYTES / 4 ? n : BLOCK_BYTES;
    struct arena_block *fresh = xcalloc(1, sizeof *fresh + cap);
    fresh->cap = cap;
    if (b != NULL && n > BLOCK_BYTES / 4) { /* a large piece must not end the current block */
      fresh->next = b->next;
      b->next = fresh;
    } else {
      fresh->next = b;
      a->blocks = fresh;
    }
    b = fresh;
  }
  void *p = b->data + b->n;
  b->n += n;
  a->used_bytes += n;
  return p;
}

void *arena_array(struct arena *a, size_t count, size_t each) {
  assert(each == 0 || count <= SIZE_MAX / 2 / each);
  return arena_alloc(a, count * each);
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
  char *copy = arena_alloc(a, n + 1);
  memcpy(copy, s, n);
  return copy;
}

char *arena_strdup(struct arena *a, const char *s) {
  return arena_strndup(a, s, strlen(s));
}

struct str arena_str(struct arena *a, struct str s) {
  return (struct str){arena_strndup(a, s.p ? s.p : "", s.n), s.n};
}

char *arena_printf(struct arena *a, const char *fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  assert(n >= 0);
  char *text = arena_alloc(a, (size_t)n + 1);
  (void)vsnprintf(text, (size_t)n + 1, fmt, args);
  va_end(args);
  return text;
}

void arena_list_add(struct arena *a, struct arena_list *list, struct str text) {
  if (list->n + 1 >= list->room) {
    size_t room = list->room ? list->room * 2 : 16;
    const char **items = arena_array(a, room, sizeof *items);
    if (list->n > 0)
      memcpy(items, list->items, list->n * sizeof *items);
    list->items = items;
    list->room = room;
  }
  list->items[list->n++] = arena_str(a, text).p;
  list->items[list->n] = NULL;
}

void arena_deinit(struct arena *a) {
  struct arena_block *b = a->blocks;
  while (b) {
    struct arena_block *next = b->next;
    free(b);
    b = next;
  }
  *a = (struct arena){0};
}
