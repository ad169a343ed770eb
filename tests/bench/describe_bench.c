/* How long the renderings of a schema are, in bytes and estimated tokens, for the schemas that are
 * compiled in; and how long a schema of some 50 KB takes.
 *
 * Tokens are describe_tokens(): letters, digits, marks and blanks counted as byte-pair readers cut
 * them, without a table of theirs. Beside it bytes / 4, the usual rule. */
#include "base/resource.h"
#include "structured/describe.h"
#include "structured/example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

enum form { PROMPT_EN, PROMPT_JA, TYPES, JSON, JSON_BARE, EXAMPLE, FORMS };
static const char *const names[FORMS] = {"prompt en", "prompt ja", "types",
                                         "json",      "json -ann", "example"};

/* The text, NULL if there is none. */
static char *render(const struct schema *schema, enum form form) {
  char *text = NULL;
  bool ok = false;
  switch (form) {
  case PROMPT_EN:
  case PROMPT_JA:
    ok = describe_prompt(schema, form == PROMPT_EN ? DESCRIBE_ENGLISH : DESCRIBE_JAPANESE, &text) ==
         SCHEMA_OK;
    break;
  case TYPES:
    ok = describe_types(schema, &text) == SCHEMA_OK;
    break;
  case JSON:
  case JSON_BARE:
    ok = describe_json(schema, form == JSON, &text) == SCHEMA_OK;
    break;
  case EXAMPLE:
    ok = example_anchor(schema, DESCRIBE_ENGLISH, &text) == EXAMPLE_OK;
    break;
  case FORMS:
    break;
  }
  return ok ? text : NULL;
}

static void sizes(const char *name, const json_t *doc) {
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  char *indented = json_dumps(doc, JSON_INDENT(2));
  if (!schema || !indented)
    exit(1);
  printf("%-28s %6zu", name, describe_tokens(indented));
  for (enum form form = PROMPT_EN; form < FORMS; form++) {
    char *text = render(schema, form);
    if (text)
      printf(" %5zu/%-5zu", describe_tokens(text), strlen(text) / 4);
    else
      printf(" %11s", "-");
    describe_free(text);
  }
  printf("\n");
  free(indented);
  schema_free(schema);
}

/* An object of objects with some of every keyword, of about `bytes`. */
static json_t *large_schema(size_t bytes) {
  json_t *fields = json_object();
  for (size_t i = 0, n = 0; n < bytes; i++, n += 520) {
    char name[32];
    snprintf(name, sizeof name, "part_%zu", i);
    json_object_set_new(
        fields, name,
        json_pack("{s:s,s:s,s:{s:{s:s,s:i,s:i,s:s},s:{s:[s,s],s:s},s:{s:s,s:i,s:i},s:{s:s,s:{s:s,"
                  "s:[s,s,s]},s:i},s:{s:[{s:s,s:s},{s:s}]}},s:[s,s],s:b}",
                  "type", "object", "description", "One part of the whole and what is known of it",
                  "properties", "name", "type", "string", "minLength", 1, "maxLength", 80,
                  "pattern", "^[A-Za-z][A-Za-z0-9_-]*$", "note", "type", "string", "null",
                  "description", "What else there is to say", "count", "type", "integer", "minimum",
                  0, "maximum", 100, "tags", "type", "array", "items", "type", "string", "enum",
                  "red", "green", "blue", "maxItems", 5, "when", "anyOf", "type", "string",
                  "format", "date-time", "type", "null", "required", "name", "count",
                  "additionalProperties", 0));
  }
  return json_pack("{s:s,s:o}", "type", "object", "properties", fields);
}

static void speed(const char *what, json_t *doc) {
  enum { ROUNDS = 15 };
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  char *whole = json_dumps(doc, JSON_COMPACT);
  if (!schema || !whole)
    exit(1);
  printf("%s, %zu bytes:\n", what, strlen(whole));
  for (enum form form = PROMPT_EN; form < FORMS; form++) {
    double best = 1e9;
    size_t length = 0;
    for (int i = 0; i < ROUNDS; i++) {
      double start = now_ms();
      char *text = render(schema, form);
      double took = now_ms() - start;
      best = took < best ? took : best;
      length = text ? strlen(text) : 0;
      describe_free(text);
    }
    printf("  %-10s %8.3f ms %8zu bytes%s\n", names[form], best, length,
           form != EXAMPLE && best > 20 ? "  more than 20 ms" : "");
  }
  free(whole);
  schema_free(schema);
  json_decref(doc);
}

int main(void) {
  const char *shared = getenv("SEGUE_SHARED");
  char path[1024];
  printf("estimated tokens / (bytes / 4)\n%-28s %6s", "schema", "indent");
  for (enum form form = PROMPT_EN; form < FORMS; form++)
    printf(" %11s", names[form]);
  printf("\n");
  for (const struct resource *r = resource_table; r->name; r++) {
    json_t *doc = !strncmp(r->name, "schemas/", 8) ? json_loadb(r->p, r->n, 0, NULL) : NULL;
    if (doc)
      sizes(r->name + 8, doc);
    json_decref(doc);
  }
  speed("made here", large_schema(50000));
  static const char *const others[] = {"deno", "dependabot", "cspell"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    snprintf(path, sizeof path, "%s/data/schema-bench/%s/schema.json",
             shared ? shared : SEGUE_SOURCE_DIR "/../shared", others[i]);
    json_t *doc = json_load_file(path, 0, NULL);
    if (doc)
      speed(others[i], doc);
  }
  return 0;
}
