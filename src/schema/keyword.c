/* Lists all keywords of the three drafts, and names the statuses. */
#include "base/str.h"
#include "schema/compiled.h"

#include <string.h>

#define D07   DIALECT_07
#define D2019 DIALECT_2019
#define D2020 DIALECT_2020
#define NEW   (DIALECT_2019 | DIALECT_2020)
#define ALL   (DIALECT_07 | DIALECT_2019 | DIALECT_2020)

/* A name can appear twice, for different drafts. The later drafts keep `dependencies`, as the
 * optional tests of the suite expect. */
static const struct keyword keywords[] = {
    {"$id", K_ID, SHAPE_STRING, ALL, VOCAB_CORE},
    {"$schema", K_SCHEMA, SHAPE_STRING, ALL, VOCAB_CORE},
    {"$ref", K_REF, SHAPE_STRING, ALL, VOCAB_CORE},
    {"$anchor", K_ANCHOR, SHAPE_STRING, NEW, VOCAB_CORE},
    {"$dynamicRef", K_DYNAMIC_REF, SHAPE_STRING, D2020, VOCAB_CORE},
    {"$dynamicAnchor", K_DYNAMIC_ANCHOR, SHAPE_STRING, D2020, VOCAB_CORE},
    {"$recursiveRef", K_RECURSIVE_REF, SHAPE_STRING, D2019, VOCAB_CORE},
    {"$recursiveAnchor", K_RECURSIVE_ANCHOR, SHAPE_BOOL, D2019, VOCAB_CORE},
    {"$vocabulary", K_VOCABULARY, SHAPE_ANY, NEW, VOCAB_CORE},
    {"$comment", K_COMMENT, SHAPE_ANY, ALL, VOCAB_CORE},
    {"$defs", K_DEFS, SHAPE_SCHEMA_MAP, NEW, VOCAB_CORE},
    {"definitions", K_DEFINITIONS, SHAPE_SCHEMA_MAP, ALL, VOCAB_CORE},
    {"allOf", K_ALL_OF, SHAPE_SCHEMA_LIST, ALL, VOCAB_APPLICATOR},
    {"anyOf", K_ANY_OF, SHAPE_SCHEMA_LIST, ALL, VOCAB_APPLICATOR},
    {"oneOf", K_ONE_OF, SHAPE_SCHEMA_LIST, ALL, VOCAB_APPLICATOR},
    {"not", K_NOT, SHAPE_SCHEMA, ALL, VOCAB_APPLICATOR},
    {"if", K_IF, SHAPE_SCHEMA, ALL, VOCAB_APPLICATOR},
    {"then", K_THEN, SHAPE_SCHEMA, ALL, VOCAB_APPLICATOR},
    {"else", K_ELSE, SHAPE_SCHEMA, ALL, VOCAB_APPLICATOR},
    {"dependentSchemas", K_DEPENDENT_SCHEMAS, SHAPE_SCHEMA_MAP, NEW, VOCAB_APPLICATOR},
    {"dependencies", K_DEPENDENCIES, SHAPE_DEPENDENCIES, ALL, VOCAB_APPLICATOR},
    {"prefixItems", K_PREFIX_ITEMS, SHAPE_SCHEMA_LIST, D2020, VOCAB_APPLICATOR},
    {"items", K_ITEMS, SHAPE_SCHEMA, D2020, VOCAB_APPLICATOR},
    {"items", K_ITEMS, SHAPE_SCHEMA_OR_LIST, D07 | D2019, VOCAB_APPLICATOR},
    {"additionalItems", K_ADDITIONAL_ITEMS, SHAPE_SCHEMA, D07 | D2019, VOCAB_APPLICATOR},
    {"contains", K_CONTAINS, SHAPE_SCHEMA, ALL, VOCAB_APPLICATOR},
    {"properties", K_PROPERTIES, SHAPE_SCHEMA_MAP, ALL, VOCAB_APPLICATOR},
    {"patternProperties", K_PATTERN_PROPERTIES, SHAPE_PATTERN_MAP, ALL, VOCAB_APPLICATOR},
    {"additionalProperties", K_ADDITIONAL_PROPERTIES, SHAPE_SCHEMA, ALL, VOCAB_APPLICATOR},
    {"propertyNames", K_PROPERTY_NAMES, SHAPE_SCHEMA, ALL, VOCAB_APPLICATOR},
    {"unevaluatedItems", K_UNEVALUATED_ITEMS, SHAPE_SCHEMA, NEW, VOCAB_UNEVALUATED},
    {"unevaluatedProperties", K_UNEVALUATED_PROPERTIES, SHAPE_SCHEMA, NEW, VOCAB_UNEVALUATED},
    {"type", K_TYPE, SHAPE_TYPE, ALL, VOCAB_VALIDATION},
    {"enum", K_ENUM, SHAPE_LIST, ALL, VOCAB_VALIDATION},
    {"const", K_CONST, SHAPE_ANY, ALL, VOCAB_VALIDATION},
    {"multipleOf", K_MULTIPLE_OF, SHAPE_POSITIVE, ALL, VOCAB_VALIDATION},
    {"maximum", K_MAXIMUM, SHAPE_NUMBER, ALL, VOCAB_VALIDATION},
    {"exclusiveMaximum", K_EXCLUSIVE_MAXIMUM, SHAPE_NUMBER, ALL, VOCAB_VALIDATION},
    {"minimum", K_MINIMUM, SHAPE_NUMBER, ALL, VOCAB_VALIDATION},
    {"exclusiveMinimum", K_EXCLUSIVE_MINIMUM, SHAPE_NUMBER, ALL, VOCAB_VALIDATION},
    {"maxLength", K_MAX_LENGTH, SHAPE_COUNT, ALL, VOCAB_VALIDATION},
    {"minLength", K_MIN_LENGTH, SHAPE_COUNT, ALL, VOCAB_VALIDATION},
    {"pattern", K_PATTERN, SHAPE_PATTERN, ALL, VOCAB_VALIDATION},
    {"maxItems", K_MAX_ITEMS, SHAPE_COUNT, ALL, VOCAB_VALIDATION},
    {"minItems", K_MIN_ITEMS, SHAPE_COUNT, ALL, VOCAB_VALIDATION},
    {"uniqueItems", K_UNIQUE_ITEMS, SHAPE_BOOL, ALL, VOCAB_VALIDATION},
    {"maxContains", K_MAX_CONTAINS, SHAPE_COUNT, NEW, VOCAB_VALIDATION},
    {"minContains", K_MIN_CONTAINS, SHAPE_COUNT, NEW, VOCAB_VALIDATION},
    {"maxProperties", K_MAX_PROPERTIES, SHAPE_COUNT, ALL, VOCAB_VALIDATION},
    {"minProperties", K_MIN_PROPERTIES, SHAPE_COUNT, ALL, VOCAB_VALIDATION},
    {"required", K_REQUIRED, SHAPE_STRING_LIST, ALL, VOCAB_VALIDATION},
    {"dependentRequired", K_DEPENDENT_REQUIRED, SHAPE_STRING_LIST_MAP, NEW, VOCAB_VALIDATION},
    {"format", K_FORMAT, SHAPE_STRING, ALL, VOCAB_VALIDATION},
    {"contentEncoding", K_CONTENT_ENCODING, SHAPE_STRING, ALL, VOCAB_ANNOTATION},
    {"contentMediaType", K_CONTENT_MEDIA_TYPE, SHAPE_STRING, ALL, VOCAB_ANNOTATION},
    {"contentSchema", K_CONTENT_SCHEMA, SHAPE_SCHEMA, NEW, VOCAB_ANNOTATION},
};

const struct keyword *schema_keyword_find(const char *name, unsigned dialect) {
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
    if (keywords[i].dialects & dialect && keywords[i].name[0] == name[0] &&
        !strcmp(name, keywords[i].name))
      return &keywords[i];
  return NULL;
}

const char *schema_keyword_nearest(struct str word) {
  const char *best = NULL;
  size_t least = SIZE_MAX, distance;
  for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
    if (str_near(word, str_from(keywords[i].name), &distance) && distance < least) {
      best = keywords[i].name;
      least = distance;
    }
  return best;
}

bool schema_has_known_keyword(const json_t *doc) {
  for (void *at = json_object_iter((json_t *)doc); at;
       at = json_object_iter_next((json_t *)doc, at)) {
    const char *name = json_object_iter_key(at);
    const struct keyword *keyword = schema_keyword_find(name, ALL);
    if (keyword && keyword->vocabulary & (VOCAB_APPLICATOR | VOCAB_UNEVALUATED | VOCAB_VALIDATION))
      return true;
    if (!strcmp(name, "$ref") || !strcmp(name, "$dynamicRef") || !strcmp(name, "$recursiveRef"))
      return true;
  }
  return false;
}

const char *schema_status_name(enum schema_status status) {
  static const char *const names[] = {[SCHEMA_OK] = "ok",
                                      [SCHEMA_INVALID_SCHEMA] = "invalid_schema",
                                      [SCHEMA_INVALID] = "invalid",
                                      [SCHEMA_TOO_COMPLEX] = "too_complex"};
  return names[status];
}
