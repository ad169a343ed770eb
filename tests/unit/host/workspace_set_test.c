/* Checks settings for worktrees, and where a task came from: outside data of files and the API. */

#include "base/limits.h"
#include "base/str.h"
#include "host/workspace_set.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

static void check(const char *text, const char *error, bool ok, const struct err *err) {
  if (ok != (error == NULL) || (!ok && strstr(err->text, error) == NULL))
    fail_msg("%s: %s", text, ok ? "accepted" : err->text);
}

TEST(settings_are_checked) {
  DATA_ROWS("host/workspace_set/settings_are_checked.yaml", c, text, all, error) {
    struct err err = {0};
    json_auto_t *set = json_loads(c.text, 0, NULL);
    check(c.text, c.error, workspace_set_check(set, data_true(c.all), &err), &err);
  }
}

TEST(sources_are_checked) {
  DATA_ROWS("host/workspace_set/sources_are_checked.yaml", c, text, all, error) {
    struct err err = {0};
    json_auto_t *source = json_loads(c.text, 0, NULL);
    check(c.text, c.error, workspace_source_check(source, &err), &err);
  }
}

TEST(lists_and_titles_are_bounded) {
  struct err err = {0};
  json_auto_t *set = json_pack("{s[]}", "copy");
  for (unsigned i = 0; i < LIMIT_WORKTREE_FILE_COUNT; i++)
    json_array_append_new(json_object_get(set, "copy"), json_string("a"));
  assert_true(workspace_set_check(set, true, &err));
  json_array_append_new(json_object_get(set, "copy"), json_string("a"));
  assert_false(workspace_set_check(set, true, &err));
  char title[LIMIT_FORGE_TITLE_BYTES + 1];
  memset(title, 't', sizeof title);
  json_auto_t *fits =
      json_pack("{sssiss#}", "kind", "pr", "number", 1, "title", title, (int)sizeof title - 1);
  json_auto_t *longer =
      json_pack("{sssiss#}", "kind", "pr", "number", 1, "title", title, (int)sizeof title);
  assert_true(workspace_source_check(fits, &err));
  assert_false(workspace_source_check(longer, &err));
  assert_non_null(strstr(err.text, "title is longer than 200 bytes"));
}
