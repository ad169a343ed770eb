/* Reports the state of the providers and of the daemon. */
#include "daemon/provider_status.h"

#include "base/limits.h"
#include "base/log.h"
#include "daemon/control.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "os/tmpdir.h"
#include "provider/agent/agent.h"
#include "provider/agent/program_version.h"
#include "provider/probe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

/* --- versions ---
 *
 * Finds out the versions of agents' programs by running them, and keeps the answers.
 *
 *   versions_known(&vs)              {program: version} of those that answered: a new object
 *   versions_want(&vs, provider, program)    asked, unless that was done lately or is being done;
 *                                    told(ctx) once something new is known
 *   versions_close(&vs)              none is asked any more; those that are asked are ended
 *   versions_deinit(&vs)             none is busy
 *
 * Each is a bounded run as `segue providers` makes it: LIMIT_VERSION_ASK_COUNT at a time, for
 * LIMIT_PROBE_WALL_MS at most, and not again for LIMIT_VERSION_FRESH_MS. From the loop only. */

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
  AUTO(arena_deinit) struct arena arena = {0};
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
}

static void versions_want(struct client_versions *vs, const struct provider *provider,
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

static json_t *versions_known(const struct client_versions *vs) {
  json_t *known = json_object();
  LIST_EACH(struct versions_item, item, in_versions, (struct list *)&vs->items)
    if (item->version[0] != '\0')
      json_object_set_new(known, item->program, json_text(str_from(item->version)));
  return known;
}

void versions_close(struct client_versions *vs) {
  vs->closing = true;
  LIST_EACH(struct versions_item, item, in_versions, &vs->items)
    if (item->process != NULL)
      process_cancel(item->process);
}

void versions_deinit(struct client_versions *vs) {
  assert(vs->busy == 0);
  LIST_EACH(struct versions_item, item, in_versions, &vs->items) {
    list_remove(&vs->items, &item->in_versions);
    free(item->program);
    free(item);
  }
}

/* --- provider_status --- */

struct provider_status {
  struct generation *generation; /* whose registry is read */
  json_t *providers;             /* one object per provider, in the registry's order */
  json_t *daemon;
  struct client_versions *versions;
  json_t *known; /* of versions */
  json_t *found; /* programs by provider: written in the pool */
};

static void put_until(json_t *out, const char *key, uint64_t until_ms, uint64_t now_ms) {
  char at[RECORD_TIME_BYTES];
  if (until_ms <= now_ms) {
    json_object_set_new(out, key, json_null());
    return;
  }
  record_time(clock_real_ms() + (int64_t)(until_ms - now_ms), at);
  json_object_set_new(out, key, json_string(at));
}

static json_t *ability_of(const struct control *api, struct str name) {
  const struct call_queue *gate = &api->sessions->host->gate;
  struct admission_look look = {0};
  uint64_t now_ms = uv_now(api->sessions->host->loop);
  json_t *out = json_object();
  admission_look_at(&gate->admission, name, &look);
  json_put(out, "calls", json_integer(look.open));
  json_put(out, "waiting", json_integer((json_int_t)call_queue_waiting(gate, name)));
  json_put(out, "places", look.limit > 0 ? json_integer(look.limit) : json_null());
  put_until(out, "cooldown_until", look.cool_until_ms, now_ms);
  const char *circuit = look.away.next_ms > now_ms ? "open" : "trying";
  json_put(out, "circuit", json_string(look.away.class == CLASS_NONE ? "closed" : circuit));
  put_until(out, "circuit_until", look.away.next_ms, now_ms);
  json_put(out, "failures", json_integer(look.failures));
  recent_failures_tell(&api->metrics.troubles, name, clock_real_ms(), out);
  return out;
}

json_t *provider_status_daemon(const struct control *api) {
  const struct sessions *ss = api->sessions;
  return json_pack("{ss ss si ss ss s{sI sI sI} si}", "status",
                   api->draining ? "stopping" : "ready", "version", SEGUE_VERSION, "pid",
                   (int)getpid(), "started", api->started, "logs", ss->env->store->where,
                   "sessions", "running", (json_int_t)sessions_running(ss), "queued",
                   (json_int_t)sessions_queued(ss), "max", (json_int_t)ss->max_running,
                   "connections", (int)server_connections(api->http));
}

void *provider_status_new(void *ctx) {
  struct control *api = ctx;
  struct provider_status *a = xcalloc(1, sizeof *a);
  const struct provider *p;
  a->generation = generation_ref(api->sessions->env->generation);
  a->providers = json_array();
  a->found = json_object();
  for (size_t i = 0; (p = registry_at(a->generation->registry, i)) != NULL; i++)
    json_array_append_new(a->providers, ability_of(api, str_from(p->capability.name)));
  a->daemon = provider_status_daemon(api);
  a->versions = &api->versions;
  a->known = versions_known(&api->versions);
  return a;
}

json_t *provider_status_read(void *ctx) {
  struct provider_status *a = ctx;
  json_t *list = json_array();
  struct statvfs st;
  const char *where = json_string_value(json_at(a->daemon, "logs"));
  bool known = where != NULL && statvfs(where, &st) == 0;
  json_put(a->daemon, "disk_free_bytes",
           known ? json_integer((json_int_t)st.f_bavail * (json_int_t)st.f_frsize) : json_null());
  JSON_EACH(a->providers, i, live) {
    const struct provider *p = registry_at(a->generation->registry, i);
    struct backend_probe probe;
    probe_look(p, &probe);
    if (probe.has_program && probe.installed) {
      const char *version = json_string_value(json_object_get(a->known, probe.program));
      json_object_set_new(a->found, p->capability.name, json_text(str_from(probe.program)));
      if (version != NULL)
        probe_put_version(&probe, p, version);
    }
    json_t *one = probe_json(&probe, p);
    json_object_update(one, live);
    json_array_append_new(list, one);
  }
  return json_pack("{so sO}", "providers", list, "daemon", a->daemon);
}

void provider_status_free(void *ctx) {
  struct provider_status *a = ctx;
  /* Asks for missing versions only after the answer: whoever is looking learns of them later. */
  const struct provider *p;
  for (size_t i = 0; (p = registry_at(a->generation->registry, i)) != NULL; i++) {
    const char *program = json_string_value(json_object_get(a->found, p->capability.name));
    if (program != NULL)
      versions_want(a->versions, p, program);
  }
  generation_unref(a->generation);
  json_decref(a->providers);
  json_decref(a->daemon);
  json_decref(a->known);
  json_decref(a->found);
  free(a);
}

static void provider_status_work(void *what, struct read_job_answer *answer) {
  json_auto_t *value = provider_status_read(what);
  json_write(value, &answer->body);
}

void control_get_providers(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  read_job_take(&api->readings, r, provider_status_work, provider_status_free,
                provider_status_new(api));
}
