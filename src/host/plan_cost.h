/* plan_cost.h - computes the most that a walk through a workflow can add up to; internal to
 * plan. */
#ifndef SEGUE_HOST_PLAN_COST_H
#define SEGUE_HOST_PLAN_COST_H

#include "core/workflow.h"

/* Returns the largest sum of weights (one for each movement, none below 0) along a walk from the
 * initial movement that the rules and max_movements allow; -1: there is no limit. */
double plan_worst(const struct workflow *workflow, const double *weights);

/* Returns the value below which `percent` of the sorted numbers lie, by nearest rank. count > 0. */
double plan_rank(const double *sorted, size_t count, unsigned percent);

#endif
