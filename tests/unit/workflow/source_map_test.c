/* Paths of a document's values, and where they stand in its file. */
#include "workflow/source_map.h"

#include "base/limits.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

static const char text[] = "name: two\n"
                           "initial_step: b\n"
                           "judge: {provider: x}\n"
                           "steps:\n"
                           "  - name: a\n"
                           "  - name: b\n"
                           "    rules:\n"
                           "      - condition: done\n"
                           "        next: c\n";

TEST(paths_lead_to_places) {
  struct workflow_marks marks = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  int line, column;
  marks.root = yaml_parse(&marks.arena, "f", STR(text), LIMIT_WORKFLOW_BYTES, &errors);
  assert_non_null(marks.root);
  DATA_ROWS("workflow/source_map/paths_lead_to_places.yaml", c, path, line, column) {
    source_map_place(&marks, c.path, &line, &column);
    if (line != (int)data_number(c.line) || column != (int)data_number(c.column))
      fail_msg("%s: %d:%d", c.path, line, column);
  }
  source_map_place(NULL, "name", &line, &column);
  assert_int_equal(line, 0);
  arena_deinit(&marks.arena);
}

TEST(paths_are_put_together) {
  char path[DOC_PATH_BYTES], wide[2 * DOC_PATH_BYTES];
  doc_path_member(path, "", "judge");
  assert_string_equal(path, "judge");
  doc_path_member(path, path, "provider");
  assert_string_equal(path, "judge.provider");
  doc_path_member(path, path, "");
  assert_string_equal(path, "judge.provider");
  doc_path_item(path, "movements", 120);
  doc_path_member(path, path, "rules");
  doc_path_item(path, path, 0);
  assert_string_equal(path, "movements[120].rules[0]");
  memset(wide, 'x', sizeof wide);
  wide[sizeof wide - 1] = '\0';
  doc_path_member(path, path, wide);
  assert_int_equal(strlen(path), DOC_PATH_BYTES - 1);
  assert_memory_equal(path, "movements[120].rules[0].xxx", 27);
  doc_path_item(path, path, 7);
  assert_int_equal(strlen(path), DOC_PATH_BYTES - 1);
}
