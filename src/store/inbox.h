/* inbox.h - what is waiting for people, over all sessions of a store.
 *
 *   list = inbox_list(&store, live, ctx, &err)      a new array, the longest wait first
 *   inbox_add_log(list, &store, id)                 the questions of one session
 *
 * An item is a question as the session's log lists it (core/answer.h), with `id`, `workflow` and
 * `spent` of its session. Most logs are skipped by the index or by their last records; only one
 * that is running, or crashed, and that changed since the index was made is read to its end. */
#ifndef SEGUE_STORE_INBOX_H
#define SEGUE_STORE_INBOX_H

#include "store/summary.h"

/* Lists the questions. live: what a program knows of a session without its log; it may be NULL, or
 * return NULL. */
json_t *inbox_list(const struct store *store,
                   const struct summary *(*live)(void *ctx, const char *id), void *ctx,
                   struct err *err);
/* Adds the questions of one log, whatever its row in the index says. */
void inbox_add_log(json_t *list, const struct store *store, const char *id);

#endif
