/* Schemas compiled and checked: the words of errors, drafts, formats, registries, bounds. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "schema/schema.h"
#include "support/data.h"
#include "support/test.h"
#include "json/scan.h"

/* The errors as lines "path: message [pointer|schema path|keyword]", or the status. */
static char *lines_of(const struct schema_errors *errors, enum schema_status status) {
  static char out[16384];
  size_t n = 0;
  out[0] = '\0';
  for (size_t i = 0; i < errors->count; i++) {
    const struct schema_error *e = &errors->items[i];
    n += (size_t)snprintf(out + n, sizeof out - n, "%s%s: %s [%s|%s|%s]", i ? "\n" : "", e->path,
                          e->message, e->pointer, e->schema_path, e->keyword);
  }
  return n ? out : strcpy(out, schema_status_name(status));
}

/* As data_json, but keys may contain NUL. */
static json_t *scanned(const char *text) {
  buf_auto_t b = {0};
  AUTO(jscan_deinit) struct jscan js;
  struct jscan_result r = {0};
  data_quoted(&b, text);
  jscan_init(&js, b.p, b.n);
  if (jscan_value(&js, 0, &r) != JSCAN_OK || r.end != b.n)
    fail_msg("test data %s", text);
  return r.value;
}

static char *check_with(const struct schema_opts *opts, const char *schema_text,
                        const char *value_text) {
  json_t *doc = scanned(schema_text), *value = scanned(value_text);
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  enum schema_status status;
  struct schema *schema = schema_compile(doc, opts, &errors, &status);
  json_decref(doc); /* the schema keeps what it needs */
  assert_true((schema != NULL) == (status == SCHEMA_OK));
  if (schema) {
    status = schema_check(schema, value, &errors);
    assert_int_equal(schema_valid(schema, value), status == SCHEMA_OK);
    assert_int_equal(schema_check(schema, value, NULL), status);
  }
  char *lines = lines_of(&errors, status);
  schema_free(schema);
  json_decref(value);
  return lines;
}

static const char *check(const char *schema, const char *value) {
  return check_with(NULL, schema, value);
}

/* Each bound holds at its value and not beside it. */
TEST(bounds_are_where_they_say) {
  DATA_ROWS("schema/bounds_are_where_they_say.yaml", c, schema, good, bad) {
    if (strcmp(check(c.schema, c.good), "ok") != 0)
      fail_msg("%s refuses %s", c.schema, c.good);
    if (strcmp(check(c.schema, c.bad), "ok") == 0)
      fail_msg("%s takes %s", c.schema, c.bad);
  }
}

TEST(words) {
  DATA_ROWS("schema/words.yaml", c, schema, value, lines)
    assert_string_equal(check(c.schema, c.value), c.lines);
}

/* The words name what a model must change. */
TEST(words_that_mend) {
  DATA_ROWS("schema/words_that_mend.yaml", c, schema, value, lines)
    assert_string_equal(check(c.schema, c.value), c.lines);
}

/* The alternative that is meant, or is closest, may be any of many. */
TEST(the_last_of_many_alternatives_is_told) {
  enum { COUNT = 200 };
  for (int named = 0; named < 2; named++) {
    json_t *all = json_array(), *doc = json_pack("{s:o}", "oneOf", all);
    for (int i = 0; i < COUNT; i++)
      json_array_append_new(all, json_pack("{s:{s:{s:i}, s:{s:{s:s}}, s:{s:s}}}", "properties", "k",
                                           named ? "const" : "minimum",
                                           named ? i : 9 - i / (COUNT - 1), "list", "items", "type",
                                           "null", "w", "type", i < COUNT - 1 ? "null" : "string"));
    json_auto_t *value =
        json_pack("{s:i, s:[i,i], s:s}", "k", named ? COUNT - 1 : 7, "list", 1, 2, "w", "");
    struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
    AUTO(schema_errors_deinit) struct schema_errors errors = {0};
    assert_int_equal(schema_check(schema, value, &errors), SCHEMA_INVALID);
    if (named)
      assert_string_equal(lines_of(&errors, SCHEMA_INVALID),
                          "$.list[0]: expected null, found number 1 "
                          "[/list/0|/oneOf/199/properties/list/items/type|type]\n"
                          "$.list[1]: expected null, found number 2 "
                          "[/list/1|/oneOf/199/properties/list/items/type|type]");
    else
      assert_non_null(strstr(lines_of(&errors, SCHEMA_INVALID), "closest is number 200"));
    schema_free(schema);
    json_decref(doc);
  }
}

/* Hints are looked for as long as the work of a check lasts, and for no error that is only
 * counted. */
TEST(hints_are_bounded) {
  enum { MEMBERS = 100000, NAMES = 60 };
  json_auto_t *doc = json_pack("{s:{},s:b}", "properties", "additionalProperties", 0);
  json_t *properties = json_object_get(doc, "properties"), *value = json_object();
  char name[48];
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "name_of_the_member_number_%d", i);
    json_object_set_new(properties, name, json_true());
  }
  for (int i = 0; i < MEMBERS; i++) {
    snprintf(name, sizeof name, "nane_of_another_member_%d", i);
    json_object_set_new(value, name, json_null());
  }
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  clock_t begin = clock();
  assert_int_equal(schema_check(schema, value, &errors), SCHEMA_INVALID);
  double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  assert_int_equal(errors.count, SCHEMA_ERRORS_MAX);
  assert_int_equal(errors.dropped, MEMBERS - SCHEMA_ERRORS_MAX);
  if (seconds > 10) /* sanitizers keep it, too */
    fail_msg("%g s", seconds);
  schema_free(schema);
  json_decref(value);
}

TEST(every_format_says_its_form) {
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
  const struct schema_opts opts = {.assert_formats = true};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    char schema[80], wanted[80];
    snprintf(schema, sizeof schema, "{'format':'%s'}", formats[i]);
    snprintf(wanted, sizeof wanted, "is not a valid %s (", formats[i]);
    const char *lines = check_with(&opts, schema, "'{ \\\\ ('");
    if (!strstr(lines, wanted) || strstr(lines, "()"))
      fail_msg("%s: %s", formats[i], lines);
  }
}

TEST(schema_errors_have_their_place) {
  DATA_ROWS("schema/schema_errors_have_their_place.yaml", c, schema, lines) {
    const char *lines = check(c.schema, "1");
    if (c.lines[0] == '$') /* all of it, else a part */
      assert_string_equal(lines, c.lines);
    else
      assert_non_null(strstr(lines, c.lines));
  }
  assert_null(schema_compile(NULL, NULL, NULL, NULL));
}

TEST(known_keywords) {
  DATA_ROWS("schema/known_keywords.yaml", c, schema, known) {
    json_auto_t *doc = data_json(c.schema);
    assert_int_equal(schema_has_known_keyword(doc), data_true(c.known));
  }
  assert_false(schema_has_known_keyword(NULL));
}

static json_t *load_one(void *arg, const char *uri) {
  ++*(int *)arg;
  return strcmp(uri, "https://e.example/dir/int.json") ? NULL : data_json("{'type':'integer'}");
}

TEST(registries) {
  int asked = 0;
  struct schema_registry *registry = schema_registry_new();
  struct schema_opts opts = {.registry = registry};
  json_t *doc = data_json("{'$id':'https://e.example/known','$defs':{'a':{'minimum':3}}}");
  schema_registry_add(registry, "file:///x.json", doc);
  json_decref(doc);
  schema_registry_set_loader(registry, load_one, &asked);
  assert_string_equal(check_with(&opts, "{'$ref':'https://e.example/known#/$defs/a'}", "1"),
                      "$: 1 is less than the minimum 3 "
                      "[|https://e.example/known#/$defs/a/minimum|minimum]");
  assert_string_equal(check_with(&opts, "{'$ref':'file:///x.json#/$defs/a'}", "3"), "ok");
  assert_int_equal(asked, 0);
  assert_string_equal(
      check_with(&opts, "{'$id':'https://e.example/dir/me','items':{'$ref':'int.json'}}", "[1]"),
      "ok");
  assert_int_equal(asked, 1);
  assert_string_equal(check_with(&opts, "{'$ref':'https://e.example/no'}", "1"),
                      "$.$ref: \"https://e.example/no\" leads nowhere [/$ref|/$ref|$ref]");
  schema_registry_free(registry);
  schema_registry_free(NULL);
}

TEST(drafts) {
  const char *array =
      "{'$schema':'http://json-schema.org/draft-07/schema#','items':[{'type':'null'}]}";
  assert_string_equal(check(array, "[1]"),
                      "$[0]: expected null, found number 1 [/0|/items/0/type|type]");
  struct schema_opts seven = {.default_draft = "http://json-schema.org/draft-07/schema#"};
  assert_string_equal(
      check_with(&seven, "{'$ref':'#/definitions/a','minimum':5,'definitions':{'a':{}}}", "1"),
      "ok");
  assert_string_equal(check("{'$ref':'#/$defs/a','minimum':5,'$defs':{'a':{}}}", "1"),
                      "$: 1 is less than the minimum 5 [|/minimum|minimum]");
  assert_string_equal(check("{'$ref':'https://json-schema.org/draft/2020-12/schema'}",
                            "{'properties':{'a':{'type':'object'}}}"),
                      "ok");
  assert_string_equal(
      check("{'$ref':'https://json-schema.org/draft/2020-12/schema'}",
            "{'properties':{'a':{'minimum':'x'}}}"),
      "$.properties.a.minimum: expected number, found string \"x\" "
      "[/properties/a/minimum|https://json-schema.org/draft/2020-12/meta/validation#"
      "/properties/minimum/type|type]");
}

TEST(formats) {
  struct schema_opts asserted = {.assert_formats = true};
  assert_string_equal(check("{'format':'date'}", "'yesterday'"), "ok");
  assert_string_equal(
      check_with(&asserted, "{'format':'date'}", "'2024-02-30'"),
      "$: \"2024-02-30\" is not a valid date (YYYY-MM-DD, a day that exists) [|/format|format]");
  assert_string_equal(check_with(&asserted, "{'format':'made-up'}", "'x'"), "ok");
  assert_true(schema_format_known("uuid"));
  assert_false(schema_format_known("made-up"));
}

static json_t *nested(int levels) {
  json_t *value = json_object();
  for (int i = 0; i < levels; i++) {
    json_t *outer = json_object();
    json_object_set_new(outer, "a", value);
    value = outer;
  }
  return value;
}

static enum schema_status status_of(const char *schema_text, const json_t *value) {
  json_auto_t *doc = data_json(schema_text);
  enum schema_status status;
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  struct schema *schema = schema_compile(doc, NULL, &errors, &status);
  if (schema)
    status = schema_check(schema, value, &errors);
  assert_int_equal(errors.count == 0, status == SCHEMA_OK);
  schema_free(schema);
  return status;
}

/* The resident memory of this process; 0 where a sanitizer keeps what was freed. */
static size_t memory_bytes(void) {
  unsigned long pages = 0;
#ifdef __SANITIZE_ADDRESS__
  return 0;
#endif
  FILE *f = fopen("/proc/self/statm", "re");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
  fclose(f);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* {"properties": {"p0": {"pattern": "^" piece... "0$"}, ...}} */
static json_t *many_patterns(int patterns, const char *piece, int pieces) {
  json_t *doc = json_object(), *properties = json_object();
  char_auto_t *text = malloc(strlen(piece) * (size_t)pieces + 32);
  char name[16];
  json_object_set_new(doc, "properties", properties);
  for (int i = 0; i < patterns; i++) {
    char *at = stpcpy(text, "^");
    for (int k = 0; k < pieces; k++)
      at = stpcpy(at, piece);
    snprintf(at, 31, "%d$", i);
    snprintf(name, sizeof name, "p%d", i);
    json_object_set_new(properties, name, json_pack("{ss}", "pattern", text));
  }
  return doc;
}

/* Patterns in machine code take ten times and more what they take without. */
TEST(many_patterns_take_little_memory) {
  enum { PATTERNS = 3000, MOST = 150 * 1024 * 1024 }; /* in machine code all would take 330 MiB */
  enum schema_status status;
  json_auto_t *doc = many_patterns(PATTERNS, "a?", 1000);
  size_t before = memory_bytes();
  struct schema *schema = schema_compile(doc, NULL, NULL, &status);
  size_t after = memory_bytes();
  assert_non_null(schema);
  if (after > before && after - before > MOST)
    fail_msg("%zu bytes", after - before);
  json_auto_t *good = json_pack("{ss ss}", "p0", "aa0", "p2999", "aaa2999");
  json_auto_t *bad = json_pack("{ss}", "p2999", "x");
  assert_true(schema_valid(schema, good));
  assert_false(schema_valid(schema, bad));
  schema_free(schema);
}

TEST(patterns_beyond_all_measure_are_refused) {
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  enum schema_status status;
  json_auto_t *doc = many_patterns(3000, "(ab|cd|ef)", 2000);
  assert_null(schema_compile(doc, NULL, &errors, &status));
  assert_int_equal(status, SCHEMA_TOO_COMPLEX);
  assert_int_equal(errors.count, 1);
  assert_non_null(strstr(errors.items[0].message, "64 MiB"));
}

TEST(bounds) {
  json_t *deep = nested(SCHEMA_DEPTH_MAX + 10), *shallow = nested(250);
  const char *recursive = "{'properties':{'a':{'$ref':'#'}},'type':'object'}";
  assert_int_equal(status_of(recursive, shallow), SCHEMA_OK);
  assert_int_equal(status_of(recursive, deep), SCHEMA_TOO_COMPLEX);
  assert_int_equal(status_of("{'anyOf':[{'$ref':'#'}]}", shallow), SCHEMA_TOO_COMPLEX);
  enum schema_status status;
  assert_null(schema_compile(deep, NULL, NULL, &status));
  assert_int_equal(status, SCHEMA_TOO_COMPLEX);
  json_decref(deep);
  json_decref(shallow);

  /* 2^40 ways through, all of them short */
  json_t *doc = json_object(), *defs = json_object(), *one = json_integer(1);
  for (int i = 0; i < 40; i++) {
    char name[16], next[32];
    snprintf(name, sizeof name, "d%d", i);
    snprintf(next, sizeof next, "#/$defs/d%d", i + 1);
    json_object_set_new(defs, name,
                        json_pack("{s:[{s:s},{s:s}]}", "allOf", "$ref", next, "$ref", next));
  }
  json_object_set_new(defs, "d40", json_pack("{s:i}", "minimum", 0));
  json_object_set_new(doc, "$ref", json_string("#/$defs/d0"));
  json_object_set_new(doc, "$defs", defs);
  struct schema *schema = schema_compile(doc, NULL, NULL, &status);
  assert_non_null(schema);
  assert_int_equal(schema_check(schema, one, NULL), SCHEMA_TOO_COMPLEX);
  assert_false(schema_valid(schema, one));
  schema_free(schema);
  json_decref(doc);
  json_decref(one);

  json_t *text =
      json_pack("[s]", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
  assert_int_equal(status_of("{'items':{'pattern':'^(a|aa)+$'}}", text), SCHEMA_TOO_COMPLEX);
  json_decref(text);

  json_auto_t *many = json_array();
  for (int i = 0; i < 500; i++)
    json_array_append_new(many, json_integer(i));
  struct schema_errors errors = {0};
  doc = data_json("{'items':{'type':'string'}}");
  schema = schema_compile(doc, NULL, NULL, NULL);
  assert_int_equal(schema_check(schema, many, &errors), SCHEMA_INVALID);
  assert_int_equal(errors.count, SCHEMA_ERRORS_MAX);
  assert_int_equal(errors.dropped, 500 - SCHEMA_ERRORS_MAX);
  assert_string_equal(errors.items[1].pointer, "/1");
  schema_errors_deinit(&errors);
  schema_errors_deinit(&errors);
  assert_int_equal(schema_check(schema, NULL, NULL), SCHEMA_INVALID);
  schema_free(schema);
  schema_free(NULL);
  json_decref(doc);
}

TEST(unevaluated_beyond_a_word_of_bits) {
  json_auto_t *doc =
      data_json("{'patternProperties':{'^k':true},'anyOf':[{'properties':{'other':true}},{}],"
                "'unevaluatedProperties':false}");
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  json_auto_t *value = json_object();
  for (int i = 0; i < 200; i++) {
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    json_object_set_new(value, key, json_null());
  }
  json_object_set_new(value, "other", json_null());
  assert_true(schema_valid(schema, value));
  json_object_set_new(value, "third", json_null());
  assert_false(schema_valid(schema, value));
  schema_free(schema);
}

/* A subtree that stands in two places of the caller's document must still have two places here. */
TEST(shared_subtrees) {
  json_auto_t *string = json_pack("{s:s}", "type", "string"), *value = data_json("{'a':'x','b':1}");
  json_auto_t *doc = json_pack("{s:{s:O,s:O}}", "properties", "a", string, "b", string);
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  assert_int_equal(schema_check(schema, value, &errors), SCHEMA_INVALID);
  assert_string_equal(errors.items[0].schema_path, "/properties/b/type");
  schema_free(schema);
}

static int seed(void **state) {
  (void)state;
  json_object_seed(1);
  return 0;
}

TEST_GROUP(seed, NULL)
