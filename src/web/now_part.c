/* Writes what a session does now, why, and its limits. */
#include "core/budget.h"
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

/* A call tells in leads_to what it does; a wait has its kind and its reason. */
static void put_doing(struct html *h, const struct view_turn *t) {
  const char *words = doing_words(t->doing->kind);
  bool between = t->doing->kind == VIEW_SPAN_KINDS;
  if (words[0] == '\0' || (between && t->leads_to.n > 0)) { /* a group tells of its children */
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

/* The log of a session that nobody runs ends where it was left. */
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

static void put_bound_words(struct html *h, const struct view_bound *b) {
  struct buf text = {0};
  if (b->kind == VIEW_BOUND_LOOP)
    html_puts(h, "loop of ");
  else if (b->kind == VIEW_BOUND_SAME_MOVEMENT)
    html_puts(h, "guard of ");
  else if (b->kind == VIEW_BOUND_DEADLINE)
    html_puts(h, "deadline for the question of ");
  else if (b->kind == VIEW_BOUND_BUDGET)
    html_puts(h, b->of.n > 0 ? "budget of " : "budget");
  if (b->of.n > 0)
    html_said(h, b->of);
  if (b->kind == VIEW_BOUND_DEADLINE) {
    html_puts(h, ": ");
    part_until(h, b->until_ms);
    return;
  }
  if (b->kind == VIEW_BOUND_LOOP) {
    html_printf(h, ": round %lld of %lld before its monitor judges", (long long)b->used,
                (long long)b->limit);
    return;
  }
  if (b->kind == VIEW_BOUND_SAME_MOVEMENT) {
    html_printf(h, ": entered %lld of %lld times in a row", (long long)b->used,
                (long long)b->limit);
    return;
  }
  buf_puts(&text, b->kind == VIEW_BOUND_BUDGET ? ": " : "");
  if (b->unit != BUDGET_COST)
    buf_printf(&text, "%s ", budget_unit_name(b->unit));
  budget_put_amount(&text, b->unit, b->used);
  buf_puts(&text, " of ");
  budget_put_amount(&text, b->unit, b->limit);
  html_text(h, buf_view(&text));
  buf_deinit(&text);
}

/* A limit of which four fifths are used is marked; budget.h warns from there on too. */
static void put_one_bound(struct html *h, const struct view_bound *b) {
  long long percent = b->limit > 0 ? (long long)((double)b->used * 100 / (double)b->limit) : 0;
  HTML(h, "<div>");
  put_bound_words(h, b);
  if (b->limit > 0 && percent >= 80) {
    HTML(h, " <span class=mark>");
    html_printf(h, "%lld %%", percent);
    HTML(h, "</span>");
  }
  HTML(h, "</div>");
}

void part_now(struct html *h, const struct view_session *v) {
  HTML(h, "<dl id=now><dt>last change</dt><dd>");
  part_when(h, v->last_ms);
  HTML(h, "</dd>");
  put_now(h, v);
  put_reason(h, v);
  if (v->bound_count > 0)
    HTML(h, "<dt>limits</dt><dd>");
  for (size_t i = 0; i < v->bound_count; i++)
    put_one_bound(h, &v->bounds[i]);
  if (v->bound_count > 0)
    HTML(h, "</dd>");
  HTML(h, "</dl>");
}
