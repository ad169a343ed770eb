/* Makes the providers that the user's configuration names. */
#include "host/backends.h"

#include "base/log.h"
#include "base/sha256.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/call_queue.h"
#include "host/daily_usage.h"
#include "host/paths.h"
#include "host/prices.h"
#include "provider/agent/agent.h"
#include "provider/agent/driver.h"
#include "provider/agent/schema_delivery.h"
#include "provider/api/api.h"
#include "provider/child.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void release_profiles(void *owned) {
  profiles_free(owned);
}

/* Writes the path of providers/ in the user's own folder; false if there is no home. */
static bool profiles_folder(char *out, size_t size) {
  char dir[PATHS_BYTES];
  struct err err;
  return paths_config(dir, &err) && snprintf(out, size, "%s/providers", dir) < (int)size;
}

/* Returns true if a name such as `gemini`, both a program and a model API, means the API. The
 * settings decide; without any, the program is meant where it is installed. */
static bool is_api_instead(const struct profile *profile, const json_t *settings) {
  char path[PATHS_BYTES];
  struct err err;
  if (profile->broken != NULL || !api_has_preset(str_from(profile->capability.name)))
    return false;
  if (settings != NULL && !profile_check_settings(profile_ready(profile), settings, &err))
    return true; /* they mean nothing to an agent */
  return json_object_get(settings, "program") == NULL &&
         json_object_get(settings, "transport") == NULL &&
         (profile->program == NULL || !program_find(profile->program, path, sizeof path));
}

/* Notes how far the agent keeps to a permission and to a schema, which depends on its transport. */
static void hold_by_transport(struct provider *provider, const json_t *settings) {
  const struct profile *profile = settings ? provider_profile(provider) : NULL;
  enum transport transport;
  struct err err;
  if (profile != NULL && profile->broken == NULL &&
      driver_transport(profile, settings, &transport, &err)) {
    provider->capability.held = &profile->holds[transport];
    provider->capability.forks = profile_forks(profile, transport);
    provider->capability.structured = schema_delivery_enforced(profile, transport);
  }
}

static bool add_profiles(struct provider_registry *reg, const json_t *settings, struct err *err) {
  char folder[PATHS_BYTES + 16];
  AUTO(err_list_deinit) struct err_list errors = {0};
  struct profiles *profiles =
      profiles_load(profiles_folder(folder, sizeof folder) ? folder : NULL, &errors);
  bool ok = profiles != NULL;
  if (!ok)
    *err = errors.items[0];
  if (ok)
    registry_keep(reg, profiles, release_profiles);
  const struct profile *profile;
  for (size_t i = 0; ok && (profile = profiles_peek(profiles, i)) != NULL; i++) {
    struct provider provider = provider_of_profile(profile);
    hold_by_transport(&provider, json_object_get(settings, profile->capability.name));
    if (is_api_instead(profile, json_object_get(settings, profile->capability.name)))
      continue;
    ok = registry_add(reg, &provider, err);
  }
  return ok;
}

/* Checks the settings now: to find a misspelt one only when a call is made would be too late. */
static bool check_settings(const struct provider *p, struct err *err) {
  const struct profile *profile = p->settings ? provider_profile(p) : NULL;
  enum transport transport;
  return profile == NULL || profile->broken != NULL ||
         (profile_check_settings(profile, p->settings, err) &&
          driver_transport(profile, p->settings, &transport, err));
}

static bool known(const struct provider_registry *reg, const char *name, struct err *err) {
  if (str_eq_c(STR("command"), name))
    return err_set(err, ERR_INVALID,
                   "config.yaml: fallback: provider command runs a movement's own program: nobody "
                   "can take over from it, nor it from another");
  if (registry_find(reg, str_from(name)) != NULL)
    return true;
  (void)registry_unknown(reg, str_from(name), err);
  return err_wrap(err, "config.yaml: fallback");
}

/* Checks what can be checked only when all backends are there. */
static bool backends_check(const struct config *config, const struct provider_registry *reg,
                           struct err *err) {
  const struct provider *p;
  for (size_t i = 0; (p = registry_at(reg, i)) != NULL; i++)
    if (!admission_check(p, err) || !check_settings(p, err))
      return err_wrap(err, "config.yaml");
  const json_t *days = json_object_get(config->budget, "providers");
  JSON_MEMBERS(days, from, list) {
    if (registry_find(reg, str_from(from)) == NULL) {
      (void)registry_unknown(reg, str_from(from), err);
      return err_wrap(err, "config.yaml: budget");
    }
  }
  JSON_MEMBERS(config->fallback, from, list) {
    if (!known(reg, from, err))
      return false;
    JSON_EACH(list, i, to) {
      if (!known(reg, json_string_value(to), err))
        return false;
    }
  }
  return true;
}

struct provider_registry *backends_new(const struct config *config, struct err *err) {
  struct provider_registry *reg = registry_new(config->providers);
  if (!add_profiles(reg, config->providers, err))
    ; /* err has the file and the place */
  else if (!api_register(reg, config->providers, err))
    err_wrap(err, "config.yaml");
  else if (backends_check(config, reg, err)) {
    day_set_keep(reg, config->budget);
    prices_keep(reg);
    return reg;
  }
  registry_free(reg);
  return NULL;
}

void backends_warn(const struct provider_registry *reg) {
  const struct profiles *profiles = registry_kept(reg, release_profiles);
  const struct profile *profile;
  for (size_t i = 0; profiles != NULL && (profile = profiles_peek(profiles, i)) != NULL; i++) {
    const struct err *why = profile->broken;
    if (why != NULL)
      log_warn("%s:%d:%d: %s: provider %s cannot be used", why->file, why->line, why->column,
               why->text, profile->capability.name);
  }
}

const struct profile *backends_profile(const struct provider_registry *reg, const char *name) {
  const struct profiles *profiles = registry_kept(reg, release_profiles);
  return profiles ? profiles_find(profiles, str_from(name)) : NULL;
}

/* --- answers: see the header --- */

/* Opens the provider's file, and gives what it holds if these settings were answered. Returns -1 if
 * it cannot be opened. */
static int backends_open_answered(const struct provider *p, int flags, char hash[SHA256_HEX]) {
  char folder[PATHS_BYTES], path[PATHS_BYTES + SHA256_HEX + 1], name[SHA256_HEX];
  struct err err;
  char *text = json_dump_text(p->settings ? p->settings : json_null(), /* borrowed: it is static */
                              JSON_SORT_KEYS | JSON_ENCODE_ANY);
  sha256_hex(text, strlen(text), NULL, 0, hash);
  free(text);
  sha256_hex(p->capability.name, strlen(p->capability.name), NULL, 0, name);
  if (!paths_state("answered", folder, &err))
    return -1;
  print_into(path, sizeof path, "%s/%s", folder, name);
  return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

bool backends_answered(const struct provider *p) {
  char hash[SHA256_HEX], held[SHA256_HEX] = "";
  int fd = backends_open_answered(p, O_RDONLY, hash);
  bool before = fd >= 0 && read(fd, held, SHA256_HEX - 1) == SHA256_HEX - 1 &&
                memcmp(hash, held, SHA256_HEX) == 0;
  if (fd >= 0)
    (void)close(fd);
  return before;
}

void backends_note_answer(const struct provider *p) {
  char hash[SHA256_HEX];
  int fd = backends_answered(p) ? -1 : backends_open_answered(p, O_WRONLY | O_CREAT, hash);
  if (fd >= 0) {
    (void)!write(fd, hash, SHA256_HEX - 1); /* a part of it means: never */
    (void)close(fd);
  }
}
