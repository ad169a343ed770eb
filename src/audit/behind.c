/* Finds the judgments behind one number of an audit. */
#include "audit/behind.h"

#include "base/log.h"
#include "core/record.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const table_names[BEHIND_TABLES] = {
    [CENSUS_BY] = "days",       [CENSUS_ALL] = "all",       [CENSUS_METHODS] = "methods",
    [CENSUS_STAGES] = "stages", [CENSUS_FALLS] = "falls",   [CENSUS_MOVEMENTS] = "movements",
    [CENSUS_JUDGES] = "judges", [BEHIND_CAUSES] = "causes",
};

static const char *const what_names[BEHIND_WHAT_COUNT] = {
    [BEHIND_ALL] = "all",       [BEHIND_DECIDED] = "decided",
    [BEHIND_LEFT] = "left",     [BEHIND_AMBIGUOUS] = "ambiguous",
    [BEHIND_UNSURE] = "unsure", [BEHIND_UNREADABLE] = "unreadable",
};

const char *behind_table_name(int table) {
  assert(table >= 0);
  assert(table < BEHIND_TABLES);
  return table_names[table];
}

const char *behind_what_name(enum behind_what what) {
  assert(what < BEHIND_WHAT_COUNT);
  return what_names[what];
}

bool behind_table_read(const char *word, int *table) {
  for (*table = 0; *table < BEHIND_TABLES; ++*table)
    if (strcmp(word, table_names[*table]) == 0)
      return true;
  return false;
}

bool behind_what_read(const char *word, enum behind_what *what) {
  for (int i = 0; i < BEHIND_WHAT_COUNT; i++)
    if (strcmp(word, what_names[i]) == 0) {
      *what = (enum behind_what)i;
      return true;
    }
  return false;
}

/* --- which --- */

static bool has_keys(const struct behind *b, const struct tally_unit *u) {
  struct buf text = {0};
  bool same = true;
  for (size_t i = 0; same && i < b->keyed->key_count; i++) {
    buf_clear(&text);
    tally_unit_text(b->keyed, u, i, &b->census->names, &text);
    same = str_eq(buf_view(&text), b->keys[i]);
  }
  buf_deinit(&text);
  return same;
}

static bool is_behind(const struct behind *b, const struct tally_unit *u) {
  const struct row_stage *stage = u->stage;
  bool decided = stage != NULL ? stage->outcome == OUTCOME_MATCHED : u->row->rule > 0;
  switch (b->what) {
  case BEHIND_ALL:
    return true;
  case BEHIND_DECIDED:
    return decided;
  case BEHIND_LEFT:
    return !decided;
  case BEHIND_AMBIGUOUS:
    return u->row->ambiguous;
  case BEHIND_UNSURE:
    return tally_is_unsure(u->row);
  case BEHIND_UNREADABLE:
    return stage != NULL && stage->outcome == OUTCOME_UNREADABLE;
  case BEHIND_WHAT_COUNT:
    break;
  }
  return false;
}

static void behind_add(struct behind *b, const struct behind_unit *unit) {
  if (b->total++ < b->from || b->count == b->max)
    return;
  if (b->count == b->room) {
    b->room = b->room > 0 ? 2 * b->room : 64;
    b->units = xrealloc(b->units, b->room * sizeof *b->units);
  }
  b->units[b->count] = *unit;
  (void)snprintf(b->units[b->count].session, STORE_ID_BYTES, "%.*s", STORE_ID_BYTES - 1,
                 b->rows.session.id);
  b->count++;
}

static void behind_on_unit(void *ctx, const struct tally_unit *u) {
  struct behind *b = ctx;
  const struct row *row = u->row;
  if (!is_behind(b, u) || !has_keys(b, u))
    return;
  struct behind_unit unit = {.workflow = row->workflow,
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
  behind_add(b, &unit);
}

static void behind_on_row(void *ctx, const struct row *row) {
  struct behind *b = ctx;
  if (b->table != BEHIND_CAUSES && row->kind == ROW_JUDGMENT && census_wants_row(b->census, row))
    tally_units(b->keyed, row, b, behind_on_unit);
}

static void behind_on_session(void *ctx, const struct row_session *session) {
  struct behind *b = ctx;
  if (b->table != BEHIND_CAUSES || !census_wants_session(b->census, session))
    return;
  uint32_t cause = census_cause_of(b->census, session);
  if (cause != NAMES_NONE && str_eq(names_text(&b->census->names, cause), b->keys[0]))
    behind_add(b, &(struct behind_unit){.workflow = session->workflow,
                                        .outcome = session->outcome,
                                        .time_ms = session->time_ms});
}

static void behind_read(void *ctx, const struct store_ref *ref) {
  struct behind *b = ctx;
  (void)rows_read(&b->rows, ref);
}

bool behind_read_store(struct behind *b, struct census *c, const struct store *store,
                       struct err *err) {
  b->census = c;
  b->keyed = b->table != BEHIND_CAUSES ? &c->tables[b->table] : NULL;
  b->rows = (struct rows){.names = &c->names, .sink = {behind_on_row, behind_on_session}, .ctx = b};
  return store_each(store, b, behind_read, err);
}

void behind_deinit(struct behind *b) {
  rows_deinit(&b->rows);
  free(b->units);
  b->units = NULL;
  b->count = b->room = 0;
}

/* --- as data --- */

struct behind_column {
  const char *name;
  struct str text; /* p NULL: not known */
  bool bare;       /* in JSON without quotation marks */
};
enum { BEHIND_COLUMNS = 15 };

struct behind_row {
  char time[RECORD_TIME_BYTES], turn[24], rule[24];
  struct behind_column columns[BEHIND_COLUMNS];
};

static struct str text_if(bool is, const char *text) {
  return is ? str_from(text) : (struct str){NULL, 0};
}

static void behind_fill(const struct behind *b, const struct behind_unit *u,
                        struct behind_row *row) {
  const struct name_list *names = &b->census->names;
  const char *ambiguous = u->ambiguous ? "true" : "false";
  bool judged = u->turn > 0;
  (void)snprintf(row->turn, sizeof row->turn, "%ld", u->turn);
  (void)snprintf(row->rule, sizeof row->rule, "%u", (unsigned)u->rule);
  record_time(u->time_ms, row->time);
  const struct behind_column columns[BEHIND_COLUMNS] = {
      {"session", str_from(u->session), false},
      {"turn", text_if(judged, row->turn), true},
      {"time", str_from(row->time), false},
      {"workflow", names_text(names, u->workflow), false},
      {"outcome", names_text(names, u->outcome), false},
      {"movement", names_text(names, u->movement), false},
      {"rule", text_if(u->rule > 0, row->rule), true},
      {"method", names_text(names, u->method), false},
      {"match_method", names_text(names, u->match_method), false},
      {"ambiguous", text_if(judged, ambiguous), true},
      {"stage", names_text(names, u->stage), false},
      {"reason", names_text(names, u->reason), false},
      {"to", names_text(names, u->to), false},
      {"provider", names_text(names, u->provider), false},
      {"model", names_text(names, u->model), false},
  };
  memcpy(row->columns, columns, sizeof columns);
}

void behind_csv(const struct behind *b, struct buf *out) {
  struct behind_row row;
  behind_fill(b, &(struct behind_unit){0}, &row);
  for (size_t k = 0; k < BEHIND_COLUMNS; k++)
    buf_printf(out, "%s%s", k > 0 ? "," : "", row.columns[k].name);
  buf_puts(out, "\r\n");
  for (size_t i = 0; i < b->count; i++) {
    behind_fill(b, &b->units[i], &row);
    for (size_t k = 0; k < BEHIND_COLUMNS; k++) {
      buf_puts(out, k > 0 ? "," : "");
      census_csv_cell(out, row.columns[k].text);
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

void behind_json(const struct behind *b, struct buf *out) {
  struct behind_row row;
  buf_printf(out, "{\"total\":%llu,\"judgments\":[", (unsigned long long)b->total);
  for (size_t i = 0; i < b->count; i++) {
    behind_fill(b, &b->units[i], &row);
    buf_puts(out, i > 0 ? ",{" : "{");
    for (size_t k = 0; k < BEHIND_COLUMNS; k++) {
      const struct behind_column *column = &row.columns[k];
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
