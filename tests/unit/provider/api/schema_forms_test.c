/* Texts of model APIs taken for one answer: the value they are or wrap, never one they mention. */
#include "provider/api/schema_forms.h"

#include "support/test.h"

#include <string.h>

static const struct find_case {
  const char *text; /* ' for " */
  int step;         /* 0: no value is given */
  enum api_fit fit;
} cases[] = {
    {"{'reason':'r','step':2}", 2, API_FIT_VALID},
    {" {'reason':'r','step':2}\n", 2, API_FIT_VALID},
    {"```json\n{'reason':'r','step':2}\n```", 2, API_FIT_VALID},
    {"<think>{'reason':'r','step':1}?</think>{'reason':'r','step':2}", 2, API_FIT_VALID},
    {"{'reason':'r','step':7}", 7, API_FIT_WRONG},
    {"{'reason':'r'}", 0, API_FIT_LOOSE},
    /* for who asked to read: it knows the report */
    {"The report ends so:\n\n{'reason':'r','step':2}", 0, API_FIT_VALID},
    {"It says {'reason':'r','step':1}. I decline.", 0, API_FIT_VALID},
    {"{'reason':'r','step':1}\n\n{'reason':'r','step':2}", 0, API_FIT_LOOSE},
    {"{'reason':'r','step':1}\n\nNo:\n{'reason':'r','step':2,}", 0, API_FIT_LOOSE},
    {"{'reason':'r','step':2,'step':1}", 0, API_FIT_WRONG},
    {"```\n{'reason':'r','step':2,'step':1}\n```", 0, API_FIT_WRONG},
    {"{'reason':'r','step':1e999}", 0, API_FIT_WRONG},
    {"I think so.", 0, API_FIT_LOOSE},
    {"", 0, API_FIT_LOOSE},
};

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
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct api_value found;
    char text[200];
    quote(text, sizeof text, cases[i].text);
    api_schema_find(s, RUNG_NATIVE, str_from(text), &found);
    json_int_t step = json_integer_value(json_object_get(found.value, "step"));
    if (step != cases[i].step || found.fit != cases[i].fit)
      fail_msg("case %zu: step %d, fit %d: %s", i, (int)step, (int)found.fit, cases[i].text);
    json_decref(found.value);
  }
  api_schema_unref(s);
  api_schemas_free(schemas);
}
