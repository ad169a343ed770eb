/* Brings what the store says of this program's sessions to its loop, and takes from the queue. */
#include "store/postgres/shared.h"

#include "base/log.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct news_item *take_news(struct pg_base *pg) {
  (void)pthread_mutex_lock(&pg->lock);
  struct news_item *all = pg->news;
  pg->news = NULL;
  pg->news_end = &pg->news;
  (void)pthread_mutex_unlock(&pg->lock);
  return all;
}

static void watch_on_news(uv_async_t *async) {
  struct pg_base *pg = async->data;
  struct news_item *next;
  for (struct news_item *item = take_news(pg); item != NULL; item = next) {
    next = item->next;
    if (pg->told != NULL)
      pg->told(pg->told_ctx, item->news, item->id, item->what);
    free(item);
  }
}

bool worker_watch(struct store *store, uv_loop_t *loop, worker_told_fn told, void *ctx,
                  struct err *err) {
  if (!url_is_shared(store->where))
    return true;
  struct pg_base *pg = shared_base(store, err);
  if (pg == NULL || !base_enter(pg, err))
    return false;
  if (uv_async_init(loop, &pg->async, watch_on_news) != 0)
    return err_set(err, ERR_IO, "no descriptor is left");
  uv_unref((uv_handle_t *)&pg->async);
  pg->async.data = pg;
  (void)pthread_mutex_lock(&pg->lock);
  pg->told = told;
  pg->told_ctx = ctx;
  (void)pthread_mutex_unlock(&pg->lock);
  return true;
}

void worker_unwatch(struct store *store) {
  struct err err;
  struct pg_base *pg = url_is_shared(store->where) ? shared_base(store, &err) : NULL;
  struct news_item *next;
  if (pg == NULL || pg->told == NULL)
    return;
  (void)pthread_mutex_lock(&pg->lock);
  pg->told = NULL;
  (void)pthread_mutex_unlock(&pg->lock);
  for (struct news_item *item = take_news(pg); item != NULL; item = next) {
    next = item->next;
    free(item);
  }
  uv_close((uv_handle_t *)&pg->async, NULL);
}

enum { CLAIM_KEPT_MS = 30000 };

/* The oldest goes back when nobody came for it. */
static void claims_give_back(struct pg_base *pg) {
  uint64_t now = clock_boot_ms();
  struct base_claim *old = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  struct list_node *first = pg->claimed.first; /* the oldest */
  if (first != NULL && ((struct base_claim *)first)->at_ms + CLAIM_KEPT_MS < now) {
    old = (struct base_claim *)first;
    list_remove(&pg->claimed, first);
  }
  (void)pthread_mutex_unlock(&pg->lock);
  if (old == NULL)
    return;
  char fence[24];
  enum conn_failure failure;
  struct err err;
  (void)snprintf(fence, sizeof fence, "%llu", (unsigned long long)old->fence);
  const struct conn_arg args[] = {arg_text(old->id), arg_text(fence), arg_text("0")};
  conn_free(base_ask(pg, "SELECT segue.release($1, $2, $3)", args, 3, false, &failure, &err));
  free(old);
}

bool worker_claim(struct store *store, size_t max, struct store_id *ids, size_t *count,
                  struct err *err) {
  char most[24];
  enum conn_failure failure = CONN_FINE;
  struct pg_base *pg = shared_base(store, err);
  *count = 0;
  if (pg == NULL)
    return false;
  claims_give_back(pg);
  unsigned term = base_term(pg);
  (void)snprintf(most, sizeof most, "%zu", max);
  const struct conn_arg args[] = {arg_text(pg->keeper.worker), arg_text(most)};
  struct conn *conn = base_take(pg, &failure, err); /* once: what is lost is swept */
  PGresult *answer = NULL;
  if (conn != NULL)
    answer = conn_ask(conn, "SELECT * FROM segue.claim($1, $2)", LIMIT_STORE_ASK_MS, args, 2, false,
                      &failure, err);
  base_give(pg, conn);
  int n = answer ? conn_rows(answer) : 0;
  for (int i = 0; i < n && *count < max; i++) {
    struct base_claim *claim = xcalloc(1, sizeof *claim);
    (void)snprintf(claim->id, sizeof claim->id, "%.36s", conn_text(answer, i, 0));
    claim->fence = conn_number(answer, i, 1);
    claim->term = term;
    claim->at_ms = clock_boot_ms();
    memcpy(ids[(*count)++].id, claim->id, STORE_ID_BYTES);
    (void)pthread_mutex_lock(&pg->lock);
    list_push_back(&pg->claimed, &claim->in_base);
    (void)pthread_mutex_unlock(&pg->lock);
  }
  conn_free(answer);
  return answer != NULL;
}

bool worker_ask(const struct store_ref *ref, const char *what, char state[16], struct err *err) {
  char id[STORE_ID_BYTES];
  enum conn_failure failure;
  struct pg_base *pg = shared_of(ref, id, err);
  const struct conn_arg args[] = {arg_text(id), arg_text(what), arg_text("")};
  PGresult *answer = NULL;
  if (pg != NULL)
    answer = base_ask(pg, "SELECT segue.ask($1, $2, $3)", args, 3, false, &failure, err);
  if (answer != NULL)
    (void)snprintf(state, 16, "%.15s", conn_text(answer, 0, 0));
  conn_free(answer);
  return answer != NULL;
}

void worker_asked_done(struct store_log *base) {
  struct shared_log *log = (struct shared_log *)base;
  char fence[24];
  enum conn_failure failure;
  struct err err;
  if (!url_is_shared(base->store->where))
    return;
  (void)snprintf(fence, sizeof fence, "%llu", (unsigned long long)log->fence);
  const struct conn_arg args[] = {arg_text(log->id), arg_text(fence)};
  conn_free(base_ask(log->pg, "SELECT segue.asked_done($1, $2)", args, 2, false, &failure, &err));
}
