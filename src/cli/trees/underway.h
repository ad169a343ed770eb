/* underway.h - the merge that segue integrate is at: a file in git's folder tells of it, so that
 * one which was cut off is found again, and two do not meet.
 *
 *   underway_open(&u, folder, &err)     reads it, and keeps others out until underway_close
 *   underway_say(&u, UNDERWAY_MERGING, tip)    before git is asked; and each change after that
 *   underway_undo(&u, &err)             of UNDERWAY_MERGING that it found: the tree as it was
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
  char tip[72]; /* of UNDERWAY_MERGING: the commit that is merged */
};

bool underway_open(struct underway *u, const char *folder, struct err *err) MUST_CHECK;
/* tip: a commit, or NULL. */
bool underway_say(struct underway *u, enum underway_state state, const char *tip,
                  struct err *err) MUST_CHECK;
/* In a session's own worktree only: elsewhere the changes may be somebody's, and it is refused. */
bool underway_undo(struct underway *u, struct err *err) MUST_CHECK;
void underway_close(struct underway *u);

#endif
