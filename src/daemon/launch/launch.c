/* Makes a launch from a request, or again from a log. */
#include "daemon/launch/internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "host/key_leak.h"
#include "host/preflight.h"
#include "host/sandbox_config.h"
#include "host/workflow_cache.h"
#include "workflow/facets.h"

#include <stdlib.h>

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

bool launch_keep_blob(const struct launch_body *p, struct str bytes, char sha256[SHA256_HEX]) {
  if (store_blob_put(p->l->env->store, bytes, sha256, p->err))
    return true;
  if (p->err->code == ERR_NOT_FOUND) /* our folder, not what the client named */
    p->err->code = ERR_IO;
  return false;
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

/* With "allow_secret": true a person confirms that a key in the workflow or task is intended. */
static bool allows_keys(const struct launch_body *p) {
  const json_t *allowed = json_object_get(p->body, "allow_secret");
  if (allowed != NULL && !json_is_boolean(allowed))
    return err_set(p->err, ERR_INVALID, "allow_secret must be true or false");
  return json_is_true(allowed) || keys_check(p->l->workflow->doc, buf_view(&p->l->task),
                                             p->l->generation->user.hidden, "allow_secret", p->err);
}

struct preflight launch_flight(const struct launch_body *p) {
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
  struct err_list unwanted = {0};
  const struct preflight flight = launch_flight(p);
  preflight_check(&flight, p->errors, p->warnings ? p->warnings : &unwanted);
  err_list_deinit(&unwanted);
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

bool launch_read(struct launch_body *p) {
  static const char *const members[] = {
      "workflow",   "task",         "cwd",    "provider", "providers", "model",       "options",
      "scenario",   "allow_secret", "lock",   "inputs",   "workspace", "interactive", "unique",
      "if_running", "not_after",    "source", "on",       NULL};
  struct launch *l = p->l;
  const json_t *attended = json_object_get(p->body, "interactive");
  l->config = json_object();
  bool ok = json_is_object(p->body) ||
            err_set(p->err, ERR_INVALID, "the body must be an object with workflow, task and cwd");
  if (ok && attended != NULL && !json_is_boolean(attended))
    ok = err_set(p->err, ERR_INVALID, "interactive must be true or false");
  ok = ok && launch_members_known(p, p->body, "", members) && launch_take_cwd(p) &&
       launch_take_provider(p) && launch_take_providers(p) && launch_take_text(p, "model") &&
       launch_take_options(p) && launch_take_place(p) && launch_take_turn(p);
  if (ok) {
    json_object_set_new(l->config, "interactive", json_boolean(json_is_true(attended)));
    json_object_set_new(l->config, "submitted", json_true());
    config_resolve(&l->generation->user, l->config);
    if (p->runs)
      sandbox_make_ready(l->config);
    launch_use_config(l);
  }
  ok = ok && launch_take_workflow(p) && take_task(p) && (p->lints || launch_take_scenario(p)) &&
       (p->lints || can_run(p)) && allows_keys(p);
  return ok;
}

bool launch_parse(struct launch *l, const json_t *body, struct err *err, struct err_list *errors) {
  struct launch_body p = {.l = l, .body = body, .err = err, .errors = errors, .runs = true};
  bool ok = launch_read(&p) && keep_task(&p);
  workflow_marks_free(p.marks);
  if (ok)
    l->setup.scenario = l->scenario ? &l->scenario->scenario : NULL;
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
  bool ok = cwd != NULL && launch_is_folder(cwd);
  if (!ok)
    err_set(err, ERR_NOT_FOUND, "the working directory %.300s is gone", cwd ? cwd : "");
  ok = ok && launch_scenario_again(l, err);
  if (ok)
    launch_use_config(l);
  else
    launch_deinit(l);
  return ok;
}
