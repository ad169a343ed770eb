/* Writes the first record of a session into a shared store and lets go of it. */
#include "cli/shared/submitting.h"

#include "base/log.h"
#include "daemon/launch.h"
#include "host/solo.h"

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

json_t *submitting_send(const char *store, const json_t *body, struct err *err,
                        struct err_list *errors) {
  struct submitting s = {.written = false};
  struct launch l;
  json_t *told = NULL;
  struct generation *generation = generation_new(err);
  if (generation == NULL)
    return NULL;
  if (solo_init_to_submit(&s.solo, store, generation->registry, err)) {
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
