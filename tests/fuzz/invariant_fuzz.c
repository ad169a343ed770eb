/* A line with a list of invariants, a line with a value, and the rest as what a command printed:
 * compiled, checked, reported; the list's texts also as places. */
#include "base/err.h"
#include "structured/invariant.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_errors(const struct schema_errors *errs) {
  for (size_t i = 0; i < errs->count; i++) {
    json_t *path = json_string(errs->items[i].path), *message = json_string(errs->items[i].message);
    if (path == NULL || message == NULL || errs->items[i].path[0] != '$')
      abort(); /* not UTF-8: no record could hold it */
    json_decref(path);
    json_decref(message);
  }
}

static void run(const struct invariants *invariants, const json_t *value, const char *out,
                size_t n) {
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  enum schema_status status = invariants_check(invariants, value, &errs);
  if (status != invariants_check(invariants, value, NULL) ||
      (status == SCHEMA_OK) != (errs.count == 0))
    abort();
  for (size_t i = 0; i < invariants_count(invariants); i++) {
    const struct invariant *is = invariants_get(invariants, i);
    const struct invariant_output output = {(int)(n % 2), out, out, n, n};
    size_t before = errs.count + errs.dropped;
    status = invariant_command_result(is, value, &output, &errs);
    if ((status == SCHEMA_OK) != (n % 2 == 0) ||
        (before == 0 && (status == SCHEMA_OK) != (errs.count == 0)))
      abort();
    invariant_report(is, value, out, n, &errs);
  }
  check_errors(&errs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data, *first = size ? memchr(text, '\n', size) : NULL;
  size_t n = first ? (size_t)(first - text) : size, m = 0;
  const char *second = NULL;
  if (first) {
    m = size - n - 1;
    second = memchr(first + 1, '\n', m);
    m = second ? (size_t)(second - first - 1) : m;
  }
  json_auto_t *list = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
  json_auto_t *value =
      first ? json_loadb(first + 1, m, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : json_null();
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  enum schema_status status;
  char *path, *pointer;
  invariant_place(text, n, value, &path, &pointer);
  if (path[0] != '$' || (pointer[0] != '/' && pointer[0] != '\0'))
    abort();
  free(path);
  free(pointer);
  if (list == NULL || value == NULL)
    return 0;
  struct invariants *invariants = invariants_compile(list, &errs, &status);
  if ((invariants != NULL) != (status == SCHEMA_OK) || (errs.count == 0) != (status == SCHEMA_OK))
    abort();
  check_errors(&errs);
  if (invariants)
    run(invariants, value, second ? second + 1 : "", second ? size - n - m - 2 : 0);
  invariants_free(invariants);
  return 0;
}
