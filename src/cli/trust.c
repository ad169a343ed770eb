/* segue trust: trusts a workflow with what it asks for, and asks about one before it runs. */
#include "cli/trust.h"

#include "daemon/launch.h"
#include "format/json_object.h"
#include "git/linediff.h"
#include "host/resume_options.h"
#include "host/trust.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- before a session --- */

static bool is_starter(const struct trust *t) {
  buf_auto_t starter = {0}, name = {0};
  const char *base = basename(t->file);
  buf_append(&name, base, strcspn(base, "."));
  init_starter(buf_c(&name), &starter);
  return str_eq(buf_view(&t->text), buf_view(&starter));
}

static bool in_ci(void) {
  const char *ci = getenv("CI");
  return ci != NULL && ci[0] != '\0';
}

static void trust_print(FILE *out, const json_t *asks) {
  for (size_t i = 0; i < json_array_size(asks); i++)
    cli_say(out, "  %s\n", json_string_value(json_array_get(asks, i)));
}

static void tell_changed(const struct trust *t) {
  long added, removed;
  linediff_count(json_view_at(t->last, "text"), buf_view(&t->text), &added, &removed);
  if (added + removed == 0)
    cli_say(stderr, "what %s refers to changed since your last run\n", basename(t->file));
  else
    cli_say(stderr, "%s changed since your last run (+%ld -%ld)\n", basename(t->file), added,
            removed);
}

/* Asks a person, unless that was answered beforehand. */
static bool ask_person(const struct cli_args *args, json_t *config, const json_t *more,
                       struct err *err) {
  const char *word = args->words[0], *by = in_ci() ? "CI" : "asked";
  if (!resume_options_by_person(args->command->name, word, err))
    return false;
  if (cli_flag(args, "trust")) {
    by = "--trust";
  } else if (!in_ci()) {
    cli_say(stderr, "%s asks for more than a sandbox gives:\n", word);
    trust_print(stderr, more);
    if (cli_flag(args, "untrusted") || cli_asks("trust it?") != CLI_SAID_YES)
      return err_set(err, ERR_USAGE, "%.300s is not trusted: look at it, then segue trust %.300s",
                     word, word);
  }
  json_object_set_new(config, "trust", json_string(by));
  return true;
}

static bool trust_look(struct trust *t, const struct setup *setup) {
  const struct trust_file file = {.path = setup->workflow_path,
                                  .cwd = setup->cwd,
                                  .config = setup->config,
                                  .registry = setup->registry,
                                  .inputs = setup->inputs,
                                  .replace = setup->replace};
  return trust_read(t, &file);
}

/* `seen` gets the hash of what was looked at, or "". */
static bool trust_ask(struct setup *setup, const struct cli_args *args, char seen[SHA256_HEX],
                      struct err *err) {
  AUTO(trust_deinit) struct trust t = {0};
  bool typed = strpbrk(args->words[0], "/.") != NULL && !cli_flag(args, "untrusted");
  if (trust_has_place(setup->workflow_path) || !trust_look(&t, setup))
    return true;
  memcpy(seen, t.given, sizeof t.given);
  bool keeps = trust_recall(&t, setup->workflow_path, err) && !in_ci();
  json_auto_t *more = trust_more(&t);
  bool wants = t.last != NULL || !(typed || is_starter(&t));
  if (json_array_size(more) > 0 && wants && !ask_person(args, setup->config, more, err))
    return false;
  if (json_array_size(more) == 0 && t.last != NULL && !cli_flag(args, "quiet") &&
      !str_eq_c(json_view_at(t.last, "sha256"), t.sha256))
    tell_changed(&t);
  if (keeps && !trust_keep(&t, err))
    log_warn("%s", err->text);
  return true;
}

bool trust_asked(struct setup *setup, const struct cli_args *args, struct err *err) {
  char seen[SHA256_HEX];
  return trust_ask(setup, args, seen, err);
}

bool trust_submit(const struct cli_args *args, json_t *body, struct err *err) {
  static const char *const flags[] = {"provider", "providers", "model"};
  char seen[SHA256_HEX] = "";
  AUTO(setup_deinit) struct setup setup = {.config = json_object()};
  char_auto_t *path = realpath(json_word_at(body, "workflow"), NULL);
  if (path == NULL || strlen(path) >= sizeof setup.workflow_path)
    return true;
  print_into(setup.workflow_path, sizeof setup.workflow_path, "%s", path);
  print_into(setup.cwd, sizeof setup.cwd, "%s", json_word_at(body, "cwd"));
  if (!config_load(&setup.user, err) || (setup.registry = backends_new(&setup.user, err)) == NULL)
    return false;
  for (size_t i = 0; i < ARRAY_LEN(flags); i++)
    json_object_set(setup.config, flags[i], json_object_get(body, flags[i]));
  config_resolve(&setup.user, setup.config);
  setup.inputs = json_incref(json_object_get(body, "inputs"));
  setup.replace = launch_replaced(body);
  bool ok = trust_ask(&setup, args, seen, err);
  if (seen[0] != '\0')
    json_object_set_new(body, "workflow_sha256", json_string(seen));
  json_object_set(body, "trust", json_object_get(setup.config, "trust"));
  return ok;
}

/* --- the command --- */

static int trust_list(void) {
  char folder[PATHS_BYTES], path[PATHS_BYTES + 256];
  struct err err = {0};
  DIR *dir = paths_state("trust", folder, &err) ? opendir(folder) : NULL;
  const struct dirent *entry;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    print_into(path, sizeof path, "%s/%s", folder, entry->d_name);
    json_auto_t *value = json_load_file(path, 0, NULL);
    const json_t *asks = json_object_get(value, "asks");
    const char *project = json_word_at(value, "project");
    if (json_array_size(asks) > 0)
      cli_say(stdout, "%s%s%s\n", project, *project ? "/" : "", json_word_at(value, "file"));
    trust_print(stdout, asks);
  }
  if (dir != NULL)
    closedir(dir);
  return STATUS_COMPLETE;
}

static int trust_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  AUTO(trust_deinit) struct trust t = {0};
  struct err err = {0};
  int status;
  if (cli_flag(args, "list"))
    return trust_list();
  if (args->word_count == 0)
    return cli_refuse("trust", "name a workflow, or give --list");
  if (!resume_options_by_person("trust", args->words[0], &err))
    return cli_fail("trust", &err);
  if (!setup_flags(&setup, args, &status) ||
      !setup_workflow(&setup, args, args->words[0], false, &status))
    return status;
  bool ok = trust_look(&t, &setup) && trust_recall(&t, setup.workflow_path, &err);
  if (ok && cli_flag(args, "remove")) {
    (void)unlink(t.entry);
  } else if (ok && (ok = trust_keep(&t, &err))) {
    cli_say(stdout, "trusted: %s\n", setup.workflow_path);
    trust_print(stdout, t.asks);
  }
  return cli_done("trust", ok, &err);
}

const struct cli_command cmd_trust = {COMMAND_TRUST, .run = trust_run};
