/* Writes a session: what it is, its turns on a time axis, what it used. */
#include "audit/turn_lines.h"
#include "base/limits.h"
#include "format/json_object.h"
#include "judge/stage.h"
#include "view/number_format.h"
#include "web/parts.h"

#include <string.h>

static void fact_when(struct html *h, const char *name, int64_t ms) {
  HTML_FMT(h, "<dt>%s</dt><dd>", name);
  part_when(h, ms);
  HTML(h, "</dd>");
}

/* Writes the status, and the command that continues the session. */
static void put_status(struct html *h, const struct view_session *v) {
  buf_auto_t command = {0};
  HTML_FMT(h, "<dt>status</dt><dd><bdi>%.*s</bdi>", STR_ARG(v->status));
  if (v->resumable || str_eq_c(v->status, "open")) {
    html_puts(h, ": continue with ");
    bool needs_more = v->resumable && str_starts(v->resume_flags, " --");
    buf_printf(&command, "segue resume %s%s" STR_FMT, v->id,
               v->resumable && v->submitted ? " --daemon" : "",
               STR_ARG(needs_more ? v->resume_flags : STR("")));
    part_code(h, buf_view(&command));
  }
  HTML(h, "</dd>");
}

void part_session_facts(struct html *h, const struct view_session *v,
                        const struct verify_result *verification) {
  buf_auto_t text = {0};
  HTML(h, "<dl>");
  if (h->root != NULL) { /* in a file the heading above says it */
    HTML(h, "<dt>session</dt><dd>");
    part_code(h, str_from(v->id));
    HTML(h, "</dd>");
  }
  part_fact(h, "forked from", v->forked_from);
  buf_str(&text, v->workflow);
  if (v->workflow_path.n > 0)
    buf_printf(&text, "  " STR_FMT, STR_ARG(v->workflow_path));
  part_fact(h, "workflow", buf_view(&text));
  put_status(h, v);
  part_fact(h, "rests on", v->basis);
  part_fact(h, "because", v->message);
  part_fact(h, "evidence", v->evidence);
  fact_when(h, "started", v->started_ms);
  fact_when(h, "last record", v->last_ms);
  buf_clear(&text);
  if (v->last_ms > v->started_ms)
    view_put_time(&text, v->last_ms - v->started_ms);
  part_fact(h, "took", buf_view(&text));
  buf_clear(&text);
  buf_printf(&text, "%zu", v->turn_count);
  part_fact(h, "turns", buf_view(&text));
  buf_auto_t methods = {0};
  JSON_MEMBERS(v->methods, method, n)
    buf_printf(&methods, "%s" STR_FMT " %lld", methods.n > 0 ? ", " : "",
               STR_ARG(judge_stage_words(str_from(method))), (long long)json_integer_value(n));
  part_fact(h, "decided by", buf_view(&methods));
  buf_auto_t spent = {0};
  spend_print(v->spent, &spent);
  part_fact(h, "used", buf_view(&spent));
  buf_clear(&text);
  if (verification != NULL)
    view_put_proof(&text, verification);
  part_fact(h, "integrity", buf_view(&text));
  part_fact(h, "log", v->log);
  JSON_EACH(v->said, i, said) {
    buf_clear(&text);
    turn_lines_put_said(said, &text);
    part_fact(h, "said", buf_view(&text));
  }
  HTML(h, "</dl>");
}

void part_damaged(struct html *h, const char *whose, uint64_t sound, struct str why) {
  HTML_FMT(h, "<p class=banner role=note><strong>%s is not what was written.</strong> ", whose);
  if (sound > 0)
    HTML_FMT(h, "It is sound up to record %llu. ", (unsigned long long)sound);
  HTML_FMT(h, "Record %llu: <bdi>%.*s</bdi>. What follows is shown, but it is not proven.</p>",
           (unsigned long long)sound + 1, STR_ARG(why));
}

void part_banner(struct html *h, const struct view_session *v) {
  if (v->misnamed)
    HTML_FMT(h,
             "<p class=banner role=note>This is the log of session %s, under the name of another "
             "session.</p>",
             v->id);
  if (v->chain == VIEW_BAD)
    part_damaged(h, "This log", v->records, v->damage);
  if (v->newer)
    HTML(h, "<p class=banner role=alert>A newer segue has written this log. What this one does not "
            "know of it is left out, or may be shown wrongly.</p>");
}

/* --- turns --- */

/* Returns the length of the axis. While a session runs, the axis has room for at most an eighth
 * more, so that finished turns stay in place and need not be redrawn until that room is used up. */
static int64_t axis_ms(const struct view_session *v) {
  int64_t all = v->last_ms - v->started_ms, unit = 1;
  if (!str_eq_c(v->status, "running"))
    return all;
  while (all / unit >= 16)
    unit *= 2;
  return (all / unit + 1) * unit;
}

/* Converts a time to thousandths of the axis. */
static long long on_axis(const struct view_session *v, int64_t ms) {
  int64_t all = axis_ms(v);
  if (all <= 0 || ms < v->started_ms)
    return 0;
  return ms - v->started_ms >= all ? 1000 : (ms - v->started_ms) * 1000 / all;
}

/* Returns what the ids of hatching begin with. A file has no others like them. */
static const char *hatch_id(const struct html *h) {
  return h->root != NULL ? "hatch-" : "";
}

/* Fills a span: work is plain; each other kind has its own hatching, so they differ even without
 * colour. style.css fills what has no class. */
static void put_span_fill(struct html *h, enum view_span_kind kind) {
  if (h->root != NULL)
    HTML_ATTR(h, "class", str_from(view_span_name(kind)));
  if (kind != VIEW_WORK)
    HTML_FMT(h, " fill=\"url(#%s%s)\"", hatch_id(h), view_span_name(kind));
}

/* Writes an attribute in thousandths of the bar. */
static void put_bar_share(struct html *h, const char *name, long long n) {
  buf_auto_t share = buf_of(n % 10 == 0 ? "%lld%%" : "%lld.%lld%%", n / 10, n % 10);
  html_attr(h, name, buf_view(&share));
}

/* Draws a turn's bar. Its parts are shares of its width, so that hatching is not stretched. What
 * is too short to be seen apart from a span of its kind is drawn with it. */
static void put_time_bar(struct html *h, const struct view_session *v, const struct view_turn *t) {
  if (h->root != NULL)
    HTML(h, "<svg class=bar aria-hidden=true>");
  else
    HTML(h, "<svg aria-hidden=true width=192 height=17>");
  for (size_t i = 0; i < t->span_count; i++) {
    const struct view_span *s = &t->spans[i];
    long long from = on_axis(v, s->from_ms), to = on_axis(v, s->to_ms);
    for (; i + 1 < t->span_count && s[1].kind == s->kind; s++, i++) {
      if (on_axis(v, s[1].from_ms) > to + 2)
        break;
      to = on_axis(v, s[1].to_ms) > to ? on_axis(v, s[1].to_ms) : to;
    }
    HTML(h, "<rect height=17");
    put_span_fill(h, s->kind);
    if (from > 0)
      put_bar_share(h, "x", from);
    put_bar_share(h, "width", to - from > 2 ? to - from : 2);
    HTML(h, "/>");
  }
  HTML(h, "</svg>");
}

static void put_hatch_lines(struct html *h, enum view_span_kind kind) {
  switch (kind) {
  case VIEW_JUDGING:
    HTML(h, "<path d=\"M0 1H6M0 4H6\" />");
    return;
  case VIEW_WAITING:
    HTML(h, "<path d=\"M-1 1 1 -1M0 6 6 0M5 7 7 5\" />");
    return;
  case VIEW_RETRY:
    HTML(h, "<path d=\"M-1 5 1 7M0 0 6 6M5 -1 7 1\" />");
    return;
  case VIEW_PERSON:
    HTML(h, "<path d=\"M0 3H6M3 0V6\" />");
    return;
  case VIEW_WORK:
  case VIEW_SPAN_KINDS:
    return;
  }
}

void part_span_key(struct html *h) {
  static const char *const words[VIEW_SPAN_KINDS] = {"work", "judging", "waiting for a place",
                                                     "waiting for the next attempt",
                                                     "waiting for a person"};
  HTML(h, "<p class=\"key dim\">");
  for (int i = 0; i < VIEW_SPAN_KINDS; i++) {
    HTML(h, "<span><svg aria-hidden=true");
    part_bare_size(h, 14, 14);
    HTML(h, ">");
    enum view_span_kind kind = (enum view_span_kind)i;
    if (kind != VIEW_WORK) {
      HTML_FMT(
          h, "<pattern width=6 height=6 patternUnits=userSpaceOnUse id=\"%s%s\" class=\"hatch %s\"",
          hatch_id(h), view_span_name(kind), view_span_name(kind));
      if (h->root == NULL)
        HTML(h, " stroke=black stroke-width=1.6");
      HTML(h, ">");
      put_hatch_lines(h, kind);
      HTML(h, "</pattern>");
    }
    HTML(h, "<rect width=100% height=17");
    put_span_fill(h, (enum view_span_kind)i);
    HTML_FMT(h, " /></svg>%s</span>", words[i]);
  }
  HTML(h, "</p>");
}

/* Begins a cell of a number. A file has many, and style.css knows them by their place. */
static void begin_number(struct html *h) {
  if (h->root != NULL)
    HTML(h, "<td class=n>");
  else
    HTML(h, "<td>");
}

struct head {
  const char *words;
  bool number;
};

static void put_heads(struct html *h, const struct head *heads, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (h->root == NULL) /* a row of th alone is one of heads */
      HTML(h, "<th>");
    else if (heads[i].number)
      HTML(h, "<th scope=col class=n>");
    else
      HTML(h, "<th scope=col>");
    HTML_FMT(h, "%s</th>", heads[i].words);
  }
  HTML(h, "</tr></thead><tbody>");
}

static void put_number_cell(struct html *h, long long n) {
  if (n > 0) {
    begin_number(h);
    HTML_FMT(h, "%lld</td>", n);
  } else {
    HTML(h, "<td></td>");
  }
}

/* Says what an open turn waits for, unless another of its calls works. */
static void put_wait(struct html *h, const struct view_turn *t) {
  const char *words = "";
  if (t->doing->waiting > 0)
    words = "waits for a place";
  else if (t->doing->kind == VIEW_RETRY)
    words = "waits for the next attempt";
  else if (t->doing->kind == VIEW_PERSON)
    words = "waits for a person";
  if (words[0] == '\0')
    return;
  HTML_FMT(h, " <span class=mark>%s</span> ", words);
  if (t->doing->since_ms > 0 && t->doing->kind != VIEW_WORK && t->doing->kind != VIEW_JUDGING)
    part_since(h, t->doing->since_ms);
}

static void put_turn_marks(struct html *h, const struct view_turn *t) {
  if (t->ambiguous)
    HTML(h, " <span class=mark>ambiguous</span>");
  if (t->failed_calls > 0)
    HTML_FMT(h, " <span class=mark>%ld failed call%s</span>", t->failed_calls,
             PLURAL(t->failed_calls));
  if (t->unproven)
    HTML(h, " <span class=mark>not proven</span>");
  if (t->tried)
    HTML(h, " <strong class=bad>tried what only a person may do</strong>");
}

/* Writes where a turn led and by what, then the judge's sentence, then what was measured. */
static void put_verdict_cell(struct html *h, const struct view_turn *t) {
  const char *now = t->doing != NULL && t->leads_to.n > 0 ? "now: " : "";
  if (h->root != NULL)
    HTML_FMT(h, "<td>%s<strong>%.*s</strong> ", now, STR_ARG(t->leads_to));
  else /* a file has many */
    HTML_FMT(h, "<td>%s%.*s, ", now, STR_ARG(t->leads_to));
  if (!t->over && t->leads_to.n == 0)
    html_puts(h, "open");
  if (t->doing != NULL)
    put_wait(h, t);
  if (h->root != NULL)
    HTML_FMT(h, "<bdi class=dim>%.*s</bdi>", STR_ARG(judge_stage_words(t->method)));
  else
    html_text(h, judge_stage_words(t->method));
  put_turn_marks(h, t);
  struct str said = t->tried || t->reason.n == 0 ? t->why : t->reason;
  if (said.n > 0)
    HTML_FMT(h, "<br><bdi>%.*s</bdi>", STR_ARG(said));
  if (t->what.n > 0)
    HTML_FMT(h, "<br><bdi class=dim>%.*s</bdi>", STR_ARG(t->what));
  if (t->files > 1)
    HTML_FMT(h, " <span class=dim>%ld files</span>", t->files);
  HTML(h, "</td>");
}

/* Writes a turn's number. told: its judgment is in this file. */
static void put_turn_number(struct html *h, const struct view_turn *t, const char *id, bool told) {
  begin_number(h);
  if (h->root != NULL) {
    HTML_FMT(h, "<a href=\"%ld\">%ld</a></td>", t->turn, t->turn);
  } else if (told) {
    buf_auto_t place = buf_of("%st%ld", id, t->turn);
    HTML(h, "<a");
    HTML_LINK(h, "#", buf_view(&place), "");
    HTML_FMT(h, ">%ld</a></td>", t->turn);
  } else {
    HTML_FMT(h, "%ld</td>", t->turn);
  }
}

static void put_turn_row(struct html *h, const struct view_session *v, const struct view_turn *t,
                         const char *id, bool told) {
  buf_auto_t text = {0};
  if (t->parent > 0)
    HTML(h, "<tr class=child");
  else
    HTML(h, "<tr");
  if (h->root != NULL)
    HTML_FMT(h, " id=\"%sr%ld\"", id, t->turn);
  HTML(h, ">");
  put_turn_number(h, t, id, told);
  HTML_FMT(h, "<th scope=row><bdi>%.*s</bdi>", STR_ARG(t->movement));
  if (t->run > 1)
    HTML_FMT(h, " #%ld", t->run);
  if (t->provider.n > 0)
    HTML_FMT(h, "<br><bdi class=dim>%.*s</bdi>", STR_ARG(t->provider));
  HTML(h, "</th>");
  put_verdict_cell(h, t);
  HTML(h, "<td>");
  put_time_bar(h, v, t);
  HTML(h, "</td>");
  begin_number(h);
  if (!t->over && h->now_ms > 0 &&
      (str_eq_c(v->status, "running") ||
       str_eq_c(v->status, "waiting"))) /* the records do not say how long by now */
    part_since(h, t->started_ms);
  else
    part_took(h, t->duration_ms);
  HTML(h, "</td>");
  put_number_cell(h, t->spend.input + t->spend.output);
  view_put_cost(&text, &t->spend);
  if (text.n > 0)
    begin_number(h);
  else
    HTML(h, "<td>");
  HTML_FMT(h, "%.*s</td></tr>", STR_ARG(buf_view(&text)));
}

void part_turns(struct html *h, const struct view_session *v, const char *id,
                const struct part_which *which) {
  static const struct head heads[] = {
      {"turn", true},  {"movement", false}, {"led to, and why", false},
      {"when", false}, {"took", true},      {"tokens", true},
      {"cost", true}};
  size_t before = 0, told = 0;
  if (v->turn_count == 0) {
    HTML(h, "<p>No turn has begun.</p>");
    return;
  }
  HTML(h, "<div class=wide tabindex=0 role=region aria-label=Turns><table><thead><tr>");
  put_heads(h, heads, ARRAY_LEN(heads));
  for (size_t i = 0; i < v->turn_count && before < which->first + which->max; i++) {
    if (which->only_failed && !view_turn_failed(&v->turns[i]))
      continue;
    bool linked = !v->turns[i].unproven && told++ < which->told;
    if (before++ >= which->first)
      put_turn_row(h, v, &v->turns[i], id, linked);
  }
  HTML(h, "</tbody></table></div>");
  if (h->root != NULL)
    part_span_key(h);
  if (v->turns_left_out > 0)
    HTML_FMT(h, "<p>%ld more turns are not shown here.</p>", v->turns_left_out);
}

/* --- totals --- */

static void put_total(struct html *h, const char *group, const char *name, const json_t *part) {
  const json_t *cost = json_at(part, "cost_usd");
  buf_auto_t text = {0};
  HTML_FMT(h, "<tr><td>%s</td><th scope=row><bdi>%s</bdi></th>", group, name);
  put_number_cell(h, json_int_at(part, "calls"));
  begin_number(h);
  part_took(h, json_int_at(part, "duration_ms"));
  HTML(h, "</td>");
  put_number_cell(h, json_int_at(part, "input"));
  put_number_cell(h, json_int_at(part, "output"));
  begin_number(h);
  view_put_dollars(&text, json_number_value(cost), json_is_number(cost),
                   json_at(part, "unpriced") != NULL);
  HTML_FMT(h, "%.*s</td></tr>", STR_ARG(buf_view(&text)));
}

void part_totals(struct html *h, const struct view_session *v) {
  static const char *const groups[] = {"purposes", "movements", "providers"};
  static const char *const words[] = {"purpose", "movement", "provider"};
  static const struct head heads[] = {{"by", false},  {"name", false},     {"calls", true},
                                      {"time", true}, {"tokens in", true}, {"tokens out", true},
                                      {"cost", true}};
  HTML(h, "<div class=wide tabindex=0 role=region aria-label=Totals><table><thead><tr>");
  put_heads(h, heads, ARRAY_LEN(heads));
  put_total(h, "all", "all calls", v->spent);
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    json_t *group = json_object_get(v->spent, groups[i]);
    if (h->root != NULL && json_object_size(group) > LIMIT_WINDOW_ROW_COUNT) {
      HTML_FMT(h, "<tr><td>%s</td><td colspan=6>%zu of them: segue report lists all</td></tr>",
               words[i], json_object_size(group));
      continue;
    }
    JSON_MEMBERS(group, name, part)
      put_total(h, words[i], name, part);
  }
  HTML(h, "</tbody></table></div>");
}

/* --- a judgment in full --- */

/* Finds the mark shown at a byte, and where the next change is. */
static const struct view_mark *mark_at(const struct view_piece *p, size_t at, size_t *next) {
  const struct view_mark *shown = NULL;
  *next = p->text.n;
  for (const struct view_mark *m = p->marks; m != NULL; m = m->next) {
    bool in = m->offset <= at && at < m->offset + m->length;
    size_t change = in ? m->offset + m->length : m->offset;
    if (change > at && change < *next)
      *next = change;
    if (in && (shown == NULL || m->what > shown->what))
      shown = m;
  }
  return shown;
}

/* Writes a text with its marks; the key (put_marks_key) explains the colours. */
static void put_marked(struct html *h, const struct view_piece *p) {
  for (size_t at = 0, next; at < p->text.n; at = next) {
    const struct view_mark *mark = mark_at(p, at, &next);
    const struct str text = {p->text.p + at, next - at};
    if (mark == NULL) {
      html_text(h, text);
      continue;
    }
    HTML_FMT(h, "<mark class=\"%s\" title=\"bytes %zu to %zu\">%.*s</mark>",
             writer_mark_name(mark->what), mark->offset, mark->offset + mark->length,
             STR_ARG(text));
  }
}

/* Explains once what the colours of a text mean. */
static void put_marks_key(struct html *h, const struct view_piece *p) {
  static const char *const words[TEXT_WRITER_MARK_COUNT] = {"not taken", "mention", "taken", "tag"};
  bool held[TEXT_WRITER_MARK_COUNT] = {false};
  for (const struct view_mark *m = p->marks; m != NULL; m = m->next)
    held[m->what] = true;
  HTML(h, "<p class=origin>marked:");
  for (int i = TEXT_WRITER_MARK_COUNT; i-- > 0;)
    if (held[i])
      HTML_FMT(h, " <mark class=\"%s\">%s</mark>", writer_mark_name((enum text_writer_mark)i),
               words[i]);
  HTML(h, "</p>");
}

/* Finds the place in an origin such as "record 33#/text, 1.2 KiB". */
static struct str place_in(struct str origin) {
  static const char word[] = "record ";
  const char *comma = memchr(origin.p, ',', origin.n);
  if (comma == NULL || !str_starts(origin, word))
    return STR("");
  return (struct str){origin.p + sizeof word - 1, (size_t)(comma - origin.p) - (sizeof word - 1)};
}

static void put_piece_cut(struct html *h, const struct view_judgment *told,
                          const struct view_piece *p) {
  const struct part_cut cut = {.shown = p->text.n,
                               .bytes = p->text.n + p->more_bytes,
                               .ref = place_in(p->origin),
                               .whole_page = told->text_max<PART_WHOLE_BYTES, .within = p->part> 0};
  part_cut(h, &cut);
}

static void put_piece_text(struct html *h, const struct view_judgment *told,
                           const struct view_piece *p) {
  if (p->origin.n > 0)
    HTML_FMT(h, "<p class=origin>from <bdi>%.*s</bdi></p>", STR_ARG(p->origin));
  if (p->text.n == 0)
    return;
  HTML(h, "<pre>");
  put_marked(h, p);
  HTML(h, "</pre>");
  if (p->marks != NULL)
    put_marks_key(h, p);
  put_piece_cut(h, told, p);
}

/* Writes one part of a prompt, within its line. The window gives the origin of each part on
 * request; a report, which has to stay small, only for parts not copied from another prompt. */
static void put_prompt_part(struct html *h, const struct view_judgment *told,
                            const struct view_piece *p) {
  bool words = memmem(p->origin.p, p->origin.n, LIT("#/prompt/")) != NULL;
  bool titled = p->origin.n > 0 && h->root != NULL;
  if (p->origin.n > 0 && !words)
    HTML_FMT(h,
             "<span class=dim>\xE2\x9F\xA6"
             "from %.*s\xE2\x9F\xA7 </span>",
             STR_ARG(p->origin));
  if (titled)
    HTML_FMT(h, "<span class=from title=\"from %.*s\">", STR_ARG(p->origin));
  html_text(h, p->text);
  if (titled)
    HTML(h, "</span>");
  put_piece_cut(h, told, p);
}

/* Writes a folded prompt, with all of its parts as one text. Returns how many pieces it had. */
static size_t put_prompt_text(struct html *h, const struct view_judgment *told, size_t number) {
  const struct view_piece *first = &told->pieces[number];
  size_t n = 0, left = told->count - number;
  HTML(h, "<details class=prompt");
  if (h->root != NULL)
    HTML_FMT(h, " id=\"prompt-%zu\"", number);
  HTML(h, "><summary>the prompt</summary><pre>");
  for (; n < left && first[n].part == (long)n + 1; n++)
    put_prompt_part(h, told, &first[n]);
  HTML(h, "</pre></details>");
  return n;
}

static void put_told_line(struct html *h, const struct view_piece *p) {
  if (p->depth <= 1)
    HTML(h, "<p class=l>");
  else if (p->depth == 2)
    HTML(h, "<p class=\"l l2\">");
  else
    HTML(h, "<p class=\"l l3\">");
  HTML_FMT(h, "<bdi>%.*s</bdi></p>", STR_ARG(p->text));
}

/* Writes folded how a program read a reply. Returns how many pieces it had. */
static size_t put_read(struct html *h, const struct view_judgment *told, size_t number) {
  const struct view_piece *first = &told->pieces[number];
  size_t n = 0, left = told->count - number;
  HTML(h, "<details class=read");
  if (h->root != NULL)
    HTML_FMT(h, " id=\"read-%zu\"", number);
  HTML(h, "><summary>how it was read</summary>");
  for (; n < left && first[n].reading; n++)
    put_told_line(h, &first[n]);
  HTML(h, "</details>");
  return n;
}

void part_told(struct html *h, const struct view_judgment *told, struct str command) {
  for (size_t i = 0; i < told->count; i++) {
    const struct view_piece *p = &told->pieces[i];
    switch (p->kind) {
    case VIEW_TITLE:
      if (i == 0) /* the turn's own title, which the caller's heading already has */
        break;
      /* A heading is one level below the page's own in the window, deeper in a report. */
      if (h->root != NULL)
        HTML_FMT(h, "<h2><bdi>%.*s</bdi></h2>", STR_ARG(p->text));
      else
        HTML_FMT(h, "<h4><bdi>%.*s</bdi></h4>", STR_ARG(p->text));
      break;
    case VIEW_LINE:
      if (p->reading)
        i += put_read(h, told, i) - 1;
      else
        put_told_line(h, p);
      break;
    case VIEW_TEXT:
      if (p->part == 1)
        i += put_prompt_text(h, told, i) - 1;
      else
        put_piece_text(h, told, p);
      break;
    }
  }
  if (view_judgment_is_cut(told)) {
    HTML(h, "<p class=l>In full: ");
    part_code(h, command);
    HTML(h, "</p>");
  }
}
