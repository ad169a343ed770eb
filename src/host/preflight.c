/* Checks before a start that a workflow can run. */
#include "host/preflight.h"

#include "core/decide.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/template.h"
#include "host/paths.h"
#include "host/sandbox_config.h"
#include "host/worktree.h"
#include "judge/chain.h"
#include "os/tmpdir.h"
#include "provider/child.h"
#include "provider/readiness.h"
#include "workflow/facets.h"
#include "workflow/parse.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- reachable ---
 *
 * Finds the providers that a session of a workflow may call: for each movement that
 * its rules can lead to, who works there, who judges, who corrects values, and who takes over from
 * each. */

struct reaching {
  const struct workflow *workflow;
  const json_t *config;
  void (*fn)(void *ctx, const struct reachable_part *part);
  void *ctx;
};

static void reachable_add(struct reachable_part *part, struct str provider, struct str model) {
  for (size_t i = 0; i < part->count && part->role != REACHABLE_VOTE; i++)
    if (str_eq(part->who[i].provider, provider))
      return;
  if (part->count < REACHABLE_WHO_COUNT)
    part->who[part->count++] = (struct reachable_who){provider, model};
}

static bool reachable_needs_judge(const struct movement *m) {
  if (ask_needs_no_judge(m))
    return false;
  const struct chain_spec spec = {.rules = m->rules,
                                  .rule_count = m->rule_count,
                                  .movement = m->name,
                                  .stages = m->judge.stages,
                                  .stage_count = m->judge.stage_count};
  return chain_needs_judge(&spec) ||
         (m->structured != NULL && invariants_need(m->structured->invariants, INVARIANT_AI));
}

static void reachable_one(const struct reaching *r, struct reachable_part part, struct str provider,
                          struct str model) {
  part.needed = 1;
  reachable_add(&part, provider, model);
  /* Adds the providers that may take over, each with the model that the user gave it. */
  const json_t *list = core_takers(r->workflow, r->config, part.movement,
                                   part.role == REACHABLE_JUDGE, part.who[0].provider);
  const json_t *models = json_object_get(r->config, "provider_models");
  JSON_EACH(list, i, name) {
    struct str word = json_view(name);
    reachable_add(&part, word, json_view(json_object_getn(models, word.p, word.n)));
  }
  r->fn(r->ctx, &part);
}

static void reachable_panel(const struct reaching *r, struct reachable_part part) {
  const struct movement *m = &r->workflow->movements[part.movement];
  struct str provider, model;
  part.role = REACHABLE_VOTE;
  part.needed = (size_t)m->judge.agree;
  for (size_t vote = 1; vote <= json_array_size(m->judge.panel); vote++) {
    core_panel_backend(r->workflow, r->config, part.movement, (int)vote, &provider, &model);
    reachable_add(&part, provider, model);
  }
  r->fn(r->ctx, &part);
}

static void reachable_movement(const struct reaching *r, size_t i) {
  const struct movement *m = &r->workflow->movements[i];
  struct str provider, model, own;
  core_backend(r->workflow, r->config, i, &own, &model);
  bool written = str_eq(own, m->provider.n ? m->provider : r->workflow->provider);
  const struct reachable_part work = {.movement = i,
                                      .role = REACHABLE_WORK,
                                      .options = m->options,
                                      .section = "",
                                      .chosen = !written};
  if (m->argv == NULL && m->ask == NULL && m->child_count == 0)
    reachable_one(r, work, own, model);
  if (reachable_needs_judge(m)) {
    struct reachable_part part = {
        .movement = i, .role = REACHABLE_JUDGE, .options = m->judge.options, .section = "judge."};
    core_judge_backend(r->workflow, r->config, i, &provider, &model);
    if (m->judge.provider.n == 0 && m->judge.panel == NULL)
      part.section = "", part.chosen = !written;
    if (m->judge.panel != NULL)
      reachable_panel(r, part);
    else
      reachable_one(r, part, provider, model);
  }
  if (m->structured != NULL && m->structured->max_reasks > 0) {
    struct reachable_part part = {
        .movement = i, .role = REACHABLE_CORRECT, .section = "structured_output.reask."};
    core_reask_backend(r->workflow, r->config, i, &provider, &model);
    if (m->structured->provider.n == 0)
      part.section = "", part.chosen = !written;
    reachable_one(r, part, provider, model);
  }
}

void reachable_each(const struct workflow *workflow, const json_t *config, const bool *reachable,
                    void (*fn)(void *ctx, const struct reachable_part *part), void *ctx) {
  const struct reaching r = {workflow, config, fn, ctx};
  for (size_t i = 0; i < workflow->movement_count; i++)
    if (reachable[i])
      reachable_movement(&r, i);
}

/* --- preflight --- */

void preflight_warn(const json_t *files, const char *cwd, struct err_list *warnings) {
  char project[PATHS_BYTES], foreign[PATHS_BYTES];
  struct err err;
  paths_project_facets(cwd, project, foreign);
  if (foreign[0]) {
    err_set(&err, ERR_INVALID,
            "%.400s is ignored: it belongs to another user, or others can write to it", foreign);
    err_list_add(warnings, &err);
  }
  JSON_EACH(files, i, entry) {
    const json_t *shadows = json_object_get(entry, "shadows");
    if (shadows == NULL)
      continue;
    err_set(&err, ERR_INVALID,
            "the project's %s %.400s replaces your own, %.400s: if that is not intended, "
            "write the path of yours",
            json_string_value(json_object_get(entry, "kind")),
            json_string_value(json_object_get(entry, "file")), json_string_value(shadows));
    err_list_add(warnings, &err);
  }
}

struct workflow *preflight_load(struct workflow_source source, const char *cwd,
                                const json_t *config, const struct provider_registry *registry,
                                struct err_list *errors, struct err_list *warnings,
                                struct workflow_marks **kept) {
  struct workflow_marks *marks = NULL;
  struct workflow *workflow = NULL;
  char project[PATHS_BYTES], foreign[PATHS_BYTES], home[PATHS_BYTES],
      user[PATHS_BYTES + 16] = "", dir[PATHS_BYTES], called[2][PATHS_BYTES], takt[PATHS_BYTES],
                         own[PATHS_BYTES];
  struct err err = {0};
  paths_project_facets(cwd, project, foreign);
  paths_home_facets(home);
  if (paths_config(dir, &err))
    print_into(user, sizeof user, "%s/facets", dir);
  source.project_facets = project[0] ? project : NULL;
  source.home_facets = home[0] ? home : NULL;
  source.user_facets = user[0] ? user : NULL;
  source.named_by_user = true;
  struct facets_more more[LIMIT_FACET_FOLDER_COUNT + 3] = {0};
  size_t n = 0;
  JSON_EACH(json_object_get(config, "facet_folders"), i, folder)
    more[n++] = (struct facets_more){"config", json_string_value(folder)};
  paths_facets_of_takt(cwd, takt);
  paths_shipped_facets(own);
  if (takt[0] != '\0')
    more[n++] = (struct facets_more){"takt", takt};
  if (own[0] != '\0')
    more[n++] = (struct facets_more){"segue", own};
  source.more_facets = more;
  paths_called(called[0], called[1]);
  const char *const workflows[] = {called[0], called[1], NULL};
  source.workflows = workflows;
  json_auto_t *doc = workflow_load_marked(&source, errors, &marks);
  bool whole = errors->count == 0;
  if (doc != NULL) {
    const json_t *standard = json_object_get(config, "default_provider");
    const char *language = json_string_value(json_object_get(doc, "language"));
    bool ja = language != NULL && strcmp(language, "ja") == 0;
    const struct lint_env env = {
        .providers = registry_capabilities(registry),
        .provider = str_from(json_string_value(standard)),
        .execute = json_view(json_object_get(json_object_get(config, "templates"),
                                             ja ? "ja/execute.md" : "en/execute.md")),
        .chosen = str_from(json_string_value(json_object_get(config, "provider")))};
    workflow_lint(doc, marks, &env, errors, warnings);
    preflight_warn(source.facet_files, cwd, warnings);
  }
  if (doc != NULL && whole) {
    workflow = workflow_build(doc, &err);
    if (workflow == NULL && errors->count == 0)
      err_list_add(errors, &err);
  }
  if (kept != NULL)
    *kept = marks;
  else
    workflow_marks_free(marks);
  return workflow;
}

struct flight {
  const struct preflight *p;
  struct err_list *errors, *warnings;
  bool placed; /* what is being examined has a place in the file: */
  size_t movement;
  char key[48];         /* a key of that movement, otherwise of the workflow */
  bool starts_programs; /* each call of a program has a private folder */
};

/* --- telling --- */

/* Finds the place and returns the file. Called only when there is something to report: most
 * workflows have no mistake. */
static const char *flight_place(const struct flight *f, int *line, int *column) {
  char own[DOC_PATH_BYTES], path[DOC_PATH_BYTES];
  const struct movement *m = &f->p->workflow->movements[f->movement];
  doc_path_item(own, "movements", m->group == NO_GROUP ? f->movement : (size_t)m->group);
  if (m->group != NO_GROUP) {
    doc_path_member(own, own, "parallel");
    doc_path_item(own, own, f->movement - f->p->workflow->movements[m->group].first_child);
  }
  doc_path_member(path, own, f->key);
  const char *file = source_map_place(f->p->marks, path, line, column);
  if (*line == 0)
    file = source_map_place(f->p->marks, f->key, line, column);
  if (*line > 0)
    return file;
  doc_path_member(path, own, "name");
  return source_map_place(f->p->marks, path, line, column);
}

static void flight_look_at(struct flight *f, size_t movement, const char *key) {
  f->placed = true;
  f->movement = movement;
  print_into(f->key, sizeof f->key, "%s", key);
}

static const struct movement *flight_movement(const struct flight *f, size_t i) {
  return &f->p->workflow->movements[i];
}

/* Reports a problem at the current place; without a place the text must say what it is about. Each
 * problem is reported once, and not at all if a worse one was already reported. */
static void flight_say(struct flight *f, struct err_list *list, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void flight_say(struct flight *f, struct err_list *list, const char *fmt, ...) {
  struct err err = {0};
  char text[sizeof err.text];
  int line = 0, column = 0;
  const char *file = "";
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (f->placed)
    file = flight_place(f, &line, &column);
  if (line > 0)
    err_set_at(&err, ERR_FILE, file, line, column, "%s", text);
  else
    err_set(&err, ERR_USAGE, "%s", text);
  for (size_t i = 0; i < f->errors->count; i++)
    if (line > 0 && f->errors->items[i].line == line && f->errors->items[i].column == column)
      return;
  for (size_t i = 0; i < list->count; i++)
    if ((line == 0 || list->items[i].line == line) && strcmp(list->items[i].text, err.text) == 0)
      return;
  err_list_add(list, &err);
}

/* --- flags --- */

/* Checks that the names in --provider MOVEMENT=P are movements. */
static void check_names(struct flight *f) {
  const struct workflow *wf = f->p->workflow;
  const char **names = xcalloc(wf->movement_count + 1, sizeof *names);
  f->placed = false;
  JSON_MEMBERS(json_object_get(f->p->config, "providers"), name, value) {
    const char *provider = json_string_value(value);
    long index = workflow_find(wf, str_from(name));
    bool command = index >= 0 && wf->movements[index].argv != NULL;
    for (size_t i = 0; index < 0 && i < wf->movement_count; i++)
      names[i] = json_string_value(
          json_object_get(json_array_get(json_object_get(wf->doc, "movements"), i), "name"));
    const char *near = index < 0 ? str_nearest(str_from(name), names) : NULL;
    if (index < 0)
      flight_say(f, f->errors, "--provider %.80s=%s: the workflow has no such movement%s%s%s", name,
                 provider, near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
    else if (command || str_eq_c(str_from(provider), "command"))
      flight_say(f, f->errors, "--provider %.80s=%s: %s", name, provider,
                 command ? "that movement is a command" : "that movement has no command");
  }
  free(names);
}

/* --- providers --- */

static enum ready ready_now(const struct flight *f, const struct reachable_part *part,
                            const struct reachable_who *who, struct err *err) {
  const struct provider *provider = registry_find(f->p->registry, who->provider);
  const struct movement *m = flight_movement(f, part->movement);
  const char *cwd = json_string_value(json_object_get(f->p->config, "cwd"));
  if (provider == NULL || cwd == NULL)
    return READY_YES; /* reported elsewhere */
  const bool judges = part->role != REACHABLE_WORK;
  const struct ready_call call = {.model = who->model,
                                  .cwd = cwd,
                                  .permission = judges ? PERMISSION_READONLY : m->permission,
                                  .judges = judges};
  return provider_ready(provider, &call, err);
}

/* Returns true if the movement runs in a container: nothing installed here counts there. */
static bool in_container(const struct flight *f, const struct movement *m,
                         const struct capability *c, bool command) {
  struct sandbox_choice choice;
  return sandbox_choose(f->p->config, m, c, command, &choice) && choice.level == SANDBOX_CONTAINER;
}

static enum ready ready_of(const struct flight *f, const struct reachable_part *part,
                           const struct reachable_who *who, struct err *err) {
  if (str_eq_c(who->provider, "script") && !f->p->has_scenario) {
    err_set(err, ERR_USAGE, "the script provider has no replies: give %s",
            f->p->by_api ? "\"scenario\"" : "--scenario FILE");
    return READY_NO;
  }
  const struct capability *c =
      capability_find(registry_capabilities(f->p->registry), who->provider);
  bool done = f->p->answered && part->role == REACHABLE_WORK;
  if (!f->p->looks || done || in_container(f, flight_movement(f, part->movement), c, false))
    return READY_YES;
  return ready_now(f, part, who, err);
}

/* Checks that enough of the providers can answer, and reports the others. */
static void check_ready(struct flight *f, const struct reachable_part *part) {
  struct err why[REACHABLE_WHO_COUNT] = {0};
  enum ready ready[REACHABLE_WHO_COUNT];
  buf_auto_t all = {0};
  size_t able = 0, no = 0;
  for (size_t i = 0; i < part->count; i++) {
    ready[i] = ready_of(f, part, &part->who[i], &why[i]);
    able += ready[i] != READY_NO;
    if (ready[i] == READY_NO)
      buf_printf(&all, "%s%s", no++ > 0 ? "; " : "", why[i].text);
  }
  if (able < part->needed && part->count == 1)
    flight_say(f, f->errors, "%s", buf_c(&all));
  else if (able < part->needed)
    flight_say(f, f->errors, "too few of these can answer: %s", buf_c(&all));
  for (size_t i = 0; i < part->count; i++)
    if (ready[i] == READY_PERHAPS || (ready[i] == READY_NO && able >= part->needed))
      flight_say(f, f->warnings, "%s", why[i].text);
}

/* Checks a provider that judges, votes or corrects. */
static bool check_judges(struct flight *f, const struct reachable_part *part,
                         const struct reachable_who *who) {
  static const char *const does[] = {
      "", "cannot judge: name another in judge.provider",
      "cannot judge: leave it out of judge.panel",
      "cannot correct an answer: name another in structured_output.reask, or set max_reasks: 0"};
  const struct capability *cap =
      capability_find(registry_capabilities(f->p->registry), who->provider);
  if (cap != NULL && cap->can_judge)
    return true;
  flight_say(f, f->errors, "movement " STR_FMT ": provider " STR_FMT " %s",
             STR_ARG(flight_movement(f, part->movement)->name), STR_ARG(who->provider),
             does[part->role]);
  return false;
}

static bool preflight_check_worker(struct flight *f, const struct reachable_part *part) {
  const struct str name = flight_movement(f, part->movement)->name;
  const struct str provider = part->who[0].provider;
  struct err err;
  if (provider.n == 0) {
    flight_say(f, f->errors,
               "movement " STR_FMT " has no provider: write provider: in the file, or give %s",
               STR_ARG(name), f->p->by_api ? "\"provider\"" : "--provider");
    return false;
  }
  if (str_eq_c(provider, "command")) {
    flight_say(f, f->errors,
               "movement " STR_FMT ": provider command needs command: [program, arguments...]",
               STR_ARG(name));
    return false;
  }
  if (registry_find(f->p->registry, provider) != NULL)
    return true;
  (void)registry_unknown(f->p->registry, provider, &err);
  flight_say(f, f->errors, "movement " STR_FMT ": %s", STR_ARG(name), err.text);
  return false;
}

static void preflight_check_options(struct flight *f, const struct reachable_part *part,
                                    struct str provider) {
  const struct capability *cap = capability_find(registry_capabilities(f->p->registry), provider);
  const bool works = part->role == REACHABLE_WORK;
  const struct movement *m = flight_movement(f, part->movement);
  const json_t *sets[] = {works ? json_object_get(f->p->config, "default_options") : NULL,
                          part->options, works ? json_object_get(f->p->config, "options") : NULL};
  struct err err;
  const bool placed = f->placed;
  for (size_t i = 0; cap != NULL && i < ARRAY_LEN(sets); i++) {
    if (provider_check_options(cap, sets[i], &err))
      continue;
    if (sets[i] != part->options) { /* from a flag or the configuration: reported once */
      f->placed = false;
      flight_say(f, f->errors, "%s", err.text);
    } else
      flight_say(f, f->errors, "movement " STR_FMT "%s: %s", STR_ARG(m->name),
                 works ? "" : ", judge", err.text);
    f->placed = placed;
  }
}

/* Checks what would confine the movement's programs. */
static void preflight_check_sandbox(struct flight *f, const struct movement *m,
                                    const struct capability *c, bool command) {
  const struct flight before = *f;
  const char *note;
  struct err err;
  if (m->has_sandbox || m->has_network) /* the key that says it, otherwise what it is for */
    flight_look_at(f, (size_t)(m - f->p->workflow->movements),
                   m->has_sandbox ? "sandbox" : "network");
  if (!sandbox_check(f->p->config, m, c, command, &note, &err))
    flight_say(f, f->errors, "movement " STR_FMT ": %s", STR_ARG(m->name), err.text);
  else if (note[0] != '\0') {
    f->placed = false; /* reported once */
    flight_say(f, f->warnings, "%s", note);
  }
  *f = before;
}

static void check_part(void *ctx, const struct reachable_part *part) {
  struct flight *f = ctx;
  const struct movement *m = flight_movement(f, part->movement);
  char key[48];
  print_into(key, sizeof key, "%s%s", part->section,
             part->role == REACHABLE_VOTE ? "panel" : "provider");
  f->placed = false;
  if (!part->chosen)
    flight_look_at(f, part->movement, key);
  bool ok = part->role != REACHABLE_WORK || preflight_check_worker(f, part);
  if (part->role != REACHABLE_WORK && part->who[0].provider.n == 0) {
    if (m->argv != NULL && f->p->marks == NULL) /* lint has reported it in its place */
      flight_say(f, f->errors,
                 "nothing can judge " STR_FMT
                 ": give %s, or only the stage phase1_tag, which needs none",
                 STR_ARG(m->name), f->p->by_api ? "\"provider\"" : "--provider");
    return;
  }
  for (size_t i = 0; i < part->count; i++) {
    if (part->role != REACHABLE_WORK)
      ok = check_judges(f, part, &part->who[i]) && ok;
    const struct capability *c =
        capability_find(registry_capabilities(f->p->registry), part->who[i].provider);
    f->starts_programs |= c != NULL && c->touches_files;
    preflight_check_sandbox(f, m, c, false);
    if (i == 0 || part->role == REACHABLE_VOTE)
      preflight_check_options(f, part, part->who[i].provider);
  }
  if (ok)
    check_ready(f, part);
}

/* --- programs and the task --- */

static enum ready find_program(const struct flight *f, const char *name, struct err *err) {
  char path[PATHS_BYTES], found[PATHS_BYTES];
  const char *cwd = json_string_value(json_object_get(f->p->config, "cwd"));
  struct stat st;
  if (strchr(name, '/') == NULL) {
    if (program_find(name, found, sizeof found))
      return READY_YES;
    err_set(err, ERR_NOT_FOUND, "the program %.200s is not in PATH: install it, or write its path",
            name);
    return READY_NO;
  }
  if (snprintf(path, sizeof path, "%s%s%s", name[0] == '/' || !cwd ? "" : cwd,
               name[0] == '/' ? "" : "/", name) >= (int)sizeof path)
    return READY_YES;
  if (stat(path, &st) != 0)
    err_set(err, ERR_NOT_FOUND,
            "there is no %.200s here, which is right only if an earlier movement creates it", name);
  else if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0)
    err_set(err, ERR_NOT_FOUND, "%.200s cannot be run: chmod +x it", name);
  else
    return READY_YES;
  return READY_PERHAPS;
}

static void check_program(struct flight *f, const char *name) {
  struct err err;
  enum ready ready = find_program(f, name, &err);
  if (ready != READY_YES)
    flight_say(f, ready == READY_NO ? f->errors : f->warnings, "%s", err.text);
}

/* Checks that each secret is one that the user lets movements have, and that it is set. */
static void check_secrets(struct flight *f, const struct movement *m) {
  const json_t *known = json_object_get(f->p->config, "secrets");
  JSON_EACH(m->secrets, i, name) {
    const char *text = json_string_value(name), *value = getenv(text);
    bool allowed = false;
    JSON_EACH(known, k, other)
      allowed |= json_same(name, other);
    if (!allowed)
      flight_say(f, f->errors,
                 "secrets names %.100s: write secrets: [%.100s] in your config.yaml if it may be "
                 "given to a movement",
                 text, text);
    else if (value == NULL || value[0] == '\0')
      flight_say(f, f->errors, "secrets names %.100s, which is not set: set the variable", text);
  }
}

static void check_movement(struct flight *f, size_t i) {
  const struct movement *m = flight_movement(f, i);
  const struct invariants *invariants = m->structured ? m->structured->invariants : NULL;
  if (m->argv != NULL) {
    f->starts_programs = true;
    flight_look_at(f, i, "command");
    if (strcmp(m->argv[0], "segue") != 0 &&
        !in_container(f, m, NULL, true)) /* segue is this program, see command.c */
      check_program(f, m->argv[0]);
    preflight_check_sandbox(f, m, NULL, true);
  }
  flight_look_at(f, i, "secrets");
  check_secrets(f, m);
  flight_look_at(f, i, "structured_output.invariants");
  for (size_t k = 0; k < invariants_count(invariants); k++)
    if (invariants_get(invariants, k)->argv != NULL)
      check_program(f, invariants_get(invariants, k)->argv[0]);
  flight_look_at(f, i, "instruction");
  if (!f->p->has_task && template_uses(m->instruction, "task") &&
      !template_uses(m->instruction, "?task"))
    flight_say(f, f->errors, "{task} stands here, and no task was given: give one with --task");
}

void preflight_check(const struct preflight *p, struct err_list *errors,
                     struct err_list *warnings) {
  assert(p->workflow != NULL);
  struct flight f = {.p = p, .errors = errors, .warnings = warnings};
  struct err err;
  check_names(&f);
  bool works = p->looks && !p->answered;
  if (works && !worktree_check(p->config, p->workflow, &err))
    flight_say(&f, errors, "%s", err.text);
  bool *reachable = workflow_reachable(p->workflow->doc);
  reachable_each(p->workflow, p->config, reachable, check_part, &f);
  for (size_t i = 0; works && i < p->workflow->movement_count; i++)
    if (reachable[i])
      check_movement(&f, i);
  f.placed = false;
  if (p->looks && f.starts_programs && !tmpdir_check(&err))
    flight_say(&f, errors, "%s", err.text);
  free(reachable);
  sort_by_place(errors);
  sort_by_place(warnings);
}

bool preflight_passes(const struct preflight *p, struct err *err) {
  AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0};
  preflight_check(p, &errors, &warnings);
  bool ok = errors.count == 0;
  if (!ok)
    *err = errors.items[0];
  return ok;
}
