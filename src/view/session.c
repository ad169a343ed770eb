/* Reads a session's log into what is shown to people. */
#include "view/session.h"

#include "audit/book.h"
#include "audit/summary.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "core/workflow.h"
#include "format/json_object.h"
#include "store/brief.h"
#include "view/bounds.h"
#include "view/spans.h"
#include "view/words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
  struct summary summary;
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

static void view_keep_task(struct view_reading *r, const json_t *start) {
  struct str task = view_word(start, "task");
  size_t kept = view_fitting(task, LIMIT_VIEW_TEXT_BYTES);
  r->v->task = arena_str(&r->v->arena, (struct str){task.p, kept});
  json_int_t whole = json_integer_value(json_at(start, "task_bytes")); /* of one in a blob */
  size_t bytes = whole > (json_int_t)task.n ? (size_t)whole : task.n;
  r->v->task_more_bytes = bytes - kept;
  r->v->task_seq = (uint64_t)json_integer_value(json_at(start, "seq"));
}

static int64_t view_time(const json_t *record) {
  int64_t ms;
  const char *text = json_string_value(json_at(record, "ts"));
  return text != NULL && record_time_parse(text, &ms) ? ms : 0;
}

/* --- the workflow --- */

static struct str next_name(const struct workflow *wf, int next) {
  if (next == NEXT_COMPLETE)
    return STR("COMPLETE");
  return next == NEXT_ABORT ? STR("ABORT") : wf->movements[next].name;
}

static void keep_who(struct view_reading *r, const struct workflow *wf, const struct movement *m,
                     struct view_movement *out) {
  struct buf text = {0};
  if (m->child_count > 0)
    buf_printf(&text, "%zu at once", m->child_count);
  else if (m->argv != NULL)
    buf_printf(&text, "command %s", m->argv[0]);
  else
    buf_str(&text, m->provider.n > 0 ? m->provider : wf->provider);
  out->who = view_keep(r, buf_view(&text));
  buf_deinit(&text);
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
    keep_who(r, wf, m, out);
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
  if (v->turn_count == r->room) {
    r->room = r->room > 0 ? 2 * r->room : 16;
    v->turns = xrealloc(v->turns, r->room * sizeof *v->turns);
  }
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
  const struct turn_line *line = summary_feed_json(&r->summary, record);
  int64_t at_ms = view_time(record);
  if (at_ms > 0)
    v->last_ms = at_ms;
  v->newer = v->newer || json_integer_value(json_at(record, "v")) > RECORD_VERSION;
  v->asked = v->asked || view_is_type(record, "question");
  if (view_is_type(record, "session_start") && !r->begun) {
    r->begun = true;
    v->started_ms = at_ms;
    view_keep_task(r, record);
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
  struct brief b;
  struct err err;
  if (strcmp(r->summary.status, "running") != 0)
    return view_keep(r, str_from(r->summary.status));
  if (!store_is_owned(ref))
    return STR("open");
  if (!brief_read(&b, ref, &err))
    return STR("running");
  struct str status = view_keep(r, str_from(brief_status(&b)));
  brief_deinit(&b);
  return status;
}

static void keep_before(struct view_reading *r) {
  size_t bytes = r->v->movement_count * sizeof *r->v->movements;
  spans_copy(&r->before, &r->spans);
  r->movements_before = xmalloc(bytes + 1);
  if (bytes > 0)
    memcpy(r->movements_before, r->v->movements, bytes);
}

static void keep_open_turn(struct view_reading *r, const struct view_turn *turn) {
  if (r->open_count % 16 == 0)
    r->open = xrealloc(r->open, (r->open_count + 16) * sizeof *r->open);
  r->open[r->open_count++] = (struct open_turn){
      .index = (size_t)(turn - r->v->turns),
      .span_count = turn->span_count,
      .last = turn->span_count > 0 ? turn->spans[turn->span_count - 1] : (struct view_span){0}};
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
    keep_open_turn(r, turn);
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

/* Lists the open turns; the summary has them newest first. */
static void list_open(struct view_reading *r) {
  size_t *places = arena_array(&r->of_open, r->open_count, sizeof *places);
  for (size_t i = 0; i < r->open_count; i++)
    places[i] = r->open[r->open_count - 1 - i].index;
  r->v->open = places;
  r->v->open_count = r->open_count;
}

bool view_session_is_over(const struct view_session *v) {
  return str_eq_c(v->status, "complete") || str_eq_c(v->status, "abort") ||
         str_eq_c(v->status, "cancelled");
}

static void view_finish(struct view_reading *r, const struct store_ref *ref,
                        const struct book *book) {
  struct view_session *v = r->v;
  keep_before(r);
  r->finished = true;
  (void)snprintf(v->id, sizeof v->id, "%s", r->summary.session);
  char named[STORE_ID_BYTES];
  store_ref_id(ref, named);
  v->misnamed = named[0] != '\0' && strcmp(named, v->id) != 0;
  v->log = view_keep(r, str_from(ref->name));
  v->status = view_status(r, ref);
  v->message = view_keep(r, buf_view(&r->summary.message));
  v->resumable = r->summary.resumable;
  v->resume_flags = view_keep(r, str_from(summary_resume_flags(&r->summary)));
  v->turns_ms = summary_duration(&r->summary);
  v->spent = summary_spent(&r->summary);
  v->methods = json_incref(r->summary.methods);
  keep_open(r);
  list_open(r);
  if (!view_session_is_over(v))
    bounds_list(&r->bounds, v, &r->summary.spends.all, &r->of_open);
  v->records = book->records;
  v->chain = VIEW_SOUND;
  if (book->state == BOOK_DAMAGED) {
    v->chain = VIEW_BAD;
    v->damage = view_keep(r, str_from(book->damage.text));
  } else if (book->state == BOOK_TORN && !store_is_owned(ref)) {
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

bool view_reading_go_on(struct view_reading *r, struct book *book, struct err *err) {
  assert(r != NULL && book != NULL);
  json_t *record;
  if (r->finished)
    view_unfinish(r);
  while ((record = book_next(book)) != NULL) {
    view_take(r, record);
    json_decref(record);
  }
  r->unproven = book->state == BOOK_DAMAGED;
  while ((record = book_next_unproven(book)) != NULL) {
    view_take(r, record);
    json_decref(record);
  }
  if (!r->begun)
    return err_set(err, ERR_NOT_FOUND, "%.200s is not the log of a session", book->ref.name);
  view_finish(r, &book->ref, book);
  return true;
}

static void view_reading_free(struct view_reading *r) {
  if (r == NULL)
    return;
  spans_deinit(&r->spans);
  spans_deinit(&r->before);
  summary_deinit(&r->summary);
  arena_deinit(&r->of_open);
  free(r->movements_before);
  free(r->open);
  free(r);
}

bool view_session_read(struct view_session *v, const struct store_ref *ref, struct err *err) {
  assert(v != NULL && ref != NULL);
  struct book book;
  *v = (struct view_session){0};
  if (!book_open(&book, ref, false, err))
    return false;
  v->reading = view_reading_new(v);
  bool ok = view_reading_go_on(v->reading, &book, err);
  book_close(&book);
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
  view_reading_free(v->reading);
  *v = (struct view_session){0};
}
