/* Reads older schemas as draft 07. */
#include "schema/upgrade.h"

#include "format/json_value.h"
#include "schema/compiled.h"

#include <string.h>

enum { UPGRADE_DEPTH = SCHEMA_NESTING_MAX };

static bool says_draft_04(const char *draft) {
  return draft != NULL && strstr(draft, "json-schema.org/draft-04/schema") != NULL;
}

/* {"minimum": 3, "exclusiveMinimum": true} is {"exclusiveMinimum": 3}. */
static void upgrade_bound(json_t *schema, const char *bound, const char *exclusive) {
  const json_t *flag = json_object_get(schema, exclusive);
  json_t *limit = json_object_get(schema, bound);
  if (!json_is_boolean(flag))
    return;
  if (!json_is_true(flag) || limit == NULL) {
    json_object_del(schema, exclusive);
    return;
  }
  json_object_set(schema, exclusive, limit);
  json_object_del(schema, bound);
}

static void add_null(json_t *list, json_t *owned_null) {
  bool has = false;
  for (size_t i = 0; i < json_array_size(list); i++)
    has = has || json_same(json_array_get(list, i), owned_null);
  if (!has)
    json_array_append(list, owned_null);
  json_decref(owned_null);
}

static void upgrade_nullable(json_t *schema) {
  json_t *type = json_object_get(schema, "type");
  if (!json_is_true(json_object_get(schema, "nullable")) || type == NULL)
    return;
  if (json_is_string(type))
    json_object_set_new(schema, "type", json_pack("[O]", type));
  add_null(json_object_get(schema, "type"), json_string("null"));
  add_null(json_object_get(schema, "enum"), json_null());
  json_object_del(schema, "nullable");
}

static void upgrade_id(json_t *schema) {
  json_t *id = json_object_get(schema, "id");
  if (!json_is_string(id) || json_object_get(schema, "$id") != NULL)
    return;
  json_object_set(schema, "$id", id);
  json_object_del(schema, "id");
}

static void upgrade_below(json_t *value, const char *keyword, bool old, int levels);

static void upgrade_one(json_t *schema, bool old, int levels) {
  const char *key;
  json_t *value;
  void *next;
  if (!json_is_object(schema) || levels == 0)
    return;
  upgrade_bound(schema, "minimum", "exclusiveMinimum");
  upgrade_bound(schema, "maximum", "exclusiveMaximum");
  upgrade_nullable(schema);
  if (old)
    upgrade_id(schema);
  json_object_foreach_safe(schema, next, key, value) upgrade_below(value, key, old, levels - 1);
}

/* Also below an unknown keyword, since a reference may lead there; its `id` is data. */
static void upgrade_below(json_t *value, const char *keyword, bool old, int levels) {
  static const char data[] = "enum const default example examples required type";
  const struct keyword *known = schema_keyword_find(keyword, DIALECT_07);
  bool map =
      known != NULL && (known->shape == SHAPE_SCHEMA_MAP || known->shape == SHAPE_PATTERN_MAP ||
                        known->shape == SHAPE_DEPENDENCIES);
  const char *key;
  json_t *item;
  size_t i;
  if (str_among(str_from(keyword), data) || levels == 0)
    return;
  if (!map)
    upgrade_one(value, old && known != NULL, levels);
  json_array_foreach(value, i, item) {
    upgrade_one(item, old && known != NULL, levels);
  }
  if (map)
    json_object_foreach(value, key, item)
      upgrade_one(item, old, levels);
}

void schema_upgrade(json_t *doc) {
  const char *draft = json_string_value(json_object_get(doc, "$schema"));
  bool old = says_draft_04(draft);
  if (!json_is_object(doc) || (!old && draft != NULL))
    return;
  if (old)
    json_object_set_new(doc, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
  upgrade_one(doc, old, UPGRADE_DEPTH);
}
