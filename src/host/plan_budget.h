/* plan_budget.h - lists the budgets of a workflow, and what they cannot see, for `segue plan`. */
#ifndef SEGUE_HOST_PLAN_BUDGET_H
#define SEGUE_HOST_PLAN_BUDGET_H

#include "host/reach.h"
#include "provider/registry.h"

/* Returns {"limits": [{"of", "movement"?, "limits"}], "unseen": []}; JSON null if there is no
 * budget. New. */
json_t *plan_budget(const struct workflow *wf);
/* Adds to "unseen" the use by this part's providers that no budget sees: tokens that a backend does
 * not report, or a cost that it does not report and no price gives. budget: the object above. */
void plan_budget_see(json_t *budget, const struct workflow *wf, const json_t *config,
                     const struct reach_part *part, const struct provider_registry *registry);

#endif
