/* Writes many sessions, each with its status. */
#include "view/words.h"
#include "web/parts.h"

static void put_row_id(struct html *h, const struct view_row *row) {
  HTML(h, "<th scope=row>");
  if (h->root != NULL) {
    HTML(h, "<a");
    HTML_LINK(h, "/s/", str_from(row->id), "/");
    HTML(h, "><code>");
    html_text(h, str_from(row->id));
    HTML(h, "</code></a></th>");
    return;
  }
  HTML(h, "<code");
  HTML_ATTR(h, "title", row->log);
  HTML(h, ">");
  html_text(h, str_from(row->id));
  HTML(h, "</code></th>");
}

static void put_about(struct html *h, const struct view_row *row) {
  HTML(h, "<td>");
  html_said(h, row->workflow);
  HTML(h, "<br><span class=dim>");
  html_said(h, row->task);
  HTML(h, "</span></td><td>");
  html_said(h, row->movement);
  if (row->providers.n > 0) {
    HTML(h, "<br><span class=dim>");
    html_said(h, row->providers);
    HTML(h, "</span>");
  }
  HTML(h, "</td><td>");
  html_said(h, row->message);
  if (row->wait.n > 0) {
    html_puts(h, row->message.n > 0 ? "; waits: " : "waits: ");
    html_said(h, row->wait);
  }
  if (row->asks > 0) {
    HTML(h, " <span class=mark>asks</span>");
  }
  if (!str_eq_c(row->proof, "sound")) {
    HTML(h, " <span class=mark>log ");
    html_said(h, row->proof);
    HTML(h, "</span>");
  }
  HTML(h, "</td>");
}

static void put_session_row(struct html *h, const struct view_row *row) {
  struct buf text = {0};
  HTML(h, "<tr");
  html_attr_printf(h, "id", "r-%s", row->id);
  HTML(h, "><td>");
  part_status(h, row->status, row->class);
  HTML(h, "</td>");
  put_row_id(h, row);
  put_about(h, row);
  HTML(h, "<td class=n>");
  html_printf(h, "%ld", row->turns);
  HTML(h, "</td><td class=n>");
  part_when(h, row->started_ms);
  HTML(h, "</td><td class=n>");
  if (row->updated_ms >= row->started_ms)
    view_put_time(&text, row->updated_ms - row->started_ms);
  html_text(h, buf_view(&text));
  HTML(h, "</td><td class=n>");
  html_printf(h, "%lld", (long long)row->tokens);
  HTML(h, "</td><td class=n>");
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
  HTML(h, "<div class=wide tabindex=0 role=region");
  HTML_ATTR(h, "aria-label",
            str_from(class == VIEW_CLASS_COUNT ? "sessions" : view_class_name(class)));
  HTML(h, "><table><thead><tr><th scope=col>status</th><th scope=col>session</th>"
          "<th scope=col>workflow, task</th><th scope=col>movement, providers</th>"
          "<th scope=col>why</th>");
  put_column(h, "turns", VIEW_SORT_TURNS, order);
  put_column(h, "started", VIEW_SORT_STARTED, order);
  put_column(h, "took", VIEW_SORT_TOOK, order);
  put_column(h, "tokens", VIEW_SORT_TOKENS, order);
  put_column(h, "cost", VIEW_SORT_COST, order);
  HTML(h, "</tr></thead><tbody>");
  for (size_t i = 0; i < f->count; i++)
    if (class == VIEW_CLASS_COUNT || f->rows[i].class == class)
      put_session_row(h, &f->rows[i]);
  HTML(h, "</tbody></table></div>");
}
