/* libFuzzer: the input is a schema, JSON. Its grammar must be readable, and what it derives must
 * validate, unless the converter listed a keyword. */
#include "base/memory.h"
#include "gbnf/gbnf.h"
#include "support/gbnf_grammar.h"

enum { READ_BYTES_MAX = 30000, DERIVED_BYTES_MAX = 5000, MATCH_WORK_MAX = 2000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t length, const struct schema *schema, bool listed) {
  json_auto_t *value = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
  if (!value)
    value =
        json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
  if (!value)
    abort();
  if (!listed && schema_check(schema, value, NULL) == SCHEMA_INVALID) {
    fprintf(stderr, "derived, not valid: %s\n", text);
    abort();
  }
}

static void check_grammar(const json_t *doc, const struct gbnf_result *result, uint64_t seed) {
  char error[160];
  struct grammar *grammar = grammar_new(result->text, error);
  if (!grammar) {
    fprintf(stderr, "%s\n%s\n", error, result->text);
    abort();
  }
  struct schema_opts opts = {.assert_formats = true};
  struct schema *schema = schema_compile(doc, &opts, NULL, NULL);
  if (!schema)
    abort();
  for (int i = 0; i < 3; i++) {
    size_t length;
    char_auto_t *text = grammar_derive(grammar, &seed, 20, &length);
    if (length < DERIVED_BYTES_MAX && length * grammar->rule_count < MATCH_WORK_MAX) {
      if (!grammar_match(grammar, text, length))
        abort();
      check_text(text, length, schema, result->note_count > 0);
    }
  }
  schema_free(schema);
  grammar_free(grammar);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct gbnf_result result;
  uint64_t seed = size;
  json_auto_t *doc = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
  if (!doc)
    return 0;
  for (size_t i = 0; i < size; i++)
    seed = seed * 31 + data[i];
  enum gbnf_status status = gbnf_convert(doc, NULL, &result);
  if ((status == GBNF_OK) != (result.text != NULL) ||
      (status == GBNF_OK) == (result.refusal != NULL))
    abort();
  if (result.text && result.length < READ_BYTES_MAX)
    check_grammar(doc, &result, seed);
  gbnf_result_deinit(&result);
  return 0;
}
