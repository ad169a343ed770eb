/* indexer.h - keeps the index of the log folder (store/index.h) while a daemon runs.
 *
 *   indexer_start(&ix, loop, store)      looks soon
 *   indexer_want(&ix)                    a session was over: looks again after a while
 *   indexer_close(&ix)                   then run the loop once more: a look is not broken off
 *
 * What it reads and writes it does in the loop's pool. */
#ifndef SEGUE_DAEMON_INDEXER_H
#define SEGUE_DAEMON_INDEXER_H

#include "store/store.h"

#include <uv.h>

struct indexer {
  const struct store *store;
  uv_timer_t timer;
  uv_work_t work;
  bool busy, wanted, more, closing;
};

void indexer_start(struct indexer *ix, uv_loop_t *loop, const struct store *store);
void indexer_want(struct indexer *ix);
void indexer_close(struct indexer *ix);

#endif
