/* arena.h - memory that is freed in one go; parsed things live in one.
 *
 * arena_alloc returns zeroed memory aligned for any type and never NULL. Nothing in an arena is
 * freed singly. arena_deinit frees all and leaves a zeroed arena. */
#ifndef SEGUE_BASE_ARENA_H
#define SEGUE_BASE_ARENA_H

#include "base/str.h"

#include <stddef.h>

struct arena_block;
struct arena {
  struct arena_block *blocks;
  size_t used_bytes; /* given out so far */
};

void *arena_alloc(struct arena *a, size_t n);
void *arena_array(struct arena *a, size_t count, size_t each); /* overflow-checked */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
struct str arena_str(struct arena *a, struct str s); /* a NUL-terminated copy */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena_deinit(struct arena *a);

/* A list of texts in an arena. `items` ends with NULL; NULL itself while nothing was added. */
struct arena_list {
  const char **items;
  size_t n, room;
};

void arena_list_add(struct arena *a, struct arena_list *list, struct str text); /* adds a copy */

#endif
