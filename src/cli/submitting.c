/* Writes the first record of a session into a shared store and lets go of it. */
#include "cli/submitting.h"

#include "base/limits.h"
#include "base/log.h"
#include "daemon/launch.h"
#include "host/solo.h"
#include "store/worker.h"

#include <string.h>

struct submitting {
  struct solo solo;
  bool written;
  struct err err;
};

static void submitting_on_record(void *ctx, const struct record *record, struct str line) {
  struct submitting *s = ctx;
  (void)record;
  (void)line;
  s->written = true;
  solo_finished(&s->solo);
}

static void submitting_on_finished(void *ctx, struct session *session) {
  struct submitting *s = ctx;
  if (session_broken(session) != NULL)
    s->err = *session_broken(session);
  solo_finished(&s->solo);
}

static const struct watcher submitting_watcher = {.record = submitting_on_record,
                                                  .finished = submitting_on_finished};

static json_t *submitting_write(struct submitting *s, const struct launch *l, struct err *err) {
  const struct session_params params = {.setup = l->setup,
                                        .workflow = l->workflow,
                                        .workflow_path = l->workflow_path,
                                        .task = buf_view(&l->task),
                                        .task_blob = l->task_blob,
                                        .config = l->config,
                                        .facets = l->facets,
                                        .hold = true};
  s->solo.session = host_start(&s->solo.host, &params, &submitting_watcher, s, err);
  if (s->solo.session == NULL)
    return NULL;
  (void)solo_run(&s->solo, NULL, NULL);
  if (!s->written) {
    *err = s->err;
    return NULL;
  }
  return json_pack("{ss ss ss}", "id", session_core(s->solo.session)->session, "status", "queued",
                   "log", session_log_name(s->solo.session));
}

/* The labels of "a,b"; list has room for LIMIT_STORE_LABEL_COUNT + 2, the texts stay for good. */
static void needs_of(const char *text, const char *list[]) {
  size_t count = 0;
  while (count <= LIMIT_STORE_LABEL_COUNT) {
    size_t n = strcspn(text, ",");
    list[count++] = xstrndup(text, n);
    text += n;
    if (*text++ != ',')
      break;
  }
  list[count] = NULL;
}

/* This program is the worker that makes the session. */
static bool submitting_be(const char *on, const struct config *config, const json_t *body,
                          struct err *err) {
  static const char *needs[LIMIT_STORE_LABEL_COUNT + 2];
  const char *cwd = json_string_value(json_object_get(body, "cwd"));
  if (on == NULL && cwd != NULL)
    on = config_shared_label(config, cwd);
  if (on == NULL)
    return true;
  needs_of(on, needs);
  const struct worker_options options = {.lease_ms = LIMIT_STORE_LEASE_MS, .needs = needs};
  return worker_be(&options, err);
}

json_t *submitting_send(const char *store, const char *on, const json_t *body, struct err *err,
                        struct err_list *errors) {
  struct submitting s = {.written = false};
  struct launch l;
  json_t *told = NULL;
  struct generation *generation = generation_new(err);
  if (generation == NULL)
    return NULL;
  if (submitting_be(on, &generation->user, body, err) &&
      solo_init(&s.solo, store, generation->registry, err)) {
    struct launch_env env = {
        .generation = generation, .store = &s.solo.store, .workflows = s.solo.host.workflows};
    launch_init(&l, &env);
    if (launch_parse(&l, body, err, errors)) {
      launch_share(&l);
      told = submitting_write(&s, &l, err);
    }
    solo_deinit(&s.solo);
    launch_deinit(&l);
  }
  generation_unref(generation);
  return told;
}
