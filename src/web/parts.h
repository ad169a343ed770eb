/* parts.h - writes the pieces from which the report and the window are put together.
 *
 * A piece writes whole elements below a heading that its caller wrote. `at` leads to a turn's
 * judgment: "#...t" in a report, "turns/" in the window; the turn's number is put behind it. */
#ifndef SEGUE_WEB_PARTS_H
#define SEGUE_WEB_PARTS_H

#include "audit/verify.h"
#include "view/judgment.h"
#include "view/session_list.h"
#include "view/session_view.h"
#include "web/html.h"

void part_end_page(struct html *h);

/* Gives a drawing its size in a file, which may be read without its style. */
void part_bare_size(struct html *h, int width, int height);

/* Writes a time as an age, with the full time in a tooltip; in a file, and for a future time, in
 * full. */
void part_when(struct html *h, int64_t real_ms);
/* Writes "since 3 min", "in 5 min" or, when it has passed, "5 min ago", with the full time
 * likewise. */
void part_since(struct html *h, int64_t real_ms);
void part_until(struct html *h, int64_t real_ms);
/* Does the same for a time as in a record; any other text is shown as it is. */
void part_time(struct html *h, struct str text);
/* Writes a duration. */
void part_took(struct html *h, int64_t ms);
/* Writes an id or a command, in the window with a button that copies it. */
void part_code(struct html *h, struct str text);
/* Writes only the button, right after the element whose text it copies. */
void part_copy(struct html *h, struct str text);
/* Describes a cut text. Its end says how much is shown, and in the window links to all of it. Every
 * cut text ends so; after a whole text nothing is written. */
struct part_cut {
  size_t shown, bytes; /* bytes of the text */
  struct str ref;      /* its place in the log, such as 33#/text; or empty: */
  bool whole_page;     /* with all=1 this page shows up to PART_WHOLE_BYTES of it */
  struct str session;  /* session of `ref`; empty: the page's own */
  bool within;         /* other text follows on the line: no paragraph of its own */
};
enum { PART_WHOLE_BYTES = 1024 * 1024 };
void part_cut(struct html *h, const struct part_cut *cut);
/* Writes at most max bytes of a text in a frame, and such an end. cut: all members except
 * `shown`. */
void part_pre(struct html *h, struct str text, size_t max, struct part_cut cut);
/* Writes one row of a name and its value. */
void part_fact(struct html *h, const char *name, struct str value);
void part_status(struct html *h, struct str status, enum view_class class);

/* These write a session: facts, turns on a time axis, sums. links: to the judgments in this
 * file. */
void part_session_facts(struct html *h, const struct view_session *v,
                        const struct verify_result *verification);
struct part_which {  /* selects turns of a session */
  bool only_failed;  /* only if view_turn_failed */
  size_t first, max; /* from the first-th selected turn on, at most max */
  size_t told;       /* in a file: judgments in it, those of the first turns that are proven */
};
/* Explains the bars of turns, and defines their hatching. The window's turns end with it; a file
 * has it once. */
void part_span_key(struct html *h);
/* Writes turns that lead to their judgments, in a file to the one there, in the window to a page.
 * id: put before the ids of elements. */
void part_turns(struct html *h, const struct view_session *v, const char *id,
                const struct part_which *which);
/* Draws its movements, and where each led, as a table with a caption (graph_layout.c). */
void graph_layout_table(struct html *h, const struct view_session *v);
void part_totals(struct html *h, const struct view_session *v);
/* Says what follows when the session's log is not what was written; otherwise nothing. */
void part_banner(struct html *h, const struct view_session *v);
/* Does the same for any log: whose it is, how many records are intact, what is wrong with the next
 * one. */
void part_damaged(struct html *h, const char *whose, uint64_t sound, struct str why);

/* Writes the search field for texts of a session. text: what was searched for. */
void part_find_form(struct html *h, struct str text);

/* Writes the form that resumes a stopped session from a page that is not its own. */
void part_resume(struct html *h, const char *id, struct str status);
/* Writes the button that begins a session without those after which it is to begin. */
void part_begin_now(struct html *h, const char *id);
/* Writes the place that shows how an action ended; once on each page with actions. */
void part_acted(struct html *h);

/* Writes the form that takes a session out of the inbox. id: of hexadecimal digits and "-" only;
 * question: 0 for a session that has stopped without one. */
void part_dismiss(struct html *h, const char *id, long long question);
/* Lists the questions that wait for people (store/inbox.h, view/question.h). acts: with answer
 * forms. */
void part_questions(struct html *h, const json_t *list, bool acts, bool dismisses);

/* Writes one judgment. command: prints all of it, for texts that were cut. */
void part_told(struct html *h, const struct view_judgment *told, struct str command);

/* These write many sessions: the rows of one class, and the tables of their audit. class:
 * VIEW_CLASS_COUNT takes all; in the window each row leads to its session. order: how rows are
 * sorted, with column heads that lead to other orders; NULL: no such heads. */
struct part_order {
  struct str q; /* the filter */
  enum view_sort sort;
  bool least_first;
};
/* Explains the bars in the rows. */
void part_methods_key(struct html *h);
void part_rows(struct html *h, const struct session_list *f, enum view_class class,
               const struct part_order *order);
/* Writes an audit. In the window each number leads to its judgments. q: the filter. */
void part_audit(struct html *h, const struct aggregate *c, struct str q);

#endif
