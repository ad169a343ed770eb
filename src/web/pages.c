/* Writes the window's pages. */
#include "web/pages.h"

#include "audit/explain.h"
#include "base/limits.h"
#include "core/record.h"
#include "store/inbox.h"
#include "view/proof.h"
#include "view/words.h"
#include "web/compare_page.h"
#include "web/parts.h"
#include "web/rails.h"

#include <stdio.h>
#include <string.h>

enum { ALL_BYTES = 1024 * 1024 }; /* of a text that is shown whole */

static struct html page_html(const struct page_ask *ask, struct buf *out) {
  return (struct html){.out = out, .root = ask->root};
}

static void page_begin(struct html *h, const char *title, const char *watch) {
  struct buf text = {0};
  buf_printf(&text, "%s - segue", title);
  part_begin_page(h, buf_view(&text), watch);
  HTML(h, "<h1>");
  html_puts(h, title);
  HTML(h, "</h1>");
  buf_deinit(&text);
}

/* A page that says why there is no other one. */
static unsigned page_problem(const struct page_ask *ask, struct buf *out, const struct err *err) {
  struct html h = page_html(ask, out);
  page_begin(&h, "Not found", NULL);
  HTML(&h, "<p class=banner role=alert>");
  html_said(&h, str_from(err->text));
  HTML(&h, "</p>");
  part_end_page(&h);
  return 404;
}

/* How the daemon says that a session stands; NULL: its log says all. */
static const struct page_live *live_of(const struct page_ask *ask, const char *id) {
  for (size_t i = 0; i < ask->live_count; i++)
    if (strcmp(ask->live[i].id, id) == 0)
      return &ask->live[i];
  return NULL;
}

/* --- sessions --- */

static void put_live(const struct page_ask *ask, struct view_folder *f) {
  for (size_t i = 0; i < f->count; i++) {
    const struct page_live *live = live_of(ask, f->rows[i].id);
    if (live != NULL)
      view_folder_stand(f, i, live->status);
  }
}

static void put_filter(struct html *h, const struct page_ask *ask) {
  HTML(h, "<form role=search data-filter><label>Filter <input name=q size=60 autocomplete=off "
          "spellcheck=false");
  HTML_ATTR(h, "value", str_from(ask->q));
  HTML_ATTR(h, "placeholder",
            STR("status:running since:7d workflow:NAME method:ai_judge "
                "provider:NAME words"));
  HTML(h, "></label> <button>Show</button></form>");
}

static void put_session_counts(struct html *h, const struct view_folder *f,
                               const struct page_ask *ask) {
  HTML(h, "<p id=counts role=status>");
  html_printf(h, "%zu session%s%s", f->count, f->count == 1 ? "" : "s",
              ask->before[0] || f->next[0] ? " on this page" : "");
  for (int i = 0; i < VIEW_CLASS_COUNT; i++)
    if (f->classes[i] > 0)
      html_printf(h, ", %zu %s", f->classes[i], view_class_name((enum view_class)i));
  HTML(h, "</p>");
}

static void put_more(struct html *h, const struct page_ask *ask, const char *next) {
  struct buf query = {0};
  if (next[0] == '\0')
    return;
  HTML(h, "<p><a");
  HTML_LINK(h, "/?before=", str_from(next), "");
  HTML_ATTR(h, "data-keep", str_from(ask->q));
  HTML(h, ">Older sessions</a></p>");
  buf_deinit(&query);
}

static unsigned page_sessions(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct view_filter filter;
  struct view_folder f = {0};
  struct err err = {0};
  bool ok = view_filter_read(&filter, ask->q, ask->now_ms, &err);
  filter.before = ask->before[0] ? ask->before : NULL;
  filter.max = LIMIT_WINDOW_ROW_COUNT;
  ok = ok && (!store_exists(&ask->store) || view_folder_page(&f, &ask->store, &filter, &err));
  put_live(ask, &f);
  page_begin(&h, "Sessions", "events");
  put_filter(&h, ask);
  if (!ok) {
    HTML(&h, "<p class=banner role=alert>");
    html_said(&h, str_from(err.text));
    HTML(&h, "</p>");
  } else if (f.count == 0) {
    HTML(&h, "<p>");
    html_puts(&h, ask->q[0] ? "No session passes this filter: " : "There is no session yet in ");
    html_said(&h, str_from(ask->q[0] ? ask->q : ask->store.where));
    HTML(&h, "</p>");
    put_more(&h, ask, f.next);
  } else {
    put_session_counts(&h, &f, ask);
    part_rows(&h, &f, VIEW_CLASS_COUNT);
    put_more(&h, ask, f.next);
  }
  part_end_page(&h);
  view_folder_deinit(&f);
  return 200;
}

/* --- what waits for a person --- */

static bool row_asks_person(const struct view_row *row) {
  static const char *const statuses[] = {"stopped", "rule_no_match", "max_movements", "failed"};
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (str_eq_c(row->status, statuses[i]))
      return true;
  return false;
}

static void put_waiting(struct html *h, const struct view_row *row) {
  struct buf when = {0};
  view_put_when(&when, row->updated_ms);
  HTML(h, "<article");
  html_attr_printf(h, "id", "w-%s", row->id);
  HTML(h, "><h2><a");
  HTML_LINK(h, "/s/", str_from(row->id), "/");
  HTML(h, ">");
  html_said(h, row->task.n > 0 ? row->task : str_from(row->id));
  HTML(h, "</a></h2><p>");
  part_status(h, row->status, row->class);
  html_puts(h, " in ");
  html_said(h, row->movement);
  html_puts(h, " of ");
  html_said(h, row->workflow);
  html_printf(h, ", turn %ld, since ", row->turns);
  html_text(h, buf_view(&when));
  HTML(h, "</p><p>");
  html_said(h, row->message);
  HTML(h, "</p><p class=dim><code>");
  html_printf(h, "segue resume %s", row->id);
  HTML(h, "</code></p></article>");
  buf_deinit(&when);
}

/* It is stopped, and not for a question, which stands there by itself. */
static bool row_is_listed(const struct view_row *row, const json_t *questions) {
  size_t i;
  json_t *item;
  json_array_foreach(questions, i, item) {
    if (str_eq_c(str_from(row->id), json_string_value(json_object_get(item, "id"))))
      return false;
  }
  return row_asks_person(row);
}

static unsigned page_inbox(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct view_filter filter;
  struct view_folder f = {0};
  struct err err = {0};
  char title[40];
  size_t waiting = 0;
  if (!view_filter_read(&filter, "status:stopped,rule_no_match,max_movements,failed", ask->now_ms,
                        &err))
    return page_problem(ask, out, &err);
  filter.max = LIMIT_WINDOW_ROW_COUNT;
  if (store_exists(&ask->store) && !view_folder_page(&f, &ask->store, &filter, &err))
    return page_problem(ask, out, &err);
  put_live(ask, &f);
  json_t *questions = store_exists(&ask->store) ? inbox_list(&ask->store, NULL, NULL, &err) : NULL;
  waiting = json_array_size(questions);
  for (size_t i = 0; i < f.count; i++)
    waiting += row_is_listed(&f.rows[i], questions);
  (void)snprintf(title, sizeof title, "Inbox (%zu%s)", waiting, f.next[0] ? "+" : "");
  page_begin(&h, title, "events");
  part_questions(&h, questions, ask->acts);
  for (size_t i = 0; i < f.count; i++)
    if (row_is_listed(&f.rows[i], questions))
      put_waiting(&h, &f.rows[i]);
  if (waiting == 0)
    HTML(&h, "<p>Nothing waits for you: no session is stopped.</p>");
  part_end_page(&h);
  json_decref(questions);
  view_folder_deinit(&f);
  return 200;
}

/* --- a session --- */

/* Four answers in a line: since when, what now, why, and what stands in its way. */
static void put_now(struct html *h, const struct view_session *v) {
  struct buf when = {0};
  view_put_when(&when, v->last_ms);
  HTML(h, "<p id=now>Last record ");
  html_text(h, buf_view(&when));
  html_puts(h, ". ");
  for (size_t i = 0; i < v->turn_count; i++) {
    const struct view_turn *t = &v->turns[i];
    if (t->over)
      continue;
    html_printf(h, "Turn %ld, ", t->turn);
    html_said(h, t->movement);
    html_puts(h, ": ");
    html_said(h, t->leads_to.n > 0 ? t->leads_to : STR("between two calls"));
    html_puts(h, ". ");
  }
  HTML(h, "</p>");
  buf_deinit(&when);
}

/* The page of turns that is shown: the last one unless one was asked for. */
static size_t first_turn(const struct page_ask *ask, const struct view_session *v) {
  long from = 0;
  if (ask->from[0] != '\0' && str_to_long(str_from(ask->from), &from) && from >= 1)
    return (size_t)from - 1 < v->turn_count ? (size_t)from - 1 : v->turn_count;
  if (v->turn_count <= LIMIT_WINDOW_ROW_COUNT)
    return 0;
  return v->turn_count - LIMIT_WINDOW_ROW_COUNT;
}

static void put_turn_pages(struct html *h, const struct view_session *v, size_t first) {
  size_t max = LIMIT_WINDOW_ROW_COUNT;
  struct buf from = {0};
  if (v->turn_count <= max)
    return;
  HTML(h, "<p>");
  html_printf(h, "Turns %zu to %zu of %zu. ", first + 1,
              first + max < v->turn_count ? first + max : v->turn_count, v->turn_count);
  if (first > 0) {
    HTML(h, "<a href=\"?from=1\">First</a> <a");
    buf_printf(&from, "%zu", first > max ? first - max + 1 : 1);
    HTML_LINK(h, "?from=", buf_view(&from), "");
    HTML(h, ">Before</a> ");
  }
  if (first + max < v->turn_count) {
    HTML(h, "<a");
    buf_clear(&from);
    buf_printf(&from, "%zu", first + max + 1);
    HTML_LINK(h, "?from=", buf_view(&from), "");
    HTML(h, ">Behind</a> <a href=\"./\">Last</a>");
  }
  HTML(h, "</p>");
  buf_deinit(&from);
}

static void put_session_body(struct html *h, const struct page_ask *ask,
                             const struct view_session *v) {
  size_t first = first_turn(ask, v);
  part_banner(h, v);
  put_now(h, v);
  if (ask->acts)
    part_acts(h, v);
  part_session_facts(h, v, NULL);
  HTML(h, "<p><a href=\"integrity\">Is this log what was written?</a> Read now: ");
  html_printf(h, "%s up to record %llu", v->chain == VIEW_BAD ? "sound only" : "sound",
              (unsigned long long)v->records);
  if (v->chain == VIEW_TORN)
    html_printf(h, ", with a torn tail of %llu bytes", (unsigned long long)v->torn_bytes);
  HTML(h, "</p><details id=task><summary>Task</summary><pre>");
  html_text(h, v->task);
  HTML(h, "</pre></details>");
  if (v->forked_from.n == STORE_ID_BYTES - 1) {
    struct buf pair = {0};
    buf_printf(&pair, STR_FMT "_%s", STR_ARG(v->forked_from), ask->id);
    HTML(h, "<p><a");
    HTML_LINK(h, "/compare/", buf_view(&pair), "");
    buf_deinit(&pair);
    HTML(h, ">Compare with the session that it was forked from</a></p>");
  }
  HTML(h, "<h2>Turns</h2>");
  put_turn_pages(h, v, first);
  part_turns(h, v, "", first, LIMIT_WINDOW_ROW_COUNT);
  if (v->movement_count > 0) {
    HTML(h, "<h2>Graph</h2>");
    rails_table(h, v);
  }
  HTML(h, "<h2>Totals</h2>");
  part_totals(h, v);
}

static bool page_ref(const struct page_ask *ask, struct store_ref *ref, struct err *err) {
  store_ref(&ask->store, ask->id, ref);
  return store_is_there(ref) || err_set(err, ERR_NOT_FOUND, "there is no session %s", ask->id);
}

static unsigned page_session(const struct page_ask *ask, struct buf *out) {
  struct store_ref ref;
  struct view_session v;
  struct err err = {0};
  char title[80], watch[80];
  if (!page_ref(ask, &ref, &err) || !view_session_read(&v, &ref, &err))
    return page_problem(ask, out, &err);
  const struct page_live *live = live_of(ask, ask->id);
  if (live != NULL)
    v.status = str_from(live->status);
  struct html h = page_html(ask, out);
  (void)snprintf(title, sizeof title, "Session %s", ask->id);
  (void)snprintf(watch, sizeof watch, "s/%s/events", ask->id);
  page_begin(&h, title, watch);
  put_session_body(&h, ask, &v);
  part_end_page(&h);
  view_session_deinit(&v);
  return 200;
}

/* --- a judgment --- */

static void put_neighbours(struct html *h, const struct book *book, long turn) {
  long before = 0, behind = 0;
  char number[24];
  for (size_t i = 0; i < book->place_count; i++) {
    long one = book->places[i].kind == BOOK_TURN_START ? book->places[i].turn : 0;
    if (one > 0 && one < turn && one > before)
      before = one;
    if (one > turn && (behind == 0 || one < behind))
      behind = one;
  }
  HTML(h, "<p><a href=\"./\">The session</a>");
  for (int side = 0; side < 2; side++) {
    long one = side == 0 ? before : behind;
    if (one == 0)
      continue;
    (void)snprintf(number, sizeof number, "%ld", one);
    HTML(h, " <a");
    HTML_LINK(h, "", str_from(number), "");
    HTML_ATTR(h, "data-key", side == 0 ? STR("p") : STR("n"));
    HTML(h, ">");
    html_puts(h, side == 0 ? "Turn before" : "Next turn");
    HTML(h, "</a>");
  }
  HTML(h, "</p>");
}

/* The words MOVEMENT#N that name a turn to a command. */
static bool turn_words(const struct book *book, long turn, struct buf *out, struct err *err) {
  for (size_t i = 0; i < book->place_count; i++) {
    if (book->places[i].turn != turn || book->places[i].kind != BOOK_TURN_START)
      continue;
    json_t *record = book_get(book, book->places[i].seq, err);
    if (record == NULL)
      return false;
    const char *name = json_string_value(json_object_get(record, "movement"));
    buf_printf(out, "%s#%lld", name ? name : "",
               (long long)json_integer_value(json_object_get(record, "movement_iteration")));
    json_decref(record);
    return true;
  }
  return err_set(err, ERR_NOT_FOUND, "there is no turn %ld in this session", turn);
}

static void put_judgment(struct html *h, const struct page_ask *ask, const struct book *book,
                         long turn, const struct view_told *told, const char *words) {
  struct buf title = {0}, command = {0};
  buf_printf(&title, "Turn %ld: %s", turn, words);
  buf_printf(&command, "segue show %s %s --full", ask->id, words);
  page_begin(h, buf_c(&title), NULL);
  put_neighbours(h, book, turn);
  HTML(h, "<p>The same on a terminal: <code>");
  html_text(h, buf_view(&command));
  HTML(h, "</code></p>");
  if (book->state == BOOK_DAMAGED) {
    HTML(h, "<p class=banner role=note>");
    html_printf(h, "The log is damaged at record %llu; what stands before it is sound.",
                (unsigned long long)book->records + 1);
    HTML(h, "</p>");
  }
  part_told(h, told, buf_view(&command));
  if (!ask->all)
    HTML(h, "<p><a href=\"?all=1\">Show the texts whole, up to 1 MiB each</a></p>");
  part_end_page(h);
  buf_deinit(&title);
  buf_deinit(&command);
}

static unsigned page_judgment(const struct page_ask *ask, struct buf *out) {
  struct store_ref ref;
  struct book book;
  struct view_told told;
  struct buf words = {0};
  struct err err = {0};
  json_t *record;
  long turn = 0;
  if (!page_ref(ask, &ref, &err) || !book_open(&book, &ref, true, &err))
    return page_problem(ask, out, &err);
  while ((record = book_next(&book)) != NULL)
    json_decref(record);
  size_t max = ask->all ? ALL_BYTES : LIMIT_WINDOW_TEXT_BYTES;
  bool ok = (str_to_long(str_from(ask->turn), &turn) && turn > 0) ||
            err_set(&err, ERR_NOT_FOUND, "a turn has a number: \"%s\" is none", ask->turn);
  ok = ok && turn_words(&book, turn, &words, &err) &&
       view_told_read(&told, &book, turn, max, max, &err);
  if (ok) {
    struct html h = page_html(ask, out);
    put_judgment(&h, ask, &book, turn, &told, buf_c(&words));
    view_told_deinit(&told);
  }
  book_close(&book);
  buf_deinit(&words);
  return ok ? 200 : page_problem(ask, out, &err);
}

/* --- the rest --- */

static unsigned page_integrity(const struct page_ask *ask, struct buf *out) {
  struct store_ref ref;
  struct verify_result result;
  struct buf words = {0};
  struct err err = {0};
  if (!page_ref(ask, &ref, &err))
    return page_problem(ask, out, &err);
  struct proof *proof = proof_new(&err);
  bool ok = proof != NULL && proof_read(proof, &ref, &result, &err);
  proof_free(proof);
  if (!ok)
    return page_problem(ask, out, &err);
  struct html h = page_html(ask, out);
  page_begin(&h, "Integrity", NULL);
  view_put_proof(&words, &result);
  if (result.state == VERIFY_BAD)
    HTML(&h, "<p class=banner role=alert>");
  else
    HTML(&h, "<p>");
  html_said(&h, buf_view(&words));
  HTML(&h, "</p><p>Read now and whole: the chain of its hashes, the order of its records, what "
           "they refer to, and the last record against the ledger. <a href=\"./\">The session"
           "</a></p>");
  part_end_page(&h);
  buf_deinit(&words);
  return 200;
}

static unsigned page_audit(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct census *c = census_new();
  struct err err = {0};
  if (store_exists(&ask->store) && !census_read_store(c, &ask->store, &err)) {
    census_free(c);
    return page_problem(ask, out, &err);
  }
  census_sort(c);
  page_begin(&h, "Audit", NULL);
  HTML(&h, "<h2>Judgments</h2>");
  part_audit(&h, c);
  part_end_page(&h);
  census_free(c);
  return 200;
}

static bool page_side(const struct page_ask *ask, const char *id, struct compare_side *side,
                      struct err *err) {
  struct store_ref ref;
  if (strlen(id) != STORE_ID_BYTES - 1 || strspn(id, "0123456789abcdef-") != STORE_ID_BYTES - 1)
    return err_set(err, ERR_NOT_FOUND, "give two sessions: compare/ID_ID");
  store_ref(&ask->store, id, &ref);
  return compare_log(side, &ref, err);
}

static unsigned page_compare(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct compare_side a = {0}, b = {0};
  struct err err = {0};
  bool ok = page_side(ask, ask->a, &a, &err) && page_side(ask, ask->b, &b, &err);
  if (ok) {
    page_begin(&h, "Compare", NULL);
    compare_page(&h, &a, &b);
    part_end_page(&h);
  }
  compare_side_deinit(&a);
  compare_side_deinit(&b);
  return ok ? 200 : page_problem(ask, out, &err);
}

/* A fixed page: nothing of what it is asked for is in it. */
static unsigned page_enter(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  HTML(&h, "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>segue</title>"
           "<meta name=viewport content=\"width=device-width,initial-scale=1\">"
           "<link rel=stylesheet");
  HTML_LINK(&h, "/style.css", STR(""), "");
  HTML(&h, "><script type=module");
  HTML_SRC(&h, "enter.mjs");
  HTML(&h, "></script></head><body><main><h1>segue</h1><p id=say role=status>This page opens with "
           "a code that is good once and for a minute. Run <code>segue web</code>.</p></main>"
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
  case PAGE_AUDIT:
    return page_audit(ask, out);
  case PAGE_COMPARE:
    return page_compare(ask, out);
  case PAGE_ENTER:
    break;
  }
  return page_enter(ask, out);
}
