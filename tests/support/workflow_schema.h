/* workflow_schema.h - schemas/workflow.json as the table of keys gives it, for the tests that hold
 * the file against it. workflow_schema() returns a new reference, draft 2020-12. */
#ifndef SEGUE_TESTS_WORKFLOW_SCHEMA_H
#define SEGUE_TESTS_WORKFLOW_SCHEMA_H

#include "base/limits.h"
#include "base/log.h"
#include "core/keys.h"
#include "format/yaml.h"
#include "structured/invariant.h"

#include <stdio.h>
#include <string.h>

static json_t *schema_must(json_t *v) {
  if (v == NULL)
    BUG("the schema cannot be made");
  return v;
}

static void schema_put(json_t *object, const char *name, json_t *value) {
  if (json_object_set_new(object, name, schema_must(value)) != 0)
    BUG("the schema cannot be made");
}

static void schema_append(json_t *list, json_t *value) {
  if (json_array_append_new(list, schema_must(value)) != 0)
    BUG("the schema cannot be made");
}

static json_t *words_of(const char *const *words) {
  json_t *list = json_array();
  for (; *words; words++)
    schema_append(list, json_string(*words));
  return list;
}

static json_t *schema_reference(const struct key_set *set) {
  return json_sprintf("#/$defs/%s", set->id);
}

/* A schema_bound as an integer where it is one: 2 and not 2.0. */
static json_t *schema_bound(double value) {
  return json_integer((json_int_t)value);
}

static json_t *schema_text_of(size_t min, size_t max) {
  json_t *v = schema_must(json_pack("{s:s}", "type", "string"));
  if (min > 0)
    schema_put(v, "minLength", json_integer((json_int_t)min));
  if (max > 0)
    schema_put(v, "maxLength", json_integer((json_int_t)max));
  return v;
}

/* A default, nothing, or a map of both. */
static json_t *schema_params(void) {
  json_t *scalar = json_pack("[s, s, s]", "string", "number", "boolean");
  json_t *map = json_pack("{s:s, s:{s:{s:s, s:s, s:[s]}, s:{s:o, s:s, s:[s]}}, s:b}", "type",
                          "object", "properties", "description", "type", "string", "description",
                          "What it is, told to whoever must give it.", "examples",
                          "what to look at", "default", "type", json_copy(scalar), "description",
                          "Its value where none is given; without it one must be.", "examples",
                          "strict", "additionalProperties", 0);
  schema_append(scalar, json_string("null"));
  return json_pack("{s:s, s:{s:s, s:i}, s:{s:[{s:o}, o]}, s:i, s:i}", "type", "object",
                   "propertyNames", "pattern", "^[A-Za-z0-9_-]+$", "maxLength", 64,
                   "additionalProperties", "anyOf", "type", scalar, map, "minProperties", 1,
                   "maxProperties", (int)LIMIT_PARAM_COUNT);
}

static json_t *schema_names(const struct key *k) {
  return json_pack("{s:s, s:o, s:i, s:i, s:b}", "type", "array", "items",
                   schema_text_of(1, LIMIT_NAME_BYTES), "minItems", (int)k->min, "maxItems",
                   (int)k->max, "uniqueItems", 1);
}

/* Several judges, or a word that says none. */
static json_t *schema_panel(const struct key *k) {
  return json_pack("{s:[{s:s, s:o, s:i, s:i}, {s:o}]}", "anyOf", "type", "array", "items",
                   schema_text_of(1, 0), "minItems", 2, "maxItems", (int)k->max, "enum",
                   words_of(k->words));
}

/* A report as a map of its keys, as LABEL: FILE, or as the file's name alone. */
static json_t *schema_reports(const struct key *k) {
  json_t *file = schema_text_of(1, LIMIT_NAME_BYTES), *labelled, *item;
  labelled = json_pack("{s:s, s:o, s:i, s:i}", "type", "object", "additionalProperties",
                       json_incref(file), "minProperties", 1, "maxProperties", 1);
  item = json_pack("{s:[{s:o}, o, o]}", "anyOf", "$ref", schema_reference(k->set), labelled, file);
  return json_pack("{s:s, s:o, s:i, s:o}", "type", "array", "items", schema_must(item), "minItems",
                   1, "maxItems", schema_bound(k->max));
}

static json_t *invariants_schema(void) {
  return json_pack("{s:s, s:{s:[o, {s:s, s:i}]}, s:i, s:i}", "type", "array", "items", "anyOf",
                   schema_text_of(1, INVARIANT_TEXT_MAX), "type", "object", "minProperties", 1,
                   "minItems", 1, "maxItems", (int)INVARIANTS_MAX);
}

static json_t *choices_schema(const struct key *k) {
  return json_pack("{s:s, s:o, s:i, s:i, s:b}", "type", "array", "items", schema_text_of(1, 0),
                   "minItems", 2, "maxItems", (int)k->max, "uniqueItems", 1);
}

static json_t *schema_type_of(const struct key *k);

static json_t *set_schema(const struct key *k) {
  if (k->or_true)
    return json_pack("{s:[{s:b}, {s:o}]}", "anyOf", "const", 1, "$ref", schema_reference(k->set));
  json_t *map = json_pack("{s:o}", "$ref", schema_reference(k->set));
  if (k->or_member == NULL)
    return map;
  return json_pack("{s:[o, o]}", "anyOf", schema_type_of(key_find(k->set, str_from(k->or_member))),
                   map);
}

/* A list of sets, or the text that stands for one. */
static json_t *schema_set_list(const struct key *k) {
  json_t *list =
      json_pack("{s:s, s:{s:o}, s:i, s:o}", "type", "array", "items", "$ref",
                schema_reference(k->set), "minItems", 1, "maxItems", schema_bound(k->max));
  if (k->or_member == NULL)
    return list;
  return json_pack("{s:[o, o]}", "anyOf", schema_text_of(1, LIMIT_NAME_BYTES), list);
}

static json_t *schema_texts_of(const struct key *k) {
  if (k->type == KEY_NAMES)
    return schema_names(k);
  if (k->type == KEY_TEXTS)
    return json_pack("{s:s, s:{s:s, s:i}, s:i, s:i}", "type", "array", "items", "type", "string",
                     "minLength", 1, "minItems", 1, "maxItems", (int)k->max);
  return json_pack("{s:s, s:{s:s, s:s}, s:i, s:i}", "type", "array", "items", "type", "string",
                   "pattern", "^[A-Za-z_][A-Za-z0-9_]*$", "minItems", 1, "maxItems",
                   (int)LIMIT_SECRET_COUNT);
}

static json_t *schema_type_of(const struct key *k) {
  switch (k->type) {
  case KEY_NAME:
    return schema_text_of(1, LIMIT_NAME_BYTES);
  case KEY_LINE:
  case KEY_CONDITION:
    return schema_text_of(1, 0);
  case KEY_TEXT:
    return schema_text_of(0, 0);
  case KEY_BOOL:
    return json_pack("{s:s}", "type", "boolean");
  case KEY_INTEGER:
  case KEY_NUMBER:
    return json_pack("{s:s, s:o, s:o}", "type", k->type == KEY_NUMBER ? "number" : "integer",
                     "minimum", schema_bound(k->min), "maximum", schema_bound(k->max));
  case KEY_CHOICE:
    return json_pack("{s:o}", "enum", words_of(k->words));
  case KEY_COUNT:
    return json_pack("{s:[{s:s, s:o, s:o}, {s:o}]}", "anyOf", "type", "integer", "minimum",
                     schema_bound(k->min), "maximum", schema_bound(k->max), "enum",
                     words_of(k->words));
  case KEY_FACET:
    return json_pack("{s:[o, {s:s, s:o, s:i}]}", "anyOf", schema_text_of(1, 0), "type", "array",
                     "items", schema_text_of(1, 0), "minItems", 1);
  case KEY_PROVIDERS:
    return json_pack("{s:[o, {s:s, s:o, s:i, s:i, s:b}]}", "anyOf", schema_text_of(1, 0), "type",
                     "array", "items", schema_text_of(1, 0), "minItems", 1, "maxItems",
                     (int)LIMIT_FALLBACK_COUNT, "uniqueItems", 1);
  case KEY_SECTION:
    return json_pack("{s:s, s:o}", "type", "object", "additionalProperties", schema_text_of(1, 0));
  case KEY_ARGV:
    return json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", schema_text_of(0, 0),
                     "minItems", 1, "maxItems", (int)LIMIT_ARGV_COUNT);
  case KEY_CHOICES:
    return choices_schema(k);
  case KEY_NAMES:
  case KEY_TEXTS:
  case KEY_VARIABLES:
    return schema_texts_of(k);
  case KEY_PANEL:
    return schema_panel(k);
  case KEY_RUN:
    return json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", schema_text_of(1, 0),
                     "minItems", 1, "maxItems", (int)k->max);
  case KEY_STAGES:
    return json_pack("{s:s, s:{s:o}, s:i, s:b}", "type", "array", "items", "enum",
                     words_of(k->words), "minItems", 1, "uniqueItems", 1);
  case KEY_SCHEMA:
    return json_pack("{s:[o, {s:s}]}", "anyOf", schema_text_of(1, 0), "type", "object");
  case KEY_ITEMS:
    return json_pack("{s:[o, {s:s, s:i, s:i}]}", "anyOf", schema_text_of(1, 0), "type", "array",
                     "minItems", 1, "maxItems", (int)k->max);
  case KEY_INVARIANTS:
    return invariants_schema();
  case KEY_PARAMS:
    return schema_params();
  case KEY_OUTPUTS:
    return json_pack("{s:s, s:o, s:i, s:i}", "type", "object", "additionalProperties",
                     schema_text_of(0, 0), "minProperties", 1, "maxProperties",
                     (int)LIMIT_PARAM_COUNT);
  case KEY_ARGS:
    return json_pack("{s:s, s:{s:[s, s, s]}, s:i}", "type", "object", "additionalProperties",
                     "type", "string", "number", "boolean", "maxProperties",
                     (int)LIMIT_PARAM_COUNT);
  case KEY_LABELS:
    return json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items",
                     schema_text_of(1, LIMIT_NAME_BYTES), "minItems", 1, "maxItems",
                     (int)LIMIT_RULE_COUNT);
  case KEY_NOTED:
    return json_pack("{s:b}", "deprecated", 1);
  case KEY_REPORTS:
    return schema_reports(k);
  case KEY_SET:
    return set_schema(k);
  case KEY_SET_LIST:
    return schema_set_list(k);
  }
  BUG("no such type of key: %d", (int)k->type);
}

/* Which of a key and its alias may or schema_must stand there. */
static void add_presence(json_t *schema, const struct key *k) {
  json_t *list = json_object_get(schema, "allOf");
  if (k->alias == NULL)
    return;
  if (list == NULL) {
    list = json_array();
    schema_put(schema, "allOf", list);
  }
  if (k->required)
    schema_append(list, json_pack("{s:[{s:[s]}, {s:[s]}]}", "oneOf", "required", k->name,
                                  "required", k->alias));
  else
    schema_append(list, json_pack("{s:{s:[s, s]}}", "not", "required", k->name, k->alias));
  if (k->older) {
    schema_append(list, json_pack("{s:{s:[s, s]}}", "not", "required", k->name, k->older));
    schema_append(list, json_pack("{s:{s:[s, s]}}", "not", "required", k->alias, k->older));
  }
}

static void put_example(json_t *type, const struct key *k) {
  const char *example = key_example(k);
  struct err err;
  if (example == NULL)
    return;
  json_t *value = yaml_load("example", str_from(example), LIMIT_WORKFLOW_BYTES, &err);
  if (value == NULL)
    BUG("the example of %s: %s", k->name, err.text);
  schema_put(type, "examples", json_pack("[o]", value));
}

static void describe(json_t *schema, const struct key_set *set) {
  json_t *properties = json_object(), *required = json_array();
  schema_put(schema, "type", json_string("object"));
  schema_put(schema, "properties", properties);
  for (const struct key *k = set->keys; k->name; k++) {
    json_t *type = schema_must(schema_type_of(k));
    if (k->or_null)
      type = schema_must(json_pack("{s:[o, {s:s}]}", "anyOf", type, "type", "null"));
    schema_put(type, "description", json_string(k->description));
    put_example(type, k);
    schema_put(properties, k->name, type);
    const char *const others[] = {k->alias, k->older, NULL};
    for (size_t i = 0; others[i]; i++) {
      type = schema_must(schema_type_of(k));
      schema_put(type, "description",
                 json_sprintf("Another name for %s. %s", k->name, k->description));
      put_example(type, k);
      schema_put(properties, others[i], type);
    }
    if (k->alias == NULL && k->required)
      schema_append(required, json_string(k->name));
  }
  if (set == &movement_keys) /* a fragment may hold all that is required */
    schema_put(schema, "anyOf",
               json_pack("[{s:[s]}, {s:O}]", "required", "uses", "required", required));
  else if (json_array_size(required) > 0)
    schema_put(schema, "required", json_incref(required));
  json_decref(required);
  for (const struct key *k = set->keys; k->name; k++)
    add_presence(schema, k);
  schema_put(schema, "additionalProperties", json_false());
}

static json_t *workflow_schema(void) {
  static const struct key_set *const sets[] = {
      &movement_keys,  &rule_keys,     &judge_keys,       &structured_keys, &reask_keys,
      &options_keys,   &budget_keys,   &budget_call_keys, &limits_keys,     &guards_keys,
      &contracts_keys, &contract_keys, &monitor_keys,     &loop_judge_keys, &gate_keys,
      &error_keys,     &ask_keys,      &approve_keys,     &integrate_keys,  &setup_keys};
  json_t *schema = schema_must(json_object()), *defs = schema_must(json_object());
  schema_put(schema, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
  schema_put(schema, "title", json_string("segue workflow"));
  schema_put(
      schema, "description",
      json_string("A workflow of segue: movements of agent work and the rules that lead on."));
  describe(schema, &workflow_keys);
  for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
    json_t *def = schema_must(json_object());
    describe(def, sets[i]);
    schema_put(defs, sets[i]->id, def);
  }
  schema_put(schema, "$defs", defs);
  return schema;
}

#endif
