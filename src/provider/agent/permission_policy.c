/* Decides whether an agent may do what it asks for. */
#include "provider/agent/permission_policy.h"

#include "base/buf.h"
#include "core/run.h"
#include "format/json_object.h"

#include <string.h>

/* Appends the parts of `path` to `out`, with `.` and `..` resolved; "" is the root. */
static void permission_policy_walk(struct buf *out, struct str path) {
  while (path.p != NULL) {
    struct str part = str_cut(&path, '/');
    if (str_eq_c(part, "..")) {
      while (out->n > 0 && out->p[out->n - 1] != '/')
        out->n--;
      if (out->n > 0)
        out->n--;
    } else if (part.n > 0 && !str_eq_c(part, ".")) {
      buf_putc(out, '/');
      buf_str(out, part);
    }
  }
}

/* Puts the part of `path` below `cwd` into `below`; false if it is not below. */
static bool relative(const char *cwd, struct str path, struct buf *below) {
  buf_auto_t base = {0}, full = {0};
  permission_policy_walk(&base, str_from(cwd));
  if (path.n > 0 && path.p[0] != '/')
    buf_str(&full, buf_view(&base));
  permission_policy_walk(&full, path);
  bool inside = full.n >= base.n && (base.n == 0 || memcmp(full.p, base.p, base.n) == 0) &&
                (full.n == base.n || full.p[base.n] == '/');
  if (inside && full.n > base.n)
    buf_append(below, full.p + base.n, full.n - base.n);
  return inside && path.n > 0 && path.p[0] != '~' && memchr(path.p, '\0', path.n) == NULL;
}

bool permission_policy_inside(const char *cwd, struct str path) {
  buf_auto_t below = {0};
  return relative(cwd, path, &below);
}

static bool in_git_folder(const char *cwd, struct str path) {
  buf_auto_t below = {0};
  bool found = false;
  (void)relative(cwd, path, &below);
  buf_putc(&below, '/');
  for (const char *at = buf_c(&below); !found && (at = strcasestr(at, "/.git/")) != NULL; at++)
    found = true;
  return found;
}

enum ask_kind ask_kind_of(const struct ask_words *table, struct str word) {
  while (table->words != NULL && !str_among(word, table->words))
    table++;
  return table->words != NULL ? table->kind : ASK_OTHER;
}

static const char *paths_forbid(const struct permission_policy_ask *ask, const char *cwd) {
  for (size_t i = 0; i < json_array_size(ask->paths); i++) {
    if (!permission_policy_inside(cwd, json_view(json_array_get(ask->paths, i))))
      return "it is outside the working directory";
    if (ask->kind == ASK_EDIT && in_git_folder(cwd, json_view(json_array_get(ask->paths, i))))
      return "it is in a .git folder";
  }
  return NULL;
}

static const char *forbids(const struct permission_policy_ask *ask,
                           const struct permission_policy *policy) {
  switch (ask->kind) {
  case ASK_READ:
    return paths_forbid(ask, policy->cwd);
  case ASK_EDIT:
    if (policy->permission == PERMISSION_READONLY)
      return "this step may only read";
    if (json_array_size(ask->paths) == 0)
      return "it does not say which files it would change";
    return paths_forbid(ask, policy->cwd);
  case ASK_EXECUTE:
    if (policy->permission == PERMISSION_READONLY)
      return "this step may only read";
    for (size_t i = 0; i < json_array_size(policy->run); i++)
      if (run_covers(json_view(json_array_get(policy->run, i)), ask->command))
        return NULL;
    if (json_array_size(policy->run) == 0)
      return "this step may change files, not run programs";
    return "this step may run only the programs it was given, each as a separate command";
  case ASK_FETCH:
    return "this step may not use the network";
  case ASK_OTHER:
    break;
  }
  return "its effects are not known";
}

bool permission_policy_allows(const struct permission_policy_ask *ask,
                              const struct permission_policy *policy, const char **reason) {
  *reason = NULL;
  if (policy->permission == PERMISSION_FULL)
    return true;
  for (size_t i = 0; ask->tool.n > 0 && i < json_array_size(policy->tools); i++)
    if (str_eq(json_view(json_array_get(policy->tools, i)), ask->tool))
      return true;
  *reason = forbids(ask, policy);
  return *reason == NULL;
}

void permission_policy_add_paths(json_t *paths, const json_t *input) {
  static const char *const names[] = {"path",     "file_path",     "filePath", "filepath",
                                      "abs_path", "absolute_path", "uri",      "notebook_path",
                                      "old_path", "new_path",      "source",   "destination",
                                      "dir_path", "directory"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    const json_t *value = json_object_get(input, names[i]);
    if (json_is_string(value))
      json_array_append(paths, (json_t *)value);
  }
}
