/* Any JSON value against schemas that between them use every keyword: the first byte picks one, so
 * that all of the input's bytes go into the value. */
#include "base/err.h"
#include "schema/schema.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const texts[] = {
    "{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}",
    "{\"$ref\":\"https://json-schema.org/draft/2019-09/schema\"}",
    "{\"$ref\":\"http://json-schema.org/draft-07/schema#\"}",
    "{\"type\":[\"object\",\"array\",\"string\",\"integer\"],\"minProperties\":1,\"maxProperties\":"
    "9,"
    "\"properties\":{\"a\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":5,\"pattern\":"
    "\"^(a|b)*c\"},\"b\":{\"enum\":[1,\"x\",null,[1],{\"k\":0.1}]},\"c\":{\"const\":{\"z\":[1.0]}},"
    "\"d\":{\"type\":\"number\",\"minimum\":-5,\"exclusiveMaximum\":1e10,\"multipleOf\":0.01}},"
    "\"patternProperties\":{\"^x\":{\"$ref\":\"#\"},\"[0-9]+$\":false},\"propertyNames\":{"
    "\"maxLength\":8},\"required\":[\"a\"],\"dependentRequired\":{\"b\":[\"a\",\"c\"]},"
    "\"dependentSchemas\":{\"c\":{\"required\":[\"d\"]}},\"prefixItems\":[{\"$ref\":\"#\"},{"
    "\"type\":"
    "\"string\",\"format\":\"date-time\"}],\"items\":{\"$ref\":\"#/properties/d\"},\"contains\":{"
    "\"type\":\"number\"},\"minContains\":0,\"maxContains\":3,\"uniqueItems\":true,\"minItems\":1}",
    "{\"$dynamicAnchor\":\"n\",\"anyOf\":[{\"properties\":{\"l\":{\"$dynamicRef\":\"#n\"}}},{"
    "\"items\":{\"$dynamicRef\":\"#n\"}}],\"oneOf\":[{\"type\":\"object\"},{\"type\":\"array\"},{"
    "\"type\":\"string\",\"format\":\"uri\"}],\"allOf\":[{\"if\":{\"required\":[\"t\"]},\"then\":{"
    "\"properties\":{\"t\":{\"format\":\"email\"}}},\"else\":{\"not\":{\"required\":[\"u\"]}}}],"
    "\"unevaluatedProperties\":false,\"unevaluatedItems\":{\"type\":\"null\"}}",
};
enum { SCHEMAS = sizeof texts / sizeof *texts };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct schema *schemas[SCHEMAS];
  if (schemas[0] == NULL)
    for (size_t i = 0; i < SCHEMAS; i++) {
      const struct schema_opts opts = {.assert_formats = true};
      json_auto_t *doc = json_loads(texts[i], 0, NULL);
      schemas[i] = schema_compile(doc, &opts, NULL, NULL);
      if (schemas[i] == NULL)
        abort();
    }
  if (size == 0)
    return 0;
  json_t *value =
      json_loadb((const char *)data + 1, size - 1, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
  if (value == NULL)
    return 0;
  const struct schema *schema = schemas[data[0] % SCHEMAS];
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  enum schema_status status = schema_check(schema, value, &errs);
  if ((errs.count == 0) != (status == SCHEMA_OK) ||
      schema_valid(schema, value) != (status == SCHEMA_OK))
    abort();
  json_decref(value);
  return 0;
}
