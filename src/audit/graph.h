/* graph.h - draws a workflow: its movements, its rules and, given the records of a session, which
 * of them it took, how often and by which method.
 *
 *   g = graph_new(workflow); graph_feed(g, record) for each of a session's; graph_ascii(g, &out);
 *   graph_free(g)
 * Texts of the workflow are made safe for a terminal and for Mermaid's quotes. */
#ifndef SEGUE_AUDIT_GRAPH_H
#define SEGUE_AUDIT_GRAPH_H

#include "base/buf.h"
#include "core/workflow.h"

struct graph;

/* Makes a graph; keeps a reference to the workflow. */
struct graph *graph_new(struct workflow *workflow);
void graph_free(struct graph *graph); /* NULL is fine */

/* Takes a record of a session; only turns and judgments count. */
void graph_feed(struct graph *graph, const json_t *record);
/* Counts turns whose movement or rule this workflow lacks: the file is not the one the session
 * ran. */
long graph_strangers(const struct graph *graph);

/* Draws rows in the file's order, with edges as rails to their left: one rail for all edges into a
 * movement. */
void graph_ascii(const struct graph *graph, struct buf *out);
/* Draws a flowchart for Mermaid (https://mermaid.js.org/syntax/flowchart.html); taken edges are
 * thick. */
void graph_mermaid(const struct graph *graph, struct buf *out);
/* Returns {"workflow", "initial", "movements": [{"name", "runs", "open", "rules": [{"condition",
 * "next", "taken", "methods": {METHOD: n}}], "on_error": [{"class", "next", "taken"}]}]}, a new
 * reference. */
json_t *graph_json(const struct graph *graph);

#endif
