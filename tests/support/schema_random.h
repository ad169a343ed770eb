/* schema_random.h - random values for a schema, seeded.
 *
 *   struct schema_random r = {.root = doc, .seed = 1};
 *   json_t *value = schema_random_value(&r, doc);      new reference
 *
 * Values are likely to be valid, not certain: check them and throw away what is not. References are
 * followed within the document only. Patterns are written for, as far as they are made of
 * classes, groups, alternatives and counts. */
#ifndef SEGUE_TESTS_SCHEMA_RANDOM_H
#define SEGUE_TESTS_SCHEMA_RANDOM_H

#include "format/json_object.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct schema_random {
  const json_t *root;
  uint64_t seed;
  unsigned depth;
};

enum { SCHEMA_RANDOM_DEPTH = 12, SCHEMA_RANDOM_TEXT = 512 };

static inline uint32_t schema_random_below(struct schema_random *r, uint32_t n) {
  r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
  return n ? (uint32_t)(r->seed >> 33) % n : 0;
}

static inline json_t *schema_random_value(struct schema_random *r, const json_t *schema);

/* --- texts --- */

struct schema_random_text {
  char bytes[SCHEMA_RANDOM_TEXT];
  size_t n;
};

static inline void schema_random_put(struct schema_random_text *t, char c) {
  if (t->n + 1 < sizeof t->bytes)
    t->bytes[t->n++] = c;
}

/* One character of the class whose text begins after '['; *end is behind ']'. */
static inline char schema_random_class(struct schema_random *r, const char *p, const char **end) {
  char members[256];
  size_t n = 0;
  bool negated = *p == '^';
  p += negated;
  for (; *p && *p != ']'; p++) {
    char from = *p == '\\' ? *++p : *p, to = from;
    if (p[-1] == '\\' && strchr("dws", from)) {
      const char *all = from == 'd' ? "0123456789" : " ";
      if (from == 'w')
        all = "abcXYZ019_";
      for (; *all && n < sizeof members; all++)
        members[n++] = *all;
      continue;
    }
    if (p[1] == '-' && p[2] && p[2] != ']') {
      p += 2;
      to = *p == '\\' ? *++p : *p;
    }
    for (int c = (unsigned char)from; c <= (unsigned char)to && n < sizeof members; c++)
      members[n++] = (char)c;
  }
  *end = *p ? p + 1 : p;
  if (negated || n == 0)
    return 'q';
  return members[schema_random_below(r, (uint32_t)n)];
}

static inline const char *schema_random_alternatives(struct schema_random *r, const char *p,
                                                     struct schema_random_text *t);

/* One atom with its count; returns what follows. */
static inline const char *schema_random_atom(struct schema_random *r, const char *p,
                                             struct schema_random_text *t) {
  const char *start = p, *after = p;
  size_t mark = t->n;
  uint32_t least = 1, most = 1;
  for (uint32_t i = 0; i <= most; i++) { /* the first pass finds the count */
    struct schema_random_text *out = t;
    p = start;
    if (*p == '(') {
      p++;
      if (p[0] == '?' && p[1] == ':')
        p += 2;
      p = schema_random_alternatives(r, p, out);
      p += *p == ')';
    } else if (*p == '[') {
      schema_random_put(out, schema_random_class(r, p + 1, &p));
    } else if (*p == '\\') {
      char c = p[1];
      if (c == 'd')
        schema_random_put(out, (char)('0' + schema_random_below(r, 10)));
      else
        schema_random_put(out, c == 's' ? ' ' : c);
      p += c ? 2 : 1;
    } else {
      schema_random_put(out, *p == '.' ? 'd' : *p);
      p++;
    }
    if (i == 0) {
      after = p;
      if (*p == '*' || *p == '+' || *p == '?') {
        least = *p == '+';
        most = *p == '?' ? 1 : 4;
        after++;
      } else if (*p == '{') {
        char *end;
        least = (uint32_t)strtoul(p + 1, &end, 10);
        most = least;
        if (*end == ',')
          most = end[1] == '}' ? least + 3 : (uint32_t)strtoul(end + 1, &end, 10);
        after = strchr(p, '}') ? strchr(p, '}') + 1 : p + 1;
      }
      after += *after == '?' && after != p;
      if (most > 200)
        most = 200;
      uint32_t times = least + schema_random_below(r, most >= least ? most - least + 1 : 1);
      if (times == 0) {
        t->n = mark;
        return after;
      }
      most = times - 1;
    }
    if (i >= most)
      break;
  }
  return after;
}

static inline const char *schema_random_alternatives(struct schema_random *r, const char *p,
                                                     struct schema_random_text *t) {
  size_t mark = t->n, kept = mark, seen = 0;
  char best[SCHEMA_RANDOM_TEXT];
  for (;;) {
    t->n = mark;
    while (*p && *p != '|' && *p != ')')
      p = *p == '^' || *p == '$' ? p + 1 : schema_random_atom(r, p, t);
    if (schema_random_below(r, (uint32_t)++seen) == 0) {
      kept = t->n;
      memcpy(best + mark, t->bytes + mark, kept - mark);
    }
    if (*p != '|')
      break;
    p++;
  }
  memcpy(t->bytes + mark, best + mark, kept - mark);
  t->n = kept;
  return p;
}

static inline json_t *schema_random_string(struct schema_random *r, const json_t *schema) {
  static const struct {
    const char *format, *text;
  } formats[] = {{"date-time", "2024-05-06T07:08:09Z"},
                 {"date", "2024-05-06"},
                 {"time", "07:08:09Z"},
                 {"duration", "PT30M"},
                 {"email", "a@example.com"},
                 {"hostname", "example.com"},
                 {"ipv4", "192.0.2.1"},
                 {"ipv6", "::1"},
                 {"uri", "https://example.com/a"},
                 {"uuid", "123e4567-e89b-12d3-a456-426614174000"}};
  static const char *const pieces[] = {"a", "Zed", " ", "9", "\xc3\xa9", "\"", "null", "{", "\n"};
  struct schema_random_text t = {.n = 0};
  const char *pattern = json_string_value(json_object_get(schema, "pattern"));
  const char *format = json_string_value(json_object_get(schema, "format"));
  size_t least = (size_t)json_integer_value(json_object_get(schema, "minLength"));
  const json_t *max = json_object_get(schema, "maxLength");
  size_t most = max ? (size_t)json_number_value(max) : least + 8, length = 0;
  for (size_t i = 0; format && i < sizeof formats / sizeof *formats; i++)
    if (!strcmp(format, formats[i].format))
      return json_string(formats[i].text);
  if (pattern) {
    schema_random_alternatives(r, pattern, &t);
    return json_stringn(t.bytes, t.n);
  }
  size_t want =
      least + schema_random_below(r, (uint32_t)(most > least ? most - least + 1 : 1) % 20);
  while (length < want && t.n + 4 < sizeof t.bytes) {
    const char *piece = pieces[schema_random_below(r, 9)];
    if (strlen(piece) > 2 && length + strlen(piece) > want)
      piece = "a";
    length += piece[0] == '\xc3' ? 1 : strlen(piece);
    for (; *piece; piece++)
      schema_random_put(&t, *piece);
  }
  return json_stringn(t.bytes, t.n);
}

/* --- numbers --- */

static inline json_t *schema_random_number(struct schema_random *r, const json_t *schema,
                                           bool integer) {
  const json_t *min = json_object_get(schema, "minimum"),
               *above = json_object_get(schema, "exclusiveMinimum"),
               *max = json_object_get(schema, "maximum"),
               *below = json_object_get(schema, "exclusiveMaximum"),
               *step = json_object_get(schema, "multipleOf");
  double low = above ? json_number_value(above) + 1e-3 : -50;
  if (min)
    low = json_number_value(min);
  double high = below ? json_number_value(below) - 1e-3 : low + 100;
  if (max)
    high = json_number_value(max);
  if (!min && !above && low > high)
    low = high - 100;
  if (integer) {
    int64_t from = (int64_t)low + ((double)(int64_t)low < low), span = (int64_t)(high - low);
    int64_t n = from + schema_random_below(r, span > 0 && span < 100000 ? (uint32_t)span + 1 : 1);
    int64_t by = step ? json_integer_value(step) : 0;
    return json_integer(by > 0 ? n - n % by : n);
  }
  double x = low + (high - low) * schema_random_below(r, 1001) / 1000.0;
  if (step && json_number_value(step) > 0)
    x = (double)(int64_t)(x / json_number_value(step)) * json_number_value(step);
  return json_real(x);
}

/* --- arrays and objects --- */

static inline json_t *schema_random_array(struct schema_random *r, const json_t *schema) {
  const json_t *list = json_object_get(schema, "prefixItems");
  const json_t *items = json_object_get(schema, "items"),
               *max = json_object_get(schema, "maxItems");
  size_t least = (size_t)json_number_value(json_object_get(schema, "minItems"));
  size_t most = max ? (size_t)json_number_value(max) : least + 3;
  if (json_is_array(items)) {
    list = items;
    items = json_object_get(schema, "additionalItems");
  }
  if (r->depth > SCHEMA_RANDOM_DEPTH / 2 && most > least)
    most = least;
  size_t count =
      least + schema_random_below(r, most > least ? (uint32_t)(most - least + 1) : 1) % 5;
  json_t *out = json_array();
  if (json_is_false(items) && count > json_array_size(list))
    count = json_array_size(list);
  for (size_t i = 0; i < count; i++)
    json_array_append_new(
        out, schema_random_value(r, i < json_array_size(list) ? json_array_get(list, i) : items));
  return out;
}

static inline bool schema_random_is_required(const json_t *schema, const char *name) {
  JSON_EACH(json_object_get(schema, "required"), i, one) {
    if (!strcmp(json_string_value(one), name))
      return true;
  }
  return false;
}

static inline json_t *schema_random_object(struct schema_random *r, const json_t *schema) {
  json_t *out = json_object();
  const json_t *properties = json_object_get(schema, "properties");
  const json_t *extra = json_object_get(schema, "additionalProperties");
  const json_t *patterns = json_object_get(schema, "patternProperties");
  for (void *at = json_object_iter((json_t *)properties); at;
       at = json_object_iter_next((json_t *)properties, at)) {
    const char *name = json_object_iter_key(at);
    bool wanted = schema_random_is_required(schema, name) ||
                  (r->depth < SCHEMA_RANDOM_DEPTH / 2 && schema_random_below(r, 2));
    if (wanted && !json_is_false(json_object_iter_value(at)))
      json_object_set_new(out, name, schema_random_value(r, json_object_iter_value(at)));
  }
  JSON_EACH(json_object_get(schema, "required"), i, one) {
    if (!json_object_get(out, json_string_value(one)))
      json_object_set_new(out, json_string_value(one), schema_random_value(r, extra));
  }
  size_t least = (size_t)json_number_value(json_object_get(schema, "minProperties"));
  for (unsigned k = 0; extra && !json_is_false(extra) && k < 6; k++) {
    char name[16];
    snprintf(name, sizeof name, "k%u", schema_random_below(r, 1000));
    if (json_object_size(out) >= least && schema_random_below(r, 3) == 0)
      break;
    json_object_set_new(out, name, schema_random_value(r, extra));
  }
  for (void *at = json_object_iter((json_t *)patterns); at;
       at = json_object_iter_next((json_t *)patterns, at)) {
    struct schema_random_text t = {.n = 0};
    if (json_object_size(out) >= least && schema_random_below(r, 2))
      continue;
    schema_random_alternatives(r, json_object_iter_key(at), &t);
    t.bytes[t.n] = '\0';
    json_object_set_new(out, t.bytes, schema_random_value(r, json_object_iter_value(at)));
  }
  return out;
}

/* --- all --- */

/* Members of `from` that `into` has not; properties and required are united. */
static inline void schema_random_merge(json_t *into, const json_t *from) {
  for (void *at = json_object_iter((json_t *)from); at;
       at = json_object_iter_next((json_t *)from, at)) {
    const char *name = json_object_iter_key(at);
    json_t *known = json_object_get(into, name), *value = json_object_iter_value(at);
    if (!known) {
      json_object_set(into, name, value);
    } else if (!strcmp(name, "properties")) {
      json_t *both = json_copy(known);
      json_object_update_missing(both, value);
      json_object_set_new(into, name, both);
    } else if (!strcmp(name, "required")) {
      json_t *both = json_copy(known);
      json_array_extend(both, value);
      json_object_set_new(into, name, both);
    } else if (!strcmp(name, "type") || !strcmp(name, "enum") || !strcmp(name, "const")) {
      json_object_set(into, name, value);
    }
  }
}

static inline const json_t *schema_random_pointer(const json_t *at, const char *pointer) {
  char token[256];
  while (at && *pointer == '/') {
    size_t n = 0;
    for (pointer++; *pointer && *pointer != '/' && n + 1 < sizeof token; pointer++)
      if (*pointer != '~')
        token[n++] = *pointer;
      else
        token[n++] = *++pointer == '0' ? '~' : '/';
    token[n] = '\0';
    if (json_is_array(at))
      at = json_array_get(at, strtoul(token, NULL, 10));
    else
      at = json_object_get(at, token);
  }
  return at;
}

/* All that applies to one value, alternatives chosen. */
static inline json_t *schema_random_flat(struct schema_random *r, const json_t *schema, int level) {
  static const char *const choices[] = {"anyOf", "oneOf"};
  json_t *flat = json_is_object(schema) ? json_copy((json_t *)schema) : json_object();
  const char *reference = json_string_value(json_object_get(flat, "$ref"));
  if (level > 20)
    return flat;
  if (reference && reference[0] == '#') {
    json_auto_t *target =
        schema_random_flat(r, schema_random_pointer(r->root, reference + 1), level + 1);
    json_object_del(flat, "$ref");
    schema_random_merge(flat, target);
  }
  JSON_EACH(json_object_get(schema, "allOf"), i, one) {
    json_auto_t *part = schema_random_flat(r, one, level + 1);
    schema_random_merge(flat, part);
  }
  for (size_t k = 0; k < 2; k++) {
    const json_t *list = json_object_get(schema, choices[k]);
    size_t n = json_array_size(list), pick = schema_random_below(r, (uint32_t)n);
    if (n == 0)
      continue;
    if (r->depth > SCHEMA_RANDOM_DEPTH / 2) /* null and such end a recursion */
      pick = n - 1;
    json_auto_t *part = schema_random_flat(r, json_array_get(list, pick), level + 1);
    schema_random_merge(flat, part);
  }
  const json_t *condition = json_object_get(schema, "if");
  if (condition) {
    bool yes = schema_random_below(r, 2);
    json_auto_t *part =
        schema_random_flat(r, json_object_get(schema, yes ? "then" : "else"), level + 1);
    if (yes)
      schema_random_merge(flat, condition);
    schema_random_merge(flat, part);
  }
  return flat;
}

static inline const char *schema_random_type(struct schema_random *r, const json_t *flat) {
  static const struct {
    const char *keyword, *type;
  } hints[] = {
      {"properties", "object"}, {"required", "object"},   {"additionalProperties", "object"},
      {"items", "array"},       {"prefixItems", "array"}, {"minItems", "array"},
      {"pattern", "string"},    {"minLength", "string"},  {"format", "string"},
      {"minimum", "number"},    {"maximum", "number"},    {"patternProperties", "object"}};
  static const char *const any[] = {"string", "integer", "boolean", "null", "object", "array"};
  const json_t *type = json_object_get(flat, "type");
  if (json_is_string(type))
    return json_string_value(type);
  if (json_is_array(type))
    return json_string_value(
        json_array_get(type, schema_random_below(r, (uint32_t)json_array_size(type))));
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (json_object_get(flat, hints[i].keyword))
      return hints[i].type;
  return any[schema_random_below(r, r->depth > 4 ? 4 : 6)];
}

static inline json_t *schema_random_value(struct schema_random *r, const json_t *schema) {
  if (r->depth > SCHEMA_RANDOM_DEPTH)
    return json_null();
  r->depth++;
  json_t *flat = schema_random_flat(r, schema, 0), *out;
  const json_t *options = json_object_get(flat, "enum");
  const char *type = schema_random_type(r, flat);
  if (json_object_get(flat, "const"))
    out = json_deep_copy(json_object_get(flat, "const"));
  else if (json_array_size(options))
    out = json_deep_copy(
        json_array_get(options, schema_random_below(r, (uint32_t)json_array_size(options))));
  else if (!type || !strcmp(type, "null"))
    out = json_null();
  else if (!strcmp(type, "boolean"))
    out = json_boolean(schema_random_below(r, 2));
  else if (!strcmp(type, "integer") || !strcmp(type, "number"))
    out = schema_random_number(r, flat, type[0] == 'i' || schema_random_below(r, 2));
  else if (!strcmp(type, "string"))
    out = schema_random_string(r, flat);
  else
    out = !strcmp(type, "array") ? schema_random_array(r, flat) : schema_random_object(r, flat);
  json_decref(flat);
  r->depth--;
  return out ? out : json_null();
}

#endif
