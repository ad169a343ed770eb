/* notification_cursor.h - how far a person has been told of a store's sessions, so that no notice
 * is lost with the process that should have told it.
 *
 *   notification_cursor_load(&n, &store)                      empty where nothing was kept yet
 *   notification_cursor_missed(&n, &store, each, ctx)
 *       notices that logs hold and that nobody was told;
 *                                                  each is lent
 *   notification_cursor_expect(&n, session, seq)              one of that record is queued
 *   notification_cursor_told(&n, session, seq, next, now_ms)  it was told, or given up
 *   notification_cursor_save(&n, &store, now_ms, &err)
 *   notification_cursor_forget(&store)                        nobody wants to be told any more
 *   notification_cursor_deinit(&n)
 *
 * DESIGN. The logs are the truth. Beside them, the file `notified` holds, for each session with a
 * notice in the last hour or still due, the last record that was told. The next start looks at
 * these and at every log written after the file: so a notice may come twice, but is not lost.
 * Without the file nothing counts as missed. Only submitted sessions count: others have a person at
 * their terminal.
 */
#ifndef SEGUE_STORE_NOTIFICATION_CURSOR_H
#define SEGUE_STORE_NOTIFICATION_CURSOR_H

#include "base/err.h"
#include "store/store.h"

#include <jansson.h>

struct notification_cursor {
  int64_t saved_ms; /* wall clock; 0: nothing was kept */
  json_t *sessions; /* id -> {"told": seq, "at": ms, or 0 while one is queued} */
};

void notification_cursor_load(struct notification_cursor *n, const struct store *store);
void notification_cursor_missed(const struct notification_cursor *n, const struct store *store,
                                void (*each)(void *ctx, const char *id, json_t *notification,
                                             uint64_t seq),
                                void *ctx);
void notification_cursor_expect(struct notification_cursor *n, const char *id, uint64_t seq);
/* Notes that a notice was told. next: the record of the session's first notice still queued, or
 * 0. */
void notification_cursor_told(struct notification_cursor *n, const char *id, uint64_t seq,
                              uint64_t next, int64_t now_ms);
bool notification_cursor_save(struct notification_cursor *n, const struct store *store,
                              int64_t now_ms, struct err *err) MUST_CHECK;
void notification_cursor_forget(const struct store *store);
void notification_cursor_deinit(struct notification_cursor *n);

#endif
