/* confine_git.h - where git keeps what belongs to a working tree, where that is not below it: of a
 * folder in a repository, and of a worktree. */
#ifndef SEGUE_PROVIDER_CONFINE_GIT_H
#define SEGUE_PROVIDER_CONFINE_GIT_H

#include "base/arena.h"

#include <stddef.h>

enum { CONFINE_GIT_FOLDERS = 2 };

/* The repository's folder and, of a worktree, the one that it shares with the others; absolute, in
 * `a`. Only those that this user owns and that are what git would take. Returns how many. */
size_t confine_git(const char *cwd, struct arena *a, const char *out[CONFINE_GIT_FOLDERS]);

#endif
