/* Does a worker's part at a shared store: hears the news about the program's sessions on its loop,
 * takes sessions from the queue and keeps them until they are attached, and knows which ones its
 * labels let it take.
 *
 * DESIGN, claims. A claim returns the row and, if it is small, the log, so that attaching needs no
 * further request. Both stay valid as long as the lease does, since nobody else can write the log.
 * If an answer is lost, this worker holds sessions that it does not know of, and asks the store for
 * them later. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/utf8.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- news --- */

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
  struct pg_base *pg = base_of(store->where, err);
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
  struct pg_base *pg = url_is_shared(store->where) ? base_of(store->where, &err) : NULL;
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
  print_into(pause->id, sizeof pause->id, "%s", id);
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
  struct pg_base *pg = url_is_shared(store->where) ? base_of(store->where, &err) : NULL;
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
  buf_printf(&text, "%s: %s", pg->heartbeat.name, why);
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

/* Appends the sessions that are not claimed for now, as an SQL array. */
static void base_put_paused(struct pg_base *pg, struct buf *out) {
  uint64_t now = clock_boot_ms();
  buf_putc(out, '{');
  (void)pthread_mutex_lock(&pg->lock);
  LIST_EACH(struct base_pause, pause, in_base, &pg->paused)
    if (pause->until_ms > now)
      buf_printf(out, "%s%s", out->n > 1 ? "," : "", pause->id);
  (void)pthread_mutex_unlock(&pg->lock);
  buf_putc(out, '}');
}

/* --- what is asked of a worker, and who it is --- */

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
    err_set(err, ERR_IO, "the store %s does not answer", pg->shown);
  }
  if (answer != NULL)
    print_into(state, 16, "%.15s", conn_text(answer, 0, 0));
  conn_free(answer);
  return answer != NULL;
}

bool worker_answers(const struct store *store, struct err *err) {
  if (!url_is_shared(store->where))
    return true;
  const struct pg_base *pg = base_of(store->where, err);
  if (pg == NULL || !pg->heartbeat.runs || atomic_load(&pg->heartbeat.answers))
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
  json_t *told = json_pack("{ss}", "name", log->pg->heartbeat.name);
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

/* --- claims --- */

enum { CLAIM_KEPT_MS = 30000 };

static void claim_free(struct base_claim *claim) {
  buf_deinit(&claim->log);
  free(claim);
}

static struct base_claim *claim_find(const struct pg_base *pg, const char *id) {
  LIST_EACH(struct base_claim, claim, in_base, &pg->claimed)
    if (strcmp(claim->id, id) == 0)
      return claim;
  return NULL;
}

/* --- claims: attached sessions --- */

/* A claim stays in the list while it is attached, so that claim_known knows the session before its
 * log is open. One of an earlier term is worthless: the session may be another's by now. */
struct base_claim *shared_take_claim(struct pg_base *pg, const char *id) {
  (void)pthread_mutex_lock(&pg->lock);
  struct base_claim *claim = claim_find(pg, id);
  bool over = claim != NULL && claim->term != base_term(pg);
  if (over)
    list_remove(&pg->claimed, &claim->in_base);
  else if (claim != NULL)
    claim->attached = true;
  (void)pthread_mutex_unlock(&pg->lock);
  if (!over)
    return claim;
  claim_free(claim);
  return NULL;
}

void shared_end_claim(struct pg_base *pg, struct base_claim *claim) {
  if (claim == NULL)
    return;
  (void)pthread_mutex_lock(&pg->lock);
  list_remove(&pg->claimed, &claim->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
  claim_free(claim);
}

bool shared_claimed_log(struct pg_base *pg, const char *id, struct buf *out) {
  struct err err;
  (void)pthread_mutex_lock(&pg->lock);
  const struct base_claim *claim = claim_find(pg, id);
  bool there = claim != NULL && claim->log.n > 0 && base_trusts(pg, claim->term, &err);
  if (there)
    buf_str(out, buf_view(&claim->log));
  (void)pthread_mutex_unlock(&pg->lock);
  return there;
}

/* --- claims: sessions that nobody attached or knows of --- */

/* Ignores a failure: the row stays ours, and the heartbeat's count of what we hold brings it up
 * again. */
static void claim_back(struct pg_base *pg, const char *id, uint64_t fence) {
  struct base_leave leave = {.fence = fence};
  print_into(leave.id, sizeof leave.id, "%.36s", id);
  (void)shared_release(pg, &leave);
}

/* Gives the oldest one back if nobody attached it in time: the program may have no place for it any
 * more, and nobody else can take it while it is held here. One at a time, since that asks the
 * store. */
static void claims_give_back(struct pg_base *pg) {
  uint64_t now = clock_boot_ms();
  struct base_claim *old = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  if (pg->claimed.first != NULL)
    old = LIST_ITEM(pg->claimed.first, struct base_claim, in_base);
  if (old != NULL && (old->attached || old->at_ms + CLAIM_KEPT_MS >= now))
    old = NULL;
  if (old != NULL)
    list_remove(&pg->claimed, &old->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
  if (old == NULL)
    return;
  claim_back(pg, old->id, old->held.fence);
  claim_free(old);
}

static struct base_claim *claim_new(const char *id, uint64_t fence, unsigned term) {
  struct base_claim *claim = xcalloc(1, sizeof *claim);
  print_into(claim->id, sizeof claim->id, "%.36s", id);
  claim->held.fence = fence;
  claim->term = term;
  claim->at_ms = clock_boot_ms();
  return claim;
}

static void claim_keep(struct pg_base *pg, struct base_claim *claim, struct store_id *out) {
  memcpy(out->id, claim->id, STORE_ID_BYTES);
  (void)pthread_mutex_lock(&pg->lock);
  list_push_back(&pg->claimed, &claim->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
}

/* Takes up sessions whose answer was lost, or gives them back if there is no room for them: while
 * this worker lives, nobody else can take them. */
static void claims_settle(struct pg_base *pg, size_t max, struct store_id *ids, size_t *count) {
  enum conn_failure failure;
  struct err err;
  const struct conn_arg args[] = {arg_text(pg->heartbeat.worker)};
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
    uint64_t fence = conn_number(answer, i, 1);
    /* This program may know that it holds the session: open, claimed, or being given back. */
    bool known = shared_open_count(pg, id) > 0;
    (void)pthread_mutex_lock(&pg->lock);
    known = known || claim_find(pg, id) != NULL;
    LIST_EACH(struct base_leave, leave, in_base, &pg->leaving)
      known = known || strcmp(leave->id, id) == 0;
    (void)pthread_mutex_unlock(&pg->lock);
    if (known)
      continue;
    if (*count < max)
      claim_keep(pg, claim_new(id, fence, term), &ids[(*count)++]);
    else
      claim_back(pg, id, fence);
  }
  conn_free(answer);
}

/* --- claims: from the queue --- */

/* All columns but the last are text: the answer is binary only because of the log. */
static const char claim_sql[] =
    "SELECT o_id::text, o_fence::text, o_seq::text, o_bytes::text, o_hash, o_deaths::text, "
    "o_died, o_asked, o_log FROM segue.claim($1, $2, $3, $4)";

static struct base_claim *claim_read(const PGresult *answer, int row, unsigned term) {
  struct base_claim *claim =
      claim_new(conn_text(answer, row, 0), conn_number(answer, row, 1), term);
  struct base_held *held = &claim->held;
  struct str log = conn_bytes(answer, row, 8);
  held->seq = conn_number(answer, row, 2);
  held->bytes = conn_number(answer, row, 3);
  held->deaths = (unsigned)conn_number(answer, row, 5);
  print_into(held->hash, sizeof held->hash, "%s", conn_text(answer, row, 4));
  print_into(held->died, sizeof held->died, "%s", conn_text(answer, row, 6));
  print_into(held->asked, sizeof held->asked, "%s", conn_text(answer, row, 7));
  if (log.n == held->bytes) /* otherwise it is older than the row */
    buf_str(&claim->log, log);
  return claim;
}

/* Asks once only: a second request would take further sessions. */
static PGresult *claim_ask(struct pg_base *pg, size_t max, struct err *err) {
  char most[ARG_NUMBER_BYTES], bytes[ARG_NUMBER_BYTES];
  enum conn_failure failure = CONN_FINE;
  struct buf paused = {0};
  base_put_paused(pg, &paused);
  const struct conn_arg args[] = {arg_text(pg->heartbeat.worker), arg_number(most, max),
                                  arg_text(buf_c(&paused)),
                                  arg_number(bytes, LIMIT_STORE_CLAIM_BYTES)};
  struct conn *conn = base_take(pg, &failure, err);
  PGresult *answer = NULL;
  if (conn != NULL)
    answer =
        conn_ask(conn, claim_sql, LIMIT_STORE_ASK_MS, args, ARRAY_LEN(args), true, &failure, err);
  buf_deinit(&paused);
  if (answer != NULL && conn_rows(answer) > 0 && fault_fails("claim")) { /* a lost reply */
    conn_free(answer);
    conn_close(conn);
    answer = NULL;
    conn = NULL;
    err_set(err, ERR_IO, "the store %s does not answer", pg->shown);
  }
  base_give(pg, conn);
  return answer;
}

bool worker_claim(struct store *store, size_t max, struct store_id *ids, size_t *count,
                  struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
  *count = 0;
  if (pg == NULL)
    return false;
  claims_give_back(pg);
  claims_settle(pg, max, ids, count);
  if (*count == max)
    return true;
  /* The term of before the request: what a lease took that ended meanwhile is not trusted. */
  unsigned term = base_term(pg);
  PGresult *answer = claim_ask(pg, max - *count, err);
  if (answer == NULL)
    atomic_store(&pg->unsure, true);
  int n = answer ? conn_rows(answer) : 0;
  for (int i = 0; i < n && *count < max; i++)
    claim_keep(pg, claim_read(answer, i, term), &ids[(*count)++]);
  conn_free(answer);
  return answer != NULL || *count > 0;
}

/* --- labels --- */

enum { HOST_LABEL_BYTES = 280 };

void base_put_label(struct buf *out, const char *prefix, const char *label) {
  buf_puts(out, out->n > 1 ? ",\"" : "\"");
  buf_puts(out, prefix);
  for (const char *p = label; *p; p++) {
    if (*p == '"' || *p == '\\')
      buf_putc(out, '\\');
    buf_putc(out, *p);
  }
  buf_putc(out, '"');
}

bool worker_labels_check(const json_t *labels, struct err *err) {
  size_t i;
  json_t *label;
  if (!json_is_array(labels) || json_array_size(labels) == 0)
    return err_set(err, ERR_USAGE, "labels must be texts, at least one");
  if (json_array_size(labels) > LIMIT_STORE_LABEL_COUNT)
    return err_set(err, ERR_USAGE, "a session asks for at most %u labels", LIMIT_STORE_LABEL_COUNT);
  json_array_foreach(labels, i, label) {
    const char *text = json_string_value(label);
    if (text == NULL || strlen(text) != json_string_length(label))
      return err_set(err, ERR_USAGE, "a label is a text without NUL");
    if (!base_label_check(text, err))
      return false;
  }
  return true;
}

void worker_place(struct store_log *base, const json_t *labels) {
  struct shared_log *log = (struct shared_log *)base;
  struct buf needs = {0};
  size_t i;
  json_t *label;
  if (!url_is_shared(base->store->where) || json_array_size(labels) == 0)
    return;
  buf_putc(&needs, '{');
  json_array_foreach((json_t *)labels, i, label) {
    if (json_is_string(label))
      base_put_label(&needs, "", json_string_value(label));
  }
  buf_putc(&needs, '}');
  free(log->needs);
  log->needs = buf_take(&needs);
}

static void own_host(char host[HOST_LABEL_BYTES]) {
  static const char prefix[] = "host=";
  memcpy(host, prefix, sizeof prefix);
  if (gethostname(host + sizeof prefix - 1, HOST_LABEL_BYTES - sizeof prefix) != 0)
    print_into(host, HOST_LABEL_BYTES, "%sunknown", prefix);
  host[HOST_LABEL_BYTES - 1] = '\0';
}

json_t *worker_home(const struct store *store) {
  char host[HOST_LABEL_BYTES];
  if (!url_is_shared(store->where))
    return NULL;
  own_host(host);
  return json_pack("[s]", host);
}

bool worker_has(const json_t *labels) {
  char host[HOST_LABEL_BYTES];
  size_t i;
  json_t *label;
  own_host(host);
  json_array_foreach((json_t *)labels, i, label) {
    const char *text = json_string_value(label);
    bool has = text != NULL && strcmp(text, host) == 0;
    for (const char *const *own = base_options()->labels; text && own && *own; own++)
      has = has || strcmp(text, *own) == 0;
    if (!has)
      return false;
  }
  return true;
}

bool worker_fits(const struct store_ref *ref, struct err *err) {
  static const char sql[] = "SELECT string_agg(n, ', ') FROM segue.session s, unnest(s.needs) n"
                            " WHERE s.id = $1::uuid AND NOT n = ANY ($2::text[])";
  char id[STORE_ID_BYTES];
  enum conn_failure failure;
  struct buf labels = {0};
  struct store store;
  ref->ops->of(ref, &store);
  if (!url_is_shared(store.where))
    return true;
  struct pg_base *pg = shared_of(ref, id, err);
  char host[HOST_LABEL_BYTES];
  own_host(host);
  buf_putc(&labels, '{');
  base_put_label(&labels, "", host);
  for (const char *const *label = base_options()->labels; label && *label; label++)
    base_put_label(&labels, "", *label);
  buf_putc(&labels, '}');
  const struct conn_arg args[] = {arg_text(id), arg_text(buf_c(&labels))};
  PGresult *answer = pg ? base_ask(pg, sql, args, ARRAY_LEN(args), false, &failure, err) : NULL;
  bool ok = answer != NULL;
  if (ok && conn_text(answer, 0, 0)[0] != '\0')
    ok = err_set(err, ERR_USAGE,
                 "the session asks for a worker with %.300s, which this one is not: continue it "
                 "where its folder is, or give --label here too",
                 conn_text(answer, 0, 0));
  conn_free(answer);
  buf_deinit(&labels);
  return ok;
}
