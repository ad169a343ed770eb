/* Checks from time to time that the index of the log folder agrees with the logs. */
#include "daemon/indexer.h"

#include "audit/aggregate_cache.h"
#include "base/limits.h"
#include "base/log.h"
#include "store/index.h"

enum { SOON_MS = 500 };

static void indexer_look(uv_work_t *work) {
  struct indexer *ix = work->data;
  bool keeps = index_refresh(ix->store, LIMIT_INDEX_STEP_COUNT, &ix->more);
  if (keeps && !ix->more) /* it knows all logs, so what is not among them is gone */
    aggregate_cache_refresh(ix->store, LIMIT_INDEX_STEP_COUNT, &ix->more);
}

static void on_indexer_timer(uv_timer_t *timer);

static void indexer_arm(struct indexer *ix, uint64_t ms) {
  if (!ix->closing && !ix->busy && !uv_is_active((const uv_handle_t *)&ix->timer))
    uv_timer_start(&ix->timer, on_indexer_timer, ms, 0);
}

static void on_indexer_looked(uv_work_t *work, int status) {
  struct indexer *ix = work->data;
  (void)status;
  ix->busy = false;
  if (ix->more || ix->wanted)
    indexer_arm(ix, ix->more ? 0 : LIMIT_INDEX_REST_MS);
}

static void on_indexer_timer(uv_timer_t *timer) {
  struct indexer *ix = timer->data;
  ix->wanted = false;
  ix->busy = true;
  if (uv_queue_work(timer->loop, &ix->work, indexer_look, on_indexer_looked) != 0)
    BUG("no work can be queued");
}

void indexer_want(struct indexer *ix) {
  ix->wanted = true;
  indexer_arm(ix, LIMIT_INDEX_REST_MS);
}

void indexer_start(struct indexer *ix, uv_loop_t *loop, const struct store *store) {
  *ix = (struct indexer){.store = store};
  uv_timer_init(loop, &ix->timer);
  ix->timer.data = ix->work.data = ix;
  indexer_arm(ix, SOON_MS);
}

void indexer_close(struct indexer *ix) {
  bool more;
  ix->closing = true;
  if (ix->wanted && !ix->busy) /* so that the next start finds everything in it */
    (void)index_refresh(ix->store, LIMIT_INDEX_STEP_COUNT, &more);
  uv_close((uv_handle_t *)&ix->timer, NULL);
}
