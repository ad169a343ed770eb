/* plan.h - plans a session of a workflow: who works and judges with which permission, how many
 * calls it can need, and what past sessions used. Nothing is started for it.
 *
 *   plan = plan_json(&preflight, store)        a new object: docs/tour.md, "segue plan"
 *   plan_put_costs(wf, config, registry, store)   before a session starts
 *
 * Calls are counted for the worst case: every turn that max_movements allows, along the most
 * expensive path, with every correction used, but without repeats after network errors. Cost is
 * bounded only for answers (max_tokens at the price list), and only if both are known for every
 * provider. */
#ifndef SEGUE_HOST_PLAN_H
#define SEGUE_HOST_PLAN_H

#include "host/preflight.h"
#include "store/store.h"

/* store: has the past sessions; or NULL. */
json_t *plan_json(const struct preflight *p, const struct store *store);
/* Puts into the configuration what a call of each child of a group has cost, for the question of
 * core/group.h; nothing if none can be asked. Reads logs. */
void plan_put_costs(const struct workflow *wf, json_t *config,
                    const struct provider_registry *registry, const struct store *store);

#endif
