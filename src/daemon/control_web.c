/* Opens the window for clients of the control socket. */
#include "daemon/control.h"

#include "base/limits.h"
#include "base/log.h"
#include "daemon/abilities.h"
#include "daemon/window/window.h"
#include "format/json_object.h"
#include "host/day_book.h"

#include <stdio.h>
#include <string.h>

/* Closes the window after nobody has looked for a long time. */
static void on_idle(void *ctx) {
  struct control *api = ctx;
  window_free(api->window);
  api->window = NULL;
}

/* Gives the pages the status of waiting sessions: their logs say only that they began. */
static size_t control_live(void *ctx, struct page_live **list) {
  static const enum entry_state states[] = {ENTRY_WRITING, ENTRY_QUEUED, ENTRY_OPENING,
                                            ENTRY_BROKEN, ENTRY_RUNNING};
  const struct control *api = ctx;
  size_t count = 0, n = 0;
  for (size_t k = 0; k < ARRAY_LEN(states); k++)
    count += api->sessions->lists[states[k]].count;
  *list = xcalloc(count + 1, sizeof **list);
  for (size_t k = 0; k < ARRAY_LEN(states); k++)
    LIST_EACH(struct daemon_entry, e, in_state, &api->sessions->lists[states[k]]) {
      struct page_live *live = &(*list)[n++];
      memcpy(live->id, e->id, sizeof live->id);
      (void)snprintf(live->status, sizeof live->status, "%s", entry_status(e));
    }
  return n;
}

static size_t control_said(void *ctx, const char *id, struct page_said **list) {
  const struct control *api = ctx;
  return tails_of(&api->tails, id, list);
}

static void *control_about(void *ctx) {
  return abilities_new(ctx);
}

static json_t *control_day(void *ctx) {
  const struct control *api = ctx;
  const struct generation *now = api->sessions->env->generation;
  return day_book_json(&api->sessions->host->day, day_set_of(now->registry));
}

bool control_open_window(struct control *api, const char *address, struct err *err) {
  const struct window_options options = {.loop = api->sessions->host->loop,
                                         .store = api->sessions->env->store,
                                         .shelf = api->shelf,
                                         .processes = api->sessions->host->processes,
                                         .address = address,
                                         .origin = api->http_origin,
                                         .any_peer = api->http_any_peer,
                                         .act = control_act,
                                         .live = control_live,
                                         .said = control_said,
                                         .about = control_about,
                                         .about_read = abilities_read,
                                         .about_drop = abilities_free,
                                         .day = control_day,
                                         .idle = address == NULL ? on_idle : NULL,
                                         .ctx = api};
  if (api->window == NULL)
    api->window = window_new(&options, err);
  return api->window != NULL;
}

static bool web_body(struct server_request *r, bool *read_only, bool *revoke) {
  struct str body = server_body(r);
  json_error_t why;
  const char *key;
  json_t *value;
  if (body.n == 0)
    return true;
  json_t *given = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, &why);
  bool ok = json_is_object(given);
  json_object_foreach(given, key, value) {
    struct str name = str_from(key);
    ok = ok && json_is_boolean(value) && (str_eq_c(name, "read_only") || str_eq_c(name, "revoke"));
  }
  *read_only = json_is_true(json_at(given, "read_only"));
  *revoke = json_is_true(json_at(given, "revoke"));
  json_decref(given);
  if (!ok)
    server_problem(r, 422, NULL,
                   "the body is an object with read_only and revoke, each true or false");
  return ok;
}

void control_post_code(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct err err = {0};
  char url[WINDOW_URL_BYTES], code[WINDOW_CODE_BYTES];
  bool read_only = false, revoke = false;
  if (!web_body(r, &read_only, &revoke))
    return;
  if (revoke) {
    if (api->window != NULL)
      window_revoke(api->window);
    server_reply_json(r, 200, json_pack("{sb}", "revoked", 1));
    return;
  }
  if (!control_open_window(api, NULL, &err)) {
    server_problem(r, 503, NULL, "%s", err.text);
    return;
  }
  window_url(api->window, url);
  window_code(api->window, read_only, code);
  server_reply_json(
      r, 201,
      json_pack("{ss ss si}", "url", url, "code", code, "seconds", LIMIT_WINDOW_CODE_MS / 1000));
}
