/* Chooses the provider and model of a movement and of its judge. Order: the flag for the movement,
 * the flag for all, the movement's own, the workflow's, the user's default. A model goes with the
 * provider it was written for: another provider chosen by a flag does not get it. Also chooses what
 * confines their programs (core/sandbox_settings.h). */
#include "core/decide.h"
#include "core/evidence.h"
#include "core/movement_limits.h"
#include "core/sandbox_settings.h"
#include "core/step.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define config_str(config, key) json_view(json_at(config, key))

struct str core_model_of(const json_t *config, struct str provider) {
  const json_t *models = json_at(config, "provider_models");
  return json_view(json_object_getn(models, provider.p, provider.n));
}

void core_backend(const struct workflow *wf, const json_t *config, size_t index,
                  struct str *provider, struct str *model) {
  const struct movement *m = &wf->movements[index];
  struct str written = m->provider.n ? m->provider : wf->provider;
  struct str flag = config_str(config, "provider");
  const json_t *own = json_object_getn(json_at(config, "providers"), m->name.p, m->name.n);
  *model = config_str(config, "model");
  if (m->argv != NULL) {
    *provider = STR("command");
    *model = STR("");
    return;
  }
  if (json_is_string(own))
    *provider = json_view(own);
  else if (flag.n > 0)
    *provider = flag;
  else if (written.n > 0)
    *provider = written;
  else
    *provider = config_str(config, "default_provider");
  if (model->n > 0)
    return;
  if (m->model.n > 0 && (written.n == 0 || str_eq(*provider, written)))
    *model = m->model;
  else if (wf->model.n > 0 && m->model.n == 0 &&
           (wf->provider.n == 0 || str_eq(*provider, wf->provider)))
    *model = wf->model;
  else if (str_eq(*provider, config_str(config, "default_provider")))
    *model = config_str(config, "default_model");
  if (model->n == 0)
    *model = core_model_of(config, *provider);
}

void core_judge_backend(const struct workflow *wf, const json_t *config, size_t index,
                        struct str *provider, struct str *model) {
  const struct movement *m = &wf->movements[index];
  struct str own_provider, own_model, flag = config_str(config, "judge_provider");
  core_backend(wf, config, index, &own_provider, &own_model);
  if (flag.n > 0 && m->judge.panel == NULL && !str_eq(flag, m->judge.provider)) {
    *provider = flag;
    *model = own_model;
    if (!str_eq(flag, own_provider))
      *model = core_model_of(config, flag);
    return;
  }
  if (m->judge.provider.n > 0)
    *provider = m->judge.provider;
  else if (m->judge.panel != NULL)
    *provider = json_view(json_array_get(m->judge.panel, 0));
  else
    *provider = m->argv ? STR("") : own_provider;
  if (m->judge.model.n > 0)
    *model = m->judge.model;
  else
    *model = str_eq(*provider, own_provider) ? own_model : STR("");
}

void core_panel_backend(const struct workflow *wf, const json_t *config, size_t index, int vote,
                        struct str *provider, struct str *model) {
  const struct movement *m = &wf->movements[index];
  struct str judge;
  assert(vote > 0);
  core_judge_backend(wf, config, index, &judge, model);
  *provider = json_view(json_array_get(m->judge.panel, (size_t)vote - 1));
  if (!str_eq(*provider, judge))
    *model = core_model_of(config, *provider);
}

void core_reask_backend(const struct workflow *wf, const json_t *config, size_t index,
                        struct str *provider, struct str *model) {
  const struct movement *m = &wf->movements[index];
  const struct structured_config *so = m->structured;
  struct str own_provider, own_model;
  core_backend(wf, config, index, &own_provider, &own_model);
  *provider = m->argv ? STR("") : own_provider;
  if (so->provider.n > 0)
    *provider = so->provider;
  if (so->model.n > 0)
    *model = so->model;
  else
    *model = str_eq(*provider, own_provider) ? own_model : STR("");
}

/* Returns whether the backend itself enforces the shape of its answers. */
static bool enforces(const struct capability *providers, struct str name) {
  const struct capability *c = capability_find(providers, name);
  return c != NULL && strcmp(c->structured, "none") != 0 && strcmp(c->structured, "prompt") != 0;
}

bool core_prompt_schema(const struct workflow *wf, const json_t *config, size_t index,
                        const struct capability *providers) {
  const struct movement *m = &wf->movements[index];
  const json_t *fallback = json_at(config, "fallback");
  struct str provider, model;
  if (m->structured == NULL || m->argv != NULL)
    return false;
  core_backend(wf, config, index, &provider, &model);
  const json_t *lists[] = {m->fallback, wf->fallback,
                           json_object_getn(fallback, provider.p, provider.n)};
  bool enforced = enforces(providers, provider);
  for (size_t i = 0; i < ARRAY_LEN(lists); i++) { /* those that take over get the same prompt */
    JSON_EACH(lists[i], k, name)
      enforced = enforced && enforces(providers, str_from(json_string_value(name)));
  }
  return !enforced;
}

/* --- who takes a call, and who takes over --- */

const char *const *step_argv(const struct movement *m, enum call_purpose purpose, int invariant) {
  if (purpose == PURPOSE_EXECUTE)
    return m->argv;
  if (purpose != PURPOSE_CHECK)
    return NULL;
  return invariants_get(m->structured->invariants, (size_t)invariant - 1)->argv;
}

bool step_is_command(const struct core *core, const struct turn *turn, const struct call *call) {
  return step_argv(core_movement(core, turn), call->purpose, call->invariant) != NULL;
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
    core_judge_backend(wf, core->config, evidence_judge_of(core, turn), provider, model);
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
  if (vote > 0) {
    core_panel_backend(wf, config, movement, vote, &first, &model);
    return has_tool(providers, first);
  }
  core_judge_backend(wf, config, movement, &first, &model);
  bool by_tool = has_tool(providers, first);
  const json_t *list = core_takers(wf, config, movement, true, first);
  JSON_EACH(list, i, name)
    by_tool = by_tool && has_tool(providers, str_from(json_string_value(name)));
  return by_tool;
}

struct str core_next_backend(const struct core *core, const struct turn *turn,
                             const struct call *call) {
  struct str first, model, current = str_from(call->provider);
  bool works = call->purpose == PURPOSE_EXECUTE || call->purpose == PURPOSE_REPORT;
  if (step_is_command(core, turn, call) || call->vote > 0 || /* nobody votes twice */
      (call->purpose == PURPOSE_REPORT && call->resumed) ||  /* nobody else knows the work */
      !has_lists(core->workflow, core->config, core_movement(core, turn)))
    return STR("");
  core_first_backend(core, turn, call, &first, &model);
  const json_t *list = core_takers(core->workflow, core->config,
                                   works ? turn->movement : evidence_judge_of(core, turn),
                                   !works && !is_reask(call), first);
  bool found = str_eq(current, first);
  JSON_EACH(list, i, name) {
    struct str word = {json_string_value(name), json_string_length(name)};
    bool named_before = str_eq(word, first); /* a place counts only if it is the provider's first */
    for (size_t k = 0; k < i && !named_before; k++)
      named_before = json_same(json_array_get(list, k), name);
    if (named_before)
      continue;
    if (found)
      return word;
    found = str_eq(word, current);
  }
  return STR("");
}

/* --- what confines its program --- */

static bool sandbox_level_at(const json_t *object, const char *key, enum sandbox_level *out) {
  const json_t *word = json_object_get(object, key);
  return json_is_string(word) && sandbox_level_from_name(json_view(word), out);
}

static bool sandbox_network_at(const json_t *object, enum sandbox_network *out) {
  const json_t *word = json_object_get(object, "network");
  return json_is_string(word) && sandbox_network_from_name(json_view(word), out);
}

/* Lowers each limit to the one given here if that is smaller. */
static void sandbox_add_limits(struct sandbox_choice *choice, const json_t *limits) {
  int64_t memory = limits_memory_bytes(json_view(json_object_get(limits, "memory")));
  int64_t pids = json_int_at(limits, "pids");
  double cpus = json_number_value(json_object_get(limits, "cpus"));
  if (memory > 0 && (choice->memory_bytes == 0 || memory < choice->memory_bytes))
    choice->memory_bytes = memory;
  if (pids > 0 && (choice->pids == 0 || pids < choice->pids))
    choice->pids = pids;
  if (cpus > 0 && (choice->cpus <= 0 || cpus < choice->cpus))
    choice->cpus = cpus;
}

static bool sandbox_has_limits(const struct sandbox_choice *choice) {
  return choice->memory_bytes > 0 || choice->pids > 0 || choice->cpus > 0;
}

/* Returns them as a user writes them. */
static json_t *limits_as_words(const struct sandbox_choice *choice) {
  json_t *out = json_object();
  if (choice->memory_bytes > 0)
    json_object_set_new(out, "memory",
                        json_sprintf("%" PRId64 "M", choice->memory_bytes / (1024 * 1024)));
  if (choice->cpus > 0)
    json_object_set_new(out, "cpus", json_real(choice->cpus));
  if (choice->pids > 0)
    json_object_set_new(out, "pids", json_integer(choice->pids));
  return out;
}

static json_t *limits_of_call(const struct sandbox_choice *choice) {
  json_t *out = json_object();
  if (choice->memory_bytes > 0)
    json_object_set_new(out, "memory", json_integer(choice->memory_bytes));
  if (choice->cpus > 0)
    json_object_set_new(out, "cpus", json_real(choice->cpus));
  if (choice->pids > 0)
    json_object_set_new(out, "pids", json_integer(choice->pids));
  json_object_set_new(out, "by", json_string(choice->limits_by ? choice->limits_by : "rlimits"));
  return out;
}

/* Narrows a command's choice to what it inherits, unless the user's `commands` lifts that. */
static void sandbox_narrow(const json_t *sandbox, struct sandbox_choice *out) {
  const json_t *inherited = json_object_get(sandbox, "inherited");
  const json_t *commands = json_object_get(sandbox, "commands");
  const enum sandbox_level own_level = out->level;
  const enum sandbox_network own_network = out->network;
  enum sandbox_level level;
  enum sandbox_network network = NETWORK_OPEN;
  if (json_is_string(commands) || !sandbox_level_at(inherited, "level", &level))
    return;
  const json_t *limits = json_object_get(commands, "limits");
  sandbox_add_limits(out, limits ? limits : json_object_get(inherited, "limits"));
  out->home = json_string_value(json_object_get(inherited, "home"));
  if (!sandbox_network_at(commands, &network))
    (void)sandbox_network_at(inherited, &network);
  if (own_level <= level && own_network <= network)
    out->from = json_view_at(inherited, "from");
  out->level = own_level > level ? own_level : level;
  out->network = own_network > network ? own_network : network;
  if (own_level < level)
    out->image = json_view_at(inherited, "image");
}

bool sandbox_choose(const json_t *config, const struct movement *m, const struct capability *c,
                    bool command, struct sandbox_choice *out) {
  const json_t *sandbox = json_object_get(config, "sandbox");
  const json_t *own = c ? json_object_get(json_object_get(sandbox, "providers"), c->name) : NULL;
  *out = (struct sandbox_choice){.asked = true, .from = STR(""), .image = STR("")};
  if (!json_is_object(sandbox) || (!command && (c == NULL || c->held == NULL)))
    return false;
  if (m != NULL && m->has_sandbox)
    out->level = m->sandbox;
  else if (!command && sandbox_level_at(own, "level", &out->level))
    ;
  else if (sandbox_level_at(sandbox, command ? "commands" : "level", &out->level))
    out->asked = json_object_get(sandbox, command ? "commands_asked" : "asked") != NULL;
  else
    out->asked = false;
  if (m != NULL && m->has_network)
    out->network = m->network;
  else if (command ||
           (!sandbox_network_at(own, &out->network) && !sandbox_network_at(sandbox, &out->network)))
    out->network = NETWORK_OPEN;
  if (command)
    sandbox_narrow(sandbox, out);
  else
    out->home = json_string_value(json_object_get(own, "home"));
  out->widened = out->from.n > 0 && ((m != NULL && m->has_sandbox && m->sandbox < out->level) ||
                                     (m != NULL && m->has_network && m->network < out->network));
  const json_t *mechanisms = json_object_get(sandbox, "mechanisms");
  out->mechanism = json_string_value(json_object_get(mechanisms, sandbox_level_name(out->level)));
  const json_t *image = json_object_get(own, "image");
  if (out->level == SANDBOX_CONTAINER && m != NULL && m->image.n > 0)
    out->image = m->image;
  else if (out->level == SANDBOX_CONTAINER && out->image.n == 0)
    out->image = json_view(json_is_string(image) ? image : json_object_get(sandbox, "image"));
  else if (out->network == NETWORK_API &&
           out->mechanism != NULL) /* the mechanism brings its own network */
    out->mechanism = json_string_value(json_object_get(sandbox, "api_by"));
  out->limits_by = json_string_value(json_object_get(sandbox, "limits_by"));
  if (out->level == SANDBOX_CONTAINER && out->mechanism != NULL &&
      strcmp(out->mechanism, "docker") == 0) /* its processes are not our children */
    out->limits_by = out->mechanism;
  if (!command)
    sandbox_add_limits(out, json_object_get(sandbox, "limits"));
  if (m != NULL)
    sandbox_add_limits(out, m->limits);
  return true;
}

json_t *sandbox_of_call(const json_t *config, const struct movement *m, const struct capability *c,
                        bool command) {
  struct sandbox_choice choice;
  if (!sandbox_choose(config, m, c, command, &choice) ||
      (command && choice.level == SANDBOX_OFF && !sandbox_has_limits(&choice)))
    return NULL;
  json_t *out = json_object();
  json_object_set_new(out, "level", json_string(sandbox_level_name(choice.level)));
  json_object_set_new(out, "mechanism", json_string(choice.mechanism));
  if (choice.image.n > 0)
    json_object_set_new(out, "image", json_stringn(choice.image.p, choice.image.n));
  if (choice.network != NETWORK_OPEN)
    json_object_set_new(out, "network", json_string(sandbox_network_name(choice.network)));
  if (choice.home != NULL && choice.level == SANDBOX_GUARD)
    json_object_set_new(out, "home", json_string(choice.home));
  if (choice.from.n > 0)
    json_object_set_new(out, "from", json_text(choice.from));
  if (sandbox_has_limits(&choice))
    json_object_set_new(out, "limits", limits_of_call(&choice));
  return out;
}

/* Narrows what is inherited by what confines one agent. */
static void inherit_from(json_t **inherited, const json_t *config, const struct movement *m,
                         const struct capability *c) {
  struct sandbox_choice agent;
  enum sandbox_level level = SANDBOX_OFF;
  enum sandbox_network network = NETWORK_OPEN;
  const char *home = json_string_value(json_object_get(json_object_get(config, "sandbox"), "home"));
  if (c == NULL || !sandbox_choose(config, m, c, false, &agent) || !c->held->edits ||
      (agent.level == SANDBOX_OFF && !sandbox_has_limits(&agent)))
    return;
  bool is_first = *inherited == NULL;
  if (is_first)
    *inherited = json_object();
  (void)sandbox_level_at(*inherited, "level", &level);
  (void)sandbox_network_at(*inherited, &network);
  if (agent.level > level || is_first) {
    json_object_set_new(*inherited, "from", json_text(m->name));
    json_object_set_new(*inherited, "level", json_string(sandbox_level_name(agent.level)));
    if (agent.image.n > 0)
      json_object_set_new(*inherited, "image", json_text(agent.image));
  }
  if (agent.network > network)
    json_object_set_new(*inherited, "network", json_string(sandbox_network_name(agent.network)));
  home = agent.home ? agent.home : home;
  home = home ? home : "closed";
  if (agent.level > SANDBOX_OFF &&
      (level == SANDBOX_OFF || strcmp(home, "closed") == 0)) /* the narrowest */
    json_object_set_new(*inherited, "home", json_string(home));
  sandbox_add_limits(&agent, json_object_get(*inherited, "limits"));
  if (sandbox_has_limits(&agent))
    json_object_set_new(*inherited, "limits", limits_as_words(&agent));
}

void sandbox_inherit(json_t *config, const struct workflow *wf,
                     const struct capability *providers) {
  json_t *inherited = NULL, *sandbox = json_object_get(config, "sandbox");
  for (size_t i = 0; i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    struct str first, model;
    if (m->argv != NULL || m->child_count > 0 || !m->edit)
      continue;
    core_backend(wf, config, i, &first, &model);
    inherit_from(&inherited, config, m, capability_find(providers, first));
    JSON_EACH(core_takers(wf, config, i, false, first), k, name)
      inherit_from(&inherited, config, m, capability_find(providers, json_view(name)));
  }
  json_t *home = json_object_get(sandbox, "home");
  if (json_same(json_object_get(inherited, "home"), home) ||
      (home == NULL && strcmp(json_word_at(inherited, "home"), "closed") == 0))
    json_object_del(inherited, "home"); /* it says nothing that the user's does not */
  if (inherited != NULL)
    json_object_set_new(sandbox, "inherited", inherited);
}
