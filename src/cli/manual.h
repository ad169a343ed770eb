/* manual.h - writes the manual pages from the tables that the parser, the help and the checks use,
 * so that no page can disagree with the program.
 *
 * Pages: segue(1), one for each command, segue-workflow(5) from schemas/workflow.json, segue-log(5)
 * from schemas/session-log.json. The language is man(7)'s. */
#ifndef SEGUE_CLI_MANUAL_H
#define SEGUE_CLI_MANUAL_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns the file name of page i, such as "segue-run.1"; NULL after the last. Valid until the next
 * call. */
const char *manual_name(size_t i);
/* Appends the page of that name; false: there is none. */
bool manual_page(struct buf *out, const char *name) MUST_CHECK;

/* Returns the texts of `segue help exit` and the like; NULL: there is no such topic (help.c). */
const char *help_topic(const char *name);

#endif
