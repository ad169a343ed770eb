/* Brings what the store says of this program's sessions to its loop, and takes from the queue. */
#include "store/postgres/shared.h"

#include "base/fault.h"
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
  base_tell(pg, WORKER_READY, "", ""); /* there may be a queue already */
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

static void claim_back(struct pg_base *pg, const char *id, uint64_t fence_number) {
  char fence[24];
  enum conn_failure failure;
  struct err err;
  (void)snprintf(fence, sizeof fence, "%llu", (unsigned long long)fence_number);
  const struct conn_arg args[] = {arg_text(id), arg_text(fence), arg_text("0"), arg_text(NULL)};
  conn_free(base_ask(pg, "SELECT segue.release($1, $2, $3, $4)", args, ARRAY_LEN(args), false,
                     &failure, &err));
}

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
  claim_back(pg, old->id, old->fence);
  free(old);
}

static void claim_keep(struct pg_base *pg, const char *id, uint64_t fence, unsigned term,
                       struct store_id *out) {
  struct base_claim *claim = xcalloc(1, sizeof *claim);
  (void)snprintf(claim->id, sizeof claim->id, "%.36s", id);
  claim->fence = fence;
  claim->term = term;
  claim->at_ms = clock_boot_ms();
  memcpy(out->id, claim->id, STORE_ID_BYTES);
  (void)pthread_mutex_lock(&pg->lock);
  list_push_back(&pg->claimed, &claim->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
}

static bool claim_known(struct pg_base *pg, const char *id) {
  bool known = shared_open_count(pg, id) > 0;
  (void)pthread_mutex_lock(&pg->lock);
  LIST_EACH(struct base_claim, claim, in_base, &pg->claimed)
    known = known || strcmp(claim->id, id) == 0;
  (void)pthread_mutex_unlock(&pg->lock);
  return known;
}

/* Sessions that came in an answer that was lost are taken up, or given back where there is no place
 * for them: as long as this worker lives nobody else can take them. */
static void claims_settle(struct pg_base *pg, size_t max, struct store_id *ids, size_t *count) {
  enum conn_failure failure;
  struct err err;
  const struct conn_arg args[] = {arg_text(pg->keeper.worker)};
  unsigned term = base_term(pg);
  if (!atomic_exchange(&pg->unsure, false))
    return;
  PGresult *answer = base_ask(pg,
                              "SELECT id, fence FROM segue.session WHERE state = 'held' AND "
                              "owner = $1 AND seq > 0 ORDER BY place",
                              args, 1, false, &failure, &err);
  if (answer == NULL)
    atomic_store(&pg->unsure, true);
  int n = answer ? conn_rows(answer) : 0;
  for (int i = 0; i < n; i++) {
    const char *id = conn_text(answer, i, 0);
    if (claim_known(pg, id))
      continue;
    if (*count < max)
      claim_keep(pg, id, conn_number(answer, i, 1), term, &ids[(*count)++]);
    else
      claim_back(pg, id, conn_number(answer, i, 1));
  }
  conn_free(answer);
}

/* --- sessions that others may go on with --- */

struct base_pause {
  struct list_node in_base;
  char id[STORE_ID_BYTES];
  uint64_t until_ms, wait_ms;
  char *why;
};

static struct base_pause *pause_of(struct pg_base *pg, const char *id) {
  LIST_EACH(struct base_pause, pause, in_base, &pg->paused)
    if (strcmp(pause->id, id) == 0)
      return pause;
  if (pg->paused.count >= LIMIT_STORE_PAUSE_COUNT) {
    struct list_node *first = pg->paused.first;
    list_remove(&pg->paused, first);
    free(LIST_ITEM(first, struct base_pause, in_base)->why);
    free(first);
  }
  struct base_pause *pause = xcalloc(1, sizeof *pause);
  (void)snprintf(pause->id, sizeof pause->id, "%s", id);
  list_push_back(&pg->paused, &pause->in_base);
  return pause;
}

void worker_pause(struct store *store, const char *id, const char *why) {
  struct err err;
  struct pg_base *pg = url_is_shared(store->where) ? shared_base(store, &err) : NULL;
  if (pg == NULL)
    return;
  (void)pthread_mutex_lock(&pg->lock);
  struct base_pause *pause = pause_of(pg, id);
  pause->wait_ms = pause->wait_ms == 0 ? LIMIT_STORE_PAUSE_MS : 2 * pause->wait_ms;
  if (pause->wait_ms > LIMIT_STORE_PAUSE_MAX_MS)
    pause->wait_ms = LIMIT_STORE_PAUSE_MAX_MS;
  pause->until_ms = clock_boot_ms() + pause->wait_ms;
  free(pause->why);
  struct buf text = {0};
  buf_printf(&text, "%s: %s", pg->keeper.name, why);
  pause->why = buf_take(&text);
  (void)pthread_mutex_unlock(&pg->lock);
}

char *base_pause_why(struct pg_base *pg, const char *id) {
  char *why = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  LIST_EACH(struct base_pause, pause, in_base, &pg->paused)
    if (pause->until_ms > clock_boot_ms() && strcmp(pause->id, id) == 0)
      why = xstrdup(pause->why);
  (void)pthread_mutex_unlock(&pg->lock);
  return why;
}

/* Those that are not claimed now, as an array of SQL. */
static void put_paused(struct pg_base *pg, struct buf *out) {
  uint64_t now = clock_boot_ms();
  buf_putc(out, '{');
  (void)pthread_mutex_lock(&pg->lock);
  LIST_EACH(struct base_pause, pause, in_base, &pg->paused)
    if (pause->until_ms > now)
      buf_printf(out, "%s%s", out->n > 1 ? "," : "", pause->id);
  (void)pthread_mutex_unlock(&pg->lock);
  buf_putc(out, '}');
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
  claims_settle(pg, max, ids, count);
  if (*count == max)
    return true;
  unsigned term = base_term(pg);
  (void)snprintf(most, sizeof most, "%zu", max - *count);
  struct buf paused = {0};
  put_paused(pg, &paused);
  const struct conn_arg args[] = {arg_text(pg->keeper.worker), arg_text(most),
                                  arg_text(buf_c(&paused))};
  struct conn *conn = base_take(pg, &failure, err);
  PGresult *answer = NULL;
  if (conn != NULL) /* once: a second one would take others */
    answer = conn_ask(conn, "SELECT * FROM segue.claim($1, $2, $3)", LIMIT_STORE_ASK_MS, args,
                      ARRAY_LEN(args), false, &failure, err);
  buf_deinit(&paused);
  if (answer != NULL && conn_rows(answer) > 0 && fault_fails("claim")) { /* the reply was lost */
    conn_free(answer);
    conn_close(conn);
    answer = NULL;
    conn = NULL;
    (void)err_set(err, ERR_IO, "the store %s does not answer", pg->shown);
  }
  base_give(pg, conn);
  if (answer == NULL)
    atomic_store(&pg->unsure, true);
  int n = answer ? conn_rows(answer) : 0;
  for (int i = 0; i < n && *count < max; i++)
    claim_keep(pg, conn_text(answer, i, 0), conn_number(answer, i, 1), term, &ids[(*count)++]);
  conn_free(answer);
  return n > 0 || *count > 0 || !atomic_load(&pg->unsure);
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

unsigned worker_deaths(const struct store_log *base, const char **died) {
  const struct shared_log *log = (const struct shared_log *)base;
  bool shared = base != NULL && url_is_shared(base->store->where);
  *died = shared ? log->died : "";
  return shared ? log->deaths : 0;
}

json_t *worker_json(const struct store_log *base) {
  const struct shared_log *log = (const struct shared_log *)base;
  if (base == NULL || !url_is_shared(base->store->where))
    return NULL;
  json_t *told = json_pack("{ss}", "name", log->pg->keeper.name);
  if (log->deaths > 0)
    json_object_update_new(told, json_pack("{ss si ss}", "after", log->died, "deaths",
                                           (int)log->deaths, "why", "its lease ended"));
  return told;
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
