/* segue trust: trusts a workflow with what it asks for, and asks about one before it runs. */
#include "cli/trust.h"

#include "base/file.h"
#include "base/limits.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/linediff.h"
#include "host/paths.h"
#include "host/resume_options.h"
#include "os/fs.h"
#include "os/orphans.h"
#include "structured/invariant.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct trust {
  const struct capability *providers;
  struct workflow *workflow;    /* as the file says it, without what the command line puts in */
  struct buf text;              /* the file's */
  json_t *config, *asks, *last; /* last: the entry of the last run; or NULL */
  char sha256[SHA256_HEX];      /* of the resolved document */
  char entry[PATHS_BYTES + 8];  /* the file that remembers it */
  char project[PATHS_BYTES];    /* the main checkout, or "" */
  const char *file;             /* below it; or absolute */
};

static void trust_deinit(struct trust *t) {
  workflow_unref(t->workflow);
  buf_deinit(&t->text);
  json_decref(t->config);
  json_decref(t->asks);
  json_decref(t->last);
}

/* --- what it asks for --- */

static bool asks_have(const json_t *asks, const json_t *ask) {
  bool have = false;
  for (size_t i = 0; i < json_array_size(asks); i++)
    have |= json_same(json_array_get(asks, i), ask);
  return have;
}

static void asks_put(struct trust *t, const struct movement *m, struct str what, const char *how) {
  json_auto_t *ask = json_sprintf(STR_FMT ": " STR_FMT " %s", STR_ARG(m->name), STR_ARG(what), how);
  if (!asks_have(t->asks, ask))
    json_array_append(t->asks, ask);
}

/* Compares what confines a program of the movement with what is usual here. */
static void asks_program(struct trust *t, const struct movement *m, struct str provider,
                         const char *const *argv) {
  const struct capability *c = argv ? NULL : capability_find(t->providers, provider);
  struct sandbox_choice own, usual;
  char how[64] = "without a sandbox";
  buf_auto_t what = {0};
  if (!sandbox_choose(t->config, m, c, argv != NULL, &own) ||
      !sandbox_choose(t->config, NULL, c, argv != NULL, &usual) ||
      (own.level != SANDBOX_OFF && own.level >= usual.level && own.network >= usual.network))
    return;
  if (own.level != SANDBOX_OFF)
    print_into(how, sizeof how, "with sandbox %s, network %s", sandbox_level_name(own.level),
               sandbox_network_name(own.network));
  buf_str(&what, argv ? STR("runs") : provider);
  for (size_t i = 0; argv != NULL && argv[i] != NULL; i++) {
    buf_putc(&what, ' ');
    buf_quoted(&what, str_from(argv[i]));
  }
  asks_put(t, m, buf_view(&what), how);
}

static void asks_agents(void *ctx, const struct reachable_part *part) {
  struct trust *t = ctx;
  for (size_t i = 0; i < part->count; i++)
    asks_program(t, &t->workflow->movements[part->movement], part->who[i].provider, NULL);
}

static void asks_find(struct trust *t) {
  const struct workflow *wf = t->workflow;
  bool *all = xcalloc(wf->movement_count, sizeof *all);
  memset(all, true, wf->movement_count);
  for (size_t i = 0; i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    const struct invariants *list = m->structured ? m->structured->invariants : NULL;
    if (m->argv != NULL)
      asks_program(t, m, STR(""), m->argv);
    for (size_t k = 0; k < invariants_count(list); k++)
      if (invariants_get(list, k)->argv != NULL)
        asks_program(t, m, STR(""), invariants_get(list, k)->argv);
    for (size_t k = 0; k < json_array_size(m->secrets); k++)
      asks_put(t, m, json_view(json_array_get(m->secrets, k)), "is shown to it");
  }
  reachable_each(wf, t->config, all, asks_agents, t);
  free(all);
}

/* --- what is remembered --- */

/* Finds what is remembered of a file. */
static bool trust_recall(struct trust *t, const char *path, struct err *err) {
  char folder[PATHS_BYTES], hash[SHA256_HEX];
  buf_auto_t key = {0};
  print_into(folder, sizeof folder, "%.*s/", (int)(strrchr(path, '/') - path), path);
  size_t top = paths_project(folder, t->project);
  t->file = path + top + (top > 1 ? 1 : 0);
  t->project[top > 0 ? strlen(t->project) : 0] = '\0';
  if (!paths_state("trust", folder, err))
    return false;
  buf_printf(&key, "%s\n%s", t->project, t->file);
  sha256_hex(key.p, key.n, NULL, 0, hash);
  print_into(t->entry, sizeof t->entry, "%s/%.4s", folder, hash); /* their number is bounded */
  json_auto_t *last = json_load_file(t->entry, 0, NULL);
  if (str_eq_c(json_view_at(last, "project"), t->project) &&
      str_eq_c(json_view_at(last, "file"), t->file))
    t->last = json_incref(last);
  return true;
}

/* Reads the file, and finds out what it asks for. Inputs count only where it cannot be read without
 * them. Returns false if it has errors. */
static bool trust_load(struct trust *t, const struct setup *setup) {
  const json_t *const inputs[] = {NULL, setup->inputs};
  struct err err;
  t->providers = registry_capabilities(setup->registry);
  t->asks = json_array();
  t->config = json_clone_top(setup->config);
  json_object_set_new(t->config, "sandbox", json_clone_top(json_object_get(t->config, "sandbox")));
  if (!file_read(setup->workflow_path, LIMIT_WORKFLOW_BYTES, &t->text, &err))
    return false;
  for (size_t i = 0; i < ARRAY_LEN(inputs) && t->workflow == NULL; i++) {
    AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0};
    const struct workflow_source source = {
        .path = setup->workflow_path, .text = buf_c(&t->text), .n = t->text.n, .inputs = inputs[i]};
    t->workflow =
        preflight_load(source, setup->cwd, t->config, setup->registry, &errors, &warnings, NULL);
    if (errors.count > 0) {
      workflow_unref(t->workflow);
      t->workflow = NULL;
    }
  }
  if (t->workflow == NULL)
    return false;
  sandbox_inherit(t->config, t->workflow, t->providers);
  workflow_hash(t->workflow, t->sha256);
  asks_find(t);
  return true;
}

/* Remembers it, unless a program of a session ran it. */
static bool trust_keep(const struct trust *t, struct err *err) {
  char temp[sizeof t->entry + 24];
  bool held;
  buf_auto_t entry = {0};
  json_auto_t *value =
      json_pack("{ss ss ss sO so}", "project", t->project, "file", t->file, "sha256", t->sha256,
                "asks", t->asks, "text", json_text(buf_view(&t->text)));
  if (value == NULL || json_same(value, t->last)) /* no log could hold its path either */
    return true;
  char_auto_t *program = orphan_program((long)getpid(), &held);
  if (program != NULL)
    return true;
  json_write(value, &entry);
  print_into(temp, sizeof temp, "%s.%ld", t->entry, (long)getpid());
  (void)unlink(temp);
  return file_write_new(temp, buf_view(&entry), err) &&
         (rename(temp, t->entry) == 0 || err_set_errno(err, errno, "cannot write %s", t->entry));
}

/* --- before a session --- */

static bool is_trusted_place(const char *path) {
  char folders[2][PATHS_BYTES], real[PATH_MAX];
  bool below = false;
  paths_called(folders[0], folders[1]);
  for (size_t i = 0; i < 2; i++)
    below |= realpath(folders[i], real) != NULL && fs_below(path, real) != NULL;
  return below;
}

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

bool trust_asked(struct setup *setup, const struct cli_args *args, struct err *err) {
  AUTO(trust_deinit) struct trust t = {0};
  json_auto_t *more = json_array();
  bool typed = strpbrk(args->words[0], "/.") != NULL && !cli_flag(args, "untrusted");
  if (is_trusted_place(setup->workflow_path) || !trust_load(&t, setup))
    return true;
  bool keeps = trust_recall(&t, setup->workflow_path, err) && !in_ci();
  for (size_t i = 0; i < json_array_size(t.asks); i++)
    if (!asks_have(json_object_get(t.last, "asks"), json_array_get(t.asks, i)))
      json_array_append(more, json_array_get(t.asks, i));
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

bool trust_submit(const struct cli_args *args, json_t *body, struct err *err) {
  static const char *const flags[] = {"provider", "providers", "model"};
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
  bool ok = trust_asked(&setup, args, err);
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
  bool ok = trust_load(&t, &setup) && trust_recall(&t, setup.workflow_path, &err);
  if (ok && cli_flag(args, "remove")) {
    (void)unlink(t.entry);
  } else if (ok && (ok = trust_keep(&t, &err))) {
    cli_say(stdout, "trusted: %s\n", setup.workflow_path);
    trust_print(stdout, t.asks);
  }
  return cli_done("trust", ok, &err);
}

const struct cli_command cmd_trust = {COMMAND_TRUST, .run = trust_run};
