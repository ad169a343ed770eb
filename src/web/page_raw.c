/* Writes what a session's log holds: its records, places where a text was found, its workflow. */
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "view/number_format.h"
#include "view/raw.h"
#include "view/search.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <stdlib.h>

/* --- changes --- */

/* Links to what comes before and after a piece of a large diff. */
static void put_pieces(struct html *h, const struct page_ask *ask) {
  size_t end = ask->diff_from + ask->diff.n;
  if (ask->diff.n >= ask->diff_bytes)
    return;
  HTML_FMT(h, "<p>Bytes %zu to %zu of %zu. ", ask->diff_from + (ask->diff.n > 0), end,
           ask->diff_bytes);
  if (ask->diff_from > 0)
    HTML(h, "<a href=\"?all=1\">The first ones</a> ");
  if (ask->diff.n > 0 && end < ask->diff_bytes)
    HTML_FMT(h, "<a href=\"?all=1&amp;from=%zu\">The next ones</a>", end);
  HTML(h, "</p>");
}

unsigned page_changes(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  page_begin(&h, "Changes", NULL);
  if (ask->damage != NULL)
    part_damaged(&h, "This log", ask->sound, str_from(ask->damage));
  HTML(&h, "<p><a href=\"./\">The session</a></p>");
  if (ask->diff.n > 0 || ask->diff_bytes > 0) {
    /* The lines that name a file come first: in these, up to the first hunk. */
    bool head = ask->diff_from == 0;
    HTML(&h, "<pre class=diff>");
    for (struct str diff = ask->diff; diff.n > 0;) {
      struct str line = str_next_line(&diff);
      head = str_starts(line, "diff --git ") || (head && !str_starts(line, "@@"));
      if (head)
        HTML_FMT(&h, "<b>%.*s</b>\n", STR_ARG(line));
      else if (line.n > 0 && line.p[0] == '+')
        HTML_FMT(&h, "<ins>%.*s</ins>\n", STR_ARG(line));
      else if (line.n > 0 && line.p[0] == '-')
        HTML_FMT(&h, "<del>%.*s</del>\n", STR_ARG(line));
      else
        HTML_FMT(&h, "%.*s\n", STR_ARG(line));
    }
    HTML(&h, "</pre>");
  } else {
    HTML_FMT(&h,
             "<p>git shows no changed lines%s%s: there is no repository or no commit, the changes "
             "were undone, or git ignores the files.</p>",
             ask->diff_why != NULL ? ": " : "", ask->diff_why != NULL ? ask->diff_why : "");
  }
  const struct part_cut cut = {
      .shown = ask->diff.n, .bytes = ask->diff_bytes, .whole_page = !ask->all};
  part_cut(&h, &cut);
  if (ask->all)
    put_pieces(&h, ask);
  if (ask->diff_more_files)
    HTML(&h, "<p>It changed more files than this page compares.</p>");
  HTML(&h,
       "<p class=dim>From the commit at the session's start to the files as they are now, with new "
       "files that git does not ignore.</p>");
  part_end_page(&h);
  return 200;
}

/* --- records --- */

static void put_record(struct html *h, const struct view_raw *raw) {
  buf_auto_t number = {0};
  HTML_FMT(h, "<article class=record id=\"rec%llu\"><h2><a", (unsigned long long)raw->seq);
  buf_printf(&number, "%llu", (unsigned long long)raw->seq);
  html_link_text(h, STR(""), buf_view(&number), 0);
  HTML_FMT(h, ">%llu <bdi>%.*s</bdi></a>", (unsigned long long)raw->seq, STR_ARG(raw->type));
  if (raw->turn > 0)
    HTML_FMT(h, " <a class=dim href=\"%ld\">turn %ld</a>", raw->turn, raw->turn);
  HTML_FMT(h, "</h2><p class=dim><bdi>%.*s</bdi> hash ", STR_ARG(raw->ts));
  part_code(h, raw->hash);
  if (raw->unproven)
    HTML(h, " <span class=mark>not proven</span>");
  HTML(h, "</p>");
  part_pre(h, raw->line, SIZE_MAX,
           (struct part_cut){.bytes = raw->line.n + raw->more_bytes, .ref = buf_view(&number)});
  HTML(h, "</article>");
}

static void put_record_link(struct html *h, char key, uint64_t from, const char *name) {
  HTML(h, " <a");
  if (key != '\0')
    HTML_FMT(h, " data-key=\"%c\"", key);
  HTML_FMT(h, " href=\"records?from=%llu\">%s</a>", (unsigned long long)from, name);
}

static uint64_t records_before(uint64_t seq) {
  return seq > LIMIT_WINDOW_RECORD_COUNT ? seq - LIMIT_WINDOW_RECORD_COUNT : 0;
}

static void put_records_nav(struct html *h, const struct verified_reader *book,
                            const struct view_raws *raws) {
  uint64_t first = raws->count > 0 ? raws->items[0].seq : 1;
  uint64_t last = book->place_count > 0 ? book->places[book->place_count - 1].seq : 0;
  HTML(h, "<p><a href=\"./\">The session</a>");
  if (first > 1) {
    put_record_link(h, '\0', 0, "First");
    put_record_link(h, 'p', records_before(first - 1), "Earlier");
  }
  if (raws->next > 0) {
    put_record_link(h, 'n', raws->next, "Later");
    put_record_link(h, '\0', records_before(last), "Last");
  }
  HTML(h, "</p>");
}

unsigned page_records(const struct page_ask *ask, struct buf *out) {
  struct record_index *own, *track;
  struct view_raws raws;
  struct err err = {0};
  long from = 0;
  if ((track = page_track(ask, &own, &err)) == NULL)
    return page_problem(ask, out, &err);
  bool ok = ask->from[0] == '\0' || (str_to_long(str_from(ask->from), &from) && from >= 0) ||
            err_set(&err, ERR_NOT_FOUND, "\"%s\" is not a record number", ask->from);
  ok = ok && view_raws_read(&raws, &track->book, (uint64_t)from, LIMIT_WINDOW_RECORD_COUNT,
                            LIMIT_WINDOW_TEXT_BYTES, &err);
  if (ok) {
    struct html h = page_html(ask, out);
    page_begin(&h, "Records", NULL);
    part_banner(&h, &track->view);
    put_records_nav(&h, &track->book, &raws);
    if (raws.count == 0)
      HTML(&h, "<p>There is no later record.</p>");
    for (size_t i = 0; i < raws.count; i++)
      put_record(&h, &raws.items[i]);
    if (raws.count > 10)
      put_records_nav(&h, &track->book, &raws);
    part_end_page(&h);
    view_raws_deinit(&raws);
  }
  record_index_free(own);
  return ok ? 200 : page_problem(ask, out, &err);
}

/* --- find --- */

static void put_hit(struct html *h, const struct view_hit *hit) {
  unsigned long long seq = hit->seq;
  buf_auto_t place = {0};
  HTML(h, "<tr><td class=n>");
  if (hit->turn > 0)
    HTML_FMT(h, "<a href=\"%ld\">%ld", hit->turn, hit->turn);
  else
    HTML_FMT(h, "<a href=\"records?from=%llu\">session", seq - 1);
  buf_printf(&place, "%llu#" STR_FMT, seq, STR_ARG(hit->place));
  HTML_FMT(h, "</a></td><td><a href=\"records?from=%llu\"><code>%s</code></a>", seq - 1,
           buf_c(&place));
  part_copy(h, buf_view(&place));
  HTML_FMT(h,
           "<br><span class=dim><bdi>%.*s</bdi>, byte %zu%s</span></td><td "
           "class=said><bdi>%.*s<mark>%.*s</mark>%.*s</bdi></td></tr>",
           STR_ARG(hit->type), hit->offset, hit->more ? "; more of them in this text" : "",
           STR_ARG(hit->before), STR_ARG(hit->that), STR_ARG(hit->after));
}

static void put_hits(struct html *h, const struct page_ask *ask, const struct view_search *found) {
  if (found->count == 0) {
    HTML_FMT(h,
             "<p>No text in this session contains <bdi>%s</bdi>. Letters A to Z match in either "
             "case; everything else must match exactly.</p>",
             ask->q);
    return;
  }
  HTML_FMT(h,
           "<p role=status>%s%zu place%s</p><div class=\"wide fits\" tabindex=0 role=region "
           "aria-label=Places><table><thead><tr><th scope=col class=n>turn</th><th "
           "scope=col>place</th><th scope=col>text</th></tr></thead><tbody>",
           found->more ? "The first " : "", found->count, PLURAL(found->count));
  for (size_t i = 0; i < found->count; i++)
    put_hit(h, &found->hits[i]);
  HTML(h, "</tbody></table></div>");
}

unsigned page_find(const struct page_ask *ask, struct buf *out) {
  struct record_index *own, *track;
  AUTO(view_search_deinit) struct view_search found = {0};
  struct err err = {0};
  if ((track = page_track(ask, &own, &err)) == NULL)
    return page_problem(ask, out, &err);
  bool asked = ask->q[0] != '\0';
  bool ok = !asked || view_search_read(&found, &track->book, str_from(ask->q),
                                       LIMIT_WINDOW_FOUND_COUNT, &err);
  struct html h = page_html(ask, out);
  page_begin(&h, "Find", NULL);
  part_banner(&h, &track->view);
  HTML(&h, "<p><a href=\"./\">The session</a></p>");
  part_find_form(&h, str_from(ask->q));
  if (!ok)
    page_trouble(&h, &err);
  else if (asked)
    put_hits(&h, ask, &found);
  part_end_page(&h);
  record_index_free(own);
  return 200;
}

/* --- a text --- */

static void put_text_link(struct html *h, const struct page_ask *ask, char key, size_t from,
                          const char *name) {
  HTML(h, " <a");
  html_link_text(h, STR(""), str_from(ask->ref), from);
  HTML_FMT(h, " data-key=\"%c\">%s</a>", key, name);
}

static void put_text_nav(struct html *h, const struct page_ask *ask, const struct view_excerpt *e) {
  size_t end = e->offset + e->text.n;
  buf_auto_t size = {0};
  buf_put_size(&size, e->bytes);
  HTML(h, "<p><a href=\"./\">The session</a>");
  if (e->offset > 0)
    put_text_link(h, ask, 'p', e->offset > PART_WHOLE_BYTES ? e->offset - PART_WHOLE_BYTES : 0,
                  "Previous piece");
  if (end < e->bytes)
    put_text_link(h, ask, 'n', end, "Next piece");
  HTML(h, "</p><p>");
  part_code(h, str_from(ask->ref));
  if (e->offset > 0 || end < e->bytes)
    HTML_FMT(h, " bytes %zu to %zu of %zu (%s)", e->offset, end, e->bytes, buf_c(&size));
  else
    HTML_FMT(h, " %s", buf_c(&size));
  HTML(h, "</p>");
}

/* Shows a text of any length, in pieces. */
unsigned page_text(const struct page_ask *ask, struct buf *out) {
  struct record_index *own, *track;
  AUTO(view_excerpt_deinit) struct view_excerpt e = {0};
  struct err err = {0};
  long from = 0;
  if ((track = page_track(ask, &own, &err)) == NULL)
    return page_problem(ask, out, &err);
  bool ok = ask->from[0] == '\0' || (str_to_long(str_from(ask->from), &from) && from >= 0) ||
            err_set(&err, ERR_NOT_FOUND, "\"%s\" is not a byte offset", ask->from);
  ok = ok && view_excerpt_read(&e, &track->book, ask->ref, (size_t)from, PART_WHOLE_BYTES, &err);
  if (ok) {
    struct html h = page_html(ask, out);
    page_begin(&h, "Text", NULL);
    part_banner(&h, &track->view);
    put_text_nav(&h, ask, &e);
    HTML_FMT(&h, "<pre>%.*s</pre>", STR_ARG(e.text));
    part_end_page(&h);
  }
  record_index_free(own);
  return ok ? 200 : page_problem(ask, out, &err);
}

/* --- the workflow --- */

/* Shows a part of the first record, which has all of it if it is too long for this page. */
static void put_dumped(struct html *h, const char *name, const json_t *value, bool all) {
  char_auto_t *text = json_dump_text(value, JSON_INDENT(2) | JSON_ENCODE_ANY);
  struct str whole = str_from(text != NULL ? text : "");
  HTML_FMT(h, "<h2>%s</h2>", name);
  part_pre(
      h, whole, all ? PART_WHOLE_BYTES : LIMIT_WINDOW_DUMP_BYTES,
      (struct part_cut){.bytes = whole.n, .whole_page = !all, .ref = all ? STR("1") : STR("")});
}

unsigned page_workflow(const struct page_ask *ask, struct buf *out) {
  struct record_index *own, *track;
  struct err err = {0};
  json_t *start = NULL;
  if ((track = page_track(ask, &own, &err)) == NULL)
    return page_problem(ask, out, &err);
  start = verified_get(&track->book, 1, &err);
  if (start != NULL) {
    struct html h = page_html(ask, out);
    page_begin(&h, "Workflow and configuration", NULL);
    part_banner(&h, &track->view);
    HTML(&h, "<p><a href=\"./\">The session</a></p><p>As stored in this session, with all facets "
             "and calls filled in. The session no longer needs the file.</p><dl>");
    part_fact(&h, "file", json_view_at(start, "workflow_path"));
    HTML(&h, "<dt>SHA-256</dt><dd>");
    part_code(&h, json_view_at(start, "workflow_sha256"));
    HTML(&h, "</dd></dl>");
    put_dumped(&h, "Configuration", json_at(start, "config"), ask->all);
    put_dumped(&h, "Workflow", json_at(start, "workflow"), ask->all);
    part_end_page(&h);
    json_decref(start);
  }
  record_index_free(own);
  return start != NULL ? 200 : page_problem(ask, out, &err);
}
