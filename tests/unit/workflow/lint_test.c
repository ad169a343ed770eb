/* Lint: every data file, and documents that no file could have made. */
#include "workflow/load.h"

#include "core/workflow.h"

#include "support/test.h"
#include "support/workflow_data.h"

static const struct capability providers[] = {
    {.name = "script",
     .summary = "takes all",
     .options = OPTION_ALL,
     .can_judge = true,
     .takes_model = true,
     .sessions = true,
     .structured = "prompt"},
    {.name = "command", .summary = "a program", .structured = "none"},
    {.name = "agent",
     .summary = "takes effort only",
     .options = OPTION_EFFORT,
     .can_judge = true,
     .takes_model = true,
     .sessions = true,
     .structured = "native"},
    {.name = "mute",
     .summary = "cannot judge",
     .options = OPTION_ALL,
     .takes_model = true,
     .structured = "none"},
    {.name = "plain", .summary = "takes no option", .can_judge = true, .structured = "none"},
    {0},
};

static void lint_one(const char *path, struct buf *out) {
  AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0};
  struct workflow_marks *marks = NULL;
  const struct workflow_source source = {.path = path, .named_by_user = true};
  const struct lint_env env = {.providers = providers, .provider = STR("")};
  json_auto_t *doc = workflow_load_marked(&source, &errors, &marks);
  if (doc != NULL) {
    workflow_lint(doc, marks, &env, &errors, &warnings);
    struct err err = {0};
    struct workflow *wf = workflow_build(doc, &err);
    if (wf == NULL && errors.count == 0)
      fail_msg("%s has no error and cannot be built: %s", path, err.text);
    workflow_unref(wf);
  }
  list_errors(&errors, "error: ", out);
  list_errors(&warnings, "warning: ", out);
  workflow_marks_free(marks);
}

TEST(files_are_linted_as_expected) {
  assert_int_equal(run_workflow_data("lint", lint_one), 0);
}

TEST(any_document_is_safe) {
  static const char *const docs[] = {
      "{}",
      "[]",
      "null",
      "{\"movements\": 1}",
      "{\"movements\": [1, null, {}]}",
      "{\"movements\": [{\"name\": 1, \"rules\": [1, {}, {\"condition\": 1, \"next\": []}]}]}",
      "{\"movements\": [{\"name\": \"a\", \"rules\": {}, \"judge\": 1, \"options\": []}], "
      "\"judge\": [], \"provider\": 3, \"initial_movement\": \"b\"}",
      "{\"movements\": [{\"name\": \"a\", \"command\": 1, \"rules\": [{\"condition\": "
      "\"when(\"}]}]}",
  };
  const struct lint_env env = {.providers = providers, .provider = STR("script")};
  for (size_t i = 0; i < ARRAY_LEN(docs); i++) {
    AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0};
    json_auto_t *doc = json_loads(docs[i], JSON_DECODE_ANY, NULL);
    assert_non_null(doc);
    workflow_lint(doc, NULL, &env, &errors, &warnings);
  }
}
