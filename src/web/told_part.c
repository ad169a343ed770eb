/* Writes one judgment in full. */
#include "web/parts.h"

#include <string.h>

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

/* Finds the mark shown at a byte, and where the next change is. */
static const struct view_mark *mark_at(const struct view_piece *p, size_t at, size_t *next) {
  const struct view_mark *shown = NULL;
  *next = p->text.n;
  for (const struct view_mark *m = p->marks; m != NULL; m = m->next) {
    bool in = m->offset <= at && at < m->offset + m->length;
    size_t change = in ? m->offset + m->length : m->offset;
    if (change > at && change < *next)
      *next = change;
    if (in && (shown == NULL || m->what > shown->what))
      shown = m;
  }
  return shown;
}

/* Writes a text with its marks; the key (put_marks_key) explains the colours. */
static void put_marked(struct html *h, const struct view_piece *p) {
  for (size_t at = 0, next; at < p->text.n; at = next) {
    const struct view_mark *mark = mark_at(p, at, &next);
    const struct str text = {p->text.p + at, next - at};
    if (mark == NULL) {
      html_text(h, text);
      continue;
    }
    HTML(h, "<mark");
    HTML_ATTR(h, "class", str_from(pen_mark_name(mark->what)));
    html_attr_printf(h, "title", "bytes %zu to %zu", mark->offset, mark->offset + mark->length);
    HTML(h, ">");
    html_text(h, text);
    HTML(h, "</mark>");
  }
}

/* Explains once what the colours of a text mean. */
static void put_marks_key(struct html *h, const struct view_piece *p) {
  static const char *const words[PEN_MARK_COUNT] = {"not taken", "mention", "taken", "tag"};
  bool held[PEN_MARK_COUNT] = {false};
  for (const struct view_mark *m = p->marks; m != NULL; m = m->next)
    held[m->what] = true;
  HTML(h, "<p class=origin>marked:");
  for (int i = PEN_MARK_COUNT; i-- > 0;) {
    if (!held[i])
      continue;
    html_puts(h, " ");
    HTML(h, "<mark");
    HTML_ATTR(h, "class", str_from(pen_mark_name((enum pen_mark)i)));
    HTML(h, ">");
    html_puts(h, words[i]);
    HTML(h, "</mark>");
  }
  HTML(h, "</p>");
}

/* Finds the place in an origin such as "record 33#/text, 1.2 KiB". */
static struct str place_in(struct str origin) {
  static const char word[] = "record ";
  const char *comma = memchr(origin.p, ',', origin.n);
  if (comma == NULL || !str_starts(origin, word))
    return STR("");
  return (struct str){origin.p + sizeof word - 1, (size_t)(comma - origin.p) - (sizeof word - 1)};
}

static void put_piece_cut(struct html *h, const struct view_told *told,
                          const struct view_piece *p) {
  const struct part_cut cut = {.shown = p->text.n,
                               .bytes = p->text.n + p->more_bytes,
                               .ref = place_in(p->origin),
                               .whole_page = told->text_max<PART_WHOLE_BYTES, .within = p->part> 0};
  part_cut(h, &cut);
}

static void put_piece_text(struct html *h, const struct view_told *told,
                           const struct view_piece *p) {
  if (p->origin.n > 0) {
    HTML(h, "<p class=origin>from ");
    html_said(h, p->origin);
    HTML(h, "</p>");
  }
  if (p->text.n == 0)
    return;
  HTML(h, "<pre>");
  put_marked(h, p);
  HTML(h, "</pre>");
  if (p->marks != NULL)
    put_marks_key(h, p);
  put_piece_cut(h, told, p);
}

/* Writes one part of a prompt, within its line. The window gives the origin of each part on
 * request; a report, which has to stay small, only for parts not copied from another prompt. */
static void put_prompt_part(struct html *h, const struct view_told *told,
                            const struct view_piece *p) {
  bool words = memmem(p->origin.p, p->origin.n, LIT("#/prompt/")) != NULL;
  bool titled = p->origin.n > 0 && h->root != NULL;
  if (p->origin.n > 0 && !words) {
    HTML(h, "<span class=dim>");
    html_printf(h,
                "\xE2\x9F\xA6"
                "from " STR_FMT "\xE2\x9F\xA7 ",
                STR_ARG(p->origin));
    HTML(h, "</span>");
  }
  if (titled) {
    HTML(h, "<span class=from");
    html_attr_printf(h, "title", "from " STR_FMT, STR_ARG(p->origin));
    HTML(h, ">");
  }
  html_text(h, p->text);
  if (titled)
    HTML(h, "</span>");
  put_piece_cut(h, told, p);
}

/* Writes a folded prompt, with all of its parts as one text. Returns how many pieces it had. */
static size_t put_prompt_text(struct html *h, const struct view_told *told, size_t number) {
  const struct view_piece *first = &told->pieces[number];
  size_t n = 0, left = told->count - number;
  HTML(h, "<details class=prompt");
  if (h->root != NULL)
    html_attr_printf(h, "id", "prompt-%zu", number);
  HTML(h, "><summary>the prompt</summary><pre>");
  for (; n < left && first[n].part == (long)n + 1; n++)
    put_prompt_part(h, told, &first[n]);
  HTML(h, "</pre></details>");
  return n;
}

/* Writes a heading: one level below the page's own in the window, deeper in a report. */
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
  for (size_t i = 0; i < told->count; i++) {
    const struct view_piece *p = &told->pieces[i];
    switch (p->kind) {
    case VIEW_TITLE:
      if (i == 0) /* the turn's own title, which the caller's heading already has */
        break;
      put_heading(h, p->text);
      break;
    case VIEW_LINE:
      put_line(h, p);
      break;
    case VIEW_TEXT:
      if (p->part == 1)
        i += put_prompt_text(h, told, i) - 1;
      else
        put_piece_text(h, told, p);
      break;
    }
  }
  if (view_told_is_cut(told)) {
    HTML(h, "<p class=l>In full: ");
    part_code(h, command);
    HTML(h, "</p>");
  }
}
