/* underway.h - records the merge that segue integrate is doing in a file in git's folder, so that
 * an interrupted merge is found again and two never overlap.
 *
 *   underway_open(&u, folder, &err)     reads it, and keeps others out until underway_close
 *   underway_say(&u, UNDERWAY_MERGING, tip)    before git is asked, and at each change after that
 *   underway_undo(&u, &err)             after it found UNDERWAY_MERGING: restores the tree
 *   underway_close(&u) */
#ifndef SEGUE_CLI_TREES_UNDERWAY_H
#define SEGUE_CLI_TREES_UNDERWAY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

enum underway_state { UNDERWAY_NONE, UNDERWAY_MERGING, UNDERWAY_CONFLICT };

struct underway {
  const char *folder; /* borrowed */
  char *path, *git_dir;
  FILE *file;
  enum underway_state state;
  char tip[72]; /* for UNDERWAY_MERGING: the commit being merged */
};

bool underway_open(struct underway *u, const char *folder, struct err *err) MUST_CHECK;
/* Records the state. tip: a commit, or NULL. */
bool underway_say(struct underway *u, enum underway_state state, const char *tip,
                  struct err *err) MUST_CHECK;
/* Undoes the merge, only in a session's own worktree; elsewhere it refuses, since the changes may
 * be somebody's. */
bool underway_undo(struct underway *u, struct err *err) MUST_CHECK;
void underway_close(struct underway *u);

#endif
