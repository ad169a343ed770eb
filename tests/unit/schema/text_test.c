/* Text checked against schemas without building it: what is taken is valid, and nearly all that is
 * valid is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schema/text.h"
#include "json/scan.h"

/* JSON with ' for ". */
static size_t quoted(const char *text, char *copy, size_t room) {
  size_t n = strlen(text);
  assert_true(n < room);
  for (size_t i = 0; i <= n; i++)
    copy[i] = text[i] == '\'' ? '"' : text[i];
  return n;
}

static struct schema *schema_of(const char *text) {
  char copy[4096];
  (void)quoted(text, copy, sizeof copy);
  json_t *doc = json_loads(copy, 0, NULL);
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  json_decref(doc);
  assert_non_null(schema);
  return schema;
}

/* As whoever builds the value sees it. */
static bool is_valid(const struct schema *schema, const char *text, size_t n) {
  struct jscan js;
  struct jscan_result found;
  jscan_init(&js, text, n);
  bool whole = jscan_value(&js, 0, &found) == JSCAN_OK;
  bool ok = whole && found.end == n && !found.duplicate_key && json_is_object(found.value) &&
            schema_valid(schema, found.value);
  if (whole)
    json_decref(found.value);
  jscan_deinit(&js);
  return ok;
}

/* It has nearly all that a record's schema has. */
static const char record[] =
    "{'type':'object','properties':{'type':{'enum':['a','b','c']}},'required':['type'],'allOf':["
    "{'if':{'properties':{'type':{'const':'a'}},'required':['type']},'then':{'$ref':'#/$defs/a'}},"
    "{'if':{'properties':{'type':{'const':'b'}},'required':['type']},'then':{'$ref':'#/$defs/b'}}],"
    "'$defs':{'n':{'type':'integer','minimum':1,'maximum':9},"
    "'part':{'oneOf':[{'type':'string'},{'type':'object','properties':{'ref':{'type':'string',"
    "'pattern':'^[1-9][0-9]*#/.+$'}},'required':['ref'],'additionalProperties':false}]},"
    "'a':{'type':'object','properties':{'type':{'const':'a'},'n':{'$ref':'#/$defs/n'},"
    "'hex':{'type':'string','pattern':'^[0-9a-f]{4}$'},'text':{'type':'string','minLength':1,"
    "'maxLength':3},'parts':{'type':'array','minItems':1,'items':{'$ref':'#/$defs/part'}},"
    "'free':{'type':'object'},'cost':{'type':'number','minimum':0},'v':{'const':1},"
    "'word':{'type':['string','null']},'blob':{'type':'string'},'bytes':{'type':'integer'}},"
    "'required':['type','n'],'additionalProperties':false,"
    "'anyOf':[{'required':['text']},{'required':['parts']}],"
    "'dependentRequired':{'blob':['bytes']},"
    "'if':{'properties':{'n':{'const':3}}},'then':{'required':['hex']},"
    "'else':{'properties':{'word':false}}},"
    "'b':{'type':'object','properties':{'type':true,'set':{'type':'array','uniqueItems':true},"
    "'of':{'type':'object','patternProperties':{'^x':{'type':'integer'}}},"
    "'not':{'not':{'type':'object','required':['no']}}}}}}";

static void takes_what_is_valid(void **state) {
  static const char *const taken[] = {
      "{'type':'a','n':1,'text':'abc'}",
      &" {'type':'a','n':1,'text':'abc'}"[1],
      "{ 'type' : 'a' , 'n' : 1 ,\n'text' : '\\u00e4\\n\\ud83d\\ude00' }",
      "{'type':'a','n':3,'parts':['x',{'ref':'12#/text'}],'hex':'09af','word':null}",
      "{'type':'a','n':9,'text':'a','free':{'a':[1,{'b':[]}],'c':{}},'cost':0.25}",
      "{'type':'a','n':9,'text':'a','free':{},'cost':3,'v':1,'blob':'','bytes':-12}",
      "{'type':'b','set':[1,2,'1',[1]],'of':{'x':1,'y':{}},'not':{'yes':true},'more':[false]}",
      "{'type':'c'}",
      "{'type':'c','x':1e3,'y':-0,'z':12345678901234567890,'deep':[[[[{'a':1}]]]]}",
  };
  static const char *const not_taken[] = {
      "{'type':'a','n':1}",
      "{'type':'a','n':0,'text':'a'}",
      "{'type':'a','n':10,'text':'a'}",
      "{'type':'a','n':1.5,'text':'a'}",
      "{'type':'a','n':1,'text':''}",
      "{'type':'a','n':1,'text':'\\u00e4\\u00e4\\u00e4\\u00e4'}",
      "{'type':'a','n':3,'text':'a'}",
      "{'type':'a','n':3,'text':'a','hex':'09aF'}",
      "{'type':'a','n':3,'text':'a','hex':'09af0'}",
      "{'type':'a','n':1,'text':'a','word':null}",
      "{'type':'a','n':1,'text':'a','blob':'x'}",
      "{'type':'a','n':1,'text':'a','cost':-0.5}",
      "{'type':'a','n':1,'text':'a','other':1}",
      "{'type':'a','n':1,'parts':[]}",
      "{'type':'a','n':1,'parts':[{'ref':'0#/text'}]}",
      "{'type':'a','n':1,'parts':[{'ref':'1#/text','x':1}]}",
      "{'type':'a','n':1,'parts':[{}]}",
      "{'type':'a','n':1,'parts':[1]}",
      "{'type':'a','n':1,'text':'a','n':1}",
      "{'type':'a','n':1,'text':'a','free':{'a':{'b':1,'b':1}}}",
      "{'type':'b','set':[1,1]}",
      "{'type':'b','of':{'x':'1'}}",
      "{'type':'b','not':{'no':1}}",
      "{'type':'d'}",
      "{'n':1}",
      "[]",
      "1",
      "",
      "{'type':'c'} ",
      "{'type':'c'}{}",
      "{'type':'c',}",
      "{'type':'c' 'x':1}",
      "{'type':'c','x':truex}",
      "{'type':'c','x':01}",
      "{'type':'c','x':1e999}",
      "{'type':'c','x':'\\x'}",
      "{'type':'c','x':'\t'}",
      "{'type':'c','x':'\xff'}",
      "{'type':'c','x':[1,]}",
      "{'type':'c','x':[1 2]}",
      "{'type':'c','x':{'a'}}",
      "{'type':'c','x':[}",
      "{'type':'c','x'",
  };
  struct schema *schema = schema_of(record);
  struct schema_reader *r = schema_reader_new(schema);
  char text[512];
  (void)state;
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    size_t n = quoted(taken[i], text, sizeof text);
    if (!schema_reader_takes(r, (struct str){text, n}) || !is_valid(schema, text, n))
      fail_msg("not taken: %s", text);
  }
  for (size_t i = 0; i < sizeof not_taken / sizeof *not_taken; i++) {
    size_t n = quoted(not_taken[i], text, sizeof text);
    if (schema_reader_takes(r, (struct str){text, n}) || is_valid(schema, text, n))
      fail_msg("taken: %s", text);
  }
  schema_reader_free(r);
  schema_free(schema);
}

/* Objects of the same keys, one after the other: what was asked of one kind says nothing of others,
 * and values are asked each time. */
static void tells_kinds_apart(void **state) {
  static const struct {
    const char *text;
    bool taken;
  } in_turn[] = {
      {"{'type':'c','n':0,'text':''}", true},
      {"{'type':'a','n':0,'text':''}", false},
      {"{'type':'a','n':1,'text':'abc'}", true},
      {"{'type':'a','n':1,'text':'abcd'}", false},
      {"{'type':'a','n':0,'text':'abc'}", false},
      {"{'type':'c','n':0,'text':'abcd'}", true},
      {"{'type':'d','n':1,'text':'abc'}", false},
      {"{'type':'a','n':3,'text':'abc'}", false}, /* 3 is told apart by a value, not by a word */
      {"{'type':'a','n':1,'text':'a','word':null}", false},
      {"{'type':'c','n':1,'text':'a','word':null}", true},
      {"{'type':'a','n':1,'text':'a','word':null}", false},
      {"{'type':'a','n':3,'text':'a','hex':'09af'}", true},
      {"{'type':'a','n':4,'text':'a','hex':'09af'}", true},
      {"{'type':'a','n':3,'text':'a','hex':'09aF'}", false},
      {"{'type':'c','x':{'a':1}}", true},
      {"{'type':'c','x':{'a':1,'a':1}}", false},
      {"{'type':'c','x':[1,]}", false},
      {"{'type':1,'x':1}", false},
  };
  struct schema *schema = schema_of(record);
  struct schema_reader *r = schema_reader_new(schema);
  char text[512];
  (void)state;
  for (size_t k = 0; k < 3 * (sizeof in_turn / sizeof *in_turn); k++) {
    size_t i = k % (sizeof in_turn / sizeof *in_turn);
    size_t n = quoted(in_turn[i].text, text, sizeof text);
    if (schema_reader_takes(r, (struct str){text, n}) != in_turn[i].taken)
      fail_msg("%s: %s", in_turn[i].taken ? "not taken" : "taken", text);
  }
  schema_reader_free(r);
  schema_free(schema);
}

/* Whatever becomes of a text: what is taken is what is valid. */
static void takes_nothing_else(void **state) {
  static const char *const seeds[] = {
      "{'type':'a','n':3,'parts':['x',{'ref':'12#/text'}],'hex':'09af','word':null}",
      "{'type':'a','n':9,'text':'\\u00e4\xc3\xa4','free':{'a':[1,{'b':[]}],'c':{}},'cost':0.25}",
      "{'type':'b','set':[1,2,'1',[1]],'of':{'x':1,'y':{}},'not':{'yes':true},'more':[false]}",
  };
  static const char *const pieces[] = {"\"", "\\", "{", "}", "[", "]", ",", ":",    "1",    "e",
                                       "-",  ".",  " ", "a", "n", "x", "0", "\xc3", "\\u12"};
  struct schema *schema = schema_of(record);
  struct schema_reader *r = schema_reader_new(schema);
  uint64_t random = 88172645463325252u;
  size_t both = 0, only_valid = 0;
  (void)state;
  for (size_t round = 0; round < 200000; round++) {
    char text[512];
    size_t n = quoted(seeds[round % 3], text, sizeof text - 16);
    for (size_t k = 0; k < 1 + round / 3 % 3; k++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      const char *piece = pieces[random / 1024 % (sizeof pieces / sizeof *pieces)];
      size_t at = (size_t)(random % n), m = strlen(piece), gone = random >> 40 & 3;
      gone = gone < n - at ? gone : n - at;
      memmove(text + at + m, text + at + gone, n - at - gone);
      memcpy(text + at, piece, m);
      n += m - gone;
    }
    bool takes = schema_reader_takes(r, (struct str){text, n});
    bool valid = is_valid(schema, text, n);
    if (takes && !valid)
      fail_msg("taken: %.*s", (int)n, text);
    both += takes;
    only_valid += valid && !takes;
  }
  assert_true(both > 1000);
  assert_true(only_valid < both / 20); /* keys with escapes */
  schema_reader_free(r);
  schema_free(schema);
}

static void tells_members(void **state) {
  struct schema *schema = schema_of("{'type':'object'}");
  struct schema_reader *r = schema_reader_new(schema);
  static const char text[] = "{\"a\":\"x\\n\",\"b\": [1, 2] ,\"c\":-7,\"d\":null,\"\":1.5}";
  struct buf decoded = {0};
  size_t n;
  (void)state;
  assert_true(schema_reader_takes(r, STR(text)));
  const struct schema_member *m = schema_reader_members(r, &n);
  assert_int_equal(n, 5);
  assert_true(str_eq_c(m[0].key, "a") && str_eq_c(m[0].value, "x\\n") && m[0].escaped);
  jscan_decode(m[0].value, &decoded);
  assert_string_equal(buf_c(&decoded), "x\n");
  assert_true(str_eq_c(m[1].value, "[1, 2]") && m[1].type == JSON_ARRAY);
  assert_true(str_eq_c(m[2].value, "-7") && m[2].type == JSON_INTEGER);
  assert_true(m[3].type == JSON_NULL && m[4].type == JSON_REAL && m[4].key.n == 0);
  buf_deinit(&decoded);
  schema_reader_free(r);
  schema_free(schema);
}

/* Nested deeper, or with more members, than it looks at: left to those who build. */
static void leaves_what_is_large(void **state) {
  struct schema *schema = schema_of("{'type':'object'}");
  struct schema_reader *r = schema_reader_new(schema);
  struct buf text = {0};
  (void)state;
  for (int levels = 10; levels < 400; levels += 13) {
    buf_clear(&text);
    for (int i = 0; i < levels; i++)
      buf_puts(&text, "{\"a\":");
    buf_puts(&text, "1");
    for (int i = 0; i < levels; i++)
      buf_puts(&text, "}");
    assert_true(!schema_reader_takes(r, buf_view(&text)) || levels <= JSCAN_DEPTH_MAX);
    assert_true(schema_reader_takes(r, buf_view(&text)) || levels > 20);
  }
  buf_clear(&text);
  for (int i = 0; i < 70; i++)
    buf_printf(&text, "%s\"k%d\":%d", i ? "," : "{", i, i);
  buf_puts(&text, "}");
  assert_false(schema_reader_takes(r, buf_view(&text)));
  buf_deinit(&text);
  schema_reader_free(r);
  schema_free(schema);
}

/* The same large object passes for one kind of record and not for another, however often. */
static void what_passed_one_node_is_asked_by_another(void **state) {
  struct schema *schema = schema_of(
      "{'type':'object','properties':{'type':{'enum':['a','b']}},'required':['type'],'allOf':["
      "{'if':{'properties':{'type':{'const':'a'}},'required':['type']},'then':"
      "{'properties':{'w':{'type':'object','required':['q']}}}},"
      "{'if':{'properties':{'type':{'const':'b'}},'required':['type']},'then':"
      "{'properties':{'w':{'type':'object','required':['z']}}}}]}");
  struct schema_reader *r = schema_reader_new(schema);
  char text[1024];
  (void)state;
  for (int round = 0; round < 4; round++) {
    for (int kind = 0; kind < 2; kind++) {
      for (int key = 0; key < 2; key++) {
        int n = snprintf(text, sizeof text, "{\"type\":\"%c\",\"w\":{\"%c\":\"%400s\"}}",
                         kind == 0 ? 'a' : 'b', key == 0 ? 'q' : 'z', "");
        assert_int_equal(schema_reader_takes(r, (struct str){text, (size_t)n}), kind == key);
      }
    }
  }
  schema_reader_free(r);
  schema_free(schema);
}

static void texts_stand_at_places(void **state) {
  static const struct {
    const char *pointer;
    bool has;
  } rows[] = {
      {"a", true},      {"o/t", true},      {"l/0", true},  {"l/2/u", true}, {"e", true},
      {"n", false},     {"o", false},       {"l", false},   {"l/1", false},  {"l/3", false},
      {"l/00", false},  {"l/-1", false},    {"l/", false},  {"", false},     {"a/0", false},
      {"o/t/x", false}, {"missing", false}, {"l/x", false}, {"o/", false},   {"behind", false},
  };
  static const char json[] =
      "{'a':'x','n':1,'o':{'s':[{'t':1}],'t':'y'},'l':['p',2, {'u' : 'v'}],'e':'','\\u0066':1,"
      "'behind':'a key with escapes'}";
  char copy[256];
  size_t n = quoted(json, copy, sizeof copy);
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (schema_text_has((struct str){copy, n}, rows[i].pointer) != rows[i].has)
      fail_msg("%s", rows[i].pointer);
  assert_false(schema_text_has(STR(""), "a"));
  assert_false(schema_text_has(STR("[]"), "0"));
  assert_true(schema_text_has(STR("[\"x\"]"), "0"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_what_is_valid),
      cmocka_unit_test(tells_kinds_apart),
      cmocka_unit_test(takes_nothing_else),
      cmocka_unit_test(tells_members),
      cmocka_unit_test(leaves_what_is_large),
      cmocka_unit_test(what_passed_one_node_is_asked_by_another),
      cmocka_unit_test(texts_stand_at_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
