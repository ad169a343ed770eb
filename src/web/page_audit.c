/* Writes the page that counts judgments, and the same as data. */
#include "audit/aggregate.h"
#include "audit/agree.h"
#include "audit/kappa.h"
#include "base/log.h"
#include "core/record.h"
#include "format/json_write.h"
#include "judge/stage.h"
#include "view/number_format.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <stdlib.h>
#include <string.h>

/* --- the judgments behind a number --- */

/* Finds the judgments behind one number of an audit: as many as the number says.
 *
 *   struct drilldown b = {.table = AGGREGATE_FALLS, .what = DRILLDOWN_LEFT, .keys = {...}, .max =
 *       200};
 *   drilldown_read_store(&b, aggregate, &store, &err)
 *       applies the aggregate's filters; with the table
 *   b.units[i] ... b.count of b.total; drilldown_deinit(&b)
 *
 * In a table of stages each stage of a judgment counts, and in DRILLDOWN_CAUSES each session.
 * Newest sessions come first. Memory: b.max units. */

enum { DRILLDOWN_CAUSES = AGGREGATE_TABLE_COUNT, DRILLDOWN_TABLES };
enum drilldown_what {
  DRILLDOWN_ALL,
  DRILLDOWN_DECIDED, /* decided by a rule; stages: by this stage */
  DRILLDOWN_LEFT,    /* the others */
  DRILLDOWN_AMBIGUOUS,
  DRILLDOWN_UNSURE,
  DRILLDOWN_UNREADABLE, /* only stages */
  DRILLDOWN_WHAT_COUNT
};
/* Describes one judgment, stage or session. Words are numbers of the aggregate's names. */
struct drilldown_unit {
  char session[STORE_ID_BYTES];
  uint32_t workflow, outcome; /* outcome: the session's */
  int64_t time_ms;
  long turn; /* 0: a session, and nothing below is known */
  uint32_t movement, rule, method, match_method, provider, model;
  bool ambiguous;
  uint32_t stage, reason, to; /* set for a stage: `stage` is not DICTIONARY_NONE */
};
struct drilldown {
  int table; /* enum aggregate_table, or DRILLDOWN_CAUSES */
  enum drilldown_what what;
  struct str keys[GROUP_BY_KEYS_MAX]; /* the group's keys as texts */
  uint64_t from;                      /* number of units to skip */
  size_t max;
  struct drilldown_unit *units;
  size_t count, room;
  uint64_t total;
  const struct aggregate *aggregate;
  const struct group_by_table *keyed;
  struct rows rows;
};

/* Words in addresses. */
static const char *const table_names[DRILLDOWN_TABLES] = {
    [AGGREGATE_BY] = "days",         [AGGREGATE_ALL] = "all",
    [AGGREGATE_METHODS] = "methods", [AGGREGATE_STAGES] = "stages",
    [AGGREGATE_FALLS] = "falls",     [AGGREGATE_MOVEMENTS] = "movements",
    [AGGREGATE_JUDGES] = "judges",   [AGGREGATE_MARKS] = "workers",
    [DRILLDOWN_CAUSES] = "causes",
};

static const char *const what_names[DRILLDOWN_WHAT_COUNT] = {
    [DRILLDOWN_ALL] = "all",       [DRILLDOWN_DECIDED] = "decided",
    [DRILLDOWN_LEFT] = "left",     [DRILLDOWN_AMBIGUOUS] = "ambiguous",
    [DRILLDOWN_UNSURE] = "unsure", [DRILLDOWN_UNREADABLE] = "unreadable",
};

static bool drilldown_table_read(const char *word, int *table) {
  for (*table = 0; *table < DRILLDOWN_TABLES; ++*table)
    if (strcmp(word, table_names[*table]) == 0)
      return true;
  return false;
}

static bool drilldown_what_read(const char *word, enum drilldown_what *what) {
  for (int i = 0; i < DRILLDOWN_WHAT_COUNT; i++)
    if (strcmp(word, what_names[i]) == 0) {
      *what = (enum drilldown_what)i;
      return true;
    }
  return false;
}

/* --- which --- */

static bool has_keys(const struct drilldown *b, const struct group_by_unit *u) {
  buf_auto_t text = {0};
  bool same = true;
  for (size_t i = 0; same && i < b->keyed->key_count; i++) {
    buf_clear(&text);
    group_by_unit_text(b->keyed, u, i, &b->aggregate->names, &text);
    same = str_eq(buf_view(&text), b->keys[i]);
  }
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

static bool drilldown_read_store(struct drilldown *b, struct aggregate *c,
                                 const struct store *store, struct err *err) {
  b->aggregate = c;
  b->keyed = b->table != DRILLDOWN_CAUSES ? &c->tables[b->table] : NULL;
  b->rows =
      (struct rows){.names = &c->names, .sink = {drilldown_on_row, drilldown_on_session}, .ctx = b};
  return store_each(store, b, drilldown_read, err);
}

static void drilldown_deinit(struct drilldown *b) {
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

/* Appends the units as CSV (RFC 4180) with a header line, and as a list of objects. */
static void drilldown_csv(const struct drilldown *b, struct buf *out) {
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

static void drilldown_json(const struct drilldown *b, struct buf *out) {
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
      else {
        /* Names come from logs, whatever these say. */
        json_auto_t *value = json_text(column->text);
        json_write(value, out);
      }
    }
    buf_putc(out, '}');
  }
  buf_puts(out, "]}\n");
}

/* --- how raters agree --- */

enum { AGREE_PAIRS = 50 };

static void put_agree_pair(struct html *h, const struct agree_pair *pair) {
  struct kappa k = agree_kappa(pair);
  buf_auto_t advice = {0};
  HTML_FMT(h,
           "<tr><th scope=row><bdi>%s</bdi><br><span "
           "class=dim><bdi>%s</bdi></span></th><td><bdi>%s</bdi></td><td><bdi>%s</bdi></td><td "
           "class=n>%lu</td><td>%.2f <span class=dim>%.2f to %.2f</span></td><td>",
           pair->movement, pair->workflow, pair->first, pair->second, k.n, k.agreement,
           k.agreement_low, k.agreement_high);
  if (k.known)
    HTML_FMT(h, "%.2f <span class=dim>%.2f to %.2f</span>", k.kappa, k.low, k.high);
  else
    html_puts(h, "undefined: " KAPPA_UNKNOWN);
  HTML(h, "</td><td>");
  /* The cells of the matrix in which they differ, such as "1 against 2: 7". */
  const char *gap = "";
  for (int i = 0; i < KAPPA_CATEGORIES; i++)
    for (int j = 0; j < KAPPA_CATEGORIES; j++)
      if (i != j && pair->table.cell[i][j] > 0) {
        HTML_FMT(h, "%s%d against %d: %.6g", gap, i, j, pair->table.cell[i][j]);
        gap = "; ";
      }
  HTML(h, "</td><td>");
  agree_advice(pair, &advice);
  HTML_FMT(h, "<bdi>%.*s</bdi></td></tr>", STR_ARG(buf_view(&advice)));
}

static void part_agree(struct html *h, const struct agree *a) {
  HTML(h, "<h2>Agreement</h2><p class=dim>Verdicts, people's labels and later judgments of the "
          "same turns, with 95 % intervals. Rule 0 means no rule.</p><div class=wide tabindex=0 "
          "role=region aria-label=Agreement><table><thead><tr><th scope=col>movement</th>"
          "<th scope=col>one</th><th scope=col>other</th><th scope=col class=n>turns</th>"
          "<th scope=col>same rule</th><th scope=col>kappa</th>"
          "<th scope=col>differences</th><th scope=col>advice</th></tr></thead><tbody>");
  for (size_t i = 0; i < a->pair_count && i < AGREE_PAIRS; i++)
    put_agree_pair(h, a->pairs[i]);
  HTML(h, "</tbody></table></div>");
  if (a->pair_count > AGREE_PAIRS)
    HTML_FMT(h, "<p class=dim>%zu more pairs: segue agree lists them.</p>",
             a->pair_count - AGREE_PAIRS);
}

/* --- the numbers --- */

enum { AUDIT_ROWS = 50 };

/* Returns the filter for sessions with that key, to which it links in the window; NULL: no link. */
static const char *key_filter(enum group_by_key key) {
  const char *name = group_by_key_name(key);
  if (strcmp(name, "match_method") == 0 || strcmp(name, "stage") == 0)
    return "method";
  if (strcmp(name, "provider") == 0 || strcmp(name, "workflow") == 0)
    return name;
  return NULL;
}

static void put_audit_key(struct html *h, const char *filter, struct str text) {
  buf_auto_t q = {0};
  enum judge_stage stage;
  bool method = filter != NULL && strcmp(filter, "method") == 0;
  bool plain = text.n > 0 && (!method || judge_stage_from_name(text, &stage)) &&
               memchr(text.p, ' ', text.n) == NULL && !str_eq_c(text, "-");
  if (h->root == NULL || filter == NULL || !plain) {
    html_said(h, method ? judge_stage_words(text) : text);
    return;
  }
  buf_printf(&q, "%s:" STR_FMT, filter, STR_ARG(text));
  HTML(h, "<a");
  HTML_LINK(h, "/?q=", buf_view(&q), "");
  HTML_FMT(h, " title=\"%.*s\"><bdi>%.*s</bdi></a>", STR_ARG(text),
           STR_ARG(method ? judge_stage_words(text) : text));
}

static void put_keys_cell(struct html *h, const struct aggregate *c, const struct group_by_table *t,
                          const struct group_by_row *g) {
  for (size_t k = 0; k < t->key_count; k++) {
    buf_auto_t text = {0};
    group_by_key_text(t, g, k, &c->names, &text);
    if (k == 0)
      HTML(h, "<th scope=row>");
    else
      HTML(h, "<td>");
    if (text.n == 0 || t->keys[k] == GROUP_BY_TO) {
      buf_clear(&text);
      group_by_key_words(t, g, k, &c->names, &text);
    }
    put_audit_key(h, key_filter(t->keys[k]), buf_view(&text));
    if (k == 0)
      HTML(h, "</th>");
    else
      HTML(h, "</td>");
  }
}

struct audit_at { /* the table being written */
  const struct aggregate *c;
  struct str q; /* the filter */
  int table;    /* enum aggregate_table, or DRILLDOWN_CAUSES */
};

static const struct group_by_table *table_at(const struct audit_at *at) {
  return &at->c->tables[at->table];
}

/* Begins a link to what a number counts; g: its group; NULL: it has none. Call end_behind. */
static bool begin_behind(struct html *h, const struct audit_at *at, const struct group_by_row *g,
                         enum drilldown_what what) {
  const struct group_by_table *t = at->table < AGGREGATE_TABLE_COUNT ? table_at(at) : NULL;
  struct buf keys[GROUP_BY_KEYS_MAX] = {{0}};
  bool plain = true;
  if (h->root == NULL)
    return false;
  for (size_t k = 0; g != NULL && t != NULL && k < t->key_count; k++)
    group_by_key_text(t, g, k, &at->c->names, &keys[k]);
  /* a NUL ends what an address can say */
  for (size_t k = 0; k < GROUP_BY_KEYS_MAX && plain; k++)
    plain = strlen(buf_c(&keys[k])) == keys[k].n;
  if (plain) {
    HTML(h, "<a");
    HTML_LINK(h, "/judgments?of=", str_from(table_names[at->table]), "");
    HTML_LINK_MORE(h, "what", str_from(what_names[what]));
    HTML_LINK_MORE(h, "k1", buf_view(&keys[0]));
    HTML_LINK_MORE(h, "k2", buf_view(&keys[1]));
    HTML_LINK_MORE(h, "k3", buf_view(&keys[2]));
    HTML_LINK_MORE(h, "q", at->q);
    HTML(h, ">");
  }
  for (size_t k = 0; k < GROUP_BY_KEYS_MAX; k++)
    buf_deinit(&keys[k]);
  return plain;
}

static void end_behind(struct html *h, bool begun) {
  if (begun)
    HTML(h, "</a>");
}

static void put_behind(struct html *h, const struct audit_at *at, const struct group_by_row *g,
                       enum drilldown_what what, uint64_t n) {
  bool linked = n > 0 && begin_behind(h, at, g, what);
  HTML_FMT(h, "%llu", (unsigned long long)n);
  end_behind(h, linked);
}

static void audit_count(struct html *h, const struct audit_at *at, const struct group_by_row *g,
                        enum drilldown_what what, uint64_t n) {
  HTML(h, "<td class=n>");
  put_behind(h, at, g, what, n);
  HTML(h, "</td>");
}

/* Writes a share as a number and as a bar. */
static void put_share(struct html *h, double share) {
  HTML_FMT(h,
           "<td class=n>%.1f %%</td><td><svg class=bar viewBox=\"0 0 1000 10\" "
           "preserveAspectRatio=none aria-hidden=true",
           100 * share);
  part_bare_size(h, 192, 17);
  HTML_FMT(h, "><rect class=share height=10 width=\"%.0f\" /></svg></td>", 1000 * share);
}

/* Writes the cost, with a "+" if it leaves out calls whose cost is unknown. */
static void put_use_cost(struct buf *out, const struct row_use *use) {
  view_put_dollars(out, (double)use->cost_nano / 1e9, true, use->unpriced > 0);
}

static void put_use(struct html *h, const struct group_by_row *g) {
  buf_auto_t text = {0};
  const int percents[] = {50, 90, 99};
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    HTML(h, "<td class=n>");
    part_took(h, (int64_t)percentiles_at(&g->ms, percents[i]));
    HTML(h, "</td>");
  }
  HTML_FMT(h, "<td class=n>%lld</td><td class=n>", (long long)(g->use.input + g->use.output));
  put_use_cost(&text, &g->use);
  HTML_FMT(h, "%.*s</td>", STR_ARG(buf_view(&text)));
}

static void put_method_cells(struct html *h, const struct audit_at *at,
                             const struct group_by_row *g) {
  audit_count(h, at, g, DRILLDOWN_ALL, g->judgments);
  put_share(h, aggregate_share(at->c, g->judgments));
  put_use(h, g);
}

static void put_stage_cells(struct html *h, const struct audit_at *at,
                            const struct group_by_row *g) {
  audit_count(h, at, g, DRILLDOWN_ALL, g->units);
  audit_count(h, at, g, DRILLDOWN_DECIDED, g->decided);
  put_use(h, g);
}

static void put_fall_cell(struct html *h, const struct audit_at *at, const struct group_by_row *g) {
  audit_count(h, at, g, DRILLDOWN_LEFT, g->units - g->decided);
}

static void put_unsure_cells(struct html *h, const struct audit_at *at,
                             const struct group_by_row *g) {
  audit_count(h, at, g, DRILLDOWN_ALL, g->units);
  audit_count(h, at, g, DRILLDOWN_UNSURE, g->unsure);
  put_share(h, aggregate_unsure(g));
}

static void put_judge_cells(struct html *h, const struct audit_at *at,
                            const struct group_by_row *g) {
  /* Small counts have "too few" in place of the interval. */
  enum { RATED_LEAST = 10 };
  double low, high, share = aggregate_unreadable(g);
  audit_count(h, at, g, DRILLDOWN_ALL, g->units);
  audit_count(h, at, g, DRILLDOWN_UNREADABLE, g->outcomes[OUTCOME_UNREADABLE]);
  kappa_wilson(share, (double)g->units, &low, &high);
  HTML_FMT(h, "<td class=n>%.1f %%</td><td class=dim>", 100 * share);
  if (g->units < RATED_LEAST)
    html_puts(h, "too few");
  else
    HTML_FMT(h, "%.1f to %.1f %%", 100 * low, 100 * high);
  HTML(h, "</td>");
}

static void put_mark_cells(struct html *h, const struct audit_at *at,
                           const struct group_by_row *g) {
  audit_count(h, at, g, DRILLDOWN_ALL, g->judgments);
  for (int i = TAG_PRESENT; i < TAG_MARK_COUNT; i++)
    HTML_FMT(h, "<td class=n>%llu</td>", (unsigned long long)g->marks[i]);
  HTML_FMT(h, "<td class=n>%llu</td><td class=n>%lld</td>", (unsigned long long)g->again,
           (long long)(g->again_use.input + g->again_use.output));
}

static const struct audit_table {
  enum aggregate_table table;
  const char *title;
  const char *heads[10]; /* of columns of numbers; "": of bars */
  const char *last;      /* head of a column of words behind them; or NULL */
  void (*put_cells)(struct html *h, const struct audit_at *at, const struct group_by_row *g);
} audit_tables[] = {
    {AGGREGATE_METHODS,
     "Judgments by method",
     {"judgments", "share", "", "p50", "p90", "p99", "judge tokens", "cost"},
     NULL,
     put_method_cells},
    {AGGREGATE_STAGES,
     "Stages: how often each was tried, and how often it decided",
     {"tried", "decided", "p50", "p90", "p99", "tokens", "cost"},
     NULL,
     put_stage_cells},
    {AGGREGATE_FALLS, "Stages that did not decide, and why", {"times"}, NULL, put_fall_cell},
    {AGGREGATE_MOVEMENTS,
     "Unsure judgments by movement",
     {"judgments", "unsure", "share", ""},
     NULL,
     put_unsure_cells},
    {AGGREGATE_JUDGES,
     "Judges: unreadable answers",
     {"asked", "unreadable", "share"},
     "95 %",
     put_judge_cells},
    {AGGREGATE_MARKS,
     "Agents: what became of the marks of their turns, and what was asked again",
     {"judgments", "present", "elsewhere", "wrong", "missing", "asked again", "tokens"},
     NULL,
     put_mark_cells},
    {AGGREGATE_BY,
     "Unsure judgments by day",
     {"judgments", "unsure", "share", ""},
     NULL,
     put_unsure_cells},
};

static void put_audit_table(struct html *h, const struct audit_at *at,
                            const struct audit_table *table) {
  const struct group_by_table *t = table_at(at);
  size_t shown = 0;
  HTML_FMT(h,
           "<h3>%s</h3><div class=wide tabindex=0 role=region aria-label=\"%s\"><table><thead><tr>",
           table->title, table->title);
  for (size_t k = 0; k < t->key_count; k++)
    HTML_FMT(h, "<th scope=col>%s</th>", group_by_key_name(t->keys[k]));
  for (size_t k = 0; table->heads[k] != NULL; k++)
    if (table->heads[k][0] != '\0')
      HTML_FMT(h, "<th scope=col class=n>%s</th>", table->heads[k]);
    else
      HTML(h, "<td></td>");
  if (table->last != NULL)
    HTML_FMT(h, "<th scope=col>%s</th>", table->last);
  HTML(h, "</tr></thead><tbody>");
  for (size_t i = 0; i < t->count && shown < AUDIT_ROWS; i++) {
    const struct group_by_row *g = &t->groups[i];
    if (table->table == AGGREGATE_FALLS && g->units == g->decided)
      continue;
    HTML(h, "<tr>");
    put_keys_cell(h, at->c, t, g);
    table->put_cells(h, at, g);
    HTML(h, "</tr>");
    shown++;
  }
  HTML(h, "</tbody></table></div>");
  if (t->count > AUDIT_ROWS)
    HTML_FMT(h, "<p class=dim>%zu more rows: segue audit lists them.</p>", t->count - AUDIT_ROWS);
}

static void put_cause_count(struct html *h, const struct audit_at *at,
                            const struct aggregate_count *cause) {
  /* its last place is shared by all causes beyond those that are counted */
  bool linked = h->root != NULL && cause->word != DICTIONARY_OTHER;
  HTML(h, "<td class=n>");
  if (linked) {
    HTML(h, "<a");
    HTML_LINK(h, "/judgments?of=", str_from(table_names[at->table]), "");
    HTML_LINK_MORE(h, "k1", dictionary_text(&at->c->names, cause->word));
    HTML_LINK_MORE(h, "q", at->q);
    HTML(h, ">");
  }
  HTML_FMT(h, "%llu", (unsigned long long)cause->count);
  end_behind(h, linked);
  HTML(h, "</td>");
}

static void put_causes(struct html *h, const struct aggregate *c, struct str q) {
  const struct audit_at at = {c, q, DRILLDOWN_CAUSES};
  if (c->cause_count == 0)
    return;
  HTML(h, "<h3>Sessions that did not complete, by cause</h3><div class=wide tabindex=0 role=region "
          "aria-label=\"Sessions that did not complete, by cause\"><table><thead><tr><th "
          "scope=col>cause</th>"
          "<th scope=col class=n>sessions</th><th scope=col>example</th></tr></thead><tbody>");
  for (size_t i = 0; i < c->cause_count; i++) {
    HTML(h, "<tr><th scope=row>");
    html_said(h, dictionary_text(&c->names, c->causes[i].word));
    HTML(h, "</th>");
    put_cause_count(h, &at, &c->causes[i]);
    HTML(h, "<td>");
    struct str id = str_from(c->causes[i].example);
    if (h->root != NULL) {
      HTML(h, "<a");
      HTML_LINK(h, "/s/", id, "/");
      HTML(h, ">");
    }
    HTML_FMT(h, "<code>%.*s</code>", STR_ARG(id));
    if (h->root != NULL)
      HTML(h, "</a>");
    HTML(h, "</td></tr>");
  }
  HTML(h, "</tbody></table></div>");
}

static void put_apart(struct html *h, const struct aggregate *c) {
  if (c->apart_count == 0)
    return;
  HTML(h, "<h3>Logs not counted</h3><div class=wide tabindex=0 role=region "
          "aria-label=\"Logs not counted\"><table><thead><tr><th scope=col>log</th>"
          "<th scope=col>state</th><th scope=col>why</th></tr></thead><tbody>");
  for (size_t i = 0; i < c->apart_count; i++)
    HTML_FMT(h, "<tr><th scope=row><bdi>%s</bdi></th><td>%s</td><td><bdi>%s</bdi></td></tr>",
             c->apart[i].log, rows_log_name(c->apart[i].state), c->apart[i].why);
  HTML(h, "</tbody></table></div>");
}

static void put_clients(struct html *h, const struct aggregate *c) {
  struct aggregate_client client;
  for (size_t at = 0; aggregate_next_client(c, &at, &client);) {
    buf_auto_t text = {0};
    aggregate_client_text(&client, &text);
    HTML(h, "<p>");
    html_said(h, buf_view(&text));
    HTML(h, "</p>");
  }
}

static void put_audit_sums(struct html *h, const struct aggregate *c, struct str q) {
  const struct audit_at at = {c, q, AGGREGATE_ALL};
  const struct group_by_row *g = &table_at(&at)->groups[0];
  buf_auto_t cost = {0};
  put_use_cost(&cost, &g->unsure_use);
  HTML(h, "<p>");
  put_behind(h, &at, g, DRILLDOWN_ALL, g->judgments);
  html_puts(h, " judgments: ");
  put_behind(h, &at, g, DRILLDOWN_DECIDED, g->decided);
  html_puts(h, " found a rule, ");
  put_behind(h, &at, g, DRILLDOWN_LEFT, g->no_rule);
  html_puts(h, " did not, ");
  put_behind(h, &at, g, DRILLDOWN_AMBIGUOUS, g->ambiguous);
  html_puts(h, " were ambiguous; in ");
  put_behind(h, &at, g, DRILLDOWN_UNSURE, g->unsure);
  HTML_FMT(h,
           " a stage that reads a model&#39;s words did not decide, at a cost of %lld tokens and "
           "%s.</p>",
           (long long)(g->unsure_use.input + g->unsure_use.output), buf_c(&cost));
}

void part_audit(struct html *h, const struct aggregate *c, struct str q) {
  if (c->tables[AGGREGATE_ALL].count > 0) {
    put_audit_sums(h, c, q);
    for (size_t i = 0; i < ARRAY_LEN(audit_tables); i++) {
      const struct audit_at at = {c, q, (int)audit_tables[i].table};
      if (audit_tables[i].table != AGGREGATE_BY || table_at(&at)->key_count > 0)
        put_audit_table(h, &at, &audit_tables[i]);
    }
    put_clients(h, c);
  } else {
    HTML(h, "<p>Nothing was judged.</p>");
  }
  put_causes(h, c, q);
  put_apart(h, c);
}

/* --- their page --- */

/* Compares raters with the verdicts, if somebody labelled or rejudged any. */
static bool put_agreement(struct html *h, const struct page_ask *ask, struct aggregate *c,
                          struct err *err) {
  struct agree *a = agree_new(c);
  bool ok = agree_beside(a, &ask->store, err);
  if (ok && a->label_count + a->again.count > 0) {
    ok = store_each(&ask->store, a, agree_read, err);
    agree_sort(a);
    if (ok)
      part_agree(h, a);
  }
  agree_free(a);
  return ok;
}

unsigned page_audit(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct aggregate *c = aggregate_new();
  struct err err = {0};
  bool filtered =
      aggregate_filter_text(c, ask->q, ask->now_ms, &err) && aggregate_by(c, "day", &err);
  bool there = filtered && store_exists(&ask->store);
  if (there && !aggregate_read_store(c, &ask->store, &err)) {
    aggregate_free(c);
    return page_problem(ask, out, &err);
  }
  aggregate_sort(c);
  page_begin(&h, "Audit", NULL);
  HTML(&h, "<form role=search data-filter>");
  page_filter(&h, ask, "since:7d workflow:NAME movement:NAME method:ai_judge model:NAME");
  HTML(&h, "<p class=dim>As data: <a download");
  HTML_LINK(&h, "/audit.csv?q=", str_from(ask->q), "");
  HTML(&h, ">CSV</a>, <a download");
  HTML_LINK(&h, "/audit.json?q=", str_from(ask->q), "");
  HTML(&h, ">JSON</a>, or <code>segue audit</code></p>");
  if (!filtered)
    page_trouble(&h, &err);
  HTML(&h, "<h2>Judgments</h2>");
  part_audit(&h, c, str_from(ask->q));
  if (there && !put_agreement(&h, ask, c, &err))
    page_trouble(&h, &err);
  part_end_page(&h);
  aggregate_free(c);
  return 200;
}

unsigned page_audit_data(const struct page_ask *ask, struct buf *out) {
  struct aggregate *c = aggregate_new();
  struct err err = {0};
  bool ok = aggregate_filter_text(c, ask->q, ask->now_ms, &err) &&
            aggregate_by(c, "match_method", &err) &&
            (!store_exists(&ask->store) || aggregate_read_store(c, &ask->store, &err));
  aggregate_sort(c);
  if (ok && ask->kind == PAGE_AUDIT_CSV) {
    aggregate_csv(c, out);
  } else if (ok) {
    json_t *value;
    buf_puts(out, "{\"groups\":[");
    for (size_t i = 0; (value = aggregate_group_json(c, i)) != NULL; i++) {
      buf_puts(out, i > 0 ? "," : "");
      json_write(value, out);
      json_decref(value);
    }
    buf_puts(out, "],\"totals\":");
    value = aggregate_totals_json(c);
    json_write(value, out);
    json_decref(value);
    buf_puts(out, "}\n");
  }
  aggregate_free(c);
  return ok ? 200 : page_problem(ask, out, &err);
}

/* --- which number a page is about --- */

static bool behind_ask(const struct page_ask *ask, struct drilldown *b, struct err *err) {
  long from = 0;
  const char *what = ask->what[0] != '\0' ? ask->what : what_names[DRILLDOWN_ALL];
  const char *of = ask->of[0] != '\0' ? ask->of : table_names[AGGREGATE_ALL];
  if (!drilldown_table_read(of, &b->table) || !drilldown_what_read(what, &b->what))
    return err_set(err, ERR_NOT_FOUND, "the audit has no number \"%s\" of \"%s\"", what, of);
  if (ask->from[0] != '\0' && (!str_to_long(str_from(ask->from), &from) || from < 0))
    return err_set(err, ERR_NOT_FOUND, "there is no judgment %s in this list", ask->from);
  for (size_t k = 0; k < sizeof ask->keys / sizeof *ask->keys; k++)
    b->keys[k] = str_from(ask->keys[k]);
  b->from = (uint64_t)from;
  return true;
}

static bool behind_find(const struct page_ask *ask, struct drilldown *b, struct aggregate *c,
                        struct err *err) {
  return aggregate_filter_text(c, ask->q, ask->now_ms, err) && aggregate_by(c, "day", err) &&
         (!store_exists(&ask->store) || drilldown_read_store(b, c, &ask->store, err));
}

/* --- what is listed --- */

static const char *unit_word(const struct drilldown *b) {
  if (b->table == DRILLDOWN_CAUSES)
    return "session";
  return b->keyed != NULL && group_by_stage(b->keyed) ? "stage" : "judgment";
}

static const char *behind_words(const struct drilldown *b) {
  bool stages = b->keyed != NULL && group_by_stage(b->keyed);
  switch (b->what) {
  case DRILLDOWN_DECIDED:
    return stages ? " that decided" : " by a rule";
  case DRILLDOWN_LEFT:
    return stages ? " that did not decide" : " without a rule";
  case DRILLDOWN_AMBIGUOUS:
    return " whose evidence named two rules";
  case DRILLDOWN_UNSURE:
    return " in which a stage that reads a model's words did not decide";
  case DRILLDOWN_UNREADABLE:
    return " whose answer could not be read";
  case DRILLDOWN_ALL:
  case DRILLDOWN_WHAT_COUNT:
    break;
  }
  return "";
}

static void put_address(struct html *h, const struct page_ask *ask) {
  HTML_LINK_MORE(h, "what", str_from(ask->what));
  HTML_LINK_MORE(h, "k1", str_from(ask->keys[0]));
  HTML_LINK_MORE(h, "k2", str_from(ask->keys[1]));
  HTML_LINK_MORE(h, "k3", str_from(ask->keys[2]));
  HTML_LINK_MORE(h, "q", str_from(ask->q));
}

static void put_kept(struct html *h, const char *name, const char *value) {
  if (value[0] == '\0')
    return;
  HTML_FMT(h, "<input type=hidden name=\"%s\" value=\"%s\">", name, value);
}

static void put_behind_filter(struct html *h, const struct page_ask *ask) {
  HTML(h, "<form role=search data-filter>");
  put_kept(h, "of", ask->of);
  put_kept(h, "what", ask->what);
  put_kept(h, "k1", ask->keys[0]);
  put_kept(h, "k2", ask->keys[1]);
  put_kept(h, "k3", ask->keys[2]);
  page_filter(h, ask, "since:7d workflow:NAME movement:NAME method:ai_judge");
  HTML(h, "<p class=dim><a");
  if (ask->q[0] != '\0')
    HTML_LINK(h, "/audit?q=", str_from(ask->q), "");
  else
    HTML_LINK(h, "/audit", STR(""), "");
  HTML(h, ">All numbers</a>. As data: <a download");
  HTML_LINK(h, "/judgments.csv?of=", str_from(ask->of), "");
  put_address(h, ask);
  HTML(h, ">CSV</a>, <a download");
  HTML_LINK(h, "/judgments.json?of=", str_from(ask->of), "");
  put_address(h, ask);
  HTML(h, ">JSON</a></p>");
}

static void put_behind_sum(struct html *h, const struct drilldown *b) {
  HTML_FMT(h, "<p role=status>%llu %s%s%s", (unsigned long long)b->total, unit_word(b),
           PLURAL(b->total), behind_words(b));
  for (size_t k = 0; b->keyed != NULL && k < b->keyed->key_count; k++)
    HTML_FMT(h, ", %s <bdi>%.*s</bdi>", group_by_key_name(b->keyed->keys[k]),
             STR_ARG(b->keys[k].n > 0 ? judge_stage_words(b->keys[k]) : STR("-")));
  if (b->table == DRILLDOWN_CAUSES)
    HTML_FMT(h, ", not complete by cause <bdi>%.*s</bdi>", STR_ARG(b->keys[0]));
  if (b->count > 0 && b->count < b->total)
    HTML_FMT(h, ". Shown: %llu to %llu", (unsigned long long)b->from + 1,
             (unsigned long long)(b->from + b->count));
  HTML(h, ".</p>");
}

/* --- rows --- */

static void put_unit_word(struct html *h, const struct drilldown *b, uint32_t word) {
  struct str text = dictionary_text(&b->aggregate->names, word);
  HTML_FMT(h, "<td><bdi>%.*s</bdi></td>", STR_ARG(text.n > 0 ? text : STR("-")));
}

static void put_behind_judgment(struct html *h, const struct drilldown *b,
                                const struct drilldown_unit *u) {
  buf_auto_t turn = {0};
  struct str movement = dictionary_text(&b->aggregate->names, u->movement);
  buf_printf(&turn, "%ld", u->turn);
  HTML(h, "<th scope=row><a");
  html_link2(h, str_from(u->session), buf_view(&turn));
  HTML_FMT(h, "><bdi>%.*s</bdi>, turn %s</a></th>", STR_ARG(movement.n > 0 ? movement : STR("-")),
           buf_c(&turn));
}

static void put_unit_row(struct html *h, const struct drilldown *b,
                         const struct drilldown_unit *u) {
  HTML(h, "<tr>");
  if (u->turn > 0)
    put_behind_judgment(h, b, u);
  HTML(h, "<td><a");
  HTML_LINK(h, "/s/", str_from(u->session), "/");
  HTML_FMT(h, "><code>%s</code></a></td>", u->session);
  put_unit_word(h, b, u->workflow);
  HTML(h, "<td>");
  part_when(h, u->time_ms);
  HTML(h, "</td>");
  put_unit_word(h, b, u->outcome);
  if (u->turn > 0) {
    HTML(h, "<td class=n>");
    if (u->rule > 0)
      HTML_FMT(h, "%u", (unsigned)u->rule);
    else
      html_puts(h, "none");
    HTML(h, "</td>");
    put_unit_word(h, b, u->match_method != DICTIONARY_NONE ? u->match_method : u->method);
    if (b->keyed != NULL && group_by_stage(b->keyed)) {
      put_unit_word(h, b, u->stage);
      put_unit_word(h, b, u->reason);
      put_unit_word(h, b, u->to);
    }
    put_unit_word(h, b, u->provider);
    put_unit_word(h, b, u->model);
  }
  HTML(h, "</tr>");
}

static void put_units(struct html *h, const struct drilldown *b) {
  HTML(h, "<div class=wide tabindex=0 role=region aria-label=judgments><table><thead><tr>");
  if (b->table != DRILLDOWN_CAUSES)
    HTML(h, "<th scope=col>judgment</th>");
  HTML(h, "<th scope=col>session</th><th scope=col>workflow</th><th scope=col>when</th>"
          "<th scope=col>its session</th>");
  if (b->table != DRILLDOWN_CAUSES)
    HTML(h, "<th scope=col class=n>rule</th><th scope=col>decided by</th>");
  if (b->keyed != NULL && group_by_stage(b->keyed))
    HTML(h, "<th scope=col>stage</th><th scope=col>why it did not decide</th>"
            "<th scope=col>tried next</th>");
  if (b->table != DRILLDOWN_CAUSES)
    HTML(h, "<th scope=col>provider</th><th scope=col>model</th>");
  HTML(h, "</tr></thead><tbody>");
  for (size_t i = 0; i < b->count; i++)
    put_unit_row(h, b, &b->units[i]);
  HTML(h, "</tbody></table></div>");
}

unsigned page_behind(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct drilldown b = {.max = LIMIT_WINDOW_ROW_COUNT};
  struct aggregate *c = aggregate_new();
  struct err err = {0};
  if (!behind_ask(ask, &b, &err)) {
    aggregate_free(c);
    return page_problem(ask, out, &err);
  }
  bool ok = behind_find(ask, &b, c, &err);
  page_begin(&h, b.table == DRILLDOWN_CAUSES ? "Incomplete sessions" : "Judgments behind a number",
             NULL);
  put_behind_filter(&h, ask);
  if (!ok) {
    page_trouble(&h, &err);
  } else {
    put_behind_sum(&h, &b);
    if (b.count > 0)
      put_units(&h, &b);
    buf_auto_t from = {0};
    if (b.from + b.count < b.total) {
      buf_printf(&from, "%llu", (unsigned long long)(b.from + b.count));
      HTML(&h, "<p><a");
      HTML_LINK(&h, "/judgments?of=", str_from(ask->of), "");
      put_address(&h, ask);
      HTML_LINK_MORE(&h, "from", buf_view(&from));
      HTML(&h, ">Further ones</a></p>");
    }
  }
  part_end_page(&h);
  drilldown_deinit(&b);
  aggregate_free(c);
  return 200;
}

unsigned page_behind_data(const struct page_ask *ask, struct buf *out) {
  AUTO(drilldown_deinit) struct drilldown b = {.max = LIMIT_WINDOW_LISTED_COUNT};
  struct aggregate *c = aggregate_new();
  struct err err = {0};
  bool ok = behind_ask(ask, &b, &err) && behind_find(ask, &b, c, &err);
  if (ok && ask->kind == PAGE_BEHIND_CSV)
    drilldown_csv(&b, out);
  else if (ok)
    drilldown_json(&b, out);
  aggregate_free(c);
  return ok ? 200 : page_problem(ask, out, &err);
}
