/* Reads what a person says when resuming a session, and settles it against the session. */
#include "host/steer.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "host/preflight.h"
#include "host/sandbox.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- reading --- */

/* These lists name the members of a resume, those of a fork, and those of both. */
static const char *const resume_members[] = {
    "rule",      "why",      "max_movements", "provider", "model", "judge_provider",
    "providers", "scenario", "add_budget",    "lock",     NULL};
static const char *const fork_members[] = {
    "from",  "instruction",    "cwd",       "max_movements", "provider",
    "model", "judge_provider", "providers", "scenario",      NULL};

bool steer_known_members(const json_t *body, const char *const *members, struct err *err) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)body, key, value) {
    size_t i = 0;
    while (members[i] != NULL && strcmp(members[i], key) != 0)
      i++;
    const char *near = members[i] ? NULL : str_nearest(str_from(key), members);
    if (members[i] == NULL)
      return err_set(err, ERR_INVALID, "unknown member \"%.80s\"%s%s%s", key,
                     near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
  }
  return true;
}

static bool steer_take_rule(struct steer *st, const json_t *body, struct err *err) {
  const json_t *rule = json_object_get(body, "rule"), *why = json_object_get(body, "why");
  json_int_t number = json_integer_value(rule);
  if (rule != NULL && (number < 1 || number > LIMIT_RULE_COUNT))
    return err_set(err, ERR_INVALID, "rule must be a rule's number, from 1");
  if (why != NULL && rule == NULL)
    return err_set(err, ERR_INVALID, "why needs rule");
  if (why != NULL && (!json_is_string(why) || json_string_length(why) > LIMIT_WHY_BYTES ||
                      strlen(json_string_value(why)) != json_string_length(why)))
    return err_set(err, ERR_INVALID, "why must be a text without NUL, of at most %u bytes",
                   LIMIT_WHY_BYTES);
  st->core.rule = (int)number;
  st->why = why ? xstrdup(json_string_value(why)) : NULL;
  return true;
}

static bool take_max(const struct steer *st, const json_t *body, struct err *err) {
  json_t *max = json_object_get(body, "max_movements");
  if (max == NULL)
    return true;
  bool infinite = json_is_string(max) && strcmp(json_string_value(max), "infinite") == 0;
  if (!infinite && (json_integer_value(max) < 1 || json_integer_value(max) > LIMIT_MOVEMENTS))
    return err_set(err, ERR_INVALID, "max_movements must be a number from 1 to %u, or infinite",
                   LIMIT_MOVEMENTS);
  json_object_set(st->changed, "max_movements", max);
  return true;
}

/* Checks a provider that is named; `where` says which member it is. */
static bool check_provider(const json_t *name, const char *where, bool executes,
                           const struct provider_registry *registry, struct err *err) {
  struct str word = json_view(name);
  if (word.n == 0)
    return err_set(err, ERR_INVALID, "%.80s must be a provider's name", where);
  if (str_eq_c(word, "command") && executes)
    return err_set(err, ERR_INVALID,
                   "provider command runs the command: of a movement; it cannot be chosen for "
                   "other movements");
  if (registry_find(registry, word) != NULL)
    return true;
  (void)registry_unknown(registry, word, err);
  err->code = ERR_INVALID; /* the value may come from a request */
  return false;
}

static bool steer_take_provider(const struct steer *st, const json_t *body, const char *key,
                                const struct provider_registry *registry, struct err *err) {
  json_t *name = json_object_get(body, key);
  bool executes = strcmp(key, "provider") == 0;
  if (name == NULL)
    return true;
  if (!check_provider(name, key, executes, registry, err))
    return false;
  json_object_set(st->changed, key, name);
  return true;
}

static bool steer_take_providers(const struct steer *st, const json_t *body,
                                 const struct provider_registry *registry, struct err *err) {
  json_t *providers = json_object_get(body, "providers"), *name;
  const char *movement;
  if (providers == NULL)
    return true;
  if (!json_is_object(providers))
    return err_set(err, ERR_INVALID, "providers must be an object of movement: provider");
  json_object_foreach(providers, movement, name) {
    if (!check_provider(name, movement, true, registry, err))
      return false;
  }
  json_object_set(st->changed, "providers", providers);
  return true;
}

static bool steer_take_model(const struct steer *st, const json_t *body, struct err *err) {
  json_t *model = json_object_get(body, "model");
  if (model == NULL)
    return true;
  if (json_string_length(model) == 0)
    return err_set(err, ERR_INVALID, "model must be a model's name");
  json_object_set(st->changed, "model", model);
  return true;
}

static bool parse_members(struct steer *st, const json_t *body, const char *const *members,
                          const struct provider_registry *registry, struct err *err) {
  *st = (struct steer){.changed = json_object()};
  if (body == NULL)
    return true;
  if (!json_is_object(body))
    return err_set(err, ERR_INVALID, "the body must be an object, such as {\"provider\": \"x\"}");
  return steer_known_members(body, members, err) && steer_take_rule(st, body, err) &&
         take_max(st, body, err) && steer_take_provider(st, body, "provider", registry, err) &&
         steer_take_provider(st, body, "judge_provider", registry, err) &&
         steer_take_providers(st, body, registry, err) && steer_take_model(st, body, err);
}

/* Takes what is added to the budget. Which amounts are allowed depends on the session, see
 * steer_settle. */
static bool steer_take_budget(const struct steer *st, const json_t *body, struct err *err) {
  json_t *added = json_object_get(body, "add_budget");
  if (added == NULL)
    return true;
  if (!json_is_object(added) || json_object_size(added) == 0 ||
      json_object_size(added) > LIMIT_ADD_BUDGET_COUNT)
    return err_set(err, ERR_INVALID, "add_budget must be an object, such as {\"tokens\": 100000}");
  json_object_set(st->changed, "add_budget", added);
  return true;
}

static bool steer_take_lock(const struct steer *st, const json_t *body, struct err *err) {
  json_t *lock = json_object_get(body, "lock");
  if (lock == NULL)
    return true;
  json_object_set(st->changed, "lock", lock);
  return json_is_false(lock) ||
         err_set(err, ERR_INVALID, "lock must be false: leave it out for the folder's lock");
}

bool steer_parse(struct steer *st, const json_t *body, const struct provider_registry *registry,
                 struct err *err) {
  return parse_members(st, body, resume_members, registry, err) &&
         steer_take_budget(st, body, err) && steer_take_lock(st, body, err);
}

bool steer_parse_fork(struct steer *st, const json_t *body,
                      const struct provider_registry *registry, struct err *err) {
  return parse_members(st, body, fork_members, registry, err);
}

void steer_set_scenario(struct steer *st, json_t *scenario) {
  json_object_set_new(st->changed, "scenario", scenario);
}

bool steer_says(const struct steer *st) {
  return st->core.rule > 0 || json_object_size(st->changed) > 0;
}

/* --- settling --- */

json_t *steer_person(void) {
  char name[64];
  const struct passwd *user = getpwuid(geteuid());
  if (user != NULL && user->pw_name[0] && utf8_valid(user->pw_name, strlen(user->pw_name)))
    (void)snprintf(name, sizeof name, "%s", user->pw_name);
  else
    (void)snprintf(name, sizeof name, "uid %ld", (long)geteuid());
  return json_pack("{sI ss}", "uid", (json_int_t)geteuid(), "name", name);
}

void steer_set_browser(json_t *by, unsigned browser) {
  if (browser > 0)
    json_object_set_new(by, "window", json_integer(browser));
}

json_t *steer_config(const json_t *config, const struct config *user, const json_t *changed) {
  static const char *const own[] = {"cwd",           "provider",    "providers", "model",
                                    "options",       "interactive", "submitted", "judge_provider",
                                    "max_movements", "scenario",    "workspace", "lock",
                                    "source",        "on"};
  json_t *now = json_object();
  for (size_t i = 0; i < ARRAY_LEN(own); i++)
    if (json_object_get(config, own[i]) != NULL)
      json_object_set(now, own[i], json_object_get(config, own[i]));
  if (json_object_get(changed, "provider") != NULL) { /* they were meant for the earlier one */
    json_object_del(now, "providers");
    json_object_del(now, "model");
  }
  config_resolve(user, now);
  sandbox_make_ready(now);
  json_object_update(now, (json_t *)changed);
  json_object_del(now, "add_budget"); /* not a setting: it is added once */
  return now;
}

bool steer_movements_known(const json_t *changed, const struct workflow *workflow,
                           struct err *err) {
  const json_t *providers = json_object_get(changed, "providers");
  const char *movement;
  json_t *name;
  json_object_foreach((json_t *)providers, movement, name) {
    if (workflow_find(workflow, str_from(movement)) < 0)
      return err_set(err, ERR_USAGE, "the workflow has no movement \"%.80s\"", movement);
  }
  return true;
}

bool steer_settle(struct steer *st, const struct core *core, const struct config *user,
                  const struct provider_registry *registry, bool has_scenario, struct err *err) {
  if (!steer_movements_known(st->changed, core->workflow, err))
    return false;
  st->by = steer_person();
  steer_set_browser(st->by, st->browser);
  st->config = steer_config(core->config, user, st->changed);
  st->core = (struct core_steer){.by = st->by,
                                 .config = st->config,
                                 .changed = st->changed,
                                 .rule = st->core.rule,
                                 .why = st->why};
  const struct preflight p = {.workflow = core->workflow,
                              .config = st->config,
                              .registry = registry,
                              .has_scenario = has_scenario};
  return core_steer_check(core, &st->core, err) &&
         (json_object_size(st->changed) == 0 || preflight_passes(&p, err));
}

void steer_deinit(struct steer *st) {
  json_decref(st->by);
  json_decref(st->config);
  json_decref(st->changed);
  free(st->why);
  *st = (struct steer){0};
}
