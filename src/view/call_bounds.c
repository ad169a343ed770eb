/* Counts towards what would end a single call. */
#include "view/call_bounds.h"

#include "base/limits.h"
#include "core/budget.h"
#include "core/guard.h"
#include "core/record.h"
#include "format/json_object.h"

#include <assert.h>
#include <string.h>

static int64_t bound_time(const json_t *record) {
  int64_t ms;
  const char *text = json_string_value(json_at(record, "ts"));
  return text != NULL && record_time_parse(text, &ms) ? ms : 0;
}

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
  int64_t at_ms = bound_time(record);
  c->until_ms = at_ms > 0 && c->timeout_ms > 0 ? at_ms + c->timeout_ms : 0;
}

/* Notes an attempt. An earlier one without an end in the log used what it had reported. */
void call_bounds_start(struct call_bounds *b, const json_t *record, size_t movement,
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

static void bound_told(struct call_bound *c, const json_t *usage) {
  struct spend told = spend_of(usage, 0);
  c->told[BUDGET_TOKENS] = told.input + told.output;
  c->told[BUDGET_COST] = told.cost_nano;
}

static void bound_on_event(struct call_bound *c, const json_t *record) {
  struct str event = json_view(json_at(record, "event"));
  if (c->limits.same_tool > 0 && str_eq_c(event, "tool"))
    c->tools = guard_count_tool(c->sign, c->tools, json_at(record, "data"));
  else if (str_eq_c(event, "usage"))
    bound_told(c, json_at(record, "data"));
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

const struct call_bound *call_bounds_of(const struct call_bounds *b, const json_t *record) {
  return bound_of(b, record);
}

void call_bounds_feed(struct call_bounds *b, const json_t *record) {
  assert(b != NULL);
  struct str type = json_view(json_at(record, "type"));
  struct call_bound *c = bound_of(b, record);
  if (c == NULL)
    return;
  if (str_eq_c(type, "call_event"))
    bound_on_event(c, record);
  else if (str_eq_c(type, "admission")) /* its time begins when it has its place */
    set_until(c, record);
  else if (str_eq_c(type, "call_end"))
    bound_on_end(b, c, record);
}

void call_bounds_turn_over(struct call_bounds *b, long turn) {
  for (size_t i = b->count; i-- > 0;)
    if (b->calls[i].turn == turn)
      drop_bound(b, &b->calls[i]);
}

void call_bounds_anew(struct call_bounds *b) {
  for (size_t i = 0; i < b->count; i++)
    memset(b->calls[i].used, 0, sizeof b->calls[i].used);
}
