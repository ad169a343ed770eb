/* segue sandbox: shows what agents may touch here, and why. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "core/sandbox_settings.h"
#include "host/backends.h"
#include "host/paths.h"
#include "provider/agent/agent.h"
#include "provider/agent/driver.h"
#include "provider/sandbox_policy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints the rules, one kind of access after the other, and what is reached. */
static int sandbox_put(const json_t *out) {
  static const char *const accesses[] = {"write", "read", "closed"};
  const json_t *held = json_object_get(out, "sandbox"), *rule;
  const char *network = cli_text(held, "network");
  size_t i;
  cli_say(stdout, "%s by %s, for %s\n", cli_text(held, "level"), cli_text(held, "mechanism"),
          cli_text(out, "provider"));
  for (size_t k = 0; k < ARRAY_LEN(accesses); k++)
    json_array_foreach(json_object_get(out, "rules"), i, rule)
      if (strcmp(cli_text(rule, "access"), accesses[k]) == 0)
        cli_say(stdout, "%-7s %-44s %s\n", accesses[k], cli_text(rule, "path"),
                cli_text(rule, "why"));
  printf("reach   %s\n", network == NULL ? "everything" : network);
  json_array_foreach(json_object_get(out, "hosts"), i, rule)
    if (network != NULL && strcmp(network, "api") == 0)
      cli_say(stdout, "        %s\n", json_string_value(rule));
  return STATUS_COMPLETE;
}

/* Says what counts for a path, by its real name where it exists. */
static int sandbox_explain(json_t *out, const char *path, bool json) {
  char here[PATHS_BYTES] = "", full[2 * PATHS_BYTES];
  char_auto_t *real = realpath(path, NULL);
  const bool relative = real == NULL && path[0] != '/' && getcwd(here, sizeof here) != NULL;
  print_into(full, sizeof full, "%s%s%s", here, relative ? "/" : "", real ? real : path);
  const json_t *rule = sandbox_policy_rule(json_object_get(out, "rules"), full);
  const char *access_word = rule ? cli_text(rule, "access") : "closed";
  json_auto_t *found =
      json_pack("{so ss ss ss}", "asked", json_io_string(full), "access", access_word, "path",
                rule ? cli_text(rule, "path") : "/", "why", rule ? cli_text(rule, "why") : "");
  if (json)
    json_io_print(found, JSON_IO_TERMINAL);
  else
    cli_say(stdout, "%s: %s, by %s (%s)\n", full, access_word, cli_text(found, "path"),
            cli_text(found, "why"));
  return strcmp(access_word, "closed") == 0 ? STATUS_FAILED : STATUS_COMPLETE;
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
  json_auto_t *config = json_object(), *hosts = json_array();
  config_resolve(user, config);
  json_auto_t *words = sandbox_of_call(config, NULL, c, false);
  if (words == NULL || getcwd(cwd, sizeof cwd) == NULL)
    return cli_refuse("sandbox", "this backend starts no program, or this folder is gone");
  (void)sandbox_level_from_name(str_from(cli_text(words, "level")), &level);
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
  json_auto_t *rules = sandbox_policy_rules(&spec, level, hosts);
  json_auto_t *out = json_pack("{ss sO sO sO}", "provider", c->name, "sandbox", words, "rules",
                               rules, "hosts", hosts);
  if (asked != NULL)
    return sandbox_explain(out, asked, cli_flag(args, "json"));
  if (!cli_flag(args, "json"))
    return sandbox_put(out);
  json_io_print(out, JSON_IO_TERMINAL);
  return STATUS_COMPLETE;
}

static int sandbox_run(const struct cli_args *args) {
  struct config user = {0};
  struct err err = {0};
  int status;
  cli_errors_as_json(cli_flag(args, "json"));
  if (!config_load(&user, &err))
    return cli_fail("sandbox", &err);
  struct provider_registry *registry = backends_new(&user, &err);
  const char *name = cli_value_or(args, "for", user.provider);
  const struct provider *provider =
      registry && name ? registry_find(registry, str_from(name)) : NULL;
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
