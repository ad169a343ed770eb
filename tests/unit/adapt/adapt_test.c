/* Schemas in each provider's dialect, and answers turned back. */
#include <stdlib.h>
#include <string.h>

#include "adapt/adapt.h"
#include "base/memory.h"
#include "support/adapt_forward.h"
#include "support/adapt_report.h"
#include "support/adapt_subset.h"
#include "support/data.h"
#include "support/test.h"

#include <dirent.h>

#define CASES SEGUE_SOURCE_DIR "/tests/data/adapt/cases"

/* --- cases --- */

static struct adapt_opts options_of(const json_t *c) {
  const json_t *options = json_object_get(c, "options");
  return (struct adapt_opts){.reasoning = json_string_value(json_object_get(options, "reasoning")),
                             .schema_name =
                                 json_string_value(json_object_get(options, "schema_name")),
                             .words_only = json_is_true(json_object_get(options, "words_only"))};
}

static const struct adapt_dialect *dialect_of(const json_t *name) {
  const struct adapt_dialect *dialect = adapt_dialect_find(json_string_value(name));
  if (!dialect)
    fail_msg("no dialect %s", json_string_value(name));
  return dialect;
}

static json_t *error_json(const struct adapt_error *e) {
  json_t *out = json_pack("{s:s, s:s, s:s}", "status", adapt_status_name(e->status), "pointer",
                          e->pointer, "message", e->message);
  if (e->limit)
    json_object_update_new(out, json_pack("{s:s, s:I, s:I}", "limit", e->limit, "found",
                                          (json_int_t)e->found, "allowed", (json_int_t)e->allowed));
  return out;
}

/* The images of a schema, one a dialect. */
static json_t *outcome(const char *name, const json_t *c) {
  json_t *out = json_object();
  const struct adapt_opts opts = options_of(c);
  char place[400];
  JSON_EACH(json_object_get(c, "dialects"), i, dialect) {
    struct adapt_error error;
    struct adapted *adapted =
        adapt(json_object_get(c, "schema"), dialect_of(dialect), &opts, &error);
    if (!adapted) {
      json_object_set_new(out, json_string_value(dialect),
                          json_pack("{s:o}", "error", error_json(&error)));
      continue;
    }
    const char *trouble =
        adapt_subset(json_string_value(dialect), adapted_schema(adapted), place, sizeof place);
    if (trouble)
      fail_msg("%s: %s: %s: %s", name, json_string_value(dialect), trouble, place);
    json_object_set_new(out, json_string_value(dialect),
                        json_pack("{s:O, s:o}", "schema", adapted_schema(adapted), "changes",
                                  adapted_report(adapted)));
    adapted_free(adapted);
  }
  return out;
}

/* `schema` on one line, each change on one: so that a difference can be read. */
static void outcome_text(const json_t *all, struct buf *out) {
  for (void *at = json_object_iter((json_t *)all); at;
       at = json_object_iter_next((json_t *)all, at)) {
    const json_t *one = json_object_iter_value(at);
    const json_t *error = json_object_get(one, "error"), *schema = json_object_get(one, "schema");
    char_auto_t *text = json_dumps(error ? error : schema, error ? JSON_COMPACT : JSON_INDENT(1));
    buf_printf(out, "== %s\n%s%s\n", json_object_iter_key(at), error ? "error: " : "", text);
    JSON_EACH(json_object_get(one, "changes"), i, change) {
      buf_printf(out, "%s %s %s: %s\n", json_string_value(json_object_get(change, "effect")),
                 json_string_value(json_object_get(change, "keyword")),
                 json_string_value(json_object_get(change, "pointer")),
                 json_string_value(json_object_get(change, "why")));
    }
  }
}

static void same(const char *name, const char *what, const json_t *got, const json_t *wanted) {
  char_auto_t *a = json_dumps(got, JSON_COMPACT | JSON_ENCODE_ANY);
  char_auto_t *b = json_dumps(wanted, JSON_COMPACT | JSON_ENCODE_ANY);
  if (!a || strcmp(a, b) != 0)
    fail_msg("%s: %s:\n  got      %s\n  expected %s", name, what, a, b);
}

static void turn_values(const char *name, const json_t *c) {
  const json_t *pairs = json_object_get(c, "pairs"), *back = json_object_get(c, "back");
  const struct adapt_opts opts = options_of(c);
  json_t *got;
  if (!pairs && !back)
    return;
  const json_t *doc = json_object_get(c, "schema");
  struct schema *canonical = schema_compile(doc, NULL, NULL, NULL);
  struct adapted *adapted =
      adapt(doc, dialect_of(json_array_get(json_object_get(c, "dialects"), 0)), &opts, NULL);
  assert_non_null(canonical);
  assert_non_null(adapted);
  struct schema *shape = schema_compile(adapted_schema(adapted), NULL, NULL, NULL);
  JSON_EACH(pairs, i, pair) {
    const json_t *value = json_array_get(pair, 0), *image = json_array_get(pair, 1);
    if (!schema_valid(canonical, value) || !schema_valid(shape, image))
      fail_msg("%s: pair %zu is not valid", name, i);
    assert_int_equal(adapt_forward(adapted, value, &got), ADAPT_OK);
    same(name, "there", got, image);
    json_decref(got);
    assert_int_equal(adapt_reverse(adapted, image, &got), ADAPT_OK);
    same(name, "and back", got, value);
    json_decref(got);
  }
  JSON_EACH(back, i, pair) {
    assert_int_equal(adapt_reverse(adapted, json_array_get(pair, 0), &got), ADAPT_OK);
    same(name, "back", got, json_array_get(pair, 1));
    json_decref(got);
  }
  schema_free(shape);
  schema_free(canonical);
  adapted_free(adapted);
}

static void run_case(const char *file) {
  char path[1024];
  buf_auto_t got = {0}, wanted = {0};
  struct err err = {0};
  print_into(path, sizeof path, "%s/%s", CASES, file);
  json_auto_t *c = data_load(path), *all = outcome(file, c);
  outcome_text(all, &got);
  print_into(path, sizeof path, "%s/%.*s.expect", CASES, (int)strlen(file) - 5, file);
  if (!file_read(path, DATA_FILE_BYTES, &wanted, &err))
    buf_clear(&wanted);
  if (strcmp(buf_c(&got), buf_c(&wanted)) != 0 && getenv("SEGUE_UPDATE")) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(buf_c(&got), out) >= 0);
    assert_int_equal(fclose(out), 0);
  } else if (strcmp(buf_c(&got), buf_c(&wanted)) != 0) {
    fail_msg("%s\n--- expected\n%s--- got\n%s", path, buf_c(&wanted), buf_c(&got));
  }
  turn_values(file, c);
}

TEST(cases_are_adapted_as_expected) {
  struct dirent **names;
  int n = scandir(CASES, &names, NULL, alphasort), ran = 0;
  for (int i = 0; i < n; i++) {
    size_t length = strlen(names[i]->d_name);
    if (length > 5 && !strcmp(names[i]->d_name + length - 5, ".json")) {
      run_case(names[i]->d_name);
      ran++;
    }
    free(names[i]);
  }
  assert_true(n > 0);
  free(names);
  assert_true(ran > 20);
}

/* --- dialects --- */

TEST(dialects_have_names) {
  static const char *const names[] = {
      "openai",   "openai-chat", "codex", "openrouter", "anthropic", "gemini",  "ollama",
      "llamacpp", "lmstudio",    "vllm",  "claude",     "qwen",      "opencode"};
  size_t n = sizeof names / sizeof *names;
  for (size_t i = 0; i < n; i++) {
    assert_string_equal(adapt_dialect_at(i)->name, names[i]);
    assert_ptr_equal(adapt_dialect_find(names[i]), adapt_dialect_at(i));
  }
  assert_null(adapt_dialect_at(n));
  assert_null(adapt_dialect_find("OpenAI"));
}

/* --- limits --- */

static void limit(const char *dialect, json_t *doc, const char *name, size_t found) {
  struct adapt_error error;
  struct adapted *adapted = adapt(doc, adapt_dialect_find(dialect), NULL, &error);
  json_decref(doc);
  if (!name) {
    if (!adapted)
      fail_msg("%s: %s", dialect, error.message);
    adapted_free(adapted);
    return;
  }
  assert_null(adapted);
  assert_int_equal(error.status, ADAPT_LIMIT);
  assert_string_equal(error.limit, name);
  assert_int_equal(error.found, found);
  assert_true(error.found > error.allowed);
}

static json_t *wide(unsigned count) {
  json_t *properties = json_object();
  for (unsigned i = 0; i < count; i++) {
    char name[16];
    print_into(name, sizeof name, "p%u", i);
    json_object_set_new(properties, name, json_pack("{s:s}", "type", "string"));
  }
  return json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                   "additionalProperties", 0);
}

static json_t *choice(unsigned count, unsigned characters) {
  json_t *values = json_array();
  for (unsigned i = 0; i < count; i++) {
    char text[256];
    print_into(text, sizeof text, "%0*u", (int)characters, i);
    json_array_append_new(values, json_string(text));
  }
  return json_pack("{s:s, s:{s:{s:o}}, s:[s]}", "type", "object", "properties", "a", "enum", values,
                   "required", "a");
}

TEST(limits_are_checked_before_sending) {
  limit("openai", wide(5000), NULL, 0);
  limit("openai", wide(5001), "properties", 5001);
  limit("gemini", wide(5001), NULL, 0);
  limit("openai", choice(1000, 8), NULL, 0);
  limit("openai", choice(1001, 8), "enum_values", 1001);
  limit("openai", choice(250, 100), NULL, 0);
  limit("openai", choice(251, 60), "long_enum_characters", 251 * 60);
  limit("openai", choice(200, 200), NULL, 0);
  limit("anthropic", wide(24), NULL, 0);
  limit("anthropic", wide(25), "optional_properties", 25);
  json_t *properties = json_object();
  for (unsigned i = 0; i < 4000; i++) {
    char name[64];
    print_into(name, sizeof name, "%040u", i);
    json_object_set_new(properties, name, json_pack("{s:s}", "type", "string"));
  }
  limit("openai", json_pack("{s:s, s:o}", "type", "object", "properties", properties),
        "name_characters", 160000);
}

/* --- hostile --- */

static void nested(const char *keyword, unsigned levels, enum adapt_status wanted) {
  json_auto_t *doc = json_pack("{s:s}", "type", "string");
  for (unsigned i = 0; i < levels; i++)
    if (!strcmp(keyword, "items"))
      doc = json_pack("{s:s, s:o}", "type", "array", "items", doc);
    else
      doc = json_pack("{s:[o]}", keyword, doc);
  struct adapt_error error;
  struct adapted *adapted = adapt(doc, adapt_dialect_find("vllm"), NULL, &error);
  assert_int_equal(error.status, wanted);
  adapted_free(adapted);
}

/* Each definition holds the one below it twice: 2^count places without references. */
static json_t *doubling(unsigned count, bool shared) {
  json_t *definitions = json_object();
  for (unsigned i = 0; i <= count; i++) {
    char name[16], below[32];
    print_into(name, sizeof name, "d%u", i);
    print_into(below, sizeof below, "#/$defs/d%u", i - 1);
    json_t *one = json_pack("{s:s}", "type", i == 0 ? "string" : "object");
    if (i > 0)
      json_object_set_new(one, "properties",
                          json_pack("{s:{s:s}, s:{s:s}}", "a", "$ref", below, "b", "$ref", below));
    if (i > 0 && !shared) { /* a sibling: the reference cannot stay one */
      json_t *properties = json_object_get(one, "properties");
      json_object_set_new(json_object_get(properties, "a"), "minProperties", json_integer(1));
      json_object_set_new(json_object_get(properties, "b"), "maxProperties", json_integer(9));
    }
    json_object_set_new(definitions, name, one);
  }
  char top[32];
  print_into(top, sizeof top, "#/$defs/d%u", count);
  return json_pack("{s:s, s:o}", "$ref", top, "$defs", definitions);
}

TEST(hostile_schemas_are_bounded) {
  nested("items", 100, ADAPT_OK);
  nested("items", 200, ADAPT_TOO_COMPLEX);
  nested("anyOf", 400, ADAPT_TOO_COMPLEX);
  nested("items", 2000, ADAPT_TOO_COMPLEX);
  struct adapt_error error;
  json_t *doc = doubling(30, true);
  struct adapted *adapted = adapt(doc, adapt_dialect_find("vllm"), NULL, &error);
  assert_non_null(adapted);
  adapted_free(adapted);
  json_decref(doc);
  doc = doubling(30, false);
  adapted = adapt(doc, adapt_dialect_find("vllm"), NULL, &error);
  assert_true(adapted || error.status == ADAPT_TOO_COMPLEX);
  adapted_free(adapted);
  json_decref(doc);
  assert_null(adapt(NULL, adapt_dialect_find("openai"), NULL, &error));
  assert_int_equal(error.status, ADAPT_INVALID_SCHEMA);
}

TEST(deep_answers_are_refused) {
  json_t *doc = data_json("{'type':'array','items':{'$ref':'#'}}"), *answer = json_array(), *out;
  struct adapted *adapted = adapt(doc, adapt_dialect_find("openai"), NULL, NULL);
  assert_non_null(adapted);
  for (int i = 0; i < 100; i++)
    answer = json_pack("[o]", answer);
  assert_int_equal(adapt_reverse(adapted, answer, &out), ADAPT_OK);
  assert_true(json_equal(out, answer));
  json_decref(out);
  for (int i = 0; i < 1000; i++)
    answer = json_pack("[o]", answer);
  assert_int_equal(adapt_reverse(adapted, answer, &out), ADAPT_TOO_COMPLEX);
  assert_null(out);
  json_decref(answer);
  adapted_free(adapted);
  json_decref(doc);
}

/* Nothing is lost unseen: a name that is given twice leaves a member that no answer may have. */
TEST(names_given_twice_are_seen) {
  json_auto_t *doc = data_json("{'type':'object','properties':{'ages':{'type':'object',"
                               "'additionalProperties':{'type':'integer'}},'any':{},'id':{'type':"
                               "'integer'}},'required':['ages','any','id'],'additionalProperties':"
                               "{'type':'integer'}}");
  for (size_t d = 0; d < 2; d++) {
    const struct adapt_dialect *dialect = adapt_dialect_find(d == 0 ? "openai" : "anthropic");
    struct adapted *adapted = adapt(doc, dialect, NULL, NULL);
    assert_non_null(adapted);
    DATA_ROWS("adapt/names_given_twice_are_seen.yaml", c, answer, name) {
      json_auto_t *answer = data_json(c.answer), *out = NULL;
      assert_int_equal(adapt_reverse(adapted, answer, &out), ADAPT_OK);
      char wanted[16];
      char_auto_t *text = json_dumps(out, JSON_COMPACT);
      print_into(wanted, sizeof wanted, "\"%s\\u0000\":", c.name ? c.name : "");
      if (c.name ? strstr(text, wanted) == NULL : strstr(text, "u0000") != NULL)
        fail_msg("%s, row %zu: %s", dialect->name, c.at, text);
    }
    adapted_free(adapted);
  }
}

/* --- other documents --- */

TEST(other_documents_come_along) {
  struct schema_registry *registry = schema_registry_new();
  json_t *other = data_json("{'$defs':{'id':{'type':'string','minLength':3}}}"), *back;
  json_t *doc = data_json("{'type':'object','properties':{'id':{'$ref':"
                          "'https://e.example/ids#/$defs/id'}},'required':['id'],"
                          "'additionalProperties':false}");
  json_t *value = data_json("{'id':'abc'}"), *short_value = data_json("{'id':'a'}");
  schema_registry_add(registry, "https://e.example/ids", other);
  const struct adapt_opts opts = {.registry = registry};
  static const char *const names[] = {"openai", "claude"};
  for (size_t i = 0; i < 2; i++) {
    struct adapt_error error;
    struct adapted *adapted = adapt(doc, adapt_dialect_find(names[i]), &opts, &error);
    if (!adapted)
      fail_msg("%s", error.message);
    struct schema *shape = schema_compile(adapted_schema(adapted), NULL, NULL, NULL);
    assert_non_null(shape);
    assert_true(schema_valid(shape, value));
    assert_int_equal(schema_valid(shape, short_value), i == 0); /* openai has it in words only */
    assert_int_equal(adapt_reverse(adapted, value, &back), ADAPT_OK);
    assert_true(json_equal(back, value));
    json_decref(back);
    schema_free(shape);
    adapted_free(adapted);
  }
  json_decref(doc);
  json_decref(other);
  json_decref(value);
  json_decref(short_value);
  schema_registry_free(registry);
}
