/* Queues calls in front of their providers. */
#include "host/gate.h"

#include "base/list.h"
#include "base/log.h"
#include "store/seats.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gate_entry {
  struct gate_entry *next;
  void *owner;
  long call;
  char *provider;
  bool has_fallback;
  const char *reason;       /* the last answer's; static text. NULL: nobody was told to wait */
  uint64_t until_ms;        /* the last answer's; 0: until a place is free */
  struct gate_asked *asked; /* the store is being asked for a place; it has one here */
  bool full;                /* it waits for one of the store's places */
  uint64_t retry_ms;        /* when to ask again; 0: when it is its turn */
};

/* A request to the store for a place may outlive the entry and the gate. */
struct gate_asked {
  struct list_node in_gate;
  struct gate *gate;               /* NULL: the gate is gone */
  struct gate_entry *entry;        /* NULL: nobody wants it any more */
  char pool[LIMIT_POOL_BYTES + 1]; /* that of the entry's provider */
  uv_loop_t *loop;
};

static void gate_on_timer(uv_timer_t *timer);

void gate_init(struct gate *g, uv_loop_t *loop, const struct provider_registry *registry,
               const struct store *store, gate_told_fn told) {
  *g = (struct gate){.timer = xcalloc(1, sizeof *g->timer), .store = store, .told = told};
  admission_init(&g->admission, registry);
  uv_timer_init(loop, g->timer);
  g->timer->data = g;
}

static void gate_on_closed(uv_handle_t *handle) {
  free(handle);
}

void gate_deinit(struct gate *g) {
  if (g->timer == NULL)
    return;
  assert(g->first == NULL);
  assert(g->seats.count == 0);
  LIST_EACH(struct gate_asked, asked, in_gate, &g->asked) {
    asked->gate = NULL;
    list_remove(&g->asked, &asked->in_gate);
  }
  uv_close((uv_handle_t *)g->timer, gate_on_closed);
  admission_deinit(&g->admission);
  *g = (struct gate){0};
}

static uint64_t now_of(const struct gate *g) {
  return uv_now(g->timer->loop);
}

static uint64_t gate_earlier(uint64_t a, uint64_t b) {
  return a == 0 || (b > 0 && b < a) ? b : a;
}

/* Sets the timer to the earliest time that somebody waits for, or to now when a place may be
 * free. */
static void gate_arm(struct gate *g) {
  uint64_t first = 0;
  for (const struct gate_entry *e = g->first; e; e = e->next)
    if (e->asked == NULL)
      first = gate_earlier(first, gate_earlier(e->until_ms, e->retry_ms));
  if (g->first == NULL || (first == 0 && !g->due))
    uv_timer_stop(g->timer);
  else
    uv_timer_start(g->timer, gate_on_timer, g->due || first <= now_of(g) ? 0 : first - now_of(g),
                   0);
}

static void gate_entry_free(struct gate_entry *e) {
  free(e->provider);
  free(e);
}

/* --- places that all workers share --- */

/* Gives back the place that a call got here and cannot use. */
static void gate_undo(struct gate *g, const struct gate_entry *e) {
  admission_done(&g->admission, str_from(e->provider), e->owner, CLASS_CANCELLED, 0, now_of(g));
}

static void gate_on_seat(void *ctx, enum seat_answer answer, struct seat *seat) {
  struct gate_asked *asked = ctx;
  struct gate *g = asked->gate;
  struct gate_entry *e = asked->entry;
  if (g != NULL)
    list_remove(&g->asked, &asked->in_gate);
  if (seat != NULL && e == NULL)
    seat_leave(seat, asked->loop);
  else if (seat != NULL)
    list_push_back(&g->seats, &seat->in_pool);
  free(asked);
  if (e == NULL)
    return;
  struct admission_why why = {.at_once = e->reason == NULL};
  e->asked = NULL;
  if (answer == SEAT_TAKEN || answer == SEAT_FREE) {
    CHAIN_REMOVE(g->first, e);
    g->due = true;
    gate_arm(g);
    g->told(e->owner, e->call, ADMISSION_ADMITTED, &why);
    gate_entry_free(e);
    return;
  }
  gate_undo(g, e);
  e->full = true;
  e->retry_ms = now_of(g) + LIMIT_SEAT_RETRY_MS;
  gate_arm(g);
  if (e->reason != NULL)
    return;
  why = (struct admission_why){.reason = "seats"};
  e->reason = why.reason;
  g->told(e->owner, e->call, ADMISSION_WAIT, &why);
}

/* Returns true if an earlier call waits for a place of the same pool: while none is free, calls go
 * one by one, in order. */
static bool gate_is_behind(const struct gate *g, const struct gate_entry *e, const char *pool) {
  for (const struct gate_entry *other = g->first; other != NULL && other != e; other = other->next)
    if (other->full && strcmp(admission_pool(&g->admission, str_from(other->provider)), pool) == 0)
      return true;
  return false;
}

static void gate_ask_store(struct gate *g, struct gate_entry *e, const char *pool) {
  e->asked = xcalloc(1, sizeof *e->asked);
  *e->asked = (struct gate_asked){.gate = g, .entry = e, .loop = g->timer->loop};
  (void)snprintf(e->asked->pool, sizeof e->asked->pool, "%s", pool);
  list_push_back(&g->asked, &e->asked->in_gate);
  seat_ask(g->store, g->timer->loop, pool, gate_on_seat, e->asked);
}

/* Gives up places at a pool until there is one for each open call, except calls older than its
 * limit. */
static void gate_trim(struct gate *g, const char *pool) {
  if (g->asked.count == 0 && g->seats.count == 0) /* the store shares none */
    return;
  size_t open = admission_pool_open(&g->admission, pool), held = 0;
  LIST_EACH(struct gate_asked, asked, in_gate, &g->asked)
    open -= asked->entry != NULL && strcmp(asked->pool, pool) == 0;
  LIST_EACH(struct seat, seat, in_pool, &g->seats) {
    if (strcmp(seat->provider, pool) != 0 || ++held <= open)
      continue;
    list_remove(&g->seats, &seat->in_pool);
    seat_leave(seat, g->timer->loop);
  }
}

/* Passes on a pause that the backend asked of this worker: it applies to all workers. */
static void gate_tell_pause(struct gate *g, struct str provider, uint64_t before_ms) {
  struct admission_look look;
  admission_look_at(&g->admission, provider, &look);
  if (look.cool_until_ms > before_ms && look.cool_until_ms > now_of(g) && g->store != NULL)
    seats_cool(g->store, g->timer->loop, admission_pool(&g->admission, provider),
               look.cool_until_ms - now_of(g));
}

void gate_seats(struct gate *g) {
  for (struct gate_entry *e = g->first; e; e = e->next)
    e->retry_ms = 0;
  g->due = true;
  gate_arm(g);
}

/* --- the queue --- */

/* Asks whether the call may go now. Returns WAIT with e->asked set while the store is being
 * asked. */
static enum admission_answer gate_try(struct gate *g, struct gate_entry *e,
                                      struct admission_why *why) {
  struct str provider = str_from(e->provider);
  const char *pool = admission_pool(&g->admission, provider);
  struct seats_look look;
  seats_look_at(g->store, pool, &look);
  admission_cool(&g->admission, provider, look.cool_ms, now_of(g));
  enum admission_answer answer =
      admission_ask(&g->admission, provider, e->has_fallback, now_of(g), why);
  if (answer != ADMISSION_ADMITTED || look.limit == 0) {
    e->full = false; /* nobody in its pool waits behind it because of that */
    return answer;
  }
  if (gate_is_behind(g, e, pool)) {
    gate_undo(g, e);
    e->full = true;
    *why = (struct admission_why){.reason = "seats"};
  } else {
    gate_ask_store(g, e, pool);
    *why = (struct admission_why){.reason = e->reason};
  }
  return ADMISSION_WAIT;
}

/* Asks again for everybody, in order. What `told` leads to may add to the queue's end only. */
static void gate_on_timer(uv_timer_t *timer) {
  struct gate *g = timer->data;
  struct gate_entry **at = &g->first;
  g->due = false;
  while (*at != NULL) {
    struct gate_entry *e = *at;
    struct admission_why why;
    if (e->asked != NULL || e->retry_ms > now_of(g)) {
      at = &e->next;
      continue;
    }
    e->retry_ms = 0;
    enum admission_answer answer = gate_try(g, e, &why);
    bool news = why.until_ms > 0 && why.reason != e->reason; /* it now waits for something else */
    e->until_ms = why.until_ms;
    e->reason = why.reason;
    if (answer == ADMISSION_WAIT && !news) {
      at = &e->next;
      continue;
    }
    if (answer == ADMISSION_WAIT) {
      g->told(e->owner, e->call, answer, &why);
      at = &g->first;
      continue;
    }
    *at = e->next;
    g->told(e->owner, e->call, answer, &why);
    gate_entry_free(e);
    at = &g->first; /* the receiver may have dropped entries: start again */
  }
  gate_arm(g);
}

/* Returns true if somebody waits for a place that becomes free here. */
static bool waits_for(const struct gate *g, struct str provider) {
  const struct gate_entry *e = g->first;
  while (e != NULL && (e->asked != NULL || e->full || !str_eq_c(provider, e->provider)))
    e = e->next;
  return e != NULL;
}

enum admission_answer gate_ask(struct gate *g, void *owner, long call, struct str provider,
                               bool has_fallback, struct admission_why *why) {
  struct gate_entry *e = xcalloc(1, sizeof *e);
  *e = (struct gate_entry){.owner = owner,
                           .call = call,
                           .provider = xstrndup(provider.p, provider.n),
                           .has_fallback = has_fallback};
  enum admission_answer answer;
  if (waits_for(g, provider)) { /* the queue gets a free place */
    answer = admission_ask(&g->admission, provider, has_fallback, now_of(g), why);
    if (answer == ADMISSION_ADMITTED) {
      gate_undo(g, e);
      *why = (struct admission_why){.reason = "concurrency"};
      answer = ADMISSION_WAIT;
      g->due = true;
    }
  } else {
    answer = gate_try(g, e, why);
  }
  if (answer != ADMISSION_WAIT) {
    gate_entry_free(e);
    return answer;
  }
  e->reason = why->reason;
  e->until_ms = why->until_ms;
  CHAIN_APPEND(g->first, e);
  gate_arm(g);
  return answer;
}

void gate_leave(struct gate *g, const void *owner, struct str provider, enum error_class class,
                int64_t retry_after_ms) {
  struct admission_look look;
  admission_look_at(&g->admission, provider, &look);
  admission_done(&g->admission, provider, owner, class, retry_after_ms, now_of(g));
  gate_tell_pause(g, provider, look.cool_until_ms);
  gate_trim(g, admission_pool(&g->admission, provider));
  g->due = true;
  gate_arm(g);
}

void gate_drop(struct gate *g, const void *owner, long call) {
  struct gate_entry **at = &g->first;
  while (*at != NULL) {
    struct gate_entry *e = *at;
    if (e->owner != owner || (call != 0 && e->call != call)) {
      at = &e->next;
      continue;
    }
    *at = e->next;
    if (e->asked != NULL) {
      e->asked->entry = NULL;
      gate_undo(g, e);
    }
    g->due = g->due || e->full; /* others were waiting behind it */
    gate_entry_free(e);
  }
  gate_arm(g);
}

size_t gate_waiting(const struct gate *g, struct str provider) {
  size_t n = 0;
  for (const struct gate_entry *e = g->first; e; e = e->next)
    n += str_eq_c(provider, e->provider);
  return n;
}
