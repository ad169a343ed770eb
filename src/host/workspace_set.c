/* Checks settings for worktrees. */
#include "host/workspace_set.h"

#include "base/limits.h"
#include "core/keys.h"
#include "core/movement_limits.h"
#include "core/workflow.h"
#include "format/json_object.h"

#include <string.h>

static bool fits_mode(const json_t *value, struct err *err) {
  enum workspace_mode mode;
  return workspace_mode_from_name(json_view(value), &mode) ||
         err_set(err, ERR_INVALID, "must be here or worktree");
}

static bool fits_commit(const json_t *value, struct err *err) {
  enum commit_when when;
  return commit_when_from_name(json_view(value), &when) ||
         err_set(err, ERR_INVALID, "must be off, movement or end");
}

static bool fits_branch(const json_t *value, struct err *err) {
  struct str text = json_view(value);
  return (text.n <= LIMIT_NAME_BYTES && key_check_branch(text, err)) ||
         err_set(err, ERR_INVALID, "must be the name of a branch, such as segue/{id}");
}

static bool fits_line(const json_t *value, struct err *err) {
  struct str text = json_view(value);
  bool ok = text.n > 0 && text.n <= LIMIT_ERROR_TEXT_BYTES;
  for (size_t i = 0; ok && i < text.n; i++)
    ok = (unsigned char)text.p[i] >= 0x20;
  return ok || err_set(err, ERR_INVALID, "must be a text of one line");
}

static bool fits_base(const json_t *value, struct err *err) {
  return fits_line(value, err) && (json_view(value).p[0] != '-' ||
                                   err_set(err, ERR_INVALID, "must be a commit, such as main"));
}

static bool fits_folder(const json_t *value, struct err *err) {
  return fits_line(value, err) &&
         (json_view(value).p[0] == '/' || err_set(err, ERR_INVALID, "must be an absolute path"));
}

static bool fits_author(const json_t *value, struct err *err) {
  struct str text = json_view(value);
  const char *mail = text.n > 0 ? memchr(text.p, '<', text.n) : NULL;
  return fits_line(value, err) && ((mail != NULL && mail > text.p && text.p[text.n - 1] == '>') ||
                                   err_set(err, ERR_INVALID, "must be NAME <EMAIL>"));
}

static bool fits_bool(const json_t *value, struct err *err) {
  return json_is_boolean(value) || err_set(err, ERR_INVALID, "must be true or false");
}

static bool fits_files(const json_t *value, struct err *err) {
  bool ok = json_is_array(value) && json_array_size(value) <= LIMIT_WORKTREE_FILE_COUNT;
  JSON_EACH(value, i, name) {
    struct err ignored;
    ok = ok && json_is_string(name) && limits_check_cwd(json_view(name), &ignored) &&
         memchr(json_view(name).p, '{', json_view(name).n) == NULL;
  }
  return ok || err_set(err, ERR_INVALID,
                       "must be a list of paths below the repository's top, such as [.env]");
}

static bool fits_setup(const json_t *value, struct err *err) {
  json_t *set =
      json_is_array(value) ? json_pack("{sO}", "run", value) : json_incref((json_t *)value);
  bool ok = key_check_setup(set, err);
  json_decref(set);
  return ok;
}

static const struct {
  const char *name;
  bool (*check)(const json_t *value, struct err *err);
  bool users; /* a flag cannot set it */
} settings[] = {
    {"mode", fits_mode, false},    {"commit", fits_commit, false},  {"branch", fits_branch, false},
    {"base", fits_base, false},    {"folder", fits_folder, true},   {"copy", fits_files, true},
    {"link", fits_files, true},    {"submodules", fits_bool, true}, {"hooks", fits_bool, true},
    {"author", fits_author, true}, {"message", fits_line, true},    {"setup", fits_setup, true},
};

bool workspace_set_check(const json_t *set, bool all, struct err *err) {
  const char *names[ARRAY_LEN(settings) + 1];
  size_t n = 0;
  struct err why;
  if (!json_is_object(set))
    return err_set(err, ERR_INVALID, "workspace must be here, worktree or a map of settings");
  for (size_t i = 0; i < ARRAY_LEN(settings); i++)
    if (all || !settings[i].users)
      names[n++] = settings[i].name;
  names[n] = NULL;
  JSON_MEMBERS(set, key, value) {
    size_t i = 0;
    while (i < ARRAY_LEN(settings) &&
           (strcmp(settings[i].name, key) != 0 || (settings[i].users && !all)))
      i++;
    const char *near = i < ARRAY_LEN(settings) ? NULL : str_nearest(str_from(key), names);
    if (i == ARRAY_LEN(settings))
      return err_set(err, ERR_INVALID, "workspace has no setting \"%.40s\"%s%s%s", key,
                     near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    if (!settings[i].check(value, &why))
      return err_set(err, ERR_INVALID, "workspace: %s %s", key, why.text);
  }
  return true;
}

bool workspace_source_check(const json_t *source, struct err *err) {
  static const char *const texts[] = {"kind", "title", "url", "branch", NULL};
  struct str kind = json_view(json_object_get(source, "kind"));
  if (!json_is_object(source) || !(str_eq_c(kind, "issue") || str_eq_c(kind, "pr")) ||
      json_integer_value(json_object_get(source, "number")) < 1)
    return err_set(err, ERR_INVALID,
                   "source must be an object, such as {\"kind\": \"issue\", \"number\": 12}");
  JSON_MEMBERS(source, key, value) {
    size_t i = 0;
    while (texts[i] != NULL && strcmp(texts[i], key) != 0)
      i++;
    if (texts[i] == NULL && strcmp(key, "number") != 0)
      return err_set(err, ERR_INVALID, "source has no member \"%.40s\"", key);
    if (texts[i] != NULL && !fits_line(value, err))
      return err_wrap(err, "source: %s", key);
  }
  return json_string_length(json_object_get(source, "title")) <= LIMIT_FORGE_TITLE_BYTES ||
         err_set(err, ERR_INVALID, "source: title is longer than %u bytes",
                 LIMIT_FORGE_TITLE_BYTES);
}
