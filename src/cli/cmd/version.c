/* segue version: prints versions. */
#include "cli/cli.h"

#include <stdio.h>

static const struct cli_option options[] = {
    {"json", 0, NULL, "as a JSON object", false},
    {0},
};

static int version_run(int argc, char **argv) {
  struct cli_args args;
  int status;
  if (!cli_parse(&cmd_version, argc, argv, 0, 0, &args, &status))
    return status;
  printf(cli_flag(&args, "json") ? "{\"segue\":\"%s\"}\n" : "segue %s\n", SEGUE_VERSION);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_version = {
    .name = "version",
    .arguments = "[--json]",
    .summary = "print the version",
    .options = options,
    .run = version_run,
    .minor = true,
};
