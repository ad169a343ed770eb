/* workflow_data.h - runs a function on every file of tests/data/workflows/FOLDER and compares its
 * answer with NAME.expect beside it. SEGUE_UPDATE=1 writes the answers instead: read the diff. */
#ifndef SEGUE_TESTS_WORKFLOW_DATA_H
#define SEGUE_TESTS_WORKFLOW_DATA_H

#include "base/buf.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKFLOW_DATA SEGUE_SOURCE_DIR "/tests/data/workflows"

static int is_workflow(const struct dirent *entry) {
  const char *end = strrchr(entry->d_name, '.');
  return end && (strcmp(end, ".yaml") == 0 || strcmp(end, ".json") == 0);
}

static void list_errors(const struct err_list *list, const char *severity, struct buf *out) {
  for (size_t i = 0; i < list->count; i++)
    buf_printf(out, "%d:%d: %s%s\n", list->items[i].line, list->items[i].column, severity,
               list->items[i].text);
}

/* The messages name the folder of the data where they name a folder: the same everywhere. */
static void hide_folder(struct buf *b) {
  const char *at;
  while ((at = strstr(buf_c(b), WORKFLOW_DATA)) != NULL) {
    size_t from = (size_t)(at - b->p), n = strlen(WORKFLOW_DATA);
    memmove(b->p + from, b->p + from + n, b->n - from - n + 1);
    b->n -= n;
  }
}

/* Returns the number of cases whose answer was another; says which. */
static int run_workflow_data(const char *folder, void (*run)(const char *path, struct buf *out)) {
  char path[1024], expect[1024];
  struct dirent **entries;
  int wrong = 0;
  print_into(path, sizeof path, "%s/%s", WORKFLOW_DATA, folder);
  int n = scandir(path, &entries, is_workflow, alphasort);
  assert_true(n > 0);
  for (int i = 0; i < n; i++) {
    buf_auto_t got = {0}, want = {0};
    struct err err = {0};
    print_into(path, sizeof path, "%s/%s/%s", WORKFLOW_DATA, folder, entries[i]->d_name);
    print_into(expect, sizeof expect, "%.1000s", path);
    memcpy(strrchr(expect, '.'), ".expect", sizeof ".expect");
    run(path, &got);
    hide_folder(&got);
    if (getenv("SEGUE_UPDATE")) {
      FILE *f = fopen(expect, "w");
      assert_non_null(f);
      fwrite(buf_c(&got), 1, got.n, f);
      assert_int_equal(fclose(f), 0);
    } else if (!file_read(expect, 1 << 20, &want, &err) ||
               !str_eq(buf_view(&got), buf_view(&want))) {
      fprintf(stderr, "%s\n--- expected\n%s--- got\n%s", path, buf_c(&want), buf_c(&got));
      wrong++;
    }
    free(entries[i]);
  }
  free(entries);
  return wrong;
}

#endif
