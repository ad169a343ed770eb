/* Takes places at providers that all workers share.
 *
 * DESIGN. A place is a row with the worker's id and a number of its own, so that a repeated request
 * finds what the first one did. Limits and pauses come with each poll of the heartbeat, so a
 * provider without a limit costs nothing. */
#include "store/slots.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/loop.h"
#include "store/postgres/shared.h"

#include <stdlib.h>
#include <string.h>

struct provider_slots_known {
  char *provider;
  unsigned limit;
  uint64_t cool_until; /* clock_boot_ms */
};

/* --- what is known --- */

static bool known_read(struct str line, struct provider_slots_known *out) {
  char text[320], *end;
  if (line.n == 0 || line.n >= sizeof text)
    return false;
  memcpy(text, line.p, line.n);
  text[line.n] = '\0';
  out->limit = (unsigned)strtoul(text, &end, 10);
  uint64_t ms = *end == ' ' ? strtoull(end + 1, &end, 10) : 0;
  if (*end != ' ')
    return false;
  out->cool_until = ms > 0 ? clock_boot_ms() + ms : 0;
  out->provider = xstrdup(end + 1);
  return true;
}

/* Compares loosely: times were read at two moments, so they may differ by up to a second. */
static bool known_same(const struct provider_slots_known *a, const struct provider_slots_known *b) {
  uint64_t low = a->cool_until < b->cool_until ? a->cool_until : b->cool_until;
  uint64_t high = a->cool_until < b->cool_until ? b->cool_until : a->cool_until;
  return strcmp(a->provider, b->provider) == 0 && a->limit == b->limit && high - low < 1000;
}

bool provider_slots_learn(struct pg_base *pg, const char *lines) {
  struct provider_slots_known *known = NULL;
  size_t count = 0;
  struct str rest = str_from(lines);
  while (rest.n > 0) {
    known = xrealloc(known, (count + 1) * sizeof *known);
    count += known_read(str_next_line(&rest), &known[count]);
  }
  (void)pthread_mutex_lock(&pg->lock);
  bool same = count == pg->known_count;
  for (size_t i = 0; same && i < count; i++)
    same = known_same(&known[i], &pg->known[i]);
  struct provider_slots_known *old = pg->known;
  size_t old_count = pg->known_count;
  pg->known = known;
  pg->known_count = count;
  (void)pthread_mutex_unlock(&pg->lock);
  for (size_t i = 0; i < old_count; i++)
    free(old[i].provider);
  free(old);
  return !same;
}

static struct pg_base *provider_slots_base(const struct store *store) {
  struct err err;
  return store != NULL && url_is_shared(store->where) ? base_of(store->where, &err) : NULL;
}

void provider_slots_look_at(const struct store *store, const char *provider,
                            struct provider_slots_look *out) {
  struct pg_base *pg = provider_slots_base(store);
  *out = (struct provider_slots_look){0};
  if (pg == NULL)
    return;
  uint64_t now = clock_boot_ms();
  (void)pthread_mutex_lock(&pg->lock);
  for (size_t i = 0; i < pg->known_count; i++) {
    const struct provider_slots_known *known = &pg->known[i];
    if (strcmp(known->provider, provider) == 0)
      *out = (struct provider_slots_look){
          .limit = known->limit, .cool_ms = known->cool_until > now ? known->cool_until - now : 0};
  }
  (void)pthread_mutex_unlock(&pg->lock);
}

/* --- requests --- */

struct provider_slot_request {
  uv_work_t work;
  struct pg_base *pg;
  char *provider; /* or NULL */
  uint64_t ms;    /* length of a pause */
  struct provider_slot *slot;
  enum provider_slot_answer answer;
  provider_slot_fn done;
  void *ctx;
};

static struct provider_slot_request *request_new(struct pg_base *pg, const char *provider) {
  struct provider_slot_request *r = xcalloc(1, sizeof *r);
  r->work.data = r;
  r->pg = pg;
  r->provider = provider ? xstrdup(provider) : NULL;
  return r;
}

static void request_free(struct provider_slot_request *r) {
  free(r->provider);
  free(r);
}

static void request_over(uv_work_t *work, int status) {
  (void)status;
  request_free(work->data);
}

static void provider_slot_take_now(uv_work_t *work) {
  struct provider_slot_request *r = work->data;
  char number[24];
  enum conn_failure failure;
  struct err err;
  print_into(number, sizeof number, "%llu", (unsigned long long)r->slot->number);
  const struct conn_arg args[] = {arg_text(r->slot->worker), arg_text(number),
                                  arg_text(r->provider)};
  PGresult *answer =
      base_ask(r->pg, "SELECT segue.seat_take($1, $2, $3)", args, 3, false, &failure, &err);
  const char *word = answer ? conn_text(answer, 0, 0) : "";
  if (strcmp(word, "ok") == 0)
    r->answer = PROVIDER_SLOT_TAKEN;
  else if (strcmp(word, "free") == 0)
    r->answer = PROVIDER_SLOT_FREE;
  else
    r->answer = strcmp(word, "full") == 0 ? PROVIDER_SLOT_FULL : PROVIDER_SLOT_UNKNOWN;
  conn_free(answer);
}

static void provider_slot_was_asked(uv_work_t *work, int status) {
  struct provider_slot_request *r = work->data;
  struct provider_slot *slot = r->slot;
  uv_loop_t *loop = work->loop;
  (void)status;
  if (r->answer == PROVIDER_SLOT_UNKNOWN) { /* it may have been taken all the same */
    provider_slot_leave(slot, loop);
    slot = NULL;
  } else if (r->answer != PROVIDER_SLOT_TAKEN) {
    free(slot);
    slot = NULL;
  }
  r->done(r->ctx, r->answer, slot);
  request_free(r);
}

void provider_slot_ask(const struct store *store, uv_loop_t *loop, const char *provider,
                       provider_slot_fn done, void *ctx) {
  struct pg_base *pg = provider_slots_base(store);
  struct provider_slot_request *r = request_new(pg, provider);
  r->done = done;
  r->ctx = ctx;
  r->slot = xcalloc(1, sizeof *r->slot);
  r->slot->pg = pg;
  print_into(r->slot->provider, sizeof r->slot->provider, "%s", provider);
  r->slot->number = atomic_fetch_add(&pg->slots, 1) + 1;
  (void)pthread_mutex_lock(&pg->lock);
  memcpy(r->slot->worker, pg->heartbeat.worker, sizeof r->slot->worker);
  (void)pthread_mutex_unlock(&pg->lock);
  loop_work(loop, &r->work, provider_slot_take_now, provider_slot_was_asked);
}

/* Uses conn; if it is NULL, an idle connection or a new one. */
static bool provider_slot_give_back(const struct provider_slot *slot, struct conn *conn) {
  static const char sql[] = "SELECT segue.seat_leave($1, $2)";
  char number[24];
  enum conn_failure failure;
  struct err err;
  print_into(number, sizeof number, "%llu", (unsigned long long)slot->number);
  const struct conn_arg args[] = {arg_text(slot->worker), arg_text(number)};
  PGresult *answer;
  if (conn != NULL)
    answer =
        conn_ask(conn, sql, slot->pg->heartbeat.ttl_ms / 6 + 200, args, 2, false, &failure, &err);
  else
    answer = base_ask(slot->pg, sql, args, 2, false, &failure, &err);
  bool answered = answer != NULL || failure == CONN_REFUSED;
  conn_free(answer);
  return answered;
}

/* Gives a place back; if the store does not answer, leaves that to the heartbeat. */
static void provider_slot_leave_now(uv_work_t *work) {
  struct provider_slot_request *r = work->data;
  if (!fault_fails("seat") && provider_slot_give_back(r->slot, NULL)) {
    free(r->slot);
    return;
  }
  (void)pthread_mutex_lock(&r->pg->lock);
  list_push_back(&r->pg->seats_kept, &r->slot->in_pool);
  (void)pthread_mutex_unlock(&r->pg->lock);
}

static struct provider_slot *provider_slot_kept(struct pg_base *pg) {
  struct provider_slot *slot = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  if (pg->seats_kept.first != NULL) {
    slot = LIST_ITEM(pg->seats_kept.first, struct provider_slot, in_pool);
    list_remove(&pg->seats_kept, &slot->in_pool);
  }
  (void)pthread_mutex_unlock(&pg->lock);
  return slot;
}

void provider_slots_settle(struct pg_base *pg, struct conn *conn) {
  for (struct provider_slot *slot; (slot = provider_slot_kept(pg)) != NULL; free(slot))
    if (!provider_slot_give_back(slot, conn)) {
      (void)pthread_mutex_lock(&pg->lock);
      list_push_back(&pg->seats_kept, &slot->in_pool);
      (void)pthread_mutex_unlock(&pg->lock);
      return;
    }
}

void provider_slot_leave(struct provider_slot *owned, uv_loop_t *loop) {
  struct provider_slot_request *r = request_new(owned->pg, NULL);
  r->slot = owned;
  loop_work(loop, &r->work, provider_slot_leave_now, request_over);
}

static void cool_now(uv_work_t *work) {
  struct provider_slot_request *r = work->data;
  char ms[24];
  enum conn_failure failure;
  struct err err;
  print_into(ms, sizeof ms, "%llu", (unsigned long long)r->ms);
  const struct conn_arg args[] = {arg_text(r->provider), arg_text(ms)};
  PGresult *answer = base_ask(r->pg, "SELECT segue.cool($1, $2)", args, 2, false, &failure, &err);
  if (answer == NULL)
    log_warn("cannot tell other workers to pause calls to %s: %s", r->provider, err.text);
  conn_free(answer);
}

void provider_slots_cool(const struct store *store, uv_loop_t *loop, const char *provider,
                         uint64_t ms) {
  struct pg_base *pg = provider_slots_base(store);
  if (pg == NULL || !pg->heartbeat.runs)
    return;
  struct provider_slot_request *r = request_new(pg, provider);
  r->ms = ms;
  loop_work(loop, &r->work, cool_now, request_over);
}
