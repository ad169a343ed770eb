/* Chooses the first provider for a call, and the one that takes over if it cannot go on. */
#include "core/step.h"

#include "format/json_object.h"
#include "format/json_value.h"

const char *const *step_argv(const struct movement *m, enum call_purpose purpose, int invariant) {
  if (purpose == PURPOSE_EXECUTE)
    return m->argv;
  if (purpose != PURPOSE_CHECK)
    return NULL;
  return invariants_get(m->structured->invariants, (size_t)invariant - 1)->argv;
}

bool step_is_command(const struct core *core, const struct turn *turn, const struct call *call) {
  return step_argv(&core->workflow->movements[turn->movement], call->purpose, call->invariant) !=
         NULL;
}

static bool is_reask(const struct call *call) {
  return call->purpose == PURPOSE_REASK && call_generates(call);
}

void core_first_backend(const struct core *core, const struct turn *turn, const struct call *call,
                        struct str *provider, struct str *model) {
  const struct workflow *wf = core->workflow;
  if (step_is_command(core, turn, call)) {
    *provider = STR("command");
    *model = STR("");
  } else if (call->purpose == PURPOSE_REPORT && call->resumed) { /* the one that worked continues */
    *provider = str_from(call->provider);
    *model = str_from(call->model);
  } else if (call->purpose == PURPOSE_EXECUTE || call->purpose == PURPOSE_REPORT) {
    core_backend(wf, core->config, turn->movement, provider, model);
  } else if (call->vote > 0) {
    core_panel_backend(wf, core->config, turn->movement, call->vote, provider, model);
  } else if (is_reask(call)) {
    core_reask_backend(wf, core->config, turn->movement, provider, model);
  } else {
    core_judge_backend(wf, core->config, turn->movement, provider, model);
  }
}

static bool has_tool(const struct capability *providers, struct str name) {
  const struct capability *c = capability_find(providers, name);
  return c != NULL && str_eq_c(str_from(c->structured), "tool");
}

static bool has_lists(const struct workflow *wf, const json_t *config, const struct movement *m) {
  return m->fallback != NULL || wf->fallback != NULL || m->judge.fallback != NULL ||
         json_at(config, "fallback") != NULL;
}

/* Returns the providers that may take over: the file's list if the provider is the one it was
 * written for, else the user's own. */
const json_t *core_takers(const struct workflow *wf, const json_t *config, size_t movement,
                          bool judges, struct str first) {
  const struct movement *m = &wf->movements[movement];
  struct str provider, model;
  const json_t *list = NULL;
  if (!has_lists(wf, config, m))
    return NULL;
  core_backend(wf, config, movement, &provider, &model);
  if (m->fallback && str_eq(provider, m->provider))
    list = m->fallback;
  else if (m->provider.n == 0 && wf->fallback && str_eq(provider, wf->provider))
    list = wf->fallback;
  if (judges && m->judge.provider.n > 0 && str_eq(first, m->judge.provider))
    list = m->judge.fallback;
  else if (!str_eq(first, provider))
    list = NULL;
  return list ? list : json_object_getn(json_at(config, "fallback"), first.p, first.n);
}

bool core_judges_by_tool(const struct workflow *wf, const json_t *config, size_t movement, int vote,
                         const struct capability *providers) {
  struct str first, model;
  const json_t *name;
  size_t i;
  if (vote > 0) {
    core_panel_backend(wf, config, movement, vote, &first, &model);
    return has_tool(providers, first);
  }
  core_judge_backend(wf, config, movement, &first, &model);
  bool by_tool = has_tool(providers, first);
  const json_t *list = core_takers(wf, config, movement, true, first);
  json_array_foreach(list, i, name) {
    by_tool = by_tool && has_tool(providers, str_from(json_string_value(name)));
  }
  return by_tool;
}

/* Returns whether this is the first place in the list that names its provider. */
static bool is_new(const json_t *list, size_t place, struct str first) {
  const json_t *name = json_array_get(list, place);
  bool is_first = str_eq_c(first, json_string_value(name));
  for (size_t i = 0; i < place && !is_first; i++)
    is_first = json_same(json_array_get(list, i), name);
  return !is_first;
}

struct str core_next_backend(const struct core *core, const struct turn *turn,
                             const struct call *call) {
  struct str first, model, current = str_from(call->provider);
  const json_t *name;
  size_t i;
  bool works = call->purpose == PURPOSE_EXECUTE || call->purpose == PURPOSE_REPORT;
  if (step_is_command(core, turn, call) || call->vote > 0 || /* nobody votes twice */
      (call->purpose == PURPOSE_REPORT && call->resumed) ||  /* nobody else knows the work */
      !has_lists(core->workflow, core->config, &core->workflow->movements[turn->movement]))
    return STR("");
  core_first_backend(core, turn, call, &first, &model);
  const json_t *list =
      core_takers(core->workflow, core->config, turn->movement, !works && !is_reask(call), first);
  bool found = str_eq(current, first);
  json_array_foreach(list, i, name) {
    struct str word = {json_string_value(name), json_string_length(name)};
    if (!is_new(list, i, first))
      continue;
    if (found)
      return word;
    found = str_eq(word, current);
  }
  return STR("");
}
