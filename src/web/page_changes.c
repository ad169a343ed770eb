/* Writes the lines that a session changed in its files. */
#include "web/page_session.h"
#include "web/parts.h"

static void put_changed_line(struct html *h, struct str line, bool head) {
  if (head) {
    HTML(h, "<b>");
    html_text(h, line);
    HTML(h, "</b>\n");
  } else if (line.n > 0 && line.p[0] == '+') {
    HTML(h, "<ins>");
    html_text(h, line);
    HTML(h, "</ins>\n");
  } else if (line.n > 0 && line.p[0] == '-') {
    HTML(h, "<del>");
    html_text(h, line);
    HTML(h, "</del>\n");
  } else {
    html_text(h, line);
    HTML(h, "\n");
  }
}

/* begins: the lines that name a file come first. */
static void put_lines(struct html *h, struct str diff, bool begins) {
  bool head = begins; /* in these lines, up to the first hunk */
  HTML(h, "<pre class=diff>");
  while (diff.n > 0) {
    struct str line = str_next_line(&diff);
    head = str_starts(line, "diff --git ") || (head && !str_starts(line, "@@"));
    put_changed_line(h, line, head);
  }
  HTML(h, "</pre>");
}

/* Links to what comes before and after a piece of a large diff. */
static void put_pieces(struct html *h, const struct page_ask *ask) {
  struct buf next = {0};
  size_t end = ask->diff_from + ask->diff.n;
  if (ask->diff.n >= ask->diff_bytes)
    return;
  HTML(h, "<p>");
  html_printf(h, "Bytes %zu to %zu of %zu. ", ask->diff_from + (ask->diff.n > 0), end,
              ask->diff_bytes);
  if (ask->diff_from > 0)
    HTML(h, "<a href=\"?all=1\">The first ones</a> ");
  buf_printf(&next, "%zu", end);
  if (ask->diff.n > 0 && end < ask->diff_bytes) {
    HTML(h, "<a");
    HTML_LINK(h, "?all=1&amp;from=", buf_view(&next), "");
    HTML(h, ">The next ones</a>");
  }
  HTML(h, "</p>");
  buf_deinit(&next);
}

unsigned page_changes(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  page_begin(&h, "Changes", NULL);
  if (ask->damage != NULL)
    part_damaged(&h, "This log", ask->sound, str_from(ask->damage));
  HTML(&h, "<p><a href=\"./\">The session</a></p>");
  if (ask->diff.n > 0 || ask->diff_bytes > 0) {
    put_lines(&h, ask->diff, ask->diff_from == 0);
  } else {
    HTML(&h, "<p>git shows no changed lines");
    html_printf(&h, "%s%s: ", ask->diff_why != NULL ? ": " : "",
                ask->diff_why != NULL ? ask->diff_why : "");
    HTML(&h, "there is no repository or no commit, the changes were undone, or the files are "
             "not tracked.</p>");
  }
  const struct part_cut cut = {
      .shown = ask->diff.n, .bytes = ask->diff_bytes, .whole_page = !ask->all};
  part_cut(&h, &cut);
  if (ask->all)
    put_pieces(&h, ask);
  if (ask->diff_more_files)
    HTML(&h, "<p>It changed more files than this page compares.</p>");
  HTML(&h, "<p class=dim>From the checked-out commit (in a worktree: the commit it began from) to "
           "the files as they are now. Untracked files are not shown.</p>");
  part_end_page(&h);
  return 200;
}
