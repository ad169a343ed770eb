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

void report_session(struct report_file *r, const struct view_session *v,
                    const struct verify_result *proof) {
  char id[ID_BYTES];
  r->sessions++;
  r->session = v;
  r->left_out = 0;
  if (r->form == REPORT_MARKDOWN) {
    markdown_session(r->out, v, proof);
    return;
  }
  struct html h = report_html(r);
  session_id(r, id);
  HTML(&h, "<section");
  HTML_ATTR(&h, "aria-label", str_from(v->id));
  HTML(&h, "><h2>Session ");
  html_text(&h, str_from(v->id));
  HTML(&h, "</h2>");
  part_banner(&h, v);
  part_session_facts(&h, v, proof);
  put_task(&h, v);
  if (v->movement_count > 0) {
    HTML(&h, "<h3>Graph</h3>");
    rails_table(&h, v);
  }
  HTML(&h, "<h3>Turns</h3>");
  part_turns(&h, v, id, &(struct part_which){.max = v->turn_count});
  HTML(&h, "<h3>Totals</h3>");
  part_totals(&h, v);
  HTML(&h, "<h3>Judgments</h3>");
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
  size_t before = r->out->n;
  char id[ID_BYTES];
  buf_printf(&command, "segue show %s " STR_FMT "#%ld --full", r->session->id,
             STR_ARG(turn->movement), turn->run);
  if (r->form == REPORT_MARKDOWN) {
    markdown_told(r->out, turn, told, buf_view(&command));
  } else {
    struct html h = report_html(r);
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
  r->told_bytes += r->out->n - before;
}

void report_session_end(struct report_file *r) {
  struct html h = report_html(r);
  if (r->form == REPORT_MARKDOWN) {
    if (r->left_out > 0)
      buf_printf(r->out, "\n%ld more judgments are not in this file: segue show prints each.\n",
                 r->left_out);
    return;
  }
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
