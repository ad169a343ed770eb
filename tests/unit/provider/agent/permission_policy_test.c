/* An agent that asks is answered by permission, kind and place, never by default. */

#include "provider/agent/permission_policy.h"
#include "support/data.h"
#include "support/test.h"

static bool allows(enum permission permission, enum ask_kind kind, const char *tool,
                   const char *path) {
  json_auto_t *tools = json_pack("[s]", "Bash");
  json_auto_t *paths = path ? json_pack("[s]", path) : json_array();
  const struct permission_policy_ask ask = {.kind = kind, .tool = str_from(tool), .paths = paths};
  const struct permission_policy policy = {
      .permission = permission, .cwd = "/home/u/work", .tools = tools};
  const char *reason = "";
  bool allowed = permission_policy_allows(&ask, &policy, &reason);
  assert_true(allowed == (reason == NULL)); /* a denial says why */
  return allowed;
}

TEST(permissions_bound_what_is_allowed) {
  DATA_ROWS("provider/agent/permission_policy/permissions_bound_what_is_allowed.yaml", c, kind,
            path, readonly, edit) {
    if (allows(PERMISSION_READONLY, data_among(c.kind, "read edit execute fetch other"), "x",
               c.path) != data_true(c.readonly) ||
        allows(PERMISSION_EDIT, data_among(c.kind, "read edit execute fetch other"), "x", c.path) !=
            data_true(c.edit))
      fail_msg("row %zu: %s", c.at, c.path ? c.path : "no path");
    assert_true(
        allows(PERMISSION_FULL, data_among(c.kind, "read edit execute fetch other"), "x", c.path));
  }
}

TEST(a_listed_tool_is_allowed) {
  assert_true(allows(PERMISSION_EDIT, ASK_EXECUTE, "Bash", NULL));
  assert_false(allows(PERMISSION_EDIT, ASK_EXECUTE, "bash", NULL));
  assert_false(allows(PERMISSION_EDIT, ASK_EXECUTE, "", NULL));
}

TEST(programs_that_are_named_may_run) {
  json_auto_t *run = json_pack("[s, s, s]", "make", "npm test", "./dev");
  const struct permission_policy policy = {.permission = PERMISSION_EDIT, .cwd = "/w", .run = run};
  const struct permission_policy reads = {
      .permission = PERMISSION_READONLY, .cwd = "/w", .run = run};
  DATA_ROWS("provider/agent/permission_policy/programs_that_are_named_may_run.yaml", c, command,
            allowed) {
    const struct permission_policy_ask ask = {.kind = ASK_EXECUTE, .command = str_from(c.command)};
    const char *reason;
    if (permission_policy_allows(&ask, &policy, &reason) != data_true(c.allowed))
      fail_msg("%s", c.command);
    assert_false(permission_policy_allows(&ask, &reads, &reason));
  }
}

TEST(one_path_outside_is_enough) {
  json_auto_t *paths = json_pack("[s, s]", "/w/a", "/etc/passwd");
  const struct permission_policy_ask ask = {.kind = ASK_EDIT, .paths = paths};
  const struct permission_policy policy = {.permission = PERMISSION_EDIT, .cwd = "/w"};
  const char *reason;
  assert_false(permission_policy_allows(&ask, &policy, &reason));
  assert_true(permission_policy_inside("/", STR("/etc")));
  assert_true(permission_policy_inside("/w/", STR("/w/./a")));
  assert_false(permission_policy_inside("/w", ((struct str){"a\0b", 3})));
}

TEST(paths_are_found_in_what_a_tool_is_given) {
  json_auto_t *input =
      json_pack("{s:s, s:s, s:i, s:s}", "file_path", "/a", "new_path", "/b", "path", 3, "x", "/c");
  json_auto_t *paths = json_array();
  permission_policy_add_paths(paths, input);
  assert_int_equal(json_array_size(paths), 2);
  permission_policy_add_paths(paths, NULL);
  assert_int_equal(json_array_size(paths), 2);
}
