/* Every schema in every dialect: the adapted schema lies in the dialect's subset, a valid value has
 * an image that is valid there and comes back, and what is valid there comes back valid, but for
 * keywords that are reported as not enforced.
 *
 * For random schemas the same holds of the grammar: it takes what is valid, whatever the report
 * says.
 *
 * Schemas: tests/data/adapt/presets with SEGUE_LONG or 1,000 random values each; 60 random ones
 * (1,000 with SEGUE_LONG; SEGUE_SEED begins elsewhere); the schemas and values of the official
 * suite and of the schema benchmark, where they are (in $SEGUE_SHARED or ../shared beside the
 * sources).
 * Options: -v names each failure. */
#include "adapt/adapt.h"
#include "base/memory.h"
#include "format/json_object.h"
#include "gbnf/gbnf.h"
#include "support/adapt_forward.h"
#include "support/adapt_subset.h"
#include "support/gbnf_grammar.h"
#include "support/schema_random.h"
#include "support/suite.h"
#include "support/wrong.h"

#include <dirent.h>

struct run {
  bool verbose;
  bool
      there_and_back; /* only values of the canonical schema: what else fits the other one may be an
                          error that is asked for again, such as a name given twice */
  const struct schema_registry *registry;
  const char *draft;
  unsigned converted, refused, images, answers, failures, kinds[ADAPT_TOO_COMPLEX + 1];
};

/* One schema in one dialect. */
struct pair {
  struct run *run;
  const char *name;
  const json_t *doc;
  const struct adapt_dialect *dialect;
  struct adapted *adapted;
  struct schema *canonical, *shape;
};

static void failed(struct pair *p, const char *what, const json_t *value) {
  char_auto_t *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
  char_auto_t *schema = json_dumps(p->doc, JSON_COMPACT | JSON_ENCODE_ANY);
  char_auto_t *shape =
      p->adapted ? json_dumps(adapted_schema(p->adapted), JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
  if (p->run->failures++ < 10 || p->run->verbose)
    printf("%s, %s: %s: %.600s\n  schema %.900s\n  adapted %.900s\n", p->name, p->dialect->name,
           what, text ? text : "", schema ? schema : "", shape ? shape : "");
}

static bool has_change(const struct pair *p, const char *keyword, bool narrowed) {
  const struct adapt_change *change;
  for (size_t i = 0; (change = adapted_change_at(p->adapted, i)); i++)
    if ((change->effect == ADAPT_NARROWED) == narrowed &&
        (narrowed || change->effect != ADAPT_REWRITTEN) &&
        (!keyword || !strcmp(keyword, change->keyword)))
      return true;
  return false;
}

/* Is the error about a keyword that the report names as not enforced? */
static bool reported(const struct pair *p, const struct schema_error *error) {
  static const char *const combined[] = {"anyOf", "oneOf", "not", "contains",
                                         "if",    "const", "enum"};
  const struct adapt_change *change;
  for (size_t i = 0; (change = adapted_change_at(p->adapted, i)); i++)
    if ((change->effect == ADAPT_DESCRIBED || change->effect == ADAPT_DROPPED) &&
        strstr(error->schema_path, change->pointer))
      return true; /* at the keyword, or below it */
  for (size_t i = 0; i < sizeof combined / sizeof *combined; i++)
    if (!strcmp(error->keyword, combined[i]) && has_change(p, NULL, false))
      return true;
  for (size_t i = 0; (change = adapted_change_at(p->adapted, i)); i++)
    if (!strcmp(change->keyword, "prefixItems") && change->effect == ADAPT_DROPPED &&
        !strcmp(error->keyword, "type"))
      return true; /* null for a position left out, before one that was not */
  return (strstr(error->schema_path, "/then/") || strstr(error->schema_path, "/else/")) &&
         has_change(p, "if", false);
}

/* As JSON Schema compares: 1 is 1.0. */
static bool equal(const json_t *a, const json_t *b) {
  json_auto_t *doc = json_object();
  if (json_equal(a, b))
    return true;
  json_object_set(doc, "const", (json_t *)a);
  struct schema *same = schema_compile(doc, NULL, NULL, NULL);
  bool yes = same && schema_valid(same, b);
  schema_free(same);
  return yes;
}

/* A valid value: there and back. */
static void try_value(struct pair *p, const json_t *value) {
  json_auto_t *image = NULL, *back = NULL;
  p->run->images++;
  if (adapt_forward(p->adapted, value, &image) != ADAPT_OK) {
    failed(p, "no image", value);
    return;
  }
  if (schema_valid(p->shape, image)) {
    if (adapt_reverse(p->adapted, image, &back) != ADAPT_OK)
      failed(p, "the image does not come back", value);
    else if (!schema_valid(p->canonical, back) && !has_change(p, NULL, true))
      failed(p, "what comes back is not valid", value);
    else if (!equal(back, value) && !has_change(p, NULL, true))
      failed(p, "what comes back is another value", value);
  } else if (!has_change(p, NULL, true)) {
    failed(p, "the image is not valid", value);
  }
}

/* A value of the adapted schema: back. */
static void try_answer(struct pair *p, const json_t *answer) {
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  json_auto_t *back = NULL;
  p->run->answers++;
  if (adapt_reverse(p->adapted, answer, &back) != ADAPT_OK) {
    failed(p, "the answer cannot be turned back", answer);
    return;
  }
  if (schema_check(p->canonical, back, &errors) == SCHEMA_INVALID)
    for (size_t i = 0; i < errors.count; i++)
      if (!reported(p, &errors.items[i])) {
        failed(p, errors.items[i].schema_path, answer);
        break;
      }
}

static void random_values(struct pair *p, unsigned count, uint64_t seed) {
  struct schema_random from = {p->doc, seed, 0}, to = {adapted_schema(p->adapted), seed, 0};
  unsigned values = 0, answers = 0;
  for (unsigned i = 0; i < count * 20 && values < count; i++) {
    json_auto_t *value = schema_random_value(&from, p->doc);
    if (schema_valid(p->canonical, value)) {
      values++;
      try_value(p, value);
    }
  }
  for (unsigned i = 0; i < count * 20 && answers < count && !p->run->there_and_back; i++) {
    json_auto_t *answer = schema_random_value(&to, adapted_schema(p->adapted));
    if (schema_valid(p->shape, answer)) {
      answers++;
      try_answer(p, answer);
    }
  }
  if (count > 500 && (values < count || answers < count))
    failed(p, "too few of the random values were valid", NULL);
}

/* False: refused. */
static bool pair_open(struct pair *p) {
  const struct schema_opts schema_opts = {.registry = p->run->registry,
                                          .default_draft = p->run->draft};
  const struct adapt_opts opts = {.registry = p->run->registry, .default_draft = p->run->draft};
  struct adapt_error error;
  char place[400];
  p->adapted = adapt(p->doc, p->dialect, &opts, &error);
  p->run->kinds[error.status]++;
  if (!p->adapted) {
    p->run->refused++;
    if (error.status == ADAPT_OK || !error.message[0] ||
        (error.status == ADAPT_LIMIT && (!error.limit || error.found <= error.allowed)))
      failed(p, "a refusal without a reason", NULL);
    if (p->run->verbose)
      printf("%s, %s: refused: %s: %s: %s\n", p->name, p->dialect->name,
             adapt_status_name(error.status), error.pointer, error.message);
    return false;
  }
  p->run->converted++;
  const char *trouble =
      adapt_subset(p->dialect->name, adapted_schema(p->adapted), place, sizeof place);
  if (trouble) {
    failed(p, trouble, NULL);
    printf("  there: %s\n", place);
  }
  p->canonical = schema_compile(p->doc, &schema_opts, NULL, NULL);
  /* where a schema is passed on as it is, it is still of its own draft */
  const char *draft = json_string_value(json_object_get(p->doc, "$schema"));
  struct schema_opts shape_opts = {.registry = p->run->registry,
                                   .default_draft = draft ? draft : p->run->draft};
  if (!strcmp(p->dialect->name, "claude"))
    shape_opts.default_draft = "http://json-schema.org/draft-07/schema#";
  bool whole = strstr(" claude qwen opencode ", p->dialect->name) != NULL;
  p->shape = schema_compile(adapted_schema(p->adapted), whole ? &shape_opts : NULL, NULL, NULL);
  if (!p->canonical || !p->shape || test_made_wrong())
    failed(p, "the adapted schema does not compile", NULL);
  return p->canonical && p->shape;
}

static void pair_close(struct pair *p) {
  schema_free(p->canonical);
  schema_free(p->shape);
  adapted_free(p->adapted);
}

/* In every dialect; `values` may be NULL, those that are not valid are passed over. */
static void run_schema(struct run *run, const char *name, const json_t *doc, const json_t *values,
                       unsigned count) {
  const struct adapt_dialect *dialect;
  for (size_t i = 0; (dialect = adapt_dialect_at(i)); i++) {
    AUTO(pair_close) struct pair p = {.run = run, .name = name, .doc = doc, .dialect = dialect};
    if (pair_open(&p)) {
      JSON_EACH(values, k, value) {
        if (schema_valid(p.canonical, value))
          try_value(&p, value);
      }
      random_values(&p, count, 1 + i);
    }
  }
}

/* --- where schemas are --- */

static void run_suite_file(struct run *run, const char *path, const char *name) {
  json_auto_t *groups = suite_load(path);
  JSON_EACH(groups, i, group) {
    char title[400];
    json_auto_t *values = json_array();
    const char *description = json_string_value(json_object_get(group, "description"));
    snprintf(title, sizeof title, "%s: %s", name, description ? description : "");
    JSON_EACH(json_object_get(group, "tests"), k, test)
      json_array_append(values, json_object_get(test, "data"));
    run_schema(run, title, json_object_get(group, "schema"), values, 5);
  }
}

static void report(const char *what, struct run *run) {
  printf("%-14s converted %u, refused %u (invalid %u, unsupported %u, limit %u, too complex %u), "
         "images %u, answers %u, failures %u\n",
         what, run->converted, run->refused, run->kinds[ADAPT_INVALID_SCHEMA],
         run->kinds[ADAPT_UNSUPPORTED], run->kinds[ADAPT_LIMIT], run->kinds[ADAPT_TOO_COMPLEX],
         run->images, run->answers, run->failures);
  unsigned failures = run->failures;
  bool verbose = run->verbose;
  *run = (struct run){.verbose = verbose, .failures = failures};
}

static void run_suite(struct run *run, const char *shared) {
  static const struct {
    const char *folder, *uri;
  } drafts[] = {{"draft2020-12", NULL},
                {"draft2019-09", "https://json-schema.org/draft/2019-09/schema"},
                {"draft7", "http://json-schema.org/draft-07/schema#"}};
  char path[4096];
  struct schema_registry *registry = schema_registry_new();
  if (!registry)
    exit(2);
  snprintf(path, sizeof path, "%s/json-schema-test-suite/remotes", shared);
  suite_add_remotes(registry, path, "");
  for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++) {
    struct dirent **names;
    char folder[2048];
    snprintf(folder, sizeof folder, "%s/json-schema-test-suite/tests/%s", shared, drafts[i].folder);
    int n = scandir(folder, &names, NULL, alphasort);
    run->draft = drafts[i].uri;
    run->registry = registry;
    for (int k = 0; k < n; k++) {
      snprintf(path, sizeof path, "%s/%s", folder, names[k]->d_name);
      if (suite_is_json(names[k]->d_name))
        run_suite_file(run, path, names[k]->d_name);
      free(names[k]);
    }
    if (n >= 0)
      free(names);
    if (n > 0)
      report(drafts[i].folder, run);
  }
  schema_registry_free(registry);
}

static void run_bench(struct run *run, const char *shared, size_t instances) {
  static const char *const names[] = {"helm-chart-lock", "yamllint", "importmap", "dependabot",
                                      "aws-cdk",         "deno",     "cspell"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/schema-bench/%s/schema.json", shared, names[i]);
    json_auto_t *doc = suite_load(path), *values = json_array();
    snprintf(path, sizeof path, "%s/schema-bench/%s/instances.jsonl", shared, names[i]);
    FILE *file = doc ? fopen(path, "r") : NULL;
    while (file && json_array_size(values) < instances) {
      json_t *value = json_loadf(file, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, NULL);
      if (!value)
        break;
      json_array_append_new(values, value);
    }
    if (file)
      fclose(file);
    if (doc) {
      run_schema(run, names[i], doc, values, 10);
      report(names[i], run);
    }
  }
}

static void run_presets(struct run *run, const char *folder, unsigned count) {
  struct dirent **names;
  char path[4096];
  int n = scandir(folder, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
    json_auto_t *doc = suite_is_json(names[i]->d_name) ? suite_load(path) : NULL;
    if (doc) {
      run_schema(run, names[i]->d_name, doc, NULL, count);
      report(names[i]->d_name, run);
    }
    free(names[i]);
  }
  if (n >= 0)
    free(names);
  if (n <= 0) {
    printf("no schemas in %s\n", folder);
    run->failures++;
  }
}

/* --- random schemas --- */

static json_t *random_schema(struct schema_random *r, unsigned depth);

static json_t *random_object(struct schema_random *r, unsigned depth) {
  static const char *const names[] = {"kind", "a", "b c", "d", "n1"};
  json_t *o = json_pack("{ss s{} s[]}", "type", "object", "properties", "required");
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    if (schema_random_below(r, 2))
      continue;
    json_object_set_new(json_object_get(o, "properties"), names[i], random_schema(r, depth - 1));
    if (schema_random_below(r, 2))
      json_array_append_new(json_object_get(o, "required"), json_string(names[i]));
  }
  unsigned rest = schema_random_below(r, 4);
  json_object_set_new(o, "additionalProperties",
                      rest == 1 ? random_schema(r, depth - 1) : json_boolean(rest == 0));
  if (rest == 2)
    json_object_set_new(o, "patternProperties",
                        json_pack("{so}", "^x[0-9]$", random_schema(r, depth - 1)));
  return o;
}

static json_t *random_array(struct schema_random *r, unsigned depth) {
  json_t *o = json_pack("{ss}", "type", "array");
  json_int_t least = schema_random_below(r, 3);
  if (schema_random_below(r, 3) == 0)
    json_object_set_new(
        o, "prefixItems",
        json_pack("[oo]", random_schema(r, depth - 1), random_schema(r, depth - 1)));
  bool listed = schema_random_below(r, 4) > 0;
  json_t *items = listed ? random_schema(r, depth - 1) : json_boolean(schema_random_below(r, 2));
  json_object_set_new(o, "items", items);
  if (schema_random_below(r, 2))
    json_object_set_new(o, "minItems", json_integer(least));
  if (schema_random_below(r, 2))
    json_object_set_new(o, "maxItems", json_integer(least + 2));
  return o;
}

/* A kind of its own in each alternative, and at times one that overlaps. */
static json_t *random_alternatives(struct schema_random *r, unsigned depth) {
  static const char *const kinds[] = {"x", "y", "z"};
  json_t *list = json_array();
  for (size_t i = 0; i < 2 + schema_random_below(r, 2); i++) {
    json_t *one = random_object(r, depth);
    json_object_set_new(json_object_get(one, "properties"), "kind",
                        json_pack("{ss}", "const", kinds[i]));
    json_object_set_new(one, "required", json_pack("[s]", "kind"));
    json_array_append_new(list, one);
  }
  if (schema_random_below(r, 3) == 0)
    json_array_append_new(list, random_schema(r, depth - 1));
  return json_pack("{so}", schema_random_below(r, 2) ? "anyOf" : "oneOf", list);
}

static json_t *random_schema(struct schema_random *r, unsigned depth) {
  static const char *const leaves[] = {"{'type':'string'}",
                                       "{'type':'string','minLength':1,'maxLength':5}",
                                       "{'type':'string','pattern':'^[a-z]{2}-[0-9]+$'}",
                                       "{'type':'string','format':'date'}",
                                       "{'type':'string','pattern':'^(?!b)[a-c]+$'}",
                                       "{'type':['string','null']}",
                                       "{'type':'integer','minimum':-3,'maximum':20}",
                                       "{'type':'integer','multipleOf':5}",
                                       "{'type':'number','minimum':0.5}",
                                       "{'type':'number','exclusiveMaximum':9}",
                                       "{'type':'boolean'}",
                                       "{'type':'null'}",
                                       "{'enum':['a','b',3,null]}",
                                       "{'enum':[[1],{'k':2}]}",
                                       "{'const':'only'}",
                                       "{'$ref':'#/$defs/node'}",
                                       "{'anyOf':[{'type':'integer'},{'type':'string'}]}",
                                       "true"};
  unsigned kind = depth > 0 ? schema_random_below(r, 8) : 0;
  if (kind > 5)
    return random_object(r, depth);
  if (kind > 3)
    return kind == 4 ? random_array(r, depth) : random_alternatives(r, depth);
  char text[120];
  snprintf(text, sizeof text, "%s", leaves[schema_random_below(r, ARRAY_LEN(leaves))]);
  for (char *c = text; (c = strchr(c, '\'')) != NULL;)
    *c = '"';
  return json_loads(text, JSON_DECODE_ANY, NULL);
}

/* The grammar takes what is valid. */
static void try_grammar(struct run *run, const json_t *doc, uint64_t seed) {
  struct pair p = {.run = run, .name = "random", .doc = doc, .dialect = adapt_dialect_at(0)};
  AUTO(gbnf_result_deinit) struct gbnf_result made = {0};
  struct schema_random r = {.root = doc, .seed = seed};
  struct schema *canonical = schema_compile(doc, NULL, NULL, NULL);
  char error[160] = "";
  enum gbnf_status status = gbnf_convert(doc, NULL, &made);
  struct grammar *g = status == GBNF_OK ? grammar_new(made.text, error) : NULL;
  if (canonical == NULL || (g == NULL && status != GBNF_UNSATISFIABLE))
    failed(&p, made.refusal ? made.refusal : error, NULL);
  for (int i = 0; g != NULL && canonical != NULL && i < 8; i++) {
    json_auto_t *value = schema_random_value(&r, doc);
    char_auto_t *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    if (text != NULL && schema_valid(canonical, value) && !grammar_match(g, text, strlen(text)))
      failed(&p, "the grammar refuses", value);
  }
  if (g != NULL) {
    uint64_t from = seed;
    for (int i = 0; canonical != NULL && made.note_count == 0 && i < 4; i++) {
      size_t n = 0;
      char_auto_t *text = grammar_derive(g, &from, 100, &n);
      json_auto_t *value = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
      if (value != NULL && !schema_valid(canonical, value))
        failed(&p, "the grammar takes", value);
    }
    grammar_free(g);
  }
  schema_free(canonical);
}

static void run_random(struct run *run, uint64_t seed, unsigned count) {
  run->there_and_back = true;
  for (unsigned i = 0; i < count; i++) {
    struct schema_random r = {.seed = seed + i};
    json_t *doc = random_object(&r, 3), *node = random_object(&r, 1);
    json_object_set_new(doc, "$defs", json_pack("{so}", "node", node));
    char name[40];
    snprintf(name, sizeof name, "random %llu", (unsigned long long)(seed + i));
    run_schema(run, name, doc, NULL, 8);
    try_grammar(run, doc, seed + i);
    json_decref(doc);
  }
  report("random", run);
}

int main(int argc, char **argv) {
  bool extended = getenv("SEGUE_LONG") != NULL;
  struct run run = {.verbose = argc > 1 && !strcmp(argv[1], "-v")};
  const char *shared = getenv("SEGUE_SHARED");
  char data[1024];
  run_presets(&run, SEGUE_SOURCE_DIR "/tests/data/adapt/presets", extended ? 10000 : 1000);
  const char *seed = getenv("SEGUE_SEED");
  run_random(&run, seed ? strtoull(seed, NULL, 10) : 1, extended ? 1000 : 60);
  if (shared)
    snprintf(data, sizeof data, "%s/data", shared);
  else
    snprintf(data, sizeof data, "%s", SEGUE_SOURCE_DIR "/../shared/data");
  DIR *dir = opendir(data);
  if (dir) {
    closedir(dir);
    run_suite(&run, data);
    run_bench(&run, data, extended ? 400 : 40);
  } else {
    printf("skipped: no test suite and no benchmark here\n");
  }
  if (run.failures)
    printf("FAILED: %u\n", run.failures);
  return run.failures != 0;
}
