/* Writes many sessions, each with its status. */
#include "view/words.h"
#include "web/parts.h"

static void put_row_id(struct html *h, const struct view_row *row) {
  HTML(h, "<th scope=row>");
  if (h->root != NULL) {
    HTML(h, "<a");
    HTML_LINK(h, "s/", str_from(row->id), "/");
    HTML(h, ">");
    html_text(h, str_from(row->id));
    HTML(h, "</a></th>");
    return;
  }
  HTML(h, "<code");
  HTML_ATTR(h, "title", row->log);
  HTML(h, ">");
  html_text(h, str_from(row->id));
  HTML(h, "</code></th>");
}

/* --- how its judgments were decided --- */

/* Returns the look of a method; methods that cost about the same and fail alike share one. */
static const char *method_class(int method) {
  switch ((enum judge_stage)method) {
  case STAGE_AUTO_SELECT:
  case STAGE_AGGREGATE:
  case STAGE_WHEN:
    return "by-rule";
  case STAGE_STRUCTURED_OUTPUT:
    return "by-value";
  case STAGE_PHASE3_TAG:
  case STAGE_PHASE1_TAG:
    return "by-tag";
  case STAGE_AI_JUDGE:
  case STAGE_AI_JUDGE_FALLBACK:
    return "by-judge";
  case STAGE_HUMAN:
    return "by-person";
  case STAGE_COUNT:
    break;
  }
  return "by-none";
}

static long put_method_words(struct buf *out, const struct view_row *row) {
  long sum = 0;
  for (int i = 0; i < SKIM_METHODS; i++) {
    if (row->methods[i] == 0)
      continue;
    buf_printf(out, "%s%s %ld", sum > 0 ? ", " : "", skim_method_name(i), row->methods[i]);
    sum += row->methods[i];
  }
  return sum;
}

static void put_method_bar(struct html *h, const struct view_row *row) {
  struct buf words = {0};
  if (row->last_methods)
    buf_puts(&words, "of its last records: ");
  long sum = put_method_words(&words, row);
  long long at = 0;
  HTML(h, "<td>");
  if (sum > 0) {
    HTML(h, "<svg role=img");
    if (h->root == NULL) /* a file may be read without its style */
      HTML(h, " height=14");
    HTML(h, "><title>");
    html_text(h, buf_view(&words));
    HTML(h, "</title>");
    for (int i = 0; i < SKIM_METHODS; i++) {
      long long share = row->methods[i] * 1000LL / sum, width = share > 30 ? share - 15 : 15;
      if (row->methods[i] == 0)
        continue;
      HTML(h, "<rect");
      HTML_ATTR(h, "class", str_from(method_class(i)));
      if (at > 0)
        html_attr_printf(h, "x", "%lld.%lld%%", at / 10, at % 10);
      html_attr_printf(h, "width", "%lld.%lld%%", width / 10, width % 10);
      HTML(h, " />");
      at += share;
    }
    HTML(h, "</svg>");
  }
  HTML(h, "</td>");
  buf_deinit(&words);
}

void part_methods_key(struct html *h) {
  static const struct {
    int method;
    const char *words;
  } key[] = {{STAGE_WHEN, "by the workflow"}, {STAGE_STRUCTURED_OUTPUT, "by a value"},
             {STAGE_PHASE3_TAG, "by a tag"},  {STAGE_AI_JUDGE, "by a judge"},
             {STAGE_HUMAN, "by a person"},    {SKIM_NO_RULE, "by nothing"}};
  HTML(h, "<p class=\"key dim\">Judgments were decided: ");
  for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
    HTML(h, "<span><svg viewBox=\"0 0 1 1\" aria-hidden=true");
    part_bare_size(h, 14, 14);
    HTML(h, "><rect width=1 height=1");
    HTML_ATTR(h, "class", str_from(method_class(key[i].method)));
    HTML(h, " /></svg>");
    html_puts(h, key[i].words);
    HTML(h, "</span>");
  }
  HTML(h, "</p>");
}

/* --- rows ---
 *
 * A page has many: what all of them share is in style.css, by the place of a cell, and links are
 * relative. */

static void put_dim_line(struct html *h, struct str text) {
  HTML(h, "<br><bdi class=dim>");
  html_text(h, text);
  HTML(h, "</bdi>");
}

static void put_marks(struct html *h, const struct view_row *row) {
  if (row->asks > 0)
    HTML(h, " <span class=mark>asks</span>");
  if (row->retries) {
    HTML(h, " <span class=mark>retrying</span> ");
    if (row->wait_ms > 0)
      part_since(h, row->wait_ms);
  }
  if (row->ambiguous)
    HTML(h, " <span class=mark>ambiguous</span>");
  if (row->fell_back)
    HTML(h, " <span class=mark>fell back</span>");
  if (!str_eq_c(row->proof, "sound")) {
    HTML(h, " <span class=mark>log ");
    html_said(h, row->proof);
    HTML(h, "</span>");
  }
}

static void put_about(struct html *h, const struct view_row *row) {
  HTML(h, "<td>");
  html_said(h, row->workflow);
  put_dim_line(h, row->task);
  HTML(h, "</td><td>");
  html_said(h, row->movement);
  if (row->providers.n > 0)
    put_dim_line(h, row->providers);
  HTML(h, "</td><td>");
  if (row->message.n > 0)
    html_said(h, row->message);
  if (row->wait.n > 0) {
    html_puts(h, row->message.n > 0 ? "; waits: " : "waits: ");
    html_said(h, row->wait);
  }
  put_marks(h, row);
  HTML(h, "</td>");
}

static void put_session_row(struct html *h, const struct view_row *row) {
  struct buf text = {0};
  HTML(h, "<tr");
  html_attr_printf(h, "id", "r-%s", row->id);
  HTML(h, ">");
  part_status_cell(h, row->status, row->class);
  put_row_id(h, row);
  put_about(h, row);
  put_method_bar(h, row);
  HTML(h, "<td>");
  html_printf(h, "%ld", row->turns);
  HTML(h, "</td>");
  part_when_cell(h, row->started_ms);
  part_when_cell(h, row->updated_ms);
  HTML(h, "<td>");
  if (row->updated_ms >= row->started_ms)
    view_put_time(&text, row->updated_ms - row->started_ms);
  html_text(h, buf_view(&text));
  HTML(h, "</td><td>");
  html_printf(h, "%lld", (long long)row->tokens);
  HTML(h, "</td><td>");
  buf_clear(&text);
  view_put_dollars(&text, row->cost_usd, row->priced, row->unpriced);
  html_text(h, buf_view(&text));
  HTML(h, "</td></tr>");
  buf_deinit(&text);
}

/* Writes the head of a sortable column, which links to that order and back again. */
static void put_column(struct html *h, const char *name, enum view_sort sort,
                       const struct part_order *order) {
  if (order == NULL) {
    HTML(h, "<th scope=col class=n>");
    html_puts(h, name);
    HTML(h, "</th>");
    return;
  }
  bool now = order->sort == sort;
  HTML(h, "<th scope=col class=n");
  if (now)
    HTML_ATTR(h, "aria-sort", order->least_first ? STR("ascending") : STR("descending"));
  HTML(h, "><a");
  html_link_query(h, "sort", now && !order->least_first ? "-" : "", view_sort_name(sort), order->q);
  HTML(h, ">");
  html_puts(h, name);
  if (now)
    html_puts(h, order->least_first ? " \xE2\x96\xB2" : " \xE2\x96\xBC");
  HTML(h, "</a></th>");
}

void part_rows(struct html *h, const struct view_folder *f, enum view_class class,
               const struct part_order *order) {
  if (h->root != NULL)
    HTML(h, "<div class=wide tabindex=0 role=region");
  else /* times are in full there, and there is a width of paper */
    HTML(h, "<div class=\"wide rows\" tabindex=0 role=region");
  HTML_ATTR(h, "aria-label",
            str_from(class == VIEW_CLASS_COUNT ? "sessions" : view_class_name(class)));
  HTML(h, "><table><thead><tr><th scope=col>status</th><th scope=col>session</th>"
          "<th scope=col>workflow, task</th><th scope=col>movement, providers</th>"
          "<th scope=col>why</th><th scope=col>decided by</th>");
  put_column(h, "turns", VIEW_SORT_TURNS, order);
  put_column(h, "started", VIEW_SORT_STARTED, order);
  HTML(h, "<th scope=col class=n>last record</th>");
  put_column(h, "took", VIEW_SORT_TOOK, order);
  put_column(h, "tokens", VIEW_SORT_TOKENS, order);
  put_column(h, "cost", VIEW_SORT_COST, order);
  HTML(h, "</tr></thead><tbody>");
  for (size_t i = 0; i < f->count; i++)
    if (class == VIEW_CLASS_COUNT || f->rows[i].class == class)
      put_session_row(h, &f->rows[i]);
  HTML(h, "</tbody></table></div>");
}
