/* Nanoseconds per validation: the judgment schema against a hand-written jansson walk in the same
 * run, and the seven schemas of data/schema-bench (in $SEGUE_SHARED, or ../shared beside the
 * sources) against ajv, where node is there and ajv is in $SEGUE_AJV/node_modules or npm can fetch
 * it. */
#include "structured/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, JUDGMENTS = 1000 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double lower(double a, double b) {
  return a < b ? a : b;
}

/* The n-th root, by halving: the bench needs no libm. */
static double root(double x, size_t n) {
  double low = 0, high = x > 1 ? x : 1;
  for (int i = 0; i < 100; i++) {
    double middle = (low + high) / 2, power = 1;
    for (size_t k = 0; k < n; k++)
      power *= middle;
    if (power < x)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static const char judgment_schema[] =
    "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":\"integer\",\"enum\":[0,1,2]},"
    "\"reason\":{\"type\":\"string\"}},\"required\":[\"step\",\"reason\"],"
    "\"additionalProperties\":false}";

/* What one would write by hand for that schema. */
static bool judgment_walk(const json_t *value) {
  bool step = false, reason = false;
  const char *key;
  json_t *member;
  if (!json_is_object(value))
    return false;
  json_object_foreach((json_t *)value, key, member) {
    if (!strcmp(key, "step")) {
      if (!json_is_integer(member) || json_integer_value(member) < 0 ||
          json_integer_value(member) > 2)
        return false;
      step = true;
    } else if (!strcmp(key, "reason")) {
      if (!json_is_string(member))
        return false;
      reason = true;
    } else {
      return false;
    }
  }
  return step && reason;
}

struct set {
  json_t **items;
  size_t count;
};

static void set_free(struct set *set) {
  for (size_t i = 0; i < set->count; i++)
    json_decref(set->items[i]);
  free(set->items);
}

/* Best of some rounds, each long enough to be measured: ns for one value. */
static double time_schema(const struct schema *schema, const struct set *set, size_t *bad) {
  double best = 1e18;
  for (int round = 0; round < ROUNDS; round++) {
    size_t n = 0;
    double start = now_ns(), end = start;
    *bad = 0;
    while (end - start < 3e7) {
      for (size_t i = 0; i < set->count; i++)
        *bad += !schema_valid(schema, set->items[i]);
      n += set->count;
      end = now_ns();
    }
    *bad = *bad * set->count / n;
    best = lower(best, (end - start) / (double)n);
  }
  return best;
}

static double time_walk(const struct set *set) {
  double best = 1e18;
  size_t good = 0;
  for (int round = 0; round < ROUNDS; round++) {
    size_t n = 0;
    double start = now_ns(), end = start;
    while (end - start < 3e7) {
      for (size_t i = 0; i < set->count; i++)
        good += judgment_walk(set->items[i]);
      n += set->count;
      end = now_ns();
    }
    best = lower(best, (end - start) / (double)n);
  }
  return good ? best : 0;
}

static void bench_judgment(void) {
  struct set set = {calloc(JUDGMENTS, sizeof(json_t *)), JUDGMENTS};
  size_t bad;
  for (int i = 0; i < JUDGMENTS; i++)
    set.items[i] =
        json_pack("{s:i,s:s}", "step", i % 3, "reason", "the tests pass and nothing is left");
  json_t *doc = json_loads(judgment_schema, 0, NULL);
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  double walk = time_walk(&set), ours = time_schema(schema, &set, &bad);
  printf(
      "judgment: schema_valid %.1f ns, hand-written walk %.1f ns: %.2f times (goal 2.5), %zu bad\n",
      ours, walk, ours / walk, bad);
  schema_free(schema);
  json_decref(doc);
  set_free(&set);
}

static bool load_set(const char *folder, const char *name, struct set *set) {
  char path[2048];
  size_t capacity = 0, size = 0;
  char *line = NULL;
  snprintf(path, sizeof path, "%s/%s/instances.jsonl", folder, name);
  FILE *file = fopen(path, "r");
  *set = (struct set){0};
  while (file && getline(&line, &size, file) > 0) {
    json_t *value = json_loads(line, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!value)
      continue;
    if (set->count == capacity) {
      capacity = capacity ? capacity * 2 : 64;
      set->items = realloc(set->items, capacity * sizeof *set->items);
    }
    set->items[set->count++] = value;
  }
  free(line);
  if (file)
    fclose(file);
  return set->count > 0;
}

static const char *const names[] = {"yamllint",   "aws-cdk", "helm-chart-lock", "importmap",
                                    "dependabot", "deno",    "cspell"};
enum { NAMES = sizeof names / sizeof *names };

static const char ajv_script[] =
    "const fs=require('fs');let A;try{A=require('ajv')}catch(e){process.exit(3)}\n"
    "for(const name of process.argv.slice(2)){const d=process.argv[1]+'/'+name;\n"
    "const s=JSON.parse(fs.readFileSync(d+'/schema.json','utf8'));\n"
    "const v=new (A.default||A)({strict:false,validateFormats:false,logger:false}).compile(s);\n"
    "const "
    "x=fs.readFileSync(d+'/"
    "instances.jsonl','utf8').split('\\n').filter(l=>l).map(l=>JSON.parse(l));\n"
    "let best=1e18;for(let r=0;r<9;r++){let n=0;const t=process.hrtime.bigint();let e=t;\n"
    "while(e-t<50000000n){for(const i of x)v(i);n+=x.length;e=process.hrtime.bigint()}\n"
    "best=Math.min(best,Number(e-t)/n)}\n"
    "console.log(name,best)}\n";

/* ns of ajv for each name, 0 where unknown. */
static void run_ajv(const char *folder, double *ns) {
  const char *home = getenv("SEGUE_AJV");
  char command[16384], fetched[] = "/tmp/segue-ajv-XXXXXX";
  if (!home) {
    if (system("command -v npm >/dev/null 2>&1") != 0 || !mkdtemp(fetched))
      return;
    snprintf(command, sizeof command,
             "npm install --silent --no-audit --no-fund --prefix %s ajv@8 >/dev/null 2>&1",
             fetched);
    if (system(command) != 0)
      printf("ajv: npm could not fetch it\n");
  }
  int n = snprintf(command, sizeof command,
                   "NODE_PATH='%s/node_modules' node -e \"$SEGUE_AJV_SCRIPT\" '%s'",
                   home ? home : fetched, folder);
  for (size_t i = 0; i < NAMES; i++)
    n += snprintf(command + n, sizeof command - (size_t)n, " %s", names[i]);
  setenv("SEGUE_AJV_SCRIPT", ajv_script, 1);
  FILE *pipe = popen(command, "r");
  char name[64];
  double value;
  while (pipe && fscanf(pipe, "%63s %lf", name, &value) == 2)
    for (size_t i = 0; i < NAMES; i++)
      if (!strcmp(name, names[i]))
        ns[i] = value;
  if (pipe)
    pclose(pipe);
  if (!home) {
    snprintf(command, sizeof command, "rm -rf %s", fetched);
    if (system(command) != 0)
      printf("could not remove %s\n", fetched);
  }
}

static void bench_seven(const char *folder) {
  double ajv[NAMES] = {0}, product = 1;
  size_t compared = 0;
  run_ajv(folder, ajv);
  printf("%-16s %6s %12s %12s %12s %8s\n", "schema", "values", "compile us", "ns", "ajv ns",
         "ratio");
  for (size_t i = 0; i < NAMES; i++) {
    char path[2048];
    struct set set;
    struct schema_errors errors = {0};
    snprintf(path, sizeof path, "%s/%s/schema.json", folder, names[i]);
    json_t *doc = json_load_file(path, 0, NULL);
    if (!doc || !load_set(folder, names[i], &set)) {
      printf("%-16s not there\n", names[i]);
      json_decref(doc);
      continue;
    }
    double start = now_ns();
    struct schema *schema = schema_compile(doc, NULL, &errors, NULL);
    double compile = now_ns() - start;
    if (!schema) {
      printf("%-16s %s: %s\n", names[i], errors.count ? errors.items[0].path : "?",
             errors.count ? errors.items[0].message : "?");
    } else {
      size_t bad;
      double ns = time_schema(schema, &set, &bad);
      printf("%-16s %6zu %12.0f %12.0f %12.0f %8.2f%s\n", names[i], set.count, compile / 1e3, ns,
             ajv[i], ajv[i] > 0 ? ns / ajv[i] : 0, bad ? "  some are not valid!" : "");
      if (ajv[i] > 0) {
        product *= ns / ajv[i];
        compared++;
      }
    }
    schema_free(schema);
    schema_errors_deinit(&errors);
    set_free(&set);
    json_decref(doc);
  }
  if (compared)
    printf("geometric mean of %zu: %.2f times ajv (goal 3)\n", compared, root(product, compared));
}

int main(void) {
  const char *shared = getenv("SEGUE_SHARED");
  char folder[1024];
  bench_judgment();
  snprintf(folder, sizeof folder, "%s/data/schema-bench",
           shared ? shared : SEGUE_SOURCE_DIR "/../shared");
  if (access(folder, R_OK) == 0)
    bench_seven(folder);
  else
    printf("skipped: the seven schemas are not in %s\n", folder);
  return 0;
}
