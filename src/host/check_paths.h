/* check_paths.h - says of files that a call changed which of them are a check's own, for a movement
 * that may touch only those, or none of them (`touches`); and lists them for a plan.
 *
 * Blocks and runs git: for git_serve_do. */
#ifndef SEGUE_HOST_CHECK_PATHS_H
#define SEGUE_HOST_CHECK_PATHS_H

#include "core/workflow.h"

#include <jansson.h>

/* files: as in call_end, below cwd; those that are of the check of any of the workflow's commands
 * get "check": why (evidence/check_files.h), and caches that any run writes get "cache". */
void check_paths_mark(const char *cwd, const struct workflow *wf, json_t *files);

enum { CHECK_PATHS_LISTED = 200 };
/* Lists those of one command among all files of the repository as they are: {count, files: [{path,
 * why}]}, the first of them. NULL: there is no repository. */
json_t *check_paths_list(const char *cwd, const struct movement *m);

#endif
