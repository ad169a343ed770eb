/* Writes the window's pages. */
#include "web/pages.h"

#include "audit/compare.h"
#include "base/utf8.h"
#include "core/record.h"
#include "format/json_object.h"
#include "store/filter.h"
#include "store/inbox.h"
#include "tree/linediff.h"
#include "view/question.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <stdlib.h>
#include <string.h>

/* --- two sessions side by side --- */

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
  HTML(h, "<a");
  html_link2(h, str_from(side->session), buf_view(&text));
  HTML_FMT(h, ">%.*s</a> ", STR_ARG(buf_view(&text)));
  if (!t->judged) {
    html_puts(h, "not judged");
  } else if (t->rule == 0) {
    html_puts(h, "no rule");
  } else {
    HTML_FMT(h, "rule %ld &#62; <bdi>%s</bdi>, <bdi>%s</bdi>", t->rule, compare_said(t->next, "?"),
             compare_said(t->method, "?"));
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
             line->count == 1 ? "" : "s");
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
           row->b->turn, removed, removed == 1 ? "" : "s", added);
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

/* --- providers --- */

/* Writes what holds calls back now, such as "cooldown, 4 min 10 s left". */
static void put_countdown(struct html *h, const struct page_ask *ask, const char *what,
                          struct str until) {
  char text[RECORD_TIME_BYTES];
  int64_t ms;
  if (until.n == 0 || until.n >= sizeof text)
    return;
  memcpy(text, until.p, until.n);
  text[until.n] = '\0';
  if (!record_time_parse(text, &ms))
    return;
  HTML_FMT(h, "<span class=\"status warn\"  title=\"%.*s\">\xE2\x97\x86 %s, ", STR_ARG(until),
           what);
  part_took(h, ms > ask->now_ms ? ms - ask->now_ms : 0);
  HTML(h, " left</span><br>");
}

static void put_state(struct html *h, const struct page_ask *ask, const json_t *p) {
  struct str circuit = json_view_at(p, "circuit");
  put_countdown(h, ask, "cooldown", json_view_at(p, "cooldown_until"));
  put_countdown(h, ask, "circuit open", json_view_at(p, "circuit_until"));
  if (str_eq_c(circuit, "trying"))
    HTML(h, "<span class=\"status warn\">\xE2\x97\x86 the next call will try it</span><br>");
  if (json_is_false(json_at(p, "usable"))) {
    HTML(h, "<span class=\"status dim\">\xE2\x97\x8B not usable</span>");
    if (json_view_at(p, "problem").n > 0)
      HTML_FMT(h, "<br><span class=dim><bdi>%.*s</bdi></span>",
               STR_ARG(json_view_at(p, "problem")));
  } else if (json_is_null(json_at(p, "usable")) && json_view_at(p, "cooldown_until").n == 0) {
    HTML(h, "<span class=\"status dim\">\xE2\x97\x8B unknown until its next call</span>");
  } else if (str_eq_c(circuit, "closed") && json_view_at(p, "cooldown_until").n == 0) {
    HTML(h, "<span class=\"status good\">\xE2\x9C\x93 ready</span>");
  }
}

static void put_provider_errors(struct html *h, const json_t *p) {
  const json_t *last = json_at(p, "last_error");
  const char *class;
  json_t *n;
  const char *gap = "";
  json_object_foreach(json_object_get(p, "errors"), class, n) {
    HTML_FMT(h, "%s%s %lld", gap, class, (long long)json_integer_value(n));
    gap = ", ";
  }
  if (!json_is_object(last))
    return;
  HTML(h, "<br><span class=dim>last ");
  part_time(h, json_view_at(last, "at"));
  HTML_FMT(h, ": <bdi>%.*s</bdi></span>", STR_ARG(json_view_at(last, "message")));
}

static void put_provider(struct html *h, const struct page_ask *ask, const json_t *p) {
  long long places = json_int_at(p, "places");
  HTML_FMT(h, "<tr id=\"p-%.*s\"><th scope=row><bdi>%.*s</bdi></th><td>",
           STR_ARG(json_view_at(p, "name")), STR_ARG(json_view_at(p, "name")));
  put_state(h, ask, p);
  HTML_FMT(h, "</td><td class=n>%lld", (long long)json_int_at(p, "calls"));
  if (places > 0)
    HTML_FMT(h, " of %lld", places);
  HTML_FMT(h, "</td><td class=n>%lld</td><td>", (long long)json_int_at(p, "waiting"));
  put_provider_errors(h, p);
  HTML_FMT(
      h,
      "</td><td><bdi>%.*s</bdi><br><span "
      "class=dim><bdi>%.*s</bdi></span></td><td><bdi>%.*s</bdi></td><td><bdi>%.*s</bdi></td></tr>",
      STR_ARG(json_view_at(p, "kind")), STR_ARG(json_view_at(p, "program")),
      STR_ARG(json_view_at(p, "version")), STR_ARG(json_view_at(p, "login")));
}

/* Returns true for a program that is not installed here and that no call waits for. */
static bool is_absent(const json_t *p) {
  return json_is_false(json_at(p, "installed")) && json_int_at(p, "waiting") == 0;
}

static void put_absent(struct html *h, const struct page_ask *ask) {
  size_t i, count = 0;
  json_t *p;
  json_array_foreach(json_object_get(ask->about, "providers"), i, p) {
    count += is_absent(p);
  }
  if (count == 0)
    return;
  HTML_FMT(h, "<details id=absent><summary>%zu not installed</summary><dl>", count);
  json_array_foreach(json_object_get(ask->about, "providers"), i, p) {
    char name[64];
    if (!is_absent(p))
      continue;
    print_into(name, sizeof name, STR_FMT, STR_ARG(json_view_at(p, "name")));
    part_fact(h, name, json_view_at(p, "problem"));
  }
  HTML(h, "</dl></details>");
}

static void fact_number(struct html *h, const char *name, const json_t *value) {
  buf_auto_t text = {0};
  if (json_is_integer(value))
    buf_printf(&text, "%lld", (long long)json_integer_value(value));
  part_fact(h, name, buf_view(&text));
}

static void put_daemon(struct html *h, const json_t *d) {
  const json_t *free_bytes = json_at(d, "disk_free_bytes");
  buf_auto_t text = {0};
  if (json_is_integer(free_bytes))
    buf_printf(&text, "%.1f GB free", (double)json_integer_value(free_bytes) / 1e9);
  HTML(h, "<h2>Daemon</h2><dl>");
  part_fact(h, "version", json_view_at(d, "version"));
  part_fact(h, "status", json_view_at(d, "status"));
  HTML(h, "<dt>started</dt><dd>");
  part_time(h, json_view_at(d, "started"));
  HTML(h, "</dd>");
  fact_number(h, "process", json_at(d, "pid"));
  fact_number(h, "running", json_at(json_at(d, "sessions"), "running"));
  fact_number(h, "queued", json_at(json_at(d, "sessions"), "queued"));
  fact_number(h, "limit", json_at(json_at(d, "sessions"), "max"));
  part_fact(h, "logs", json_view_at(d, "logs"));
  part_fact(h, "disk", buf_view(&text));
  HTML(h, "</dl>");
}

static unsigned page_providers(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct err err = {0};
  size_t i;
  json_t *p;
  if (ask->about == NULL) {
    err_set(&err, ERR_NOT_FOUND, "no daemon is running here: segue providers lists the providers");
    return page_problem(ask, out, &err);
  }
  page_begin(&h, "Providers", "events");
  HTML(&h, "<div class=wide tabindex=0 role=region aria-label=Providers><table><thead><tr>"
           "<th scope=col>provider</th><th scope=col>state</th><th scope=col class=n>calls now</th>"
           "<th scope=col class=n>waiting</th><th scope=col>errors in the last hour</th>"
           "<th scope=col>kind, program</th><th scope=col>version</th><th "
           "scope=col>login</th></tr></thead><tbody>");
  for (int usable = 1; usable >= 0; usable--)
    json_array_foreach(json_object_get(ask->about, "providers"), i, p) {
      if (!is_absent(p) && json_is_false(json_at(p, "usable")) == !usable)
        put_provider(&h, ask, p);
    }
  HTML(&h, "</tbody></table></div>");
  put_absent(&h, ask);
  put_daemon(&h, json_at(ask->about, "daemon"));
  part_end_page(&h);
  return 200;
}

/* --- the pages --- */

/* --- sessions --- */

static const char *page_stands(const void *ctx, const char *id) {
  const struct page_live *live = page_live_of(ctx, id);
  return live != NULL ? live->status : NULL;
}

static void put_more(struct html *h, const struct page_ask *ask, const char *next) {
  if (next[0] == '\0')
    return;
  HTML(h, "<p><a");
  HTML_LINK(h, "/?before=", str_from(next), "");
  HTML_FMT(h, " data-keep=\"%s\">Older sessions</a></p>", ask->q);
}

static unsigned page_sessions(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct view_filter filter;
  AUTO(session_list_deinit) struct session_list f = {0};
  struct err err = {0};
  bool ok = view_filter_read(&filter, ask->q, ask->now_ms, &err);
  filter.before = ask->before[0] ? ask->before : NULL;
  filter.max = LIMIT_WINDOW_ROW_COUNT;
  filter.stands = page_stands;
  filter.ctx = ask;
  ok = ok && (view_sort_read(ask->sort, &filter.sort, &filter.least_first) ||
              err_set(&err, ERR_USAGE, "cannot sort sessions by %.30s", ask->sort));
  ok = ok && (!store_exists(&ask->store) || session_list_page(&f, &ask->store, &filter, &err));
  page_begin(&h, "Sessions", "events");
  HTML(&h, "<form role=search data-filter>");
  page_filter(&h, ask, "status:running since:7d workflow:NAME method:ai_judge provider:NAME words");
  if (!ok) {
    page_trouble(&h, &err);
  } else if (f.count == 0) {
    HTML_FMT(&h, "<p>%s<bdi>%s</bdi></p>",
             ask->q[0] ? "No session matches this filter: " : "There are no sessions yet in ",
             ask->q[0] ? ask->q : ask->store.where);
    put_more(&h, ask, f.next);
  } else {
    HTML_FMT(&h, "<p id=counts role=status>%zu session%s%s", f.count, f.count == 1 ? "" : "s",
             ask->before[0] || f.next[0] ? " on this page" : "");
    for (int i = 0; i < VIEW_CLASS_COUNT; i++)
      if (f.classes[i] > 0)
        HTML_FMT(&h, ", %zu %s", f.classes[i], view_class_name((enum view_class)i));
    HTML(&h, "</p>");
    /* page.mjs writes here what is selected, and how many sessions are new */
    HTML(&h, "<p id=chosen role=status></p><p id=fresh role=status></p>");
    const struct part_order order = {str_from(ask->q), filter.sort, filter.least_first};
    part_methods_key(&h);
    part_rows(&h, &f, VIEW_CLASS_COUNT, &order);
    if (f.left_out > 0)
      HTML_FMT(&h, "<p class=dim>%zu more are not shown: narrow the filter.</p>", f.left_out);
    put_more(&h, ask, f.next);
  }
  part_end_page(&h);
  return 200;
}

/* --- what waits for a person --- */

static void put_waiting(struct html *h, const struct page_ask *ask, const struct view_row *row) {
  buf_auto_t command = {0};
  HTML_FMT(h, "<article id=\"w-%s\"><h2><a", row->id);
  HTML_LINK(h, "/s/", str_from(row->id), "/");
  HTML_FMT(h, "><bdi>%.*s</bdi></a></h2><p>",
           STR_ARG(row->task.n > 0 ? row->task : str_from(row->id)));
  part_status(h, row->status, row->class);
  HTML_FMT(h, " in <bdi>%.*s</bdi> in workflow <bdi>%.*s</bdi>, turn %ld, ", STR_ARG(row->movement),
           STR_ARG(row->workflow), row->turns);
  part_when(h, row->updated_ms);
  HTML_FMT(h, "</p><p><bdi>%.*s</bdi></p><p class=dim>", STR_ARG(row->message));
  buf_printf(&command, "segue resume %s", row->id);
  part_code(h, buf_view(&command));
  HTML(h, "</p>");
  if (ask->acts && row->submitted)
    part_resume(h, row->id, row->status);
  HTML(h, "</article>");
}

/* Lists stopped sessions, except those with a question, which is shown by itself. */
static bool row_is_listed(const struct view_row *row, const json_t *questions) {
  size_t i;
  json_t *item;
  json_array_foreach(questions, i, item) {
    if (str_eq_c(str_from(row->id), json_string_value(json_object_get(item, "id"))))
      return false;
  }
  static const char *const statuses[] = {"stopped", "rule_no_match", "max_movements", "failed"};
  for (size_t k = 0; k < sizeof statuses / sizeof *statuses; k++)
    if (str_eq_c(row->status, statuses[k]))
      return true;
  return false;
}

static unsigned page_inbox(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct view_filter filter;
  AUTO(session_list_deinit) struct session_list f = {0};
  struct err err = {0};
  char title[40];
  size_t waiting = 0;
  if (!view_filter_read(&filter, "status:stopped,rule_no_match,max_movements,failed", ask->now_ms,
                        &err))
    return page_problem(ask, out, &err);
  filter.max = LIMIT_WINDOW_ROW_COUNT;
  filter.stands = page_stands;
  filter.ctx = ask;
  if (store_exists(&ask->store) && !session_list_page(&f, &ask->store, &filter, &err))
    return page_problem(ask, out, &err);
  json_auto_t *questions =
      store_exists(&ask->store) ? inbox_list(&ask->store, NULL, NULL, &err) : NULL;
  waiting = json_array_size(questions);
  for (size_t i = 0; i < f.count; i++)
    waiting += row_is_listed(&f.rows[i], questions);
  print_into(title, sizeof title, "Inbox (%zu%s)", waiting, f.next[0] ? "+" : "");
  page_begin(&h, title, "events");
  if (questions != NULL)
    view_asked_add(&ask->store, questions);
  if (ask->acts)
    part_acted(&h);
  part_questions(&h, questions, ask->acts);
  for (size_t i = 0; i < f.count; i++)
    if (row_is_listed(&f.rows[i], questions))
      put_waiting(&h, ask, &f.rows[i]);
  if (waiting == 0)
    HTML(&h, "<p>Nothing is waiting for you: no session has stopped.</p>");
  part_end_page(&h);
  return 200;
}

/* --- the rest --- */

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

static unsigned page_compare(const struct page_ask *ask, struct buf *out) {
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

/* Writes a fixed page, with nothing from the request in it. */
static unsigned page_enter(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  HTML(&h, "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>segue</title>"
           "<meta name=viewport content=\"width=device-width,initial-scale=1\">"
           "<link rel=stylesheet");
  HTML_LINK(&h, "/style.css", STR(""), "");
  HTML(&h, "><script type=module");
  HTML_SRC(&h, "enter.mjs");
  HTML(&h,
       "></script></head><body><main><h1>segue</h1><p id=say role=status>This page needs a "
       "code that works once, within a minute. Run <code>segue web</code> to get one.</p>"
       "<noscript><p>Scripts are off in this browser, so it cannot hand in the code: allow them "
       "for this page and run <code>segue web</code> again. What is behind this page can be read "
       "without them.</p></noscript></main>"
       "</body></html>\n");
  return 200;
}

unsigned page_write(const struct page_ask *ask, struct buf *out) {
  switch (ask->kind) {
  case PAGE_SESSIONS:
    return page_sessions(ask, out);
  case PAGE_INBOX:
    return page_inbox(ask, out);
  case PAGE_SESSION:
    return page_session(ask, out);
  case PAGE_JUDGMENT:
    return page_judgment(ask, out);
  case PAGE_INTEGRITY:
    return page_integrity(ask, out);
  case PAGE_CHANGES:
    return page_changes(ask, out);
  case PAGE_RECORDS:
    return page_records(ask, out);
  case PAGE_TEXT:
    return page_text(ask, out);
  case PAGE_FIND:
    return page_find(ask, out);
  case PAGE_WORKFLOW:
    return page_workflow(ask, out);
  case PAGE_AUDIT:
    return page_audit(ask, out);
  case PAGE_AUDIT_CSV:
  case PAGE_AUDIT_JSON:
    return page_audit_data(ask, out);
  case PAGE_BEHIND:
    return page_behind(ask, out);
  case PAGE_BEHIND_CSV:
  case PAGE_BEHIND_JSON:
    return page_behind_data(ask, out);
  case PAGE_PROVIDERS:
    return page_providers(ask, out);
  case PAGE_COMPARE:
    return page_compare(ask, out);
  case PAGE_ENTER:
    break;
  }
  return page_enter(ask, out);
}
