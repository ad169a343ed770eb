/* Writes the pages of one session: itself, a judgment, its integrity. */
#include "web/page_session.h"

#include "base/limits.h"
#include "core/budget.h"
#include "core/record.h"
#include "format/json_object.h"
#include "judge/stage.h"
#include "store/inbox.h"
#include "store/summary.h"
#include "view/judgment.h"
#include "view/number_format.h"
#include "view/question.h"
#include "view/running.h"
#include "view/verification.h"
#include "web/parts.h"

#include <string.h>

/* --- what a browser may do --- */

/* Finds the movement whose last turn ended without a matching rule. */
static const struct view_movement *unjudged(const struct view_session *v) {
  for (size_t i = v->turn_count; i-- > 0;) {
    const struct view_turn *t = &v->turns[i];
    if (t->parent > 0)
      continue;
    if (t->judged || !t->over)
      return NULL;
    for (size_t k = 0; k < v->movement_count; k++)
      if (str_eq(v->movements[k].name, t->movement))
        return &v->movements[k];
    return NULL;
  }
  return NULL;
}

static void put_verdicts(struct html *h, const struct view_session *v) {
  const struct view_movement *m = unjudged(v);
  if (m == NULL)
    return;
  HTML_FMT(h,
           "<p><label>Verdict on <bdi>%.*s</bdi> <select name=rule data-number><option "
           "value=\"\">judge it again</option>",
           STR_ARG(m->name));
  for (size_t i = 0; i < m->rule_count; i++)
    HTML_FMT(h, "<option value=\"%zu\">%zu: %.*s &#62; %.*s</option>", i + 1, i + 1,
             STR_ARG(m->rules[i].condition), STR_ARG(m->rules[i].next));
  HTML(h, "</select></label> <label>because <input name=why size=40 maxlength=4000></label></p>");
}

/* Writes the fields for who continues, and with how much more. */
static void put_more_of(struct html *h, struct str status) {
  if (str_eq_c(status, "max_movements"))
    HTML(h, "<p><label>Turn limit, counting earlier turns <input name=max_movements "
            "type=number min=1 data-number></label></p>");
  HTML(h, "<details><summary>Another provider, or more budget</summary>"
          "<p><label>Provider <input name=provider autocomplete=off spellcheck=false></label> "
          "<label>model <input name=model autocomplete=off spellcheck=false></label></p>"
          "<p>Add to the budget: <label>cost in $ <input name=add_budget.cost type=number min=0 "
          "step=any data-number></label> <label>tokens <input name=add_budget.tokens type=number "
          "min=0 data-number></label></p>");
  if (!str_eq_c(status, "max_movements"))
    HTML(h, "<p><label>Turn limit, counting earlier turns <input name=max_movements "
            "type=number min=1 data-number></label></p>");
  HTML(h, "</details><p><button>Resume</button></p></form>");
}

void part_resume(struct html *h, const char *id, struct str status) {
  HTML_FMT(h, "<form data-act=\"s/%s/resume\">", id);
  put_more_of(h, status);
}

void part_begin_now(struct html *h, const char *id) {
  HTML_FMT(h,
           "<p>It is to begin after other sessions. <button data-act=\"s/%s/resume\" "
           "data-body='{\"now\":true}'>Begin it without them</button></p>",
           id);
}

/* Writes the forms for what may be done with the session; nothing where nothing may be. asks: it
 * waits for an answer, with which it continues. */
static void part_acts(struct html *h, const struct view_session *v, bool asks) {
  if (!v->submitted || view_session_is_over(v))
    return;
  HTML(h, "<section class=noprint id=acts aria-label=\"Actions\">");
  if (str_eq_c(v->resume_flags, " --now")) {
    part_begin_now(h, v->id);
  } else if (v->resumable && !asks) {
    HTML(h, "<form data-act=resume>");
    if (!str_eq_c(v->status, "max_movements"))
      put_verdicts(h, v);
    put_more_of(h, v->status);
  }
  HTML(h, "<details id=steer><summary>Say something to it</summary><form data-act=steer><p><label>"
          "The agent reads it at once where it can be told while it runs, else with its next call. "
          "It is no verdict and no permission. <textarea name=text rows=3 required "
          "maxlength=16384></textarea></label> <button>Say it</button></p></form></details>");
  HTML(h, "<details><summary>Cancel this session</summary><p>This ends it for good. "
          "<button data-act=cancel>Cancel it</button></p></details></section>");
}

/* --- now --- */

/* Says what a turn does. For a call leads_to says it; a wait has its kind and its reason. */
static void put_doing(struct html *h, const struct view_turn *t) {
  static const char *const all[VIEW_SPAN_KINDS + 1] = {[VIEW_WORK] = "",
                                                       [VIEW_JUDGING] = "",
                                                       [VIEW_WAITING] = "waits for a place",
                                                       [VIEW_RETRY] = "waits for the next attempt",
                                                       [VIEW_PERSON] = "waits for a person",
                                                       [VIEW_SPAN_KINDS] = "between two calls"};
  const char *words = all[t->doing->kind];
  bool between = t->doing->kind == VIEW_SPAN_KINDS;
  if (words[0] == '\0' || (between && t->leads_to.n > 0)) { /* a group's children speak for it */
    HTML_FMT(h, "%s<bdi>%.*s</bdi>", words[0] == '\0' && t->leads_to.n > 0 ? "a call of " : "",
             STR_ARG(t->leads_to));
  } else {
    html_puts(h, words);
    if (t->provider.n > 0 && (t->doing->kind == VIEW_WAITING || t->doing->kind == VIEW_RETRY))
      HTML_FMT(h, " at <bdi>%.*s</bdi>", STR_ARG(t->provider));
    if (t->doing->waits_for.n > 0)
      HTML_FMT(h, " (<bdi>%.*s</bdi>)", STR_ARG(t->doing->waits_for));
  }
  if (t->doing->since_ms > 0) {
    html_puts(h, ", ");
    part_since(h, t->doing->since_ms);
  }
  if (t->doing->until_ms > 0) {
    html_puts(h, ", ");
    part_until(h, t->doing->until_ms);
  }
  if (t->doing->away_ms == 0)
    return;
  html_puts(h, "; it is away ");
  part_since(h, t->doing->away_ms);
  html_puts(h, " and waited for ");
  if (t->doing->gives_up_ms > 0)
    part_until(h, t->doing->gives_up_ms);
  else
    HTML_FMT(h, "until somebody logs in: <code>segue doctor <bdi>%.*s</bdi></code>",
             STR_ARG(t->provider));
}

/* --- the head --- */

static const struct view_turn *last_verdict(const struct view_session *v) {
  for (size_t i = v->turn_count; i-- > 0;)
    if (v->turns[i].over && v->turns[i].parent == 0)
      return &v->turns[i];
  return NULL;
}

static bool asks_person(const struct view_session *v) {
  for (size_t i = 0; i < v->open_count; i++)
    if (v->turns[v->open[i]].doing->kind == VIEW_PERSON)
      return true;
  return false;
}

/* Says why it stands as it does: its own message, else the last verdict. */
static void head_put_why(struct html *h, const struct view_session *v) {
  const struct view_turn *last = last_verdict(v);
  if (v->message.n > 0) {
    html_said(h, v->message);
  } else if (last == NULL) {
    html_puts(h,
              v->forked_from.n > 0 ? "it continues from where it was forked" : "it has just begun");
  } else if (!last->judged) {
    HTML_FMT(h, "<bdi>%.*s</bdi>: <bdi>%.*s</bdi>", STR_ARG(last->movement),
             STR_ARG(judge_stage_words(last->method)));
  } else {
    HTML_FMT(h, "<bdi>%.*s</bdi> led to <bdi>%.*s</bdi>: <bdi>%.*s</bdi>", STR_ARG(last->movement),
             STR_ARG(last->leads_to), STR_ARG(last->reason.n > 0 ? last->reason : last->condition));
  }
  if (asks_person(v))
    html_puts(h, "; it continues when its question is answered");
  else if (v->resumable)
    html_puts(h, "; it continues when it is resumed");
  else if (str_eq_c(v->status, "open"))
    html_puts(h, "; nothing runs it: segue resume continues it");
}

/* Writes status, reason, cost and time in one line, which breaks where it must. */
static void put_state_line(struct html *h, const struct view_session *v) {
  char status[24];
  buf_auto_t cost = {0};
  const json_t *usd = json_at(v->spent, "cost_usd");
  bool over = view_session_is_over(v);
  print_into(status, sizeof status, STR_FMT, STR_ARG(v->status));
  HTML(h, "<p id=state>");
  part_status(h, v->status, view_class_of(status));
  if (v->basis.n > 0)
    HTML_FMT(h, "<span><bdi>%.*s</bdi></span>", STR_ARG(v->basis));
  HTML(h, "<span class=why>");
  head_put_why(h, v);
  HTML(h, "</span>");
  view_put_dollars(&cost, json_number_value(usd), usd != NULL, json_at(v->spent, "unpriced"));
  if (cost.n > 0)
    HTML_FMT(h, "<span class=n>%s</span>", buf_c(&cost));
  HTML(h, "<span class=n>");
  part_took(h, v->last_ms > v->started_ms ? v->last_ms - v->started_ms : 0);
  HTML_FMT(h, "</span><span class=n>%zu turn%s</span><span class=dim>", v->turn_count,
           PLURAL(v->turn_count));
  html_puts(h, over ? "" : "last change ");
  part_when(h, v->last_ms);
  HTML(h, "</span></p>");
}

/* --- limits --- */

static const char *bound_before(const struct view_bound *b) {
  static const char *const words[VIEW_BOUND_KINDS] = {
      [VIEW_BOUND_BUDGET] = "budget",
      [VIEW_BOUND_LOOP] = "loop of ",
      [VIEW_BOUND_SAME_MOVEMENT] = "guard of ",
      [VIEW_BOUND_SAME_FAILURE] = "guard of ",
      [VIEW_BOUND_SAME_TOOL] = "guard of ",
      [VIEW_BOUND_CALL] = "budget of one call of ",
      [VIEW_BOUND_TIMEOUT] = "time limit for the call of ",
      [VIEW_BOUND_STALL] = "stall limit for the call of ",
      [VIEW_BOUND_DEADLINE] = "deadline for the question of "};
  if (b->kind == VIEW_BOUND_BUDGET && b->of.n > 0)
    return "budget of ";
  return words[b->kind] != NULL ? words[b->kind] : "";
}

/* Gives the words around a limit's two numbers. False: it has amounts, or a time. */
static bool bound_around(enum view_bound_kind kind, const char **before, const char **after) {
  *after = " times in a row";
  if (kind == VIEW_BOUND_SAME_MOVEMENT) {
    *before = "entered";
  } else if (kind == VIEW_BOUND_SAME_FAILURE) {
    *before = "failed";
    *after = " times in a row with the same output and no file changed";
  } else if (kind == VIEW_BOUND_SAME_TOOL) {
    *before = "used the same tool";
    *after = " times in a row with the same argument";
  } else {
    *before = "round";
    *after = " before its monitor judges";
  }
  return kind == VIEW_BOUND_LOOP || kind == VIEW_BOUND_SAME_MOVEMENT ||
         kind == VIEW_BOUND_SAME_FAILURE || kind == VIEW_BOUND_SAME_TOOL;
}

static void now_put_amounts(struct html *h, enum budget_unit unit, int64_t used, int64_t limit) {
  buf_auto_t text = {0};
  if (unit != BUDGET_COST)
    buf_printf(&text, "%s ", budget_unit_name(unit));
  budget_put_amount(&text, unit, used);
  buf_puts(&text, " of ");
  budget_put_amount(&text, unit, limit);
  html_text(h, buf_view(&text));
}

static void put_bound_words(struct html *h, const struct view_bound *b) {
  const char *before, *after;
  html_puts(h, bound_before(b));
  if (b->of.n > 0)
    html_said(h, b->of);
  if (bound_around(b->kind, &before, &after)) {
    HTML_FMT(h, ": %s %lld of %lld%s", before, (long long)b->used, (long long)b->limit, after);
    return;
  }
  html_puts(h, b->kind == VIEW_BOUND_MOVEMENTS ? "" : ": ");
  if (view_bound_has_time(b->kind)) {
    part_until(h, b->until_ms);
  } else if (b->kind == VIEW_BOUND_STALL) {
    html_puts(h, "it ends after ");
    part_took(h, b->limit);
    html_puts(h, " without output");
  } else {
    now_put_amounts(h, b->unit, b->used, b->limit);
  }
}

/* Marks a limit of which four fifths are used; budget.h warns from there on too. */
static void mark_near(struct html *h, double used, double limit) {
  double percent = limit > 0 ? used * 100 / limit : 0;
  if (percent >= 80)
    HTML_FMT(h, " <span class=mark>%lld %%</span>", (long long)percent);
}

/* --- the budget of the day, of all sessions together --- */

static bool names_provider(const struct view_session *v, struct str provider) {
  for (size_t i = 0; i < v->turn_count; i++)
    if (str_eq(v->turns[i].provider, provider))
      return true;
  for (size_t i = 0; i < v->movement_count; i++)
    if (str_eq(v->movements[i].who, provider))
      return true;
  return false;
}

static void put_of_day(struct html *h, const json_t *limit) {
  struct str provider = json_view_at(limit, "provider");
  enum budget_unit unit = budget_unit_of(json_view_at(limit, "unit"));
  double used = json_number_value(json_at(limit, "used"));
  double most = json_number_value(json_at(limit, "limit"));
  double each = unit == BUDGET_COST ? 1e9 : 1;
  if (unit == BUDGET_UNITS)
    return;
  HTML(h, "<div>today&#39;s budget");
  if (provider.n > 0)
    HTML_FMT(h, " of <bdi>%.*s</bdi>", STR_ARG(provider));
  html_puts(h, ": ");
  now_put_amounts(h, unit, (int64_t)(used * each + 0.5), (int64_t)(most * each + 0.5));
  mark_near(h, used, most);
  HTML(h, "</div>");
}

static void head_put_limits(struct html *h, const struct view_session *v, const json_t *day) {
  if (v->bound_count == 0 && json_array_size(day) == 0)
    return;
  HTML(h, "<dt>limits</dt><dd>");
  for (size_t i = 0; i < v->bound_count; i++) {
    HTML(h, "<div>");
    put_bound_words(h, &v->bounds[i]);
    mark_near(h, (double)v->bounds[i].used, (double)v->bounds[i].limit);
    HTML(h, "</div>");
  }
  JSON_EACH(day, i, limit) {
    struct str provider = json_view_at(limit, "provider");
    if (provider.n == 0 || names_provider(v, provider))
      put_of_day(h, limit);
  }
  HTML(h, "</dd>");
}

/* Shows what its turns do or wait for, and its limits. The log of a session that nobody runs ends
 * where it was left. day: limits of all sessions together, from daily_usage_json; or NULL. */
static void part_now(struct html *h, const struct view_session *v, const json_t *day) {
  if (view_session_is_over(v))
    return;
  HTML(h, "<dl id=now>");
  if (v->open_count > 0)
    HTML(h, "<dt>now</dt><dd>");
  for (size_t i = 0; i < v->open_count; i++) {
    const struct view_turn *t = &v->turns[v->open[i]];
    HTML_FMT(h, "<div>Turn %ld, <bdi>%.*s</bdi>: ", t->turn, STR_ARG(t->movement));
    put_doing(h, t);
    HTML(h, "</div>");
  }
  if (v->open_count > 0)
    HTML(h, "</dd>");
  head_put_limits(h, v, day);
  HTML(h, "</dl>");
}

/* --- a session --- */

enum { GRAPH_ROW_COUNT = 100 }; /* if there are more movements than rows of a page */

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
  if (only_failed)
    HTML_FMT(h, " <a href=\"?failed=1&amp;from=%zu\">%s</a>", from, name);
  else
    HTML_FMT(h, " <a href=\"?from=%zu\">%s</a>", from, name);
}

static void put_turn_pages(struct html *h, const struct part_which *which, size_t count) {
  size_t first = which->first, max = which->max;
  bool failed = which->only_failed;
  if (count <= max)
    return;
  HTML_FMT(h, "<p>%s %zu to %zu of %zu.", failed ? "Failed turns" : "Turns", first + 1,
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
  if (turn != 0)
    HTML_FMT(h, " <a href=\"%ld\" data-key=\"%s\">%s</a>", turn, key, name);
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
      HTML_FMT(h, "Only turns that failed (%zu of %zu).", failed, v->turn_count);
    HTML(h, " <a href=\"./\">All turns</a>");
  } else {
    HTML_FMT(h, "<a href=\"?failed=1\">Only turns that failed (%zu)</a>", failed);
  }
  put_turn_link(h, failed_near(v, 0, true), "N", "First failure");
  HTML(h, "</p>");
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
  HTML_FMT(h,
           "<pre class=live tabindex=0 id=\"said-%ld-%s\" aria-label=\"%s of call %ld\" "
           "data-end=\"%llu\">%s</pre>",
           call, kind, kind, call, (unsigned long long)end, text);
}

static void put_call_tool(struct html *h, const struct view_tool *tool) {
  buf_auto_t place = {0};
  HTML_FMT(h, "<li><bdi>%.*s</bdi> <code>%.*s</code> ", STR_ARG(tool->name),
           STR_ARG(tool->argument));
  buf_printf(&place, "%llu#/data/argument", (unsigned long long)tool->argument_seq);
  const struct part_cut cut = {.shown = tool->argument.n,
                               .bytes = tool->argument.n + tool->argument_more_bytes,
                               .ref = buf_view(&place),
                               .within = true};
  part_cut(h, &cut);
  html_said(h, tool->state);
  if (tool->has_exit)
    HTML_FMT(h, " exit %ld", tool->exit);
  if (tool->failed)
    HTML(h, " <span class=\"status bad\">\xE2\x9C\x97 failed</span>");
  HTML(h, "</li>");
}

static void put_call_line(struct html *h, const struct page_ask *ask, const struct view_call *c) {
  HTML(h, "<p class=dim>");
  if (c->stage.n > 0)
    HTML_FMT(h, "judges: <bdi>%.*s</bdi>, ", STR_ARG(judge_stage_words(c->stage)));
  HTML_FMT(h, "call %ld, attempt %ld, for ", c->call, c->attempt);
  part_took(h, ask->now_ms > c->started_ms ? ask->now_ms - c->started_ms : 0);
  if (c->heard_ms > 0) {
    html_puts(h, ", last event ");
    part_took(h, ask->now_ms > c->heard_ms ? ask->now_ms - c->heard_ms : 0);
    html_puts(h, " ago");
  }
  if (c->tokens > 0)
    HTML_FMT(h, ", %lld tokens so far", (long long)c->tokens);
  HTML(h, "</p>");
}

static void put_call(struct html *h, const struct page_ask *ask, const struct view_call *c) {
  const struct page_said *said = said_by(ask, c->call);
  HTML_FMT(h,
           "<section class=call id=\"call-%ld-%ld\" aria-label=\"Call %ld\"><h2><bdi>%.*s</bdi>: "
           "<bdi>%.*s</bdi> <bdi>%.*s</bdi></h2>",
           c->call, c->attempt, c->call, STR_ARG(c->movement), STR_ARG(c->provider),
           STR_ARG(c->model));
  put_call_line(h, ask, c);
  if (c->tool_count > 0)
    HTML(h, "<ul class=tools>");
  if (c->tools_before > 0)
    HTML_FMT(h, "<li class=dim>%zu earlier</li>", c->tools_before);
  for (size_t i = 0; i < c->tool_count; i++)
    put_call_tool(h, &c->tools[i]);
  if (c->tool_count > 0)
    HTML(h, "</ul>");
  HTML_FMT(h, "<details id=\"think-%ld\"><summary>Thinking</summary>", c->call);
  put_said(h, c->call, "thinking", said ? said->thinking : "", said ? said->thinking_end : 0);
  HTML(h, "</details>");
  put_said(h, c->call, "text", said ? said->text : "", said ? said->text_end : 0);
  HTML(h, "</section>");
}

/* Shows the session's questions, with forms for the answers. */
static bool put_asked_now(struct html *h, const struct page_ask *ask) {
  json_auto_t *list = json_array();
  inbox_add_log(list, &ask->store, ask->id);
  view_asked_add(&ask->store, list);
  part_questions(h, list, ask->acts, false);
  return json_array_size(list) > 0;
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
  HTML(h, "<section id=graph><h2>Graph</h2>");
  if (v->movement_count > LIMIT_WINDOW_ROW_COUNT) {
    size_t at = movement_shown(ask, v), first = at > max / 2 ? at - max / 2 : 0;
    first = first + max > v->movement_count ? v->movement_count - max : first;
    part.movements += first;
    part.movement_count = max;
    HTML_FMT(h,
             "<p>Movements %zu to %zu of %zu, around the last turn shown. Edges to the others are "
             "not drawn.</p>",
             first + 1, first + max, v->movement_count);
  }
  graph_layout_table(h, &part);
  HTML(h, "</section>");
}

static void put_forked(struct html *h, const struct page_ask *ask, const struct view_session *v) {
  buf_auto_t pair = buf_of(STR_FMT "_%s", STR_ARG(v->forked_from), ask->id);
  HTML(h, "<p><a");
  HTML_LINK(h, "/compare/", buf_view(&pair), "");
  HTML(h, ">Compare with the session it was forked from</a></p>");
}

static void put_page_contents(struct html *h, const struct view_session *v) {
  HTML(h, "<nav id=contents aria-label=\"On this page\"><a href=\"#turns\">Turns</a>");
  if (v->movement_count > 0)
    HTML(h, " <a href=\"#graph\">Graph</a>");
  HTML_FMT(h,
           " <a href=\"#task\">Task</a> <a href=\"#about\">Facts</a> <a "
           "href=\"#totals\">Totals</a> <a href=changes>Changed lines</a> <a "
           "href=workflow>Workflow</a> <a href=records>Records</a> <a href=integrity>Verify</a> "
           "<span class=dim>log %s up to record %llu",
           v->chain == VIEW_BAD ? "sound only" : "sound", (unsigned long long)v->records);
  if (v->chain == VIEW_TORN)
    HTML_FMT(h, ", with a torn tail of %llu bytes", (unsigned long long)v->torn_bytes);
  HTML(h, "</span></nav>");
}

/* Writes the turns, with the graph beside them where there is room. */
static void put_turns(struct html *h, const struct page_ask *ask, const struct view_session *v) {
  size_t failed = 0;
  for (size_t i = 0; i < v->turn_count; i++)
    failed += view_turn_failed(&v->turns[i]);
  size_t count = ask->only_failed ? failed : v->turn_count;
  const struct part_which which = {.only_failed = ask->only_failed,
                                   .first = first_turn(ask, count),
                                   .max = LIMIT_WINDOW_ROW_COUNT};
  HTML(h, "<div class=beside><section id=turns><h2>Turns</h2>");
  put_turns_choice(h, v, ask->only_failed, failed);
  put_turn_pages(h, &which, count);
  if (count > 0 || !ask->only_failed)
    part_turns(h, v, "", &which);
  HTML(h, "</section>");
  if (v->movement_count > 0)
    put_graph(h, ask, v);
  HTML(h, "</div>");
}

/* Writes what few need at once, folded. */
static void put_folded(struct html *h, const struct view_session *v) {
  buf_auto_t task = buf_of("%llu#/task", (unsigned long long)v->task_seq);
  HTML(h, "<details id=task><summary>Task</summary>");
  part_pre(h, v->task, LIMIT_WINDOW_TEXT_BYTES,
           (struct part_cut){.bytes = v->task.n + v->task_more_bytes, .ref = buf_view(&task)});
  HTML(h, "</details><details id=about><summary>Facts</summary>");
  part_session_facts(h, v, NULL);
  HTML(h, "</details><details id=totals><summary>Totals</summary>");
  part_totals(h, v);
  HTML(h, "</details>");
}

static void put_session_body(struct html *h, const struct page_ask *ask,
                             const struct view_session *v, const struct record_index *track) {
  part_banner(h, v);
  put_state_line(h, v);
  put_page_contents(h, v);
  if (ask->acts)
    part_acted(h);
  bool asked = (v->asked || v->forked_from.n > 0) && !view_session_is_over(v);
  bool asks = asked && put_asked_now(h, ask);
  if (ask->acts)
    part_acts(h, v, asks);
  part_now(h, v, ask->day);
  bool runs = page_live_of(ask, ask->id) != NULL || str_eq_c(v->status, "running");
  AUTO(view_running_deinit) struct view_running now = {0};
  struct err ignored;
  if (runs && view_running_read(&now, track, &ignored))
    for (size_t i = 0; i < now.count; i++)
      put_call(h, ask, &now.calls[i]);
  if (v->forked_from.n == STORE_ID_BYTES - 1)
    put_forked(h, ask, v);
  put_turns(h, ask, v);
  part_find_form(h, STR(""));
  put_folded(h, v);
}

struct record_index *page_track(const struct page_ask *ask, struct record_index **own,
                                struct err *err) {
  struct store_ref ref;
  struct record_index *track = ask->track;
  *own = NULL;
  store_ref(&ask->store, ask->id, &ref);
  if (!store_is_there(&ref)) {
    err_set(err, ERR_NOT_FOUND, "there is no session %s", ask->id);
    return NULL;
  }
  if (track == NULL)
    track = *own = record_index_new(&ref);
  if (record_index_read(track, err))
    return track;
  /* An empty log is said to be one: its program was killed as it started. */
  AUTO(summary_deinit) struct summary b = {0};
  if (summary_unread(&b, &ref, NULL)) {
    if (strcmp(b.status, "empty") == 0)
      err_set(err, ERR_NOT_FOUND, "session %s was %s", ask->id, b.message);
  }
  record_index_free(*own);
  *own = NULL;
  return NULL;
}

unsigned page_session(const struct page_ask *ask, struct buf *out) {
  struct record_index *own, *track;
  struct err err = {0};
  char watch[80];
  if ((track = page_track(ask, &own, &err)) == NULL)
    return page_problem(ask, out, &err);
  struct view_session v = track->view; /* a copy, for the status below */
  const struct page_live *live = page_live_of(ask, ask->id);
  if (live != NULL)
    v.status = str_from(live->status);
  struct html h = page_html(ask, out);
  struct str rest = str_trim(v.task), line = rest.n > 0 ? str_next_line(&rest) : v.workflow;
  buf_auto_t title = {0};
  line = line.n > 0 ? line : str_from(ask->id);
  buf_append(&title, line.p, view_fitting(line, LIMIT_VIEW_LINE_BYTES));
  print_into(watch, sizeof watch, "s/%s/events", ask->id);
  page_begin(&h, buf_c(&title), watch);
  put_session_body(&h, ask, &v, track);
  part_end_page(&h);
  record_index_free(own);
  return 200;
}

/* --- a judgment --- */

/* Finds the nearest judged turn after a turn, or before it; 0: there is none. */
static long judged_near(const struct verified_reader *book, long turn, bool behind) {
  long near = 0;
  for (size_t i = 0; i < book->place_count; i++) {
    long one = book->places[i].kind == VERIFIED_JUDGMENT ? book->places[i].turn : 0;
    if (one != 0 && one != turn && (one > turn) == behind && (near == 0 || (one < near) == behind))
      near = one;
  }
  return near;
}

/* Makes the words MOVEMENT#N that name a turn in a command. */
static bool turn_words(const struct verified_reader *book, long turn, struct buf *out,
                       struct err *err) {
  for (size_t i = 0; i < book->place_count; i++) {
    if (book->places[i].turn != turn || book->places[i].kind != VERIFIED_TURN_START)
      continue;
    json_auto_t *record = verified_get(book, book->places[i].seq, err);
    if (record == NULL)
      return false;
    const char *name = json_string_value(json_object_get(record, "movement"));
    buf_printf(out, "%s#%lld", name ? name : "",
               (long long)json_int_at(record, "movement_iteration"));
    return true;
  }
  return err_set(err, ERR_NOT_FOUND, "there is no turn %ld in this session", turn);
}

/* Writes the verdict, the judge's sentence and what decided; how it came about is shown below. */
static void put_verdict_first(struct html *h, const json_t *judgment) {
  const json_t *stages = json_at(judgment, "stages");
  const json_t *last = json_array_get(stages, json_array_size(stages) - 1);
  struct str next = json_view_at(judgment, "next");
  HTML(h, "<section class=verdict aria-label=Verdict><p>");
  if (judgment == NULL) {
    html_puts(h, "Not judged yet.");
  } else if (json_at(judgment, "rule") == NULL || next.n == 0) {
    HTML_FMT(h, "No rule was found: <bdi>%.*s</bdi>", STR_ARG(json_view_at(judgment, "reason")));
  } else {
    HTML_FMT(h, "Led to <strong><bdi>%.*s</bdi></strong> by rule %lld, <bdi>%.*s</bdi>",
             STR_ARG(next), (long long)json_int_at(judgment, "rule"),
             STR_ARG(json_view_at(judgment, "condition")));
    if (json_view_at(last, "reason").n > 0)
      HTML_FMT(h, "</p><p><q>%.*s</q>", STR_ARG(json_view_at(last, "reason")));
    HTML_FMT(h, "</p><p class=dim>decided by: <bdi>%.*s</bdi> <bdi>%.*s</bdi>",
             STR_ARG(judge_stage_words(json_view_at(judgment, "method"))),
             STR_ARG(json_view_at(last, "provider")));
  }
  HTML(h, "</p></section>");
}

/* Names what each ambiguous stage was torn between; where each alternative is follows below. */
static void put_doubts(struct html *h, const json_t *judgment) {
  JSON_EACH(json_at(judgment, "stages"), i, stage) {
    const json_t *candidates = json_at(stage, "candidates");
    if (json_array_size(candidates) == 0)
      continue;
    HTML_FMT(h, "<p><span class=mark>ambiguous</span> <bdi>%.*s</bdi>: found ",
             STR_ARG(judge_stage_words(json_view_at(stage, "stage"))));
    JSON_EACH(candidates, k, candidate) {
      long long rule = json_int_at(candidate, "rule");
      html_puts(h, k > 0 ? " and " : "");
      if (rule > 0)
        HTML_FMT(h, "rule %lld", rule);
      else
        html_puts(h, json_at(candidate, "rule") != NULL ? "no rule" : "a value without a rule");
    }
    HTML(h, ", and decided nothing.</p>");
  }
}

/* Writes the form that begins another session where this one entered the turn's movement. */
static void put_again(struct html *h, const struct page_ask *ask, const char *words) {
  part_acted(h);
  HTML_FMT(h,
           "<details id=again><summary>Run again from here</summary><form data-act=\"s/%s/fork\">"
           "<input type=hidden name=from value=\"%s\"><p>Another session begins where this one "
           "was when it entered this turn; this one stays as it is.</p>",
           ask->id, words);
  HTML(h, "<p><label>Another instruction, if any<br><textarea name=instruction rows=3 cols=70>"
          "</textarea></label></p><p><label>Provider <input name=provider autocomplete=off "
          "spellcheck=false></label> <label>model <input name=model autocomplete=off "
          "spellcheck=false></label></p><p><button>Run again</button></p></form></details>");
}

static void put_judgment(struct html *h, const struct page_ask *ask,
                         const struct record_index *track, long turn,
                         const struct view_judgment *told, const char *words) {
  buf_auto_t title = buf_of("Turn %ld: %s", turn, words);
  buf_auto_t command = buf_of("segue show %s %s --full", ask->id, words);
  page_begin(h, buf_c(&title), NULL);
  HTML(h, "<p><a href=\"./\">The session</a>");
  put_turn_link(h, judged_near(&track->book, turn, false), "p", "Previous judgment");
  put_turn_link(h, judged_near(&track->book, turn, true), "n", "Next judgment");
  put_turn_link(h, failed_near(&track->view, turn, false), "P", "Previous failure");
  put_turn_link(h, failed_near(&track->view, turn, true), "N", "Next failure");
  HTML(h, "</p>");
  put_verdict_first(h, told->judgment);
  put_doubts(h, told->judgment);
  HTML(h, "<p>In a terminal: ");
  part_code(h, buf_view(&command));
  HTML(h, "</p>");
  part_banner(h, &track->view);
  if (ask->acts)
    put_again(h, ask, words);
  part_told(h, told, buf_view(&command));
  if (!ask->all && view_judgment_is_cut(told))
    HTML(h, "<p><a href=\"?all=1\">Show the full texts, up to 1 MiB each</a></p>");
  part_end_page(h);
}

unsigned page_judgment(const struct page_ask *ask, struct buf *out) {
  struct record_index *own, *track;
  AUTO(view_judgment_deinit) struct view_judgment told = {0};
  buf_auto_t words = {0};
  struct err err = {0};
  long turn = 0;
  if ((track = page_track(ask, &own, &err)) == NULL)
    return page_problem(ask, out, &err);
  const struct verified_reader *book = &track->book;
  size_t max = ask->all ? PART_WHOLE_BYTES : LIMIT_WINDOW_TEXT_BYTES;
  bool ok = (str_to_long(str_from(ask->turn), &turn) && turn > 0) ||
            err_set(&err, ERR_NOT_FOUND, "\"%s\" is not a turn number", ask->turn);
  ok = ok && turn_words(book, turn, &words, &err) &&
       view_judgment_read(&told, book, turn, max, max, &err);
  if (ok) {
    struct html h = page_html(ask, out);
    put_judgment(&h, ask, track, turn, &told, buf_c(&words));
  }
  record_index_free(own);
  return ok ? 200 : page_problem(ask, out, &err);
}

unsigned page_integrity(const struct page_ask *ask, struct buf *out) {
  struct store_ref ref;
  struct verify_result result;
  buf_auto_t words = {0};
  struct err err = {0};
  store_ref(&ask->store, ask->id, &ref);
  if (!store_is_there(&ref)) {
    err_set(&err, ERR_NOT_FOUND, "there is no session %s", ask->id);
    return page_problem(ask, out, &err);
  }
  struct verification *verification = verification_new(&err);
  bool ok = verification != NULL && verification_read(verification, &ref, &result, &err);
  verification_free(verification);
  if (!ok)
    return page_problem(ask, out, &err);
  struct html h = page_html(ask, out);
  page_begin(&h, "Integrity", NULL);
  view_put_proof(&words, &result);
  if (result.state == VERIFY_BAD)
    HTML(&h, "<p class=banner role=alert>");
  else
    HTML(&h, "<p>");
  HTML_FMT(&h,
           "<bdi>%.*s</bdi></p><p>The whole log was checked just now: its hash chain, the order of "
           "its records, their references, and its last record against the ledger. <a "
           "href=\"./\">The session</a></p>",
           STR_ARG(buf_view(&words)));
  part_end_page(&h);
  return 200;
}
