/* Writes the tables of an audit, whose numbers lead to what they count. */
#include "audit/behind.h"
#include "audit/kappa.h"
#include "judge/stage.h"
#include "view/words.h"
#include "web/parts.h"

#include <string.h>

enum { AUDIT_ROWS = 50 };

/* Returns the filter for sessions with that key, to which it links in the window; NULL: no link. */
static const char *key_filter(enum tally_key key) {
  const char *name = tally_key_name(key);
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

static void put_keys_cell(struct html *h, const struct census *c, const struct tally_table *t,
                          const struct tally_group *g) {
  for (size_t k = 0; k < t->key_count; k++) {
    struct buf text = {0};
    tally_key_text(t, g, k, &c->names, &text);
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
  const struct census *c;
  struct str q; /* the filter */
  int table;    /* enum census_table, or BEHIND_CAUSES */
};

static const struct tally_table *table_at(const struct audit_at *at) {
  return &at->c->tables[at->table];
}

/* Begins a link to what a number counts; g: its group; NULL: it has none. Call end_behind. */
static bool begin_behind(struct html *h, const struct audit_at *at, const struct tally_group *g,
                         enum behind_what what) {
  const struct tally_table *t = at->table < CENSUS_TABLE_COUNT ? table_at(at) : NULL;
  struct buf keys[TALLY_KEYS_MAX] = {{0}};
  bool plain = true;
  if (h->root == NULL)
    return false;
  for (size_t k = 0; g != NULL && t != NULL && k < t->key_count; k++)
    tally_key_text(t, g, k, &at->c->names, &keys[k]);
  /* a NUL ends what an address can say */
  for (size_t k = 0; k < TALLY_KEYS_MAX && plain; k++)
    plain = strlen(buf_c(&keys[k])) == keys[k].n;
  if (plain) {
    HTML(h, "<a");
    HTML_LINK(h, "/judgments?of=", str_from(behind_table_name(at->table)), "");
    HTML_LINK_MORE(h, "what", str_from(behind_what_name(what)));
    HTML_LINK_MORE(h, "k1", buf_view(&keys[0]));
    HTML_LINK_MORE(h, "k2", buf_view(&keys[1]));
    HTML_LINK_MORE(h, "k3", buf_view(&keys[2]));
    HTML_LINK_MORE(h, "q", at->q);
    HTML(h, ">");
  }
  for (size_t k = 0; k < TALLY_KEYS_MAX; k++)
    buf_deinit(&keys[k]);
  return plain;
}

static void end_behind(struct html *h, bool begun) {
  if (begun)
    HTML(h, "</a>");
}

static void put_behind(struct html *h, const struct audit_at *at, const struct tally_group *g,
                       enum behind_what what, uint64_t n) {
  bool linked = n > 0 && begin_behind(h, at, g, what);
  html_printf(h, "%llu", (unsigned long long)n);
  end_behind(h, linked);
}

static void audit_count(struct html *h, const struct audit_at *at, const struct tally_group *g,
                        enum behind_what what, uint64_t n) {
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

static void put_use(struct html *h, const struct tally_group *g) {
  struct buf text = {0};
  const int percents[] = {50, 90, 99};
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    HTML(h, "<td class=n>");
    buf_clear(&text);
    view_put_time(&text, (int64_t)spread_at(&g->ms, percents[i]));
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
  const struct tally_table *t = table_at(at);
  HTML(h, "<h3>");
  html_puts(h, title);
  HTML(h, "</h3><div class=wide tabindex=0 role=region");
  HTML_ATTR(h, "aria-label", str_from(title));
  HTML(h, "><table><thead><tr>");
  for (size_t k = 0; k < t->key_count; k++) {
    HTML(h, "<th scope=col>");
    html_puts(h, tally_key_name(t->keys[k]));
    HTML(h, "</th>");
  }
}

static void audit_end(struct html *h, const struct tally_table *t) {
  HTML(h, "</tbody></table></div>");
  if (t->count > AUDIT_ROWS) {
    HTML(h, "<p class=dim>");
    html_printf(h, "%zu more rows: segue audit lists them.", t->count - AUDIT_ROWS);
    HTML(h, "</p>");
  }
}

static void put_methods_table(struct html *h, const struct census *c, struct str q) {
  const struct audit_at at = {c, q, CENSUS_METHODS};
  const struct tally_table *t = table_at(&at);
  audit_head(h, &at, "Judgments by method");
  HTML(h, "<th scope=col class=n>judgments</th><th scope=col class=n>share</th><td></td>"
          "<th scope=col class=n>p50</th><th scope=col class=n>p90</th><th scope=col class=n>p99"
          "</th><th scope=col class=n>judge tokens</th><th scope=col class=n>cost</th></tr>"
          "</thead><tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    const struct tally_group *g = &t->groups[i];
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, &at, g, BEHIND_ALL, g->judgments);
    put_share(h, census_share(c, g->judgments));
    put_use(h, g);
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

static void put_stages_table(struct html *h, const struct census *c, struct str q) {
  const struct audit_at at = {c, q, CENSUS_STAGES};
  const struct tally_table *t = table_at(&at);
  audit_head(h, &at, "Stages: how often each was tried, and how often it decided");
  HTML(h, "<th scope=col class=n>tried</th><th scope=col class=n>decided</th>"
          "<th scope=col class=n>p50</th><th scope=col class=n>p90</th><th scope=col class=n>p99"
          "</th><th scope=col class=n>tokens</th><th scope=col class=n>cost</th></tr></thead>"
          "<tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    const struct tally_group *g = &t->groups[i];
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, &at, g, BEHIND_ALL, g->units);
    audit_count(h, &at, g, BEHIND_DECIDED, g->decided);
    put_use(h, g);
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

static void put_falls_table(struct html *h, const struct census *c, struct str q) {
  const struct audit_at at = {c, q, CENSUS_FALLS};
  const struct tally_table *t = table_at(&at);
  size_t shown = 0;
  audit_head(h, &at, "Stages that did not decide, and why");
  HTML(h, "<th scope=col class=n>times</th></tr></thead><tbody>");
  for (size_t i = 0; i < t->count && shown < AUDIT_ROWS; i++) {
    const struct tally_group *g = &t->groups[i];
    if (g->units == g->decided)
      continue;
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, &at, g, BEHIND_LEFT, g->units - g->decided);
    HTML(h, "</tr>");
    shown++;
  }
  audit_end(h, t);
}

static void put_part_table(struct html *h, const struct audit_at *at, const char *title) {
  const struct tally_table *t = table_at(at);
  audit_head(h, at, title);
  HTML(h, "<th scope=col class=n>judgments</th><th scope=col class=n>unsure</th>"
          "<th scope=col class=n>share</th><td></td></tr></thead><tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    HTML(h, "<tr>");
    const struct tally_group *g = &t->groups[i];
    put_keys_cell(h, at->c, t, g);
    audit_count(h, at, g, BEHIND_ALL, g->units);
    audit_count(h, at, g, BEHIND_UNSURE, g->unsure);
    put_share(h, census_unsure(g));
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

/* Writes the share with its interval, or "too few" in its place for small counts. */
static void put_rated(struct html *h, double share, uint64_t n) {
  enum { RATED_LEAST = 10 };
  double low, high;
  kappa_wilson(share, (double)n, &low, &high);
  HTML(h, "<td class=n>");
  html_printf(h, "%.1f %%", 100 * share);
  HTML(h, "</td><td class=dim>");
  if (n < RATED_LEAST)
    html_puts(h, "too few");
  else
    html_printf(h, "%.1f to %.1f %%", 100 * low, 100 * high);
  HTML(h, "</td>");
}

static void put_judges_table(struct html *h, const struct census *c, struct str q) {
  const struct audit_at at = {c, q, CENSUS_JUDGES};
  const struct tally_table *t = table_at(&at);
  audit_head(h, &at, "Judges: unreadable answers");
  HTML(h, "<th scope=col class=n>asked</th><th scope=col class=n>unreadable</th>"
          "<th scope=col class=n>share</th><th scope=col>95 %</th></tr></thead><tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    const struct tally_group *g = &t->groups[i];
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, &at, g, BEHIND_ALL, g->units);
    audit_count(h, &at, g, BEHIND_UNREADABLE, g->outcomes[OUTCOME_UNREADABLE]);
    put_rated(h, census_unreadable(g), g->units);
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

static void put_cause_example(struct html *h, struct str id) {
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
}

static void put_cause_count(struct html *h, const struct audit_at *at,
                            const struct census_cause *cause) {
  /* its last place is shared by all causes beyond those that are counted */
  bool linked = h->root != NULL && cause->cause != NAMES_OTHER;
  HTML(h, "<td class=n>");
  if (linked) {
    HTML(h, "<a");
    HTML_LINK(h, "/judgments?of=", str_from(behind_table_name(at->table)), "");
    HTML_LINK_MORE(h, "k1", names_text(&at->c->names, cause->cause));
    HTML_LINK_MORE(h, "q", at->q);
    HTML(h, ">");
  }
  html_printf(h, "%llu", (unsigned long long)cause->count);
  end_behind(h, linked);
  HTML(h, "</td>");
}

static void put_causes(struct html *h, const struct census *c, struct str q) {
  const struct audit_at at = {c, q, BEHIND_CAUSES};
  if (c->cause_count == 0)
    return;
  HTML(h, "<h3>Sessions that did not complete, by cause</h3><div class=wide tabindex=0 role=region "
          "aria-label=\"Sessions that did not complete, by cause\"><table><thead><tr><th "
          "scope=col>cause</th>"
          "<th scope=col class=n>sessions</th><th scope=col>example</th></tr></thead><tbody>");
  for (size_t i = 0; i < c->cause_count; i++) {
    HTML(h, "<tr><th scope=row>");
    html_said(h, names_text(&c->names, c->causes[i].cause));
    HTML(h, "</th>");
    put_cause_count(h, &at, &c->causes[i]);
    HTML(h, "<td>");
    put_cause_example(h, str_from(c->causes[i].example));
    HTML(h, "</td></tr>");
  }
  HTML(h, "</tbody></table></div>");
}

static void put_apart(struct html *h, const struct census *c) {
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

static void put_audit_sums(struct html *h, const struct census *c, struct str q) {
  const struct audit_at at = {c, q, CENSUS_ALL};
  const struct tally_group *g = &table_at(&at)->groups[0];
  struct buf cost = {0};
  put_use_cost(&cost, &g->unsure_use);
  HTML(h, "<p>");
  put_behind(h, &at, g, BEHIND_ALL, g->judgments);
  html_puts(h, " judgments: ");
  put_behind(h, &at, g, BEHIND_DECIDED, g->decided);
  html_puts(h, " found a rule, ");
  put_behind(h, &at, g, BEHIND_LEFT, g->no_rule);
  html_puts(h, " did not, ");
  put_behind(h, &at, g, BEHIND_AMBIGUOUS, g->ambiguous);
  html_puts(h, " were ambiguous; in ");
  put_behind(h, &at, g, BEHIND_UNSURE, g->unsure);
  html_printf(h,
              " a stage that reads a model's words did not decide, at a cost of %lld tokens "
              "and %s.",
              (long long)(g->unsure_use.input + g->unsure_use.output), buf_c(&cost));
  HTML(h, "</p>");
  buf_deinit(&cost);
}

void part_audit(struct html *h, const struct census *c, struct str q) {
  const struct audit_at movements = {c, q, CENSUS_MOVEMENTS}, days = {c, q, CENSUS_BY};
  if (c->tables[CENSUS_ALL].count > 0) {
    put_audit_sums(h, c, q);
    put_methods_table(h, c, q);
    put_stages_table(h, c, q);
    put_falls_table(h, c, q);
    put_part_table(h, &movements, "Unsure judgments by movement");
    put_judges_table(h, c, q);
    if (c->tables[CENSUS_BY].key_count > 0)
      put_part_table(h, &days, "Unsure judgments by day");
  } else {
    HTML(h, "<p>Nothing was judged.</p>");
  }
  put_causes(h, c, q);
  put_apart(h, c);
}
