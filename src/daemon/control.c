/* Answers the routes of the control API. */
#include "daemon/control.h"

#include "daemon/counts.h"
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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a session as JSON --- */

static void reply_session(const struct control *api, struct server_request *r, unsigned status,
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

/* The whole id for an id, a unique beginning of one, or "last". False: answered. */
bool control_find(const struct control *api, struct server_request *r, char id[STORE_ID_BYTES]) {
  const char *word = server_part(r);
  struct store_ref ref;
  struct err err = {0};
  bool is_id = strspn(word, "0123456789abcdef-") == strlen(word);
  if (is_id && strlen(word) == STORE_ID_BYTES - 1) {
    memcpy(id, word, STORE_ID_BYTES);
    return true;
  }
  if ((!is_id && strcmp(word, "last") != 0) ||
      !store_find(api->sessions->env->store, word, &ref, &err)) {
    server_problem(r, 404, NULL, "%s", err.text[0] ? err.text : "that is no session's id");
    return false;
  }
  store_ref_id(&ref, id);
  return true;
}

static void get_session(void *ctx, struct server_request *r) {
  char id[STORE_ID_BYTES];
  if (control_find(ctx, r, id))
    reply_session(ctx, r, 200, id);
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

/* False: answered. */
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
    server_problem(r, 400, NULL, "before must be a session's id: the next of the page before");
    return false;
  }
  return true;
}

enum { LOOK_BYTES = 64 * 1024 }; /* of a log that is read to its end: they count as one look */

/* NULL: not wanted, or no session yet. Adds to `looked` what it cost. */
static json_t *list_one(const struct control *api, const struct select *wanted,
                        const struct index *x, const char *id, size_t *looked) {
  struct view v;
  struct err err;
  struct store_ref ref;
  json_t *session = NULL;
  uint64_t bytes = 0;
  const struct index_row *row = NULL;
  if (x != NULL && sessions_find(api->sessions, id) == NULL)
    row = index_row(x, id);
  if (row != NULL && select_passes_over(wanted, x, row))
    return NULL;
  ++*looked;
  if (!view_of(&v, api->sessions, id, &err))
    return NULL;
  store_ref(api->sessions->env->store, id, &ref);
  if (brief_wanted(wanted->statuses, v.status) && select_wants_brief(wanted, v.brief)) {
    if (row == NULL && (wanted->method != NULL || wanted->provider != NULL) &&
        store_bytes(&ref, &bytes))
      *looked += (size_t)(bytes / LOOK_BYTES);
    if (select_wants_log(wanted, &ref, row))
      session = view_json(&v, api->sessions);
  }
  view_deinit(&v);
  return session;
}

/* Newest first. A page ends when it is full, or when so many logs were looked at that others would
 * have to wait; `next` then says where to go on. */
static void list_sessions(void *ctx, struct server_request *r) {
  const struct control *api = ctx;
  const struct store *store = api->sessions->env->store;
  const char *before, *last = NULL;
  struct select wanted;
  struct store_id *ids;
  size_t count, limit, i = 0, looked = 0;
  struct err err = {0};
  if (!read_wanted(r, &wanted, &before) || !read_limit(r, &limit))
    return;
  if (!store_list(store, &ids, &count, &err)) {
    server_problem(r, 500, NULL, "%s", err.text);
    return;
  }
  struct index *x = select_is_set(&wanted) ? index_open(store) : NULL;
  json_t *list = json_array();
  for (; i < count && json_array_size(list) < limit && looked < LIMIT_API_READ_COUNT; i++) {
    if (before != NULL && strcmp(ids[i].id, before) >= 0)
      continue;
    last = ids[i].id;
    json_t *session = list_one(api, &wanted, x, last, &looked);
    if (session != NULL)
      json_array_append_new(list, session);
  }
  json_t *page = json_pack("{so}", "sessions", list);
  json_object_set_new(page, "next", i < count && last ? json_string(last) : json_null());
  index_close(x);
  free(ids);
  server_reply_json(r, 200, page);
}

/* --- waiting --- */

enum awaited { FIRST_RECORD, RESUME, ANSWER, CANCEL, JUDGMENT, VALUE };

struct waiter {
  struct list_node in_control;
  struct control *api;
  struct server_request *request;
  char id[STORE_ID_BYTES];
  enum awaited what;
  uint64_t question; /* ANSWER: to which */
};

static void waiter_drop(struct waiter *w) {
  list_remove(&w->api->waiters, &w->in_control);
  free(w);
}

static void control_on_gone(void *ctx) {
  waiter_drop(ctx);
}

static void control_wait_for(struct control *api, struct server_request *r, const char *id,
                             enum awaited what, uint64_t question) {
  struct waiter *w = xcalloc(1, sizeof *w);
  *w = (struct waiter){.api = api, .request = r, .what = what, .question = question};
  (void)snprintf(w->id, sizeof w->id, "%s", id);
  list_push_front(&api->waiters, &w->in_control);
  server_keep(r, control_on_gone, w);
}

/* Says that what was asked for is not on disk. */
static void reply_broken(struct server_request *r, const struct daemon_entry *e,
                         enum awaited what) {
  const struct err *broken = e->session ? session_broken(e->session) : NULL;
  bool paused = e->session != NULL && session_paused(e->session) != NULL;
  bool full = paused || (broken != NULL && broken->code == ERR_FULL);
  const char *why = entry_message(e) ? entry_message(e) : "its log broke";
  if (what == CANCEL && (paused || e->state == ENTRY_BROKEN)) {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, full ? 507 : 503, NULL,
                   "the cancel is not accepted yet: %s. It is tried again while this daemon runs, "
                   "but forgotten with it: ask again to be sure",
                   why);
  } else {
    const char *what_not = what == RESUME ? "it is not resumed: " : "";
    if (what == ANSWER)
      what_not = "it is not answered: ";
    server_problem(r, full ? 507 : 500, NULL, "%s%s", what_not, why);
  }
}

/* Answers a waiter whose time has come. */
static void control_answer(const struct control *api, struct server_request *r,
                           const struct daemon_entry *e, enum awaited what, uint64_t question) {
  char place[64];
  switch (what) {
  case ANSWER:
    if (brief_asks(&e->brief, question))
      break;
    reply_session(api, r, 202, e->id);
    return;
  case FIRST_RECORD:
    if (e->brief.seq == 0)
      break;
    (void)snprintf(place, sizeof place, "/v1/sessions/%s", e->id);
    server_set_header(r, "Location", place);
    reply_session(api, r, 201, e->id);
    return;
  case RESUME:
    if (brief_is_stopped(&e->brief))
      break;
    reply_session(api, r, 202, e->id);
    return;
  case JUDGMENT:
  case VALUE:
    if (view_is_unfinished(&e->brief))
      break;
    question_reply(r, e, what == JUDGMENT);
    return;
  case CANCEL:
    if (!brief_is_over(&e->brief))
      break;
    if (strcmp(e->brief.status, "cancelled") == 0)
      reply_session(api, r, 200, e->id);
    else
      server_problem(r, 409, NULL, "it has ended already: %s", e->brief.status);
    return;
  }
  reply_broken(r, e, what);
}

void control_changed(void *ctx, struct daemon_entry *e) {
  struct control *api = ctx;
  if (api->window != NULL)
    window_changed(api->window);
  bool paused = e->session != NULL && session_paused(e->session) != NULL;
  bool over = e->state == ENTRY_OVER || e->state == ENTRY_BROKEN || paused ||
              strcmp(e->brief.status, "running") != 0;
  LIST_EACH(struct waiter, w, in_control, &api->waiters) {
    struct server_request *r = w->request;
    enum awaited what = w->what;
    uint64_t question = w->question;
    bool open = what == ANSWER && brief_asks(&e->brief, question) && e->state != ENTRY_BROKEN &&
                e->state != ENTRY_OVER;
    if (strcmp(w->id, e->id) != 0 || (what >= CANCEL && !over) || open)
      continue;
    waiter_drop(w);
    control_answer(api, r, e, what, question);
  }
}

/* --- submitting --- */

static bool refuse_draining(const struct control *api, struct server_request *r) {
  if (!api->draining)
    return false;
  server_set_header(r, "Retry-After", "5");
  server_problem(r, 503, NULL, "the daemon is being stopped: it takes no more sessions");
  return true;
}

static void control_refuse(const struct intake_result *result) {
  const struct err *err = &result->err;
  json_t *list = result->errors.count > 0 ? launch_errors_json(&result->errors) : NULL;
  json_t *members = list ? json_pack("{so}", "errors", list) : NULL;
  if (err->line > 0)
    server_problem(result->request, result->status, members, "%s:%d:%d: %s", err->file, err->line,
                   err->column, err->text);
  else
    server_problem(result->request, result->status, members, "%s", err->text);
}

/* The first record says that a session is kept; a question's client waits for its end. */
static const enum awaited awaited_by[] = {
    [ASKS_SESSION] = FIRST_RECORD, [ASKS_JUDGMENT] = JUDGMENT, [ASKS_VALUE] = VALUE};

static void control_on_session(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  struct server_request *r = result->request;
  struct err err = {0};
  if (!result->ok) {
    control_refuse(result);
    return;
  }
  if (refuse_draining(api, r)) /* it began meanwhile */
    return;
  enum launch_asks asks = result->launch.asks;
  const struct daemon_entry *e = sessions_submit(api->sessions, &result->launch, &err);
  if (e != NULL) {
    control_wait_for(api, r, e->id, awaited_by[asks], 0);
  } else {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, err.code == ERR_FULL ? 507 : 503, NULL, "%s", err.text);
  }
}

static void control_on_fork(void *ctx, struct intake_result *result) {
  struct err err = {0};
  if (result->ok && !launch_find_scenario(&result->launch, &err))
    server_problem(result->request, 422, NULL, "%s", err.text);
  else
    control_on_session(ctx, result);
}

static void fork_session(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  char id[STORE_ID_BYTES];
  struct store_ref log;
  struct view v;
  struct err err = {0};
  if (refuse_draining(api, r) || !control_find(api, r, id))
    return;
  if (!view_of(&v, api->sessions, id, &err)) {
    server_problem(r, 404, NULL, "there is no session %s", id);
    return;
  }
  view_deinit(&v);
  store_ref(api->sessions->env->store, id, &log);
  intake_take_about(&api->intake, r, &log, launch_parse_fork, control_on_fork);
}

static void control_on_looked(void *ctx, struct intake_result *result) {
  (void)ctx;
  if (result->ok)
    server_reply_json(result->request, 200, json_incref(result->launch.answer));
  else
    control_refuse(result);
}

static void control_judge(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  if (!refuse_draining(api, r))
    intake_take(&api->intake, r, launch_parse_judge, control_on_session);
}

static void ask_value(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  if (!refuse_draining(api, r))
    intake_take(&api->intake, r, launch_parse_ask, control_on_session);
}

static void lint_workflow(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  intake_take(&api->intake, r, launch_parse_lint, control_on_looked);
}

static void plan_workflow(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  intake_take(&api->intake, r, launch_parse_plan, control_on_looked);
}

static void submit_session(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  if (!refuse_draining(api, r))
    intake_take(&api->intake, r, launch_parse, control_on_session);
}

/* --- cancelling, resuming --- */

/* The entry of a session that may be unknown here. NULL: answered. */
static struct daemon_entry *entry_for(struct control *api, struct server_request *r,
                                      const char *id) {
  struct err err = {0};
  struct daemon_entry *e = sessions_find(api->sessions, id);
  if (e == NULL)
    e = sessions_adopt(api->sessions, id, &err);
  if (e == NULL || e->brief.seq == 0) {
    server_problem(r, 404, NULL, "there is no session %s", id);
    return NULL;
  }
  return e;
}

static void cancel_session(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  char id[STORE_ID_BYTES];
  struct err err = {0};
  struct daemon_entry *e = control_find(api, r, id) ? entry_for(api, r, id) : NULL;
  struct view v;
  if (e == NULL)
    return;
  if (view_of(&v, api->sessions, id, &err)) {
    bool done = strcmp(v.status, "cancelled") == 0;
    bool ended = brief_is_over(v.brief);
    if (ended && !done)
      server_problem(r, 409, NULL, "it has ended already: %s", v.status);
    view_deinit(&v);
    if (done)
      reply_session(api, r, 200, id);
    if (ended)
      return;
  }
  if (!sessions_cancel(api->sessions, e, &err)) {
    if (err.code == ERR_LOCKED)
      server_problem(r, 409, NULL, "another program runs it, and only that one can cancel it");
    else
      server_problem(r, err.code == ERR_INVALID ? 409 : 500, NULL, "%s", err.text);
  } else if (e->session != NULL && session_paused(e->session)) {
    reply_broken(r, e, CANCEL);
  } else {
    control_wait_for(api, r, id, CANCEL, 0);
  }
}

static void refuse_resume(struct server_request *r, const struct err *err) {
  bool conflict = err->code == ERR_LOCKED || err->code == ERR_INVALID;
  unsigned status = conflict ? 409 : 500;
  if (err->code == ERR_LIMIT)
    status = 503;
  if (err->code == ERR_USAGE)
    status = 422;
  server_problem(r, status, NULL, "%s", err->text);
}

/* Takes the steer over. */
static void resume_with(struct control *api, struct server_request *r, struct steer *st) {
  char id[STORE_ID_BYTES];
  struct err err = {0};
  struct daemon_entry *e = control_find(api, r, id) ? entry_for(api, r, id) : NULL;
  if (e == NULL)
    return;
  if (e->state != ENTRY_OVER && !entry_is_elsewhere(e))
    server_problem(r, 409, NULL, "it is %s: there is nothing to resume", entry_status(e));
  else if (!sessions_resume(api->sessions, e, st, &err))
    refuse_resume(r, &err);
  else if (e->state == ENTRY_WRITING)
    control_wait_for(api, r, id, RESUME, 0);
  else
    reply_session(api, r, 202, id);
}

static void control_on_steer(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  struct steer *st = &result->launch.steer;
  if (!result->ok)
    control_refuse(result);
  else if (!refuse_draining(api, result->request))
    resume_with(api, result->request, st);
}

static void resume_session(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct steer nothing = {0};
  if (refuse_draining(api, r))
    return;
  if (server_body(r).n > 0) {
    intake_take(&api->intake, r, launch_parse_steer, control_on_steer);
    return;
  }
  resume_with(api, r, &nothing);
  steer_deinit(&nothing);
}

/* --- people --- */

/* Takes the answer over. */
static void answer_with(struct control *api, struct server_request *r, struct core_answer *answer) {
  char id[STORE_ID_BYTES];
  struct err err = {0};
  uint64_t question;
  struct daemon_entry *e = control_find(api, r, id) ? entry_for(api, r, id) : NULL;
  if (e == NULL)
    return;
  if (!sessions_answer(api->sessions, e, answer, &question, &err))
    refuse_resume(r, &err);
  else
    control_wait_for(api, r, id, ANSWER, question);
}

static void control_on_answer(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  if (!result->ok)
    control_refuse(result);
  else if (!refuse_draining(api, result->request))
    answer_with(api, result->request, &result->launch.said.core);
}

static void take_answer_body(struct control *api, struct server_request *r, intake_parse parse,
                             enum answer_says says) {
  struct said said = {0};
  struct err err = {0};
  if (refuse_draining(api, r))
    return;
  if (server_body(r).n > 0) {
    intake_take(&api->intake, r, parse, control_on_answer);
    return;
  }
  if (said_parse(&said, NULL, says, &err))
    answer_with(api, r, &said.core);
  else
    server_problem(r, 400, NULL, "%s", err.text);
  said_deinit(&said);
}

static void answer_session(void *ctx, struct server_request *r) {
  take_answer_body(ctx, r, launch_parse_answer, SAYS_TEXT);
}

static void approve_session(void *ctx, struct server_request *r) {
  take_answer_body(ctx, r, launch_parse_approve, SAYS_APPROVE);
}

static void reject_session(void *ctx, struct server_request *r) {
  take_answer_body(ctx, r, launch_parse_reject, SAYS_REJECT);
}

void control_act(void *ctx, struct server_request *r, const char *id, const char *what) {
  static const struct {
    const char *what;
    void (*handle)(void *ctx, struct server_request *r);
  } acts[] = {{"cancel", cancel_session},
              {"resume", resume_session},
              {"answer", answer_session},
              {"approve", approve_session},
              {"reject", reject_session}};
  (void)id; /* it is the request's own part, as on the socket */
  for (size_t i = 0; i < ARRAY_LEN(acts); i++)
    if (strcmp(acts[i].what, what) == 0)
      acts[i].handle(ctx, r);
}

static void get_inbox(void *ctx, struct server_request *r) {
  const struct control *api = ctx;
  struct err err = {0};
  json_t *list = sessions_inbox(api->sessions, &err);
  if (list == NULL)
    server_problem(r, 500, NULL, "%s", err.text);
  else
    server_reply_json(r, 200, json_pack("{so}", "inbox", list));
}

/* --- events --- */

/* The record that the client has seen last. False: answered. */
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

static void watch_session(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  char id[STORE_ID_BYTES];
  uint64_t seq;
  struct err err = {0};
  struct daemon_entry *e =
      last_seen(r, &seq) && control_find(api, r, id) ? entry_for(api, r, id) : NULL;
  struct view v;
  if (e == NULL)
    return;
  if (view_of(&v, api->sessions, id, &err)) {
    bool runs = view_is_unfinished(v.brief) && strcmp(v.status, "open") != 0;
    bool over = !entry_is_live(e) && !runs;
    bool seen = over && seq >= v.brief->seq;
    view_deinit(&v);
    if (seen) { /* tells an EventSource not to come again */
      server_reply(r, 204, NULL, STR(""));
      return;
    }
  }
  entry_watch(e, r, seq);
}

/* --- the rest --- */

static void get_health(void *ctx, struct server_request *r) {
  const struct control *api = ctx;
  const struct sessions *ss = api->sessions;
  server_reply_json(r, 200,
                    json_pack("{ss ss si ss ss s{sI sI sI} si}", "status",
                              api->draining ? "stopping" : "ready", "version", SEGUE_VERSION, "pid",
                              (int)getpid(), "started", api->started, "logs", ss->env->store->where,
                              "sessions", "running", (json_int_t)sessions_running(ss), "queued",
                              (json_int_t)sessions_queued(ss), "max", (json_int_t)ss->max_running,
                              "connections", (int)server_connections(api->http)));
}

static void get_description(void *ctx, struct server_request *r) {
  const struct resource *file = resource_find("schemas/api.json");
  (void)ctx;
  server_reply(r, 200, "application/json", (struct str){file->p, file->n});
}

static const char *const list_query[] = {"status",   "since",  "workflow", "method",
                                         "provider", "before", "limit",    NULL};
static const char *const watch_query[] = {"after", NULL};

const struct server_route control_routes[] = {
    {"POST", "/v1/sessions", "submit a session", TAKES_JSON, NULL, submit_session},
    {"GET", "/v1/sessions",
     "list sessions, newest first (status, since, workflow, method, provider, before, limit)",
     TAKES_NOTHING, list_query, list_sessions},
    {"GET", "/v1/sessions/{id}", "one session", TAKES_NOTHING, NULL, get_session},
    {"GET", "/v1/sessions/{id}/events", "its records as server-sent events (Last-Event-ID, after)",
     TAKES_NOTHING, watch_query, watch_session},
    {"GET", "/v1/sessions/{id}/view", "what is shown of it, as segue show --as view", TAKES_NOTHING,
     NULL, control_get_view},
    {"GET", "/v1/sessions/{id}/turns/{turn}", "a judgment in full", TAKES_NOTHING, NULL,
     control_get_turn},
    {"GET", "/v1/sessions/{id}/integrity", "is its log what was written", TAKES_NOTHING, NULL,
     control_get_integrity},
    {"POST", "/v1/sessions/{id}/cancel", "end it for good", TAKES_NOTHING, NULL, cancel_session},
    {"POST", "/v1/sessions/{id}/resume", "go on with one that stopped", TAKES_JSON_OR_NOTHING, NULL,
     resume_session},
    {"POST", "/v1/sessions/{id}/answer", "answer what it asks", TAKES_JSON, NULL, answer_session},
    {"POST", "/v1/sessions/{id}/approve", "approve what it would run", TAKES_JSON_OR_NOTHING, NULL,
     approve_session},
    {"POST", "/v1/sessions/{id}/reject", "reject what it would run", TAKES_JSON_OR_NOTHING, NULL,
     reject_session},
    {"GET", "/v1/inbox", "what waits for persons", TAKES_NOTHING, NULL, get_inbox},
    {"POST", "/v1/sessions/{id}/fork", "begin another session where one was", TAKES_JSON, NULL,
     fork_session},
    {"POST", "/v1/judge", "judge a text: which rule holds", TAKES_JSON, NULL, control_judge},
    {"POST", "/v1/ask", "ask for a value that fits a schema", TAKES_JSON, NULL, ask_value},
    {"POST", "/v1/lint", "check a workflow", TAKES_JSON, NULL, lint_workflow},
    {"POST", "/v1/plan", "what a session would be", TAKES_JSON, NULL, plan_workflow},
    {"GET", "/v1/audit",
     "judgments counted (by, since, workflow, movement, method, provider, model, worker, outcome, "
     "min_stages, ambiguous)",
     TAKES_NOTHING, counts_query, control_get_audit},
    {"POST", "/v1/web/codes", "a code for the web page, whose port is opened",
     TAKES_JSON_OR_NOTHING, NULL, control_post_code},
    {"GET", "/metrics", "counters for Prometheus", TAKES_NOTHING, NULL, control_get_metrics},
    {"GET", "/v1/health", "how the daemon is", TAKES_NOTHING, NULL, get_health},
    {"GET", "/v1/openapi.json", "this interface as OpenAPI 3.1", TAKES_NOTHING, NULL,
     get_description},
    {0},
};

bool control_idle(const struct control *api) {
  return api->intake.jobs.count == 0 && readings_busy(&api->readings) == 0 &&
         (api->window == NULL || window_busy(api->window) == 0);
}

void control_close(struct control *api) {
  window_free(api->window);
  api->window = NULL;
}

void control_deinit(struct control *api) {
  metrics_deinit(&api->metrics);
}

void control_init(struct control *api, struct sessions *sessions) {
  *api = (struct control){.sessions = sessions};
  sessions->recorded = control_on_record;
  sessions->observer = api;
  readings_init(&api->readings, sessions->host->loop);
  intake_init(&api->intake, sessions->host->loop, sessions->env, api);
  record_time(clock_real_ms(), api->started);
}
