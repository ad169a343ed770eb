/* report.h - writes one file that reports on sessions: HTML without scripts and network, or
 * Markdown.
 *
 *   struct report_file r = {.out = &buf, .form = REPORT_HTML};
 *   report_begin(&r, title)
 *   report_morning(&r, morning)             by repository, and
 *   report_overview(&r, &folder)            a morning's summary and the audit's tables, or
 *   report_session(&r, &view, &proof)       then for each of its turns
 *   report_turn(&r, turn, &told)            its judgment, and
 *   report_session_end(&r)
 *   report_end(&r)
 * Judgments are included up to LIMIT_REPORT_TOLD_BYTES together, those of several sessions up to
 * LIMIT_REPORT_TOLD_MANY; texts are cut before (fit_folder, fit_session). Several sessions share
 * LIMIT_REPORT_MANY_BYTES. The report says what is missing. */
#ifndef SEGUE_WEB_REPORT_H
#define SEGUE_WEB_REPORT_H

#include "audit/verify.h"
#include "view/judgment.h"
#include "view/session_list.h"
#include "view/session_view.h"

enum report_form { REPORT_HTML, REPORT_MARKDOWN };

struct report_file {
  struct buf *out;
  enum report_form form;
  int64_t now_ms;       /* real time; 0: the report does not say when it was made */
  size_t session_count; /* number of sessions it covers; 0: one */
  size_t sessions;      /* begun so far */
  size_t told_bytes;
  size_t until; /* where the tables of this session must end in `out` */
  bool has_key; /* the bars of turns are explained */
  /* of this session: */
  struct buf told;   /* its judgments */
  size_t told_count; /* and their number */
  long left_out;     /* judgments that are left out */
  const struct view_session *session;
  const struct verify_result *verification;
};

void report_begin(struct report_file *r, struct str title);
/* Puts what sessions came to by repository (cli/morning.h), in HTML. */
void report_morning(struct report_file *r, const json_t *morning);
void report_overview(struct report_file *r, const struct session_list *f, struct str where);
/* Begins a session; v and proof are used until its end. */
void report_session(struct report_file *r, const struct view_session *v,
                    const struct verify_result *verification);
/* Returns whether there is room for one more judgment; if not, it is left out. */
bool report_wants(struct report_file *r);
void report_turn(struct report_file *r, const struct view_turn *turn,
                 const struct view_judgment *told);
void report_session_end(struct report_file *r);
void report_end(struct report_file *r);

/* These cut the texts of a view to what a report has room for, and say how much is missing. A text
 * costs what it takes in the file, cleaned and escaped: markup or invisible characters take several
 * times as many bytes there as in the log. A cut text ends in "... (N bytes left out)". The new
 * texts live in the view's arena. */

/* Returns the text, or as much of it as costs at most max bytes, with a note. */
struct str fit_text(struct arena *arena, struct str text, size_t max);
void fit_folder(struct session_list *f);
void fit_session(struct view_session *v, size_t session_count);

#endif
