/* Reads a session's log into what is shown to people. */
#include "view/session_view.h"

#include "audit/turn_lines.h"
#include "audit/verified_reader.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/budget.h"
#include "core/record.h"
#include "core/workflow.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "store/summary.h"
#include "view/bounds.h"
#include "view/number_format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- what a turn spends its time on --- */

enum spans_state { SPANS_NOTHING = VIEW_SPAN_KINDS };

struct spans_call {
  long turn, call;
  int state; /* enum view_span_kind, or SPANS_NOTHING */
  bool judges;
  int64_t since_ms, until_ms;
  char reason[24]; /* of a wait */
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

/* Returns true if the provider must be left alone: this counts as waiting for the next attempt. */
static bool is_back_off(struct str reason) {
  return str_eq_c(reason, "cooldown") || str_eq_c(reason, "circuit_open");
}

static void spans_wait(struct spans_call *c, const json_t *record, const char *reason,
                       int64_t at_ms) {
  const char *until = json_string_value(json_at(record, "until"));
  print_into(c->reason, sizeof c->reason, "%s", reason != NULL ? reason : "");
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

/* Takes a record of that time. `turn` owns a pointer to its spans (malloc), which may change. */
/* Takes a record. A question has no call: it takes the place of number 0. */
static void spans_feed(struct spans *s, const json_t *record, int64_t at_ms,
                       struct view_turn *turn) {
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
  doing->waits_for = str_from(told != NULL ? told->reason : "");
}

/* Copies what is under way into `out`, a zeroed one. */
static void spans_copy(struct spans *out, const struct spans *s) {
  *out = (struct spans){.count = s->count, .room = s->count};
  if (s->count == 0)
    return;
  out->calls = xmalloc(s->count * sizeof *s->calls);
  memcpy(out->calls, s->calls, s->count * sizeof *s->calls);
}

static void spans_deinit(struct spans *s) {
  free(s->calls);
  *s = (struct spans){0};
}

/* --- what is read --- */

/* Keeps an open turn as it was before its last span was closed for a viewer. */
struct open_turn {
  size_t index;
  size_t span_count;
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

static struct str view_word(const json_t *object, const char *key) {
  return json_view(json_object_get(object, key));
}

static bool view_is_type(const json_t *record, const char *type) {
  return str_eq_c(view_word(record, "type"), type);
}

static size_t text_slot(struct str text) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < text.n; i++)
    hash = (hash ^ (unsigned char)text.p[i]) * 16777619u;
  return hash % RECENT_TEXTS;
}

/* Keeps a text once: names, conditions and methods repeat in many turns. */
static struct str view_keep(struct view_reading *r, struct str text) {
  if (text.n == 0)
    return STR("");
  if (!r->finished && text.n <= RECENT_TEXT_BYTES) {
    struct str *recent = &r->recent[text_slot(text)];
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

static void keep_workflow(struct view_reading *r, const json_t *start) {
  struct err err;
  json_t *doc = json_at(start, "workflow");
  struct workflow *wf = json_is_object(doc) ? workflow_build(doc, &err) : NULL;
  r->v->workflow = view_keep(r, view_word(doc, "name"));
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
    struct buf text = {0};
    if (m->child_count > 0)
      buf_printf(&text, "%zu at once", m->child_count);
    else if (m->argv != NULL)
      buf_printf(&text, "command %s", m->argv[0]);
    else
      buf_str(&text, m->provider.n > 0 ? m->provider : wf->provider);
    out->who = view_keep(r, buf_view(&text));
    buf_deinit(&text);
    out->rules = arena_array(arena, m->rule_count, sizeof *out->rules);
    out->rule_count = m->rule_count;
    for (size_t k = 0; k < m->rule_count; k++)
      out->rules[k] = (struct view_rule){
          .condition = view_keep(r, m->rules[k].condition),
          .next = m->group == NO_GROUP ? view_keep(r, next_name(wf, m->rule_next[k])) : STR("")};
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
      (struct view_turn){.turn = (long)json_integer_value(json_at(record, "turn")),
                         .run = (long)json_integer_value(json_at(record, "movement_iteration")),
                         .parent = (long)json_integer_value(json_at(record, "parent_turn")),
                         .movement = view_keep(r, view_word(record, "movement")),
                         .started_ms = view_time(record),
                         .unproven = r->unproven};
  struct view_movement *m = view_movement_of(v, view_word(record, "movement"));
  if (m != NULL)
    m->runs++;
}

static void keep_stages(struct view_reading *r, const json_t *judgment, struct view_turn *turn) {
  const json_t *stages = json_at(judgment, "stages"), *stage;
  size_t i;
  turn->stage_count = 0;
  turn->ambiguous = json_is_true(json_at(judgment, "ambiguous")); /* of older logs */
  turn->stages = arena_array(&r->v->arena, json_array_size(stages), sizeof *turn->stages);
  json_array_foreach(stages, i, stage) {
    struct str error = json_view(json_array_get(json_at(stage, "errors"), 0));
    turn->ambiguous |= str_eq_c(view_word(stage, "outcome"), "ambiguous");
    turn->stages[turn->stage_count++] =
        (struct view_stage){.stage = view_keep(r, view_word(stage, "stage")),
                            .outcome = view_keep(r, view_word(stage, "outcome")),
                            .why = view_keep(r, error.n > 0 ? error : view_word(stage, "class")),
                            .provider = view_keep(r, view_word(stage, "provider")),
                            .vote = (long)json_integer_value(json_at(stage, "vote")),
                            .calls = (long)json_array_size(json_at(stage, "calls")),
                            .duration_ms = json_integer_value(json_at(stage, "duration_ms"))};
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
    turn->rule = (long)json_integer_value(json_at(record, "rule"));
    turn->condition = view_keep(r, view_word(record, "condition"));
    keep_stages(r, record, turn);
  }
  struct view_movement *m = view_movement_of(r->v, turn->movement);
  if (m != NULL && turn->rule >= 1 && (size_t)turn->rule <= m->rule_count)
    m->rules[turn->rule - 1].taken++;
  sum_in_movement(r->v, turn, 1);
}

/* --- records --- */

static void on_call(struct view_reading *r, const json_t *record, int64_t at_ms) {
  struct view_turn *turn = view_turn_of(r->v, (long)json_integer_value(json_at(record, "turn")));
  const json_t *error = json_at(record, "error");
  if (turn == NULL)
    return;
  spans_feed(&r->spans, record, at_ms, turn);
  if (!view_is_type(record, "call_end"))
    return;
  turn->files += (long)json_array_size(json_at(record, "files"));
  turn->failed_calls += error != NULL && !str_eq_c(view_word(error, "class"), "cancelled");
}

static void view_fold(struct view_reading *r, const json_t *record) {
  struct view_session *v = r->v;
  const struct turn_line *line = turn_lines_feed_json(&r->summary, record);
  int64_t at_ms = view_time(record);
  if (at_ms > 0)
    v->last_ms = at_ms;
  v->newer = v->newer || json_integer_value(json_at(record, "v")) > RECORD_VERSION;
  v->asked = v->asked || view_is_type(record, "question");
  if (view_is_type(record, "session_start") && !r->begun) {
    r->begun = true;
    v->started_ms = at_ms;
    struct str task = view_word(record, "task");
    size_t kept = view_fitting(task, LIMIT_VIEW_TEXT_BYTES);
    r->v->task = arena_str(&r->v->arena, (struct str){task.p, kept});
    json_int_t whole = json_integer_value(json_at(record, "task_bytes")); /* of one in a blob */
    size_t bytes = whole > (json_int_t)task.n ? (size_t)whole : task.n;
    r->v->task_more_bytes = bytes - kept;
    r->v->task_seq = (uint64_t)json_integer_value(json_at(record, "seq"));
    v->workflow_path = view_keep(r, view_word(record, "workflow_path"));
    v->submitted = json_is_true(json_at(json_at(record, "config"), "submitted"));
    keep_workflow(r, record);
  } else if (view_is_type(record, "carried")) {
    v->forked_from = view_keep(r, view_word(json_at(record, "parent"), "session"));
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
  struct summary b;
  struct err err;
  if (strcmp(r->summary.status, "running") != 0)
    return view_keep(r, str_from(r->summary.status));
  if (!store_is_owned(ref))
    return STR("open");
  if (!summary_read(&b, ref, &err))
    return STR("running");
  struct str status = view_keep(r, str_from(summary_status(&b)));
  summary_deinit(&b);
  return status;
}

/* Takes back what was said about open turns. */
static void view_unfinish(struct view_reading *r) {
  struct view_session *v = r->v;
  size_t bytes = v->movement_count * sizeof *v->movements;
  for (size_t i = 0; i < r->open_count; i++) {
    struct view_turn *turn = &v->turns[r->open[i].index];
    turn->span_count = r->open[i].span_count;
    if (turn->span_count > 0)
      turn->spans[turn->span_count - 1] = r->open[i].last;
    turn->provider = turn->what = turn->leads_to = turn->method = turn->why = STR("");
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
  v->spent = v->methods = NULL;
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
        .index = (size_t)(turn - r->v->turns),
        .span_count = turn->span_count,
        .last = turn->span_count > 0 ? turn->spans[turn->span_count - 1] : (struct view_span){0}};
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
  spans_copy(&r->before, &r->spans);
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
  v->resumable = r->summary.resumable;
  v->resume_flags = view_keep(r, str_from(turn_lines_resume_flags(&r->summary)));
  v->turns_ms = turn_lines_duration(&r->summary);
  v->spent = turn_lines_spent(&r->summary);
  v->methods = json_incref(r->summary.methods);
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
  struct verified_reader book;
  *v = (struct view_session){0};
  if (!verified_open(&book, ref, false, err))
    return false;
  v->reading = view_reading_new(v);
  bool ok = view_reading_go_on(v->reading, &book, err);
  verified_close(&book);
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
  if (s->unpriced > 0)
    json_put(out, "unpriced", json_integer(s->unpriced));
}

static json_t *spans_json(const struct view_turn *t) {
  json_t *list = json_array();
  for (size_t i = 0; i < t->span_count; i++)
    json_array_append_new(list, json_pack("{ss so so}", "kind", view_span_name(t->spans[i].kind),
                                          "from", time_json(t->spans[i].from_ms), "to",
                                          time_json(t->spans[i].to_ms)));
  return list;
}

static json_t *doing_json(const struct view_turn *t) {
  json_t *out = json_object();
  json_put(out, "kind", json_string(view_span_name(t->doing->kind)));
  json_put(out, "since", time_json(t->doing->since_ms));
  json_put(out, "until", time_json(t->doing->until_ms));
  if (t->doing->waits_for.n > 0)
    json_put(out, "reason", json_text(t->doing->waits_for));
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
    if (s->vote > 0)
      json_put(out, "vote", json_integer(s->vote));
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
  if (t->parent > 0)
    json_put(out, "parent", json_integer(t->parent));
  json_put(out, "provider", json_text(t->provider));
  json_put(out, "what", json_text(t->what));
  json_put(out, "over", json_boolean(t->over));
  json_put(out, "judged", json_boolean(t->judged));
  json_put(out, "leads_to", json_text(t->leads_to));
  json_put(out, "method", json_text(t->method));
  json_put(out, "why", json_text(t->why));
  json_put(out, "rule", t->rule > 0 ? json_integer(t->rule) : json_null());
  json_put(out, "condition", json_text(t->condition));
  json_put(out, "ambiguous", json_boolean(t->ambiguous));
  if (t->failed_calls > 0)
    json_put(out, "failed_calls", json_integer(t->failed_calls));
  if (view_turn_failed(t))
    json_put(out, "failed", json_true());
  if (t->unproven)
    json_put(out, "unproven", json_true());
  json_put(out, "started", time_json(t->started_ms));
  json_put(out, "duration_ms", json_integer(t->duration_ms));
  json_put(out, "files", json_integer(t->files));
  put_spend(out, &t->spend);
  json_put(out, "spans", spans_json(t));
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

static json_t *view_movement_json(const struct view_movement *m) {
  json_t *out = json_object();
  json_put(out, "name", json_text(m->name));
  json_put(out, "who", json_text(m->who));
  json_put(out, "runs", json_integer(m->runs));
  json_put(out, "open", json_boolean(m->open));
  json_put(out, "duration_ms", json_integer(m->duration_ms));
  put_spend(out, &m->spend);
  json_put(out, "rules", view_rules_json(m));
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
    if (b->of.n > 0)
      json_put(out, "of", json_text(b->of));
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
  if (v->task_more_bytes > 0)
    json_put(out, "task_more_bytes", json_integer((json_int_t)v->task_more_bytes));
  if (v->forked_from.n > 0)
    json_put(out, "forked_from", json_text(v->forked_from));
  json_put(out, "status", json_text(v->status));
  json_put(out, "message", json_text(v->message));
  json_put(out, "resumable", json_boolean(v->resumable));
  json_put(out, "started", time_json(v->started_ms));
  json_put(out, "updated", time_json(v->last_ms));
  json_put(out, "turns_ms", json_integer(v->turns_ms));
  json_put(out, "spent", v->spent ? json_incref(v->spent) : json_object());
  json_put(out, "methods", v->methods ? json_incref(v->methods) : json_object());
  json_put(out, "chain", chain_json(v));
  json_put(out, "bounds", bounds_json(v));
  json_put(out, "movements", movements);
  json_put(out, "turns", turns);
  if (v->turns_left_out > 0)
    json_put(out, "turns_left_out", json_integer(v->turns_left_out));
  return out;
}
