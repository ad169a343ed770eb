/* libFuzzer: the input is a schema. Every rendering is made of it, in each draft; an example
 * without words must validate, a text must be the same twice, and nothing may start a line that the
 * rendering did not. */
#include "render/describe.h"
#include "render/example.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(enum schema_status status, char *text, enum schema_status again,
                       char *text_again) {
  if (status != again || (text == NULL) != (status != SCHEMA_OK))
    abort();
  if (text && (strcmp(text, text_again) != 0 || strstr(text, "```") || strpbrk(text, "\r\t\x1b")))
    abort();
  describe_free(text);
  describe_free(text_again);
}

static void run(const json_t *doc, const char *draft, bool formats) {
  struct schema_opts opts = {formats, NULL, draft};
  struct schema *schema = schema_compile(doc, &opts, NULL, NULL);
  char *text, *again;
  json_t *value;
  struct example_trouble trouble;
  if (!schema)
    return;
  for (int language = DESCRIBE_ENGLISH; language <= DESCRIBE_JAPANESE; language++) {
    enum schema_status first = describe_prompt(schema, (enum describe_language)language, &text);
    enum schema_status second = describe_prompt(schema, (enum describe_language)language, &again);
    check_text(first, text, second, again);
  }
  enum schema_status first = describe_types(schema, &text);
  enum schema_status second = describe_types(schema, &again);
  check_text(first, text, second, again);
  first = describe_json(schema, false, &text);
  second = describe_json(schema, false, &again);
  check_text(first, text, second, again);
  enum example_status status = example_make(schema, &value, &trouble);
  bool words = status == EXAMPLE_WORDS;
  if ((value != NULL) != (status == EXAMPLE_OK || words) ||
      (value && !words && !schema_valid(schema, value)) ||
      (status != EXAMPLE_OK && !*trouble.message))
    abort();
  json_decref(value);
  schema_free(schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  json_auto_t *doc = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
  if (doc) {
    run(doc, NULL, true);
    run(doc, "https://json-schema.org/draft/2019-09/schema", false);
    run(doc, "http://json-schema.org/draft-07/schema", false);
  }
  return 0;
}
