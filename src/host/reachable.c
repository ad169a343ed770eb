/* Lists the providers that the movements of a workflow call. */
#include "host/reachable.h"

#include "core/ask.h"
#include "core/decide.h"
#include "format/json_object.h"
#include "judge/chain.h"

const char *reachable_role_name(enum reachable_role role) {
  static const char *const names[] = {"work", "judge", "vote", "correct"};
  return names[role];
}

struct reaching {
  const struct workflow *workflow;
  const json_t *config;
  void (*fn)(void *ctx, const struct reachable_part *part);
  void *ctx;
};

static void reachable_add(struct reachable_part *part, struct str provider, struct str model) {
  for (size_t i = 0; i < part->count && part->role != REACHABLE_VOTE; i++)
    if (str_eq(part->who[i].provider, provider))
      return;
  if (part->count < REACHABLE_WHO_COUNT)
    part->who[part->count++] = (struct reachable_who){provider, model};
}

static bool reachable_needs_judge(const struct movement *m) {
  if (ask_needs_no_judge(m))
    return false;
  const struct chain_spec spec = {.rules = m->rules,
                                  .rule_count = m->rule_count,
                                  .movement = m->name,
                                  .stages = m->judge.stages,
                                  .stage_count = m->judge.stage_count};
  return chain_needs_judge(&spec) ||
         (m->structured != NULL && invariants_need(m->structured->invariants, INVARIANT_AI));
}

static void reachable_one(const struct reaching *r, struct reachable_part part, struct str provider,
                          struct str model) {
  part.needed = 1;
  reachable_add(&part, provider, model);
  /* Adds the providers that may take over, each with the model that the user gave it. */
  const json_t *list = core_takers(r->workflow, r->config, part.movement,
                                   part.role == REACHABLE_JUDGE, part.who[0].provider);
  const json_t *models = json_object_get(r->config, "provider_models");
  const json_t *name;
  size_t i;
  json_array_foreach((json_t *)list, i, name) {
    struct str word = json_view(name);
    reachable_add(&part, word, json_view(json_object_getn(models, word.p, word.n)));
  }
  r->fn(r->ctx, &part);
}

static void reachable_panel(const struct reaching *r, struct reachable_part part) {
  const struct movement *m = &r->workflow->movements[part.movement];
  struct str provider, model;
  part.role = REACHABLE_VOTE;
  part.needed = (size_t)m->judge.agree;
  for (size_t vote = 1; vote <= json_array_size(m->judge.panel); vote++) {
    core_panel_backend(r->workflow, r->config, part.movement, (int)vote, &provider, &model);
    reachable_add(&part, provider, model);
  }
  r->fn(r->ctx, &part);
}

static void reachable_movement(const struct reaching *r, size_t i) {
  const struct movement *m = &r->workflow->movements[i];
  struct str provider, model, own;
  core_backend(r->workflow, r->config, i, &own, &model);
  bool written = str_eq(own, m->provider.n ? m->provider : r->workflow->provider);
  const struct reachable_part work = {.movement = i,
                                      .role = REACHABLE_WORK,
                                      .options = m->options,
                                      .section = "",
                                      .chosen = !written};
  if (m->argv == NULL && m->ask == NULL && m->child_count == 0)
    reachable_one(r, work, own, model);
  if (reachable_needs_judge(m)) {
    struct reachable_part part = {
        .movement = i, .role = REACHABLE_JUDGE, .options = m->judge.options, .section = "judge."};
    core_judge_backend(r->workflow, r->config, i, &provider, &model);
    if (m->judge.provider.n == 0 && m->judge.panel == NULL)
      part.section = "", part.chosen = !written;
    if (m->judge.panel != NULL)
      reachable_panel(r, part);
    else
      reachable_one(r, part, provider, model);
  }
  if (m->structured != NULL && m->structured->max_reasks > 0) {
    struct reachable_part part = {
        .movement = i, .role = REACHABLE_CORRECT, .section = "structured_output.reask."};
    core_reask_backend(r->workflow, r->config, i, &provider, &model);
    if (m->structured->provider.n == 0)
      part.section = "", part.chosen = !written;
    reachable_one(r, part, provider, model);
  }
}

void reachable_each(const struct workflow *workflow, const json_t *config, const bool *reachable,
                    void (*fn)(void *ctx, const struct reachable_part *part), void *ctx) {
  const struct reaching r = {workflow, config, fn, ctx};
  for (size_t i = 0; i < workflow->movement_count; i++)
    if (reachable[i])
      reachable_movement(&r, i);
}
