/* daily_budget.h - reads `budget` of the user's configuration: what all of this user's sessions
 * together, and single providers, may use in a day.
 *
 *   budget:
 *     day: {tokens: 2000000, cost: 20, time: 8h, calls: 500}
 *     providers: {claude: {cost: 10}}          also for a day
 *
 *   limits = day_set_read(path, node, &err)     checked, each error at its place
 *   day_set_keep(registry, limits)              takes it; it is freed with the registry
 *   day_set_of(registry)                        NULL: days are not bounded
 *
 * Units are those of core/budget.h, without movements. */
#ifndef SEGUE_HOST_DAILY_BUDGET_H
#define SEGUE_HOST_DAILY_BUDGET_H

#include "core/budget.h"
#include "format/yaml.h"
#include "provider/registry.h"

struct day_limits {
  struct budget all;
  struct day_limit {
    char *provider;
    struct budget budget;
  } * of;
  size_t count;
};

/* Returns a new JSON object with the keys as they are written, checked. NULL: err is set. */
json_t *day_set_read(const char *path, const struct yaml_node *node, struct err *err);

/* Keeps a result of day_set_read; NULL is fine. */
void day_set_keep(struct provider_registry *registry, const json_t *budget);
const struct day_limits *day_set_of(const struct provider_registry *registry);

#endif
