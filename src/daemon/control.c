/* Answers the routes of the control API. */
#include "daemon/control_internal.h"

#include "daemon/abilities.h"
#include "daemon/counts.h"
#include "daemon/listing.h"
#include "daemon/lookup.h"
#include "daemon/question.h"
#include "daemon/view.h"
#include "daemon/window/window.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "core/record.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "store/select.h"
#include "store/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a session as JSON --- */

void control_reply_session(const struct control *api, struct server_request *r, unsigned status,
                           const char *id) {
  struct view v;
  struct err err = {0};
  if (!view_of(&v, api->sessions, id, &err)) {
    server_problem(r, 404, NULL, "there is no session %s", id);
    return;
  }
  server_reply_json(r, status, view_json(&v, api->sessions));
  view_deinit(&v);
}

bool control_store_answers(const struct control *api, struct server_request *r) {
  struct err err = {0};
  if (worker_answers(api->sessions->env->store, &err))
    return true;
  server_set_header(r, "Retry-After", "1");
  server_problem(r, 503, NULL, "%s", err.text);
  return false;
}

/* Resolves an id, a unique prefix of one, or "last" to the whole id. Returns false if it has
 * answered the request. */
bool control_find(struct control *api, struct server_request *r, char id[STORE_ID_BYTES]) {
  const char *word = server_part(r);
  struct store_ref ref;
  struct err err = {0};
  bool is_id = strspn(word, "0123456789abcdef-") == strlen(word);
  if (is_id && strlen(word) == STORE_ID_BYTES - 1) {
    memcpy(id, word, STORE_ID_BYTES);
    return true;
  }
  if (!control_store_answers(api, r))
    return false;
  if (api->sessions->shared) {
    reading_find(&api->readings, r, api->sessions->env->store);
    return false;
  }
  if ((!is_id && strcmp(word, "last") != 0) ||
      !store_find(api->sessions->env->store, word, &ref, &err)) {
    server_problem(r, 404, NULL, "%s", err.text[0] ? err.text : "that is not a session's id");
    return false;
  }
  store_ref_id(&ref, id);
  return true;
}

struct daemon_entry *control_entry(struct control *api, struct server_request *r, const char *id) {
  struct err err = {0};
  struct daemon_entry *e = sessions_find(api->sessions, id);
  if (!view_is_in_memory(api->sessions, id) && !control_store_answers(api, r))
    return NULL;
  if (e == NULL)
    e = sessions_adopt(api->sessions, id, &err);
  if (e == NULL || e->brief.seq == 0) {
    server_problem(r, 404, NULL, "there is no session %s", id);
    return NULL;
  }
  return e;
}

static void get_session(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  char id[STORE_ID_BYTES];
  if (!control_find(api, r, id))
    return;
  if (view_is_in_memory(api->sessions, id))
    control_reply_session(api, r, 200, id);
  else
    listing_take_one(&api->readings, r, api->sessions, id);
}

/* --- lists --- */

static bool read_limit(struct server_request *r, size_t *limit) {
  const char *given = server_query(r, "limit");
  long n = 100;
  if (given != NULL && (!str_to_long(str_from(given), &n) || n < 1 || n > LIMIT_API_PAGE_COUNT)) {
    server_problem(r, 400, NULL, "limit must be a number from 1 to %u", LIMIT_API_PAGE_COUNT);
    return false;
  }
  *limit = (size_t)n;
  return true;
}

/* Returns false if it has answered the request. */
static bool read_wanted(struct server_request *r, struct select *wanted, const char **before) {
  const char *since = server_query(r, "since");
  struct err err = {0};
  *wanted = (struct select){.statuses = server_query(r, "status"),
                            .workflow = server_query(r, "workflow"),
                            .method = server_query(r, "method"),
                            .provider = server_query(r, "provider")};
  *before = server_query(r, "before");
  if ((since != NULL && !select_since(since, clock_real_ms(), &wanted->since_ms, &err)) ||
      !select_check(wanted, &err)) {
    server_problem(r, 400, NULL, "%s", err.text);
    return false;
  }
  if (*before != NULL && strspn(*before, "0123456789abcdef-") != STORE_ID_BYTES - 1) {
    server_problem(r, 400, NULL, "before must be a session's id: `next` of the previous page");
    return false;
  }
  return true;
}

static void list_sessions(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  const char *before;
  struct select wanted;
  size_t limit;
  if (read_wanted(r, &wanted, &before) && read_limit(r, &limit))
    listing_take(&api->readings, r, api->shelf, api->sessions, &wanted, limit);
}

static void get_inbox(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  listing_take_inbox(&api->readings, r, api->shelf, api->sessions);
}

/* --- events --- */

/* Reads which record the client saw last. Returns false if it has answered the request. */
static bool last_seen(struct server_request *r, uint64_t *seq) {
  const char *given = server_header(r, "Last-Event-ID");
  long n = 0;
  if (given == NULL)
    given = server_query(r, "after");
  if (given != NULL && (!str_to_long(str_from(given), &n) || n < 0)) {
    server_problem(r, 400, NULL, "Last-Event-ID must be the number of a record");
    return false;
  }
  *seq = (uint64_t)n;
  return true;
}

static void act_watch(struct about *a, struct server_request *r, struct daemon_entry *e) {
  struct err err = {0};
  struct view v;
  bool seen = false;
  if (view_of(&v, a->api->sessions, e->id, &err)) {
    bool runs = view_is_unfinished(v.brief) && strcmp(v.status, "open") != 0;
    bool over = !entry_is_live(e) && !runs;
    seen = over && a->seq >= v.brief->seq;
    view_deinit(&v);
  }
  if (seen) /* this stops an EventSource from reconnecting */
    server_reply(r, 204, NULL, STR(""));
  else
    entry_watch(e, r, a->seq);
  about_free(a);
}

static void watch_session(void *ctx, struct server_request *r) {
  struct about *a = about_new(ctx, act_watch);
  store_reads_nothing(false); /* a feed sends the log itself, by the KiB, as the client takes it */
  if (last_seen(r, &a->seq))
    about_take(a, r);
  else
    about_free(a);
}

/* --- the rest --- */

static void watch_all(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  const char *last = server_header(r, "Last-Event-ID");
  news_watch(&api->news, r, last != NULL ? last : server_query(r, "after"));
}

json_t *control_health(const struct control *api) {
  const struct sessions *ss = api->sessions;
  return json_pack("{ss ss si ss ss s{sI sI sI} si}", "status",
                   api->draining ? "stopping" : "ready", "version", SEGUE_VERSION, "pid",
                   (int)getpid(), "started", api->started, "logs", ss->env->store->where,
                   "sessions", "running", (json_int_t)sessions_running(ss), "queued",
                   (json_int_t)sessions_queued(ss), "max", (json_int_t)ss->max_running,
                   "connections", (int)server_connections(api->http));
}

static void get_health(void *ctx, struct server_request *r) {
  server_reply_json(r, 200, control_health(ctx));
}

static void get_description(void *ctx, struct server_request *r) {
  const struct resource *file = resource_find("schemas/api.json");
  (void)ctx;
  server_reply(r, 200, "application/json", (struct str){file->p, file->n});
}

static const char *const list_query[] = {"status", "since", "workflow", "method", "provider",
                                         "text",   "sort",  "before",   "limit",  NULL};
static const char *const watch_query[] = {"after", NULL};
static const char *const compare_query[] = {"a", "b", NULL};

const struct server_route control_routes[] = {
    {"POST", "/v1/sessions", "submit a session", TAKES_JSON, NULL, control_submit},
    {"GET", "/v1/sessions",
     "list sessions, newest first (status, since, workflow, method, provider, text, sort, before, "
     "limit)",
     TAKES_NOTHING, list_query, list_sessions},
    {"GET", "/v1/sessions/{id}", "one session", TAKES_NOTHING, NULL, get_session},
    {"GET", "/v1/sessions/{id}/events", "its records as server-sent events (Last-Event-ID, after)",
     TAKES_NOTHING, watch_query, watch_session},
    {"GET", "/v1/events", "changes of all sessions as server-sent events (Last-Event-ID, after)",
     TAKES_NOTHING, watch_query, watch_all},
    {"GET", "/v1/sessions/{id}/view", "its view, as segue show --as view prints it", TAKES_NOTHING,
     NULL, control_get_view},
    {"GET", "/v1/sessions/{id}/turns", "its turns (after, limit)", TAKES_NOTHING, lookup_page_query,
     control_get_turns},
    {"GET", "/v1/sessions/{id}/turns/{turn}", "a judgment in full", TAKES_NOTHING, NULL,
     control_get_turn},
    {"GET", "/v1/sessions/{id}/calls/{call}", "all records of a call", TAKES_NOTHING, NULL,
     control_get_call},
    {"GET", "/v1/sessions/{id}/text", "a text of a record (ref, offset, limit)", TAKES_NOTHING,
     lookup_text_query, control_get_text},
    {"GET", "/v1/sessions/{id}/records", "its records (after, limit)", TAKES_NOTHING,
     lookup_page_query, control_get_records},
    {"GET", "/v1/sessions/{id}/find", "find a text in it (text)", TAKES_NOTHING, lookup_find_query,
     control_get_found},
    {"GET", "/v1/sessions/{id}/changes", "the lines it changed in its files", TAKES_NOTHING, NULL,
     control_get_changes},
    {"GET", "/v1/sessions/{id}/integrity", "verify its log", TAKES_NOTHING, NULL,
     control_get_integrity},
    {"POST", "/v1/sessions/{id}/cancel", "end it for good", TAKES_NOTHING, NULL, control_cancel},
    {"POST", "/v1/sessions/{id}/resume", "resume a stopped session", TAKES_JSON_OR_NOTHING, NULL,
     control_resume},
    {"POST", "/v1/sessions/{id}/answer", "answer its question", TAKES_JSON, NULL,
     control_take_answer},
    {"POST", "/v1/sessions/{id}/approve", "approve the movement it wants to run",
     TAKES_JSON_OR_NOTHING, NULL, control_approve},
    {"POST", "/v1/sessions/{id}/reject", "reject the movement it wants to run",
     TAKES_JSON_OR_NOTHING, NULL, control_reject},
    {"GET", "/v1/inbox", "the open questions", TAKES_NOTHING, NULL, get_inbox},
    {"POST", "/v1/sessions/{id}/fork", "fork a session", TAKES_JSON, NULL, control_fork},
    {"POST", "/v1/judge", "judge a text", TAKES_JSON, NULL, control_judge},
    {"POST", "/v1/ask", "ask for a value that matches a schema", TAKES_JSON, NULL, control_ask},
    {"POST", "/v1/lint", "check a workflow", TAKES_JSON, NULL, control_lint},
    {"POST", "/v1/plan", "plan a session", TAKES_JSON, NULL, control_plan},
    {"GET", "/v1/audit",
     "count judgments (by, since, workflow, movement, method, provider, model, worker, outcome, "
     "min_stages, ambiguous)",
     TAKES_NOTHING, counts_query, control_get_audit},
    {"GET", "/v1/compare", "two sessions side by side (a, b)", TAKES_NOTHING, compare_query,
     control_get_compare},
    {"GET", "/v1/providers", "providers: calls, places, cooldowns, circuits, errors", TAKES_NOTHING,
     NULL, control_get_providers},
    {"POST", "/v1/web/codes", "open the web page's port and return a code for it",
     TAKES_JSON_OR_NOTHING, NULL, control_post_code},
    {"GET", "/metrics", "counters for Prometheus", TAKES_NOTHING, NULL, control_get_metrics},
    {"GET", "/v1/health", "the daemon's state", TAKES_NOTHING, NULL, get_health},
    {"GET", "/v1/openapi.json", "this interface as OpenAPI 3.1", TAKES_NOTHING, NULL,
     get_description},
    {0},
};

bool control_idle(const struct control *api) {
  return api->intake.jobs.count == 0 && readings_busy(&api->readings) == 0 &&
         versions_busy(&api->versions) == 0 &&
         (api->window == NULL || window_busy(api->window) == 0);
}

void control_drain(struct control *api) {
  api->draining = true;
  versions_close(&api->versions);
}

void control_close(struct control *api) {
  window_free(api->window);
  api->window = NULL;
  news_close(&api->news);
  shelf_free(api->shelf);
  api->shelf = NULL;
}

void control_deinit(struct control *api) {
  metrics_deinit(&api->metrics);
  versions_deinit(&api->versions);
  tails_deinit(&api->tails);
  news_deinit(&api->news);
}

/* Pages that show providers reload themselves. */
static void control_on_version(void *ctx) {
  struct control *api = ctx;
  if (api->window != NULL)
    window_changed(api->window, NULL);
}

void control_init(struct control *api, struct sessions *sessions) {
  *api = (struct control){.sessions = sessions};
  sessions->recorded = control_on_record;
  sessions->said = control_on_said;
  sessions->observer = api;
  readings_init(&api->readings, sessions->host->loop);
  versions_init(&api->versions, sessions->host->processes, control_on_version, api);
  news_init(&api->news, sessions->host->loop);
  api->shelf = shelf_new(sessions->host->loop);
  intake_init(&api->intake, sessions->host->loop, sessions->env, api);
  record_time(clock_real_ms(), api->started);
}
