/* audit_filters.h - reads the options that say which judgments count, for all commands that
 * count. */
#ifndef SEGUE_CLI_AUDIT_FILTERS_H
#define SEGUE_CLI_AUDIT_FILTERS_H

#include "audit/aggregate.h"
#include "cli/cli.h"

/* again: the command has the options of the group `filters-again`, since its --provider and --model
 * name who is to judge; otherwise those of `filters`. */
bool audit_filters(struct aggregate *c, const struct cli_args *args, bool again,
                   struct err *err) MUST_CHECK;

#endif
