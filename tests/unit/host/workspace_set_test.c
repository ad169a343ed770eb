/* Checks settings for worktrees, and where a task came from: outside data of files and the API. */

#include "base/limits.h"
#include "base/str.h"
#include "host/workspace_set.h"
#include "support/test.h"

#include <string.h>

static const struct row {
  const char *text;
  bool all;
  const char *error; /* NULL: it is fine */
} sets[] = {
    {"{}", false, NULL},
    {"{\"mode\": \"worktree\", \"commit\": \"end\", \"branch\": \"segue/{id}\", \"base\": "
     "\"main\"}",
     false, NULL},
    {"{\"folder\": \"/w\", \"copy\": [\".env\"], \"link\": [\"a/b\"], \"submodules\": true, "
     "\"hooks\":"
     " false, \"author\": \"A <a@b>\", \"message\": \"m\"}",
     true, NULL},
    {"[]", true, "workspace must be here, worktree or a map"},
    {"{\"mod\": \"here\"}", true, "has no setting \"mod\": did you mean \"mode\"?"},
    {"{\"zzzzzzzzz\": 1}", true, "has no setting \"zzzzzzzzz\""},
    {"{\"hooks\": true}", false, "has no setting \"hooks\""}, /* the user's own file only */
    {"{\"mode\": \"there\"}", true, "mode must be here or worktree"},
    {"{\"mode\": 1}", true, "mode must be here or worktree"},
    {"{\"commit\": \"always\"}", true, "commit must be off, movement or end"},
    {"{\"branch\": \"a..b\"}", true, "branch must be the name of a branch"},
    {"{\"branch\": \"\"}", true, "branch must be the name of a branch"},
    {"{\"base\": \"\"}", true, "base must be a text of one line"},
    {"{\"base\": \"-f\"}", true, "base must be a commit"},
    {"{\"base\": \"a\\nb\"}", true, "base must be a text of one line"},
    {"{\"folder\": \"w\"}", true, "folder must be an absolute path"},
    {"{\"folder\": []}", true, "folder must be a text of one line"},
    {"{\"copy\": \".env\"}", true, "copy must be a list of paths"},
    {"{\"copy\": [1]}", true, "copy must be a list of paths"},
    {"{\"copy\": [\"../x\"]}", true, "copy must be a list of paths"},
    {"{\"copy\": [\"/etc/passwd\"]}", true, "copy must be a list of paths"},
    {"{\"link\": [\"{id}\"]}", true, "link must be a list of paths"},
    {"{\"submodules\": \"yes\"}", true, "submodules must be true or false"},
    {"{\"author\": \"A\"}", true, "author must be NAME <EMAIL>"},
    {"{\"author\": \"<a@b>\"}", true, "author must be NAME <EMAIL>"},
    {"{\"author\": \"A <a@b> B\"}", true, "author must be NAME <EMAIL>"},
    {"{\"author\": \"A\\n<a@b>\"}", true, "author must be a text of one line"},
    {"{\"setup\": [\"npm ci\"]}", true, NULL},
    {"{\"setup\": {\"run\": [\"a\"], \"key\": [\"b\"], \"keep\": [\"c\"], \"timeout\": \"9m\"}}",
     true, NULL},
    {"{\"setup\": [\"npm ci\"]}", false, "has no setting \"setup\""},
    {"{\"setup\": []}", true, "setup run: must be a list"},
    {"{\"setup\": \"npm ci\"}", true, "setup must be an object"},
    {"{\"setup\": {\"runs\": []}}", true, "setup run: is missing"},
    {"{\"setup\": {\"run\": [\"a\"], \"runs\": []}}", true, "has no key \"runs\""},
    {"{\"setup\": {\"run\": [\"a\"], \"keep\": [\"c\"]}}", true, "has keep but no key"},
    {"{\"setup\": {\"run\": [\"a\"], \"key\": [\"b\"], \"keep\": [\"../c\"]}}", true, "leaves"},
    {"{\"setup\": {\"run\": [\"a\"], \"timeout\": \"long\"}}", true, "setup timeout:"},
    {"{\"message\": null}", true, "message must be a text of one line"},
};

static const struct row sources[] = {
    {"{\"kind\": \"issue\", \"number\": 12, \"title\": \"t\", \"url\": \"u\"}", true, NULL},
    {"{\"kind\": \"pr\", \"number\": 1, \"branch\": \"b\"}", true, NULL},
    {"[]", true, "source must be an object"},
    {"{\"kind\": \"bug\", \"number\": 12}", true, "source must be an object"},
    {"{\"kind\": \"pr\", \"number\": 0}", true, "source must be an object"},
    {"{\"kind\": \"pr\"}", true, "source must be an object"},
    {"{\"kind\": \"pr\", \"number\": 1, \"body\": \"x\"}", true, "source has no member \"body\""},
    {"{\"kind\": \"pr\", \"number\": 1, \"title\": \"a\\nb\"}", true, "source: title"},
    {"{\"kind\": \"pr\", \"number\": 1, \"url\": 7}", true, "source: url"},
};

static void check(const struct row *row, bool ok, const struct err *err) {
  if (ok != (row->error == NULL) || (!ok && strstr(err->text, row->error) == NULL))
    fail_msg("%s: %s", row->text, ok ? "accepted" : err->text);
}

TEST(settings_are_checked) {
  for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
    struct err err = {0};
    json_auto_t *set = json_loads(sets[i].text, 0, NULL);
    check(&sets[i], workspace_set_check(set, sets[i].all, &err), &err);
  }
}

TEST(sources_are_checked) {
  for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
    struct err err = {0};
    json_auto_t *source = json_loads(sources[i].text, 0, NULL);
    check(&sources[i], workspace_source_check(source, &err), &err);
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
