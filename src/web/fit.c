/* Cuts the texts of a view to what a report has room for. */
#include "web/fit.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "web/clean.h"

#include <assert.h>
#include <string.h>

enum { ESCAPED_BYTES = 5, ROW_TEXTS = 7, TURN_TEXTS = 6 }; /* of one character: &#60; */

static size_t fit_cost(struct str text) {
  struct buf cleaned = {0};
  clean_text(&cleaned, text);
  size_t cost = cleaned.n;
  for (size_t i = 0; i < cleaned.n; i++)
    if (cleaned.p[i] != '\0' && strchr("&<>\"'`", cleaned.p[i]) != NULL)
      cost += ESCAPED_BYTES - 1;
  buf_deinit(&cleaned);
  return cost;
}

/* more: bytes after the text that the view has already left out. */
static struct str fit_rest(struct arena *arena, struct str text, size_t more, size_t max) {
  struct str kept = text;
  struct buf noted = {0};
  size_t cost;
  assert(max > 0);
  while ((cost = fit_cost(kept)) > max) {
    size_t n = (size_t)((double)kept.n * (double)max / (double)cost);
    kept.n = utf8_floor(kept.p, n < kept.n ? n : kept.n - 1);
  }
  if (kept.n == text.n && more == 0)
    return text;
  buf_str(&noted, kept);
  buf_printf(&noted, "... (%zu bytes left out)", text.n - kept.n + more);
  kept = arena_str(arena, buf_view(&noted));
  buf_deinit(&noted);
  return kept;
}

struct str fit_text(struct arena *arena, struct str text, size_t max) {
  return fit_rest(arena, text, 0, max);
}

/* Returns the bytes that each of `count` texts may cost. */
static size_t fit_share(size_t count, size_t most) {
  size_t share = LIMIT_REPORT_SAID_BYTES / (count > 0 ? count : 1);
  if (share > most)
    return most;
  return share < LIMIT_REPORT_SAID_LEAST ? LIMIT_REPORT_SAID_LEAST : share;
}

void fit_folder(struct view_folder *f) {
  size_t max = fit_share(f->count * ROW_TEXTS, LIMIT_VIEW_LINE_BYTES);
  for (size_t i = 0; i < f->count; i++) {
    struct view_row *row = &f->rows[i];
    struct str *const texts[ROW_TEXTS] = {&row->log,      &row->workflow,  &row->task,
                                          &row->movement, &row->providers, &row->message,
                                          &row->wait};
    for (size_t k = 0; k < ROW_TEXTS; k++)
      *texts[k] = fit_text(&f->arena, *texts[k], max);
  }
}

/* Cuts a name. Commands on the page contain movements' names, so an ordinary name stays whole. */
static size_t fit_name(size_t max) {
  return max > LIMIT_REPORT_NAME_BYTES ? max : LIMIT_REPORT_NAME_BYTES;
}

static void fit_turn(struct view_session *v, struct view_turn *turn, size_t max) {
  struct str *const texts[TURN_TEXTS] = {&turn->provider, &turn->what, &turn->leads_to,
                                         &turn->method,   &turn->why,  &turn->condition};
  for (size_t i = 0; i < TURN_TEXTS; i++)
    *texts[i] = fit_text(&v->arena, *texts[i], max);
  turn->movement = fit_text(&v->arena, turn->movement, fit_name(max));
}

static void fit_movement(struct view_session *v, struct view_movement *m, size_t max) {
  m->name = fit_text(&v->arena, m->name, fit_name(max));
  m->who = fit_text(&v->arena, m->who, max);
  for (size_t i = 0; i < m->rule_count; i++) {
    m->rules[i].condition = fit_text(&v->arena, m->rules[i].condition, max);
    m->rules[i].next = fit_text(&v->arena, m->rules[i].next, fit_name(max));
  }
}

void fit_session(struct view_session *v, size_t session_count) {
  struct str *const texts[] = {&v->message, &v->workflow, &v->workflow_path, &v->damage, &v->log};
  size_t own = fit_share(session_count * 2 * (ARRAY_LEN(texts) + 1), LIMIT_VIEW_TEXT_BYTES);
  size_t turn =
      fit_share(session_count * 2 * TURN_TEXTS * (v->turn_count + 1), LIMIT_VIEW_LINE_BYTES);
  v->task = fit_rest(&v->arena, v->task, v->task_more_bytes, own);
  v->task_more_bytes = 0;
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    *texts[i] = fit_text(&v->arena, *texts[i], own);
  for (size_t i = 0; i < v->turn_count; i++)
    fit_turn(v, &v->turns[i], turn);
  for (size_t i = 0; i < v->movement_count; i++)
    fit_movement(v, &v->movements[i], turn);
}
