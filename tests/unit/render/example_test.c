/* Examples of a schema: valid or in words, alike each time, and not to be copied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "render/example.h"
#include "support/data.h"
#include "support/test.h"

static struct schema *compile(const char *text, bool formats) {
  json_auto_t *doc = data_json(text);
  struct schema_opts opts = {.assert_formats = formats};
  struct schema_errors errors = {0};
  struct schema *schema = schema_compile(doc, &opts, &errors, NULL);
  if (!schema)
    fail_msg("%s: %s", text, errors.count ? errors.items[0].message : "?");
  return schema;
}

struct example_case {
  const char *schema;
  const char *example; /* NULL: any that validates */
};

static void expect_status(const char *text, const char *example, bool formats,
                          enum example_status status) {
  struct schema *schema = compile(text, formats);
  struct example_trouble trouble;
  json_t *value, *wanted = example ? data_json(example) : NULL;
  if (example_make(schema, &value, &trouble) != status)
    fail_msg("%s: %s: %s", text, trouble.pointer, trouble.message);
  assert_true(status == EXAMPLE_WORDS || schema_valid(schema, value));
  assert_true(status == EXAMPLE_OK || trouble.message[0] != '\0');
  char_auto_t *got = json_dumps(value, JSON_ENCODE_ANY);
  if (wanted && !json_equal(value, wanted))
    fail_msg("%s\ngives  %s\nwanted %s", text, got, example);
  json_decref(value);
  json_decref(wanted);
  schema_free(schema);
}

static void expect_example(const char *schema, const char *example, bool formats) {
  expect_status(schema, example, formats, EXAMPLE_OK);
}

TEST(shapes) {
  DATA_ROWS("render/example/shapes.yaml", c, schema, example)
    expect_example(c.schema, c.example, false);
}

TEST(what_forbids_a_placeholder) {
  DATA_ROWS("render/example/what_forbids_a_placeholder.yaml", c, schema, example)
    expect_example(c.schema, c.example, false);
}

/* No text is searched for that matches a pattern: words stand for it, and the status says so. */
TEST(patterns_are_put_in_words) {
  struct example_trouble trouble;
  json_t *value;
  DATA_ROWS("render/example/patterns_are_put_in_words.yaml", c, schema, example)
    expect_status(c.schema, c.example, false, EXAMPLE_WORDS);
  struct schema *schema = compile(
      "{'properties':{'code':{'type':'string','pattern':'^[a-z]$'}},'required':['code']}", false);
  assert_int_equal(example_make(schema, &value, &trouble), EXAMPLE_WORDS);
  assert_string_equal(trouble.pointer, "/properties/code");
  json_decref(value);
  schema_free(schema);
  /* a form without words comes first, and so does a placeholder that matches by itself */
  expect_example("{'anyOf':[{'type':'string','pattern':'^[a-z]$'},{'type':'null'}]}", "null",
                 false);
  expect_example("{'type':'string','pattern':'str'}", "'<string>'", false);
}

TEST(asserted_formats) {
  static const char *const formats[] = {"date",          "date-time",
                                        "duration",      "email",
                                        "hostname",      "idn-email",
                                        "idn-hostname",  "ipv4",
                                        "ipv6",          "iri",
                                        "iri-reference", "json-pointer",
                                        "regex",         "relative-json-pointer",
                                        "time",          "uri",
                                        "uri-reference", "uri-template",
                                        "uuid"};
  char schema[256];
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    assert_true(schema_format_known(formats[i]));
    snprintf(schema, sizeof schema, "{'type':'string','format':'%s'}", formats[i]);
    expect_example(schema, NULL, true);
    snprintf(schema, sizeof schema,
             "{'type':'array','items':{'type':'string','format':'%s'},'minItems':3,'uniqueItems':"
             "true}",
             formats[i]);
    expect_example(schema, NULL, true);
  }
  expect_example("{'format':'uri','type':'string','minLength':40}", NULL, true);
}

TEST(refusals) {
  DATA_ROWS("render/example/refusals.yaml", c, schema, pointer) {
    struct schema *schema = compile(c.schema, false);
    struct example_trouble trouble;
    json_t *value;
    enum example_status status = example_make(schema, &value, &trouble);
    if (status != EXAMPLE_NONE && status != EXAMPLE_TOO_COMPLEX)
      fail_msg("%s: %s", c.schema, example_status_name(status));
    assert_null(value);
    assert_true(trouble.message[0] != '\0');
    if (c.pointer)
      assert_string_equal(trouble.pointer, c.pointer);
    schema_free(schema);
  }
}

TEST(given_values_serve_in_need) {
  static const struct example_case cases[] = {
      {"{'type':'string','pattern':'^(?=.*q7x)(?=.*zzj).*$','examples':['no','q7x zzj']}",
       "'q7x zzj'"},
      {"{'type':'string','pattern':'^(?=.*q7x)(?=.*zzj).*$','default':'zzjq7x'}", "'zzjq7x'"},
      {"{'type':'string','examples':['Ada']}", "'<string>'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_example(cases[i].schema, cases[i].example, false);
}

TEST(anchors) {
  struct schema *schema =
      compile("{'type':'object','properties':{'a':{'const':'x```\\ny'}}}", false);
  char *text;
  assert_int_equal(example_anchor(schema, DESCRIBE_ENGLISH, &text), EXAMPLE_OK);
  assert_string_equal(text, "An answer has this form; its values are placeholders:\n"
                            "{\"a\":\"x\\u0060\\u0060\\u0060\\ny\"}\n");
  describe_free(text);
  assert_int_equal(example_anchor(schema, DESCRIBE_JAPANESE, &text), EXAMPLE_OK);
  assert_non_null(strstr(text, "回答は次の形です"));
  describe_free(text);
  schema_free(schema);
  schema = compile("false", false);
  assert_int_equal(example_anchor(schema, DESCRIBE_ENGLISH, &text), EXAMPLE_NONE);
  assert_null(text);
  schema_free(schema);
}
