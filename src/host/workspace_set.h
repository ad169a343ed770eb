/* workspace_set.h - checks what a user, a flag or a request says about worktrees.
 *
 *   workspace:                 # config.yaml; a word is {mode: WORD}
 *     mode: worktree           # the default for workflows
 *     commit: off | movement | end
 *     branch: segue/{id}
 *     base: HEAD
 *     folder: /somewhere       # worktrees lie there
 *     copy: [.env]             # files that git does not have, from the main tree
 *     link: [node_modules]     # the same, as symbolic links
 *     submodules: true         # are also there in a worktree
 *     hooks: true              # hooks, filters and drivers of the repository run
 *     author: NAME <EMAIL>
 *     message: "{movement}: {task}"
 *     setup: [npm ci]          # or {run, key, keep, timeout}, see setup_keys of core/keys.h
 *
 * Flags and requests have only the first four: what is copied and what may run is for the user to
 * say. */
#ifndef SEGUE_HOST_WORKSPACE_SET_H
#define SEGUE_HOST_WORKSPACE_SET_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

/* Checks the settings; err begins with the name of one. all: also those that only the user's
 * configuration may have. */
bool workspace_set_check(const json_t *set, bool all, struct err *err) MUST_CHECK;

/* Checks where a task came from: {kind: issue | pr, number, title, url, branch}. */
bool workspace_source_check(const json_t *source, struct err *err) MUST_CHECK;

#endif
