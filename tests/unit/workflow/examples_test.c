/* The examples of keys, which help and editors show: there, valid, and the same for both. */
#include "base/limits.h"
#include "base/resource.h"
#include "core/keys.h"
#include "format/json_object.h"
#include "format/yaml.h"
#include "schema/schema.h"
#include "support/test.h"

#include <string.h>

static size_t count;

/* The example fits what the schema of workflows says of this key, and help shows it as YAML. */
static void check_example(const json_t *root, const struct key_set *set, const struct key *k,
                          const json_t *property) {
  const json_t *example = json_array_get(json_object_get(property, "examples"), 0);
  struct err err;
  assert_string_equal(k->description, json_string_value(json_object_get(property, "description")));
  if (k->type == KEY_NOTED)
    return;
  count++;
  if (example == NULL)
    fail_msg("%s of %s has no example", k->name, set->what);
  json_auto_t *doc = json_copy((json_t *)property);
  json_object_set(doc, "$defs", json_object_get(root, "$defs"));
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  struct schema *schema = schema_compile(doc, NULL, &errors, NULL);
  assert_non_null(schema);
  if (schema_check(schema, example, &errors) != SCHEMA_OK)
    fail_msg("%s of %s: %s", k->name, set->what, errors.count ? errors.items[0].message : "?");
  schema_free(schema);
  json_auto_t *shown = yaml_load("example", str_from(k->example), LIMIT_WORKFLOW_BYTES, &err);
  if (shown == NULL || !json_equal(shown, example))
    fail_msg("%s of %s: not the same in help: %s", k->name, set->what, k->example);
}

TEST(every_example_is_valid) {
  const struct resource *r = resource_find("schemas/workflow.json");
  json_auto_t *root = json_loadb(r->p, r->n, JSON_REJECT_DUPLICATES, NULL);
  static const struct key_set *const sets[] = {
      &workflow_keys, &movement_keys,  &rule_keys,     &judge_keys,   &structured_output_keys,
      &reask_keys,    &options_keys,   &budget_keys,   &limits_keys,  &budget_call_keys,
      &guards_keys,   &contracts_keys, &contract_keys, &monitor_keys, &loop_judge_keys,
      &gate_keys,     &error_keys,     &ask_keys,      &approve_keys, &integrate_keys,
      &setup_keys};
  for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
    const json_t *schema = i == 0 ? root : NULL;
    JSON_MEMBERS(json_object_get(root, "$defs"), id, definition) {
      const char *title = json_string_value(json_object_get(definition, "title"));
      if (title != NULL && strcmp(title, sets[i]->what) == 0)
        schema = definition;
    }
    for (const struct key *k = sets[i]->keys; k->name; k++)
      check_example(root, sets[i], k,
                    json_object_get(json_object_get(schema, "properties"), k->name));
  }
  assert_true(count > 80);
}
