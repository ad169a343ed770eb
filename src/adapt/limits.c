/* Checks the limits of a provider on the adapted schema, before it is sent. */
#include "adapt/internal.h"

#include <stdio.h>
#include <string.h>

struct limits_place {
  const struct limits_place *up;
  const char *key; /* NULL: `index` */
  size_t index;
  const char *definition; /* the reference that led here; NULL: none */
};

struct measure {
  struct adapter *a;
  const struct dialect_limits *limits;
  const json_t *definitions;
  struct map levels; /* definition -> deepest level at which it was entered */
  struct arena arena;
  size_t properties, enum_values, characters, optional, unions;
};

static void pointer_of(const struct limits_place *place, struct buf *out) {
  if (!place || !place->up)
    return;
  pointer_of(place->up, out);
  buf_puts(out, "/");
  if (!place->key) {
    buf_printf(out, "%zu", place->index);
    return;
  }
  for (const char *p = place->key; *p; p++) {
    if (*p == '~' || *p == '/')
      buf_puts(out, *p == '~' ? "~0" : "~1");
    else
      buf_append(out, p, 1);
  }
}

static bool limits_over(struct measure *m, const struct limits_place *place, const char *limit,
                        const char *unit, size_t found, size_t allowed) {
  struct adapter *a = m->a;
  struct buf pointer = {0};
  if (allowed == 0 || found <= allowed || adapter_stopped(a))
    return false;
  adapt_fail(a, ADAPT_LIMIT, NODE_NONE, "", "%s takes at most %zu %s; here are %zu",
             a->dialect->name, allowed, unit, found);
  pointer_of(place, &pointer);
  (void)snprintf(a->error->pointer, sizeof a->error->pointer, "%s", buf_c(&pointer));
  buf_deinit(&pointer);
  a->error->limit = limit;
  a->error->found = found;
  a->error->allowed = allowed;
  return true;
}

static size_t limits_characters(const char *text) {
  return utf8_count(text, strlen(text));
}

static void count_enum(struct measure *m, const json_t *values, const struct limits_place *place) {
  size_t i, length = 0;
  const json_t *one;
  json_array_foreach((json_t *)values, i, one) {
    if (json_is_string(one))
      length += utf8_count(json_string_value(one), json_string_length(one));
  }
  m->enum_values += json_array_size(values);
  m->characters += length;
  limits_over(m, place, "enum_values", "enum values in all", m->enum_values,
              m->limits->enum_values);
  if (json_array_size(values) > m->limits->long_enum_values)
    limits_over(m, place, "long_enum_characters", "characters in an enum of so many values", length,
                m->limits->long_enum_characters);
}

static void count_properties(struct measure *m, const json_t *schema,
                             const struct limits_place *place) {
  const json_t *list = json_object_get(schema, "properties");
  for (void *at = json_object_iter((json_t *)list); at;
       at = json_object_iter_next((json_t *)list, at))
    m->characters += limits_characters(json_object_iter_key(at));
  m->properties += json_object_size(list);
  m->optional += json_object_size(list) - json_array_size(json_object_get(schema, "required"));
  limits_over(m, place, "properties", "properties in all", m->properties, m->limits->properties);
  limits_over(m, place, "optional_properties", "properties that are not required", m->optional,
              m->limits->optional_properties);
}

/* Counts every place once, definitions too. */
static void limits_count(struct measure *m, const json_t *schema, const struct limits_place *up) {
  static const char *const maps[] = {"properties", "$defs"};
  static const char *const lists[] = {"anyOf", "prefixItems"};
  static const char *const ones[] = {"items", "additionalProperties"};
  const json_t *one, *list;
  size_t k;
  if (!json_is_object(schema) || adapter_stopped(m->a))
    return;
  if (json_is_array(json_object_get(schema, "type")) || json_object_get(schema, "anyOf"))
    m->unions++;
  limits_over(m, up, "unions", "places with several types or alternatives", m->unions,
              m->limits->unions);
  const struct limits_place values = {up, "enum", 0, NULL};
  if (json_object_get(schema, "enum"))
    count_enum(m, json_object_get(schema, "enum"), &values);
  one = json_object_get(schema, "const");
  if (json_is_string(one))
    m->characters += utf8_count(json_string_value(one), json_string_length(one));
  count_properties(m, schema, up);
  for (size_t i = 0; i < 2; i++) {
    const struct limits_place map = {up, maps[i], 0, NULL};
    list = json_object_get(schema, maps[i]);
    for (void *at = json_object_iter((json_t *)list); at;
         at = json_object_iter_next((json_t *)list, at)) {
      const struct limits_place member = {&map, json_object_iter_key(at), 0, NULL};
      if (i == 1)
        m->characters += limits_characters(member.key);
      limits_count(m, json_object_iter_value(at), &member);
    }
  }
  for (size_t i = 0; i < 2; i++) {
    const struct limits_place branches = {up, lists[i], 0, NULL}, item = {up, ones[i], 0, NULL};
    json_array_foreach((json_t *)json_object_get(schema, lists[i]), k, one) {
      const struct limits_place branch = {&branches, NULL, k, NULL};
      limits_count(m, one, &branch);
    }
    limits_count(m, json_object_get(schema, ones[i]), &item);
  }
}

static bool active(const struct limits_place *place, const char *definition) {
  for (; place; place = place->up)
    if (place->definition && !strcmp(place->definition, definition))
      return true;
  return false;
}

/* Measures objects and arrays inside each other, through references, each cycle once. */
static void nesting(struct measure *m, const json_t *schema, size_t level,
                    const struct limits_place *up) {
  const json_t *one, *list = json_object_get(schema, "properties");
  const char *type = json_string_value(json_object_get(schema, "type"));
  const char *reference = json_string_value(json_object_get(schema, "$ref"));
  size_t k;
  uint32_t known;
  if (!json_is_object(schema) || adapter_stopped(m->a))
    return;
  level += type && (!strcmp(type, "object") || !strcmp(type, "array"));
  if (limits_over(m, up, "nesting", "levels of objects and arrays", level, m->limits->nesting))
    return;
  if (reference && strlen(reference) > 8 && !active(up, reference)) {
    const char *name = reference + 8; /* "#/$defs/" */
    if (map_get(&m->levels, str_from(name), &known) && known > level)
      return;
    map_put(&m->levels, &m->arena, str_from(name), (uint32_t)level + 1);
    const struct limits_place target = {up, "$ref", 0, reference};
    nesting(m, json_object_get(m->definitions, name), level, &target);
  }
  const struct limits_place map = {up, "properties", 0, NULL}, branches = {up, "anyOf", 0, NULL};
  const struct limits_place item = {up, "items", 0, NULL},
                            rest = {up, "additionalProperties", 0, NULL};
  for (void *at = json_object_iter((json_t *)list); at;
       at = json_object_iter_next((json_t *)list, at)) {
    const struct limits_place member = {&map, json_object_iter_key(at), 0, NULL};
    nesting(m, json_object_iter_value(at), level, &member);
  }
  json_array_foreach((json_t *)json_object_get(schema, "anyOf"), k, one) {
    const struct limits_place branch = {&branches, NULL, k, NULL};
    nesting(m, one, level, &branch);
  }
  nesting(m, json_object_get(schema, "items"), level, &item);
  nesting(m, json_object_get(schema, "additionalProperties"), level, &rest);
}

static void limits_check_name(struct adapter *a) {
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  const char *name = a->opts->schema_name;
  size_t most = a->dialect->limits.schema_name;
  if (!name || !most)
    return;
  size_t n = strlen(name);
  if (n >= 1 && n <= most && strspn(name, allowed) == n)
    return;
  adapt_fail(a, ADAPT_LIMIT, NODE_NONE, "",
             "%s takes as a schema's name 1 to %zu letters, digits, _ and -", a->dialect->name,
             most);
  a->error->limit = "schema_name";
  a->error->found = n;
  a->error->allowed = most;
}

bool adapt_limits_check(struct adapter *a) {
  struct measure m = {.a = a, .limits = &a->dialect->limits};
  const struct limits_place root = {0};
  m.definitions = json_object_get(a->out->schema, "$defs");
  limits_check_name(a);
  if (!(a->dialect->flags & ADAPT_WHOLE)) {
    limits_count(&m, a->out->schema, &root);
    limits_over(&m, &root, "name_characters", "characters of names and enum values in all",
                m.characters, m.limits->name_characters);
    if (m.limits->nesting)
      nesting(&m, a->out->schema, 0, &root);
  }
  map_deinit(&m.levels);
  arena_deinit(&m.arena);
  return !adapter_stopped(a);
}
