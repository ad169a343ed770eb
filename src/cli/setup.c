#include "cli/setup.h"

#include "base/file.h"
#include "base/limits.h"
#include "host/paths.h"
#include "workflow/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const struct cli_args *args, const struct err *err, int *status) {
  *status = cli_fail(args->command->name, err);
  return false;
}

/* A folder or a device where the user was to name a file: his mistake, not a failure of ours. */
static bool bad_file(struct err *err) {
  if (err->code == ERR_IO)
    err->code = ERR_INVALID;
  return false;
}

/* -O key=value: numbers stay numbers, everything else is a word. */
static bool read_options(const struct cli_args *args, json_t *config, struct err *err) {
  const char *pair;
  for (size_t i = 0; (pair = cli_values(args, "option", i)) != NULL; i++) {
    if (!cli_is_utf8("-O", pair, err))
      return false;
    const char *equals = strchr(pair, '=');
    if (equals == NULL || equals == pair || equals[1] == '\0')
      return err_set(err, ERR_USAGE, "-O %.80s: write KEY=VALUE, such as temperature=0.2", pair);
    json_t *options = json_object_get(config, "options");
    if (options == NULL) {
      options = json_object();
      json_object_set_new(config, "options", options);
    }
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
    if (!json_is_number(value)) {
      json_decref(value);
      value = json_string(equals + 1);
    }
    json_object_setn_new(options, pair, (size_t)(equals - pair), value);
  }
  return true;
}

static bool read_providers(const struct cli_args *args, const struct provider_registry *registry,
                           json_t *config, struct err *err) {
  const char *word;
  for (size_t i = 0; (word = cli_values(args, "provider", i)) != NULL; i++) {
    if (!cli_is_utf8("--provider", word, err))
      return false;
    const char *equals = strrchr(word, '=');
    const char *name = equals ? equals + 1 : word;
    if (registry_find(registry, str_from(name)) == NULL) {
      struct buf names = {0};
      registry_names(registry, &names);
      (void)err_set(err, ERR_USAGE, "there is no provider \"%.80s\": use one of %s", name,
                    buf_c(&names));
      buf_deinit(&names);
      return false;
    }
    if (equals == NULL) {
      if (strcmp(name, "command") == 0)
        return err_set(
            err, ERR_USAGE,
            "provider command runs the command: of a movement; it cannot be chosen for others");
      json_object_set_new(config, "provider", json_string(word));
      continue;
    }
    json_t *providers = json_object_get(config, "providers");
    if (providers == NULL) {
      providers = json_object();
      json_object_set_new(config, "providers", providers);
    }
    json_object_setn_new(providers, word, (size_t)(equals - word), json_string(name));
  }
  return true;
}

/* The models that the user gave to single providers. */
static void set_provider_models(json_t *config, json_t *providers) {
  const char *name;
  json_t *settings, *models = json_object();
  json_object_foreach(providers, name, settings) {
    json_t *model = json_object_get(settings, "model");
    if (json_is_string(model))
      json_object_set(models, name, model);
  }
  if (json_object_size(models) > 0)
    json_object_set(config, "provider_models", models);
  json_decref(models);
}

static void set_string(json_t *config, const char *key, const char *value) {
  if (value != NULL)
    json_object_set_new(config, key, json_string(value));
}

/* A path into `out`, where it has room and a record can hold it. */
static bool keep_path(const char *flag, const char *path, char *out, size_t size, struct err *err) {
  if (strlen(path) >= size)
    return err_set(err, ERR_USAGE, "%s: the path is too long: the limit is %zu bytes", flag,
                   size - 1);
  if (!cli_is_utf8(flag, path, err))
    return false;
  memcpy(out, path, strlen(path) + 1);
  return true;
}

static bool read_cwd(struct setup *setup, const char *given, struct err *err) {
  struct stat st;
  char *real = realpath(given, NULL);
  if (real == NULL && errno == ENAMETOOLONG)
    return err_set(err, ERR_USAGE, "--cwd: the path is too long");
  bool ok = real != NULL && stat(real, &st) == 0 && S_ISDIR(st.st_mode)
                ? keep_path("--cwd", real, setup->cwd, sizeof setup->cwd, err)
                : err_set(err, ERR_USAGE, "--cwd %.200s is not a folder", given);
  free(real);
  return ok;
}

static bool read_scenario(struct setup *setup, const char *path, struct err *err) {
  if (!scenario_load(&setup->scenario, path, err))
    return bad_file(err);
  setup->has_scenario = true;
  char *real = realpath(path, NULL);
  const char *kept = real ? real : path;
  bool ok = cli_is_utf8("--scenario", kept, err);
  if (ok)
    json_object_set_new(setup->config, "scenario",
                        json_pack("{ss ss}", "path", kept, "sha256", setup->scenario.sha256));
  free(real);
  return ok;
}

bool setup_flags(struct setup *setup, const struct cli_args *args, int *status) {
  struct err err = {0};
  const char *cwd = cli_value(args, "cwd"), *scenario = cli_value(args, "scenario");
  const char *model = cli_value(args, "model");
  *setup = (struct setup){.config = json_object()};
  json_t *config = setup->config;
  if (!config_load(&setup->user, &err))
    return fail(args, &err, status);
  setup->registry = backends_new(&setup->user, &err);
  if (setup->registry == NULL)
    return fail(args, &err, status);
  if (!read_cwd(setup, cwd ? cwd : ".", &err))
    return fail(args, &err, status);
  set_string(config, "cwd", setup->cwd);
  if (!read_providers(args, setup->registry, config, &err) || !read_options(args, config, &err) ||
      (model != NULL && !cli_is_utf8("--model", model, &err)))
    return fail(args, &err, status);
  set_string(config, "model", model);
  set_string(config, "default_provider", setup->user.provider);
  set_string(config, "default_model", setup->user.model);
  if (setup->user.options)
    json_object_set(config, "default_options", setup->user.options);
  set_provider_models(config, setup->user.providers);
  if (setup->user.fallback)
    json_object_set(config, "fallback", setup->user.fallback);
  json_object_set_new(config, "interactive", json_false());
  if (setup->user.templates)
    json_object_set(config, "templates", setup->user.templates);
  if (setup->user.env) {
    json_t *names = json_array();
    for (size_t i = 0; setup->user.env[i]; i++)
      json_array_append_new(names, json_string(setup->user.env[i]));
    json_object_set_new(config, "env", names);
  }
  return scenario == NULL || read_scenario(setup, scenario, &err) || fail(args, &err, status);
}

static void print_list(const char *command, const struct err_list *list, const char *severity) {
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i].line > 0)
      cli_print_file_error(&list->items[i], severity);
    else {
      fprintf(stderr, "segue: %s", strcmp(severity, "error") == 0 ? "" : "warning: ");
      cli_put_safe(stderr, list->items[i].text);
      fputc('\n', stderr);
    }
  if (list->dropped > 0)
    fprintf(stderr, "segue %s: and %zu more\n", command, list->dropped);
}

bool setup_workflow(struct setup *setup, const struct cli_args *args, const char *path,
                    bool warnings_shown, int *status) {
  struct err_list errors = {0}, warnings = {0};
  struct workflow_marks *marks = NULL;
  char project[PATHS_BYTES], user[PATHS_BYTES + 16], dir[PATHS_BYTES];
  struct err err = {0};
  paths_project_facets(setup->cwd, project);
  user[0] = '\0';
  if (paths_config(dir, &err))
    (void)snprintf(user, sizeof user, "%s/facets", dir);
  const struct workflow_source source = {.path = path,
                                         .project_facets = project[0] ? project : NULL,
                                         .user_facets = user[0] ? user : NULL,
                                         .named_by_user = true};
  json_t *doc = workflow_load_marked(&source, &errors, &marks);
  if (doc != NULL) {
    const struct lint_env env = {
        .providers = registry_capabilities(setup->registry),
        .provider = str_from(setup->user.provider),
        .chosen = str_from(json_string_value(json_object_get(setup->config, "provider")))};
    workflow_lint(doc, marks, &env, &errors, &warnings);
  }
  print_list(args->command->name, &errors, "error");
  if (warnings_shown)
    print_list(args->command->name, &warnings, "warning");
  bool ok = doc != NULL && errors.count == 0;
  if (ok) {
    setup->workflow = workflow_build(doc, &err);
    if (setup->workflow == NULL) {
      ok = false;
      (void)cli_fail(args->command->name, &err);
    }
  }
  if (ok) {
    char *real = realpath(path, NULL);
    ok = real == NULL && errno == ENAMETOOLONG
             ? err_set(&err, ERR_USAGE, "WORKFLOW: the path is too long")
             : keep_path("WORKFLOW", real ? real : path, setup->workflow_path,
                         sizeof setup->workflow_path, &err);
    if (!ok)
      (void)cli_fail(args->command->name, &err);
    free(real);
  }
  if (!ok)
    *status = STATUS_USAGE;
  json_decref(doc);
  workflow_marks_free(marks);
  err_list_deinit(&errors);
  err_list_deinit(&warnings);
  return ok;
}

/* The names in --provider MOVEMENT=P must be movements. */
static bool check_names(const struct setup *setup, struct err *err) {
  const char *name;
  json_t *value;
  json_object_foreach(json_object_get(setup->config, "providers"), name, value) {
    long index = workflow_find(setup->workflow, str_from(name));
    if (index < 0)
      return err_set(err, ERR_USAGE, "--provider %.80s=%s: the workflow has no such movement", name,
                     json_string_value(value));
    bool command = setup->workflow->movements[index].argv != NULL;
    if (command || str_eq_c(str_from(json_string_value(value)), "command"))
      return err_set(err, ERR_USAGE, "--provider %.80s=%s: %s", name, json_string_value(value),
                     command ? "that movement is a command" : "that movement has no command");
  }
  return true;
}

static bool check_movement(const struct setup *setup, size_t i, struct err *err) {
  const struct movement *m = &setup->workflow->movements[i];
  const struct capability *capabilities = registry_capabilities(setup->registry);
  struct str provider, model, judge, judge_model;
  core_backend(setup->workflow, setup->config, i, &provider, &model);
  core_judge_backend(setup->workflow, setup->config, i, &judge, &judge_model);
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
      (!provider_check_options(cap, json_object_get(setup->config, "default_options"), err) ||
       !provider_check_options(cap, m->options, err) ||
       !provider_check_options(cap, json_object_get(setup->config, "options"), err)))
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
  if (needs && !provider_check_options(judge_cap, m->judge.options, err))
    return err_wrap(err, "movement %.*s, judge", (int)m->name.n, m->name.p);
  bool scripted = str_eq_c(provider, "script") || (needs && str_eq_c(judge, "script"));
  if (m->structured != NULL && m->structured->max_reasks > 0) {
    struct str reask, reask_model;
    core_reask_backend(setup->workflow, setup->config, i, &reask, &reask_model);
    const struct capability *reask_cap = capability_find(capabilities, reask);
    if (reask_cap == NULL || !reask_cap->can_judge)
      return err_set(err, ERR_USAGE,
                     "movement %.*s: provider %.*s cannot correct an answer: name another in "
                     "structured_output.reask, or set max_reasks: 0",
                     (int)m->name.n, m->name.p, (int)reask.n, reask.n ? reask.p : "");
    scripted |= str_eq_c(reask, "script");
  }
  if (scripted && !setup->has_scenario)
    return err_set(err, ERR_USAGE,
                   "movement %.*s runs on the script provider: give --scenario FILE",
                   (int)m->name.n, m->name.p);
  return true;
}

bool setup_preflight(const struct setup *setup, struct err *err) {
  if (!check_names(setup, err))
    return false;
  for (size_t i = 0; i < setup->workflow->movement_count; i++)
    if (!check_movement(setup, i, err))
      return false;
  return true;
}

void setup_deinit(struct setup *setup) {
  workflow_unref(setup->workflow);
  json_decref(setup->config);
  if (setup->has_scenario)
    scenario_deinit(&setup->scenario);
  registry_free(setup->registry);
  config_deinit(&setup->user);
  *setup = (struct setup){0};
}

bool setup_task(const struct cli_args *args, struct buf *task, struct err *err) {
  const char *text = cli_value(args, "task"), *file = cli_value(args, "task-file");
  if (text && file)
    return err_set(err, ERR_USAGE, "give --task or --task-file, not both");
  if (text)
    buf_puts(task, text);
  if (file && strcmp(file, "-") == 0)
    return file_read_fd(STDIN_FILENO, "standard input", LIMIT_TASK_BYTES, task, err);
  return file == NULL || file_read(file, LIMIT_TASK_BYTES, task, err) || bad_file(err);
}
