/* Writes the page of two sessions side by side. */
#include "web/compare_page.h"

#include "base/utf8.h"
#include "tree/linediff.h"
#include "view/number_format.h"
#include "web/parts.h"

#include <stdlib.h>

static struct str compare_said(const json_t *text, const char *otherwise) {
  return str_from(text != NULL ? json_string_value(text) : otherwise);
}

static void put_side_cell(struct html *h, const struct compare_turn *t,
                          const struct compare_side *side) {
  struct buf text = {0};
  HTML(h, "<td>");
  if (t == NULL) {
    HTML(h, "-</td>");
    return;
  }
  buf_printf(&text, "%ld", t->turn);
  if (t->unproven)
    HTML(h, "<span class=mark>not proven</span> ");
  HTML(h, "<a");
  html_link2(h, str_from(side->session), buf_view(&text));
  HTML(h, ">");
  html_text(h, buf_view(&text));
  HTML(h, "</a> ");
  if (!t->judged) {
    html_puts(h, "not judged");
  } else if (t->rule == 0) {
    html_puts(h, "no rule");
  } else {
    html_printf(h, "rule %ld > ", t->rule);
    html_said(h, compare_said(t->next, "?"));
    html_puts(h, ", ");
    html_said(h, compare_said(t->method, "?"));
  }
  buf_clear(&text);
  view_put_time(&text, t->ms);
  html_printf(h, "; %s, %lld tokens, $%.4f", buf_c(&text), (long long)t->tokens,
              (double)t->cost_nano / 1e9);
  HTML(h, "</td>");
  buf_deinit(&text);
}

static void put_compare_row(struct html *h, const struct compare_row *row,
                            const struct compare_side *a, const struct compare_side *b) {
  static const char *const names[] = {
      "only in one session",           "verdict", "method", "text", "files",
      "nothing: the fork took it over"};
  const struct compare_turn *any = row->a != NULL ? row->a : row->b;
  bool first = true;
  HTML(h, "<tr><th scope=row>");
  html_said(h, compare_said(any->movement, "?"));
  HTML(h, "</th>");
  put_side_cell(h, row->a, a);
  put_side_cell(h, row->b, b);
  HTML(h, "<td>");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if ((row->differs & (1u << i)) == 0)
      continue;
    html_printf(h, "%s%s", first ? "" : ", ", names[i]);
    first = false;
  }
  HTML(h, "</td></tr>");
}

static void put_compare_table(struct html *h, const struct compare_row *rows, size_t count,
                              const char *label, const struct compare_side *a,
                              const struct compare_side *b) {
  HTML(h, "<div class=\"wide fits\" tabindex=0 role=region");
  HTML_ATTR(h, "aria-label", str_from(label));
  HTML(h, "><table><thead><tr><th scope=col>movement</th><th scope=col>A</th><th scope=col>B</th>"
          "<th scope=col>differs</th></tr></thead><tbody>");
  for (size_t i = 0; i < count; i++)
    put_compare_row(h, &rows[i], a, b);
  HTML(h, "</tbody></table></div>");
}

static void put_side(struct html *h, const char *name, const struct compare_side *side) {
  struct buf text = {0};
  HTML(h, "<dt>");
  html_puts(h, name);
  HTML(h, "</dt><dd><a");
  HTML_LINK(h, "/s/", str_from(side->session), "/");
  HTML(h, ">");
  html_text(h, str_from(side->session));
  HTML(h, "</a>");
  part_copy(h, str_from(side->session));
  html_puts(h, " ");
  html_said(h, compare_said(side->workflow, "?"));
  html_puts(h, ", ");
  html_said(h, compare_said(side->outcome, "open"));
  view_put_time(&text, side->ms);
  html_printf(h, ", %zu turns, %s, %lld tokens, $%.4f", side->count, buf_c(&text),
              (long long)side->tokens, (double)side->cost_nano / 1e9);
  HTML(h, "</dd>");
  buf_deinit(&text);
}

/* --- the answers --- */

struct side_text {
  struct buf whole;
  struct str text; /* as much of it as is compared */
};

static bool read_side_text(const struct compare_side *side, const struct compare_turn *turn,
                           struct side_text *t, struct err *err) {
  if (!compare_text(side, turn, &t->whole, err))
    return false;
  t->text = buf_view(&t->whole);
  if (t->text.n > LIMIT_COMPARE_TEXT_BYTES)
    t->text.n = utf8_floor(t->text.p, LIMIT_COMPARE_TEXT_BYTES);
  return true;
}

/* Links to the whole answer, if only its beginning was compared. */
static void put_side_cut(struct html *h, const char *name, const struct compare_side *side,
                         const struct compare_turn *turn, const struct side_text *t) {
  struct buf ref = {0};
  if (t->text.n == t->whole.n)
    return;
  buf_printf(&ref, "%llu#/text", (unsigned long long)turn->text_seq);
  HTML(h, "<p class=dim>");
  html_printf(h, "Only the beginning of the text of %s was compared.", name);
  const struct part_cut cut = {.shown = t->text.n,
                               .bytes = t->whole.n,
                               .session = str_from(side->session),
                               .ref = buf_view(&ref),
                               .within = true};
  part_cut(h, &cut);
  HTML(h, "</p>");
  buf_deinit(&ref);
}

static void put_diff_line(struct html *h, const struct linediff_line *line) {
  switch (line->sign) {
  case '-':
    HTML(h, "<del>- ");
    html_text(h, line->text);
    HTML(h, "</del>");
    break;
  case '+':
    HTML(h, "<ins>+ ");
    html_text(h, line->text);
    HTML(h, "</ins>");
    break;
  case '@':
    HTML(h, "<span class=dim>");
    html_printf(h, "  ... %ld line%s in both", line->count, line->count == 1 ? "" : "s");
    HTML(h, "</span>");
    break;
  default:
    html_puts(h, "  ");
    html_text(h, line->text);
  }
  HTML(h, "\n");
}

/* Writes the lines, or the first of them. */
static void put_lines_of(struct html *h, const struct linediff_line *lines, size_t count,
                         bool all) {
  size_t shown = all || count < LIMIT_COMPARE_LINES ? count : LIMIT_COMPARE_LINES;
  struct part_cut cut = {.whole_page = true};
  HTML(h, "<pre class=diff>");
  for (size_t i = 0; i < count; i++) {
    cut.bytes += lines[i].text.n;
    if (i < shown)
      put_diff_line(h, &lines[i]);
    if (i < shown)
      cut.shown = cut.bytes;
  }
  HTML(h, "</pre>");
  if (shown == count)
    return;
  HTML(h, "<p class=dim>");
  html_printf(h, "%zu more line%s not shown.", count - shown, count - shown == 1 ? " is" : "s are");
  HTML(h, "</p>");
  part_cut(h, &cut);
}

static void put_diff(struct html *h, const struct compare_row *row, struct str a, struct str b,
                     bool all) {
  size_t count;
  long added = 0, removed = 0;
  struct linediff_line *lines = linediff_lines(a, b, 3, &count);
  for (size_t i = 0; i < count; i++) {
    added += lines[i].sign == '+';
    removed += lines[i].sign == '-';
  }
  HTML(h, "<details open");
  html_attr_printf(h, "id", "text-%ld-%ld", row->a->turn, row->b->turn);
  HTML(h, "><summary>");
  html_said(h, compare_said(row->a->movement, "?"));
  html_printf(h, ": turn %ld of A, %ld of B: %ld line%s only in A, %ld only in B", row->a->turn,
              row->b->turn, removed, removed == 1 ? "" : "s", added);
  HTML(h, "</summary>");
  put_lines_of(h, lines, count, all);
  HTML(h, "</details>");
  free(lines);
}

static void put_row_texts(struct html *h, const struct compare_row *row,
                          const struct compare_side *a, const struct compare_side *b, bool all) {
  struct side_text of_a = {0}, of_b = {0};
  struct err err = {0};
  if (read_side_text(a, row->a, &of_a, &err) && read_side_text(b, row->b, &of_b, &err)) {
    put_diff(h, row, of_a.text, of_b.text, all);
    put_side_cut(h, "A", a, row->a, &of_a);
    put_side_cut(h, "B", b, row->b, &of_b);
  } else {
    HTML(h, "<p class=banner role=note>");
    html_printf(h, "Turn %ld of A and %ld of B cannot be compared: ", row->a->turn, row->b->turn);
    html_said(h, str_from(err.text));
    HTML(h, "</p>");
  }
  buf_deinit(&of_a.whole);
  buf_deinit(&of_b.whole);
}

static void put_differing_texts(struct html *h, const struct compare_row *rows, size_t count,
                                const struct compare_side *a, const struct compare_side *b,
                                bool all) {
  size_t differing = 0, shown = 0, max = all ? SIZE_MAX : LIMIT_COMPARE_TEXTS;
  for (size_t i = 0; i < count; i++) {
    if (!(rows[i].a != NULL && rows[i].b != NULL && (rows[i].differs & COMPARE_TEXT) != 0))
      continue;
    if (differing++ == 0)
      HTML(h,
           "<h2>What the agents said</h2><p class=dim>Lines with - are only in A, with + only in "
           "B.</p>");
    if (shown == max || h->out->n > LIMIT_COMPARE_PAGE_BYTES)
      continue;
    put_row_texts(h, &rows[i], a, b, all);
    shown++;
  }
  if (shown == differing)
    return;
  HTML(h, "<p>");
  html_printf(h, "%zu more turn%s in the text. ", differing - shown,
              differing - shown == 1 ? " differs" : "s differ");
  if (all)
    html_puts(h, "Each judgment above links to its text.");
  else
    HTML(h, "<a href=\"?all=1\">Show all</a>");
  HTML(h, "</p>");
}

static void put_damage(struct html *h, const char *whose, const struct compare_side *side) {
  if (side->book.state == VERIFIED_DAMAGED)
    part_damaged(h, whose, side->book.records, str_from(side->book.damage.text));
}

static void put_same_way(struct html *h, const struct compare_row *rows, size_t count) {
  size_t differing = 0;
  for (size_t i = 0; i < count; i++)
    differing += rows[i].differs != 0;
  const char *that_was = compare_judged(rows, count, false) > 0 ? " that was judged" : "";
  HTML(h, "<p>");
  if (compare_judged(rows, count, true) == 0)
    html_puts(h, "No turn has a verdict, so there is none to compare.");
  else if (differing == 0)
    html_printf(h, "No difference: every turn%s has the same verdict.", that_was);
  else
    html_printf(h, "They took the same way: every turn%s has the same verdict.", that_was);
  if (differing > 0)
    html_puts(h, " The last column says what else differs.");
  HTML(h, "</p>");
}

void compare_page(struct html *h, const struct compare_side *a, const struct compare_side *b,
                  bool all) {
  size_t count;
  struct compare_row *rows = compare_align(a, b, &count);
  const struct compare_row *parting = compare_parting(rows, count);
  put_damage(h, "The log of A", a);
  put_damage(h, "The log of B", b);
  HTML(h, "<dl>");
  put_side(h, "A", a);
  put_side(h, "B", b);
  HTML(h, "</dl>");
  if (!str_eq_c(str_from(a->workflow_sha256), b->workflow_sha256))
    HTML(h, "<p>The workflows differ.</p>");
  if (parting == NULL) {
    put_same_way(h, rows, count);
  } else {
    HTML(h, "<h2>First difference</h2>");
    put_compare_table(h, parting, 1, "First difference", a, b);
  }
  HTML(h, "<h2>All turns</h2>");
  size_t shown = all || count < LIMIT_COMPARE_ROWS ? count : LIMIT_COMPARE_ROWS;
  put_compare_table(h, rows, shown, "All turns", a, b);
  if (shown < count) {
    HTML(h, "<p>");
    html_printf(h, "%zu more. ", count - shown);
    HTML(h, "<a href=\"?all=1\">Show all</a></p>");
  }
  put_differing_texts(h, rows, count, a, b, all);
  free(rows);
}
