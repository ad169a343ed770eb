/* The end of a prompt for a backend without an option for schemas. */

#include "provider/schema_prompt.h"
#include "support/test.h"

static const struct {
  const char *prompt, *schema;
  enum describe_form form;
  enum describe_language language;
  const char *wanted;
} cases[] = {
    {"Do it.", "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}",
     DESCRIBE_AS_PROMPT, DESCRIBE_ENGLISH,
     "Do it.\n\n---\n\nReturn one JSON object of the structure below. Write JSON only: no other "
     "text, no code fence.\n\n- a: integer (optional)\n\nDo not use null. Leave an optional field "
     "out when its value is not known. Do not invent anything.\n"},
    {"Do it.\n", "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}",
     DESCRIBE_AS_TYPES, DESCRIBE_ENGLISH,
     "Do it.\n\n---\n\nReturn one JSON object of the structure below. Write JSON only: no other "
     "text, no code fence.\n\n{\n  a?: integer\n}\n\nUse null only where it is allowed. Do not "
     "invent anything.\n"},
    {"Say {root} and {schema}.", "{\"minimum\":1,\"title\":\"{root}\"}", DESCRIBE_AS_JSON,
     DESCRIBE_ENGLISH,
     "Say {root} and {schema}.\n\n---\n\nReturn one JSON number that fits the JSON Schema below. "
     "Write JSON only: no other text, no code fence. Do not repeat the schema.\n\n"
     "{\"minimum\":1,\"title\":\"{root}\"}\n\nUse null only where it is allowed. Do not invent "
     "anything.\n"},
    {"Mine:\n{\"type\":\"object\"}\nMend it.", "{\"type\":\"object\"}", DESCRIBE_AS_PROMPT,
     DESCRIBE_ENGLISH, "Mine:\n{\"type\":\"object\"}\nMend it."},
    {"一覧を。", "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", DESCRIBE_AS_TYPES,
     DESCRIBE_JAPANESE,
     "一覧を。\n\n---\n\n次の構造の JSON の配列を一つだけ返してください。JSON "
     "だけを書き、ほかの文章やコードフェンスは付けないでください。\n\nstring[]\n\n"
     "null は許されている所だけで使ってください。 何も作り出さないでください。\n"},
};

TEST(the_schema_stands_there_once) {
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t prompt = {0};
    json_auto_t *schema = json_loads(cases[i].schema, 0, NULL);
    const struct call_request request = {
        .schema = schema, .schema_as = cases[i].form, .language = cases[i].language};
    buf_puts(&prompt, cases[i].prompt);
    schema_prompt_append(&prompt, &request);
    assert_string_equal(buf_c(&prompt), cases[i].wanted);
    schema_prompt_append(&prompt, &request);
    assert_string_equal(buf_c(&prompt), cases[i].wanted);
  }
}
