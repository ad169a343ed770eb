/* adapt_subset.h - does a schema lie in the part of JSON Schema that a provider takes? Written from
 * the providers' rules, and shares nothing with the converter.
 *
 *   const char *trouble = adapt_subset(dialect_name, schema, place, sizeof place);    NULL: it does
 */
#ifndef SEGUE_TESTS_ADAPT_SUBSET_H
#define SEGUE_TESTS_ADAPT_SUBSET_H

#include "base/memory.h"
#include "format/json_object.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct adapt_subset {
  const char *dialect;
  const char *keywords; /* " type enum ... " */
  const char *formats;
  bool all_required, closed, root_object, no_type_list, no_recursion, orders, needs_type;
  const json_t *root;
  char *place;
  size_t place_size;
};

#define ADAPT_SUBSET_COMMON                                                                        \
  " type properties required items anyOf enum $ref $defs title description "

static inline bool adapt_subset_among(const char *list, const char *word) {
  char padded[128];
  snprintf(padded, sizeof padded, " %s ", word);
  return strstr(list, padded) != NULL;
}

static inline const char *adapt_subset_at(struct adapt_subset *s, const json_t *schema, int depth);

static inline const char *adapt_subset_object(const struct adapt_subset *s, const json_t *schema) {
  const json_t *properties = json_object_get(schema, "properties");
  const json_t *required = json_object_get(schema, "required");
  const json_t *order = json_object_get(schema, "propertyOrdering");
  if (s->closed && !json_is_false(json_object_get(schema, "additionalProperties")))
    return "an object that is not closed";
  if (s->all_required && json_array_size(required) != json_object_size(properties))
    return "a property that is not required";
  void *at = json_object_iter((json_t *)properties);
  JSON_EACH(required, i, one) {
    if (!json_object_get(properties, json_string_value(one)) && (s->closed || s->orders))
      return "a required property that does not exist";
    while (at && strcmp(json_object_iter_key(at), json_string_value(one)) != 0)
      at = json_object_iter_next((json_t *)properties, at);
    if (!at && properties && (s->closed || s->orders))
      return "required in another order than properties";
  }
  if (s->orders && json_object_size(properties) != json_array_size(order))
    return "no propertyOrdering of all properties";
  return NULL;
}

static inline const char *adapt_subset_enum(const struct adapt_subset *s, const json_t *schema) {
  const json_t *values = json_object_get(schema, "enum");
  if (!json_array_size(values))
    return "an empty enum";
  JSON_EACH(values, i, one) {
    if (json_is_object(one) || json_is_array(one))
      return "an enum of arrays or objects";
    if (!strcmp(s->dialect, "gemini") && json_is_boolean(one))
      return "an enum of booleans";
  }
  return NULL;
}

static inline const char *adapt_subset_ref(const struct adapt_subset *s, const json_t *schema) {
  const char *to = json_string_value(json_object_get(schema, "$ref"));
  if (!to || strncmp(to, "#/$defs/", 8) != 0 ||
      !json_object_get(json_object_get(s->root, "$defs"), to + 8))
    return "a reference that leads nowhere";
  if (json_object_size(schema) > 1 && !(schema == s->root && json_object_size(schema) == 2))
    return "a reference with siblings";
  return NULL;
}

static inline const char *adapt_subset_llamacpp(const json_t *schema) {
  static const char *const bounds[] = {"minimum", "maximum", "exclusiveMinimum",
                                       "exclusiveMaximum"};
  static const char *const counts[] = {"minLength", "maxLength", "minItems", "maxItems"};
  const char *type = json_string_value(json_object_get(schema, "type"));
  const char *pattern = json_string_value(json_object_get(schema, "pattern"));
  for (size_t i = 0; i < 4; i++) {
    const json_t *types = json_object_get(schema, "type"); /* it goes through a list one by one */
    bool integers = json_array_size(types) == 2 &&
                    !strcmp(json_string_value(json_array_get(types, 0)), "integer") &&
                    !strcmp(json_string_value(json_array_get(types, 1)), "null");
    if (json_object_get(schema, bounds[i]) && !integers && (!type || strcmp(type, "integer") != 0))
      return "a bound on what may not be an integer";
    if (json_number_value(json_object_get(schema, counts[i])) > 1999)
      return "a count over 1999";
  }
  if (json_object_get(schema, "anyOf") && json_object_get(schema, "properties"))
    return "alternatives beside properties";
  if (pattern && (pattern[0] != '^' || pattern[strlen(pattern) - 1] != '$' ||
                  strstr(pattern, "\\d") || strstr(pattern, "\\w") || strstr(pattern, "(?")))
    return "a pattern that the converter gets wrong";
  return NULL;
}

static inline const char *adapt_subset_keywords(const struct adapt_subset *s,
                                                const json_t *schema) {
  for (void *at = json_object_iter((json_t *)schema); at;
       at = json_object_iter_next((json_t *)schema, at))
    if (!adapt_subset_among(ADAPT_SUBSET_COMMON, json_object_iter_key(at)) &&
        !adapt_subset_among(s->keywords, json_object_iter_key(at)))
      return "a keyword that is not supported";
  const char *format = json_string_value(json_object_get(schema, "format"));
  if (format && !adapt_subset_among(s->formats, format))
    return "a format that is not supported";
  if (!strcmp(s->dialect, "anthropic") &&
      json_number_value(json_object_get(schema, "minItems")) > 1)
    return "minItems over 1";
  return NULL;
}

static inline const char *adapt_subset_type(const struct adapt_subset *s, const json_t *schema) {
  const json_t *type = json_object_get(schema, "type");
  const char *name = json_string_value(type);
  if (json_is_array(type) && s->no_type_list)
    return "a list of types";
  if (!type && !json_object_get(schema, "anyOf") && !json_object_get(schema, "$ref"))
    return "no type";
  if (name && !strcmp(name, "array") && !json_object_get(schema, "items") &&
      !json_object_get(schema, "prefixItems"))
    return "an array without items";
  if (name && !strcmp(name, "object"))
    return adapt_subset_object(s, schema);
  return NULL;
}

static inline const char *adapt_subset_below(struct adapt_subset *s, const json_t *schema,
                                             int depth) {
  static const char *const maps[] = {"properties", "$defs"};
  static const char *const lists[] = {"anyOf", "prefixItems"};
  const char *trouble = NULL;
  for (size_t i = 0; i < 2 && !trouble; i++) {
    const json_t *map = json_object_get(schema, maps[i]);
    if (i == 1 && map && schema != s->root)
      return "$defs below the root";
    for (void *at = json_object_iter((json_t *)map); at && !trouble;
         at = json_object_iter_next((json_t *)map, at))
      trouble = adapt_subset_at(s, json_object_iter_value(at), depth + 1);
    JSON_EACH(json_object_get(schema, lists[i]), k, one) {
      if (!trouble)
        trouble = adapt_subset_at(s, one, depth + 1);
    }
  }
  const json_t *items = json_object_get(schema, "items");
  const json_t *rest = json_object_get(schema, "additionalProperties");
  if (!trouble && json_is_object(items))
    trouble = adapt_subset_at(s, items, depth + 1);
  if (!trouble && json_is_object(rest))
    trouble = adapt_subset_at(s, rest, depth + 1);
  return trouble;
}

static inline const char *adapt_subset_at(struct adapt_subset *s, const json_t *schema, int depth) {
  const char *trouble = depth > 300 ? "too deep" : NULL;
  if (!json_is_object(schema))
    trouble = "a subschema that is no object";
  if (!trouble && json_object_get(schema, "$ref"))
    trouble = adapt_subset_ref(s, schema);
  if (!trouble)
    trouble = adapt_subset_keywords(s, schema);
  if (!trouble)
    trouble = adapt_subset_type(s, schema);
  if (!trouble && json_object_get(schema, "enum"))
    trouble = adapt_subset_enum(s, schema);
  if (!trouble && strstr(" llamacpp ollama lmstudio ", s->dialect))
    trouble = adapt_subset_llamacpp(schema);
  if (trouble) {
    char_auto_t *text = json_dumps(schema, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!*s->place)
      snprintf(s->place, s->place_size, "%s", text ? text : "");
    return trouble;
  }
  return adapt_subset_below(s, schema, depth);
}

/* Does a reference lead from the definition back to itself? */
static inline bool adapt_subset_reaches(const struct adapt_subset *s, const json_t *from,
                                        const char *name, int depth) {
  if (depth > 60)
    return true;
  const char *to = json_string_value(json_object_get(from, "$ref"));
  if (to && strlen(to) > 8) {
    if (!strcmp(to + 8, name))
      return true;
    if (adapt_subset_reaches(s, json_object_get(json_object_get(s->root, "$defs"), to + 8), name,
                             depth + 20))
      return true;
  }
  JSON_EACH(from, i, one) {
    if (adapt_subset_reaches(s, one, name, depth + 1))
      return true;
  }
  for (void *at = json_object_iter((json_t *)from); at;
       at = json_object_iter_next((json_t *)from, at))
    if (strcmp(json_object_iter_key(at), "$defs") != 0 &&
        adapt_subset_reaches(s, json_object_iter_value(at), name, depth + 1))
      return true;
  return false;
}

static inline const char *adapt_subset(const char *dialect, const json_t *schema, char *place,
                                       size_t place_size) {
  static const struct adapt_subset rules[] = {
      {.dialect = "openai",
       .keywords = " minimum maximum exclusiveMinimum exclusiveMaximum multipleOf pattern format "
                   "minItems maxItems const additionalProperties ",
       .formats = " date-time time date duration email hostname ipv4 ipv6 uuid ",
       .all_required = true,
       .closed = true,
       .root_object = true},
      {.dialect = "anthropic",
       .keywords = " format minItems const additionalProperties ",
       .formats = " date-time time date duration email hostname uri ipv4 ipv6 uuid ",
       .closed = true,
       .root_object = true,
       .no_type_list = true,
       .no_recursion = true},
      {.dialect = "gemini",
       .keywords =
           " minimum maximum minItems maxItems format additionalProperties propertyOrdering ",
       .formats = " date-time date time ",
       .orders = true},
      {.dialect = "llamacpp",
       .keywords =
           " minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems "
           "maxItems pattern format const additionalProperties prefixItems ",
       .formats = " date time date-time uuid "},
      {.dialect = "vllm",
       .keywords =
           " minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems "
           "maxItems pattern format const additionalProperties prefixItems ",
       .formats = " email date time date-time duration ipv4 ipv6 hostname uuid uri uri-reference "
                  "uri-template json-pointer relative-json-pointer "}};
  static const char *const same[][2] = {{"openai-chat", "openai"},
                                        {"codex", "openai"},
                                        {"openrouter", "openai"},
                                        {"ollama", "llamacpp"},
                                        {"lmstudio", "llamacpp"}};
  const char *name = dialect;
  *place = '\0';
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    if (!strcmp(dialect, same[i][0]))
      name = same[i][1];
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    if (strcmp(rules[i].dialect, name) != 0)
      continue;
    struct adapt_subset s = rules[i];
    s.root = schema;
    s.place = place;
    s.place_size = place_size;
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (s.root_object && (!type || strcmp(type, "object") != 0 || json_object_get(schema, "anyOf")))
      return "a root that is no plain object";
    const json_t *all = json_object_get(schema, "$defs");
    for (void *at = json_object_iter((json_t *)all); at && s.no_recursion;
         at = json_object_iter_next((json_t *)all, at))
      if (adapt_subset_reaches(&s, json_object_iter_value(at), json_object_iter_key(at), 0))
        return "a recursive definition";
    return adapt_subset_at(&s, schema, 0);
  }
  /* claude, qwen, opencode: any schema, but a plain object at the root */
  static const char *const no[] = {"$ref", "anyOf", "oneOf", "allOf"};
  for (size_t i = 0; i < sizeof no / sizeof *no; i++)
    if (json_object_get(schema, no[i]))
      return "a root with alternatives";
  const char *type = json_string_value(json_object_get(schema, "type"));
  return type && !strcmp(type, "object") ? NULL : "a root that is no object";
}

#endif
