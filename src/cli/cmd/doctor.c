/* Tells what stands in the way of running workflows here, and what to do about it. */
#include "base/log.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "host/backends.h"
#include "host/day_book.h"
#include "host/overrides.h"
#include "host/paths.h"
#include "host/sandbox.h"
#include "os/sandbox_bwrap.h"
#include "provider/agent/agent.h"
#include "provider/agent/project_files.h"
#include "provider/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"json", 'j', NULL, "one JSON object", false},
    {"quick", 'q', NULL, "start no program, so without versions", false},
    {0},
};

enum finding_kind { FINDING_OK, FINDING_NOTE, FINDING_PROBLEM };

struct report {
  json_t *findings;
  bool json, colours;
  size_t problems;
};

static void doctor_find(struct report *r, enum finding_kind kind, const char *what,
                        const char *text, const char *remedy) {
  static const char *const names[] = {"ok", "note", "problem"};
  static const enum colour colours[] = {COLOUR_GREEN, COLOUR_DIM, COLOUR_RED};
  r->problems += kind == FINDING_PROBLEM;
  json_array_append_new(r->findings,
                        json_pack("{s:s, s:o, s:o, s:o}", "state", names[kind], "what",
                                  json_io_string(what), "text", json_io_string(text), "remedy",
                                  remedy ? json_io_string(remedy) : json_null()));
  if (r->json)
    return;
  printf("%s%-8s%s ", cli_paint(r->colours, colours[kind]), names[kind],
         cli_paint(r->colours, COLOUR_NONE));
  cli_put_safe(stdout, what);
  printf(": ");
  cli_put_safe(stdout, text);
  printf("\n");
  if (remedy != NULL && remedy[0] != '\0') {
    printf("         -> ");
    cli_put_safe(stdout, remedy);
    printf("\n");
  }
}

static void look_at_logs(struct report *r) {
  char dir[PATHS_BYTES];
  struct err err;
  struct stat st;
  if (!paths_logs(NULL, dir, &err)) {
    doctor_find(r, FINDING_PROBLEM, "logs", err.text, "set HOME, or SEGUE_LOGS to a folder");
    return;
  }
  bool exists = stat(dir, &st) == 0;
  if (exists && !S_ISDIR(st.st_mode))
    doctor_find(r, FINDING_PROBLEM, "logs", dir,
                "this is no folder: remove it, or set SEGUE_LOGS to another");
  else if (exists && access(dir, W_OK | X_OK) != 0)
    doctor_find(r, FINDING_PROBLEM, "logs", dir,
                "the folder cannot be written to: change its permissions, or set SEGUE_LOGS to "
                "another");
  else
    doctor_find(r, FINDING_OK, "logs", dir, NULL);
}

/* Every agent runs under it; looked for where the process table looks. */
static void look_at_shim(struct report *r) {
  char path[PATHS_BYTES];
  struct err err;
  if (process_find_shim(path, sizeof path, &err))
    doctor_find(r, FINDING_OK, "shim", path, NULL);
  else
    doctor_find(r, FINDING_PROBLEM, "shim", err.text, "install segue again");
}

/* Tells what holds agents here. */
static void look_at_sandbox(struct report *r, const struct config *user) {
  json_auto_t *sandbox = sandbox_resolve(user->sandbox, user->providers);
  const char *level = json_string_value(json_object_get(sandbox, "level"));
  const char *why;
  (void)sandbox_mechanism(user->sandbox, &why);
  const json_t *mechanisms = json_object_get(sandbox, "mechanisms");
  const char *by = json_string_value(json_object_get(mechanisms, level));
  const bool off = strcmp(level, "off") == 0;
  char text[400];
  int version = sandbox_held_version();
  (void)snprintf(text, sizeof text,
                 "agents run with %s%s%s (Landlock %d: files%s%s%s); limits by %s", level,
                 by ? " by " : "", by ? by : "", version, version >= 4 ? ", TCP" : "",
                 version >= 6 ? ", signals, abstract sockets" : "",
                 version < 3 ? "; a file that may not be written can be emptied" : "",
                 json_string_value(json_object_get(sandbox, "limits_by")));
  char place[256];
  const char *no = sandbox_bwrap_why_not(place, sizeof place);
  if (no == NULL)
    doctor_find(r, FINDING_OK, "bubblewrap", place, NULL);
  else
    doctor_find(r, FINDING_NOTE, "bubblewrap", no,
                "without it there is no mechanism: bwrap, and no network: api but in containers");
  if (sandbox_bwrap_alone())
    doctor_find(r, FINDING_NOTE, "AppArmor",
                "it gives namespaces of users to /usr/bin/bwrap and few others: sandboxes that "
                "clients bring themselves (codex, browsers) fail here, podman needs its package",
                "let segue hold them, which needs none: sandbox: guard");
  const char *none, *engine = sandbox_engine(user->sandbox, &none);
  if (engine != NULL)
    doctor_find(r, FINDING_OK, "containers", engine, NULL);
  else
    doctor_find(r, FINDING_NOTE, "containers", none, "without it there is no sandbox: container");
  if (why == NULL)
    doctor_find(r, off ? FINDING_NOTE : FINDING_OK, "sandbox", text, NULL);
  else if (off)
    doctor_find(r, FINDING_NOTE, "sandbox", why, "agents run without one");
  else
    doctor_find(r, FINDING_PROBLEM, "sandbox", why,
                "write sandbox: off in config.yaml, or use a kernel that has it");
}

/* `agent`: how to install the agent of which a model API has the name here, or NULL. */
static void look_at_provider(struct report *r, const struct provider *provider,
                             const struct backend_probe *p, const char *wanted, const char *agent) {
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
                 agent ? "; or install the agent of this name: " : "", agent ? agent : "");
  doctor_find(r, is_wanted || p->version_old || p->broken ? FINDING_PROBLEM : FINDING_NOTE, what,
              text, remedy);
}

/* Would its calls be refused in this folder? */
static void look_at_project(struct report *r, const struct provider *provider, const char *wanted) {
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

/* Does it hold what the words readonly, edit and full say? */
static void look_at_permissions(struct report *r, const struct provider *provider) {
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

static void look_at_providers(struct report *r, const struct provider_registry *registry,
                              const char *wanted, bool versions) {
  struct backend_probe *probes = probe_all(registry, versions);
  const struct provider *p;
  size_t usable = 0;
  bool known = wanted == NULL;
  for (int pass = 0; pass < 2; pass++) /* first what is there, and what the user named */
    for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++) {
      bool is_wanted = wanted != NULL && strcmp(wanted, p->capability.name) == 0;
      if ((probes[i].state != PROBE_NO || is_wanted) != (pass == 0))
        continue;
      look_at_provider(r, p, &probes[i], wanted, agent_besides(registry, p));
      if (probes[i].state != PROBE_NO) {
        look_at_project(r, p, wanted);
        look_at_permissions(r, p);
      }
      usable += strcmp(probes[i].kind, "built-in") != 0 && probes[i].state == PROBE_OK;
      known = known || is_wanted;
    }
  if (!known)
    doctor_find(r, FINDING_PROBLEM, "config.yaml", "provider names a backend that there is not",
                "segue providers lists those that there are");
  if (usable == 0)
    doctor_find(r, FINDING_PROBLEM, "providers", "no agent and no API can be used here",
                "install one of the agents above, or give an API its key");
  free(probes);
}

static void file_problem(struct report *r, const char *what, const struct err *err,
                         const char *remedy) {
  char text[1100];
  if (err->file[0] != '\0')
    (void)snprintf(text, sizeof text, "%s:%d:%d: %s", err->file, err->line, err->column, err->text);
  else
    (void)snprintf(text, sizeof text, "%s", err->text);
  doctor_find(r, FINDING_PROBLEM, what, text, remedy);
}

static void look_at_configuration(struct report *r) {
  char dir[PATHS_BYTES], path[PATHS_BYTES + 16], text[PATHS_BYTES + 64];
  struct err err;
  if (!paths_config(dir, &err))
    return;
  (void)snprintf(path, sizeof path, "%s/config.yaml", dir);
  bool is_there = access(path, F_OK) == 0;
  (void)snprintf(text, sizeof text, "%s%s", path, is_there ? "" : " (not there: none is needed)");
  doctor_find(r, FINDING_OK, "configuration", text, NULL);
}

/* Tells how much of each limit of a day is used. */
static void look_at_day(struct report *r, const struct provider_registry *registry) {
  static const char *const until =
      "sessions stop before their next call until midnight: raise budget in config.yaml, or resume "
      "them tomorrow";
  struct day_book book;
  size_t i;
  json_t *one;
  day_book_init(&book);
  json_t *day = day_book_json(&book, day_set_of(registry));
  day_book_deinit(&book);
  json_array_foreach(day, i, one) {
    struct buf text = {0};
    bool over = json_number_value(json_object_get(one, "used")) >=
                json_number_value(json_object_get(one, "limit"));
    budget_note_tell(one, &text);
    doctor_find(r, over ? FINDING_NOTE : FINDING_OK, "budget", buf_c(&text), over ? until : NULL);
    buf_deinit(&text);
  }
  json_decref(day);
}

static void look_at_overrides(struct report *r) {
  struct err_list warnings = {0};
  overrides_check(&warnings);
  for (size_t i = 0; i < warnings.count; i++)
    doctor_find(r, FINDING_PROBLEM, "prompts", warnings.items[i].text,
                "rename the file, or remove it");
  err_list_deinit(&warnings);
}

static int doctor_run(int argc, char **argv) {
  struct cli_args args;
  struct config user = {0};
  struct err err = {0};
  int status;
  if (!cli_parse(&cmd_doctor, argc, argv, 0, 0, &args, &status))
    return status;
  struct report r = {
      .findings = json_array(), .json = cli_flag(&args, "json"), .colours = cli_colours(1)};
  look_at_logs(&r);
  look_at_shim(&r);
  look_at_overrides(&r);
  if (!config_load(&user, &err)) {
    file_problem(&r, "configuration", &err, "correct the file, or remove it");
  } else {
    look_at_configuration(&r);
    look_at_sandbox(&r, &user);
    struct provider_registry *registry = backends_new(&user, &err);
    if (registry == NULL)
      file_problem(&r, "profiles and settings", &err, "correct the file, or remove it");
    if (registry != NULL)
      look_at_day(&r, registry);
    if (registry != NULL)
      look_at_providers(&r, registry, user.provider, !cli_flag(&args, "quick"));
    registry_free(registry);
    config_deinit(&user);
  }
  if (r.json) {
    json_t *out = json_pack("{s:b, s:O}", "ok", r.problems == 0, "findings", r.findings);
    json_io_print(out, JSON_IO_TERMINAL);
    json_decref(out);
  }
  json_decref(r.findings);
  return r.problems == 0 ? STATUS_COMPLETE : STATUS_FAILED;
}

const struct cli_command cmd_doctor = {
    .name = "doctor",
    .arguments = "[--json]",
    .summary = "say what is missing here to run workflows, and what to do",
    .help =
        "Looks at the log folder, the configuration, the profiles and every backend: is its "
        "program installed and new enough, is there a sign of a key or a login. A model API "
        "that has its key gets one short request.\n"
        "Exit status: 0 when nothing stands in the way; 1 when something does: an unusable "
        "backend that config.yaml names, one that is too old, a file that is wrong, or no usable "
        "backend at all. An agent that does not hold what readonly, edit or full says is noted. A "
        "project's own files that would steer an agent are looked for in the "
        "working directory.",
    .options = options,
    .run = doctor_run,
};
