/* Follows the calls of turns from work to waiting to judging. */
#include "view/spans.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "format/json_object.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum spans_state { SPANS_NOTHING = VIEW_SPAN_KINDS };

struct spans_call {
  long turn, call;
  int state; /* enum view_span_kind, or SPANS_NOTHING */
  bool judges;
  int64_t since_ms, until_ms;
  char reason[24]; /* of a wait */
};

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
  if (s->count == s->room) {
    s->room = s->room > 0 ? 2 * s->room : 8;
    s->calls = xrealloc(s->calls, s->room * sizeof *s->calls);
  }
  s->calls[s->count] =
      (struct spans_call){.turn = turn, .call = call, .state = SPANS_NOTHING, .since_ms = at_ms};
  return &s->calls[s->count++];
}

/* Returns true if the provider must be left alone: this counts as waiting for the next attempt. */
static bool is_back_off(struct str reason) {
  return str_eq_c(reason, "cooldown") || str_eq_c(reason, "circuit_open");
}

static void spans_wait(struct spans_call *c, const json_t *record, const char *reason,
                       int64_t at_ms) {
  const char *until = json_string_value(json_at(record, "until"));
  (void)snprintf(c->reason, sizeof c->reason, "%s", reason != NULL ? reason : "");
  if (json_at(record, "retry_in_ms") != NULL)
    c->until_ms = at_ms + json_integer_value(json_at(record, "retry_in_ms"));
  else if (until == NULL || !record_time_parse(until, &c->until_ms))
    c->until_ms = 0;
}

static int spans_state(const struct spans_call *c, const json_t *record, struct str type) {
  struct str answer = json_view(json_at(record, "answer"));
  if (str_eq_c(type, "question"))
    return VIEW_PERSON;
  if (str_eq_c(type, "call_end"))
    return json_at(record, "retry_in_ms") != NULL ? VIEW_RETRY : SPANS_NOTHING;
  if (str_eq_c(type, "admission") && str_eq_c(answer, "wait"))
    return is_back_off(json_view(json_at(record, "reason"))) ? VIEW_RETRY : VIEW_WAITING;
  if (str_eq_c(type, "call_start") || str_eq_c(answer, "admitted"))
    return c->judges ? VIEW_JUDGING : VIEW_WORK;
  return SPANS_NOTHING;
}

/* Takes a record. A question has no call: it takes the place of number 0. */
void spans_feed(struct spans *s, const json_t *record, int64_t at_ms, struct view_turn *turn) {
  assert(s != NULL && turn != NULL);
  static const char *const types[] = {"call_start", "call_end", "admission", "question", "answer"};
  struct str type = json_view(json_at(record, "type"));
  bool known = false;
  for (size_t i = 0; i < ARRAY_LEN(types); i++)
    known = known || str_eq_c(type, types[i]);
  if (!known)
    return;
  struct spans_call *c =
      find_call(s, turn->turn, (long)json_integer_value(json_at(record, "call")), at_ms);
  if (c == NULL)
    return;
  if (str_eq_c(type, "call_start"))
    c->judges = json_view(json_at(record, "stage")).n > 0;
  spans_move(c, spans_state(c, record, type), at_ms, turn);
  const char *class = json_string_value(json_at(json_at(record, "error"), "class"));
  const char *reason = json_string_value(json_at(record, "reason"));
  spans_wait(c, record, class != NULL ? class : reason, at_ms);
  if (c->state == SPANS_NOTHING)
    *c = s->calls[--s->count];
}

void spans_close(struct spans *s, int64_t at_ms, struct view_turn *turn, bool stays) {
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

void spans_tell(const struct spans *s, struct view_turn *turn) {
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
  doing->waits_for = str_from(told != NULL ? told->reason : "");
}

void spans_copy(struct spans *out, const struct spans *s) {
  *out = (struct spans){.count = s->count, .room = s->count};
  if (s->count == 0)
    return;
  out->calls = xmalloc(s->count * sizeof *s->calls);
  memcpy(out->calls, s->calls, s->count * sizeof *s->calls);
}

void spans_deinit(struct spans *s) {
  free(s->calls);
  *s = (struct spans){0};
}
