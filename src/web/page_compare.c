/* Writes the page that shows two sessions side by side. */
#include "audit/compare.h"
#include "base/utf8.h"
#include "git/linediff.h"
#include "judge/stage.h"
#include "view/number_format.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <stdlib.h>
#include <string.h>

enum {
  LIMIT_COMPARE_ROWS = 1000,
  LIMIT_COMPARE_TEXTS = 20,                  /* turns whose answers are shown line by line */
  LIMIT_COMPARE_TEXT_BYTES = 256 * 1024,     /* largest such answer */
  LIMIT_COMPARE_LINES = 200,                 /* lines of one answer on the page */
  LIMIT_COMPARE_PAGE_BYTES = 8 * 1024 * 1024 /* with `all`: no text begins on a page this long */
};

static const char *compare_said(const json_t *text, const char *otherwise) {
  return text != NULL ? json_string_value(text) : otherwise;
}

static void put_side_cell(struct html *h, const struct compare_turn *t,
                          const struct compare_side *side) {
  buf_auto_t text = {0};
  HTML(h, "<td>");
  if (t == NULL) {
    HTML(h, "-</td>");
    return;
  }
  buf_printf(&text, "%ld", t->turn);
  if (t->unproven)
    HTML(h, "<span class=mark>not proven</span> ");
  HTML(h, "<a class=inline");
  html_link2(h, str_from(side->session), buf_view(&text));
  HTML_FMT(h, ">%.*s</a> ", STR_ARG(buf_view(&text)));
  if (!t->judged) {
    html_puts(h, "not judged");
  } else if (t->rule == 0) {
    html_puts(h, "no rule");
  } else {
    HTML_FMT(h, "rule %ld &#62; <bdi>%s</bdi>, <bdi>%s</bdi>", t->rule, compare_said(t->next, "?"),
             judge_stage_words(str_from(compare_said(t->method, "?"))).p);
  }
  html_puts(h, "; ");
  part_took(h, t->ms);
  HTML_FMT(h, ", %lld tokens, $%.4f</td>", (long long)t->tokens, (double)t->cost_nano / 1e9);
}

static void put_compare_row(struct html *h, const struct compare_row *row,
                            const struct compare_side *a, const struct compare_side *b) {
  static const char *const names[] = {
      "only in one session",           "verdict", "method", "text", "files",
      "nothing: the fork took it over"};
  const struct compare_turn *any = row->a != NULL ? row->a : row->b;
  bool first = true;
  HTML_FMT(h, "<tr><th scope=row><bdi>%s</bdi></th>", compare_said(any->movement, "?"));
  put_side_cell(h, row->a, a);
  put_side_cell(h, row->b, b);
  HTML(h, "<td>");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if ((row->differs & (1u << i)) == 0)
      continue;
    HTML_FMT(h, "%s%s", first ? "" : ", ", names[i]);
    first = false;
  }
  HTML(h, "</td></tr>");
}

static void put_compare_table(struct html *h, const struct compare_row *rows, size_t count,
                              const char *label, const struct compare_side *a,
                              const struct compare_side *b) {
  HTML_FMT(h,
           "<div class=\"wide fits\" tabindex=0 role=region "
           "aria-label=\"%s\"><table><thead><tr><th scope=col>movement</th><th scope=col>A</th><th "
           "scope=col>B</th><th scope=col>differs</th></tr></thead><tbody>",
           label);
  for (size_t i = 0; i < count; i++)
    put_compare_row(h, &rows[i], a, b);
  HTML(h, "</tbody></table></div>");
}

static void put_side(struct html *h, const char *name, const struct compare_side *side) {
  HTML_FMT(h, "<dt>%s</dt><dd><a", name);
  HTML_LINK(h, "/s/", str_from(side->session), "/");
  HTML_FMT(h, ">%s</a>", side->session);
  part_copy(h, str_from(side->session));
  HTML_FMT(h, " <bdi>%s</bdi>, <bdi>%s</bdi>, %zu turns, ", compare_said(side->workflow, "?"),
           compare_said(side->outcome, "open"), side->count);
  part_took(h, side->ms);
  HTML_FMT(h, ", %lld tokens, $%.4f</dd>", (long long)side->tokens, (double)side->cost_nano / 1e9);
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
  buf_auto_t ref = {0};
  if (t->text.n == t->whole.n)
    return;
  buf_printf(&ref, "%llu#/text", (unsigned long long)turn->text_seq);
  HTML_FMT(h, "<p class=dim>Only the beginning of the text of %s was compared.", name);
  const struct part_cut cut = {.shown = t->text.n,
                               .bytes = t->whole.n,
                               .session = str_from(side->session),
                               .ref = buf_view(&ref),
                               .within = true};
  part_cut(h, &cut);
  HTML(h, "</p>");
}

static void put_diff_line(struct html *h, const struct linediff_line *line) {
  switch (line->sign) {
  case '-':
    HTML_FMT(h, "<del>- %.*s</del>", STR_ARG(line->text));
    break;
  case '+':
    HTML_FMT(h, "<ins>+ %.*s</ins>", STR_ARG(line->text));
    break;
  case '@':
    HTML_FMT(h, "<span class=dim>  ... %ld line%s in both</span>", line->count,
             PLURAL(line->count));
    break;
  default:
    HTML_FMT(h, "  %.*s", STR_ARG(line->text));
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
  HTML_FMT(h, "<p class=dim>%zu more line%s not shown.</p>", count - shown,
           count - shown == 1 ? " is" : "s are");
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
  HTML_FMT(h,
           "<details open id=\"text-%ld-%ld\"><summary><bdi>%s</bdi>: turn %ld of A, %ld of B: %ld "
           "line%s only in A, %ld only in B</summary>",
           row->a->turn, row->b->turn, compare_said(row->a->movement, "?"), row->a->turn,
           row->b->turn, removed, PLURAL(removed), added);
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
    HTML_FMT(h,
             "<p class=banner role=note>Turn %ld of A and %ld of B cannot be compared: "
             "<bdi>%s</bdi></p>",
             row->a->turn, row->b->turn, err.text);
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
  HTML_FMT(h, "<p>%zu more turn%s in the text. ", differing - shown,
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
    HTML_FMT(h, "No difference: every turn%s has the same verdict.", that_was);
  else
    HTML_FMT(h, "They took the same way: every turn%s has the same verdict.", that_was);
  if (differing > 0)
    html_puts(h, " The last column says what else differs.");
  HTML(h, "</p>");
}

/* Writes the page. all: every row and line, as far as that fits. */
static void compare_page(struct html *h, const struct compare_side *a, const struct compare_side *b,
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
  if (shown < count)
    HTML_FMT(h, "<p>%zu more. <a href=\"?all=1\">Show all</a></p>", count - shown);
  put_differing_texts(h, rows, count, a, b, all);
  free(rows);
}

static bool page_side(const struct page_ask *ask, const char *id, struct compare_side *side,
                      struct err *err) {
  struct store_ref ref;
  if (strlen(id) != STORE_ID_BYTES - 1 || strspn(id, "0123456789abcdef-") != STORE_ID_BYTES - 1)
    return err_set(err, ERR_NOT_FOUND, "give two sessions: compare/ID_ID");
  store_ref(&ask->store, id, &ref);
  if (!compare_log(side, &ref, err))
    return false;
  if (side->session[0] == '\0') /* its first record cannot be read */
    memcpy(side->session, id, STORE_ID_BYTES);
  return true;
}

unsigned page_compare(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  AUTO(compare_side_deinit) struct compare_side a = {0}, b = {0};
  struct err err = {0};
  bool ok = page_side(ask, ask->a, &a, &err) && page_side(ask, ask->b, &b, &err);
  if (ok) {
    page_begin(&h, "Compare", NULL);
    compare_page(&h, &a, &b, ask->all);
    part_end_page(&h);
  }
  return ok ? 200 : page_problem(ask, out, &err);
}
