/* snapshot.h - the status of a session in a shared store, read in the pool, because the loop must
 * not wait for the store's answers.
 *
 *   snapshot_take(&s, store, word, settles, &err)     blocking; then sessions_update, on the loop
 *   snapshot_deinit(&s)                               accepts a zeroed one */
#ifndef SEGUE_DAEMON_SNAPSHOT_H
#define SEGUE_DAEMON_SNAPSHOT_H

#include "store/brief.h"

struct snapshot {
  char id[STORE_ID_BYTES];
  bool owned; /* some worker has it */
  struct brief brief;
};

/* Finds the whole id of a session in the store. Blocking. */
bool snapshot_find(const struct store *store, const char *word, char id[STORE_ID_BYTES],
                   struct err *err) MUST_CHECK;
/* word: as store_find takes it. settles: a session whose last record says that it stopped, and that
 * a worker still has, is about to be let go of, so this waits for that, for a while. ERR_NOT_FOUND:
 * there is no such session. */
bool snapshot_take(struct snapshot *s, const struct store *store, const char *word, bool settles,
                   struct err *err) MUST_CHECK;
void snapshot_deinit(struct snapshot *s);

#endif
