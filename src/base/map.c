/* Maps bytes to numbers: one table, open addressing, at most half full. */
#include "base/map.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct map_slot {
  const char *key; /* NULL: free */
  uint32_t length; /* bytes */
  uint32_t hash;
  uint32_t value;
};

enum { FIRST_CAPACITY = 16 };

/* Hashes by FNV-1a, folded: short keys that differ in little, no attacker who chooses them by the
 * million (limits.h bounds every schema). */
static uint32_t map_hash(struct str key) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < key.n; i++)
    h = (h ^ (unsigned char)key.p[i]) * 1099511628211u;
  return (uint32_t)(h ^ (h >> 32));
}

/* Returns the slot that holds the key, or the free one where it would go. */
static struct map_slot *map_slot_of(const struct map *map, struct str key, uint32_t hash) {
  for (uint32_t at = hash & (map->capacity - 1);; at = (at + 1) & (map->capacity - 1)) {
    struct map_slot *slot = &map->slots[at];
    if (slot->key == NULL)
      return slot;
    if (slot->hash == hash && slot->length == key.n &&
        (key.n == 0 || memcmp(slot->key, key.p, key.n) == 0))
      return slot;
  }
}

static void map_widen(struct map *map) {
  assert(map->capacity <= UINT32_MAX / 2);
  uint32_t capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY;
  struct map wider = {xcalloc(capacity, sizeof *wider.slots), capacity, map->count};
  for (uint32_t i = 0; i < map->capacity; i++) {
    const struct map_slot *slot = &map->slots[i];
    if (slot->key != NULL)
      *map_slot_of(&wider, (struct str){slot->key, slot->length}, slot->hash) = *slot;
  }
  free(map->slots);
  *map = wider;
}

bool map_get(const struct map *map, struct str key, uint32_t *value) {
  assert(map->count <= map->capacity / 2);
  if (map->count == 0)
    return false;
  const struct map_slot *slot = map_slot_of(map, key, map_hash(key));
  if (slot->key == NULL)
    return false;
  *value = slot->value;
  return true;
}

bool map_add(struct map *map, struct arena *arena, struct str key, uint32_t *value) {
  assert(key.n <= UINT32_MAX);
  if (map->count == map->capacity / 2)
    map_widen(map);
  uint32_t hash = map_hash(key);
  struct map_slot *slot = map_slot_of(map, key, hash);
  if (slot->key != NULL) {
    *value = slot->value;
    return false;
  }
  *slot = (struct map_slot){arena_str(arena, key).p, (uint32_t)key.n, hash, *value};
  map->count++;
  return true;
}

void map_put(struct map *map, struct arena *arena, struct str key, uint32_t value) {
  uint32_t known = value;
  if (!map_add(map, arena, key, &known))
    map_slot_of(map, key, map_hash(key))->value = value;
}

void map_deinit(struct map *map) {
  free(map->slots);
  *map = (struct map){0};
}
