/* cases.h - a folder of YAML files, each a list of cases: a new case needs no C.
 *
 * What is wrong with a case is said with `complain`, and the test fails once, after the last
 * one. */
#ifndef SEGUE_TESTS_CASES_H
#define SEGUE_TESTS_CASES_H

#include "format/json_object.h"
#include "support/data.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static struct buf complaints;
static char case_name[256]; /* FILE[INDEX] "NAME" */

static inline void complain(const char *fmt, ...) PRINTF_LIKE(1, 2);
static inline void complain(const char *fmt, ...) {
  char line[2048];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  buf_printf(&complaints, "  %s: %s\n", case_name, line);
}

/* known: NULL-ended. */
static inline void check_keys(const json_t *object, const char *const *known) {
  JSON_MEMBERS(object, key, value) {
    size_t i = 0;
    while (known[i] && strcmp(known[i], key) != 0)
      i++;
    if (known[i] == NULL)
      complain("no key %s in such a case", key);
  }
}

static inline int cases_by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All cases of tests/data/FOLDER, the files in the order of their names; at least `least`. */
static inline void cases_run(const char *folder, size_t least, void (*run)(const json_t *c)) {
  char *files[64], path[1024];
  size_t n = 0, count = 0;
  print_into(path, sizeof path, SEGUE_SOURCE_DIR "/tests/data/%s", folder);
  DIR *d = opendir(path);
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    size_t length = strlen(e->d_name);
    assert_true(n < ARRAY_LEN(files));
    if (length > 5 && strcmp(e->d_name + length - 5, ".yaml") == 0)
      files[n++] = strdup(e->d_name);
  }
  closedir(d);
  qsort(files, n, sizeof *files, cases_by_name);
  for (size_t f = 0; f < n; f++) {
    print_into(path, sizeof path, SEGUE_SOURCE_DIR "/tests/data/%s/%s", folder, files[f]);
    json_t *list = data_load(path);
    assert_true(json_is_array(list));
    JSON_EACH(list, i, c) {
      struct str name = data_get(c, "name");
      print_into(case_name, sizeof case_name, "%s[%zu] \"%.*s\"", files[f], i, STR_ARG(name));
      if (name.n == 0)
        complain("a case has a name");
      run(c);
      count++;
    }
    json_decref(list);
    free(files[f]);
  }
  print_message("%zu cases in %zu files\n", count, n);
  assert_true(count >= least);
  if (complaints.n > 0) {
    (void)fputs(complaints.p, stderr); /* whole: print_error cuts it */
    buf_deinit(&complaints);
    fail_msg("some cases came out otherwise");
  }
}

#endif
