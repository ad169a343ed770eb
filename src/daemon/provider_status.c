/* Reports the state of the providers and of the daemon. */
#include "daemon/provider_status.h"

#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "provider/probe.h"

#include <stdlib.h>
#include <sys/statvfs.h>

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

static const char *circuit_word(const struct admission_look *look, uint64_t now_ms) {
  if (look->open_until_ms == 0)
    return "closed";
  return look->open_until_ms > now_ms ? "open" : "trying";
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
  json_put(out, "circuit", json_string(circuit_word(&look, now_ms)));
  put_until(out, "circuit_until", look.open_until_ms, now_ms);
  json_put(out, "failures", json_integer(look.failures));
  recent_failures_tell(&api->metrics.troubles, name, clock_real_ms(), out);
  return out;
}

struct provider_status *provider_status_new(struct control *api) {
  struct provider_status *a = xcalloc(1, sizeof *a);
  const struct provider *p;
  a->generation = generation_ref(api->sessions->env->generation);
  a->providers = json_array();
  a->found = json_object();
  for (size_t i = 0; (p = registry_at(a->generation->registry, i)) != NULL; i++)
    json_array_append_new(a->providers, ability_of(api, str_from(p->capability.name)));
  a->daemon = control_health(api);
  a->versions = &api->versions;
  a->known = versions_known(&api->versions);
  return a;
}

static void put_disk(json_t *daemon) {
  struct statvfs st;
  const char *where = json_string_value(json_at(daemon, "logs"));
  bool known = where != NULL && statvfs(where, &st) == 0;
  json_put(daemon, "disk_free_bytes",
           known ? json_integer((json_int_t)st.f_bavail * (json_int_t)st.f_frsize) : json_null());
}

json_t *provider_status_read(void *ctx) {
  struct provider_status *a = ctx;
  json_t *list = json_array(), *live;
  size_t i;
  put_disk(a->daemon);
  json_array_foreach(a->providers, i, live) {
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
  json_t *out = json_object();
  json_put(out, "providers", list);
  json_put(out, "daemon", json_incref(a->daemon));
  return out;
}

/* Asks for missing versions only after the answer: whoever is looking learns of them later. */
static void want_versions(struct provider_status *a) {
  const struct provider *p;
  for (size_t i = 0; (p = registry_at(a->generation->registry, i)) != NULL; i++) {
    const char *program = json_string_value(json_object_get(a->found, p->capability.name));
    if (program != NULL)
      versions_want(a->versions, p, program);
  }
}

void provider_status_free(void *ctx) {
  struct provider_status *a = ctx;
  want_versions(a);
  generation_unref(a->generation);
  json_decref(a->providers);
  json_decref(a->daemon);
  json_decref(a->known);
  json_decref(a->found);
  free(a);
}

static void provider_status_work(void *what, struct read_job_answer *answer) {
  json_t *value = provider_status_read(what);
  json_write(value, &answer->body);
  json_decref(value);
}

void control_get_providers(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  read_job_take(&api->readings, r, provider_status_work, provider_status_free,
                provider_status_new(api));
}
