/* Writes the page that counts judgments, and the same as data. */
#include "audit/aggregate.h"
#include "audit/agree.h"
#include "audit/drilldown.h"
#include "audit/kappa.h"
#include "format/json_write.h"
#include "judge/stage.h"
#include "view/number_format.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <string.h>

/* --- how raters agree --- */

enum { AGREE_PAIRS = 50 };

static void put_interval(struct html *h, double value, double low, double high) {
  html_printf(h, "%.2f", value);
  HTML(h, " <span class=dim>");
  html_printf(h, "%.2f to %.2f", low, high);
  HTML(h, "</span>");
}

static void put_agree_pair(struct html *h, const struct agree_pair *pair) {
  struct kappa k = agree_kappa(pair);
  struct buf advice = {0};
  HTML(h, "<tr><th scope=row>");
  html_said(h, str_from(pair->movement));
  HTML(h, "<br><span class=dim>");
  html_said(h, str_from(pair->workflow));
  HTML(h, "</span></th><td>");
  html_said(h, str_from(pair->first));
  HTML(h, "</td><td>");
  html_said(h, str_from(pair->second));
  HTML(h, "</td><td class=n>");
  html_printf(h, "%lu", k.n);
  HTML(h, "</td><td>");
  put_interval(h, k.agreement, k.agreement_low, k.agreement_high);
  HTML(h, "</td><td>");
  if (k.known)
    put_interval(h, k.kappa, k.low, k.high);
  else
    html_puts(h, "undefined: " KAPPA_UNKNOWN);
  HTML(h, "</td><td>");
  /* The cells of the matrix in which they differ, such as "1 against 2: 7". */
  const char *gap = "";
  for (int i = 0; i < KAPPA_CATEGORIES; i++)
    for (int j = 0; j < KAPPA_CATEGORIES; j++)
      if (i != j && pair->table.cell[i][j] > 0) {
        html_printf(h, "%s%d against %d: %.6g", gap, i, j, pair->table.cell[i][j]);
        gap = "; ";
      }
  HTML(h, "</td><td>");
  agree_advice(pair, &advice);
  html_said(h, buf_view(&advice));
  HTML(h, "</td></tr>");
  buf_deinit(&advice);
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
  if (a->pair_count > AGREE_PAIRS) {
    HTML(h, "<p class=dim>");
    html_printf(h, "%zu more pairs: segue agree lists them.", a->pair_count - AGREE_PAIRS);
    HTML(h, "</p>");
  }
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
  struct buf q = {0};
  enum judge_stage stage;
  bool method = filter != NULL && strcmp(filter, "method") == 0;
  bool plain = text.n > 0 && (!method || judge_stage_from_name(text, &stage)) &&
               memchr(text.p, ' ', text.n) == NULL && !str_eq_c(text, "-");
  if (h->root == NULL || filter == NULL || !plain) {
    html_said(h, text.n > 0 ? text : STR("-"));
    return;
  }
  buf_printf(&q, "%s:" STR_FMT, filter, STR_ARG(text));
  HTML(h, "<a");
  HTML_LINK(h, "/?q=", buf_view(&q), "");
  HTML(h, ">");
  html_said(h, text);
  HTML(h, "</a>");
  buf_deinit(&q);
}

static void put_keys_cell(struct html *h, const struct aggregate *c, const struct group_by_table *t,
                          const struct group_by_row *g) {
  for (size_t k = 0; k < t->key_count; k++) {
    struct buf text = {0};
    group_by_key_text(t, g, k, &c->names, &text);
    if (k == 0)
      HTML(h, "<th scope=row>");
    else
      HTML(h, "<td>");
    put_audit_key(h, key_filter(t->keys[k]), buf_view(&text));
    if (k == 0)
      HTML(h, "</th>");
    else
      HTML(h, "</td>");
    buf_deinit(&text);
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
    HTML_LINK(h, "/judgments?of=", str_from(drilldown_table_name(at->table)), "");
    HTML_LINK_MORE(h, "what", str_from(drilldown_what_name(what)));
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
  html_printf(h, "%llu", (unsigned long long)n);
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
  HTML(h, "<td class=n>");
  html_printf(h, "%.1f %%", 100 * share);
  HTML(h, "</td><td><svg class=bar viewBox=\"0 0 1000 10\" preserveAspectRatio=none "
          "aria-hidden=true");
  part_bare_size(h, 192, 17);
  HTML(h, "><rect class=share height=10");
  html_attr_printf(h, "width", "%.0f", 1000 * share);
  HTML(h, " /></svg></td>");
}

/* Writes the cost, with a "+" if it leaves out calls whose cost is unknown. */
static void put_use_cost(struct buf *out, const struct row_use *use) {
  view_put_dollars(out, (double)use->cost_nano / 1e9, true, use->unpriced > 0);
}

static void put_use(struct html *h, const struct group_by_row *g) {
  struct buf text = {0};
  const int percents[] = {50, 90, 99};
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    HTML(h, "<td class=n>");
    buf_clear(&text);
    view_put_time(&text, (int64_t)percentiles_at(&g->ms, percents[i]));
    html_text(h, buf_view(&text));
    HTML(h, "</td>");
  }
  HTML(h, "<td class=n>");
  html_printf(h, "%lld", (long long)(g->use.input + g->use.output));
  HTML(h, "</td><td class=n>");
  buf_clear(&text);
  put_use_cost(&text, &g->use);
  html_text(h, buf_view(&text));
  HTML(h, "</td>");
  buf_deinit(&text);
}

static void audit_head(struct html *h, const struct audit_at *at, const char *title) {
  const struct group_by_table *t = table_at(at);
  HTML(h, "<h3>");
  html_puts(h, title);
  HTML(h, "</h3><div class=wide tabindex=0 role=region");
  HTML_ATTR(h, "aria-label", str_from(title));
  HTML(h, "><table><thead><tr>");
  for (size_t k = 0; k < t->key_count; k++) {
    HTML(h, "<th scope=col>");
    html_puts(h, group_by_key_name(t->keys[k]));
    HTML(h, "</th>");
  }
}

static void audit_end(struct html *h, const struct group_by_table *t) {
  HTML(h, "</tbody></table></div>");
  if (t->count > AUDIT_ROWS) {
    HTML(h, "<p class=dim>");
    html_printf(h, "%zu more rows: segue audit lists them.", t->count - AUDIT_ROWS);
    HTML(h, "</p>");
  }
}

static void put_methods_table(struct html *h, const struct aggregate *c, struct str q) {
  const struct audit_at at = {c, q, AGGREGATE_METHODS};
  const struct group_by_table *t = table_at(&at);
  audit_head(h, &at, "Judgments by method");
  HTML(h, "<th scope=col class=n>judgments</th><th scope=col class=n>share</th><td></td>"
          "<th scope=col class=n>p50</th><th scope=col class=n>p90</th><th scope=col class=n>p99"
          "</th><th scope=col class=n>judge tokens</th><th scope=col class=n>cost</th></tr>"
          "</thead><tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    const struct group_by_row *g = &t->groups[i];
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, &at, g, DRILLDOWN_ALL, g->judgments);
    put_share(h, aggregate_share(c, g->judgments));
    put_use(h, g);
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

static void put_stages_table(struct html *h, const struct aggregate *c, struct str q) {
  const struct audit_at at = {c, q, AGGREGATE_STAGES};
  const struct group_by_table *t = table_at(&at);
  audit_head(h, &at, "Stages: how often each was tried, and how often it decided");
  HTML(h, "<th scope=col class=n>tried</th><th scope=col class=n>decided</th>"
          "<th scope=col class=n>p50</th><th scope=col class=n>p90</th><th scope=col class=n>p99"
          "</th><th scope=col class=n>tokens</th><th scope=col class=n>cost</th></tr></thead>"
          "<tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    const struct group_by_row *g = &t->groups[i];
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, &at, g, DRILLDOWN_ALL, g->units);
    audit_count(h, &at, g, DRILLDOWN_DECIDED, g->decided);
    put_use(h, g);
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

static void put_falls_table(struct html *h, const struct aggregate *c, struct str q) {
  const struct audit_at at = {c, q, AGGREGATE_FALLS};
  const struct group_by_table *t = table_at(&at);
  size_t shown = 0;
  audit_head(h, &at, "Stages that did not decide, and why");
  HTML(h, "<th scope=col class=n>times</th></tr></thead><tbody>");
  for (size_t i = 0; i < t->count && shown < AUDIT_ROWS; i++) {
    const struct group_by_row *g = &t->groups[i];
    if (g->units == g->decided)
      continue;
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, &at, g, DRILLDOWN_LEFT, g->units - g->decided);
    HTML(h, "</tr>");
    shown++;
  }
  audit_end(h, t);
}

static void put_part_table(struct html *h, const struct audit_at *at, const char *title) {
  const struct group_by_table *t = table_at(at);
  audit_head(h, at, title);
  HTML(h, "<th scope=col class=n>judgments</th><th scope=col class=n>unsure</th>"
          "<th scope=col class=n>share</th><td></td></tr></thead><tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    HTML(h, "<tr>");
    const struct group_by_row *g = &t->groups[i];
    put_keys_cell(h, at->c, t, g);
    audit_count(h, at, g, DRILLDOWN_ALL, g->units);
    audit_count(h, at, g, DRILLDOWN_UNSURE, g->unsure);
    put_share(h, aggregate_unsure(g));
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

static void put_judges_table(struct html *h, const struct aggregate *c, struct str q) {
  const struct audit_at at = {c, q, AGGREGATE_JUDGES};
  const struct group_by_table *t = table_at(&at);
  audit_head(h, &at, "Judges: unreadable answers");
  HTML(h, "<th scope=col class=n>asked</th><th scope=col class=n>unreadable</th>"
          "<th scope=col class=n>share</th><th scope=col>95 %</th></tr></thead><tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    const struct group_by_row *g = &t->groups[i];
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, &at, g, DRILLDOWN_ALL, g->units);
    audit_count(h, &at, g, DRILLDOWN_UNREADABLE, g->outcomes[OUTCOME_UNREADABLE]);
    double share = aggregate_unreadable(g);
    /* Small counts have "too few" in place of the interval. */
    enum { RATED_LEAST = 10 };
    double low, high;
    kappa_wilson(share, (double)g->units, &low, &high);
    HTML(h, "<td class=n>");
    html_printf(h, "%.1f %%", 100 * share);
    HTML(h, "</td><td class=dim>");
    if (g->units < RATED_LEAST)
      html_puts(h, "too few");
    else
      html_printf(h, "%.1f to %.1f %%", 100 * low, 100 * high);
    HTML(h, "</td>");
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

static void put_cause_count(struct html *h, const struct audit_at *at,
                            const struct aggregate_count *cause) {
  /* its last place is shared by all causes beyond those that are counted */
  bool linked = h->root != NULL && cause->word != DICTIONARY_OTHER;
  HTML(h, "<td class=n>");
  if (linked) {
    HTML(h, "<a");
    HTML_LINK(h, "/judgments?of=", str_from(drilldown_table_name(at->table)), "");
    HTML_LINK_MORE(h, "k1", dictionary_text(&at->c->names, cause->word));
    HTML_LINK_MORE(h, "q", at->q);
    HTML(h, ">");
  }
  html_printf(h, "%llu", (unsigned long long)cause->count);
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
    HTML(h, "<code>");
    html_text(h, id);
    HTML(h, "</code>");
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
  for (size_t i = 0; i < c->apart_count; i++) {
    HTML(h, "<tr><th scope=row>");
    html_said(h, str_from(c->apart[i].log));
    HTML(h, "</th><td>");
    html_puts(h, rows_log_name(c->apart[i].state));
    HTML(h, "</td><td>");
    html_said(h, str_from(c->apart[i].why));
    HTML(h, "</td></tr>");
  }
  HTML(h, "</tbody></table></div>");
}

static void put_audit_sums(struct html *h, const struct aggregate *c, struct str q) {
  const struct audit_at at = {c, q, AGGREGATE_ALL};
  const struct group_by_row *g = &table_at(&at)->groups[0];
  struct buf cost = {0};
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
  html_printf(h,
              " a stage that reads a model's words did not decide, at a cost of %lld tokens "
              "and %s.",
              (long long)(g->unsure_use.input + g->unsure_use.output), buf_c(&cost));
  HTML(h, "</p>");
  buf_deinit(&cost);
}

void part_audit(struct html *h, const struct aggregate *c, struct str q) {
  const struct audit_at movements = {c, q, AGGREGATE_MOVEMENTS}, days = {c, q, AGGREGATE_BY};
  if (c->tables[AGGREGATE_ALL].count > 0) {
    put_audit_sums(h, c, q);
    put_methods_table(h, c, q);
    put_stages_table(h, c, q);
    put_falls_table(h, c, q);
    put_part_table(h, &movements, "Unsure judgments by movement");
    put_judges_table(h, c, q);
    if (c->tables[AGGREGATE_BY].key_count > 0)
      put_part_table(h, &days, "Unsure judgments by day");
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
    ok = agree_read_store(a, &ask->store, err);
    agree_sort(a);
    if (ok)
      part_agree(h, a);
  }
  agree_free(a);
  return ok;
}

static void put_audit_trouble(struct html *h, const struct err *err) {
  HTML(h, "<p class=banner role=alert>");
  html_said(h, str_from(err->text));
  HTML(h, "</p>");
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
  HTML(&h, "<form role=search data-filter><label>Filter <input name=q size=60 autocomplete=off "
           "spellcheck=false");
  HTML_ATTR(&h, "value", str_from(ask->q));
  HTML_ATTR(&h, "placeholder",
            STR("since:7d workflow:NAME movement:NAME method:ai_judge model:NAME"));
  HTML(&h, "></label> <button>Show</button></form><p class=dim>As data: <a download");
  HTML_LINK(&h, "/audit.csv?q=", str_from(ask->q), "");
  HTML(&h, ">CSV</a>, <a download");
  HTML_LINK(&h, "/audit.json?q=", str_from(ask->q), "");
  HTML(&h, ">JSON</a>, or <code>segue audit</code></p>");
  if (!filtered)
    put_audit_trouble(&h, &err);
  HTML(&h, "<h2>Judgments</h2>");
  part_audit(&h, c, str_from(ask->q));
  if (there && !put_agreement(&h, ask, c, &err))
    put_audit_trouble(&h, &err);
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

/* --- the judgments behind a number --- */

static bool behind_ask(const struct page_ask *ask, struct drilldown *b, struct err *err) {
  long from = 0;
  const char *what = ask->what[0] != '\0' ? ask->what : drilldown_what_name(DRILLDOWN_ALL);
  const char *of = ask->of[0] != '\0' ? ask->of : drilldown_table_name(AGGREGATE_ALL);
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
  HTML(h, "<input type=hidden");
  HTML_ATTR(h, "name", str_from(name));
  HTML_ATTR(h, "value", str_from(value));
  HTML(h, ">");
}

static void put_behind_filter(struct html *h, const struct page_ask *ask) {
  HTML(h, "<form role=search data-filter>");
  put_kept(h, "of", ask->of);
  put_kept(h, "what", ask->what);
  put_kept(h, "k1", ask->keys[0]);
  put_kept(h, "k2", ask->keys[1]);
  put_kept(h, "k3", ask->keys[2]);
  HTML(h, "<label>Filter <input name=q size=60 autocomplete=off spellcheck=false");
  HTML_ATTR(h, "value", str_from(ask->q));
  HTML_ATTR(h, "placeholder", STR("since:7d workflow:NAME movement:NAME method:ai_judge"));
  HTML(h, "></label> <button>Show</button></form><p class=dim><a");
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
  HTML(h, "<p role=status>");
  html_printf(h, "%llu %s%s%s", (unsigned long long)b->total, unit_word(b),
              b->total == 1 ? "" : "s", behind_words(b));
  for (size_t k = 0; b->keyed != NULL && k < b->keyed->key_count; k++) {
    html_printf(h, ", %s ", group_by_key_name(b->keyed->keys[k]));
    html_said(h, b->keys[k].n > 0 ? b->keys[k] : STR("-"));
  }
  if (b->table == DRILLDOWN_CAUSES) {
    html_puts(h, ", not complete by cause ");
    html_said(h, b->keys[0]);
  }
  if (b->count > 0 && b->count < b->total)
    html_printf(h, ". Shown: %llu to %llu", (unsigned long long)b->from + 1,
                (unsigned long long)(b->from + b->count));
  HTML(h, ".</p>");
}

/* --- rows --- */

static void put_unit_word(struct html *h, const struct drilldown *b, uint32_t word) {
  struct str text = dictionary_text(&b->aggregate->names, word);
  HTML(h, "<td>");
  html_said(h, text.n > 0 ? text : STR("-"));
  HTML(h, "</td>");
}

static void put_behind_judgment(struct html *h, const struct drilldown *b,
                                const struct drilldown_unit *u) {
  struct buf turn = {0};
  struct str movement = dictionary_text(&b->aggregate->names, u->movement);
  buf_printf(&turn, "%ld", u->turn);
  HTML(h, "<th scope=row><a");
  html_link2(h, str_from(u->session), buf_view(&turn));
  HTML(h, ">");
  html_said(h, movement.n > 0 ? movement : STR("-"));
  html_printf(h, ", turn %s", buf_c(&turn));
  HTML(h, "</a></th>");
  buf_deinit(&turn);
}

static void put_unit_row(struct html *h, const struct drilldown *b,
                         const struct drilldown_unit *u) {
  HTML(h, "<tr>");
  if (u->turn > 0)
    put_behind_judgment(h, b, u);
  HTML(h, "<td><a");
  HTML_LINK(h, "/s/", str_from(u->session), "/");
  HTML(h, "><code>");
  html_text(h, str_from(u->session));
  HTML(h, "</code></a></td>");
  put_unit_word(h, b, u->workflow);
  HTML(h, "<td>");
  part_when(h, u->time_ms);
  HTML(h, "</td>");
  put_unit_word(h, b, u->outcome);
  if (u->turn > 0) {
    HTML(h, "<td class=n>");
    if (u->rule > 0)
      html_printf(h, "%u", (unsigned)u->rule);
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

static void put_further(struct html *h, const struct page_ask *ask, const struct drilldown *b) {
  struct buf from = {0};
  if (b->from + b->count >= b->total)
    return;
  buf_printf(&from, "%llu", (unsigned long long)(b->from + b->count));
  HTML(h, "<p><a");
  HTML_LINK(h, "/judgments?of=", str_from(ask->of), "");
  put_address(h, ask);
  HTML_LINK_MORE(h, "from", buf_view(&from));
  HTML(h, ">Further ones</a></p>");
  buf_deinit(&from);
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
    HTML(&h, "<p class=banner role=alert>");
    html_said(&h, str_from(err.text));
    HTML(&h, "</p>");
  } else {
    put_behind_sum(&h, &b);
    if (b.count > 0)
      put_units(&h, &b);
    put_further(&h, ask, &b);
  }
  part_end_page(&h);
  drilldown_deinit(&b);
  aggregate_free(c);
  return 200;
}

unsigned page_behind_data(const struct page_ask *ask, struct buf *out) {
  struct drilldown b = {.max = LIMIT_WINDOW_LISTED_COUNT};
  struct aggregate *c = aggregate_new();
  struct err err = {0};
  bool ok = behind_ask(ask, &b, &err) && behind_find(ask, &b, c, &err);
  if (ok && ask->kind == PAGE_BEHIND_CSV)
    drilldown_csv(&b, out);
  else if (ok)
    drilldown_json(&b, out);
  drilldown_deinit(&b);
  aggregate_free(c);
  return ok ? 200 : page_problem(ask, out, &err);
}
