/* Counts towards the limits of a session. */
#include "view/bounds.h"

#include "base/limits.h"
#include "core/budget.h"
#include "core/checks.h"
#include "core/guard.h"
#include "core/monitor.h"
#include "format/json_object.h"
#include "view/number_format.h"

#include <assert.h>
#include <string.h>

/* --- single calls --- */

enum { CALL_UNITS = BUDGET_TIME + 1 };

/* Limits of a call, in the units of core/budget.h. */
struct call_limits {
  int64_t budget[CALL_UNITS]; /* -1: none */
  long same_tool;             /* 0: no limit */
  int64_t stall_ms;           /* of its own work; 0: what its provider has, which no record tells */
};

struct call_bound {
  long turn, call;
  size_t movement;
  struct call_limits limits;
  bool runs, executes;
  int64_t used[CALL_UNITS]; /* by its finished attempts */
  int64_t told[CALL_UNITS]; /* by its running attempt so far */
  int64_t until_ms, timeout_ms;
  long tools; /* uses of one tool in a row */
  char sign[GUARD_SIGN];
};

static struct call_bound *bound_of(const struct call_bounds *b, const json_t *record) {
  long turn = (long)json_integer_value(json_at(record, "turn"));
  long call = (long)json_integer_value(json_at(record, "call"));
  for (size_t i = b->count; i-- > 0;)
    if (b->calls[i].turn == turn && b->calls[i].call == call)
      return &b->calls[i];
  return NULL;
}

static struct call_bound *bound_new(struct call_bounds *b) {
  if (b->arena == NULL || b->count == LIMIT_AUDIT_OPEN_COUNT)
    return NULL;
  if (b->count == b->room) {
    b->room = b->room > 0 ? 2 * b->room : 8;
    struct call_bound *more = arena_array(b->arena, b->room, sizeof *more);
    if (b->count > 0)
      memcpy(more, b->calls, b->count * sizeof *more);
    b->calls = more;
  }
  return &b->calls[b->count++];
}

static void drop_bound(struct call_bounds *b, struct call_bound *c) {
  size_t after = b->count - 1 - (size_t)(c - b->calls);
  memmove(c, c + 1, after * sizeof *c);
  b->count--;
}

static void set_until(struct call_bound *c, const json_t *record) {
  int64_t at_ms = view_time(record);
  c->until_ms = at_ms > 0 && c->timeout_ms > 0 ? at_ms + c->timeout_ms : 0;
}

/* Notes an attempt. An earlier one without an end in the log used what it had reported. */
static void call_bounds_start(struct call_bounds *b, const json_t *record, size_t movement,
                              const struct call_limits *limits) {
  assert(b != NULL && limits != NULL);
  const json_t *timeout = json_at(record, "timeout_ms");
  struct call_bound *c = bound_of(b, record);
  if (c == NULL) {
    c = bound_new(b);
    if (c == NULL)
      return;
    *c = (struct call_bound){.turn = (long)json_integer_value(json_at(record, "turn")),
                             .call = (long)json_integer_value(json_at(record, "call")),
                             .movement = movement};
  }
  for (int u = 0; u < CALL_UNITS; u++)
    c->used[u] += c->told[u];
  memset(c->told, 0, sizeof c->told);
  c->limits = *limits;
  c->executes = str_eq_c(json_view(json_at(record, "purpose")), "execute");
  c->runs = true;
  c->tools = 0;
  c->timeout_ms = json_integer_value(timeout);
  if (c->timeout_ms < 0 || c->timeout_ms > (int64_t)1 << 40)
    c->timeout_ms = 0;
  set_until(c, record);
}

static void bound_on_end(struct call_bounds *b, struct call_bound *c, const json_t *record) {
  struct spend one =
      spend_of(json_at(record, "usage"), json_integer_value(json_at(record, "duration_ms")));
  if (json_at(record, "error") == NULL) {
    drop_bound(b, c);
    return;
  }
  for (int u = 0; u < CALL_UNITS; u++)
    c->used[u] += budget_use(&one, (enum budget_unit)u);
  memset(c->told, 0, sizeof c->told);
  c->runs = false;
}

/* Takes an admission, call_event or call_end; ignores other records. */
static void call_bounds_feed(struct call_bounds *b, const json_t *record) {
  assert(b != NULL);
  struct str type = json_view(json_at(record, "type"));
  struct call_bound *c = bound_of(b, record);
  if (c == NULL)
    return;
  if (str_eq_c(type, "call_event")) {
    struct str event = json_view(json_at(record, "event"));
    if (c->limits.same_tool > 0 && str_eq_c(event, "tool")) {
      c->tools = guard_count_tool(c->sign, c->tools, json_at(record, "data"));
    } else if (str_eq_c(event, "usage")) {
      struct spend told = spend_of(json_at(record, "data"), 0);
      c->told[BUDGET_TOKENS] = told.input + told.output;
      c->told[BUDGET_COST] = told.cost_nano;
    }
  } else if (str_eq_c(type, "admission")) {
    set_until(c, record); /* its time begins when it has its place */
  } else if (str_eq_c(type, "call_end")) {
    bound_on_end(b, c, record);
  }
}

/* --- the session --- */

struct bounds_movement {
  struct budget *budget; /* with what was added; or NULL */
  size_t first_child, child_count;
  long most_in_a_row;        /* 0: no limit */
  struct call_limits a_call; /* limits from its own budget, its group's and the session's */
  long runs;
  int64_t begun; /* calls begun */
  /* Its command's failures, counted as in core/guard.h. */
  long most_failures; /* 0: no limit */
  long failures;
  bool has_exit, changed; /* a file changed, or may have, since its turn was over */
  int exit;
  /* hash of its present answer; of its last failure */
  char sign[GUARD_SIGN], last_sign[GUARD_SIGN];
};

static long max_of(const struct bounds *b, const json_t *config) {
  const json_t *own = json_at(config, "max_movements");
  if (json_is_integer(own))
    return (long)json_integer_value(own);
  return own != NULL ? MOVEMENTS_INFINITE : b->of_workflow;
}

static struct budget *bounds_budget(struct arena *arena, const struct budget *budget) {
  if (budget == NULL)
    return NULL;
  struct budget *own = arena_alloc(arena, sizeof *own);
  *own = *budget;
  return own;
}

static size_t *bounds_places(struct arena *arena, const size_t *places, size_t count) {
  size_t *own = arena_array(arena, count, sizeof *own);
  if (count > 0)
    memcpy(own, places, count * sizeof *own);
  return own;
}

/* Returns how often the guard lets it happen; 0: the guard does not stop. */
static long guard_most(const struct movement *m, enum guard guard) {
  return m->guards.on[guard] == GUARD_STOP ? m->guards.times[guard] : 0;
}

static void lower_limits(struct call_limits *limits, const struct budget *budget) {
  for (int u = 0; budget != NULL && u < CALL_UNITS; u++)
    if (budget->call[u] >= 0 && (limits->budget[u] < 0 || budget->call[u] < limits->budget[u]))
      limits->budget[u] = budget->call[u];
}

static struct call_limits bounds_call_limits(const struct workflow *wf, const struct movement *m) {
  struct call_limits limits = {{-1, -1, -1}, guard_most(m, GUARD_TOOL), m->stall_ms};
  lower_limits(&limits, wf->budget);
  lower_limits(&limits, m->budget);
  if (m->group != NO_GROUP)
    lower_limits(&limits, wf->movements[m->group].budget);
  return limits;
}

static bool bounds_is_set(const struct movement *m) {
  return m->budget != NULL || m->stall_ms > 0 || guard_most(m, GUARD_MOVEMENT) > 0 ||
         guard_most(m, GUARD_FAILURE) > 0 || guard_most(m, GUARD_TOOL) > 0;
}

static void keep_movements(struct bounds *b, struct arena *arena, const struct workflow *wf) {
  bool some = wf->budget != NULL;
  for (size_t i = 0; i < wf->movement_count; i++)
    some = some || bounds_is_set(&wf->movements[i]);
  if (!some)
    return;
  b->movement_count = wf->movement_count;
  b->movements = arena_array(arena, wf->movement_count, sizeof *b->movements);
  for (size_t i = 0; i < wf->movement_count; i++)
    b->movements[i] = (struct bounds_movement){
        .budget = bounds_budget(arena, wf->movements[i].budget),
        .most_in_a_row = guard_most(&wf->movements[i], GUARD_MOVEMENT),
        .most_failures = wf->movements[i].argv ? guard_most(&wf->movements[i], GUARD_FAILURE) : 0,
        .a_call = bounds_call_limits(wf, &wf->movements[i]),
        .first_child = wf->movements[i].first_child,
        .child_count = wf->movements[i].child_count};
}

void bounds_begin(struct bounds *b, struct arena *arena, const struct workflow *wf,
                  const json_t *config) {
  assert(b != NULL && wf != NULL);
  *b =
      (struct bounds){.of_workflow = wf->max_movements, .budget = bounds_budget(arena, wf->budget)};
  b->movements_max = max_of(b, config);
  b->calls.arena = arena;
  keep_movements(b, arena, wf);
  b->monitor_count = wf->monitor_count;
  b->monitors = arena_array(arena, wf->monitor_count, sizeof *b->monitors);
  b->loops = arena_array(arena, wf->monitor_count, sizeof *b->loops);
  for (size_t i = 0; i < wf->monitor_count; i++) {
    const struct monitor *m = &wf->monitors[i];
    b->monitors[i] = *m;
    b->monitors[i].cycle = bounds_places(arena, m->cycle, m->cycle_count);
    b->monitors[i].ignore = bounds_places(arena, m->ignore, m->ignore_count);
  }
}

/* --- records --- */

static struct bounds_movement *bounds_of(const struct bounds *b, size_t movement) {
  return movement < b->movement_count ? &b->movements[movement] : NULL;
}

static size_t movement_index(const struct view_session *v, struct str name) {
  size_t i = 0;
  while (i < v->movement_count && !str_eq(v->movements[i].name, name))
    i++;
  return i;
}

static void bounds_on_carried(struct bounds *b, const struct view_session *v, const json_t *state) {
  const char *name;
  json_t *runs, *pair;
  size_t i;
  b->iterations = (long)json_integer_value(json_at(state, "iterations"));
  json_object_foreach((json_t *)json_at(state, "runs"), name, runs) {
    struct bounds_movement *m = bounds_of(b, movement_index(v, str_from(name)));
    if (m != NULL)
      m->runs = (long)json_integer_value(runs);
  }
  json_array_foreach((json_t *)json_at(state, "loops"), i, pair) {
    json_int_t at = json_integer_value(json_array_get(pair, 1));
    if (i < b->monitor_count && at >= 0 && (size_t)at < b->monitors[i].cycle_count)
      b->loops[i] =
          (struct loop_count){(long)json_integer_value(json_array_get(pair, 0)), (size_t)at};
  }
}

/* Adds to "tokens" or "MOVEMENT.tokens". */
static void add_to_budget(struct bounds *b, const struct view_session *v, const char *key,
                          const json_t *value) {
  const char *dot = strrchr(key, '.');
  enum budget_unit unit = budget_unit_of(str_from(dot != NULL ? dot + 1 : key));
  struct budget *budget = b->budget;
  if (dot != NULL) {
    struct str name = {key, (size_t)(dot - key)};
    const struct bounds_movement *m = bounds_of(b, movement_index(v, name));
    budget = m != NULL ? m->budget : NULL;
  }
  if (budget == NULL || unit == BUDGET_UNITS || budget->limit[unit] < 0)
    return;
  int64_t amount = budget_amount(value, unit);
  if (amount > 0 && amount < INT64_MAX / 2 - budget->limit[unit])
    budget->limit[unit] += amount;
}

static void bounds_on_resume(struct bounds *b, const struct view_session *v, const json_t *record) {
  const char *key;
  json_t *value;
  if (b->looped)
    b->in_a_row = 0;
  for (size_t i = 0; b->looped && i < b->movement_count; i++)
    b->movements[i].failures = 0;
  for (size_t i = 0; b->spent && i < b->calls.count; i++) /* each call's use is counted anew */
    memset(b->calls.calls[i].used, 0, sizeof b->calls.calls[i].used);
  if (json_at(record, "config") != NULL)
    b->movements_max = max_of(b, json_at(record, "config"));
  json_object_foreach((json_t *)json_at(json_at(record, "changed"), "add_budget"), key, value) {
    add_to_budget(b, v, key, value);
  }
}

static void bounds_on_turn_start(struct bounds *b, const struct view_session *v,
                                 const json_t *record) {
  bool child = json_at(record, "parent_turn") != NULL;
  b->iterations += !child;
  if (b->movement_count == 0)
    return;
  size_t movement = movement_index(v, json_view(json_at(record, "movement")));
  struct bounds_movement *m = bounds_of(b, movement);
  if (m != NULL)
    m->runs++;
  if (child)
    return;
  b->in_a_row = movement == b->entered ? b->in_a_row + 1 : 1;
  b->entered = movement;
}

static const struct view_turn *bounds_turn(const struct view_session *v, const json_t *record) {
  long number = (long)json_integer_value(json_at(record, "turn"));
  for (size_t i = v->turn_count; i-- > 0 && v->turns[i].turn >= number;)
    if (v->turns[i].turn == number)
      return &v->turns[i];
  return NULL;
}

/* --- the same failure --- */

static void bounds_on_call_end(struct bounds *b, const json_t *record) {
  const struct call_bound *call = bound_of(&b->calls, record);
  if (call != NULL && call->executes) {
    struct bounds_movement *m = bounds_of(b, call->movement);
    const json_t *files = json_at(record, "files");
    bool none = json_is_array(files) && json_array_size(files) == 0 &&
                !json_is_true(json_at(record, "files_shared"));
    for (size_t i = 0; !none && i < b->movement_count; i++)
      b->movements[i].changed = true;
    if (m != NULL && m->most_failures > 0) {
      /* An answer in a blob is compared by its hash. */
      struct str blob = json_view(json_at(record, "text_blob"));
      m->has_exit = json_is_integer(json_at(record, "exit"));
      m->exit = (int)json_integer_value(json_at(record, "exit"));
      if (m->exit == 0 && checks_is_no_pass(json_at(record, "tests")))
        m->exit = 1;
      if (m->exit != 0)
        guard_sign_failure(m->exit, blob.n > 0 ? blob : json_view(json_at(record, "text")),
                           m->sign);
    }
  }
  call_bounds_feed(&b->calls, record);
}

static void count_failure(struct bounds_movement *m) {
  bool same = m->failures > 0 && !m->changed && strcmp(m->sign, m->last_sign) == 0;
  if (m->most_failures == 0 || !m->has_exit)
    return;
  m->failures = same ? m->failures + 1 : 1;
  if (m->exit == 0)
    m->failures = 0;
  memcpy(m->last_sign, m->sign, sizeof m->last_sign);
  m->has_exit = m->changed = false;
}

/* --- turns and calls --- */

/* Ends a turn. The verdict of a monitor's own judge begins all counts anew. */
static void bounds_on_turn_end(struct bounds *b, const struct view_session *v,
                               const json_t *record) {
  long number = (long)json_integer_value(json_at(record, "turn"));
  for (size_t i = b->calls.count; i-- > 0;)
    if (b->calls.calls[i].turn == number)
      drop_bound(&b->calls, &b->calls.calls[i]);
  bool counted = b->monitor_count > 0 || b->movement_count > 0;
  const struct view_turn *turn = counted ? bounds_turn(v, record) : NULL;
  if (turn == NULL || turn->parent > 0)
    return;
  size_t movement = movement_index(v, turn->movement);
  if (bounds_of(b, movement) != NULL)
    count_failure(bounds_of(b, movement));
  for (size_t i = 0; i < b->monitor_count; i++)
    if (b->monitors[i].movement == movement) {
      memset(b->loops, 0, b->monitor_count * sizeof *b->loops);
      return;
    }
  for (size_t i = 0; i < b->monitor_count; i++)
    monitor_step(&b->monitors[i], &b->loops[i], movement);
}

static void bounds_on_call_start(struct bounds *b, const struct view_session *v,
                                 const json_t *record) {
  static const struct call_limits unlimited = {{-1, -1, -1}, 0, 0};
  bool first = json_integer_value(json_at(record, "attempt")) == 1;
  const struct view_turn *turn = b->movement_count > 0 ? bounds_turn(v, record) : NULL;
  size_t movement = turn != NULL ? movement_index(v, turn->movement) : SIZE_MAX;
  struct bounds_movement *m = bounds_of(b, movement);
  b->begun += first;
  if (m != NULL)
    m->begun += first;
  call_bounds_start(&b->calls, record, movement, m != NULL ? &m->a_call : &unlimited);
}

void bounds_feed(struct bounds *b, const struct view_session *v, const json_t *record) {
  assert(b != NULL && v != NULL);
  struct str type = json_view(json_at(record, "type"));
  if (str_eq_c(type, "turn_start")) {
    bounds_on_turn_start(b, v, record);
  } else if (str_eq_c(type, "turn_end")) {
    bounds_on_turn_end(b, v, record);
  } else if (str_eq_c(type, "call_start")) {
    bounds_on_call_start(b, v, record);
  } else if (str_eq_c(type, "call_end")) {
    bounds_on_call_end(b, record);
  } else if (str_eq_c(type, "call_event") || str_eq_c(type, "admission")) {
    call_bounds_feed(&b->calls, record);
  } else if (str_eq_c(type, "session_stop")) {
    struct str reason = json_view(json_at(record, "reason"));
    b->looped = str_eq_c(reason, "looping");
    b->spent = str_eq_c(reason, "budget");
  } else if (str_eq_c(type, "session_resume")) {
    bounds_on_resume(b, v, record);
  } else if (str_eq_c(type, "carried")) {
    bounds_on_carried(b, v, json_at(record, "state"));
  }
}

/* --- what they come to --- */

struct bounds_out {
  const struct bounds *b;
  struct view_session *v;
  struct arena *arena;
};

static void add_bound(struct bounds_out *out, struct view_bound bound) {
  struct view_session *v = out->v;
  if (v->bound_count < VIEW_BOUND_COUNT)
    v->bounds[v->bound_count++] = bound;
}

/* Sums use, including what running calls have reported so far. */
static int64_t told_tokens(const struct view_session *v, struct str movement) {
  int64_t sum = 0;
  for (size_t i = 0; i < v->open_count; i++) {
    const struct view_turn *t = &v->turns[v->open[i]];
    if (movement.n == 0 || str_eq(t->movement, movement))
      sum += t->doing->told_tokens;
  }
  return sum;
}

static int64_t movement_used(const struct bounds_out *out, size_t movement, enum budget_unit unit) {
  const struct bounds_movement *m = bounds_of(out->b, movement);
  const struct view_movement *shown = &out->v->movements[movement];
  if (unit == BUDGET_MOVEMENTS)
    return m->runs;
  int64_t sum = unit == BUDGET_CALLS ? m->begun : budget_use(&shown->spend, unit);
  if (unit == BUDGET_TOKENS)
    sum += told_tokens(out->v, shown->name);
  for (size_t i = 0; i < m->child_count; i++)
    sum += movement_used(out, m->first_child + i, unit);
  return sum;
}

static void put_movement_budget(struct bounds_out *out, size_t movement) {
  const struct bounds_movement *m = bounds_of(out->b, movement);
  for (int u = 0; m->budget != NULL && u < BUDGET_UNITS; u++)
    if (m->budget->limit[u] >= 0)
      add_bound(out, (struct view_bound){.kind = VIEW_BOUND_BUDGET,
                                         .unit = (enum budget_unit)u,
                                         .of = out->v->movements[movement].name,
                                         .used = movement_used(out, movement, (enum budget_unit)u),
                                         .limit = m->budget->limit[u]});
}

static void put_session_budget(struct bounds_out *out, const struct spend *all) {
  const struct budget *budget = out->b->budget;
  for (int u = 0; budget != NULL && u < BUDGET_UNITS; u++) {
    enum budget_unit unit = (enum budget_unit)u;
    int64_t used = out->b->iterations;
    if (budget->limit[u] < 0)
      continue;
    if (unit == BUDGET_CALLS)
      used = out->b->begun;
    else if (unit != BUDGET_MOVEMENTS)
      used = budget_use(all, unit);
    if (unit == BUDGET_TOKENS)
      used += told_tokens(out->v, STR(""));
    add_bound(out, (struct view_bound){.kind = VIEW_BOUND_BUDGET,
                                       .unit = unit,
                                       .of = STR(""),
                                       .used = used,
                                       .limit = budget->limit[u]});
  }
}

static void put_loops(struct bounds_out *out) {
  const struct view_session *v = out->v;
  for (size_t i = 0; i < out->b->monitor_count; i++) {
    const struct monitor *m = &out->b->monitors[i];
    struct buf names = {0};
    for (size_t k = 0; k < m->cycle_count; k++)
      if (m->cycle[k] < v->movement_count)
        buf_printf(&names, "%s" STR_FMT, k > 0 ? ", " : "",
                   STR_ARG(v->movements[m->cycle[k]].name));
    add_bound(out, (struct view_bound){.kind = VIEW_BOUND_LOOP,
                                       .of = arena_str(out->arena, buf_view(&names)),
                                       .used = out->b->loops[i].times,
                                       .limit = m->threshold});
    buf_deinit(&names);
  }
}

static void bounds_put_failures(struct bounds_out *out) {
  for (size_t i = 0; i < out->b->movement_count && i < out->v->movement_count; i++) {
    const struct bounds_movement *m = &out->b->movements[i];
    if (m->most_failures > 0 && m->failures > 0)
      add_bound(out, (struct view_bound){.kind = VIEW_BOUND_SAME_FAILURE,
                                         .of = out->v->movements[i].name,
                                         .used = m->failures,
                                         .limit = m->most_failures});
  }
}

static void bounds_put_call(struct bounds_out *out, const struct call_bound *c, struct str name,
                            bool runs, bool waits) {
  for (int u = 0; u < CALL_UNITS; u++)
    if (c->limits.budget[u] >= 0)
      add_bound(out, (struct view_bound){.kind = VIEW_BOUND_CALL,
                                         .unit = (enum budget_unit)u,
                                         .of = name,
                                         .used = c->used[u] + c->told[u],
                                         .limit = c->limits.budget[u]});
  if (!runs)
    return;
  if (c->limits.same_tool > 0 && c->tools > 0)
    add_bound(out, (struct view_bound){.kind = VIEW_BOUND_SAME_TOOL,
                                       .of = name,
                                       .used = c->tools,
                                       .limit = c->limits.same_tool});
  if (c->until_ms > 0 && !waits)
    add_bound(out,
              (struct view_bound){.kind = VIEW_BOUND_TIMEOUT, .of = name, .until_ms = c->until_ms});
  if (c->executes && c->limits.stall_ms > 0 && !waits)
    add_bound(out, (struct view_bound){
                       .kind = VIEW_BOUND_STALL, .of = name, .limit = c->limits.stall_ms});
}

/* Writes the bounds of open calls. A call that waits for a place has all of its time left. The call
 * of an interrupted session has no end in its log. */
static void bounds_put_calls(struct bounds_out *out) {
  const struct view_session *v = out->v;
  bool runs = str_eq_c(v->status, "running") || str_eq_c(v->status, "waiting");
  for (size_t i = 0; i < v->open_count; i++) {
    const struct view_turn *t = &v->turns[v->open[i]];
    for (size_t k = 0; k < out->b->calls.count; k++) {
      const struct call_bound *c = &out->b->calls.calls[k];
      if (c->turn == t->turn)
        bounds_put_call(out, c, t->movement, runs && c->runs, t->doing->kind == VIEW_WAITING);
    }
  }
}

void bounds_list(const struct bounds *b, struct view_session *v, const struct spend *all,
                 struct arena *arena) {
  assert(b != NULL && v != NULL);
  struct bounds_out out = {b, v, arena};
  v->bounds = arena_array(arena, VIEW_BOUND_COUNT, sizeof *v->bounds);
  v->bound_count = 0;
  if (v->movement_count == 0) /* its workflow is not known */
    return;
  if (b->movements_max != MOVEMENTS_INFINITE)
    add_bound(&out, (struct view_bound){.kind = VIEW_BOUND_MOVEMENTS,
                                        .unit = BUDGET_MOVEMENTS,
                                        .of = STR(""),
                                        .used = b->iterations,
                                        .limit = b->movements_max});
  put_session_budget(&out, all);
  /* A group's budget applies as long as the group itself is open. */
  for (size_t i = 0; i < out.b->movement_count && i < out.v->movement_count; i++)
    if (out.v->movements[i].open)
      put_movement_budget(&out, i);
  put_loops(&out);
  const struct bounds_movement *m = bounds_of(out.b, out.b->entered);
  if (m != NULL && m->most_in_a_row > 0 && out.b->in_a_row > 0)
    add_bound(&out, (struct view_bound){.kind = VIEW_BOUND_SAME_MOVEMENT,
                                        .of = out.v->movements[out.b->entered].name,
                                        .used = out.b->in_a_row,
                                        .limit = m->most_in_a_row});
  bounds_put_failures(&out);
  bounds_put_calls(&out);
  for (size_t i = 0; i < out.v->open_count; i++) {
    const struct view_turn *t = &out.v->turns[out.v->open[i]];
    if (t->doing->kind == VIEW_PERSON && t->doing->until_ms > 0)
      add_bound(&out, (struct view_bound){.kind = VIEW_BOUND_DEADLINE,
                                          .of = t->movement,
                                          .until_ms = t->doing->until_ms});
  }
}
