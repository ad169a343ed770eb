/* Writes the tables of an audit. */
#include "audit/kappa.h"
#include "judge/stage.h"
#include "view/words.h"
#include "web/parts.h"

#include <string.h>

enum { AUDIT_ROWS = 50 };

/* In the window, a key links to the sessions that have it. Returns NULL if it links nowhere. */
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

static void audit_count(struct html *h, uint64_t n) {
  HTML(h, "<td class=n>");
  html_printf(h, "%llu", (unsigned long long)n);
  HTML(h, "</td>");
}

/* Writes a share as a number and as a bar. */
static void put_share(struct html *h, double share) {
  HTML(h, "<td class=n>");
  html_printf(h, "%.1f %%", 100 * share);
  HTML(h, "</td><td><svg class=bar viewBox=\"0 0 1000 10\" preserveAspectRatio=none "
          "aria-hidden=true><rect class=share height=10");
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

static void audit_head(struct html *h, const struct tally_table *t, const char *title) {
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
    html_printf(h, "%zu rows more: segue audit lists them.", t->count - AUDIT_ROWS);
    HTML(h, "</p>");
  }
}

static void put_methods_table(struct html *h, const struct census *c) {
  const struct tally_table *t = &c->tables[CENSUS_METHODS];
  audit_head(h, t, "What decided");
  HTML(h, "<th scope=col class=n>judgments</th><th scope=col class=n>share</th><td></td>"
          "<th scope=col class=n>p50</th><th scope=col class=n>p90</th><th scope=col class=n>p99"
          "</th><th scope=col class=n>tokens of judges</th><th scope=col class=n>cost</th></tr>"
          "</thead><tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    const struct tally_group *g = &t->groups[i];
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, g->judgments);
    put_share(h, census_share(c, g->judgments));
    put_use(h, g);
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

static void put_stages_table(struct html *h, const struct census *c) {
  const struct tally_table *t = &c->tables[CENSUS_STAGES];
  audit_head(h, t, "Stages: how often each was tried and decided");
  HTML(h, "<th scope=col class=n>tried</th><th scope=col class=n>decided</th>"
          "<th scope=col class=n>p50</th><th scope=col class=n>p90</th><th scope=col class=n>p99"
          "</th><th scope=col class=n>tokens</th><th scope=col class=n>cost</th></tr></thead>"
          "<tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    const struct tally_group *g = &t->groups[i];
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, g->units);
    audit_count(h, g->decided);
    put_use(h, g);
    HTML(h, "</tr>");
  }
  audit_end(h, t);
}

static void put_falls_table(struct html *h, const struct census *c) {
  const struct tally_table *t = &c->tables[CENSUS_FALLS];
  size_t shown = 0;
  audit_head(h, t, "Stages that did not decide, and why");
  HTML(h, "<th scope=col class=n>times</th></tr></thead><tbody>");
  for (size_t i = 0; i < t->count && shown < AUDIT_ROWS; i++) {
    const struct tally_group *g = &t->groups[i];
    if (g->units == g->decided)
      continue;
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, g);
    audit_count(h, g->units - g->decided);
    HTML(h, "</tr>");
    shown++;
  }
  audit_end(h, t);
}

static void put_part_table(struct html *h, const struct census *c, enum census_table table,
                           const char *title, double (*part)(const struct tally_group *)) {
  const struct tally_table *t = &c->tables[table];
  audit_head(h, t, title);
  HTML(h, "<th scope=col class=n>times</th><th scope=col class=n>share</th><td></td></tr></thead>"
          "<tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, &t->groups[i]);
    audit_count(h, t->groups[i].units);
    put_share(h, part(&t->groups[i]));
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

static void put_judges_table(struct html *h, const struct census *c) {
  const struct tally_table *t = &c->tables[CENSUS_JUDGES];
  audit_head(h, t, "Judges: answers that could not be read");
  HTML(h, "<th scope=col class=n>times</th><th scope=col class=n>share</th><th scope=col>95 %"
          "</th></tr></thead><tbody>");
  for (size_t i = 0; i < t->count && i < AUDIT_ROWS; i++) {
    HTML(h, "<tr>");
    put_keys_cell(h, c, t, &t->groups[i]);
    audit_count(h, t->groups[i].units);
    put_rated(h, census_unreadable(&t->groups[i]), t->groups[i].units);
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

static void put_causes(struct html *h, const struct census *c) {
  if (c->cause_count == 0)
    return;
  HTML(h, "<h3>Not complete, by cause</h3><table><thead><tr><th scope=col>cause</th>"
          "<th scope=col class=n>sessions</th><th scope=col>for example</th></tr></thead><tbody>");
  for (size_t i = 0; i < c->cause_count; i++) {
    HTML(h, "<tr><th scope=row>");
    html_said(h, names_text(&c->names, c->causes[i].cause));
    HTML(h, "</th>");
    audit_count(h, c->causes[i].count);
    HTML(h, "<td>");
    put_cause_example(h, str_from(c->causes[i].example));
    HTML(h, "</td></tr>");
  }
  HTML(h, "</tbody></table>");
}

static void put_apart(struct html *h, const struct census *c) {
  if (c->apart_count == 0)
    return;
  HTML(h, "<h3>Logs counted apart</h3><table><thead><tr><th scope=col>log</th>"
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
  HTML(h, "</tbody></table>");
}

void part_audit(struct html *h, const struct census *c) {
  const struct tally_table *all = &c->tables[CENSUS_ALL];
  if (all->count > 0) {
    const struct tally_group *g = &all->groups[0];
    struct buf cost = {0};
    put_use_cost(&cost, &g->unsure_use);
    HTML(h, "<p>");
    html_printf(h,
                "%llu judgments: %llu by a rule, %llu without, %llu ambiguous; %llu in which a "
                "stage that reads a model's words did not decide, which cost %lld tokens and %s",
                (unsigned long long)g->judgments, (unsigned long long)g->decided,
                (unsigned long long)g->no_rule, (unsigned long long)g->ambiguous,
                (unsigned long long)g->unsure,
                (long long)(g->unsure_use.input + g->unsure_use.output), buf_c(&cost));
    html_puts(h, ".");
    buf_deinit(&cost);
    HTML(h, "</p>");
    put_methods_table(h, c);
    put_stages_table(h, c);
    put_falls_table(h, c);
    put_part_table(h, c, CENSUS_MOVEMENTS, "Movements: judgments that were unsure", census_unsure);
    put_judges_table(h, c);
    if (c->tables[CENSUS_BY].key_count > 0)
      put_part_table(h, c, CENSUS_BY, "By day: judgments that were unsure", census_unsure);
  } else {
    HTML(h, "<p>Nothing was judged.</p>");
  }
  put_causes(h, c);
  put_apart(h, c);
}
