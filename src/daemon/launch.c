/* Makes a launch: from a request, again from a log, or from a question that is answered at once. */
#include "daemon/launch.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/config.h"
#include "host/key_leak.h"
#include "host/plan.h"
#include "host/preflight.h"
#include "host/sandbox_config.h"
#include "host/trust.h"
#include "host/workspace_set.h"
#include "os/clock.h"
#include "store/predecessor.h"
#include "store/worker.h"
#include "workflow/facets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- the user's configuration, read anew: one generation each time --- */

struct generation *generation_new(struct err *err) {
  struct generation *g = xcalloc(1, sizeof *g);
  g->references = 1;
  if (!config_load(&g->user, err)) {
    free(g);
    return NULL;
  }
  g->registry = backends_new(&g->user, err);
  if (g->registry == NULL) {
    config_deinit(&g->user);
    free(g);
    return NULL;
  }
  backends_warn(g->registry);
  overrides_warn();
  return g;
}

struct generation *generation_ref(struct generation *g) {
  g->references++;
  return g;
}

void generation_unref(struct generation *g) {
  if (g == NULL || --g->references > 0)
    return;
  registry_free(g->registry);
  config_deinit(&g->user);
  free(g);
}

/* --- the body of a request --- */

struct shared_scenario {
  struct shared_scenario *next;
  unsigned references;
  struct scenario scenario;
};

struct launch_body {
  struct launch *l;
  const json_t *body;
  struct err *err;
  struct err_list *errors;
  struct workflow_marks *marks; /* of the workflow's file */
  struct err_list *warnings;    /* or NULL: not wanted */
  bool lints;                   /* only the workflow is checked, not what would run it */
  bool runs;                    /* a session is to begin, not just described */
};

/* Keeps the bytes as a blob of the store, named sha256. */
static bool launch_keep_blob(const struct launch_body *p, struct str bytes,
                             char sha256[SHA256_HEX]) {
  if (store_blob_put(p->l->env->store, bytes, sha256, p->err))
    return true;
  if (p->err->code == ERR_NOT_FOUND) /* our folder, not what the client named */
    p->err->code = ERR_IO;
  return false;
}

/* Returns a member as text; NULL when it is missing. *ok turns false when it is something else. */
static const char *launch_text_of(const struct launch_body *p, const char *key, bool *ok) {
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

/* Put members into the launch's config: its turn (which others keep it from running, and until when
 * it may begin) and its place (where it works, and what others may do there meanwhile). */
static bool launch_take_text(const struct launch_body *p, const char *key) {
  bool ok = true;
  const char *text = launch_text_of(p, key, &ok);
  if (ok && text != NULL)
    json_object_set_new(p->l->config, key, json_string(text));
  return ok;
}

static bool launch_take_cwd(const struct launch_body *p) {
  bool ok = true;
  const char *cwd = launch_text_of(p, "cwd", &ok);
  if (!ok)
    return false;
  if (cwd == NULL || cwd[0] != '/')
    return err_set(p->err, ERR_INVALID, "cwd must be given, as an absolute path");
  if (strlen(cwd) >= STORE_PATH_BYTES || !file_is_folder(cwd))
    return err_set(p->err, ERR_INVALID, "cwd %.300s is not a folder", cwd);
  json_object_set_new(p->l->config, "cwd", json_string(cwd));
  return true;
}

static bool launch_take_providers(const struct launch_body *p) {
  const json_t *providers = json_object_get(p->body, "providers");
  if (providers == NULL)
    return true;
  if (!json_is_object(providers))
    return err_set(p->err, ERR_INVALID, "providers must be an object of movement: provider");
  JSON_MEMBERS((json_t *)providers, movement, name) {
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

static bool launch_take_provider(const struct launch_body *p, const char *key) {
  if (!launch_take_text(p, key))
    return false;
  const char *name = json_string_value(json_object_get(p->l->config, key));
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

/* Looks only at what is in the store, so that a session can never come to wait for itself: none can
 * name one that is submitted later. */
static bool launch_take_after(const struct launch_body *p) {
  const json_t *words = json_object_get(p->body, "after");
  const json_t *any = json_object_get(p->body, "after_any_end");
  if (words != NULL && !json_is_array(words))
    return err_set(p->err, ERR_INVALID, "after must be a list of sessions' ids");
  if (json_array_size(words) > LIMIT_AFTER_COUNT)
    return err_set(p->err, ERR_INVALID, "after names more than %u sessions", LIMIT_AFTER_COUNT);
  if (any != NULL && (!json_is_boolean(any) || words == NULL))
    return err_set(p->err, ERR_INVALID, "after_any_end must be true or false, and needs after");
  if (json_array_size(words) == 0 || !p->runs)
    return true;
  json_t *ids = predecessors_find(p->l->env->store, words, p->err);
  json_object_set_new(p->l->config, "after", ids);
  if (ids != NULL && json_is_true(any))
    json_object_set_new(p->l->config, "after_any_end", json_true());
  return ids != NULL;
}

static bool launch_take_turn(const struct launch_body *p) {
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
  if (!launch_take_after(p))
    return false;
  p->l->skips = key != NULL && (how == NULL || strcmp(how, "skip") == 0);
  return launch_take_text(p, "unique") && launch_take_text(p, "not_after");
}

static bool launch_take_options(const struct launch_body *p) {
  const json_t *options = json_object_get(p->body, "options");
  if (options != NULL && !json_is_object(options))
    return err_set(p->err, ERR_INVALID, "options must be an object, such as {\"seed\": 1}");
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
  json_object_set(p->l->config, "on", (json_t *)on);
  if (on == NULL && label != NULL)
    json_object_set_new(p->l->config, "on", json_pack("[s]", label));
  return true;
}

static bool launch_take_place(const struct launch_body *p) {
  if (!launch_take_on(p))
    return false;
  const json_t *lock = json_object_get(p->body, "lock");
  if (lock != NULL && !json_is_boolean(lock))
    return err_set(p->err, ERR_INVALID, "lock must be true or false");
  if (json_is_false(lock))
    json_object_set_new(p->l->config, "lock", json_false());
  json_t *above = json_object_get(p->body, "ask_above");
  if (above != NULL && !json_is_false(above))
    return err_set(p->err, ERR_INVALID, "ask_above can only be false");
  json_object_set(p->l->config, "ask_above", above);
  const json_t *typed = json_object_get(p->body, "task_typed");
  if (typed != NULL && !json_is_boolean(typed))
    return err_set(p->err, ERR_INVALID, "task_typed must be true or false");
  if (json_is_true(typed))
    json_object_set_new(p->l->config, "task_typed", json_true());
  json_t *may = json_object_get(p->body, "may_change");
  for (size_t i = 0; may != NULL && (i == 0 || i < json_array_size(may)); i++)
    if (json_array_size(may) > 64 || !json_is_string(json_array_get(may, i)))
      return err_set(p->err, ERR_INVALID, "may_change must be a list of 1 to 64 patterns");
  json_object_set(p->l->config, "may_change", may);
  json_t *source = json_object_get(p->body, "source");
  if (source != NULL && !workspace_source_check(source, p->err))
    return false;
  json_object_set(p->l->config, "source", source);
  json_t *set = json_object_get(p->body, "workspace");
  if (set != NULL && !workspace_set_check(set, false, p->err))
    return false;
  json_object_set(p->l->config, "workspace", set);
  return true;
}

/* Reads a member that is an absolute path, or {"text": ...}, which leaves *path NULL. */
static bool launch_path_or_text(const struct launch_body *p, const char *key, const char **path,
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

/* --- scenarios: the body's goes into the config and the launch; one named by a log's config comes
 * from the file if that is unchanged, otherwise from the kept bytes --- */

static struct shared_scenario *scenario_known(struct launch_env *env, const char *sha256) {
  for (struct shared_scenario *s = env->scenarios; s; s = s->next)
    if (strcmp(s->scenario.sha256, sha256) == 0) {
      s->references++;
      return s;
    }
  return NULL;
}

/* The result has one reference, and is not in the list yet. */
static struct shared_scenario *scenario_read(const char *path, struct str text, struct err *err) {
  struct shared_scenario *s = xcalloc(1, sizeof *s);
  if (!scenario_parse(&s->scenario, path, text, err)) {
    free(s);
    return NULL;
  }
  s->references = 1;
  return s;
}

/* Returns a reference to the scenario used last: successive requests mostly bring the same one. */
static struct shared_scenario *launch_newest_scenario(const struct launch_env *env) {
  if (env->scenarios != NULL)
    env->scenarios->references++;
  return env->scenarios;
}

static void scenario_add(struct launch_env *env, struct shared_scenario *s) {
  s->next = env->scenarios;
  env->scenarios = s;
}

static void launch_drop_scenario(struct launch_env *env, struct shared_scenario *s) {
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

static bool keep_scenario(const struct launch_body *p, const char *path, struct str text) {
  char sha256[SHA256_HEX], name[STORE_NAME_BYTES];
  struct launch *l = p->l;
  struct stat st;
  sha256_hex(text.p, text.n, NULL, 0, sha256);
  store_blob_name(l->env->store, sha256, name);
  bool known = l->known != NULL && strcmp(l->known->scenario.sha256, sha256) == 0;
  if (known) {
    l->scenario = l->known;
    l->known = NULL;
  } else {
    l->scenario = scenario_read(path ? path : "scenario", text, p->err);
  }
  if (l->scenario == NULL)
    return false;
  /* the blob of a known one was durable when a log first named it: to sync its folders for each
   * submit would take longer than the rest of it */
  known = known && stat(name, &st) == 0 && (uint64_t)st.st_size == text.n;
  if (!known && !launch_keep_blob(p, text, sha256))
    return false;
  json_object_set_new(l->config, "scenario",
                      json_pack("{ss ss}", "path", path ? path : name, "sha256", sha256));
  return true;
}

static bool launch_take_scenario(const struct launch_body *p) {
  static const char *const members[] = {"text", NULL};
  const char *path;
  const json_t *text, *value = json_object_get(p->body, "scenario");
  buf_auto_t bytes = {0};
  if (value == NULL)
    return true;
  if (!launch_path_or_text(p, "scenario", &path, &text) ||
      !resume_options_members_known(value, "scenario.", members, p->err))
    return false;
  bool ok = path == NULL || file_read(path, LIMIT_SCENARIO_BYTES, &bytes, p->err);
  if (!ok && p->err->code == ERR_IO) /* what the client named, not our folder */
    p->err->code = ERR_INVALID;
  if (path == NULL)
    buf_append(&bytes, json_string_value(text), json_string_length(text));
  return ok && keep_scenario(p, path, buf_view(&bytes));
}

static bool launch_scenario_again(struct launch *l, struct err *err) {
  const json_t *written = json_object_get(l->config, "scenario");
  const char *path = json_string_value(json_object_get(written, "path"));
  const char *sha256 = json_string_value(json_object_get(written, "sha256"));
  buf_auto_t bytes = {0};
  if (path == NULL || sha256 == NULL)
    return true;
  l->scenario = scenario_known(l->env, sha256);
  if (l->scenario != NULL)
    return true;
  struct err ignored;
  /* Once for each scenario; they are for trying workflows out, so the loop may wait for this. */
  bool nobody = worker_asks_nobody(false);
  bool ok = store_blob_get(l->env->store, sha256, &bytes, err);
  (void)worker_asks_nobody(nobody);
  if (!ok) {
    char now[SHA256_HEX] = "";
    buf_clear(&bytes);
    if (file_read(path, LIMIT_SCENARIO_BYTES, &bytes, &ignored))
      sha256_hex(bytes.p, bytes.n, NULL, 0, now);
    ok = strcmp(now, sha256) == 0;
    if (!ok)
      err_set(err, ERR_NOT_FOUND, "the scenario %.300s is gone or changed", path);
  }
  if (ok)
    l->scenario = scenario_read(path, buf_view(&bytes), err);
  if (l->scenario != NULL)
    scenario_add(l->env, l->scenario);
  return l->scenario != NULL;
}

bool launch_find_scenario(struct launch *l, struct err *err) {
  if (l->scenario == NULL && !launch_scenario_again(l, err))
    return false;
  l->setup.scenario = l->scenario ? &l->scenario->scenario : NULL;
  return true;
}

static void launch_share_scenario(struct launch *l) {
  struct shared_scenario *own = l->scenario;
  launch_drop_scenario(l->env, l->known);
  l->known = NULL;
  if (own == NULL)
    return;
  l->scenario = scenario_known(l->env, own->scenario.sha256);
  if (l->scenario != NULL) {
    launch_drop_scenario(l->env, own);
  } else {
    l->scenario = own;
    scenario_add(l->env, own);
  }
  l->setup.scenario = &l->scenario->scenario;
}

/* --- the workflow --- */

/* Checks the form {kind: {name: text}}. */
static bool facets_fit(const struct launch_body *p, const json_t *facets) {
  if (facets == NULL)
    return true;
  if (!json_is_object(facets))
    return err_set(
        p->err, ERR_INVALID,
        "workflow.facets must be an object, such as {\"personas\": {\"coder\": \"...\"}}");
  const char *folders[FACET_KIND_COUNT + 1] = {0};
  for (size_t i = 0; i < FACET_KIND_COUNT; i++)
    folders[i] = facet_folder((enum facet_kind)i);
  if (!resume_options_members_known(facets, "workflow.facets.", folders, p->err))
    return false;
  JSON_MEMBERS(facets, kind, named) {
    if (!json_is_object(named))
      return err_set(p->err, ERR_INVALID, "workflow.facets.%s must be an object of name: text",
                     kind);
    JSON_MEMBERS(named, name, text) {
      if (!json_is_string(text))
        return err_set(p->err, ERR_INVALID, "workflow.facets.%s.%.80s must be a text", kind, name);
    }
  }
  return true;
}

static bool inputs_fit(const struct launch_body *p) {
  const json_t *inputs = json_object_get(p->body, "inputs");
  if (inputs != NULL && !json_is_object(inputs))
    return err_set(p->err, ERR_INVALID, "inputs must be an object of name: text");
  JSON_MEMBERS(inputs, name, value) {
    if (!json_is_string(value))
      return err_set(p->err, ERR_INVALID, "inputs.%.80s must be a text", name);
  }
  return true;
}

/* Puts the workflow of the body into the launch. */
json_t *launch_replaced(const json_t *body) {
  json_t *replaced = json_object();
  JSON_MEMBERS(body, key, given)
    if (strcmp(key, "budget") == 0 || strcmp(key, "max_movements") == 0)
      json_object_set(replaced, key, given);
  return replaced;
}

static bool launch_take_workflow(struct launch_body *p) {
  static const char *const members[] = {"text", "name", "facets", NULL};
  const json_t *value = json_object_get(p->body, "workflow"), *text;
  const json_t *facets = json_object_get(value, "facets");
  const json_t *named = json_object_get(value, "name");
  const char *path, *name = json_string_value(named);
  struct launch *l = p->l;
  struct err_list unwanted = {0}, *warnings = p->warnings ? p->warnings : &unwanted;
  if (!launch_path_or_text(p, "workflow", &path, &text) || !inputs_fit(p))
    return false;
  if (named != NULL && name == NULL)
    return err_set(p->err, ERR_INVALID, "workflow.name must be a text");
  if (!resume_options_members_known(value, "workflow.", members, p->err) || !facets_fit(p, facets))
    return false;
  json_auto_t *none = json_object();
  if (name == NULL)
    name = "workflow";
  if (facets == NULL)
    facets = none;
  l->facets = json_array();
  json_auto_t *replace = launch_replaced(p->body);
  const struct workflow_source source = {
      .path = path ? path : name,
      .text = path ? NULL : json_string_value(text),
      .n = path ? 0 : json_string_length(text),
      .facets = path ? NULL : facets,
      .facet_files = l->facets,
      .inputs = json_object_get(p->body, "inputs"),
      .replace = replace,
      .starts = !p->lints,
  };
  l->workflow = preflight_load(source, l->setup.cwd, l->config, l->generation->registry, p->errors,
                               warnings, &p->marks);
  err_list_deinit(&unwanted);
  if (l->workflow == NULL)
    return err_set(p->err, ERR_FILE, "the workflow has errors");
  sandbox_inherit(l->config, l->workflow, registry_capabilities(l->generation->registry));
  if (p->runs)
    plan_put_costs(l->workflow, l->config, l->generation->registry, l->env->store);
  l->workflow_path = path ? xstrdup(path) : NULL;
  return true;
}

/* --- the launch --- */

/* Borrows from l->config, which lives as long as the launch. */
static void launch_use_config(struct launch *l) {
  const json_t *env = json_object_get(l->config, "env");
  if (json_array_size(env) > 0) {
    l->pass_env = xcalloc(json_array_size(env) + 1, sizeof *l->pass_env);
    JSON_EACH(env, i, name)
      l->pass_env[i] = json_string_value(name);
  }
  l->setup = (struct session_setup){
      .cwd = json_string_value(json_object_get(l->config, "cwd")),
      .pass_env = l->pass_env,
      .scenario = l->scenario ? &l->scenario->scenario : NULL,
  };
}

void launch_started(struct launch *l) {
  if (l->about != NULL)
    fork_deinit(&l->about->fork);
  free(l->about);
  l->about = NULL;
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
    launch_drop_scenario(l->env, l->scenario);
    launch_drop_scenario(l->env, l->known);
  }
  generation_unref(l->generation);
  json_decref(l->config);
  json_decref(l->answer);
  buf_deinit(&l->given);
  resume_options_deinit(&l->steer);
  parsed_answer_deinit(&l->said);
  free(l->pass_env);
  *l = (struct launch){0};
}

/* --- from a request --- */

static bool take_task(const struct launch_body *p) {
  const json_t *task = json_object_get(p->body, "task");
  if (task != NULL && !json_is_string(task))
    return err_set(p->err, ERR_INVALID, "task must be a text");
  if (json_string_length(task) > LIMIT_TASK_BYTES)
    return err_set(p->err, ERR_LIMIT, "the task is over the limit of %u bytes", LIMIT_TASK_BYTES);
  buf_append(&p->l->task, json_string_value(task), json_string_length(task));
  return true;
}

/* With "allow_secret": true a person confirms that a key in the workflow or task is intended. */
static bool allows_keys(const struct launch_body *p) {
  const json_t *allowed = json_object_get(p->body, "allow_secret");
  if (allowed != NULL && !json_is_boolean(allowed))
    return err_set(p->err, ERR_INVALID, "allow_secret must be true or false");
  return json_is_true(allowed) || keys_check(p->l->workflow->doc, buf_view(&p->l->task),
                                             p->l->generation->user.hidden, "allow_secret", p->err);
}

static struct preflight launch_flight(const struct launch_body *p) {
  const struct launch *l = p->l;
  return (struct preflight){.workflow = l->workflow,
                            .config = l->config,
                            .registry = l->generation->registry,
                            .marks = p->marks,
                            .has_scenario = l->scenario != NULL,
                            .has_task = str_trim(buf_view(&l->task)).n > 0,
                            .looks = true,
                            .by_api = l->asks == ASKS_JUDGMENT || l->asks == ASKS_VALUE};
}

/* Checks, as `segue run` does, that everything the workflow would call is there. */
static bool can_run(const struct launch_body *p) {
  AUTO(err_list_deinit) struct err_list unwanted = {0};
  const struct preflight flight = launch_flight(p);
  preflight_check(&flight, p->errors, p->warnings ? p->warnings : &unwanted);
  if (p->errors->count == 0)
    return true;
  *p->err = p->errors->items[0];
  if (p->errors->count > 1)
    err_set(p->err, ERR_FILE, "the workflow cannot run here");
  return false;
}

/* The log refers to a long task as a blob, which is written before the first record. */
static bool keep_task(const struct launch_body *p) {
  struct str task = buf_view(&p->l->task);
  return !text_needs_blob(task) || launch_keep_blob(p, task, p->l->task_blob);
}

void launch_init(struct launch *l, struct launch_env *env) {
  *l = (struct launch){.env = env,
                       .generation = generation_ref(env->generation),
                       .known = launch_newest_scenario(env)};
}

/* Reads the body of a session into the launch. */
static bool launch_read(struct launch_body *p) {
  static const char *const members[] = {"workflow",
                                        "task",
                                        "cwd",
                                        "provider",
                                        "providers",
                                        "model",
                                        "options",
                                        "scenario",
                                        "allow_secret",
                                        "lock",
                                        "inputs",
                                        "workspace",
                                        "interactive",
                                        "unique",
                                        "if_running",
                                        "not_after",
                                        "source",
                                        "on",
                                        "after",
                                        "after_any_end",
                                        "trust",
                                        "workflow_sha256",
                                        "budget",
                                        "max_movements",
                                        "judge_provider",
                                        "may_change",
                                        "ask_above",
                                        "task_typed",
                                        NULL};
  struct launch *l = p->l;
  const json_t *attended = json_object_get(p->body, "interactive");
  l->config = json_object();
  bool ok = json_is_object(p->body) ||
            err_set(p->err, ERR_INVALID, "the body must be an object with workflow, task and cwd");
  if (ok && attended != NULL && !json_is_boolean(attended))
    ok = err_set(p->err, ERR_INVALID, "interactive must be true or false");
  ok = ok && resume_options_members_known(p->body, "", members, p->err) && launch_take_cwd(p) &&
       launch_take_provider(p, "provider") && launch_take_provider(p, "judge_provider") &&
       launch_take_providers(p) && launch_take_text(p, "model") && launch_take_options(p) &&
       launch_take_place(p) && launch_take_turn(p) && launch_take_text(p, "trust");
  if (ok) {
    json_object_set_new(l->config, "interactive", json_boolean(json_is_true(attended)));
    json_object_set_new(l->config, "submitted", json_true());
    config_resolve(&l->generation->user, l->config);
    if (p->runs)
      sandbox_make_ready(l->config);
    launch_use_config(l);
  }
  return ok && launch_take_workflow(p) && take_task(p) && (p->lints || launch_take_scenario(p)) &&
         (p->lints || can_run(p)) && allows_keys(p);
}

/* Whoever posts a workflow's text, says `trust`, or has the very workflow that it looked at taken,
 * gives a person's word; a program that a session runs cannot (control.c). */
static bool launch_trusted(const struct launch_body *p) {
  struct launch *l = p->l;
  char sha256[SHA256_HEX];
  bool ok = true;
  const char *seen = launch_text_of(p, "workflow_sha256", &ok);
  json_auto_t *replaced = launch_replaced(p->body);
  const struct trust_file file = {.path = l->workflow_path,
                                  .cwd = l->setup.cwd,
                                  .config = l->config,
                                  .registry = l->generation->registry,
                                  .inputs = json_object_get(p->body, "inputs"),
                                  .replace = replaced};
  json_auto_t *more = ok ? trust_of_loaded(l->workflow, &file) : NULL;
  l->asks_more = json_array_size(more) > 0;
  l->asks_more &= l->asks != ASKS_JUDGMENT; /* whose command is never run */
  if (!l->asks_more)
    return ok;
  workflow_hash(l->workflow, sha256);
  const char *way = ": look at it, then segue trust FILE, or say trust";
  if (seen != NULL)
    way = ", and is not the one that was looked at: submit it again";
  if (seen != NULL && strcmp(seen, sha256) == 0)
    return true;
  if (seen == NULL && (l->workflow_path == NULL || json_object_get(l->config, "trust") != NULL))
    return true;
  return err_set(p->err, ERR_INVALID, "the workflow asks for more than a sandbox gives (%.300s)%s",
                 json_string_value(json_array_get(more, 0)), way);
}

static bool parse_session(struct launch_body *p) {
  bool ok = launch_read(p) && launch_trusted(p) && keep_task(p);
  p->l->asks_more |= json_object_get(p->body, "ask_above") != NULL; /* a person's word, too */
  if (ok)
    p->l->setup.scenario = p->l->scenario ? &p->l->scenario->scenario : NULL;
  return ok;
}

void launch_share(struct launch *l) {
  if (l->workflow != NULL)
    l->workflow = workflow_cache_share(l->env->workflows, l->workflow);
  launch_share_scenario(l);
}

/* --- from a log --- */

bool launch_again(struct launch *l, struct launch_env *env, json_t *config, struct err *err) {
  *l = (struct launch){
      .env = env, .generation = generation_ref(env->generation), .config = json_incref(config)};
  const char *cwd = json_string_value(json_object_get(config, "cwd"));
  bool ok = file_is_folder(cwd);
  if (!ok)
    err_set(err, ERR_NOT_FOUND, "the working directory %.300s is gone", cwd ? cwd : "");
  ok = ok && launch_scenario_again(l, err);
  if (ok)
    launch_use_config(l);
  else
    launch_deinit(l);
  return ok;
}

/* --- from a request about another session --- */

static bool parse_steer(const struct launch_body *p) {
  struct launch *l = p->l;
  l->config = json_object();
  if (!resume_options_parse(&l->steer, p->body, l->generation->registry, p->err) ||
      !launch_take_scenario(p))
    return false;
  if (l->scenario != NULL)
    resume_options_set_scenario(&l->steer, json_incref(json_object_get(l->config, "scenario")));
  return true;
}

/* Reads which other folder to work in, if the request names one. */
static const char *fork_cwd(const struct launch_body *p, bool *ok) {
  if (json_object_get(p->body, "cwd") == NULL)
    return NULL;
  *ok = launch_take_cwd(p);
  return json_string_value(json_object_get(p->l->config, "cwd"));
}

static bool fork_instruction(const struct launch_body *p) {
  const json_t *text = json_object_get(p->body, "instruction");
  const struct generation *now = p->l->generation;
  if (text == NULL)
    return true;
  if (!json_is_string(text))
    return err_set(p->err, ERR_INVALID, "instruction must be a text");
  return fork_set_instruction(&p->l->about->fork,
                              (struct str){json_string_value(text), json_string_length(text)},
                              &now->user, now->registry, p->err);
}

/* The launch takes its state from the fork, as a submitted session takes it from the body. */
static bool use_fork(struct launch *l, const char *cwd, struct err *err) {
  const struct generation *now = l->generation;
  struct fork *f = &l->about->fork;
  if (!fork_settle(f, l->steer.changed, cwd, &now->user, now->registry, false, err))
    return false;
  json_decref(l->config);
  l->config = json_incref(f->config);
  json_object_set_new(l->config, "interactive", json_false());
  json_object_set_new(l->config, "submitted", json_true());
  l->workflow = workflow_ref(f->workflow);
  l->workflow_path = f->workflow_path ? xstrdup(f->workflow_path) : NULL;
  l->facets = json_incref(f->facets);
  buf_str(&l->task, buf_view(&f->task.bytes));
  memcpy(l->task_blob, f->task.blob, sizeof l->task_blob);
  launch_use_config(l);
  return true;
}

static bool parse_fork(const struct launch_body *p) {
  struct launch *l = p->l;
  bool ok = true;
  const char *from = launch_text_of(p, "from", &ok);
  l->config = json_object();
  if (ok && from == NULL)
    ok = err_set(p->err, ERR_INVALID, "from must say where to start: MOVEMENT, or MOVEMENT#N");
  ok = ok && resume_options_parse_fork(&l->steer, p->body, l->generation->registry, p->err) &&
       launch_take_scenario(p);
  const char *cwd = ok ? fork_cwd(p, &ok) : NULL;
  if (ok && l->scenario != NULL)
    resume_options_set_scenario(&l->steer, json_incref(json_object_get(l->config, "scenario")));
  return ok && fork_read(&l->about->fork, &l->about->log, from, p->err) && fork_instruction(p) &&
         use_fork(l, cwd, p->err);
}

/* --- from questions that are answered at once --- */

/* --- as a workflow of one movement --- */

/* Copies the members that are present. */
static void copy_members(json_t *to, const json_t *from, const char *const *names) {
  for (size_t i = 0; names[i] != NULL; i++)
    json_object_set(to, names[i], json_object_get(from, names[i]));
}

/* Writes out the movement (taken) as a workflow, to be checked like any file. */
static json_t *workflow_member(const struct launch_body *p, const char *name, json_t *movement) {
  static const char *const copied[] = {"language", "schema_as", NULL};
  buf_auto_t text = {0};
  json_auto_t *doc = json_pack("{ss s[o]}", "name", name, "movements", movement);
  copy_members(doc, p->body, copied);
  json_write(doc, &text);
  return json_pack("{so ss}", "text", json_stringn(text.p, text.n), "name", name);
}

/* Reads the session (taken) that represents the question. */
static bool question_session(struct launch_body *p, json_t *session) {
  static const char *const copied[] = {"cwd", "scenario", "allow_secret", NULL};
  copy_members(session, p->body, copied);
  if (json_object_get(session, "cwd") == NULL)
    json_object_set_new(session, "cwd", json_string("/"));
  p->body = session;
  p->runs = true;
  bool ok = parse_session(p);
  if (ok) /* a client waits for the answer */
    json_object_set_new(p->l->config, "wait_for_outage", json_false());
  json_decref(session);
  return ok;
}

/* --- judge --- */

static bool take_given(const struct launch_body *p) {
  const json_t *text = json_object_get(p->body, "text");
  if (!json_is_string(text))
    return err_set(p->err, ERR_INVALID, "text must be given: the text to judge");
  if (json_string_length(text) > LIMIT_TASK_BYTES)
    return err_set(p->err, ERR_LIMIT, "text is over the limit of %u bytes", LIMIT_TASK_BYTES);
  buf_append(&p->l->given, json_string_value(text), json_string_length(text));
  return true;
}

static json_t *judge_rules(const struct launch_body *p) {
  const json_t *given = json_object_get(p->body, "rules"), *condition;
  json_t *rules = json_array();
  size_t i;
  json_array_foreach(given, i, condition) {
    if (json_is_string(condition))
      json_array_append_new(rules,
                            json_pack("{sO ss}", "condition", condition, "next", "COMPLETE"));
  }
  if (i > 0 && json_array_size(rules) == json_array_size(given))
    return rules;
  json_decref(rules);
  err_set(p->err, ERR_INVALID, "rules must be a list of conditions, such as [\"approved\"]");
  return NULL;
}

/* The movement has a command that is never run: the text stands as its answer. */
static json_t *judge_movement(const struct launch_body *p, json_t *rules) {
  static const char *const members[] = {"provider", "model",      "options",
                                        "stages",   "max_reasks", NULL};
  const char *standard = p->l->generation->user.provider;
  const char *name = json_string_value(json_object_get(p->body, "name"));
  json_t *judge = json_object();
  copy_members(judge, p->body, members);
  if (json_object_get(judge, "provider") == NULL && standard != NULL)
    json_object_set_new(judge, "provider", json_string(standard));
  return json_pack("{ss s[s] so so}", "name", name ? name : "step", "command", "./given", "judge",
                   judge, "rules", rules);
}

/* Several labels need a model, unless only the text's own tag may decide. */
static bool somebody_judges(const struct launch_body *p) {
  const json_t *stages = json_object_get(p->body, "stages");
  size_t labels = 0;
  bool asks = stages == NULL;
  JSON_EACH(stages, i, item)
    asks |= str_among(str_from(json_string_value(item)), "structured_output phase3_tag ai_judge");
  JSON_EACH(json_object_get(p->body, "rules"), i, item)
    labels += !str_starts(str_from(json_string_value(item)), "when(");
  return !asks || labels < 2 || json_object_get(p->body, "provider") != NULL ||
         p->l->generation->user.provider != NULL ||
         err_set(p->err, ERR_INVALID,
                 "nothing can judge: give \"provider\", or only the stage phase1_tag, which needs "
                 "none");
}

static bool parse_judge(struct launch_body *p) {
  static const char *const members[] = {
      "text",     "rules",    "name",    "stages", "model",        "provider", "max_reasks",
      "language", "scenario", "options", "cwd",    "allow_secret", NULL};
  struct launch *l = p->l;
  if (!json_is_object(p->body))
    return err_set(p->err, ERR_INVALID, "the body must be an object with text and rules");
  if (!resume_options_members_known(p->body, "", members, p->err) || !take_given(p))
    return false;
  json_t *rules = judge_rules(p);
  if (rules == NULL)
    return false;
  if (!somebody_judges(p)) {
    json_decref(rules);
    return false;
  }
  if (!json_is_true(json_object_get(p->body, "allow_secret")) &&
      !keys_check(NULL, buf_view(&l->given), l->generation->user.hidden, "allow_secret", p->err)) {
    json_decref(rules);
    return false;
  }
  l->asks = ASKS_JUDGMENT;
  json_t *workflow = workflow_member(p, "judge", judge_movement(p, rules));
  if (!question_session(p, json_pack("{so}", "workflow", workflow)))
    return false;
  json_object_del(l->config, "submitted"); /* its text is lost when this daemon ends */
  return true;
}

/* --- ask --- */

static json_t *ask_movement(const json_t *body) {
  static const char *const members[] = {
      "schema",       "on_failure", "invariants",     "example", "repair",     "assert_format",
      "token_budget", "max_reasks", "time_budget_ms", "reask",   "keep_valid", NULL};
  json_t *structured = json_pack("{ss}", "on_failure", "error");
  copy_members(structured, body, members);
  return json_pack("{ss ss sb so s{s[s]} s[{ss ss}]}", "name", "ask", "instruction", "{task}",
                   "bare_prompt", 1, "structured_output", structured, "judge", "stages",
                   "phase1_tag", "rules", "condition", "answered", "next", "COMPLETE");
}

static bool parse_ask(struct launch_body *p) {
  static const char *const members[] = {
      "prompt",       "schema",         "invariants", "max_reasks", "on_failure", "example",
      "repair",       "assert_format",  "reask",      "schema_as",  "language",   "provider",
      "token_budget", "time_budget_ms", "model",      "options",    "scenario",   "cwd",
      "allow_secret", "keep_valid",     NULL};
  static const char *const copied[] = {"provider", "model", "options", NULL};
  if (!json_is_object(p->body))
    return err_set(p->err, ERR_INVALID, "the body must be an object with prompt and schema");
  if (!resume_options_members_known(p->body, "", members, p->err))
    return false;
  if (!json_is_string(json_object_get(p->body, "prompt")))
    return err_set(p->err, ERR_INVALID, "prompt must be given, as a text");
  if (json_object_get(p->body, "schema") == NULL)
    return err_set(p->err, ERR_INVALID,
                   "schema must be given: an object, or the name of a built-in one");
  p->l->asks = ASKS_VALUE;
  json_t *session =
      json_pack("{so sO}", "workflow", workflow_member(p, "ask", ask_movement(p->body)), "task",
                json_object_get(p->body, "prompt"));
  copy_members(session, p->body, copied);
  return question_session(p, session);
}

/* --- lint, plan --- */

json_t *launch_errors_json(const struct err_list *errors) {
  json_t *list = json_array();
  for (size_t i = 0; i < errors->count && i < LIMIT_API_ERROR_COUNT; i++) {
    const struct err *item = &errors->items[i];
    json_t *object = json_object();
    json_object_set_new(object, "message", json_text(str_from(item->text)));
    if (item->line > 0) {
      json_object_set_new(object, "file", json_text(str_from(item->file)));
      json_object_set_new(object, "line", json_integer(item->line));
      json_object_set_new(object, "column", json_integer(item->column));
    }
    json_array_append_new(list, object);
  }
  return list;
}

static bool parse_lint(struct launch_body *p) {
  AUTO(err_list_deinit) struct err_list warnings = {0};
  struct launch *l = p->l;
  p->warnings = &warnings;
  p->lints = true;
  l->asks = ASKS_NOTHING;
  bool ok = launch_read(p), told = ok || p->errors->count > 0;
  size_t count = ok ? l->workflow->movement_count : 0;
  if (told)
    l->answer = json_pack("{sb so so so}", "ok", ok, "movements",
                          ok ? json_integer((json_int_t)count) : json_null(), "errors",
                          launch_errors_json(p->errors), "warnings", launch_errors_json(&warnings));
  return told;
}

static bool parse_plan(struct launch_body *p) {
  struct launch *l = p->l;
  l->asks = ASKS_NOTHING;
  bool ok = launch_read(p);
  if (ok) {
    const struct preflight flight = launch_flight(p);
    l->answer = plan_json(&flight, l->env->store);
  }
  return ok;
}

bool launch_parse(struct launch *l, enum launch_kind kind, const json_t *body, struct err *err,
                  struct err_list *errors) {
  struct launch_body p = {.l = l, .body = body, .err = err, .errors = errors};
  bool ok = false;
  switch (kind) {
  case LAUNCH_SESSION:
    p.runs = true;
    ok = parse_session(&p);
    break;
  case LAUNCH_FORK:
    ok = parse_fork(&p);
    break;
  case LAUNCH_JUDGE:
    ok = parse_judge(&p);
    break;
  case LAUNCH_ASK:
    ok = parse_ask(&p);
    break;
  case LAUNCH_LINT:
    ok = parse_lint(&p);
    break;
  case LAUNCH_PLAN:
    ok = parse_plan(&p);
    break;
  case LAUNCH_STEER:
    ok = parse_steer(&p);
    break;
  case LAUNCH_ANSWER:
    ok = parsed_answer_parse(&l->said, body, SAYS_TEXT, err);
    break;
  case LAUNCH_APPROVE:
    ok = parsed_answer_parse(&l->said, body, SAYS_APPROVE, err);
    break;
  case LAUNCH_REJECT:
    ok = parsed_answer_parse(&l->said, body, SAYS_REJECT, err);
    break;
  case LAUNCH_SAY:
    ok = parsed_answer_parse(&l->said, body, SAYS_STEER, err);
    break;
  }
  workflow_marks_free(p.marks);
  return ok;
}
