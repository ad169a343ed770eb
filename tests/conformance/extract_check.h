/* A small schema check for the extractor's tests and scores: enough for the corpus (type, required,
 * properties one level deep, enum, additionalProperties false), and independent of the validator.
 */
#ifndef SEGUE_TESTS_EXTRACT_CHECK_H
#define SEGUE_TESTS_EXTRACT_CHECK_H

#include "extract/extract.h"
#include "format/json_object.h"

#include <string.h>

static inline bool extract_check_type(const json_t *type, const json_t *v) {
  if (json_is_array(type)) {
    for (size_t i = 0; i < json_array_size(type); i++)
      if (extract_check_type(json_array_get(type, i), v))
        return true;
    return false;
  }
  const char *t = json_string_value(type);
  if (!t)
    return true;
  return (!strcmp(t, "object") && json_is_object(v)) || (!strcmp(t, "array") && json_is_array(v)) ||
         (!strcmp(t, "string") && json_is_string(v)) ||
         (!strcmp(t, "integer") && json_is_integer(v)) ||
         (!strcmp(t, "integer") && json_is_real(v) &&
          json_real_value(v) == (double)(long long)json_real_value(v)) ||
         (!strcmp(t, "number") && json_is_number(v)) ||
         (!strcmp(t, "boolean") && json_is_boolean(v)) || (!strcmp(t, "null") && json_is_null(v));
}

static inline bool extract_check_valid(void *ctx, const json_t *v) {
  const json_t *schema = ctx, *required = json_object_get(schema, "required");
  const json_t *properties = json_object_get(schema, "properties");
  if (!extract_check_type(json_object_get(schema, "type"), v))
    return false;
  for (size_t i = 0; i < json_array_size(required); i++)
    if (!json_object_get(v, json_string_value(json_array_get(required, i))))
      return false;
  bool closed = json_is_false(json_object_get(schema, "additionalProperties"));
  JSON_MEMBERS(v, key, member) {
    const json_t *property = json_object_get(properties, key);
    if (!property && closed)
      return false;
    if (property && !extract_check_type(json_object_get(property, "type"), member))
      return false;
    const json_t *choices = json_object_get(property, "enum");
    bool found = !choices;
    for (size_t i = 0; i < json_array_size(choices); i++)
      found = found || json_equal(json_array_get(choices, i), member);
    if (!found)
      return false;
  }
  return true;
}

static inline int extract_check_nearness(void *ctx, const json_t *v) {
  const json_t *required = json_object_get(ctx, "required");
  int shared = 0;
  for (size_t i = 0; i < json_array_size(required); i++)
    shared += json_object_get(v, json_string_value(json_array_get(required, i))) != NULL;
  return shared;
}

static inline bool extract_check_key(void *ctx, const char *key, size_t n) {
  const json_t *required = json_object_get(ctx, "required");
  JSON_EACH(required, i, name) {
    if (json_string_length(name) == n && memcmp(json_string_value(name), key, n) == 0)
      return true;
  }
  return false;
}

static inline bool extract_check_echo(void *ctx, const json_t *v) {
  return json_equal(ctx, v);
}

#endif
