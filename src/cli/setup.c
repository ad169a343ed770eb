/* Turns flags into a configuration, a workflow and a scenario. */
#include "cli/setup.h"
#include "cli/json_io.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/forge/forge.h"
#include "cli/help_key.h"
#include "cli/trees/session_trees.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "host/key_leak.h"
#include "host/paths.h"
#include "host/workspace_set.h"
#include "judge/stage.h"
#include "os/orphans.h"
#include "provider/agent/agent.h"
#include "store/worker.h"
#include "workflow/load.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- values for params --- */

static bool put_file(json_t *inputs, struct str name, const char *path, struct err *err) {
  buf_auto_t text = {0};
  if (!file_read(path, LIMIT_INPUT_BYTES, &text, err)) {
    err->code = ERR_USAGE;
    return err_wrap(err, "--input " STR_FMT, STR_ARG(name));
  }
  while (text.n > 0 && text.p[text.n - 1] == '\n')
    text.n--;
  json_t *value = json_stringn(text.n ? text.p : "", text.n);
  if (value == NULL)
    return err_set(err, ERR_USAGE, "--input " STR_FMT ": %.200s is not UTF-8", STR_ARG(name), path);
  json_object_setn_new(inputs, name.p, name.n, value);
  return true;
}

bool inputs_read(const struct cli_args *args, json_t *inputs, struct err *err) {
  const char *pair;
  for (size_t i = 0; (pair = cli_values(args, "input", i)) != NULL; i++) {
    const char *equals = strchr(pair, '=');
    if (!cli_is_utf8("--input", pair, err))
      return false;
    if (equals == NULL || equals == pair)
      return err_set(err, ERR_USAGE, "--input %.80s: write NAME=VALUE, or NAME=@FILE", pair);
    struct str name = {pair, (size_t)(equals - pair)};
    if (json_object_getn(inputs, name.p, name.n) != NULL)
      return err_set(err, ERR_USAGE, "--input " STR_FMT " is given twice", STR_ARG(name));
    if (equals[1] == '@') {
      if (!put_file(inputs, name, equals + 2, err))
        return false;
      continue;
    }
    json_object_setn_new(inputs, name.p, name.n, json_string(equals + 1));
  }
  return true;
}

static void inputs_ask_one(const json_t *param, json_t *inputs) {
  const char *name = cli_text(param, "name"), *words = cli_text(param, "description");
  char_auto_t *line = NULL;
  size_t room = 0;
  if (words != NULL)
    cli_say(stderr, "%s (%s): ", name, words);
  else
    cli_say(stderr, "%s: ", name);
  fflush(stderr);
  ssize_t n = getline(&line, &room, stdin);
  while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
    n--;
  json_t *value = n > 0 ? json_stringn(line, (size_t)n) : NULL;
  if (value != NULL)
    json_object_set_new(inputs, name, value);
}

void inputs_ask(const struct cli_args *args, const char *path, json_t *inputs) {
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) || cli_flag(args, "quiet") ||
      cli_flag(args, "json"))
    return;
  json_auto_t *params = workflow_params(path);
  JSON_EACH(params, i, param) {
    const char *name = cli_text(param, "name");
    if (json_object_get(param, "default") == NULL && json_object_get(inputs, name) == NULL)
      inputs_ask_one(param, inputs);
  }
}

/* --- the rest --- */

static bool fail(const struct cli_args *args, const struct err *err, int *status) {
  *status = cli_fail(args->command->name, err);
  return false;
}

/* Turns a folder or a device where the user should have named a file into a usage error. */
static bool bad_file(struct err *err) {
  if (err->code == ERR_IO)
    err->code = ERR_INVALID;
  return false;
}

bool setup_stages(const char *list, json_t **stages, struct err *err) {
  if (list == NULL)
    return true;
  *stages = cli_list(list);
  JSON_EACH(*stages, i, word) {
    enum judge_stage stage;
    struct str name = json_view(word);
    if (!judge_stage_from_name(name, &stage) || !judge_stage_is_listable(stage))
      return err_set(err, ERR_USAGE,
                     "--stages: \"%.40s\" is not a stage: write structured_output, phase3_tag, "
                     "phase1_tag, ai_judge",
                     name.p);
    for (size_t k = 0; k < i; k++)
      if (json_same(json_array_get(*stages, k), word))
        return err_set(err, ERR_USAGE, "--stages: %s is listed twice", name.p);
  }
  return true;
}

/* Reads -O key=value: numbers and null stay what they are, everything else becomes a text. */
bool setup_options(const struct cli_args *args, json_t *config, struct err *err) {
  const char *pair;
  for (size_t i = 0; (pair = cli_values(args, "option", i)) != NULL; i++) {
    if (!cli_is_utf8("-O", pair, err))
      return false;
    const char *equals = strchr(pair, '=');
    if (equals == NULL || equals == pair || equals[1] == '\0')
      return err_set(err, ERR_USAGE, "-O %.80s: write KEY=VALUE, such as temperature=0.2", pair);
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
    if (!json_is_number(value) && !json_is_null(value)) {
      json_decref(value);
      value = json_string(equals + 1);
    }
    json_object_setn_new(cli_member(config, "options"), pair, (size_t)(equals - pair), value);
  }
  return true;
}

/* Checks the base before a session begins that could only stop. Other problems of the repository
 * are reported elsewhere. */
static bool base_is_there(const struct cli_args *args, struct err *err) {
  const char *base = cli_value(args, "base"), *cwd = cli_value_or(args, "cwd", ".");
  char folder[PATH_MAX];
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct err ignored;
  buf_auto_t commit = {0};
  if (base == NULL || realpath(cwd, folder) == NULL)
    return true;
  buf_printf(&commit, "%s^{commit}", base);
  bool asked = git_run(folder, &answer, &ignored, "rev-parse", "--verify", "--quiet",
                       "--end-of-options", buf_c(&commit), NULL);
  bool gone = asked && answer.exit == 1 && answer.err.n == 0;
  return !gone ||
         err_set(err, ERR_USAGE, "--base %.200s is not a commit of the repository here", base);
}

bool setup_place(const struct cli_args *args, json_t *config, struct err *err) {
  static const char *const names[] = {"commit", "branch", "base"};
  const char *mode = cli_value(args, "workspace");
  json_auto_t *set = json_object();
  bool ok = mode == NULL || cli_is_utf8("--workspace", mode, err);
  if (ok && mode != NULL)
    json_object_set_new(set, "mode", json_string(mode));
  for (size_t i = 0; ok && i < ARRAY_LEN(names); i++) {
    const char *value = cli_value(args, names[i]);
    ok = value == NULL || cli_is_utf8(names[i], value, err);
    if (ok && value != NULL)
      json_object_set_new(set, names[i], json_string(value));
  }
  ok = ok && workspace_set_check(set, false, err) && base_is_there(args, err);
  if (!ok)
    err->code = ERR_USAGE;
  if (ok && json_object_size(set) > 0)
    json_object_set(config, "workspace", set);
  if (cli_flag(args, "no-lock"))
    json_object_set_new(config, "lock", json_false());
  const char *pattern;
  for (size_t i = 0; ok && (pattern = cli_values(args, "may-change", i)) != NULL; i++) {
    ok = cli_is_utf8("--may-change", pattern, err);
    if (ok && i == 0)
      json_object_set_new(config, "may_change", json_array());
    if (ok)
      json_array_append_new(json_object_get(config, "may_change"), json_string(pattern));
  }
  return ok;
}

bool setup_on(const struct cli_args *args, json_t *config, struct err *err) {
  const char *text = cli_value(args, "on");
  if (text == NULL)
    return true;
  json_auto_t *labels = json_array();
  bool ok = cli_is_utf8("--on", text, err);
  for (size_t n; ok && text != NULL; text = text[n] == ',' ? text + n + 1 : NULL) {
    n = strcspn(text, ",");
    json_array_append_new(labels, json_stringn(text, n));
  }
  ok = ok && worker_labels_check(labels, err);
  if (ok)
    json_object_set(config, "on", labels);
  return ok;
}

bool setup_on_here(struct setup *setup, const struct cli_args *args, struct err *err) {
  const char *logs = cli_value(args, "logs");
  bool shared = logs != NULL && store_is_address(logs);
  const char *label = shared ? config_shared_label(&setup->user, setup->cwd) : NULL;
  if (cli_value(args, "on") != NULL && !shared)
    return err_set(err, ERR_USAGE, "--on needs --store");
  if (cli_value(args, "on") == NULL && label != NULL)
    json_object_set_new(setup->config, "on", json_pack("[s]", label));
  return setup_on(args, setup->config, err);
}

static bool read_providers(const struct cli_args *args, const struct provider_registry *registry,
                           json_t *config, struct err *err) {
  const char *word;
  for (size_t i = 0; (word = cli_values(args, "provider", i)) != NULL; i++) {
    if (!cli_is_utf8("--provider", word, err))
      return false;
    const char *equals = strrchr(word, '=');
    const char *name = equals ? equals + 1 : word;
    const struct provider *provider = registry_find(registry, str_from(name));
    const struct profile *profile = provider ? provider_profile(provider) : NULL;
    if (profile != NULL && profile->broken != NULL) {
      *err = *profile->broken;
      return false;
    }
    if (provider == NULL) {
      (void)registry_unknown(registry, str_from(name), err);
      return err_wrap(err, "--provider %.80s", word);
    }
    if (equals == NULL) {
      if (strcmp(name, "command") == 0)
        return err_set(err, ERR_USAGE,
                       "provider command runs the command: of a movement; it cannot be chosen for "
                       "other movements");
      json_object_set_new(config, "provider", json_string(word));
      continue;
    }
    json_object_setn_new(cli_member(config, "providers"), word, (size_t)(equals - word),
                         json_string(name));
  }
  return true;
}

static void setup_set_string(json_t *config, const char *key, const char *value) {
  if (value != NULL)
    json_object_set_new(config, key, json_string(value));
}

/* Copies a path to `out` if it fits and a record can hold it. */
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
  char_auto_t *real = realpath(given, NULL);
  if (real == NULL && errno == ENAMETOOLONG)
    return err_set(err, ERR_USAGE, "--cwd: the path is too long");
  bool ok = file_is_folder(real);
  if (ok)
    return keep_path("--cwd", real, setup->cwd, sizeof setup->cwd, err);
  return err_set(err, ERR_USAGE, "--cwd %.200s is not a folder: make it, or name another one",
                 given);
}

static bool read_scenario(struct setup *setup, const char *path, struct err *err) {
  if (!scenario_load(&setup->scenario, path, err))
    return bad_file(err);
  setup->has_scenario = true;
  char_auto_t *real = realpath(path, NULL);
  const char *kept = real ? real : path;
  bool ok = cli_is_utf8("--scenario", kept, err);
  if (ok)
    json_object_set_new(setup->config, "scenario",
                        json_pack("{ss ss}", "path", kept, "sha256", setup->scenario.sha256));
  return ok;
}

bool setup_flags(struct setup *setup, const struct cli_args *args, int *status) {
  struct err err = {0};
  const char *cwd = cli_value_or(args, "cwd", "."), *scenario = cli_value(args, "scenario");
  const char *model = cli_value(args, "model");
  *setup = (struct setup){.config = json_object()};
  json_t *config = setup->config;
  if (!config_load(&setup->user, &err) ||
      (setup->registry = backends_new(&setup->user, &err)) == NULL || !read_cwd(setup, cwd, &err) ||
      !read_providers(args, setup->registry, config, &err))
    return fail(args, &err, status);
  setup_set_string(config, "cwd", setup->cwd);
  backends_warn(setup->registry);
  if (!cli_flag(args, "quiet"))
    overrides_warn();
  if (!setup_options(args, config, &err) || !setup_place(args, config, &err) ||
      (model != NULL && !cli_is_utf8("--model", model, &err)))
    return fail(args, &err, status);
  setup_set_string(config, "model", model);
  json_object_set_new(config, "interactive", json_false());
  config_resolve(&setup->user, config);
  if (args->command != &cmd_run &&
      args->command != &cmd_until) /* whoever asks once wants to know at once */
    json_object_set_new(config, "wait_for_outage", json_false());
  return scenario == NULL || read_scenario(setup, scenario, &err) || fail(args, &err, status);
}

/* Returns the page of the key in the error's line, or of the key to write instead. */
static const char *page_of_error(const struct err *e) {
  static const char meant[] = "did you mean ";
  buf_auto_t line = {0};
  size_t at = 0;
  const char *page = NULL, *near = strstr(e->text, meant);
  if (e->line > 0 && near != NULL) { /* the page of what was meant */
    near += strlen(meant);
    buf_append(&line, near, strcspn(near, "?"));
    page = help_key_of_name(buf_c(&line));
    buf_clear(&line);
  }
  if (page != NULL)
    return page;
  if (e->line > 0 && cli_line_of(e, &line, &at))
    page = help_key_of_line(buf_view(&line), at);
  return page;
}

/* Prints which pages help with the first errors: "try: segue help next, segue help rules". */
static void print_pages(const struct err_list *errors) {
  enum { PAGES = 3 };
  const char *pages[PAGES];
  size_t count = 0;
  for (size_t i = 0; i < errors->count && count < PAGES; i++) {
    const char *page = page_of_error(&errors->items[i]);
    for (size_t k = 0; k < count && page != NULL; k++)
      if (strcmp(pages[k], page) == 0)
        page = NULL;
    if (page != NULL)
      pages[count++] = page;
  }
  for (size_t k = 0; k < count; k++)
    fprintf(stderr, "%ssegue help key %s%s", k == 0 ? "try: " : ", ", pages[k],
            k + 1 == count ? "\n" : "");
}

static void print_list(const char *command, const struct err_list *list, const char *severity) {
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i].line > 0 && strcmp(list->items[i].file, WORKFLOW_REPLACED) != 0) {
      cli_print_file_error(&list->items[i], severity);
    } else {
      cli_say(stderr, "segue %s: %s%s\n", command,
              strcmp(severity, "error") == 0 ? "" : "warning: ", list->items[i].text);
      if (strcmp(severity, "error") == 0)
        cli_tell_json(&list->items[i]);
    }
  if (list->dropped > 0)
    fprintf(stderr, "segue %s: and %zu more\n", command, list->dropped);
}

static bool is_workflow_file(const char *path, struct err *err) {
  struct stat st;
  if (path[0] == '\0')
    return err_set(err, ERR_USAGE, "WORKFLOW is empty: write a workflow's file or name");
  if (stat(path, &st) != 0)
    return errno != ENOENT || err_set(err, ERR_NOT_FOUND, "there is no file %.300s", path);
  return !S_ISDIR(st.st_mode) ||
         err_set(err, ERR_INVALID, "%.300s is a folder: write the path of a workflow's file", path);
}

bool setup_load(struct setup *setup, const char *word, struct err_list *errors,
                struct err_list *warnings) {
  assert(setup->registry != NULL);
  char found[PATHS_BYTES];
  struct err err = {0};
  const char *path = paths_workflow(word, setup->cwd, found, &err);
  json_decref(setup->facets);
  setup->facets = json_array();
  setup->hides = path != NULL ? err : (struct err){0};
  if (setup->hides.code != ERR_NONE)
    err_list_add(warnings, &err);
  if (path == NULL || !is_workflow_file(path, &err)) {
    err_list_add(errors, &err);
    return false;
  }
  const struct workflow_source source = {
      .path = path,
      .facet_files = setup->facets,
      .inputs = setup->inputs,
      .replace = setup->replace,
      .starts = setup->starts,
  };
  workflow_unref(setup->workflow);
  workflow_marks_free(setup->marks);
  setup->workflow = preflight_load(source, setup->cwd, setup->config, setup->registry, errors,
                                   warnings, &setup->marks);
  if (setup->workflow == NULL)
    return false;
  sandbox_inherit(setup->config, setup->workflow, registry_capabilities(setup->registry));
  char_auto_t *real = realpath(path, NULL);
  bool ok;
  if (real == NULL && errno == ENAMETOOLONG)
    ok = err_set(&err, ERR_USAGE, "WORKFLOW: the path is too long");
  else
    ok = keep_path("WORKFLOW", real ? real : path, setup->workflow_path,
                   sizeof setup->workflow_path, &err);
  if (!ok)
    err_list_add(errors, &err);
  return errors->count == 0;
}

bool setup_workflow(struct setup *setup, const struct cli_args *args, const char *path,
                    bool warnings_shown, int *status) {
  struct err_list errors = {0}, warnings = {0};
  bool ok = setup_load(setup, path, &errors, &warnings);
  print_list(args->command->name, &errors, "error");
  if (setup->workflow == NULL)
    print_pages(&errors);
  if (ok && !warnings_shown && !cli_flag(args, "quiet")) {
    err_list_deinit(&warnings);
    warnings = (struct err_list){0};
    if (setup->hides.code != ERR_NONE)
      err_list_add(&warnings, &setup->hides);
    preflight_warn(setup->facets, setup->cwd, &warnings);
    warnings_shown = true;
  }
  if (warnings_shown)
    print_list(args->command->name, &warnings, "warning");
  if (!ok)
    *status = STATUS_USAGE;
  err_list_deinit(&errors);
  err_list_deinit(&warnings);
  return ok;
}

bool setup_has_facet(const json_t *entry, const char *movement) {
  JSON_EACH(json_object_get(entry, "movements"), i, name)
    if (movement == NULL || strcmp(json_string_value(name), movement) == 0)
      return true;
  return false;
}

void setup_print_facets(const struct setup *setup, const char *movement, FILE *out) {
  JSON_EACH(setup->facets, i, entry) {
    const char *from = cli_text(entry, "from");
    if (!setup_has_facet(entry, movement))
      continue;
    cli_say(out, "    %s  %s", cli_text(entry, "kind"), cli_text(entry, "file"));
    if (strcmp(from, "takt") == 0 || strcmp(from, "segue") == 0)
      fprintf(out, "  (%s's)", from);
    else if (strcmp(from, "workflow") != 0)
      fprintf(out, "  (%s)", strcmp(from, "project") == 0 ? "the project's" : "yours");
    fputc('\n', out);
  }
}

struct session_setup setup_session(const struct setup *setup) {
  return (struct session_setup){.cwd = setup->cwd,
                                .pass_env = setup->user.env,
                                .scenario = setup->has_scenario ? &setup->scenario : NULL};
}

struct preflight setup_preflight_of(const struct setup *setup) {
  return (struct preflight){.workflow = setup->workflow,
                            .config = setup->config,
                            .registry = setup->registry,
                            .marks = setup->marks,
                            .has_scenario = setup->has_scenario};
}

bool setup_preflight(const struct setup *setup, struct err *err) {
  assert(setup->workflow != NULL);
  const struct preflight p = setup_preflight_of(setup);
  return preflight_passes(&p, err);
}

/* Checks that no key of the user stands in the task or the workflow, unless --allow-secret was
 * given. */
static bool setup_keys(const struct setup *setup, const struct cli_args *args, struct str task,
                       struct err *err) {
  assert(setup->workflow != NULL);
  return cli_flag(args, "allow-secret") ||
         keys_check(setup->workflow->doc, task, setup->user.hidden, "--allow-secret", err);
}

bool setup_start(struct setup *setup, const struct cli_args *args, const char *word,
                 struct buf *task, int *status) {
  const char *name = args->command->name;
  AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0}, doubts = {0};
  struct err err = {0};
  bool quiet = cli_flag(args, "quiet"), given;
  char found[PATHS_BYTES];
  struct err none;
  setup->starts = true;
  if (setup->inputs == NULL)
    setup->inputs = json_object();
  given = inputs_read(args, setup->inputs, &err);
  const char *path = paths_workflow(word, setup->cwd, found, &none);
  if (!given)
    err_list_add(&errors, &err);
  else if (path != NULL)
    inputs_ask(args, path, setup->inputs);
  (void)setup_load(setup, word, &errors, &warnings);
  if (setup->hides.code != ERR_NONE)
    err_list_add(&doubts, &setup->hides);
  preflight_warn(setup->facets, setup->cwd, &doubts);
  bool ok = setup_task(args, task, &err) && forge_task_take(args, task, setup->config, &err);
  if (!ok)
    err_list_add(&errors, &err);
  else
    setup_task_typed(args, setup->config);
  if (setup->workflow != NULL) {
    struct preflight p = setup_preflight_of(setup);
    p.has_task = str_trim(buf_view(task)).n > 0 || !ok;
    p.looks = true;
    preflight_check(&p, &errors, &doubts);
    if (ok && !setup_keys(setup, args, buf_view(task), &err))
      err_list_add(&errors, &err);
  }
  print_list(name, &errors, "error");
  if (setup->workflow == NULL)
    print_pages(&errors);
  if (!quiet)
    print_list(name, &doubts, "warning");
  ok = errors.count == 0;
  if (!ok)
    *status = STATUS_USAGE;
  return ok;
}

void setup_deinit(struct setup *setup) {
  workflow_unref(setup->workflow);
  workflow_marks_free(setup->marks);
  json_decref(setup->config);
  json_decref(setup->facets);
  json_decref(setup->inputs);
  json_decref(setup->replace);
  if (setup->has_scenario)
    scenario_deinit(&setup->scenario);
  registry_free(setup->registry);
  config_deinit(&setup->user);
  *setup = (struct setup){0};
}

void setup_task_typed(const struct cli_args *args, json_t *config) {
  bool held;
  char_auto_t *program = orphan_program((long)getpid(), &held);
  if (cli_value(args, "task") != NULL && json_at(config, "source") == NULL && program == NULL)
    json_object_set_new(config, "task_typed", json_true());
}

bool setup_task(const struct cli_args *args, struct buf *task, struct err *err) {
  assert(task->n == 0);
  const char *text = cli_value(args, "task"), *file = cli_value(args, "task-file");
  if (text && file)
    return err_set(err, ERR_USAGE, "give --task or --task-file, not both");
  if (text)
    buf_puts(task, text);
  return file == NULL || json_io_read(file, LIMIT_TASK_BYTES, task, err) || bad_file(err);
}
