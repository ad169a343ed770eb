#include "cli/cli.h"
#include "cli/setup.h"

#include <stdio.h>

static const struct cli_option options[] = {
    {"provider", 'p', "P|MOVEMENT=P", "check as if run with this provider", true},
    {"quiet", 'q', NULL, "print errors only, no warnings", false},
    {0},
};

static int run(int argc, char **argv) {
  struct cli_args args;
  struct setup setup;
  int status, worst = STATUS_COMPLETE;
  if (!cli_parse(&cmd_lint, argc, argv, 1, CLI_WORDS, &args, &status))
    return status;
  if (!setup_flags(&setup, &args, &status)) {
    setup_deinit(&setup);
    return status;
  }
  for (size_t i = 0; i < args.word_count; i++) {
    if (!setup_workflow(&setup, &args, args.words[i], !cli_flag(&args, "quiet"), &status)) {
      worst = status;
      continue;
    }
    if (!cli_flag(&args, "quiet")) {
      fputs("ok  ", stdout);
      cli_put_safe(stdout, args.words[i]);
      printf("  %zu movement%s\n", setup.workflow->movement_count,
             setup.workflow->movement_count == 1 ? "" : "s");
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
    .run = run,
};
