/* plan.h - what a session of a workflow would be: who works and judges with which permission, how
 * many calls it can come to, and what its last sessions used. Nothing is started for it.
 *
 *   plan = plan_json(&preflight, store)        a new object: docs/tour.md, "segue plan"
 *
 * Calls are counted at their worst: every turn that max_movements allows, along the way that costs
 * most, every correction used. Repeats after errors of a network are not among them. The cost of
 * that is bounded for what is answered only (max_tokens at the price list), where both are known
 * of everybody who is asked. */
#ifndef SEGUE_HOST_PLAN_H
#define SEGUE_HOST_PLAN_H

#include "host/preflight.h"
#include "store/store.h"

/* store: of the sessions before; or NULL. */
json_t *plan_json(const struct preflight *p, const struct store *store);

#endif
