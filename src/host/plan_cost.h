/* plan_cost.h - internal to plan: the most that a walk through a workflow can add up to. */
#ifndef SEGUE_HOST_PLAN_COST_H
#define SEGUE_HOST_PLAN_COST_H

#include "core/workflow.h"

/* The largest sum of weights (one a movement, none below 0) along a walk from the initial movement
 * that the rules and max_movements allow; -1: there is no limit. */
double plan_worst(const struct workflow *workflow, const double *weights);

/* The value below which `percent` of the sorted numbers lie, by nearest rank. count > 0. */
double plan_rank(const double *sorted, size_t count, unsigned percent);

#endif
