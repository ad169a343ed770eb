/* Checks before a start that a workflow can run. */
#include "host/preflight.h"

#include "core/decide.h"
#include "format/json_object.h"
#include "host/paths.h"

#include <stdio.h>
#include <string.h>

void preflight_warn(const json_t *files, const char *cwd, struct err_list *warnings) {
  char project[PATHS_BYTES], foreign[PATHS_BYTES];
  size_t i;
  const json_t *entry;
  struct err err;
  paths_project_facets(cwd, project, foreign);
  if (foreign[0]) {
    (void)err_set(&err, ERR_INVALID,
                  "%.400s is not looked into: it is another user's, or others may write to it",
                  foreign);
    err_list_add(warnings, &err);
  }
  json_array_foreach((json_t *)files, i, entry) {
    const json_t *shadows = json_object_get(entry, "shadows");
    if (shadows == NULL)
      continue;
    (void)err_set(&err, ERR_INVALID,
                  "the project's %s %.400s stands in for your own, %.400s: if that is not meant, "
                  "write the path of yours",
                  json_string_value(json_object_get(entry, "kind")),
                  json_string_value(json_object_get(entry, "file")), json_string_value(shadows));
    err_list_add(warnings, &err);
  }
}

struct workflow *preflight_load(struct workflow_source source, const char *cwd,
                                const json_t *config, const struct provider_registry *registry,
                                struct err_list *errors, struct err_list *warnings) {
  struct workflow_marks *marks = NULL;
  struct workflow *workflow = NULL;
  char project[PATHS_BYTES], foreign[PATHS_BYTES], home[PATHS_BYTES],
      user[PATHS_BYTES + 16] = "", dir[PATHS_BYTES];
  struct err err = {0};
  paths_project_facets(cwd, project, foreign);
  paths_home_facets(home);
  if (paths_config(dir, &err))
    (void)snprintf(user, sizeof user, "%s/facets", dir);
  source.project_facets = project[0] ? project : NULL;
  source.home_facets = home[0] ? home : NULL;
  source.user_facets = user[0] ? user : NULL;
  source.named_by_user = true;
  json_t *doc = workflow_load_marked(&source, errors, &marks);
  if (doc != NULL) {
    const json_t *standard = json_object_get(config, "default_provider");
    const struct lint_env env = {
        .providers = registry_capabilities(registry),
        .provider = str_from(json_string_value(standard)),
        .chosen = str_from(json_string_value(json_object_get(config, "provider")))};
    workflow_lint(doc, marks, &env, errors, warnings);
    preflight_warn(source.facet_files, cwd, warnings);
  }
  if (doc != NULL && errors->count == 0) {
    workflow = workflow_build(doc, &err);
    if (workflow == NULL)
      err_list_add(errors, &err);
  }
  json_decref(doc);
  workflow_marks_free(marks);
  return workflow;
}

/* The workflow that is to run, as it is checked. */
struct plan {
  const struct workflow *workflow;
  const json_t *config;
  const struct provider_registry *registry;
  bool has_scenario;
};

/* The names in --provider MOVEMENT=P must be movements. */
static bool check_names(const struct plan *plan, struct err *err) {
  const char *name;
  json_t *value;
  json_object_foreach(json_object_get(plan->config, "providers"), name, value) {
    long index = workflow_find(plan->workflow, str_from(name));
    if (index < 0)
      return err_set(err, ERR_USAGE, "--provider %.80s=%s: the workflow has no such movement", name,
                     json_string_value(value));
    bool command = plan->workflow->movements[index].argv != NULL;
    if (command || str_eq_c(str_from(json_string_value(value)), "command"))
      return err_set(err, ERR_USAGE, "--provider %.80s=%s: %s", name, json_string_value(value),
                     command ? "that movement is a command" : "that movement has no command");
  }
  return true;
}

/* Who corrects answers that do not fit, where there are any. */
static bool preflight_check_reask(const struct plan *plan, size_t i, bool *scripted,
                                  struct err *err) {
  const struct movement *m = &plan->workflow->movements[i];
  struct str reask, model;
  if (m->structured == NULL || m->structured->max_reasks == 0)
    return true;
  core_reask_backend(plan->workflow, plan->config, i, &reask, &model);
  const struct capability *cap = capability_find(registry_capabilities(plan->registry), reask);
  *scripted |= str_eq_c(reask, "script");
  return (cap != NULL && cap->can_judge) ||
         err_set(err, ERR_USAGE,
                 "movement %.*s: provider %.*s cannot correct an answer: name another in "
                 "structured_output.reask, or set max_reasks: 0",
                 (int)m->name.n, m->name.p, (int)reask.n, reask.n ? reask.p : "");
}

static bool panel_names(const struct movement *m, const char *name) {
  size_t i;
  const json_t *judge;
  json_array_foreach((json_t *)m->judge.panel, i, judge) {
    if (str_eq_c(json_view(judge), name))
      return true;
  }
  return false;
}

/* Does this judge take what its movement says? */
static bool preflight_judge(const struct movement *m, const struct capability *cap,
                            struct err *err) {
  json_auto_t *effort = json_object();
  if (m->judge.effort != NULL && !json_is_null(m->judge.effort))
    json_object_set(effort, "effort", (json_t *)m->judge.effort);
  return provider_check_options(cap, m->judge.options, err) &&
         provider_check_options(cap, effort, err);
}

static bool preflight_check_panel(const struct plan *plan, const struct movement *m,
                                  struct err *err) {
  size_t i;
  const json_t *name;
  json_array_foreach((json_t *)m->judge.panel, i, name) {
    struct str judge = json_view(name);
    const struct capability *cap = capability_find(registry_capabilities(plan->registry), judge);
    if (cap == NULL || !cap->can_judge)
      return err_set(err, ERR_USAGE,
                     "movement " STR_FMT ": provider " STR_FMT " cannot judge: leave it out of "
                     "judge.panel",
                     STR_ARG(m->name), STR_ARG(judge));
    if (!preflight_judge(m, cap, err))
      return err_wrap(err, "movement " STR_FMT ", judge", STR_ARG(m->name));
  }
  return true;
}

static bool check_movement(const struct plan *plan, size_t i, struct err *err) {
  const struct movement *m = &plan->workflow->movements[i];
  const struct capability *capabilities = registry_capabilities(plan->registry);
  struct str provider, model, judge, judge_model;
  core_backend(plan->workflow, plan->config, i, &provider, &model);
  core_judge_backend(plan->workflow, plan->config, i, &judge, &judge_model);
  if (provider.n == 0)
    return err_set(err, ERR_USAGE,
                   "movement %.*s has no provider: write provider: in the file, or give --provider",
                   (int)m->name.n, m->name.p);
  const struct capability *cap = capability_find(capabilities, provider);
  if (cap == NULL)
    return err_set(err, ERR_USAGE, "movement %.*s: there is no provider \"%.*s\"", (int)m->name.n,
                   m->name.p, (int)provider.n, provider.p);
  if (str_eq_c(provider, "command") && m->argv == NULL)
    return err_set(err, ERR_USAGE,
                   "movement %.*s: provider command needs command: [program, arguments...]",
                   (int)m->name.n, m->name.p);
  if (m->argv == NULL &&
      (!provider_check_options(cap, json_object_get(plan->config, "default_options"), err) ||
       !provider_check_options(cap, m->options, err) ||
       !provider_check_options(cap, json_object_get(plan->config, "options"), err)))
    return err_wrap(err, "movement %.*s", (int)m->name.n, m->name.p);
  const struct chain_spec spec = {.rules = m->rules,
                                  .rule_count = m->rule_count,
                                  .movement = m->name,
                                  .stages = m->judge.stages,
                                  .stage_count = m->judge.stage_count};
  const struct capability *judge_cap = capability_find(capabilities, judge);
  bool asks = m->structured != NULL && invariants_need(m->structured->invariants, INVARIANT_AI);
  bool needs = chain_needs_judge(&spec) || asks;
  if (needs && judge.n == 0 && m->argv != NULL)
    return err_set(
        err, ERR_USAGE,
        "nothing can judge %.*s: give --provider, or only the stage phase1_tag, which needs "
        "none",
        (int)m->name.n, m->name.p);
  if (needs && (judge_cap == NULL || !judge_cap->can_judge))
    return err_set(err, ERR_USAGE,
                   "movement %.*s: provider %.*s cannot judge: name another in judge.provider",
                   (int)m->name.n, m->name.p, (int)judge.n, judge.n ? judge.p : "");
  if (needs && !preflight_judge(m, judge_cap, err))
    return err_wrap(err, "movement %.*s, judge", (int)m->name.n, m->name.p);
  if (needs && !preflight_check_panel(plan, m, err))
    return false;
  bool scripted = str_eq_c(provider, "script") ||
                  (needs && (str_eq_c(judge, "script") || panel_names(m, "script")));
  if (!preflight_check_reask(plan, i, &scripted, err))
    return false;
  if (scripted && !plan->has_scenario)
    return err_set(err, ERR_USAGE,
                   "movement %.*s runs on the script provider: give --scenario FILE",
                   (int)m->name.n, m->name.p);
  return true;
}

bool preflight_check(const struct workflow *workflow, const json_t *config,
                     const struct provider_registry *registry, bool has_scenario, struct err *err) {
  const struct plan plan = {workflow, config, registry, has_scenario};
  if (!check_names(&plan, err))
    return false;
  for (size_t i = 0; i < workflow->movement_count; i++)
    if (!check_movement(&plan, i, err))
      return false;
  return true;
}
