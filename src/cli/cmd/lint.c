/* segue lint: checks workflow files. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/setup.h"

#include <stdio.h>

static const struct cli_option options[] = {
    {"provider", 'p', "P|MOVEMENT=P", "check as if run with this provider", true},
    {"json", 0, NULL, "print a JSON object a file: ok, errors, warnings with their places", false},
    {"quiet", 'q', NULL, "print errors only, no warnings", false},
    {0},
};

static json_t *lint_list_json(const struct err_list *list) {
  json_t *array = json_array();
  for (size_t i = 0; i < list->count; i++)
    json_array_append_new(array, cli_error_json(&list->items[i]));
  return array;
}

/* One file, told as an object. */
static bool lint_json(struct setup *setup, const char *path) {
  struct err_list errors = {0}, warnings = {0};
  bool ok = setup_load(setup, path, &errors, &warnings);
  json_t *object = json_pack(
      "{so sb so sO so so}", "file", json_io_string(path), "ok", ok, "movements",
      ok ? json_integer((json_int_t)setup->workflow->movement_count) : json_null(), "facets",
      setup->facets, "errors", lint_list_json(&errors), "warnings", lint_list_json(&warnings));
  json_io_print(object, JSON_IO_COMPACT);
  json_decref(object);
  err_list_deinit(&errors);
  err_list_deinit(&warnings);
  return ok;
}

static int lint_run(int argc, char **argv) {
  struct cli_args args;
  struct setup setup;
  int status, worst = STATUS_COMPLETE;
  if (!cli_parse(&cmd_lint, argc, argv, 1, CLI_WORDS, &args, &status))
    return status;
  cli_errors_as_json(cli_flag(&args, "json"));
  if (!setup_flags(&setup, &args, &status)) {
    setup_deinit(&setup);
    return status;
  }
  bool json = cli_flag(&args, "json");
  for (size_t i = 0; i < args.word_count && json; i++) {
    if (!lint_json(&setup, args.words[i]))
      worst = STATUS_USAGE;
    workflow_unref(setup.workflow);
    setup.workflow = NULL;
  }
  for (size_t i = 0; i < args.word_count && !json; i++) {
    if (!setup_workflow(&setup, &args, args.words[i], !cli_flag(&args, "quiet"), &status)) {
      worst = status;
      continue;
    }
    if (!cli_flag(&args, "quiet")) {
      fputs("ok  ", stdout);
      cli_put_safe(stdout, args.words[i]);
      printf("  %zu movement%s\n", setup.workflow->movement_count,
             setup.workflow->movement_count == 1 ? "" : "s");
      setup_print_facets(&setup, NULL, stdout);
    }
    workflow_unref(setup.workflow);
    setup.workflow = NULL;
  }
  setup_deinit(&setup);
  return worst;
}

const struct cli_command cmd_lint = {
    .name = "lint",
    .arguments = "WORKFLOW...",
    .summary = "check workflow files: every error with its place",
    .help = "Finds what the format forbids, and what a well-formed file can still get wrong: "
            "unknown next,\n"
            "unreachable movements, movements that cannot end, missing facets, a judge that cannot "
            "judge.\n"
            "Exit: 0 no error, 2 errors. schemas/workflow.json describes the format for editors.",
    .options = options,
    .run = lint_run,
};
