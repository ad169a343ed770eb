/* segue providers: shows which backends there are, what a profile says and what a recording
 * means. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "host/backends.h"
#include "os/clock.h"
#include "provider/agent/agent.h"
#include "provider/agent/classify.h"
#include "provider/agent/replay_recording.h"
#include "provider/probe.h"

#include <stdlib.h>
#include <string.h>

/* --- list --- */

static void providers_print_row(const struct backend_probe *p, const struct provider *provider,
                                bool colours) {
  const char *state = "no", *installed = "-", *unknown = "-";
  enum colour colour = COLOUR_DIM;
  buf_auto_t version = {0};
  if (p->state == PROBE_OK) {
    state = "yes";
    colour = COLOUR_GREEN;
  } else if (p->state == PROBE_UNKNOWN) {
    state = "?";
    colour = COLOUR_YELLOW;
  }
  if (p->has_program) {
    installed = p->installed ? "yes" : "no";
    unknown = p->installed ? "?" : "-";
  }
  (void)cli_fit(&version, str_from(p->version[0] ? p->version : unknown), 12);
  printf("%-12s %-8s %-9s %-12s %s%-6s%s %-10s %s\n", provider->capability.name, p->kind, installed,
         buf_c(&version), cli_paint(colours, colour), state, cli_paint(colours, COLOUR_NONE),
         p->schema, p->transport);
}

static int list_names(const struct provider_registry *registry) {
  const struct provider *p;
  for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++)
    printf("%s\n", p->capability.name);
  return STATUS_COMPLETE;
}

/* Says where profiles have mistakes. Returns true if there are any. */
static bool say_broken(const struct provider_registry *registry) {
  const struct provider *p;
  bool any = false;
  (void)fflush(stdout);
  for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++) {
    const struct profile *profile = provider_profile(p);
    if (profile != NULL && profile->broken != NULL) {
      cli_print_file_error(profile->broken, "error");
      any = true;
    }
  }
  return any;
}

static int providers_list(const struct cli_args *args, const struct provider_registry *registry) {
  bool json = cli_flag(args, "json"), colours = cli_colours(1);
  struct backend_probe *probes = probe_all(registry, !cli_flag(args, "quick"));
  const struct provider *p;
  json_auto_t *all = json_array();
  if (!json)
    printf("%-12s %-8s %-9s %-12s %-6s %-10s %s\n", "NAME", "KIND", "INSTALLED", "VERSION",
           "USABLE", "SCHEMA BY", "TRANSPORT");
  for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++) {
    if (json)
      json_array_append_new(all, probe_json(&probes[i], p));
    else
      providers_print_row(&probes[i], p, colours);
  }
  if (json) {
    json_auto_t *out = json_pack("{s:O}", "providers", all);
    json_io_print(out, JSON_IO_TERMINAL);
  } else {
    printf(
        "\nsegue doctor says what to do about each; segue providers show NAME prints a profile.\n");
  }
  free(probes);
  return say_broken(registry) ? STATUS_USAGE : STATUS_COMPLETE;
}

/* --- show --- */

static const struct profile *find_profile(const struct provider_registry *registry,
                                          const char *name, struct err *err) {
  const struct provider *p = registry_find(registry, str_from(name));
  const struct profile *profile = p ? provider_profile(p) : NULL;
  if (p == NULL)
    (void)registry_unknown(registry, str_from(name), err);
  if (p != NULL && profile == NULL) /* a model API has taken this name here */
    profile = backends_profile(registry, name);
  if (p != NULL && profile == NULL)
    err_set(err, ERR_USAGE, "provider %s has no profile", name);
  if (profile != NULL && profile->broken != NULL) {
    *err = *profile->broken;
    return NULL;
  }
  return profile;
}

/* Prints what is wrong in a file, or else what failed. */
static int providers_fail(const struct err *err) {
  if (err->file[0] == '\0')
    return cli_fail("providers", err);
  cli_print_file_error(err, "error");
  return STATUS_USAGE;
}

static int providers_show(const struct cli_args *args, const struct provider_registry *registry) {
  struct err err = {0};
  if (cli_flag(args, "schema")) {
    json_auto_t *schema = profile_schema();
    json_io_print(schema, JSON_IO_TERMINAL);
    return STATUS_COMPLETE;
  }
  if (args->word_count != 2)
    return cli_refuse("providers", "name one: segue providers show NAME");
  const struct profile *profile = find_profile(registry, args->words[1], &err);
  if (profile == NULL)
    return cli_fail("providers", &err);
  if (cli_flag(args, "json")) {
    json_io_print(profile->keys, JSON_IO_TERMINAL);
    return STATUS_COMPLETE;
  }
  (void)fwrite(profile->source.p, 1, profile->source.n, stdout);
  return STATUS_COMPLETE;
}

/* --- test --- */

static void print_news(void *ctx, const struct provider_news *news) {
  (void)ctx;
  json_io_put(replay_news_json(news));
}

static int test(const struct cli_args *args, const struct provider_registry *registry) {
  const char *path = cli_value(args, "transcript"), *name = cli_value(args, "transport");
  AUTO(transcript_deinit) struct transcript t = {0};
  AUTO(call_result_deinit) struct call_result result = {0};
  struct err err = {0};
  enum transport transport = TRANSPORT_EXEC;
  if (args->word_count != 2 || path == NULL)
    return cli_refuse("providers",
                      "name one, and a recorded run: segue providers test NAME --transcript FILE");
  if (name != NULL && !transport_from_name(str_from(name), &transport))
    return cli_refuse("providers", "--transport must be exec, native or acp, not \"%.40s\"", name);
  const struct profile *profile = find_profile(registry, args->words[1], &err);
  if (profile == NULL)
    return cli_fail("providers", &err);
  if (!transcript_load(&t, path, &err))
    return providers_fail(&err);
  bool ok = replay(&t, profile, transport, print_news, NULL, &result, &err);
  if (ok) {
    classify_settle(&result, clock_real_ms()); /* this is what happens when a call ends */
    json_io_put(replay_end_json(&result));
  }
  return cli_done("providers", ok, &err);
}

static int providers_run(const struct cli_args *args) {
  AUTO(config_deinit) struct config user = {0};
  struct err err = {0};
  int status;
  struct provider_registry *registry = NULL;
  if (!config_load(&user, &err))
    return providers_fail(&err);
  registry = backends_new(&user, &err);
  const char *verb = args->word_count > 0 ? args->words[0] : "list";
  if (registry == NULL) {
    status = providers_fail(&err);
  } else if (strcmp(verb, "list") == 0 && args->word_count < 2) {
    status = cli_flag(args, "names") ? list_names(registry) : providers_list(args, registry);
  } else if (strcmp(verb, "show") == 0) {
    status = providers_show(args, registry);
  } else if (strcmp(verb, "test") == 0) {
    status = test(args, registry);
  } else {
    bool known = registry_find(registry, str_from(verb)) != NULL;
    status = cli_refuse("providers",
                        "providers takes list, show NAME or test NAME, not \"%.60s\"%s%.60s", verb,
                        known ? ": write segue providers show " : "", known ? verb : "");
  }
  registry_free(registry);
  return status;
}

const struct cli_command cmd_providers = {COMMAND_PROVIDERS, .run = providers_run};
