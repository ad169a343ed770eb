/* confine_git.h - where git keeps what belongs to a working tree but is not below it, for a folder
 * in a repository and for a worktree. */
#ifndef SEGUE_PROVIDER_CONFINE_GIT_H
#define SEGUE_PROVIDER_CONFINE_GIT_H

#include "base/arena.h"

#include <stddef.h>

enum { CONFINE_GIT_FOLDERS = 2 };

/* The repository's folder and, for a worktree, the one it shares with the others; absolute, in `a`.
 * Only folders that this user owns and git would accept. Returns how many. */
size_t confine_git(const char *cwd, struct arena *a, const char *out[CONFINE_GIT_FOLDERS]);

#endif
