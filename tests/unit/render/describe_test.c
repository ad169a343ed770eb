/* Schemas told as a prompt, as types and as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/describe.h"
#include "support/data.h"
#include "support/test.h"

#define DRAFT_07 "http://json-schema.org/draft-07/schema"
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

static void make_schema(char *text, size_t size, const char *branch, const char *keyword) {
  assert_true(strlen(branch) < size);
  strcpy(text, branch);
  replace(text, size, "%s", keyword);
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
  DATA_ROWS("render/describe/every_keyword_in_every_branch.yaml", c, draft, keyword, prompt,
            japanese, types)
    for (size_t k = 0; k < sizeof branches / sizeof *branches; k++) {
      if (c.draft && strstr(branches[k], "prefixItems"))
        continue; /* is not a keyword there */
      make_schema(schema, sizeof schema, branches[k], c.keyword);
      char *text = prompt_in(schema, c.draft, DESCRIBE_ENGLISH);
      expect_words(schema, text, c.prompt);
      describe_free(text);
      text = prompt_in(schema, c.draft, DESCRIBE_JAPANESE);
      expect_words(schema, text, c.japanese);
      describe_free(text);
      text = types_in(schema, c.draft);
      expect_words(schema, text, c.types ? c.types : c.prompt);
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
