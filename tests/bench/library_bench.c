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

enum { RUNS = 15, JUDGMENTS = 1000, SCAN_BYTES = 16 << 20, TREE_BYTES = 1000000 };

/* --- checking --- */

static const char judgment_schema[] =
    "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":\"integer\",\"enum\":[0,1,2]},"
    "\"reason\":{\"type\":\"string\"}},\"required\":[\"step\",\"reason\"],"
    "\"additionalProperties\":false}";

/* The same by hand. */
static bool judgment_walk(const json_t *value) {
  bool step = false, reason = false;
  const char *key;
  json_t *member;
  json_object_foreach((json_t *)value, key, member) {
    json_int_t n = json_integer_value(member);
    if (!strcmp(key, "step"))
      step = json_is_integer(member) && n >= 0 && n <= 2;
    else if (!strcmp(key, "reason"))
      reason = json_is_string(member);
    else
      return false;
  }
  return json_is_object(value) && step && reason;
}

static void checking(void) {
  static json_t *values[JUDGMENTS];
  size_t good = 0;
  for (int i = 0; i < JUDGMENTS; i++)
    values[i] = json_pack("{si ss}", "step", i % 3, "reason", "the tests pass and nothing is left");
  struct schema *schema = schema_compile(json_loads(judgment_schema, 0, NULL), NULL, NULL, NULL);
  double walk =
      BENCH_BEST(100, for (int i = 0; i < JUDGMENTS; i++) good += judgment_walk(values[i]));
  double ours =
      BENCH_BEST(100, for (int i = 0; i < JUDGMENTS; i++) good += schema_valid(schema, values[i]));
  bench_must(good == 200 * JUDGMENTS, "a judgment was refused");
  printf("check  a judgment: %.1f ns, by hand %.1f ns: %.2f times (goal 2.5)\n",
         ours * 1e9 / JUDGMENTS, walk * 1e9 / JUDGMENTS, ours / walk);
}

/* --- extracting --- */

static void extract_once(struct str text) {
  struct extract_result r;
  (void)extract(text.p, text.n, NULL, &r);
  extract_result_deinit(&r);
}

/* A text of so many bytes at least, a piece again and again; a tree is an array of pieces. */
static void extracting(const char *what, const char *piece, size_t bytes, bool tree) {
  struct buf text = {0};
  buf_puts(&text, tree ? "[0" : "");
  do
    buf_puts(&text, piece);
  while (text.n < bytes);
  buf_puts(&text, tree ? "]" : "");
  double ours = BENCH_BEST(RUNS, extract_once(buf_view(&text)));
  printf("%s   %-22s %7.0f MB/s", tree ? "tree" : "scan", what, (double)text.n / ours / 1e6);
  if (tree)
    printf(", %.2f times json_loads (goal 1.50)\n",
           BENCH_BEST(RUNS, json_decref(json_loadb(text.p, text.n, 0, NULL))) / ours);
  else
    printf(" (goal 900)\n");
  buf_deinit(&text);
}

static void texts(void) {
  extracting("plain prose",
             "The quick review found nothing to change; every test passes, and the build is clean "
             "on both compilers. It\xE2\x80\x99s ready.\n",
             SCAN_BYTES, false);
  extracting("prose with markdown",
             "See `main.c` and [the notes](docs/notes.md) for **details**, x < y, and the {option} "
             "switch; the rest of this long line is text.\n",
             SCAN_BYTES, false);
  extracting("prose, not ASCII",
             "\xE5\xAE\x8C\xE4\xBA\x86\xE3\x81\x97\xE3\x81\xBE\xE3\x81\x97\xE3\x81\x9F\xE3\x80\x82"
             "\xE6\xAC\xA1\xE3\x81\xAB\xE9\x80\xB2\xE3\x82\x80\n",
             SCAN_BYTES, false);
  extracting("objects",
             ",{\"id\":17,\"name\":\"item \\\"17\\\" {x}\",\"tags\":[\"a\",\"b\"],\"score\":1.97,"
             "\"note\":\"a longer text that is there to be copied, with a brace } and more\"}",
             TREE_BYTES, true);
  extracting("strings",
             ",\"A paragraph of text such as a model writes into a string. It has no escapes but "
             "runs on for a while, so that copying is what it costs to read it.\"",
             TREE_BYTES, true);
  extracting("a judgment", ",{\"step\": 2, \"reason\": \"the tests pass and the build is clean\"}",
             1, true);
}

/* --- schemas --- */

enum form { PROMPT_EN, PROMPT_JA, TYPES, JSON, JSON_BARE, EXAMPLE, FORMS };
static const char *const form_names[FORMS] = {"prompt", "Japanese", "types",
                                              "JSON",   "bare",     "example"};

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

static void convert(const json_t *doc) {
  struct gbnf_result result;
  bench_must(gbnf_convert(doc, NULL, &result) != GBNF_INVALID_SCHEMA, "a grammar");
  gbnf_result_deinit(&result);
}

static void adapt_all(const json_t *doc) {
  const struct adapt_dialect *dialect;
  struct adapt_error error;
  for (size_t i = 0; (dialect = adapt_dialect_at(i)) != NULL; i++)
    adapted_free(adapt(doc, dialect, NULL, &error));
}

/* Estimated tokens of each rendering, and the milliseconds that it takes. */
static void tell(const char *name, const json_t *doc) {
  struct schema *schema = NULL;
  char *indented = json_dumps(doc, JSON_INDENT(2));
  double ms =
      1e3 * BENCH_BEST(RUNS, schema_free(schema); schema = schema_compile(doc, NULL, NULL, NULL));
  bench_must(schema != NULL, name);
  printf("%-27s %6zu bytes: compile %.2f, adapt %.2f, grammar %.2f ms (goal 20)\n"
         "  tokens and ms: indented %zu",
         name, strlen(indented), ms, 1e3 * BENCH_BEST(RUNS, adapt_all(doc)),
         1e3 * BENCH_BEST(RUNS, convert(doc)), describe_tokens(indented));
  for (enum form form = PROMPT_EN; form < FORMS; form++) {
    char *text = NULL;
    ms = 1e3 * BENCH_BEST(RUNS, describe_free(text); text = render(schema, form));
    printf(", %s %zu %.2f", form_names[form], text ? describe_tokens(text) : 0, ms);
    describe_free(text);
  }
  printf("\n");
  free(indented);
  schema_free(schema);
}

int main(void) {
  checking();
  texts();
  for (const struct resource *r = resource_table; r->name; r++) {
    json_t *doc = !strncmp(r->name, "schemas/", 8) ? json_loadb(r->p, r->n, 0, NULL) : NULL;
    if (doc)
      tell(r->name + 8, doc);
    json_decref(doc);
  }
  return 0;
}
