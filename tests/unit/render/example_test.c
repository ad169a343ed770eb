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

static void expect_status(const struct example_case *c, bool formats, enum example_status status) {
  struct schema *schema = compile(c->schema, formats);
  struct example_trouble trouble;
  json_t *value, *wanted = c->example ? data_json(c->example) : NULL;
  if (example_make(schema, &value, &trouble) != status)
    fail_msg("%s: %s: %s", c->schema, trouble.pointer, trouble.message);
  assert_true(status == EXAMPLE_WORDS || schema_valid(schema, value));
  assert_true(status == EXAMPLE_OK || trouble.message[0] != '\0');
  char_auto_t *text = json_dumps(value, JSON_ENCODE_ANY);
  if (wanted && !json_equal(value, wanted))
    fail_msg("%s\ngives  %s\nwanted %s", c->schema, text, c->example);
  json_decref(value);
  json_decref(wanted);
  schema_free(schema);
}

static void expect_example(const struct example_case *c, bool formats) {
  expect_status(c, formats, EXAMPLE_OK);
}

TEST(shapes) {
  static const struct example_case cases[] = {
      {"{'type':'string'}", "'<string>'"},
      {"{'type':'string','format':'date-time'}", "'<date-time>'"},
      {"{'type':'integer'}", "0"},
      {"{'type':'number'}", "0"},
      {"{'type':'boolean'}", "false"},
      {"{'type':'null'}", "null"},
      {"true", "'<any>'"},
      {"{}", "'<any>'"},
      {"{'const':{'a':[1]}}", "{'a':[1]}"},
      {"{'enum':['low','high']}", "'low'"},
      {"{'enum':[1,2,3],'minimum':2}", "2"},
      {"{'type':['null','string']}", "'<string>'"},
      {"{'type':['integer','string']}", "0"},
      {"{'type':'array','items':{'type':'string'}}", "['<string>']"},
      {"{'type':'array','items':{'type':'string'},'minItems':2}", "['<string>','<string>']"},
      {"{'type':'array','items':{'type':'string'},'minItems':3,'uniqueItems':true}",
       "['<string>','<string 2>','<string 3>']"},
      {"{'type':'array','items':{'type':'integer','minimum':3},'minItems':2,'uniqueItems':true}",
       "[3,4]"},
      {"{'items':{'type':'string'},'maxItems':0}", "[]"},
      {"{'prefixItems':[{'type':'string'},{'const':1}],'items':false}", "['<string>',1]"},
      {"{'type':'object','properties':{'a':{'type':'string'},'b':{'type':'object','properties':"
       "{'c':{'type':'boolean'}}}}}",
       "{'a':'<string>','b':{'c':false}}"},
      {"{'type':'object','additionalProperties':{'type':'integer'}}", "{'<key>':0}"},
      {"{'type':'object','properties':{'v':{'type':'integer'},'kids':{'type':'array','items':"
       "{'$ref':'#'}}}}",
       "{'v':0,'kids':[]}"},
      {"{'type':'object','properties':{'v':{'type':'integer'},'next':{'$ref':'#'}}}", "{'v':0}"},
      {"{'$ref':'#/$defs/e','$defs':{'e':{'oneOf':[{'type':'object','properties':{'op':{'enum':"
       "['+']},'args':{'type':'array','items':{'$ref':'#/$defs/e'},'minItems':2}},'required':"
       "['op','args']},{'type':'number'}]}}}",
       "{'op':'+','args':[0,0]}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_example(&cases[i], false);
}

TEST(what_forbids_a_placeholder) {
  static const struct example_case cases[] = {
      {"{'type':'string','minLength':12}", "'<string>....'"},
      {"{'type':'string','maxLength':3}", "'str'"},
      {"{'type':'string','maxLength':7}", "'string.'"},
      {"{'type':'string','maxLength':0}", "''"},
      {"{'type':'integer','minimum':5}", "5"},
      {"{'type':'integer','exclusiveMinimum':5}", "6"},
      {"{'type':'integer','maximum':-3}", "-3"},
      {"{'type':'integer','exclusiveMaximum':0}", "-1"},
      {"{'type':'integer','minimum':10,'multipleOf':7}", "14"},
      {"{'type':'integer','minimum':1,'multipleOf':4,'allOf':[{'multipleOf':6}]}", "12"},
      {"{'type':'number','exclusiveMinimum':0,'exclusiveMaximum':0.5}", NULL},
      {"{'type':'number','minimum':0.1,'multipleOf':0.01}", NULL},
      {"{'type':'number','minimum':1e300}", NULL},
      {"{'type':'integer','minimum':9007199254740993}", "9007199254740993"},
      {"{'type':'array','contains':{'const':5},'minContains':2}", "[5,5]"},
      {"{'type':'array','contains':{'type':'integer'},'items':{'minimum':7}}", "[7]"},
      {"{'type':'array','allOf':[{'contains':{'const':1}},{'contains':{'const':2}}]}", "[1,2]"},
      {"{'type':'array','items':{'enum':['a','b','c']},'minItems':3,'uniqueItems':true}",
       "['a','b','c']"},
      {"{'type':'object','minProperties':2}", "{'<key>':'<any>','<key 2>':'<any>'}"},
      {"{'type':'object','properties':{'a':{'type':'null'},'b':{'type':'null'}},'maxProperties':1,"
       "'required':['b']}",
       "{'b':null}"},
      {"{'type':'object','properties':{'a':{'type':'null'}},'dependentRequired':{'a':['z']}}",
       "{'a':null,'z':'<any>'}"},
      {"{'type':'object','properties':{'a':{'type':'null'}},'dependentSchemas':{'a':{'properties':"
       "{'z':{'type':'boolean'}},'required':['z']}}}",
       "{'a':null,'z':false}"},
      {"{'type':'object','properties':{'a':{'type':'null'},'b':{'type':'null'}},'not':{'required':"
       "['a','b']}}",
       NULL},
      {"{'type':'object','properties':{'kind':{'enum':['x','y']}},'if':{'properties':{'kind':"
       "{'const':'y'}}},'then':false}",
       "{'kind':'x'}"},
      {"{'type':'object','properties':{'country':{'type':'string'},'zip':{'type':'string'}},"
       "'required':['country'],'if':{'properties':{'country':{'const':'JP'}}},'then':{'properties':"
       "{'zip':{'pattern':'^[0-9]{3}-[0-9]{4}$'}}}}",
       "{'country':'<string>','zip':'<string>'}"},
      {"{'oneOf':[{'type':'integer'},{'type':'integer','minimum':-5}]}", "-6"},
      {"{'anyOf':[false,{'type':'string','minLength':9}]}", "'<string>.'"},
      {"{'not':{'type':['object','array','string','number']}}", "false"},
      {"{'type':'object','properties':{'a':{'type':'string','not':{'pattern':'.'},'minLength':1},"
       "'b':{'type':'null'}}}",
       "{'b':null}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_example(&cases[i], false);
}

/* No text is searched for that matches a pattern: words stand for it, and the status says so. */
TEST(patterns_are_put_in_words) {
  static const struct example_case cases[] = {
      {"{'type':'string','pattern':'^[A-Z]{2}[0-9]{4}$'}",
       "'<text that matches ^[A-Z]{2}[0-9]{4}$>'"},
      {"{'type':'string','allOf':[{'pattern':'^a'},{'pattern':'z$'}]}",
       "'<text that matches ^a and z$>'"},
      {"{'type':'string','pattern':'^(?=a)(?=b)','examples':[1]}",
       "'<text that matches ^(?=a)(?=b)>'"},
      {"{'type':'object','properties':{'code':{'type':'string','pattern':'^[a-z]$'},'n':{'type':"
       "'integer','minimum':3}}}",
       "{'code':'<text that matches ^[a-z]$>','n':3}"},
      {"{'type':'array','items':{'type':'string','pattern':'^[a-z]$'}}",
       "['<text that matches ^[a-z]$>']"},
      {"{'type':'object','patternProperties':{'^x-[a-z]+$':{'type':'null'}}}",
       "{'<text that matches ^x-[a-z]+$>':null}"},
      {"{'type':'object','minProperties':1,'propertyNames':{'pattern':'^k[0-9]$'}}",
       "{'<text that matches ^k[0-9]$>':'<any>'}"},
      {"{'type':'string','minLength':9,'pattern':'a'}", "'<text that matches a>'"},
  };
  struct example_trouble trouble;
  json_t *value;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_status(&cases[i], false, EXAMPLE_WORDS);
  struct schema *schema = compile(cases[3].schema, false);
  assert_int_equal(example_make(schema, &value, &trouble), EXAMPLE_WORDS);
  assert_string_equal(trouble.pointer, "/properties/code");
  json_decref(value);
  schema_free(schema);
  /* a form without words comes first, and so does a placeholder that matches by itself */
  expect_example(&(struct example_case){"{'anyOf':[{'type':'string','pattern':'^[a-z]$'},{'type':"
                                        "'null'}]}",
                                        "null"},
                 false);
  expect_example(&(struct example_case){"{'type':'string','pattern':'str'}", "'<string>'"}, false);
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
    struct example_case c = {schema, NULL};
    assert_true(schema_format_known(formats[i]));
    snprintf(schema, sizeof schema, "{'type':'string','format':'%s'}", formats[i]);
    expect_example(&c, true);
    snprintf(schema, sizeof schema,
             "{'type':'array','items':{'type':'string','format':'%s'},'minItems':3,'uniqueItems':"
             "true}",
             formats[i]);
    expect_example(&c, true);
  }
  expect_example(&(struct example_case){"{'format':'uri','type':'string','minLength':40}", NULL},
                 true);
}

TEST(refusals) {
  static const struct {
    const char *schema, *pointer;
  } cases[] = {
      {"false", ""},
      {"{'type':'object','properties':{'a':false},'required':['a']}", "/properties/a"},
      {"{'allOf':[{'type':'string'},{'type':'number'}]}", ""},
      {"{'type':'object','properties':{'n':{'$ref':'#'}},'required':['n']}", NULL},
      {"{'type':'string','minLength':5,'maxLength':4}", ""},
      {"{'type':'string','minLength':100000000}", ""},
      {"{'type':'array','minItems':100000000}", ""},
      {"{'type':'array','items':{'type':'boolean'},'minItems':3,'uniqueItems':true}", ""},
      {"{'type':'object','properties':{'code':{'type':'string','pattern':'b','maxLength':0,"
       "'minLength':1}},'required':['code']}",
       "/properties/code"},
      {"{'type':'integer','minimum':3,'maximum':2}", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct schema *schema = compile(cases[i].schema, false);
    struct example_trouble trouble;
    json_t *value;
    enum example_status status = example_make(schema, &value, &trouble);
    if (status != EXAMPLE_NONE && status != EXAMPLE_TOO_COMPLEX)
      fail_msg("%s: %s", cases[i].schema, example_status_name(status));
    assert_null(value);
    assert_true(trouble.message[0] != '\0');
    if (cases[i].pointer)
      assert_string_equal(trouble.pointer, cases[i].pointer);
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
    expect_example(&cases[i], false);
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
