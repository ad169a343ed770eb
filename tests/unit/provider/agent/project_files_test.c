/* Files that a project ships against its user are found where clients look, with what it sets, and
 * let be where the user trusts it. */

#include "provider/agent/project_files.h"
#include "provider/profile/profile.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
  char *root; /* a repository is in root/home/repo, the working directory in it */
  struct profile *profile;
};

static const char profile_text[] =
    "summary: t\nprogram: t\nargv: [x]\noutput: text\nproject_files:\n"
    "  - {path: .t/plugin, above: repository, does: run it}\n"
    "  - {path: .t/settings.json, allowed: [/ui, /model/name], does: obey it}\n"
    "  - {path: t.json, refused: [/plugin, /mcp/command], does: run them}\n"
    "  - {path: .t/.env, above: root, does: read it}\n"
    "  - {path: .env, refused_variables: '_URL$|^NODE_', does: take it}\n"
    "  - {path: .t/acp.toml, transports: [acp], does: start it}\n";

static void in(const struct fixture *f, const char *name, char *path, size_t size) {
  print_into(path, size, "%s/%s", f->root, name);
}

static void put(const struct fixture *f, const char *name, const char *content) {
  if (content == NULL)
    folder_add(f->root, name);
  else
    folder_put(f->root, name, str_from(content));
}

static void take(const struct fixture *f, const char *name) {
  char path[600];
  in(f, name, path, sizeof path);
  assert_int_equal(remove(path), 0);
}

static int setup(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  struct err_list errors = {0};
  char home[600];
  f->root = folder_make();
  put(f, "home/repo/.git", NULL);
  put(f, "home/repo/sub", NULL);
  in(f, "home", home, sizeof home);
  assert_int_equal(setenv("HOME", home, 1), 0);
  f->profile = profile_load("t", "t.yaml", str_from(profile_text), NULL, NULL, &errors);
  if (f->profile == NULL)
    fail_msg("%d:%d: %s", errors.items[0].line, errors.items[0].column, errors.items[0].text);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  profile_free(f->profile);
  folder_remove(f->root);
  free(f);
  return 0;
}

static bool check(const struct fixture *f, const char *settings, const char *cwd, struct err *err) {
  char path[600];
  json_auto_t *with = json_loads(settings, 0, NULL);
  assert_non_null(with);
  in(f, cwd, path, sizeof path);
  bool ok = project_files_check(f->profile, TRANSPORT_EXEC, with, path, err);
  return ok;
}

/* With this content there it is refused, and `words` say why; NULL: it is let be. */
static void one(const struct fixture *f, const char *name, const char *content, const char *words) {
  struct err err = {0};
  char path[600];
  put(f, name, content);
  bool ok = check(f, "{}", "home/repo", &err);
  if (ok != (words == NULL))
    fail_msg("%s with %s: %s", name, content ? content : "(folder)", ok ? "let be" : err.text);
  if (!ok && strstr(err.text, words) == NULL)
    fail_msg("%s: \"%s\" is not in: %s", name, words, err.text);
  in(f, name, path, sizeof path);
  if (!ok && (strstr(err.text, path) == NULL || strstr(err.text, "trust_project") == NULL))
    fail_msg("it does not say which file, or what to do: %s", err.text);
  take(f, name);
}

TEST_ON(const struct fixture *f, setup, teardown, what_a_file_sets_counts) {
  static const char settings[] = "home/repo/.t/settings.json", refused[] = "home/repo/t.json",
                    env[] = "home/repo/.env";
  one(f, settings, "{}", NULL);
  one(f, settings, "{\"ui\": {\"theme\": \"x\"}, \"model\": {\"name\": \"m\"}}", NULL);
  one(f, settings, "{// a comment \"\n\"ui\": [1, 2,], /* hooks */ \"model\": {},}", NULL);
  one(f, settings, "{\"ui\": \"// no comment\", \"hooks\": {\"a\": 1}}",
      "sets hooks: t would obey");
  one(f, settings, "{\"model\": {\"url\": \"x\"}}", "sets model/url");
  one(f, settings, "{\"model\": \"x\"}", "sets model");
  one(f, settings, "{\"UI\": 1}", "sets UI");
  one(f, settings, "{\"ui\": 1, \"ui\": 2}", "not plain JSON"); /* readers may differ */
  one(f, settings, "[]", "more than it may");
  one(f, settings, "{\"ui\": ", "not plain JSON");
  one(f, settings, "", "not plain JSON");
  one(f, settings, "\xEF\xBB\xBF{\"hooks\": 1}", "sets hooks");
  one(f, settings, NULL, NULL); /* an empty folder */
  one(f, refused, "{\"model\": \"x\", \"mcp\": {}}", NULL);
  one(f, refused, "{\"mcp\": {\"command\": null}}", "sets mcp/command");
  one(f, refused, "{\"plugin\": [\"./x.js\"]} // x", "sets plugin: t would run them");
  one(f, env, "# NODE_OPTIONS=x\n\nPORT=3000\nexport NAME = x\n", NULL);
  one(f, env, "PORT=1\r\nexport API_URL = http://x\n", "sets API_URL");
  one(f, env, "NODE_OPTIONS: --require x\n", "sets NODE_OPTIONS");
  one(f, env, "export\tNODE_OPTIONS=x\n", "sets NODE_OPTIONS");
  one(f, env, "\xEF\xBB\xBFNODE_OPTIONS\xC2\xA0=x\n",
      "sets NODE_OPTIONS"); /* JavaScript's white space */
  one(f, env, "# x\xE2\x80\xA8NODE_OPTIONS=x\n", "sets NODE_OPTIONS"); /* and its line ends */
  one(f, env, "# x\rNODE_OPTIONS=x\n", "sets NODE_OPTIONS");
  one(f, env, "# see NODE_OPTIONS=x\nURL=http://x/?a=b\n", NULL);
  one(f, refused, "{ // x\r\"plugin\": [\"./x.js\"]\n}", "not plain JSON");
  one(f, refused, "{\"plug\\u0069n\": []}", "sets plugin");
}

TEST_ON(const struct fixture *f, setup, teardown, it_is_looked_for_where_clients_look) {
  DATA_ROWS("provider/agent/project_files/it_is_looked_for_where_clients_look.yaml", c, name, cwd,
            refused) {
    struct err err = {0};
    put(f, c.name, "x");
    if (check(f, "{}", c.cwd, &err) == data_true(c.refused))
      fail_msg("%s from %s: %s", c.name, c.cwd, err.text);
    take(f, c.name);
  }
  put(f, "home/repo/.t/acp.toml", "x");
  char cwd[600];
  struct err err = {0};
  in(f, "home/repo", cwd, sizeof cwd);
  assert_false(project_files_check(f->profile, TRANSPORT_ACP, NULL, cwd, &err));
}

TEST_ON(const struct fixture *f, setup, teardown, a_link_is_seen) {
  struct err err = {0};
  char path[600], real[600];
  put(f, "elsewhere/settings.json", "{\"hooks\": 1}");
  put(f, "home/repo/.t", NULL);
  in(f, "home/repo/.t/settings.json", path, sizeof path);
  in(f, "elsewhere/settings.json", real, sizeof real);
  assert_int_equal(symlink(real, path), 0);
  assert_false(check(f, "{}", "home/repo", &err));
  take(f, "elsewhere/settings.json"); /* nothing is there now, but it may come back */
  assert_false(check(f, "{}", "home/repo", &err));
  assert_non_null(strstr(err.text, "cannot be read"));
}

TEST_ON(const struct fixture *f, setup, teardown, who_is_trusted_is_let_be) {
  struct err err = {0};
  char settings[700];
  put(f, "home/repo/.t/settings.json", "{\"hooks\": 1}");
  assert_false(check(f, "{}", "home/repo", &err));
  assert_false(check(f, "{\"trust_project\": false}", "home/repo", &err));
  assert_true(check(f, "{\"trust_project\": true}", "home/repo", &err));
  assert_true(check(f, "{\"trust_project\": [\"/nowhere\", \"~/repo\"]}", "home/repo", &err));
  assert_true(check(f, "{\"trust_project\": [\"~\"]}", "home/repo", &err));
  assert_false(check(f, "{\"trust_project\": [\"~/re\"]}", "home/repo", &err));
  assert_false(check(f, "{\"trust_project\": [\"~/repo/sub\"]}", "home/repo", &err));
  assert_false(check(f, "{\"trust_project\": []}", "home/repo", &err));
  print_into(settings, sizeof settings, "{\"trust_project\": [\"%s/home/repo/\"]}", f->root);
  assert_true(check(f, settings, "home/repo", &err));
  assert_true(check(f, "{}", "gone", &err)); /* the start will say so */
}
