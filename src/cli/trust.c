/* segue trust: trusts a workflow with what it asks for, and asks about one before it runs. */
#include "cli/trust.h"

#include "base/file.h"
#include "base/limits.h"
#include "cli/json_io.h"
#include "core/decide.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/linediff.h"
#include "host/paths.h"
#include "host/resume_options.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/orphans.h"
#include "structured/invariant.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct trust {
  const struct setup *setup;
  char entry[PATHS_BYTES + 8];  /* the file that remembers it */
  char project[PATHS_BYTES];    /* the main checkout, or "" */
  const char *file;             /* below it; or absolute */
  struct workflow *workflow;    /* as the file says it, without what the command line puts in */
  json_t *config, *asks, *last; /* last: the entry; or NULL */
};

static void trust_deinit(struct trust *t) {
  workflow_unref(t->workflow);
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
static void asks_program(struct trust *t, const struct movement *m, const struct capability *c,
                         bool command, struct str what) {
  struct sandbox_choice own, usual;
  char how[96];
  if (!sandbox_choose(t->config, m, c, command, &own) ||
      !sandbox_choose(t->config, NULL, c, command, &usual))
    return;
  if (own.level == SANDBOX_OFF || own.level < usual.level) {
    print_into(how, sizeof how, "with sandbox %s", sandbox_level_name(own.level));
    asks_put(t, m, what, own.level == SANDBOX_OFF ? "without a sandbox" : how);
  }
  if (own.network < usual.network) {
    print_into(how, sizeof how, "with network %s", sandbox_network_name(own.network));
    asks_put(t, m, what, how);
  }
}

static void asks_command(struct trust *t, const struct movement *m, const char *const *argv) {
  buf_auto_t words = {0};
  buf_puts(&words, "runs");
  for (size_t i = 0; argv[i] != NULL; i++) {
    buf_putc(&words, ' ');
    buf_quoted(&words, str_from(argv[i]));
  }
  asks_program(t, m, NULL, true, buf_view(&words));
}

static void asks_agents(void *ctx, const struct reachable_part *part) {
  struct trust *t = ctx;
  const struct capability *table = registry_capabilities(t->setup->registry);
  for (size_t i = 0; i < part->count; i++)
    asks_program(t, &t->workflow->movements[part->movement],
                 capability_find(table, part->who[i].provider), false, part->who[i].provider);
}

static void asks_find(struct trust *t) {
  const struct workflow *wf = t->workflow;
  bool *all = xcalloc(wf->movement_count + 1, sizeof *all);
  t->asks = json_array();
  memset(all, true, wf->movement_count);
  for (size_t i = 0; i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    const struct invariants *list = m->structured ? m->structured->invariants : NULL;
    if (m->argv != NULL)
      asks_command(t, m, m->argv);
    for (size_t k = 0; k < invariants_count(list); k++)
      if (invariants_get(list, k)->argv != NULL)
        asks_command(t, m, invariants_get(list, k)->argv);
    for (size_t k = 0; k < json_array_size(m->secrets); k++)
      asks_put(t, m, json_view(json_array_get(m->secrets, k)), "is shown to it");
  }
  reachable_each(wf, t->config, all, asks_agents, t);
  free(all);
}

/* --- what is remembered --- */

/* Finds the entry of a file. */
static bool trust_place(struct trust *t, const char *path, struct err *err) {
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
  print_into(t->entry, sizeof t->entry, "%s/%.4s", folder, hash); /* so there are not too many */
  return true;
}

static bool trust_load(struct trust *t, const struct setup *setup, struct err *err) {
  static const char *const flags[] = {"provider", "providers", "model"};
  AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0};
  const struct workflow_source source = {.path = setup->workflow_path};
  t->setup = setup;
  t->config = json_clone_top(setup->config);
  for (size_t i = 0; i < ARRAY_LEN(flags); i++)
    json_object_del(t->config, flags[i]);
  if (setup->starts && setup->workflow->inputs != NULL)
    t->workflow =
        preflight_load(source, setup->cwd, t->config, setup->registry, &errors, &warnings, NULL);
  else
    t->workflow = workflow_ref(setup->workflow);
  if (errors.count > 0) {
    *err = errors.items[0];
    return false;
  }
  asks_find(t);
  if (!trust_place(t, setup->workflow_path, err))
    return false;
  t->last = json_load_file(t->entry, JSON_DECODE_ANY, NULL);
  if (!str_eq_c(json_view_at(t->last, "project"), t->project) ||
      !str_eq_c(json_view_at(t->last, "file"), t->file)) {
    json_decref(t->last);
    t->last = NULL;
  }
  return true;
}

/* Returns all entries of files that ask for something; or only forgets what was not run for long. */
static json_t *trust_entries(bool wanted) {
  char folder[PATHS_BYTES], path[PATHS_BYTES + 256];
  struct err ignored;
  json_t *all = json_array();
  DIR *dir = paths_state("trust", folder, &ignored) ? opendir(folder) : NULL;
  const struct dirent *entry;
  struct stat st;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    print_into(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
      continue;
    json_auto_t *value = wanted ? json_load_file(path, 0, NULL) : NULL;
    if (st.st_mtime < clock_real_ms() / 1000 - LIMIT_TRUST_UNUSED_S)
      (void)unlink(path);
    else if (json_array_size(json_object_get(value, "asks")) > 0)
      json_array_append(all, value);
  }
  if (dir != NULL)
    closedir(dir);
  return all;
}

static bool trust_keep(const struct trust *t, struct err *err) {
  char temp[sizeof t->entry + 24];
  buf_auto_t text = {0};
  if (json_same(json_object_get(t->last, "doc"), t->workflow->doc) &&
      json_same(json_object_get(t->last, "asks"), t->asks)) {
    (void)utimensat(AT_FDCWD, t->entry, NULL, 0); /* it was run today */
    return true;
  }
  json_auto_t *entry = json_pack("{ss ss sO sO}", "project", t->project, "file", t->file, "asks",
                                 t->asks, "doc", t->workflow->doc);
  json_write(entry, &text);
  print_into(temp, sizeof temp, "%s.%ld", t->entry, (long)getpid());
  (void)unlink(temp);
  if (!file_write_new(temp, buf_view(&text), err))
    return false;
  if (t->last == NULL)
    json_decref(trust_entries(false));
  return rename(temp, t->entry) == 0 || err_set_errno(err, errno, "cannot write %s", t->entry);
}

/* --- before a session --- */

static bool is_trusted_place(const char *path) {
  char folders[2][PATHS_BYTES];
  bool below = false;
  paths_called(folders[0], folders[1]);
  for (size_t i = 0; i < 2; i++) {
    char_auto_t *real = folders[i][0] ? realpath(folders[i], NULL) : NULL;
    below |= real != NULL && fs_below(path, real) != NULL;
  }
  return below;
}

static bool is_starter(const char *path) {
  char name[256];
  struct err ignored;
  buf_auto_t written = {0}, starter = {0};
  const char *base = strrchr(path, '/') + 1;
  print_into(name, sizeof name, "%.*s", (int)(strcspn(base, ".")), base);
  init_starter(name, &starter);
  return file_read(path, LIMIT_WORKFLOW_BYTES, &written, &ignored) &&
         str_eq(buf_view(&written), buf_view(&starter));
}

static bool in_ci(void) {
  const char *ci = getenv("CI");
  return ci != NULL && ci[0] != '\0';
}

static void trust_print(FILE *out, const json_t *asks) {
  const json_t *ask;
  size_t i;
  json_array_foreach((json_t *)asks, i, ask)
    cli_say(out, "  %s\n", json_string_value(ask));
}

/* Puts a document as lines of text. */
static void trust_lines(const json_t *doc, struct buf *out) {
  char_auto_t *text = json_dump_text(doc, JSON_INDENT(1));
  for (const char *p = text; *p != '\0'; p++)
    if (p[0] == '\\' && p[1] == 'n')
      buf_putc(out, *p++ == '\\' ? '\n' : *p);
    else if (p[0] != ',' || p[1] != '\n') /* a list's new last item is one line */
      buf_putc(out, *p);
}

static void tell_changed(const struct trust *t) {
  buf_auto_t last = {0}, now = {0};
  long added, removed;
  const char *slash = strrchr(t->file, '/');
  trust_lines(json_object_get(t->last, "doc"), &last);
  trust_lines(t->workflow->doc, &now);
  linediff_count(buf_view(&last), buf_view(&now), &added, &removed);
  if (added + removed > 0)
    cli_say(stderr, "%s changed since your last run (+%ld -%ld)\n", slash ? slash + 1 : t->file,
            added, removed);
}

/* Asks a person, unless that was answered beforehand. */
static bool ask_person(const struct cli_args *args, json_t *config, const json_t *more,
                       struct err *err) {
  const char *word = args->words[0], *by = "asked";
  if (!resume_options_by_person(args->command->name, word, err))
    return false;
  if (cli_flag(args, "trust")) {
    by = "--trust";
  } else if (in_ci()) {
    by = "CI";
  } else {
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
  bool held, typed = strpbrk(args->words[0], "/.") != NULL && !cli_flag(args, "untrusted");
  if (is_trusted_place(setup->workflow_path))
    return true;
  if (!trust_load(&t, setup, err))
    return false;
  json_auto_t *more = json_array();
  for (size_t i = 0; i < json_array_size(t.asks); i++)
    if (!asks_have(json_object_get(t.last, "asks"), json_array_get(t.asks, i)))
      json_array_append(more, json_array_get(t.asks, i));
  if (json_array_size(more) > 0 &&
      (t.last != NULL || !(typed || is_starter(setup->workflow_path)))) {
    if (!ask_person(args, setup->config, more, err))
      return false;
  } else if (t.last != NULL && !cli_flag(args, "quiet")) {
    tell_changed(&t);
  }
  char_auto_t *program = in_ci() ? NULL : orphan_program((long)getpid(), &held);
  if (program == NULL && !in_ci() && !trust_keep(&t, err))
    log_warn("%s", err->text);
  return true;
}

bool trust_submit(const struct cli_args *args, json_t *body, struct err *err) {
  AUTO(setup_deinit) struct setup setup = {.config = json_object()};
  AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0};
  char_auto_t *path = realpath(json_word_at(body, "workflow"), NULL);
  if (path == NULL || is_trusted_place(path))
    return true;
  print_into(setup.cwd, sizeof setup.cwd, "%s", json_word_at(body, "cwd"));
  if (!config_load(&setup.user, err) || (setup.registry = backends_new(&setup.user, err)) == NULL)
    return false;
  config_resolve(&setup.user, setup.config);
  if (!setup_load(&setup, path, &errors, &warnings))
    return true;
  bool ok = trust_asked(&setup, args, err);
  json_object_set(body, "trust", json_object_get(setup.config, "trust"));
  return ok;
}

/* --- the command --- */

static void trust_list(bool json) {
  json_auto_t *all = trust_entries(true);
  json_t *entry;
  size_t i;
  json_array_foreach(all, i, entry) {
    json_object_del(entry, "doc");
    if (!json)
      cli_say(stdout, "%s%s%s\n", cli_text(entry, "project"),
              cli_word(entry, "project")[0] ? "/" : "", cli_text(entry, "file"));
    if (!json)
      trust_print(stdout, json_object_get(entry, "asks"));
  }
  if (json)
    json_io_print(all, JSON_IO_COMPACT);
}

static int trust_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  AUTO(trust_deinit) struct trust t = {0};
  struct err err = {0};
  int status;
  cli_errors_as_json(cli_flag(args, "json"));
  if (cli_flag(args, "list"))
    return trust_list(cli_flag(args, "json")), STATUS_COMPLETE;
  if (args->word_count == 0)
    return cli_refuse("trust", "name a workflow, or give --list");
  if (!resume_options_by_person("trust", args->words[0], &err))
    return cli_fail("trust", &err);
  if (!setup_flags(&setup, args, &status) ||
      !setup_workflow(&setup, args, args->words[0], false, &status))
    return status;
  bool ok = trust_load(&t, &setup, &err);
  if (ok && cli_flag(args, "remove")) {
    ok = unlink(t.entry) == 0 || errno == ENOENT || err_set_errno(&err, errno, "%s", t.entry);
  } else if (ok && (ok = trust_keep(&t, &err))) {
    cli_say(stdout, "trusted: %s\n", setup.workflow_path);
    trust_print(stdout, t.asks);
  }
  return cli_done("trust", ok, &err);
}

const struct cli_command cmd_trust = {COMMAND_TRUST, .run = trust_run};
