/* Writes what a session does now, why, and its limits. */
#include "core/budget.h"
#include "format/json_object.h"
#include "view/words.h"
#include "web/parts.h"

/* --- now --- */

static const char *doing_words(enum view_span_kind kind) {
  switch (kind) {
  case VIEW_WORK:
  case VIEW_JUDGING:
    break;
  case VIEW_WAITING:
    return "waits for a place";
  case VIEW_RETRY:
    return "waits for the next attempt";
  case VIEW_PERSON:
    return "waits for a person";
  case VIEW_SPAN_KINDS:
    return "between two calls";
  }
  return "";
}

/* Says what a turn does. For a call leads_to says it; a wait has its kind and its reason. */
static void put_doing(struct html *h, const struct view_turn *t) {
  const char *words = doing_words(t->doing->kind);
  bool between = t->doing->kind == VIEW_SPAN_KINDS;
  if (words[0] == '\0' || (between && t->leads_to.n > 0)) { /* a group's children speak for it */
    html_puts(h, words[0] == '\0' && t->leads_to.n > 0 ? "a call of " : "");
    html_said(h, t->leads_to);
  } else {
    html_puts(h, words);
    if (t->provider.n > 0 && (t->doing->kind == VIEW_WAITING || t->doing->kind == VIEW_RETRY)) {
      html_puts(h, " at ");
      html_said(h, t->provider);
    }
    if (t->doing->waits_for.n > 0) {
      html_puts(h, " (");
      html_said(h, t->doing->waits_for);
      html_puts(h, ")");
    }
  }
  if (t->doing->since_ms > 0) {
    html_puts(h, ", ");
    part_since(h, t->doing->since_ms);
  }
  if (t->doing->until_ms > 0) {
    html_puts(h, ", ");
    part_until(h, t->doing->until_ms);
  }
}

static void put_open_turns(struct html *h, const struct view_session *v) {
  for (size_t i = 0; i < v->open_count; i++) {
    const struct view_turn *t = &v->turns[v->open[i]];
    HTML(h, "<div>");
    html_printf(h, "Turn %ld, ", t->turn);
    html_said(h, t->movement);
    html_puts(h, ": ");
    put_doing(h, t);
    HTML(h, "</div>");
  }
}

/* Writes the present state. The log of a session that nobody runs ends where it was left. */
static void put_now(struct html *h, const struct view_session *v) {
  bool runs = str_eq_c(v->status, "running") || str_eq_c(v->status, "waiting");
  HTML(h, "<dt>now</dt><dd>");
  if (!runs) {
    html_said(h, v->status);
    html_puts(h, ", ");
    part_since(h, v->last_ms);
    if (v->message.n > 0) {
      html_puts(h, ": ");
      html_said(h, v->message);
    }
  } else if (v->open_count == 0) {
    html_puts(h, "between two turns");
  }
  if (!view_session_is_over(v))
    put_open_turns(h, v);
  HTML(h, "</dd>");
}

/* --- why --- */

static const struct view_turn *last_verdict(const struct view_session *v) {
  for (size_t i = v->turn_count; i-- > 0;)
    if (v->turns[i].over && v->turns[i].parent == 0)
      return &v->turns[i];
  return NULL;
}

static void put_last_verdict(struct html *h, const struct view_turn *t) {
  html_printf(h, "turn %ld, ", t->turn);
  html_said(h, t->movement);
  if (!t->judged) {
    html_puts(h, ", ended without a rule: ");
    html_said(h, t->method);
    return;
  }
  html_puts(h, ", led to ");
  html_said(h, t->leads_to);
  html_printf(h, " by rule %ld, ", t->rule);
  html_said(h, t->condition);
  html_puts(h, " (");
  html_said(h, t->method);
  html_puts(h, ")");
}

static bool asks_person(const struct view_session *v) {
  for (size_t i = 0; i < v->open_count; i++)
    if (v->turns[v->open[i]].doing->kind == VIEW_PERSON)
      return true;
  return false;
}

static void put_reason(struct html *h, const struct view_session *v) {
  const struct view_turn *last = last_verdict(v);
  HTML(h, "<dt>why</dt><dd>");
  if (last != NULL)
    put_last_verdict(h, last);
  else
    html_puts(h,
              v->forked_from.n > 0 ? "it continues from where it was forked" : "it has just begun");
  if (asks_person(v))
    html_puts(h, "; it continues when its question is answered");
  else if (v->resumable)
    html_puts(h, "; it continues when it is resumed");
  else if (str_eq_c(v->status, "open"))
    html_puts(h, "; nothing runs it: segue resume continues it");
  HTML(h, "</dd>");
}

/* --- limits --- */

static const char *bound_before(const struct view_bound *b) {
  switch (b->kind) {
  case VIEW_BOUND_MOVEMENTS:
  case VIEW_BOUND_KINDS:
    return "";
  case VIEW_BOUND_BUDGET:
    return b->of.n > 0 ? "budget of " : "budget";
  case VIEW_BOUND_LOOP:
    return "loop of ";
  case VIEW_BOUND_SAME_MOVEMENT:
  case VIEW_BOUND_SAME_FAILURE:
  case VIEW_BOUND_SAME_TOOL:
    return "guard of ";
  case VIEW_BOUND_CALL:
    return "budget of one call of ";
  case VIEW_BOUND_TIMEOUT:
    return "time limit for the call of ";
  case VIEW_BOUND_STALL:
    return "stall limit for the call of ";
  case VIEW_BOUND_DEADLINE:
    return "deadline for the question of ";
  }
  return "";
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
  struct buf text = {0};
  if (unit != BUDGET_COST)
    buf_printf(&text, "%s ", budget_unit_name(unit));
  budget_put_amount(&text, unit, used);
  buf_puts(&text, " of ");
  budget_put_amount(&text, unit, limit);
  html_text(h, buf_view(&text));
  buf_deinit(&text);
}

static void put_silence(struct html *h, int64_t ms) {
  struct buf text = {0};
  view_put_time(&text, ms);
  html_printf(h, "it ends after %s without output", buf_c(&text));
  buf_deinit(&text);
}

static void put_bound_words(struct html *h, const struct view_bound *b) {
  const char *before, *after;
  html_puts(h, bound_before(b));
  if (b->of.n > 0)
    html_said(h, b->of);
  if (bound_around(b->kind, &before, &after)) {
    html_printf(h, ": %s %lld of %lld%s", before, (long long)b->used, (long long)b->limit, after);
    return;
  }
  html_puts(h, b->kind == VIEW_BOUND_MOVEMENTS ? "" : ": ");
  if (view_bound_has_time(b->kind))
    part_until(h, b->until_ms);
  else if (b->kind == VIEW_BOUND_STALL)
    put_silence(h, b->limit);
  else
    now_put_amounts(h, b->unit, b->used, b->limit);
}

/* Marks a limit of which four fifths are used; budget.h warns from there on too. */
static void mark_near(struct html *h, double used, double limit) {
  double percent = limit > 0 ? used * 100 / limit : 0;
  if (percent < 80)
    return;
  HTML(h, " <span class=mark>");
  html_printf(h, "%lld %%", (long long)percent);
  HTML(h, "</span>");
}

static void put_one_bound(struct html *h, const struct view_bound *b) {
  HTML(h, "<div>");
  put_bound_words(h, b);
  mark_near(h, (double)b->used, (double)b->limit);
  HTML(h, "</div>");
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
  struct str provider = json_view(json_at(limit, "provider"));
  enum budget_unit unit = budget_unit_of(json_view(json_at(limit, "unit")));
  double used = json_number_value(json_at(limit, "used"));
  double most = json_number_value(json_at(limit, "limit"));
  double each = unit == BUDGET_COST ? 1e9 : 1;
  if (unit == BUDGET_UNITS)
    return;
  HTML(h, "<div>");
  html_puts(h, "today's budget");
  if (provider.n > 0) {
    html_puts(h, " of ");
    html_said(h, provider);
  }
  html_puts(h, ": ");
  now_put_amounts(h, unit, (int64_t)(used * each + 0.5), (int64_t)(most * each + 0.5));
  mark_near(h, used, most);
  HTML(h, "</div>");
}

static void put_day(struct html *h, const struct view_session *v, const json_t *day) {
  size_t i;
  json_t *limit;
  json_array_foreach((json_t *)day, i, limit) {
    struct str provider = json_view(json_at(limit, "provider"));
    if (provider.n == 0 || names_provider(v, provider))
      put_of_day(h, limit);
  }
}

void part_now(struct html *h, const struct view_session *v, const json_t *day) {
  bool over = view_session_is_over(v);
  bool limits = v->bound_count > 0 || (!over && json_array_size(day) > 0);
  HTML(h, "<dl id=now><dt>last change</dt><dd>");
  part_when(h, v->last_ms);
  HTML(h, "</dd>");
  put_now(h, v);
  put_reason(h, v);
  if (limits)
    HTML(h, "<dt>limits</dt><dd>");
  for (size_t i = 0; i < v->bound_count; i++)
    put_one_bound(h, &v->bounds[i]);
  if (!over)
    put_day(h, v, day);
  if (limits)
    HTML(h, "</dd>");
  HTML(h, "</dl>");
}
