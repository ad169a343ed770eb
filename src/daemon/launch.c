/* Makes a launch from a request, or again from a log. */
#include "daemon/launch_internal.h"

#include "daemon/memo.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/call.h"
#include "format/json_write.h"
#include "host/keys.h"
#include "host/preflight.h"
#include "host/workflow_cache.h"
#include "host/workspace_set.h"
#include "os/clock.h"
#include "workflow/facets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- scenarios --- */

struct shared_scenario {
  struct shared_scenario *next;
  unsigned references;
  struct scenario scenario;
};

static struct shared_scenario *scenario_known(struct launch_env *env, const char *sha256) {
  for (struct shared_scenario *s = env->scenarios; s; s = s->next)
    if (strcmp(s->scenario.sha256, sha256) == 0) {
      s->references++;
      return s;
    }
  return NULL;
}

/* One reference; not in the list yet. */
static struct shared_scenario *scenario_read(const char *path, struct str text, struct err *err) {
  struct shared_scenario *s = xcalloc(1, sizeof *s);
  if (!scenario_parse(&s->scenario, path, text, err)) {
    free(s);
    return NULL;
  }
  s->references = 1;
  return s;
}

/* The one that was taken up last: requests that come in a row mostly bring the same. */
static struct shared_scenario *scenario_newest(const struct launch_env *env) {
  if (env->scenarios != NULL)
    env->scenarios->references++;
  return env->scenarios;
}

static void scenario_add(struct launch_env *env, struct shared_scenario *s) {
  s->next = env->scenarios;
  env->scenarios = s;
}

static void scenario_unref(struct launch_env *env, struct shared_scenario *s) {
  struct shared_scenario **at = &env->scenarios;
  if (s == NULL || --s->references > 0)
    return;
  while (*at != NULL && *at != s)
    at = &(*at)->next;
  if (*at == s)
    *at = s->next;
  scenario_deinit(&s->scenario);
  free(s);
}

/* --- what both ways share --- */

void launch_use_config(struct launch *l) {
  const json_t *env = json_object_get(l->config, "env");
  size_t i;
  json_t *name;
  if (json_array_size(env) > 0) {
    l->pass_env = xcalloc(json_array_size(env) + 1, sizeof *l->pass_env);
    json_array_foreach(env, i, name) {
      l->pass_env[i] = json_string_value(name);
    }
  }
  l->setup = (struct session_setup){
      .cwd = json_string_value(json_object_get(l->config, "cwd")),
      .pass_env = l->pass_env,
      .scenario = l->scenario ? &l->scenario->scenario : NULL,
  };
}

static void launch_free_about(struct launch *l) {
  if (l->about != NULL)
    fork_deinit(&l->about->fork);
  free(l->about);
  l->about = NULL;
}

void launch_set_about(struct launch *l, const struct store_ref *log) {
  l->about = xcalloc(1, sizeof *l->about);
  l->about->log = *log;
}

void launch_started(struct launch *l) {
  launch_free_about(l);
  workflow_unref(l->workflow);
  l->workflow = NULL;
  free(l->workflow_path);
  l->workflow_path = NULL;
  json_decref(l->facets);
  l->facets = NULL;
  buf_deinit(&l->task);
}

void launch_deinit(struct launch *l) {
  launch_started(l);
  if (l->env != NULL) {
    scenario_unref(l->env, l->scenario);
    scenario_unref(l->env, l->known);
  }
  generation_unref(l->generation);
  json_decref(l->config);
  json_decref(l->answer);
  buf_deinit(&l->given);
  steer_deinit(&l->steer);
  said_deinit(&l->said);
  free(l->pass_env);
  *l = (struct launch){0};
}

static bool launch_is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --- from a request --- */

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

static bool take_text(const struct launch_body *p, const char *key) {
  bool ok = true;
  const char *text = launch_text_of(p, key, &ok);
  if (ok && text != NULL)
    json_object_set_new(p->l->config, key, json_string(text));
  return ok;
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

static bool take_providers(const struct launch_body *p) {
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

static bool take_provider(const struct launch_body *p) {
  if (!take_text(p, "provider"))
    return false;
  const char *name = json_string_value(json_object_get(p->l->config, "provider"));
  bool ok = name == NULL || registry_find(p->l->generation->registry, str_from(name)) != NULL;
  if (!ok) {
    (void)registry_unknown(p->l->generation->registry, str_from(name), p->err);
  } else if (name != NULL && strcmp(name, "command") == 0) {
    ok =
        err_set(p->err, ERR_INVALID,
                "provider command runs the command: of a movement; it cannot be chosen for others");
  }
  return ok;
}

/* Which others keep it from running, and until when it may begin. */
static bool take_turn(const struct launch_body *p) {
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
    return err_set(p->err, ERR_INVALID, "if_running goes with unique: a key of your own");
  if (how != NULL && strcmp(how, "skip") != 0 && strcmp(how, "queue") != 0)
    return err_set(p->err, ERR_INVALID, "if_running must be skip or queue");
  if (last != NULL && !record_time_parse(last, &last_ms))
    return err_set(p->err, ERR_INVALID,
                   "not_after must be a time in UTC, such as 2026-11-21T06:00:00.000Z");
  if (last != NULL && last_ms <= clock_real_ms())
    return err_set(p->err, ERR_INVALID, "not_after has passed: it would never begin");
  p->l->skips = key != NULL && (how == NULL || strcmp(how, "skip") == 0);
  return take_text(p, "unique") && take_text(p, "not_after");
}

static bool take_options(const struct launch_body *p) {
  const json_t *options = json_object_get(p->body, "options");
  if (options != NULL && !json_is_object(options))
    return err_set(p->err, ERR_INVALID, "options must be an object, such as {\"seed\": 1}");
  if (options != NULL)
    json_object_set(p->l->config, "options", (json_t *)options);
  return true;
}

/* Where it works, and what others may do there meanwhile. */
static bool take_place(const struct launch_body *p) {
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

/* A path that is absolute, or {"text": ...}: then *path is NULL. */
static bool path_or_text(const struct launch_body *p, const char *key, const char **path,
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

static bool keep_blob(const struct launch_body *p, struct str bytes, char sha256[SHA256_HEX]) {
  struct memo *memo = p->l->generation->memo;
  char name[STORE_NAME_BYTES];
  struct stat st;
  sha256_hex(bytes.p, bytes.n, NULL, 0, sha256);
  store_blob_name(p->l->env->store, sha256, name);
  if (memo_has_blob(memo, sha256) && stat(name, &st) == 0 && (uint64_t)st.st_size == bytes.n)
    return true; /* it was synced, and its name with it */
  if (store_blob_put(p->l->env->store, bytes, sha256, p->err)) {
    memo_put_blob(memo, sha256);
    return true;
  }
  if (p->err->code == ERR_NOT_FOUND) /* our folder, not what the client named */
    p->err->code = ERR_IO;
  return false;
}

static bool keep_scenario(const struct launch_body *p, const char *path, struct str text) {
  char sha256[SHA256_HEX], name[STORE_NAME_BYTES];
  struct launch *l = p->l;
  sha256_hex(text.p, text.n, NULL, 0, sha256);
  if (l->known != NULL && strcmp(l->known->scenario.sha256, sha256) == 0) {
    l->scenario = l->known;
    l->known = NULL;
  } else {
    l->scenario = scenario_read(path ? path : "scenario", text, p->err);
  }
  if (l->scenario == NULL || !keep_blob(p, text, sha256))
    return false;
  store_blob_name(l->env->store, sha256, name);
  json_object_set_new(l->config, "scenario",
                      json_pack("{ss ss}", "path", path ? path : name, "sha256", sha256));
  return true;
}

bool launch_take_scenario(const struct launch_body *p) {
  static const char *const members[] = {"text", NULL};
  const char *path;
  const json_t *text, *value = json_object_get(p->body, "scenario");
  struct buf bytes = {0};
  if (value == NULL)
    return true;
  if (!path_or_text(p, "scenario", &path, &text) ||
      !launch_members_known(p, value, "scenario.", members))
    return false;
  bool ok = path == NULL || file_read(path, LIMIT_SCENARIO_BYTES, &bytes, p->err);
  if (!ok && p->err->code == ERR_IO) /* what the client named, not our folder */
    p->err->code = ERR_INVALID;
  if (path == NULL)
    buf_append(&bytes, json_string_value(text), json_string_length(text));
  ok = ok && keep_scenario(p, path, buf_view(&bytes));
  buf_deinit(&bytes);
  return ok;
}

/* {kind: {name: text}} */
static bool facets_fit(const struct launch_body *p, const json_t *facets) {
  const char *kind, *name;
  json_t *named, *text;
  if (facets == NULL)
    return true;
  if (!json_is_object(facets))
    return err_set(
        p->err, ERR_INVALID,
        "workflow.facets must be an object, such as {\"personas\": {\"coder\": \"...\"}}");
  const char *folders[FACET_KIND_COUNT + 1] = {0};
  for (size_t i = 0; i < FACET_KIND_COUNT; i++)
    folders[i] = facet_folder((enum facet_kind)i);
  if (!launch_members_known(p, facets, "workflow.facets.", folders))
    return false;
  json_object_foreach((json_t *)facets, kind, named) {
    if (!json_is_object(named))
      return err_set(p->err, ERR_INVALID, "workflow.facets.%s must be an object of name: text",
                     kind);
    json_object_foreach(named, name, text) {
      if (!json_is_string(text))
        return err_set(p->err, ERR_INVALID, "workflow.facets.%s.%.80s must be a text", kind, name);
    }
  }
  return true;
}

/* The bytes that all of it is made of; "" for one that is made of files too. */
static void make_key(struct launch_body *p, const char *name, const json_t *text) {
  /* Words of what may be a file's, or comes with the request. */
  static const char *const words[] = {"schema", "call", "uses", "{{include:"};
  struct str bytes = {json_string_value(text), json_string_length(text)};
  struct buf all = {0};
  p->key[0] = '\0';
  if (p->anew || p->warnings != NULL || json_object_get(p->body, "inputs") != NULL)
    return;
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (str_has(bytes, words[i]))
      return;
  const json_t *chosen = json_object_get(p->l->config, "provider");
  buf_printf(&all, "%s\n%s\n", name, chosen ? json_string_value(chosen) : "");
  sha256_hex(all.p, all.n, bytes.p, bytes.n, p->key);
  buf_deinit(&all);
}

static bool inputs_fit(const struct launch_body *p) {
  const json_t *inputs = json_object_get(p->body, "inputs"), *value;
  const char *name;
  if (inputs != NULL && !json_is_object(inputs))
    return err_set(p->err, ERR_INVALID, "inputs must be an object of name: text");
  json_object_foreach((json_t *)inputs, name, value) {
    if (!json_is_string(value))
      return err_set(p->err, ERR_INVALID, "inputs.%.80s must be a text", name);
  }
  return true;
}

static bool take_workflow(struct launch_body *p) {
  static const char *const members[] = {"text", "name", "facets", NULL};
  const json_t *value = json_object_get(p->body, "workflow"), *text;
  const json_t *facets = json_object_get(value, "facets");
  const json_t *named = json_object_get(value, "name");
  const char *path, *name = json_string_value(named);
  struct launch *l = p->l;
  struct err_list unwanted = {0}, *warnings = p->warnings ? p->warnings : &unwanted;
  if (!path_or_text(p, "workflow", &path, &text) || !inputs_fit(p))
    return false;
  if (named != NULL && name == NULL)
    return err_set(p->err, ERR_INVALID, "workflow.name must be a text");
  if (!launch_members_known(p, value, "workflow.", members) || !facets_fit(p, facets))
    return false;
  json_t *none = json_object();
  if (name == NULL)
    name = "workflow";
  if (facets == NULL)
    facets = none;
  l->facets = json_array();
  if (path == NULL && json_object_size(facets) == 0)
    make_key(p, name, text);
  if (p->key[0] != '\0' && (l->workflow = memo_find(l->generation->memo, p->key)) != NULL) {
    json_decref(none);
    p->remembered = true;
    return true;
  }
  const struct workflow_source source = {
      .path = path ? path : name,
      .text = path ? NULL : json_string_value(text),
      .n = path ? 0 : json_string_length(text),
      .facets = path ? NULL : facets,
      .facet_files = l->facets,
      .inputs = json_object_get(p->body, "inputs"),
      .starts = !p->lints,
  };
  l->workflow = preflight_load(source, l->setup.cwd, l->config, l->generation->registry, p->errors,
                               warnings, &p->marks);
  json_decref(none);
  err_list_deinit(&unwanted);
  if (l->workflow == NULL)
    return err_set(p->err, ERR_FILE, "the workflow has errors");
  l->workflow_path = path ? xstrdup(path) : NULL;
  return true;
}

static bool take_task(const struct launch_body *p) {
  const json_t *task = json_object_get(p->body, "task");
  if (task != NULL && !json_is_string(task))
    return err_set(p->err, ERR_INVALID, "task must be a text");
  if (json_string_length(task) > LIMIT_TASK_BYTES)
    return err_set(p->err, ERR_LIMIT, "the task is over the limit of %u bytes", LIMIT_TASK_BYTES);
  buf_append(&p->l->task, json_string_value(task), json_string_length(task));
  return true;
}

/* "allow_secret": true is a person's word that a key in them is meant. */
static bool allows_keys(const struct launch_body *p) {
  const json_t *allowed = json_object_get(p->body, "allow_secret");
  if (allowed != NULL && !json_is_boolean(allowed))
    return err_set(p->err, ERR_INVALID, "allow_secret must be true or false");
  const json_t *doc = p->remembered ? NULL : p->l->workflow->doc; /* it was searched then */
  return json_is_true(allowed) || keys_check(doc, buf_view(&p->l->task),
                                             p->l->generation->user.hidden, "allow_secret", p->err);
}

struct preflight launch_flight(const struct launch_body *p) {
  const struct launch *l = p->l;
  return (struct preflight){.workflow = l->workflow,
                            .config = l->config,
                            .registry = l->generation->registry,
                            .marks = p->marks,
                            .has_scenario = l->scenario != NULL,
                            .has_task = l->task.n > 0,
                            .looks = true,
                            .cache = l->generation->looked};
}

/* Whoever it would call is there, as `segue run` sees to it. */
static bool can_run(const struct launch_body *p) {
  struct err_list unwanted = {0};
  const struct preflight flight = launch_flight(p);
  preflight_check(&flight, p->errors, p->warnings ? p->warnings : &unwanted);
  err_list_deinit(&unwanted);
  if (p->errors->count == 0)
    return true;
  *p->err = p->errors->items[0];
  if (p->errors->count > 1)
    (void)err_set(p->err, ERR_FILE, "the workflow cannot run here");
  return false;
}

/* All that tells whether the workflow can run, beside itself. */
static void make_setting(const struct launch_body *p, char setting[SHA256_HEX]) {
  const struct launch *l = p->l;
  struct buf all = {0};
  buf_printf(&all, "%d %d ", l->scenario != NULL, l->task.n > 0);
  json_write(l->config, &all);
  sha256_hex(all.p, all.n, NULL, 0, setting);
  buf_deinit(&all);
}

/* A workflow that was remembered has no places: what is wrong is looked for once more then. */
static bool can_run_at_last(struct launch_body *p) {
  struct launch *l = p->l;
  char setting[SHA256_HEX];
  int64_t now_ms = (int64_t)clock_mono_ms();
  make_setting(p, setting);
  if (p->remembered && memo_is_fit(l->generation->memo, p->key, setting, now_ms))
    return true;
  bool fit = can_run(p);
  if (fit && p->remembered)
    memo_set_fit(l->generation->memo, p->key, setting, now_ms);
  if (fit || !p->remembered)
    return fit;
  err_list_deinit(p->errors);
  workflow_unref(l->workflow);
  json_decref(l->facets);
  l->workflow = NULL;
  l->facets = NULL;
  p->remembered = false;
  p->anew = true;
  return take_workflow(p) && can_run(p);
}

static void remember(const struct launch_body *p) {
  bool insists = json_is_true(json_object_get(p->body, "allow_secret"));
  if (p->key[0] != '\0' && !p->remembered && !insists)
    memo_put(p->l->generation->memo, p->key, p->l->workflow);
}

/* A long task is a blob in its log, which is written before its first record. */
static bool keep_task(const struct launch_body *p) {
  struct str task = buf_view(&p->l->task);
  return !text_needs_blob(task) || keep_blob(p, task, p->l->task_blob);
}

void launch_init(struct launch *l, struct launch_env *env) {
  *l = (struct launch){
      .env = env, .generation = generation_ref(env->generation), .known = scenario_newest(env)};
}

bool launch_read(struct launch_body *p) {
  static const char *const members[] = {
      "workflow",    "task",     "cwd",          "provider",  "providers", "model",
      "options",     "scenario", "allow_secret", "lock",      "inputs",    "workspace",
      "interactive", "unique",   "if_running",   "not_after", "source",    NULL};
  struct launch *l = p->l;
  const json_t *attended = json_object_get(p->body, "interactive");
  l->config = json_object();
  bool ok = json_is_object(p->body) ||
            err_set(p->err, ERR_INVALID, "the body must be an object with workflow, task and cwd");
  if (ok && attended != NULL && !json_is_boolean(attended))
    ok = err_set(p->err, ERR_INVALID, "interactive must be true or false");
  ok = ok && launch_members_known(p, p->body, "", members) && launch_take_cwd(p) &&
       take_provider(p) && take_providers(p) && take_text(p, "model") && take_options(p) &&
       take_place(p) && take_turn(p);
  if (ok) {
    json_object_set_new(l->config, "interactive", json_boolean(json_is_true(attended)));
    json_object_set_new(l->config, "submitted", json_true());
    config_resolve(&l->generation->user, l->config);
    launch_use_config(l);
  }
  ok = ok && take_workflow(p) && take_task(p) && (p->lints || launch_take_scenario(p)) &&
       (p->lints || can_run_at_last(p)) && allows_keys(p);
  if (ok)
    remember(p);
  return ok;
}

bool launch_parse(struct launch *l, const json_t *body, struct err *err, struct err_list *errors) {
  struct launch_body p = {.l = l, .body = body, .err = err, .errors = errors};
  bool ok = launch_read(&p) && keep_task(&p);
  workflow_marks_free(p.marks);
  if (ok)
    l->setup.scenario = l->scenario ? &l->scenario->scenario : NULL;
  return ok;
}

void launch_share(struct launch *l) {
  struct shared_scenario *own = l->scenario;
  scenario_unref(l->env, l->known);
  l->known = NULL;
  if (l->workflow != NULL)
    l->workflow = workflow_cache_share(l->env->workflows, l->workflow);
  if (own == NULL)
    return;
  l->scenario = scenario_known(l->env, own->scenario.sha256);
  if (l->scenario != NULL) {
    scenario_unref(l->env, own);
  } else {
    l->scenario = own;
    scenario_add(l->env, own);
  }
  l->setup.scenario = &l->scenario->scenario;
}

/* --- from a log --- */

/* The file when it is as it was, else the bytes that were kept. */
static bool scenario_again(struct launch *l, struct err *err) {
  const json_t *written = json_object_get(l->config, "scenario");
  const char *path = json_string_value(json_object_get(written, "path"));
  const char *sha256 = json_string_value(json_object_get(written, "sha256"));
  struct buf bytes = {0};
  if (path == NULL || sha256 == NULL)
    return true;
  l->scenario = scenario_known(l->env, sha256);
  if (l->scenario != NULL)
    return true;
  struct err ignored;
  bool ok = store_blob_get(l->env->store, sha256, &bytes, err);
  if (!ok) {
    char now[SHA256_HEX] = "";
    buf_clear(&bytes);
    if (file_read(path, LIMIT_SCENARIO_BYTES, &bytes, &ignored))
      sha256_hex(bytes.p, bytes.n, NULL, 0, now);
    ok = strcmp(now, sha256) == 0;
    if (!ok)
      (void)err_set(err, ERR_NOT_FOUND, "the scenario %.300s is gone or changed", path);
  }
  if (ok)
    l->scenario = scenario_read(path, buf_view(&bytes), err);
  if (l->scenario != NULL)
    scenario_add(l->env, l->scenario);
  buf_deinit(&bytes);
  return l->scenario != NULL;
}

bool launch_find_scenario(struct launch *l, struct err *err) {
  if (l->scenario == NULL && !scenario_again(l, err))
    return false;
  l->setup.scenario = l->scenario ? &l->scenario->scenario : NULL;
  return true;
}

bool launch_again(struct launch *l, struct launch_env *env, json_t *config, struct err *err) {
  *l = (struct launch){
      .env = env, .generation = generation_ref(env->generation), .config = json_incref(config)};
  const char *cwd = json_string_value(json_object_get(config, "cwd"));
  bool ok = cwd != NULL && launch_is_folder(cwd);
  if (!ok)
    (void)err_set(err, ERR_NOT_FOUND, "the working directory %.300s is gone", cwd ? cwd : "");
  ok = ok && scenario_again(l, err);
  if (ok)
    launch_use_config(l);
  else
    launch_deinit(l);
  return ok;
}
