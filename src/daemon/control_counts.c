/* Answers what is read from logs or counted: a session, audits, metrics. */
#include "daemon/control.h"

#include "daemon/counts.h"
#include "daemon/lookup.h"
#include "daemon/window/window.h"

void control_get_audit(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  counts_take(&api->readings, r, api->sessions->env->store);
}

void control_get_metrics(void *ctx, struct server_request *r) {
  const struct control *api = ctx;
  struct buf text = {0};
  metrics_print(&api->metrics, api->sessions, &text);
  server_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", buf_view(&text));
  buf_deinit(&text);
}

void control_on_record(void *observer, const struct daemon_entry *e, const struct record *record) {
  struct control *api = observer;
  if (record == NULL)
    metrics_forget(&api->metrics, e);
  else
    metrics_record(&api->metrics, e, record);
  if (record != NULL && api->window != NULL)
    window_changed(api->window);
}

static void control_look(struct control *api, struct server_request *r, enum lookup what) {
  char id[STORE_ID_BYTES];
  struct store_ref ref;
  if (!control_find(api, r, id))
    return;
  store_ref(api->sessions->env->store, id, &ref);
  if (store_is_there(&ref))
    lookup_take(&api->readings, r, &ref, what, server_part2(r));
  else
    server_problem(r, 404, NULL, "there is no session %s", id);
}

void control_get_view(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_VIEW);
}

void control_get_turn(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_TURN);
}

void control_get_integrity(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_INTEGRITY);
}
