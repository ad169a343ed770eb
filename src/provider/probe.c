/* Finds out whether a backend is installed and could be used. */
#include "provider/probe.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"
#include "os/loop.h"
#include "os/tmpdir.h"
#include "provider/agent/agent.h"
#include "provider/agent/driver.h"
#include "provider/agent/program_version.h"
#include "provider/agent/schema_delivery.h"
#include "provider/api/api.h"
#include "provider/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- what is looked at --- */

static bool find_login(const struct profile *profile, const json_t *settings,
                       struct backend_probe *p) {
  const json_t *login = json_object_get(profile->keys, "login");
  const json_t *names[] = {json_object_get(login, "env"), json_object_get(settings, "env")};
  const json_t *files = json_object_get(login, "files"), *set = json_object_get(settings, "set");
  for (size_t k = 0; k < ARRAY_LEN(names); k++)
    for (size_t i = 0; i < json_array_size(names[k]); i++) {
      const char *name = json_string_value(json_array_get(names[k], i)), *value = getenv(name);
      if ((value != NULL && value[0] != '\0') || json_object_get(set, name) != NULL) {
        print_into(p->login, sizeof p->login, "%s is set", name);
        return true;
      }
    }
  for (size_t i = 0; i < json_array_size(files); i++) {
    const char *file = json_string_value(json_array_get(files, i));
    char path[1024];
    bool known = profile_expand(profile, settings, file, path, sizeof path);
    if (known && access(path, F_OK) == 0) {
      print_into(p->login, sizeof p->login, "%s", file[0] == '$' ? path : file);
      return true;
    }
    if (known && file[0] == '$')
      break; /* the client has been told to look there alone */
  }
  return login == NULL;
}

static void probe_agent(const struct provider *provider, const struct profile *profile,
                        struct backend_probe *p) {
  const char *name = provider->capability.name;
  const json_t *login = json_object_get(profile->keys, "login");
  const char *how = json_string_value(json_object_get(login, "how"));
  const char *minimum = version_minimum(profile);
  enum transport transport = profile->preferred;
  struct err err;
  p->kind = "agent";
  p->has_program = true;
  if (profile->broken != NULL) {
    const struct err *why = profile->broken;
    p->installed = false;
    p->broken = true;
    p->state = PROBE_NO;
    print_into(p->problem, sizeof p->problem, "%s:%d:%d: %s", why->file, why->line, why->column,
               why->text);
    print_into(p->remedy, sizeof p->remedy, "correct the file, or remove it");
    return;
  }
  if (!driver_transport(profile, provider->settings, &transport, &err))
    transport = profile->preferred;
  const char *program = profile_program(profile, transport, provider->settings);
  const char *install = profile_install(profile, transport);
  p->transport = transport_name(transport);
  p->schema = schema_delivery_enforced(profile, transport);
  print_into(p->minimum, sizeof p->minimum, "%s", minimum ? minimum : "");
  p->installed = program != NULL && program_find(program, p->program, sizeof p->program);
  if (program == NULL) {
    p->state = PROBE_NO;
    p->absence = ABSENCE_SETTING;
    print_into(p->problem, sizeof p->problem, "no program is set");
    print_into(p->remedy, sizeof p->remedy,
               "write providers: {%s: {program: [PROGRAM, ARGUMENT]}} in config.yaml", name);
  } else if (!p->installed) {
    p->state = PROBE_NO;
    p->absence = ABSENCE_PROGRAM;
    print_into(p->problem, sizeof p->problem, "the program %.100s is not installed", program);
    print_into(p->remedy, sizeof p->remedy,
               "%s%ssay where it is: providers: {%s: {program: /PATH}} in config.yaml",
               install ? install : "", install ? "; or " : "", name);
  } else if (!find_login(profile, provider->settings, p)) {
    p->state = PROBE_NO;
    print_into(p->problem, sizeof p->problem, "there is no sign of a key or a login");
    print_into(p->remedy, sizeof p->remedy, "%s", how ? how : "log in with the program itself");
  }
}

/* --- versions --- */

struct probe_asking {
  struct backend_probe *probe;
  const struct provider *provider;
};

void probe_put_version(struct backend_probe *p, const struct provider *provider,
                       const char *version) {
  const struct profile *profile = provider_profile(provider);
  const char *install = json_string_value(json_object_get(profile->keys, "install"));
  print_into(p->version, sizeof p->version, "%s", version);
  if (p->minimum[0] == '\0' || !version_older(version, p->minimum))
    return;
  p->version_old = true;
  p->state = PROBE_NO;
  print_into(p->problem, sizeof p->problem, "version %s is too old: %s or newer is needed",
             p->version, p->minimum);
  print_into(p->remedy, sizeof p->remedy, "%s", install ? install : "install a newer one");
}

static void probe_on_version(void *ctx, struct process_result *r) {
  struct probe_asking *asking = ctx;
  struct backend_probe *p = asking->probe;
  const char *program = p->program;
  char version[sizeof p->version];
  if (version_read(r, version, sizeof version))
    probe_put_version(p, asking->provider, version);
  if (p->version_old)
    return;
  if (r->why != PROCESS_END_EXITED || r->exit_code != 0) {
    struct str said = str_trim(buf_view(&r->err));
    struct buf safe = {0};
    buf_safe(&safe, said.n > 120 ? (struct str){said.p, 120} : said, false);
    p->state = PROBE_NO;
    print_into(p->problem, sizeof p->problem, "%.100s --version does not work (%s)%s%.120s",
               program,
               r->why == PROCESS_END_EXITED ? "its exit status is not 0" : process_end_name(r->why),
               safe.n ? ": " : "", buf_c(&safe));
    print_into(p->remedy, sizeof p->remedy, "run it by hand and see; install it again");
    buf_deinit(&safe);
  }
}

static void probe_ask_version(struct process_table *table, const char *tmpdir,
                              struct probe_asking *asking, const struct provider *provider) {
  AUTO(arena_deinit) struct arena arena = {0};
  struct err err;
  const char *const *words =
      version_words(provider_profile(provider), asking->probe->program, provider->settings, &arena);
  const char *const *envp = process_env_build(&arena, tmpdir, NULL, NULL, &err);
  const struct process_spec spec = {.argv = words,
                                    .cwd = tmpdir, /* away from any project's configuration */
                                    .envp = envp,
                                    .stdout_max = LIMIT_VERSION_BYTES,
                                    .stderr_max = LIMIT_VERSION_BYTES,
                                    .wall_ms = LIMIT_PROBE_WALL_MS};
  if (envp == NULL || process_start(table, &spec, NULL, probe_on_version, asking, &err) == NULL) {
    asking->probe->state = PROBE_NO;
    print_into(asking->probe->problem, sizeof asking->probe->problem, "%.300s", err.text);
  }
}

static void on_api(void *ctx, struct api_probe_result *r) {
  struct backend_probe *p = ctx;
  json_decref(r->models);
  r->models = NULL;
  p->state = r->class == CLASS_NONE ? PROBE_OK : PROBE_NO;
  print_into(p->version, sizeof p->version, "%s", r->version);
  print_into(p->login, sizeof p->login, "%.159s", r->base_url);
  if (p->state == PROBE_NO) {
    if (r->status == 0 && r->class == CLASS_AUTH)
      p->absence = ABSENCE_KEY;
    if (!r->reachable && !r->keyed && r->class == CLASS_NETWORK)
      p->absence = ABSENCE_SERVER;
    print_into(p->problem, sizeof p->problem, "%s: %.250s", error_class_name(r->class), r->message);
    print_into(p->remedy, sizeof p->remedy,
               "start it or give its key; another address goes into base_url under providers in "
               "config.yaml");
  }
}

static void ask_versions(const struct provider_registry *registry, struct backend_probe *probes,
                         size_t count, const bool *wanted) {
  uv_loop_t loop;
  struct err err;
  struct probe_asking *asking = xcalloc(count + 1, sizeof *asking);
  char_auto_t *tmpdir = tmpdir_make(&err);
  struct process_table *table = NULL;
  if (tmpdir != NULL && loop_init(&loop, &err)) {
    table = process_table_new(&loop, &err);
    struct api *api = api_new(&loop, table);
    for (size_t i = 0; table != NULL && i < count; i++) {
      const struct profile *profile = provider_profile(registry_at(registry, i));
      asking[i] = (struct probe_asking){&probes[i], registry_at(registry, i)};
      if (wanted != NULL && !wanted[i])
        continue;
      if (profile == NULL)
        (void)api_probe(api, registry_at(registry, i), on_api, &probes[i]);
      else if (probes[i].installed)
        probe_ask_version(table, tmpdir, &asking[i], registry_at(registry, i));
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    process_table_free(table);
    api_free(api);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
  }
  if (table == NULL)
    log_warn("versions are not known: %s", err.text);
  if (tmpdir != NULL && !tmpdir_remove(tmpdir, &err))
    log_warn("%s", err.text);
  free(asking);
}

void probe_look(const struct provider *provider, struct backend_probe *p) {
  const struct profile *profile = provider_profile(provider);
  const char *name = provider->capability.name;
  *p = (struct backend_probe){.kind = "built-in",
                              .transport = "",
                              .schema = provider->capability.structured,
                              .installed = true};
  if (profile != NULL) {
    probe_agent(provider, profile, p);
  } else if (strcmp(name, "script") != 0 && strcmp(name, "command") != 0) {
    p->kind = p->transport = "http";
    p->state = PROBE_UNKNOWN;
  }
}

static struct backend_probe *probe_these(const struct provider_registry *registry, bool ask,
                                         const bool *wanted) {
  size_t count = 0;
  while (registry_at(registry, count) != NULL)
    count++;
  struct backend_probe *probes = xcalloc(count + 1, sizeof *probes);
  for (size_t i = 0; i < count; i++)
    probe_look(registry_at(registry, i), &probes[i]);
  if (ask)
    ask_versions(registry, probes, count, wanted);
  return probes;
}

struct backend_probe *probe_all(const struct provider_registry *registry, bool ask) {
  return probe_these(registry, ask, NULL);
}

struct backend_probe *probe_some(const struct provider_registry *registry, const bool *wanted) {
  return probe_these(registry, true, wanted);
}

static void probe_put_text(json_t *object, const char *name, const char *text) {
  json_object_set_new(object, name, text[0] ? json_text(str_from(text)) : json_null());
}

json_t *probe_json(const struct backend_probe *p, const struct provider *provider) {
  json_t *out = json_object();
  probe_put_text(out, "name", provider->capability.name);
  probe_put_text(out, "kind", p->kind);
  probe_put_text(out, "summary", provider->capability.summary);
  json_object_set_new(out, "installed", json_boolean(p->installed));
  probe_put_text(out, "program", p->program);
  probe_put_text(out, "version", p->version);
  probe_put_text(out, "minimum", p->minimum);
  json_object_set_new(out, "usable",
                      p->state == PROBE_UNKNOWN ? json_null() : json_boolean(p->state == PROBE_OK));
  probe_put_text(out, "login", p->login);
  probe_put_text(out, "schema", p->schema);
  probe_put_text(out, "transport", p->transport);
  probe_put_text(out, "problem", p->problem);
  probe_put_text(out, "remedy", p->remedy);
  return out;
}
