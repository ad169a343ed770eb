/* parts.h - the pieces of pages, which the report and the window are put together from.
 *
 * A piece writes whole elements below a heading that its caller wrote. `at` leads to a turn's
 * judgment: "#...t" in a report, "turns/" in the window; the turn's number is put behind it. */
#ifndef SEGUE_WEB_PARTS_H
#define SEGUE_WEB_PARTS_H

#include "audit/verify.h"
#include "view/folder.h"
#include "view/session.h"
#include "view/told.h"
#include "web/html.h"

/* Writes the frame of a page that is one file: its style is inside, allowed by its hash. */
void part_begin_file(struct html *h, struct str title);
void part_end_file(struct html *h);
/* The frame of a page of the window; watch: the address of what tells its changes, below the root,
 * or NULL. */
void part_begin_page(struct html *h, struct str title, const char *watch);
void part_end_page(struct html *h);

/* A time as age, with the time in full at hand; in a file, and of a time to come, in full. */
void part_when(struct html *h, int64_t real_ms);
/* The same in a cell of a table. */
void part_when_cell(struct html *h, int64_t real_ms);
/* "since 3 min", "in 5 min" or, when it has passed, "5 min ago"; the same in full. */
void part_since(struct html *h, int64_t real_ms);
void part_until(struct html *h, int64_t real_ms);
/* Does the same for a time as in a record; any other text is shown as it is. */
void part_time(struct html *h, struct str text);
/* An id or a command, in the window with a button that copies it. */
void part_code(struct html *h, struct str text);
/* Writes only the button, right after the element whose text it copies. */
void part_copy(struct html *h, struct str text);
/* Writes the end of a text that was cut: how much of it is shown, and in the window a link to all
 * of it. Every text that is cut ends with this; after a whole text it writes nothing. */
struct part_cut {
  size_t shown, bytes; /* of the text */
  struct str ref;      /* where it stands in its log, such as 33#/text; or empty: */
  bool whole_page;     /* this page has, with all=1, up to PART_WHOLE_BYTES of it */
  struct str session;  /* the session of ref; empty: the page's own */
  bool within;         /* other text follows on the line: no paragraph of its own */
};
enum { PART_WHOLE_BYTES = 1024 * 1024 };
void part_cut(struct html *h, const struct part_cut *cut);
/* Writes a text in a frame: at most max bytes of it, and such an end. cut: all but `shown`. */
void part_pre(struct html *h, struct str text, size_t max, struct part_cut cut);
/* One row of words and values. */
void part_fact(struct html *h, const char *name, struct str value);
void part_status(struct html *h, struct str status, enum view_class class);
void part_status_cell(struct html *h, struct str status, enum view_class class);

/* A session: facts, turns on a time axis, sums. links: to the judgments in this file. */
void part_session_facts(struct html *h, const struct view_session *v,
                        const struct verify_result *proof);
struct part_which {  /* turns of a session */
  bool only_failed;  /* view_turn_failed */
  size_t first, max; /* of those: from the first-th on, at most max */
};
/* In a file each leads to its judgment there, in the window to a page. id: put before the ids of
 * elements. */
void part_turns(struct html *h, const struct view_session *v, const char *id,
                const struct part_which *which);
void part_totals(struct html *h, const struct view_session *v);
/* Says what follows when its log is not what was written; nothing when it is. */
void part_banner(struct html *h, const struct view_session *v);
/* Does the same for any log: whose it is, how many records are intact, what is wrong with the next
 * one. */
void part_damaged(struct html *h, const char *whose, uint64_t sound, struct str why);

/* Shows what a session does or waits for, why, and its limits. */
/* day: limits of all sessions together, as day_book_json has them; or NULL. */
void part_now(struct html *h, const struct view_session *v, const json_t *day);

/* The field that a text is looked for with in a session; text: what was looked for. */
void part_find_form(struct html *h, struct str text);

/* The forms of what may be done with it; nothing where nothing may. asks: it waits for an answer,
 * which takes it further. */
void part_acts(struct html *h, const struct view_session *v, bool asks);
/* Takes a session further that stopped, from a page that is not its own. */
void part_resume(struct html *h, const char *id, struct str status);
/* Writes the place that shows how an action ended; once for each page with actions. */
void part_acted(struct html *h);

/* Lists the questions that wait for persons (store/inbox.h, view/asked.h); acts: with the forms of
 * an answer. */
void part_questions(struct html *h, const json_t *list, bool acts);

/* Writes one judgment; command: the command that prints all of it, for texts that were cut. */
void part_told(struct html *h, const struct view_told *told, struct str command);

/* Many sessions: the rows of one class, and the tables of their audit. */
/* class: VIEW_CLASS_COUNT takes all; in the window each leads to its session. */
/* order: how they are sorted, with columns that lead to another order; NULL: they do not. */
struct part_order {
  struct str q; /* what is filtered by */
  enum view_sort sort;
  bool least_first;
};
/* Explains the bars in them. */
void part_methods_key(struct html *h);
void part_rows(struct html *h, const struct view_folder *f, enum view_class class,
               const struct part_order *order);
/* In the window each number leads to its judgments; q: what is filtered by. */
void part_audit(struct html *h, const struct census *c, struct str q);
struct agree;
void part_agree(struct html *h, const struct agree *a);

#endif
