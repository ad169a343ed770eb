/* Writes one judgment in full. */
#include "web/parts.h"

static void put_line(struct html *h, const struct view_piece *p) {
  if (p->depth <= 1)
    HTML(h, "<p class=l>");
  else if (p->depth == 2)
    HTML(h, "<p class=\"l l2\">");
  else
    HTML(h, "<p class=\"l l3\">");
  html_said(h, p->text);
  HTML(h, "</p>");
}

static void put_piece_text(struct html *h, const struct view_piece *p) {
  if (p->origin.n > 0) {
    HTML(h, "<p class=origin>from ");
    html_said(h, p->origin);
    HTML(h, "</p>");
  }
  if (p->text.n == 0)
    return;
  HTML(h, "<pre>");
  html_text(h, p->text);
  HTML(h, "</pre>");
  if (p->more_bytes == 0)
    return;
  HTML(h, "<p class=origin>");
  html_printf(h, "%zu bytes more", p->more_bytes);
  HTML(h, "</p>");
}

/* Below the page's own in the window, deeper in a report. */
static void put_heading(struct html *h, struct str text) {
  if (h->root != NULL)
    HTML(h, "<h2>");
  else
    HTML(h, "<h4>");
  html_said(h, text);
  if (h->root != NULL)
    HTML(h, "</h2>");
  else
    HTML(h, "</h4>");
}

void part_told(struct html *h, const struct view_told *told, struct str command) {
  bool cut = false;
  for (size_t i = 0; i < told->count; i++) {
    const struct view_piece *p = &told->pieces[i];
    switch (p->kind) {
    case VIEW_TITLE:
      if (i == 0) /* the turn's own, which the caller's heading says */
        break;
      put_heading(h, p->text);
      break;
    case VIEW_LINE:
      put_line(h, p);
      break;
    case VIEW_TEXT:
      put_piece_text(h, p);
      cut = cut || p->more_bytes > 0;
      break;
    }
  }
  if (cut) {
    HTML(h, "<p class=l>Uncut: <code>");
    html_text(h, command);
    HTML(h, "</code></p>");
  }
}
