/* hidden_gap.h - how often work whose visible check had passed also passed hidden tests, for each
 * agent and model: the gap between the two.
 *
 *   struct hidden_gap g = {.agents = json_object()};
 *   hidden_gap_read(&g, &ref)         for each log
 *   json = hidden_gap_json(&g); json_decref(g.agents)
 *
 * Of each session the first result counts, a later one may be the work of a person. */
#ifndef SEGUE_AUDIT_HIDDEN_GAP_H
#define SEGUE_AUDIT_HIDDEN_GAP_H

#include "store/store.h"

#include <jansson.h>

struct hidden_gap {
  json_t *agents; /* "PROVIDER\nMODEL" -> the object as it is told */
};

void hidden_gap_read(struct hidden_gap *g, const struct store_ref *ref);
/* New: [{"provider", "model"?, "sessions", "passed", "gap", "visible"?, "hidden"?: {"passed",
 * "tests"}}], the most sessions first. gap: the share of sessions whose check passed and whose
 * hidden tests did not. Those that could not be run count as "not_run" alone. */
json_t *hidden_gap_json(const struct hidden_gap *g);

#endif
