/* Writes the window's pages. */
#include "web/pages.h"

#include "core/record.h"
#include "core/state.h"
#include "format/json_object.h"
#include "store/filter.h"
#include "store/inbox.h"
#include "store/reader.h"
#include "store/record_line.h"
#include "view/number_format.h"
#include "view/question.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <string.h>

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
  const char *gap = "";
  JSON_MEMBERS(json_object_get(p, "errors"), class, n) {
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
  size_t count = 0;
  JSON_EACH(json_object_get(ask->about, "providers"), i, p)
    count += is_absent(p);
  if (count == 0)
    return;
  HTML_FMT(h, "<details id=absent><summary>%zu not installed</summary><dl>", count);
  JSON_EACH(json_object_get(ask->about, "providers"), i, p) {
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
    JSON_EACH(json_object_get(ask->about, "providers"), i, p) {
      if (!is_absent(p) && json_is_false(json_at(p, "usable")) == !usable)
        put_provider(&h, ask, p);
    }
  HTML(&h, "</tbody></table></div>");
  put_absent(&h, ask);
  put_daemon(&h, json_at(ask->about, "daemon"));
  part_end_page(&h);
  return 200;
}

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

/* Counts the sessions of each class, of the whole store where they are known, and leads to them. */
static void put_class_counts(struct html *h, const struct page_ask *ask,
                             const struct session_list *f) {
  const size_t *counts = f->all_known ? f->all : f->classes;
  size_t sum = 0;
  for (int i = 0; i < VIEW_CLASS_COUNT; i++)
    sum += counts[i];
  HTML(h, "<p id=counts role=status>");
  if (ask->q[0])
    HTML(h, "<a href=\"./\">");
  HTML_FMT(h, "%zu session%s%s", sum, PLURAL(sum),
           !f->all_known && (ask->before[0] || f->next[0]) ? " on this page" : "");
  if (ask->q[0])
    HTML(h, "</a>");
  for (int i = 0; i < VIEW_CLASS_COUNT; i++) {
    if (counts[i] == 0)
      continue;
    HTML(h, " <a");
    html_link_query(h, "q", "status:", view_class_statuses((enum view_class)i), STR(""));
    HTML_FMT(h, ">%zu %s</a>", counts[i], view_class_name((enum view_class)i));
  }
  HTML(h, "</p>");
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
    if (ask->q[0])
      HTML(&h, "<p><a href=\"./\">All sessions</a></p>");
    else
      HTML(&h, "<p>Begin one in a terminal, in the folder of your project: <code>segue until "
               "'make test' -t 'Make the parser accept empty lines' -p claude</code> or, with a "
               "workflow of your own, <code>segue init</code> and <code>segue submit</code>.</p>");
    put_more(&h, ask, f.next);
  } else {
    put_class_counts(&h, ask, &f);
    /* page.mjs writes here what is selected, and how many sessions are new */
    HTML(&h, "<p id=chosen role=status></p><p id=fresh role=status></p>");
    const struct part_order order = {str_from(ask->q), filter.sort, filter.least_first};
    part_rows(&h, &f, VIEW_CLASS_COUNT, &order);
    part_methods_key(&h);
    if (f.left_out > 0)
      HTML_FMT(&h, "<p class=dim>%zu more are not shown: narrow the filter.</p>", f.left_out);
    put_more(&h, ask, f.next);
  }
  part_end_page(&h);
  return 200;
}

/* --- workflows --- */

enum { RUNS_SHOWN = 5 };

/* Returns the first record of a session, NULL if it cannot be read. A new reference. */
static json_t *first_record_of(const struct page_ask *ask, const char *id) {
  AUTO(reader_close) struct log_reader r = {0};
  struct store_ref ref;
  struct str line;
  struct err ignored;
  store_ref(&ask->store, id, &ref);
  if (!reader_open(&r, &ref, &ignored) || !reader_next(&r, &line))
    return NULL;
  return record_line_read(line, NULL);
}

/* Writes the form that starts a workflow from its file, with the inputs that it had. */
static void put_start(struct html *h, const json_t *start, size_t number) {
  struct str path = json_view_at(start, "workflow_path");
  HTML_FMT(h,
           "<details id=\"start-%zu\"><summary>Start it</summary><form data-act=start><input "
           "type=hidden name=workflow value=\"%.*s\"><input type=hidden name=cwd value=\"%.*s\"><p>"
           "<label>Task<br><textarea name=task rows=3 cols=70></textarea></label></p>",
           number, STR_ARG(path), STR_ARG(json_view_at(json_at(start, "config"), "cwd")));
  JSON_MEMBERS(json_object_get(json_at(start, "workflow"), "inputs"), name, value)
    HTML_FMT(h, "<p><label>%s <input name=\"inputs.%s\" size=40 value=\"%.*s\"></label></p>", name,
             name, STR_ARG(json_view(value)));
  HTML(h, "<p><label>Provider <input name=provider autocomplete=off spellcheck=false></label> "
          "<label>model <input name=model autocomplete=off spellcheck=false></label></p><p><button>"
          "Start</button> <button data-act=plan>Plan it first</button></p></form></details>");
}

/* Writes a workflow with its last runs, the newest of which is row `first`. */
static void put_ran(struct html *h, const struct page_ask *ask, const struct session_list *f,
                    size_t first) {
  const struct view_row *newest = &f->rows[first];
  json_auto_t *start = first_record_of(ask, newest->id);
  struct str path = json_view_at(start, "workflow_path");
  size_t runs = 0;
  HTML_FMT(h,
           "<article id=\"flow-%zu\"><h2><bdi>%.*s</bdi></h2><p class=dim><bdi>%.*s</bdi></p><ul "
           "class=runs>",
           first, STR_ARG(newest->workflow), STR_ARG(path));
  for (size_t i = first; i < f->count; i++) {
    const struct view_row *row = &f->rows[i];
    buf_auto_t cost = {0};
    if (!str_eq(row->workflow, newest->workflow) || ++runs > RUNS_SHOWN)
      continue;
    HTML(h, "<li>");
    part_status(h, row->status, row->class);
    HTML(h, " <a");
    HTML_LINK(h, "/s/", str_from(row->id), "/");
    HTML_FMT(h, "><bdi>%.*s</bdi></a> ", STR_ARG(row->task.n > 0 ? row->task : STR("no task")));
    HTML(h, "<span class=dim>");
    part_when(h, row->started_ms);
    view_put_dollars(&cost, row->cost_usd, row->priced, row->unpriced);
    HTML_FMT(h, " %s</span></li>", buf_c(&cost));
  }
  HTML(h, "</ul>");
  if (runs > RUNS_SHOWN) {
    buf_auto_t q = buf_of("workflow:" STR_FMT, STR_ARG(newest->workflow));
    HTML(h, "<p><a");
    HTML_LINK(h, "/?q=", buf_view(&q), "");
    HTML_FMT(h, ">All %zu%s runs</a></p>", runs, f->next[0] ? " or more" : "");
  }
  if (ask->acts && path.n > 0 && path.p[0] == '/')
    put_start(h, start, first);
  HTML(h, "</article>");
}

static unsigned page_workflows(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  const struct view_filter filter = {
      .max = LIMIT_WINDOW_ROW_COUNT, .stands = page_stands, .ctx = ask};
  AUTO(session_list_deinit) struct session_list f = {0};
  struct err err = {0};
  page_begin(&h, "Workflows", "events");
  if (ask->acts)
    part_acted(&h);
  if (store_exists(&ask->store) && !session_list_page(&f, &ask->store, &filter, &err))
    page_trouble(&h, &err);
  for (size_t i = 0; i < f.count; i++) {
    size_t k = 0;
    while (k < i && !str_eq(f.rows[k].workflow, f.rows[i].workflow))
      k++;
    if (k == i && f.rows[i].workflow.n > 0)
      put_ran(&h, ask, &f, i);
  }
  if (f.count == 0)
    HTML(&h, "<p>No workflow has run yet. <code>segue init</code> writes one, <code>segue submit "
             "FILE -t TASK</code> runs it here.</p>");
  if (f.next[0] != '\0')
    HTML_FMT(&h, "<p class=dim>Of the newest %zu sessions.</p>", f.count);
  part_end_page(&h);
  return 200;
}

/* --- what waits for a person --- */

static void put_stop(struct html *h, const struct page_ask *ask, const json_t *item) {
  const char *id = json_word_at(item, "id"), *status = json_word_at(item, "status");
  struct str task = json_view_at(item, "task"), text = json_view_at(item, "text");
  struct str movement = json_view_at(item, "movement"), workflow = json_view_at(item, "workflow");
  int64_t since_ms;
  HTML_FMT(h, "<article id=\"w-%s\"><h3><a", id);
  HTML_LINK(h, "/s/", str_from(id), "/");
  HTML_FMT(h, "><bdi>%.*s</bdi></a></h3><p>", STR_ARG(task.n > 0 ? task : str_from(id)));
  part_status(h, str_from(status), view_class_of(status));
  HTML_FMT(h, " in <bdi>%.*s</bdi> in workflow <bdi>%.*s</bdi>, ", STR_ARG(movement),
           STR_ARG(workflow));
  if (record_time_parse(json_word_at(item, "since"), &since_ms))
    part_when(h, since_ms);
  HTML_FMT(h, "</p><p><bdi>%.*s</bdi></p><p class=dim>", STR_ARG(text));
  part_code(h, json_view_at(item, "command"));
  HTML(h, "</p>");
  bool acts = ask->acts && json_is_true(json_at(item, "submitted"));
  if (acts && str_ends(json_view_at(item, "command"), " --now"))
    part_begin_now(h, id);
  else if (acts)
    part_resume(h, id, str_from(status));
  if (ask->acts)
    part_dismiss(h, id, 0);
  HTML(h, "</article>");
}

enum { INBOX_OPEN_COUNT = 5 }; /* a longer group is folded */

/* Writes the sessions that have stopped for one cause, if `first` is the first of them. */
static void put_stops(struct html *h, const struct page_ask *ask, json_t *list, size_t first) {
  struct str cause = json_view_at(json_array_get(list, first), "cause");
  size_t count = 0;
  JSON_EACH(list, i, item) {
    bool same = str_eq(json_view_at(item, "cause"), cause);
    if (same && i < first)
      return;
    count += same;
  }
  HTML_FMT(h, "<details id=\"cause-%zu\"", first);
  if (count <= INBOX_OPEN_COUNT)
    HTML(h, " open");
  HTML_FMT(h, "><summary><h2>%zu x <bdi>%.*s</bdi></h2></summary>", count, STR_ARG(cause));
  JSON_EACH(list, i, item) {
    if (str_eq(json_view_at(item, "cause"), cause))
      put_stop(h, ask, item);
  }
  HTML(h, "</details>");
}

static unsigned page_inbox(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct err err = {0};
  char title[40];
  json_auto_t *list =
      store_exists(&ask->store) ? inbox_list(&ask->store, NULL, NULL, &err) : json_array();
  if (list == NULL)
    return page_problem(ask, out, &err);
  size_t count = json_array_size(list);
  while (json_array_size(list) > LIMIT_WINDOW_ROW_COUNT)
    json_array_remove(list, json_array_size(list) - 1);
  print_into(title, sizeof title, "Inbox (%zu)", count);
  page_begin(&h, title, "events");
  view_asked_add(&ask->store, list);
  if (ask->acts)
    part_acted(&h);
  part_questions(&h, list, ask->acts, ask->acts);
  JSON_EACH(list, i, item) {
    if (str_eq_c(json_view_at(item, "kind"), "stop"))
      put_stops(&h, ask, list, i);
  }
  if (count == 0)
    HTML(&h, "<p>Nothing is waiting for you: no session has stopped. A workflow asks here with "
             "<code>ask:</code> and <code>approve:</code>.</p>");
  if (count > json_array_size(list))
    HTML_FMT(&h, "<p class=dim>%zu more are not shown.</p>", count - json_array_size(list));
  part_end_page(&h);
  return 200;
}

/* --- the rest --- */

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
  case PAGE_WORKFLOWS:
    return page_workflows(ask, out);
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
