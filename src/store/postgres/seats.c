/* Takes places at providers that all workers share.
 *
 * DESIGN. A place is a row with the worker's id and a number of its own, so that a repeated request
 * finds what the first one did. Limits and pauses come with each poll of the keeper, so a provider
 * without a limit costs nothing. */
#include "store/seats.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/loop.h"
#include "store/postgres/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seats_known {
  char *provider;
  unsigned limit;
  uint64_t cool_until; /* clock_boot_ms */
};

/* --- what is known --- */

static void known_free(struct seats_known *known, size_t count) {
  for (size_t i = 0; i < count; i++)
    free(known[i].provider);
  free(known);
}

static bool known_read(struct str line, struct seats_known *out) {
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
static bool known_same(const struct seats_known *a, const struct seats_known *b) {
  uint64_t low = a->cool_until < b->cool_until ? a->cool_until : b->cool_until;
  uint64_t high = a->cool_until < b->cool_until ? b->cool_until : a->cool_until;
  return strcmp(a->provider, b->provider) == 0 && a->limit == b->limit && high - low < 1000;
}

bool seats_learn(struct pg_base *pg, const char *lines) {
  struct seats_known *known = NULL;
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
  struct seats_known *old = pg->known;
  size_t old_count = pg->known_count;
  pg->known = known;
  pg->known_count = count;
  (void)pthread_mutex_unlock(&pg->lock);
  known_free(old, old_count);
  return !same;
}

static struct pg_base *seats_base(const struct store *store) {
  struct err err;
  return store != NULL && url_is_shared(store->where) ? shared_base(store, &err) : NULL;
}

void seats_look_at(const struct store *store, const char *provider, struct seats_look *out) {
  struct pg_base *pg = seats_base(store);
  *out = (struct seats_look){0};
  if (pg == NULL)
    return;
  uint64_t now = clock_boot_ms();
  (void)pthread_mutex_lock(&pg->lock);
  for (size_t i = 0; i < pg->known_count; i++) {
    const struct seats_known *known = &pg->known[i];
    if (strcmp(known->provider, provider) == 0)
      *out = (struct seats_look){.limit = known->limit,
                                 .cool_ms = known->cool_until > now ? known->cool_until - now : 0};
  }
  (void)pthread_mutex_unlock(&pg->lock);
}

/* --- requests --- */

struct seat_request {
  uv_work_t work;
  struct pg_base *pg;
  char *provider; /* or NULL */
  uint64_t ms;    /* length of a pause */
  struct seat *seat;
  enum seat_answer answer;
  seat_fn done;
  void *ctx;
};

static struct seat_request *request_new(struct pg_base *pg, const char *provider) {
  struct seat_request *r = xcalloc(1, sizeof *r);
  r->work.data = r;
  r->pg = pg;
  r->provider = provider ? xstrdup(provider) : NULL;
  return r;
}

static void request_free(struct seat_request *r) {
  free(r->provider);
  free(r);
}

static void request_over(uv_work_t *work, int status) {
  (void)status;
  request_free(work->data);
}

static void seat_take_now(uv_work_t *work) {
  struct seat_request *r = work->data;
  char number[24];
  enum conn_failure failure;
  struct err err;
  (void)snprintf(number, sizeof number, "%llu", (unsigned long long)r->seat->number);
  const struct conn_arg args[] = {arg_text(r->seat->worker), arg_text(number),
                                  arg_text(r->provider)};
  PGresult *answer =
      base_ask(r->pg, "SELECT segue.seat_take($1, $2, $3)", args, 3, false, &failure, &err);
  const char *word = answer ? conn_text(answer, 0, 0) : "";
  if (strcmp(word, "ok") == 0)
    r->answer = SEAT_TAKEN;
  else if (strcmp(word, "free") == 0)
    r->answer = SEAT_FREE;
  else
    r->answer = strcmp(word, "full") == 0 ? SEAT_FULL : SEAT_UNKNOWN;
  conn_free(answer);
}

static void seat_was_asked(uv_work_t *work, int status) {
  struct seat_request *r = work->data;
  struct seat *seat = r->seat;
  uv_loop_t *loop = work->loop;
  (void)status;
  if (r->answer == SEAT_UNKNOWN) { /* it may have been taken all the same */
    seat_leave(seat, loop);
    seat = NULL;
  } else if (r->answer != SEAT_TAKEN) {
    free(seat);
    seat = NULL;
  }
  r->done(r->ctx, r->answer, seat);
  request_free(r);
}

void seat_ask(const struct store *store, uv_loop_t *loop, const char *provider, seat_fn done,
              void *ctx) {
  struct pg_base *pg = seats_base(store);
  struct seat_request *r = request_new(pg, provider);
  r->done = done;
  r->ctx = ctx;
  r->seat = xcalloc(1, sizeof *r->seat);
  r->seat->pg = pg;
  (void)snprintf(r->seat->provider, sizeof r->seat->provider, "%s", provider);
  r->seat->number = atomic_fetch_add(&pg->seats, 1) + 1;
  (void)pthread_mutex_lock(&pg->lock);
  memcpy(r->seat->worker, pg->keeper.worker, sizeof r->seat->worker);
  (void)pthread_mutex_unlock(&pg->lock);
  loop_work(loop, &r->work, seat_take_now, seat_was_asked);
}

/* Uses conn; if it is NULL, an idle connection or a new one. */
static bool seat_give_back(const struct seat *seat, struct conn *conn) {
  static const char sql[] = "SELECT segue.seat_leave($1, $2)";
  char number[24];
  enum conn_failure failure;
  struct err err;
  (void)snprintf(number, sizeof number, "%llu", (unsigned long long)seat->number);
  const struct conn_arg args[] = {arg_text(seat->worker), arg_text(number)};
  PGresult *answer;
  if (conn != NULL)
    answer = conn_ask(conn, sql, seat->pg->keeper.ttl_ms / 6 + 200, args, 2, false, &failure, &err);
  else
    answer = base_ask(seat->pg, sql, args, 2, false, &failure, &err);
  bool answered = answer != NULL || failure == CONN_REFUSED;
  conn_free(answer);
  return answered;
}

/* Gives a place back; if the store does not answer, leaves that to the keeper. */
static void seat_leave_now(uv_work_t *work) {
  struct seat_request *r = work->data;
  if (!fault_fails("seat") && seat_give_back(r->seat, NULL)) {
    free(r->seat);
    return;
  }
  (void)pthread_mutex_lock(&r->pg->lock);
  list_push_back(&r->pg->seats_kept, &r->seat->in_pool);
  (void)pthread_mutex_unlock(&r->pg->lock);
}

static struct seat *seat_kept(struct pg_base *pg) {
  struct seat *seat = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  if (pg->seats_kept.first != NULL) {
    seat = LIST_ITEM(pg->seats_kept.first, struct seat, in_pool);
    list_remove(&pg->seats_kept, &seat->in_pool);
  }
  (void)pthread_mutex_unlock(&pg->lock);
  return seat;
}

void seats_settle(struct pg_base *pg, struct conn *conn) {
  for (struct seat *seat; (seat = seat_kept(pg)) != NULL; free(seat))
    if (!seat_give_back(seat, conn)) {
      (void)pthread_mutex_lock(&pg->lock);
      list_push_back(&pg->seats_kept, &seat->in_pool);
      (void)pthread_mutex_unlock(&pg->lock);
      return;
    }
}

void seat_leave(struct seat *owned, uv_loop_t *loop) {
  struct seat_request *r = request_new(owned->pg, NULL);
  r->seat = owned;
  loop_work(loop, &r->work, seat_leave_now, request_over);
}

static void cool_now(uv_work_t *work) {
  struct seat_request *r = work->data;
  char ms[24];
  enum conn_failure failure;
  struct err err;
  (void)snprintf(ms, sizeof ms, "%llu", (unsigned long long)r->ms);
  const struct conn_arg args[] = {arg_text(r->provider), arg_text(ms)};
  PGresult *answer = base_ask(r->pg, "SELECT segue.cool($1, $2)", args, 2, false, &failure, &err);
  if (answer == NULL)
    log_warn("cannot tell other workers to pause calls to %s: %s", r->provider, err.text);
  conn_free(answer);
}

void seats_cool(const struct store *store, uv_loop_t *loop, const char *provider, uint64_t ms) {
  struct pg_base *pg = seats_base(store);
  if (pg == NULL || !pg->keeper.runs)
    return;
  struct seat_request *r = request_new(pg, provider);
  r->ms = ms;
  loop_work(loop, &r->work, cool_now, request_over);
}
