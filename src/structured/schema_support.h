/* What the files of the schema library stand on: memory, URIs, values, patterns, formats,
 * documents. Internal. */
#ifndef SEGUE_STRUCTURED_SCHEMA_SUPPORT_H
#define SEGUE_STRUCTURED_SCHEMA_SUPPORT_H

#include "structured/pattern.h"
#include "structured/schema.h"

#include <stdint.h>
#include <string.h>

/* --- memory (schema_mem.c) --- */

void *schema_alloc(size_t size);
void schema_release(void *ptr);
/* Grows *items to hold at least `need` of `size` bytes each. */
bool schema_grow(void **items, size_t *capacity, size_t need, size_t size);

struct arena_chunk;
struct schema_arena {
  struct arena_chunk *chunks;
  size_t used; /* bytes of the newest chunk */
};
void *schema_arena_get(struct schema_arena *arena, size_t size); /* zeroed; NULL if out of memory */
char *schema_arena_copy(struct schema_arena *arena, const char *text, size_t length);
void schema_arena_deinit(struct schema_arena *arena);

/* Bytes to a number; keys are copied into the arena. */
struct map {
  struct map_slot *slots;
  uint32_t capacity;
  uint32_t count;
};
bool schema_map_put(struct map *map, struct schema_arena *arena, const void *key, size_t length,
                    uint32_t value);
bool schema_map_get(const struct map *map, const void *key, size_t length, uint32_t *value);
void schema_map_deinit(struct map *map);

/* Growing text; a failed growth sticks. */
struct text {
  char *bytes;
  size_t length, capacity;
  bool failed;
};
void schema_text_add(struct text *text, const char *bytes, size_t length);
void schema_text_puts(struct text *text, const char *string);
void schema_text_printf(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *schema_text_take(struct text *text); /* NULL if it failed */
void schema_text_deinit(struct text *text);

/* --- URIs (schema_uri.c), RFC 3986 --- */

/* `reference` resolved against `base`, with its fragment, in *out. False if out of memory. */
bool schema_uri_resolve(const char *base, const char *reference, struct text *out);
/* Length up to the '#', or all of it. */
size_t schema_uri_without_fragment(const char *uri);
/* Percent-decodes; the result is NUL-terminated. */
bool schema_uri_decode(const char *bytes, size_t length, struct text *out);

/* --- values (schema_value.c) --- */

bool schema_value_is_integral(const json_t *value); /* a number without a fraction */
/* -1, 0, 1; exact between 64-bit integers and doubles. Both are numbers. */
int schema_value_compare(const json_t *a, const json_t *b);
int schema_value_compare_mixed(json_int_t a, double b);
/* Magnitude = mantissa * 10^exponent, from the shortest decimal text of the number: what its author
 * wrote. */
struct decimal {
  uint64_t mantissa;
  int exponent;
};
struct decimal schema_value_decimal(double number);
bool schema_value_multiple_of(const json_t *value, const json_t *divisor);
size_t schema_value_code_points(const char *text, size_t bytes);
/* More than `levels` arrays and objects inside each other? */
bool schema_value_too_deep(const json_t *value, int levels);
/* Takes `work` down; when that is used up, or the values are too deep, work is below 0 and the
 * answer is false. */
bool schema_value_equal(const json_t *a, const json_t *b, int64_t *work);
enum unique { UNIQUE_YES, UNIQUE_NO, UNIQUE_NO_MEMORY };
/* If UNIQUE_NO, items `first` and `second` are equal. */
enum unique schema_value_unique(const json_t *array, size_t *first, size_t *second, int64_t *work);

/* --- patterns (schema_pattern.c) --- */

/* False if it is none: *error (static) says why, *offset where. True with out->failed: out of
 * memory. The caller deinits *out either way. */
bool pattern_translate(const char *text, size_t length, struct text *out, const char **error,
                       size_t *offset);

/* --- formats (schema_format.c) --- */

typedef bool (*format_check)(const char *text, size_t length);
format_check schema_format_find(const char *name);

/* --- metaschemas and the registry (schema_meta.c, schema_registry.c) --- */

const char *schema_metaschema_text(const char *uri); /* NULL if it is none */
/* A new reference or NULL. */
json_t *schema_registry_find(const struct schema_registry *registry, const char *uri);

#endif
