/* removal.h - removes sessions: the log, worktrees and branches, with an entry in the ledger.
 *
 *   struct session_removal r = {.stopped = ..., .blobs = json_object()};
 *   removal_take(&r, &ref, &err)                 one session, or
 *   removal_take_old(&r, &store, "30d", "rm")    all that ended longer ago; then
 *   removal_sweep(&r, &store, "rm")              blobs that no other log names; always last
 *
 * A running session is never removed. An error with one session is printed for the named command,
 * and the others go on; the results are exit statuses. */
#ifndef SEGUE_CLI_REMOVAL_H
#define SEGUE_CLI_REMOVAL_H

#include "store/store.h"

#include <jansson.h>

struct session_removal {
  bool force, stopped;
  bool old_only;    /* sessions that may not be removed are skipped */
  bool only_told;   /* ids are printed, and nothing is removed */
  int64_t since_ms; /* sessions changed later stay */
  long removed;
  json_t *blobs; /* set of blobs that removed logs name; the caller's */
};

bool removal_take(struct session_removal *r, const struct store_ref *ref,
                  struct err *err) MUST_CHECK;
int removal_take_old(struct session_removal *r, const struct store *store, const char *age,
                     const char *command);
int removal_sweep(struct session_removal *r, const struct store *store, const char *command);

#endif
