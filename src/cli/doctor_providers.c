/* Reports which backends could work here, and what the others lack. */
#include "cli/doctor.h"

#include "base/log.h"
#include "host/backends.h"
#include "host/paths.h"
#include "provider/agent/agent.h"
#include "provider/agent/project_files.h"
#include "provider/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Checks one provider. `asked_for` says that the command named it. `agent` says how to install the
 * agent whose name a model API has taken here, or is NULL. */
static void look_at_provider(struct doctor_report *r, const struct provider *provider,
                             const struct backend_probe *p, bool asked_for, const char *wanted,
                             const char *agent) {
  const char *name = provider->capability.name;
  bool is_wanted = wanted != NULL && strcmp(wanted, name) == 0;
  char what[160], text[1200], remedy[800];
  (void)snprintf(what, sizeof what, "provider %s", name);
  if (p->state != PROBE_NO) {
    (void)snprintf(text, sizeof text, "%s%s%s%s%s", p->has_program ? "installed" : p->kind,
                   p->version[0] ? ", version " : "", p->version, p->login[0] ? ", " : "",
                   p->login);
    doctor_find(r, FINDING_OK, what, text, NULL);
    return;
  }
  (void)snprintf(text, sizeof text, "%s%s", p->problem, is_wanted ? " (config.yaml names it)" : "");
  (void)snprintf(remedy, sizeof remedy, "%s%s%s", p->remedy,
                 agent ? "; or install the agent of that name: " : "", agent ? agent : "");
  doctor_find(
      r, asked_for || is_wanted || p->version_old || p->broken ? FINDING_PROBLEM : FINDING_NOTE,
      what, text, remedy);
}

/* Reports a provider whose calls would be refused in this folder. */
static void look_at_project(struct doctor_report *r, const struct provider *provider,
                            const char *wanted) {
  const struct profile *profile = provider_profile(provider);
  const char *name = provider->capability.name;
  enum transport transport;
  char what[160], here[PATHS_BYTES];
  struct err err;
  if (profile == NULL || !agent_transport(profile, provider->settings, &transport, &err) ||
      getcwd(here, sizeof here) == NULL ||
      project_files_check(profile, transport, provider->settings, here, &err))
    return;
  (void)snprintf(what, sizeof what, "provider %s in this folder", name);
  doctor_find(r, wanted != NULL && strcmp(wanted, name) == 0 ? FINDING_PROBLEM : FINDING_NOTE, what,
              err.text, NULL);
}

/* Reports which of readonly, edit and full the provider does not enforce. */
static void look_at_permissions(struct doctor_report *r, const struct provider *provider) {
  char what[160];
  for (int i = 0; i < PERMISSION_COUNT && provider_profile(provider) != NULL; i++) {
    struct buf gap = {0};
    if (capability_gap(&provider->capability, (enum permission)i, true, &gap)) {
      (void)snprintf(what, sizeof what, "provider %s, permission %s", provider->capability.name,
                     permission_name((enum permission)i));
      doctor_find(r, FINDING_NOTE, what, buf_c(&gap), NULL);
    }
    buf_deinit(&gap);
  }
}

static const char *agent_besides(const struct provider_registry *registry,
                                 const struct provider *provider) {
  const struct profile *profile = backends_profile(registry, provider->capability.name);
  bool besides = profile != NULL && provider_profile(provider) == NULL;
  return besides ? json_string_value(json_object_get(profile->keys, "install")) : NULL;
}

/* Prints one line of names for each kind of absent backend that nobody asked for. */
static void doctor_put_absent(struct doctor_report *r, const struct provider_registry *registry,
                              const struct backend_probe *probes, const bool *listed) {
  static const char *const whats[] = {
      [ABSENCE_PROGRAM] = "agents that are not installed",
      [ABSENCE_SETTING] = "agents whose program you have to name",
      [ABSENCE_KEY] = "model APIs without a key",
      [ABSENCE_SERVER] = "model servers that do not answer",
  };
  bool any = false;
  for (size_t kind = ABSENCE_PROGRAM; kind < ARRAY_LEN(whats); kind++) {
    struct buf names = {0};
    const struct provider *p;
    for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++)
      if (listed[i] && probes[i].absence == kind)
        buf_printf(&names, "%s%s", names.n > 0 ? ", " : "", p->capability.name);
    if (names.n > 0)
      doctor_find(r, FINDING_NOTE, whats[kind], buf_c(&names), NULL);
    any = any || names.n > 0;
    buf_deinit(&names);
  }
  if (any)
    printf("         -> segue doctor NAME explains how to set one up\n");
}

/* Takes the backends that the words name, or all without words. Returns false if a word names
 * none. */
static bool doctor_take_words(const struct provider_registry *registry, const struct cli_args *args,
                              bool *taken, size_t count) {
  struct err err;
  for (size_t i = 0; i < count; i++)
    taken[i] = args->word_count == 0;
  for (size_t w = 0; w < args->word_count; w++) {
    size_t i = 0;
    while (i < count && strcmp(registry_at(registry, i)->capability.name, args->words[w]) != 0)
      i++;
    if (i == count) {
      (void)registry_unknown(registry, str_from(args->words[w]), &err);
      (void)cli_fail(args->command->name, &err);
      return false;
    }
    taken[i] = true;
  }
  return true;
}

static size_t doctor_tell_each(struct doctor_report *r, const struct provider_registry *registry,
                               const struct config *user, const struct backend_probe *probes,
                               const bool *taken, const bool *listed, bool named) {
  const char *wanted = user->provider;
  const struct provider *p;
  size_t usable = 0;
  for (int pass = 0; pass < 2; pass++) /* first what is installed or was named */
    for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++) {
      bool first = probes[i].state != PROBE_NO ||
                   (wanted != NULL && strcmp(wanted, p->capability.name) == 0);
      if (!taken[i] || listed[i] || first != (pass == 0))
        continue;
      look_at_provider(r, p, &probes[i], named, wanted, agent_besides(registry, p));
      if (probes[i].state != PROBE_NO) {
        look_at_project(r, p, wanted);
        look_at_permissions(r, p);
      }
      usable += strcmp(probes[i].kind, "built-in") != 0 && probes[i].state == PROBE_OK;
    }
  return usable;
}

bool doctor_providers(struct doctor_report *r, const struct provider_registry *registry,
                      const struct config *user, const struct cli_args *args) {
  size_t count = 0;
  while (registry_at(registry, count) != NULL)
    count++;
  bool *taken = xcalloc(count + 1, sizeof *taken), *listed = xcalloc(count + 1, sizeof *listed);
  bool ok = doctor_take_words(registry, args, taken, count), named = args->word_count > 0;
  if (ok) {
    bool quick = cli_flag(args, "quick"), short_form = !named && !r->json && !cli_flag(args, "all");
    struct backend_probe *probes = quick ? probe_all(registry, false) : probe_some(registry, taken);
    for (size_t i = 0; i < count && short_form; i++) {
      const char *name = registry_at(registry, i)->capability.name;
      listed[i] = probes[i].absence != ABSENCE_NONE &&
                  json_object_get(user->providers, name) == NULL &&
                  (user->provider == NULL || strcmp(user->provider, name) != 0);
    }
    size_t usable = doctor_tell_each(r, registry, user, probes, taken, listed, named);
    doctor_put_absent(r, registry, probes, listed);
    if (user->provider != NULL && registry_find(registry, str_from(user->provider)) == NULL)
      doctor_find(r, FINDING_PROBLEM, "config.yaml", "provider names a backend that does not exist",
                  "segue providers lists the backends");
    if (usable == 0 && !named)
      doctor_find(r, FINDING_PROBLEM, "providers", "no agent or API can be used here",
                  "install one of the agents above, or give an API its key");
    free(probes);
  }
  free(taken);
  free(listed);
  return ok;
}
