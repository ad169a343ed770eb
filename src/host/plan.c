/* Describes what a session of a workflow would be. */
#include "host/plan.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/decide.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "host/daily_usage.h"
#include "host/prices.h"
#include "provider/probe.h"
#include "store/summary.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct planning {
  const struct preflight *p;
  json_t *movements;      /* one for each of the workflow */
  double *calls, *output; /* at worst, of one turn of each: calls, dollars of answers */
  json_t *budget;         /* as plan_budget makes it */
  json_t *unknown;        /* why the cost has no bound: names of models and movements */
};

/* --- the most that a walk can add up to --- */

/* Adds one turn: the best of what can follow each movement. Returns true if something grew. */
static bool plan_step(const struct workflow *wf, const double *weights, const double *before,
                      double *after) {
  bool grew = false;
  for (size_t i = 0; i < wf->movement_count; i++) {
    double most = 0;
    const struct movement *m = &wf->movements[i];
    for (size_t k = 0; k < movement_ways(m); k++) {
      int next = movement_leads_to(m, k);
      if (next >= 0 && before[next] > most)
        most = before[next];
    }
    after[i] = weights[i] + most;
    grew |= after[i] > before[i];
  }
  return grew;
}

/* Returns the largest sum of weights (one for each movement, none below 0) along a walk from the
 * initial movement that the rules and max_movements allow; -1: there is no limit. */
static double plan_worst(const struct workflow *wf, const double *weights) {
  size_t n = wf->movement_count;
  double *now = xcalloc(n + 1, sizeof *now), *then = xcalloc(n + 1, sizeof *then), most = 0, sum;
  bool endless = wf->max_movements == MOVEMENTS_INFINITE, grows = true;
  long turns = endless ? (long)n + 1 : wf->max_movements, turn = 0;
  for (; turn < turns && turn < LIMIT_PLAN_TURNS && grows; turn++) {
    grows = plan_step(wf, weights, now, then);
    memcpy(now, then, n * sizeof *now);
  }
  for (size_t i = 0; i < n; i++)
    most = weights[i] > most ? weights[i] : most;
  sum = now[wf->initial];
  if (grows && turn < turns) /* the turns not walked: each costs at most the worst one */
    sum += (double)(turns - turn) * most;
  if (endless && grows && turn == turns)
    sum = -1;
  free(now);
  free(then);
  return sum;
}

/* Returns the value below which `percent` of the sorted numbers lie, by nearest rank. count > 0. */
static double plan_rank(const double *sorted, size_t count, unsigned percent) {
  assert(count > 0);
  assert(percent <= 100);
  size_t rank = (count * percent + 99) / 100;
  return sorted[rank > 0 ? rank - 1 : 0];
}

/* --- what a turn can come to --- */

/* Returns how many calls of one turn fall to this part at worst. */
static double part_calls(const struct movement *m, enum reachable_role role, size_t votes) {
  double reasks = 1.0 + m->judge.max_reasks, sum = 0;
  double corrections = m->structured ? m->structured->max_reasks : 0, checks = 1 + corrections;
  const struct invariants *invariants = m->structured ? m->structured->invariants : NULL;
  switch (role) {
  case REACHABLE_WORK:
    return 1;
  case REACHABLE_CORRECT:
    return corrections;
  case REACHABLE_JUDGE:
  case REACHABLE_VOTE:
    break;
  case REACHABLE_ROLE_COUNT:
    BUG("no role");
  }
  for (size_t i = 0; i < m->judge.stage_count; i++)
    if (m->judge.stages[i] == STAGE_PHASE3_TAG)
      sum += 1;
    else if (m->judge.stages[i] != STAGE_PHASE1_TAG)
      sum += reasks;
  for (size_t i = 0; i < invariants_count(invariants); i++)
    if (invariants_get(invariants, i)->kind == INVARIANT_AI)
      sum += checks;
  return sum * (double)votes;
}

/* Says once what is not known, and of whom: "no price is known for the model of codex, gemini". */
static void plan_unknown(struct planning *plan, const char *what, struct str name) {
  buf_auto_t text = buf_of("%s " STR_FMT, what, STR_ARG(name));
  for (size_t i = 0; i < json_array_size(plan->unknown); i++) {
    struct str known = json_view(json_array_get(plan->unknown, i)), names = known;
    if (!str_drop(&names, what))
      continue;
    while (names.n > 0)
      if (str_eq(str_trim(str_cut(&names, ',')), name))
        return;
    buf_clear(&text);
    buf_printf(&text, STR_FMT ", " STR_FMT, STR_ARG(known), STR_ARG(name));
    json_array_set_new(plan->unknown, i, json_text(buf_view(&text)));
    return;
  }
  json_array_append_new(plan->unknown, json_text(buf_view(&text)));
}

/* Returns the most that one answer can cost, in dollars, from the dearest who can be asked. */
static double answer_cost(struct planning *plan, const struct reachable_part *part) {
  const json_t *tokens = json_object_get(part->options, "max_tokens");
  const json_t *flag = json_object_get(json_object_get(plan->p->config, "options"), "max_tokens");
  double most = 0;
  if (part->role == REACHABLE_WORK && json_is_integer(flag))
    tokens = flag;
  for (size_t i = 0; i < part->count; i++) {
    const struct reachable_who *who = &part->who[i];
    const struct provider *p = registry_find(plan->p->registry, who->provider);
    double output = prices_of_output(plan->p->registry, plan->p->config, who->provider, who->model);
    if (str_eq_c(who->provider, "script"))
      continue;
    if (output < 0)
      plan_unknown(plan, "no price is known for the model of", who->provider);
    if (!json_is_integer(tokens) && p != NULL && (p->capability.options & OPTION_MAX_TOKENS) == 0)
      plan_unknown(plan, "nothing bounds an answer of", who->provider);
    else if (!json_is_integer(tokens))
      plan_unknown(plan, "no max_tokens in the options of",
                   plan->p->workflow->movements[part->movement].name);
    double cost = (output > 0 ? output : 0) * json_number_value(tokens) / 1e6;
    most = cost > most ? cost : most;
  }
  return most;
}

/* --- budgets --- */

static void add_limits(json_t *list, const json_t *budget, const struct movement *m) {
  if (budget == NULL)
    return;
  json_array_append_new(list, json_pack("{ss so* sO}", "of", m ? "movement" : "session", "movement",
                                        m ? json_text(m->name) : NULL, "limits", budget));
}

/* Returns {"limits": [{"of", "movement"?, "limits"}], "unseen": []}; JSON null if there is no
 * budget. New. */
static json_t *plan_budget(const struct workflow *wf) {
  json_t *list = json_array();
  const json_t *movements = json_at(wf->doc, "movements");
  add_limits(list, json_at(wf->doc, "budget"), NULL);
  JSON_EACH(movements, i, movement) {
    add_limits(list, json_at(movement, "budget"), &wf->movements[i]);
    JSON_EACH(json_at(movement, "parallel"), k, child)
      add_limits(list, json_at(child, "budget"), &wf->movements[wf->movements[i].first_child + k]);
  }
  if (json_array_size(list) > 0)
    return json_pack("{so s[]}", "limits", list, "unseen");
  json_decref(list);
  return json_null();
}

static bool bounds(const struct budget *budget, enum budget_unit unit) {
  return budget != NULL && (budget->limit[unit] >= 0 || budget->call[unit] >= 0);
}

/* Returns true if a budget that applies to this movement limits this unit. */
static bool is_bounded(const struct workflow *wf, size_t movement, enum budget_unit unit) {
  const struct movement *m = &wf->movements[movement];
  return bounds(wf->budget, unit) || bounds(m->budget, unit) ||
         (m->group != NO_GROUP && bounds(wf->movements[m->group].budget, unit));
}

static void add_unseen(json_t *budget, const char *what, struct str provider, const char *why) {
  json_t *unseen = json_object_get(budget, "unseen");
  buf_auto_t text = buf_of("%s of " STR_FMT " (%s)", what, STR_ARG(provider), why);
  json_auto_t *word = json_text(buf_view(&text));
  bool known = false;
  for (size_t i = 0; i < json_array_size(unseen); i++)
    known = known || json_same(json_array_get(unseen, i), word);
  if (!known)
    json_array_append(unseen, word);
}

/* Adds to "unseen" the use by this part's providers that no budget sees: tokens that a backend does
 * not report, or a cost that it does not report and no price gives. budget: the object above. */
static void plan_budget_see(json_t *budget, const struct workflow *wf, const json_t *config,
                            const struct reachable_part *part,
                            const struct provider_registry *registry) {
  bool tokens = is_bounded(wf, part->movement, BUDGET_TOKENS);
  bool cost = is_bounded(wf, part->movement, BUDGET_COST);
  for (size_t i = 0; i < part->count && (tokens || cost); i++) {
    const struct reachable_who *who = &part->who[i];
    const struct provider *p = registry_find(registry, who->provider);
    if (p == NULL || str_eq_c(who->provider, "script") || str_eq_c(who->provider, "command"))
      continue;
    if (tokens && p->capability.tells_no_tokens)
      add_unseen(budget, "tokens", who->provider, "it reports none");
    if (cost && !p->capability.tells_cost &&
        prices_of_output(registry, config, who->provider, who->model) < 0)
      add_unseen(budget, "cost", who->provider, "no price for its model, and it may report none");
  }
}

/* --- who --- */

/* Puts what would confine the movement's program. Puts nothing if there is none, or no word on
 * it. */
static void put_sandbox(json_t *out, const struct planning *plan, const struct movement *m,
                        const struct capability *c, bool command) {
  json_t *sandbox = sandbox_of_call(plan->p->config, m, c, command);
  if (sandbox == NULL && command)
    sandbox = json_pack("{ss}", "level", sandbox_level_name(SANDBOX_OFF));
  json_object_set_new(out, "sandbox", sandbox);
}

static json_t *who_json(const struct planning *plan, const struct reachable_part *part,
                        const struct reachable_who *who) {
  const struct provider *provider = registry_find(plan->p->registry, who->provider);
  json_t *out = json_pack("{so so}", "provider", json_text(who->provider), "model",
                          who->model.n ? json_text(who->model) : json_null());
  if (provider == NULL)
    return out;
  struct backend_probe probe;
  probe_look(provider, &probe);
  json_object_set_new(out, "kind", json_string(probe.kind));
  json_object_set_new(out, "transport",
                      probe.transport[0] ? json_string(probe.transport) : json_null());
  json_object_set_new(out, "schema", json_string(probe.schema));
  put_sandbox(out, plan, &plan->p->workflow->movements[part->movement], &provider->capability,
              false);
  if (part->role == REACHABLE_WORK) {
    /* what a backend does other than the permission says; null if it keeps to the word */
    const struct movement *m = &plan->p->workflow->movements[part->movement];
    buf_auto_t gap = {0};
    bool differs = capability_gap(&provider->capability, m->permission, m->run != NULL, &gap);
    json_object_set_new(out, "permission_gap", differs ? json_text(buf_view(&gap)) : json_null());
  }
  return out;
}

static void plan_part(void *ctx, const struct reachable_part *part) {
  static const char *const roles[REACHABLE_ROLE_COUNT] = {"work", "judge", "vote", "correct"};
  struct planning *plan = ctx;
  const struct movement *m = &plan->p->workflow->movements[part->movement];
  json_t *object = json_array_get(plan->movements, part->movement), *who = json_array();
  double calls = part_calls(m, part->role, part->role == REACHABLE_VOTE ? part->count : 1);
  for (size_t i = 0; i < part->count; i++)
    if (part->who[i].provider.n > 0)
      json_array_append_new(who, who_json(plan, part, &part->who[i]));
  if (part->role == REACHABLE_VOTE)
    json_object_set_new(object, "agree", json_integer((json_int_t)part->needed));
  json_object_set_new(object, roles[part->role], who);
  plan_budget_see(plan->budget, plan->p->workflow, plan->p->config, part, plan->p->registry);
  plan->calls[part->movement] += calls;
  plan->output[part->movement] += calls * answer_cost(plan, part);
}

/* --- a movement --- */

static json_t *rules_json(const struct workflow *wf, const struct movement *m) {
  json_t *rules = json_array();
  for (size_t i = 0; i < movement_ways(m) && m->group == NO_GROUP; i++) {
    int next = movement_leads_to(m, i);
    const char *end = next == NEXT_COMPLETE ? "COMPLETE" : "ABORT";
    json_auto_t *to = next >= 0 ? json_text(wf->movements[next].name) : json_string(end);
    size_t k = 0;
    while (k < json_array_size(rules) && !json_same(json_array_get(rules, k), to))
      k++;
    if (k == json_array_size(rules))
      json_array_append(rules, to);
  }
  return rules;
}

static json_t *limits_json(const struct movement *m) {
  json_t *limits = json_object();
  const struct structured_config *so = m->structured;
  if (m->judge.timeout_ms > 0)
    json_object_set_new(limits, "judge_timeout_ms", json_integer(m->judge.timeout_ms));
  json_object_set_new(limits, "judge_max_reasks", json_integer(m->judge.max_reasks));
  if (so != NULL)
    json_object_set_new(limits, "max_reasks", json_integer(so->max_reasks));
  if (so != NULL && so->token_budget > 0)
    json_object_set_new(limits, "token_budget", json_integer(so->token_budget));
  if (so != NULL && so->time_budget_ms > 0)
    json_object_set_new(limits, "time_budget_ms", json_integer(so->time_budget_ms));
  return limits;
}

static json_t *movement_json(const struct planning *plan, const struct movement *m,
                             bool reachable) {
  const struct workflow *wf = plan->p->workflow;
  json_t *out = json_object(), *argv = NULL, *stages = json_array();
  json_object_set_new(out, "name", json_text(m->name));
  json_object_set_new(out, "reachable", json_boolean(reachable));
  for (size_t i = 0; m->argv != NULL && m->argv[i] != NULL; i++) {
    argv = argv ? argv : json_array();
    json_array_append_new(argv, json_text(str_from(m->argv[i])));
  }
  json_object_set_new(out, "command", argv ? argv : json_null());
  if (m->ask != NULL)
    json_object_set_new(out, "asks", json_text(m->ask->question));
  if (m->approve != NULL)
    json_object_set_new(out, "approve", json_true());
  if (m->argv != NULL)
    put_sandbox(out, plan, m, NULL, true);
  if (m->argv == NULL)
    json_object_set_new(out, "permission", json_string(permission_name(m->permission)));
  json_object_set(out, "run", (json_t *)m->run);
  json_object_set(out, "secrets", (json_t *)m->secrets);
  for (size_t i = 0; i < m->judge.stage_count; i++)
    json_array_append_new(stages, json_string(judge_stage_name(m->judge.stages[i])));
  json_object_set_new(out, "stages", stages);
  json_object_set_new(out, "limits", limits_json(m));
  json_object_set_new(out, "next", rules_json(wf, m));
  return out;
}

/* --- the last sessions --- */

enum { HISTORY_COST, HISTORY_TOKENS, HISTORY_TIME, HISTORY_COUNT };

struct history {
  double values[HISTORY_COUNT][LIMIT_PLAN_RUNS];
  size_t counts[HISTORY_COUNT], runs;
};

static void history_add(struct history *h, int what, double value) {
  h->values[what][h->counts[what]++] = value;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Passes on the newest sessions of the workflow that came to COMPLETE or ABORT. */
static void history_each(const struct store *store, struct str workflow,
                         void (*each)(void *ctx, const struct summary *b), void *ctx) {
  struct store_id *ids = NULL;
  size_t count = 0, runs = 0;
  struct err err;
  if (store == NULL || !store_exists(store) || !store_list(store, &ids, &count, &err))
    return;
  for (size_t i = 0; i < count && i < LIMIT_PLAN_LOGS && runs < LIMIT_PLAN_RUNS; i++) {
    AUTO(summary_deinit) struct summary b = {0};
    struct store_ref ref;
    store_ref(store, ids[i].id, &ref);
    if (!summary_read(&b, &ref, &err) || b.workflow == NULL || !str_eq_c(workflow, b.workflow) ||
        (strcmp(b.status, "complete") != 0 && strcmp(b.status, "abort") != 0))
      continue;
    runs++;
    each(ctx, &b);
  }
  free(ids);
}

static void history_take(void *ctx, const struct summary *b) {
  struct history *h = ctx;
  const json_t *cost = json_object_get(b->spent, "cost_usd");
  int64_t from, to;
  h->runs++;
  if (cost != NULL)
    history_add(h, HISTORY_COST, json_number_value(cost));
  history_add(h, HISTORY_TOKENS,
              json_number_value(json_object_get(b->spent, "input")) +
                  json_number_value(json_object_get(b->spent, "output")));
  if (record_time_parse(b->started, &from) && record_time_parse(b->updated, &to) && to >= from)
    history_add(h, HISTORY_TIME, (double)(to - from));
}

/* Tells what they used; null if there are none. */
static json_t *history_json(const struct store *store, struct str workflow) {
  static const char *const names[] = {"cost_usd", "tokens", "duration_ms"};
  struct history h = {0};
  history_each(store, workflow, history_take, &h);
  json_t *out = h.runs > 0 ? json_pack("{si}", "runs", (int)h.runs) : json_null();
  for (size_t i = 0; h.runs > 0 && i < HISTORY_COUNT; i++) {
    const double *sorted = h.values[i];
    size_t n = h.counts[i];
    json_t *ranks = json_null();
    qsort(h.values[i], n, sizeof *h.values[i], by_value);
    if (n > 0)
      ranks =
          json_pack("{sf sf}", "p50", plan_rank(sorted, n, 50), "p90", plan_rank(sorted, n, 90));
    json_object_set_new(out, names[i], ranks);
  }
  return out;
}

/* --- what calls of children have cost --- */

struct call_costs {
  const struct workflow *workflow;
  const json_t *config;
  const struct provider_registry *registry;
  double *values; /* LIMIT_PLAN_RUNS of each movement */
  size_t *counts;
};

/* Takes what a call of each child cost in one session: by what was told, else at today's price of
 * the backend that would do the work. */
static void call_costs_take(void *ctx, const struct summary *b) {
  struct call_costs *c = ctx;
  const struct workflow *wf = c->workflow;
  for (size_t i = wf->top_count; i < wf->movement_count; i++) {
    struct str name = wf->movements[i].name, provider, model;
    json_t *used = json_object_getn(json_object_get(b->spent, "movements"), name.p, name.n);
    json_int_t calls = json_int_at(used, "calls");
    core_backend(wf, c->config, i, &provider, &model);
    json_auto_t *own = spend_priced(used, json_at(c->config, "prices"), model);
    json_auto_t *priced = prices_of_usage(c->registry, c->config, provider, model, own);
    const json_t *usd = json_at(priced, "cost_usd");
    if (calls > 0 && usd != NULL)
      c->values[i * LIMIT_PLAN_RUNS + c->counts[i]++] = json_number_value(usd) / (double)calls;
  }
}

void plan_put_costs(const struct workflow *wf, json_t *config,
                    const struct provider_registry *registry, const struct store *store) {
  const json_t *own = json_at(config, "ask_above");
  bool asks = json_at(wf->doc, "ask_above") != NULL || json_is_object(own);
  if (!asks || json_is_false(own) || wf->movement_count == wf->top_count)
    return;
  struct call_costs c = {wf, config, registry,
                         xcalloc(wf->movement_count * LIMIT_PLAN_RUNS, sizeof(double)),
                         xcalloc(wf->movement_count, sizeof(size_t))};
  json_auto_t *costs = json_object();
  history_each(store, wf->name, call_costs_take, &c);
  for (size_t i = 0; i < wf->movement_count; i++) {
    double *sorted = c.values + i * LIMIT_PLAN_RUNS;
    size_t n = c.counts[i];
    qsort(sorted, n, sizeof *sorted, by_value);
    if (n > 0)
      json_object_setn_new(costs, wf->movements[i].name.p, wf->movements[i].name.n,
                           json_pack("{sf sf sI}", "p50", plan_rank(sorted, n, 50), "p90",
                                     plan_rank(sorted, n, 90), "sessions", (json_int_t)n));
  }
  if (json_object_size(costs) > 0)
    json_object_set(config, "call_costs", costs);
  free(c.values);
  free(c.counts);
}

/* --- the whole --- */

static json_t *cost_json(const struct planning *plan, bool calls_none) {
  double worst = plan_worst(plan->p->workflow, plan->output);
  bool known = json_array_size(plan->unknown) == 0 && worst >= 0 && !calls_none;
  return json_pack("{so sO}", "answers_usd", known ? json_real(worst) : json_null(), "unknown",
                   plan->unknown);
}

/* Returns how often a child runs in a turn of its group; that is the most if a value decides. */
static double times_of(const struct movement *group) {
  if (group->for_each == NULL)
    return 1;
  if (json_is_string(group->for_each))
    return LIMIT_ITEM_COUNT;
  return (double)json_array_size(group->for_each);
}

/* Adds the turns of children: a turn of a group is a turn of each of its children, too. */
static void add_children(struct planning *plan) {
  const struct workflow *wf = plan->p->workflow;
  for (size_t i = wf->top_count; i < wf->movement_count; i++) {
    if (wf->movements[i].group == NO_GROUP) /* the judge of a loop */
      continue;
    const struct movement *group = &wf->movements[wf->movements[i].group];
    plan->calls[wf->movements[i].group] += plan->calls[i] * times_of(group);
    plan->output[wf->movements[i].group] += plan->output[i] * times_of(group);
  }
}

/* Returns each limit of the user's day, and how much of it is used. */
static json_t *day_json(const struct provider_registry *registry, const struct store *store) {
  AUTO(daily_usage_deinit) struct daily_usage book;
  daily_usage_init(&book);
  return daily_usage_json(&book, day_set_of(registry), store);
}

json_t *plan_json(const struct preflight *p, const struct store *store) {
  const struct workflow *wf = p->workflow;
  assert(wf != NULL);
  struct planning plan = {.p = p,
                          .movements = json_array(),
                          .calls = xcalloc(wf->movement_count + 1, sizeof(double)),
                          .output = xcalloc(wf->movement_count + 1, sizeof(double)),
                          .budget = plan_budget(wf),
                          .unknown = json_array()};
  bool *reachable = workflow_reachable(wf->doc);
  for (size_t i = 0; i < wf->movement_count; i++)
    json_array_append_new(plan.movements, movement_json(&plan, &wf->movements[i], reachable[i]));
  reachable_each(wf, p->config, reachable, plan_part, &plan);
  add_children(&plan);
  for (size_t i = 0; i < wf->movement_count; i++)
    json_object_set_new(json_array_get(plan.movements, i), "calls",
                        json_integer((json_int_t)plan.calls[i]));
  json_t *out = json_object(), *env = json_object_get(p->config, "env");
  json_object_set_new(out, "workflow", json_text(wf->name));
  bool endless = wf->max_movements == MOVEMENTS_INFINITE;
  json_object_set_new(out, "max_movements",
                      endless ? json_null() : json_integer(wf->max_movements));
  json_object_set_new(out, "movements", plan.movements);
  json_object_set_new(out, "commands", sandbox_of_call(p->config, NULL, NULL, true));
  json_object_set_new(out, "env", env ? json_incref(env) : json_array());
  double calls = plan_worst(wf, plan.calls);
  json_object_set_new(out, "calls", calls < 0 ? json_null() : json_integer((json_int_t)calls));
  json_object_set_new(out, "budget", plan.budget);
  json_object_set_new(out, "day", day_json(p->registry, store));
  json_object_set_new(out, "cost", cost_json(&plan, calls == 0));
  json_object_set_new(out, "history", history_json(store, wf->name));
  json_decref(plan.unknown);
  free(reachable);
  free(plan.calls);
  free(plan.output);
  return out;
}
