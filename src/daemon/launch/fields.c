/* Copies the members of a request into the configuration of a launch. */
#include "daemon/launch/internal.h"

#include "base/limits.h"
#include "host/workspace_set.h"
#include "os/clock.h"
#include "store/worker.h"

#include <string.h>
#include <sys/stat.h>

const char *launch_text_of(const struct launch_body *p, const char *key, bool *ok) {
  const json_t *value = json_object_get(p->body, key);
  if (value == NULL)
    return NULL;
  const char *text = json_string_value(value);
  if (text == NULL || strlen(text) != json_string_length(value)) {
    *ok = err_set(p->err, ERR_INVALID, "%s must be a text without NUL", key);
    return NULL;
  }
  return text;
}

bool launch_take_text(const struct launch_body *p, const char *key) {
  bool ok = true;
  const char *text = launch_text_of(p, key, &ok);
  if (ok && text != NULL)
    json_object_set_new(p->l->config, key, json_string(text));
  return ok;
}

bool launch_is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool launch_take_cwd(const struct launch_body *p) {
  bool ok = true;
  const char *cwd = launch_text_of(p, "cwd", &ok);
  if (!ok)
    return false;
  if (cwd == NULL || cwd[0] != '/')
    return err_set(p->err, ERR_INVALID, "cwd must be given, as an absolute path");
  if (strlen(cwd) >= STORE_PATH_BYTES || !launch_is_folder(cwd))
    return err_set(p->err, ERR_INVALID, "cwd %.300s is not a folder", cwd);
  json_object_set_new(p->l->config, "cwd", json_string(cwd));
  return true;
}

bool launch_take_providers(const struct launch_body *p) {
  const json_t *providers = json_object_get(p->body, "providers");
  const char *movement;
  json_t *name;
  if (providers == NULL)
    return true;
  if (!json_is_object(providers))
    return err_set(p->err, ERR_INVALID, "providers must be an object of movement: provider");
  json_object_foreach((json_t *)providers, movement, name) {
    if (!json_is_string(name))
      return err_set(p->err, ERR_INVALID, "providers.%.80s must be a provider's name", movement);
    if (registry_find(p->l->generation->registry, str_from(json_string_value(name))) == NULL) {
      (void)registry_unknown(p->l->generation->registry, str_from(json_string_value(name)), p->err);
      return err_wrap(p->err, "providers.%.80s", movement);
    }
  }
  json_object_set(p->l->config, "providers", (json_t *)providers);
  return true;
}

bool launch_take_provider(const struct launch_body *p) {
  if (!launch_take_text(p, "provider"))
    return false;
  const char *name = json_string_value(json_object_get(p->l->config, "provider"));
  bool ok = name == NULL || registry_find(p->l->generation->registry, str_from(name)) != NULL;
  if (!ok) {
    (void)registry_unknown(p->l->generation->registry, str_from(name), p->err);
  } else if (name != NULL && strcmp(name, "command") == 0) {
    ok = err_set(p->err, ERR_INVALID,
                 "provider command runs the command: of a movement; it cannot be chosen for other "
                 "movements");
  }
  return ok;
}

bool launch_take_turn(const struct launch_body *p) {
  bool ok = true;
  int64_t last_ms;
  const char *key = launch_text_of(p, "unique", &ok);
  const char *how = launch_text_of(p, "if_running", &ok);
  const char *last = launch_text_of(p, "not_after", &ok);
  if (!ok)
    return false;
  if (key != NULL && (key[0] == '\0' || strlen(key) > LIMIT_NAME_BYTES))
    return err_set(p->err, ERR_INVALID, "unique must have 1 to %u bytes", LIMIT_NAME_BYTES);
  if (how != NULL && key == NULL)
    return err_set(p->err, ERR_INVALID, "if_running needs unique: a key of your own");
  if (how != NULL && strcmp(how, "skip") != 0 && strcmp(how, "queue") != 0)
    return err_set(p->err, ERR_INVALID, "if_running must be skip or queue");
  if (last != NULL && !record_time_parse(last, &last_ms))
    return err_set(p->err, ERR_INVALID,
                   "not_after must be a time in UTC, such as 2026-11-21T06:00:00.000Z");
  if (last != NULL && last_ms <= clock_real_ms())
    return err_set(p->err, ERR_INVALID, "not_after has passed: it would never start");
  p->l->skips = key != NULL && (how == NULL || strcmp(how, "skip") == 0);
  return launch_take_text(p, "unique") && launch_take_text(p, "not_after");
}

bool launch_take_options(const struct launch_body *p) {
  const json_t *options = json_object_get(p->body, "options");
  if (options != NULL && !json_is_object(options))
    return err_set(p->err, ERR_INVALID, "options must be an object, such as {\"seed\": 1}");
  if (options != NULL)
    json_object_set(p->l->config, "options", (json_t *)options);
  return true;
}

/* Sets which workers of a shared store may take it: those the request names, or those that the
 * user's shared_paths give for its folder. */
static bool launch_take_on(const struct launch_body *p) {
  const json_t *on = json_object_get(p->body, "on");
  const char *cwd = json_string_value(json_object_get(p->l->config, "cwd"));
  bool shared = p->l->env->store != NULL && store_is_address(p->l->env->store->where);
  if (on != NULL && !shared)
    return err_set(p->err, ERR_INVALID,
                   "on needs a shared store: these sessions run on this machine");
  if (on != NULL && !worker_labels_check(on, p->err)) {
    p->err->code = ERR_INVALID;
    return err_wrap(p->err, "on");
  }
  const char *label = shared ? config_shared_label(&p->l->generation->user, cwd) : NULL;
  if (on != NULL)
    json_object_set(p->l->config, "on", (json_t *)on);
  else if (label != NULL)
    json_object_set_new(p->l->config, "on", json_pack("[s]", label));
  return true;
}

bool launch_take_place(const struct launch_body *p) {
  if (!launch_take_on(p))
    return false;
  const json_t *lock = json_object_get(p->body, "lock");
  if (lock != NULL && !json_is_boolean(lock))
    return err_set(p->err, ERR_INVALID, "lock must be true or false");
  if (json_is_false(lock))
    json_object_set_new(p->l->config, "lock", json_false());
  json_t *source = json_object_get(p->body, "source");
  if (source != NULL && !workspace_source_check(source, p->err))
    return false;
  if (source != NULL)
    json_object_set(p->l->config, "source", source);
  json_t *set = json_object_get(p->body, "workspace");
  if (set != NULL && !workspace_set_check(set, false, p->err))
    return false;
  if (set != NULL)
    json_object_set(p->l->config, "workspace", set);
  return true;
}

bool launch_members_known(const struct launch_body *p, const json_t *object, const char *where,
                          const char *const members[]) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    bool known = false;
    for (size_t i = 0; members[i]; i++)
      known = known || strcmp(members[i], key) == 0;
    if (known)
      continue;
    const char *near = str_nearest(str_from(key), members);
    return err_set(p->err, ERR_INVALID, "unknown member \"%s%.80s\"%s%s%s%s", where, key,
                   near ? ": did you mean \"" : "", near ? where : "", near ? near : "",
                   near ? "\"?" : "");
  }
  return true;
}

bool launch_path_or_text(const struct launch_body *p, const char *key, const char **path,
                         const json_t **text) {
  const json_t *value = json_object_get(p->body, key);
  *text = json_object_get(value, "text");
  *path = json_string_value(value);
  if (*path != NULL && (*path)[0] == '/' && strlen(*path) == json_string_length(value))
    return true;
  if (*path == NULL && json_is_string(*text))
    return true;
  return err_set(p->err, ERR_INVALID, "%s must be an absolute path, or an object with its text",
                 key);
}
