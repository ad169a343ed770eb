/* fit.h - cuts the texts of a view to what a report has room for, and says how much is missing.
 *
 *   fit_folder(&f)                         before report_folder
 *   fit_session(&v, session_count)         before report_session; number of sessions in the report
 * A text costs what it takes in the file, cleaned and escaped: markup or invisible characters take
 * several times as many bytes there as in the log. A cut text ends in "... (N bytes left out)". The
 * new texts live in the view's arena. */
#ifndef SEGUE_WEB_FIT_H
#define SEGUE_WEB_FIT_H

#include "view/folder.h"
#include "view/session.h"

/* Returns the text, or as much of it as costs at most max bytes, with a note. */
struct str fit_text(struct arena *arena, struct str text, size_t max);
void fit_folder(struct view_folder *f);
void fit_session(struct view_session *v, size_t session_count);

#endif
