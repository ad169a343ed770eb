/* merging.h - what segue merge and segue integrate share: the note of a merge under way, the undo
 * of one that was cut off, the proof that commits are in a target, the check of a result.
 *
 *   merging_open(&n, folder, &err)      takes the note and its lock: two never overlap
 *   merging_mend(&n, &err)              if one was cut off: all is as before it
 *   merging_begin(&n, tip, ..., &err)   durable before anything is changed
 *   merging_end(&n, &err)               it is over
 *   merging_close(&n)                   accepts a zeroed one
 *
 * The note is the file GIT_SEGUE_MERGE in git's folder. A merge that was cut off is undone whole in
 * a session's own worktree. Elsewhere a file is given back only if it has what the merge brings, or
 * the beginning of that: anything else may be somebody's, and stays. */
#ifndef SEGUE_CLI_MERGING_H
#define SEGUE_CLI_MERGING_H

#include "cli/trees/session_trees.h"

#include <stdio.h>

enum merging_state { MERGING_NONE, MERGING_BEGUN, MERGING_CONFLICT };

struct merging_note {
  char *folder;         /* the top of the working tree, or git's own folder */
  char *git_dir, *path; /* git's folder for it, and the note */
  FILE *file;           /* locked */
  bool own;             /* a session works there alone, and this is a command of its */
  enum merging_state state;
  char tip[72], from[72]; /* what is merged, and where HEAD or the branch was before */
  char ref[512];          /* the branch that is to move; "HEAD": the one checked out there */
};

/* False also if an index.lock was left behind there: err says how old it is, and whether it may be
 * removed. That of a merge of ours is no matter. */
bool merging_open(struct merging_note *n, const char *folder, struct err *err) MUST_CHECK;
bool merging_begin(struct merging_note *n, const char *tip, const char *ref,
                   struct err *err) MUST_CHECK;
/* With `conflict` its files wait to be resolved. */
bool merging_end(struct merging_note *n, bool conflict, struct err *err) MUST_CHECK;
/* Undoes a merge that is begun; false: err says what stands in the way. */
bool merging_mend(struct merging_note *n, struct err *err) MUST_CHECK;
/* Does so if it can, else the next command will. */
void merging_give_up(struct merging_note *n);
void merging_close(struct merging_note *n);

/* Waits a while for each git, or any program, below the folder to end: a shim may not have ended
 * that of a killed segue yet. */
void merging_await(const char *folder, bool any);
/* Looks for a line that begins like git's <<<<<<<, and one like >>>>>>>. */
bool merging_has_marks(const char *path);
/* Returns the tree of the merge of two commits, new, worked out without touching any folder.
 * conflicts: gets the files in conflict, or NULL. NULL: err says why not. */
char *merging_tree(const char *folder, const char *into, const char *tip, json_t *conflicts,
                   struct err *err);

/* Has the branch take over the work of its worktree, and says so on `out`. It may lack what the
 * target has already. False: a person is needed, or git could not be run. */
bool merging_adopt(const struct work_where *where, const char *target, FILE *out,
                   struct err *err) MUST_CHECK;

/* Runs a check, a command for sh, in that folder, within the sandbox that commands of the session
 * with this configuration inherit. NULL: of the session that runs this command or, by hand, of
 * agents by default. *exit: its status; `last` gets the last lines of what it said, and what was
 * denied. False: it could not be run. */
bool merging_check(const char *folder, const char *command, const json_t *config, int *exit,
                   struct buf *last, struct err *err) MUST_CHECK;
/* Prints them, indented. */
void merging_print(FILE *out, const struct buf *last);

#endif
