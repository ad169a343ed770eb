/* libFuzzer: the input is a schema, a newline and a value, both JSON; without a newline the whole
 * is a schema and is checked against itself. Also feeds the value to every format and the schema
 * text to the pattern compiler. */
#include "base/err.h"
#include "schema/pattern.h"
#include "schema/schema.h"
#include "schema/schema_lint.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const json_t *doc, const json_t *value, const char *draft, bool formats) {
  struct schema_opts opts = {formats, NULL, draft};
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  enum schema_status status;
  AUTO(schema_errors_deinit) struct schema_errors warnings = {0};
  schema_lint(doc, formats, &warnings);
  struct schema *schema = schema_compile(doc, &opts, &errors, &status);
  if ((schema != NULL) != (status == SCHEMA_OK))
    abort();
  if (schema) {
    size_t before = errors.count;
    status = schema_check(schema, value, &errors);
    if ((errors.count == before) != (status == SCHEMA_OK))
      abort();
    if (schema_valid(schema, value) != (status == SCHEMA_OK))
      abort();
  }
  schema_free(schema);
}

static void run_pattern(const char *text, size_t size) {
  struct pattern *pattern;
  AUTO(pattern_scratch_deinit) struct pattern_scratch scratch = {0};
  if (pattern_compile(text, size, &pattern, NULL) != PATTERN_OK)
    return;
  pattern_match(pattern, &scratch, text, size);
  pattern_speed_up(pattern);
  pattern_match(pattern, &scratch, text, size);
  pattern_free(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  const char *newline = size ? memchr(text, '\n', size) : NULL;
  size_t first = newline ? (size_t)(newline - text) : size;
  const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
  json_auto_t *doc = json_loadb(text, first, flags, NULL);
  json_auto_t *value =
      newline ? json_loadb(newline + 1, size - first - 1, flags, NULL) : json_incref(doc);
  if (doc && value) {
    run(doc, value, NULL, true);
    run(doc, value, "https://json-schema.org/draft/2019-09/schema", false);
    run(doc, value, "http://json-schema.org/draft-07/schema", true);
  } else {
    run_pattern(text, size);
  }
  return 0;
}
