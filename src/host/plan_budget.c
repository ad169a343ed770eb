/* Tells the budgets of a workflow before it runs. */
#include "host/plan_budget.h"

#include "base/log.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

static void add_limits(json_t *list, const json_t *budget, const struct movement *m) {
  if (budget == NULL)
    return;
  json_t *one = json_object();
  json_put(one, "of", json_string(m ? "movement" : "session"));
  if (m != NULL)
    json_put(one, "movement", json_text(m->name));
  json_object_set(one, "limits", (json_t *)budget);
  json_array_append_new(list, one);
}

json_t *plan_budget(const struct workflow *wf) {
  json_t *list = json_array(), *movement;
  const json_t *movements = json_at(wf->doc, "movements"), *child;
  size_t i, k;
  add_limits(list, json_at(wf->doc, "budget"), NULL);
  json_array_foreach((json_t *)movements, i, movement) {
    add_limits(list, json_at(movement, "budget"), &wf->movements[i]);
    json_array_foreach(json_at(movement, "parallel"), k, child) add_limits(
        list, json_at(child, "budget"), &wf->movements[wf->movements[i].first_child + k]);
  }
  if (json_array_size(list) > 0)
    return json_pack("{so s[]}", "limits", list, "unseen");
  json_decref(list);
  return json_null();
}

static bool bounds(const struct budget *budget, enum budget_unit unit) {
  return budget != NULL && (budget->limit[unit] >= 0 || budget->call[unit] >= 0);
}

/* Returns true if a budget that applies to this movement limits this unit. */
static bool is_bounded(const struct workflow *wf, size_t movement, enum budget_unit unit) {
  const struct movement *m = &wf->movements[movement];
  return bounds(wf->budget, unit) || bounds(m->budget, unit) ||
         (m->group != NO_GROUP && bounds(wf->movements[m->group].budget, unit));
}

static void add_unseen(json_t *budget, const char *what, struct str provider, const char *why) {
  json_t *unseen = json_object_get(budget, "unseen");
  struct buf text = {0};
  buf_printf(&text, "%s of " STR_FMT " (%s)", what, STR_ARG(provider), why);
  json_t *word = json_text(buf_view(&text));
  bool known = false;
  for (size_t i = 0; i < json_array_size(unseen); i++)
    known = known || json_same(json_array_get(unseen, i), word);
  if (!known)
    json_array_append(unseen, word);
  json_decref(word);
  buf_deinit(&text);
}

void plan_budget_see(json_t *budget, const struct workflow *wf, const json_t *config,
                     const struct reach_part *part, const struct provider_registry *registry) {
  const json_t *prices = json_at(config, "prices");
  bool tokens = is_bounded(wf, part->movement, BUDGET_TOKENS);
  bool cost = is_bounded(wf, part->movement, BUDGET_COST);
  for (size_t i = 0; i < part->count && (tokens || cost); i++) {
    const struct reach_who *who = &part->who[i];
    const struct provider *p = registry_find(registry, who->provider);
    const char *model = who->model.n > 0 ? who->model.p : "";
    if (p == NULL || str_eq_c(who->provider, "script") || str_eq_c(who->provider, "command"))
      continue;
    if (tokens && p->capability.tells_no_tokens)
      add_unseen(budget, "tokens", who->provider, "it reports none");
    if (cost && json_object_getn(prices, model, who->model.n) == NULL)
      add_unseen(budget, "cost", who->provider, "no price for its model, and it may report none");
  }
}
