/* Any bytes as what a check prints, and as its command and the text of its files: counts are never
 * negative and never fall against themselves, and files are marked once. Before the first NUL the
 * command, after it the output. */
#include "evidence/check_files.h"
#include "evidence/counts.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_same(void *ctx, const struct file_listing *l, const size_t *which, size_t n,
                      struct buf *texts) {
  (void)l;
  for (size_t i = 0; i < n; i++)
    buf_str(&texts[i], which[i] % 3 == 2 ? STR("#!/bin/sh") : *(const struct str *)ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const paths[] = {"Makefile", "tests/a.c", "ci/run.sh",    "ci/steps",
                                      "src/a.c",  "bin/tool",  "package.json", "docs/limits.txt"};
  AUTO(listing_deinit) struct file_listing l = {0};
  buf_auto_t command = {0}, told = {0};
  struct check_counts counts;
  enum check_file why[ARRAY_LEN(paths)];
  struct str text = {(const char *)data, size}, first = text;
  const char *end = size > 0 ? memchr(data, '\0', size) : NULL;
  if (end != NULL) {
    first.n = (size_t)(end - first.p);
    text = (struct str){end + 1, size - first.n - 1};
  }
  counts_find(text, &counts);
  if (counts.tests.passed < 0 || counts.tests.failed < 0 || counts.tests.skipped < 0 ||
      counts_compare(&counts, &counts) != COUNTS_HOLD)
    abort();
  counts_put(&counts, &told);
  buf_str(&command, first);
  for (size_t i = 0; i < ARRAY_LEN(paths); i++)
    listing_add(&l, str_from(paths[i]), "100644", STR("12"), (long)text.n);
  const struct check_files_spec spec = {.command = buf_c(&command), .folder = "ci"};
  check_files_find(&spec, &l, read_same, &text, why);
  if (why[1] != CHECK_FILE_USUAL)
    abort();
  (void)check_files_missed(&spec, &l, text);
  return 0;
}
