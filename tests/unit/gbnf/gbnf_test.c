/* Grammars of schemas: their text, their list of what is not held, refusals, bounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/memory.h"
#include "gbnf/gbnf.h"
#include "support/data.h"
#include "support/gbnf_grammar.h"
#include "support/test.h"

static enum gbnf_status convert(const char *schema, const struct gbnf_opts *opts,
                                struct gbnf_result *result) {
  json_t *doc = data_json(schema);
  enum gbnf_status status = gbnf_convert(doc, opts, result);
  json_decref(doc); /* the result keeps what it needs */
  return status;
}

static struct grammar *read_back(const char *text) {
  char error[160];
  struct grammar *grammar = grammar_new(text, error);
  if (!grammar)
    fail_msg("%s\n%s", error, text);
  return grammar;
}

static bool takes(struct grammar *grammar, const char *text) {
  return grammar_match(grammar, text, strlen(text));
}

TEST(the_text_of_a_grammar) {
  struct gbnf_result r;
  assert_int_equal(convert("{'type':'object','properties':{'step':{'type':'integer','enum':[0,1]},"
                           "'reason':{'type':'string'}},'required':['step']}",
                           NULL, &r),
                   GBNF_OK);
  assert_string_equal(r.text, "root ::= json ws\n"
                              "json ::= \"{\" ws step-kv json-2 \"}\"\n"
                              "ws ::= | \" \" | \"\\n\" [ \\t]{0,40}\n"
                              "step ::= \"0\" | \"1\"\n"
                              "step-kv ::= \"\\\"step\\\"\" ws \":\" ws step ws\n"
                              "reason-kv ::= \"\\\"reason\\\"\" ws \":\" ws string ws\n"
                              "json-2 ::= (\",\" ws reason-kv)?\n"
                              "string ::= \"\\\"\" char* \"\\\"\"\n"
                              "char ::= [^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" "
                              "([0-9A-CE-Fa-ce-f] hex hex hex | [Dd] [0-7] hex hex | [Dd] "
                              "[89ABab] hex hex \"\\\\u\" [Dd] [C-Fc-f] hex hex))\n"
                              "hex ::= [0-9a-fA-F]\n");
  assert_int_equal(r.length, strlen(r.text));
  assert_int_equal(r.note_count, 0);
  assert_null(r.refusal);
  gbnf_result_deinit(&r);
  gbnf_result_deinit(&r); /* empty now */
}

TEST(thinking_may_come_first) {
  struct gbnf_opts opts = {.think = true};
  AUTO(gbnf_result_deinit) struct gbnf_result r;
  assert_int_equal(convert("{'type':'boolean'}", &opts, &r), GBNF_OK);
  struct grammar *g = read_back(r.text);
  assert_true(takes(g, "true"));
  assert_true(takes(g, "<think></think>true"));
  assert_true(takes(g, "<think>a < b, </thin {\"x\": 1} \xe3\x81\x82 <</think>\n\nfalse"));
  assert_false(takes(g, "<think>true"));
  assert_false(takes(g, "<think></think>"));
  assert_false(takes(g, "<think></think>x</think>true"));
  assert_false(takes(g, "true<think></think>"));
  grammar_free(g);
}

/* Some templates write the first mark themselves. */
TEST(thinking_may_be_under_way) {
  struct gbnf_opts opts = {.thinking = true};
  AUTO(gbnf_result_deinit) struct gbnf_result r;
  assert_int_equal(convert("{'type':'boolean'}", &opts, &r), GBNF_OK);
  struct grammar *g = read_back(r.text);
  assert_true(takes(g, "true"));
  assert_true(takes(g, "let me see: {1}</think>\ntrue"));
  assert_true(takes(g, "<think>let me see</think>true"));
  assert_false(takes(g, "let me see"));
  assert_false(takes(g, "true</think>"));
  grammar_free(g);
}

TEST(a_list_of_what_is_not_held) {
  AUTO(gbnf_result_deinit) struct gbnf_result r;
  assert_int_equal(
      convert("{'type':'array','items':{'$ref':'#/$defs/a~b'},'uniqueItems':true,'$defs':{'a~b':"
              "{'type':'integer','multipleOf':7}}}",
              NULL, &r),
      GBNF_OK);
  assert_int_equal(r.note_count, 2);
  assert_string_equal(r.notes[0].pointer, "");
  assert_string_equal(r.notes[0].keyword, "uniqueItems");
  assert_string_equal(r.notes[1].pointer, "/$defs/a~0b");
  assert_string_equal(r.notes[1].keyword, "multipleOf");
  assert_string_equal(r.notes[1].why, "a grammar cannot divide");
}

TEST(refusals_say_where_and_why) {
  static const struct {
    const char *schema;
    enum gbnf_status status;
    const char *pointer, *words;
  } cases[] = {
      {"false", GBNF_UNSATISFIABLE, "", "no finite value matches the schema"},
      {"{'enum':[]}", GBNF_UNSATISFIABLE, "", "no finite value matches the schema"},
      {"{'$ref':'#/x'}", GBNF_INVALID_SCHEMA, "/$ref", "\"#/x\" leads nowhere"},
      {"{'properties':{'a':{'minimum':'1'}}}", GBNF_INVALID_SCHEMA, "/properties/a/minimum",
       "\"minimum\" must be a number"},
      {"{'$ref':'https://example.org/not-there'}", GBNF_INVALID_SCHEMA, "/$ref",
       "\"https://example.org/not-there\" leads nowhere"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    AUTO(gbnf_result_deinit) struct gbnf_result r;
    assert_int_equal(convert(cases[i].schema, NULL, &r), cases[i].status);
    assert_null(r.text);
    assert_string_equal(r.refusal_pointer, cases[i].pointer);
    assert_string_equal(r.refusal, cases[i].words);
  }
}

TEST(external_schemas_come_from_the_registry) {
  struct schema_registry *registry = schema_registry_new();
  json_auto_t *doc = data_json("{'$defs':{'n':{'type':'integer','minimum':3}}}");
  schema_registry_add(registry, "https://example.org/common.json", doc);
  struct gbnf_opts opts = {.registry = registry};
  struct gbnf_result r;
  assert_int_equal(convert("{'$ref':'https://example.org/common.json#/$defs/n'}", &opts, &r),
                   GBNF_OK);
  struct grammar *g = read_back(r.text);
  assert_true(takes(g, "3"));
  assert_false(takes(g, "2"));
  grammar_free(g);
  gbnf_result_deinit(&r);
  schema_registry_free(registry);
}

/* Schemas that would explode are over soon, one way or the other. */
TEST(hostile_schemas_meet_a_bound) {
  char deep[8000] = "", wide[8000] = "{'allOf':[", exact[8000] = "{'oneOf':[";
  for (int i = 0; i < 200; i++)
    strcat(deep, "{'items':");
  strcat(deep, "{'type':'integer'}");
  for (int i = 0; i < 200; i++)
    strcat(deep, "}");
  for (int i = 0; i < 60; i++) {
    char part[160];
    snprintf(part, sizeof part, "%s{'anyOf':[{'required':['a%d']},{'required':['b%d']}]}",
             i ? "," : "", i, i);
    strcat(wide, part);
    snprintf(part, sizeof part, "%s{'properties':{'p%d':{'minimum':%d}},'required':['q']}",
             i ? "," : "", i, i);
    strcat(exact, part);
  }
  strcat(wide, "]}");
  strcat(exact, "]}");
  const char *const schemas[] = {
      deep,
      wide,
      exact,
      "{'type':'string','pattern':'^(a|b)*a(a|b){18}$'}",
      "{'type':'string','pattern':'^((((a{100}){100}){100}){100})$'}",
      "{'type':'string','pattern':'^[a-z]{0,3000}[0-9]{0,3000}$','maxLength':2999}",
      "{'type':'string','minLength':999999999999}",
      "{'type':'string','maxLength':4294967295}",
      "{'type':'array','minItems':99999999,'items':{'type':'null'}}",
      "{'type':'object','minProperties':100000000}",
      "{'type':'object','properties':{'a':{},'b':{}},'maxProperties':100000000,'minProperties':2}",
      "{'type':'number','minimum':1e300}",
      "{'type':'number','minimum':-1e300,'maximum':1e300}",
      "{'type':'number','exclusiveMinimum':1e-300,'maximum':1e-290}",
      "{'anyOf':[{'$ref':'#'},{'type':'string'}]}",
  };
  for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
    AUTO(gbnf_result_deinit) struct gbnf_result r;
    enum gbnf_status status = convert(schemas[i], NULL, &r);
    if (status == GBNF_OK)
      grammar_free(read_back(r.text));
    else
      assert_non_null(r.refusal);
  }
}

/* The most that this process has had in memory, in KiB. */
static long peak_kib(void) {
  struct rusage use;
  assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
#ifdef __SANITIZE_ADDRESS__
  return 0; /* it keeps what was freed */
#endif
  return use.ru_maxrss;
}

/* Sets of a thousand states each, a thousand of them a pattern: gone once it is written. */
TEST(many_patterns_take_little_memory) {
  enum { PATTERNS = 200, OPTIONAL = 1000, MOST_KIB = 200 * 1024 };
  struct gbnf_result result;
  json_t *doc = json_object(), *properties = json_object();
  char pattern[2 * OPTIONAL + 32], *at;
  json_object_set_new(doc, "properties", properties);
  for (int i = 0; i < PATTERNS; i++) {
    at = pattern;
    *at++ = '^';
    for (int k = 0; k < OPTIONAL; k++) {
      *at++ = 'a';
      *at++ = '?';
    }
    snprintf(at, sizeof pattern - (size_t)(at - pattern), "%d$", i);
    char name[16];
    snprintf(name, sizeof name, "p%d", i);
    json_object_set_new(properties, name, json_pack("{ss}", "pattern", pattern));
  }
  long before = peak_kib();
  enum gbnf_status status = gbnf_convert(doc, NULL, &result);
  assert_true(status == GBNF_OK || status == GBNF_TOO_COMPLEX);
  assert_true(status == GBNF_OK || result.refusal != NULL);
  gbnf_result_deinit(&result);
  if (peak_kib() - before > MOST_KIB)
    fail_msg("%ld KiB", peak_kib() - before);
  json_decref(doc);
}

/* --- the reader that all of this relies on --- */

TEST(the_reader_refuses_what_llama_refuses) {
  static const char *const bad[] = {
      "root ::= x",
      "a ::= \"x\"",
      "root ::= root \"x\" | \"x\"",
      "root ::= a \"x\"\na ::= \"\"? b\nb ::= root",
      "root ::= \"x\"{2000}",
      "root ::= (\"a\" [b]{0,100}){0,50}",
      "root ::= \"x",
      "root ::= [a-",
      "root ::= (\"x\"",
      "root ::= *",
      "root ::= \"\\q\"",
      "root ::= \"x\" root",
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char error[160] = "";
    assert_null(grammar_new(bad[i], error));
    assert_string_not_equal(error, "");
  }
}

TEST(the_reader_matches) {
  struct grammar *g = read_back("root ::= ws (\"a\" [^b-d\\n]{2,3} | x+) # remark\n"
                                "ws ::= | \" \" | \"\\n\" [ \\t]{0,2}\n"
                                "x ::= \"\\x78\" | \"\\u3042\"\n");
  assert_true(takes(g, "aee"));
  assert_true(takes(g, "\n\t axyz"));
  assert_true(takes(g, "x\xe3\x81\x82x"));
  assert_false(takes(g, "ae"));
  assert_false(takes(g, "aeeee"));
  assert_false(takes(g, "aeb"));
  assert_false(takes(g, "  aee"));
  assert_false(takes(g, ""));
  for (uint64_t seed = 1; seed < 200; seed++) {
    uint64_t s = seed;
    size_t length;
    char_auto_t *text = grammar_derive(g, &s, 10, &length);
    assert_true(grammar_match(g, text, length));
  }
  grammar_free(g);
}

/* A long list of texts takes time by its length, not by its square. */
TEST(a_long_enum_is_written_in_linear_time) {
  enum { N = 60000 };
  json_t *doc = json_object(), *values = json_array();
  AUTO(gbnf_result_deinit) struct gbnf_result result;
  for (int i = 0; i < N; i++)
    json_array_append_new(values, json_sprintf("value %d", i));
  json_object_set_new(doc, "enum", values);
  clock_t start = clock();
  assert_int_equal(gbnf_convert(doc, NULL, &result), GBNF_OK);
  assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 4);
  assert_non_null(strstr(result.text, "value 59999"));
  json_decref(doc);
}
