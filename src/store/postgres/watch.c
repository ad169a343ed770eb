/* Brings the store's news about this program's sessions to its loop. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/utf8.h"
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
  if (pg == NULL || !base_join(pg, err))
    return false;
  if (uv_async_init(loop, &pg->async, watch_on_news) != 0)
    return err_set(err, ERR_IO, "no descriptor is left");
  uv_unref((uv_handle_t *)&pg->async);
  pg->async.data = pg;
  (void)pthread_mutex_lock(&pg->lock);
  pg->told = told;
  pg->told_ctx = ctx;
  pg->loop = loop;
  pg->loop_thread = pthread_self();
  (void)pthread_mutex_unlock(&pg->lock);
  base_tell(pg, WORKER_READY, "", ""); /* the queue may already hold sessions */
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
  pg->loop = NULL; /* work under way still ends on it */
  (void)pthread_mutex_unlock(&pg->lock);
  for (struct news_item *item = take_news(pg); item != NULL; item = next) {
    next = item->next;
    free(item);
  }
  uv_close((uv_handle_t *)&pg->async, NULL);
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

/* Replaces what the server would refuse, else the session would stay held: a message may have been
 * cut within a character. */
static void why_simplify(const struct pg_base *pg, struct buf *why) {
  if (!atomic_load(&pg->narrow) && utf8_valid(why->p, why->n))
    return;
  for (size_t i = 0; i < why->n; i++)
    if ((unsigned char)why->p[i] >= 0x80)
      why->p[i] = '?';
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
  why_simplify(pg, &text);
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

void base_put_paused(struct pg_base *pg, struct buf *out) {
  uint64_t now = clock_boot_ms();
  buf_putc(out, '{');
  (void)pthread_mutex_lock(&pg->lock);
  LIST_EACH(struct base_pause, pause, in_base, &pg->paused)
    if (pause->until_ms > now)
      buf_printf(out, "%s%s", out->n > 1 ? "," : "", pause->id);
  (void)pthread_mutex_unlock(&pg->lock);
  buf_putc(out, '}');
}

bool worker_ask(const struct store_ref *ref, const char *what, char state[16], struct err *err) {
  char id[STORE_ID_BYTES];
  enum conn_failure failure;
  struct pg_base *pg = shared_of(ref, id, err);
  const struct conn_arg args[] = {arg_text(id), arg_text(what), arg_text("")};
  PGresult *answer = NULL;
  if (pg != NULL)
    answer = base_ask(pg, "SELECT segue.ask($1, $2, $3)", args, 3, false, &failure, err);
  if (answer != NULL && fault_fails("ask")) { /* as if no reply had come */
    conn_free(answer);
    answer = NULL;
    (void)err_set(err, ERR_IO, "the store %s does not answer", pg->shown);
  }
  if (answer != NULL)
    (void)snprintf(state, 16, "%.15s", conn_text(answer, 0, 0));
  conn_free(answer);
  return answer != NULL;
}

bool worker_answers(const struct store *store, struct err *err) {
  if (!url_is_shared(store->where))
    return true;
  const struct pg_base *pg = shared_base(store, err);
  if (pg == NULL || !pg->keeper.runs || atomic_load(&pg->keeper.answers))
    return pg != NULL;
  return err_set(err, ERR_LIMIT, "the store %s does not answer: try again", pg->shown);
}

const char *worker_asked(const struct store_log *base) {
  const struct shared_log *log = (const struct shared_log *)base;
  return base != NULL && url_is_shared(base->store->where) ? log->asked : "";
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

void worker_refuse(struct store_log *base) {
  struct shared_log *log = (struct shared_log *)base;
  if (url_is_shared(base->store->where))
    log->refuses = true;
}
