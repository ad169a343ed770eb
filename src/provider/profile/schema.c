/* Writes the JSON Schema of profiles from the table of keys. */
#include "provider/profile/profile.h"

#include "base/log.h"
#include "provider/profile/keys.h"

static json_t *profile_schema_must(json_t *v) {
  if (v == NULL)
    BUG("the schema cannot be made");
  return v;
}

static void profile_schema_put(json_t *object, const char *name, json_t *value) {
  if (json_object_set_new(object, name, profile_schema_must(value)) != 0)
    BUG("the schema cannot be made");
}

static json_t *profile_schema_words_of(const char *const *words) {
  json_t *list = json_array();
  for (; *words; words++)
    json_array_append_new(list, json_string(*words));
  return list;
}

static json_t *class_names(void) {
  json_t *list = json_array();
  for (int i = CLASS_NONE + 1; i <= CLASS_CANCELLED; i++) /* not the ends that we cause */
    json_array_append_new(list, json_string(error_class_name((enum error_class)i)));
  return list;
}

/* Returns the schema of a value that YAML may read as another type than text: 1, true. */
static json_t *scalar(void) {
  return profile_schema_must(
      json_pack("{s:[s,s,s,s]}", "type", "string", "number", "boolean", "null"));
}

static json_t *argv_schema(void) {
  return profile_schema_must(json_pack("{s:s, s:{s:[{s:[s,s,s]}, {s:s, s:{s:[s,s,s]}}]}}", "type",
                                       "array", "items", "anyOf", "type", "string", "number",
                                       "boolean", "type", "array", "items", "type", "string",
                                       "number", "boolean"));
}

static json_t *profile_schema_reference(const struct profile_key_set *set) {
  return profile_schema_must(
      json_pack("{s:o}", "$ref", profile_schema_must(json_sprintf("#/$defs/%s", set->id))));
}

static json_t *profile_schema_list_of(json_t *items) {
  return profile_schema_must(
      json_pack("{s:s, s:o}", "type", "array", "items", profile_schema_must(items)));
}

static json_t *pointer_schema(void) {
  return json_pack("{s:s, s:s}", "type", "string", "pattern", "^(/.*)?$");
}

static json_t *profile_schema_type_of(const struct profile_key *k) {
  switch (k->type) {
  case PROFILE_LINE:
  case PROFILE_PATTERN:
    return json_pack("{s:[s,s], s:i}", "type", "string", "number", "minLength", 1);
  case PROFILE_BOOL:
    return json_pack("{s:s}", "type", "boolean");
  case PROFILE_INTEGER:
    return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)k->min, "maximum",
                     (json_int_t)k->max);
  case PROFILE_CHOICE:
    return json_pack("{s:o}", "enum", profile_schema_words_of(k->words));
  case PROFILE_ARGV:
    return argv_schema();
  case PROFILE_NAMES:
    if (k->words != NULL)
      return profile_schema_list_of(json_pack("{s:o}", "enum", profile_schema_words_of(k->words)));
    return profile_schema_list_of(json_pack("{s:s, s:i}", "type", "string", "minLength", 1));
  case PROFILE_VARIABLES:
    return profile_schema_list_of(
        json_pack("{s:s, s:s}", "type", "string", "pattern", "^[A-Za-z_][A-Za-z0-9_]*$"));
  case PROFILE_TEXTS:
    return json_pack("{s:s, s:{s:[s,s,s]}}", "type", "object", "additionalProperties", "type",
                     "string", "number", "boolean");
  case PROFILE_POINTER:
    return pointer_schema();
  case PROFILE_OBJECT:
    return json_pack("{s:s}", "type", "object");
  case PROFILE_POINTERS:
    return profile_schema_list_of(pointer_schema());
  case PROFILE_PATH:
    return json_pack("{s:s, s:s}", "type", "string", "pattern",
                     "^(?!/)(?!(.*/)?\\.\\.?(/|$)).*[^/]$");
  case PROFILE_VALUE:
    return json_pack("{s:[{s:[s,s,s]}, {s:s, s:o, s:i}]}", "anyOf", "type", "string", "number",
                     "boolean", "type", "array", "items", pointer_schema(), "minItems", 1);
  case PROFILE_MATCHES:
    return json_pack("{s:s, s:o, s:{s:[o, o]}}", "type", "object", "propertyNames",
                     pointer_schema(), "additionalProperties", "anyOf", scalar(),
                     profile_schema_list_of(scalar()));
  case PROFILE_CLASSES:
    return json_pack("{s:s, s:{s:o}}", "type", "object", "additionalProperties", "enum",
                     class_names());
  case PROFILE_CLASS:
    return json_pack("{s:o}", "enum", class_names());
  case PROFILE_PERMISSION:
    return json_pack("{s:[o, o]}", "anyOf", argv_schema(),
                     profile_schema_reference(&profile_permission_keys));
  case PROFILE_SET:
    return profile_schema_reference(k->set);
  case PROFILE_SET_LIST:
    return json_pack("{s:s, s:o, s:I}", "type", "array", "items", profile_schema_reference(k->set),
                     "maxItems", (json_int_t)k->max);
  }
  BUG("no such type of key: %d", (int)k->type);
}

static void profile_schema_describe(json_t *schema, const struct profile_key_set *set) {
  json_t *properties = profile_schema_must(json_object()),
         *required = profile_schema_must(json_array());
  profile_schema_put(schema, "type", json_string("object"));
  for (const struct profile_key *k = set->keys; k->name != NULL; k++) {
    json_t *type = profile_schema_must(profile_schema_type_of(k));
    profile_schema_put(type, "description", json_string(k->description));
    profile_schema_put(properties, k->name, type);
    if (k->required && set != &profile_keys)
      json_array_append_new(required, json_string(k->name));
  }
  profile_schema_put(schema, "properties", properties);
  if (json_array_size(required) > 0)
    profile_schema_put(schema, "required", json_incref(required));
  json_decref(required);
  profile_schema_put(schema, "additionalProperties", json_false());
}

json_t *profile_schema(void) {
  json_t *schema = profile_schema_must(json_object()), *defs = profile_schema_must(json_object());
  profile_schema_put(schema, "$schema",
                     json_string("https://json-schema.org/draft/2020-12/schema"));
  profile_schema_put(schema, "title", json_string("segue provider profile"));
  profile_schema_put(
      schema, "description",
      json_string("How segue runs an agent's program, and what the program's output means."));
  profile_schema_describe(schema, &profile_keys);
  for (size_t i = 0; profile_key_sets[i] != NULL; i++) {
    json_t *def = profile_schema_must(json_object());
    profile_schema_describe(def, profile_key_sets[i]);
    profile_schema_put(defs, profile_key_sets[i]->id, def);
  }
  profile_schema_put(schema, "$defs", defs);
  json_t *either = json_pack("[{s:[s,s]}, {s:[s,s]}, {s:[s]}]", "required", "summary", "argv",
                             "required", "summary", "acp", "required", "extends");
  profile_schema_put(schema, "anyOf", either);
  return schema;
}
