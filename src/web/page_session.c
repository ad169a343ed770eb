/* Writes the pages of one session: itself, a judgment, its integrity. */
#include "web/page_session.h"

#include "base/limits.h"
#include "core/record.h"
#include "format/json_object.h"
#include "store/brief.h"
#include "store/inbox.h"
#include "view/asked.h"
#include "view/now.h"
#include "view/proof.h"
#include "view/told.h"
#include "view/words.h"
#include "web/parts.h"
#include "web/rails.h"

#include <stdio.h>
#include <string.h>

/* --- a session --- */

enum { GRAPH_ROW_COUNT = 100 }; /* if there are more movements than rows of a page */

static size_t count_failed(const struct view_session *v) {
  size_t n = 0;
  for (size_t i = 0; i < v->turn_count; i++)
    n += view_turn_failed(&v->turns[i]);
  return n;
}

/* Returns the first of `count` turns to show: that of the last page, unless another was
 * requested. */
static size_t first_turn(const struct page_ask *ask, size_t count) {
  long from = 0;
  if (ask->from[0] != '\0' && str_to_long(str_from(ask->from), &from) && from >= 1)
    return (size_t)from - 1 < count ? (size_t)from - 1 : count;
  if (count <= LIMIT_WINDOW_ROW_COUNT)
    return 0;
  return count - LIMIT_WINDOW_ROW_COUNT;
}

static void put_turns_link(struct html *h, bool only_failed, size_t from, const char *name) {
  struct buf number = {0};
  HTML(h, " <a");
  buf_printf(&number, "%zu", from);
  if (only_failed)
    HTML_LINK(h, "?failed=1&amp;from=", buf_view(&number), "");
  else
    HTML_LINK(h, "?from=", buf_view(&number), "");
  HTML(h, ">");
  html_puts(h, name);
  HTML(h, "</a>");
  buf_deinit(&number);
}

static void put_turn_pages(struct html *h, const struct part_which *which, size_t count) {
  size_t first = which->first, max = which->max;
  bool failed = which->only_failed;
  if (count <= max)
    return;
  HTML(h, "<p>");
  html_printf(h, "%s %zu to %zu of %zu.", failed ? "Failed turns" : "Turns", first + 1,
              first + max < count ? first + max : count, count);
  if (first > 0) {
    put_turns_link(h, failed, 1, "First");
    put_turns_link(h, failed, first > max ? first - max + 1 : 1, "Earlier");
  }
  if (first + max < count) {
    put_turns_link(h, failed, first + max + 1, "Later");
    put_turns_link(h, failed, count - max + 1, "Last");
  }
  HTML(h, "</p>");
}

/* Links to a turn; the key does the same. */
static void put_turn_link(struct html *h, long turn, const char *key, const char *name) {
  struct buf number = {0};
  if (turn == 0)
    return;
  buf_printf(&number, "%ld", turn);
  HTML(h, " <a");
  HTML_LINK(h, "", buf_view(&number), "");
  HTML_ATTR(h, "data-key", str_from(key));
  HTML(h, ">");
  html_puts(h, name);
  HTML(h, "</a>");
  buf_deinit(&number);
}

/* Finds the nearest failed turn after a turn, or before it; 0: there is none. */
static long failed_near(const struct view_session *v, long turn, bool behind) {
  long near = 0;
  for (size_t i = 0; i < v->turn_count; i++) {
    long one = view_turn_failed(&v->turns[i]) ? v->turns[i].turn : 0;
    if (one != 0 && one != turn && (one > turn) == behind && (near == 0 || (one < near) == behind))
      near = one;
  }
  return near;
}

/* Links from all turns to the failed ones, and back. */
static void put_turns_choice(struct html *h, const struct view_session *v, bool only_failed,
                             size_t failed) {
  if (!only_failed && failed == 0)
    return;
  HTML(h, "<p>");
  if (only_failed) {
    if (failed == 0)
      html_puts(h, "No turn failed: each call was answered, each judgment found a rule, and none "
                   "led to ABORT.");
    else
      html_printf(h, "Only turns that failed (%zu of %zu).", failed, v->turn_count);
    HTML(h, " <a href=\"./\">All turns</a>");
  } else {
    HTML(h, "<a href=\"?failed=1\">");
    html_printf(h, "Only turns that failed (%zu)", failed);
    HTML(h, "</a>");
  }
  put_turn_link(h, failed_near(v, 0, true), "N", "First failure");
  HTML(h, "</p>");
}

static void put_turns(struct html *h, const struct page_ask *ask, const struct view_session *v) {
  size_t failed = count_failed(v), count = ask->only_failed ? failed : v->turn_count;
  const struct part_which which = {.only_failed = ask->only_failed,
                                   .first = first_turn(ask, count),
                                   .max = LIMIT_WINDOW_ROW_COUNT};
  HTML(h, "<h2>Turns</h2>");
  put_turns_choice(h, v, ask->only_failed, failed);
  put_turn_pages(h, &which, count);
  if (count > 0 || !ask->only_failed)
    part_turns(h, v, "", &which);
}

/* --- the calls that run --- */

static const struct page_said *said_by(const struct page_ask *ask, long call) {
  for (size_t i = 0; i < ask->said_count; i++)
    if (ask->said[i].call == call)
      return &ask->said[i];
  return NULL;
}

/* Writes what a call has said. page.mjs appends later words, as text, from data-end on. */
static void put_said(struct html *h, long call, const char *kind, const char *text, uint64_t end) {
  HTML(h, "<pre class=live tabindex=0");
  html_attr_printf(h, "id", "said-%ld-%s", call, kind);
  html_attr_printf(h, "aria-label", "%s of call %ld", kind, call);
  html_attr_printf(h, "data-end", "%llu", (unsigned long long)end);
  HTML(h, ">");
  html_puts(h, text);
  HTML(h, "</pre>");
}

static void put_call_tool(struct html *h, const struct view_tool *tool) {
  struct buf place = {0};
  HTML(h, "<li>");
  html_said(h, tool->name);
  HTML(h, " <code>");
  html_text(h, tool->argument);
  HTML(h, "</code> ");
  buf_printf(&place, "%llu#/data/argument", (unsigned long long)tool->argument_seq);
  const struct part_cut cut = {.shown = tool->argument.n,
                               .bytes = tool->argument.n + tool->argument_more_bytes,
                               .ref = buf_view(&place),
                               .within = true};
  part_cut(h, &cut);
  buf_deinit(&place);
  html_said(h, tool->state);
  if (tool->has_exit)
    html_printf(h, " exit %ld", tool->exit);
  if (tool->failed)
    HTML(h, " <span class=\"status bad\">\xE2\x9C\x97 failed</span>");
  HTML(h, "</li>");
}

static void put_call_line(struct html *h, const struct page_ask *ask, const struct view_call *c) {
  struct buf text = {0};
  HTML(h, "<p class=dim>");
  if (c->stage.n > 0) {
    html_puts(h, "judges: ");
    html_said(h, c->stage);
    html_puts(h, ", ");
  }
  html_printf(h, "call %ld, attempt %ld, for ", c->call, c->attempt);
  view_put_time(&text, ask->now_ms > c->started_ms ? ask->now_ms - c->started_ms : 0);
  html_text(h, buf_view(&text));
  if (c->heard_ms > 0) {
    buf_clear(&text);
    view_put_time(&text, ask->now_ms > c->heard_ms ? ask->now_ms - c->heard_ms : 0);
    html_printf(h, ", last event %s ago", buf_c(&text));
  }
  if (c->tokens > 0)
    html_printf(h, ", %lld tokens so far", (long long)c->tokens);
  HTML(h, "</p>");
  buf_deinit(&text);
}

static void put_call(struct html *h, const struct page_ask *ask, const struct view_call *c) {
  const struct page_said *said = said_by(ask, c->call);
  HTML(h, "<section class=call");
  html_attr_printf(h, "id", "call-%ld-%ld", c->call, c->attempt);
  html_attr_printf(h, "aria-label", "Call %ld", c->call);
  HTML(h, "><h3>");
  html_said(h, c->movement);
  HTML(h, ": ");
  html_said(h, c->provider);
  HTML(h, " ");
  html_said(h, c->model);
  HTML(h, "</h3>");
  put_call_line(h, ask, c);
  if (c->tool_count > 0)
    HTML(h, "<ul class=tools>");
  if (c->tools_before > 0) {
    HTML(h, "<li class=dim>");
    html_printf(h, "%zu earlier", c->tools_before);
    HTML(h, "</li>");
  }
  for (size_t i = 0; i < c->tool_count; i++)
    put_call_tool(h, &c->tools[i]);
  if (c->tool_count > 0)
    HTML(h, "</ul>");
  HTML(h, "<details");
  html_attr_printf(h, "id", "think-%ld", c->call);
  HTML(h, "><summary>Thinking</summary>");
  put_said(h, c->call, "thinking", said ? said->thinking : "", said ? said->thinking_end : 0);
  HTML(h, "</details>");
  put_said(h, c->call, "text", said ? said->text : "", said ? said->text_end : 0);
  HTML(h, "</section>");
}

static void put_calls(struct html *h, const struct page_ask *ask, const struct track *track) {
  struct view_now now;
  struct err ignored;
  if (!view_now_read(&now, track, &ignored))
    return;
  if (now.count > 0)
    HTML(h, "<h2>Now</h2>");
  for (size_t i = 0; i < now.count; i++)
    put_call(h, ask, &now.calls[i]);
  view_now_deinit(&now);
}

/* Shows the session's questions, with forms for the answers. */
static bool put_asked_now(struct html *h, const struct page_ask *ask) {
  json_t *list = json_array();
  inbox_add_log(list, &ask->store, ask->id);
  view_asked_add(&ask->store, list);
  part_questions(h, list, ask->acts);
  bool asks = json_array_size(list) > 0;
  json_decref(list);
  return asks;
}

/* Returns the movement of the last turn that the page shows. */
static size_t movement_shown(const struct page_ask *ask, const struct view_session *v) {
  size_t end = first_turn(ask, v->turn_count) + LIMIT_WINDOW_ROW_COUNT;
  if (v->turn_count == 0)
    return 0;
  const struct view_turn *t = &v->turns[(end < v->turn_count ? end : v->turn_count) - 1];
  for (size_t i = 0; i < v->movement_count; i++)
    if (str_eq(v->movements[i].name, t->movement))
      return i;
  return 0;
}

/* Draws all movements, or if there are very many those around the turns that the page shows. */
static void put_graph(struct html *h, const struct page_ask *ask, const struct view_session *v) {
  struct view_session part = *v;
  const size_t max = GRAPH_ROW_COUNT;
  HTML(h, "<h2>Graph</h2>");
  if (v->movement_count > LIMIT_WINDOW_ROW_COUNT) {
    size_t at = movement_shown(ask, v), first = at > max / 2 ? at - max / 2 : 0;
    first = first + max > v->movement_count ? v->movement_count - max : first;
    part.movements += first;
    part.movement_count = max;
    HTML(h, "<p>");
    html_printf(h,
                "Movements %zu to %zu of %zu, around the last turn shown. Edges to the others are "
                "not drawn.",
                first + 1, first + max, v->movement_count);
    HTML(h, "</p>");
  }
  rails_table(h, &part);
}

static void put_session_body(struct html *h, const struct page_ask *ask,
                             const struct view_session *v, const struct track *track) {
  struct buf task = {0};
  part_banner(h, v);
  part_now(h, v, ask->day);
  if (ask->acts)
    part_acted(h);
  bool asks =
      (v->asked || v->forked_from.n > 0) && !view_session_is_over(v) && put_asked_now(h, ask);
  if (ask->acts)
    part_acts(h, v, asks);
  if (page_live_of(ask, ask->id) != NULL || str_eq_c(v->status, "running"))
    put_calls(h, ask, track);
  part_session_facts(h, v, NULL);
  part_find_form(h, STR(""));
  HTML(h, "<p><a href=workflow>Workflow and configuration</a> <a href=records>Raw records</a></p>"
          "<p><a href=\"integrity\">Verify this log</a> Read for this page: ");
  html_printf(h, "%s up to record %llu", v->chain == VIEW_BAD ? "sound only" : "sound",
              (unsigned long long)v->records);
  if (v->chain == VIEW_TORN)
    html_printf(h, ", with a torn tail of %llu bytes", (unsigned long long)v->torn_bytes);
  HTML(h, "</p><details id=task><summary>Task</summary>");
  buf_printf(&task, "%llu#/task", (unsigned long long)v->task_seq);
  part_pre(h, v->task, LIMIT_WINDOW_TEXT_BYTES,
           (struct part_cut){.bytes = v->task.n + v->task_more_bytes, .ref = buf_view(&task)});
  buf_deinit(&task);
  HTML(h, "</details>");
  if (v->forked_from.n == STORE_ID_BYTES - 1) {
    struct buf pair = {0};
    buf_printf(&pair, STR_FMT "_%s", STR_ARG(v->forked_from), ask->id);
    HTML(h, "<p><a");
    HTML_LINK(h, "/compare/", buf_view(&pair), "");
    buf_deinit(&pair);
    HTML(h, ">Compare with the session it was forked from</a></p>");
  }
  put_turns(h, ask, v);
  if (v->movement_count > 0)
    put_graph(h, ask, v);
  HTML(h, "<h2>Totals</h2>");
  part_totals(h, v);
}

/* Says so if the log is empty: it was killed as it started. */
static void say_if_empty(const struct page_ask *ask, const struct store_ref *ref, struct err *err) {
  struct brief b;
  if (!brief_unread(&b, ref, NULL))
    return;
  if (strcmp(b.status, "empty") == 0)
    (void)err_set(err, ERR_NOT_FOUND, "session %s was %s", ask->id, b.message);
  brief_deinit(&b);
}

struct track *page_track(const struct page_ask *ask, struct track **own, struct err *err) {
  struct store_ref ref;
  struct track *track = ask->track;
  *own = NULL;
  store_ref(&ask->store, ask->id, &ref);
  if (!store_is_there(&ref)) {
    (void)err_set(err, ERR_NOT_FOUND, "there is no session %s", ask->id);
    return NULL;
  }
  if (track == NULL)
    track = *own = track_new(&ref);
  if (track_read(track, err))
    return track;
  say_if_empty(ask, &ref, err);
  track_free(*own);
  *own = NULL;
  return NULL;
}

unsigned page_session(const struct page_ask *ask, struct buf *out) {
  struct track *own, *track;
  struct err err = {0};
  char title[80], watch[80];
  if ((track = page_track(ask, &own, &err)) == NULL)
    return page_problem(ask, out, &err);
  struct view_session v = track->view; /* a copy, for the status below */
  const struct page_live *live = page_live_of(ask, ask->id);
  if (live != NULL)
    v.status = str_from(live->status);
  struct html h = page_html(ask, out);
  (void)snprintf(title, sizeof title, "Session %s", ask->id);
  (void)snprintf(watch, sizeof watch, "s/%s/events", ask->id);
  page_begin(&h, title, watch);
  put_session_body(&h, ask, &v, track);
  part_end_page(&h);
  track_free(own);
  return 200;
}

/* --- a judgment --- */

/* Finds the nearest judged turn after a turn, or before it; 0: there is none. */
static long judged_near(const struct book *book, long turn, bool behind) {
  long near = 0;
  for (size_t i = 0; i < book->place_count; i++) {
    long one = book->places[i].kind == BOOK_JUDGMENT ? book->places[i].turn : 0;
    if (one != 0 && one != turn && (one > turn) == behind && (near == 0 || (one < near) == behind))
      near = one;
  }
  return near;
}

static void put_neighbours(struct html *h, const struct track *track, long turn) {
  HTML(h, "<p><a href=\"./\">The session</a>");
  put_turn_link(h, judged_near(&track->book, turn, false), "p", "Previous judgment");
  put_turn_link(h, judged_near(&track->book, turn, true), "n", "Next judgment");
  put_turn_link(h, failed_near(&track->view, turn, false), "P", "Previous failure");
  put_turn_link(h, failed_near(&track->view, turn, true), "N", "Next failure");
  HTML(h, "</p>");
}

/* Makes the words MOVEMENT#N that name a turn in a command. */
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

/* Writes the verdict in one line; how it was reached is shown below. */
static void put_verdict_line(struct html *h, const json_t *judgment) {
  static const char *const words[] = {"method", "match_method"};
  struct str next = json_view(json_at(judgment, "next"));
  HTML(h, "<p class=lead>");
  if (judgment == NULL) {
    html_puts(h, "Not judged yet.");
  } else if (json_at(judgment, "rule") == NULL || next.n == 0) {
    html_puts(h, "No rule was found.");
  } else {
    html_puts(h, "Led to ");
    HTML(h, "<strong>");
    html_said(h, next);
    HTML(h, "</strong>");
    html_printf(h, " by rule %lld", (long long)json_integer_value(json_at(judgment, "rule")));
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
      struct str word = json_view(json_object_get(judgment, words[i]));
      if (word.n > 0 && (i == 0 || !str_eq(word, json_view(json_at(judgment, "method"))))) {
        html_printf(h, ", %s ", words[i]);
        html_said(h, word);
      }
    }
    html_puts(h, ".");
  }
  HTML(h, "</p>");
}

/* Names what each ambiguous stage was torn between; where each alternative is follows below. */
static void put_doubts(struct html *h, const json_t *judgment) {
  size_t i, k;
  const json_t *stage, *candidate;
  json_array_foreach(json_at(judgment, "stages"), i, stage) {
    const json_t *candidates = json_at(stage, "candidates");
    if (json_array_size(candidates) == 0)
      continue;
    HTML(h, "<p><span class=mark>ambiguous</span> ");
    html_said(h, json_view(json_at(stage, "stage")));
    html_puts(h, " found ");
    json_array_foreach(candidates, k, candidate) {
      long long rule = json_integer_value(json_at(candidate, "rule"));
      html_puts(h, k > 0 ? " and " : "");
      if (rule > 0)
        html_printf(h, "rule %lld", rule);
      else
        html_puts(h, json_at(candidate, "rule") != NULL ? "no rule" : "a value without a rule");
    }
    html_puts(h, ", and decided nothing.");
    HTML(h, "</p>");
  }
}

static void put_judgment(struct html *h, const struct page_ask *ask, const struct track *track,
                         long turn, const struct view_told *told, const char *words) {
  struct buf title = {0}, command = {0};
  buf_printf(&title, "Turn %ld: %s", turn, words);
  buf_printf(&command, "segue show %s %s --full", ask->id, words);
  page_begin(h, buf_c(&title), NULL);
  put_neighbours(h, track, turn);
  put_verdict_line(h, told->judgment);
  put_doubts(h, told->judgment);
  HTML(h, "<p>In a terminal: ");
  part_code(h, buf_view(&command));
  HTML(h, "</p>");
  part_banner(h, &track->view);
  part_told(h, told, buf_view(&command));
  if (!ask->all && view_told_is_cut(told))
    HTML(h, "<p><a href=\"?all=1\">Show the full texts, up to 1 MiB each</a></p>");
  part_end_page(h);
  buf_deinit(&title);
  buf_deinit(&command);
}

unsigned page_judgment(const struct page_ask *ask, struct buf *out) {
  struct track *own, *track;
  struct view_told told;
  struct buf words = {0};
  struct err err = {0};
  long turn = 0;
  if ((track = page_track(ask, &own, &err)) == NULL)
    return page_problem(ask, out, &err);
  const struct book *book = &track->book;
  size_t max = ask->all ? PART_WHOLE_BYTES : LIMIT_WINDOW_TEXT_BYTES;
  bool ok = (str_to_long(str_from(ask->turn), &turn) && turn > 0) ||
            err_set(&err, ERR_NOT_FOUND, "\"%s\" is not a turn number", ask->turn);
  ok = ok && turn_words(book, turn, &words, &err) &&
       view_told_read(&told, book, turn, max, max, &err);
  if (ok) {
    struct html h = page_html(ask, out);
    put_judgment(&h, ask, track, turn, &told, buf_c(&words));
    view_told_deinit(&told);
  }
  track_free(own);
  buf_deinit(&words);
  return ok ? 200 : page_problem(ask, out, &err);
}

unsigned page_integrity(const struct page_ask *ask, struct buf *out) {
  struct store_ref ref;
  struct verify_result result;
  struct buf words = {0};
  struct err err = {0};
  store_ref(&ask->store, ask->id, &ref);
  if (!store_is_there(&ref)) {
    (void)err_set(&err, ERR_NOT_FOUND, "there is no session %s", ask->id);
    return page_problem(ask, out, &err);
  }
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
  HTML(&h, "</p><p>The whole log was checked just now: its hash chain, the order of its records, "
           "their references, and its last record against the ledger. <a href=\"./\">The session"
           "</a></p>");
  part_end_page(&h);
  buf_deinit(&words);
  return 200;
}
