/* How long a schema takes to become a grammar: of the schemas of schema-bench that are there, and of
 * made ones of about 50 KB. Processor time, best of runs. Exit status 1 if a made one takes 20 ms. */
#include "structured/gbnf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 15, WANTED_BYTES = 50 * 1024, LIMIT_MS = 20 };

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

static double best_of(const char *name, const json_t *schema) {
  double best = 1e9;
  size_t bytes = 0, notes = 0;
  const char *status = "";
  char *text = json_dumps(schema, JSON_COMPACT);
  for (int i = 0; i < RUNS; i++) {
    struct gbnf_result result;
    double from = now_ms();
    status = gbnf_status_name(gbnf_convert(schema, NULL, &result));
    double ms = now_ms() - from;
    best = ms < best ? ms : best;
    bytes = result.length;
    notes = result.note_count;
    gbnf_result_deinit(&result);
  }
  printf("%-28s %7zu B schema  %7.2f ms  %8zu B grammar  %3zu listed  %s\n", name, strlen(text),
         best, bytes, notes, status);
  free(text);
  return best;
}

/* A property for each kind of keyword, again and again. */
static json_t *made(bool open) {
  static const char *const kinds[] = {
      "{\"type\":\"string\",\"minLength\":1,\"maxLength\":200}",
      "{\"type\":\"string\",\"pattern\":\"^[a-z][a-z0-9_-]{0,30}$\"}",
      "{\"type\":\"string\",\"format\":\"date-time\"}",
      "{\"type\":\"integer\",\"minimum\":-17,\"maximum\":4711}",
      "{\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":99.5}",
      "{\"enum\":[\"red\",\"green\",\"blue\",null]}",
      "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":8}",
      "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"},\"b\":{\"type\":"
      "\"string\"}},\"required\":[\"a\"]}",
      "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":1},\"v\":{\"type\":"
      "\"string\"}},\"required\":[\"k\"]},{\"type\":\"object\",\"properties\":{\"k\":{\"const\":2},"
      "\"w\":{\"type\":\"number\"}},\"required\":[\"k\"]}]}",
      "{\"allOf\":[{\"type\":\"integer\"},{\"minimum\":3}]}"};
  json_t *root = json_pack("{s:s,s:b}", "type", "object", "additionalProperties", open);
  json_t *outer = json_object();
  size_t bytes = 0;
  for (unsigned group = 0; bytes < WANTED_BYTES; group++) {
    json_t *properties = json_object();
    char name[32];
    for (unsigned i = 0; i < 20; i++) {
      const char *kind = kinds[(group + i) % (sizeof kinds / sizeof *kinds)];
      snprintf(name, sizeof name, "field_%u_%u", group, i);
      json_object_set_new(properties, name, json_loads(kind, JSON_DECODE_ANY, NULL));
      bytes += strlen(kind) + strlen(name) + 4;
    }
    json_t *member = json_pack("{s:s,s:o,s:[s],s:b}", "type", "object", "properties", properties,
                               "required", name, "additionalProperties", open);
    snprintf(name, sizeof name, "group_%u", group);
    json_object_set_new(outer, name, member);
  }
  json_object_set_new(root, "properties", outer);
  return root;
}

int main(int argc, char **argv) {
  const char *shared = getenv("SEGUE_SHARED");
  char root[2048], path[4096];
  bool slow = false;
  if (argc > 1)
    snprintf(root, sizeof root, "%s", argv[1]);
  else
    snprintf(root, sizeof root, "%s/data/schema-bench",
             shared ? shared : SEGUE_SOURCE_DIR "/../shared");
  DIR *dir = opendir(root);
  for (struct dirent *at; dir && (at = readdir(dir));) {
    snprintf(path, sizeof path, "%s/%s/schema.json", root, at->d_name);
    json_t *schema = at->d_name[0] == '.' ? NULL : json_load_file(path, 0, NULL);
    if (schema)
      best_of(at->d_name, schema);
    json_decref(schema);
  }
  if (dir)
    closedir(dir);
  for (int open = 0; open < 2; open++) {
    json_t *schema = made(open);
    slow = best_of(open ? "made, open objects" : "made, closed objects", schema) > LIMIT_MS || slow;
    json_decref(schema);
  }
  return slow;
}
