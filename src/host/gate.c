/* Queues calls before their providers. */
#include "host/gate.h"

#include "base/list.h"
#include "base/log.h"

#include <assert.h>
#include <stdlib.h>

struct gate_entry {
  struct gate_entry *next;
  void *owner;
  long call;
  char *provider;
  bool has_fallback;
  const char *reason; /* of the last answer; static text */
  uint64_t until_ms;  /* of the last answer; 0: when a place comes free */
};

static void gate_on_timer(uv_timer_t *timer);

void gate_init(struct gate *g, uv_loop_t *loop, const struct provider_registry *registry,
               gate_told_fn told) {
  *g = (struct gate){.timer = xcalloc(1, sizeof *g->timer), .told = told};
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
  uv_close((uv_handle_t *)g->timer, gate_on_closed);
  admission_deinit(&g->admission);
  *g = (struct gate){0};
}

static uint64_t now_of(const struct gate *g) {
  return uv_now(g->timer->loop);
}

/* At the earliest time that somebody waits for; at once when a place may have come free. */
static void gate_arm(struct gate *g) {
  uint64_t first = 0;
  for (const struct gate_entry *e = g->first; e; e = e->next)
    if (e->until_ms > 0 && (first == 0 || e->until_ms < first))
      first = e->until_ms;
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

/* Asks again for everybody, in order. What `told` leads to may add to the queue's end only. */
static void gate_on_timer(uv_timer_t *timer) {
  struct gate *g = timer->data;
  struct gate_entry **at = &g->first;
  g->due = false;
  while (*at != NULL) {
    struct gate_entry *e = *at;
    struct admission_why why;
    enum admission_answer answer =
        admission_ask(&g->admission, str_from(e->provider), e->has_fallback, now_of(g), &why);
    bool news = why.until_ms > 0 && why.reason != e->reason; /* it waits for something else now */
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
    at = &g->first; /* whoever was told may have dropped entries: from the start again */
  }
  gate_arm(g);
}

static bool waits_for(const struct gate *g, struct str provider) {
  const struct gate_entry *e = g->first;
  while (e != NULL && !str_eq_c(provider, e->provider))
    e = e->next;
  return e != NULL;
}

enum admission_answer gate_ask(struct gate *g, void *owner, long call, struct str provider,
                               bool has_fallback, struct admission_why *why) {
  enum admission_answer answer =
      admission_ask(&g->admission, provider, has_fallback, now_of(g), why);
  if (answer == ADMISSION_ADMITTED && waits_for(g, provider)) { /* a free place is for the queue */
    admission_done(&g->admission, provider, owner, CLASS_CANCELLED, 0, now_of(g));
    *why = (struct admission_why){.reason = "concurrency"};
    answer = ADMISSION_WAIT;
    g->due = true;
  }
  if (answer != ADMISSION_WAIT)
    return answer;
  struct gate_entry *e = xcalloc(1, sizeof *e);
  *e = (struct gate_entry){.owner = owner,
                           .call = call,
                           .provider = xstrndup(provider.p, provider.n),
                           .has_fallback = has_fallback,
                           .reason = why->reason,
                           .until_ms = why->until_ms};
  CHAIN_APPEND(g->first, e);
  gate_arm(g);
  return answer;
}

void gate_leave(struct gate *g, const void *owner, struct str provider, enum error_class class,
                int64_t retry_after_ms) {
  admission_done(&g->admission, provider, owner, class, retry_after_ms, now_of(g));
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
