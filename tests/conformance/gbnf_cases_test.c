/* Grammars from schemas: everything that a grammar derives validates, and what validates in the
 * order of the schema derives, except through the keywords that the converter lists. Random values
 * that are valid must derive in any case.
 *
 * Runs the cases of tests/data/gbnf (schema, texts that must and must not derive, listed keywords),
 * and from $SEGUE_SHARED or ../shared beside the sources, where they are there: gbnf-public.ndjson,
 * the official JSON-Schema-Test-Suite and the schemas of schema-bench. Prints the figures.
 *
 * -v names each miss; --dump FILE writes each grammar as a line {"name","grammar","schema","draft",
 * "listed","sample"} and does nothing else; SEGUE_LONG=1 derives ten times as many texts. */
#include "base/err.h"
#include "base/memory.h"
#include "gbnf/gbnf.h"
#include "support/gbnf_grammar.h"
#include "support/schema_random.h"
#include "support/suite.h"
#include "support/wrong.h"

#include <dirent.h>
#include <sys/stat.h>

enum { TEXT_BYTES_MAX = 1 << 20 };

static struct {
  bool verbose;
  FILE *dump;
  bool sample;          /* dumped: to be sampled from in any case */
  unsigned derivations; /* of each schema */
  uint64_t seed;
} run;

struct figures {
  unsigned schemas, converted, refused, noted; /* noted: with a list */
  unsigned unreadable;                         /* the grammar does not parse */
  unsigned accepted, missed;                   /* texts that must derive */
  unsigned missed_noted;                       /* ... of those with a list */
  unsigned rejected, unsound;                  /* texts that must not */
  unsigned excused;                            /* ... that derive, where a list says so */
  unsigned derived, invalid;                   /* random texts; invalid: without an excuse */
  unsigned derived_excused;
  unsigned sampled, narrow; /* random values that are valid; narrow: they do not derive */
  size_t peak;              /* stacks at once */
};

struct subject { /* one schema with its grammar */
  const char *name;
  struct gbnf_result result;
  enum gbnf_status status;
  struct grammar *grammar;
  struct schema *schema;
};

static void miss(const struct subject *s, const char *what, const char *text) {
  if (run.verbose)
    printf("  %s: %s: %.300s\n", s->name, what, text);
}

static bool subject_open(struct subject *s, const char *name, json_t *doc,
                         const struct schema_registry *registry, const char *draft,
                         struct figures *f) {
  struct gbnf_opts opts = {.registry = registry, .default_draft = draft};
  struct schema_opts schema_opts = {true, registry, draft};
  char error[160];
  *s = (struct subject){.name = name};
  f->schemas++;
  s->status = gbnf_convert(doc, &opts, &s->result);
  if (s->status != GBNF_OK) {
    f->refused++;
    if (s->status == GBNF_TOO_COMPLEX || !s->result.refusal)
      miss(s, "refused", s->result.refusal ? s->result.refusal : "without a word");
    return false;
  }
  f->converted++;
  f->noted += s->result.note_count > 0;
  if (run.dump) {
    json_auto_t *line =
        json_pack("{s:s,s:s,s:O,s:b,s:b}", "name", name, "grammar", s->result.text, "schema", doc,
                  "listed", s->result.note_count > 0, "sample", run.sample);
    if (draft && json_is_object(doc) && !json_object_get(doc, "$schema"))
      json_object_set_new(line, "draft", json_string(draft));
    char_auto_t *text = json_dumps(line, JSON_COMPACT);
    fprintf(run.dump, "%s\n", text);
    return false;
  }
  s->grammar = grammar_new(s->result.text, error);
  if (!s->grammar) {
    f->unreadable++;
    miss(s, "the grammar does not parse", error);
    return false;
  }
  s->schema = schema_compile(doc, &schema_opts, NULL, NULL);
  return true;
}

static void subject_close(struct subject *s, struct figures *f) {
  if (s->grammar && s->grammar->peak > f->peak)
    f->peak = s->grammar->peak;
  gbnf_result_deinit(&s->result);
  grammar_free(s->grammar);
  schema_free(s->schema);
}

static void must_derive(struct subject *s, const char *text, struct figures *f) {
  bool ok = !test_made_wrong() && s->grammar && grammar_match(s->grammar, text, strlen(text));
  if (ok) {
    f->accepted++;
    return;
  }
  f->missed++;
  f->missed_noted += s->result.note_count > 0;
  miss(s, "does not derive", text);
}

static void must_not_derive(struct subject *s, const char *text, struct figures *f) {
  if (!s->grammar || !grammar_match(s->grammar, text, strlen(text))) {
    f->rejected++;
  } else if (s->result.note_count) {
    f->excused++;
  } else {
    f->unsound++;
    miss(s, "derives", text);
  }
}

/* Is one of the errors at a listed keyword, or below it? */
static bool explained(const struct gbnf_result *result, const struct schema_errors *errors) {
  for (size_t i = 0; i < errors->count; i++)
    for (size_t k = 0; k < result->note_count; k++) {
      const struct gbnf_note *note = &result->notes[k];
      const char *path = errors->items[i].schema_path;
      size_t above = strlen(note->pointer);
      if (!strcmp(note->keyword, "if") && !strncmp(path, note->pointer, above) &&
          (!strncmp(path + above, "/then", 5) || !strncmp(path + above, "/else", 5)))
        return true;
      if (!strcmp(note->keyword, "$dynamicRef") || !strcmp(note->keyword, "$recursiveRef"))
        return true; /* what they apply stands elsewhere */
      if (!strcmp(errors->items[i].keyword, "anyOf") &&
          (!strncmp(note->pointer, "/definitions/", 13) || !strncmp(note->pointer, "/$defs/", 7)))
        return true; /* an alternative may refer there */
      if (!strncmp(path, note->pointer, strlen(note->pointer)) &&
          strstr(path + strlen(note->pointer), note->keyword))
        return true;
      if (!strcmp(errors->items[i].keyword, "anyOf") ||
          !strcmp(errors->items[i].keyword, "oneOf") || !strcmp(errors->items[i].keyword, "not") ||
          !strcmp(errors->items[i].keyword, "contains"))
        if (!strncmp(path, note->pointer,
                     strlen(path) < strlen(note->pointer) ? strlen(path) : strlen(note->pointer)))
          return true;
    }
  return false;
}

static void derive(struct subject *s, unsigned count, struct figures *f) {
  for (unsigned i = 0; s->grammar && s->schema && i < count; i++) {
    uint64_t seed = run.seed++;
    size_t length;
    char_auto_t *text = grammar_derive(s->grammar, &seed, 40 + 60 * (i % 4), &length);
    json_error_t why;
    AUTO(schema_errors_deinit) struct schema_errors errors = {0};
    json_auto_t *value = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    f->derived++;
    if (!value) {
      f->invalid++;
      miss(s, why.text, text);
    } else if (schema_check(s->schema, value, &errors) != SCHEMA_OK) {
      bool known = explained(&s->result, &errors);
      f->derived_excused += known;
      f->invalid += !known;
      if (!known) {
        miss(s, "derived, not valid", text);
        for (size_t k = 0; run.verbose && k < errors.count && k < 3; k++)
          printf("    %s: %s [%s]\n", errors.items[k].path, errors.items[k].message,
                 errors.items[k].schema_path);
      }
    }
  }
}

/* Returns true if no number has an exponent, more than 15 digits in a row, or a fraction of zeros:
 * a grammar has plain decimals only. */
static bool plain_numbers(const char *text) {
  size_t digits = 0;
  for (const char *p = text; *p; p++) {
    bool digit = *p >= '0' && *p <= '9';
    if (digits && (*p == 'e' || (p[0] == '.' && p[1] == '0')))
      return false;
    digits = digit ? digits + 1 : 0;
    if (digits > 15)
      return false;
  }
  return true;
}

/* The grammar is never narrower than the schema: valid values that a random walk over the schema
 * finds must derive. */
static void sample(struct subject *s, const json_t *doc, unsigned count, struct figures *f) {
  struct schema_random random = {.root = doc, .seed = run.seed};
  for (unsigned i = 0; s->grammar && s->schema && i < count; i++) {
    json_auto_t *value = schema_random_value(&random, doc);
    char_auto_t *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (text && plain_numbers(text) && schema_check(s->schema, value, NULL) == SCHEMA_OK) {
      bool ok = grammar_match(s->grammar, text, strlen(text));
      f->sampled++;
      f->narrow += !ok;
      if (!ok)
        miss(s, "valid, does not derive", text);
    }
  }
}

static void print(const char *title, const struct figures *f) {
  if (run.dump)
    return;
  printf("%s: %u schemas, %u converted (%u with a list), %u refused, %u unreadable\n", title,
         f->schemas, f->converted, f->noted, f->refused, f->unreadable);
  unsigned yes = f->accepted + f->missed, no = f->rejected + f->unsound + f->excused;
  if (yes || no)
    printf("  valid: %u/%u derive (%.2f %%; %u of the rest have a list); invalid: %u/%u do not "
           "(%u more listed, %u unexplained)\n",
           f->accepted, yes, yes ? 100.0 * f->accepted / yes : 100, f->missed_noted, f->rejected,
           no, f->excused, f->unsound);
  printf("  random texts: %u, not valid %u, through listed keywords %u; most stacks %zu\n",
         f->derived, f->invalid, f->derived_excused, f->peak);
  printf("  random values: %u valid, %u of them do not derive\n", f->sampled, f->narrow);
}

/* --- sources --- */

static bool shared(const char *what, char path[2048]) {
  const char *from = getenv("SEGUE_SHARED");
  struct stat st;
  if (from)
    snprintf(path, 2048, "%s/%s", from, what);
  else
    snprintf(path, 2048, "%s/../shared/%s", SEGUE_SOURCE_DIR, what);
  if (!stat(path, &st))
    return true;
  printf("%s: not there, skipped\n", what);
  return false;
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

typedef void (*line_fn)(const json_t *line, struct figures *f, void *arg);

static void each_line(const char *path, line_fn fn, struct figures *f, void *arg) {
  char_auto_t *line = malloc(TEXT_BYTES_MAX);
  FILE *in = fopen(path, "r");
  unsigned n = 0;
  while (in && fgets(line, TEXT_BYTES_MAX, in)) {
    json_error_t error;
    json_auto_t *json = json_loads(line, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    n++;
    if (!json)
      json = json_loads(line, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    if (json)
      fn(json, f, arg);
    else if (line[0] != '\n')
      printf("%s:%u: %s\n", path, n, error.text);
  }
  if (in)
    fclose(in);
}

static void texts(struct subject *s, const json_t *line, struct figures *f) {
  const json_t *pass = json_object_get(line, "pass"), *fail = json_object_get(line, "fail");
  for (size_t i = 0; i < json_array_size(pass); i++)
    must_derive(s, json_string_value(json_array_get(pass, i)), f);
  for (size_t i = 0; i < json_array_size(fail); i++)
    must_not_derive(s, json_string_value(json_array_get(fail, i)), f);
}

/* The reader itself, on grammars that others wrote. */
static void grammar_case(const json_t *line, struct figures *f) {
  char error[160];
  struct subject s = {.name = text_of(line, "name")};
  f->schemas++;
  s.grammar = grammar_new(text_of(line, "grammar"), error);
  if (!s.grammar) {
    f->unreadable++;
    miss(&s, "the grammar does not parse", error);
    return;
  }
  f->converted++;
  texts(&s, line, f);
  grammar_free(s.grammar);
}

struct public_figures {
  struct figures schemas, grammars;
  unsigned conversions, conversions_wrong;
  const struct schema_registry *registry;
};

static void public_case(const json_t *line, struct figures *f, void *arg) {
  struct public_figures *p = arg;
  const char *kind = text_of(line, "kind");
  json_auto_t *schema = json_object_get(line, "schema");
  struct subject s;
  (void)f;
  if (!strcmp(kind, "grammar")) {
    if (!run.dump)
      grammar_case(line, &p->grammars);
    return;
  }
  if (json_is_string(schema))
    schema = json_loads(json_string_value(schema), JSON_DECODE_ANY, NULL);
  else
    json_incref(schema);
  const char *draft =
      strstr(text_of(line, "source"), "draft7") ? "http://json-schema.org/draft-07/schema#" : NULL;
  subject_open(&s, text_of(line, "name"), schema, p->registry, draft, &p->schemas);
  if (!strcmp(kind, "convert")) {
    bool wanted = !strcmp(text_of(line, "status"), "success");
    p->conversions++;
    struct schema *valid = schema_compile(schema, NULL, NULL, NULL);
    bool is_schema = valid != NULL;
    schema_free(valid);
    if (wanted != (s.status == GBNF_OK) && (is_schema || !wanted)) {
      p->conversions_wrong++;
      miss(&s, "convert", s.result.refusal ? s.result.refusal : "it converts");
    }
  } else if (!run.dump) {
    texts(&s, line, &p->schemas);
  }
  derive(&s, run.derivations, &p->schemas);
  sample(&s, schema, run.derivations, &p->schemas);
  subject_close(&s, &p->schemas);
}

static bool has_note(const struct gbnf_result *result, const char *pointer, const char *keyword) {
  for (size_t i = 0; i < result->note_count; i++)
    if (!strcmp(result->notes[i].pointer, pointer) && !strcmp(result->notes[i].keyword, keyword))
      return true;
  return false;
}

/* {"name","schema","pass","fail","notes":[[pointer,keyword],...],"status"} */
static void own_case(const json_t *line, struct figures *f, void *arg) {
  unsigned *wrong = arg;
  struct subject s;
  const json_t *notes = json_object_get(line, "notes");
  const char *status = text_of(line, "status");
  bool open = subject_open(&s, text_of(line, "name"), json_object_get(line, "schema"), NULL,
                           *text_of(line, "draft") ? text_of(line, "draft") : NULL, f);
  if (run.dump) {
    subject_close(&s, f);
    return;
  }
  if (strcmp(gbnf_status_name(s.status), *status ? status : "ok") != 0 || (!*status && !open)) {
    ++*wrong;
    printf("  %s: %s: %s\n", s.name, gbnf_status_name(s.status),
           s.result.refusal ? s.result.refusal : "");
  }
  struct figures before = *f;
  texts(&s, line, f);
  size_t listed = json_array_size(notes);
  bool same = s.result.note_count == listed;
  for (size_t i = 0; i < listed; i++) {
    const json_t *note = json_array_get(notes, i);
    same = same && has_note(&s.result, json_string_value(json_array_get(note, 0)),
                            json_string_value(json_array_get(note, 1)));
  }
  if (!same || f->missed != before.missed || f->unsound != before.unsound ||
      f->excused != before.excused) {
    ++*wrong;
    printf("  %s: texts or list not as expected\n", s.name);
    for (size_t i = 0; i < s.result.note_count; i++)
      printf("    listed: %s %s: %s\n", s.result.notes[i].pointer, s.result.notes[i].keyword,
             s.result.notes[i].why);
  }
  derive(&s, 4 * run.derivations, f);
  sample(&s, json_object_get(line, "schema"), 4 * run.derivations, f);
  subject_close(&s, f);
}

/* --- the official suite --- */

static void suite_file(const char *path, const char *draft, const struct schema_registry *registry,
                       struct figures *f) {
  json_auto_t *groups = suite_load(path);
  for (size_t i = 0; i < json_array_size(groups); i++) {
    const json_t *group = json_array_get(groups, i), *tests = json_object_get(group, "tests");
    struct subject s;
    subject_open(&s, text_of(group, "description"), json_object_get(group, "schema"), registry,
                 draft, f);
    for (size_t k = 0; s.grammar && k < json_array_size(tests); k++) {
      const json_t *test = json_array_get(tests, k);
      char_auto_t *text = json_dumps(json_object_get(test, "data"), JSON_ENCODE_ANY | JSON_COMPACT);
      if (text && json_is_true(json_object_get(test, "valid")))
        must_derive(&s, text, f);
      else if (text && strstr(path, "/optional/") == NULL)
        must_not_derive(&s, text, f);
    }
    derive(&s, run.derivations, f);
    sample(&s, json_object_get(group, "schema"), run.derivations, f);
    subject_close(&s, f);
  }
}

static void suite_dir(const char *dir_path, const char *draft,
                      const struct schema_registry *registry, struct figures *f) {
  DIR *dir = opendir(dir_path);
  for (struct dirent *at; dir && (at = readdir(dir));) {
    char path[4096];
    size_t n = strlen(at->d_name);
    if (at->d_name[0] == '.')
      continue;
    snprintf(path, sizeof path, "%s/%s", dir_path, at->d_name);
    if (n > 5 && !strcmp(at->d_name + n - 5, ".json"))
      suite_file(path, draft, registry, f);
    else
      suite_dir(path, draft, registry, f);
  }
  if (dir)
    closedir(dir);
}

static void bench_schemas(struct figures *f) {
  char root[2048];
  if (!shared("data/schema-bench", root))
    return;
  DIR *dir = opendir(root);
  for (struct dirent *at; dir && (at = readdir(dir));) {
    char path[4096];
    struct subject s;
    if (at->d_name[0] == '.')
      continue;
    snprintf(path, sizeof path, "%s/%s/schema.json", root, at->d_name);
    json_auto_t *schema = suite_load(path);
    if (!schema)
      continue;
    subject_open(&s, at->d_name, schema, NULL, NULL, f);
    derive(&s, 5 * run.derivations, f);
    sample(&s, schema, 5 * run.derivations, f);
    subject_close(&s, f);
  }
  if (dir)
    closedir(dir);
}

int main(int argc, char **argv) {
  static const char *const drafts[][2] = {
      {"draft7", "http://json-schema.org/draft-07/schema#"},
      {"draft2019-09", "https://json-schema.org/draft/2019-09/schema"},
      {"draft2020-12", NULL}};
  struct figures own = {0}, bench = {0}, suite = {0};
  struct public_figures public = {0};
  struct schema_registry *registry = schema_registry_new();
  unsigned wrong = 0;
  char path[2048], root[2048];
  setvbuf(stdout, NULL, _IOLBF, 0);
  run.derivations = getenv("SEGUE_LONG") ? 100 : 10;
  for (int i = 1; i < argc; i++) {
    run.verbose = run.verbose || !strcmp(argv[i], "-v");
    if (!strcmp(argv[i], "--dump") && i + 1 < argc)
      run.dump = fopen(argv[i + 1], "w");
  }
  run.sample = true;
  each_line(SEGUE_SOURCE_DIR "/tests/data/gbnf/cases.ndjson", own_case, &own, &wrong);
  print("own cases", &own);
  bench_schemas(&bench);
  print("schema-bench", &bench);
  run.sample = false;
  bool has_suite = shared("data/json-schema-test-suite", root);
  if (has_suite) {
    char remotes[4096];
    snprintf(remotes, sizeof remotes, "%s/remotes", root);
    suite_add_remotes(registry, remotes, "");
  }
  public.registry = registry;
  if (shared("data/gbnf-public.ndjson", path)) {
    each_line(path, public_case, NULL, &public);
    print("public cases", &public.schemas);
    print("grammars of others", &public.grammars);
    if (!run.dump)
      printf("  conversions: %u, not as expected %u\n", public.conversions,
             public.conversions_wrong);
  }
  for (size_t i = 0; has_suite && i < sizeof drafts / sizeof *drafts; i++) {
    struct figures one = {0};
    snprintf(path, sizeof path, "%.1900s/tests/%s", root, drafts[i][0]);
    suite_dir(path, drafts[i][1], registry, &one);
    print(drafts[i][0], &one);
    suite.schemas += one.schemas;
    suite.converted += one.converted;
    suite.unreadable += one.unreadable;
    suite.unsound += one.unsound;
    suite.invalid += one.invalid;
    suite.derived += one.derived;
    suite.narrow += one.narrow;
  }
  schema_registry_free(registry);
  if (run.dump)
    return fclose(run.dump) != 0;
  printf("random texts in all: %u of %u schemas\n",
         own.derived + public.schemas.derived + suite.derived + bench.derived,
         own.converted + public.schemas.converted + suite.converted + bench.converted);
  const struct figures *p = &public.schemas;
  bool ok = !wrong && !own.narrow && !suite.narrow && !bench.narrow && !p->narrow &&
            own.sampled > 1000 && !own.missed && !own.unsound && !own.invalid && !own.unreadable &&
            !suite.unreadable && !suite.unsound && !suite.invalid && !bench.unreadable &&
            !bench.invalid && !bench.refused && !p->unreadable && !p->invalid &&
            !public.conversions_wrong && !public.grammars.missed && !public.grammars.unsound &&
            p->accepted * 100 >= (p->accepted + p->missed) * 99 &&
            p->unsound * 100 <= (p->rejected + p->unsound);
  printf(ok ? "ok\n" : "FAILED\n");
  return ok ? 0 : 1;
}
