/* segue sandbox: shows what agents may touch here, and why. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "core/sandbox_settings.h"
#include "host/backends.h"
#include "host/config.h"
#include "host/paths.h"
#include "host/sandbox_config.h"
#include "provider/agent/agent.h"
#include "provider/agent/driver.h"
#include "provider/sandbox_policy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Prints the rules of one kind of access. */
static void sandbox_put_rules(const json_t *rules, const char *access) {
  const json_t *rule;
  size_t i;
  const char *last = "";
  json_array_foreach((json_t *)rules, i, rule) {
    const char *path = cli_text(rule, "path");
    if (strcmp(cli_text(rule, "access"), access) != 0 || strcmp(path, last) == 0)
      continue;
    cli_say(stdout, "%-7s %-44s %s\n", last[0] ? "" : access, path, cli_text(rule, "why"));
    last = path;
  }
}

static int sandbox_put(const json_t *out) {
  static const char *const accesses[] = {"write", "read", "closed"};
  const json_t *held = json_object_get(out, "sandbox"), *hosts = json_object_get(out, "hosts"),
               *host, *rule = json_object_get(out, "explain");
  const char *network = cli_text(held, "network");
  size_t i;
  if (rule != NULL) {
    cli_say(stdout, "%s: %s, by %s (%s)\n", cli_text(rule, "asked"), cli_text(rule, "access"),
            cli_text(rule, "path"), cli_text(rule, "why"));
    return strcmp(cli_text(rule, "access"), "closed") == 0 ? STATUS_FAILED : STATUS_COMPLETE;
  }
  cli_say(stdout, "%s by %s, for %s\n", cli_text(held, "level"), cli_text(held, "mechanism"),
          cli_text(out, "provider"));
  for (i = 0; i < ARRAY_LEN(accesses); i++)
    sandbox_put_rules(json_object_get(out, "rules"), accesses[i]);
  printf("%-7s %s\n", "reach", network == NULL ? "everything" : network);
  json_array_foreach(hosts, i, host)
    if (network != NULL && strcmp(network, "api") == 0)
      cli_say(stdout, "%-7s %s\n", "", json_string_value(host));
  return STATUS_COMPLETE;
}

/* Adds what counts for a path, by its real name where it exists. */
static void sandbox_explain(json_t *out, const char *path) {
  char here[PATHS_BYTES] = "", full[2 * PATHS_BYTES];
  char_auto_t *real = realpath(path, NULL);
  if (real == NULL && path[0] != '/' && getcwd(here, sizeof here) != NULL)
    print_into(full, sizeof full, "%s/%s", here, path);
  else
    print_into(full, sizeof full, "%s", real ? real : path);
  const json_t *rule = sandbox_policy_rule(json_object_get(out, "rules"), full);
  json_t *found = rule ? json_copy((json_t *)rule)
                       : json_pack("{ss ss ss}", "path", "/", "access", "closed", "why", "strict");
  json_object_set_new(found, "asked", json_io_string(full));
  json_object_set_new(out, "explain", found);
  json_object_del(out, "rules");
}

static int sandbox_show(const struct cli_args *args, const struct config *user,
                        const struct provider *provider) {
  static const struct held none = {.edits = true};
  static const struct capability command = {.name = "a command", .held = &none};
  const struct capability *c = provider ? &provider->capability : &command;
  const struct profile *profile = provider ? provider_profile(provider) : NULL;
  const char *argv[] = {NULL, NULL}, *asked = cli_value(args, "explain");
  char cwd[PATHS_BYTES];
  struct err err = {0};
  enum transport transport;
  enum sandbox_level level = SANDBOX_OFF;
  json_auto_t *config = json_object(), *out = json_object();
  if (getcwd(cwd, sizeof cwd) == NULL)
    return cli_refuse("sandbox", "this folder is gone");
  config_resolve(user, config);
  json_t *words = sandbox_of_call(config, NULL, c, false);
  (void)sandbox_level_from_name(str_from(cli_text(words, "level") ? cli_text(words, "level") : ""),
                                &level);
  if (profile != NULL && driver_transport(profile, provider->settings, &transport, &err))
    argv[0] = profile_program(profile, transport, provider->settings);
  const struct provider_env env = {.sandbox = json_object_get(config, "sandbox")};
  const struct call_request request = {.sandbox = words, .edit = true};
  const struct sandbox_policy_spec spec = {
      .env = &env,
      .request = &request,
      .cwd = cwd,
      .argv = argv,
      .envp = (const char *const *)environ,
      .state = profile ? json_object_get(profile->keys, "state") : NULL,
      .hosts = profile ? json_object_get(profile->keys, "hosts") : NULL};
  json_t *hosts = json_array();
  json_object_set_new(out, "provider", json_string(c->name));
  json_object_set_new(out, "sandbox", words);
  json_object_set_new(out, "rules",
                      level == SANDBOX_OFF
                          ? json_pack("[{ss ss ss}]", "path", "/", "access", "write", "why", "off")
                          : sandbox_policy_rules(&spec, level, hosts));
  json_object_set_new(out, "hosts", hosts);
  if (asked != NULL)
    sandbox_explain(out, asked);
  if (!cli_flag(args, "json"))
    return sandbox_put(out);
  json_io_print(out, JSON_IO_TERMINAL);
  return STATUS_COMPLETE;
}

static int sandbox_run(const struct cli_args *args) {
  struct config user = {0};
  struct err err = {0};
  cli_errors_as_json(cli_flag(args, "json"));
  if (!config_load(&user, &err))
    return cli_fail("sandbox", &err);
  struct provider_registry *registry = backends_new(&user, &err);
  const char *name = cli_value_or(args, "for", user.provider);
  const struct provider *provider =
      registry && name ? registry_find(registry, str_from(name)) : NULL;
  int status;
  if (registry != NULL && name != NULL && provider == NULL)
    (void)registry_unknown(registry, str_from(name), &err);
  if (registry == NULL || (name != NULL && provider == NULL))
    status = cli_fail("sandbox", &err);
  else
    status = sandbox_show(args, &user, provider);
  registry_free(registry);
  config_deinit(&user);
  return status;
}

const struct cli_command cmd_sandbox = {COMMAND_SANDBOX, .run = sandbox_run};
