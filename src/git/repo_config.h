/* repo_config.h - the keys of a repository's configuration that are data: how files are written,
 * who commits, the addresses of remotes and submodules. All others are left out, since they may run
 * a program or lead elsewhere. */
#ifndef SEGUE_GIT_REPO_CONFIG_H
#define SEGUE_GIT_REPO_CONFIG_H

#include "base/buf.h"
#include "base/err.h"

/* Appends what is copied of one file, which may be missing, and sets what it says of the
 * repository's format: it has extensions, and a further file for each working tree. Both are in and
 * out. */
bool repo_config_copy(const char *file, bool *has_extensions, bool *by_worktree, struct buf *out,
                      struct err *err) MUST_CHECK;

#endif
