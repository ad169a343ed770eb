/* Schemas told as a prompt, as types and as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/describe.h"
#include "support/data.h"
#include "support/test.h"

#define DRAFT_07   "http://json-schema.org/draft-07/schema"
#define DRAFT_2019 "https://json-schema.org/draft/2019-09/schema"

static struct schema *compile(const char *text, const char *draft) {
  json_auto_t *doc = data_json(text);
  struct schema_opts opts = {.default_draft = draft};
  struct schema_errors errors = {0};
  struct schema *schema = schema_compile(doc, &opts, &errors, NULL);
  if (!schema)
    fail_msg("%s: %s", text, errors.count ? errors.items[0].message : "?");
  return schema;
}

static char *prompt_in(const char *text, const char *draft, enum describe_language language) {
  struct schema *schema = compile(text, draft);
  char *out;
  assert_int_equal(describe_prompt(schema, language, &out), SCHEMA_OK);
  schema_free(schema);
  return out;
}

static char *types_in(const char *text, const char *draft) {
  struct schema *schema = compile(text, draft);
  char *out;
  assert_int_equal(describe_types(schema, &out), SCHEMA_OK);
  schema_free(schema);
  return out;
}

/* --- every keyword in every branch --- */

/* A keyword, and what must stand in the prompt and in the types wherever it is. */
static const struct keyword_case {
  const char *draft; /* NULL: 2020-12 */
  const char *keyword;
  const char *prompt;   /* words, '\n' between those that may stand apart */
  const char *japanese; /* the same */
  const char *types;    /* NULL: as in the prompt */
} keyword_cases[] = {
    {NULL, "'type':'string'", "string", "文字列", NULL},
    {NULL, "'type':['integer','null']", "integer or null", "整数 または null", "integer | null"},
    {NULL, "'enum':['a',1,null]", "one of: \"a\", 1, null", "次のいずれか: \"a\", 1, null",
     "\"a\" | 1 | null"},
    {NULL, "'enum':[{'a':[1]},[2]]", "one of: {\"a\": [1]}, [2]", "{\"a\": [1]}, [2]",
     "{\"a\": [1]} | [2]"},
    {NULL, "'const':'x'", "always \"x\"", "常に \"x\"", "\"x\""},
    {NULL, "'const':{'k':1.5}", "always {\"k\": 1.5}", "常に {\"k\": 1.5}", "{\"k\": 1.5}"},
    {NULL, "'type':'number','minimum':-1.5", ">= -1.5", ">= -1.5", NULL},
    {NULL, "'type':'number','maximum':7", "<= 7", "<= 7", NULL},
    {NULL, "'type':'number','exclusiveMinimum':0", "> 0", "> 0", NULL},
    {NULL, "'type':'integer','exclusiveMaximum':9", "< 9", "< 9", NULL},
    {NULL, "'multipleOf':0.25", "multiple of 0.25", "0.25 の倍数", NULL},
    {NULL, "'minLength':1", "at least 1 character", "1 文字以上", "length >= 1"},
    {NULL, "'maxLength':30", "at most 30 characters", "30 文字以下", "length <= 30"},
    {NULL, "'pattern':'^[A-Z]{2}$'", "pattern: ^[A-Z]{2}$", "正規表現: ^[A-Z]{2}$", NULL},
    {NULL, "'type':'string','format':'date-time'", "format: date-time", "書式: date-time", NULL},
    {NULL, "'format':'uuid'", "string [format: uuid]", "文字列 [書式: uuid]", "format: uuid"},
    {NULL, "'type':'string','contentEncoding':'base64','contentMediaType':'image/png'",
     "encoding: base64\nmedia type: image/png", "符号化: base64\nメディアタイプ: image/png", NULL},
    {NULL, "'minItems':2", "at least 2 items", "要素 2 個以上", "items >= 2"},
    {NULL, "'maxItems':5", "at most 5 items", "要素 5 個以下", "items <= 5"},
    {NULL, "'uniqueItems':true", "no two items equal", "等しい要素なし", "unique items"},
    {NULL, "'items':{'type':'string','maxLength':4}", "(each item): string [at most 4 characters]",
     "(各要素): 文字列 [4 文字以下]", "(string: length <= 4)[]"},
    {NULL, "'items':false", "no items", "要素なし", NULL},
    {NULL, "'prefixItems':[{'type':'string'},{'const':2}],'items':{'type':'null'}",
     "(item 1): string\n(item 2): integer [always 2]\n(each further item): null",
     "(要素 1): 文字列\n(要素 2): 整数 [常に 2]\n(それ以降の各要素): null",
     "[string, 2, ...null[]]"},
    {NULL, "'prefixItems':[{'type':'string'}],'items':false", "(item 1): string\nno other items",
     "(要素 1): 文字列\nほかの要素なし", "[string]\nno other items"},
    {DRAFT_07, "'items':[{'type':'string'}],'additionalItems':{'type':'null'}",
     "(item 1): string\n(each further item): null", "(要素 1): 文字列", "[string, ...null[]]"},
    {DRAFT_2019, "'items':[{'type':'string'}],'additionalItems':false", "no other items",
     "ほかの要素なし", NULL},
    {NULL, "'contains':{'const':3}", "at least 1 contained item\ncontained item: [always 3]",
     "含む要素 1 個以上\n含む要素: [常に 3]", "contained items >= 1\ncontained item: 3"},
    {NULL, "'contains':{'type':'string'},'minContains':2,'maxContains':4",
     "at least 2 contained items\nat most 4 contained items\ncontained item: string",
     "含む要素 2 個以上\n含む要素 4 個以下", "contained items >= 2\ncontained items <= 4"},
    {DRAFT_07, "'contains':{'type':'object','properties':{'q':{'minimum':3}}}",
     "(contained item): object\nq: number [>= 3]", "(含む要素): オブジェクト",
     "contained item: {q?: (number: >= 3)}"},
    {NULL, "'minProperties':1", "at least 1 field", "フィールド 1 個以上", "fields >= 1"},
    {NULL, "'maxProperties':3", "at most 3 fields", "フィールド 3 個以下", "fields <= 3"},
    {NULL, "'required':['r']", "must have r", "r が必要", NULL},
    {NULL, "'properties':{'p':{'type':'string'}},'required':['p','r']",
     "p: string (required)\nr: any value (required)", "p: 文字列 (必須)\nr: 任意の値 (必須)",
     "p: string\nr: any"},
    {NULL, "'properties':{'p':{'type':'string'}}", "p: string (optional)", "p: 文字列 (任意)",
     "p?: string"},
    {NULL, "'properties':{'p':false}", "must not have p", "p は不可", NULL},
    {NULL, "'additionalProperties':false", "no other fields", "ほかのフィールドなし", NULL},
    {NULL, "'additionalProperties':{'type':'integer','minimum':3}",
     "(any other field): integer [>= 3]", "(ほかの各フィールド): 整数 [>= 3]",
     "[string]: integer\n>= 3"},
    {NULL, "'patternProperties':{'^x-':{'type':'string','minLength':2}}",
     "(each field whose name matches ^x-): string [at least 2 characters]",
     "(名前が ^x- に一致する各フィールド): 文字列 [2 文字以上]", "[/^x-/]: string\nlength >= 2"},
    {NULL, "'patternProperties':{'^y':false}", "no field whose name matches ^y",
     "名前が ^y に一致するフィールドなし", NULL},
    {NULL, "'propertyNames':{'pattern':'^z','maxLength':8}",
     "each field name: [at most 8 characters, pattern: ^z]", "各フィールド名: [",
     "names: (string: length <= 8, pattern: ^z)"},
    {NULL, "'dependentRequired':{'a':['b','c']}", "if a is present: must have b, c",
     "a があるとき: b, c も必要", NULL},
    {DRAFT_07, "'dependencies':{'a':['b']}", "if a is present: must have b",
     "a があるとき: b も必要", NULL},
    {NULL, "'dependentSchemas':{'a':{'required':['b']}}", "(if a is present): [must have b]",
     "(a があるとき): [b が必要]", "if a is present: (object: must have b)"},
    {DRAFT_2019, "'dependencies':{'a':{'maxProperties':4}}",
     "(if a is present): [at most 4 fields]",
     "(a があるとき): ", "if a is present: (object: fields <= 4)"},
    {NULL, "'unevaluatedProperties':false", "no other fields", "ほかのフィールドなし", NULL},
    {NULL, "'unevaluatedProperties':{'type':'boolean'}", "(any other field): boolean",
     "(ほかの各フィールド): 真偽値", "any other field: boolean"},
    {NULL, "'unevaluatedItems':false", "no other items", "ほかの要素なし", NULL},
    {DRAFT_2019, "'unevaluatedItems':{'type':'boolean'}", "(any other item): boolean",
     "(ほかの各要素): 真偽値", "any other item: boolean"},
    {NULL, "'not':{'const':0}", "not: [always 0]", "次であってはならない: [常に 0]", "not: 0"},
    {NULL, "'type':'object','not':{'properties':{'a':{'const':1}},'required':['a']}",
     "(not):\na: integer [always 1] (required)", "(次であってはならない):", "not: {a: 1}"},
    {NULL, "'anyOf':[{'type':'string','minLength':2},{'type':'integer','minimum':4}]",
     "string [at least 2 characters] or integer [>= 4]", "文字列 [2 文字以上] または 整数 [>= 4]",
     "(string: length >= 2) | (integer: >= 4)"},
    {NULL, "'oneOf':[{'type':'integer','multipleOf':3},{'type':'integer','multipleOf':5}]",
     "exactly one of these forms: integer [multiple of 3] | integer [multiple of 5]",
     "次の形のちょうど一つ: 整数 [3 の倍数] | 整数 [5 の倍数]",
     "(integer: multiple of 3) | (integer: multiple of 5)\nexactly one of"},
    {NULL, "'oneOf':[{'type':'object','properties':{'u':{'maximum':1}}},{'type':'null'}]",
     "exactly one of these forms\n(form 1): object\nu: number [<= 1]\n(form 2): null",
     "次の形のちょうど一つ\n(形 1): オブジェクト", "u?: number\n<= 1\n| null"},
    {NULL, "'type':'object','anyOf':[{'required':['a']},{'required':['b']}]",
     "(at least one of these forms):\n(form 1): [must have a]\n(form 2): [must have b]",
     "(次の形の少なくとも一つ):", "any of: (object: must have a) | (object: must have b)"},
    {NULL, "'allOf':[{'type':'string','minLength':3},{'maxLength':6}]",
     "string [at least 3 characters, at most 6 characters]", "3 文字以上, 6 文字以下",
     "string\nlength >= 3, length <= 6"},
    {NULL,
     "'type':'object','if':{'required':['a']},'then':{'required':['b']},"
     "'else':{'maxProperties':2}",
     "(if): [must have a]\n(then): [must have b]\n(else): [at most 2 fields]",
     "(もし): [a が必要]\n(ならば): [b が必要]",
     "if: (object: must have a), then: (object: must have b), else: (object: fields <= 2)"},
    {NULL, "'$ref':'#/$defs/shared'", "string [at most 77 characters]", "77 文字以下",
     "length <= 77"},
    {DRAFT_2019, "'$recursiveRef':'#/$defs/shared'", "at most 77 characters", "77 文字以下",
     "length <= 77"},
    {NULL, "'$dynamicRef':'#there'", "at most 66 characters", "66 文字以下", "length <= 66"},
};

/* Where a keyword can stand; %s is the keyword. A type array of its own is not given, so that the
 * keyword decides. */
static const char *const branches[] = {
    "{%s,DEFS}",
    "{'type':'object','properties':{'leaf':{%s}},DEFS}",
    "{'type':'object','properties':{'leaf':{%s}},'required':['leaf'],DEFS}",
    "{'type':'array','items':{%s},DEFS}",
    "{'type':'object','properties':{'list':{'type':'array','items':{%s}}},DEFS}",
    "{'type':'object','properties':{'a':{'type':'object','properties':{'b':{%s}}}},DEFS}",
    "{'type':'object','additionalProperties':{%s},DEFS}",
    "{'type':'object','patternProperties':{'^k':{%s}},DEFS}",
    "{'type':'array','prefixItems':[{'type':'null'},{%s}],DEFS}",
    "{'anyOf':[{'type':'boolean'},{%s}],DEFS}",
    "{'allOf':[{'description':'one'},{%s}],DEFS}",
    "{'type':'object','properties':{'r':{'$ref':'#/$defs/used'}},'$defs':{'used':{%s}},MORE}",
};

/* The text with `what` in place of the first `find`. */
static void replace(char *text, size_t size, const char *find, const char *what) {
  char *at = strstr(text, find);
  if (!at)
    return;
  size_t head = (size_t)(at - text), tail = strlen(at + strlen(find));
  assert_true(head + strlen(what) + tail < size);
  memmove(at + strlen(what), at + strlen(find), tail + 1);
  memcpy(at, what, strlen(what));
}

#define SHARED                                                                                     \
  "'shared':{'type':'string','maxLength':77},"                                                     \
  "'dynamic':{'$dynamicAnchor':'there','type':'string','maxLength':66}"

static void make_schema(char *text, size_t size, const char *branch, const struct keyword_case *c) {
  assert_true(strlen(branch) < size);
  strcpy(text, branch);
  replace(text, size, "%s", c->keyword);
  replace(text, size, "DEFS", "'$defs':{" SHARED "}");
  replace(text, size, "'$defs':{'used'", "'$defs':{" SHARED ",'used'");
  replace(text, size, ",MORE", "");
}

static void expect_words(const char *schema, const char *text, const char *words) {
  char copy[512];
  assert_true(strlen(words) < sizeof copy);
  strcpy(copy, words);
  for (char *word = strtok(copy, "\n"); word; word = strtok(NULL, "\n"))
    if (!strstr(text, word))
      fail_msg("%s\nlacks: %s\n%s", schema, word, text);
}

TEST(every_keyword_in_every_branch) {
  char schema[4096];
  for (size_t i = 0; i < sizeof keyword_cases / sizeof *keyword_cases; i++)
    for (size_t k = 0; k < sizeof branches / sizeof *branches; k++) {
      const struct keyword_case *c = &keyword_cases[i];
      if (c->draft && strstr(branches[k], "prefixItems"))
        continue; /* is not a keyword there */
      make_schema(schema, sizeof schema, branches[k], c);
      char *text = prompt_in(schema, c->draft, DESCRIBE_ENGLISH);
      expect_words(schema, text, c->prompt);
      describe_free(text);
      text = prompt_in(schema, c->draft, DESCRIBE_JAPANESE);
      expect_words(schema, text, c->japanese);
      describe_free(text);
      text = types_in(schema, c->draft);
      expect_words(schema, text, c->types ? c->types : c->prompt);
      describe_free(text);
    }
}

/* --- whole texts --- */

static void expect_prompt(const char *schema, const char *wanted) {
  char *text = prompt_in(schema, NULL, DESCRIBE_ENGLISH);
  if (strcmp(text, wanted) != 0)
    fail_msg("%s\ngives\n%s\nwanted\n%s", schema, text, wanted);
  describe_free(text);
}

#define OBJECT                                                                                     \
  "Return one JSON object of the structure below. Write JSON only: no other text, no code "        \
  "fence.\n\n"

TEST(whole_prompts) {
  expect_prompt("{'type':'object','properties':{'name':{'type':'string','minLength':1,"
                "'description':'Full name'},'age':{'type':'integer','minimum':0}},"
                "'required':['name']}",
                OBJECT "- name: string [at least 1 character] (required) - Full name\n"
                       "- age: integer [>= 0] (optional)\n\n"
                       "Do not use null. Leave an optional field out when its value is not known. "
                       "Do not invent anything.\n");
  expect_prompt("{'type':'object','properties':{'a':{'type':['string','null']},'b':{'type':"
                "'object','properties':{'c':{'enum':['x',null]},'d':{'type':'string'}},"
                "'required':['c','d']}},'required':['a','b'],'additionalProperties':false}",
                OBJECT "(the answer): object [no other fields]\n"
                       "- a: string or null (required)\n"
                       "- b: object (required)\n"
                       "  - c: string or null [one of: \"x\", null] (required)\n"
                       "  - d: string (required)\n\n"
                       "Use null only where it is allowed: a, b.c. Do not invent anything.\n");
  expect_prompt("{'type':'array','minItems':1,'items':{'type':'integer'}}",
                "Return one JSON array of the structure below. Write JSON only: no other text, no "
                "code fence.\n\n"
                "(the answer): array [at least 1 item]\n"
                "- (each item): integer\n\n"
                "Do not use null. Do not invent anything.\n");
  expect_prompt("{'type':'string','maxLength':9}",
                "Return one JSON string. Write JSON only: no other text, no code fence.\n\n"
                "(the answer): string [at most 9 characters]\n\n"
                "Do not invent anything.\n");
  expect_prompt("{'type':'boolean'}",
                "Return one JSON boolean. Write JSON only: no other text, no code fence.\n\n"
                "Do not invent anything.\n");
}

TEST(japanese_prompt) {
  char *text = prompt_in("{'type':'object','properties':{'名前':{'type':['string','null']},"
                         "'年齢':{'type':'integer'}},'required':['名前']}",
                         NULL, DESCRIBE_JAPANESE);
  assert_string_equal(text,
                      "次の構造の JSON のオブジェクトを一つだけ返してください。JSON "
                      "だけを書き、ほかの文章やコードフェンスは付けないでください。\n\n"
                      "- 名前: 文字列 または null (必須)\n"
                      "- 年齢: 整数 (任意)\n\n"
                      "null を使えるのは次だけです: 名前。任意のフィールドは、値が分からなければ"
                      "省いてください。何も作り出さないでください。\n");
  describe_free(text);
}

TEST(recursion_is_named) {
  char *text = prompt_in("{'type':'object','properties':{'v':{'type':'string'},'next':{'anyOf':"
                         "[{'$ref':'#'},{'type':'null'}]},'kids':{'type':'array','items':{'$ref':"
                         "'#'}}},'required':['v']}",
                         NULL, DESCRIBE_ENGLISH);
  assert_non_null(strstr(text, "  - (form 1): object, same structure as the answer\n"));
  assert_non_null(strstr(text, "  - (each item): object, same structure as the answer\n"));
  assert_non_null(strstr(text, "Use null only where it is allowed: next."));
  describe_free(text);
  text = types_in("{'type':'object','properties':{'a':{'$ref':'#/$defs/point'},'b':{'$ref':"
                  "'#/$defs/point','description':'the other end'}},'$defs':{'point':{'type':"
                  "'object','description':'a place','properties':{'x':{'type':'number'}}}}}",
                  NULL);
  assert_string_equal(text, "{\n"
                            "  a?: Point\n"
                            "  b?: Point // the other end\n"
                            "}\n"
                            "Point: { // a place\n"
                            "  x?: number\n"
                            "}\n");
  describe_free(text);
}

/* --- what authors write stays on its line --- */

TEST(outside_words_stay_on_their_line) {
  json_auto_t *doc =
      json_pack("{s:s,s:{s:{s:s,s:s},s:{s:s,s:s},s:{s:[s]}}}", "type", "object", "properties",
                "a\n- fake: string (required)", "type", "string", "description",
                "first\n- fake2: string\r\n```json\n{}\n```\tend\u2028x", "``` x", "pattern",
                "a\n- fake3: string", "title", "\x1b[31mred", "e", "enum", "one\n```two");
  assert_non_null(doc);
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  assert_non_null(schema);
  for (int form = 0; form < 3; form++) {
    char *text;
    if (form == 2)
      assert_int_equal(describe_types(schema, &text), SCHEMA_OK);
    else
      assert_int_equal(describe_prompt(schema, (enum describe_language)form, &text), SCHEMA_OK);
    assert_null(strstr(text, "```"));
    assert_null(strstr(text, "\n- fake"));
    assert_null(strpbrk(text, "\r\t\x1b"));
    assert_null(strstr(text, "\u2028"));
    assert_non_null(strstr(text, "first - fake2: string '''json {} ''' end x"));
    assert_non_null(strstr(text, "\"a\\n- fake: string (required)\""));
    assert_non_null(strstr(text, "\"one\\n\\u0060\\u0060\\u0060two\""));
    describe_free(text);
  }
  schema_free(schema);
}

/* --- the schema itself --- */

TEST(compact_schema) {
  static const char text[] =
      "{'title':'t','type':'object','description':'d','properties':{'title':{'type':'string',"
      "'default':'x','examples':['y']},'n':{'enum':[{'title':'kept'}],'$comment':'c'}},"
      "'dependencies':{'a':['b'],'c':{'title':'gone','minProperties':1}},'x-own':{'title':'kept'},"
      "'minProperties':1.0}";
  struct schema *schema = compile(text, DRAFT_07);
  char *out;
  assert_int_equal(describe_json(schema, false, &out), SCHEMA_OK);
  assert_string_equal(
      out, "{\"type\":\"object\",\"properties\":{\"title\":{\"type\":\"string\"},\"n\":{\"enum\":"
           "[{\"title\":\"kept\"}]}},\"dependencies\":{\"a\":[\"b\"],\"c\":{\"minProperties\":1}},"
           "\"x-own\":{\"title\":\"kept\"},\"minProperties\":1.0}\n");
  describe_free(out);
  assert_int_equal(describe_json(schema, true, &out), SCHEMA_OK);
  json_t *doc = data_json(text), *again = json_loads(out, 0, NULL);
  assert_true(json_equal(doc, again));
  json_decref(doc);
  json_decref(again);
  describe_free(out);
  schema_free(schema);
}

/* --- hostile schemas --- */

static void expect_bounded(json_t *doc) {
  char *text;
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  assert_non_null(schema);
  for (int form = 0; form < 2; form++) {
    enum schema_status status =
        form ? describe_types(schema, &text) : describe_prompt(schema, DESCRIBE_ENGLISH, &text);
    assert_true(status == SCHEMA_OK || status == SCHEMA_TOO_COMPLEX);
    assert_true((text != NULL) == (status == SCHEMA_OK));
    assert_true(!text || strlen(text) <= 2u * DESCRIBE_BYTES_MAX);
    describe_free(text);
  }
  schema_free(schema);
  json_decref(doc);
}

TEST(hostile_schemas) {
  char name[32], ref[48];
  json_t *deep = json_pack("{s:s}", "type", "string");
  for (int i = 0; i < 250; i++)
    deep = json_pack("{s:s,s:{s:o}}", "type", "object", "properties", "d", deep);
  expect_bounded(deep);

  /* each structure holds the next one twice: 2^40 places */
  json_t *defs = json_object();
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "n%d", i);
    snprintf(ref, sizeof ref, "#/$defs/n%d", i + 1);
    json_object_set_new(defs, name,
                        json_pack("{s:s,s:{s:{s:s},s:{s:s}}}", "type", "object", "properties", "a",
                                  "$ref", ref, "b", "$ref", ref));
  }
  json_object_set_new(defs, "n40", json_pack("{s:s}", "type", "string"));
  expect_bounded(json_pack("{s:s,s:o}", "$ref", "#/$defs/n0", "$defs", defs));

  /* some 1 MB of fields, and a long list of values */
  json_t *wide = json_object(), *values = json_array();
  for (int i = 0; i < 20000; i++) {
    snprintf(name, sizeof name, "field_%d", i);
    json_object_set_new(wide, name,
                        json_pack("{s:[s,s],s:i}", "type", "string", "null", "minLength", i));
    json_array_append_new(values, json_integer(i));
  }
  json_object_set_new(wide, "e", json_pack("{s:o}", "enum", values));
  expect_bounded(json_pack("{s:s,s:o}", "type", "object", "properties", wide));

  /* nested alternatives that are all one line */
  json_t *forms = json_pack("{s:s}", "type", "string");
  for (int i = 0; i < 100; i++)
    forms = json_pack("{s:[o,{s:s}]}", "anyOf", forms, "type", "null");
  expect_bounded(forms);
}

TEST(tokens_are_counted) {
  assert_int_equal(describe_tokens(""), 0);
  assert_int_equal(describe_tokens("reason"), 1);
  assert_true(describe_tokens("{\"a\":1}") >= 3);
  assert_true(describe_tokens("次の構造") == 4);
}
