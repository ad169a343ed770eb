/* Paths of a document's values, and where they stand in its file. */
#include "workflow/source_map.h"

#include "base/limits.h"
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

static const struct {
  const char *path;
  int line, column;
} places[] = {
    {"", 1, 1},
    {"name", 1, 7},
    {"initial_movement", 2, 15}, /* another name of it stands there */
    {"judge.provider", 3, 19},
    {"movements", 5, 3},
    {"movements[1].rules[0].next", 9, 15},
    {"movements[1].rules", 8, 7},
    {"movements[2]", 0, 0},
    {"movements[0].rules[0]", 0, 0},
    {"movements.name", 0, 0},
    {"name.name", 0, 0},
    {"name[0]", 0, 0},
    {"judge.model", 0, 0},
    {"nothing", 0, 0},
};

TEST(paths_lead_to_places) {
  struct workflow_marks marks = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  int line, column;
  marks.root = yaml_parse(&marks.arena, "f", STR(text), LIMIT_WORKFLOW_BYTES, &errors);
  assert_non_null(marks.root);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    source_map_place(&marks, places[i].path, &line, &column);
    if (line != places[i].line || column != places[i].column)
      fail_msg("%s: %d:%d", places[i].path, line, column);
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
