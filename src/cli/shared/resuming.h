/* resuming.h - has a worker continue a stopped session of a shared store: writes the record that
 * says so, and a worker with a free place takes it. */
#ifndef SEGUE_CLI_RESUMING_H
#define SEGUE_CLI_RESUMING_H

#include "cli/cli.h"
#include "host/config.h"

#include <jansson.h>

/* Makes segue resume without --daemon a worker itself: with the labels of --label, and those that
 * the user's shared_paths name, since their folders are here. */
bool resuming_be(const struct cli_args *args, const struct config *user,
                 struct err *err) MUST_CHECK;
/* Resumes for segue resume --daemon with a store. body: as in POST .../resume. Prints the session's
 * id and returns the exit status. */
int resuming_run(const struct cli_args *args, const json_t *body);

#endif
