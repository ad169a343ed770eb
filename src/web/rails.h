/* rails.h - a workflow's graph as rows in the file's order with its edges as rails beside them, in
 * SVG: down on the right, back on the left, each with how often it was taken.
 *
 * The drawing stands in the first cell of a table, over all of its rows (RAILS_ROW_EM high each);
 * the rows carry the words, and are what is read aloud: movements, then COMPLETE, then ABORT. Lanes
 * are given out greedily, so nothing moves while a session runs. Edges beyond RAILS_LANES lanes are
 * left to the words. */
#ifndef SEGUE_WEB_RAILS_H
#define SEGUE_WEB_RAILS_H

#include "view/session.h"
#include "web/html.h"

enum { RAILS_LANES = 10 };

/* The whole table, with a caption. */
void rails_table(struct html *h, const struct view_session *v);

#endif
