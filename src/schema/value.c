/* Compares, counts and hashes JSON values. */
#include "schema/support.h"

#include <assert.h>
#include <stdlib.h>

bool schema_value_is_integral(const json_t *value) {
  if (!json_is_real(value))
    return json_is_integer(value);
  double d = json_real_value(value);
  if (d < -9007199254740992.0 || d > 9007199254740992.0)
    return true; /* from 2^53 on a double has no fraction */
  return (double)(int64_t)d == d;
}

uint64_t schema_value_count(const json_t *value) {
  if (json_is_integer(value))
    return (uint64_t)json_integer_value(value);
  return json_real_value(value) < 9e18 ? (uint64_t)json_real_value(value) : UINT64_MAX;
}

int schema_value_compare_mixed(json_int_t i, double d) {
  if (d >= 9223372036854775808.0)
    return -1;
  if (d < -9223372036854775808.0)
    return 1;
  json_int_t whole = (json_int_t)d; /* towards 0 */
  if (i != whole)
    return i < whole ? -1 : 1;
  return ((double)whole > d) - ((double)whole < d);
}

int schema_value_compare(const json_t *a, const json_t *b) {
  if (json_is_integer(a)) {
    json_int_t i = json_integer_value(a);
    if (!json_is_integer(b))
      return schema_value_compare_mixed(i, json_real_value(b));
    json_int_t j = json_integer_value(b);
    return (i > j) - (i < j);
  }
  if (json_is_integer(b))
    return -schema_value_compare_mixed(json_integer_value(b), json_real_value(a));
  double d = json_real_value(a), e = json_real_value(b);
  return (d > e) - (d < e);
}

static struct decimal number_decimal(const json_t *number) {
  if (!json_is_integer(number))
    return schema_value_decimal(json_real_value(number));
  json_int_t i = json_integer_value(number);
  return (struct decimal){i < 0 ? 0 - (uint64_t)i : (uint64_t)i, 0};
}

struct decimal schema_value_decimal(double d) {
  struct decimal out = {0, 0};
  d = d < 0 ? -d : d;
  char text[STR_REAL_BYTES];
  str_from_real(text, d);
  int point = 0;
  const char *p = text;
  for (; *p && *p != 'e'; p++) {
    if (str_is_digit(*p)) {
      out.mantissa = out.mantissa * 10 + (uint64_t)(*p - '0');
      out.exponent -= point;
    } else {
      point = 1;
    }
  }
  out.exponent += *p ? (int)strtol(p + 1, NULL, 10) : 0;
  while (out.mantissa && out.mantissa % 10 == 0) {
    out.mantissa /= 10;
    out.exponent++;
  }
  return out;
}

bool schema_value_multiple_of(const json_t *value, const json_t *divisor) {
  if (json_is_integer(value) && json_is_integer(divisor))
    return json_integer_value(value) % json_integer_value(divisor) == 0;
  struct decimal a = number_decimal(value), b = number_decimal(divisor);
  if (!a.mantissa || !b.mantissa)
    return true;
  int shift = a.exponent - b.exponent;
  unsigned __int128 m = a.mantissa % b.mantissa;
  if (shift >= 0) {
    for (; shift > 0 && m; shift--)
      m = m * 10 % b.mantissa;
    return m == 0;
  }
  if (shift < -19)
    return false;
  unsigned __int128 scaled = b.mantissa;
  for (; shift < 0; shift++)
    scaled *= 10;
  return a.mantissa % scaled == 0;
}

bool schema_value_too_deep(const json_t *value, int levels) {
  if (json_is_object(value)) {
    for (void *at = json_object_iter((json_t *)value); at;
         at = json_object_iter_next((json_t *)value, at))
      if (!levels || schema_value_too_deep(json_object_iter_value(at), levels - 1))
        return true;
  } else if (json_is_array(value)) {
    for (size_t i = 0, n = json_array_size(value); i < n; i++)
      if (!levels || schema_value_too_deep(json_array_get(value, i), levels - 1))
        return true;
  }
  return false;
}

static bool equal(const json_t *a, const json_t *b, int64_t *work, int levels);

static bool objects_equal(const json_t *a, const json_t *b, int64_t *work, int levels) {
  if (json_object_size(a) != json_object_size(b))
    return false;
  for (void *at = json_object_iter((json_t *)a); at; at = json_object_iter_next((json_t *)a, at)) {
    const json_t *other =
        json_object_getn(b, json_object_iter_key(at), json_object_iter_key_len(at));
    if (!other || !equal(json_object_iter_value(at), other, work, levels))
      return false;
  }
  return true;
}

static bool equal(const json_t *a, const json_t *b, int64_t *work, int levels) {
  if (a == b)
    return true;
  if (--*work < 0)
    return false;
  if (!levels) {
    *work = -1;
    return false;
  }
  if (json_is_number(a) && json_is_number(b))
    return schema_value_compare(a, b) == 0;
  if (json_typeof(a) != json_typeof(b))
    return false;
  switch (json_typeof(a)) {
  case JSON_OBJECT:
    return objects_equal(a, b, work, levels - 1);
  case JSON_ARRAY: {
    size_t n = json_array_size(a);
    if (n != json_array_size(b))
      return false;
    for (size_t i = 0; i < n; i++)
      if (!equal(json_array_get(a, i), json_array_get(b, i), work, levels - 1))
        return false;
    return true;
  }
  case JSON_STRING: {
    size_t n = json_string_length(a);
    *work -= (int64_t)(n / 64);
    return n == json_string_length(b) && !memcmp(json_string_value(a), json_string_value(b), n);
  }
  case JSON_INTEGER:
  case JSON_REAL:
  case JSON_TRUE:
  case JSON_FALSE:
  case JSON_NULL:
    return true;
  }
  return false;
}

bool schema_value_equal(const json_t *a, const json_t *b, int64_t *work) {
  return equal(a, b, work, SCHEMA_DEPTH_MAX);
}

static uint64_t hash_mix(uint64_t h) {
  h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

static uint64_t string_hash(const char *text, size_t length) {
  uint64_t h = length;
  for (; length >= 8; text += 8, length -= 8) {
    uint64_t word;
    memcpy(&word, text, 8);
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  uint64_t last = 0;
  memcpy(&last, text, length);
  return hash_mix(h ^ last);
}

static uint64_t value_hash(const json_t *value, int64_t *work, int levels) {
  if (--*work < 0)
    return 0;
  if (!levels) {
    *work = -1;
    return 0;
  }
  switch (json_typeof(value)) {
  case JSON_OBJECT: {
    uint64_t sum = 1; /* the order of members must not matter */
    for (void *at = json_object_iter((json_t *)value); at;
         at = json_object_iter_next((json_t *)value, at))
      sum += hash_mix(string_hash(json_object_iter_key(at), json_object_iter_key_len(at)) +
                      3 * value_hash(json_object_iter_value(at), work, levels - 1));
    return hash_mix(sum);
  }
  case JSON_ARRAY: {
    uint64_t h = 2;
    for (size_t i = 0, n = json_array_size(value); i < n; i++)
      h = hash_mix(h + value_hash(json_array_get(value, i), work, levels - 1));
    return h;
  }
  case JSON_STRING:
    *work -= (int64_t)(json_string_length(value) / 64);
    return string_hash(json_string_value(value), json_string_length(value));
  case JSON_INTEGER:
  case JSON_REAL: {
    double d = json_number_value(value) + 0.0; /* -0 and 0 are one number */
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return hash_mix(bits);
  }
  case JSON_TRUE:
  case JSON_FALSE:
  case JSON_NULL:
    return hash_mix((uint64_t)json_typeof(value));
  }
  return 0;
}

static bool unique_few(const json_t *array, size_t n, size_t *first, size_t *second,
                       int64_t *work) {
  for (size_t i = 1; i < n; i++)
    for (size_t j = 0; j < i; j++)
      if (schema_value_equal(json_array_get(array, j), json_array_get(array, i), work)) {
        *first = j;
        *second = i;
        return false;
      }
  return true;
}

bool schema_value_unique(const json_t *array, size_t *first, size_t *second, int64_t *work) {
  size_t n = json_array_size(array), size = 64;
  if (n <= 8)
    return unique_few(array, n, first, second, work);
  assert(n <= UINT32_MAX / 4);
  while (size < n * 2)
    size *= 2;
  struct unique_slot {
    uint32_t hash, item; /* item + 1 */
  } small[256], *slots = size <= 256 ? small : xmalloc(size * sizeof *slots);
  memset(slots, 0, size * sizeof *slots);
  bool unique = true;
  for (size_t i = 0; i < n && unique && *work >= 0; i++) {
    const json_t *item = json_array_get(array, i);
    uint64_t hash = value_hash(item, work, SCHEMA_DEPTH_MAX);
    size_t at = (hash >> 32) & (size - 1);
    for (; slots[at].item; at = (at + 1) & (size - 1)) {
      --*work;
      if (slots[at].hash == (uint32_t)hash &&
          schema_value_equal(json_array_get(array, slots[at].item - 1), item, work)) {
        *first = slots[at].item - 1;
        *second = i;
        unique = false;
        break;
      }
    }
    if (unique)
      slots[at] = (struct unique_slot){(uint32_t)hash, (uint32_t)i + 1};
  }
  if (slots != small)
    free(slots);
  return unique;
}
