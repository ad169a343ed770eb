/* suite.h - files of JSON-Schema-Test-Suite: loads them, registers what schemas refer to. */
#ifndef SEGUE_TESTS_SUITE_H
#define SEGUE_TESTS_SUITE_H

#include "schema/schema.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* Integers beyond 64 bits become reals. NULL: there is no such file, or it is not JSON. */
static json_t *suite_load(const char *path) {
  const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
  json_t *json = json_load_file(path, flags, NULL);
  return json ? json : json_load_file(path, flags | JSON_DECODE_INT_AS_REAL, NULL);
}

static bool suite_is_json(const char *name) {
  size_t n = strlen(name);
  return n > 5 && !strcmp(name + n - 5, ".json");
}

/* Adds the files below `remotes` under the addresses by which the suite names them. under: "". */
static void suite_add_remotes(struct schema_registry *registry, const char *remotes,
                              const char *under) {
  char path[4096];
  snprintf(path, sizeof path, "%s%s", remotes, under);
  DIR *dir = opendir(path);
  for (struct dirent *at; dir && (at = readdir(dir));) {
    char name[2048], uri[4096];
    if (at->d_name[0] == '.')
      continue;
    snprintf(name, sizeof name, "%s/%s", under, at->d_name);
    if (!suite_is_json(name)) {
      suite_add_remotes(registry, remotes, name);
      continue;
    }
    snprintf(path, sizeof path, "%s%s", remotes, name);
    snprintf(uri, sizeof uri, "http://localhost:1234%s", name);
    json_auto_t *json = suite_load(path);
    if (json)
      schema_registry_add(registry, uri, json);
  }
  if (dir)
    closedir(dir);
}

#endif
