/* An agent that asks is answered by permission, kind and place, never by default. */

#include "provider/agent/permission_policy.h"
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
  static const struct {
    enum ask_kind kind;
    const char *path;
    bool readonly, edit;
  } rows[] = {
      {ASK_READ, NULL, true, true},
      {ASK_READ, "/home/u/work/a.c", true, true},
      {ASK_READ, "/home/u/.ssh/id_rsa", false, false},
      {ASK_READ, "/home/u/work/.git/config", true, true},
      {ASK_EDIT, "/home/u/work/a.c", false, true},
      {ASK_EDIT, "a.c", false, true},
      {ASK_EDIT, "/home/u/work", false, true},
      {ASK_EDIT, NULL, false, false},
      {ASK_EDIT, "/home/u/workshop/a.c", false, false},
      {ASK_EDIT, "/home/u/work/../.bashrc", false, false},
      {ASK_EDIT, "../x", false, false},
      {ASK_EDIT, "b/../../x", false, false},
      {ASK_EDIT, "b/../x", false, true},
      {ASK_EDIT, "~/.bashrc", false, false},
      {ASK_EDIT, "", false, false},
      {ASK_EDIT, "/home/u/work/.git/hooks/pre-commit", false, false},
      {ASK_EDIT, "sub/.GIT/config", false, false},
      {ASK_EDIT, "sub/.github/ci.yaml", false, true},
      {ASK_EXECUTE, "/home/u/work/a", false, false},
      {ASK_FETCH, NULL, false, false},
      {ASK_OTHER, NULL, false, false},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    if (allows(PERMISSION_READONLY, rows[i].kind, "x", rows[i].path) != rows[i].readonly ||
        allows(PERMISSION_EDIT, rows[i].kind, "x", rows[i].path) != rows[i].edit)
      fail_msg("row %zu: %s", i, rows[i].path ? rows[i].path : "no path");
    assert_true(allows(PERMISSION_FULL, rows[i].kind, "x", rows[i].path));
  }
}

TEST(a_listed_tool_is_allowed) {
  assert_true(allows(PERMISSION_EDIT, ASK_EXECUTE, "Bash", NULL));
  assert_false(allows(PERMISSION_EDIT, ASK_EXECUTE, "bash", NULL));
  assert_false(allows(PERMISSION_EDIT, ASK_EXECUTE, "", NULL));
}

TEST(programs_that_are_named_may_run) {
  static const struct {
    const char *command;
    bool allowed;
  } rows[] = {
      {"make", true},
      {" make -j2 test ", true},
      {"make 2>&1", true},
      {"npm test -- --grep 'a*'", true},
      {"./dev\tlint", true},
      {"makeinfo x", false},
      {"npm install", false},
      {"npm", false},
      {"", false},
      {"CC=x make", false}, /* a variable can make it run anything */
      {"make; rm -r x", false},
      {"make && rm -r x", false},
      {"make & rm -r x", false},
      {"make | sh", false},
      {"make $(rm x)", false},
      {"make `rm x`", false},
      {"make > /etc/x", false},
      {"make\nrm x", false},
      {"make <(rm x)", false},
      {"make \\\nx", false},
  };
  json_auto_t *run = json_pack("[s, s, s]", "make", "npm test", "./dev");
  const struct permission_policy policy = {.permission = PERMISSION_EDIT, .cwd = "/w", .run = run};
  const struct permission_policy reads = {
      .permission = PERMISSION_READONLY, .cwd = "/w", .run = run};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    const struct permission_policy_ask ask = {.kind = ASK_EXECUTE,
                                              .command = str_from(rows[i].command)};
    const char *reason;
    if (permission_policy_allows(&ask, &policy, &reason) != rows[i].allowed)
      fail_msg("%s", rows[i].command);
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
