/* Asks programs for their versions. */
#include "daemon/versions.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "os/tmpdir.h"
#include "provider/agent/agent.h"
#include "provider/agent/program_version.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct versions_item {
  struct list_node in_versions;
  struct client_versions *all;
  char *program;
  char version[64];  /* "" if it gave none */
  uint64_t asked_ms; /* of the monotonic clock */
  struct process *process;
  char *tmpdir;
};

static struct versions_item *versions_find(const struct client_versions *vs, const char *program) {
  LIST_EACH(struct versions_item, item, in_versions, (struct list *)&vs->items)
    if (strcmp(item->program, program) == 0)
      return item;
  return NULL;
}

static void remove_own_tmpdir(struct versions_item *item) {
  struct err err;
  if (item->tmpdir != NULL && !tmpdir_remove(item->tmpdir, &err))
    log_warn("%s", err.text);
  free(item->tmpdir);
  item->tmpdir = NULL;
}

static void versions_on_end(void *ctx, struct process_result *result) {
  struct versions_item *item = ctx;
  struct client_versions *vs = item->all;
  char before[sizeof item->version];
  memcpy(before, item->version, sizeof before);
  item->process = NULL;
  (void)version_read(result, item->version, sizeof item->version);
  remove_own_tmpdir(item);
  assert(vs->busy > 0);
  vs->busy--;
  if (!vs->closing && strcmp(before, item->version) != 0)
    vs->told(vs->ctx);
}

static void versions_ask(struct versions_item *item, const struct provider *provider) {
  struct arena arena = {0};
  struct err err;
  item->asked_ms = clock_mono_ms();
  item->tmpdir = tmpdir_make(&err);
  const char *const *envp =
      item->tmpdir != NULL ? process_env_build(&arena, item->tmpdir, NULL, NULL, &err) : NULL;
  const struct process_spec spec = {
      .argv = version_words(provider_profile(provider), item->program, provider->settings, &arena),
      .cwd = item->tmpdir, /* away from any project's configuration */
      .envp = envp,
      .stdout_max = LIMIT_VERSION_BYTES,
      .stderr_max = LIMIT_VERSION_BYTES,
      .wall_ms = LIMIT_PROBE_WALL_MS};
  if (envp != NULL)
    item->process = process_start(item->all->processes, &spec, NULL, versions_on_end, item, &err);
  if (item->process != NULL)
    item->all->busy++;
  else
    remove_own_tmpdir(item);
  arena_deinit(&arena);
}

void versions_want(struct client_versions *vs, const struct provider *provider,
                   const char *program) {
  assert(provider_profile(provider) != NULL);
  struct versions_item *item = versions_find(vs, program);
  if (vs->closing || vs->busy >= LIMIT_VERSION_ASK_COUNT)
    return;
  if (item != NULL &&
      (item->process != NULL || clock_mono_ms() - item->asked_ms < LIMIT_VERSION_FRESH_MS))
    return;
  if (item == NULL && vs->items.count == LIMIT_VERSION_COUNT)
    return;
  if (item == NULL) {
    item = xcalloc(1, sizeof *item);
    item->all = vs;
    item->program = xstrdup(program);
    list_push_back(&vs->items, &item->in_versions);
  }
  versions_ask(item, provider);
}

json_t *versions_known(const struct client_versions *vs) {
  json_t *known = json_object();
  LIST_EACH(struct versions_item, item, in_versions, (struct list *)&vs->items)
    if (item->version[0] != '\0')
      json_object_set_new(known, item->program, json_text(str_from(item->version)));
  return known;
}

size_t versions_busy(const struct client_versions *vs) {
  return vs->busy;
}

void versions_close(struct client_versions *vs) {
  vs->closing = true;
  LIST_EACH(struct versions_item, item, in_versions, &vs->items)
    if (item->process != NULL)
      process_cancel(item->process);
}

void versions_init(struct client_versions *vs, struct process_table *processes,
                   void (*told)(void *ctx), void *ctx) {
  *vs = (struct client_versions){.processes = processes, .told = told, .ctx = ctx};
}

void versions_deinit(struct client_versions *vs) {
  assert(vs->busy == 0);
  LIST_EACH(struct versions_item, item, in_versions, &vs->items) {
    list_remove(&vs->items, &item->in_versions);
    free(item->program);
    free(item);
  }
}
