/* inbox.h - what waits for persons, over all sessions of a store.
 *
 *   list = inbox_list(&store, live, ctx, &err)      a new array, what waits longest first
 *   inbox_add_log(list, &store, id)                 the questions of one session
 *
 * An item is a question as the session's log lists it (core/answer.h), with `id`, `workflow` and
 * `spent` of its session. Most logs are passed over by the index, or by their last records; only
 * one that runs, or crashed, is read to its end. */
#ifndef SEGUE_STORE_INBOX_H
#define SEGUE_STORE_INBOX_H

#include "store/brief.h"

/* live: what a program knows of a session without its log; NULL: nothing, as for all without it. */
json_t *inbox_list(const struct store *store,
                   const struct brief *(*live)(void *ctx, const char *id), void *ctx,
                   struct err *err);
/* The questions of one log, whatever its row in the index. */
void inbox_add_log(json_t *list, const struct store *store, const char *id);

#endif
