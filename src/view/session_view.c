/* Reads a session's log into what is shown to people. */
#include "view/session_view.h"

#include "audit/turn_lines.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/budget.h"
#include "core/checks.h"
#include "core/guard.h"
#include "core/monitor.h"
#include "core/record.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "store/summary.h"
#include "view/number_format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- limits --- */

/* Tells what would stop a session, and how near it is to that: its limit of movements,
 * the budgets of the session, of open movements and of running calls, the time that such a call may
 * take, loop monitors, guards, deadlines of questions. Gathered while its records are read.
 *
 *   bounds_begin(&b, &arena, wf, config)    the first record
 *   bounds_feed(&b, v, record)              each later one, with its turn in v
 *   bounds_list(&b, v, &sum, &arena)        sets v->bounds, once its open turns are known
 *
 * The budget of the day is in no log: see host/daily_usage.h. All of it lives in arenas. */

/* Tells what would end open calls: the time that each may take, the budgets of a single call, a
 * tool used again and again. */
struct call_bounds {
  struct arena *arena; /* NULL: the workflow is not known, nothing is kept */
  struct call_bound *calls;
  size_t count, room;
};

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
  long turn = (long)json_int_at(record, "turn"), call = (long)json_int_at(record, "call");
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
    *c = (struct call_bound){.turn = (long)json_int_at(record, "turn"),
                             .call = (long)json_int_at(record, "call"),
                             .movement = movement};
  }
  for (int u = 0; u < CALL_UNITS; u++)
    c->used[u] += c->told[u];
  memset(c->told, 0, sizeof c->told);
  c->limits = *limits;
  c->executes = str_eq_c(json_view_at(record, "purpose"), "execute");
  c->runs = true;
  c->tools = 0;
  c->timeout_ms = json_integer_value(timeout);
  if (c->timeout_ms < 0 || c->timeout_ms > (int64_t)1 << 40)
    c->timeout_ms = 0;
  set_until(c, record);
}

static void bound_on_end(struct call_bounds *b, struct call_bound *c, const json_t *record) {
  struct spend one = spend_of(json_at(record, "usage"), json_int_at(record, "duration_ms"));
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
  struct str type = json_view_at(record, "type");
  struct call_bound *c = bound_of(b, record);
  if (c == NULL)
    return;
  if (str_eq_c(type, "call_event")) {
    struct str event = json_view_at(record, "event");
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

struct bounds {
  long movements_max, of_workflow; /* MOVEMENTS_INFINITE, or a number */
  long iterations;                 /* turns except those of a group's children */
  int64_t begun;                   /* calls begun, without repeats */
  struct budget *budget;           /* the session's, with what was added; or NULL */
  struct bounds_movement *movements;
  size_t movement_count; /* 0: no movement has a budget or a stopping guard */
  size_t entered;        /* movement entered last, and how often in a row */
  long in_a_row;
  bool looped, spent; /* a guard stopped it; a budget stopped it */
  struct call_bounds calls;
  struct monitor *monitors;
  struct loop_count *loops;
  size_t monitor_count;
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

static void keep_movements(struct bounds *b, struct arena *arena, const struct workflow *wf) {
  bool some = wf->budget != NULL;
  for (size_t i = 0; i < wf->movement_count; i++)
    some = some || wf->movements[i].budget != NULL || wf->movements[i].stall_ms > 0 ||
           guard_most(&wf->movements[i], GUARD_MOVEMENT) > 0 ||
           guard_most(&wf->movements[i], GUARD_FAILURE) > 0 ||
           guard_most(&wf->movements[i], GUARD_TOOL) > 0;
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

static void bounds_begin(struct bounds *b, struct arena *arena, const struct workflow *wf,
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
  b->iterations = (long)json_int_at(state, "iterations");
  JSON_MEMBERS(json_at(state, "runs"), name, runs) {
    struct bounds_movement *m = bounds_of(b, movement_index(v, str_from(name)));
    if (m != NULL)
      m->runs = (long)json_integer_value(runs);
  }
  JSON_EACH(json_at(state, "loops"), i, pair) {
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
  if (b->looped)
    b->in_a_row = 0;
  for (size_t i = 0; b->looped && i < b->movement_count; i++)
    b->movements[i].failures = 0;
  for (size_t i = 0; b->spent && i < b->calls.count; i++) /* each call's use is counted anew */
    memset(b->calls.calls[i].used, 0, sizeof b->calls.calls[i].used);
  if (json_at(record, "config") != NULL)
    b->movements_max = max_of(b, json_at(record, "config"));
  JSON_MEMBERS(json_at(json_at(record, "changed"), "add_budget"), key, value)
    add_to_budget(b, v, key, value);
}

static void bounds_on_turn_start(struct bounds *b, const struct view_session *v,
                                 const json_t *record) {
  bool child = json_at(record, "parent_turn") != NULL;
  b->iterations += !child;
  if (b->movement_count == 0)
    return;
  size_t movement = movement_index(v, json_view_at(record, "movement"));
  struct bounds_movement *m = bounds_of(b, movement);
  if (m != NULL)
    m->runs++;
  if (child)
    return;
  b->in_a_row = movement == b->entered ? b->in_a_row + 1 : 1;
  b->entered = movement;
}

static const struct view_turn *bounds_turn(const struct view_session *v, const json_t *record) {
  long number = (long)json_int_at(record, "turn");
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
    bool shared = json_is_true(json_at(record, "files_shared"));
    bool none = files != NULL ? json_array_size(files) == 0 && !shared : shared;
    for (size_t i = 0; !none && i < b->movement_count; i++)
      b->movements[i].changed = true;
    if (m != NULL && m->most_failures > 0) {
      /* An answer in a blob is compared by its hash. */
      struct str blob = json_view_at(record, "text_blob");
      m->has_exit = json_is_integer(json_at(record, "exit"));
      m->exit = (int)json_int_at(record, "exit");
      if (m->exit == 0 && checks_is_no_pass(json_at(record, "tests")))
        m->exit = 1;
      if (m->exit != 0)
        guard_sign_failure(m->exit, blob.n > 0 ? blob : json_view_at(record, "text"), m->sign);
    }
  }
  call_bounds_feed(&b->calls, record);
}

/* --- turns and calls --- */

/* Ends a turn. The verdict of a monitor's own judge begins all counts anew. */
static void bounds_on_turn_end(struct bounds *b, const struct view_session *v,
                               const json_t *record) {
  long number = (long)json_int_at(record, "turn");
  for (size_t i = b->calls.count; i-- > 0;)
    if (b->calls.calls[i].turn == number)
      drop_bound(&b->calls, &b->calls.calls[i]);
  bool counted = b->monitor_count > 0 || b->movement_count > 0;
  const struct view_turn *turn = counted ? bounds_turn(v, record) : NULL;
  if (turn == NULL || turn->parent > 0)
    return;
  size_t movement = movement_index(v, turn->movement);
  struct bounds_movement *m = bounds_of(b, movement);
  if (m != NULL && m->most_failures != 0 && m->has_exit) {
    bool same = m->failures > 0 && !m->changed && strcmp(m->sign, m->last_sign) == 0;
    m->failures = same ? m->failures + 1 : 1;
    if (m->exit == 0)
      m->failures = 0;
    memcpy(m->last_sign, m->sign, sizeof m->last_sign);
    m->has_exit = m->changed = false;
  }
  for (size_t i = 0; i < b->monitor_count; i++)
    if (b->monitors[i].movement == movement) {
      memset(b->loops, 0, b->monitor_count * sizeof *b->loops);
      return;
    }
  for (size_t i = 0; i < b->monitor_count; i++)
    monitor_step(&b->monitors[i], &b->loops[i], movement);
}

static void bounds_feed(struct bounds *b, const struct view_session *v, const json_t *record) {
  assert(b != NULL && v != NULL);
  struct str type = json_view_at(record, "type");
  if (str_eq_c(type, "turn_start")) {
    bounds_on_turn_start(b, v, record);
  } else if (str_eq_c(type, "turn_end")) {
    bounds_on_turn_end(b, v, record);
  } else if (str_eq_c(type, "call_start")) {
    static const struct call_limits unlimited = {{-1, -1, -1}, 0, 0};
    bool first = json_int_at(record, "attempt") == 1;
    const struct view_turn *turn = b->movement_count > 0 ? bounds_turn(v, record) : NULL;
    size_t movement = turn != NULL ? movement_index(v, turn->movement) : SIZE_MAX;
    struct bounds_movement *m = bounds_of(b, movement);
    b->begun += first;
    if (m != NULL)
      m->begun += first;
    call_bounds_start(&b->calls, record, movement, m != NULL ? &m->a_call : &unlimited);
  } else if (str_eq_c(type, "call_end")) {
    bounds_on_call_end(b, record);
  } else if (str_eq_c(type, "call_event") || str_eq_c(type, "admission")) {
    call_bounds_feed(&b->calls, record);
  } else if (str_eq_c(type, "session_stop")) {
    struct str reason = json_view_at(record, "reason");
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
    buf_auto_t names = {0};
    for (size_t k = 0; k < m->cycle_count; k++)
      if (m->cycle[k] < v->movement_count)
        buf_printf(&names, "%s" STR_FMT, k > 0 ? ", " : "",
                   STR_ARG(v->movements[m->cycle[k]].name));
    add_bound(out, (struct view_bound){.kind = VIEW_BOUND_LOOP,
                                       .of = arena_str(out->arena, buf_view(&names)),
                                       .used = out->b->loops[i].times,
                                       .limit = m->threshold});
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

/* Sets v->bounds. all: use by finished calls. */
static void bounds_list(const struct bounds *b, struct view_session *v, const struct spend *all,
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
  for (size_t k = 0; k < out.b->movement_count && k < out.v->movement_count; k++) {
    const struct bounds_movement *failing = &out.b->movements[k];
    if (failing->most_failures > 0 && failing->failures > 0)
      add_bound(&out, (struct view_bound){.kind = VIEW_BOUND_SAME_FAILURE,
                                          .of = out.v->movements[k].name,
                                          .used = failing->failures,
                                          .limit = failing->most_failures});
  }
  bounds_put_calls(&out);
  for (size_t i = 0; i < out.v->open_count; i++) {
    const struct view_turn *t = &out.v->turns[out.v->open[i]];
    if (t->doing->kind == VIEW_PERSON && t->doing->until_ms > 0)
      add_bound(&out, (struct view_bound){.kind = VIEW_BOUND_DEADLINE,
                                          .of = t->movement,
                                          .until_ms = t->doing->until_ms});
  }
}

/* --- what a turn spends its time on --- */

enum spans_state { SPANS_NOTHING = VIEW_SPAN_KINDS };

struct spans_call {
  long turn, call;
  int state; /* enum view_span_kind, or SPANS_NOTHING */
  bool judges;
  int64_t since_ms, until_ms;
  char reason[24];              /* of a wait */
  int64_t away_ms, gives_up_ms; /* of an outage: since when, until when; 0: there is none */
};

/* Follows the calls of turns from work to waiting to judging while their records are read. */
struct spans {
  struct spans_call *calls; /* calls under way */
  size_t count, room;
};

/* Adds a span. A turn has at most LIMIT_VIEW_SPAN_COUNT of them; beyond that the last one is
 * extended. */
static void put_span(struct view_turn *turn, int kind, int64_t from_ms, int64_t to_ms) {
  if (kind == SPANS_NOTHING || to_ms <= from_ms)
    return;
  struct view_span *last = turn->span_count > 0 ? &turn->spans[turn->span_count - 1] : NULL;
  bool joins = last != NULL && last->to_ms >= from_ms && (int)last->kind == kind;
  if (joins || turn->span_count == LIMIT_VIEW_SPAN_COUNT) {
    last->to_ms = to_ms > last->to_ms ? to_ms : last->to_ms;
    return;
  }
  if ((turn->span_count & (turn->span_count - 1)) == 0) /* room for a power of two */
    turn->spans =
        xrealloc(turn->spans, (turn->span_count > 0 ? 2 * turn->span_count : 1) * sizeof *last);
  turn->spans[turn->span_count++] = (struct view_span){(enum view_span_kind)kind, from_ms, to_ms};
}

static void spans_move(struct spans_call *c, int state, int64_t at_ms, struct view_turn *turn) {
  put_span(turn, c->state, c->since_ms, at_ms);
  c->state = state;
  c->since_ms = at_ms;
}

static struct spans_call *find_call(struct spans *s, long turn, long call, int64_t at_ms) {
  for (size_t i = s->count; i-- > 0;)
    if (s->calls[i].turn == turn && s->calls[i].call == call)
      return &s->calls[i];
  if (s->count == LIMIT_AUDIT_OPEN_COUNT)
    return NULL;
  s->calls = xgrow(s->calls, &s->room, s->count + 1, sizeof *s->calls);
  s->calls[s->count] =
      (struct spans_call){.turn = turn, .call = call, .state = SPANS_NOTHING, .since_ms = at_ms};
  return &s->calls[s->count++];
}

static int spans_state(const struct spans_call *c, const json_t *record, struct str type) {
  struct str answer = json_view_at(record, "answer");
  if (str_eq_c(type, "question"))
    return VIEW_PERSON;
  if (str_eq_c(type, "call_end"))
    return json_at(record, "retry_in_ms") != NULL ? VIEW_RETRY : SPANS_NOTHING;
  if (str_eq_c(type, "admission") && str_eq_c(answer, "wait")) {
    /* A provider that must be left alone counts as waiting for the next attempt. */
    struct str reason = json_view_at(record, "reason");
    bool back_off = str_eq_c(reason, "cooldown") || str_eq_c(reason, "circuit_open") ||
                    json_at(record, "outage") != NULL;
    return back_off ? VIEW_RETRY : VIEW_WAITING;
  }
  if (str_eq_c(type, "call_start") || str_eq_c(answer, "admitted"))
    return c->judges ? VIEW_JUDGING : VIEW_WORK;
  return SPANS_NOTHING;
}

/* Takes a record of that time. `turn` owns a pointer to its spans (malloc), which may change. */
/* Takes a record. A question has no call: it takes the place of number 0. */
static void spans_feed(struct spans *s, const json_t *record, int64_t at_ms,
                       struct view_turn *turn) {
  assert(s != NULL && turn != NULL);
  static const char *const types[] = {"call_start", "call_end", "admission", "question", "answer"};
  struct str type = json_view_at(record, "type");
  bool known = false;
  for (size_t i = 0; i < ARRAY_LEN(types); i++)
    known = known || str_eq_c(type, types[i]);
  if (!known)
    return;
  struct spans_call *c = find_call(s, turn->turn, (long)json_int_at(record, "call"), at_ms);
  if (c == NULL)
    return;
  if (str_eq_c(type, "call_start"))
    c->judges = json_view_at(record, "stage").n > 0;
  spans_move(c, spans_state(c, record, type), at_ms, turn);
  const char *class = json_string_value(json_at(json_at(record, "error"), "class"));
  const char *reason = json_string_value(json_at(record, "reason"));
  const char *wait_reason = class != NULL ? class : reason;
  const char *until = json_string_value(json_at(record, "until"));
  print_into(c->reason, sizeof c->reason, "%s", wait_reason != NULL ? wait_reason : "");
  if (json_at(record, "retry_in_ms") != NULL)
    c->until_ms = at_ms + json_int_at(record, "retry_in_ms");
  else if (until == NULL || !record_time_parse(until, &c->until_ms))
    c->until_ms = 0;
  const json_t *outage = json_at(record, "outage");
  if (c->state != VIEW_RETRY || !record_time_parse(json_word_at(outage, "since"), &c->away_ms))
    c->away_ms = 0;
  if (c->away_ms == 0 || !record_time_parse(json_word_at(outage, "until"), &c->gives_up_ms))
    c->gives_up_ms = 0;
  if (c->state == SPANS_NOTHING)
    *c = s->calls[--s->count];
}

/* Ends the open spans of `turn`. stays: except those that wait for a person. */
static void spans_close(struct spans *s, int64_t at_ms, struct view_turn *turn, bool stays) {
  for (size_t i = s->count; i-- > 0;) {
    if (s->calls[i].turn != turn->turn || (stays && s->calls[i].state == VIEW_PERSON))
      continue;
    spans_move(&s->calls[i], SPANS_NOTHING, at_ms, turn);
    s->calls[i] = s->calls[--s->count];
  }
}

/* Ranks work before waiting, and a wait for a person before both. */
static int spans_weight(int state) {
  static const int weights[VIEW_SPAN_KINDS] = {
      [VIEW_WORK] = 3, [VIEW_JUDGING] = 3, [VIEW_WAITING] = 2, [VIEW_RETRY] = 1, [VIEW_PERSON] = 4};
  return weights[state];
}

/* Sets all of turn->doing except its tokens. The text is valid until the next feed. */
static void spans_tell(const struct spans *s, struct view_turn *turn) {
  const struct spans_call *told = NULL;
  struct view_doing *doing = turn->doing;
  doing->waiting = 0;
  for (size_t i = 0; i < s->count; i++) {
    const struct spans_call *c = &s->calls[i];
    if (c->turn != turn->turn)
      continue;
    doing->waiting += c->state == VIEW_WAITING;
    if (told == NULL || spans_weight(c->state) > spans_weight(told->state))
      told = c;
  }
  doing->kind = told != NULL ? (enum view_span_kind)told->state : VIEW_SPAN_KINDS;
  doing->since_ms = told != NULL ? told->since_ms : 0;
  doing->until_ms = told != NULL ? told->until_ms : 0;
  doing->away_ms = told != NULL ? told->away_ms : 0;
  doing->gives_up_ms = told != NULL ? told->gives_up_ms : 0;
  doing->waits_for = str_from(told != NULL ? told->reason : "");
}

static void spans_deinit(struct spans *s) {
  free(s->calls);
  *s = (struct spans){0};
}

/* --- what is read --- */

/* Keeps an open turn as it was before its last span was closed for a viewer. */
struct open_turn {
  struct spend spend; /* as it stood in the movement's sums, if it was over before */
  int64_t duration_ms;
  size_t index, span_count;
  struct view_span last;
};

enum { RECENT_TEXTS = 64, RECENT_TEXT_BYTES = 64 };

struct view_reading {
  struct view_session *v;
  struct str recent[RECENT_TEXTS]; /* kept texts, by their hash */
  struct turn_lines summary;
  struct spans spans;
  struct bounds bounds;
  size_t room; /* of v->turns */
  bool begun, unproven;
  /* These undo what the view says about open turns, once more of the log comes. */
  bool finished;
  struct arena of_open;
  struct open_turn *open;
  size_t open_count;
  struct spans before;
  struct view_movement *movements_before;
};

static bool view_is_type(const json_t *record, const char *type) {
  return str_eq_c(json_view_at(record, "type"), type);
}

/* Keeps a text once: names, conditions and methods repeat in many turns. */
static struct str view_keep(struct view_reading *r, struct str text) {
  if (text.n == 0)
    return STR("");
  if (!r->finished && text.n <= RECENT_TEXT_BYTES) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < text.n; i++)
      hash = (hash ^ (unsigned char)text.p[i]) * 16777619u;
    struct str *recent = &r->recent[hash % RECENT_TEXTS];
    if (!str_eq(*recent, text))
      *recent = arena_str(&r->v->arena, text);
    return *recent;
  }
  return view_cut(r->finished ? &r->of_open : &r->v->arena, text, LIMIT_VIEW_TEXT_BYTES);
}

/* --- the workflow --- */

static struct str next_name(const struct workflow *wf, int next) {
  if (next == NEXT_COMPLETE)
    return STR("COMPLETE");
  return next == NEXT_ABORT ? STR("ABORT") : wf->movements[next].name;
}

/* Returns "" where any error leads on. */
static struct str error_way_class(const struct error_way *way) {
  return str_from(way->class != CLASS_NONE ? error_class_name(way->class) : "");
}

static void keep_workflow(struct view_reading *r, const json_t *start) {
  struct err err;
  json_t *doc = json_at(start, "workflow");
  struct workflow *wf = json_is_object(doc) ? workflow_build(doc, &err) : NULL;
  r->v->workflow = view_keep(r, json_view_at(doc, "name"));
  if (wf == NULL)
    return;
  bounds_begin(&r->bounds, &r->v->arena, wf, json_at(start, "config"));
  struct arena *arena = &r->v->arena;
  r->v->movements = arena_array(arena, wf->movement_count, sizeof *r->v->movements);
  r->v->movement_count = wf->movement_count;
  for (size_t i = 0; i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    struct view_movement *out = &r->v->movements[i];
    out->name = view_keep(r, m->name);
    buf_auto_t text = {0};
    if (m->child_count > 0)
      buf_printf(&text, "%zu at once", m->child_count);
    else if (m->argv != NULL)
      buf_printf(&text, "command %s", m->argv[0]);
    else
      buf_str(&text, m->provider.n > 0 ? m->provider : wf->provider);
    out->who = view_keep(r, buf_view(&text));
    out->rules = arena_array(arena, movement_ways(m), sizeof *out->rules);
    out->rule_count = m->rule_count;
    out->error_count = m->on_error_count;
    for (size_t k = 0; k < m->rule_count; k++)
      out->rules[k] = (struct view_rule){
          .condition = view_keep(r, m->rules[k].condition),
          .next = m->group == NO_GROUP ? view_keep(r, next_name(wf, m->rule_next[k])) : STR("")};
    for (size_t k = m->rule_count; k < movement_ways(m); k++)
      out->rules[k] = (struct view_rule){error_way_class(&m->on_error[k - m->rule_count]),
                                         view_keep(r, next_name(wf, movement_leads_to(m, k))), 0};
  }
  workflow_unref(wf);
}

static struct view_movement *view_movement_of(struct view_session *v, struct str name) {
  for (size_t i = 0; i < v->movement_count; i++)
    if (str_eq(v->movements[i].name, name))
      return &v->movements[i];
  return NULL;
}

/* --- turns --- */

/* Finds a turn. They are numbered in a row, so this looks at one or two of them. In a log that
 * somebody changed, a turn may be missing. */
static struct view_turn *view_turn_of(struct view_session *v, long number) {
  long first = v->turn_count > 0 ? v->turns[0].turn : 0;
  if (number < first || (unsigned long)(number - first) >= v->turn_count)
    return NULL;
  struct view_turn *turn = &v->turns[number - first];
  return turn->turn == number ? turn : NULL;
}

bool view_turn_failed(const struct view_turn *t) {
  if (t->failed_calls > 0)
    return true;
  if (!t->over)
    return false;
  return t->judged ? str_eq_c(t->leads_to, "ABORT") : !str_eq_c(t->method, "cancelled");
}

static void view_on_turn_start(struct view_reading *r, const json_t *record) {
  struct view_session *v = r->v;
  if (v->turn_count == LIMIT_VIEW_TURN_COUNT) {
    v->turns_left_out++;
    return;
  }
  v->turns = xgrow(v->turns, &r->room, v->turn_count + 1, sizeof *v->turns);
  v->turns[v->turn_count++] =
      (struct view_turn){.turn = (long)json_int_at(record, "turn"),
                         .run = (long)json_int_at(record, "movement_iteration"),
                         .parent = (long)json_int_at(record, "parent_turn"),
                         .movement = view_keep(r, json_view_at(record, "movement")),
                         .started_ms = view_time(record),
                         .unproven = r->unproven};
  struct view_movement *m = view_movement_of(v, json_view_at(record, "movement"));
  if (m != NULL)
    m->runs++;
}

static void keep_stages(struct view_reading *r, const json_t *judgment, struct view_turn *turn) {
  const json_t *stages = json_at(judgment, "stages");
  turn->stage_count = 0;
  turn->ambiguous = json_is_true(json_at(judgment, "ambiguous")); /* of older logs */
  turn->stages = arena_array(&r->v->arena, json_array_size(stages), sizeof *turn->stages);
  JSON_EACH(stages, i, stage) {
    struct str error = json_view(json_array_get(json_at(stage, "errors"), 0));
    turn->ambiguous |= str_eq_c(json_view_at(stage, "outcome"), "ambiguous");
    turn->stages[turn->stage_count++] =
        (struct view_stage){.stage = view_keep(r, json_view_at(stage, "stage")),
                            .outcome = view_keep(r, json_view_at(stage, "outcome")),
                            .why = view_keep(r, error.n > 0 ? error : json_view_at(stage, "class")),
                            .provider = view_keep(r, json_view_at(stage, "provider")),
                            .vote = (long)json_int_at(stage, "vote"),
                            .calls = (long)json_array_size(json_at(stage, "calls")),
                            .duration_ms = json_int_at(stage, "duration_ms")};
  }
}

/* Takes over the turn's line, when the turn is over, or at the end of the log. */
static void keep_line(struct view_reading *r, const struct turn_line *line,
                      struct view_turn *turn) {
  turn->provider = view_keep(r, buf_view(&line->provider));
  turn->what = view_keep(r, buf_view(&line->what));
  turn->leads_to = view_keep(r, buf_view(&line->leads_to));
  turn->method = view_keep(r, buf_view(&line->method));
  turn->why = view_keep(r, buf_view(&line->why));
  turn->reason = view_keep(r, buf_view(&line->reason));
  turn->tried = line->tried;
  turn->spend = line->spends.all;
  turn->duration_ms = line->duration_ms;
  turn->judged = line->judged;
}

/* Adds what the turn used to its movement's sums, or takes it away again: times is 1 or -1. */
static void sum_in_movement(struct view_session *v, const struct view_turn *turn, int times) {
  struct view_movement *m = view_movement_of(v, turn->movement);
  if (m == NULL)
    return;
  m->duration_ms += times * turn->duration_ms;
  m->spend.input += times * turn->spend.input;
  m->spend.output += times * turn->spend.output;
  m->spend.cost_nano += times * turn->spend.cost_nano;
  m->spend.priced += times * turn->spend.priced;
  m->spend.unpriced += times * turn->spend.unpriced;
  m->spend.calls += times * turn->spend.calls;
}

/* Counts the entry of on_error by which a turn that failed led on, if one did. */
static void take_error_way(struct view_movement *m, struct str class, struct str next) {
  for (size_t k = m->rule_count; k < m->rule_count + m->error_count; k++) {
    struct view_rule *way = &m->rules[k];
    if ((way->condition.n == 0 || str_eq(way->condition, class)) && str_eq(way->next, next)) {
      way->taken++;
      return;
    }
  }
}

static void on_turn_over(struct view_reading *r, const json_t *record,
                         const struct turn_line *line) {
  struct view_turn *turn = view_turn_of(r->v, line->turn);
  if (turn == NULL)
    return;
  if (turn->over) /* judged anew after a resume: its line has all that it used */
    sum_in_movement(r->v, turn, -1);
  keep_line(r, line, turn);
  turn->over = true;
  spans_close(&r->spans, view_time(record), turn, false);
  if (view_is_type(record, "judgment")) {
    turn->rule = (long)json_int_at(record, "rule");
    turn->condition = view_keep(r, json_view_at(record, "condition"));
    keep_stages(r, record, turn);
  }
  struct view_movement *m = view_movement_of(r->v, turn->movement);
  if (m != NULL && turn->rule >= 1 && (size_t)turn->rule <= m->rule_count)
    m->rules[turn->rule - 1].taken++;
  if (m != NULL && str_eq_c(json_view_at(record, "outcome"), "error"))
    take_error_way(m, json_view_at(record, "class"), json_view_at(record, "next"));
  sum_in_movement(r->v, turn, 1);
}

/* --- records --- */

static void on_call(struct view_reading *r, const json_t *record, int64_t at_ms) {
  struct view_turn *turn = view_turn_of(r->v, (long)json_int_at(record, "turn"));
  const json_t *error = json_at(record, "error");
  if (turn == NULL)
    return;
  spans_feed(&r->spans, record, at_ms, turn);
  if (!view_is_type(record, "call_end"))
    return;
  turn->files += (long)json_array_size(json_at(record, "files"));
  turn->failed_calls += error != NULL && !str_eq_c(json_view_at(error, "class"), "cancelled");
}

static void view_fold(struct view_reading *r, const json_t *record) {
  struct view_session *v = r->v;
  const struct turn_line *line = turn_lines_feed_json(&r->summary, record);
  int64_t at_ms = view_time(record);
  if (at_ms > 0)
    v->last_ms = at_ms;
  v->newer = v->newer || json_int_at(record, "v") > RECORD_VERSION;
  v->asked = v->asked || view_is_type(record, "question");
  if (view_is_type(record, "session_start") && !r->begun) {
    r->begun = true;
    v->started_ms = at_ms;
    struct str task = json_view_at(record, "task");
    size_t kept = view_fitting(task, LIMIT_VIEW_TEXT_BYTES);
    r->v->task = arena_str(&r->v->arena, (struct str){task.p, kept});
    json_int_t whole = json_int_at(record, "task_bytes"); /* of one in a blob */
    size_t bytes = whole > (json_int_t)task.n ? (size_t)whole : task.n;
    r->v->task_more_bytes = bytes - kept;
    r->v->task_seq = (uint64_t)json_int_at(record, "seq");
    v->workflow_path = view_keep(r, json_view_at(record, "workflow_path"));
    v->submitted = json_is_true(json_at(json_at(record, "config"), "submitted"));
    keep_workflow(r, record);
  } else if (view_is_type(record, "carried")) {
    v->forked_from = view_keep(r, json_view_at(json_at(record, "parent"), "session"));
  } else if (view_is_type(record, "turn_start")) {
    view_on_turn_start(r, record);
  } else if (line != NULL) {
    on_turn_over(r, record, line);
  } else if (view_is_type(record, "session_stop")) {
    for (size_t i = v->turn_count; i-- > 0 && r->spans.count > 0;)
      spans_close(&r->spans, at_ms, &v->turns[i], true);
  } else if (json_at(record, "call") != NULL || view_is_type(record, "question") ||
             view_is_type(record, "answer")) {
    on_call(r, record, at_ms);
  }
}

static void view_take(struct view_reading *r, const json_t *record) {
  view_fold(r, record);
  bounds_feed(&r->bounds, r->v, record);
}

/* Says what state the session is in, as segue ls does: a log alone does not say whether somebody
 * runs it. */
static struct str view_status(struct view_reading *r, const struct store_ref *ref) {
  AUTO(summary_deinit) struct summary b = {0};
  struct err err;
  if (strcmp(r->summary.status, "running") != 0)
    return view_keep(r, str_from(r->summary.status));
  bool owned = store_is_owned(ref), known = summary_read(&b, ref, &err);
  if (known && summary_waits(&b) && r->summary.message.n == 0) {
    summary_say_wait(&b, &r->summary.message);
    buf_puts(&r->summary.resume_flags, " --now");
  }
  if (!owned && !(known && summary_waits(&b)))
    return STR("open");
  return known ? view_keep(r, str_from(summary_status(&b))) : STR("running");
}

/* Takes back what was said about open turns. */
static void view_unfinish(struct view_reading *r) {
  struct view_session *v = r->v;
  size_t bytes = v->movement_count * sizeof *v->movements;
  for (size_t i = 0; i < r->open_count; i++) {
    struct view_turn *turn = &v->turns[r->open[i].index];
    turn->span_count = r->open[i].span_count;
    turn->spend = r->open[i].spend;
    turn->duration_ms = r->open[i].duration_ms;
    if (turn->span_count > 0)
      turn->spans[turn->span_count - 1] = r->open[i].last;
    turn->provider = turn->what = turn->leads_to = turn->method = STR("");
    turn->why = turn->reason = STR("");
    turn->doing = NULL;
  }
  v->open = NULL;
  v->bounds = NULL;
  v->open_count = v->bound_count = 0;
  r->open_count = 0;
  if (bytes > 0)
    memcpy(v->movements, r->movements_before, bytes);
  free(r->movements_before);
  r->movements_before = NULL;
  spans_deinit(&r->spans);
  r->spans = r->before;
  r->before = (struct spans){0};
  json_decref(v->spent);
  json_decref(v->methods);
  json_decref(v->said);
  v->spent = v->methods = v->said = NULL;
  arena_deinit(&r->of_open);
  r->finished = false;
}

static void keep_open(struct view_reading *r) {
  for (const struct turn_line *line = r->summary.open; line != NULL; line = line->next) {
    struct view_turn *turn = view_turn_of(r->v, line->turn);
    if (turn == NULL)
      continue;
    if (r->open_count % 16 == 0)
      r->open = xrealloc(r->open, (r->open_count + 16) * sizeof *r->open);
    r->open[r->open_count++] = (struct open_turn){
        .spend = turn->spend,
        .duration_ms = turn->duration_ms,
        .index = (size_t)(turn - r->v->turns),
        .span_count = turn->span_count,
        .last = turn->span_count > 0 ? turn->spans[turn->span_count - 1] : (struct view_span){0}};
    if (turn->over) /* resumed: its line has all that it used */
      sum_in_movement(r->v, turn, -1);
    keep_line(r, line, turn);
    turn->doing = arena_array(&r->of_open, 1, sizeof *turn->doing);
    *turn->doing = (struct view_doing){.told_tokens = line->told_tokens};
    turn->leads_to = view_keep(r, buf_view(&line->now));
    turn->duration_ms = r->v->last_ms > turn->started_ms ? r->v->last_ms - turn->started_ms : 0;
    spans_tell(&r->spans, turn);
    turn->doing->waits_for = view_keep(r, turn->doing->waits_for);
    spans_close(&r->spans, r->v->last_ms, turn, false);
    struct view_movement *m = view_movement_of(r->v, turn->movement);
    if (m != NULL)
      m->open = true;
    sum_in_movement(r->v, turn, 1);
  }
}

bool view_session_is_over(const struct view_session *v) {
  return str_eq_c(v->status, "complete") || str_eq_c(v->status, "abort") ||
         str_eq_c(v->status, "cancelled");
}

static void view_finish(struct view_reading *r, const struct store_ref *ref,
                        const struct verified_reader *book) {
  struct view_session *v = r->v;
  size_t bytes = v->movement_count * sizeof *v->movements;
  /* Copies what is under way into `out`, a zeroed one. */
  struct spans *out = &r->before;
  *out = (struct spans){.count = r->spans.count, .room = r->spans.count};
  if (r->spans.count != 0) {
    out->calls = xmalloc(r->spans.count * sizeof *r->spans.calls);
    memcpy(out->calls, r->spans.calls, r->spans.count * sizeof *r->spans.calls);
  }
  r->movements_before = xmalloc(bytes + 1);
  if (bytes > 0)
    memcpy(r->movements_before, v->movements, bytes);
  r->finished = true;
  print_into(v->id, sizeof v->id, "%s", r->summary.session);
  char named[STORE_ID_BYTES];
  store_ref_id(ref, named);
  v->misnamed = named[0] != '\0' && strcmp(named, v->id) != 0;
  v->log = view_keep(r, str_from(ref->name));
  v->status = view_status(r, ref);
  v->message = view_keep(r, buf_view(&r->summary.message));
  v->basis = view_keep(r, str_from(r->summary.basis));
  v->evidence = view_keep(r, buf_view(&r->summary.evidence));
  v->resumable = r->summary.resumable;
  v->resume_flags = view_keep(r, str_from(turn_lines_resume_flags(&r->summary)));
  v->turns_ms = turn_lines_duration(&r->summary);
  v->spent = turn_lines_spent(&r->summary);
  v->methods = json_incref(r->summary.methods);
  v->said = json_incref(r->summary.said);
  keep_open(r);
  /* The summary has the open turns newest first. */
  size_t *places = arena_array(&r->of_open, r->open_count, sizeof *places);
  for (size_t i = 0; i < r->open_count; i++)
    places[i] = r->open[r->open_count - 1 - i].index;
  v->open = places;
  v->open_count = r->open_count;
  if (!view_session_is_over(v))
    bounds_list(&r->bounds, v, &r->summary.spends.all, &r->of_open);
  v->records = book->records;
  v->chain = VIEW_SOUND;
  if (book->state == VERIFIED_DAMAGED) {
    v->chain = VIEW_BAD;
    v->damage = view_keep(r, str_from(book->damage.text));
  } else if (book->state == VERIFIED_TORN && !store_is_owned(ref)) {
    v->chain = VIEW_TORN;
    v->torn_bytes = book->torn_bytes;
  }
}

/* --- the whole, or more of it --- */

struct view_reading *view_reading_new(struct view_session *v) {
  struct view_reading *r = xcalloc(1, sizeof *r);
  r->v = v;
  return r;
}

bool view_reading_go_on(struct view_reading *r, struct verified_reader *book, struct err *err) {
  assert(r != NULL && book != NULL);
  json_t *record;
  if (r->finished)
    view_unfinish(r);
  while ((record = verified_next(book)) != NULL) {
    view_take(r, record);
    json_decref(record);
  }
  r->unproven = book->state == VERIFIED_DAMAGED;
  while ((record = verified_next_unproven(book)) != NULL) {
    view_take(r, record);
    json_decref(record);
  }
  if (!r->begun)
    return err_set(err, ERR_NOT_FOUND, "%.200s is not the log of a session", book->ref.name);
  view_finish(r, &book->ref, book);
  return true;
}

bool view_session_read(struct view_session *v, const struct store_ref *ref, struct err *err) {
  assert(v != NULL && ref != NULL);
  AUTO(verified_close) struct verified_reader book = {0};
  *v = (struct view_session){0};
  if (!verified_open(&book, ref, false, err))
    return false;
  v->reading = view_reading_new(v);
  bool ok = view_reading_go_on(v->reading, &book, err);
  if (!ok)
    view_session_deinit(v);
  return ok;
}

void view_session_deinit(struct view_session *v) {
  for (size_t i = 0; i < v->turn_count; i++)
    free(v->turns[i].spans);
  free(v->turns);
  json_decref(v->spent);
  json_decref(v->methods);
  json_decref(v->said);
  arena_deinit(&v->arena);
  if (v->reading != NULL) {
    spans_deinit(&v->reading->spans);
    spans_deinit(&v->reading->before);
    turn_lines_deinit(&v->reading->summary);
    arena_deinit(&v->reading->of_open);
    free(v->reading->movements_before);
    free(v->reading->open);
    free(v->reading);
  }
  *v = (struct view_session){0};
}

/* --- as JSON --- */

static const double nano = 1e9;

static json_t *time_json(int64_t ms) {
  char text[RECORD_TIME_BYTES];
  if (ms <= 0)
    return json_null();
  record_time(ms, text);
  return json_string(text);
}

static void put_spend(json_t *out, const struct spend *s) {
  json_put(out, "calls", json_integer(s->calls));
  json_put(out, "input", json_integer(s->input));
  json_put(out, "output", json_integer(s->output));
  json_put(out, "cost_usd", s->priced > 0 ? json_real((double)s->cost_nano / nano) : json_null());
  json_put_count(out, "unpriced", s->unpriced);
}

static json_t *doing_json(const struct view_turn *t) {
  json_t *out = json_object();
  json_put(out, "kind", json_string(view_span_name(t->doing->kind)));
  json_put(out, "since", time_json(t->doing->since_ms));
  json_put(out, "until", time_json(t->doing->until_ms));
  json_put_text(out, "reason", t->doing->waits_for);
  if (t->doing->away_ms > 0) {
    json_put(out, "away_since", time_json(t->doing->away_ms));
    json_put(out, "gives_up", time_json(t->doing->gives_up_ms));
  }
  return out;
}

static json_t *view_stages_json(const struct view_turn *t) {
  json_t *list = json_array();
  for (size_t i = 0; i < t->stage_count; i++) {
    const struct view_stage *s = &t->stages[i];
    json_t *out = json_object();
    json_put(out, "stage", json_text(s->stage));
    json_put(out, "outcome", json_text(s->outcome));
    json_put(out, "why", json_text(s->why));
    json_put(out, "provider", json_text(s->provider));
    json_put_count(out, "vote", s->vote);
    json_put(out, "calls", json_integer(s->calls));
    json_put(out, "duration_ms", json_integer(s->duration_ms));
    json_array_append_new(list, out);
  }
  return list;
}

static json_t *view_turn_json(const struct view_turn *t) {
  json_t *out = json_object();
  json_put(out, "turn", json_integer(t->turn));
  json_put(out, "movement", json_text(t->movement));
  json_put(out, "run", json_integer(t->run));
  json_put_count(out, "parent", t->parent);
  json_put(out, "provider", json_text(t->provider));
  json_put(out, "what", json_text(t->what));
  json_put(out, "over", json_boolean(t->over));
  json_put(out, "judged", json_boolean(t->judged));
  json_put(out, "leads_to", json_text(t->leads_to));
  json_put(out, "method", json_text(t->method));
  json_put(out, "why", json_text(t->why));
  json_put_text(out, "reason", t->reason);
  json_put(out, "rule", t->rule > 0 ? json_integer(t->rule) : json_null());
  json_put(out, "condition", json_text(t->condition));
  json_put(out, "ambiguous", json_boolean(t->ambiguous));
  json_put_count(out, "failed_calls", t->failed_calls);
  json_put_true(out, "failed", view_turn_failed(t));
  json_put_true(out, "unproven", t->unproven);
  json_put(out, "started", time_json(t->started_ms));
  json_put(out, "duration_ms", json_integer(t->duration_ms));
  json_put(out, "files", json_integer(t->files));
  put_spend(out, &t->spend);
  json_t *list = json_array();
  for (size_t i = 0; i < t->span_count; i++)
    json_array_append_new(list, json_pack("{ss so so}", "kind", view_span_name(t->spans[i].kind),
                                          "from", time_json(t->spans[i].from_ms), "to",
                                          time_json(t->spans[i].to_ms)));
  json_put(out, "spans", list);
  if (t->doing != NULL && t->doing->kind != VIEW_SPAN_KINDS)
    json_put(out, "doing", doing_json(t));
  json_put(out, "stages", view_stages_json(t));
  return out;
}

static json_t *view_rules_json(const struct view_movement *m) {
  json_t *list = json_array();
  for (size_t i = 0; i < m->rule_count; i++) {
    json_t *out = json_object();
    json_put(out, "condition", json_text(m->rules[i].condition));
    json_put(out, "next", json_text(m->rules[i].next));
    json_put(out, "taken", json_integer(m->rules[i].taken));
    json_array_append_new(list, out);
  }
  return list;
}

static json_t *view_errors_json(const struct view_movement *m) {
  json_t *list = json_array();
  for (size_t i = m->rule_count; i < m->rule_count + m->error_count; i++) {
    json_t *out = json_object();
    if (m->rules[i].condition.n > 0)
      json_put(out, "class", json_text(m->rules[i].condition));
    json_put(out, "next", json_text(m->rules[i].next));
    json_put(out, "taken", json_integer(m->rules[i].taken));
    json_array_append_new(list, out);
  }
  return list;
}

static json_t *view_movement_json(const struct view_movement *m) {
  json_t *out = json_object();
  json_put(out, "name", json_text(m->name));
  json_put(out, "who", json_text(m->who));
  json_put(out, "runs", json_integer(m->runs));
  json_put(out, "open", json_boolean(m->open));
  json_put(out, "duration_ms", json_integer(m->duration_ms));
  put_spend(out, &m->spend);
  json_put(out, "rules", view_rules_json(m));
  if (m->error_count > 0)
    json_put(out, "on_error", view_errors_json(m));
  return out;
}

static json_t *chain_json(const struct view_session *v) {
  json_t *out = json_object();
  json_put(out, "state", json_string(view_chain_name(v->chain)));
  json_put(out, "records", json_integer((json_int_t)v->records));
  if (v->chain == VIEW_TORN)
    json_put(out, "torn_bytes", json_integer((json_int_t)v->torn_bytes));
  if (v->chain == VIEW_BAD)
    json_put(out, "error", json_text(v->damage));
  return out;
}

static json_t *bounds_json(const struct view_session *v) {
  json_t *list = json_array();
  for (size_t i = 0; i < v->bound_count; i++) {
    const struct view_bound *b = &v->bounds[i];
    json_t *out = json_object();
    json_put(out, "kind", json_string(view_bound_name(b->kind)));
    json_put_text(out, "of", b->of);
    if (view_bound_has_time(b->kind)) {
      json_put(out, "until", time_json(b->until_ms));
    } else if (b->kind == VIEW_BOUND_STALL) {
      json_put(out, "limit", json_integer(b->limit));
    } else {
      bool budget = b->kind == VIEW_BOUND_BUDGET || b->kind == VIEW_BOUND_CALL;
      bool money = budget && b->unit == BUDGET_COST;
      if (budget)
        json_put(out, "unit", json_string(budget_unit_name(b->unit)));
      json_put(out, "used", money ? json_real((double)b->used / nano) : json_integer(b->used));
      json_put(out, "limit", money ? json_real((double)b->limit / nano) : json_integer(b->limit));
    }
    json_array_append_new(list, out);
  }
  return list;
}

json_t *view_session_json(const struct view_session *v) {
  json_t *out = json_object(), *turns = json_array(), *movements = json_array();
  for (size_t i = 0; i < v->turn_count; i++)
    json_array_append_new(turns, view_turn_json(&v->turns[i]));
  for (size_t i = 0; i < v->movement_count; i++)
    json_array_append_new(movements, view_movement_json(&v->movements[i]));
  json_put(out, "session", json_text(str_from(v->id)));
  json_put(out, "log", json_text(v->log));
  json_put(out, "workflow", json_text(v->workflow));
  json_put(out, "workflow_path", json_text(v->workflow_path));
  json_put(out, "task", json_text(v->task));
  json_put_count(out, "task_more_bytes", (json_int_t)v->task_more_bytes);
  json_put_text(out, "forked_from", v->forked_from);
  json_put(out, "status", json_text(v->status));
  json_put(out, "message", json_text(v->message));
  json_put_text(out, "basis", v->basis);
  json_put_text(out, "evidence", v->evidence);
  json_put(out, "resumable", json_boolean(v->resumable));
  json_put(out, "started", time_json(v->started_ms));
  json_put(out, "updated", time_json(v->last_ms));
  json_put(out, "turns_ms", json_integer(v->turns_ms));
  json_put(out, "spent", v->spent ? json_incref(v->spent) : json_object());
  json_put(out, "methods", v->methods ? json_incref(v->methods) : json_object());
  json_put(out, "said", json_incref(v->said));
  json_put(out, "chain", chain_json(v));
  json_put(out, "bounds", bounds_json(v));
  json_put(out, "movements", movements);
  json_put(out, "turns", turns);
  json_put_count(out, "turns_left_out", v->turns_left_out);
  return out;
}
