/* json_object.h - members of JSON objects by literal keys, and their texts. The length of a key is
 * a compile-time constant: measuring the keys of every turn shows up in profiles. */
#ifndef SEGUE_FORMAT_JSON_OBJECT_H
#define SEGUE_FORMAT_JSON_OBJECT_H

#include "base/str.h"

#include <jansson.h>
#include <string.h>

/* json_object_set_new_nocheck: takes `value`, whose texts are UTF-8. */
#define json_put(object, key, value)                                                               \
  json_object_setn_new_nocheck((object), "" key, sizeof(key) - 1, (value))
/* Gets a member: borrowed, or NULL. */
#define json_at(object, key) json_object_getn((object), "" key, sizeof(key) - 1)

/* Returns a member's text, "" if it is none: borrowed, ends with NUL. */
static inline struct str json_view(const json_t *value) {
  if (!json_is_string(value))
    return STR("");
  return (struct str){json_string_value(value), json_string_length(value)};
}

/* The same of a member. */
static inline struct str json_view_at(const json_t *object, const char *key) {
  return json_view(json_object_getn(object, key, strlen(key)));
}

/* The same as a C string. */
static inline const char *json_word_at(const json_t *object, const char *key) {
  return json_view_at(object, key).p;
}

/* Holds `value` from now on in the place of what the slot held. */
static inline void json_keep(json_t **slot, const json_t *value) {
  json_t *before = *slot;
  *slot = json_incref((json_t *)value);
  json_decref(before);
}

/* Returns a member's integer, 0 if it is none. */
static inline json_int_t json_int_at(const json_t *object, const char *key) {
  return json_integer_value(json_object_getn(object, key, strlen(key)));
}

#endif
