/* Finds the judgments behind one number of an audit. */
#include "audit/drilldown.h"

#include "base/log.h"
#include "core/record.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const table_names[DRILLDOWN_TABLES] = {
    [AGGREGATE_BY] = "days",         [AGGREGATE_ALL] = "all",
    [AGGREGATE_METHODS] = "methods", [AGGREGATE_STAGES] = "stages",
    [AGGREGATE_FALLS] = "falls",     [AGGREGATE_MOVEMENTS] = "movements",
    [AGGREGATE_JUDGES] = "judges",   [DRILLDOWN_CAUSES] = "causes",
};

static const char *const what_names[DRILLDOWN_WHAT_COUNT] = {
    [DRILLDOWN_ALL] = "all",       [DRILLDOWN_DECIDED] = "decided",
    [DRILLDOWN_LEFT] = "left",     [DRILLDOWN_AMBIGUOUS] = "ambiguous",
    [DRILLDOWN_UNSURE] = "unsure", [DRILLDOWN_UNREADABLE] = "unreadable",
};

const char *drilldown_table_name(int table) {
  assert(table >= 0);
  assert(table < DRILLDOWN_TABLES);
  return table_names[table];
}

const char *drilldown_what_name(enum drilldown_what what) {
  assert(what < DRILLDOWN_WHAT_COUNT);
  return what_names[what];
}

bool drilldown_table_read(const char *word, int *table) {
  for (*table = 0; *table < DRILLDOWN_TABLES; ++*table)
    if (strcmp(word, table_names[*table]) == 0)
      return true;
  return false;
}

bool drilldown_what_read(const char *word, enum drilldown_what *what) {
  for (int i = 0; i < DRILLDOWN_WHAT_COUNT; i++)
    if (strcmp(word, what_names[i]) == 0) {
      *what = (enum drilldown_what)i;
      return true;
    }
  return false;
}

/* --- which --- */

static bool has_keys(const struct drilldown *b, const struct group_by_unit *u) {
  struct buf text = {0};
  bool same = true;
  for (size_t i = 0; same && i < b->keyed->key_count; i++) {
    buf_clear(&text);
    group_by_unit_text(b->keyed, u, i, &b->aggregate->names, &text);
    same = str_eq(buf_view(&text), b->keys[i]);
  }
  buf_deinit(&text);
  return same;
}

static bool is_behind(const struct drilldown *b, const struct group_by_unit *u) {
  const struct row_stage *stage = u->stage;
  bool decided = stage != NULL ? stage->outcome == OUTCOME_MATCHED : u->row->rule > 0;
  switch (b->what) {
  case DRILLDOWN_ALL:
    return true;
  case DRILLDOWN_DECIDED:
    return decided;
  case DRILLDOWN_LEFT:
    return !decided;
  case DRILLDOWN_AMBIGUOUS:
    return u->row->ambiguous;
  case DRILLDOWN_UNSURE:
    return group_by_is_unsure(u->row);
  case DRILLDOWN_UNREADABLE:
    return stage != NULL && stage->outcome == OUTCOME_UNREADABLE;
  case DRILLDOWN_WHAT_COUNT:
    break;
  }
  return false;
}

static void drilldown_add(struct drilldown *b, const struct drilldown_unit *unit) {
  if (b->total++ < b->from || b->count == b->max)
    return;
  b->units = xgrow(b->units, &b->room, b->count + 1, sizeof *b->units);
  b->units[b->count] = *unit;
  print_into(b->units[b->count].session, STORE_ID_BYTES, "%.*s", STORE_ID_BYTES - 1,
             b->rows.session.id);
  b->count++;
}

static void drilldown_on_unit(void *ctx, const struct group_by_unit *u) {
  struct drilldown *b = ctx;
  const struct row *row = u->row;
  if (!is_behind(b, u) || !has_keys(b, u))
    return;
  struct drilldown_unit unit = {.workflow = row->workflow,
                                .outcome = row->outcome,
                                .time_ms = row->time_ms,
                                .turn = row->turn,
                                .movement = row->movement,
                                .rule = row->rule,
                                .method = row->method,
                                .match_method = row->match_method,
                                .provider = row->provider,
                                .model = row->model,
                                .ambiguous = row->ambiguous};
  if (u->stage != NULL) {
    unit.stage = u->stage->stage;
    unit.reason = u->stage->reason;
    unit.to = u->to;
    unit.provider = u->stage->provider;
    unit.model = u->stage->model;
  }
  drilldown_add(b, &unit);
}

static void drilldown_on_row(void *ctx, const struct row *row) {
  struct drilldown *b = ctx;
  if (b->table != DRILLDOWN_CAUSES && row->kind == ROW_JUDGMENT &&
      aggregate_wants_row(b->aggregate, row))
    group_by_units(b->keyed, row, b, drilldown_on_unit);
}

static void drilldown_on_session(void *ctx, const struct row_session *session) {
  struct drilldown *b = ctx;
  if (b->table != DRILLDOWN_CAUSES || !aggregate_wants_session(b->aggregate, session))
    return;
  uint32_t cause = aggregate_cause_of(b->aggregate, session);
  if (cause != DICTIONARY_NONE && str_eq(dictionary_text(&b->aggregate->names, cause), b->keys[0]))
    drilldown_add(b, &(struct drilldown_unit){.workflow = session->workflow,
                                              .outcome = session->outcome,
                                              .time_ms = session->time_ms});
}

static void drilldown_read(void *ctx, const struct store_ref *ref) {
  struct drilldown *b = ctx;
  (void)rows_read(&b->rows, ref);
}

bool drilldown_read_store(struct drilldown *b, struct aggregate *c, const struct store *store,
                          struct err *err) {
  b->aggregate = c;
  b->keyed = b->table != DRILLDOWN_CAUSES ? &c->tables[b->table] : NULL;
  b->rows =
      (struct rows){.names = &c->names, .sink = {drilldown_on_row, drilldown_on_session}, .ctx = b};
  return store_each(store, b, drilldown_read, err);
}

void drilldown_deinit(struct drilldown *b) {
  rows_deinit(&b->rows);
  free(b->units);
  b->units = NULL;
  b->count = b->room = 0;
}

/* --- as data --- */

struct drilldown_column {
  const char *name;
  struct str text; /* p NULL: not known */
  bool bare;       /* in JSON without quotation marks */
};
enum { DRILLDOWN_COLUMNS = 15 };

struct drilldown_row {
  char time[RECORD_TIME_BYTES], turn[24], rule[24];
  struct drilldown_column columns[DRILLDOWN_COLUMNS];
};

static struct str text_if(bool is, const char *text) {
  return is ? str_from(text) : (struct str){NULL, 0};
}

static void drilldown_fill(const struct drilldown *b, const struct drilldown_unit *u,
                           struct drilldown_row *row) {
  const struct name_list *names = &b->aggregate->names;
  const char *ambiguous = u->ambiguous ? "true" : "false";
  bool judged = u->turn > 0;
  print_into(row->turn, sizeof row->turn, "%ld", u->turn);
  print_into(row->rule, sizeof row->rule, "%u", (unsigned)u->rule);
  record_time(u->time_ms, row->time);
  const struct drilldown_column columns[DRILLDOWN_COLUMNS] = {
      {"session", str_from(u->session), false},
      {"turn", text_if(judged, row->turn), true},
      {"time", str_from(row->time), false},
      {"workflow", dictionary_text(names, u->workflow), false},
      {"outcome", dictionary_text(names, u->outcome), false},
      {"movement", dictionary_text(names, u->movement), false},
      {"rule", text_if(u->rule > 0, row->rule), true},
      {"method", dictionary_text(names, u->method), false},
      {"match_method", dictionary_text(names, u->match_method), false},
      {"ambiguous", text_if(judged, ambiguous), true},
      {"stage", dictionary_text(names, u->stage), false},
      {"reason", dictionary_text(names, u->reason), false},
      {"to", dictionary_text(names, u->to), false},
      {"provider", dictionary_text(names, u->provider), false},
      {"model", dictionary_text(names, u->model), false},
  };
  memcpy(row->columns, columns, sizeof columns);
}

void drilldown_csv(const struct drilldown *b, struct buf *out) {
  struct drilldown_row row;
  drilldown_fill(b, &(struct drilldown_unit){0}, &row);
  for (size_t k = 0; k < DRILLDOWN_COLUMNS; k++)
    buf_printf(out, "%s%s", k > 0 ? "," : "", row.columns[k].name);
  buf_puts(out, "\r\n");
  for (size_t i = 0; i < b->count; i++) {
    drilldown_fill(b, &b->units[i], &row);
    for (size_t k = 0; k < DRILLDOWN_COLUMNS; k++) {
      buf_puts(out, k > 0 ? "," : "");
      aggregate_csv_cell(out, row.columns[k].text);
    }
    buf_puts(out, "\r\n");
  }
}

/* Names come from logs, whatever these say. */
static void put_json_text(struct str text, struct buf *out) {
  json_t *value = json_text(text);
  json_write(value, out);
  json_decref(value);
}

void drilldown_json(const struct drilldown *b, struct buf *out) {
  struct drilldown_row row;
  buf_printf(out, "{\"total\":%llu,\"judgments\":[", (unsigned long long)b->total);
  for (size_t i = 0; i < b->count; i++) {
    drilldown_fill(b, &b->units[i], &row);
    buf_puts(out, i > 0 ? ",{" : "{");
    for (size_t k = 0; k < DRILLDOWN_COLUMNS; k++) {
      const struct drilldown_column *column = &row.columns[k];
      buf_printf(out, "%s\"%s\":", k > 0 ? "," : "", column->name);
      if (column->text.p == NULL)
        buf_puts(out, "null");
      else if (column->bare)
        buf_str(out, column->text);
      else
        put_json_text(column->text, out);
    }
    buf_putc(out, '}');
  }
  buf_puts(out, "]}\n");
}
