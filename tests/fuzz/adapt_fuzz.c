/* libFuzzer: the input is a schema, a newline and an answer, both JSON; without a newline the
 * schema is the answer too. Every dialect; what is adapted must compile and be the same a second
 * time. */
#include "adapt/adapt.h"
#include "support/adapt_forward.h"
#include "support/adapt_report.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void turn(const struct adapted *adapted, const json_t *value) {
  json_t *out = NULL, *back = NULL;
  if (adapt_reverse(adapted, value, &out) == ADAPT_OK && !out)
    abort();
  json_decref(out);
  if (adapt_forward(adapted, value, &out) == ADAPT_OK &&
      adapt_reverse(adapted, out, &back) == ADAPT_OK && !back)
    abort();
  json_decref(out);
  json_decref(back);
}

static void run(const json_t *doc, const json_t *value, const struct adapt_dialect *dialect,
                const struct adapt_opts *opts) {
  struct adapt_error error;
  struct adapted *adapted = adapt(doc, dialect, opts, &error);
  if ((adapted != NULL) != (error.status == ADAPT_OK) ||
      (!adapted && (!error.message[0] || !error.keyword)))
    abort();
  if (!adapted)
    return;
  struct schema_opts schema_opts = {.default_draft = opts->default_draft};
  enum schema_status status;
  struct schema *schema = schema_compile(adapted_schema(adapted), &schema_opts, NULL, &status);
  const char *name = dialect->name;
  if (status == SCHEMA_INVALID_SCHEMA && !strstr(" claude qwen opencode ", name))
    abort();
  struct adapted *again = adapt(doc, dialect, opts, NULL);
  if (!again || !json_equal(adapted_schema(adapted), adapted_schema(again)))
    abort();
  json_auto_t *report = adapted_report(adapted);
  if (!report || json_array_size(report) != adapted_change_count(adapted))
    abort();
  turn(adapted, value);
  schema_free(schema);
  adapted_free(again);
  adapted_free(adapted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const struct adapt_opts opts[] = {
      {.reasoning = "reasoning"},
      {.words_only = true},
      {.default_draft = "http://json-schema.org/draft-07/schema", .reasoning = "a"}};
  const char *text = (const char *)data;
  const char *newline = size ? memchr(text, '\n', size) : NULL;
  size_t first = newline ? (size_t)(newline - text) : size;
  const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
  json_auto_t *doc = json_loadb(text, first, flags, NULL);
  json_auto_t *value =
      newline ? json_loadb(newline + 1, size - first - 1, flags, NULL) : json_incref(doc);
  const struct adapt_dialect *dialect;
  for (size_t i = 0; doc && value && (dialect = adapt_dialect_at(i)); i++)
    run(doc, value, dialect, &opts[i % 3]);
  return 0;
}
