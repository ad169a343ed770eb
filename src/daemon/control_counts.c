/* Answers requests for what is read from logs or counted: a session, audits, metrics. */
#include "daemon/control_internal.h"

#include "daemon/counts.h"
#include "daemon/difference.h"
#include "daemon/lookup.h"
#include "daemon/view.h"
#include "daemon/window/window.h"
#include "format/json_write.h"

#include <string.h>

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
    tails_end(&api->tails, e->id, 0);
  else if (record->type == RECORD_CALL_START || record->type == RECORD_CALL_END)
    tails_end(&api->tails, e->id, (long)record_number(record, MEMBER_CALL));
  if (record == NULL)
    metrics_forget(&api->metrics, e);
  else
    metrics_record(&api->metrics, e, record);
  if (record != NULL && (record->type == RECORD_TURN_START || record->type == RECORD_JUDGMENT))
    news_add(&api->news, e->id, entry_status(e), e->brief.seq);
  if (record != NULL && api->window != NULL)
    window_changed(api->window, e->id);
}

void control_on_said(void *observer, const struct daemon_entry *e, long turn, long call,
                     bool thinking, struct str text) {
  struct control *api = observer;
  const struct tail *tail = tails_add(&api->tails, e->id, turn, call, thinking, text);
  if (api->window != NULL)
    window_said(api->window, e->id, call, thinking, thinking ? tail->thinking.end : tail->text.end,
                text);
}

/* Finds the log of the session that the request names. Returns false if it has answered. */
static bool control_log(struct control *api, struct server_request *r, struct store_ref *ref) {
  char id[STORE_ID_BYTES];
  const struct store *store = api->sessions->env->store;
  if (!control_find(api, r, id))
    return false;
  store_ref(store, id, ref);
  if (view_is_in_memory(api->sessions, id) || server_is_again(r))
    return true;
  if (api->sessions->shared) {
    reading_find(&api->readings, r, store);
    return false;
  }
  if (store_is_there(ref))
    return true;
  server_problem(r, 404, NULL, "there is no session %s", id);
  return false;
}

static void control_look(struct control *api, struct server_request *r, enum lookup what) {
  struct store_ref ref;
  if (control_log(api, r, &ref))
    lookup_take(&api->readings, r, api->shelf, &ref, what);
}

static void control_on_changes(void *ctx, struct server_request *r,
                               const struct difference *difference) {
  json_t *told = json_pack("{so sb}", "diff", json_text(difference->diff), "cut", difference->cut);
  (void)ctx;
  if (difference->why != NULL)
    json_object_set_new(told, "error", json_text(str_from(difference->why)));
  server_reply_json(r, 200, told);
}

void control_get_changes(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct store_ref ref;
  const struct difference_ask ask = {.processes = api->sessions->host->processes,
                                     .done = control_on_changes};
  if (control_log(api, r, &ref))
    difference_take(&api->readings, &ask, r, &ref);
}

void control_get_view(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_VIEW);
}

void control_get_turns(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_TURNS);
}

void control_get_turn(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_TURN);
}

void control_get_call(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_CALL);
}

void control_get_text(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_TEXT);
}

void control_get_records(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_RECORDS);
}

void control_get_found(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_FIND);
}

void control_get_integrity(void *api, struct server_request *r) {
  control_look(api, r, LOOKUP_INTEGRITY);
}

void control_get_compare(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  const char *a = server_query(r, "a"), *b = server_query(r, "b");
  if (a == NULL || a[0] == '\0' || b == NULL || b[0] == '\0')
    server_problem(r, 400, NULL, "give two sessions: a and b");
  else if (control_store_answers(api, r))
    lookup_compare(&api->readings, r, api->sessions->env->store, a, b);
}
