/* map.h - maps bytes to a number, usually the index of an entry in its owner's array.
 *
 * `struct map m = {0};` is a valid empty map. Keys are copied into the arena given with them, which
 * must live as long as the map; only the table itself is the map's own, and map_deinit frees it and
 * leaves a zeroed map. Keys are never removed. A pointer or a number is a key through MAP_KEY. */
#ifndef SEGUE_BASE_MAP_H
#define SEGUE_BASE_MAP_H

#include "base/arena.h"
#include "base/str.h"

#include <stdint.h>

struct map_slot;
struct map {
  struct map_slot *slots;
  uint32_t capacity; /* a power of two, or 0 */
  uint32_t count;
};

/* The bytes of an object as a key; it must have no padding. */
#define MAP_KEY(object) ((struct str){(const char *)&(object), sizeof(object)})

bool map_get(const struct map *map, struct str key, uint32_t *value);
/* Replaces the value of a known key. */
void map_put(struct map *map, struct arena *arena, struct str key, uint32_t value);
/* True: the key was new and now has *value. False: it was known, and *value is set to its value. */
bool map_add(struct map *map, struct arena *arena, struct str key, uint32_t *value);
void map_deinit(struct map *map);

#endif
