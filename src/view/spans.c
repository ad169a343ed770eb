/* Follows the calls of turns from work to waiting to judging. */
#include "view/spans.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum spans_state { SPANS_NOTHING = VIEW_SPAN_KINDS };

struct spans_call {
  long turn, call;
  int state; /* enum view_span_kind, or SPANS_NOTHING */
  bool judges;
  int64_t since_ms;
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

void spans_feed(struct spans *s, const json_t *record, int64_t at_ms, struct view_turn *turn) {
  assert(s != NULL && turn != NULL);
  struct str type = json_view(json_at(record, "type"));
  struct str answer = json_view(json_at(record, "answer"));
  long call = (long)json_integer_value(json_at(record, "call"));
  bool starts = str_eq_c(type, "call_start"), ends = str_eq_c(type, "call_end");
  bool admits = str_eq_c(type, "admission");
  if (!starts && !ends && !admits)
    return;
  struct spans_call *c = find_call(s, turn->turn, call, at_ms);
  if (c == NULL)
    return;
  if (starts)
    c->judges = json_view(json_at(record, "stage")).n > 0;
  if (ends)
    spans_move(c, json_at(record, "retry_in_ms") ? VIEW_RETRY : SPANS_NOTHING, at_ms, turn);
  else if (admits && str_eq_c(answer, "wait"))
    spans_move(c, VIEW_WAITING, at_ms, turn);
  else if (starts || str_eq_c(answer, "admitted"))
    spans_move(c, c->judges ? VIEW_JUDGING : VIEW_WORK, at_ms, turn);
  else
    spans_move(c, SPANS_NOTHING, at_ms, turn);
  if (c->state == SPANS_NOTHING)
    *c = s->calls[--s->count];
}

void spans_close(struct spans *s, int64_t at_ms, struct view_turn *turn) {
  for (size_t i = s->count; i-- > 0;) {
    if (s->calls[i].turn != turn->turn)
      continue;
    spans_move(&s->calls[i], SPANS_NOTHING, at_ms, turn);
    s->calls[i] = s->calls[--s->count];
  }
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
