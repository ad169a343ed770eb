/* plan_budget.h - the budgets of a workflow, and what they cannot see, for `segue plan`. */
#ifndef SEGUE_HOST_PLAN_BUDGET_H
#define SEGUE_HOST_PLAN_BUDGET_H

#include "host/reach.h"
#include "provider/registry.h"

/* {"limits": [{"of", "movement"?, "limits"}], "unseen": []}; JSON null where there is no budget.
 * New. */
json_t *plan_budget(const struct workflow *wf);
/* Adds to "unseen" what this part's providers use unseen by any budget: tokens that a backend does
 * not report, or a cost that it does not report and that no price gives. budget: the object
 * above. */
void plan_budget_see(json_t *budget, const struct workflow *wf, const json_t *config,
                     const struct reach_part *part, const struct provider_registry *registry);

#endif
