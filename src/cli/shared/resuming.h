/* resuming.h - has a worker continue a stopped session of a shared store: writes the record that it
 * goes on, and a worker with a free place takes it. */
#ifndef SEGUE_CLI_RESUMING_H
#define SEGUE_CLI_RESUMING_H

#include "cli/cli.h"
#include "host/config.h"

#include <jansson.h>

/* segue resume without --daemon is a worker itself: with the labels of --label, and those that the
 * user's shared_paths name, since their folders are here. */
bool resuming_be(const struct cli_args *args, const struct config *user,
                 struct err *err) MUST_CHECK;
/* segue resume --daemon with a store. body: as POST .../resume has it. Prints the session's id.
 * Returns the exit status. */
int resuming_run(const struct cli_args *args, const json_t *body);

#endif
