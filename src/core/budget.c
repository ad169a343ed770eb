/* Compares what a session has used with what it may use. */
#include "core/budget.h"

#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>

enum { SOFT_PERCENT = 80, TOLD_MOVEMENTS = 4, SCOPE_COUNT = 3 };
static const int64_t budget_most = (int64_t)1 << 40;

/* --- limits --- */

struct budget_scope {
  const struct budget *budget; /* NULL: there is none */
  enum budget_of of;
  size_t index; /* a movement's */
};

struct budget_scopes {
  struct budget_scope list[SCOPE_COUNT];
  size_t count;
};

/* Finds all budgets that apply to a movement: the session's, its own, its group's. */
static struct budget_scopes budget_scopes(const struct core *core, size_t movement) {
  const struct workflow *wf = core->workflow;
  const struct movement *m = &wf->movements[movement];
  struct budget_scopes all = {.count = 0};
  if (wf->budget != NULL)
    all.list[all.count++] = (struct budget_scope){wf->budget, BUDGET_OF_SESSION, movement};
  if (m->budget != NULL)
    all.list[all.count++] = (struct budget_scope){m->budget, BUDGET_OF_MOVEMENT, movement};
  if (m->group != NO_GROUP && wf->movements[m->group].budget != NULL)
    all.list[all.count++] =
        (struct budget_scope){wf->movements[m->group].budget, BUDGET_OF_MOVEMENT, (size_t)m->group};
  return all;
}

static int64_t budget_limit(const struct core *core, const struct budget_scope *scope,
                            enum budget_unit unit) {
  size_t place = scope->of == BUDGET_OF_SESSION ? 0 : scope->index + 1;
  int64_t limit = scope->budget->limit[unit];
  return limit < 0 || core->added == NULL ? limit : limit + core->added[place][unit];
}

/* --- sums --- */

int64_t budget_use(const struct spend *s, enum budget_unit unit) {
  switch (unit) {
  case BUDGET_TOKENS:
    return s->input + s->output;
  case BUDGET_COST:
    return s->cost_nano;
  case BUDGET_TIME:
    return s->duration_ms;
  case BUDGET_CALLS:
    return s->begun;
  case BUDGET_MOVEMENTS:
  case BUDGET_UNITS:
    break;
  }
  BUG("no unit of a call: %d", (int)unit);
}

static int64_t movement_amount(const struct core *core, size_t index, enum budget_unit unit) {
  const struct movement *m = &core->workflow->movements[index];
  if (unit == BUDGET_MOVEMENTS)
    return core->movement_counts[index];
  struct spend own = spends_of(&core->spends.movements, m->name);
  int64_t sum = budget_use(&own, unit);
  for (size_t i = 0; i < m->child_count; i++)
    sum += movement_amount(core, m->first_child + i, unit);
  return sum;
}

static int64_t scope_amount(const struct core *core, const struct budget_scope *scope,
                            enum budget_unit unit) {
  if (scope->of == BUDGET_OF_MOVEMENT)
    return movement_amount(core, scope->index, unit);
  return unit == BUDGET_MOVEMENTS ? core->iteration_count : budget_use(&core->spends.all, unit);
}

static int64_t call_amount(const struct call *call, enum budget_unit unit) {
  const int64_t amounts[] = {call->spent.tokens, call->spent.cost_nano, call->spent.ms};
  assert(unit <= BUDGET_TIME);
  return amounts[unit];
}

static int64_t told_amount(const struct call *call, enum budget_unit unit) {
  return unit == BUDGET_TOKENS ? call->told.tokens : call->told.cost_nano;
}

/* Returns what running calls have reported so far. */
static int64_t told_in(const struct core *core, const struct budget_scope *scope,
                       enum budget_unit unit) {
  int64_t sum = 0;
  if (unit > BUDGET_COST)
    return 0;
  for (const struct turn *t = core->turns; t; t = t->next) {
    const struct movement *m = core_movement(core, t);
    if (scope->of == BUDGET_OF_MOVEMENT && t->movement != scope->index &&
        m->group != (long)scope->index)
      continue;
    for (const struct call *c = t->calls; c; c = c->next)
      sum += c->state == CALL_RUNNING ? told_amount(c, unit) : 0;
  }
  return sum;
}

/* --- questions --- */

static struct budget_hit hit_of(const struct core *core, const struct budget_scope *scope,
                                enum budget_unit unit, int64_t used, int64_t limit) {
  return (struct budget_hit){.of = scope->of,
                             .movement = core->workflow->movements[scope->index].name,
                             .index = scope->index,
                             .unit = unit,
                             .used = used,
                             .limit = limit,
                             .stops = scope->budget->stops};
}

static bool is_hit(const struct core *core, const struct budget_scope *scope, enum budget_unit unit,
                   struct budget_hit *hit) {
  int64_t limit = budget_limit(core, scope, unit);
  int64_t used = limit < 0 ? 0 : scope_amount(core, scope, unit) + told_in(core, scope, unit);
  if (limit < 0 || used < limit)
    return false;
  *hit = hit_of(core, scope, unit, used, limit);
  return true;
}

/* Checks what one call has used in all its attempts. */
static bool is_hit_by_call(const struct core *core, const struct budget_scope *scope,
                           enum budget_unit unit, int64_t used, struct budget_hit *hit) {
  int64_t limit = scope->budget->call[unit];
  if (limit < 0 || used < limit)
    return false;
  *hit = hit_of(core, scope, unit, used, limit);
  hit->of = BUDGET_OF_CALL;
  return true;
}

bool budget_refuses_call(const struct core *core, const struct turn *turn, const struct call *call,
                         struct budget_hit *hit) {
  const struct budget_scopes all = budget_scopes(core, turn->movement);
  for (size_t i = 0; i < all.count; i++) {
    for (int u = 0; u <= (call == NULL ? BUDGET_CALLS : BUDGET_TIME); u++)
      if (is_hit(core, &all.list[i], (enum budget_unit)u, hit))
        return true;
    for (int u = 0; u <= BUDGET_TIME && call != NULL; u++)
      if (is_hit_by_call(core, &all.list[i], (enum budget_unit)u,
                         call_amount(call, (enum budget_unit)u), hit))
        return true;
  }
  return false;
}

bool budget_refuses_turn(const struct core *core, size_t movement, struct budget_hit *hit) {
  const struct budget_scopes all = budget_scopes(core, movement);
  for (size_t i = 0; i < all.count; i++)
    if (is_hit(core, &all.list[i], BUDGET_MOVEMENTS, hit))
      return true;
  return false;
}

bool budget_must_end_call(const struct core *core, const struct turn *turn, const struct call *call,
                          struct budget_hit *hit) {
  const struct budget_scopes all = budget_scopes(core, turn->movement);
  for (size_t i = 0; i < all.count; i++)
    for (int k = BUDGET_TOKENS; k <= BUDGET_COST && all.list[i].budget->stops; k++) {
      enum budget_unit u = (enum budget_unit)k;
      int64_t limit = budget_limit(core, &all.list[i], u);
      int64_t used = scope_amount(core, &all.list[i], u) + told_in(core, &all.list[i], u);
      int64_t own = call_amount(call, u) + told_amount(call, u);
      *hit = hit_of(core, &all.list[i], u, used, limit);
      if (limit >= 0 && used > limit)
        return true;
      if (all.list[i].budget->call[u] < own && /* the call's own limit is not passed */
          is_hit_by_call(core, &all.list[i], u, own, hit))
        return true;
    }
  return false;
}

uint64_t budget_time_left(const struct core *core, const struct turn *turn, uint64_t most) {
  const struct budget_scopes all = budget_scopes(core, turn->movement);
  for (size_t i = 0; i < all.count; i++) {
    int64_t limit = budget_limit(core, &all.list[i], BUDGET_TIME);
    int64_t left = limit < 0 ? -1 : limit - scope_amount(core, &all.list[i], BUDGET_TIME);
    int64_t call = all.list[i].budget->call[BUDGET_TIME];
    if (!all.list[i].budget->stops)
      continue;
    if (limit >= 0 && left < (int64_t)most)
      most = left < 1 ? 1 : (uint64_t)left;
    if (call >= 0 && call < (int64_t)most)
      most = call < 1 ? 1 : (uint64_t)call;
  }
  return most;
}

/* --- telling --- */

void budget_put_amount(struct buf *out, enum budget_unit unit, int64_t amount) {
  if (unit == BUDGET_COST)
    buf_printf(out, "$%.4f", (double)amount / BUDGET_NANO);
  else if (unit == BUDGET_TIME)
    buf_printf(out, "%.1fs", (double)amount / 1000);
  else
    buf_printf(out, "%lld", (long long)amount);
}

/* Names the movements that used the most, in falling order. */
static void tell_movements(const struct core *core, enum budget_unit unit, struct buf *out) {
  const struct workflow *wf = core->workflow;
  int64_t before = INT64_MAX;
  size_t last = wf->movement_count;
  for (int told = 0; told < TOLD_MOVEMENTS; told++) {
    int64_t most = 0;
    size_t best = wf->movement_count;
    for (size_t i = 0; i < wf->movement_count; i++) {
      struct spend s = spends_of(&core->spends.movements, wf->movements[i].name);
      int64_t amount = budget_use(&s, unit);
      bool later = amount < before || (amount == before && i > last);
      if (later && amount > most) {
        most = amount;
        best = i;
      }
    }
    if (best == wf->movement_count)
      return;
    buf_printf(out, "%s" STR_FMT " ", told == 0 ? "; " : ", ", STR_ARG(wf->movements[best].name));
    budget_put_amount(out, unit, most);
    before = most;
    last = best;
  }
}

/* Writes, for example, "1200 of 1000 tokens (200 over)". */
static void budget_tell_amounts(const struct budget_hit *hit, struct buf *out) {
  bool named = hit->unit != BUDGET_COST && hit->unit != BUDGET_TIME;
  budget_put_amount(out, hit->unit, hit->used);
  buf_puts(out, " of ");
  budget_put_amount(out, hit->unit, hit->limit);
  buf_printf(out, "%s%s", named ? " " : "", named ? budget_unit_name(hit->unit) : "");
  if (hit->used > hit->limit) {
    buf_puts(out, " (");
    budget_put_amount(out, hit->unit, hit->used - hit->limit);
    buf_puts(out, " over)");
  }
}

/* Says which limit of the user's configuration it is, and the key that raises it. */
static void tell_day(const struct budget_hit *hit, struct buf *out) {
  buf_puts(out, "today's budget");
  if (hit->of == BUDGET_OF_STORE)
    buf_puts(out, " of all sessions of the store");
  else if (hit->provider.n > 0)
    buf_printf(out, " of %s" STR_FMT, hit->of == BUDGET_OF_FOLDER ? "the folder " : "",
               STR_ARG(hit->provider));
  buf_puts(out, " is used up: ");
  budget_tell_amounts(hit, out);
  buf_puts(out, "; it starts again at midnight: resume it then, or raise budget.");
  if (hit->of == BUDGET_OF_DAY)
    buf_printf(out, "%s" STR_FMT, hit->provider.n > 0 ? "providers." : "day",
               STR_ARG(hit->provider));
  else
    buf_printf(out, "%s" STR_FMT ".day", hit->of == BUDGET_OF_STORE ? "store" : "folders.",
               STR_ARG(hit->provider));
  buf_printf(out, ".%s in config.yaml", budget_unit_name(hit->unit));
}

void budget_tell(const struct core *core, const struct budget_hit *hit, struct buf *out) {
  if (hit->of >= BUDGET_OF_DAY) {
    tell_day(hit, out);
    return;
  }
  if (hit->of == BUDGET_OF_SESSION)
    buf_puts(out, "the session's budget");
  else
    buf_printf(out, "the budget of %s\"" STR_FMT "\"",
               hit->of == BUDGET_OF_CALL ? "a call of " : "", STR_ARG(hit->movement));
  buf_puts(out, " is used up: ");
  budget_tell_amounts(hit, out);
  if (hit->of != BUDGET_OF_SESSION || hit->unit == BUDGET_MOVEMENTS)
    return;
  tell_movements(core, hit->unit, out);
  static const struct {
    enum spend_kind kind;
    const char *words;
  } kinds[] = {{SPEND_JUDGING, "judging"}, {SPEND_CORRECTIONS, "corrections"}};
  for (size_t i = 0; i < ARRAY_LEN(kinds) && hit->unit != BUDGET_CALLS; i++) {
    int64_t amount = budget_use(&core->spends.kinds[kinds[i].kind], hit->unit);
    if (amount == 0)
      continue;
    buf_printf(out, "; %s ", kinds[i].words);
    budget_put_amount(out, hit->unit, amount);
    buf_puts(out, " of it");
  }
}

static json_t *amount_json(enum budget_unit unit, int64_t amount) {
  return unit == BUDGET_COST ? json_real((double)amount / BUDGET_NANO) : json_integer(amount);
}

static json_t *scope_json(enum budget_of of, struct str movement, enum budget_unit unit) {
  static const char *const words[] = {"session", "movement", "call", "day", "store", "folder"};
  json_t *out = json_object();
  json_put(out, "of", json_string(words[of]));
  if (of == BUDGET_OF_MOVEMENT || of == BUDGET_OF_CALL)
    json_put(out, "movement", json_text(movement));
  json_put(out, "unit", json_string(budget_unit_name(unit)));
  return out;
}

json_t *budget_json(const struct budget_hit *hit) {
  json_t *out = scope_json(hit->of, hit->movement, hit->unit);
  json_put(out, "used", amount_json(hit->unit, hit->used));
  json_put(out, "limit", amount_json(hit->unit, hit->limit));
  json_put_text(out, hit->of == BUDGET_OF_FOLDER ? "folder" : "provider", hit->provider);
  return out;
}

/* --- notes --- */

static void add_note(json_t **notes, json_t *note) {
  if (*notes == NULL)
    *notes = json_array();
  json_array_append_new(*notes, note);
}

static void note_soft(const struct core *core, const struct budget_scope *scope,
                      enum budget_unit unit, int64_t more, json_t **notes) {
  int64_t limit = budget_limit(core, scope, unit);
  if (limit <= 0 || more <= 0)
    return;
  int64_t before = scope_amount(core, scope, unit), after = before + more;
  double edge = (double)limit * SOFT_PERCENT / 100;
  if ((double)before >= edge || (double)after < edge)
    return;
  json_t *note = scope_json(scope->of, core->workflow->movements[scope->index].name, unit);
  json_put(note, "used", amount_json(unit, after));
  json_put(note, "limit", amount_json(unit, limit));
  json_put(note, "level", json_string("soft"));
  add_note(notes, note);
}

/* Notes, once per provider, that use without a report or a known price does not count. */
static void note_unknown(const struct core *core, const struct budget_scopes *all,
                         const struct call *call, const json_t *usage, const struct spend *one,
                         json_t **notes) {
  struct spend before = spends_of(&core->spends.providers, str_from(call->provider));
  bool limits[BUDGET_UNITS] = {false};
  bool no_tokens = usage == NULL || one->uncounted > 0;
  bool no_cost = no_tokens || one->unpriced > 0;
  bool known = before.uncounted + before.silent == 0;
  for (size_t i = 0; i < all->count; i++)
    for (int u = 0; u < BUDGET_UNITS; u++)
      limits[u] |= all->list[i].budget->limit[u] >= 0 || all->list[i].budget->call[u] >= 0;
  if (str_eq_c(str_from(call->provider), "command"))
    return;
  if (limits[BUDGET_TOKENS] && no_tokens && known)
    add_note(notes, json_pack("{ss ss ss}", "provider", call->provider, "unit", "tokens", "level",
                              "unknown"));
  if (limits[BUDGET_COST] && no_cost && known && before.unpriced == 0)
    add_note(notes, json_pack("{ss ss ss}", "provider", call->provider, "unit", "cost", "level",
                              "unknown"));
}

json_t *budget_notes(const struct core *core, const struct turn *turn, const struct call *call,
                     const json_t *usage, int64_t duration_ms, bool answered) {
  const struct budget_scopes all = budget_scopes(core, turn->movement);
  json_t *notes = NULL;
  if (all.count == 0)
    return NULL;
  struct spend one = spend_of(usage, duration_ms);
  for (size_t i = 0; i < all.count; i++)
    for (int u = 0; u <= BUDGET_TIME; u++)
      note_soft(core, &all.list[i], (enum budget_unit)u, budget_use(&one, (enum budget_unit)u),
                &notes);
  if (answered)
    note_unknown(core, &all, call, usage, &one, &notes);
  return notes;
}

json_t *budget_count_notes(const struct core *core, size_t movement, enum budget_unit unit) {
  const struct budget_scopes all = budget_scopes(core, movement);
  json_t *notes = NULL;
  for (size_t i = 0; i < all.count; i++)
    note_soft(core, &all.list[i], unit, 1, &notes);
  return notes;
}

json_t *budget_day_notes(const struct budget_hit *hit) {
  json_t *note = budget_json(hit);
  json_put(note, "level", json_string("soft"));
  return json_pack("[o]", note);
}

static int64_t told_amount_of(const json_t *value, enum budget_unit unit) {
  double n = json_number_value(value);
  n = unit == BUDGET_COST ? n * BUDGET_NANO : n;
  return n >= 0 && n < (double)budget_most ? (int64_t)n : 0;
}

void budget_note_tell(const json_t *note, struct buf *out) {
  struct str name = json_view(json_at(note, "unit")), of = json_view(json_at(note, "movement"));
  enum budget_unit unit = budget_unit_of(name);
  if (unit == BUDGET_UNITS)
    return;
  struct str scope = json_view(json_at(note, "of"));
  bool day = str_among(scope, "day store folder");
  buf_puts(out, day ? "today's budget" : "budget");
  if (str_eq_c(scope, "store"))
    of = STR("the store");
  else if (day)
    of = json_view(json_object_get(note, str_eq_c(scope, "day") ? "provider" : "folder"));
  else if (json_at(note, "provider") != NULL) {
    buf_puts(out, ": the ");
    buf_puts(out, unit == BUDGET_COST ? "cost of " : "tokens of ");
    buf_safe(out, json_view(json_at(note, "provider")), false);
    buf_puts(out, " are not known, its calls count for nothing");
    return;
  }
  if (of.n > 0) {
    buf_puts(out, " of ");
    buf_safe(out, of, false);
  }
  buf_puts(out, ": ");
  budget_put_amount(out, unit, told_amount_of(json_at(note, "used"), unit));
  buf_puts(out, " of ");
  budget_put_amount(out, unit, told_amount_of(json_at(note, "limit"), unit));
  if (unit != BUDGET_COST && unit != BUDGET_TIME)
    buf_printf(out, " %s", budget_unit_name(unit));
  buf_puts(out, " are used");
}

/* --- what a person adds --- */

/* Reads a key ("tokens" or "MOVEMENT.tokens") into its unit and its place in core.added. */
static bool added_place(const struct workflow *wf, struct str key, enum budget_unit *unit,
                        size_t *place) {
  struct str name = key, movement = {key.p, 0};
  for (size_t i = 0; i < key.n; i++)
    if (key.p[i] == '.') {
      movement.n = i;
      name = (struct str){key.p + i + 1, key.n - i - 1};
    }
  long index = movement.n > 0 ? workflow_find(wf, movement) : -1;
  *unit = budget_unit_of(name);
  *place = (size_t)(index + 1);
  return *unit != BUDGET_UNITS && (index >= 0 || name.n == key.n);
}

bool budget_added_check(const struct workflow *wf, const json_t *added, struct err *err) {
  JSON_MEMBERS(added, key, value) {
    enum budget_unit unit;
    size_t place;
    if (!added_place(wf, str_from(key), &unit, &place))
      return err_set(err, ERR_USAGE,
                     "--add-budget knows no \"%.80s\": write tokens, cost, time, calls or "
                     "movements, or MOVEMENT.tokens and so on",
                     key);
    int64_t amount = budget_amount(value, unit);
    if (amount < 1 || amount > budget_most)
      return err_set(err, ERR_USAGE, "--add-budget %.80s must be %s", key,
                     unit == BUDGET_TIME ? "a duration, such as 30m" : "a number above 0");
    const struct budget *budget = place == 0 ? wf->budget : wf->movements[place - 1].budget;
    if (budget == NULL || budget->limit[unit] < 0)
      return err_set(err, ERR_USAGE, "the workflow has no budget of %.80s to add to", key);
  }
  return true;
}

void budget_added_take(struct core *core, const json_t *added) {
  if (json_object_size(added) == 0)
    return;
  if (core->added == NULL)
    core->added = xcalloc(core->workflow->movement_count + 1, sizeof *core->added);
  JSON_MEMBERS(added, key, value) {
    enum budget_unit unit;
    size_t place;
    if (!added_place(core->workflow, str_from(key), &unit, &place))
      continue;
    int64_t amount = budget_amount(value, unit);
    if (amount > 0 && amount <= budget_most && core->added[place][unit] <= budget_most)
      core->added[place][unit] += amount;
  }
}

bool budget_still_used_up(const struct core *core, const json_t *added, struct err *err) {
  const json_t *stop = core->stop_budget;
  struct str of = json_view(json_at(stop, "of")), name = json_view(json_at(stop, "unit"));
  long index = workflow_find(core->workflow, json_view(json_at(stop, "movement")));
  buf_auto_t key = {0};
  if (!str_eq_c(of, "session") && (!str_eq_c(of, "movement") || index < 0))
    return false; /* a call's budget begins anew; a day ends by itself */
  enum budget_unit unit = budget_unit_of(name);
  struct budget_scope scope = {.of = index < 0 ? BUDGET_OF_SESSION : BUDGET_OF_MOVEMENT,
                               .index = index < 0 ? 0 : (size_t)index};
  scope.budget = index < 0 ? core->workflow->budget : core->workflow->movements[index].budget;
  if (unit == BUDGET_UNITS || scope.budget == NULL)
    return false;
  if (index >= 0)
    buf_printf(&key, STR_FMT ".", STR_ARG(core->workflow->movements[index].name));
  buf_puts(&key, budget_unit_name(unit));
  int64_t more = budget_amount(json_object_get(added, buf_c(&key)), unit);
  int64_t limit = budget_limit(core, &scope, unit) + (more > 0 ? more : 0);
  int64_t used = scope_amount(core, &scope, unit);
  if (used >= limit) {
    buf_auto_t least = {0};
    budget_put_amount(&least, unit, used - budget_limit(core, &scope, unit));
    err_set(err, ERR_USAGE, "the budget is used up: give --add-budget %s=N with more than %s",
            buf_c(&key), buf_c(&least));
  }
  return used >= limit;
}
