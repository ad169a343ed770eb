/* graph_layout.h - draws a workflow's graph as rows in the file's order with its edges as rails
 * beside them, in SVG: down on the right, back on the left, each with how often it was taken.
 *
 * The drawing is in the first cell of a table and spans all its rows (RAILS_ROW_EM high each). The
 * rows have the words, which screen readers read: movements, then COMPLETE, then ABORT. Lanes are
 * assigned greedily, so nothing moves while a session runs. Edges beyond GRAPH_LAYOUT_LANES lanes
 * are not drawn; the words still name them. */
#ifndef SEGUE_WEB_GRAPH_LAYOUT_H
#define SEGUE_WEB_GRAPH_LAYOUT_H

#include "view/session_view.h"
#include "web/html.h"

enum { GRAPH_LAYOUT_LANES = 10 };

/* Writes the whole table, with a caption. */
void graph_layout_table(struct html *h, const struct view_session *v);

#endif
