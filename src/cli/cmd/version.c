/* segue version: prints versions. */
#include "cli/cli.h"
#include "cli/json_io.h"

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
  if (cli_flag(&args, "json")) {
    json_t *object = json_pack("{ss}", "segue", SEGUE_VERSION);
    json_io_print(object, JSON_IO_COMPACT);
    json_decref(object);
  } else {
    printf("segue %s\n", SEGUE_VERSION);
  }
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
