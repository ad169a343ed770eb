/* segue run: runs one workflow to its end. segue until: runs the one that needs no file. */
#include "base/file.h"
#include "cli/session_post.h"
#include "cli/session_ui.h"
#include "cli/trust.h"
#include "host/folder_lock.h"
#include "host/paths.h"
#include "host/plan.h"
#include "host/sandbox_config.h"
#include "provider/child.h"
#include "provider/probe.h"

#include <stdlib.h>
#include <string.h>

/* Runs the workflow of the first word; setup->inputs may have values already. The setup is from
 * setup_flags. */
static int run_workflow(struct setup *setup, const struct cli_args *args) {
  struct ui ui;
  buf_auto_t task = {0};
  struct err err = {0};
  int status;
  enum ui_mode mode = ui_mode_of(args);
  setup->replace = json_object();
  const char *judge = cli_value(args, "judge");
  if (judge != NULL && registry_find(setup->registry, str_from(judge)) == NULL) {
    (void)registry_unknown(setup->registry, str_from(judge), &err);
    (void)err_wrap(&err, "--judge");
    return cli_fail(args->command->name, &err);
  }
  if (!body_judge(args, setup->config, &err) || !body_replace(args, setup->replace, &err))
    return cli_fail(args->command->name, &err);
  sandbox_make_ready(setup->config); /* before the checks, which ask what enforces limits */
  if (!setup_start(setup, args, args->words[0], &task, &status))
    return status;
  if (!trust_asked(setup, args, &err) || !setup_on_here(setup, args, &err))
    return cli_fail(args->command->name, &err);
  if (cli_flag(args, "interactive") || (mode == UI_LINES && terminal_ask_can()))
    json_object_set_new(setup->config, "interactive", json_true());
  folder_drop_unneeded(setup->cwd);
  if (!ui_init(&ui, args->command->name, mode, cli_value(args, "logs"), setup->registry, &err))
    return cli_fail_with(STATUS_FAILED, args->command->name, &err);
  if (!ui_take_flags(&ui, args, &err)) {
    ui_drop(&ui);
    return cli_fail(args->command->name, &err);
  }
  ui_notify(&ui, setup->user.notify, NULL);
  plan_put_costs(setup->workflow, setup->config, setup->registry, ui.solo.host.store);
  const struct session_params params = {
      .setup = setup_session(setup),
      .workflow = setup->workflow,
      .workflow_path = setup->workflow_path,
      .task = buf_view(&task),
      .config = setup->config,
      .facets = setup->facets,
  };
  ui.solo.session = host_start(&ui.solo.host, &params, &ui.watcher, &ui, &err);
  if (ui.solo.session == NULL) {
    ui_drop(&ui);
    return cli_fail_with(STATUS_FAILED, args->command->name, &err);
  }
  paths_note_last(session_log_name(ui.solo.session), setup->cwd);
  return ui_wait(&ui);
}

static int run_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  int status;
  cli_errors_as_json(cli_flag(args, "json"));
  return setup_flags(&setup, args, &status) ? run_workflow(&setup, args) : status;
}

const struct cli_command cmd_run = {COMMAND_RUN, .run = run_run};

/* --- until --- */

/* Checks that the command's first word is a program: check and task are easily swapped. Words that
 * only a shell understands are left to it. */
static bool is_command(const char *check, const char *cwd, struct err *err) {
  static const char *const builtins[] = {"cd",   ".",      "test",   "[",    "!",    "if",
                                         "for",  "while",  "{",      "true", "exec", "set",
                                         "eval", "export", "ulimit", NULL};
  char word[256], path[PATHS_BYTES * 2], found[PATHS_BYTES * 2];
  const char *p = check + strspn(check, " \t\n");
  size_t n = strcspn(p, " \t\n;&|<>()");
  while (memchr(p, '=', n) != NULL) { /* NAME=VALUE before the program */
    p += n;
    p += strspn(p, " \t\n");
    n = strcspn(p, " \t\n;&|<>()");
  }
  print_into(word, sizeof word, "%.*s", (int)n, p);
  if (check[strspn(check, " \t\n")] == '\0')
    return err_set(err, ERR_USAGE, "CHECK is empty: write a command, such as 'make test'");
  if (n == 0 || n >= sizeof word || strpbrk(word, "'\"$`\\*?[~") != NULL)
    return true;
  for (size_t i = 0; builtins[i] != NULL; i++)
    if (strcmp(word, builtins[i]) == 0)
      return true;
  bool here = strchr(word, '/') != NULL && word[0] != '/';
  print_into(path, sizeof path, "%s%s%s", here ? cwd : "", here ? "/" : "", word);
  if (program_find(path, found, sizeof found))
    return true;
  return err_set(err, ERR_USAGE,
                 "CHECK begins with \"%.60s\", which is no program here%s Write segue until 'make "
                 "test' -t 'what to do'",
                 word, strchr(p, ' ') != NULL ? ": are the two the wrong way round?" : ".");
}

/* Names of one vendor begin with the same word. */
static bool is_other_vendor(const char *name, const char *other) {
  size_t n = strcspn(other, "-");
  return strcspn(name, "-") != n || strncmp(name, other, n) != 0;
}

/* Appends the agents that are logged in here, of other vendors than this one; NULL: all. */
static void put_agents(const struct setup *setup, const char *worker, struct buf *names) {
  struct backend_probe *probes = probe_all(setup->registry, false);
  for (size_t i = 0; registry_at(setup->registry, i) != NULL; i++) {
    const struct capability *c = &registry_at(setup->registry, i)->capability;
    if (c->touches_files && c->can_judge && c->held != NULL && probes[i].state == PROBE_OK &&
        (worker == NULL || is_other_vendor(c->name, worker)))
      buf_printf(names, "%s%s", names->n > 0 ? ", " : "", c->name);
  }
  free(probes);
}

/* Returns whether somebody can do the work; the agent may be set for each movement, too. */
static bool has_agent(const struct setup *setup, struct err *err) {
  buf_auto_t names = {0};
  if (json_object_get(setup->config, "provider") != NULL ||
      json_object_get(setup->config, "providers") != NULL ||
      json_object_get(setup->config, "default_provider") != NULL)
    return true;
  put_agents(setup, NULL, &names);
  return err_set(err, ERR_USAGE, "say who does the work, such as -p claude%s%.200s",
                 names.n > 0 ? "; logged in here: " : ": segue doctor says what is missing",
                 buf_c(&names));
}

/* Lets somebody else judge at the end than did the work. */
static void choose_judge(const struct setup *setup, const struct cli_args *args) {
  const json_t *worker = json_object_get(setup->config, "provider");
  if (worker == NULL)
    worker = json_object_get(setup->config, "default_provider");
  const char *given = cli_value(args, "judge");
  buf_auto_t names = {0};
  if (given != NULL)
    buf_puts(&names, given);
  else if (json_is_string(worker))
    put_agents(setup, json_string_value(worker), &names);
  size_t n = strcspn(buf_c(&names), ",");
  if (n == 0 || json_object_get(json_object_get(setup->config, "providers"), "agree") != NULL)
    return;
  json_object_set_new(cli_member(setup->config, "providers"), "agree", json_stringn(names.p, n));
  if (given == NULL && ui_mode_of(args) == UI_LINES)
    cli_say(stdout, "  %.*s judges the end, being logged in here; --judge names another\n", (int)n,
            names.p);
}

static int until_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  char user[PATHS_BYTES], shipped[PATHS_BYTES], path[PATHS_BYTES + 16];
  struct err err = {0};
  buf_auto_t text = {0};
  int status;
  const char *condition = cli_value(args, "condition");
  paths_called(user, shipped);
  print_into(path, sizeof path, "%s/until.yaml", shipped);
  if (cli_flag(args, "show-workflow")) {
    bool ok = file_read(path, LIMIT_WORKFLOW_BYTES, &text, &err);
    fputs(ok ? buf_c(&text) : "", stdout);
    return cli_done("until", ok, &err);
  }
  cli_errors_as_json(cli_flag(args, "json"));
  if (args->word_count == 0)
    return cli_refuse("until", "CHECK is missing: segue until 'make test' -t 'what to do'");
  if (cli_value(args, "task") == NULL && cli_value(args, "task-file") == NULL &&
      cli_value(args, "issue") == NULL && cli_value(args, "pr") == NULL)
    return cli_refuse("until", "say what to do: -t TEXT, -f FILE, --issue N or --pr N");
  if (!cli_is_utf8("CHECK", args->words[0], &err) ||
      !cli_is_utf8("--condition", condition ? condition : "", &err))
    return cli_fail("until", &err);
  if (!setup_flags(&setup, args, &status))
    return status;
  if (!is_command(args->words[0], setup.cwd, &err) || !has_agent(&setup, &err))
    return cli_fail("until", &err);
  setup.inputs = json_pack("{ss}", "check", args->words[0]);
  if (condition != NULL)
    json_object_set_new(setup.inputs, "condition", json_string(condition));
  choose_judge(&setup, args);
  char *words[] = {path};
  struct cli_args own = *args;
  own.words = words;
  own.word_count = ARRAY_LEN(words);
  return run_workflow(&setup, &own);
}

const struct cli_command cmd_until = {COMMAND_UNTIL, .run = until_run};
