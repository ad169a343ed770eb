/* Walks two values at once, or one that is copied. */
#include "format/json_value.h"

#include <string.h>

bool json_same(const json_t *a, const json_t *b) {
  if (a == NULL || b == NULL || json_typeof(a) != json_typeof(b))
    return false;
  if (a == b)
    return true;
  switch (json_typeof(a)) {
  case JSON_OBJECT: {
    if (json_object_size(a) != json_object_size(b))
      return false;
    for (void *at = json_object_iter((json_t *)a); at;
         at = json_object_iter_next((json_t *)a, at)) {
      const json_t *other =
          json_object_getn(b, json_object_iter_key(at), json_object_iter_key_len(at));
      if (!json_same(json_object_iter_value(at), other))
        return false;
    }
    return true;
  }
  case JSON_ARRAY: {
    size_t n = json_array_size(a);
    if (n != json_array_size(b))
      return false;
    for (size_t i = 0; i < n; i++)
      if (!json_same(json_array_get(a, i), json_array_get(b, i)))
        return false;
    return true;
  }
  case JSON_STRING:
    return json_string_length(a) == json_string_length(b) &&
           memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) == 0;
  case JSON_INTEGER:
    return json_integer_value(a) == json_integer_value(b);
  case JSON_REAL:
    return json_real_value(a) == json_real_value(b);
  case JSON_TRUE:
  case JSON_FALSE:
  case JSON_NULL:
    return true;
  }
  return false;
}

/* Takes a member over: shared, or a copy of it. */
static json_t *member_copied(json_t *member, bool deep) {
  return deep ? json_clone(member) : json_incref(member);
}

static json_t *value_copied(const json_t *value, bool deep) {
  json_t *v = (json_t *)value, *out;
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    out = json_object();
    for (void *at = json_object_iter(v); at; at = json_object_iter_next(v, at))
      json_object_setn_new_nocheck(out, json_object_iter_key(at), json_object_iter_key_len(at),
                                   member_copied(json_object_iter_value(at), deep));
    return out;
  case JSON_ARRAY:
    out = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
      json_array_append_new(out, member_copied(json_array_get(value, i), deep));
    return out;
  case JSON_STRING:
    return json_stringn_nocheck(json_string_value(value), json_string_length(value));
  case JSON_INTEGER:
    return json_integer(json_integer_value(value));
  case JSON_REAL:
    return json_real(json_real_value(value));
  case JSON_TRUE:
  case JSON_FALSE:
  case JSON_NULL:
    break;
  }
  return v;
}

json_t *json_clone_top(const json_t *value) {
  return value ? value_copied(value, false) : NULL;
}

json_t *json_clone(const json_t *value) {
  return value ? value_copied(value, true) : NULL;
}
