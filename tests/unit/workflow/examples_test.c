/* The examples of keys, which help and editors show: there, and valid. */
#include "base/limits.h"
#include "format/yaml.h"
#include "schema/schema.h"
#include "support/test.h"
#include "support/workflow_schema.h"

#include <string.h>

static size_t count, missing, wrong;

/* The example fits what the schema of workflows says of this key. */
static void check_example(const json_t *defs, const char *id, const char *key,
                          const json_t *property) {
  const json_t *example = json_array_get(json_object_get(property, "examples"), 0);
  assert_true(json_string_length(json_object_get(property, "description")) > 0);
  if (json_is_true(json_object_get(property, "deprecated")))
    return;
  count++;
  if (example == NULL) {
    print_message("%s.%s has no example\n", id, key);
    missing++;
    return;
  }
  json_auto_t *doc = json_copy((json_t *)property);
  json_object_set(doc, "$defs", (json_t *)defs);
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  struct schema *schema = schema_compile(doc, NULL, &errors, NULL);
  assert_non_null(schema);
  if (schema_check(schema, example, &errors) != SCHEMA_OK) {
    print_message("%s.%s: %s\n", id, key, errors.count ? errors.items[0].message : "?");
    wrong++;
  }
  schema_free(schema);
}

TEST(every_example_is_valid) {
  json_auto_t *schema = workflow_schema();
  json_t *defs = json_object_get(schema, "$defs"), *set, *property;
  const char *id, *key;
  json_object_foreach(json_object_get(schema, "properties"), key, property) {
    check_example(defs, "workflow", key, property);
  }
  json_object_foreach(defs, id, set) {
    json_object_foreach(json_object_get(set, "properties"), key, property) {
      check_example(defs, id, key, property);
    }
  }
  assert_true(count > 80);
  assert_int_equal(wrong, 0);
  assert_int_equal(missing, 0);
}
