/* Assembles a report. */
#include "web/report.h"

#include "base/limits.h"
#include "view/words.h"
#include "web/markdown.h"
#include "web/parts.h"
#include "web/rails.h"

#include <stdio.h>

enum { ID_BYTES = 32 };

static struct html report_html(const struct report_file *r) {
  return (struct html){.out = r->out};
}

void report_begin(struct report_file *r, struct str title) {
  if (r->form == REPORT_MARKDOWN) {
    markdown_title(r->out, title);
    return;
  }
  struct html h = report_html(r);
  part_begin_file(&h, title);
  HTML(&h, "<h1>");
  html_text(&h, title);
  HTML(&h, "</h1>");
  if (r->now_ms > 0) {
    struct buf when = {0};
    view_put_when(&when, r->now_ms);
    HTML(&h, "<p class=dim>Made ");
    html_text(&h, buf_view(&when));
    html_puts(&h, " from the logs as they were then. This file does not change.");
    HTML(&h, "</p>");
    buf_deinit(&when);
  }
}

void report_end(struct report_file *r) {
  if (r->form == REPORT_MARKDOWN)
    return;
  struct html h = report_html(r);
  part_end_file(&h);
}

/* --- a folder --- */

static void put_class(struct html *h, const struct view_folder *f, enum view_class class,
                      const char *title) {
  if (f->classes[class] == 0)
    return;
  HTML(h, "<h2>");
  html_puts(h, title);
  html_printf(h, " (%zu)", f->classes[class]);
  HTML(h, "</h2>");
  part_rows(h, f, class, NULL);
}

static void put_sums(struct html *h, const struct view_folder *f) {
  double cost = 0;
  int64_t tokens = 0;
  size_t unknown = 0;
  HTML(h, "<p>");
  html_printf(h, "%zu session%s: ", f->count, f->count == 1 ? "" : "s");
  for (int i = 0; i < VIEW_CLASS_COUNT; i++)
    html_printf(h, "%s%zu %s", i > 0 ? ", " : "", f->classes[i],
                view_class_name((enum view_class)i));
  for (size_t i = 0; i < f->count; i++) {
    cost += f->rows[i].cost_usd;
    tokens += f->rows[i].tokens;
    unknown += f->rows[i].unpriced;
  }
  html_printf(h, ". Sessions that ended or stopped used %lld tokens, $%.4f", (long long)tokens,
              cost);
  if (unknown > 0)
    html_printf(h, " and an unknown cost in %zu of them", unknown);
  html_puts(h, ".");
  if (f->left_out > 0)
    html_printf(h, " %zu older sessions were not read.", f->left_out);
  HTML(h, "</p>");
}

void report_folder(struct report_file *r, const struct view_folder *f, struct str where) {
  static const char *const titles[VIEW_CLASS_COUNT] = {"Failed, and why", "Waiting", "Running",
                                                       "Finished", "Cancelled"};
  if (r->form == REPORT_MARKDOWN) {
    markdown_folder(r->out, f, where);
    return;
  }
  struct html h = report_html(r);
  HTML(&h, "<p class=dim>");
  html_said(&h, where);
  HTML(&h, "</p>");
  put_sums(&h, f);
  if (f->count > 0)
    part_methods_key(&h);
  for (int i = 0; i < VIEW_CLASS_COUNT; i++)
    put_class(&h, f, (enum view_class)i, titles[i]);
  HTML(&h, "<h2>Audit</h2>");
  part_audit(&h, f->census, STR(""));
}

/* --- a session --- */

static void session_id(const struct report_file *r, char out[ID_BYTES]) {
  (void)snprintf(out, ID_BYTES, "s%zu", r->sessions);
}

static void put_task(struct html *h, const struct view_session *v) {
  if (v->task.n == 0)
    return;
  HTML(h, "<details><summary>Task</summary><pre>");
  html_text(h, v->task);
  HTML(h, "</pre></details>");
}

/* Explains the bars of turns, once in the file. */
static void report_put_key(struct report_file *r, struct html *h) {
  if (!r->has_key)
    part_span_key(h);
  r->has_key = true;
}

/* Returns where the next of several sessions must end: each has the same share of what is free,
 * besides its judgments, which have their own limit. */
static size_t session_until(const struct report_file *r) {
  size_t used = r->out->n, left = r->session_count - r->sessions;
  if (r->session_count <= 1)
    return SIZE_MAX;
  if (r->told_bytes < LIMIT_REPORT_TOLD_MANY)
    used += LIMIT_REPORT_TOLD_MANY - r->told_bytes;
  size_t share = used < LIMIT_REPORT_MANY_BYTES ? (LIMIT_REPORT_MANY_BYTES - used) / left : 0;
  return r->out->n + (share > LIMIT_REPORT_SHARE_LEAST ? share : LIMIT_REPORT_SHARE_LEAST);
}

void report_session(struct report_file *r, const struct view_session *v,
                    const struct verify_result *proof) {
  r->session = v;
  r->proof = proof;
  r->left_out = 0;
  r->told_count = 0;
  struct html h = report_html(r);
  if (r->form == REPORT_HTML && r->session_count > 1)
    report_put_key(r, &h);
  r->until = session_until(r);
  r->sessions++;
  if (r->form == REPORT_MARKDOWN)
    markdown_session(r->out, v, proof);
}

/* Takes a table back if there is no room for it, and says how to see it. */
static void put_if_room(const struct report_file *r, struct html *h, size_t before) {
  if (r->out->n <= r->until)
    return;
  r->out->n = before;
  HTML(h, "<p>There is no room for it in this file: <code>");
  html_printf(h, "segue report %s -o FILE", r->session->id);
  HTML(h, "</code> has it.</p>");
}

static void report_put_graph(const struct report_file *r, struct html *h) {
  if (r->session->movement_count == 0)
    return;
  HTML(h, "<h3>Graph</h3>");
  size_t before = r->out->n;
  rails_table(h, r->session);
  put_if_room(r, h, before);
}

/* Writes as many turns as there is room for. */
static void report_put_turns(const struct report_file *r, struct html *h, const char *id) {
  const struct view_session *v = r->session;
  struct part_which which = {.max = v->turn_count, .told = r->told_count};
  size_t before = r->out->n;
  part_turns(h, v, id, &which);
  while (r->out->n > r->until && which.max > 0) {
    size_t size = r->out->n - before, room = r->until > before ? r->until - before : 0;
    size_t fewer = (size_t)((double)which.max * (double)room / (double)size);
    which.max = fewer < which.max ? fewer : which.max - 1;
    r->out->n = before;
    if (which.max > 0)
      part_turns(h, v, id, &which);
  }
  if (which.max < v->turn_count) {
    HTML(h, "<p>");
    html_printf(h, "There is no room for %zu more turns in this file: ", v->turn_count - which.max);
    HTML(h, "<code>");
    html_printf(h, "segue report %s -o FILE", v->id);
    HTML(h, "</code> has them.</p>");
  }
}

static void report_put_session(struct report_file *r, struct html *h) {
  const struct view_session *v = r->session;
  char id[ID_BYTES];
  session_id(r, id);
  HTML(h, "<section><h2>Session ");
  html_text(h, str_from(v->id));
  HTML(h, "</h2>");
  part_banner(h, v);
  part_session_facts(h, v, r->proof);
  put_task(h, v);
  report_put_graph(r, h);
  HTML(h, "<h3>Turns</h3>");
  if (v->turn_count > 0)
    report_put_key(r, h);
  report_put_turns(r, h, id);
  HTML(h, "<h3>Totals</h3>");
  size_t before = r->out->n;
  part_totals(h, v);
  put_if_room(r, h, before);
  HTML(h, "<h3>Judgments</h3>");
}

bool report_wants(struct report_file *r) {
  size_t max = r->session_count > 1 ? LIMIT_REPORT_TOLD_MANY : LIMIT_REPORT_TOLD_BYTES;
  bool wants = r->told_bytes < max;
  r->left_out += !wants;
  return wants;
}

static void put_turn_summary(struct html *h, const struct view_turn *turn) {
  html_printf(h, "Turn %ld: ", turn->turn);
  html_said(h, turn->movement);
  html_printf(h, " #%ld", turn->run);
  if (turn->leads_to.n > 0) {
    html_puts(h, " \xE2\x86\x92 ");
    html_said(h, turn->leads_to);
  }
  HTML(h, " <span class=dim>");
  html_said(h, turn->method);
  if (!turn->over)
    html_puts(h, "open");
  HTML(h, "</span>");
}

void report_turn(struct report_file *r, const struct view_turn *turn,
                 const struct view_told *told) {
  struct buf command = {0};
  struct buf *out = r->form == REPORT_MARKDOWN ? r->out : &r->told;
  size_t before = out->n;
  char id[ID_BYTES];
  r->told_count++;
  buf_printf(&command, "segue show %s " STR_FMT "#%ld --full", r->session->id,
             STR_ARG(turn->movement), turn->run);
  if (r->form == REPORT_MARKDOWN) {
    markdown_told(out, turn, told, buf_view(&command));
  } else {
    struct html h = {.out = out};
    session_id(r, id);
    HTML(&h, "<details");
    html_attr_printf(&h, "id", "%st%ld", id, turn->turn);
    HTML(&h, "><summary>");
    put_turn_summary(&h, turn);
    HTML(&h, "</summary>");
    part_told(&h, told, buf_view(&command));
    HTML(&h, "</details>");
  }
  buf_deinit(&command);
  r->told_bytes += out->n - before;
  if (r->session_count <= 1 || r->told_bytes <= LIMIT_REPORT_TOLD_MANY)
    return;
  out->n = before;
  r->told_bytes = LIMIT_REPORT_TOLD_MANY;
  r->told_count--;
  r->left_out++;
}

void report_session_end(struct report_file *r) {
  struct html h = report_html(r);
  if (r->form == REPORT_MARKDOWN) {
    if (r->left_out > 0)
      buf_printf(r->out, "\n%ld more judgments are not in this file: segue show prints each.\n",
                 r->left_out);
    return;
  }
  report_put_session(r, &h);
  buf_str(r->out, buf_view(&r->told));
  buf_deinit(&r->told);
  if (r->left_out > 0) {
    HTML(&h, "<p>");
    html_printf(&h, "%ld more judgments are not in this file: ", r->left_out);
    HTML(&h, "<code>");
    html_printf(&h, "segue show %s MOVEMENT#N", r->session->id);
    HTML(&h, "</code>");
    html_puts(&h, " prints each.");
    HTML(&h, "</p>");
  }
  HTML(&h, "</section>");
}
