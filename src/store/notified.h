/* notified.h - how far a person has been told of a store's sessions, so that no notice is lost with
 * the process that should have told it.
 *
 *   notified_load(&n, &store)                      empty where nothing was kept yet
 *   notified_missed(&n, &store, each, ctx)         notices that logs hold and that nobody was told;
 *                                                  each is lent
 *   notified_expect(&n, session, seq)              one of that record is queued
 *   notified_told(&n, session, seq, next, now_ms)  it was told, or given up
 *   notified_save(&n, &store, now_ms, &err)
 *   notified_forget(&store)                        nobody wants to be told any more
 *   notified_deinit(&n)
 *
 * DESIGN. The logs are the truth. Beside them, the file `notified` holds, for each session with a
 * notice in the last hour or still due, the last record that was told. The next start looks at
 * these and at every log written after the file: so a notice may come twice, but is not lost.
 * Without the file nothing counts as missed. Only submitted sessions count: others have a person at
 * their terminal.
 */
#ifndef SEGUE_STORE_NOTIFIED_H
#define SEGUE_STORE_NOTIFIED_H

#include "base/err.h"
#include "store/store.h"

#include <jansson.h>

struct notified {
  int64_t saved_ms; /* wall clock; 0: nothing was kept */
  json_t *sessions; /* id -> {"told": seq, "at": ms, or 0 while one is queued} */
};

void notified_load(struct notified *n, const struct store *store);
void notified_missed(const struct notified *n, const struct store *store,
                     void (*each)(void *ctx, const char *id, json_t *notice, uint64_t seq),
                     void *ctx);
void notified_expect(struct notified *n, const char *id, uint64_t seq);
/* Notes that a notice was told. next: the record of the session's first notice still queued, or
 * 0. */
void notified_told(struct notified *n, const char *id, uint64_t seq, uint64_t next, int64_t now_ms);
bool notified_save(struct notified *n, const struct store *store, int64_t now_ms,
                   struct err *err) MUST_CHECK;
void notified_forget(const struct store *store);
void notified_deinit(struct notified *n);

#endif
