/* Asks and fills the books of a day for a session's calls. */
#include "host/session_budget.h"

#include "base/memory.h"
#include "format/json_object.h"
#include "host/daily_usage.h"
#include "store/caps.h"

#include <stdlib.h>
#include <string.h>

/* Returns the session's folder and store, by which limits of a day count for its calls. */
static struct day_call day_call_of(const struct session *s, struct str provider) {
  return (struct day_call){.provider = provider,
                           .store = s->host->store,
                           .folder = json_string_value(json_at(s->core.config, "cwd"))};
}

/* Returns the caps of a shared store that count for the session's calls of this provider, a new
 * list. */
static struct cap *caps_of(const struct session *s, struct str provider, size_t *count) {
  const struct day_limits *limits = day_set_of(s->registry);
  const struct day_call call = day_call_of(s, provider);
  *count = 0;
  if (limits == NULL || call.store == NULL || store_folder(call.store) != NULL ||
      str_eq_c(provider, "command"))
    return NULL;
  struct cap *caps = xcalloc(limits->count + 1, sizeof *caps);
  for (size_t i = 0; i < limits->count; i++)
    if (limits->of[i].of != BUDGET_OF_DAY && day_limit_counts(&limits->of[i], &call)) {
      struct cap *cap = &caps[(*count)++];
      cap->name = limits->of[i].name;
      memcpy(cap->limit, limits->of[i].budget.limit, sizeof cap->limit);
    }
  return caps;
}

bool session_budget_refuses(void *session, struct str provider, bool begun,
                            struct budget_hit *hit) {
  struct session *s = session;
  const struct day_call call = day_call_of(s, provider);
  if (s->cap_hit.limit > 0 && !str_eq_c(provider, "command")) {
    *hit = s->cap_hit;
    return true;
  }
  if (begun)
    return daily_usage_refuses(&s->host->day, day_set_of(s->registry), &call, hit);
  return daily_usage_take(&s->host->day, day_set_of(s->registry), &call, hit);
}

bool session_budget_notes(void *session, struct str provider, struct budget_hit *hit) {
  const struct session *s = session;
  const struct day_call call = day_call_of(s, provider);
  return daily_usage_near(&s->host->day, day_set_of(s->registry), &call, hit);
}

void session_budget_count(void *session, const struct call *call, const struct spend *spend) {
  const struct session *s = session;
  const struct day_call of = day_call_of(s, str_from(call->provider));
  const int64_t used[BUDGET_UNITS] = {[BUDGET_TOKENS] = spend->input + spend->output,
                                      [BUDGET_COST] = spend->cost_nano,
                                      [BUDGET_TIME] = spend->duration_ms};
  struct caps_call shared = {s->core.session, call->id, call->attempt, NULL, 0};
  struct cap *caps = caps_of(s, of.provider, &shared.count);
  shared.caps = caps;
  daily_usage_add(&s->host->day, day_set_of(s->registry), &of, used);
  if (shared.count > 0)
    caps_add(s->host->store, s->host->loop, &shared, used);
  free(caps);
}

/* --- before a call starts --- */

struct budget_question {
  struct open_call *open; /* which stays until it is answered */
  session_budget_fn then;
};

static void ask_caps(struct budget_question *owned_q);

static void budget_refuse(struct budget_question *owned_q, const struct budget_hit *hit) {
  buf_auto_t why = {0};
  budget_tell(&owned_q->open->session->core, hit, &why);
  owned_q->then(owned_q->open, buf_c(&why));
  free(owned_q);
}

static void on_caps(void *ctx, enum caps_answer answer, size_t at, enum budget_unit unit,
                    int64_t used) {
  struct budget_question *q = ctx;
  struct session *s = q->open->session;
  const struct day_limits *limits = day_set_of(s->registry);
  size_t count;
  if (answer == CAPS_UNKNOWN && !q->open->cancelled && s->life == LIFE_RUNNING) {
    ask_caps(q); /* it has waited for the store */
    return;
  }
  if (answer != CAPS_OVER) {
    q->then(q->open, NULL);
    free(q);
    return;
  }
  struct cap *caps = caps_of(s, q->open->request.provider, &count);
  for (size_t i = 0; at < count && i < limits->count; i++) /* its name lives as long as they do */
    if (limits->of[i].name == caps[at].name)
      s->cap_hit = (struct budget_hit){.of = limits->of[i].of,
                                       .provider = str_from(caps[at].name),
                                       .unit = unit,
                                       .used = used,
                                       .limit = caps[at].limit[unit]};
  free(caps);
  budget_refuse(q, &s->cap_hit);
}

static void ask_caps(struct budget_question *owned_q) {
  struct open_call *open = owned_q->open;
  struct session *s = open->session;
  struct turn *turn;
  const struct call *call = core_call(&s->core, open->call, &turn);
  struct caps_call of = {s->core.session, open->call, call ? call->attempt : 1, NULL, 0};
  struct cap *caps = caps_of(s, open->request.provider, &of.count);
  of.caps = caps;
  if (of.count > 0) {
    caps_take(s->host->store, s->host->loop, &of, on_caps, owned_q);
  } else {
    owned_q->then(open, NULL);
    free(owned_q);
  }
  free(caps);
}

void session_budget_ask(struct open_call *open, bool waited, session_budget_fn then) {
  struct session *s = open->session;
  const struct day_call call = day_call_of(s, open->request.provider);
  struct budget_question *q = xcalloc(1, sizeof *q);
  struct budget_hit hit;
  *q = (struct budget_question){open, then};
  if (waited && daily_usage_refuses(&s->host->day, day_set_of(s->registry), &call, &hit))
    budget_refuse(q, &hit);
  else
    ask_caps(q);
}
