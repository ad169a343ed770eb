/* Assembles a report. */
#include "web/report.h"

#include "base/limits.h"
#include "base/resource.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "judge/stage.h"
#include "view/number_format.h"
#include "web/markdown.h"
#include "web/parts.h"
#include "web/sanitize.h"

#include <assert.h>
#include <string.h>

/* --- what fits --- */

enum { ESCAPED_BYTES = 5, ROW_TEXTS = 7, TURN_TEXTS = 7 }; /* of one character: &#60; */

static size_t fit_cost(struct str text) {
  buf_auto_t cleaned = {0};
  sanitize_text(&cleaned, text);
  size_t cost = cleaned.n;
  for (size_t i = 0; i < cleaned.n; i++)
    if (cleaned.p[i] != '\0' && strchr("&<>\"'`", cleaned.p[i]) != NULL)
      cost += ESCAPED_BYTES - 1;
  return cost;
}

/* more: bytes after the text that the view has already left out. */
static struct str fit_rest(struct arena *arena, struct str text, size_t more, size_t max) {
  struct str kept = text;
  buf_auto_t noted = {0};
  size_t cost;
  assert(max > 0);
  while ((cost = fit_cost(kept)) > max) {
    size_t n = (size_t)((double)kept.n * (double)max / (double)cost);
    kept.n = utf8_floor(kept.p, n < kept.n ? n : kept.n - 1);
  }
  if (kept.n == text.n && more == 0)
    return text;
  buf_str(&noted, kept);
  buf_printf(&noted, "... (%zu bytes left out)", text.n - kept.n + more);
  return arena_str(arena, buf_view(&noted));
}

struct str fit_text(struct arena *arena, struct str text, size_t max) {
  return fit_rest(arena, text, 0, max);
}

/* Returns the bytes that each of `count` texts may cost. */
static size_t fit_share(size_t count, size_t most) {
  size_t share = LIMIT_REPORT_SAID_BYTES / (count > 0 ? count : 1);
  if (share > most)
    return most;
  return share < LIMIT_REPORT_SAID_LEAST ? LIMIT_REPORT_SAID_LEAST : share;
}

void fit_folder(struct session_list *f) {
  size_t max = fit_share(f->count * ROW_TEXTS, LIMIT_VIEW_LINE_BYTES);
  for (size_t i = 0; i < f->count; i++) {
    struct view_row *row = &f->rows[i];
    struct str *const texts[ROW_TEXTS] = {&row->log,      &row->workflow,  &row->task,
                                          &row->movement, &row->providers, &row->message,
                                          &row->wait};
    for (size_t k = 0; k < ROW_TEXTS; k++)
      *texts[k] = fit_text(&f->arena, *texts[k], max);
  }
}

/* Cuts a name. Commands on the page contain movements' names, so an ordinary name stays whole. */
static size_t fit_name(size_t max) {
  return max > LIMIT_REPORT_NAME_BYTES ? max : LIMIT_REPORT_NAME_BYTES;
}

void fit_session(struct view_session *v, size_t session_count) {
  struct str *const texts[] = {&v->message, &v->workflow, &v->workflow_path, &v->damage, &v->log};
  size_t own = fit_share(session_count * 2 * (ARRAY_LEN(texts) + 1), LIMIT_VIEW_TEXT_BYTES);
  size_t turn =
      fit_share(session_count * 2 * TURN_TEXTS * (v->turn_count + 1), LIMIT_VIEW_LINE_BYTES);
  v->task = fit_rest(&v->arena, v->task, v->task_more_bytes, own);
  v->task_more_bytes = 0;
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    *texts[i] = fit_text(&v->arena, *texts[i], own);
  for (size_t i = 0; i < v->turn_count; i++) {
    struct str *const words[TURN_TEXTS] = {
        &v->turns[i].provider, &v->turns[i].what,   &v->turns[i].leads_to, &v->turns[i].method,
        &v->turns[i].why,      &v->turns[i].reason, &v->turns[i].condition};
    for (size_t k = 0; k < TURN_TEXTS; k++)
      *words[k] = fit_text(&v->arena, *words[k], turn);
    v->turns[i].movement = fit_text(&v->arena, v->turns[i].movement, fit_name(turn));
  }
  for (size_t i = 0; i < v->movement_count; i++) {
    v->movements[i].name = fit_text(&v->arena, v->movements[i].name, fit_name(turn));
    v->movements[i].who = fit_text(&v->arena, v->movements[i].who, turn);
    for (size_t k = 0; k < v->movements[i].rule_count; k++) {
      v->movements[i].rules[k].condition =
          fit_text(&v->arena, v->movements[i].rules[k].condition, turn);
      v->movements[i].rules[k].next =
          fit_text(&v->arena, v->movements[i].rules[k].next, fit_name(turn));
    }
  }
}

/* --- the report --- */

enum { ID_BYTES = 32 };

static struct html report_html(const struct report_file *r) {
  return (struct html){.out = r->out};
}

static const char style_name[] = "web/style.css";

/* Begins a page that is one file: its style is inside, allowed by its hash. */
static void begin_file(struct html *h, struct str title) {
  const struct resource *style = resource_find(style_name);
  unsigned char hash[32];
  assert(style != NULL);
  sha256_raw(style->p, style->n, "", 0, hash);
  HTML(h, "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
          "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; base-uri 'none'; "
          "form-action 'none'; style-src 'sha256-");
  buf_base64(h->out, (struct str){(const char *)hash, sizeof hash});
  HTML_FMT(h,
           "'\"><meta name=viewport content=\"width=device-width,initial-scale=1\"><meta "
           "name=referrer content=no-referrer><title>%.*s</title>\n<style>",
           STR_ARG(title));
  html_resource(h, style_name);
  HTML(h, "</style></head>\n<body><main>");
}

void report_begin(struct report_file *r, struct str title) {
  if (r->form == REPORT_MARKDOWN) {
    buf_puts(r->out, "# ");
    markdown_text(r->out, title);
    buf_puts(r->out, "\n\n");
    return;
  }
  struct html h = report_html(r);
  begin_file(&h, title);
  HTML_FMT(&h, "<h1>%.*s</h1>", STR_ARG(title));
  if (r->now_ms > 0) {
    buf_auto_t when = {0};
    view_put_when(&when, r->now_ms);
    HTML_FMT(
        &h,
        "<p class=dim>Made %.*s from the logs as they were then. This file does not change.</p>",
        STR_ARG(buf_view(&when)));
  }
}

void report_end(struct report_file *r) {
  if (r->form == REPORT_MARKDOWN)
    return;
  struct html h = report_html(r);
  HTML(&h, "</main></body></html>\n");
}

/* --- a folder --- */

static void put_sums(struct html *h, const struct session_list *f) {
  double cost = 0;
  int64_t tokens = 0;
  size_t unknown = 0;
  HTML_FMT(h, "<p>%zu session%s: ", f->count, PLURAL(f->count));
  for (int i = 0; i < VIEW_CLASS_COUNT; i++)
    HTML_FMT(h, "%s%zu %s", i > 0 ? ", " : "", f->classes[i], view_class_name((enum view_class)i));
  for (size_t i = 0; i < f->count; i++) {
    cost += f->rows[i].cost_usd;
    tokens += f->rows[i].tokens;
    unknown += f->rows[i].unpriced;
  }
  HTML_FMT(h, ". Sessions that ended or stopped used %lld tokens, $%.4f", (long long)tokens, cost);
  if (unknown > 0)
    HTML_FMT(h, " and an unknown cost in %zu of them", unknown);
  html_puts(h, ".");
  if (f->left_out > 0)
    HTML_FMT(h, " %zu older sessions were not read.", f->left_out);
  HTML(h, "</p>");
}

void report_overview(struct report_file *r, const struct session_list *f, struct str where) {
  static const char *const titles[VIEW_CLASS_COUNT] = {
      "Failed, and why", "Needs input", "Waiting", "Running", "Finished", "Cancelled"};
  if (r->form == REPORT_MARKDOWN) {
    markdown_folder(r->out, f, where);
    return;
  }
  struct html h = report_html(r);
  HTML_FMT(&h, "<p class=dim><bdi>%.*s</bdi></p>", STR_ARG(where));
  put_sums(&h, f);
  if (f->count > 0)
    part_methods_key(&h);
  for (int i = 0; i < VIEW_CLASS_COUNT; i++) {
    enum view_class class = (enum view_class)i;
    if (f->classes[class] != 0) {
      HTML_FMT(&h, "<h2>%s (%zu)</h2>", titles[i], f->classes[class]);
      part_rows(&h, f, class, NULL);
    }
  }
  HTML(&h, "<h2>Audit</h2>");
  part_audit(&h, f->aggregate, STR(""));
}

/* --- a session --- */

static void session_id(const struct report_file *r, char out[ID_BYTES]) {
  print_into(out, ID_BYTES, "s%zu", r->sessions);
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
                    const struct verify_result *verification) {
  r->session = v;
  r->verification = verification;
  r->left_out = 0;
  r->told_count = 0;
  struct html h = report_html(r);
  if (r->form == REPORT_HTML && r->session_count > 1)
    report_put_key(r, &h);
  r->until = session_until(r);
  r->sessions++;
  if (r->form == REPORT_MARKDOWN)
    markdown_session(r->out, v, verification);
}

/* Takes a table back if there is no room for it, and says how to see it. */
static void put_if_room(const struct report_file *r, struct html *h, size_t before) {
  if (r->out->n <= r->until)
    return;
  r->out->n = before;
  HTML_FMT(
      h,
      "<p>There is no room for it in this file: <code>segue report %s -o FILE</code> has it.</p>",
      r->session->id);
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
  if (which.max < v->turn_count)
    HTML_FMT(h,
             "<p>There is no room for %zu more turns in this file: <code>segue report %s -o "
             "FILE</code> has them.</p>",
             v->turn_count - which.max, v->id);
}

static void report_put_session(struct report_file *r, struct html *h) {
  const struct view_session *v = r->session;
  char id[ID_BYTES];
  session_id(r, id);
  HTML_FMT(h, "<section><h2>Session %s</h2>", v->id);
  part_banner(h, v);
  part_session_facts(h, v, r->verification);
  if (v->task.n != 0)
    HTML_FMT(h, "<details><summary>Task</summary><pre>%.*s</pre></details>", STR_ARG(v->task));
  if (r->session->movement_count != 0) {
    HTML(h, "<h3>Graph</h3>");
    size_t from = r->out->n;
    graph_layout_table(h, r->session);
    put_if_room(r, h, from);
  }
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

void report_turn(struct report_file *r, const struct view_turn *turn,
                 const struct view_judgment *told) {
  buf_auto_t command = {0};
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
    HTML_FMT(&h, "<details id=\"%st%ld\"><summary>Turn %ld: <bdi>%.*s</bdi> #%ld", id, turn->turn,
             turn->turn, STR_ARG(turn->movement), turn->run);
    if (turn->leads_to.n > 0)
      HTML_FMT(&h, " \xE2\x86\x92 <bdi>%.*s</bdi>", STR_ARG(turn->leads_to));
    HTML_FMT(&h, " <span class=dim><bdi>%.*s</bdi>", STR_ARG(judge_stage_words(turn->method)));
    if (!turn->over)
      html_puts(&h, "open");
    HTML(&h, "</span></summary>");
    part_told(&h, told, buf_view(&command));
    HTML(&h, "</details>");
  }
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
  if (r->left_out > 0)
    HTML_FMT(&h,
             "<p>%ld more judgments are not in this file: <code>segue show %s MOVEMENT#N</code> "
             "prints each.</p>",
             r->left_out, r->session->id);
  HTML(&h, "</section>");
}
