/* Writes what pages and reports share: the frame, times, texts, rows of sessions. */
#include "base/utf8.h"
#include "core/record.h"
#include "judge/stage.h"
#include "view/number_format.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <string.h>

/* Writes a menu link to one of the main pages, and marks the page being shown. */
static void put_menu(struct html *h, struct str title, const char *name) {
  size_t n = strlen(name);
  if (title.n > n && memcmp(title.p, name, n) == 0 && title.p[n] == ' ')
    HTML(h, " aria-current=page");
  HTML_FMT(h, ">%s</a> ", name);
}

/* Begins a page of the window. watch: the address, below the root, of its changes; or NULL. */
static void part_begin_page(struct html *h, struct str title, const char *watch) {
  HTML_FMT(h,
           "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>%.*s</title><meta "
           "name=viewport content=\"width=device-width,initial-scale=1\"><link rel=stylesheet",
           STR_ARG(title));
  HTML_LINK(h, "/style.css", STR(""), "");
  HTML(h, "><script defer");
  HTML_SRC(h, "idiomorph.js");
  HTML(h, "></script><script type=module");
  HTML_SRC(h, "page.mjs");
  HTML_FMT(h, "></script></head>\n<body data-root=\"%s\"", h->root);
  if (watch != NULL)
    HTML_ATTR(h, "data-watch", str_from(watch));
  HTML(h, "><header class=noprint><nav aria-label=Pages><span class=brand "
          "aria-hidden=true>segue</span> <a");
  HTML_LINK(h, "/", STR(""), "");
  put_menu(h, title, "Sessions");
  HTML(h, "<a");
  HTML_LINK(h, "/inbox", STR(""), "");
  put_menu(h, title, "Inbox");
  HTML(h, "<a");
  HTML_LINK(h, "/workflows", STR(""), "");
  put_menu(h, title, "Workflows");
  HTML(h, "<a");
  HTML_LINK(h, "/audit", STR(""), "");
  put_menu(h, title, "Audit");
  if (h->daemon) {
    HTML(h, "<a");
    HTML_LINK(h, "/providers", STR(""), "");
    put_menu(h, title, "Providers");
  }
  HTML(h, "</nav><p id=line role=status></p><noscript><p>Scripts are off in this browser: "
          "everything can be read, but this page does not follow changes, and its forms and "
          "buttons do nothing. A filter goes into the address (?q=status:running), and the "
          "command line can do the rest: segue inbox, answer, resume, cancel.</p></noscript>"
          "</header><main id=main tabindex=-1>");
}

void part_end_page(struct html *h) {
  HTML(h,
       "</main><footer class=noprint><details id=keys><summary>Keys</summary><dl>"
       "<dt>everywhere</dt><dd>?: this list; Esc: leave a field, fold this list; u: back; e: open "
       "all details; g s: sessions; g i: inbox; g w: workflows; g a: audit; g p: providers</dd>"
       "<dt>sessions</dt><dd>j, k: next, previous session; Enter: open it; /: filter; x: select it "
       "(select two to compare them)</dd>"
       "<dt>inbox</dt><dd>j, k: next, previous of what waits; Enter: open its session</dd>"
       "<dt>session</dt><dd>j, k: next, previous turn; Enter: open its judgment; /: find in all "
       "texts; f: follow a call's output</dd>"
       "<dt>judgment</dt><dd>n, p: next, previous judgment; N, P: next, previous failure</dd>"
       "<dt>records</dt><dd>j, k: next, previous record; Enter: open it; n, p: later, earlier "
       "ones</dd>"
       "<dt>text</dt><dd>n, p: next, previous piece</dd>"
       "<dt>find</dt><dd>j, k: next, previous place; Enter: open it; /: find another text</dd>"
       "<dt>audit, judgments</dt><dd>j, k: next, previous row; Enter: open it; /: filter</dd>"
       "<dt>compare</dt><dd>j, k: next, previous turn; Enter: open it</dd></dl>"
       "<p>Keys never change a session. <label><input type=checkbox id=keys-off> turn these keys "
       "off</label></p></details></footer>"
       "</body></html>\n");
}

void part_find_form(struct html *h, struct str text) {
  HTML_FMT(h,
           "<form role=search data-go=find><label>Find in all texts <input name=q size=40 "
           "autocomplete=off spellcheck=false maxlength=400 value=\"%.*s\"></label> "
           "<button>Find</button></form>",
           STR_ARG(text));
}

/* Writes the words before and behind an age, or those before a time in full. */
static void put_time(struct html *h, int64_t real_ms, int64_t age_ms, const char *before,
                     const char *behind) {
  buf_auto_t full = {0}, age = {0};
  view_put_when(&full, real_ms);
  view_put_age(&age, age_ms);
  HTML_FMT(h, "<time title=\"%s\">%s%s%s</time>", buf_c(&full), before, buf_c(&age), behind);
}

static void put_full(struct html *h, int64_t real_ms, const char *before) {
  buf_auto_t full = {0};
  view_put_when(&full, real_ms);
  HTML_FMT(h, "%s%.*s", before, STR_ARG(buf_view(&full)));
}

static bool has_age(const struct html *h, int64_t real_ms) {
  return h->now_ms != 0 && real_ms > 0 && real_ms <= h->now_ms;
}

void part_when(struct html *h, int64_t real_ms) {
  if (has_age(h, real_ms))
    put_time(h, real_ms, h->now_ms - real_ms, "", " ago");
  else
    put_full(h, real_ms, "");
}

/* Writes the same in a table cell. */
static void part_when_cell(struct html *h, int64_t real_ms) {
  buf_auto_t full = {0}, age = {0};
  bool ages = has_age(h, real_ms);
  view_put_when(&full, real_ms);
  HTML(h, "<td");
  if (ages)
    HTML_ATTR(h, "title", buf_view(&full));
  HTML(h, ">");
  if (ages)
    view_put_age(&age, h->now_ms - real_ms);
  HTML_FMT(h, "%.*s%s</td>", STR_ARG(buf_view(ages ? &age : &full)), ages ? " ago" : "");
}

void part_bare_size(struct html *h, int width, int height) {
  if (h->root != NULL)
    return;
  HTML_FMT(h, " width=\"%d\" height=\"%d\"", width, height);
}

void part_since(struct html *h, int64_t real_ms) {
  if (h->now_ms == 0 || real_ms > h->now_ms)
    put_full(h, real_ms, "since ");
  else
    put_time(h, real_ms, h->now_ms - real_ms, "since ", "");
}

void part_until(struct html *h, int64_t real_ms) {
  if (h->now_ms == 0)
    put_full(h, real_ms, "until ");
  else if (real_ms > h->now_ms)
    put_time(h, real_ms, real_ms - h->now_ms, "for ", " more");
  else
    put_time(h, real_ms, h->now_ms - real_ms, "until ", " ago");
}

void part_took(struct html *h, int64_t ms) {
  buf_auto_t text = {0};
  view_put_time(&text, ms);
  html_text(h, buf_view(&text));
}

void part_time(struct html *h, struct str text) {
  char time[RECORD_TIME_BYTES];
  int64_t ms;
  print_into(time, sizeof time, STR_FMT, STR_ARG(text));
  if (text.n < sizeof time && record_time_parse(time, &ms))
    part_when(h, ms);
  else
    html_said(h, text);
}

void part_code(struct html *h, struct str text) {
  HTML_FMT(h, "<code>%.*s</code>", STR_ARG(text));
  part_copy(h, text);
}

void part_copy(struct html *h, struct str text) {
  if (h->root == NULL)
    return;
  HTML_FMT(h,
           " <button type=button class=\"copy noprint\" data-copy>Copy<span class=unseen> "
           "%.*s</span></button>",
           STR_ARG(text));
}

/* Writes the link after a cut; the caller has said what is missing. */
static void put_show_all(struct html *h, const struct part_cut *cut) {
  buf_auto_t size = {0};
  buf_put_size(&size, cut->bytes);
  if (cut->ref.n > 0) {
    HTML(h, " <a");
    html_link_text(h, cut->session, cut->ref, 0);
    HTML_FMT(h, ">Show all (%s)</a>", buf_c(&size));
  } else if (cut->whole_page) {
    bool all = cut->bytes <= PART_WHOLE_BYTES;
    HTML_FMT(h, " <a href=\"?all=1\">%s%s%s</a>", all ? "Show all (" : "Show 1.0 MiB of ",
             buf_c(&size), all ? ")" : "");
  }
}

void part_cut(struct html *h, const struct part_cut *cut) {
  buf_auto_t shown = {0}, bytes = {0};
  if (cut->shown >= cut->bytes)
    return;
  buf_put_size(&bytes, cut->bytes);
  if (cut->shown > 1 && cut->bytes < 1024) /* reports have thousands of these */
    buf_printf(&shown, "%zu", cut->shown);
  else
    buf_put_size(&shown, cut->shown);
  if (cut->within)
    HTML(h, "<span class=dim>");
  else
    HTML(h, "<p class=origin>");
  HTML_FMT(h, "%sShown: %s of %s.", cut->within ? " ... " : "", buf_c(&shown), buf_c(&bytes));
  if (h->root != NULL)
    put_show_all(h, cut);
  if (cut->within)
    HTML(h, "</span>");
  else
    HTML(h, "</p>");
}

void part_pre(struct html *h, struct str text, size_t max, struct part_cut cut) {
  if (text.n > max)
    text.n = utf8_floor(text.p, max);
  cut.shown = text.n;
  HTML_FMT(h, "<pre>%.*s</pre>", STR_ARG(text));
  part_cut(h, &cut);
}

void part_acted(struct html *h) {
  HTML(h, "<p id=acted role=status></p>");
}

void part_fact(struct html *h, const char *name, struct str value) {
  if (value.n == 0)
    return;
  HTML_FMT(h, "<dt>%s</dt><dd><bdi>%.*s</bdi></dd>", name, STR_ARG(value));
}

/* Writes a word and a shape, because colour alone tells many people nothing. */
static void put_sign_and_status(struct html *h, struct str status, enum view_class class) {
  switch (class) {
  case VIEW_FAILED:
    html_puts(h, "\xE2\x9C\x97 ");
    break;
  case VIEW_NEEDS:
    html_puts(h, "? ");
    break;
  case VIEW_WAITS:
    html_puts(h, "\xE2\x97\x86 ");
    break;
  case VIEW_RUNS:
    html_puts(h, "\xE2\x96\xB6 ");
    break;
  case VIEW_DONE:
    html_puts(h, "\xE2\x9C\x93 ");
    break;
  case VIEW_CANCELLED:
  case VIEW_CLASS_COUNT:
    html_puts(h, "\xE2\x97\x8B ");
    break;
  }
  html_text(h, status);
}

/* Returns the status's colour, "" if it has none of its own. */
static const char *status_colour(enum view_class class) {
  static const char *const colours[VIEW_CLASS_COUNT] = {
      [VIEW_FAILED] = "bad", [VIEW_NEEDS] = "needs", [VIEW_WAITS] = "warn", [VIEW_DONE] = "good"};
  return class < VIEW_CLASS_COUNT && colours[class] != NULL ? colours[class] : "";
}

void part_status(struct html *h, struct str status, enum view_class class) {
  const char *colour = status_colour(class);
  HTML_FMT(h, "<span class=\"status%s%s\">", colour[0] ? " " : "", colour);
  put_sign_and_status(h, status, class);
  HTML(h, "</span>");
}

/* --- every page of the window --- */

struct html page_html(const struct page_ask *ask, struct buf *out) {
  return (struct html){.out = out,
                       .root = ask->root,
                       .session = ask->id,
                       .daemon = ask->daemon,
                       .now_ms = ask->now_ms};
}

void page_begin(struct html *h, const char *title, const char *watch) {
  buf_auto_t text = {0};
  bool names = h->session != NULL && h->session[0] != '\0' && strstr(title, h->session) == NULL;
  buf_printf(&text, "%s%s%s - segue", title, names ? " - " : "", names ? h->session : "");
  part_begin_page(h, buf_view(&text), watch);
  HTML_FMT(h, "<h1>%s</h1>", title);
}

void page_trouble(struct html *h, const struct err *err) {
  HTML_FMT(h, "<p class=banner role=alert><bdi>%s</bdi></p>", err->text);
}

void page_filter(struct html *h, const struct page_ask *ask, const char *example) {
  HTML_FMT(h,
           "<label>Filter <input name=q size=60 autocomplete=off spellcheck=false value=\"%s\" "
           "placeholder=\"%s\"></label> <button>Show</button></form>",
           ask->q, example);
}

unsigned page_problem(const struct page_ask *ask, struct buf *out, const struct err *err) {
  struct html h = page_html(ask, out);
  page_begin(&h, "Not found", NULL);
  page_trouble(&h, err);
  part_end_page(&h);
  return 404;
}

/* Finds the daemon's status of a session. Returns NULL if the log alone says it all. */
const struct page_live *page_live_of(const struct page_ask *ask, const char *id) {
  for (size_t i = 0; i < ask->live_count; i++)
    if (strcmp(ask->live[i].id, id) == 0)
      return &ask->live[i];
  return NULL;
}

/* --- sessions as rows --- */

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

static void put_method_bar(struct html *h, const struct view_row *row) {
  buf_auto_t words = {0};
  if (row->last_methods)
    buf_puts(&words, "of its last records: ");
  long sum = 0;
  for (int i = 0; i < SKIM_METHODS; i++) {
    if (row->methods[i] == 0)
      continue;
    buf_printf(&words, "%s" STR_FMT " %ld", sum > 0 ? ", " : "",
               STR_ARG(judge_stage_words(str_from(skim_method_name(i)))), row->methods[i]);
    sum += row->methods[i];
  }
  long long at = 0;
  HTML(h, "<td>");
  if (sum > 0) {
    HTML(h, "<svg role=img");
    if (h->root == NULL) /* a file may be read without its style */
      HTML(h, " height=14");
    HTML_FMT(h, "><title>%.*s</title>", STR_ARG(buf_view(&words)));
    for (int i = 0; i < SKIM_METHODS; i++) {
      long long share = row->methods[i] * 1000LL / sum, width = share > 30 ? share - 15 : 15;
      if (row->methods[i] == 0)
        continue;
      HTML_FMT(h, "<rect class=\"%s\"", method_class(i));
      if (at > 0)
        HTML_FMT(h, " x=\"%lld.%lld%%\"", at / 10, at % 10);
      HTML_FMT(h, " width=\"%lld.%lld%%\" />", width / 10, width % 10);
      at += share;
    }
    HTML(h, "</svg>");
  }
  HTML(h, "</td>");
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
    HTML_FMT(h, "><rect width=1 height=1 class=\"%s\" /></svg>%s</span>",
             method_class(key[i].method), key[i].words);
  }
  HTML(h, "</p>");
}

/* --- rows ---
 *
 * A page has many: what all of them share is in style.css, by the place of a cell, and links are
 * relative. */

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
  if (!str_eq_c(row->verification, "sound"))
    HTML_FMT(h, " <span class=mark>log <bdi>%.*s</bdi></span>", STR_ARG(row->verification));
}

/* Writes the task, which leads to the session, above workflow, movement and providers. */
static void put_about(struct html *h, const struct view_row *row) {
  struct str name = row->task.n > 0 ? row->task : row->workflow;
  if (name.n == 0)
    name = str_from(row->id);
  HTML(h, "<th scope=row>");
  if (h->root != NULL) {
    HTML(h, "<a");
    HTML_LINK(h, "s/", str_from(row->id), "/");
    HTML_FMT(h, ">%.*s</a>", STR_ARG(name));
  } else {
    HTML_FMT(h, "<bdi>%.*s</bdi><br><code title=\"%.*s\">%s</code>", STR_ARG(row->task),
             STR_ARG(row->log), row->id);
  }
  HTML_FMT(h, "<br><small><bdi>%.*s</bdi>", STR_ARG(row->workflow));
  if (row->movement.n > 0)
    HTML_FMT(h, " \xC2\xB7 <bdi>%.*s</bdi>", STR_ARG(row->movement));
  if (row->providers.n > 0)
    HTML_FMT(h, " \xC2\xB7 <bdi>%.*s</bdi>", STR_ARG(row->providers));
  HTML(h, "</small></th><td><div>");
  if (row->message.n > 0)
    html_said(h, row->message);
  if (row->wait.n > 0)
    HTML_FMT(h, "%s<bdi>%.*s</bdi>",
             row->message.n > 0 ? "; waits: " : "waits: ", STR_ARG(row->wait));
  put_marks(h, row);
  HTML(h, "</div></td>");
}

static void put_session_row(struct html *h, const struct view_row *row) {
  buf_auto_t text = {0};
  HTML_FMT(h, "<tr id=\"r-%s\"><td", row->id);
  const char *colour = status_colour(row->class);
  if (colour[0])
    HTML_ATTR(h, "class", str_from(colour));
  HTML(h, ">");
  if (h->root != NULL)
    HTML(h, "<input type=checkbox aria-label=Compare>");
  put_sign_and_status(h, row->status, row->class);
  HTML(h, "</td>");
  put_about(h, row);
  put_method_bar(h, row);
  HTML_FMT(h, "<td>%ld</td>", row->turns);
  part_when_cell(h, row->started_ms);
  HTML(h, "<td>");
  if (row->updated_ms >= row->started_ms)
    part_took(h, row->updated_ms - row->started_ms);
  HTML_FMT(h, "</td><td>%lld</td><td>", (long long)row->tokens);
  view_put_dollars(&text, row->cost_usd, row->priced, row->unpriced);
  HTML_FMT(h, "%.*s</td></tr>", STR_ARG(buf_view(&text)));
}

/* Writes the head of a sortable column, which links to that order and back again. */
static void put_column(struct html *h, const char *name, enum view_sort sort,
                       const struct part_order *order) {
  if (order == NULL) {
    HTML_FMT(h, "<th scope=col class=n>%s</th>", name);
    return;
  }
  bool now = order->sort == sort;
  HTML(h, "<th scope=col class=n");
  if (now)
    HTML_ATTR(h, "aria-sort", order->least_first ? STR("ascending") : STR("descending"));
  HTML(h, "><a");
  html_link_query(h, "sort", now && !order->least_first ? "-" : "", view_sort_name(sort), order->q);
  HTML_FMT(h, ">%s", name);
  if (now)
    html_puts(h, order->least_first ? " \xE2\x96\xB2" : " \xE2\x96\xBC");
  HTML(h, "</a></th>");
}

void part_rows(struct html *h, const struct session_list *f, enum view_class class,
               const struct part_order *order) {
  if (h->root != NULL)
    HTML(h, "<div class=wide tabindex=0 role=region");
  else /* times are in full there, and there is a width of paper */
    HTML(h, "<div class=\"wide rows\" tabindex=0 role=region");
  HTML_FMT(h,
           " aria-label=\"%s\"><table><thead><tr><th scope=col>status</th><th "
           "scope=col>task</th><th scope=col>why</th><th scope=col>decided by</th>",
           class == VIEW_CLASS_COUNT ? "sessions" : view_class_name(class));
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
