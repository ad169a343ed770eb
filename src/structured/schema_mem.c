#include "structured/schema_support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one exception to "no globals": tests make the n-th allocation fail through it. */
static void *(*hook_alloc)(size_t size) = malloc;
static void (*hook_release)(void *ptr) = free;

void schema_set_allocator(void *(*alloc)(size_t size), void (*release)(void *ptr)) {
  hook_alloc = alloc ? alloc : malloc;
  hook_release = release ? release : free;
}

void *schema_alloc(size_t size) {
  return hook_alloc(size ? size : 1);
}

void schema_release(void *ptr) {
  if (ptr)
    hook_release(ptr);
}

bool schema_grow(void **items, size_t *capacity, size_t need, size_t size) {
  if (need <= *capacity)
    return true;
  size_t wanted = *capacity ? *capacity * 2 : 8;
  while (wanted < need)
    wanted *= 2;
  void *bigger = schema_alloc(wanted * size);
  if (!bigger)
    return false;
  if (*items)
    memcpy(bigger, *items, *capacity * size);
  schema_release(*items);
  *items = bigger;
  *capacity = wanted;
  return true;
}

struct arena_chunk {
  struct arena_chunk *next;
  size_t size;
  _Alignas(16) unsigned char bytes[];
};

void *schema_arena_get(struct schema_arena *arena, size_t size) {
  size = (size + 15) & ~(size_t)15;
  if (!arena->chunks || arena->chunks->size - arena->used < size) {
    size_t room = size > 4000 ? size : 4000;
    struct arena_chunk *chunk = schema_alloc(sizeof *chunk + room);
    if (!chunk)
      return NULL;
    chunk->size = room;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->used = 0;
  }
  void *at = arena->chunks->bytes + arena->used;
  arena->used += size;
  memset(at, 0, size);
  return at;
}

char *schema_arena_copy(struct schema_arena *arena, const char *text, size_t length) {
  char *copy = schema_arena_get(arena, length + 1);
  if (copy && length)
    memcpy(copy, text, length);
  return copy;
}

void schema_arena_deinit(struct schema_arena *arena) {
  while (arena->chunks) {
    struct arena_chunk *next = arena->chunks->next;
    schema_release(arena->chunks);
    arena->chunks = next;
  }
  arena->used = 0;
}

struct map_slot {
  const void *key; /* NULL: free */
  uint32_t length;
  uint32_t hash;
  uint32_t value;
};

static uint32_t key_hash(const void *key, size_t length) {
  const unsigned char *p = key;
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < length; i++)
    h = (h ^ p[i]) * 1099511628211u;
  return (uint32_t)(h ^ (h >> 32));
}

static struct map_slot *map_slot(const struct map *map, const void *key, size_t length,
                                 uint32_t hash) {
  for (uint32_t at = hash & (map->capacity - 1);; at = (at + 1) & (map->capacity - 1)) {
    struct map_slot *slot = &map->slots[at];
    if (!slot->key ||
        (slot->hash == hash && slot->length == length && !memcmp(slot->key, key, length)))
      return slot;
  }
}

static bool map_widen(struct map *map) {
  uint32_t capacity = map->capacity ? map->capacity * 2 : 16;
  struct map wider = {schema_alloc(capacity * sizeof *wider.slots), capacity, map->count};
  if (!wider.slots)
    return false;
  memset(wider.slots, 0, capacity * sizeof *wider.slots);
  for (uint32_t i = 0; i < map->capacity; i++) {
    const struct map_slot *slot = &map->slots[i];
    if (slot->key)
      *map_slot(&wider, slot->key, slot->length, slot->hash) = *slot;
  }
  schema_release(map->slots);
  *map = wider;
  return true;
}

bool schema_map_put(struct map *map, struct schema_arena *arena, const void *key, size_t length,
                    uint32_t value) {
  if (map->count * 2 >= map->capacity && !map_widen(map))
    return false;
  uint32_t hash = key_hash(key, length);
  struct map_slot *slot = map_slot(map, key, length, hash);
  if (!slot->key) {
    const char *copy = schema_arena_copy(arena, key, length);
    if (!copy)
      return false;
    *slot = (struct map_slot){copy, (uint32_t)length, hash, value};
    map->count++;
  }
  slot->value = value;
  return true;
}

bool schema_map_get(const struct map *map, const void *key, size_t length, uint32_t *value) {
  if (!map->capacity)
    return false;
  const struct map_slot *slot = map_slot(map, key, length, key_hash(key, length));
  if (slot->key)
    *value = slot->value;
  return slot->key != NULL;
}

void schema_map_deinit(struct map *map) {
  schema_release(map->slots);
  *map = (struct map){0};
}

void schema_text_add(struct text *text, const char *bytes, size_t length) {
  if (text->failed)
    return;
  if (!schema_grow((void **)&text->bytes, &text->capacity, text->length + length + 1, 1)) {
    text->failed = true;
    return;
  }
  if (length)
    memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  text->bytes[text->length] = '\0';
}

void schema_text_puts(struct text *text, const char *string) {
  schema_text_add(text, string, strlen(string));
}

void schema_text_printf(struct text *text, const char *format, ...) {
  char small[256];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(small, sizeof small, format, args);
  va_end(args);
  if (n < 0)
    text->failed = true;
  else
    schema_text_add(text, small, (size_t)n < sizeof small ? (size_t)n : sizeof small - 1);
}

char *schema_text_take(struct text *text) {
  schema_text_add(text, "", 0);
  char *bytes = text->failed ? NULL : text->bytes;
  if (!bytes)
    schema_release(text->bytes);
  *text = (struct text){0};
  return bytes;
}

void schema_text_deinit(struct text *text) {
  schema_release(text->bytes);
  *text = (struct text){0};
}
