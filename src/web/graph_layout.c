/* Draws a workflow's graph as rows in the file's order with its edges as rails beside them, in SVG:
 * down on the right, back on the left, each with how often it was taken.
 *
 * The drawing is in the first cell of a table and spans all its rows. The rows have the words,
 * which screen readers read: movements, then COMPLETE, then ABORT. Lanes are assigned greedily, so
 * nothing moves while a session runs. Edges beyond GRAPH_LAYOUT_LANES lanes are not drawn; the
 * words still name them. */
#include "base/log.h"
#include "web/parts.h"

#include <stdlib.h>

/* Lengths are in units of the drawing: a row is ROW high, which style.css makes 2.5 em. */
enum { ROW = 40, LANE = 26, DOT = 6, ROWS_MAX = 5002, GRAPH_LAYOUT_LANES = 10 };

struct graph_layout_edge {
  size_t from, to; /* rows */
  long taken;
  int lane; /* from 0; -1: it has none */
};

struct graph_layout {
  const struct view_session *v;
  struct graph_layout_edge *edges;
  size_t count, room;
  int left, right; /* lanes */
};

static size_t graph_layout_row(const struct view_session *v, struct str next) {
  if (str_eq_c(next, "COMPLETE"))
    return v->movement_count;
  if (str_eq_c(next, "ABORT"))
    return v->movement_count + 1;
  for (size_t i = 0; i < v->movement_count; i++)
    if (str_eq(v->movements[i].name, next))
      return i;
  return SIZE_MAX;
}

static void add_edge(struct graph_layout *r, size_t from, size_t to, long taken) {
  for (size_t i = r->count; i-- > 0 && r->edges[i].from == from;)
    if (r->edges[i].to == to) {
      r->edges[i].taken += taken;
      return;
    }
  r->edges = xgrow(r->edges, &r->room, r->count + 1, sizeof *r->edges);
  r->edges[r->count++] = (struct graph_layout_edge){from, to, taken, -1};
}

static size_t edge_top(const struct graph_layout_edge *e) {
  return e->from < e->to ? e->from : e->to;
}

static size_t edge_bottom(const struct graph_layout_edge *e) {
  return e->from < e->to ? e->to : e->from;
}

static bool goes_back(const struct graph_layout_edge *e) {
  return e->to <= e->from;
}

static bool is_straight(const struct graph_layout_edge *e) {
  return e->to == e->from + 1;
}

/* Short edges sort first: they lie inside. */
static int graph_layout_by_length(const void *a, const void *b) {
  const struct graph_layout_edge *x = a, *y = b;
  size_t n = edge_bottom(x) - edge_top(x), m = edge_bottom(y) - edge_top(y);
  if (n != m)
    return n < m ? -1 : 1;
  if (x->from != y->from)
    return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

static bool lane_is_free(const struct graph_layout *r, const struct graph_layout_edge *e,
                         int lane) {
  for (const struct graph_layout_edge *o = r->edges; o < e; o++)
    if (o->lane == lane && goes_back(o) == goes_back(e) && edge_top(o) <= edge_bottom(e) &&
        edge_top(e) <= edge_bottom(o) && o->to != e->to)
      return false;
  return true;
}

static void graph_layout_gather(struct graph_layout *r) {
  for (size_t i = 0; i < r->v->movement_count; i++)
    for (size_t k = 0; k < r->v->movements[i].rule_count + r->v->movements[i].error_count; k++) {
      size_t to = graph_layout_row(r->v, r->v->movements[i].rules[k].next);
      if (to != SIZE_MAX)
        add_edge(r, i, to, r->v->movements[i].rules[k].taken);
    }
  qsort(r->edges, r->count, sizeof *r->edges, graph_layout_by_length);
  for (size_t i = 0; i < r->count; i++) {
    struct graph_layout_edge *e = &r->edges[i];
    int *lanes = goes_back(e) ? &r->left : &r->right;
    for (int lane = 0; lane < GRAPH_LAYOUT_LANES && e->lane < 0 && !is_straight(e); lane++)
      if (lane_is_free(r, e, lane))
        e->lane = lane;
    if (e->lane >= *lanes)
      *lanes = e->lane + 1;
  }
}

static int mid(size_t row) {
  return (int)row * ROW + ROW / 2;
}

static void put_count(struct html *h, const struct graph_layout_edge *e, int x, int y) {
  if (e->taken != 0)
    HTML_FMT(h, "<text x=\"%d\" y=\"%d\">%ld</text>", x, y, e->taken);
}

/* Draws an arrow's tip at a dot: from the left, from the right, or from above. */
static void graph_layout_put_tip(struct html *h, int x, int y, int dx, int dy) {
  HTML_FMT(h, "<path d=\"M%d %dl%d %dl%d %dz\" class=tip /></g>", x, y, 5 * dx - 4 * dy,
           5 * dy - 4 * dx, 8 * dy, 8 * dx);
}

static void graph_layout_put_edge(struct html *h, const struct graph_layout *r,
                                  const struct graph_layout_edge *e) {
  int x = r->left * LANE + LANE / 2, from = mid(e->from), to = mid(e->to);
  if (e->lane < 0 && !is_straight(e))
    return;
  if (e->taken > 0)
    HTML(h, "<g class=taken><path");
  else
    HTML(h, "<g class=never><path");
  if (is_straight(e)) {
    HTML_FMT(h, " d=\"M%d %dV%d\" />", x, from + DOT, to - DOT);
    put_count(h, e, x + 8, (from + to) / 2 + 4);
    graph_layout_put_tip(h, x, to - DOT, 0, -1);
    return;
  }
  int side = goes_back(e) ? -1 : 1;
  int lane = x + side * (LANE + e->lane * LANE) - side * 6, tip = x + side * DOT;
  if (e->from == e->to) /* it loops back to its own row */
    HTML_FMT(h, " d=\"M%d %dH%dV%dH%d\" />", tip, from + 7, lane, to - 5, tip);
  else
    HTML_FMT(h, " d=\"M%d %dH%dV%dH%d\" />", tip, from, lane, to, tip);
  put_count(h, e, lane + 3, e->from == e->to ? from + 16 : (from + to) / 2 + 4);
  graph_layout_put_tip(h, tip, e->from == e->to ? to - 5 : to, side, 0);
}

static void put_svg(struct html *h, const struct graph_layout *r, size_t rows) {
  int width = (r->left + r->right + 1) * LANE;
  HTML_FMT(h, "<svg aria-hidden=true viewBox=\"0 0 %d %d\" height=\"%.1fem\" width=\"%.2fem\"",
           width, (int)rows * ROW, 2.5 * (double)rows, 2.5 * width / ROW);
  if (h->root == NULL) /* a file may be read without its style */
    HTML(h, " fill=none stroke=black");
  HTML(h, ">");
  for (int taken = 0; taken < 2; taken++) /* edges that were taken are drawn on top */
    for (size_t i = 0; i < r->count; i++)
      if ((r->edges[i].taken > 0) == (taken == 1))
        graph_layout_put_edge(h, r, &r->edges[i]);
  for (size_t i = 0; i < rows; i++) {
    bool ends = i >= r->v->movement_count;
    bool ran = !ends && r->v->movements[i].runs > 0;
    HTML_FMT(h, "<circle cx=\"%d\" cy=\"%d\" r=\"%d\"", r->left * LANE + LANE / 2, mid(i), DOT);
    if (!ends && r->v->movements[i].open)
      HTML(h, " class=open");
    else if (ran)
      HTML(h, " class=ran");
    HTML(h, " />");
  }
  HTML(h, "</svg>");
}

/* Writes in words where a movement led. */
static void put_led(struct html *h, const struct view_movement *m) {
  bool any = false;
  for (size_t i = 0; i < m->rule_count + m->error_count; i++) {
    if (m->rules[i].taken == 0)
      continue;
    if (any)
      html_puts(h, ", ");
    any = true;
    if (i >= m->rule_count) {
      html_puts(h, "after an error ");
      html_said(h, m->rules[i].next);
    } else if (m->rules[i].next.n > 0)
      html_said(h, m->rules[i].next);
    else
      html_said(h, m->rules[i].condition);
    HTML_FMT(h, " %ld\xC3\x97", m->rules[i].taken);
  }
  if (!any)
    html_puts(h, "-");
}

static void put_row(struct html *h, const struct view_movement *m) {
  HTML_FMT(h, "<th scope=row><bdi>%.*s</bdi>", STR_ARG(m->name));
  if (m->open)
    HTML(h, " <span class=mark>open</span>");
  if (m->who.n > 0)
    HTML_FMT(h, "<br><bdi class=dim>%.*s</bdi>", STR_ARG(m->who));
  if (h->root != NULL)
    HTML(h, "</th><td class=n>");
  else
    HTML(h, "</th><td>");
  HTML_FMT(h, "%ld</td><td>", m->runs);
  put_led(h, m);
  HTML(h, "</td></tr>");
}

void graph_layout_table(struct html *h, const struct view_session *v) {
  struct graph_layout r = {.v = v};
  size_t rows = v->movement_count + 2;
  graph_layout_gather(&r);
  HTML(h, "<div class=wide tabindex=0 role=region aria-label=\"Graph\"><table class=rails>"
          "<thead><tr><td></td><th scope=col>movement</th><th scope=col>runs</th>"
          "<th scope=col>led to</th></tr></thead><tbody>");
  for (size_t i = 0; i < rows; i++) {
    HTML(h, "<tr>");
    if (i == 0) {
      HTML_FMT(h, "<td class=drawing rowspan=\"%zu\">", rows);
      if (rows <= ROWS_MAX)
        put_svg(h, &r, rows);
      HTML(h, "</td>");
    }
    if (i < v->movement_count)
      put_row(h, &v->movements[i]);
    else if (i == v->movement_count)
      HTML(h, "<th scope=row>COMPLETE</th><td colspan=2></td></tr>");
    else
      HTML(h, "<th scope=row>ABORT</th><td colspan=2></td></tr>");
  }
  HTML(h, "</tbody></table></div>");
  free(r.edges);
}
