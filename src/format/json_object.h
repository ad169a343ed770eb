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

/* Goes through an array's items, or an object's members; both names, and the place `at`, are
 * declared here. The body may break off, but neither add nor remove. Two loops in one: the flag
 * ends the outer one where the body left the inner one. */
#define JSON_EACH(array, at, item)                                                                 \
  for (size_t at = 0, item##_on = 1; item##_on && at < json_array_size(array); at++)               \
    for (json_t *item = (item##_on = 0, json_array_get(array, at)); item != NULL;                  \
         item##_on = 1, item = NULL)
#define JSON_MEMBERS(object, key, value)                                                           \
  for (void *key##_at = json_object_iter((json_t *)(size_t)(object)), *key##_on = key##_at;        \
       key##_on != NULL && key##_at != NULL;                                                       \
       key##_at = json_object_iter_next((json_t *)(size_t)(object), key##_at))                     \
    for (const char *key = json_object_iter_key((key##_on = NULL, key##_at)); key != NULL;         \
         key = NULL)                                                                               \
      for (json_t *value = json_object_iter_value(key##_at); value != NULL;                        \
           key##_on = key##_at, value = NULL)

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
