/* segue run: runs one workflow to its end. */
#include "cli/session_ui.h"
#include "cli/trust.h"
#include "host/folder_lock.h"
#include "host/paths.h"
#include "host/sandbox_config.h"

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
  if (!trust_asked(&setup, args, &err) || !setup_on_here(&setup, args, &err))
    return cli_fail("run", &err);
  if (cli_flag(args, "interactive") || (mode == UI_LINES && terminal_ask_can()))
    json_object_set_new(setup.config, "interactive", json_true());
  folder_drop_unneeded(setup.cwd);
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

const struct cli_command cmd_run = {COMMAND_RUN, .run = run_run};
