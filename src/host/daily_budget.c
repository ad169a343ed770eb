/* Reads what a user's sessions may use in a day. */
#include "host/daily_budget.h"

#include "base/log.h"
#include "format/json_object.h"

#include <stdlib.h>

static const char *const day_units[] = {"tokens", "cost", "time", "calls", NULL};

static bool day_wrong(struct err *err, const char *path, const struct yaml_node *at,
                      const char *what) {
  return err_set_at(err, ERR_FILE, path, at->line, at->column, "%s", what);
}

static bool day_unit_check(const char *path, const struct yaml_pair *pair, struct err *err) {
  static const char *const wanted[] = {"it must be a whole number of tokens, 1 or more",
                                       "it must be a number of US dollars above 0, such as 20",
                                       "it must be a duration of 1ms to 24h, such as 8h",
                                       "it must be a whole number of calls, 1 or more"};
  char text[200];
  size_t i = 0;
  while (day_units[i] != NULL && !str_eq_c(pair->key->text, day_units[i]))
    i++;
  if (day_units[i] == NULL) {
    const char *near = str_nearest(pair->key->text, day_units);
    print_into(text, sizeof text, "a day's budget has no \"%.40s\": %s%s%s", pair->key->text.p,
               near ? "did you mean \"" : "use tokens, cost, time or calls", near ? near : "",
               near ? "\"?" : "");
    return day_wrong(err, path, pair->key, text);
  }
  struct budget budget;
  json_t *one = json_object(), *value = yaml_to_json(pair->value);
  json_object_set_new(one, day_units[i], value);
  budget_read(one, &budget);
  json_decref(one);
  static const enum budget_unit units[] = {BUDGET_TOKENS, BUDGET_COST, BUDGET_TIME, BUDGET_CALLS};
  return budget.limit[units[i]] > 0 || day_wrong(err, path, pair->value, wanted[i]);
}

static bool day_amounts_check(const char *path, const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP || node->count == 0)
    return day_wrong(
        err, path, node,
        "it must be a map of what may be used in a day, such as {tokens: 2000000, cost: 20}");
  for (size_t i = 0; i < node->count; i++)
    if (!day_unit_check(path, &node->pairs[i], err))
      return false;
  return true;
}

static bool day_providers_check(const char *path, const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP)
    return day_wrong(err, path, node,
                     "providers must be a map of names to what each may use in a day, such as "
                     "{claude: {cost: 10}}");
  for (size_t i = 0; i < node->count; i++)
    if (!day_amounts_check(path, node->pairs[i].value, err))
      return false;
  return true;
}

json_t *day_set_read(const char *path, const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP) {
    (void)day_wrong(err, path, node,
                    "budget must be a map: {day: {tokens: 2000000, cost: 20}, providers: "
                    "{claude: {cost: 10}}}");
    return NULL;
  }
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_pair *pair = &node->pairs[i];
    bool ok;
    if (str_eq_c(pair->key->text, "day"))
      ok = day_amounts_check(path, pair->value, err);
    else if (str_eq_c(pair->key->text, "providers"))
      ok = day_providers_check(path, pair->value, err);
    else
      ok = day_wrong(err, path, pair->key,
                     "budget in a configuration has day and providers: write {day: {cost: 20}}");
    if (!ok)
      return NULL;
  }
  return yaml_to_json(node);
}

static void day_limits_free(void *owned) {
  struct day_limits *limits = owned;
  for (size_t i = 0; i < limits->count; i++)
    free(limits->of[i].provider);
  free(limits->of);
  free(limits);
}

void day_set_keep(struct provider_registry *registry, const json_t *budget) {
  const json_t *of = json_at(budget, "providers");
  const char *name;
  json_t *one;
  if (json_object_size(budget) == 0)
    return;
  struct day_limits *limits = xcalloc(1, sizeof *limits);
  budget_read(json_at(budget, "day"), &limits->all);
  limits->of = xcalloc(json_object_size(of) + 1, sizeof *limits->of);
  json_object_foreach((json_t *)of, name, one) {
    struct day_limit *limit = &limits->of[limits->count++];
    limit->provider = xstrdup(name);
    budget_read(one, &limit->budget);
  }
  registry_keep(registry, limits, day_limits_free);
}

const struct day_limits *day_set_of(const struct provider_registry *registry) {
  return registry_kept(registry, day_limits_free);
}
