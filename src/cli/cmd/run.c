/* segue run: runs one workflow to its end. */
#include "cli/forge/forge.h"
#include "cli/session_ui.h"
#include "cli/setup.h"
#include "host/folder_lock.h"
#include "host/paths.h"
#include "host/sandbox_config.h"

static const struct cli_option options[] = {
    {"task", 't', "TEXT", "what to do", false},
    {"task-file", 'f', "FILE|-", "the task from a file or standard input", false},
    FORGE_TASK_OPTIONS,
    SETUP_OPTIONS,
    SETUP_PLACE_OPTIONS,
    INPUT_OPTION,
    WAIT_FOR_FOLDER_OPTION,
    {"interactive", 0, NULL, "a person takes part, through segue inbox if there is no terminal",
     false},
    {"allow-secret", 0, NULL, "run even if the task or the workflow contains a secret key", false},
    CLI_STORE_OPTIONS("where the session log goes"),
    SETUP_ON_OPTION,
    {"json", 0, NULL, "print the log records as they become durable", false},
    {"verbose", 'v', NULL, "show the agents' text as it arrives (on a terminal)", false},
    {"quiet", 'q', NULL, "print nothing but errors", false},
    {0},
};

static int run_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  struct ui ui;
  buf_auto_t task = {0};
  struct err err = {0};
  int status;
  cli_errors_as_json(cli_flag(args, "json"));
  enum ui_mode mode = ui_mode_of(args);
  if (!setup_flags(&setup, args, &status))
    return status;
  sandbox_make_ready(setup.config); /* before the checks, which ask what enforces limits */
  if (!setup_start(&setup, args, args->words[0], &task, &status))
    return status;
  if (!setup_on_here(&setup, args, &err))
    return cli_fail("run", &err);
  if (cli_flag(args, "interactive") || (mode == UI_LINES && terminal_ask_can()))
    json_object_set_new(setup.config, "interactive", json_true());
  folder_drop_committed(setup.cwd);
  if (!ui_init(&ui, "run", mode, cli_value(args, "logs"), setup.registry, &err))
    return cli_fail_with(STATUS_FAILED, "run", &err);
  if (!ui_take_flags(&ui, args, &err)) {
    ui_drop(&ui);
    return cli_fail("run", &err);
  }
  ui_notify(&ui, setup.user.notify, NULL);
  const struct session_params params = {
      .setup = setup_session(&setup),
      .workflow = setup.workflow,
      .workflow_path = setup.workflow_path,
      .task = buf_view(&task),
      .config = setup.config,
      .facets = setup.facets,
  };
  ui.solo.session = host_start(&ui.solo.host, &params, &ui.watcher, &ui, &err);
  if (ui.solo.session == NULL) {
    ui_drop(&ui);
    return cli_fail_with(STATUS_FAILED, "run", &err);
  }
  paths_note_last(session_log_name(ui.solo.session), setup.cwd);
  return ui_wait(&ui);
}

const struct cli_command cmd_run = {
    .name = "run",
    .arguments = "WORKFLOW [--task TEXT] [options]",
    .words = {1, 1},
    .summary = "run a workflow to its end, one line a turn",
    .help =
        "WORKFLOW is a file or a name: NAME.yaml in the project's .segue/workflows, in "
        "workflows/ beside your config.yaml, or among those that come with segue. A file "
        "without a dot in its name is written ./NAME. Before it starts, everything that would "
        "keep it from running is reported at once, with its place. Each line shows what ran, "
        "where it led, which method decided, and why the stages before it did not. Ctrl-C "
        "stops cleanly, and `segue resume` continues; Ctrl-\\ cancels for good.\n"
        "Exit: 0 COMPLETE, 3 ABORT, 4 no rule matched, 5 max_movements reached, 6 cancelled, "
        "7 it needs input, 1 failed or stopped resumably, 2 bad usage or file, 130 interrupted.",
    .options = options,
    .run = run_run,
};
