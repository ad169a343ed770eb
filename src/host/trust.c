/* Finds out what workflows ask for beyond a sandbox, and remembers it of their files. */
#include "host/trust.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "host/preflight.h"
#include "os/fs.h"
#include "os/orphans.h"
#include "structured/invariant.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void trust_deinit(struct trust *t) {
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

static void asks_find(struct trust *t, const struct workflow *wf) {
  t->workflow = wf;
  json_decref(t->asks);
  t->asks = json_array();
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

bool trust_recall(struct trust *t, const char *path, struct err *err) {
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

/* Loads the file's text, and finds out what it asks for. Returns false if it has errors. */
static bool trust_load(struct trust *t, const struct trust_file *f, bool given,
                       char sha256[SHA256_HEX]) {
  AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0};
  const struct workflow_source source = {.path = f->path,
                                         .text = buf_c(&t->text),
                                         .n = t->text.n,
                                         .inputs = given ? f->inputs : NULL,
                                         .replace = given ? f->replace : NULL};
  struct workflow *wf =
      preflight_load(source, f->cwd, t->config, f->registry, &errors, &warnings, NULL);
  bool ok = wf != NULL && errors.count == 0;
  if (ok) {
    sandbox_inherit(t->config, wf, t->providers);
    workflow_hash(wf, sha256);
    asks_find(t, wf);
  }
  workflow_unref(wf);
  return ok;
}

bool trust_read(struct trust *t, const struct trust_file *f) {
  struct err err;
  t->providers = registry_capabilities(f->registry);
  t->config = json_clone_top(f->config);
  json_object_set_new(t->config, "sandbox", json_clone_top(json_object_get(t->config, "sandbox")));
  if (!file_read(f->path, LIMIT_WORKFLOW_BYTES, &t->text, &err))
    return false;
  bool given = trust_load(t, f, true, t->given), more = f->inputs != NULL || f->replace != NULL;
  memcpy(t->sha256, t->given, sizeof t->sha256);
  /* another input is the person's own word: they count only where it cannot be read without */
  return (more && trust_load(t, f, false, t->sha256)) || given;
}

bool trust_keep(const struct trust *t, struct err *err) {
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

bool trust_has_place(const char *path) {
  char folders[2][PATHS_BYTES], real[PATH_MAX];
  bool below = false;
  paths_called(folders[0], folders[1]);
  for (size_t i = 0; i < 2; i++)
    below |= realpath(folders[i], real) != NULL && fs_below(path, real) != NULL;
  return below;
}

json_t *trust_more(const struct trust *t) {
  json_t *more = json_array();
  for (size_t i = 0; i < json_array_size(t->asks); i++)
    if (!asks_have(json_object_get(t->last, "asks"), json_array_get(t->asks, i)))
      json_array_append(more, json_array_get(t->asks, i));
  return more;
}

json_t *trust_of_loaded(struct workflow *wf, const struct trust_file *f) {
  AUTO(trust_deinit) struct trust t = {0}, file = {0};
  char sha256[SHA256_HEX];
  struct err err;
  t.providers = registry_capabilities(f->registry);
  t.config = json_incref((json_t *)f->config);
  char_auto_t *real = f->path ? realpath(f->path, NULL) : NULL;
  if (real == NULL || !trust_has_place(real))
    asks_find(&t, wf);
  workflow_hash(wf, sha256);
  if (real != NULL && json_array_size(t.asks) > 0 && trust_read(&file, f) &&
      strcmp(file.given, sha256) == 0 && trust_recall(&file, real, &err))
    return trust_more(&file);
  return trust_more(&t);
}
