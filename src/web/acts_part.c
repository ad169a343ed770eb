/* Writes what a person may do with a session: resume it, with a verdict if it waits for one, and
 * cancel it. page.mjs sends the action; without scripts this can only be read. */
#include "web/parts.h"

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
  HTML(h, "<p><label>Verdict on ");
  html_said(h, m->name);
  HTML(h, " <select name=rule data-number><option value=\"\">judge it again</option>");
  for (size_t i = 0; i < m->rule_count; i++) {
    HTML(h, "<option");
    html_attr_printf(h, "value", "%zu", i + 1);
    HTML(h, ">");
    html_printf(h, "%zu: ", i + 1);
    html_text(h, m->rules[i].condition);
    html_puts(h, " > ");
    html_text(h, m->rules[i].next);
    HTML(h, "</option>");
  }
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
  HTML(h, "<form");
  html_attr_printf(h, "data-act", "s/%s/resume", id);
  HTML(h, ">");
  put_more_of(h, status);
}

void part_acts(struct html *h, const struct view_session *v, bool asks) {
  bool over = str_eq_c(v->status, "complete") || str_eq_c(v->status, "abort") ||
              str_eq_c(v->status, "cancelled");
  if (!v->submitted || over)
    return;
  HTML(h, "<section class=noprint id=acts aria-label=\"Actions\">");
  if (v->resumable && !asks) {
    HTML(h, "<form data-act=resume>");
    if (!str_eq_c(v->status, "max_movements"))
      put_verdicts(h, v);
    put_more_of(h, v->status);
  }
  HTML(h, "<details><summary>Cancel this session</summary><p>This ends it for good. "
          "<button data-act=cancel>Cancel it</button></p></details></section>");
}
