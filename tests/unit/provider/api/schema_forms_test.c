/* Texts of model APIs taken for one answer: the value they are or wrap, never one they mention. */
#include "provider/api/schema_forms.h"

#include "support/data.h"
#include "support/test.h"

#include <string.h>

static void quote(char *out, size_t size, const char *text) {
  size_t n = strlen(text);
  assert_true(n < size);
  for (size_t i = 0; i <= n; i++)
    out[i] = (char)(text[i] == '\'' ? '"' : text[i]);
}

TEST(a_text_is_one_answer) {
  struct api_schemas *schemas = api_schemas_new();
  json_auto_t *canonical =
      json_loads("{\"type\":\"object\",\"properties\":{\"reason\":{\"type\":\"string\"},"
                 "\"step\":{\"enum\":[0,1,2]}},\"required\":[\"reason\",\"step\"],"
                 "\"additionalProperties\":false}",
                 0, NULL);
  struct api_schema *s = api_schema_get(schemas, canonical, preset_find(STR("ollama")), false);
  DATA_ROWS("provider/api/schema_forms/a_text_is_one_answer.yaml", c, text, step, fit) {
    struct api_value found;
    char text[200];
    quote(text, sizeof text, c.text);
    api_schema_find(s, RUNG_NATIVE, str_from(text), &found);
    json_int_t step = json_integer_value(json_object_get(found.value, "step"));
    if (step != (int)data_number(c.step) || found.fit != data_among(c.fit, "valid wrong loose"))
      fail_msg("case %zu: step %d, fit %d: %s", c.at, (int)step, (int)found.fit, c.text);
    json_decref(found.value);
  }
  api_schema_unref(s);
  api_schemas_free(schemas);
}
