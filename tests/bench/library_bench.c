/* Measures what the library's rooms cost on one core: a value checked against a schema, a value
 * found in a text, a schema told, adapted and made a grammar. Texts are made here; the schemas are
 * those that are compiled in. */
#include "adapt/adapt.h"
#include "base/resource.h"
#include "bench.h"
#include "extract/extract.h"
#include "gbnf/gbnf.h"
#include "render/describe.h"
#include "render/example.h"
#include "schema/schema.h"
#include "json/scan.h"

enum { RUNS = 15, JUDGMENTS = 1000, SCHEMA_BYTES = 50000 };

/* --- checking --- */

/* The JSON Schema of a judge's answer. */
static const char judgment_schema[] =
    "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":\"integer\",\"enum\":[0,1,2]},"
    "\"reason\":{\"type\":\"string\"}},\"required\":[\"step\",\"reason\"],"
    "\"additionalProperties\":false}";

/* The same by hand. */
static bool judgment_walk(const json_t *value) {
  bool step = false, reason = false;
  const char *key;
  json_t *member;
  if (!json_is_object(value))
    return false;
  json_object_foreach((json_t *)value, key, member) {
    json_int_t n = json_integer_value(member);
    if (!strcmp(key, "step"))
      step = json_is_integer(member) && n >= 0 && n <= 2;
    else if (!strcmp(key, "reason"))
      reason = json_is_string(member);
    else
      return false;
  }
  return step && reason;
}

static void checking(void) {
  static json_t *values[JUDGMENTS];
  size_t good = 0;
  for (int i = 0; i < JUDGMENTS; i++)
    values[i] =
        json_pack("{s:i,s:s}", "step", i % 3, "reason", "the tests pass and nothing is left");
  json_t *doc = json_loads(judgment_schema, 0, NULL);
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  double walk =
      BENCH_BEST(100, for (int i = 0; i < JUDGMENTS; i++) good += judgment_walk(values[i]));
  double ours =
      BENCH_BEST(100, for (int i = 0; i < JUDGMENTS; i++) good += schema_valid(schema, values[i]));
  bench_must(good == 200 * JUDGMENTS, "a judgment was refused");
  printf("check  a judgment: %.1f ns, by hand %.1f ns: %.2f times (goal 2.5)\n",
         ours * 1e9 / JUDGMENTS, walk * 1e9 / JUDGMENTS, ours / walk);
  for (int i = 0; i < JUDGMENTS; i++)
    json_decref(values[i]);
  schema_free(schema);
  json_decref(doc);
}

/* --- extracting --- */

static void extract_once(const char *text, size_t n) {
  struct extract_result r;
  (void)extract(text, n, NULL, &r);
  extract_result_deinit(&r);
}

static void scan(const char *what, const char *piece) {
  struct buf text = {0};
  while (text.n < 16u << 20)
    buf_puts(&text, piece);
  double took = BENCH_BEST(9, extract_once(text.p, text.n));
  printf("scan   %-28s %7.0f MB/s (goal 900)\n", what, (double)text.n / took / 1e6);
  buf_deinit(&text);
}

static void tree(const char *what, struct buf *text) {
  double ours = BENCH_BEST(RUNS, extract_once(text->p, text->n));
  double theirs = BENCH_BEST(RUNS, json_decref(json_loadb(text->p, text->n, 0, NULL)));
  printf("tree   %-28s %7.0f MB/s, json_loads %6.0f MB/s: %.2f times (goal 1.50)\n", what,
         (double)text->n / ours / 1e6, (double)text->n / theirs / 1e6, theirs / ours);
  buf_deinit(text);
}

static void extracting(void) {
  struct buf text = {0};
  scan("plain prose", "The quick review found nothing to change; every test passes, and the build "
                      "is clean on both compilers. It\xE2\x80\x99s ready.\n");
  scan("prose with markdown", "See `main.c` and [the notes](docs/notes.md) for **details**, x < y, "
                              "and the {option} switch; the rest of this long line is text.\n");
  scan("prose, not ASCII", "\xE5\xAE\x8C\xE4\xBA\x86\xE3\x81\x97\xE3\x81\xBE\xE3\x81\x97\xE3\x81"
                           "\x9F\xE3\x80\x82\xE6\xAC\xA1\xE3\x81\xAB\xE9\x80\xB2\xE3\x82\x80\n");
  buf_puts(&text, "[0");
  for (int i = 0; i < 6000; i++)
    buf_printf(
        &text,
        ",{\"id\":%d,\"name\":\"item \\\"%d\\\" {x}\",\"tags\":[\"a\",\"b\"],\"score\":%d.%d,"
        "\"note\":\"a longer text that is there to be copied, with a brace } and more\"}",
        i, i, i % 10, i % 97);
  buf_puts(&text, "]");
  tree("1 MB of objects", &text);
  buf_puts(&text, "[\"\"");
  while (text.n < 1000000)
    buf_puts(&text,
             ",\"A paragraph of text such as a model writes into a string. It has no escapes "
             "but runs on for a while, so that copying is what it costs to read it.\"");
  buf_puts(&text, "]");
  tree("1 MB of strings", &text);
  static const char one[] =
      "{\"step\": 2, \"reason\": \"the tests pass and the build is clean, so done\"}";
  double ours = BENCH_BEST(9, for (int i = 0; i < 100000; i++) extract_once(one, sizeof one - 1));
  double theirs = BENCH_BEST(9, for (int i = 0; i < 100000; i++)
                                    json_decref(json_loadb(one, sizeof one - 1, 0, NULL)));
  printf("tree   a judgment: %.0f ns, json_loads %.0f ns: %.2f times\n", ours * 1e4, theirs * 1e4,
         theirs / ours);
}

/* --- schemas --- */

enum form { PROMPT_EN, PROMPT_JA, TYPES, JSON, JSON_BARE, EXAMPLE, FORMS };
static const char *const form_names[FORMS] = {"prompt en", "prompt ja", "types",
                                              "json",      "json -ann", "example"};

/* The text, NULL if there is none. */
static char *render(const struct schema *schema, enum form form) {
  const enum describe_language language = form == PROMPT_JA ? DESCRIBE_JAPANESE : DESCRIBE_ENGLISH;
  char *text = NULL;
  bool ok;
  if (form <= PROMPT_JA)
    ok = describe_prompt(schema, language, &text) == SCHEMA_OK;
  else if (form == TYPES)
    ok = describe_types(schema, &text) == SCHEMA_OK;
  else if (form == EXAMPLE)
    ok = example_anchor(schema, language, &text) == EXAMPLE_OK;
  else
    ok = describe_json(schema, form == JSON, &text) == SCHEMA_OK;
  return ok ? text : NULL;
}

/* Estimated tokens of each rendering, and bytes / 4 beside them. */
static void tell_sizes(const char *name, const json_t *doc) {
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  char *indented = json_dumps(doc, JSON_INDENT(2));
  printf("%-28s %6zu", name, describe_tokens(indented));
  for (enum form form = PROMPT_EN; form < FORMS; form++) {
    char *text = render(schema, form);
    printf(" %5zu/%-5zu", text ? describe_tokens(text) : 0, text ? strlen(text) / 4 : 0);
    describe_free(text);
  }
  printf("\n");
  free(indented);
  schema_free(schema);
}

static void convert(const json_t *doc) {
  struct gbnf_result result;
  if (gbnf_convert(doc, NULL, &result) == GBNF_INVALID_SCHEMA)
    die("no grammar");
  gbnf_result_deinit(&result);
}

static void adapt_all(const json_t *doc) {
  const struct adapt_dialect *dialect;
  struct adapt_error error;
  for (size_t i = 0; (dialect = adapt_dialect_at(i)) != NULL; i++)
    adapted_free(adapt(doc, dialect, NULL, &error));
}

static void speed(const char *what, json_t *doc) {
  struct schema *schema = NULL;
  char *whole = json_dumps(doc, JSON_COMPACT);
  double ms =
      1e3 * BENCH_BEST(RUNS, schema_free(schema); schema = schema_compile(doc, NULL, NULL, NULL));
  bench_must(schema != NULL, what);
  printf("schema %-22s %6zu bytes: compile %.2f", what, strlen(whole), ms);
  for (enum form form = PROMPT_EN; form < FORMS; form++)
    printf(", %s %.2f", form_names[form],
           1e3 * BENCH_BEST(RUNS, describe_free(render(schema, form))));
  printf(", all dialects %.2f", 1e3 * BENCH_BEST(RUNS, adapt_all(doc)));
  printf(", grammar %.2f ms (goals 20)\n", 1e3 * BENCH_BEST(RUNS, convert(doc)));
  free(whole);
  schema_free(schema);
  json_decref(doc);
}

int main(void) {
  checking();
  extracting();
  for (const struct resource *r = resource_table; r->name; r++)
    if (!strncmp(r->name, "schemas/", 8) && r->n > SCHEMA_BYTES)
      speed(r->name + 8, json_loadb(r->p, r->n, 0, NULL));
  printf("estimated tokens / (bytes / 4)\n%-28s %6s", "schema", "indent");
  for (enum form form = PROMPT_EN; form < FORMS; form++)
    printf(" %11s", form_names[form]);
  printf("\n");
  for (const struct resource *r = resource_table; r->name; r++) {
    json_t *doc = !strncmp(r->name, "schemas/", 8) ? json_loadb(r->p, r->n, 0, NULL) : NULL;
    if (doc)
      tell_sizes(r->name + 8, doc);
    json_decref(doc);
  }
  return 0;
}
