/* Takes places at providers that all workers share.
 *
 * DESIGN. A place is a row with the worker's id and a number of its own, so that a repeated request
 * finds what the first one did: a lost answer neither takes two places nor loses one. Limits and
 * pauses come with each poll of the heartbeat, so a provider without a limit costs nothing.
 *
 * A place that cannot be given back would be taken for as long as this worker lives, and its
 * provider would be used less and less. So it is kept in a list until the store answers. */
#include "store/slots.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/loop.h"
#include "store/postgres/base.h"

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

/* Builds the new list before it takes the lock, which the loop wants for each call that it starts.
 */
bool provider_slots_learn(struct pg_base *pg, const char *lines) {
  struct provider_slots_known *known = NULL;
  size_t count = 0, capacity = 0;
  struct str rest = str_from(lines);
  while (rest.n > 0) {
    known = xgrow(known, &capacity, count + 1, sizeof *known);
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

void provider_slots_look_at(const struct store *store, const char *provider,
                            struct provider_slots_look *out) {
  struct pg_base *pg = base_of_store(store);
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
  struct provider_slot *slot;
  enum provider_slot_answer answer;
  provider_slot_fn done;
  void *ctx;
  char provider[LIMIT_POOL_BYTES + 1]; /* to be left alone for `ms` */
  uint64_t ms;
};

static struct provider_slot_request *request_new(struct pg_base *pg) {
  struct provider_slot_request *r = xcalloc(1, sizeof *r);
  r->work.data = r;
  r->pg = pg;
  return r;
}

static void request_over(uv_work_t *work, int status) {
  (void)status;
  free(work->data);
}

static void provider_slot_take_now(uv_work_t *work) {
  struct provider_slot_request *r = work->data;
  char number[ARG_NUMBER_BYTES], word[BASE_WORD_BYTES];
  struct err err;
  const struct conn_arg args[] = {arg_text(r->slot->word), arg_number(number, r->slot->number),
                                  arg_text(r->slot->provider)};
  (void)!base_ask_word(r->pg, "SELECT segue.seat_take($1, $2, $3)", args, ARRAY_LEN(args), word,
                       &err);
  r->answer = PROVIDER_SLOT_UNKNOWN;
  if (strcmp(word, "ok") == 0)
    r->answer = PROVIDER_SLOT_TAKEN;
  else if (strcmp(word, "free") == 0)
    r->answer = PROVIDER_SLOT_FREE;
  else if (strcmp(word, "full") == 0)
    r->answer = PROVIDER_SLOT_FULL;
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
  free(r);
}

void provider_slot_ask(const struct store *store, uv_loop_t *loop, const char *provider,
                       provider_slot_fn done, void *ctx) {
  struct pg_base *pg = base_of_store(store);
  struct provider_slot_request *r = request_new(pg);
  r->done = done;
  r->ctx = ctx;
  r->slot = xcalloc(1, sizeof *r->slot);
  r->slot->pg = pg;
  print_into(r->slot->provider, sizeof r->slot->provider, "%s", provider);
  r->slot->number = atomic_fetch_add(&pg->slots, 1) + 1;
  (void)pthread_mutex_lock(&pg->lock);
  memcpy(r->slot->word, pg->heartbeat.word, sizeof r->slot->word);
  (void)pthread_mutex_unlock(&pg->lock);
  loop_work(loop, &r->work, provider_slot_take_now, provider_slot_was_asked);
}

static const char leave_sql[] = "SELECT segue.seat_leave($1, $2)";

/* Gives a place back; if the store does not answer, leaves that to the heartbeat. */
static void provider_slot_leave_now(uv_work_t *work) {
  struct provider_slot_request *r = work->data;
  char number[ARG_NUMBER_BYTES], word[BASE_WORD_BYTES];
  struct err err;
  const struct conn_arg args[] = {arg_text(r->slot->word), arg_number(number, r->slot->number)};
  if (!fault_fails("seat") && base_ask_word(r->pg, leave_sql, args, ARRAY_LEN(args), word, &err)) {
    free(r->slot);
    return;
  }
  (void)pthread_mutex_lock(&r->pg->lock);
  list_push_back(&r->pg->seats_kept, &r->slot->in_pool);
  (void)pthread_mutex_unlock(&r->pg->lock);
}

/* A refusal settles a place, too: its row is gone, or will go with the lease. */
void provider_slots_settle(struct pg_base *pg, struct conn *conn) {
  struct list kept = {0};
  (void)pthread_mutex_lock(&pg->lock);
  list_move_all(&kept, &pg->seats_kept);
  (void)pthread_mutex_unlock(&pg->lock);
  LIST_EACH(struct provider_slot, slot, in_pool, &kept) {
    char number[ARG_NUMBER_BYTES];
    enum conn_failure failure;
    struct err err;
    const struct conn_arg args[] = {arg_text(slot->word), arg_number(number, slot->number)};
    PGresult *answer = conn_ask(conn, leave_sql, pg->heartbeat.ttl_ms / 6 + 200, args,
                                ARRAY_LEN(args), false, &failure, &err);
    bool answered = answer != NULL || failure == CONN_REFUSED;
    conn_free(answer);
    if (!answered)
      break;
    list_remove(&kept, &slot->in_pool);
    free(slot);
  }
  (void)pthread_mutex_lock(&pg->lock);
  list_move_all(&pg->seats_kept, &kept);
  (void)pthread_mutex_unlock(&pg->lock);
}

void provider_slot_leave(struct provider_slot *owned, uv_loop_t *loop) {
  struct provider_slot_request *r = request_new(owned->pg);
  r->slot = owned;
  loop_work(loop, &r->work, provider_slot_leave_now, request_over);
}

static void cool_now(uv_work_t *work) {
  struct provider_slot_request *r = work->data;
  char ms[ARG_NUMBER_BYTES], word[BASE_WORD_BYTES];
  struct err err;
  const struct conn_arg args[] = {arg_text(r->provider), arg_number(ms, r->ms)};
  if (!base_ask_word(r->pg, "SELECT segue.cool($1, $2)", args, ARRAY_LEN(args), word, &err))
    log_warn("cannot tell other workers to pause calls to %s: %s", r->provider, err.text);
}

void provider_slots_cool(const struct store *store, uv_loop_t *loop, const char *provider,
                         uint64_t ms) {
  struct pg_base *pg = base_of_store(store);
  if (pg == NULL || !pg->heartbeat.runs)
    return;
  struct provider_slot_request *r = request_new(pg);
  print_into(r->provider, sizeof r->provider, "%s", provider);
  r->ms = ms;
  loop_work(loop, &r->work, cool_now, request_over);
}
