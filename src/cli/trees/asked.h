/* asked.h - what stands in the files that a session changed so far, for a person who is asked.
 *
 * The diff is git's, between the commit that is checked out (of a worktree: the one it began from)
 * and the files as they are now; it is at most ASKED_DIFF_BYTES long. Files that git does not know
 * are not in it, and no program of the repository's is run. */
#ifndef SEGUE_CLI_ASKED_H
#define SEGUE_CLI_ASKED_H

#include "base/buf.h"
#include "store/store.h"

#include <jansson.h>

enum { ASKED_DIFF_BYTES = 64 * 1024 };

/* files: as an item of the inbox lists them. Empty where there is no repository, no commit, or no
 * change. *cut: there is more of it. */
void asked_diff(const struct store_ref *ref, const json_t *files, struct buf *out, bool *cut);

#endif
