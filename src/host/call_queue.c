/* Queues calls in front of their providers. */
#include "host/call_queue.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/loop.h"
#include "store/slots.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- admission --- */

struct admission_slot {
  struct str name;
  char *pool;
  unsigned limit; /* calls at once; 0: unlimited */
  unsigned open;
  unsigned failures;      /* in a row */
  bool several;           /* they come from more than one session */
  const void *last_owner; /* the owner of the last one; only compared */
  uint64_t cool_until_ms;
  struct admission_away away; /* the gate of its pool, in the pool's first slot */
  uint64_t opened_ms;         /* when that gate was opened last; 0: it never was */
};

static json_int_t concurrency(const struct provider *provider) {
  return json_integer_value(json_object_get(provider->settings, "concurrency"));
}

static bool pool_is_name(const json_t *value) {
  const char *text = json_string_value(value);
  if (value == NULL)
    return true;
  for (const char *p = text; p != NULL && *p; p++)
    if ((unsigned char)*p <= ' ' || *p == 127)
      return false;
  return text != NULL && text[0] != '\0' && strlen(text) <= LIMIT_POOL_BYTES;
}

bool admission_check(const struct provider *provider, struct err *err) {
  const json_t *value = json_object_get(provider->settings, "concurrency");
  if (!pool_is_name(json_object_get(provider->settings, "pool")))
    return err_set(err, ERR_INVALID,
                   "providers.%s.pool must be a name without spaces, of at most %u bytes",
                   provider->capability.name, LIMIT_POOL_BYTES);
  return value == NULL ||
         (json_is_integer(value) && concurrency(provider) >= 1 &&
          concurrency(provider) <= LIMIT_CONCURRENCY) ||
         err_set(err, ERR_INVALID,
                 "providers.%s.concurrency must be a whole number from 1 to %u: calls at once",
                 provider->capability.name, LIMIT_CONCURRENCY);
}

static struct admission_slot *admission_slot_of(const struct admission *a, struct str provider) {
  for (size_t i = 0; i < a->count; i++)
    if (str_eq(a->slots[i].name, provider))
      return &a->slots[i];
  return NULL;
}

void admission_init(struct admission *a, const struct provider_registry *registry) {
  *a = (struct admission){.slots = xcalloc(LIMIT_PROVIDER_COUNT, sizeof *a->slots)};
  admission_use(a, registry);
}

void admission_use(struct admission *a, const struct provider_registry *registry) {
  const struct provider *p;
  for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++) {
    struct admission_slot *slot = admission_slot_of(a, str_from(p->capability.name));
    if (slot == NULL && a->count == LIMIT_PROVIDER_COUNT)
      continue; /* names came and went: it gets no limit of its own */
    if (slot == NULL) {
      slot = &a->slots[a->count++];
      slot->name = str_from(xstrdup(p->capability.name));
    }
    slot->limit = (unsigned)concurrency(p);
    const char *pool = json_string_value(json_object_get(p->settings, "pool"));
    free(slot->pool);
    slot->pool = xstrdup(pool ? pool : p->capability.name);
  }
}

void admission_deinit(struct admission *a) {
  for (size_t i = 0; i < a->count; i++) {
    free((char *)(uintptr_t)a->slots[i].name.p);
    free(a->slots[i].pool);
  }
  free(a->slots);
  *a = (struct admission){0};
}

/* Returns the slot that has the gate of the provider's pool. */
static struct admission_slot *gate_of(const struct admission *a, const struct admission_slot *s) {
  struct admission_slot *first = a->slots;
  while (strcmp(first->pool, s->pool) != 0)
    first++;
  return first;
}

const struct admission_away *admission_away_of(const struct admission *a, struct str provider) {
  const struct admission_slot *s = admission_slot_of(a, provider);
  return s != NULL ? &gate_of(a, s)->away : NULL;
}

void admission_look_at(const struct admission *a, struct str provider, struct admission_look *out) {
  const struct admission_slot *s = admission_slot_of(a, provider);
  *out = (struct admission_look){0};
  if (s != NULL)
    *out = (struct admission_look){.limit = s->limit,
                                   .open = s->open,
                                   .failures = s->failures,
                                   .cool_until_ms = s->cool_until_ms,
                                   .away = gate_of(a, s)->away};
}

enum admission_answer admission_ask(struct admission *a, const struct admission_call *call,
                                    uint64_t now_ms, struct admission_why *why) {
  struct admission_slot *s = admission_slot_of(a, call->provider);
  *why = (struct admission_why){0};
  if (s == NULL) /* its start will report that there is none */
    return ADMISSION_ADMITTED;
  struct admission_away *away = &gate_of(a, s)->away;
  bool shut = call->patient && away->class != CLASS_NONE;
  if (call->has_fallback && away->class != CLASS_AUTH) /* it has a few attempts before it leaves */
    shut = shut && s->failures >= LIMIT_CALL_ATTEMPT_COUNT;
  uint64_t until_ms = shut && away->next_ms > s->cool_until_ms ? away->next_ms : s->cool_until_ms;
  if (until_ms > now_ms)
    *why = (struct admission_why){.reason = "cooldown", .until_ms = until_ms};
  if (shut && (away->probing || until_ms > now_ms)) {
    why->reason = error_class_name(away->class);
    why->away = *away;
  }
  if (why->reason != NULL)
    return call->has_fallback ? ADMISSION_FALLBACK : ADMISSION_WAIT;
  if (s->limit > 0 && s->open >= s->limit) {
    why->reason = "concurrency";
    return ADMISSION_WAIT; /* a place will be free soon: no reason to change the backend */
  }
  if (shut)
    away->probing = why->probe = true;
  s->open++;
  return ADMISSION_ADMITTED;
}

static void cool_down(struct admission_slot *s, int64_t ms, uint64_t now_ms) {
  uint64_t most = (uint64_t)LIMIT_RESET_WAIT_MS;
  uint64_t until = now_ms + ((uint64_t)ms < most ? (uint64_t)ms : most);
  if (until > s->cool_until_ms)
    s->cool_until_ms = until;
}

static void admission_cool(struct admission *a, struct str provider, uint64_t ms, uint64_t now_ms) {
  struct admission_slot *s = admission_slot_of(a, provider);
  if (s != NULL && ms > 0)
    cool_down(s, (int64_t)ms, now_ms);
}

/* Returns the account that the provider's places belong to: the provider's name, unless the
 * settings name a pool. */
static const char *admission_pool(const struct admission *a, struct str provider) {
  const struct admission_slot *s = admission_slot_of(a, provider);
  return s != NULL ? s->pool : "";
}

/* Returns the number of open calls at the providers of that pool. */
static size_t admission_pool_open(const struct admission *a, const char *pool) {
  size_t open = 0;
  for (size_t i = 0; i < a->count; i++)
    if (strcmp(a->slots[i].pool, pool) == 0)
      open += a->slots[i].open;
  return open;
}

static void admission_open(struct admission_slot *gate, uint64_t now_ms) {
  gate->away = (struct admission_away){0};
  gate->opened_ms = now_ms;
}

/* Returns the pause until the next probe. What a session that waits says of it is sooner, by its
 * jitter (core/step.c). */
static uint64_t probe_pause(const struct admission_away *away, int64_t retry_after_ms) {
  int64_t most = LIMIT_OUTAGE_MAX_MS, times = away->tries < 16 ? away->tries - 1 : 15;
  int64_t pause = (int64_t)LIMIT_OUTAGE_PAUSE_MS << times;
  if (pause > most || away->class == CLASS_AUTH)
    pause = most;
  return (uint64_t)(pause > retry_after_ms || retry_after_ms > most ? pause : retry_after_ms);
}

/* Returns true if the end of a call suggests that its backend is down, and has for some while. */
static bool seems_down(struct admission_slot *s, const void *owner, enum error_class class) {
  bool down = class == CLASS_NETWORK || class == CLASS_OVERLOADED || class == CLASS_TIMEOUT ||
              class == CLASS_CRASHED || class == CLASS_PROTOCOL;
  if (!down)
    return false;
  s->several = s->failures > 0 && (s->several || s->last_owner != owner);
  s->last_owner = owner;
  s->failures++;
  return s->several && s->failures >= LIMIT_CIRCUIT_FAILURES;
}

void admission_done(struct admission *a, struct str provider, const void *owner,
                    const struct admission_end *end, uint64_t now_ms) {
  struct admission_slot *s = admission_slot_of(a, provider);
  enum error_class class = end->class;
  if (s == NULL)
    return;
  assert(s->open > 0);
  s->open--;
  if (end->retry_after_ms > 0 && (class == CLASS_RATE_LIMIT || class == CLASS_OVERLOADED))
    cool_down(s, end->retry_after_ms, now_ms);
  if (class == CLASS_QUOTA)
    cool_down(s, end->retry_after_ms > 0 ? end->retry_after_ms : LIMIT_QUOTA_COOLDOWN_MS, now_ms);
  if (class == CLASS_NONE)
    s->failures = 0;
  struct admission_slot *gate = gate_of(a, s);
  struct admission_away *away = &gate->away;
  bool down = seems_down(s, owner, class), gone = error_class_is_transient(class);
  bool refused = class == CLASS_AUTH && a->holds_auth;
  if (end->probe)
    away->probing = false;
  if (class == CLASS_CANCELLED) { /* says nothing: the next one tries */
    if (end->probe)
      away->next_ms = now_ms;
  } else if (away->class == CLASS_NONE) {
    if (down || refused || (gone && end->retry_after_ms <= 0))
      *away = (struct admission_away){.class = class, .since_ms = end->real_ms, .tries = 1};
    if (away->class != CLASS_NONE)
      away->next_ms = now_ms + probe_pause(away, 0);
    else if (class == CLASS_NONE)
      gate->opened_ms = now_ms;
  } else if (refused && away->class != CLASS_AUTH) {
    away->class = class;
    away->next_ms = now_ms + probe_pause(away, 0);
  } else if (!gone && !refused && class != CLASS_TIMEOUT && class != CLASS_CRASHED &&
             class != CLASS_PROTOCOL) {
    if (end->probe || away->class != CLASS_AUTH) /* else it began before the login was refused */
      admission_open(gate, now_ms);
  } else if (end->probe) {
    away->tries++;
    away->next_ms = now_ms + probe_pause(away, end->retry_after_ms);
  }
}

void admission_doubt(struct admission *a, struct str provider, const struct admission_away *away,
                     uint64_t now_ms) {
  struct admission_slot *s = admission_slot_of(a, provider);
  if (s == NULL)
    return;
  struct admission_slot *gate = gate_of(a, s);
  uint64_t next_ms = now_ms + away->next_ms;
  bool fresh = gate->opened_ms > 0 && now_ms - gate->opened_ms <= LIMIT_OUTAGE_LATE_MS;
  if (gate->away.class == CLASS_NONE && !fresh) {
    gate->away = *away;
    gate->away.next_ms = next_ms;
  } else if (gate->away.class != CLASS_NONE && away->next_ms > 0 &&
             away->tries >= gate->away.tries && next_ms < gate->away.next_ms) {
    /* whoever met the last failure says when the next probe goes; the others waited for that */
    gate->away.next_ms = next_ms;
  }
}

struct call_queue_entry {
  struct call_queue_entry *next;
  void *owner;
  long call;
  char *provider;
  const char *session; /* see struct admission_call */
  bool has_fallback, patient, awaited;
  bool probe;           /* it has a place as one, and only lacks the store's */
  bool gated;           /* it waits for a shut gate */
  const char *reason;   /* the last answer's; static text. NULL: nobody was told to wait */
  uint64_t until_ms;    /* the last answer's; 0: until a place is free */
  uint64_t since_ms;    /* when it came */
  uint64_t gives_up_ms; /* then it waits for no gate any more; 0: never */
  struct call_queue_asked *asked; /* the store is being asked for a place; it has one here */
  bool full;                      /* it waits for one of the store's places */
  uint64_t retry_ms;              /* when to ask again; 0: when it is its turn */
};

/* A request to the store for a place may outlive the entry and the gate. */
struct call_queue_asked {
  struct list_node in_gate;
  struct call_queue *gate;         /* NULL: the gate is gone */
  struct call_queue_entry *entry;  /* NULL: nobody wants it any more */
  char pool[LIMIT_POOL_BYTES + 1]; /* that of the entry's provider */
  uv_loop_t *loop;
};

static void call_queue_on_timer(uv_timer_t *timer);

void call_queue_init(struct call_queue *g, uv_loop_t *loop,
                     const struct provider_registry *registry, const struct store *store,
                     call_queue_told_fn told) {
  *g = (struct call_queue){.timer = xcalloc(1, sizeof *g->timer), .store = store, .told = told};
  admission_init(&g->admission, registry);
  uv_timer_init(loop, g->timer);
  g->timer->data = g;
}

void call_queue_deinit(struct call_queue *g) {
  if (g->timer == NULL)
    return;
  assert(g->first == NULL);
  assert(g->slots.count == 0);
  LIST_EACH(struct call_queue_asked, asked, in_gate, &g->asked) {
    asked->gate = NULL;
    list_remove(&g->asked, &asked->in_gate);
  }
  uv_close((uv_handle_t *)g->timer, loop_free);
  admission_deinit(&g->admission);
  *g = (struct call_queue){0};
}

static uint64_t now_of(const struct call_queue *g) {
  return uv_now(g->timer->loop);
}

static uint64_t call_queue_earlier(uint64_t a, uint64_t b) {
  return a == 0 || (b > 0 && b < a) ? b : a;
}

/* Sets the timer to the earliest time that somebody waits for, or to now when a place may be
 * free. */
static void call_queue_arm(struct call_queue *g) {
  uint64_t first = 0;
  for (const struct call_queue_entry *e = g->first; e; e = e->next) {
    if (e->asked == NULL)
      first = call_queue_earlier(first, call_queue_earlier(e->until_ms, e->retry_ms));
    const struct admission_away *gate = admission_away_of(&g->admission, str_from(e->provider));
    if (e->gated && gate != NULL && !gate->probing)
      first = call_queue_earlier(first, e->gives_up_ms);
  }
  if (g->first == NULL || (first == 0 && !g->due))
    uv_timer_stop(g->timer);
  else
    uv_timer_start(g->timer, call_queue_on_timer,
                   g->due || first <= now_of(g) ? 0 : first - now_of(g), 0);
}

static void call_queue_entry_free(struct call_queue_entry *e) {
  free(e->provider);
  free(e);
}

/* --- places that all workers share --- */

/* Gives back the place that a call got here and cannot use. */
static void call_queue_undo(struct call_queue *g, struct call_queue_entry *e) {
  const struct admission_end end = {.class = CLASS_CANCELLED, .probe = e->probe};
  admission_done(&g->admission, str_from(e->provider), e->owner, &end, now_of(g));
  e->probe = false;
}

/* Adds what a session is told of a call that leaves the queue. */
static void call_queue_tell(const struct call_queue *g, const struct call_queue_entry *e,
                            enum admission_answer answer, struct admission_why *why) {
  why->awaited = e->awaited;
  why->probe = e->probe;
  why->waited_ms = (int64_t)(now_of(g) - e->since_ms);
  g->told(e->owner, e->call, answer, why);
}

static void call_queue_on_seat(void *ctx, enum provider_slot_answer answer,
                               struct provider_slot *slot) {
  struct call_queue_asked *asked = ctx;
  struct call_queue *g = asked->gate;
  struct call_queue_entry *e = asked->entry;
  if (g != NULL)
    list_remove(&g->asked, &asked->in_gate);
  if (slot != NULL && e == NULL)
    provider_slot_leave(slot, asked->loop);
  else if (slot != NULL)
    list_push_back(&g->slots, &slot->in_pool);
  free(asked);
  if (e == NULL)
    return;
  struct admission_why why = {.at_once = e->reason == NULL};
  e->asked = NULL;
  if (answer == PROVIDER_SLOT_TAKEN || answer == PROVIDER_SLOT_FREE) {
    CHAIN_REMOVE(g->first, e);
    g->due = true;
    call_queue_arm(g);
    call_queue_tell(g, e, ADMISSION_ADMITTED, &why);
    call_queue_entry_free(e);
    return;
  }
  call_queue_undo(g, e);
  e->full = true;
  e->retry_ms = now_of(g) + LIMIT_SEAT_RETRY_MS;
  call_queue_arm(g);
  if (e->reason != NULL)
    return;
  why = (struct admission_why){.reason = "seats"};
  e->reason = why.reason;
  call_queue_tell(g, e, ADMISSION_WAIT, &why);
}

/* Returns true if an earlier call waits for a place of the same pool: while none is free, calls go
 * one by one, in order. */
static bool call_queue_is_behind(const struct call_queue *g, const struct call_queue_entry *e,
                                 const char *pool) {
  for (const struct call_queue_entry *other = g->first; other != NULL && other != e;
       other = other->next)
    if (other->full && strcmp(admission_pool(&g->admission, str_from(other->provider)), pool) == 0)
      return true;
  return false;
}

/* Gives up places at a pool until there is one for each open call, except calls older than its
 * limit. */
static void call_queue_trim(struct call_queue *g, const char *pool) {
  if (g->asked.count == 0 && g->slots.count == 0) /* the store shares none */
    return;
  size_t open = admission_pool_open(&g->admission, pool), held = 0;
  LIST_EACH(struct call_queue_asked, asked, in_gate, &g->asked)
    open -= asked->entry != NULL && strcmp(asked->pool, pool) == 0;
  LIST_EACH(struct provider_slot, slot, in_pool, &g->slots) {
    if (strcmp(slot->provider, pool) != 0 || ++held <= open)
      continue;
    list_remove(&g->slots, &slot->in_pool);
    provider_slot_leave(slot, g->timer->loop);
  }
}

/* Passes on a pause that the backend asked of this worker: it applies to all workers. */
static void call_queue_tell_pause(struct call_queue *g, struct str provider, uint64_t before_ms) {
  struct admission_look look;
  admission_look_at(&g->admission, provider, &look);
  if (look.cool_until_ms > before_ms && look.cool_until_ms > now_of(g) && g->store != NULL)
    provider_slots_cool(g->store, g->timer->loop, admission_pool(&g->admission, provider),
                        look.cool_until_ms - now_of(g));
}

void call_queue_seats(struct call_queue *g) {
  for (struct call_queue_entry *e = g->first; e; e = e->next)
    e->retry_ms = 0;
  g->due = true;
  call_queue_arm(g);
}

/* --- the queue --- */

/* Asks whether the call may go now, as far as this host knows. */
static enum admission_answer call_queue_admit(struct call_queue *g, struct call_queue_entry *e,
                                              struct admission_why *why) {
  const struct admission_call call = {
      .provider = str_from(e->provider), .has_fallback = e->has_fallback, .patient = e->patient};
  enum admission_answer answer = admission_ask(&g->admission, &call, now_of(g), why);
  e->probe = why->probe;
  e->gated = why->away.class != CLASS_NONE;
  return answer;
}

/* Asks whether the call may go now. Returns WAIT with e->asked set while the store is being
 * asked. */
static enum admission_answer call_queue_try(struct call_queue *g, struct call_queue_entry *e,
                                            struct admission_why *why) {
  struct str provider = str_from(e->provider);
  const char *pool = admission_pool(&g->admission, provider);
  struct provider_slots_look look;
  provider_slots_look_at(g->store, pool, &look);
  admission_cool(&g->admission, provider, look.cool_ms, now_of(g));
  enum admission_answer answer = call_queue_admit(g, e, why);
  if (answer != ADMISSION_ADMITTED || look.limit == 0) {
    e->full = false; /* nobody in its pool waits behind it because of that */
    return answer;
  }
  if (call_queue_is_behind(g, e, pool)) {
    call_queue_undo(g, e);
    e->full = true;
    *why = (struct admission_why){.reason = "seats"};
  } else {
    e->asked = xcalloc(1, sizeof *e->asked);
    *e->asked = (struct call_queue_asked){.gate = g, .entry = e, .loop = g->timer->loop};
    print_into(e->asked->pool, sizeof e->asked->pool, "%s", pool);
    list_push_back(&g->asked, &e->asked->in_gate);
    provider_slot_ask(g->store, g->timer->loop, pool, call_queue_on_seat, e->asked);
    *why = (struct admission_why){.reason = e->reason};
  }
  return ADMISSION_WAIT;
}

/* Asks again for everybody, in order. `told` may lead to further calls in the queue, at any place.
 * Only a few go at a time, so that the first of thousands starts at once. */
static void call_queue_on_timer(uv_timer_t *timer) {
  struct call_queue *g = timer->data;
  struct call_queue_entry **at = &g->first;
  unsigned told = 0;
  g->due = false;
  while (*at != NULL && told < LIMIT_ADMIT_COUNT) {
    struct call_queue_entry *e = *at;
    struct admission_why why;
    if (e->asked != NULL || e->retry_ms > now_of(g)) {
      at = &e->next;
      continue;
    }
    e->retry_ms = 0;
    enum admission_answer answer = call_queue_try(g, e, &why);
    bool news = why.until_ms > 0 && why.reason != e->reason; /* it now waits for something else */
    e->until_ms = why.until_ms;
    e->reason = why.reason;
    if (answer == ADMISSION_WAIT && e->gated && e->gives_up_ms > 0 && e->gives_up_ms <= now_of(g) &&
        !why.away.probing &&
        why.until_ms > now_of(g) + LIMIT_OUTAGE_LATE_MS) { /* else the last try is its own */
      why.gave_up = why.away.class;
      answer = ADMISSION_ADMITTED;
    }
    if (answer == ADMISSION_WAIT && (!news || e->awaited)) {
      at = &e->next;
      continue;
    }
    told++;
    if (answer != ADMISSION_WAIT)
      *at = e->next;
    call_queue_tell(g, e, answer, &why);
    if (answer != ADMISSION_WAIT)
      call_queue_entry_free(e);
    at = &g->first; /* the receiver may have dropped entries: start again */
  }
  call_queue_arm(g);
  if (*at != NULL)
    uv_timer_start(timer, call_queue_on_timer, 1, 0); /* 0 would leave no time for the others */
}

/* Returns true if somebody waits for a place that becomes free here. */
static bool waits_for(const struct call_queue *g, struct str provider) {
  const struct call_queue_entry *e = g->first;
  while (e != NULL && (e->asked != NULL || e->full || !str_eq_c(provider, e->provider)))
    e = e->next;
  return e != NULL;
}

/* Puts a call at its place: at the end, or among those that wait for a gate by its session's id. */
static void call_queue_put(struct call_queue *g, struct call_queue_entry *e) {
  struct call_queue_entry **at = &g->first;
  const char *pool = admission_pool(&g->admission, str_from(e->provider));
  while (*at != NULL &&
         !(e->gated && (*at)->gated && e->session != NULL && (*at)->session != NULL &&
           strcmp((*at)->session, e->session) > 0 &&
           strcmp(admission_pool(&g->admission, str_from((*at)->provider)), pool) == 0))
    at = &(*at)->next;
  e->next = *at;
  *at = e;
  call_queue_arm(g);
}

static struct call_queue_entry *call_queue_entry_new(const struct call_queue *g,
                                                     const struct admission_call *call) {
  struct call_queue_entry *e = xcalloc(1, sizeof *e);
  *e = (struct call_queue_entry){.owner = call->owner,
                                 .call = call->call,
                                 .provider = xstrndup(call->provider.p, call->provider.n),
                                 .session = call->session,
                                 .has_fallback = call->has_fallback,
                                 .patient = call->patient,
                                 .since_ms = now_of(g)};
  return e;
}

enum admission_answer call_queue_ask(struct call_queue *g, const struct admission_call *call,
                                     struct admission_why *why) {
  struct call_queue_entry *e = call_queue_entry_new(g, call);
  const struct admission_away *away = admission_away_of(&g->admission, call->provider);
  bool passes = !call->patient && away != NULL && away->class != CLASS_NONE;
  enum admission_answer answer;
  if (!passes && waits_for(g, call->provider)) { /* the queue gets a free place */
    answer = call_queue_admit(g, e, why);
    if (answer == ADMISSION_ADMITTED) {
      e->gated = e->probe;
      call_queue_undo(g, e);
      *why = (struct admission_why){.reason = "concurrency"};
      if (e->gated && away != NULL)
        *why = (struct admission_why){.reason = error_class_name(away->class), .away = *away};
      answer = ADMISSION_WAIT;
      g->due = true;
    }
  } else {
    answer = call_queue_try(g, e, why);
  }
  if (answer != ADMISSION_WAIT) {
    call_queue_entry_free(e);
    return answer;
  }
  e->reason = why->reason;
  e->until_ms = why->until_ms;
  call_queue_put(g, e);
  return answer;
}

void call_queue_doubt(struct call_queue *g, struct str provider,
                      const struct admission_away *away) {
  admission_doubt(&g->admission, provider, away, now_of(g));
}

void call_queue_await(struct call_queue *g, const struct admission_call *call,
                      const struct admission_away *away) {
  struct call_queue_entry *e = call_queue_entry_new(g, call);
  const struct admission_away *gate = admission_away_of(&g->admission, call->provider);
  call_queue_doubt(g, call->provider, away);
  e->awaited = true;
  e->gated = gate != NULL && gate->class != CLASS_NONE;
  e->reason = error_class_name(away->class);
  if (gate != NULL && e->gated)
    e->until_ms = gate->next_ms;
  else
    e->retry_ms = now_of(g) + away->next_ms; /* others were just answered */
  call_queue_put(g, e);
}

void call_queue_gives_up(struct call_queue *g, const void *owner, long call, int64_t ms) {
  for (struct call_queue_entry *e = g->first; e; e = e->next)
    if (e->owner == owner && e->call == call)
      e->gives_up_ms = now_of(g) + (uint64_t)(ms > 0 ? ms : 0);
  call_queue_arm(g);
}

/* The gate has opened, or its next probe has another time. */
static void call_queue_stir(struct call_queue *g) {
  g->due = true;
  call_queue_arm(g);
}

void call_queue_leave(struct call_queue *g, const void *owner, struct str provider,
                      const struct admission_end *end) {
  struct admission_look before, after;
  admission_look_at(&g->admission, provider, &before);
  admission_done(&g->admission, provider, owner, end, now_of(g));
  admission_look_at(&g->admission, provider, &after);
  if (after.away.class == CLASS_AUTH && before.away.class != CLASS_AUTH)
    log_warn(STR_FMT " refuses the login: its calls wait. Run segue doctor " STR_FMT
                     ", log in, and resume one of its sessions; it is tried every 5 minutes",
             STR_ARG(provider), STR_ARG(provider));
  call_queue_tell_pause(g, provider, before.cool_until_ms);
  call_queue_trim(g, admission_pool(&g->admission, provider));
  call_queue_stir(g);
}

void call_queue_reached(struct call_queue *g, struct str provider) {
  struct admission_slot *s = admission_slot_of(&g->admission, provider);
  if (s == NULL || gate_of(&g->admission, s)->away.class == CLASS_NONE)
    return;
  admission_open(gate_of(&g->admission, s), now_of(g));
  call_queue_stir(g);
}

void call_queue_hurry(struct call_queue *g, struct str provider) {
  struct admission_slot *s = admission_slot_of(&g->admission, provider);
  if (s == NULL || gate_of(&g->admission, s)->away.class != CLASS_AUTH)
    return;
  gate_of(&g->admission, s)->away.next_ms = now_of(g);
  call_queue_stir(g);
}

void call_queue_drop(struct call_queue *g, const void *owner, long call) {
  struct call_queue_entry **at = &g->first;
  while (*at != NULL) {
    struct call_queue_entry *e = *at;
    if (e->owner != owner || (call != 0 && e->call != call)) {
      at = &e->next;
      continue;
    }
    *at = e->next;
    if (e->asked != NULL) {
      e->asked->entry = NULL;
      call_queue_undo(g, e);
    }
    g->due = g->due || e->full; /* others were waiting behind it */
    call_queue_entry_free(e);
  }
  call_queue_arm(g);
}

size_t call_queue_waiting(const struct call_queue *g, struct str provider) {
  size_t n = 0;
  for (const struct call_queue_entry *e = g->first; e; e = e->next)
    n += str_eq_c(provider, e->provider);
  return n;
}
