/* Reads a corpus of extraction cases (NDJSON: id, text, want, schema) from argv[1], extracts with
 * repair on, and writes
 * {"id","value"} lines to stdout for score.py. With --strict repair stays off. A value that does
 * not pass the case's schema counts as nothing. */
#include "extract_check.h"
#include "structured/extract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* by our own scanner: the corpus holds numbers that jansson's reader refuses */
static json_t *load_line(const char *line, size_t n) {
  struct extract_opts opts = {.want = EXTRACT_WANT_OBJECT};
  struct extract_result r;
  json_t *v = extract(line, n, &opts, &r) == EXTRACT_OK ? json_incref(r.value) : NULL;
  extract_result_deinit(&r);
  return v;
}

int main(int argc, char **argv) {
  bool repair = true, verbose = false;
  const char *path = NULL;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--strict"))
      repair = false;
    else if (!strcmp(argv[i], "--verbose"))
      verbose = true;
    else
      path = argv[i];
  FILE *in = path ? fopen(path, "r") : NULL;
  if (!in) {
    fprintf(stderr, "usage: extract_score [--strict] [--verbose] CORPUS.ndjson\n");
    return 2;
  }
  char *line = NULL;
  size_t size = 0;
  ssize_t len;
  while ((len = getline(&line, &size, in)) > 0) {
    json_t *c = load_line(line, (size_t)len);
    if (!c)
      continue;
    const json_t *text = json_object_get(c, "text");
    json_t *schema = json_object_get(c, "schema");
    struct extract_check check = {schema, extract_check_valid, extract_check_nearness,
                                  extract_check_echo};
    struct extract_opts opts = {.repair = repair, .check = json_is_object(schema) ? &check : NULL};
    const char *want = json_string_value(json_object_get(c, "want"));
    if (want)
      (void)extract_want_parse(want, &opts.want);
    struct extract_result r;
    enum extract_status st = extract(json_string_value(text), json_string_length(text), &opts, &r);
    json_t *p = json_object();
    json_object_set(p, "id", json_object_get(c, "id"));
    json_object_set_new(p, "value",
                        st == EXTRACT_OK && r.valid ? json_incref(r.value) : json_null());
    if (verbose) {
      json_object_set_new(p, "stage", json_string(extract_stage_name(r.stage)));
      json_object_set_new(p, "error", json_string(r.error.message));
      json_object_set_new(p, "truncated", json_boolean(r.truncated));
      json_t *repairs = json_array();
      for (size_t i = 0; i < r.repairs_listed; i++)
        json_array_append_new(repairs, json_string(r.repairs[i].name));
      json_object_set_new(p, "repairs", repairs);
    }
    char *dump = json_dumps(p, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (dump)
      puts(dump);
    free(dump);
    json_decref(p);
    json_decref(c);
    extract_result_deinit(&r);
  }
  free(line);
  fclose(in);
  return 0;
}
