/* inputs.h - values for a workflow's params, from --input NAME=VALUE or from questions to a
 * person. */
#ifndef SEGUE_CLI_INPUTS_H
#define SEGUE_CLI_INPUTS_H

#include "cli/cli.h"

#define INPUT_OPTION                                                                               \
  {                                                                                                \
    "input", 'i', "NAME=VALUE",                                                                    \
        "the value of one of the workflow's params; NAME=@FILE reads it from a file", true         \
  }

/* Puts the given values into `inputs`. */
bool inputs_read(const struct cli_args *args, json_t *inputs, struct err *err) MUST_CHECK;

/* Asks for each param of the file that has neither a value nor a default, if standard input and
 * standard error are a terminal and neither --quiet nor --json was given; otherwise does nothing.
 * */
void inputs_ask(const struct cli_args *args, const char *path, json_t *inputs);

#endif
