/* Any bytes as a workflow file: parsed, checked, linted, built; errors, never more. */
#include "base/limits.h"
#include "core/workflow.h"
#include "format/yaml.h"
#include "workflow/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const struct capability providers[] = {
      {.name = "script",
       .options = OPTION_ALL,
       .can_judge = true,
       .takes_model = true,
       .sessions = true,
       .structured = "prompt"},
      {.name = "command", .structured = "none"},
      {0},
  };
  struct err err = {0};
  struct str text = {(const char *)data, size};
  json_decref(yaml_load("fuzz", text, LIMIT_WORKFLOW_BYTES, &err));
  AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0};
  struct workflow_marks *marks;
  const struct workflow_source source = {
      .path = "/nonexistent/fuzz.yaml", .text = text.p, .n = text.n, .named_by_user = true};
  const struct lint_env env = {.providers = providers, .provider = STR("script")};
  json_auto_t *doc = workflow_load_marked(&source, &errors, &marks);
  if (doc != NULL) {
    workflow_lint(doc, marks, &env, &errors, &warnings);
    workflow_unref(workflow_build(doc, &err));
  }
  workflow_marks_free(marks);
  return 0;
}
